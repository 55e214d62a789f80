//! Writes of a stripe: which pages are read first, and when parity is computed
//! (`handle_stripe_dirtying`, `drivers/md/raid5.c`, Linux 6.12).

use super::ParityUpdates;
use super::core::{Core, EventContext};
use super::handle::StripeState;
use super::stripes::{PAGE, Parity, StripePage, page, state};
use crate::parity::RowShape;
use crate::plan::Method;

impl Core {
    /// Returns the roles of the members in the row of a stripe.
    pub(super) fn shape(&self, at: u32) -> RowShape {
        self.map
            .shape(self.stripes.stripe(at).number * PAGE / self.map.chunk)
    }

    /// True if no write of the array reads old data and old parity.
    pub(super) fn always_reconstructs(&self) -> bool {
        let cannot_modify = self.map.parities > 1 && !self.kernel.modifies_two_parities();
        self.updates == ParityUpdates::Reconstruct || cannot_modify
    }

    /// Plans the reads for the waiting writes of a stripe, or computes parity if no read is
    /// missing.
    pub(super) fn dirty(&mut self, at: u32, event: &EventContext<'_>, seen: &mut StripeState) {
        let (modify, mut reconstruct) = self.costs(at, event);
        let members = self.stripes.members as u32;
        self.stripes.set(at, state::HANDLE);
        let prefers = self.updates == ParityUpdates::Modify;
        if modify > 0 && (modify < reconstruct || (modify == reconstruct && prefers)) {
            self.read_first(at, event, seen, Method::ReadModifyWrite);
        }
        if reconstruct > 0 && (reconstruct < modify || (reconstruct == modify && !prefers)) {
            // A lost page counts as one from here on, as in the kernel.
            reconstruct = self.read_first(at, event, seen, Method::ReconstructWrite);
        }
        if reconstruct > members && modify > members && !self.stripes.has(at, state::PREREAD_ACTIVE)
        {
            self.stripes.set(at, state::DELAYED);
        }
        if seen.locked == 0 && (reconstruct == 0 || modify == 0) {
            self.compute_parity(at, event, reconstruct == 0);
        }
    }

    /// Returns the number of pages to read for a read-modify-write and for a reconstruct-write. A
    /// page that cannot be read counts as twice the number of members.
    fn costs(&self, at: u32, event: &EventContext<'_>) -> (u32, u32) {
        if self.always_reconstructs() {
            // Any two numbers with reconstruct-write the cheaper, as the kernel does for
            // `PARITY_DISABLE_RMW`. `read_first` counts the missing pages.
            return (2, 1);
        }
        let shape = self.shape(at);
        let (p, q) = (shape.p() as usize, shape.q().map(|q| q as usize));
        let lost = 2 * self.stripes.members as u32;
        // Almost always no member has failed, and a page that was not refused can be read.
        let all_alive = event.states.impaired().is_empty();
        let (mut modify, mut reconstruct) = (0, 0);
        for (member, page) in self.stripes.pages_of(at).iter().enumerate() {
            if !missing(page) {
                continue;
            }
            let is_parity = member == p || Some(member) == q;
            let is_readable = match all_alive {
                true => !page.is(page::REFUSED),
                false => self.in_sync(at, member, event),
            };
            let cost = if is_readable { 1 } else { lost };
            modify += cost * u32::from(read_to_modify(page, is_parity));
            reconstruct += cost * u32::from(read_to_reconstruct(page, is_parity));
        }
        (modify, reconstruct)
    }

    /// Plans the reads of a method, or delays the stripe if the stripe may not read yet. Returns
    /// the number of missing pages.
    fn read_first(
        &mut self,
        at: u32,
        event: &EventContext<'_>,
        seen: &mut StripeState,
        method: Method,
    ) -> u32 {
        let reads = match method {
            Method::ReadModifyWrite => read_to_modify,
            _ => read_to_reconstruct,
        };
        let (shape, mut count) = (self.shape(at), 0);
        let mut behind = self.stripes.members;
        while let Some(member) = self.stripes.last_page(at, behind, missing) {
            behind = member;
            let page = self.stripes.page(at, member);
            if !reads(page, is_parity(shape, member)) {
                continue;
            }
            let readable = self.in_sync(at, member, event);
            // `handle_stripe_dirtying` counts a lost page for a reconstruct-write only.
            if !readable && method == Method::ReadModifyWrite {
                continue;
            }
            count += 1;
            if readable && self.stripes.has(at, state::PREREAD_ACTIVE) {
                self.stripes.page_mut(at, member).flags |= page::LOCKED | page::WANT_READ;
                seen.locked += 1;
            } else {
                self.stripes.set(at, state::DELAYED);
            }
        }
        count
    }

    /// Takes the waiting writes of a stripe and of its batch, and computes parity
    /// (`schedule_reconstruction`).
    fn compute_parity(&mut self, head: u32, event: &EventContext<'_>, reconstructs: bool) {
        let mut locked = 0;
        let mut behind = self.stripes.members;
        let is_ready =
            |page: &StripePage| page.writes() && (reconstructs || page.is(page::UP_TO_DATE));
        while let Some(member) = self.stripes.last_page(head, behind, is_ready) {
            behind = member;
            locked += 1;
            let mut place = 0;
            while let Some(at) = self.of_batch(head, place) {
                self.stripes.page_mut(at, member).write_out();
                place += 1;
            }
            // The page has its new contents as soon as parity is computed.
            self.stripes.page_mut(head, member).flags |= page::LOCKED | page::UP_TO_DATE;
        }
        if locked == 0 {
            return;
        }
        self.note_method(head, event, locked, reconstructs);
        if reconstructs
            && locked + self.map.parities == self.map.members
            && !self.stripes.has(head, state::FULL_WRITE)
        {
            self.stripes.set(head, state::FULL_WRITE);
            self.full_writes += 1;
        }
        let shape = self.shape(head);
        for parity in [Some(shape.p()), shape.q()].into_iter().flatten() {
            self.stripes.page_mut(head, parity as usize).flags |= page::LOCKED | page::UP_TO_DATE;
        }
        self.stripes.stripe_mut(head).parity = Parity::Computed;
        self.stripes.set(head, state::HANDLE);
    }

    fn note_method(
        &mut self,
        head: u32,
        event: &EventContext<'_>,
        written: u64,
        reconstructs: bool,
    ) {
        let shape = self.shape(head);
        let lost = |member: u64| event.states.has_failed(member as usize);
        // Lost parity is not written, whatever the method computed.
        let method = if lost(shape.p()) && shape.q().is_none_or(lost) {
            Method::Unprotected
        } else if written == self.map.data() {
            Method::FullStripe
        } else if reconstructs {
            Method::ReconstructWrite
        } else {
            Method::ReadModifyWrite
        };
        let stripes = 1 + self.stripes.stripe(head).batch.len() as u64;
        self.counts.stripes_written(method, stripes);
    }
}

fn is_parity(shape: RowShape, member: usize) -> bool {
    shape.p() == member as u64 || shape.q() == Some(member as u64)
}

/// True if the page is neither in memory nor on its way there.
fn missing(page: &StripePage) -> bool {
    !page.is(page::LOCKED | page::UP_TO_DATE)
}

/// True if a read-modify-write needs the old contents of the page.
fn read_to_modify(page: &StripePage, is_parity: bool) -> bool {
    page.writes() || is_parity
}

/// True if a reconstruct-write needs the contents of the page.
fn read_to_reconstruct(page: &StripePage, is_parity: bool) -> bool {
    !page.overwritten() && !is_parity
}
