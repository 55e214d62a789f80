//! File operations carried out: what the kernel's virtual file system switch, its page
//! cache and a journal make of programs' calls.
//!
//! [`Vfs`] is a node at the top of a machine: programs ask, the file system says where
//! things lie and which metadata that touches, the page cache says what must be read and
//! written, and requests to the device come out. [`FileBacked`] is the same without programs:
//! requests of guests, whose disks are files, come in at its top.
//!
//! | file | what |
//! |---|---|
//! | `config.rs` | the keys of `[host.files]` and `[shared.files]` |
//! | `vfs.rs` | the node: processes, and when they go on |
//! | `file_backed.rs`, `places.rs` | the other node: disks of guests that are files, and whose a place on the device is |
//! | `laying.rs` | files that are there before programs begin |
//! | `calls.rs` | what a call does at once, and the steps that follow |
//! | `task.rs`, `steps.rs` | those steps, and who carries them out |
//! | `kernel.rs` | what they work on |
//! | `open.rs` | open files |
//! | `io.rs` | what the cache wants becomes requests |
//! | `durable.rs` | fsync, sync, the journal |
//! | `bill.rs`, `tally.rs`, `series.rs`, `readings.rs` | what calls cost, how long they took, how much was dirty when, what is told of it |

mod bill;
mod calls;
mod config;
mod durable;
mod file_backed;
mod io;
mod kernel;
mod laying;
mod open;
mod places;
mod readings;
mod series;
mod steps;
mod tally;
mod task;
mod vfs;

pub use config::{DiskCache, DiskKeys, FilesConfig, FilesKeys, Preallocation};
pub use file_backed::{Backing, Disk, FileBacked};
pub use vfs::{Equipment, Started, Vfs};
