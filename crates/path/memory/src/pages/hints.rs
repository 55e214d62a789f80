//! Where look-ups have ended: a table that is asked before the tree. What it says is
//! a guess and is checked by whoever asks, so that nothing need be taken out of it.

use super::NONE;
use fullstroke_contract::Object;

/// Entries of a table for few stretches.
const LEAST_BITS: u32 = 6;

/// Two slots for each hash of a page, or none: as many hashes as there are stretches,
/// within twice, so that its memory is in proportion to them. With one of twice as many
/// hashes, a fifth of the pages would push each other out; so it is one in thirty.
#[derive(Clone, Debug)]
pub(super) struct Hints {
    slots: Vec<u32>,
    bits: u32,
}

impl Default for Hints {
    fn default() -> Hints {
        Hints {
            slots: vec![NONE; 1 << LEAST_BITS],
            bits: LEAST_BITS,
        }
    }
}

impl Hints {
    /// Where the page may be: what was said last of its hash, and before that.
    #[inline]
    pub fn get(&self, object: Object, page: u64) -> [u32; 2] {
        let place = self.place(object, page);
        [self.slots[place], self.slots[place + 1]]
    }

    /// Where the page is.
    #[inline]
    pub fn set(&mut self, object: Object, page: u64, slot: u32) {
        let place = self.place(object, page);
        self.slots[place + 1] = std::mem::replace(&mut self.slots[place], slot);
    }

    /// There are so many stretches: the table grows, empty, once it is too small.
    pub fn fit(&mut self, stretches: usize) {
        if 2 * stretches > self.slots.len() {
            self.bits += 1;
            self.slots.clear();
            self.slots.resize(1 << self.bits, NONE);
        }
    }

    /// Fibonacci hashing (Knuth, volume 3, section 6.4): pages at equal distances, as
    /// those of files are, fall on places at about equal distances.
    #[inline]
    fn place(&self, object: Object, page: u64) -> usize {
        let key = page.wrapping_add(u64::from(object.0) << 40);
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (65 - self.bits);
        2 * hash as usize
    }
}
