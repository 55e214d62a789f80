//! The numbers of the requests that reads and writes share, given out as the kernel's map of bits
//! does (`lib/sbitmap.c`, Linux 6.18).
//!
//! The number matters, because an elevator limits a submitter to the first numbers. A submitter
//! with a limit of one waits until number 0 is free, however many others are free.

/// Sets of request numbers, in words of equal size.
#[derive(Clone, Debug)]
pub(super) struct TagMap {
    /// Used numbers, as bits.
    words: Vec<u64>,
    /// Numbers given back that still count as used. They become free when a search finds nothing
    /// else in their word (`sbitmap_deferred_clear`). So a submitter without a limit rarely takes
    /// the number that was just given back, and submitters who wait for number 0 find it free.
    cleared: Vec<u64>,
    /// Number of requests.
    most: u32,
    /// Power of two of the numbers in a word.
    shift: u32,
    /// Number with which the next search begins.
    hint: u32,
}

impl TagMap {
    /// Returns a map of `most` free numbers. The words are small, so that there are at least four
    /// (`sbitmap_init_node`). The kernel draws the first hint; here the search begins in the
    /// middle.
    pub(super) fn new(most: u32) -> TagMap {
        let mut shift: u32 = 6;
        while most >= 4 && 4u64 << shift > u64::from(most) {
            shift -= 1;
        }
        let words = u64::from(most).div_ceil(1 << shift) as usize;
        TagMap {
            words: vec![0; words],
            cleared: vec![0; words],
            most,
            shift,
            hint: most / 2,
        }
    }

    /// Returns the number of words.
    pub(super) fn words(&self) -> u32 {
        self.words.len() as u32
    }

    /// Returns the number of usable bits of a word for a submitter that may use `depth` of all
    /// numbers (`__map_depth_with_shallow`).
    fn usable(&self, word: usize, depth: u32) -> u32 {
        let first = (word as u32) << self.shift;
        let size = (self.most - first).min(1 << self.shift);
        if depth >= self.most {
            return size;
        }
        let share = u64::from(size) * u64::from(depth);
        let (whole, rest) = (share / u64::from(self.most), share % u64::from(self.most));
        // The rest of the share goes to the first words, one request each.
        whole as u32 + u32::from(rest >= (word as u64 + 1) * u64::from(size))
    }

    /// Takes a free number among those that `depth` allows (`sbitmap_find_bit`).
    pub(super) fn take(&mut self, depth: u32) -> Option<u32> {
        let (first, bit) = (self.hint >> self.shift, self.hint & ((1 << self.shift) - 1));
        let count = self.words.len();
        for step in 0..count {
            let word = (first as usize + step) % count;
            let usable = self.usable(word, depth);
            let from = if step == 0 { bit } else { 0 };
            let found = free_bit(self.words[word], from, usable).or_else(|| {
                let cleared = std::mem::take(&mut self.cleared[word]);
                self.words[word] &= !cleared;
                free_bit(self.words[word], from, usable)
            });
            let Some(found) = found else {
                continue;
            };
            self.words[word] |= 1 << found;
            let number = ((word as u32) << self.shift) + found;
            // `update_alloc_hint_after_get`: the hint moves on only if the hint itself was taken.
            if number == self.hint {
                self.hint = if number + 2 > self.most {
                    0
                } else {
                    number + 1
                };
            }
            return Some(number);
        }
        self.hint = 0;
        None
    }

    /// Gives a number back. The next search begins there (`sbitmap_queue_clear`).
    pub(super) fn release(&mut self, number: u32) {
        let word = (number >> self.shift) as usize;
        let bit = 1 << (number & ((1 << self.shift) - 1));
        assert!(
            self.words[word] & !self.cleared[word] & bit != 0,
            "request {number} is given back unused"
        );
        self.cleared[word] |= bit;
        self.hint = number;
    }

    /// True if no number is used.
    #[cfg(test)]
    fn is_unused(&self) -> bool {
        self.words == self.cleared
    }
}

/// Returns the first unset bit from `from` on, or from the beginning, among the first `usable`
/// bits.
fn free_bit(word: u64, from: u32, usable: u32) -> Option<u32> {
    let free = |from: u32| {
        let set = (!word).checked_shr(from)?;
        let bit = from + set.trailing_zeros();
        (set != 0 && bit < usable).then_some(bit)
    };
    free(from).or_else(|| free(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_limit_of_one_is_the_first_number() {
        let mut map = TagMap::new(256);
        assert_eq!(map.take(256), Some(128));
        assert_eq!(map.take(1), Some(0));
        assert_eq!(map.take(1), None);
        map.release(128);
        assert_eq!(map.take(1), None, "another number does not help");
        map.release(0);
        assert_eq!(map.take(1), Some(0));
    }

    #[test]
    fn a_number_given_back_is_taken_when_nothing_else_in_its_word_is_left() {
        let mut map = TagMap::new(256);
        assert_eq!(map.take(1), Some(0));
        map.release(0);
        let others: Vec<u32> = std::iter::from_fn(|| map.take(256)).take(63).collect();
        assert_eq!(others, (1..64).collect::<Vec<_>>());
        assert_eq!(map.take(1), Some(0));
    }

    #[test]
    fn a_limit_is_spread_over_the_words() {
        let mut map = TagMap::new(256);
        let given: BTreeSet<u32> = std::iter::from_fn(|| map.take(192)).collect();
        assert_eq!(given.len(), 192);
        assert!(given.iter().all(|number| number % 64 < 48));
    }

    proptest! {
        #[test]
        fn each_number_is_given_once_and_a_limit_gives_about_as_many_as_it_says(
            most in 1u32..300, depth in 1u32..300,
        ) {
            let depth = depth.min(most);
            let mut map = TagMap::new(most);
            let limited: BTreeSet<u32> = std::iter::from_fn(|| map.take(depth)).collect();
            // The kernel rounds word by word, and the last word may be short.
            prop_assert!((limited.len() as u32).abs_diff(depth) <= 4 && !limited.is_empty());
            let rest: BTreeSet<u32> = std::iter::from_fn(|| map.take(most)).collect();
            prop_assert_eq!(rest.len() + limited.len(), most as usize);
            prop_assert!(rest.is_disjoint(&limited));
            rest.iter().chain(&limited).for_each(|&number| map.release(number));
            prop_assert!(map.is_unused());
        }
    }
}
