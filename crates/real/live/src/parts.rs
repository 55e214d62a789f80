//! Requests carried out in parts, so that no request delays all others.
//!
//! | request | in the layers | on the data |
//! |---|---|---|
//! | zeroes that must be allocated | writes of 4 MiB, two at a time, each behind earlier requests of others | with each write |
//! | a write that begins or ends within a sector | that sector is read, then all is written | at the end |
//! | trims, zeroes that may be holes | one discard | whole rows of 8 MiB, between checks of the sockets |

use crate::completed::CompletedRequest;
use crate::deferred::AwaitingData;
use crate::served_stack::ServedStack;
use crate::ticket::{
    RequestOutcome, Ticket, TicketParts, TicketStage, around, extent, is_unaligned, timed,
};
use fullstroke_contract::{Extent, Hints, Operation, Request, RequestId, RequestStatus};
use fullstroke_nbd::{CommandFlags, RequestCommand};
use fullstroke_store::bytes::StoreError;
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};
use std::collections::VecDeque;
use std::time::Instant;

/// Bytes zeroed by one write. The block layer of a current Linux zeroes as much by a few bios of
/// its greatest size (`__blkdev_issue_zero_pages`, 256 pages each).
const ZEROED_BYTES: u64 = 4 << 20;
/// Number of writes of one zeroing request in the layers at a time.
const ZEROING: u32 = 2;
/// Least number of sectors discarded at once.
const DISCARDED_SECTORS: u64 = (8 << 20) / SECTOR_BYTES;

impl ServedStack {
    /// Begins the request of the ticket at `place`.
    pub(crate) fn begin(&mut self, place: u32) {
        let Some(ticket) = self.tickets.get_mut(place) else {
            return;
        };
        let request = ticket.request;
        // A short zeroing is one write, as a disk would get it.
        let long = u64::from(request.length_bytes) > ZEROED_BYTES;
        let edges = edges(&request);
        if request.command == RequestCommand::WriteZeroes && allocates(&request) && long {
            ticket.parts = Some(Box::new(TicketParts::new(
                TicketStage::Zeroing {
                    next_bytes: request.offset_bytes,
                },
                0,
            )));
            (0..ZEROING).for_each(|_| self.zero_on(place));
        } else if edges.iter().any(Option::is_some) {
            let count = edges.iter().flatten().count() as u32;
            ticket.parts = Some(Box::new(TicketParts::new(TicketStage::Edges, count)));
            for extent in edges.into_iter().flatten() {
                self.issue(
                    place,
                    Request {
                        operation: Operation::Read,
                        extent,
                        ..Request::default()
                    },
                );
            }
        } else {
            self.issue(place, timed(&request));
        }
    }

    /// Handles the end of a part, or of a whole request. Returns the ticket if nothing more is to
    /// be done in the layers. If the client has left (`wanted` is false), parts not yet begun are
    /// withdrawn.
    pub(crate) fn claim(&mut self, ended: &CompletedRequest, wanted: bool) -> Option<Ticket> {
        let place = ended.finished.completion.id.0 as u32;
        let ticket = self.tickets.get_mut(place)?;
        let Some(parts) = &mut ticket.parts else {
            return self.release(place);
        };
        assert!(parts.under_way > 0, "a part ends that has not begun");
        parts.under_way -= 1;
        if ended.finished.completion.status != RequestStatus::Done || !wanted {
            // The first error counts. Parts in flight still end.
            parts.failure.get_or_insert(RequestOutcome::Lost);
        }
        let (request, going) = (ticket.request, parts.failure.is_none());
        match parts.stage {
            TicketStage::Edges if going && parts.under_way == 0 => {
                (parts.stage, parts.under_way) = (TicketStage::Last, 1);
                self.issue(place, timed(&request));
            }
            TicketStage::Zeroing { .. } if going => {
                self.zero_part(place, ended.finished.extent);
                self.zero_when_others_are_served(place);
            }
            _ => {}
        }
        let parts = self.tickets.get(place)?.parts.as_ref()?;
        let goes_on = self.deferred.holds(place);
        if parts.under_way == 0 && !goes_on {
            return self.release(place);
        }
        if let Some(recorder) = &mut self.watch.recorder {
            recorder.answered(ended, 0);
        }
        None
    }

    /// Issues the next part of a zeroing request as soon as all present requests of others have
    /// ended.
    fn zero_when_others_are_served(&mut self, place: u32) {
        let Some(ticket) = self.tickets.get(place) else {
            return;
        };
        let end = ticket.request.offset_bytes + u64::from(ticket.request.length_bytes);
        if ticket
            .zeroed_to()
            .is_none_or(|next_bytes| next_bytes >= end)
        {
            return;
        }
        let ahead = self
            .tickets
            .iter()
            // Parts of zeroing requests are not waited for. Two zeroing requests would otherwise
            // wait for each other.
            .filter(|ticket| ticket.zeroed_to().is_none())
            .count();
        if ahead == 0 {
            return self.zero_on(place);
        }
        let since = self.machine.now();
        self.deferred.hold(place, since, ahead);
    }

    /// Handles the end of the request of `ticket`: waiting parts continue.
    pub(crate) fn others_are_served(&mut self, ticket: &Ticket) {
        if ticket.zeroed_to().is_some() {
            return;
        }
        self.deferred.request_ended(ticket.arrived);
        while let Some(place) = self.deferred.take_ready() {
            self.zero_on(place);
        }
    }

    /// Issues the next part of a zeroing request, if there is one.
    fn zero_on(&mut self, place: u32) {
        let Some(Ticket {
            request,
            parts: Some(parts),
            ..
        }) = self.tickets.get_mut(place)
        else {
            return;
        };
        let (end, flags) = (
            request.offset_bytes + u64::from(request.length_bytes),
            request.flags,
        );
        let TicketStage::Zeroing { next_bytes } = &mut parts.stage else {
            return;
        };
        if parts.failure.is_some() || *next_bytes >= end {
            return;
        }
        // Parts begin where rows are likely to begin.
        let part_end = end.min((*next_bytes / ZEROED_BYTES + 1) * ZEROED_BYTES);
        let extent = around(*next_bytes, part_end - *next_bytes);
        *next_bytes = part_end;
        parts.under_way += 1;
        let force_unit_access = flags.contains(CommandFlags::FORCE_UNIT_ACCESS);
        let hints = Hints {
            force_unit_access,
            ..Hints::default()
        };
        self.issue(
            place,
            Request {
                operation: Operation::Write,
                extent,
                hints,
                ..Request::default()
            },
        );
    }

    /// Zeroes the data of a part whose write has ended.
    fn zero_part(&mut self, place: u32, part: Extent) {
        let Some(ticket) = self.tickets.get(place) else {
            return;
        };
        let (first, length) = (
            ticket.request.offset_bytes,
            u64::from(ticket.request.length_bytes),
        );
        let begin = bytes_to(part.start).max(first);
        let end = bytes_to(part.end()).min(first + length);
        let zeroed = self.zero_bytes(begin, end - begin, false);
        if let Err(error) = zeroed
            && let Some(Ticket {
                parts: Some(parts), ..
            }) = self.tickets.get_mut(place)
        {
            parts.failure = Some(RequestOutcome::of(Err(error)));
        }
    }

    /// Gives the layers a request for the ticket at `place`.
    fn issue(&mut self, place: u32, mut request: Request) {
        let Some(ticket) = self.tickets.get(place) else {
            return;
        };
        let now = self.machine.now();
        request.hints.process = ticket.client.number;
        request.id = RequestId(u64::from(place));
        if let Some(recorder) = &mut self.watch.recorder {
            recorder.arrived(now, &request);
        }
        self.machine.submit(now, request, &mut self.watch);
    }

    /// Writes data that may begin and end within sectors.
    pub(crate) fn write_bytes(&mut self, offset: u64, payload: &[u8]) -> Result<(), StoreError> {
        let extent = around(offset, payload.len() as u64);
        let begin = (offset % SECTOR_BYTES) as usize;
        let mut whole = vec![0; extent.sectors.bytes().0 as usize];
        let last = whole.len() - SECTOR_BYTES as usize;
        if begin > 0 {
            self.store
                .read(extent.start, &mut whole[..SECTOR_BYTES as usize])?;
        }
        // A write within one sector has one edge, and the sector is read once.
        if !(begin + payload.len()).is_multiple_of(SECTOR_BYTES as usize)
            && (last > 0 || begin == 0)
        {
            self.store
                .read(Lbn(extent.end().0 - 1), &mut whole[last..])?;
        }
        whole[begin..][..payload.len()].copy_from_slice(payload);
        self.store.write(extent.start, &whole)
    }

    /// Reads data that may begin and end within sectors.
    pub(crate) fn read_bytes(&mut self, offset: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let extent = around(offset, into.len() as u64);
        let mut whole = vec![0; extent.sectors.bytes().0 as usize];
        self.store.read(extent.start, &mut whole)?;
        into.copy_from_slice(&whole[(offset % SECTOR_BYTES) as usize..][..into.len()]);
        Ok(())
    }

    /// Zeroes a range that may begin and end within sectors.
    pub(crate) fn zero_bytes(
        &mut self,
        offset: u64,
        length: u64,
        may_punch: bool,
    ) -> Result<(), StoreError> {
        let within = within(offset, length);
        let zeroes = [0; SECTOR_BYTES as usize];
        if within.sectors == Sectors::ZERO {
            // The range may cross the boundary of two sectors.
            let first = length.min(SECTOR_BYTES - offset % SECTOR_BYTES);
            self.write_bytes(offset, &zeroes[..first as usize])?;
            let rest = length - first;
            return if rest > 0 {
                self.write_bytes(offset + first, &zeroes[..rest as usize])
            } else {
                Ok(())
            };
        }
        let (begin, end) = (bytes_to(within.start), bytes_to(within.end()));
        if begin > offset {
            self.write_bytes(offset, &zeroes[..(begin - offset) as usize])?;
        }
        self.store
            .write_zeroes(within.start, within.sectors, may_punch)?;
        if offset + length > end {
            self.write_bytes(end, &zeroes[..(offset + length - end) as usize])?;
        }
        Ok(())
    }

    /// Discards the whole sectors of a range.
    pub(crate) fn discard_bytes(&mut self, offset: u64, length: u64) -> Result<(), StoreError> {
        let within = within(offset, length);
        if within.sectors == Sectors::ZERO {
            return Ok(());
        }
        self.store.discard(within.start, within.sectors)
    }

    /// Returns true if a request is carried out on the data in small steps.
    pub(crate) fn takes_long(&self, ticket: &Ticket) -> bool {
        let request = &ticket.request;
        let gives_back = request.command == RequestCommand::Trim
            || (request.command == RequestCommand::WriteZeroes && !allocates(request));
        gives_back && u64::from(request.length_bytes) > 2 * DISCARDED_SECTORS * SECTOR_BYTES
    }

    /// Begins a request carried out in small steps.
    pub(crate) fn begin_slowly(&mut self, ended: CompletedRequest, ticket: Ticket) {
        let (offset, length) = (
            ticket.request.offset_bytes,
            u64::from(ticket.request.length_bytes),
        );
        let inner = within(offset, length);
        self.finish_within(around(offset, length));
        // The partial sectors at both ends are zeroed at once, because only whole sectors can be
        // given back.
        let mut failure = None;
        if ticket.request.command == RequestCommand::WriteZeroes {
            let (begin, end) = (bytes_to(inner.start), bytes_to(inner.end()));
            for (from, to) in [(offset, begin), (end, offset + length)] {
                if to > from
                    && let Err(error) = self.zero_bytes(from, to - from, true)
                {
                    failure = Some(RequestOutcome::of(Err(error)));
                }
            }
        }
        self.deferred.add_slow(AwaitingData {
            ended,
            ticket,
            left: VecDeque::from([inner]),
            failure,
        });
    }

    /// Continues the first slow request: at least one step, and not much longer than `until`.
    /// Returns the request once nothing is left. An unwanted request is not continued.
    pub(crate) fn go_on_slowly(
        &mut self,
        until: Instant,
        wanted: impl FnOnce(&Ticket) -> bool,
    ) -> Option<AwaitingData> {
        let mut slow = self.deferred.take_slow()?;
        // The client has left, so nobody will know if the rest was done.
        if !wanted(&slow.ticket) {
            return Some(slow);
        }
        while slow.failure.is_none()
            && let Some(extent) = slow.left.pop_front()
        {
            let step = self.step_sectors();
            let next = (extent.start.0 / step + 1) * step;
            let part = Extent::new(extent.start.0, next.min(extent.end().0) - extent.start.0);
            slow.left
                .push_front(Extent::new(part.end().0, extent.end().0 - part.end().0));
            slow.left.retain(|extent| extent.sectors > Sectors::ZERO);
            slow.failure = self
                .give_back(&slow.ticket.request, part)
                .err()
                .map(|error| RequestOutcome::of(Err(error)));
            if Instant::now() >= until {
                break;
            }
        }
        if slow.failure.is_some() || slow.left.is_empty() {
            return Some(slow);
        }
        self.deferred.put_back(slow);
        None
    }

    /// Finishes the parts of slow requests within an extent, before another request reads or
    /// changes the extent.
    pub(crate) fn finish_within(&mut self, extent: Extent) {
        if !self.deferred.has_slow() {
            return;
        }
        let step = self.step_sectors();
        // Steps are whole rows. A part of a row would be neither discarded nor left.
        let first = extent.start.0 / step * step;
        let end = extent.end().0.div_ceil(step) * step;
        let mut all = self.deferred.replace_slow(VecDeque::new());
        for slow in &mut all {
            for part in std::mem::take(&mut slow.left) {
                let (begin, until) = (part.start.0.max(first), part.end().0.min(end));
                if begin >= until {
                    slow.left.push_back(part);
                    continue;
                }
                let done = self.give_back(&slow.ticket.request, Extent::new(begin, until - begin));
                slow.failure = slow
                    .failure
                    .take()
                    .or(done.err().map(|error| RequestOutcome::of(Err(error))));
                let rests = [(part.start.0, begin), (until, part.end().0)];
                let rests = rests.into_iter().filter(|(from, to)| to > from);
                slow.left
                    .extend(rests.map(|(from, to)| Extent::new(from, to - from)));
            }
        }
        self.deferred.replace_slow(all);
    }

    fn give_back(
        &mut self,
        request: &fullstroke_nbd::NbdRequest,
        part: Extent,
    ) -> Result<(), StoreError> {
        match request.command {
            RequestCommand::Trim => self.store.discard(part.start, part.sectors),
            _ => self.store.write_zeroes(part.start, part.sectors, true),
        }
    }

    /// Returns the size of a step: whole rows, because a part of a row cannot be discarded.
    fn step_sectors(&self) -> u64 {
        DISCARDED_SECTORS.next_multiple_of(self.store.row_sectors())
    }
}

fn allocates(request: &fullstroke_nbd::NbdRequest) -> bool {
    request.flags.contains(CommandFlags::NO_HOLE)
}

/// Returns the first and the last sector of a write, if only a part of the sector is written.
fn edges(request: &fullstroke_nbd::NbdRequest) -> [Option<Extent>; 2] {
    let writes = match request.command {
        RequestCommand::Write => true,
        RequestCommand::WriteZeroes => allocates(request),
        _ => false,
    };
    if !writes || !is_unaligned(request) {
        return [None, None];
    }
    let all = extent(request);
    let end = request.offset_bytes + u64::from(request.length_bytes);
    let first = !request.offset_bytes.is_multiple_of(SECTOR_BYTES);
    // Both ends may lie in one sector, which is then the first edge.
    let last = !end.is_multiple_of(SECTOR_BYTES) && (all.sectors > Sectors(1) || !first);
    [
        first.then(|| Extent::new(all.start.0, 1)),
        last.then(|| Extent::new(all.end().0 - 1, 1)),
    ]
}

/// Returns the number of bytes before a sector.
fn bytes_to(lbn: Lbn) -> u64 {
    lbn.0 * SECTOR_BYTES
}

/// Returns the whole sectors within a range of bytes; may be empty.
fn within(offset: u64, length: u64) -> Extent {
    let first = offset.div_ceil(SECTOR_BYTES);
    Extent {
        start: Lbn(first),
        sectors: Sectors(((offset + length) / SECTOR_BYTES).saturating_sub(first)),
    }
}
