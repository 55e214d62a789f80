//! The way of a request into the stripes (`raid5_make_request`, `drivers/md/raid5.c`, Linux 6.12).

use super::core::{AddedPart, Core, EventContext, PART_MAX, PageRequest, UpperRequest};
use super::plug::NONE;
use super::stripes::{PAGE, state};
use fullstroke_contract::{Completion, Extent, Operation, Request, RequestStatus};
use fullstroke_units::Time;

impl Core {
    /// Begins a read or a write.
    pub(super) fn submit(&mut self, request: Request, now: Time, event: &mut EventContext<'_>) {
        self.counts.asked(request.operation);
        let asked = self.asked.keep(UpperRequest {
            request,
            submitted: now,
            // One for this function, or a part that ends at once would end the request before the
            // next part begins.
            remaining: 1,
            status: RequestStatus::Done,
            last: Completion::default(),
        });
        let (begin, end) = (request.extent.start.0, request.extent.end().0);
        // With a member missing, a read past the stripes might have to be repeated for the lost
        // data of the same row.
        let bypasses = self.kernel.reads_bypass_stripes() && event.states.impaired().is_empty();
        if request.operation == Operation::Read && bypasses {
            let mut at = begin;
            while at < end {
                // `chunk_aligned_read` splits a read at the ends of chunks, so that each part goes
                // to one member.
                let piece = (self.map.chunk - at % self.map.chunk).min(end - at);
                self.bypass(asked, Extent::new(at, piece), event.out);
                at += piece;
            }
        } else {
            let mut at = begin;
            while at < end {
                let next = ((at + PART_MAX) / PAGE * PAGE).min(end);
                self.asked[asked].remaining += 1;
                self.waiting.push_back(AddedPart::new(asked, at, next));
                at = next;
            }
            self.add_waiting();
        }
        self.page_ended(asked, RequestStatus::Done);
    }

    /// Adds waiting parts of requests to stripes, in order, until a part must wait.
    pub(super) fn add_waiting(&mut self) {
        while let Some(mut adding) = self.waiting.pop_front() {
            if !self.add(&mut adding) {
                self.waiting.push_front(adding);
                return;
            }
            self.page_ended(adding.asked, RequestStatus::Done);
        }
    }

    /// Adds the pages of a part to stripes. Returns false if the part must wait.
    fn add(&mut self, adding: &mut AddedPart) -> bool {
        if !adding.started {
            adding.started = true;
            adding.from = self.first_page(adding);
        }
        let mut batch_last = NONE;
        let all = loop {
            let Some(page) = adding.next() else {
                break true;
            };
            adding.from = page;
            if !self.add_to_stripe(adding, page, &mut batch_last) {
                break false;
            }
        };
        // A stripe that is kept during a wait would keep delayed stripes from progress
        // (`raid5_make_request`).
        if batch_last != NONE {
            self.release(batch_last);
        }
        all
    }

    /// Returns the page with the lowest offset in its chunk, if a part crosses into the next data
    /// chunk of its row (`raid5_bio_lowest_chunk_sector`).
    fn first_page(&self, adding: &AddedPart) -> u64 {
        let begin = adding.begin / PAGE * PAGE;
        let place = self.map.place_of(begin);
        let rest = self.map.chunk - place.sector % self.map.chunk;
        if rest >= adding.end - adding.begin {
            return 0;
        }
        let shape = self.map.shape(place.row);
        let mut next = place.member as u64 + 1;
        while next == shape.p() || Some(next) == shape.q() {
            next += 1;
        }
        match next >= self.map.members {
            true => 0,
            false => rest / PAGE,
        }
    }

    /// Adds all pages of a part that are in one stripe (`make_stripe_request`). Returns false if
    /// the part must wait.
    fn add_to_stripe(&mut self, adding: &mut AddedPart, page: u64, batch_last: &mut u32) -> bool {
        let first = adding.begin / PAGE;
        let place = self.map.place_of((first + page) * PAGE);
        let number = place.sector / PAGE;
        if self.blocked {
            if !self.stripes.has_room(number, true) {
                return false;
            }
            self.blocked = false;
        }
        let Some(at) = self.stripes.get(number, false) else {
            self.blocked = true;
            return false;
        };
        let request = &self.asked[adding.asked].request;
        let (origin, hints) = (request.origin, request.hints);
        let writes = request.operation != Operation::Read;
        if !self.add_pages(at, adding, place.row, writes) {
            self.release(at);
            return false;
        }
        let stripe = self.stripes.stripe_mut(at);
        (stripe.origin, stripe.hints) = (origin, hints);
        if writes && self.can_batch(at) {
            self.add_to_batch(at, *batch_last);
            if *batch_last != NONE {
                self.release(*batch_last);
            }
            // The next stripe joins the batch behind this stripe, so this stripe stays in use until
            // then.
            self.stripes.stripe_mut(at).count += 1;
            *batch_last = at;
        }
        self.stripes.set(at, state::HANDLE);
        self.stripes.clear(at, state::DELAYED);
        let head = self.stripes.stripe(at).batch_head;
        // Both are `REQ_SYNC` for the kernel; direct writes get the flag in `dio_bio_write_op`
        // (`block/fops.c`).
        let waited_for =
            self.kernel.waited_writes_read_at_once() && (hints.synchronous || hints.direct);
        if (head == NONE || head == at) && waited_for {
            self.allow_prereads(at);
        }
        self.release(at);
        true
    }

    /// Calls `each` with every page of a part in one stripe: the page of the part, the member, and
    /// one bit for each sector of the page.
    fn each_page(
        &self,
        at: u32,
        adding: &AddedPart,
        row: u64,
        mut each: impl FnMut(u64, usize, u8),
    ) {
        let map = self.map;
        let within = self.stripes.stripe(at).number * PAGE % map.chunk;
        let shape = map.shape(row);
        let first = adding.begin / PAGE;
        for index in 0..map.data() {
            let sector = row * map.row_sectors() + index * map.chunk + within;
            let (from, to) = (sector.max(adding.begin), (sector + PAGE).min(adding.end));
            if from < to {
                let bits = (u8::MAX >> (PAGE - (to - from))) << (from - sector);
                each(
                    sector / PAGE - first,
                    shape.data_member(index) as usize,
                    bits,
                );
            }
        }
    }

    /// Adds the pages of a part to a stripe. Returns false, and adds nothing, if the stripe does not
    /// take the part now: another request for the same sectors waits, or the stripe is in a batch
    /// (`stripe_bio_overlaps`).
    fn add_pages(&mut self, at: u32, adding: &mut AddedPart, row: u64, writes: bool) -> bool {
        if self.stripes.stripe(at).batch_head != NONE {
            return false;
        }
        let asked = adding.asked;
        let mut pages = std::mem::take(&mut self.adding_pages);
        pages.clear();
        let mut overlaps = false;
        self.each_page(at, adding, row, |page, member, bits| {
            let of_member = self.stripes.page(at, member);
            let taken = if writes {
                of_member.covered
            } else {
                of_member.asked
            };
            overlaps |= taken & bits != 0;
            pages.push((page, member, bits));
        });
        for &(page, member, bits) in pages.iter().filter(|_| !overlaps) {
            debug_assert!(adding.is_left(page), "page {page} is added twice");
            adding.done(page);
            self.asked[asked].remaining += 1;
            let (page, links) = (self.stripes.page_mut(at, member), &mut self.links);
            let link = |next| links.keep(PageRequest { asked, next });
            match writes {
                true => page.add_write(bits, link),
                false => page.add_read(bits, link),
            }
        }
        self.adding_pages = pages;
        !overlaps
    }
}
