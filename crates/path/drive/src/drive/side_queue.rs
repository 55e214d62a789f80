//! Answers beside the arm, and the arm's preference for the current stream. The drive answers reads
//! of buffered data, even if the data arrived in the buffer while the read waited. The drive also
//! takes writes for which the buffer has room.
//!
//! Only drives with `buffered_first` work like this. Other drives look into the buffer when a
//! request comes, and when the arm takes up the request.

use super::{Drive, LastRequest, RequestInService};
use crate::buffer::{DriveBuffer, Lookup};
use crate::electronics::PreviousKind;
use crate::queue::{NextRequest, WaitingRequest};
use fullstroke_contract::{Extent, Operation};
use fullstroke_units::{Cylinder, Time};
use std::collections::VecDeque;

/// Waiting requests of such a drive, besides the requests under the discipline.
pub(super) struct SideQueue {
    /// Reads waiting for the arm, by first sector.
    reads: Vec<SideRead>,
    /// Writes without room in the buffer, in order of arrival.
    writers: VecDeque<u32>,
    /// Time when the arm may leave the current stream.
    held: Time,
    /// Time when a waiting request may go on although no request ends then.
    pub(super) look_again: Time,
}

/// A read waiting for the arm.
#[derive(Clone, Copy)]
struct SideRead {
    start: u64,
    end: u64,
    slot: u32,
}

impl SideQueue {
    pub(super) fn new() -> SideQueue {
        let (reads, writers) = (Vec::new(), VecDeque::new());
        SideQueue {
            reads,
            writers,
            held: Time::ZERO,
            look_again: Time::NEVER,
        }
    }

    /// Number of writes waiting for room.
    pub(super) fn writers(&self) -> usize {
        self.writers.len()
    }

    fn add(&mut self, extent: Extent, slot: u32) {
        let (start, end) = (extent.start.0, extent.end().0);
        let at = self.reads.partition_point(|other| other.start <= start);
        debug_assert!(
            self.reads.iter().all(|other| other.slot != slot),
            "the read of slot {slot} waits for the arm already"
        );
        self.reads.insert(at, SideRead { start, end, slot });
    }

    /// Counts the reads from number `first` on that continue each other within reach. The first
    /// read must continue `end`.
    fn in_a_row(&self, first: usize, end: u64, buffer: &DriveBuffer) -> usize {
        let mut reached = end;
        let goes_on = |read: &&SideRead| {
            let goes_on = read.start <= buffer.reaches(reached);
            reached = reached.max(read.end);
            goes_on
        };
        self.reads[first..].iter().take_while(goes_on).count()
    }

    /// Takes a write without room out. Returns false if there is no such write.
    pub(super) fn remove_writer(&mut self, slot: u32) -> bool {
        let at = self.writers.iter().position(|&other| other == slot);
        at.and_then(|at| self.writers.remove(at)).is_some()
    }

    pub(super) fn remove(&mut self, start: u64, slot: u32) {
        let from = self.reads.partition_point(|other| other.start < start);
        if let Some(at) = self.reads[from..]
            .iter()
            .position(|other| other.slot == slot)
        {
            self.reads.remove(from + at);
        }
    }
}

impl Drive {
    /// Takes in a request at `now`.
    pub(super) fn enter(&mut self, slot: u32, now: Time) {
        self.let_buffer_work(now);
        let request = self.slots[slot].request;
        if request.operation == Operation::Write && self.is_cached(slot) {
            let Some(beside) = &mut self.beside else {
                return;
            };
            beside.writers.push_back(slot);
            return self.let_writers_in(now);
        }
        let lookup = match request.operation {
            Operation::Read => self.look_up(request.extent, now),
            _ => Lookup::Miss,
        };
        match lookup {
            Lookup::Hit(segment) => self.pass_read(slot, segment, now),
            _ => self.wait_for_arm(slot, now),
        }
    }

    /// Lets waiting requests go on at `now`, and computes the next time to look again.
    pub(super) fn advance_queue(&mut self, now: Time) {
        self.let_buffer_work(now);
        // Waiting writers come first, because they need the room that has just become free.
        if self.has_writers() {
            self.let_writers_in(now);
        }
        if self.service.is_none() && !self.begin_of_all(now) {
            self.begin_side_request(now);
        }
        let idle = self.service.is_none() && !self.queue.is_empty();
        let (Some(beside), Some(buffer)) = (&mut self.beside, &self.buffer) else {
            return;
        };
        let room = if beside.writers.is_empty() {
            Time::NEVER
        } else {
            buffer.on_medium()
        };
        let stream = if idle { beside.held } else { Time::NEVER };
        // An instant that has passed would wake the drive again at once, without any change.
        let after_now = |time: Time| if time > now { time } else { Time::NEVER };
        beside.look_again = after_now(room).min(after_now(stream));
    }

    fn has_writers(&self) -> bool {
        self.beside
            .as_ref()
            .is_some_and(|beside| beside.writers() > 0)
    }

    fn let_buffer_work(&mut self, now: Time) {
        let waiting = !self.queue.is_empty();
        if let Some(buffer) = &mut self.buffer {
            buffer.catch_up(now, waiting, &mut self.arm);
        }
    }

    /// True if a write completes when the data are in the buffer.
    fn is_cached(&self, slot: u32) -> bool {
        let forced = self.slots[slot].request.hints.force_unit_access;
        !forced
            && self
                .buffer
                .as_ref()
                .is_some_and(|buffer| buffer.takes_writes())
    }

    /// Takes the writes with room in order of arrival. A write that will never have room goes to
    /// the medium directly.
    fn let_writers_in(&mut self, now: Time) {
        while let Some(slot) = self
            .beside
            .as_ref()
            .and_then(|beside| beside.writers.front().copied())
        {
            let extent = self.slots[slot].request.extent;
            let Some(buffer) = &self.buffer else { return };
            let has_room = buffer.has_room(now, extent);
            // Writers keep their order, so nobody passes the first writer.
            if !has_room && buffer.will_have_room(now, extent) {
                return;
            }
            if let Some(beside) = &mut self.beside {
                beside.writers.pop_front();
            }
            let begin = self.bus_free.max(now);
            match self.take_write(slot, begin).filter(|_| has_room) {
                Some(service) => self.pass(service),
                None => self.wait_for_arm(slot, now),
            }
        }
    }

    /// Takes up the next request that needs the arm. The arm must have no request.
    fn begin_side_request(&mut self, now: Time) {
        if self
            .beside
            .as_ref()
            .is_some_and(|beside| !beside.reads.is_empty())
        {
            self.answer_reads_ahead(now);
        }
        if self.has_writers() {
            self.make_room_for_writers(now);
        }
        while !self.queue.is_empty() {
            // A command beyond the age limit goes before a stream, or the stream would starve the
            // command.
            let overdue = self.queue.is_overdue(now);
            if !overdue && let Some(service) = self.go_on_with_stream(now) {
                self.service = Some(service);
                return;
            }
            if now < self.decides {
                return;
            }
            self.decides = Time::ZERO;
            let held = |beside: &SideQueue| now < beside.held;
            if !overdue && self.beside.as_ref().is_some_and(held) {
                return;
            }
            self.service = self.serve_next(now);
            if self.service.is_some() {
                return;
            }
        }
    }

    /// Answers waiting reads whose data have been read ahead meanwhile.
    fn answer_reads_ahead(&mut self, now: Time) {
        let (Some(beside), Some(buffer)) = (&self.beside, &self.buffer) else {
            return;
        };
        let (from, to) = buffer.read_last();
        let mut at = beside.reads.partition_point(|read| read.start < from);
        while let Some(SideRead { start, end, slot }) =
            self.wanted(at).filter(|read| read.start < to)
        {
            let extent = Extent::new(start, end - start);
            match self.look_up(extent, now) {
                Lookup::Hit(segment) => {
                    self.leave_queue(start, slot);
                    self.pass_read(slot, segment, now);
                }
                _ => at += 1,
            }
        }
    }

    fn wanted(&self, at: usize) -> Option<SideRead> {
        self.beside.as_ref()?.reads.get(at).copied()
    }

    /// Destages data now, because writes wait for room, unless data are on the way to the medium.
    fn make_room_for_writers(&mut self, now: Time) {
        let Some(buffer) = &mut self.buffer else {
            return;
        };
        // One write at a time: the arm is not taken for a second write before the first is on the
        // medium.
        if buffer.on_medium() <= now {
            buffer.destage_one(now, &mut self.arm);
        }
    }

    /// Serves a read that begins at or shortly behind the position of read-ahead. Such a read costs
    /// no positioning. The read goes first while the arm is held for the stream, and while no other
    /// request waits.
    fn go_on_with_stream(&mut self, now: Time) -> Option<RequestInService> {
        let (beside, buffer) = (self.beside.as_ref()?, self.buffer.as_ref()?);
        let (start, end) = buffer.being_read()?;
        let first = beside.reads.partition_point(|read| read.start < start);
        let next = *beside
            .reads
            .get(first)
            .filter(|read| read.start <= buffer.reaches(end))?;
        // Without other commands the stream may go on. With others, the discipline decides once the
        // hold has ended.
        if now >= beside.held && beside.in_a_row(first, end, buffer) < self.queue.len() {
            return None;
        }
        let extent = Extent::new(next.start, next.end - next.start);
        let service = self.join_read_ahead(next.slot, extent, now)?;
        self.leave_queue(next.start, next.slot);
        Some(service)
    }

    /// Serves a read that begins within reach of the heads, while the heads read ahead. The read
    /// costs no positioning. `None` if the heads do not read towards the extent.
    fn join_read_ahead(
        &mut self,
        slot: u32,
        extent: Extent,
        now: Time,
    ) -> Option<RequestInService> {
        let buffer = self.buffer.as_mut()?;
        let (start, end) = buffer.being_read()?;
        if !(start..=buffer.reaches(end)).contains(&extent.start.0) {
            return None;
        }
        // Sectors between the stream and the read pass under the heads anyway.
        buffer.read_up_to(extent.start.0, &mut self.arm);
        let Lookup::Filling { there, next, since } = self.look_up(extent, now) else {
            return None;
        };
        self.remember(extent, false);
        Some(self.read_on(slot, now, there, next, since))
    }

    /// Serves the discipline's choice. `None` if the buffer answers the choice.
    fn serve_next(&mut self, now: Time) -> Option<RequestInService> {
        let buffer = self.buffer.as_mut()?;
        if buffer.above_watermark() {
            buffer.destage_one(now, &mut self.arm);
        }
        let moves = self.next_moves(now);
        let NextRequest { mut waiting, via } = self.choose(now, moves)?;
        if via.is_none() && !waiting.write && self.queue.has_age_limit() {
            waiting = self.first_in_row(waiting);
        }
        let extent = self.slots[waiting.slot].request.extent;
        if waiting.write {
            let service = self.write_through(&waiting, via, now);
            self.remember(extent, true);
            return Some(service);
        }
        if let Some(beside) = &mut self.beside {
            beside.remove(waiting.lbn.0, waiting.slot);
        }
        if let Lookup::Hit(segment) = self.look_up(extent, now) {
            self.pass_read(waiting.slot, segment, now);
            return None;
        }
        // The heads already read towards the choice: a command of its own would lose a revolution.
        // Without an age limit, a stream that always goes on would starve all other commands.
        if via.is_none()
            && self.queue.has_age_limit()
            && let Some(service) = self.join_read_ahead(waiting.slot, extent, now)
        {
            self.hold_for_stream(true);
            return Some(service);
        }
        let service = self.read_stream(&waiting, via, now);
        self.remember(extent, false);
        Some(service)
    }

    /// Returns the read in place of `chosen` that the heads reach first by reading on, if `chosen`
    /// belongs to the stream under the heads. The heads have passed the start of the first read of
    /// the stream, so that an order by access time would begin in the middle of the stream, come
    /// back for the rest, and lose a revolution each time.
    fn first_in_row(&mut self, chosen: WaitingRequest) -> WaitingRequest {
        let (Some(beside), Some(buffer)) = (&self.beside, &self.buffer) else {
            return chosen;
        };
        let Some((start, end)) = buffer.being_read() else {
            return chosen;
        };
        let first = beside.reads.partition_point(|read| read.start < start);
        let row = beside.in_a_row(first, end, buffer);
        let row = &beside.reads[first..first + row];
        let belongs = row.iter().any(|read| read.slot == chosen.slot);
        let Some(next) = row
            .first()
            .filter(|next| belongs && next.slot != chosen.slot)
        else {
            return chosen;
        };
        let Some(next) = self.queue.remove(next.slot) else {
            return chosen;
        };
        // The chosen read stays in the row, and its turn comes as the stream reaches it.
        self.queue.insert(chosen);
        next
    }

    /// Reads from the medium. After a read continuing an earlier read, the arm stays to read ahead.
    /// Otherwise the arm would spend the time between streams on seeks.
    fn read_stream(
        &mut self,
        waiting: &WaitingRequest,
        via: Option<Cylinder>,
        now: Time,
    ) -> RequestInService {
        let goes_on = self
            .buffer
            .as_ref()
            .is_some_and(|buffer| buffer.goes_on(waiting.lbn));
        let service = self.read_medium(waiting, via, now);
        self.hold_for_stream(goes_on);
        service
    }

    /// Keeps the arm with the current stream for `stream_sectors`, if the last read continued a
    /// stream.
    fn hold_for_stream(&mut self, goes_on: bool) {
        if let (Some(beside), Some(buffer)) = (&mut self.beside, &self.buffer) {
            beside.held = if goes_on {
                buffer.stream_until(&self.arm)
            } else {
                Time::ZERO
            };
        }
    }

    fn wait_for_arm(&mut self, slot: u32, now: Time) {
        let request = self.slots[slot].request;
        if request.operation == Operation::Read
            && let Some(beside) = &mut self.beside
        {
            beside.add(request.extent, slot);
        }
        self.insert(slot, now);
    }

    /// Removes a read from the queue that is served out of turn.
    fn leave_queue(&mut self, start: u64, slot: u32) {
        let left = self.queue.remove(slot);
        debug_assert!(
            left.is_some() || self.background.is_some(),
            "the read of slot {slot} is served out of turn, and did not wait"
        );
        if let Some(background) = &mut self.background {
            background.remove(slot);
        }
        if let Some(beside) = &mut self.beside {
            beside.remove(start, slot);
        }
    }

    fn pass_read(&mut self, slot: u32, segment: usize, now: Time) {
        let service = self.read_hit(slot, segment, self.bus_free.max(now));
        self.pass(service);
    }

    fn pass(&mut self, service: RequestInService) {
        assert!(
            service.finish >= self.bus_free,
            "the bus is free at {:?}, and a request ends on it at {:?}",
            self.bus_free,
            service.finish
        );
        self.bus_free = service.finish;
        self.passing.push_back(service);
    }

    fn remember(&mut self, extent: Extent, write: bool) {
        let kind = if write {
            PreviousKind::Write
        } else {
            PreviousKind::Read
        };
        self.next_lbn = extent.end();
        self.last = LastRequest { kind, extent };
    }
}
