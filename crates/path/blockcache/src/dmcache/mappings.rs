//! Changed mappings of cache blocks, until they are written to the metadata.

use fullstroke_units::{Duration, Time};

/// Time between two commits of changed metadata (`COMMIT_PERIOD`).
const COMMIT: Duration = Duration::from_secs(1);
/// Sectors of a metadata block, and mappings in one block of the B-tree.
const METADATA_BLOCK: u64 = 8;
const MAPPINGS: u64 = 126;

/// Changed mappings, and the time of the next commit.
pub(super) struct Mappings {
    /// Sectors of the metadata.
    metadata: u64,
    /// Changed mappings since the last commit.
    changed: u64,
    due: Time,
    written: u64,
}

impl Mappings {
    /// Returns unchanged mappings with so many sectors of metadata.
    pub(super) fn new(metadata: u64) -> Mappings {
        Mappings {
            metadata,
            changed: 0,
            due: Time::NEVER,
            written: 0,
        }
    }

    /// Notes a change that the next commit takes along.
    pub(super) fn change(&mut self) {
        self.changed += 1;
    }

    /// Notes a change that is committed after the period.
    pub(super) fn change_at(&mut self, now: Time) {
        self.change();
        if self.due == Time::NEVER {
            self.due = now + COMMIT;
        }
    }

    /// True if a mapping has changed since the last commit.
    pub(super) fn have_changed(&self) -> bool {
        self.changed > 0
    }

    /// Time of the next commit.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Begins a commit: first sector, sectors.
    pub(super) fn commit(&mut self) -> (u64, u64) {
        // The superblock, and the leaves of the tree.
        let sectors = METADATA_BLOCK * (1 + self.changed.div_ceil(MAPPINGS));
        let sectors = sectors.min(self.metadata);
        self.changed = 0;
        self.due = Time::NEVER;
        self.written += sectors;
        (0, sectors)
    }

    /// Sectors of metadata written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }
}
