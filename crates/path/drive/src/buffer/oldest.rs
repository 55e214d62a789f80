//! A tournament tree of times, to find the least.

/// Ticks by index, with the least tick of each half, quarter and so on above. An index with
/// [`Oldest::NEVER`] takes no part.
pub(super) struct Oldest {
    leaves: usize,
    /// The root at 1, the children of `i` at `2i` and `2i + 1`.
    least: Vec<u64>,
}

impl Oldest {
    /// Tick of an index hidden from the search.
    pub(super) const NEVER: u64 = u64::MAX;

    /// Creates `count` entries with `tick`.
    pub(super) fn new(count: usize, tick: u64) -> Oldest {
        let leaves = count.next_power_of_two();
        let mut least = vec![Oldest::NEVER; 2 * leaves];
        least[leaves..leaves + count].fill(tick);
        for at in (1..leaves).rev() {
            least[at] = least[2 * at].min(least[2 * at + 1]);
        }
        Oldest { leaves, least }
    }

    pub(super) fn set(&mut self, index: usize, tick: u64) {
        let mut at = self.leaves + index;
        debug_assert!(
            index < self.leaves,
            "there is no segment {index} among {}",
            self.leaves
        );
        self.least[at] = tick;
        while at > 1 {
            at /= 2;
            let least = self.least[2 * at].min(self.least[2 * at + 1]);
            // Nodes above depend on this node only, so they stay as they are.
            if self.least[at] == least {
                return;
            }
            self.least[at] = least;
        }
    }

    /// Returns the least tick; [`Oldest::NEVER`] if there is none.
    pub(super) fn least(&self) -> u64 {
        self.least[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_least_is_found(
            count in 1usize..70, steps in prop::collection::vec((0usize..70, 0u64..20, any::<bool>()), 0..200),
        ) {
            let mut oldest = Oldest::new(count, 0);
            let mut plain = vec![0; count];
            for (index, tick, never) in steps {
                let tick = if never { Oldest::NEVER } else { tick };
                oldest.set(index % count, tick);
                plain[index % count] = tick;
                prop_assert_eq!(oldest.least(), plain.iter().copied().min().unwrap());
            }
        }
    }
}
