//! Groups of native rows for common changes.

use super::map::GearMap;
use fullstroke_contract::Extent;
use fullstroke_units::greatest_common_divisor;
use std::ops::Range;

/// Groups of native rows that share the parity of soft rows, directly or through other rows.
/// Outside the high gear, a change of a part of a group may change sectors that belong to the whole
/// group. A group has at most as many rows as a soft row has data units, and ends with its cluster.
#[derive(Clone, Copy, Debug)]
pub struct GearedRows {
    pub(super) map: GearMap,
    /// Sectors in a unit.
    pub(super) chunk: u64,
    /// Data sectors in a native row.
    pub(super) row: u64,
}

impl GearedRows {
    /// Returns the number of native rows in a whole group. The transient units of so many rows fill
    /// whole soft rows.
    fn group_rows(&self) -> u64 {
        let (width, transient) = (self.map.width(), self.map.transient);
        width / greatest_common_divisor(width, transient)
    }

    /// Returns the first row of a row's group.
    fn first(&self, row: u64) -> u64 {
        let within = row % self.map.cluster;
        row - within % self.group_rows()
    }

    /// Returns the end of a row's group.
    fn end(&self, row: u64) -> u64 {
        let cluster = row - row % self.map.cluster;
        (self.first(row) + self.group_rows())
            .min(cluster + self.map.cluster)
            .min(self.map.rows)
    }

    /// Returns the rows that have data in a run of the members' addresses, in the numbers of
    /// [`plan_check`](super::Gears::plan_check). With `native`, these are native rows; otherwise
    /// soft rows.
    pub fn checked_in(&self, on_members: Extent, native: bool) -> Range<u64> {
        let (first, end) = (
            on_members.start.0 / self.chunk,
            on_members.end().0.div_ceil(self.chunk),
        );
        if native {
            return self.map.rows_below(first)..self.map.rows_below(end);
        }
        self.map.rows + self.map.soft_below(first)..self.map.rows + self.map.soft_below(end)
    }

    fn rows(&self, extent: Extent) -> (u64, u64) {
        let last = extent.end().0.max(extent.start.0 + 1) - 1;
        (extent.start.0 / self.row, last / self.row)
    }

    /// Returns the whole groups around an extent of the volume.
    pub fn around(&self, extent: Extent) -> Extent {
        let (first, last) = self.rows(extent);
        let (first, end) = (self.first(first), self.end(last));
        Extent::new(first * self.row, (end - first) * self.row)
    }

    /// Returns the number of the group at the beginning of an extent.
    pub fn group(&self, extent: Extent) -> u64 {
        self.first(self.rows(extent).0) / self.group_rows()
    }

    /// Returns the run of each member's addresses with the native rows of the extent.
    pub fn on_members(&self, extent: Extent) -> Extent {
        let (first, last) = self.rows(extent);
        let (first, last) = (self.map.native(first), self.map.native(last));
        Extent::new(first * self.chunk, (last - first + 1) * self.chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Returns all maps up to a limit of members, with and without clusters.
    fn maps() -> impl Iterator<Item = GearMap> {
        let shapes =
            (3u64..8).flat_map(|active| (1u64..7).map(move |transient| (active, transient)));
        shapes.flat_map(|(active, transient)| {
            [None, Some(1), Some(7), Some(8)].map(|cluster| {
                let rows = 37;
                let of = cluster.unwrap_or(rows);
                let mut map = GearMap {
                    active,
                    transient,
                    parities: 1,
                    rows,
                    cluster: of,
                    bucket: 0,
                    pitch: 1 << 40,
                    offset: of,
                };
                map.bucket = map.bucket_for(of);
                if cluster.is_some() {
                    map.pitch = of + map.bucket;
                }
                map
            })
        })
    }

    #[test]
    fn rows_of_two_groups_share_no_soft_row() {
        for map in maps() {
            let rows = GearedRows {
                map,
                chunk: 4,
                row: 12,
            };
            let mut owners: BTreeMap<u64, u64> = BTreeMap::new();
            for row in 0..map.rows {
                let own = Extent::new(row * rows.row, rows.row);
                let group = rows.around(own);
                assert!(
                    group.start <= own.start && own.end() <= group.end(),
                    "{map:?}"
                );
                assert_eq!(rows.around(group), group, "{map:?}");
                assert!(rows.on_members(own).start.0 == map.native(row) * 4);
                let on = rows.on_members(own);
                assert_eq!(rows.checked_in(on, true), row..row + 1, "{map:?}");
                let (first, last) = map.soft_rows_of(row, row);
                for soft in first..=last {
                    let slot = Extent::new(map.slot(soft) * 4 + 1, 2);
                    assert_eq!(
                        rows.checked_in(slot, false),
                        map.rows + soft..map.rows + soft + 1,
                        "{map:?}"
                    );
                }
                for soft in first..=last {
                    assert_eq!(
                        *owners.entry(soft).or_insert(group.start.0),
                        group.start.0,
                        "{map:?} {row}"
                    );
                }
            }
        }
    }

    #[test]
    fn groups_are_no_larger_than_they_have_to_be() {
        let map = |active, transient| GearMap {
            active,
            transient,
            parities: 1,
            rows: 100,
            cluster: 100,
            bucket: 100,
            pitch: 400,
            offset: 100,
        };
        let group = |active, transient| {
            GearedRows {
                map: map(active, transient),
                chunk: 1,
                row: 1,
            }
            .around(Extent::new(10, 1))
        };
        assert_eq!(group(3, 1), Extent::new(10, 2));
        assert_eq!(group(4, 1), Extent::new(9, 3));
        assert_eq!(group(5, 4), Extent::new(10, 1));
        assert_eq!(group(4, 2), Extent::new(9, 3));
    }
}
