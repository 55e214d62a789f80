//! fio's job files as workloads, and results in fio's formats.
//!
//! [`JobSet::parse`] reads a job file. [`FioSource`] issues its I/O to a volume in fio's order and
//! at fio's times. [`FioResults`] holds the results, as text or in the format of `fio
//! --output-format=json`. One table defines the meaning of every option, and [`reference()`] prints
//! the table as a page. An option that would change the I/O but is not simulated is refused by
//! name.
//!
//! fio's documentation leaves some behaviour open. This behaviour was found by experiments with fio
//! 3.33: the addresses of its I/O (`write_iolog` with `ioengine=null`), the times of its pauses
//! (`write_lat_log`), and the values that it accepts.
//!
//! | file | content |
//! |---|---|
//! | `ini.rs` | sections, settings, comments, included files |
//! | `command_line.rs`, `shell.rs` | command lines of fio |
//! | `surroundings.rs` | variables and keywords |
//! | `units.rs`, `expression.rs` | numbers with units, and arithmetic |
//! | `table.rs` | every option and its treatment |
//! | `options.rs` | the reference page of the table |
//! | `readers.rs`, `grammar.rs` | parsers for the values |
//! | `job.rs` | the description of a job |
//! | `parse.rs` | a job file as a whole |
//! | `region.rs` | the region of a job, and its amount of I/O |
//! | `offsets.rs` | the offset of the next block |
//! | `places.rs` | the file of the next block |
//! | `file_places.rs` | names, lengths and places of files |
//! | `placement.rs` | files on a volume without a file system |
//! | `files.rs`, `files/` | jobs on files: a program |
//! | `history.rs` | written blocks that `verify` reads back |
//! | `sizes.rs` | the size of the next block |
//! | `permutation.rs`, `coverage.rs` | random order that uses each block once |
//! | `skew.rs` | popular blocks |
//! | `pace.rs`, `think.rs` | rates and pauses |
//! | `progress.rs` | iterations, and the end of a job |
//! | `worker.rs` | one clone of a job: fio's loop |
//! | `source.rs` | all workers |
//! | `tally.rs`, `results.rs` | statistics |
//! | `json.rs`, `render.rs` | output formats |

mod command_line;
mod coverage;
mod error;
#[cfg(test)]
mod examples;
mod expression;
mod file_places;
mod files;
mod floors;
mod grammar;
mod history;
mod ini;
mod job;
mod job_set;
mod json;
mod offsets;
mod option;
mod options;
mod pace;
mod parse;
mod pasted;
mod permutation;
mod placement;
mod places;
mod progress;
mod readers;
mod region;
mod render;
mod results;
mod shell;
mod sizes;
mod skew;
mod source;
mod surroundings;
mod table;
mod tally;
#[cfg(test)]
mod testing;
mod think;
mod units;
mod worker;
mod zones;

pub use error::FioError;
pub use files::FioProgram;
pub use job_set::{IgnoredOption, JobSet};
pub use options::reference;
pub use results::{BehindRate, FioGroupResults, FioResults};
pub use source::FioSource;
pub use surroundings::{Include, IncludedFile, JobSurroundings};
