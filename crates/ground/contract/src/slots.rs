//! Reusable slots for items in flight.

use std::ops::{Index, IndexMut};

/// A store of values by slot number. A slot becomes free when its value is taken out, and later
/// values reuse it. Therefore the store allocates only while it grows to its largest number of
/// values.
#[derive(Clone, Debug)]
pub struct Slots<T> {
    values: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots {
            values: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T: Copy> Slots<T> {
    /// Stores a value and returns its slot. The slot stays reserved until the value is taken out.
    #[inline]
    pub fn keep(&mut self, value: T) -> u32 {
        // The slot that became free last is reused first. The order is part of a run: slots are ids
        // below.
        match self.free.pop() {
            Some(slot) => {
                debug_assert!(
                    !self.free.contains(&slot),
                    "slot {slot} is free twice: its value was taken out twice"
                );
                self.values[slot as usize] = value;
                slot
            }
            None => {
                assert!(
                    self.values.len() < u32::MAX as usize,
                    "more values are kept than slots can be numbered"
                );
                self.values.push(value);
                self.values.len() as u32 - 1
            }
        }
    }

    /// Takes a value out and frees its slot.
    ///
    /// # Panics
    /// If nothing was ever kept in `slot`.
    #[inline]
    pub fn take(&mut self, slot: u32) -> T {
        assert!(
            self.free.len() < self.values.len(),
            "slot {slot} is taken out, but nothing is kept"
        );
        // The value stays in the slot. Values are `Copy`, so nothing has to be dropped.
        self.free.push(slot);
        self.values[slot as usize]
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }

    /// Returns true if no value is stored.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Index<u32> for Slots<T> {
    type Output = T;
    #[inline]
    fn index(&self, slot: u32) -> &T {
        &self.values[slot as usize]
    }
}

impl<T> IndexMut<u32> for Slots<T> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.values[slot as usize]
    }
}
