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
//! | `changes.rs`, `error.rs` | changes of a stack file; reasons of a command without an answer |
//! | `question.rs` | a question, and its answer step by step |
//! | `recognise.rs` | the kind of a dropped file |
//! | `raw.rs` | the functions that the page calls, in WebAssembly only |

mod changes;
mod commands;
mod error;
mod question;
#[cfg(target_family = "wasm")]
mod raw;
mod recognise;
mod session;

pub use error::CommandError;
pub use session::Session;
