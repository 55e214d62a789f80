//! The first addresses of a device's tracks, and no other properties.
//!
//! A layer that aligns to tracks (a file system's allocator, read-ahead, an array's plug) has few
//! questions, but asks often: On which track is this address? Where is the next boundary? Does this
//! extent straddle a boundary? [`Boundaries`] answers for a device of any size. The table is small
//! if the tracks are regular. Its source is a drive's geometry ([`Boundaries::of`]), a file
//! ([`Boundaries::parse`]), or an extraction track by track ([`Builder`]).
//!
//! This crate knows what can be measured from outside a drive. A simulated medium, with cylinders
//! and surfaces, is described by [`fullstroke_contract::TrackTable`].
//!
//! | file | contents |
//! |---|---|
//! | `boundaries.rs` | the table and its queries |
//! | `builder.rs` | tracks in order become runs, and repeated runs become patterns |
//! | `walk.rs` | comparison of two tables, run by run |
//! | `derive.rs` | tables of parts, of concatenated devices, of rows across several devices |
//! | `text.rs` | the file format |
//! | `error.rs` | errors |

mod boundaries;
mod builder;
mod derive;
mod error;
mod text;
mod walk;

pub use boundaries::{Boundaries, TrackIter};
pub use builder::Builder;
pub use derive::{ChunkRows, LeadingSectors};
pub use error::{MisfitError, TRACK_SECTORS_MAX, TRACKS_MAX, TextError, TrackError, UnknownTracks};
