//! Processors with events in a trace, and the numbers of dropped events.

use super::Matcher;
use std::collections::BTreeMap;

/// Largest number of devices and processors counted separately. More are a sign of damage.
const SEEN_MAX: usize = 8192;
/// Largest processor number; a larger number is damage. Linux's `NR_CPUS` is at most 8,192.
const PROCESSOR_MAX: u32 = 8192;

/// The processors of a trace.
///
/// The kernel numbers the events of a device on each processor from 1 (`__blk_add_trace` in
/// kernel/trace/blktrace.c, Linux 6.6). A gap shows that events were dropped, or filtered out
/// afterwards.
#[derive(Debug, Default)]
pub(crate) struct Processors {
    /// Last sequence number of each device and processor.
    last: BTreeMap<(u32, u32), u64>,
    /// Number of missing events of each processor.
    lost: BTreeMap<u32, u64>,
}

impl Processors {
    /// Records an event. A `sequence` of 0 means that the event has no number.
    pub(crate) fn record_event(&mut self, device: u32, processor: u32, sequence: u64) {
        let room = self.last.len() < SEEN_MAX && processor <= PROCESSOR_MAX;
        let key = (device, processor);
        let Some(last) = self.last.get_mut(&key) else {
            if room {
                self.last.insert(key, sequence);
            }
            return;
        };
        if sequence > *last {
            let gap = sequence - *last - 1;
            *last = sequence;
            if gap > 0 {
                let lost = self.lost.entry(processor).or_default();
                // A damaged sequence number may give any gap; the sum stays at the top.
                *lost = lost.saturating_add(gap);
            }
        } else if let Some(lost) = self.lost.get_mut(&processor) {
            // The event was not lost, only late in a merged trace.
            *lost = lost.saturating_sub(1);
        }
    }

    /// Returns the processors without events, from 0 to the last processor seen.
    fn absent(&self) -> Vec<u32> {
        let mut seen: Vec<u32> = self.last.keys().map(|&(_, processor)| processor).collect();
        seen.sort_unstable();
        let last = seen.last().copied().unwrap_or(0);
        (0..last)
            .filter(|processor| seen.binary_search(processor).is_err())
            .collect()
    }

    /// Returns the notes about missing events, one sentence each. `missing` are the processors
    /// whose file is missing, if the trace has one file for each.
    pub(crate) fn notes(&self, missing: Option<&[u32]>, matcher: &Matcher) -> Vec<String> {
        let files = match missing {
            Some([]) => None,
            Some(missing) => Some(format!(
                "the file of processor {} is missing, so its issue and completion events are unknown",
                listed(missing)
            )),
            None if self.absent().is_empty() => None,
            None => Some(format!(
                "no event of processor {}: the processor was idle, or its file is missing",
                listed(&self.absent())
            )),
        };
        files
            .into_iter()
            .chain(self.dropped())
            .chain(matcher.notes())
            .collect()
    }

    fn dropped(&self) -> Option<String> {
        let lost: Vec<(&u32, &u64)> = self.lost.iter().filter(|(_, lost)| **lost > 0).collect();
        let events = lost
            .iter()
            .fold(0u64, |sum, (_, lost)| sum.saturating_add(**lost));
        let processors: Vec<u32> = lost.iter().map(|(processor, _)| **processor).collect();
        (events > 0).then(|| {
            format!(
                "{events} events of processor {} were dropped or filtered out (gaps in their sequence numbers)",
                listed(&processors)
            )
        })
    }
}

/// Returns the numbers as text: `0, 2 to 5 and 7`.
fn listed(numbers: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            // The last number of the range has no follower.
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let run = |&(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        _ => format!("{first} to {last}"),
    };
    let texts: Vec<String> = runs.iter().map(run).collect();
    match texts.as_slice() {
        [several @ .., last] if !several.is_empty() => format!("{} and {last}", several.join(", ")),
        _ => texts.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_in_sequence_numbers_are_events_that_were_dropped() {
        let mut processors = Processors::default();
        for sequence in [1, 2, 5, 6] {
            processors.record_event(1, 0, sequence);
        }
        // The events are late, not lost.
        for sequence in [1, 3, 2, 4] {
            processors.record_event(1, 3, sequence);
        }
        let notes = processors.notes(None, &Matcher::default());
        assert!(
            notes[0].starts_with("no event of processor 1 to 2: "),
            "{notes:?}"
        );
        assert!(
            notes[1].starts_with("2 events of processor 0 were dropped"),
            "{notes:?}"
        );
        assert_eq!(notes.len(), 2);
    }

    #[test]
    fn numbers_are_listed_in_runs() {
        assert_eq!(listed(&[0]), "0");
        assert_eq!(listed(&[0, 2, 3, 4, 7]), "0, 2 to 4 and 7");
    }
}
