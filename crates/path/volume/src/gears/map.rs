//! Where native data and soft state lie.
//!
//! Members are passed in **clusters** of native units; behind each, or for PARAID behind all, in the
//! one reserve, is the **bucket** with the soft state of the same rows. Unit `k` of a cluster's
//! transient data, which is unit `r` of transient member `j` with `k = r * transient + j`, goes to soft
//! row `k div w` of the bucket, where `w` members of each soft row hold data.
//!
//! The thesis (section 7.5.1) prints the map of PARAID as "block 50 + k % 6 on disk k / 6", which
//! has disks and offsets exchanged: k / 6 exceeds the disks.

/// See the module. All units are of one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GearMap {
    /// Members that go on in the low gear: they come first.
    pub(crate) active: u64,
    /// Members that stop: they come last.
    pub(crate) transient: u64,
    /// 0 for RAID 0, 1 for RAID 5.
    pub(crate) parities: u64,
    /// Native rows.
    pub(crate) rows: u64,
    /// Native rows of a cluster.
    pub(crate) cluster: u64,
    /// Soft rows of a bucket.
    pub(crate) bucket: u64,
    /// Units from a cluster to the next.
    pub(crate) pitch: u64,
    /// Units from the beginning of a cluster to its bucket.
    pub(crate) offset: u64,
}

/// What a soft row has on one of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SoftUnit {
    /// The unit of this index in the row.
    Data(u64),
    Parity,
}

impl GearMap {
    /// Data units of a soft row.
    pub(crate) fn width(&self) -> u64 {
        self.active - self.parities
    }

    /// Soft rows that a cluster of so many native rows needs.
    pub(crate) fn bucket_for(&self, rows: u64) -> u64 {
        (rows * self.transient).div_ceil(self.width())
    }

    fn clusters(&self) -> u64 {
        self.rows.div_ceil(self.cluster)
    }

    /// Soft rows of the last cluster, which may be cut short.
    fn last_bucket(&self) -> u64 {
        self.bucket_for(self.rows - (self.clusters() - 1) * self.cluster)
    }

    /// Soft rows that hold anything.
    pub(crate) fn soft_rows(&self) -> u64 {
        (self.clusters() - 1) * self.bucket + self.last_bucket()
    }

    /// Units of an active member up to the end of what is used.
    pub(crate) fn end(&self) -> u64 {
        (self.clusters() - 1) * self.pitch + self.offset + self.last_bucket()
    }

    /// Native rows whose units lie before this unit of a member.
    pub(crate) fn rows_below(&self, unit: u64) -> u64 {
        (unit / self.pitch * self.cluster + (unit % self.pitch).min(self.cluster)).min(self.rows)
    }

    /// The unit of a member at which `row` lies.
    pub(crate) fn native(&self, row: u64) -> u64 {
        row / self.cluster * self.pitch + row % self.cluster
    }

    /// The row that lies at a unit of a member.
    pub(crate) fn row_at(&self, unit: u64) -> Option<u64> {
        let (cluster, within) = (unit / self.pitch, unit % self.pitch);
        let row = cluster * self.cluster + within;
        (within < self.cluster && row < self.rows).then_some(row)
    }

    /// The unit of each active member at which the soft row lies.
    pub(crate) fn slot(&self, soft: u64) -> u64 {
        soft / self.bucket * self.pitch + self.offset + soft % self.bucket
    }

    /// Soft rows whose units lie before this unit of an active member.
    pub(crate) fn soft_below(&self, unit: u64) -> u64 {
        let within = (unit % self.pitch)
            .saturating_sub(self.offset)
            .min(self.bucket);
        (unit / self.pitch * self.bucket + within).min(self.soft_rows())
    }

    /// The soft row that lies at a unit of an active member: the inverse of [`slot`](GearMap::slot).
    pub(crate) fn soft_at(&self, unit: u64) -> Option<u64> {
        let within = (unit % self.pitch).checked_sub(self.offset)?;
        let soft = unit / self.pitch * self.bucket + within;
        (within < self.bucket && soft < self.soft_rows()).then_some(soft)
    }

    /// The soft row of unit `row` of the `transient`th member that stops, and its index there.
    pub(crate) fn soft(&self, row: u64, transient: u64) -> (u64, u64) {
        let unit = row % self.cluster * self.transient + transient;
        (
            row / self.cluster * self.bucket + unit / self.width(),
            unit % self.width(),
        )
    }

    /// What lies at an index of a soft row: the inverse of [`soft`](GearMap::soft).
    pub(crate) fn home(&self, soft: u64, index: u64) -> Option<(u64, u64)> {
        let unit = soft % self.bucket * self.width() + index;
        let (within, transient) = (unit / self.transient, unit % self.transient);
        let row = soft / self.bucket * self.cluster + within;
        (within < self.cluster && row < self.rows).then_some((row, transient))
    }

    /// The member that holds the soft row's parity: it rotates backwards.
    pub(crate) fn parity(&self, soft: u64) -> Option<u64> {
        (self.parities > 0).then(|| self.active - 1 - soft % self.active)
    }

    /// The member that holds this unit of the soft row.
    pub(crate) fn member(&self, soft: u64, index: u64) -> u64 {
        self.parity(soft)
            .map_or(index, |parity| (parity + 1 + index) % self.active)
    }

    /// What the soft row has on an active member.
    pub(crate) fn unit_on(&self, soft: u64, member: u64) -> SoftUnit {
        match self.parity(soft) {
            None => SoftUnit::Data(member),
            Some(parity) if parity == member => SoftUnit::Parity,
            Some(parity) => SoftUnit::Data((member + self.active - parity - 1) % self.active),
        }
    }

    /// The soft rows of native rows `first..=last`, both ends included.
    pub(crate) fn soft_rows_of(&self, first: u64, last: u64) -> (u64, u64) {
        (self.soft(first, 0).0, self.soft(last, self.transient - 1).0)
    }

    /// Native rows of which soft rows `first..=last` hold anything.
    pub(crate) fn rows_of(&self, first: u64, last: u64) -> std::ops::Range<u64> {
        let begin = self.home(first, 0).map_or(self.rows, |(row, _)| row);
        let end = (0..self.width())
            .rev()
            .find_map(|index| self.home(last, index));
        begin..end.map_or(self.cluster_end(last), |(row, _)| row + 1)
    }

    /// Behind the last row of the cluster to which a soft row belongs.
    fn cluster_end(&self, soft: u64) -> u64 {
        ((soft / self.bucket + 1) * self.cluster).min(self.rows)
    }
}
