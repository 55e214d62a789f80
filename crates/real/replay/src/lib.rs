//! Traces on real devices, and how true to them the replay was.
//!
//! [`replay`] issues the requests of a trace on a block device or a file through
//! io_uring, past the page cache. When each may go is decided by the same
//! [`Dispatcher`](fullstroke_workload::pace::Dispatcher) that paces a replay in the
//! simulator; this crate adds a clock, a ring and a thread. Where the kernel gives no ring, threads with
//! `pread` and `pwrite` stand for it, and only for it. Programs whose threads wait for their calls are
//! another matter: [`ReplayOptions::threads`].
//!
//! **One thread** issues and reaps. It follows an absolute schedule: until shortly before
//! an instant it sleeps in the kernel, where a completion wakes it, and from then on it
//! spins over the completion queue and the clock. Reading the trace and writing the log are other
//! threads' work.
//!
//! **Nothing is issued before everything is known.** The whole trace is read once
//! beforehand ([`prepare`](Prepared)): what is wrong with it, what does not fit the device, and
//! writes that nobody allowed are errors before the first request.
//!
//! **What came of it** is measured at each request and stands in the [`Report`]: how late it was
//! issued, how many were outstanding and should have been, and whether the replay may be called
//! faithful.
//!
//! | file | what |
//! |---|---|
//! | `options.rs` | what is replayed, where, and how |
//! | `error.rs` | why not |
//! | `target.rs` | the device: its size, its alignment, who uses it |
//! | `command.rs` | a request of the trace as the device's |
//! | `prepared.rs` | the trace, read once before |
//! | `ahead.rs` | the trace, read again while it is replayed |
//! | `issuer.rs` | how requests reach the kernel |
//! | `ring.rs`, `threads.rs` | by io_uring, or by threads |
//! | `calls.rs`, `memory.rs` | the calls of threads; what is read into |
//! | `clock.rs`, `priority.rs` | when it is, and who is scheduled then |
//! | `calibration.rs` | what ring, clock and device need |
//! | `player.rs` | the loop |
//! | `callers.rs` | threads that wait for their calls, in place of it |
//! | `tally.rs`, `report.rs` | what is measured, and said of it |
//! | `log.rs` | the replay as a trace |
//! | `beside.rs` | fio on the same requests |
//! | `record.rs` | the other way round: requests that reach a device, as a trace |

mod ahead;
mod beside;
mod calibration;
mod callers;
mod calls;
mod clock;
mod command;
mod error;
mod issuer;
mod log;
mod memory;
mod options;
mod player;
mod prepared;
mod priority;
mod record;
mod report;
mod ring;
pub mod stream_test;
mod tally;
mod target;
mod threads;

pub use beside::{BesideError, FioReport, fio_beside};
pub use calibration::Calibration;
pub use error::ReplayError;
pub use options::{Io, ReplayOptions, Writes};
pub use player::replay;
pub use prepared::Prepared;
pub use record::{RecordOptions, Recording, record};
pub use report::{
    GapSeconds, GapShare, OperationReport, OutstandingReport, Report, Spread, Verdict,
};
