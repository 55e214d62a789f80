//! Programs: sequences of calls on files.
//!
//! A [`Program`] is a state machine. When a process is ready for its next action, the caller asks
//! the program. The program returns a [`Call`] or a time for computation. With the next question,
//! the caller passes the result of the call. A program has no access to a file system, to memory or
//! to a clock.
//!
//! A program is one file with its keys, a [`Recipe`], a [`Program`] and its tests, and one line in
//! [`REGISTRY`].
//!
//! | file | content |
//! |---|---|
//! | `call.rs` | the calls of a program, and their results |
//! | `program.rs` | the interface of a program |
//! | `script.rs` | a list of file operations |
//! | `postmark.rs` | PostMark 1.51 |
//! | `bonnie.rs` | Bonnie and bonnie++ |
//! | `diff.rs` | a comparison of two files |
//! | `iozone.rs` | IOzone |
//! | `stdio.rs` | the system calls of C library streams |
//! | `mersenne.rs` | PostMark's random numbers |
//! | `strace.rs` | a recorded program |
//! | `compile.rs` | a compilation of a program |
//! | `playback.rs` | media streams, played from files |
//! | `conformance.rs` | the tests that every program must pass |

mod bonnie;
mod call;
mod compile;
mod diff;
mod iozone;
mod mersenne;
mod playback;
mod postmark;
mod program;
mod script;
mod stdio;
mod strace;

#[cfg(test)]
mod conformance;

pub use call::{Call, CallAnswer, CallError, CallKind, Fd, OpenFlags};
pub use program::{
    Events, InitialFile, Program, ProgramAction, ProgramError, ProgramKind, ProgramReport,
    ProgramTurn, Recipe, Transaction,
};

use fullstroke_contract::registry::PolicyEntry;

/// Every program.
pub const REGISTRY: &[PolicyEntry<ProgramKind>] = &[
    script::ENTRY,
    postmark::ENTRY,
    bonnie::ENTRY,
    diff::ENTRY,
    iozone::ENTRY,
    strace::ENTRY,
    compile::ENTRY,
    playback::ENTRY,
];
