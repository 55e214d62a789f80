//! The address map of paired members, in constant time and whole numbers.

use super::divisor::Divisor;
use crate::geometry::{Geometry, Stripe};
use crate::layout::Location;
use crate::members::too_large;
use fullstroke_contract::ConfigError;
use fullstroke_units::{Lbn, Sectors, order_by_key};

/// Rows of chunks of equal size on every pair. All values are in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MapSection {
    /// Number of rows on each pair; at least one.
    pub(crate) rows: u64,
    /// Chunk sizes on the forward and on the backward member; at least one sector each.
    pub(crate) chunks: [u64; 2],
    /// First sectors of the rows on the forward and on the backward member.
    pub(crate) starts: [u64; 2],
}

/// A section with its address in the volume and its divisors.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedSection {
    /// First address in the volume.
    start: u64,
    /// First address after the section.
    pub(super) end: u64,
    section: MapSection,
    /// Number of sectors in a row of one pair.
    row: Divisor,
    /// Number of sectors in a row of all pairs.
    turn: Divisor,
}

/// The address map of all pairs.
#[derive(Debug)]
pub(super) struct Map {
    pairs: u64,
    pub(super) capacity: u64,
    /// Used sectors on the forward and on the backward member of each pair.
    pub(super) used: [u64; 2],
    /// Direction in which the backward member passes the rows of a section.
    saw: PassDirection,
    sections: Vec<PlacedSection>,
    /// Entry k is the section with the address k 2^`shift`. Usually no section or one section
    /// begins before the next entry; more sections begin there only if some sections are very
    /// short.
    first_section: Vec<u32>,
    shift: u32,
    /// Sections in the order of their places on the forward and on the backward member.
    along: [Vec<u32>; 2],
}

/// Direction in which the backward member passes a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassDirection {
    /// One tooth: the member reads forwards throughout.
    OneTooth,
    /// A tooth for each chunk: the rows run backwards.
    EachChunk,
}

/// Maximum size of the table of first sections, as a power of two.
const TABLE_BITS_MAX: u32 = 16;

impl Map {
    /// Returns the map of `pairs` pairs with these sections.
    ///
    /// # Errors
    /// If there are more than 2^64 addresses.
    pub(super) fn new(
        pairs: u64,
        sections: &[MapSection],
        saw: PassDirection,
    ) -> Result<Map, ConfigError> {
        let mut placed = Vec::with_capacity(sections.len());
        let mut start = 0u64;
        for &section in sections {
            let row = section.chunks[0]
                .checked_add(section.chunks[1])
                .ok_or_else(too_large)?;
            let turn = row.checked_mul(pairs).ok_or_else(too_large)?;
            let end = turn
                .checked_mul(section.rows)
                .and_then(|sectors| start.checked_add(sectors));
            let end = end.ok_or_else(too_large)?;
            placed.push(PlacedSection {
                start,
                end,
                section,
                // Each chunk has at least one sector. A row therefore has the two sectors that
                // `Divisor` needs.
                row: Divisor::new(row),
                turn: Divisor::new(turn),
            });
            start = end;
        }
        let used =
            [0, 1].map(|side: usize| sections.iter().map(|it| it.rows * it.chunks[side]).sum());
        let along = [0, 1].map(|side: usize| {
            let mut order: Vec<u32> = (0..sections.len() as u32).collect();
            order_by_key(&mut order, |&index| sections[index as usize].starts[side]);
            order
        });
        let (first_section, shift) = table(&placed, start);
        Ok(Map {
            pairs,
            capacity: start,
            used,
            saw,
            sections: placed,
            first_section,
            shift,
            along,
        })
    }

    /// See [`Layout::geometry`](crate::Layout::geometry).
    pub(super) fn geometry(&self) -> Geometry {
        let mut chunks = self
            .sections
            .iter()
            .flat_map(|placed| placed.section.chunks);
        let unit = chunks
            .next()
            .filter(|&first| chunks.all(|chunk| chunk == first));
        unit.map_or(Geometry::Varying, |unit| {
            let row = Some(Sectors(2 * self.pairs * unit));
            Geometry::Striped(Stripe {
                unit: Sectors(unit),
                row,
                parities: 0,
            })
        })
    }

    /// Returns the section with the volume's sector `lbn`.
    #[inline]
    pub(super) fn section_at(&self, lbn: u64) -> &PlacedSection {
        let mut index = self.first_section[(lbn >> self.shift) as usize] as usize;
        // One step without a branch, because the branch would be unpredictable.
        index += usize::from(lbn >= self.sections[index].end);
        while lbn >= self.sections[index].end {
            index += 1;
        }
        &self.sections[index]
    }

    /// Returns the place of the volume's sector `lbn` of this section, and the number of sectors
    /// from there to the end of its chunk.
    #[inline]
    pub(super) fn place(&self, placed: &PlacedSection, lbn: u64) -> (Location, u64) {
        let (row, within) = placed.turn.divide(lbn - placed.start);
        // A single pair saves a division.
        let (pair, within) = if self.pairs == 1 {
            (0, within)
        } else {
            placed.row.divide(within)
        };
        let MapSection {
            rows,
            chunks,
            starts,
        } = placed.section;
        let side = usize::from(within >= chunks[0]);
        let within = within - side as u64 * chunks[0];
        let row = if self.saw == PassDirection::EachChunk && side == 1 {
            rows - 1 - row
        } else {
            row
        };
        let lbn = starts[side] + row * chunks[side] + within;
        (
            Location {
                member: 2 * pair as usize + side,
                lbn: Lbn(lbn),
            },
            chunks[side] - within,
        )
    }

    /// Returns the volume's sector at sector `lbn` of a member. The member is the forward (0) or
    /// backward (1) member of `pair`. Returns `None` for an unused sector.
    pub(super) fn sector_at(&self, pair: u64, side: usize, lbn: u64) -> Option<u64> {
        if lbn >= self.used[side] {
            return None;
        }
        let order = &self.along[side];
        let begins = |index: &u32| self.sections[*index as usize].section.starts[side] <= lbn;
        let placed = &self.sections[order[order.partition_point(begins) - 1] as usize];
        let MapSection {
            rows,
            chunks,
            starts,
        } = placed.section;
        let (row, within) = (
            (lbn - starts[side]) / chunks[side],
            (lbn - starts[side]) % chunks[side],
        );
        let row = if side == 1 && self.saw == PassDirection::EachChunk {
            rows - 1 - row
        } else {
            row
        };
        let before = if side == 0 { 0 } else { chunks[0] };
        Some(placed.start + row * placed.turn.value() + pair * placed.row.value() + before + within)
    }
}

/// Returns a table with one entry for every 2^shift addresses: the section with the first of the
/// addresses.
fn table(sections: &[PlacedSection], capacity: u64) -> (Vec<u32>, u32) {
    let shortest = sections
        .iter()
        .map(|placed| placed.end - placed.start)
        .min()
        .unwrap_or(1);
    let shift = shortest
        .ilog2()
        .max(capacity.max(1).ilog2().saturating_sub(TABLE_BITS_MAX));
    let entry = |at: u64| sections.partition_point(|placed| placed.end <= at << shift) as u32;
    (
        (0..=capacity.saturating_sub(1) >> shift)
            .map(entry)
            .collect(),
        shift,
    )
}
