//! Generations of md's parity arrays, where they differ (`drivers/md/raid5.c`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kernel whose md runs a parity array.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
pub enum MdKernel {
    /// Linux 2.6.16.
    #[serde(rename = "2.6.16")]
    V2_6_16,
    /// Linux 2.6.23.
    #[serde(rename = "2.6.23")]
    V2_6_23,
    /// Linux 6.12.
    #[default]
    #[serde(rename = "6.12")]
    V6_12,
}

impl MdKernel {
    /// True if reads of a whole array go to the members past the stripes: `chunk_aligned_read`, since
    /// 2.6.20.
    pub(super) fn reads_bypass_stripes(self) -> bool {
        self > MdKernel::V2_6_16
    }

    /// True if a write that is waited for reads at once, and does not wait for its neighbours:
    /// `REQ_SYNC` in `make_request`, since 2.6.37.
    pub(super) fn waited_writes_read_at_once(self) -> bool {
        self == MdKernel::V6_12
    }

    /// True if whole stripes that follow each other are written together: `stripe_can_batch`, since
    /// 4.1.
    pub(super) fn batches(self) -> bool {
        self == MdKernel::V6_12
    }

    /// True if the cache grows by a stripe when a request finds no free stripe: `grow_one_stripe` in
    /// `raid5d`, since 4.1.
    pub(super) fn grows(self) -> bool {
        self == MdKernel::V6_12
    }

    /// True if RAID 6 may read old data and old parity: `rmw_level` of RAID 6, since 4.1. Before,
    /// `handle_stripe_dirtying6` always reads the other data.
    pub(super) fn modifies_two_parities(self) -> bool {
        self == MdKernel::V6_12
    }

    /// True if stripes that may read stand in a list of their own, behind full writes:
    /// `preread_bypass_threshold`, since 2.6.26. Before, they wait until the thread has nothing else
    /// to do, and then join all others.
    pub(super) fn holds_prereads(self) -> bool {
        self == MdKernel::V6_12
    }
}
