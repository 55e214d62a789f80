//! The simulator and the advisor as a module for browsers: no thread, no socket, no clock, no file
//! system.
//!
//! A page puts files into the module's memory and sends commands as JSON. The module answers each
//! command with JSON: `{"answer": ...}`, or `{"error": "a sentence"}`. The numbers of `run`,
//! `compare` and `advise` are the numbers that the command line prints with `--json`, except for
//! wall-clock times, which are `null`.
//!
//! | file | contents |
//! |---|---|
//! | `session.rs` | the state behind the commands |
//! | `commands.rs` | the commands and their answers |
//! | `recognise.rs` | the kind of a dropped file |
//! | `uses.rs`, `uses/` | ready loads: a use of an array in one stack file |
//! | `raw.rs` | the functions that the page calls, in WebAssembly only |

mod commands;
#[cfg(target_family = "wasm")]
mod raw;
mod recognise;
mod session;
mod uses;

pub use commands::CommandError;
pub use session::Session;
pub use uses::{USES, Use};
