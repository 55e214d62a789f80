//! Simulation of file operations: the virtual file system switch of the kernel, the page cache and
//! a journal turn calls of programs into requests to a device.
//!
//! [`Vfs`] is a node at the top of a machine. Programs make calls. The file system gives the places
//! of data and the necessary metadata. The page cache chooses the pages to read and to write.
//! Requests to the device result. [`FileBacked`] is a similar node without programs: guests with
//! disks in files send requests to its top.
//!
//! | file | content |
//! |---|---|
//! | `config.rs` | the keys of `[host.files]` and `[shared.files]` |
//! | `vfs.rs` | the node for programs: processes, and the times at which they go on |
//! | `file_backed.rs`, `places.rs` | the node for guests' disks that are files, and the map from device addresses to disks |
//! | `laying.rs` | creation of files before programs begin |
//! | `calls.rs` | the immediate effect of a call, and its later steps |
//! | `task.rs`, `steps.rs` | these steps, and the threads that carry them out |
//! | `kernel.rs` | the state that the steps change |
//! | `open.rs` | open files |
//! | `access_times.rs` | access times, and the reads that change them |
//! | `io.rs` | requests for the I/O of the page cache |
//! | `durable.rs`, `log.rs` | fsync, sync, the journal and its log |
//! | `accounts.rs`, `call_costs.rs`, `tally.rs`, `series.rs`, `readings.rs` | requests by purpose, cost of calls, duration of calls, dirty memory over time, readings |

mod access_times;
mod accounts;
mod call_costs;
mod calls;
mod config;
mod dataset;
mod durable;
mod file_backed;
mod io;
mod kernel;
mod laying;
mod log;
mod open;
mod places;
mod readings;
mod series;
mod steps;
mod tally;
mod task;
mod vfs;

pub use access_times::AccessTimeRule;
pub use config::{DiskCache, DiskKeys, FilesConfig, FilesKeys, Preallocation};
pub use file_backed::{Backing, FileBacked, GuestDisk};
pub use vfs::{Equipment, Started, Vfs};
