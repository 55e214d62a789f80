//! Answers as one page: HTML with its charts, styles and script inside. The page opens from disk
//! without a network.
//!
//! [`page`] takes only an [`CommandAnswer`], which holds the output of a command with `--json` in
//! its own types. The page computes no number. [`plot`] draws the main figure alone. [`plots`]
//! draws the pictures that commands write besides pages. Each number of a table stands in an
//! element `data` with the value that `--json` prints. Text from files is escaped on output
//! (`markup.rs`).
//!
//! | file | contents |
//! |---|---|
//! | `answer.rs` | contents of a page |
//! | `page.rs` | the page, section by section |
//! | `plot.rs` | the main figure as a separate file |
//! | `plots.rs`, `plots/` | separate pictures, one per file |
//! | `chart.rs`, `chart/` | the charts of pages, one per file |
//! | `svg.rs` | figures, legends, axes, marks |
//! | `advice.rs`, `found.rs`, `studies.rs` | the answers of `advise`, of searches and of studies |
//! | `loads.rs` | measures of workloads, hosts, programs and streams, and readings of layers |
//! | `candidate.rs`, `value.rs`, `metric.rs` | candidates of an answer; tables; metrics in words |
//! | `markup.rs` | tags and escaped text |
//! | `looks.css`, `style.css`, `script.js`, `patterns.svg` | styles of marks and of pages, for light, dark and paper; sorting of tables; patterns beside colours |

mod advice;
mod answer;
mod candidate;
mod chart;
mod found;
mod loads;
mod markup;
mod metric;
mod page;
mod plot;
pub mod plots;
mod studies;
mod svg;
mod value;

pub use answer::{AnswerBody, CommandAnswer};
pub use page::{AnswerSource, BYTES_MAX, page};
pub use plot::{PlotError, plot};
