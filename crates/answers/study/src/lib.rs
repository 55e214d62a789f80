//! Published studies as files: a question, the points that answer the question, and claims.
//!
//! A [`Study`] is read from one TOML file and checked completely: names, points, expressions. A
//! [`RunList`] lists the runs of studies, each once. [`run_tasks`] does the runs that the [`Store`]
//! lacks. Claims are judged by the results in the store.
//!
//! | file | contents |
//! |---|---|
//! | `config.rs` | the study file as written |
//! | `axes.rs` | axes, and the points of their combinations |
//! | `study.rs` | a checked study file |
//! | `variation.rs` | ways to run a study: unchanged, with one change, with other seeds or choices |
//! | `expression/` | the language of claims |
//! | `metrics.rs` | numbers kept of a run |
//! | `predicted.rs` | predictions of the equations for a run's load |
//! | `run_list.rs` | the list of runs |
//! | `digests.rs` | keys of results |
//! | `store.rs`, `version.rs` | the store of results, and the build of each result |
//! | `runner.rs`, `parallel.rs` | missing runs, on all cores |
//! | `claims.rs`, `verdict.rs`, `text.rs` | claims, verdicts, and their text |
//! | `task.rs`, `record.rs` | one run, and the record of a study's other settings |
//! | `held_out.rs` | verdicts under other seeds and choices |
//! | `best.rs` | the best value of an axis |
//! | `figure.rs`, `page.rs` | charts, and the page of results |
//! | `schema.rs` | the JSON schema of study files |
//! | `error.rs` | errors |

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
mod record;
mod run_list;
mod runner;
mod schema;
mod store;
mod study;
mod task;
mod text;
mod unknown;
mod variation;
mod verdict;
mod version;

pub use axes::{Axis, AxisValue, Matrix, NamedSet};
pub use best::{Best, RunnerUp, best};
pub use checked::{ChangedClaims, CheckedClaims};
pub use claims::Claim;
pub use config::{ClaimKind, HeadlineCause, LINES_MAX, StudyConfig};
pub use digests::Digests;
pub use error::StudyError;
pub use figure::{AxisEnds, ChartLine, DrawnLine, DrawnPoint, Figure, FigureNumbers, Tick, drawn};
pub use held_out::HeldOut;
pub use metrics::{PathError, RunNumber, keep};
pub use page::{Draw, outdated_parts, write_pages};
pub use predicted::NoEquations;
pub use record::{StudyRecord, VerdictFlip};
pub use run_list::{RunList, StudyTable};
pub use runner::run_tasks;
pub use schema::schema;
pub use store::{Results, Store, StoreWriter};
pub use study::{Outline, Study, find, outlines};
pub use task::{RunKey, Task};
pub use variation::{ChoiceValue, Extent, StudyChoice, Variation};
pub use verdict::{ClaimVerdict, Headline, JudgedClaim};
pub use version::VERSION;
