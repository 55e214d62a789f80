//! Where the tracks of a device begin, and nothing else about them.
//!
//! Whoever aligns to tracks (a file system's allocator, read-ahead, an array's
//! plug) asks few questions, often: which track is this address on, where is
//! the next boundary, does this extent straddle one. [`Boundaries`] answers them
//! for a device of any size, from a table that is as small as the tracks are
//! regular. It comes from a drive's geometry ([`Boundaries::of`]), from a file
//! ([`Boundaries::parse`]) or, track by track, from an extraction
//! ([`Builder`]).
//!
//! The layers' window on a simulated medium, with cylinders and surfaces, is
//! [`fullstroke_contract::TrackTable`]; this is what can be known from outside.
//!
//! | file | what |
//! |---|---|
//! | `boundaries.rs` | the table and its queries |
//! | `builder.rs` | tracks one after another become runs, and runs that repeat become patterns |
//! | `walk.rs` | through a table run by run; what two tables differ in |
//! | `derive.rs` | tables of parts, of devices one behind the other, of rows across several |
//! | `text.rs` | the file |
//! | `error.rs` | what can go wrong |

mod boundaries;
mod builder;
mod derive;
mod error;
mod text;
mod walk;

pub use boundaries::{Boundaries, Tracks};
pub use builder::Builder;
pub use derive::{Part, Rows};
pub use error::{MisfitError, TRACK_SECTORS_MAX, TRACKS_MAX, TextError, TrackError, UnknownTracks};
