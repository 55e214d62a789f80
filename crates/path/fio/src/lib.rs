//! fio's job files as workloads, and results as fio prints them.
//!
//! [`JobSet::parse`] reads a job file; [`FioSource`] issues its I/O to a volume
//! in the order and time of fio; [`FioResults`] has what came out, for people
//! or in the shape of `fio --output-format=json`. What an option means here is
//! in one table, of which [`reference()`] is the page: options that would change
//! the I/O and are not simulated are refused, by name.
//!
//! Behaviour that fio's documentation leaves open was found by running fio
//! 3.33: which addresses it issues (`write_iolog` with `ioengine=null`), when
//! it pauses (`write_lat_log`), and what it accepts.
//!
//! | file | what |
//! |---|---|
//! | `ini.rs` | sections, settings, comments, variables |
//! | `units.rs`, `expression.rs` | numbers with units, and arithmetic |
//! | `table.rs` | every option, and what becomes of it |
//! | `options.rs` | the page of that table |
//! | `readers.rs`, `grammar.rs` | how the value of each is read |
//! | `job.rs` | what a job does, as read |
//! | `parse.rs` | a job file as a whole |
//! | `region.rs` | where a job works, and how much it does |
//! | `offsets.rs` | where the next block lies |
//! | `places.rs` | which of a job's files it lies in |
//! | `files.rs` | jobs on files: a program |
//! | `sizes.rs` | how large it is |
//! | `permutation.rs`, `coverage.rs` | each block once |
//! | `skew.rs` | popular blocks |
//! | `pace.rs`, `think.rs` | rates and pauses |
//! | `progress.rs` | iterations, and when it is enough |
//! | `worker.rs` | one clone of a job: fio's loop |
//! | `source.rs` | all of them |
//! | `tally.rs`, `results.rs` | what is counted |
//! | `json.rs`, `render.rs` | how it is printed |

mod coverage;
mod error;
mod expression;
mod files;
mod grammar;
mod ini;
mod job;
mod job_set;
mod json;
mod offsets;
mod option;
mod options;
mod pace;
mod parse;
mod permutation;
mod places;
mod progress;
mod readers;
mod region;
mod render;
mod results;
mod sizes;
mod skew;
mod source;
mod table;
mod tally;
mod think;
mod units;
mod worker;

pub use error::FioError;
pub use files::FioProgram;
pub use job_set::{IgnoredOption, JobSet};
pub use options::reference;
pub use results::{BehindRate, FioReport, FioResults};
pub use source::FioSource;
