//! A page cache between real clients and a served array. The page cache is that of a simulation,
//! with data, and follows the signals of the array.
//!
//! [`serve`] is an NBD server above another NBD server. Replacement, read-ahead and write-back are
//! those of `fullstroke-memory`, driven by the real clock. The server receives PUSH and PULL over
//! the control socket of the server below (*Pro-active storage systems*, 2012, chapters 2 and 3).
//!
//! | file | contents |
//! |---|---|
//! | `cached.rs` | the state machine: requests in, jobs for the server below out |
//! | `pages.rs` | the data of pages |
//! | `serve.rs`, `messages.rs` | the loop, one thread; messages for the loop |
//! | `below.rs` | the server below: a connection and a thread for each concurrent job |
//! | `signals.rs` | a thread that receives the server's signals |
//! | `heed.rs`, `kernel.rs` | the kernel's own page cache follows the signals |

mod below;
mod cached;
mod heed;
mod kernel;
mod messages;
mod pages;
mod serve;
mod signals;

pub use cached::{Cached, ClientOutcome, ClientRequest, NumberedWork, ServerWork};
pub use heed::{HeedOptions, SignalCounts, SignalSession, heed};
pub use messages::CacheError;
pub use serve::{CacheCounters, CacheOptions, CacheReady, serve};
