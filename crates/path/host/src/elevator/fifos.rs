//! Requests in order of arrival, in linked lists. All links live in one vector: a request leaves
//! from the middle of a list in constant time, without allocation.

/// No slot.
const NONE: u32 = u32::MAX;

/// The links of any number of lists. A slot is in at most one list of a `Fifos`. For two orders of
/// the same slots, use two.
#[derive(Clone, Debug, Default)]
pub struct Fifos {
    links: Vec<FifoLink>,
}

/// One list: its two ends and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFifo {
    first: u32,
    last: u32,
    length: u32,
}

#[derive(Clone, Copy, Debug)]
struct FifoLink {
    before: u32,
    behind: u32,
}

impl Default for RequestFifo {
    fn default() -> RequestFifo {
        RequestFifo {
            first: NONE,
            last: NONE,
            length: 0,
        }
    }
}

impl RequestFifo {
    /// Returns the oldest slot.
    pub fn front(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// Returns the newest slot.
    pub fn back(&self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }

    /// Returns the number of slots in the list.
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// True if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl Fifos {
    /// Adds `slot` at the end. The slot must be in no list of this arena.
    pub fn push_back(&mut self, fifo: &mut RequestFifo, slot: u32) {
        let before = fifo.last;
        self.put(
            fifo,
            slot,
            FifoLink {
                before,
                behind: NONE,
            },
        );
    }

    /// Adds `slot` at the beginning. The slot must be in no list of this arena.
    pub fn push_front(&mut self, fifo: &mut RequestFifo, slot: u32) {
        let behind = fifo.first;
        self.put(
            fifo,
            slot,
            FifoLink {
                before: NONE,
                behind,
            },
        );
    }

    /// Removes and returns the oldest slot.
    pub fn pop_front(&mut self, fifo: &mut RequestFifo) -> Option<u32> {
        let slot = fifo.front()?;
        self.remove(fifo, slot);
        Some(slot)
    }

    /// Removes `slot` from its list, `fifo`.
    pub fn remove(&mut self, fifo: &mut RequestFifo, slot: u32) {
        let FifoLink { before, behind } = self.links[slot as usize];
        assert!(
            fifo.length > 0
                && (before != NONE || fifo.first == slot)
                && (behind != NONE || fifo.last == slot),
            "slot {slot} is not in the list that it is to leave"
        );
        self.join(fifo, before, behind);
        fifo.length -= 1;
    }

    /// Replaces `other` by `slot`. The slot must be in no list of this arena. After a merge the
    /// kept request so takes the place of an earlier arrival.
    pub fn replace(&mut self, fifo: &mut RequestFifo, other: u32, slot: u32) {
        let link = self.links[other as usize];
        self.remove(fifo, other);
        self.put(fifo, slot, link);
    }

    /// Returns the slot before `slot` in its list.
    pub fn before(&self, slot: u32) -> Option<u32> {
        let before = self.links[slot as usize].before;
        (before != NONE).then_some(before)
    }

    /// Returns the slot after `slot` in its list.
    pub fn behind(&self, slot: u32) -> Option<u32> {
        let behind = self.links[slot as usize].behind;
        (behind != NONE).then_some(behind)
    }

    /// Iterates over the slots of a list, in order.
    pub fn iter(&self, fifo: &RequestFifo) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(fifo.front(), |&slot| self.behind(slot))
    }

    fn put(&mut self, fifo: &mut RequestFifo, slot: u32, link: FifoLink) {
        if self.links.len() <= slot as usize {
            self.links.resize(
                slot as usize + 1,
                FifoLink {
                    before: NONE,
                    behind: NONE,
                },
            );
        }
        debug_assert!(
            link.before != slot && link.behind != slot,
            "slot {slot} is in the list already"
        );
        self.links[slot as usize] = link;
        self.join(fifo, link.before, slot);
        self.join(fifo, slot, link.behind);
        fifo.length += 1;
    }

    /// Links `first` and `second` as neighbours. Either may be no slot: then the other becomes an
    /// end.
    fn join(&mut self, fifo: &mut RequestFifo, first: u32, second: u32) {
        match first {
            NONE => fifo.first = second,
            slot => self.links[slot as usize].behind = second,
        }
        match second {
            NONE => fifo.last = first,
            slot => self.links[slot as usize].before = first,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lists_of_one_arena_behave_as_vectors(steps in prop::collection::vec((0u8..5, 0u32..20, 0usize..2), 1..200)) {
            let mut links = Fifos::default();
            let mut fifos = [RequestFifo::default(); 2];
            let mut model: [Vec<u32>; 2] = Default::default();
            for (step, slot, which) in steps {
                let held = model.iter().position(|list| list.contains(&slot));
                match (step, held) {
                    (0 | 1, None) => {
                        links.push_back(&mut fifos[which], slot);
                        model[which].push(slot);
                    }
                    (2, None) => {
                        links.push_front(&mut fifos[which], slot);
                        model[which].insert(0, slot);
                    }
                    (3, None) if !model[which].is_empty() => {
                        let index = slot as usize % model[which].len();
                        links.replace(&mut fifos[which], model[which][index], slot);
                        model[which][index] = slot;
                    }
                    (4, _) => {
                        let first = (!model[which].is_empty()).then(|| model[which].remove(0));
                        prop_assert_eq!(links.pop_front(&mut fifos[which]), first);
                    }
                    (_, Some(list)) => {
                        links.remove(&mut fifos[list], slot);
                        model[list].retain(|&other| other != slot);
                    }
                    _ => {}
                }
                for (fifo, list) in fifos.iter().zip(&model) {
                    prop_assert_eq!(&links.iter(fifo).collect::<Vec<_>>(), list);
                    prop_assert_eq!((fifo.len(), fifo.back()), (list.len(), list.last().copied()));
                }
            }
        }
    }
}
