//! The stripes in memory: pages of 4 KiB at one offset of all members, their flags and their lists.

use super::plug::NONE;
pub(super) use crate::members::PAGE;
use fullstroke_contract::{Completion, Hints};

/// Number of parts of the cache, each with its own list of inactive stripes:
/// `NR_STRIPE_HASH_LOCKS` (`drivers/md/raid5.h`).
const PARTS: usize = 8;

/// Largest number of stripes: the limit of `stripe_cache_size` (`raid5_set_cache_size`). A cache
/// that grows by itself has no limit in the kernel but memory.
const MOST: u32 = 32_768;

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
    /// Reads wait for the page.
    pub(crate) const READS: u8 = 32;
    /// Writes wait for the page.
    pub(crate) const WRITES: u8 = 64;
    /// Writes are on their way to the member.
    pub(crate) const WRITTEN: u8 = 128;
    /// The flags without those of the lists.
    pub(crate) const STATUS: u8 = LOCKED | UP_TO_DATE | WANT_READ | WANT_WRITE | REFUSED;
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
    /// The stripe is in a unit of the log.
    pub(crate) const LOGGED: u8 = 64;
    /// The stripe waits until its unit is durable: `STRIPE_LOG_TRAPPED`.
    pub(crate) const TRAPPED: u8 = 128;
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
    /// Lists of requests: waiting reads, waiting writes, writes on their way to the member. A flag
    /// says which lists have a request, so that a pass over the pages reads the flags only.
    to_read: u32,
    to_write: u32,
    written: u32,
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
        self.is(page::READS)
    }
    pub(super) fn writes(&self) -> bool {
        self.is(page::WRITES)
    }
    /// True if writes are on their way to the member.
    pub(super) fn is_written(&self) -> bool {
        self.is(page::WRITTEN)
    }

    /// Takes over the flags of another page, but for those of the lists.
    pub(super) fn take_over(&mut self, flags: u8) {
        self.flags = self.flags & !page::STATUS | flags & page::STATUS;
    }

    /// Puts a read before the waiting reads. `link` makes the link, from the list so far.
    pub(super) fn add_read(&mut self, bits: u8, link: impl FnOnce(u32) -> u32) {
        self.to_read = link(self.to_read);
        self.asked |= bits;
        self.flags |= page::READS;
    }
    /// Puts a write before the waiting writes. `link` makes the link, from the list so far.
    pub(super) fn add_write(&mut self, bits: u8, link: impl FnOnce(u32) -> u32) {
        self.to_write = link(self.to_write);
        self.covered |= bits;
        self.flags |= page::WRITES;
    }
    /// Takes the list of waiting reads.
    pub(super) fn take_reads(&mut self) -> u32 {
        self.asked = 0;
        self.flags &= !page::READS;
        std::mem::replace(&mut self.to_read, NONE)
    }
    /// Takes the list of waiting writes.
    pub(super) fn take_writes(&mut self) -> u32 {
        self.covered = 0;
        self.flags &= !page::WRITES;
        std::mem::replace(&mut self.to_write, NONE)
    }
    /// Takes the list of writes on their way to the member.
    pub(super) fn take_written(&mut self) -> u32 {
        self.flags &= !page::WRITTEN;
        std::mem::replace(&mut self.written, NONE)
    }
    /// Sends the waiting writes on their way to the member.
    pub(super) fn write_out(&mut self) {
        debug_assert_eq!(self.written, NONE, "a page is written twice");
        self.written = self.take_writes();
        if self.written != NONE {
            self.flags |= page::WRITTEN;
        }
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
    /// The next stripe with the same hash.
    next_in_chain: u32,
}

/// The lists of stripes without a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListName {
    /// Stripes to handle: `handle_list`.
    Handle,
    /// Stripes whose writes need old data or parity, and that may read now: `hold_list`.
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
    /// The first stripe of each chain of stripes with the same hash: `stripe_hashtbl`.
    chains: Vec<u32>,
    lists: [StripeList; 3 + PARTS],
    /// Number of stripes of each part that were used so far.
    used: [u32; PARTS],
    /// Number of stripes with work or with a holder.
    pub(super) active: u32,
    most: u32,
    /// True if a request has found no free stripe, so that the cache grows: `R5_ALLOC_MORE`.
    wants_more: bool,
    /// True if the cache has grown, and no I/O has ended since: `R5_DID_ALLOC`.
    has_grown: bool,
    /// Stripes that a rebuild holds.
    lent: Vec<u32>,
    /// Part of the stripe that a rebuild took last.
    next_lent: u8,
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
            // At least two chains, because a hash without bits is no shift.
            chains: vec![NONE; most.next_power_of_two().max(2) as usize],
            lists: [EMPTY; 3 + PARTS],
            used: [0; PARTS],
            active: 0,
            most,
            wants_more: false,
            has_grown: false,
            lent: Vec::new(),
            next_lent: 0,
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
    /// Returns the pages of a stripe, by member.
    pub(super) fn pages_of_mut(&mut self, at: u32) -> &mut [StripePage] {
        let first = at as usize * self.members;
        &mut self.pages[first..first + self.members]
    }
    /// Returns the last of the first `members` members whose page is `wanted`.
    #[inline]
    pub(super) fn last_page(
        &self,
        at: u32,
        members: usize,
        wanted: impl Fn(&StripePage) -> bool,
    ) -> Option<usize> {
        // From the last member down, as in the loops of raid5.c (`for (i = disks; i--; )`), because
        // the order of the reads follows from the order of the search.
        self.pages_of(at)[..members].iter().rposition(wanted)
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
        let mut at = self.chains[self.chain_of(number)];
        while at != NONE && self.all[at as usize].number != number {
            at = self.all[at as usize].next_in_chain;
        }
        (at != NONE).then_some(at)
    }

    /// Returns the chain of a stripe number. Neighbours are in different chains (Knuth's
    /// multiplicative hash).
    fn chain_of(&self, number: u64) -> usize {
        let bits = self.chains.len().trailing_zeros();
        (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - bits)) as usize
    }

    /// Takes a stripe out of its chain, if the stripe is in one.
    fn leave_chain(&mut self, at: u32) {
        let chain = self.chain_of(self.stripe(at).number);
        let behind = self.stripe(at).next_in_chain;
        if self.chains[chain] == at {
            self.chains[chain] = behind;
            return;
        }
        let mut before = self.chains[chain];
        while before != NONE {
            let next = self.stripe(before).next_in_chain;
            if next == at {
                self.stripe_mut(before).next_in_chain = behind;
                return;
            }
            before = next;
        }
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
                let Some(at) = self.free(part_of(number)) else {
                    self.lacks_stripes();
                    return None;
                };
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
        if self.has_unused(part) {
            self.used[usize::from(part)] += 1;
            self.all.push(Stripe::new(part));
            let pages = self.pages.len() + self.members;
            self.pages.resize(pages, StripePage::EMPTY);
            return Some(self.all.len() as u32 - 1);
        }
        let at = self.first(ListName::Inactive(part))?;
        self.unlink(at);
        Some(at)
    }

    /// True if a part has a stripe that was never used.
    fn has_unused(&self, part: u8) -> bool {
        // Stripe number i belongs to part i mod 8 (`grow_one_stripe`), so that the part has this
        // number of stripes.
        let of_part = (self.most + PARTS as u32 - 1 - u32::from(part)) / PARTS as u32;
        self.used[usize::from(part)] < of_part
    }

    /// Takes note that no stripe is free. The cache grows once until an I/O ends.
    pub(super) fn lacks_stripes(&mut self) {
        self.wants_more |= !self.has_grown;
    }

    /// Takes note that an I/O has ended, so that the cache may grow again.
    pub(super) fn note_ended(&mut self) {
        self.has_grown = false;
    }

    /// Adds a stripe if one was missing (`grow_one_stripe`, at the end of `raid5d`).
    pub(super) fn grow(&mut self) {
        if !std::mem::take(&mut self.wants_more) || self.most >= MOST {
            return;
        }
        self.has_grown = true;
        self.most += 1;
        if self.most as usize > self.chains.len() {
            self.widen_chains();
        }
    }

    /// Doubles the number of chains, so that the search for a stripe stays short.
    fn widen_chains(&mut self) {
        let chains = 2 * self.chains.len();
        self.chains.clear();
        self.chains.resize(chains, NONE);
        for at in 0..self.all.len() as u32 {
            let number = self.stripe(at).number;
            if number != u64::MAX {
                let chain = self.chain_of(number);
                self.stripe_mut(at).next_in_chain = std::mem::replace(&mut self.chains[chain], at);
            }
        }
    }

    /// True if a rebuild holds stripes.
    pub(super) fn has_lent(&self) -> bool {
        !self.lent.is_empty()
    }

    /// Takes stripes back from a rebuild until the rebuild holds at most `left`.
    pub(super) fn take_back(&mut self, left: u32) {
        while self.lent.len() as u32 > left {
            let Some(at) = self.lent.pop() else { return };
            self.stripe_mut(at).count = 0;
            self.active -= 1;
            self.append(at, ListName::Inactive(0));
        }
    }

    /// Gives stripes to a rebuild until the rebuild holds `wanted`, or all stripes have work. The
    /// least recently used stripes without work lose their contents.
    pub(super) fn lend(&mut self, wanted: u32) {
        // In turns, because a rebuild passes from page to page, and neighbours are in different
        // parts.
        let mut without = 0;
        while (self.lent.len() as u32) < wanted && without < PARTS {
            self.next_lent = (self.next_lent + 1) % PARTS as u8;
            let Some(at) = self.free(self.next_lent) else {
                without += 1;
                continue;
            };
            without = 0;
            // A stripe without a number has lost its contents before.
            if self.stripe(at).number != u64::MAX {
                self.place(at, u64::MAX);
                self.leave_chain(at);
            }
            self.stripe_mut(at).count = 1;
            self.active += 1;
            self.lent.push(at);
        }
    }

    /// Returns the number of stripes that a rebuild may take. If all stripes had work (`blocked`), the
    /// rebuild waits until a quarter is free (`is_inactive_blocked`).
    pub(super) fn room(&self, blocked: bool) -> u32 {
        match blocked && self.active >= self.most * 3 / 4 {
            true => 0,
            false => self.most - self.active,
        }
    }

    /// Gives a stripe a new number and forgets its contents (`init_stripe`).
    fn place(&mut self, at: u32, number: u64) {
        self.leave_chain(at);
        let chain = self.chain_of(number);
        let first = std::mem::replace(&mut self.chains[chain], at);
        let stripe = self.stripe_mut(at);
        debug_assert!(stripe.count == 0 && stripe.batch_head == NONE, "{stripe:?}");
        stripe.number = number;
        stripe.next_in_chain = first;
        // As in `init_stripe`: a stripe may join a batch until it is handled for the first time.
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
        let part = part_of(number);
        (self.first(ListName::Inactive(part)).is_some() || self.has_unused(part))
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
        let stripes = self.all.iter().zip(self.pages.chunks_mut(self.members));
        for (stripe, pages) in stripes {
            let is_inactive = matches!(stripe.list, Some(ListName::Inactive(_)));
            if is_inactive && numbers.contains(&stripe.number) {
                pages
                    .iter_mut()
                    .for_each(|page| page.flags &= !page::UP_TO_DATE);
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
            self.leave_chain(at);
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
            next_in_chain: NONE,
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
