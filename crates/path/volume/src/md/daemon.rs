//! md's thread: the order in which stripes are handled (`raid5d`, `drivers/md/raid5.c`, Linux
//! 6.12).

use super::core::{Core, EventContext};
use super::plug::NONE;
use super::stripes::{ListName, state};

/// Number of stripes that may read for a write at a time; other stripes wait: `IO_THRESHOLD`.
const PREREADS_MAX: u32 = 1;

/// Number of stripes that the thread takes at once: `MAX_STRIPE_BATCH`.
const TAKEN_MAX: usize = 8;

impl Core {
    /// True if a run of the thread would change nothing: no stripe waits to be handled, and no
    /// request waits for a stripe. Most member I/Os end like this, because the stripe waits for the
    /// end of others, or a read has bypassed the stripes.
    pub(super) fn rests(&self) -> bool {
        let lists = [ListName::Handle, ListName::Hold, ListName::Delayed];
        let has_no_stripe = |name| self.stripes.first(name).is_none();
        let has_nothing_to_send = !self.has_log_io() && !self.paused && self.released.is_empty();
        self.waiting.is_empty() && has_nothing_to_send && lists.into_iter().all(has_no_stripe)
    }

    /// Gives a rebuild `pages` stripes, of which `new` pages have just begun. Requests that wait take
    /// stripes before the rebuild takes more.
    pub(super) fn lend(&mut self, pages: u32, new: u32) {
        // Pages that begin take the stripes that nobody has used for longest, and not those of the
        // pages that ended.
        self.stripes.take_back(pages.saturating_sub(new));
        self.stripes.lend(pages);
        self.add_waiting();
    }

    /// Returns the number of stripes that a rebuild may take. Without any, a rebuild that does not make
    /// way waits like a request (`raid5_get_active_stripe`).
    pub(super) fn room_of_rebuild(&mut self, makes_way: bool) -> u32 {
        if !self.waiting.is_empty() {
            return 0;
        }
        let room = self.stripes.room(self.blocked);
        self.blocked |= room == 0 && !makes_way;
        room
    }

    /// Handles all stripes that can be handled, and issues the member I/O. An array with a bitmap
    /// pauses after each batch of stripes: new bits go to the members before the next batch, and no
    /// stripe is handled meanwhile (`raid5d` calls `md_bitmap_unplug` in each turn of its loop).
    pub(super) fn run(&mut self, event: &mut EventContext<'_>) {
        if !self.paused {
            self.plug.start();
        }
        // Stripes whose I/O ended while the thread wrote bits come after the stripes of these bits:
        // `raid5d` takes them before it writes bits, not behind.
        if !std::mem::take(&mut self.after_bits) {
            self.take_released();
        }
        loop {
            self.activate_delayed();
            let mut taken = [NONE; TAKEN_MAX];
            for slot in &mut taken {
                match self.next_stripe() {
                    Some(at) => *slot = at,
                    None => break,
                }
            }
            self.flush_journal(event);
            if taken[0] == NONE {
                self.send_logs(event);
                // A log of a member that has failed lets its stripes go on at once.
                match self.stripes.first(ListName::Handle) {
                    Some(_) => continue,
                    None => break,
                }
            }
            let taken = taken.into_iter().take_while(|&at| at != NONE);
            taken.clone().for_each(|at| self.handle(at, event));
            self.send_logs(event);
            taken.for_each(|at| self.release(at));
            // Processes that wait for stripes run on other processors. They add their pages as soon
            // as stripes are free, before the thread reads for a stripe that lacks just these
            // pages.
            self.add_waiting();
            if self.pauses() {
                break;
            }
        }
        self.paused = self.pauses();
        self.due = self.paused;
        if !self.paused && self.kernel.grows() {
            self.stripes.grow();
        }
        if !self.paused {
            self.unplug(event.out);
        }
    }

    /// True if the thread has more stripes, but looks for new bits before.
    fn pauses(&self) -> bool {
        let has_more = self.stripes.first(ListName::Handle).is_some() || !self.released.is_empty();
        self.looks_for_bits && has_more
    }

    /// Lets all waiting stripes read if few stripes read (`raid5_activate_delayed`).
    fn activate_delayed(&mut self) {
        let holds = self.kernel.holds_prereads();
        let is_busy = !holds && self.stripes.first(ListName::Handle).is_some();
        if self.prereads >= PREREADS_MAX || is_busy {
            return;
        }
        let list = match holds {
            true => ListName::Hold,
            false => ListName::Handle,
        };
        while let Some(at) = self.stripes.first(ListName::Delayed) {
            self.stripes.unlink(at);
            self.stripes.clear(at, state::DELAYED);
            self.allow_prereads(at);
            self.stripes.append(at, list);
        }
    }

    /// Allows a stripe to read for its write.
    pub(super) fn allow_prereads(&mut self, at: u32) {
        if !self.stripes.has(at, state::PREREAD_ACTIVE) {
            self.stripes.set(at, state::PREREAD_ACTIVE);
            self.prereads += 1;
        }
    }

    /// Ends the permission to read for a write.
    pub(super) fn end_prereads(&mut self, at: u32) {
        if self.stripes.clear(at, state::PREREAD_ACTIVE) {
            self.prereads -= 1;
            self.due |= self.prereads < PREREADS_MAX;
        }
    }

    /// Returns the next stripe to handle, with one holder (`__get_priority_stripe`). Full writes
    /// may pass stripes that read for their writes, up to the threshold.
    fn next_stripe(&mut self) -> Option<u32> {
        let hold = self.stripes.first(ListName::Hold);
        let less = |count: i64, threshold: i64| (count - threshold).max(0);
        let at = if let Some(at) = self.stripes.first(ListName::Handle) {
            match hold {
                None => self.bypass_count = 0,
                Some(_) if self.stripes.has(at, state::IO_STARTED) => {}
                Some(first) if first == self.last_hold => self.bypass_count += 1,
                Some(first) => {
                    self.last_hold = first;
                    self.bypass_count = less(self.bypass_count, self.bypass_threshold);
                }
            }
            at
        } else {
            let passed = self.bypass_threshold > 0 && self.bypass_count > self.bypass_threshold;
            let at = hold.filter(|_| passed || self.full_writes == 0)?;
            self.bypass_count = less(self.bypass_count, self.bypass_threshold);
            at
        };
        self.stripes.unlink(at);
        debug_assert_eq!(
            self.stripes.stripe(at).count,
            0,
            "a listed stripe has no holder"
        );
        self.stripes.stripe_mut(at).count = 1;
        Some(at)
    }

    /// Takes one holder from a stripe whose I/O has ended. The thread of an array with a bitmap notices
    /// in its next turn (`raid5_release_stripe`, `release_stripe_list`).
    pub(super) fn release_later(&mut self, at: u32) {
        match self.looks_for_bits {
            true => self.released.push(at),
            false => self.release(at),
        }
    }

    /// Takes the holders of all stripes whose I/O has ended.
    pub(super) fn take_released(&mut self) {
        for place in 0..self.released.len() {
            self.release(self.released[place]);
        }
        self.released.clear();
    }

    /// Takes one holder from a stripe. Without holders, the stripe goes to the list of its state
    /// (`do_release_stripe`).
    pub(super) fn release(&mut self, at: u32) {
        let stripe = self.stripes.stripe_mut(at);
        stripe.count -= 1;
        if stripe.count > 0 {
            return;
        }
        if self.stripes.has(at, state::HANDLE) {
            self.due = true;
            let waits = self.stripes.has(at, state::DELAYED)
                && !self.stripes.has(at, state::PREREAD_ACTIVE);
            if waits {
                return self.stripes.append(at, ListName::Delayed);
            }
            self.stripes.clear(at, state::DELAYED);
            return self.stripes.append(at, ListName::Handle);
        }
        self.end_prereads(at);
        self.stripes.clear(at, state::IO_STARTED);
        self.stripes.active -= 1;
        self.stripes.append(at, ListName::Inactive(0));
    }
}
