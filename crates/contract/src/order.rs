//! What an operator says to a layer while it runs.

use fullstroke_units::{Bytes, Sectors};
use std::fmt;

/// The state of a volume's member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MemberState {
    /// It answers, and holds what it should.
    #[default]
    Alive,
    /// It does not answer; what it held is lost.
    Failed,
    /// It is new, and is being filled from the others.
    Rebuilding {
        /// Its addresses below this are filled and kept up to date; what lies
        /// behind counts as lost.
        done: Sectors,
    },
}

/// An order to a layer about one of its members. Layers carry orders out at
/// once or refuse them; like every other event they are inputs of a run, and
/// part of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The member has failed: nothing more is asked of it.
    Fail {
        /// Index among the layer's members.
        member: usize,
    },
    /// An empty member stands in the failed one's place; fill it.
    Restore {
        /// Index among the layer's members.
        member: usize,
        /// How many bytes of the member are filled in a second, at most;
        /// `None` = as fast as it goes.
        rate: Option<Bytes>,
    },
}

/// Why an order was not carried out: a message for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}
