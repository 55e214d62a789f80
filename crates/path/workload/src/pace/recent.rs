//! Mean response time of the last second.

use fullstroke_units::{Duration, Time};

/// Parts of the interval; a value older than the interval by less than a part may still count.
const PARTS: usize = 16;
/// "Over a time interval" (*Pro-active storage systems*, 2012, section 6.6.2); the document does
/// not give the length.
const INTERVAL: Duration = Duration::from_secs(1);

/// Response times of recent completions, in memory of fixed size.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentResponses {
    parts: [WindowPart; PARTS],
}

#[derive(Clone, Copy, Debug, Default)]
struct WindowPart {
    /// Number of the part, from the beginning.
    number: u64,
    sum_ns: u128,
    count: u64,
}

impl RecentResponses {
    pub(super) fn add(&mut self, now: Time, response: Duration) {
        let number = part_number(now);
        let part = &mut self.parts[number as usize % PARTS];
        // The ring is not cleared as time passes, so a part from an earlier turn of the ring begins
        // anew.
        if part.number != number {
            *part = WindowPart {
                number,
                ..WindowPart::default()
            };
        }
        part.sum_ns += u128::from(response.as_nanos());
        part.count += 1;
    }

    /// The mean; `None` without a completion.
    pub(super) fn mean(&self, now: Time) -> Option<Duration> {
        let present = part_number(now);
        let recent = || {
            self.parts
                .iter()
                .filter(|part| part.number + PARTS as u64 > present)
        };
        let count: u64 = recent().map(|part| part.count).sum();
        let sum_ns: u128 = recent().map(|part| part.sum_ns).sum();
        (count > 0).then(|| Duration::from_nanos((sum_ns / u128::from(count)) as u64))
    }
}

fn part_number(at: Time) -> u64 {
    at.since(Time::ZERO).as_nanos() / (INTERVAL.as_nanos() / PARTS as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_completed_more_than_a_second_ago_does_not_count() {
        let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        let mut recent = RecentResponses::default();
        assert_eq!(recent.mean(at(0)), None);
        recent.add(at(10), Duration::from_millis(4));
        recent.add(at(700), Duration::from_millis(8));
        assert_eq!(recent.mean(at(900)), Some(Duration::from_millis(6)));
        assert_eq!(recent.mean(at(1_100)), Some(Duration::from_millis(8)));
        assert_eq!(recent.mean(at(1_800)), None);
        recent.add(at(5_000), Duration::from_millis(1));
        assert_eq!(recent.mean(at(5_001)), Some(Duration::from_millis(1)));
    }
}
