//! Replays traces on real devices, and measures the accuracy of the replay.
//!
//! [`replay`] issues the requests of a trace on a block device or a file through io_uring, past the
//! page cache. The [`Dispatcher`](fullstroke_workload::pace::Dispatcher) decides when each request
//! is issued. The simulator uses the same dispatcher. This crate adds a clock, a ring and a thread.
//! Where the kernel provides no ring, threads with `pread` and `pwrite` take its place. Programs
//! whose threads wait for their calls are a different matter: see [`ReplayOptions::threads`].
//!
//! **One thread** issues and reaps. The thread follows an absolute schedule. Until shortly before
//! an instant, the thread sleeps in the kernel, and a completion wakes it. Then it spins over the
//! completion queue and the clock. Other threads read the trace and write the log.
//!
//! **Nothing is issued before everything is known.** The whole trace is read once beforehand
//! ([`prepare`](Prepared)). So a damaged trace, a request that does not fit the device, or a
//! forbidden write is an error before the first request.
//!
//! **The results** are measured at each request and reported in the [`ReplayReport`]. The report
//! holds the delay of the issue, the number of outstanding requests here and in the trace, and a
//! verdict on the replay.
//!
//! | file | contents |
//! |---|---|
//! | `options.rs` | trace, target and rules of a replay |
//! | `error.rs` | errors |
//! | `target.rs` | the device: its size, its alignment, its other users |
//! | `command.rs`, `issued.rs` | a request of the trace as a command for the device |
//! | `prepared.rs` | the trace, read once before |
//! | `ahead.rs` | the trace, read again during the replay |
//! | `issuer.rs`, `piece_answer.rs` | the way of requests to the kernel |
//! | `ring.rs`, `threads.rs` | by io_uring, or by threads |
//! | `calls.rs`, `memory.rs` | the calls of threads; the memory for data |
//! | `clock.rs`, `priority.rs` | the clock; the scheduling priority |
//! | `calibration.rs` | measurement of ring, clock and device |
//! | `player.rs`, `pace.rs` | the loop |
//! | `callers.rs` | threads that wait for their calls, in place of the loop |
//! | `tally.rs`, `report.rs` | measurements, and the report |
//! | `log.rs` | the replay as a trace |
//! | `fio_replay.rs` | fio on the same requests |
//! | `record.rs` | the reverse: requests that reach a device, recorded as a trace |

mod ahead;
mod calibration;
mod callers;
mod calls;
mod clock;
mod command;
mod error;
mod fio_replay;
mod issued;
mod issuer;
mod log;
mod memory;
mod options;
mod pace;
mod piece_answer;
mod player;
mod prepared;
mod priority;
mod record;
mod report;
mod report_parts;
mod ring;
pub mod stream_test;
mod tally;
mod target;
mod threads;

pub use calibration::Calibration;
pub use error::ReplayError;
pub use fio_replay::{BesideError, FioReplay, fio_beside};
pub use options::{IoMethod, ReplayOptions, WriteTreatment};
pub use player::replay;
pub use prepared::Prepared;
pub use record::{RecordOptions, Recording, record};
pub use report::{OutstandingReport, PaceVerdict, ReplayReport};
pub use report_parts::{GapSeconds, GapShare, OperationReport, ReplayDistribution};
