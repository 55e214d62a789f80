//! Answers as one page: HTML with its charts, styles and script inside, that opens from disk
//! without a network.
//!
//! [`page`] takes an [`Answer`], which has what a command prints with `--json` as its own types, and nothing else: the
//! page computes no number. [`plot`] draws the main figure alone, and [`plots`] has the pictures that commands write
//! beside pages. Each number of a table stands in an element `data` with the value that `--json` prints. What
//! comes from files is escaped where it is written (`markup.rs`).
//!
//! | file | what |
//! |---|---|
//! | `answer.rs` | what a page is made of |
//! | `page.rs` | the page, section by section |
//! | `plot.rs` | the main figure as a file of its own |
//! | `plots.rs`, `plots/` | pictures of their own, one file each |
//! | `chart.rs`, `chart/` | the charts of pages, one file each |
//! | `svg.rs` | figures, legends, axes, marks |
//! | `advice.rs`, `found.rs`, `studies.rs` | what `advise` recommends, what searches found, what studies ask |
//! | `loads.rs` | what workloads, hosts, programs and streams saw, and what layers read |
//! | `candidate.rs`, `value.rs`, `metric.rs` | candidates of an answer; tables; metrics in words |
//! | `markup.rs` | tags and escaped text |
//! | `looks.css`, `style.css`, `script.js`, `patterns.svg` | looks of marks, and of pages, for light, dark and paper; sorting of tables; patterns beside colours |

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

pub use answer::{Answer, Found};
pub use page::{BYTES_MAX, Source, page};
pub use plot::{PlotError, plot};
