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

/// An order to a layer about its members. Layers carry orders out at once or
/// refuse them; like every other event they are inputs of a run, and part of its
/// record.
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
        /// Its addresses below this are filled already, by a rebuild that was
        /// broken off.
        done: Sectors,
        /// How many bytes of the member are filled in a second, at most;
        /// `None` = what [`Speed`](Order::Speed) says.
        rate: Option<Bytes>,
        /// Whether what cannot be filled may be given up. Without this a volume
        /// that has lost data refuses: it stays failed until somebody says so.
        accept_data_loss: bool,
    },
    /// The failed member stands in its place again, with all that it should
    /// hold: it missed no write since it failed.
    ReAdd {
        /// Index among the layer's members.
        member: usize,
    },
    /// How fast members are filled, now and from now on.
    Speed(RebuildSpeed),
    /// Nobody asks for anything any more: rebuilds rest until the next restore,
    /// and what is under way ends.
    Rest,
}

/// The bounds of a rebuild, in bytes a second of the member that is filled: what
/// `speed_limit_min` and `speed_limit_max` are to md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RebuildSpeed {
    /// A rebuild that is slower than this does not make way for requests.
    pub least: Bytes,
    /// The most; `None` = as fast as it goes.
    pub most: Option<Bytes>,
}

impl Default for RebuildSpeed {
    /// The least is md's (`SYSCTL_SPEED_LIMIT_MIN` in md.c, 1,000 KiB/s). There is no most: md's, 200,000
    /// KiB/s, is less than one current drive reads.
    fn default() -> RebuildSpeed {
        RebuildSpeed {
            least: Bytes(1000 << 10),
            most: None,
        }
    }
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
