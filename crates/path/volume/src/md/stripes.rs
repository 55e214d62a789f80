//! The stripes in memory: pages of 4 KiB at one offset of all members, their flags and their lists.

use super::plug::NONE;
use fullstroke_contract::{Completion, Hints};
use std::collections::BTreeMap;

/// Sectors of a page of 4 KiB: `RAID5_STRIPE_SECTORS` (`drivers/md/raid5.h`).
pub(super) const PAGE: u64 = 8;

/// Number of parts of the cache, each with its own list of inactive stripes:
/// `NR_STRIPE_HASH_LOCKS` (`drivers/md/raid5.h`).
const PARTS: usize = 8;

/// Flags of one member's page in a stripe.
pub(super) mod page {
    /// An I/O of the page is planned or in flight, or the page waits for new parity.
    pub(crate) const LOCKED: u8 = 1;
    /// The page in memory has the contents of the member, or newer contents.
    pub(crate) const UP_TO_DATE: u8 = 2;
    /// The page is to be read from the member.
    pub(crate) const WANT_READ: u8 = 4;
    /// The page is to be written to the member.
    pub(crate) const WANT_WRITE: u8 = 8;
    /// The member has refused an I/O of the page.
    pub(crate) const REFUSED: u8 = 16;
}

/// Flags of a stripe.
pub(super) mod state {
    /// The stripe is to be handled.
    pub(crate) const HANDLE: u8 = 1;
    /// The stripe waits, because its write needs reads.
    pub(crate) const DELAYED: u8 = 2;
    /// The stripe may read for its write.
    pub(crate) const PREREAD_ACTIVE: u8 = 4;
    /// The stripe was not handled since it came into memory, and may join a batch.
    pub(crate) const BATCH_READY: u8 = 8;
    /// The stripe counts among the full writes under way.
    pub(crate) const FULL_WRITE: u8 = 16;
    /// An I/O of the stripe was issued.
    pub(crate) const IO_STARTED: u8 = 32;
}

/// Progress of the parity of a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parity {
    /// No new parity is computed.
    Idle,
    /// New parity has been computed; data and parity are to be written.
    Computed,
}

/// A page of one member.
#[derive(Clone, Copy, Debug)]
pub(super) struct StripePage {
    pub(super) flags: u8,
    /// One bit for each sector that a waiting write covers.
    pub(super) covered: u8,
    /// One bit for each sector that a waiting read covers.
    pub(super) asked: u8,
    /// Lists of requests: waiting reads, waiting writes, writes on their way to the member.
    pub(super) to_read: u32,
    pub(super) to_write: u32,
    pub(super) written: u32,
}

impl StripePage {
    const EMPTY: StripePage = StripePage {
        flags: 0,
        covered: 0,
        asked: 0,
        to_read: NONE,
        to_write: NONE,
        written: NONE,
    };

    pub(super) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
    /// True if waiting writes cover the whole page: `R5_OVERWRITE`.
    pub(super) fn overwritten(&self) -> bool {
        self.covered == u8::MAX
    }
    pub(super) fn reads(&self) -> bool {
        self.to_read != NONE
    }
    pub(super) fn writes(&self) -> bool {
        self.to_write != NONE
    }
}

/// A stripe.
#[derive(Debug)]
pub(super) struct Stripe {
    /// Page number on every member.
    pub(super) number: u64,
    pub(super) state: u8,
    pub(super) parity: Parity,
    /// Number of holders: requests that are added, I/Os in flight, the thread.
    pub(super) count: u32,
    /// The first stripe of the batch; [`NONE`] for a stripe without a batch.
    pub(super) batch_head: u32,
    /// For the head of a batch, the other stripes in order.
    pub(super) batch: Vec<u32>,
    /// Number of the workload's request that was added last, and its hints.
    pub(super) origin: u64,
    pub(super) hints: Hints,
    /// The member I/O that ended last.
    pub(super) last: Completion,
    /// Part of the cache.
    part: u8,
    list: Option<ListName>,
    before: u32,
    behind: u32,
}

/// The lists of stripes without a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListName {
    /// Stripes to handle: `handle_list`.
    Handle,
    /// Stripes that may read old data or parity now, which their writes need: `hold_list`.
    Hold,
    /// Stripes that wait until others have read: `delayed_list`.
    Delayed,
    /// Stripes without work, the least recently used first: `inactive_list`.
    Inactive(u8),
}

#[derive(Clone, Copy, Debug)]
struct StripeList {
    first: u32,
    last: u32,
}

/// All stripes in memory.
#[derive(Debug)]
pub(super) struct Stripes {
    pub(super) members: usize,
    all: Vec<Stripe>,
    pages: Vec<StripePage>,
    places: BTreeMap<u64, u32>,
    lists: [StripeList; 3 + PARTS],
    /// Number of stripes of each part that were used so far.
    used: [u32; PARTS],
    /// Number of stripes with work or with a holder.
    pub(super) active: u32,
    most: u32,
}

impl Stripes {
    pub(super) fn new(members: usize, most: u32) -> Stripes {
        const EMPTY: StripeList = StripeList {
            first: NONE,
            last: NONE,
        };
        Stripes {
            members,
            all: Vec::new(),
            pages: Vec::new(),
            places: BTreeMap::new(),
            lists: [EMPTY; 3 + PARTS],
            used: [0; PARTS],
            active: 0,
            most,
        }
    }

    pub(super) fn stripe(&self, at: u32) -> &Stripe {
        &self.all[at as usize]
    }
    pub(super) fn stripe_mut(&mut self, at: u32) -> &mut Stripe {
        &mut self.all[at as usize]
    }
    pub(super) fn page(&self, at: u32, member: usize) -> &StripePage {
        &self.pages[at as usize * self.members + member]
    }
    pub(super) fn page_mut(&mut self, at: u32, member: usize) -> &mut StripePage {
        &mut self.pages[at as usize * self.members + member]
    }
    /// Returns the pages of a stripe, by member.
    pub(super) fn pages_of(&self, at: u32) -> &[StripePage] {
        let first = at as usize * self.members;
        &self.pages[first..first + self.members]
    }
    pub(super) fn has(&self, at: u32, flag: u8) -> bool {
        self.all[at as usize].state & flag != 0
    }
    pub(super) fn set(&mut self, at: u32, flag: u8) {
        self.all[at as usize].state |= flag;
    }
    /// Clears a flag. Returns true if the flag was set.
    pub(super) fn clear(&mut self, at: u32, flag: u8) -> bool {
        let state = &mut self.all[at as usize].state;
        let was = *state & flag != 0;
        *state &= !flag;
        was
    }
    /// Returns the place of a stripe in memory.
    pub(super) fn find(&self, number: u64) -> Option<u32> {
        self.places.get(&number).copied()
    }

    /// Returns a stripe with one holder more. A new stripe replaces the least recently used stripe
    /// without work; `None` if all stripes of its part have work, or if `blocked` and the stripe is
    /// not in memory (`raid5_get_active_stripe`).
    pub(super) fn get(&mut self, number: u64, blocked: bool) -> Option<u32> {
        let at = match self.find(number) {
            Some(at) => {
                if self.stripe(at).count == 0 {
                    if !self.has(at, state::HANDLE) {
                        self.active += 1;
                    }
                    self.unlink(at);
                }
                at
            }
            None if blocked => return None,
            None => {
                let at = self.free(part_of(number))?;
                self.place(at, number);
                self.active += 1;
                at
            }
        };
        self.stripe_mut(at).count += 1;
        Some(at)
    }

    /// Returns an unlinked stripe of a part: a stripe that was never used, or the least recently
    /// used stripe without work.
    fn free(&mut self, part: u8) -> Option<u32> {
        // Stripe number i belongs to part i mod 8 (`grow_one_stripe`), so that the part has this
        // number of stripes.
        let of_part = (self.most + PARTS as u32 - 1 - u32::from(part)) / PARTS as u32;
        let used = &mut self.used[usize::from(part)];
        if *used < of_part {
            *used += 1;
            self.all.push(Stripe::new(part));
            let pages = self.pages.len() + self.members;
            self.pages.resize(pages, StripePage::EMPTY);
            return Some(self.all.len() as u32 - 1);
        }
        let at = self.first(ListName::Inactive(part))?;
        self.unlink(at);
        Some(at)
    }

    /// Gives a stripe a new number and forgets its contents (`init_stripe`).
    fn place(&mut self, at: u32, number: u64) {
        let old = self.stripe(at).number;
        if self.places.get(&old) == Some(&at) {
            self.places.remove(&old);
        }
        self.places.insert(number, at);
        let stripe = self.stripe_mut(at);
        debug_assert!(stripe.count == 0 && stripe.batch_head == NONE, "{stripe:?}");
        stripe.number = number;
        stripe.state = state::BATCH_READY;
        stripe.parity = Parity::Idle;
        stripe.last = Completion::default();
        let first = at as usize * self.members;
        for page in &mut self.pages[first..first + self.members] {
            debug_assert!(
                !page.reads() && !page.writes(),
                "a free stripe has requests"
            );
            *page = StripePage::EMPTY;
        }
    }

    /// True if a part has a stripe for a request that waits (`is_inactive_blocked`).
    pub(super) fn has_room(&self, number: u64, blocked: bool) -> bool {
        if self.find(number).is_some() {
            return true;
        }
        // Requests that wait begin again when a quarter of the stripes is free, so that they do not
        // begin with every single stripe.
        (self.first(ListName::Inactive(part_of(number))).is_some()
            || (self.all.len() as u32) < self.most)
            && (!blocked || self.active < self.most * 3 / 4)
    }

    fn list(&mut self, name: ListName) -> &mut StripeList {
        &mut self.lists[index(name)]
    }
    pub(super) fn first(&self, name: ListName) -> Option<u32> {
        let first = self.lists[index(name)].first;
        (first != NONE).then_some(first)
    }

    /// Puts a stripe at the end of a list.
    pub(super) fn append(&mut self, at: u32, name: ListName) {
        let name = match name {
            ListName::Inactive(_) => ListName::Inactive(self.stripe(at).part),
            name => name,
        };
        let last = self.list(name).last;
        let stripe = self.stripe_mut(at);
        debug_assert!(stripe.list.is_none(), "{stripe:?} is in a list");
        (stripe.list, stripe.before, stripe.behind) = (Some(name), last, NONE);
        match last {
            NONE => self.list(name).first = at,
            last => self.stripe_mut(last).behind = at,
        }
        self.list(name).last = at;
    }

    /// Takes a stripe out of its list.
    pub(super) fn unlink(&mut self, at: u32) {
        let stripe = self.stripe_mut(at);
        let Some(name) = stripe.list.take() else {
            return;
        };
        let (before, behind) = (stripe.before, stripe.behind);
        match before {
            NONE => self.list(name).first = behind,
            before => self.stripe_mut(before).behind = behind,
        }
        match behind {
            NONE => self.list(name).last = before,
            behind => self.stripe_mut(behind).before = before,
        }
    }

    /// Forgets the contents of stripes without work.
    pub(super) fn forget(&mut self, numbers: std::ops::Range<u64>) {
        for (_, &at) in self.places.range(numbers) {
            if matches!(self.all[at as usize].list, Some(ListName::Inactive(_))) {
                let first = at as usize * self.members;
                for page in &mut self.pages[first..first + self.members] {
                    page.flags &= !page::UP_TO_DATE;
                }
            }
        }
    }
}

#[cfg(test)]
impl Stripes {
    /// Creates the stripes of a part that were never used. They are older than the used ones.
    fn create_all(&mut self, part: u8) {
        let of_part = (self.most + PARTS as u32 - 1 - u32::from(part)) / PARTS as u32;
        let mut inactive = Vec::new();
        while let Some(at) = self.first(ListName::Inactive(part)) {
            self.unlink(at);
            inactive.push(at);
        }
        while self.used[usize::from(part)] < of_part {
            let at = self.free(part).unwrap();
            self.append(at, ListName::Inactive(part));
        }
        for at in inactive {
            self.append(at, ListName::Inactive(part));
        }
    }

    /// Drops stripes without work until `left` are in memory, as a change of `stripe_cache_size`
    /// does (`raid5_set_cache_size`, `drop_one_stripe`), and then allows the full number again.
    pub(super) fn shrink(&mut self, left: u32) {
        for part in 0..PARTS as u8 {
            self.create_all(part);
        }
        let mut dropped = Vec::new();
        for number in (left..self.most).rev() {
            let part = (number % PARTS as u32) as u8;
            if let Some(at) = self.first(ListName::Inactive(part)) {
                self.unlink(at);
                dropped.push(at);
            }
        }
        for at in dropped {
            let number = self.stripe(at).number;
            self.places.remove(&number);
            self.stripe_mut(at).number = u64::MAX;
            self.append(at, ListName::Inactive(0));
        }
    }
}

impl Stripe {
    fn new(part: u8) -> Stripe {
        Stripe {
            number: u64::MAX,
            state: 0,
            parity: Parity::Idle,
            count: 0,
            batch_head: NONE,
            batch: Vec::new(),
            origin: 0,
            hints: Hints::default(),
            last: Completion::default(),
            part,
            list: None,
            before: NONE,
            behind: NONE,
        }
    }
}

/// Returns the part of the cache of a stripe (`stripe_hash_locks_hash`).
fn part_of(number: u64) -> u8 {
    (number % PARTS as u64) as u8
}

fn index(name: ListName) -> usize {
    match name {
        ListName::Handle => 0,
        ListName::Hold => 1,
        ListName::Delayed => 2,
        ListName::Inactive(part) => 3 + usize::from(part),
    }
}
