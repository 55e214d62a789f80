//! Pairs of real zones: one disk is passed inwards while the other is passed outwards, each at its
//! own rate.
//!
//! Lloyd gives r(i) of `qmap_geo` as the sectors of the outer zone divided by the sectors of the
//! inner zone (2.5). The quotient is the ratio of the rates only if all zones have the same number
//! of tracks. The numbers of tracks differ: on the Deskstar 40GV (figure 2.2) the innermost zone
//! holds more sectors than the outermost. Here the chunks follow the rates, and a pair of zones
//! ends where either zone ends.

use super::{MapSection, Timeline};
use fullstroke_units::order_by_key;

/// A section before its final place is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalkedSection {
    /// Section with the starts of its zones. The gaps between sections are still included.
    pub(crate) section: MapSection,
    /// Rate at which both members of a pair together pass the section, in bytes per second.
    pub(crate) rate: u64,
}

/// A section is at least 1/`SHARE_MIN` of both timelines, because a shorter section is not worth an
/// entry of its own.
const SHARE_MIN: u64 = 1024;

/// Passes both timelines, one from its front and one from its back, in rows of chunks. The sizes of
/// the chunks follow the rates; the smaller chunk has about `blocking` sectors. Returns the rows,
/// and the number of remaining sectors at the front of the second timeline.
pub(crate) fn walk(
    forward: &Timeline,
    backward: &Timeline,
    blocking: u64,
) -> (Vec<WalkedSection>, u64) {
    let least = (forward.sectors() + backward.sectors()) / SHARE_MIN;
    let (end, mut passed, mut left) = (forward.sectors(), 0, backward.sectors());
    let mut all = Vec::new();
    while passed < end && left > 0 {
        let (outer, inner) = (forward.span_at(passed), backward.span_before(left));
        let chunks = match outer.rate >= inner.rate {
            true => chunks(blocking, outer.rate, inner.rate),
            false => {
                let [faster, slower] = chunks(blocking, inner.rate, outer.rate);
                [slower, faster]
            }
        };
        let fit = ((end - passed) / chunks[0]).min(left / chunks[1]);
        if fit == 0 {
            break;
        }
        let row = chunks[0].saturating_add(chunks[1]);
        let to_zone_end = outer
            .sectors
            .div_ceil(chunks[0])
            .min(inner.sectors.div_ceil(chunks[1]));
        let mut rows = to_zone_end.max(least / row).clamp(1, fit);
        // A remainder that is too short for a section joins this section.
        if (fit - rows).saturating_mul(row) < least {
            rows = fit;
        }
        let sectors = [rows * chunks[0], rows * chunks[1]];
        let rates = [
            forward.slowest(passed, passed + sectors[0], chunks[0]),
            backward.slowest(left - sectors[1], left, chunks[1]),
        ];
        passed += sectors[0];
        left -= sectors[1];
        let starts = [outer.start, backward.span_at(left).start];
        all.push(WalkedSection {
            section: MapSection {
                rows,
                chunks,
                starts,
            },
            rate: together(chunks, rates),
        });
    }
    (all, left)
}

/// Returns chunks with a ratio near the ratio of the rates. The candidates for the slower chunk are
/// a few whole numbers of sectors from `blocking` on. The nearest candidate counts, or the first
/// one near enough.
fn chunks(blocking: u64, faster: u64, slower: u64) -> [u64; 2] {
    const CANDIDATES: u64 = 16;
    const NEAR_ENOUGH: u128 = 512;
    let (faster, slower) = (u128::from(faster), u128::from(slower));
    // Error of a pair of chunks, times the smaller chunk, the larger chunk and a rate.
    let off =
        |small: u64, large: u64| (u128::from(large) * slower).abs_diff(u128::from(small) * faster);
    let mut best = [u64::MAX, blocking];
    for small in (blocking..).take(CANDIDATES.min(blocking) as usize) {
        let exact = (u128::from(small) * faster + slower / 2) / slower;
        let large = u64::try_from(exact).unwrap_or(u64::MAX);
        let better = best[0] == u64::MAX
            || off(small, large) * u128::from(best[1]) < off(best[1], best[0]) * u128::from(small);
        if better {
            best = [large, small];
        }
        if off(best[1], best[0]) * NEAR_ENOUGH <= u128::from(best[1]) * faster {
            break;
        }
    }
    best
}

/// Returns the common rate of two members in bytes per second. Each transfers a chunk at its own
/// rate, and they wait for each other.
fn together(chunks: [u64; 2], rates: [u64; 2]) -> u64 {
    let row = u128::from(chunks[0]) + u128::from(chunks[1]);
    let alone = |side: usize| row * u128::from(rates[side]) / u128::from(chunks[side]);
    u64::try_from(alone(0).min(alone(1))).unwrap_or(u64::MAX)
}

/// Passes whole disks. The slower disk leaves out its innermost part.
pub(crate) fn balanced(
    forward: &Timeline,
    backward: &Timeline,
    blocking: u64,
) -> Vec<WalkedSection> {
    let ticks = forward.ticks().min(backward.ticks());
    let within = |timeline: &Timeline| match timeline.ticks() == ticks {
        true => timeline.clone(),
        false => timeline.cut(0, timeline.distance_in(ticks)).0,
    };
    let (forward, mut backward) = (within(forward), within(backward));
    // Chunks are whole numbers, so that their ratio is slightly wrong. If outer sectors of the
    // backward disk remain, the disk leaves out inner sectors instead, as long as the volume does
    // not become smaller.
    let (mut best, mut left) = walk(&forward, &backward, blocking);
    for _ in 0..8 {
        backward = backward.cut(0, backward.sectors() - left).0;
        let (next, next_left) = walk(&forward, &backward, blocking);
        if next_left >= left || sectors_of(&next) < sectors_of(&best) {
            break;
        }
        (best, left) = (next, next_left);
    }
    best
}

/// Returns the number of sectors of these rows on one pair.
pub(super) fn sectors_of(rows: &[WalkedSection]) -> u64 {
    rows.iter()
        .map(|rows| rows.section.rows * (rows.section.chunks[0] + rows.section.chunks[1]))
        .sum()
}

/// Returns the sections in their final places: in the order of their zones on each member, without
/// gaps.
pub(crate) fn packed(all: &[WalkedSection]) -> Vec<MapSection> {
    let mut sections: Vec<MapSection> = all.iter().map(|rows| rows.section).collect();
    for side in 0..2 {
        let mut order: Vec<usize> = (0..sections.len()).collect();
        order_by_key(&mut order, |&index| sections[index].starts[side]);
        let mut next = 0;
        for index in order {
            let section = &mut sections[index];
            section.starts[side] = next;
            next += section.rows * section.chunks[side];
        }
    }
    sections
}
