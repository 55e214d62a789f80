//! Memory between real clients and a served array: the page cache of a simulation,
//! with bytes, and an ear for what the array says.
//!
//! [`serve`] is an NBD server above another one. Its replacement, read-ahead and
//! write-back are those of `fullstroke-memory`, driven by the real clock; it heeds
//! PUSH and PULL of the server below, which come over that one's control socket
//! (*Pro-active storage systems*, 2012, chapters 2 and 3).
//!
//! | file | what |
//! |---|---|
//! | `cached.rs` | the state machine: requests in, jobs for the server below out |
//! | `pages.rs` | the bytes of pages |
//! | `serve.rs` | the loop, one thread |
//! | `below.rs` | the server below: a connection and a thread for each job at a time |
//! | `signals.rs` | a thread that listens to what it says |
//! | `heed.rs`, `kernel.rs` | the kernel's own page cache does what it says |

mod below;
mod cached;
mod heed;
mod kernel;
mod pages;
mod serve;
mod signals;

pub use cached::{Asked, Cached, Job, Outcome, Work};
pub use heed::{HeedOptions, Heeded, Heeding, heed};
pub use serve::{CacheError, CacheOptions, Ready, Summary, serve};
