//! Data that are kept until a read has verified them, and while there is room.

use super::unverified::{Extents, Unverified};
use fullstroke_contract::Extent;
use fullstroke_units::Sectors;
use schemars::JsonSchema;
use serde::Deserialize;

/// Event after which verified data are doubted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Doubt")]
pub(super) enum RecheckAfter {
    /// Never.
    Never,
    /// A read has found other data than written.
    Found,
    /// As `Found`, and also if a write was overwritten or forgotten before verification.
    Unseen,
}

/// Action when the memory for kept data is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum WhenFull {
    /// Forget the oldest unverified data.
    Forget,
    /// Verify the oldest data first.
    Verify,
}

/// Kept data.
pub(super) struct KeptData {
    most: Sectors,
    when_full: WhenFull,
    recheck: RecheckAfter,
    /// Unverified data, in order of the writes.
    unverified: Unverified,
    /// Verified data to be read once more.
    doubted: Unverified,
    /// Verified data that are still kept.
    right: Unverified,
    /// True if `right` will be doubted when no other data are left to read.
    doubts: bool,
}

impl KeptData {
    /// Returns empty memory for `most` sectors.
    pub fn new(most: Sectors, when_full: WhenFull, recheck: RecheckAfter) -> KeptData {
        KeptData {
            most,
            when_full,
            recheck,
            unverified: Unverified::default(),
            doubted: Unverified::default(),
            right: Unverified::default(),
            doubts: false,
        }
    }

    /// True if too much unverified data are kept in mode V. Verification then goes before all other
    /// work.
    pub fn is_urgent(&self) -> bool {
        self.when_full == WhenFull::Verify && self.unverified.sectors() > self.most
    }

    /// Records a write that may have gone to a wrong place. Verified data may be wrong again,
    /// including data under verification (`reading`).
    pub fn doubt(&mut self, why: RecheckAfter, reading: bool) {
        // Data under verification may pass and then enter `right`, so they count as well.
        self.doubts |= why <= self.recheck && (!self.right.is_empty() || reading);
    }

    /// Drops the data of an extent that is written. Returns the number of unverified sectors.
    pub fn remove(&mut self, extent: Extent) -> Sectors {
        self.doubted.remove(extent);
        self.right.remove(extent);
        self.unverified.remove(extent)
    }

    /// Drops the unverified data of an extent. Returns their number of sectors.
    pub fn remove_unverified(&mut self, extent: Extent) -> Sectors {
        self.unverified.remove(extent)
    }

    /// Keeps written data. The caller makes room.
    pub fn add(&mut self, extent: Extent) {
        self.unverified.add(extent);
    }

    /// Keeps data that a read has verified, if later events may make doubt. The caller makes room.
    /// Returns false if the data are not kept.
    pub fn verified(&mut self, pieces: Extents) -> bool {
        let keeps = self.recheck > RecheckAfter::Never;
        if keeps {
            pieces.into_iter().for_each(|piece| self.right.add(piece));
        }
        keeps
    }

    /// Makes room. Verified data go first, then doubted data. Unverified data go only in mode I.
    /// Returns the number of forgotten unverified sectors.
    pub fn make_room(&mut self, reading: bool) -> Sectors {
        let mut forgotten = Sectors::ZERO;
        if self.when_full == WhenFull::Forget {
            forgotten = self.unverified.forget_beyond(self.most);
            if forgotten > Sectors::ZERO {
                self.doubt(RecheckAfter::Unseen, reading);
            }
        }
        let left =
            |kept: &Unverified, room: Sectors| Sectors(room.0.saturating_sub(kept.sectors().0));
        let room = left(&self.unverified, self.most);
        self.doubted.forget_beyond(room);
        self.right.forget_beyond(left(&self.doubted, room));
        assert!(
            self.is_urgent() || self.sectors() <= self.most,
            "{} sectors are kept, in memory for {}",
            self.sectors(),
            self.most
        );
        forgotten
    }

    fn sectors(&self) -> Sectors {
        self.unverified.sectors() + self.doubted.sectors() + self.right.sectors()
    }

    /// True if there are data to read.
    pub fn has_work(&self) -> bool {
        let doubts = self.doubts && !self.right.is_empty();
        doubts || !self.unverified.is_empty() || !self.doubted.is_empty()
    }

    /// Returns the next extent to read, and true if the data were verified before.
    pub fn next(&mut self, at_a_time: Sectors) -> Option<(Extent, bool)> {
        if let Some(extent) = self.unverified.take_oldest(at_a_time) {
            return Some((extent, false));
        }
        // Doubted data of an earlier doubt are read first. A doubt that comes meanwhile covers all
        // verified data, including those just read.
        if self.doubted.is_empty() && std::mem::take(&mut self.doubts) {
            self.doubted = std::mem::take(&mut self.right);
        }
        let doubted = self.doubted.take_oldest(at_a_time);
        doubted.map(|extent| (extent, true))
    }

    /// Number of unverified sectors.
    pub fn unverified(&self) -> Sectors {
        self.unverified.sectors()
    }
}
