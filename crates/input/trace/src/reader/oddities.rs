//! Rows that are possible but absurd: gaps of days, gaps longer than all the rest of the trace, requests
//! larger than any block layer sends. Notes say where they are.

use crate::TracePlace;
use crate::row::TraceRow;
use fullstroke_units::SECTOR_BYTES;

/// Shortest gap between requests that is always reported: 7 days. No system worth tracing is idle for
/// so long, so its clock was set, or a time is damaged.
const JUMP_NS: u64 = 7 * 86_400 * 1_000_000_000;
/// Largest request without a note: 256 MiB. Block layers split requests at a few MiB, and applications
/// write at most a few ten MiB at once.
pub(super) const OVERSIZED_SECTORS: u64 = (256 << 20) / SECTOR_BYTES;
/// Factor of a gap over the rest of the trace from which a note reports the gap.
const GAP_FACTOR: u64 = 10;
/// Smallest number of rows, and shortest gap in ns, of such a note.
const GAP_ROWS_MIN: u64 = 4;
const GAP_NS_MIN: u64 = 1_000_000_000;

/// Absurd rows so far.
#[derive(Default)]
pub(super) struct Oddities {
    /// Gaps longer than [`JUMP_NS`].
    jumps: u64,
    longest_ns: u64,
    /// Place of the request behind the longest gap.
    behind: Option<TracePlace>,
    rows: u64,
    span_ns: u64,
    oversized: u64,
    /// Place, operation and sectors of the largest request.
    largest: Option<(TracePlace, &'static str, u64)>,
}

impl Oddities {
    /// Returns true if a gap has to be added.
    #[inline]
    pub(super) fn has_gap(&self, gap_ns: u64) -> bool {
        gap_ns > self.longest_ns || gap_ns > JUMP_NS
    }

    pub(super) fn add_gap(&mut self, place: TracePlace, gap_ns: u64) {
        self.jumps += u64::from(gap_ns > JUMP_NS);
        if gap_ns > self.longest_ns {
            self.longest_ns = gap_ns;
            self.behind = Some(place);
        }
    }

    #[cold]
    pub(super) fn add_size(&mut self, place: TracePlace, row: &TraceRow) {
        self.oversized += 1;
        if self
            .largest
            .is_none_or(|(.., sectors)| row.sectors > sectors)
        {
            self.largest = Some((place, row.operation.name(), row.sectors));
        }
    }

    /// Adds rows, the last one `since_ns` after the first row of the trace.
    #[inline]
    pub(super) fn add_rows(&mut self, rows: u64, since_ns: u64) {
        self.rows += rows;
        self.span_ns = self.span_ns.max(since_ns);
    }

    /// Returns a number that changes with the notes before the end of the trace.
    pub(super) fn count(&self) -> u64 {
        self.jumps + self.oversized
    }

    /// Returns the notes. The trace has been read to its `end`, or not.
    pub(super) fn notes(&self, end: bool) -> impl Iterator<Item = String> {
        let gap = match self.jumps {
            0 if end => self.gap_note(),
            0 => None,
            _ => self.jump_note(),
        };
        gap.into_iter().chain(self.size_note())
    }

    fn jump_note(&self) -> Option<String> {
        const DAY_NS: f64 = 86_400e9;
        const YEAR_DAYS: f64 = 365.25;
        let place = self.behind?;
        let days = self.longest_ns as f64 / DAY_NS;
        let gap = if days < YEAR_DAYS {
            format!("{days:.1} days")
        } else {
            format!("{:.1} years", days / YEAR_DAYS)
        };
        let others = match self.jumps - 1 {
            0 => String::new(),
            1 => ", and one more of over 7 days".to_owned(),
            others => format!(", and {others} more of over 7 days"),
        };
        Some(format!(
            "{place}: {gap} without a request before this one{others}: the clock was set or a time is damaged; \
             durations and rates count the gap unless --from or --to leaves it out"
        ))
    }

    /// Returns the note about a gap that is much longer than all the rest of the trace.
    fn gap_note(&self) -> Option<String> {
        let rest = self.span_ns.saturating_sub(self.longest_ns);
        let long = self.rows >= GAP_ROWS_MIN
            && self.longest_ns >= GAP_NS_MIN
            && self.longest_ns / GAP_FACTOR > rest;
        let place = self.behind.filter(|_| long)?;
        Some(format!(
            "{place}: {:.3} s without a request before this one, in a trace that lasts {:.3} s without this gap: a time is \
             damaged, or the system was idle; durations and rates count the gap unless --from or --to leaves it out",
            self.longest_ns as f64 / 1e9,
            rest as f64 / 1e9
        ))
    }

    fn size_note(&self) -> Option<String> {
        let (place, operation, sectors) = self.largest?;
        let mib = (sectors as f64 * SECTOR_BYTES as f64) / (1u64 << 20) as f64;
        let others = match self.oversized - 1 {
            0 => String::new(),
            others => format!(", and {others} more above 256 MiB"),
        };
        Some(format!(
            "{place}: a {operation} of {mib:.0} MiB{others}: no block layer sends so large a request, so the row is damaged, or \
             its size has another unit; rates and sizes count it"
        ))
    }
}
