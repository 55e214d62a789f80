//! Parts of a volume with floors of their own (Lloyd, section 5.1.1). Each part has a size and a
//! minimum rate.
//!
//! Each part is a layout of pairs. A part takes the same window of time on both members. One member
//! is passed inwards and the other outwards; the sum of the rates is about constant. The part with
//! the highest floor is placed first, as far inside as its floor allows. The next part is placed in
//! the remaining space, as if the space of the first did not exist. A window at exactly the floor
//! leaves the most time to the other parts, because a window there takes the least time for its
//! data.

use super::Timeline;
use super::walk::{WalkedSection, walk};
use fullstroke_contract::ConfigError;
use fullstroke_units::{Bytes, Lbn, SECTOR_BYTES, Sectors, order_by};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part of a volume, with the minimum rate of every sequential transfer in the part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    /// Size of the part, such as "200GB".
    pub size: Bytes,
    /// Minimum rate of the whole volume in megabytes (10^6 bytes) per second.
    pub floor_mb_per_s: f64,
}

/// A planned part of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct VolumePart {
    /// First address of the part.
    pub start: Lbn,
    /// Number of sectors: the requested size, rounded up to a whole row.
    pub sectors: Sectors,
    /// Lowest rate of a sequential transfer in the part, in bytes per second.
    pub floor_bytes_per_s: u64,
}

/// The remaining free space of both members.
struct FreeSpace<'a> {
    forward: Timeline,
    backward: Timeline,
    /// Blocking factor in sectors.
    blocking: u64,
    pairs: u64,
    of: &'a [Floor],
}

/// A window of time on both members, and the rows in the window.
struct FloorWindow {
    from: u128,
    to: u128,
    rows: Vec<WalkedSection>,
}

/// Returns the rows of each part, in the order of `floors`. The rows of the remaining space follow,
/// if any space remains.
///
/// # Errors
/// Names the impossible floor or size, and the best possible value.
pub(crate) fn with_floors(
    forward: Timeline,
    backward: Timeline,
    blocking: u64,
    pairs: u64,
    floors: &[Floor],
) -> Result<Vec<Vec<WalkedSection>>, ConfigError> {
    let mut free = FreeSpace {
        forward,
        backward,
        blocking,
        pairs,
        of: floors,
    };
    let mut parts = vec![Vec::new(); floors.len()];
    let mut order: Vec<usize> = (0..floors.len()).collect();
    order_by(&mut order, |&a, &b| {
        floors[b]
            .floor_mb_per_s
            .total_cmp(&floors[a].floor_mb_per_s)
    });
    for index in order {
        parts[index] = free.place(index)?;
    }
    let rest = walk(&free.forward, &free.backward, blocking).0;
    parts.extend((!rest.is_empty()).then_some(rest));
    Ok(parts)
}

impl VolumePart {
    /// Returns the parts of these rows, one after another, for `pairs` pairs.
    pub(crate) fn of(parts: &[Vec<WalkedSection>], pairs: u64) -> Vec<VolumePart> {
        let mut start = 0;
        let part = |rows: &Vec<WalkedSection>| {
            let sectors = sectors_of(rows, pairs);
            let floor_bytes_per_s = floor_of(rows, pairs);
            let part = VolumePart {
                start: Lbn(start),
                sectors: Sectors(sectors),
                floor_bytes_per_s,
            };
            start += sectors;
            part
        };
        parts.iter().map(part).collect()
    }
}

fn sectors_of(rows: &[WalkedSection], pairs: u64) -> u64 {
    super::walk::sectors_of(rows) * pairs
}

fn floor_of(rows: &[WalkedSection], pairs: u64) -> u64 {
    rows.iter()
        .map(|rows| rows.rate.saturating_mul(pairs))
        .min()
        .unwrap_or(0)
}

/// Returns the largest number in `range` for which `holds` is true. `holds` must be true up to some
/// number and false after it. Returns `None` if `holds` is false for the first number.
fn last_that(range: (u128, u128), holds: impl Fn(u128) -> bool) -> Option<u128> {
    let (mut low, mut high) = range;
    if !holds(low) {
        return None;
    }
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if holds(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Some(low)
}

impl FreeSpace<'_> {
    /// Removes the window of part `index` from the free space and returns its rows.
    fn place(&mut self, index: usize) -> Result<Vec<WalkedSection>, ConfigError> {
        let Floor {
            size,
            floor_mb_per_s,
        } = self.of[index];
        let key = |name: &str| format!("zones[{index}].{name}");
        if !(floor_mb_per_s.is_finite() && floor_mb_per_s >= 0.0) {
            let message = format!("found {floor_mb_per_s}; expected MB/s, 0 or more");
            return Err(ConfigError::new(key("floor_mb_per_s"), message));
        }
        let sectors = size.0.div_ceil(SECTOR_BYTES);
        if sectors == 0 {
            return Err(ConfigError::new(
                key("size"),
                "found 0; expected a size such as \"200GB\"",
            ));
        }
        let floor = (floor_mb_per_s * 1e6).round() as u64;
        let Some(outermost) = self.window(0, sectors) else {
            let all = sectors_of(
                &walk(&self.forward, &self.backward, self.blocking).0,
                self.pairs,
            );
            let others = if index > 0 || self.of.len() > 1 {
                " beside the parts with higher floors"
            } else {
                ""
            };
            let message = format!(
                "found {}; the members have room for {}{others}",
                in_gb(sectors),
                in_gb(all)
            );
            return Err(ConfigError::new(key("size"), message));
        };
        let holds = |from: u128| {
            self.window(from, sectors)
                .is_some_and(|window| floor_of(&window.rows, self.pairs) >= floor)
        };
        let Some(from) = last_that((0, self.ticks() >> STEP_BITS), |step| {
            holds(step << STEP_BITS)
        }) else {
            let best = floor_of(&outermost.rows, self.pairs);
            let message = format!(
                "found {floor_mb_per_s}; the highest possible floor for {} is {}, and at {floor_mb_per_s} MB/s there is room for {}",
                in_gb(sectors),
                in_mb_per_s(best),
                in_gb(self.most_at(floor))
            );
            return Err(ConfigError::new(key("floor_mb_per_s"), message));
        };
        let window = self.window(from << STEP_BITS, sectors).unwrap_or(outermost);
        let rest = |timeline: &Timeline| {
            timeline
                .cut(
                    timeline.distance_in(window.from),
                    timeline.distance_in(window.to),
                )
                .1
        };
        (self.forward, self.backward) = (rest(&self.forward), rest(&self.backward));
        Ok(window.rows)
    }

    /// Returns the total time of the member with the shorter time, in ticks.
    fn ticks(&self) -> u128 {
        self.forward.ticks().min(self.backward.ticks())
    }

    fn rows(&self, from: u128, to: u128) -> Vec<WalkedSection> {
        let inside = |timeline: &Timeline| {
            timeline
                .cut(timeline.distance_in(from), timeline.distance_in(to))
                .0
        };
        walk(
            &inside(&self.forward),
            &inside(&self.backward),
            self.blocking,
        )
        .0
    }

    /// Returns the shortest window from `from` on with room for `sectors` sectors, and no more rows
    /// than necessary.
    fn window(&self, from: u128, sectors: u64) -> Option<FloorWindow> {
        let room = self.ticks().checked_sub(from)? >> STEP_BITS;
        let short = |steps: u128| {
            sectors_of(&self.rows(from, from + (steps << STEP_BITS)), self.pairs) < sectors
        };
        // One step more than the longest window that is too short.
        let steps = last_that((0, room), short)? + 1;
        if steps > room {
            return None;
        }
        let to = from + (steps << STEP_BITS);
        let mut rows = self.rows(from, to);
        let mut spare = sectors_of(&rows, self.pairs) - sectors;
        while let Some(last) = rows.last_mut() {
            let row = (last.section.chunks[0] + last.section.chunks[1]) * self.pairs;
            let fewer = (spare / row).min(last.section.rows);
            last.section.rows -= fewer;
            spare -= fewer * row;
            if last.section.rows > 0 {
                break;
            }
            rows.pop();
        }
        Some(FloorWindow { from, to, rows })
    }

    /// Returns the maximum size of one part in sectors, at a floor of `floor` bytes per second.
    fn most_at(&self, floor: u64) -> u64 {
        let holds = |steps: u128| {
            let rows = self.rows(0, steps << STEP_BITS);
            rows.is_empty() || floor_of(&rows, self.pairs) >= floor
        };
        let steps = last_that((0, self.ticks() >> STEP_BITS), holds).unwrap_or(0);
        sectors_of(&self.rows(0, steps << STEP_BITS), self.pairs)
    }
}

/// Windows begin and end at multiples of 2^`STEP_BITS` ticks. A step is about 1 ms, less than the
/// time of a row.
const STEP_BITS: u32 = 36;

fn in_gb(sectors: u64) -> String {
    format!("{:.1} GB", Sectors(sectors).bytes().0 as f64 / 1e9)
}

fn in_mb_per_s(rate: u64) -> String {
    format!("{:.1} MB/s", rate as f64 / 1e6)
}
