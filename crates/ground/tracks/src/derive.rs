//! Tables for layers above a device: for a part of a device, for concatenated devices, and for rows
//! of chunks on several devices.

use crate::boundaries::Boundaries;
use crate::builder::Builder;
use crate::error::TrackError;
use fullstroke_contract::Extent;
use fullstroke_units::{Lbn, Sectors};

/// The first `sectors` addresses of a device.
#[derive(Clone, Copy, Debug)]
pub struct LeadingSectors<'a> {
    /// Tracks of the device.
    pub table: &'a Boundaries,
    /// Number of sectors in use.
    pub sectors: Sectors,
}

/// Rows of chunks. Row `n` consists of the addresses `n * unit .. (n + 1) * unit` of all members,
/// and has `row` addresses of the volume.
#[derive(Clone, Copy, Debug)]
pub struct ChunkRows {
    /// Length of a chunk.
    pub unit: Sectors,
    /// Sectors of data in a row.
    pub row: Sectors,
    /// Number of rows.
    pub count: u64,
}

impl Boundaries {
    /// Returns the tracks of `extent`, with addresses counted from its start. A track that the
    /// extent cuts counts only with the sectors inside the extent.
    ///
    /// # Errors
    /// If the extent is empty or reaches beyond the table.
    pub fn part(&self, extent: Extent) -> Result<Boundaries, TrackError> {
        let mut builder = Builder::default();
        push_part(&mut builder, self, extent)?;
        builder.finish(self.source())
    }

    /// Returns the tracks of concatenated devices.
    ///
    /// # Errors
    /// As for [`part`](Boundaries::part).
    pub fn behind_each_other(
        parts: &[LeadingSectors<'_>],
        source: impl Into<String>,
    ) -> Result<Boundaries, TrackError> {
        let mut builder = Builder::default();
        for part in parts {
            push_part(
                &mut builder,
                part.table,
                Extent {
                    start: Lbn(0),
                    sectors: part.sectors,
                },
            )?;
        }
        builder.finish(source)
    }

    /// Returns the best extents for reads of whole rows, each as one "track" of the volume. Each
    /// read starts at the end of the read before. On each member, take the track with the last
    /// sector of the read's first row. The latest end of these tracks decides: the read ends with
    /// the last row before this end. With equal members, a read is one track of each member. With
    /// different members, the tracks of the others end inside the read. A row on two tracks is read
    /// together with the second track.
    ///
    /// # Errors
    /// If there are no members, or if a table is shorter than the rows.
    pub fn of_rows(
        members: &[&Boundaries],
        rows: ChunkRows,
        source: impl Into<String>,
    ) -> Result<Boundaries, TrackError> {
        let mut builder = Builder::default();
        let end = rows
            .count
            // A product beyond 64 bits means more sectors than any table has.
            .checked_mul(rows.unit.0)
            .ok_or(TrackError::TooMany)?;
        let mut first = 0;
        while first < rows.count {
            // No overflow: `first < rows.count`, and `count * unit` was checked above.
            let row_ends = Lbn(first * rows.unit.0 + rows.unit.0 - 1);
            let mut tracks = members.iter().map(|table| table.track_at(row_ends));
            let longest = tracks.try_fold(0, |longest, track| Some(track?.end().0.max(longest)));
            let ended = longest.ok_or(TrackError::Short {
                found: row_ends,
                expected: end,
            })?;
            // At least one row, because a chunk may be longer than a track.
            let next = (ended.min(end) / rows.unit.0).max(first + 1);
            builder.push(Sectors((next - first) * rows.row.0))?;
            first = next;
        }
        builder.finish(source)
    }
}

fn push_part(builder: &mut Builder, table: &Boundaries, part: Extent) -> Result<(), TrackError> {
    if part.sectors == Sectors::ZERO {
        return Ok(());
    }
    let end = part.end();
    if end.0 > table.capacity().0 {
        return Err(TrackError::Short {
            found: Lbn(table.capacity().0),
            expected: end.0,
        });
    }
    for track in table
        .tracks_from(part.start)
        .take_while(|track| track.start < end)
    {
        let (from, to) = (track.start.max(part.start), track.end().min(end));
        builder.push(Sectors(to.0 - from.0))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(tracks: &[u64]) -> Boundaries {
        let mut builder = Builder::default();
        tracks
            .iter()
            .for_each(|&sectors| builder.push(Sectors(sectors)).unwrap());
        builder.finish("a test").unwrap()
    }

    fn lengths(table: &Boundaries) -> Vec<u64> {
        table
            .tracks_from(Lbn(0))
            .map(|track| track.sectors.0)
            .collect()
    }

    #[test]
    fn a_part_begins_and_ends_within_tracks() {
        let whole = table(&[10, 7, 5]);
        assert_eq!(lengths(&whole.part(Extent::new(3, 15)).unwrap()), [7, 7, 1]);
        assert_eq!(lengths(&whole.part(Extent::new(10, 7)).unwrap()), [7]);
        assert_eq!(whole.part(Extent::new(0, 22)).unwrap(), whole);
        assert_eq!(whole.part(Extent::new(4, 0)), Err(TrackError::Empty));
        assert!(whole.part(Extent::new(4, 19)).is_err());
    }

    #[test]
    fn behind_each_other_the_rest_of_a_member_is_left_out() {
        let (one, other) = (table(&[10, 7]), table(&[4, 4]));
        let parts = [
            LeadingSectors {
                table: &one,
                sectors: Sectors(12),
            },
            LeadingSectors {
                table: &other,
                sectors: Sectors(8),
            },
        ];
        assert_eq!(
            lengths(&Boundaries::behind_each_other(&parts, "").unwrap()),
            [10, 2, 4, 4]
        );
    }

    #[test]
    fn a_read_of_rows_is_a_track_of_each_member() {
        let member = table(&[20; 6]);
        let rows = |unit, count| ChunkRows {
            unit: Sectors(unit),
            row: Sectors(4 * unit),
            count,
        };
        // Tracks of whole chunks.
        assert_eq!(
            lengths(&Boundaries::of_rows(&[&member; 5], rows(4, 30), "").unwrap()),
            [80; 6]
        );
        // A chunk on two tracks is read together with the second track.
        assert_eq!(
            lengths(&Boundaries::of_rows(&[&member; 5], rows(8, 15), "").unwrap()),
            [64, 96, 64, 96, 64, 96]
        );
        // A chunk longer than a track is a read of one row.
        assert_eq!(
            lengths(&Boundaries::of_rows(&[&member; 5], rows(30, 4), "").unwrap()),
            [120; 4]
        );
        assert!(
            Boundaries::of_rows(&[&member; 5], rows(8, 16), "").is_err(),
            "the table is too short"
        );
    }

    fn any_table() -> impl Strategy<Value = Boundaries> {
        prop::collection::vec(1u64..90, 1..40).prop_map(|tracks| table(&tracks))
    }

    proptest! {
        #[test]
        fn a_part_has_the_boundaries_of_the_whole(
            whole in any_table(), from in 0u64..2000, length in 1u64..2000,
        ) {
            let capacity = whole.capacity().0;
            let from = from % capacity;
            let extent = Extent::new(from, length.min(capacity - from));
            let part = whole.part(extent).unwrap();
            prop_assert_eq!(part.capacity(), extent.sectors);
            for lbn in 1..extent.sectors.0 {
                prop_assert_eq!(part.is_boundary(Lbn(lbn)), whole.is_boundary(Lbn(from + lbn)), "{}", lbn);
            }
        }

        #[test]
        fn every_read_of_rows_ends_a_track_of_every_member_and_no_sooner(
            members in prop::collection::vec(any_table(), 1..5), unit in 1u64..30,
        ) {
            let shortest = members.iter().map(|table| table.capacity().0).min().unwrap();
            let count = shortest / unit;
            prop_assume!(count > 0);
            let rows = ChunkRows { unit: Sectors(unit), row: Sectors(3 * unit), count };
            let members: Vec<&Boundaries> = members.iter().collect();
            let reads = Boundaries::of_rows(&members, rows, "").unwrap();
            prop_assert_eq!(reads.capacity().0, count * 3 * unit);
            for read in reads.tracks_from(Lbn(0)) {
                let (from, to) = (read.start.0 / 3, read.end().0 / 3);
                let begun = members.iter().map(|table| table.track_at(Lbn(from + unit - 1)).unwrap());
                let (last, all) = (to == count * unit, to - from == unit);
                let longest = begun.map(|track| track.end().0).max().unwrap();
                prop_assert!(last || all || (to <= longest && longest < to + unit));
            }
        }
    }
}
