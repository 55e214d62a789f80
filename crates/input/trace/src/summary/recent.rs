//! Where the latest requests of a device ended.

/// Requests whose ends a request may continue.
const STREAMS: usize = 32;
/// Counters of the filter.
const COUNTERS: usize = 256;

/// The ends of a device's latest reads and writes.
#[derive(Clone)]
pub(super) struct Recent {
    /// A ring; `next` is overwritten next.
    ends: [u64; STREAMS],
    next: usize,
    count: usize,
    /// How many ends have each [`slot`]: most requests continue none, and are
    /// told so by one look.
    filter: [u8; COUNTERS],
}

impl Default for Recent {
    fn default() -> Recent {
        Recent {
            ends: [0; STREAMS],
            next: 0,
            count: 0,
            filter: [0; COUNTERS],
        }
    }
}

impl Recent {
    /// Whether a request that starts here goes on behind the latest one, and
    /// whether it does behind any.
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

    /// Takes in where the latest request ended.
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
            let mut recent = Recent::default();
            for (index, &place) in places.iter().enumerate() {
                let latest = &places[index.saturating_sub(STREAMS)..index];
                prop_assert_eq!(recent.continued(place), (latest.last() == Some(&place), latest.contains(&place)));
                recent.push(place);
            }
        }
    }
}
