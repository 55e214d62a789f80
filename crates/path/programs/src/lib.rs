//! Programs: what they ask of files, one call after another.
//!
//! A [`Program`] is a state machine. Asked what a process does next, it answers with
//! a [`Call`] or with the time that it needs for itself; how the call ended it is told
//! when it is asked again. It knows no file system, no memory and no clock.
//!
//! A program is one file: its keys, a [`Recipe`] and a [`Program`], its tests, and one
//! line in [`REGISTRY`].
//!
//! | file | what |
//! |---|---|
//! | `call.rs` | what a program asks, and what it is answered |
//! | `program.rs` | what a program is |
//! | `script.rs` | a list of file operations |
//! | `postmark.rs` | PostMark 1.51 |
//! | `bonnie.rs` | Bonnie and bonnie++ |
//! | `diff.rs` | two files compared |
//! | `iozone.rs` | IOzone |
//! | `stdio.rs` | what streams of the C library ask of the kernel |
//! | `mersenne.rs` | PostMark's random numbers |
//! | `strace.rs` | a recorded program |
//! | `compile.rs` | a program is compiled |
//! | `playback.rs` | media streams, played from files |
//! | `conformance.rs` | what every program is held to |

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

pub use call::{Answer, Call, CallError, CallKind, Fd, How};
pub use program::{
    Events, Kind, Laid, Next, Program, ProgramError, Recipe, Report, Transaction, Turn,
};

use fullstroke_contract::registry::Entry;

/// Every program.
pub const REGISTRY: &[Entry<Kind>] = &[
    script::ENTRY,
    postmark::ENTRY,
    bonnie::ENTRY,
    diff::ENTRY,
    iozone::ENTRY,
    strace::ENTRY,
    compile::ENTRY,
    playback::ENTRY,
];
