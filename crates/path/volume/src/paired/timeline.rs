//! The real zones of a disk, with the time to pass each zone.

use fullstroke_units::{SECTOR_BYTES, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A zone of a member: its size and its transfer rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberZone {
    /// Number of sectors of 512 bytes.
    pub sectors: Sectors,
    /// Rate of a sequential transfer in bytes per second; above 0.
    pub bytes_per_s: u64,
}

/// Consecutive sectors of a disk with one transfer rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RateZone {
    pub(super) start: u64,
    pub(super) sectors: u64,
    /// Rate in bytes per second.
    pub(super) rate: u64,
}

/// Spans of a disk in the order of their addresses, with gaps where other parts have been cut out.
/// A **distance** counts only the sectors of the spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Timeline {
    spans: Vec<RateZone>,
}

/// A tick is 2^-`TICK_BITS` ns, short enough to distinguish short spans.
const TICK_BITS: u32 = 16;

impl RateZone {
    /// Returns the time of the first `sectors` sectors, in ticks, rounded down.
    fn ticks(&self, sectors: u64) -> u128 {
        let bytes = u128::from(sectors) * u128::from(SECTOR_BYTES);
        ((bytes * 1_000_000_000) << TICK_BITS) / u128::from(self.rate)
    }

    /// Returns the number of sectors passed in `ticks`, rounded down.
    fn sectors_in(&self, ticks: u128) -> u64 {
        let sectors = ticks * u128::from(self.rate)
            / ((u128::from(SECTOR_BYTES) * 1_000_000_000) << TICK_BITS);
        u64::try_from(sectors).map_or(self.sectors, |sectors| sectors.min(self.sectors))
    }
}

impl Timeline {
    /// Returns the timeline of the first `sectors` sectors of a disk with these zones.
    pub(crate) fn new(zones: &[MemberZone], sectors: u64) -> Timeline {
        let mut spans = Vec::with_capacity(zones.len());
        let mut start = 0;
        for zone in zones {
            let within = zone.sectors.0.min(sectors - start);
            if within > 0 {
                spans.push(RateZone {
                    start,
                    sectors: within,
                    rate: zone.bytes_per_s,
                });
            }
            start += within;
        }
        Timeline { spans }
    }

    /// Returns a timeline with the lower rate of both disks at each address, up to the end of the
    /// shorter disk.
    pub(crate) fn slower(&self, other: &Timeline) -> Timeline {
        let end = self.sectors().min(other.sectors());
        let mut spans: Vec<RateZone> = Vec::new();
        let mut at = 0;
        while at < end {
            let (a, b) = (self.span_at(at), other.span_at(at));
            let stop = (a.start + a.sectors).min(b.start + b.sectors).min(end);
            let rate = a.rate.min(b.rate);
            match spans.last_mut().filter(|last| last.rate == rate) {
                Some(last) => last.sectors += stop - at,
                None => spans.push(RateZone {
                    start: at,
                    sectors: stop - at,
                    rate,
                }),
            }
            at = stop;
        }
        Timeline { spans }
    }

    /// Returns the number of sectors of all spans.
    pub(crate) fn sectors(&self) -> u64 {
        self.spans.iter().map(|span| span.sectors).sum()
    }

    /// Returns the time of all spans, in ticks.
    pub(crate) fn ticks(&self) -> u128 {
        self.spans.iter().map(|span| span.ticks(span.sectors)).sum()
    }

    /// Returns the distance passed in `ticks`.
    pub(crate) fn distance_in(&self, mut ticks: u128) -> u64 {
        let mut distance = 0;
        for span in &self.spans {
            let whole = span.ticks(span.sectors);
            if ticks < whole {
                return distance + span.sectors_in(ticks);
            }
            ticks -= whole;
            distance += span.sectors;
        }
        distance
    }

    /// Returns the rest of the span at `distance`.
    pub(super) fn span_at(&self, distance: u64) -> RateZone {
        let mut before = 0;
        for span in &self.spans {
            if distance < before + span.sectors {
                let passed = distance - before;
                return RateZone {
                    start: span.start + passed,
                    sectors: span.sectors - passed,
                    ..*span
                };
            }
            before += span.sectors;
        }
        RateZone {
            start: 0,
            sectors: 0,
            // The rate of an empty span is not 0, because callers divide by rates.
            rate: 1,
        }
    }

    /// Returns the part of a span before `distance`. `distance` must be above 0.
    pub(super) fn span_before(&self, distance: u64) -> RateZone {
        let mut before = 0;
        for span in &self.spans {
            if distance <= before + span.sectors {
                return RateZone {
                    sectors: distance - before,
                    ..*span
                };
            }
            before += span.sectors;
        }
        RateZone {
            start: 0,
            sectors: 0,
            rate: 1,
        }
    }

    /// Returns the lowest rate between two distances. Overlaps shorter than `chunk` sectors do not
    /// count, unless there is no longer overlap.
    pub(super) fn slowest(&self, from: u64, to: u64, chunk: u64) -> u64 {
        let mut lowest = None;
        let mut before = 0;
        for span in &self.spans {
            let overlap = to
                .min(before + span.sectors)
                .saturating_sub(from.max(before));
            if overlap >= chunk {
                lowest = Some(lowest.map_or(span.rate, |lowest: u64| lowest.min(span.rate)));
            }
            before += span.sectors;
        }
        lowest.unwrap_or(self.span_at(from).rate)
    }

    /// Returns the part between two distances, and the remaining parts.
    pub(super) fn cut(&self, from: u64, to: u64) -> (Timeline, Timeline) {
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        let mut before = 0;
        for span in &self.spans {
            let [begin, end] = [from, to].map(|at| at.saturating_sub(before).min(span.sectors));
            let part = |of: &mut Vec<RateZone>, begin: u64, end: u64| {
                if begin < end {
                    of.push(RateZone {
                        start: span.start + begin,
                        sectors: end - begin,
                        rate: span.rate,
                    });
                }
            };
            part(&mut outside, 0, begin);
            part(&mut inside, begin, end);
            part(&mut outside, end, span.sectors);
            before += span.sectors;
        }
        (Timeline { spans: inside }, Timeline { spans: outside })
    }
}
