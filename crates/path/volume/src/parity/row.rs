//! One row of a parity layout, with its losses.

use super::map::{ChunkContent, RowMap, RowShape};

/// One row: the roles of the members, and the remaining chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParityRow {
    pub(crate) number: u64,
    pub(crate) shape: RowShape,
    /// Number of data chunks.
    pub(crate) data: u64,
    /// Member with P, if alive.
    pub(crate) p: Option<u64>,
    /// Member with Q, if there is a Q and the member is alive.
    pub(crate) q: Option<u64>,
    /// Indices of the lost data chunks; incomplete for a broken row.
    lost: [u64; 2],
    lost_count: u8,
    /// True if more data chunks are lost than parities are left.
    broken: bool,
}

impl ParityRow {
    /// Returns row `number` without the chunks of the members `lost`.
    pub(crate) fn new(map: &RowMap, number: u64, lost: impl Iterator<Item = u32>) -> ParityRow {
        let shape = map.shape(number);
        let (p, q) = (Some(shape.p()), shape.q());
        let data = map.data();
        let mut row = ParityRow {
            number,
            shape,
            data,
            p,
            q,
            lost: [0; 2],
            lost_count: 0,
            broken: false,
        };
        for member in lost {
            row.lose(shape.cell(u64::from(member)));
        }
        row.broken |= row.lost_count > 0 && row.lost().len() > row.parities().count();
        row
    }

    fn lose(&mut self, cell: ChunkContent) {
        match cell {
            ChunkContent::P => self.p = None,
            ChunkContent::Q => self.q = None,
            ChunkContent::Data(_) if self.lost().len() == self.lost.len() => self.broken = true,
            ChunkContent::Data(index) => {
                self.lost[usize::from(self.lost_count)] = index;
                self.lost_count += 1;
            }
        }
    }

    /// True if more data chunks are lost than parities are left. Lost data then cannot be restored,
    /// and new data cannot be protected.
    #[inline]
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }
    /// Returns the indices of the lost data chunks. The list is complete unless the row is broken.
    #[inline]
    pub(crate) fn lost(&self) -> &[u64] {
        &self.lost[..usize::from(self.lost_count)]
    }
    /// True if the data chunk `index` is lost.
    #[inline]
    pub(crate) fn has_lost(&self, index: u64) -> bool {
        self.lost().contains(&index)
    }
    /// Returns the other lost data chunk, if a chunk other than `index` is lost.
    pub(crate) fn lost_beside(&self, index: u64) -> Option<u64> {
        self.lost().iter().copied().find(|&lost| lost != index)
    }
    /// Returns the remaining parities with their members.
    #[inline]
    pub(crate) fn parities(&self) -> impl Iterator<Item = (ChunkContent, u64)> + Clone + use<> {
        let p = self.p.map(|member| (ChunkContent::P, member));
        p.into_iter()
            .chain(self.q.map(|member| (ChunkContent::Q, member)))
    }
    /// Returns the parities for the recovery of lost data: one for each lost data chunk, P before
    /// Q.
    pub(crate) fn recovering_parities(&self) -> impl Iterator<Item = (ChunkContent, u64)> + use<> {
        self.parities().take(usize::from(self.lost_count))
    }
}
