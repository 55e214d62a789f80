//! A page cache as a library without I/O: it knows objects and runs of their pages,
//! not where these lie. It says which pages to read and to write back, and who
//! waits until when.
//!
//! | module | what |
//! |---|---|
//! | [`cache`](Cache) | the state machine: reads, writes, fsync, PUSH and PULL |
//! | [`replacement`] | which page goes when another needs its place |
//! | [`read_ahead`] | what a read brings beside what it asks for |
//! | [`write_back`] | when dirty pages are written, and who is made to wait |
//! | [`pages`] | the pages that are held, as runs |
//! | [`desk`] | what write-back works with |
//!
//! What is modelled of which kernel, and what is left out: `docs/memory.md`.

mod cache;
mod config;
mod counters;
pub mod desk;
mod device;
mod dirty;
mod out;
pub mod pages;
pub mod read_ahead;
mod readings;
pub mod replacement;
mod run;
pub mod write_back;

pub use cache::{Access, Arrival, Cache, FileId};
pub use config::{LIMIT_LEAST, MemoryKeys, Policy};
pub use counters::{Counters, Gauges};
pub use device::{IoId, Queue};
pub use out::{Answer, Io, Out, Ticket, Why, Woken};
pub use read_ahead::Cuts;
pub use run::{PAGE_BYTES, Run, pages_in};
