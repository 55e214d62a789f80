//! Where look-ups have ended: a table that is asked before the tree. What it says is
//! a guess and is checked by whoever asks, so that nothing need be taken out of it.

use super::NONE;
use fullstroke_contract::Object;

/// Entries of a table for few stretches.
const LEAST_BITS: u32 = 6;

/// A slot for each hash of a page, or none: as many hashes as there are stretches,
/// within twice, so that its memory is in proportion to them.
#[derive(Clone, Debug)]
pub(super) struct Hints {
    slots: Vec<u32>,
    bits: u32,
}

impl Default for Hints {
    fn default() -> Hints {
        Hints { slots: vec![NONE; 1 << LEAST_BITS], bits: LEAST_BITS }
    }
}

impl Hints {
    /// Where the page may be.
    #[inline]
    pub fn get(&self, object: Object, page: u64) -> u32 {
        self.slots[self.place(object, page)]
    }

    /// Where the page is.
    #[inline]
    pub fn set(&mut self, object: Object, page: u64, slot: u32) {
        let place = self.place(object, page);
        self.slots[place] = slot;
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
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.bits)) as usize
    }
}
