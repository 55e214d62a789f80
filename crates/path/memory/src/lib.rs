//! A page cache as a library without I/O. The cache knows objects and runs of their pages, but not
//! the place of an object on the device. The results are the pages to read and to write back, and
//! the operations to wake.
//!
//! | module | content |
//! |---|---|
//! | [`cache`](PageCache) | the state machine: reads, writes, fsync, PUSH and PULL |
//! | [`replacement`] | choice of the page to evict |
//! | [`read_ahead`] | pages read beside the requested pages |
//! | [`write_back`] | time of write-back, and throttling of writers |
//! | [`pages`] | the pages in memory, as runs |
//! | [`cache_parts`] | the interface of write-back policies to the cache |
//!
//! `docs/memory.md` lists the modelled parts of each kernel, and the omitted parts.

mod cache;
pub mod cache_parts;
mod config;
mod counters;
mod device;
mod dirty;
mod out;
pub mod pages;
pub mod read_ahead;
mod readings;
pub mod replacement;
mod run;
pub mod write_back;

pub use cache::{DataSource, FileAccess, FileId, PageCache};
pub use config::{CachePolicy, LIMIT_LEAST, MemoryKeys};
pub use counters::{Counters, Gauges};
pub use device::{IoId, QueueLimits};
pub use out::{CacheOut, IoReason, OperationAnswer, PageIo, Ticket, WokenOperation};
pub use read_ahead::WindowCuts;
pub use run::{PAGE_BYTES, PageRun, pages_in};
