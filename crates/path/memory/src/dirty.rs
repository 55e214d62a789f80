//! Objects with dirty pages, in the order of write-back (the kernel's inodes in `s_dirty`, `s_io`,
//! or today's `b_dirty`, `b_io`, `b_more_io`).

use fullstroke_contract::{Object, Slots};
use fullstroke_units::Time;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

const NONE: u32 = u32::MAX;

/// One of the three lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirtyList {
    /// Dirty, oldest first.
    Dirty,
    /// Objects to write in this round.
    Io,
    /// Objects partly written in this round.
    More,
}

#[derive(Clone, Copy, Debug)]
struct DirtyEntry {
    object: Object,
    /// Time when the object became dirty (`dirtied_when`).
    dirtied: Time,
    queue: DirtyList,
    older: u32,
    newer: u32,
}

#[derive(Clone, Copy, Debug)]
struct ListEnds {
    oldest: u32,
    newest: u32,
}

/// The objects with dirty pages, each in one list.
#[derive(Clone, Debug)]
pub(crate) struct DirtyObjects {
    /// Slot by object number. Only for look-ups: iterations use the lists, because the order of a
    /// hash map is not repeatable.
    slots: HashMap<u32, u32>,
    entered: Slots<DirtyEntry>,
    queues: [ListEnds; 3],
    /// Next page of an object's write-back (`writeback_index`). Like the kernel's inode, the entry
    /// stays while the object is clean.
    cursors: HashMap<u32, u64>,
}

impl Default for DirtyObjects {
    fn default() -> DirtyObjects {
        let empty = ListEnds {
            oldest: NONE,
            newest: NONE,
        };
        DirtyObjects {
            slots: HashMap::new(),
            entered: Slots::default(),
            queues: [empty; 3],
            cursors: HashMap::new(),
        }
    }
}

impl DirtyObjects {
    /// Enters an object with dirty pages. A new object is dirty since `now`.
    pub fn enter(&mut self, object: Object, now: Time) {
        let Entry::Vacant(place) = self.slots.entry(object.0) else {
            return;
        };
        let slot = self.entered.keep(DirtyEntry {
            object,
            dirtied: now,
            queue: DirtyList::Dirty,
            older: NONE,
            newer: NONE,
        });
        place.insert(slot);
        self.link(slot, DirtyList::Dirty, true);
    }

    /// Removes an object without dirty pages.
    pub fn leave(&mut self, object: Object) {
        if let Some(slot) = self.slots.remove(&object.0) {
            self.unlink(slot);
            self.entered.take(slot);
        }
    }

    /// Removes a deleted object.
    pub fn forget(&mut self, object: Object) {
        self.leave(object);
        self.cursors.remove(&object.0);
    }

    /// Returns the next page of an object's write-back.
    pub fn cursor(&self, object: Object) -> u64 {
        self.cursors.get(&object.0).copied().unwrap_or(0)
    }

    pub fn set_cursor(&mut self, object: Object, page: u64) {
        self.cursors.insert(object.0, page);
    }

    /// Returns the oldest object of a list, and the start of its dirty time.
    pub fn oldest(&self, queue: DirtyList) -> Option<(Object, Time)> {
        match self.queues[queue as usize].oldest {
            NONE => None,
            slot => Some((self.entered[slot].object, self.entered[slot].dirtied)),
        }
    }

    /// True if all lists are empty.
    pub fn are_none(&self) -> bool {
        self.slots.is_empty()
    }

    /// True if the list is empty.
    pub fn is_empty(&self, queue: DirtyList) -> bool {
        self.queues[queue as usize].oldest == NONE
    }

    /// Moves an object to the newer end of a list. With `dirtied`, the object counts as dirty since
    /// then.
    pub fn requeue(&mut self, object: Object, queue: DirtyList, dirtied: Option<Time>) {
        self.place(object, queue, dirtied, true);
    }

    /// Moves an object to the newer end of the dirty list. If the newest object there became dirty
    /// later, the object counts as dirtied now (today's `redirty_tail`).
    pub fn redirty(&mut self, object: Object, now: Time) {
        let Some(&slot) = self.slots.get(&object.0) else {
            return;
        };
        let newest = self.queues[DirtyList::Dirty as usize].newest;
        let later = newest != NONE && self.entered[newest].dirtied > self.entered[slot].dirtied;
        // The list must stay sorted by time: `splice` stops at the first object that is too young.
        self.requeue(object, DirtyList::Dirty, later.then_some(now));
    }

    /// Moves an object to the older end of a list.
    pub fn requeue_oldest(&mut self, object: Object, queue: DirtyList) {
        self.place(object, queue, None, false);
    }

    fn place(&mut self, object: Object, queue: DirtyList, dirtied: Option<Time>, newest: bool) {
        let Some(&slot) = self.slots.get(&object.0) else {
            return;
        };
        self.unlink(slot);
        if let Some(dirtied) = dirtied {
            self.entered[slot].dirtied = dirtied;
        }
        self.link(slot, queue, newest);
    }

    /// Moves the objects of one list to the newer end of another, if they became dirty at `until`
    /// or before.
    pub fn splice(&mut self, from: DirtyList, to: DirtyList, until: Time) {
        while let Some((object, dirtied)) = self.oldest(from)
            && dirtied <= until
        {
            self.requeue(object, to, None);
        }
    }

    fn link(&mut self, slot: u32, queue: DirtyList, newest: bool) {
        let ends = &mut self.queues[queue as usize];
        let (older, newer) = if newest {
            (ends.newest, NONE)
        } else {
            (NONE, ends.oldest)
        };
        if newest {
            ends.newest = slot
        } else {
            ends.oldest = slot
        }
        if older == NONE {
            ends.oldest = slot;
        } else {
            self.entered[older].newer = slot;
        }
        if newer == NONE {
            self.queues[queue as usize].newest = slot;
        } else {
            self.entered[newer].older = slot;
        }
        let entered = &mut self.entered[slot];
        (entered.queue, entered.older, entered.newer) = (queue, older, newer);
    }

    fn unlink(&mut self, slot: u32) {
        let DirtyEntry {
            queue,
            older,
            newer,
            ..
        } = self.entered[slot];
        let ends = &mut self.queues[queue as usize];
        if older == NONE {
            ends.oldest = newer
        } else {
            self.entered[older].newer = newer
        }
        let ends = &mut self.queues[queue as usize];
        if newer == NONE {
            ends.newest = older
        } else {
            self.entered[newer].older = older
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn the_lists_are_lists(steps in prop::collection::vec((0u8..6, 0u32..8, 0u8..3), 1..200)) {
            let mut objects = DirtyObjects::default();
            let mut model: [VecDeque<u32>; 3] = Default::default();
            let queue = |number: u8| [DirtyList::Dirty, DirtyList::Io, DirtyList::More][usize::from(number)];
            for (step, object, to) in steps {
                let held = model.iter().any(|list| list.contains(&object));
                let place = usize::from(to);
                match (step, held) {
                    (0 | 1, false) => {
                        objects.enter(Object(object), Time::ZERO);
                        model[0].push_back(object);
                    }
                    (2, true) => {
                        objects.leave(Object(object));
                        model.iter_mut().for_each(|list| list.retain(|&other| other != object));
                    }
                    (3 | 4, true) => {
                        model.iter_mut().for_each(|list| list.retain(|&other| other != object));
                        if step == 3 {
                            objects.requeue(Object(object), queue(to), None);
                            model[place].push_back(object);
                        } else {
                            objects.requeue_oldest(Object(object), queue(to));
                            model[place].push_front(object);
                        }
                    }
                    (5, _) if to > 0 => {
                        objects.splice(DirtyList::Dirty, queue(to), Time::ZERO);
                        let moved = std::mem::take(&mut model[0]);
                        model[place].extend(moved);
                    }
                    _ => {}
                }
                for number in 0..3 {
                    let oldest = objects.oldest(queue(number)).map(|(object, _)| object.0);
                    prop_assert_eq!(oldest, model[usize::from(number)].front().copied());
                }
            }
        }
    }
}
