//! A drive file from measurements that people have: response times by queue depth, the report of
//! `smartctl`, and the data sheet.
//!
//! | file | contents |
//! |---|---|
//! | `rows.rs`, `rows/` | response times by depth: fio's JSON, or a CSV file |
//! | `smart.rs` | a report of `smartctl` |
//! | `sheet.rs` | the data sheet with the report, held against each other |
//! | `closed.rs` | random requests on the model, with a constant depth |
//! | `fit.rs` | a fit from its first step to the answer |
//! | `fit/seeks.rs`, `fit/queue.rs`, `fit/write_cache.rs` | seek curve, queue and write cache, fitted to the rows |
//! | `grid.rs` | the rows by depth, and rows that cannot be used |
//! | `error.rs` | errors |

mod closed;
mod error;
mod fit;
mod grid;
mod rows;
mod sheet;
mod smart;

pub use error::DepthsError;
pub use fit::{ComparedRow, DepthFit, FittedKey, compared, fit_by_depth};
pub use rows::{DepthRow, read_rows};
pub use sheet::{Sheet, read_sheet};
pub use smart::{SmartReport, read_smart};
