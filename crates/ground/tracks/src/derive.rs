//! Tables of what lies above a device: a part of it, devices one behind the other,
//! and rows of chunks across several.

use crate::boundaries::Boundaries;
use crate::builder::Builder;
use crate::error::TrackError;
use fullstroke_contract::Extent;
use fullstroke_units::{Lbn, Sectors};

/// The first `sectors` addresses of a device.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Its tracks.
    pub table: &'a Boundaries,
    /// How much of it is used.
    pub sectors: Sectors,
}

/// Rows of chunks: member addresses `n * unit .. (n + 1) * unit` of all members hold
/// row `n`, which is `row` addresses of the volume.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// A chunk.
    pub unit: Sectors,
    /// The data of a row.
    pub row: Sectors,
    /// How many rows there are.
    pub count: u64,
}

impl Boundaries {
    /// The tracks of `extent`, counted from its first address. Those that it cuts are
    /// as long as what it has of them.
    ///
    /// # Errors
    /// If it is empty, or reaches beyond the table.
    pub fn part(&self, extent: Extent) -> Result<Boundaries, TrackError> {
        let mut builder = Builder::default();
        push_part(&mut builder, self, extent)?;
        builder.finish(self.source())
    }

    /// Devices one behind the other.
    ///
    /// # Errors
    /// As for [`part`](Boundaries::part).
    pub fn behind_each_other(
        parts: &[Part<'_>],
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

    /// Where reads of rows had best end that begin where the last ended: with the last row
    /// before that in which the longest track ends of those, one on each member, on which
    /// the read's first row ends. With members alike that is a track of each; where they
    /// differ, the others end one or more within. What two tracks share of a row is read
    /// with the second.
    ///
    /// # Errors
    /// Without members, or where a table is shorter than the rows.
    pub fn of_rows(
        members: &[&Boundaries],
        rows: Rows,
        source: impl Into<String>,
    ) -> Result<Boundaries, TrackError> {
        let mut builder = Builder::default();
        let end = rows
            .count
            .checked_mul(rows.unit.0)
            .ok_or(TrackError::TooMany)?;
        let mut first = 0;
        while first < rows.count {
            let row_ends = Lbn(first * rows.unit.0 + rows.unit.0 - 1);
            let mut tracks = members.iter().map(|table| table.track_at(row_ends));
            let longest = tracks.try_fold(0, |longest, track| Some(track?.end().0.max(longest)));
            let ended = longest.ok_or(TrackError::Short {
                found: row_ends,
                expected: end,
            })?;
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
            Part {
                table: &one,
                sectors: Sectors(12),
            },
            Part {
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
        let rows = |unit, count| Rows {
            unit: Sectors(unit),
            row: Sectors(4 * unit),
            count,
        };
        // Tracks of whole chunks.
        assert_eq!(
            lengths(&Boundaries::of_rows(&[&member; 5], rows(4, 30), "").unwrap()),
            [80; 6]
        );
        // A chunk that two tracks share is read with the second.
        assert_eq!(
            lengths(&Boundaries::of_rows(&[&member; 5], rows(8, 15), "").unwrap()),
            [64, 96, 64, 96, 64, 96]
        );
        // Chunks longer than tracks are rows of their own.
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
            let rows = Rows { unit: Sectors(unit), row: Sectors(3 * unit), count };
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
