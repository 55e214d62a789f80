//! What md does with one stripe (`handle_stripe`, `drivers/md/raid5.c`, Linux 6.12).

use super::core::{Core, EventContext};
use super::plug::NONE;
use super::stripes::{PAGE, Parity, StripePage, page, state};
use fullstroke_contract::{Operation, RequestStatus};

/// Counts over the pages of a stripe: `stripe_head_state`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StripeState {
    pub(super) locked: u32,
    up_to_date: u32,
    to_read: u32,
    pub(super) to_write: u32,
    /// Pages that waiting writes cover in part.
    partial: u32,
    written: u32,
    /// True if reads wait for a page that is in memory.
    answerable: bool,
    /// Number of members whose page cannot be read, and the first two of them.
    pub(super) failed: u32,
    failed_members: [usize; 2],
}

/// Bits of a lane of [`LANES`], and its greatest value.
const LANE_BITS: u32 = 10;
const LANE: u64 = (1 << LANE_BITS) - 1;

/// For the flags of a page, one bit in the lane of each count. The counts of all pages of a stripe
/// are one sum.
const LANES: [u64; 256] = {
    let counted = [
        page::LOCKED,
        page::UP_TO_DATE,
        page::READS,
        page::WRITES,
        page::WRITTEN,
        page::REFUSED,
    ];
    let mut lanes = [0; 256];
    let mut flags = 0;
    while flags < lanes.len() {
        let mut lane = 0;
        while lane < counted.len() {
            if flags as u8 & counted[lane] != 0 {
                lanes[flags] |= 1 << (LANE_BITS * lane as u32);
            }
            lane += 1;
        }
        flags += 1;
    }
    lanes
};

impl Core {
    /// Handles a stripe: answers requests, plans reads, computes parity, writes.
    pub(super) fn handle(&mut self, at: u32, event: &mut EventContext<'_>) {
        self.stripes.clear(at, state::HANDLE);
        if self.clear_batch_ready(at) {
            return;
        }
        self.stripes.clear(at, state::DELAYED);
        if self.stripes.has(at, state::TRAPPED) {
            return self.plan_io(at, event);
        }
        let mut seen = self.analyse(at, event);
        if seen.answerable {
            self.answer_reads(at);
            seen = self.analyse(at, event);
        }
        // Without its journal the array takes no further write (`log_failed`, `handle_stripe`).
        let lacks_journal = self.lacks_journal() && !self.stripes.has(at, state::LOGGED);
        if u64::from(seen.failed) > self.map.parities || lacks_journal {
            self.give_up(at, event);
            seen = self.analyse(at, event);
        }
        self.answer_writes(at, event, &seen);
        self.logged_stripe_ended(at, event);
        if seen.to_read > 0 || seen.partial > 0 || (seen.to_write > 0 && seen.failed > 0) {
            self.fill(at, event, &mut seen);
        }
        let parity_is_new = self.stripes.stripe(at).parity == Parity::Computed;
        let ends_prereads = parity_is_new && self.stripes.has(at, state::PREREAD_ACTIVE);
        if parity_is_new {
            self.write_back(at);
            self.stripes.clear(at, state::PREREAD_ACTIVE);
        }
        if seen.to_write > 0 && self.stripes.stripe(at).parity == Parity::Idle {
            self.dirty(at, event, &mut seen);
        }
        self.plan_io(at, event);
        if ends_prereads {
            self.prereads -= 1;
        }
    }

    /// True if the page of a member can be read.
    pub(super) fn in_sync(&self, at: u32, member: usize, event: &EventContext<'_>) -> bool {
        let end = (self.stripes.stripe(at).number + 1) * PAGE;
        end <= event.states.readable(member) && !self.stripes.page(at, member).is(page::REFUSED)
    }

    /// Counts the pages of a stripe (`analyse_stripe`).
    fn analyse(&self, at: u32, event: &EventContext<'_>) -> StripeState {
        let mut seen = StripeState::default();
        let mut refused = 0;
        let pages = self.stripes.pages_of(at);
        for pages in pages.chunks(LANE as usize) {
            let mut sums = 0;
            for page in pages {
                sums += LANES[usize::from(page.flags)];
                seen.partial += u32::from(page.writes() && !page.overwritten());
                seen.answerable |= page.reads() && page.is(page::UP_TO_DATE);
            }
            let sum = |lane: u32| (sums >> (LANE_BITS * lane) & LANE) as u32;
            seen.locked += sum(0);
            seen.up_to_date += sum(1);
            seen.to_read += sum(2);
            seen.to_write += sum(3);
            seen.written += sum(4);
            refused += sum(5);
        }
        if refused > 0 {
            self.find_failed(at, event, &mut seen, (0..self.stripes.members).rev());
        } else {
            // Pages of all other members can be read.
            let impaired = event.states.impaired().iter().rev();
            self.find_failed(
                at,
                event,
                &mut seen,
                impaired.map(|&member| member as usize),
            );
        }
        seen
    }

    /// Finds those of the members, from the last one down, whose page cannot be read.
    #[inline]
    fn find_failed(
        &self,
        at: u32,
        event: &EventContext<'_>,
        seen: &mut StripeState,
        members: impl Iterator<Item = usize>,
    ) {
        for member in members {
            if self.in_sync(at, member, event) {
                continue;
            }
            if let Some(place) = seen.failed_members.get_mut(seen.failed as usize) {
                *place = member;
            }
            seen.failed += 1;
        }
    }

    /// Answers the reads of pages in memory.
    fn answer_reads(&mut self, at: u32) {
        for member in 0..self.stripes.members {
            let page = self.stripes.page_mut(at, member);
            if page.reads() && page.is(page::UP_TO_DATE) {
                let list = page.take_reads();
                let last = self.stripes.stripe(at).last;
                self.end_list(list, &last, RequestStatus::Done);
            }
        }
    }

    /// Fails all writes, and the reads of lost pages (`handle_failed_stripe`).
    fn give_up(&mut self, at: u32, event: &EventContext<'_>) {
        let last = self.stripes.stripe(at).last;
        let mut place = 0;
        while let Some(other) = self.of_batch(at, place) {
            for member in 0..self.stripes.members {
                let lost = !self.in_sync(other, member, event);
                let page = self.stripes.page_mut(other, member);
                let mut lists = [page.take_writes(), page.take_written(), NONE];
                if lost {
                    lists[2] = page.take_reads();
                }
                for list in lists {
                    self.end_list(list, &last, RequestStatus::Lost);
                }
            }
            place += 1;
        }
        self.stripes.stripe_mut(at).parity = Parity::Idle;
        for member in 0..self.stripes.members {
            let nothing_flies = self.stripes.stripe(at).count == 1;
            let page = self.stripes.page_mut(at, member);
            if nothing_flies {
                page.flags &= !page::LOCKED;
            }
        }
        self.end_full_write(at);
    }

    fn end_full_write(&mut self, at: u32) {
        if self.stripes.clear(at, state::FULL_WRITE) {
            self.full_writes -= 1;
            self.due |= self.full_writes == 0;
        }
        if self.stripes.stripe(at).batch_head == at {
            self.end_batch(at);
        }
    }

    /// Answers writes whose data and parity are on the members (`handle_stripe_clean_event`).
    fn answer_writes(&mut self, at: u32, event: &EventContext<'_>, seen: &StripeState) {
        if seen.written == 0 {
            return;
        }
        let shape = self.shape(at);
        let is_safe = |member: u64| {
            let page = self.stripes.page(at, member as usize);
            !self.in_sync(at, member as usize, event)
                || (!page.is(page::LOCKED) && page.is(page::UP_TO_DATE))
        };
        if !is_safe(shape.p()) || !shape.q().is_none_or(is_safe) {
            return;
        }
        let mut all = true;
        let mut behind = self.stripes.members;
        while let Some(member) = self.stripes.last_page(at, behind, StripePage::is_written) {
            behind = member;
            let page = self.stripes.page(at, member);
            if page.is(page::LOCKED) || !page.is(page::UP_TO_DATE) {
                all = false;
                continue;
            }
            let mut place = 0;
            while let Some(other) = self.of_batch(at, place) {
                let page = self.stripes.page_mut(other, member);
                let list = page.take_written();
                let last = self.stripes.stripe(at).last;
                self.end_list(list, &last, RequestStatus::Done);
                place += 1;
            }
        }
        if all {
            self.end_full_write(at);
        }
    }

    /// Plans reads of pages for requests, and computes lost pages (`handle_stripe_fill`).
    fn fill(&mut self, at: u32, event: &EventContext<'_>, seen: &mut StripeState) {
        if self.stripes.stripe(at).parity == Parity::Idle {
            for member in (0..self.stripes.members).rev() {
                if self.needs(at, member, event, seen) && self.fetch(at, member, event, seen) {
                    break;
                }
            }
        }
        self.stripes.set(at, state::HANDLE);
    }

    /// Reads or computes a page. Returns true if a page was computed (`fetch_block`).
    fn fetch(
        &mut self,
        at: u32,
        member: usize,
        event: &EventContext<'_>,
        seen: &mut StripeState,
    ) -> bool {
        let members = self.stripes.members as u32;
        let lost = &seen.failed_members[..(seen.failed as usize).min(2)];
        let shape = self.shape(at);
        // With Q, everything but P suffices to compute P.
        let is_p = shape.q().is_some() && shape.p() == member as u64;
        if seen.up_to_date == members - 1 && (is_p || lost.contains(&member)) {
            self.stripes.page_mut(at, member).flags |= page::UP_TO_DATE;
            seen.up_to_date += 1;
            return true;
        }
        if seen.up_to_date == members - 2 && seen.failed >= 2 {
            for other in 0..self.stripes.members {
                self.stripes.page_mut(at, other).flags |= page::UP_TO_DATE;
            }
            seen.up_to_date = members;
            return true;
        }
        if self.in_sync(at, member, event) {
            self.stripes.page_mut(at, member).flags |= page::LOCKED | page::WANT_READ;
            seen.locked += 1;
        }
        false
    }

    /// True if a page must be read or computed before the waiting requests can be served
    /// (`need_this_block`).
    fn needs(&self, at: u32, member: usize, event: &EventContext<'_>, seen: &StripeState) -> bool {
        let page = self.stripes.page(at, member);
        if page.is(page::LOCKED | page::UP_TO_DATE) {
            return false;
        }
        if page.reads() || (page.writes() && !page.overwritten()) {
            return true;
        }
        let lost = &seen.failed_members[..(seen.failed as usize).min(2)];
        // A read of a lost page needs every other page.
        if lost
            .iter()
            .any(|&other| self.stripes.page(at, other).reads())
        {
            return true;
        }
        if lost.is_empty() || seen.to_write == 0 {
            return false;
        }
        // Reads for a write come only after the delay. A lost page is computed, which needs no
        // delay.
        if self.in_sync(at, member, event) && !self.stripes.has(at, state::PREREAD_ACTIVE) {
            return false;
        }
        let shape = self.shape(at);
        let is_parity = |other: usize| shape.p() == other as u64 || shape.q() == Some(other as u64);
        let mut reconstructs = self.always_reconstructs();
        for &other in lost {
            let page = self.stripes.page(at, other);
            let unknown = !page.is(page::UP_TO_DATE);
            // A partial write of a lost page needs the old contents of the page.
            if page.writes() && unknown && !page.overwritten() {
                return true;
            }
            reconstructs |= seen.failed >= 2 && unknown && (page.writes() || is_parity(other));
        }
        // If the write must reconstruct and a page that the write does not cover is lost, all other
        // pages are needed.
        reconstructs
            && lost.iter().any(|&other| {
                let page = self.stripes.page(at, other);
                !is_parity(other) && !page.is(page::UP_TO_DATE) && !page.overwritten()
            })
    }

    /// Plans the writes of data and parity after the computation of parity.
    fn write_back(&mut self, at: u32) {
        let shape = self.shape(at);
        self.stripes.stripe_mut(at).parity = Parity::Idle;
        for (member, page) in self.stripes.pages_of_mut(at).iter_mut().enumerate() {
            let is_parity = shape.p() == member as u64 || shape.q() == Some(member as u64);
            if page.is(page::LOCKED) && (is_parity || page.is_written()) {
                page.flags |= page::WANT_WRITE;
            }
        }
    }

    /// Plans the member I/O of a stripe and of its batch, member by member (`ops_run_io`).
    fn plan_io(&mut self, head: u32, event: &EventContext<'_>) {
        if self.log_first(head, event) {
            return;
        }
        let mut behind = self.stripes.members;
        let is_wanted = |page: &StripePage| page.is(page::WANT_WRITE | page::WANT_READ);
        while let Some(member) = self.stripes.last_page(head, behind, is_wanted) {
            behind = member;
            let page = self.stripes.page_mut(head, member);
            let operation = if page.is(page::WANT_WRITE) {
                Operation::Write
            } else {
                Operation::Read
            };
            page.flags &= !(page::WANT_WRITE | page::WANT_READ);
            let mut place = 0;
            while let Some(at) = self.of_batch(head, place) {
                place += 1;
                if event.states.has_failed(member) {
                    self.stripes.page_mut(at, member).flags &= !page::LOCKED;
                    self.stripes.set(at, state::HANDLE);
                    continue;
                }
                self.stripes.set(at, state::IO_STARTED);
                self.stripes.stripe_mut(at).count += 1;
                if at != head {
                    self.stripes.stripe_mut(head).count += 1;
                }
                self.plan_page(at, member, operation);
            }
        }
    }
}
