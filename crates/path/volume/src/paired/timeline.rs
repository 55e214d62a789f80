//! The real zones of a disk, by the time that it takes to pass them.

use fullstroke_units::{SECTOR_BYTES, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A zone of a member: so many sectors, transferred at such a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberZone {
    /// Sectors of 512 bytes.
    pub sectors: Sectors,
    /// Bytes a second of a sequential transfer; above 0.
    pub bytes_per_s: u64,
}

/// Consecutive sectors of a disk that are transferred at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) sectors: u64,
    /// Bytes a second.
    pub(super) rate: u64,
}

/// Spans of a disk in the order of their addresses, with gaps where others have
/// been cut out. A **distance** counts the sectors of the spans alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Timeline {
    spans: Vec<Span>,
}

/// 2^-`TICK_BITS` ns, so that short spans have times of their own.
const TICK_BITS: u32 = 16;

impl Span {
    /// The time of the first `sectors`, in ticks, rounded down.
    fn ticks(&self, sectors: u64) -> u128 {
        let bytes = u128::from(sectors) * u128::from(SECTOR_BYTES);
        ((bytes * 1_000_000_000) << TICK_BITS) / u128::from(self.rate)
    }

    /// The sectors that are passed in `ticks`, rounded down.
    fn sectors_in(&self, ticks: u128) -> u64 {
        let sectors = ticks * u128::from(self.rate)
            / ((u128::from(SECTOR_BYTES) * 1_000_000_000) << TICK_BITS);
        u64::try_from(sectors).map_or(self.sectors, |sectors| sectors.min(self.sectors))
    }
}

impl Timeline {
    /// The first `sectors` of a disk of these zones.
    pub(crate) fn new(zones: &[MemberZone], sectors: u64) -> Timeline {
        let mut spans = Vec::with_capacity(zones.len());
        let mut start = 0;
        for zone in zones {
            let within = zone.sectors.0.min(sectors - start);
            if within > 0 {
                spans.push(Span {
                    start,
                    sectors: within,
                    rate: zone.bytes_per_s,
                });
            }
            start += within;
        }
        Timeline { spans }
    }

    /// At each address the lower rate of both, as far as both go.
    pub(crate) fn slower(&self, other: &Timeline) -> Timeline {
        let end = self.sectors().min(other.sectors());
        let mut spans: Vec<Span> = Vec::new();
        let mut at = 0;
        while at < end {
            let (a, b) = (self.span_at(at), other.span_at(at));
            let stop = (a.start + a.sectors).min(b.start + b.sectors).min(end);
            let rate = a.rate.min(b.rate);
            match spans.last_mut().filter(|last| last.rate == rate) {
                Some(last) => last.sectors += stop - at,
                None => spans.push(Span {
                    start: at,
                    sectors: stop - at,
                    rate,
                }),
            }
            at = stop;
        }
        Timeline { spans }
    }

    /// Sectors of all spans.
    pub(crate) fn sectors(&self) -> u64 {
        self.spans.iter().map(|span| span.sectors).sum()
    }

    /// The time of all spans, in ticks.
    pub(crate) fn ticks(&self) -> u128 {
        self.spans.iter().map(|span| span.ticks(span.sectors)).sum()
    }

    /// How far one comes in `ticks`.
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

    /// The rest of the span at `distance`, from there on.
    pub(super) fn span_at(&self, distance: u64) -> Span {
        let mut before = 0;
        for span in &self.spans {
            if distance < before + span.sectors {
                let passed = distance - before;
                return Span {
                    start: span.start + passed,
                    sectors: span.sectors - passed,
                    ..*span
                };
            }
            before += span.sectors;
        }
        Span {
            start: 0,
            sectors: 0,
            rate: 1,
        }
    }

    /// The part of a span that ends at `distance`, above 0.
    pub(super) fn span_before(&self, distance: u64) -> Span {
        let mut before = 0;
        for span in &self.spans {
            if distance <= before + span.sectors {
                return Span {
                    sectors: distance - before,
                    ..*span
                };
            }
            before += span.sectors;
        }
        Span {
            start: 0,
            sectors: 0,
            rate: 1,
        }
    }

    /// The lowest rate between two distances. What is shorter than `chunk`
    /// sectors does not count, unless there is nothing else.
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

    /// What lies between two distances, and what remains.
    pub(super) fn cut(&self, from: u64, to: u64) -> (Timeline, Timeline) {
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        let mut before = 0;
        for span in &self.spans {
            let [begin, end] = [from, to].map(|at| at.saturating_sub(before).min(span.sectors));
            let part = |of: &mut Vec<Span>, begin: u64, end: u64| {
                if begin < end {
                    of.push(Span {
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
