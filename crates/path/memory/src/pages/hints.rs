//! Results of earlier look-ups: a table read before the tree. An entry is a guess for the caller to
//! check. So no entry need ever be removed.

use fullstroke_contract::Object;

/// No stretch, or no page.
pub const NONE: u32 = u32::MAX;

/// Size of the smallest table, as a power of two.
const LEAST_BITS: u32 = 6;

/// Two slots for each hash of a page; a slot may be empty. The number of hashes is at least that of
/// the stretches and at most about twice that, so the memory is in proportion. A table with one
/// slot and twice as many hashes would lose a fifth of the pages to collisions. With two slots the
/// loss is one in thirty.
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
    /// Returns the two candidates for a page: the latest entry of its hash, and the one before.
    #[inline]
    pub fn get(&self, object: Object, page: u64) -> [u32; 2] {
        let place = self.place(object, page);
        [self.slots[place], self.slots[place + 1]]
    }

    /// Records the slot of a page.
    #[inline]
    pub fn set(&mut self, object: Object, page: u64, slot: u32) {
        let place = self.place(object, page);
        self.slots[place + 1] = std::mem::replace(&mut self.slots[place], slot);
    }

    /// Grows a table too small for this number of stretches. The new table is empty.
    pub fn fit(&mut self, stretches: usize) {
        if 2 * stretches > self.slots.len() {
            self.bits += 1;
            self.slots.clear();
            self.slots.resize(1 << self.bits, NONE);
        }
    }

    /// Fibonacci hashing (Knuth, volume 3, section 6.4): pages at equal distances, as in files,
    /// fall on places at about equal distances.
    #[inline]
    fn place(&self, object: Object, page: u64) -> usize {
        let key = page.wrapping_add(u64::from(object.0) << 40);
        // Multiplicative hashing by 2^64 divided by the golden ratio (Knuth, volume 3, section
        // 6.4).
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (65 - self.bits);
        2 * hash as usize
    }
}
