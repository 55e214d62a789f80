//! Orders of an operator to a layer of a running machine.

use fullstroke_units::{Bytes, Sectors};
use std::fmt;

/// The state of a volume's member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MemberState {
    /// The member answers, and its data are complete.
    #[default]
    Alive,
    /// The member does not answer, and its data are lost.
    Failed,
    /// The member is new and is being filled from the other members.
    Rebuilding {
        /// Addresses below this are filled and kept up to date. Data beyond count as lost.
        done: Sectors,
    },
}

/// An order to a layer about its members. A layer carries an order out at once or refuses it. Like
/// every other event, orders are inputs of a run and part of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerOrder {
    /// Marks the member as failed: it gets no more requests.
    Fail {
        /// Index among the layer's members.
        member: usize,
    },
    /// Puts an empty member in the place of the failed member and fills it.
    Restore {
        /// Index among the layer's members.
        member: usize,
        /// Addresses below this are already filled, by an interrupted rebuild.
        done: Sectors,
        /// Upper limit of the rebuild in bytes per second of the member; `None` = the limit of
        /// [`Speed`](LayerOrder::Speed).
        rate: Option<Bytes>,
        /// True to give up data that cannot be recomputed. Otherwise a volume that has lost data
        /// refuses the order. The volume then stays failed until an operator accepts the loss.
        accept_data_loss: bool,
    },
    /// Puts the failed member back in its place with complete data: the member has missed no write
    /// since the failure.
    ReAdd {
        /// Index among the layer's members.
        member: usize,
    },
    /// Sets the speed of this rebuild and of later rebuilds.
    Speed(RebuildSpeed),
    /// Changes the speed of a drive. The drive itself takes this order, not its volume.
    Slow {
        /// Factor by which the drive takes longer, in thousandths. 1000 ends the slowness.
        thousandths: u32,
    },
    /// Stops all rebuilds until the next restore, because no more requests will come. I/Os in
    /// flight end normally.
    Rest,
}

/// The limits of a rebuild, in bytes per second of the member that is filled. They correspond to
/// md's `speed_limit_min` and `speed_limit_max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RebuildSpeed {
    /// Guaranteed speed: a rebuild below this speed does not give way to requests.
    pub least: Bytes,
    /// Upper limit; `None` = no limit.
    pub most: Option<Bytes>,
}

impl Default for RebuildSpeed {
    /// The lower limit is md's (`SYSCTL_SPEED_LIMIT_MIN` in md.c, 1,000 KiB/s). There is no upper
    /// limit, because md's limit of 200,000 KiB/s is less than the rate of one current drive.
    fn default() -> RebuildSpeed {
        RebuildSpeed {
            least: Bytes(1000 << 10),
            most: None,
        }
    }
}

/// The reason of a refused order: a message for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}
