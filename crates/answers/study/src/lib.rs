//! Published studies as files: a question, the points that answer it, and claims.
//!
//! A [`Study`] is read from one TOML file and checked whole: names, points,
//! expressions. A [`RunList`] lists the runs that studies need, each once;
//! [`run_tasks`] runs what the [`Store`] lacks; claims are judged on what it has.
//!
//! | file | what |
//! |---|---|
//! | `config.rs` | the study file, as it is written |
//! | `axes.rs` | axes, and the points that they span |
//! | `study.rs` | a study file, checked |
//! | `variation.rs` | a study as it stands, with one thing changed, held out |
//! | `expression/` | the language of claims |
//! | `metrics.rs` | what is kept of a run |
//! | `predicted.rs` | what equations say of its load |
//! | `run_list.rs` | which runs studies need |
//! | `digests.rs` | what a run's results are kept under |
//! | `store.rs`, `version.rs` | where results are kept, and of which build |
//! | `runner.rs`, `parallel.rs` | runs what is missing, on all cores |
//! | `claims.rs`, `text.rs` | what holds, and how it is written |
//! | `held_out.rs` | what was learnt under other seeds and choices |
//! | `best.rs` | which value of an axis is best |
//! | `figure.rs`, `page.rs` | charts, and the page of results |
//! | `schema.rs` | the JSON schema of study files |
//! | `error.rs` | what can go wrong |

mod axes;
mod best;
mod checked;
mod claims;
mod config;
mod digests;
mod error;
pub mod expression;
mod figure;
mod held_out;
mod metrics;
mod page;
mod parallel;
mod predicted;
mod run_list;
mod runner;
mod schema;
mod store;
mod study;
mod text;
mod unknown;
mod variation;
mod version;

pub use axes::{Axis, AxisValue, Matrix, NamedSet};
pub use best::{Best, RunnerUp, best};
pub use checked::{Changed, Checked};
pub use claims::{Claim, Judged, Verdict};
pub use config::{ClaimKind, StudyConfig};
pub use digests::Digests;
pub use error::StudyError;
pub use figure::{Drawn, DrawnLine, DrawnPoint, Ends, Figure, LINES_MAX, Line, Tick, drawn};
pub use held_out::{Flip, HeldOut, Record};
pub use metrics::{Kept, PathError, keep};
pub use page::{Draw, drifted, write_pages};
pub use predicted::NoEquations;
pub use run_list::{RunList, StudyTable, Task};
pub use runner::run_tasks;
pub use schema::schema;
pub use store::{Key, Results, Store, StoreWriter};
pub use study::{Outline, Study, find, outlines};
pub use variation::{Choice, ChoiceValue, Extent, Variation};
pub use version::VERSION;
