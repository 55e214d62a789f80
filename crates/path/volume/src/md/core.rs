//! The stripes, the requests on them, and md's thread.

use super::journal::Journal;
use super::log::WriteLog;
use super::plug::{NONE, Plug, PluggedIo};
use super::ppl::PartialParityLog;
use super::records::MdRecords;
use super::stripes::{PAGE, StripePage, Stripes, page, state};
use super::{MdKernel, ParityUpdates, Setup};
use crate::counts::VolumeCounts;
use crate::parity::RowMap;
use crate::states::MemberStates;
use fullstroke_contract::{
    Completion, Effects, Extent, Hints, Operation, Request, RequestId, RequestStatus, Slots,
};
use fullstroke_units::{Lbn, Sectors, Time};
use std::collections::VecDeque;

/// Largest part of a request that enters the stripes at once, in sectors: `RAID5_MAX_REQ_STRIPES`
/// stripes of 4 KiB (`raid5_set_limits`, `drivers/md/raid5.c`).
pub(super) const PART_MAX: u64 = 256 * PAGE;

/// Words of the set of pages of a part. An unaligned part of 256 pages touches 257.
const WORDS: usize = 5;

/// A request from above.
#[derive(Clone, Copy, Debug)]
pub(super) struct UpperRequest {
    pub(super) request: Request,
    pub(super) submitted: Time,
    /// Pages and member I/Os that the request waits for, and one for the submission.
    pub(super) remaining: u32,
    pub(super) status: RequestStatus,
    /// The member I/O that ended last.
    pub(super) last: Completion,
}

/// A request in the list of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageRequest {
    pub(super) asked: u32,
    pub(super) next: u32,
}

/// A page of a member I/O in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemberPage {
    /// The stripe, or the unit of the journal.
    pub(super) stripe: u32,
    pub(super) next: u32,
}

/// The purpose of a member I/O in flight.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flying {
    /// Pages of stripes: the first part of the list.
    Pages(Operation, u32),
    /// A read that bypasses the stripes: a part of the request's extent.
    Bypass { asked: u32, extent: Extent },
    /// A unit of the log of a member, or a flush behind the unit.
    Log(Operation, usize),
    /// Units of the journal: the first part of the list.
    Units(u32),
    /// A flush of the journal device behind units.
    JournalFlush,
    /// The flush or the write of a superblock behind which the journal reuses its blocks.
    Checkpoint(Operation),
}

/// A part of a request whose pages are added to stripes.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddedPart {
    pub(super) asked: u32,
    pub(super) begin: u64,
    pub(super) end: u64,
    /// Page of the part at which the search for the next page begins.
    pub(super) from: u64,
    /// One bit for each page that is still to be added.
    pub(super) left: [u64; WORDS],
    pub(super) started: bool,
}

impl AddedPart {
    pub(super) fn new(asked: u32, begin: u64, end: u64) -> AddedPart {
        let pages = end.div_ceil(PAGE) - begin / PAGE;
        // The first `pages` bits, word by word.
        let left = std::array::from_fn(|word| {
            let bits = pages.saturating_sub(64 * word as u64);
            if bits >= 64 {
                u64::MAX
            } else {
                (1 << bits) - 1
            }
        });
        AddedPart {
            asked,
            begin,
            end,
            from: 0,
            left,
            started: false,
        }
    }

    /// Returns the next page from `from` on, cyclically.
    pub(super) fn next(&self) -> Option<u64> {
        let first_in = |word: usize, left: u64| {
            (left != 0).then(|| 64 * word as u64 + u64::from(left.trailing_zeros()))
        };
        // The word of `from` is searched twice: from `from` on, and at the end as a whole.
        let begin = (self.from / 64) as usize;
        let behind = self.left.get(begin)? & (u64::MAX << (self.from % 64));
        first_in(begin, behind)
            .or_else(|| (begin + 1..WORDS).find_map(|word| first_in(word, self.left[word])))
            .or_else(|| (0..=begin).find_map(|word| first_in(word, self.left[word])))
    }

    pub(super) fn done(&mut self, page: u64) {
        self.left[(page / 64) as usize] &= !(1 << (page % 64));
    }

    pub(super) fn is_left(&self, page: u64) -> bool {
        self.left[(page / 64) as usize] >> (page % 64) & 1 == 1
    }
}

/// The stripes, the requests on them, and md's thread.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) map: RowMap,
    pub(super) capacity: Sectors,
    pub(super) updates: ParityUpdates,
    pub(super) bypass_threshold: i64,
    pub(super) largest: u64,
    pub(super) kernel: MdKernel,
    pub(super) stripes: Stripes,
    pub(super) asked: Slots<UpperRequest>,
    pub(super) links: Slots<PageRequest>,
    pub(super) parts: Slots<MemberPage>,
    flying: Slots<Flying>,
    pub(super) plug: Plug,
    /// Member I/O that the plug has sent, in order; empty between events.
    sent: Vec<PluggedIo>,
    /// Parts of requests that wait for stripes, in order.
    pub(super) waiting: VecDeque<AddedPart>,
    /// True if a request waits because all stripes have work: `R5_INACTIVE_BLOCKED`.
    pub(super) blocked: bool,
    /// Number of stripes that read old data or parity for a write: `preread_active_stripes`.
    pub(super) prereads: u32,
    /// Number of full writes under way: `pending_full_writes`.
    pub(super) full_writes: u32,
    pub(super) bypass_count: i64,
    pub(super) last_hold: u32,
    /// Requests that ended in the present event.
    pub(super) ended: VecDeque<u32>,
    /// Pages of a part in one stripe; kept to reuse the allocated memory.
    pub(super) adding_pages: Vec<(u64, usize, u8)>,
    /// True if the thread has work.
    pub(super) due: bool,
    /// True if the array has a bitmap: the thread looks for new bits after each batch of stripes.
    pub(super) looks_for_bits: bool,
    /// Holders of stripes whose I/O has ended, in order, for the next turn of the thread:
    /// `released_stripes`. Without a bitmap a turn follows at once, and the list stays empty.
    pub(super) released: Vec<u32>,
    /// True if new bits are on the members, and the thread has not handled a batch since.
    pub(super) after_bits: bool,
    /// True if the thread has paused between two batches with I/O in its plug.
    pub(super) paused: bool,
    pub(super) counts: VolumeCounts,
    /// The log of the array, if the array has one.
    pub(super) log: Option<WriteLog>,
}

/// The circumstances of an event.
pub(super) struct EventContext<'a> {
    pub(super) states: &'a MemberStates,
    pub(super) out: &'a mut Effects,
}

impl Core {
    pub(super) fn new(setup: &Setup, capacity: Sectors, elevators: bool) -> Core {
        let members = setup.map.members as usize;
        Core {
            map: setup.map,
            capacity,
            updates: setup.updates,
            bypass_threshold: i64::from(setup.bypass_threshold),
            largest: setup.largest,
            kernel: setup.kernel,
            stripes: Stripes::new(members, setup.stripes),
            asked: Slots::default(),
            links: Slots::default(),
            parts: Slots::default(),
            flying: Slots::default(),
            plug: Plug::new(elevators.then_some(setup.largest)),
            sent: Vec::new(),
            waiting: VecDeque::new(),
            blocked: false,
            prereads: 0,
            full_writes: 0,
            bypass_count: 0,
            last_hold: NONE,
            ended: VecDeque::new(),
            adding_pages: Vec::new(),
            due: false,
            looks_for_bits: false,
            released: Vec::new(),
            after_bits: false,
            paused: false,
            counts: VolumeCounts::default(),
            log: None,
        }
    }

    /// Gives the array the log of its records: a journal on the device behind the members, or a
    /// partial parity log.
    pub(super) fn add_log_of(&mut self, records: &MdRecords) {
        let members = self.stripes.members;
        self.log = match (records.journal, records.partial_parity) {
            (Some(device), _) => Some(WriteLog::Journal(Journal::new(device))),
            (None, true) => {
                let log = PartialParityLog::new(members, self.map.chunk);
                Some(WriteLog::PartialParity(log))
            }
            (None, false) => None,
        };
    }

    /// Returns the id of an I/O of the log of a member.
    pub(super) fn keep_log_io(&mut self, member: usize, operation: Operation) -> RequestId {
        self.keep_io(Flying::Log(operation, member))
    }

    /// Returns the id of an I/O.
    pub(super) fn keep_io(&mut self, flying: Flying) -> RequestId {
        own(self.flying.keep(flying))
    }

    /// Returns the number of requests from above in flight.
    pub(super) fn in_flight(&self) -> u32 {
        self.asked.len() as u32
    }

    /// Returns the request of a member I/O of a page as part of the plug.
    pub(super) fn plan_page(&mut self, at: u32, member: usize, operation: Operation) {
        let stripe = self.stripes.stripe(at);
        let (number, origin) = (stripe.number, stripe.origin);
        let row = number * PAGE / self.map.chunk;
        let hints = Hints {
            // A thread waits for the reads of a write.
            synchronous: stripe.hints.synchronous || operation == Operation::Read,
            stripe: Some(row),
            ..stripe.hints
        };
        let part = self.parts.keep(MemberPage {
            stripe: at,
            next: NONE,
        });
        self.plug_io(PluggedIo {
            member: member as u32,
            operation,
            start: number * PAGE,
            sectors: PAGE,
            parts: (part, part),
            origin,
            hints,
        });
    }

    /// Adds an I/O to the plug.
    pub(super) fn plug_io(&mut self, io: PluggedIo) {
        let (parts, sent) = (&mut self.parts, &mut self.sent);
        self.plug.add(
            io,
            self.largest,
            &mut |last, next| parts[last].next = next,
            &mut |io| sent.push(io),
        );
    }

    /// Issues everything in the plug.
    pub(super) fn unplug(&mut self, out: &mut Effects) {
        self.paused = false;
        let (parts, sent) = (&mut self.parts, &mut self.sent);
        let join = &mut |last, next| parts[last].next = next;
        self.plug.empty(join, &mut |io| sent.push(io));
        for io in self.sent.drain(..) {
            let first = self.parts[io.parts.0].stripe;
            // The journal is the device behind the members.
            let flying = if io.member as usize == self.stripes.members {
                self.counts.member_io(io.operation);
                Flying::Units(io.parts.0)
            } else {
                let pages = self.stripes.pages_of(first);
                // Reads of a stripe with waiting writes fetch old data or old parity. Reports
                // count them apart.
                if io.operation == Operation::Read && pages.iter().any(StripePage::writes) {
                    self.counts.read_for_write();
                } else {
                    self.counts.member_io(io.operation);
                }
                Flying::Pages(io.operation, io.parts.0)
            };
            let id = self.flying.keep(flying);
            let request = Request {
                id: own(id),
                origin: io.origin,
                operation: io.operation,
                extent: Extent::new(io.start, io.sectors),
                hints: io.hints,
                ..Request::default()
            };
            out.issue(io.member as usize, request);
        }
    }

    /// Issues a part of a read to a member, past the stripes.
    pub(super) fn bypass(&mut self, asked: u32, extent: Extent, out: &mut Effects) {
        let place = self.map.place_of(extent.start.0);
        let request = self.asked[asked].request;
        let id = self.flying.keep(Flying::Bypass { asked, extent });
        self.asked[asked].remaining += 1;
        self.counts.member_io(Operation::Read);
        let hints = Hints {
            stripe: Some(place.row),
            ..request.hints
        };
        out.issue(
            place.member,
            Request {
                id: own(id),
                origin: request.origin,
                operation: Operation::Read,
                extent: Extent {
                    start: Lbn(place.sector),
                    sectors: extent.sectors,
                },
                hints,
                ..Request::default()
            },
        );
    }

    /// Takes the completion of a member I/O. Returns the sectors of the I/O.
    pub(super) fn landed(&mut self, member: usize, completion: &Completion) -> Sectors {
        self.due = true;
        let mut sectors = Sectors::ZERO;
        match self.flying.take(completion.id.0 as u32) {
            Flying::Bypass { asked, extent } => {
                sectors = extent.sectors;
                self.asked[asked].note(completion);
                if completion.status == RequestStatus::Done {
                    self.page_ended(asked, RequestStatus::Done);
                } else {
                    // md reads the part again through the stripes, which compute lost data
                    // (`raid5_align_endio`, `retry_aligned_read`).
                    let (begin, end) = (extent.start.0, extent.end().0);
                    self.waiting.push_back(AddedPart::new(asked, begin, end));
                }
            }
            Flying::Log(Operation::Write, member) => self.unit_logged(member),
            Flying::Log(_, member) => self.unit_flushed(member),
            Flying::Units(mut next) => {
                let refused = completion.status != RequestStatus::Done;
                while next != NONE {
                    let part = self.parts.take(next);
                    if let Some(journal) = self.journal() {
                        journal.landed(part.stripe, refused);
                    }
                    next = part.next;
                }
                self.release_durable();
            }
            Flying::JournalFlush => self.release_flushed(),
            Flying::Checkpoint(operation) => self.checkpoint_landed(member, operation),
            Flying::Pages(operation, mut next) => {
                while next != NONE {
                    let part = self.parts.take(next);
                    self.page_landed(part.stripe, member, operation, completion);
                    sectors += Sectors(PAGE);
                    next = part.next;
                }
            }
        }
        sectors
    }

    /// Takes the completion of the I/O of one page (`raid5_end_read_request`,
    /// `raid5_end_write_request`).
    fn page_landed(
        &mut self,
        at: u32,
        member: usize,
        operation: Operation,
        completion: &Completion,
    ) {
        self.stripes.note_ended();
        let page = self.stripes.page_mut(at, member);
        page.flags &= !page::LOCKED;
        match (completion.status, operation) {
            (RequestStatus::Done, Operation::Read) => page.flags |= page::UP_TO_DATE,
            (RequestStatus::Done, _) => {}
            _ => page.flags |= page::REFUSED,
        }
        self.stripes.set(at, state::HANDLE);
        let stripe = self.stripes.stripe_mut(at);
        stripe.last = *completion;
        let head = stripe.batch_head;
        // The stripes of a batch share the parity work of the head, so the head waits for the I/O
        // of each.
        if head != NONE && head != at {
            self.stripes.stripe_mut(head).last = *completion;
            self.release_later(head);
        }
        self.release_later(at);
    }

    /// Ends a request's wait for a page or for a member I/O.
    pub(super) fn page_ended(&mut self, asked: u32, status: RequestStatus) {
        let request = &mut self.asked[asked];
        request.status = request.status.max(status);
        request.remaining -= 1;
        if request.remaining == 0 {
            self.ended.push_back(asked);
        }
    }

    /// Ends the waits of all requests in a list of a page of a stripe.
    pub(super) fn end_list(&mut self, mut head: u32, last: &Completion, status: RequestStatus) {
        while head != NONE {
            let PageRequest { asked, next } = self.links.take(head);
            self.asked[asked].note(last);
            self.page_ended(asked, status);
            head = next;
        }
    }

    /// Forgets the contents of the stripes of an extent of the volume.
    pub(super) fn forget(&mut self, extent: Extent) {
        let row = self.map.row_sectors();
        let (first, end) = (extent.start.0 / row, extent.end().0.div_ceil(row));
        let pages = self.map.chunk / PAGE;
        let rows = first.min(self.map.rows)..end.min(self.map.rows);
        self.stripes.forget(rows.start * pages..rows.end * pages);
    }
}

impl UpperRequest {
    /// Remembers a member I/O if no other ended later.
    fn note(&mut self, completion: &Completion) {
        if completion.finished >= self.last.finished {
            self.last = *completion;
        }
    }
}

/// Bit of the ids of this module's member I/O. The volume's own ids do not have the bit.
const OWN: u64 = 1 << 63;

fn own(id: u32) -> RequestId {
    RequestId(OWN | u64::from(id))
}

/// True for the id of a member I/O of this module.
pub(super) fn is_own(id: RequestId) -> bool {
    id.0 & OWN != 0
}
