//! The places of native data and soft state.
//!
//! A member consists of **clusters** of native units. After each cluster lies a **bucket** with the
//! soft state of the same rows. PARAID has one bucket after all native units: the reserve. Unit `r`
//! of transient member `j` is unit `k = r * transient + j` of the cluster's transient data. Unit
//! `k` goes to soft row `k div w` of the bucket, where `w` members of each soft row hold data.
//!
//! The thesis (section 7.5.1) prints the map of PARAID as "block 50 + k % 6 on disk k / 6". Disks
//! and offsets are exchanged there: k / 6 exceeds the number of disks.

/// The map; see the module. All units have the size of one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GearMap {
    /// Number of active members in the low gear; the first members.
    pub(crate) active: u64,
    /// Number of members in standby in the low gear; the last members.
    pub(crate) transient: u64,
    /// Number of parities: 0 for RAID 0, 1 for RAID 5.
    pub(crate) parities: u64,
    /// Number of native rows.
    pub(crate) rows: u64,
    /// Number of native rows in a cluster.
    pub(crate) cluster: u64,
    /// Number of soft rows in a bucket.
    pub(crate) bucket: u64,
    /// Number of units from the beginning of a cluster to the beginning of the next.
    pub(crate) pitch: u64,
    /// Number of units from the beginning of a cluster to its bucket.
    pub(crate) offset: u64,
}

/// Content of one member's unit in a soft row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SoftUnit {
    /// The data unit with this index in the row.
    Data(u64),
    Parity,
}

impl GearMap {
    /// Returns the number of data units in a soft row.
    pub(crate) fn width(&self) -> u64 {
        self.active - self.parities
    }

    /// Returns the number of soft rows for a cluster of `rows` native rows.
    pub(crate) fn bucket_for(&self, rows: u64) -> u64 {
        (rows * self.transient).div_ceil(self.width())
    }

    fn clusters(&self) -> u64 {
        self.rows.div_ceil(self.cluster)
    }

    /// Returns the number of soft rows of the last cluster. The last cluster may be shorter than
    /// the others.
    fn last_bucket(&self) -> u64 {
        self.bucket_for(self.rows - (self.clusters() - 1) * self.cluster)
    }

    /// Returns the number of soft rows with data.
    pub(crate) fn soft_rows(&self) -> u64 {
        (self.clusters() - 1) * self.bucket + self.last_bucket()
    }

    /// Returns the number of units of an active member up to the end of the used part.
    pub(crate) fn end(&self) -> u64 {
        (self.clusters() - 1) * self.pitch + self.offset + self.last_bucket()
    }

    /// Returns the number of native rows with units before this unit of a member.
    pub(crate) fn rows_below(&self, unit: u64) -> u64 {
        (unit / self.pitch * self.cluster + (unit % self.pitch).min(self.cluster)).min(self.rows)
    }

    /// Returns the unit of `row` on a member.
    pub(crate) fn native(&self, row: u64) -> u64 {
        row / self.cluster * self.pitch + row % self.cluster
    }

    /// Returns the native row at a unit of a member.
    pub(crate) fn row_at(&self, unit: u64) -> Option<u64> {
        let (cluster, within) = (unit / self.pitch, unit % self.pitch);
        let row = cluster * self.cluster + within;
        (within < self.cluster && row < self.rows).then_some(row)
    }

    /// Returns the unit of the soft row on each active member.
    pub(crate) fn slot(&self, soft: u64) -> u64 {
        soft / self.bucket * self.pitch + self.offset + soft % self.bucket
    }

    /// Returns the number of soft rows with units before this unit of an active member.
    pub(crate) fn soft_below(&self, unit: u64) -> u64 {
        let within = (unit % self.pitch)
            .saturating_sub(self.offset)
            .min(self.bucket);
        (unit / self.pitch * self.bucket + within).min(self.soft_rows())
    }

    /// Returns the soft row at a unit of an active member: the inverse of [`slot`](GearMap::slot).
    pub(crate) fn soft_at(&self, unit: u64) -> Option<u64> {
        let within = (unit % self.pitch).checked_sub(self.offset)?;
        let soft = unit / self.pitch * self.bucket + within;
        (within < self.bucket && soft < self.soft_rows()).then_some(soft)
    }

    /// Returns the soft row of unit `row` of the `transient`th transient member, and the index in
    /// the soft row.
    pub(crate) fn soft(&self, row: u64, transient: u64) -> (u64, u64) {
        let unit = row % self.cluster * self.transient + transient;
        (
            row / self.cluster * self.bucket + unit / self.width(),
            unit % self.width(),
        )
    }

    /// Returns the unit at an index of a soft row, as row and transient member: the inverse of
    /// [`soft`](GearMap::soft).
    pub(crate) fn home(&self, soft: u64, index: u64) -> Option<(u64, u64)> {
        let unit = soft % self.bucket * self.width() + index;
        let (within, transient) = (unit / self.transient, unit % self.transient);
        let row = soft / self.bucket * self.cluster + within;
        (within < self.cluster && row < self.rows).then_some((row, transient))
    }

    /// Returns the member with the soft row's parity. The parity rotates backwards.
    pub(crate) fn parity(&self, soft: u64) -> Option<u64> {
        (self.parities > 0).then(|| self.active - 1 - soft % self.active)
    }

    /// Returns the member with this unit of the soft row.
    pub(crate) fn member(&self, soft: u64, index: u64) -> u64 {
        self.parity(soft)
            .map_or(index, |parity| (parity + 1 + index) % self.active)
    }

    /// Returns the content of the soft row on an active member.
    pub(crate) fn unit_on(&self, soft: u64, member: u64) -> SoftUnit {
        match self.parity(soft) {
            None => SoftUnit::Data(member),
            Some(parity) if parity == member => SoftUnit::Parity,
            Some(parity) => SoftUnit::Data((member + self.active - parity - 1) % self.active),
        }
    }

    /// Returns the first and the last soft row of the native rows `first..=last`.
    pub(crate) fn soft_rows_of(&self, first: u64, last: u64) -> (u64, u64) {
        (self.soft(first, 0).0, self.soft(last, self.transient - 1).0)
    }

    /// Returns the native rows with data in the soft rows `first..=last`.
    pub(crate) fn rows_of(&self, first: u64, last: u64) -> std::ops::Range<u64> {
        let begin = self.home(first, 0).map_or(self.rows, |(row, _)| row);
        let end = (0..self.width())
            .rev()
            .find_map(|index| self.home(last, index));
        begin..end.map_or(self.cluster_end(last), |(row, _)| row + 1)
    }

    /// Returns the end of a soft row's cluster: the native row after its last.
    fn cluster_end(&self, soft: u64) -> u64 {
        ((soft / self.bucket + 1) * self.cluster).min(self.rows)
    }
}
