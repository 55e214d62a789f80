//! What can be said without a simulation: closed formulas, exact up to the
//! rounding of the last digits.
//!
//! | file | what |
//! |---|---|
//! | `occupancy.rs` | how many of some places a random set of requests reaches |
//! | `members.rs` | whether members of an array stand idle |
//! | `merges.rs` | whether requests of a random set could be merged |

mod members;
mod merges;
mod occupancy;

pub use members::{IdleMembers, idle_members};
pub use merges::{MergeChance, merge_chance};
