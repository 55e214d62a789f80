//! End sectors of the latest requests of a device.

/// Number of latest requests that a request may continue.
const STREAMS: usize = 32;
/// Number of counters in the filter.
const COUNTERS: usize = 256;

/// End sectors of a device's latest reads and writes.
#[derive(Clone)]
pub(super) struct RecentEnds {
    /// Ring buffer; the entry at `next` is overwritten next.
    ends: [u64; STREAMS],
    next: usize,
    count: usize,
    /// Number of ends in each [`slot`]. Most requests continue no other, and one look at the filter
    /// shows this.
    filter: [u8; COUNTERS],
}

impl Default for RecentEnds {
    fn default() -> RecentEnds {
        RecentEnds {
            ends: [0; STREAMS],
            next: 0,
            count: 0,
            filter: [0; COUNTERS],
        }
    }
}

impl RecentEnds {
    /// Returns two flags: true if a request that starts here continues the latest request, and true
    /// if it continues any of the latest requests.
    #[inline]
    pub(super) fn continued(&self, start: u64) -> (bool, bool) {
        if self.filter[slot(start)] == 0 {
            return (false, false);
        }
        let latest = self.ends[(self.next + STREAMS - 1) % STREAMS];
        (
            self.count > 0 && latest == start,
            self.ends[..self.count].contains(&start),
        )
    }

    /// Adds the end of the latest request.
    #[inline]
    pub(super) fn push(&mut self, end: u64) {
        if self.count == STREAMS {
            self.filter[slot(self.ends[self.next])] -= 1;
        } else {
            self.count += 1;
        }
        self.ends[self.next] = end;
        self.next = (self.next + 1) % STREAMS;
        self.filter[slot(end)] += 1;
    }
}

#[inline]
fn slot(sector: u64) -> usize {
    (sector.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - COUNTERS.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_latest_ends_are_known(places in prop::collection::vec(0u64..80, 1..200)) {
            let mut recent = RecentEnds::default();
            for (index, &place) in places.iter().enumerate() {
                let latest = &places[index.saturating_sub(STREAMS)..index];
                prop_assert_eq!(recent.continued(place), (latest.last() == Some(&place), latest.contains(&place)));
                recent.push(place);
            }
        }
    }
}
