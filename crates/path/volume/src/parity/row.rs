//! One row of a parity layout, with what has failed in it.

use super::map::{Cell, RowMap, RowShape};

/// One row: who holds what, and what of it is left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) number: u64,
    pub(crate) shape: RowShape,
    /// Data chunks.
    pub(crate) data: u64,
    /// The member that holds P, if it is alive.
    pub(crate) p: Option<u64>,
    /// The member that holds Q, if there is one and it is alive.
    pub(crate) q: Option<u64>,
    /// Indices of the data chunks that are lost; of a broken row, some.
    lost: [u64; 2],
    lost_count: u8,
    /// Whether more data chunks are lost than parities are left.
    broken: bool,
}

impl Row {
    /// Row `number`, of which nothing is left on the members `lost`.
    pub(crate) fn new(map: &RowMap, number: u64, lost: impl Iterator<Item = u32>) -> Row {
        let shape = map.shape(number);
        let (p, q) = (Some(shape.p()), shape.q());
        let data = map.data();
        let mut row = Row {
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

    fn lose(&mut self, cell: Cell) {
        match cell {
            Cell::P => self.p = None,
            Cell::Q => self.q = None,
            Cell::Data(_) if self.lost().len() == self.lost.len() => self.broken = true,
            Cell::Data(index) => {
                self.lost[usize::from(self.lost_count)] = index;
                self.lost_count += 1;
            }
        }
    }

    /// Whether more data chunks are lost than parities are left: then lost data
    /// does not come back, and new data cannot be protected.
    #[inline]
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }
    /// The indices of the lost data chunks, if the row is not broken.
    #[inline]
    pub(crate) fn lost(&self) -> &[u64] {
        &self.lost[..usize::from(self.lost_count)]
    }
    /// Whether the data chunk `index` is lost.
    #[inline]
    pub(crate) fn has_lost(&self, index: u64) -> bool {
        self.lost().contains(&index)
    }
    /// The other lost data chunk, if there is one beside `index`.
    pub(crate) fn lost_beside(&self, index: u64) -> Option<u64> {
        self.lost().iter().copied().find(|&lost| lost != index)
    }
    /// The parities that are left, with their members.
    #[inline]
    pub(crate) fn parities(&self) -> impl Iterator<Item = (Cell, u64)> + Clone + use<> {
        let p = self.p.map(|member| (Cell::P, member));
        p.into_iter().chain(self.q.map(|member| (Cell::Q, member)))
    }
    /// The parities that lost data is computed from: as many as there is data
    /// lost, P before Q.
    pub(crate) fn recovering_parities(&self) -> impl Iterator<Item = (Cell, u64)> + use<> {
        self.parities().take(usize::from(self.lost_count))
    }
}
