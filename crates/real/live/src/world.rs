//! One served stack: its layers, its bytes, and what is on its way.

use crate::lateness::Lateness;
use crate::members::dotted;
use crate::parts::{Held, Slow};
use crate::record::Recorder;
use crate::scrub::Scrub;
use crate::signals::Signals;
use crate::status::{ComparingStatus, GearStatus, Operations};
use crate::ticket::{Carried, ClientId, Ticket, extent, is_unaligned, timed};
use crate::watch::{Ended, Watch};
use fullstroke_contract::{Extent, Gear, Operation, Status};
use fullstroke_engine::Machine;
use fullstroke_nbd::{Allocation, Command, CommandFlags, ErrorCode, StatusExtent};
use fullstroke_store::bytes::Store;
use fullstroke_units::{Bytes, SECTOR_BYTES, Sectors, Time};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Extents of status in one answer; a client asks again for the rest.
const EXTENTS_MAX: usize = 4096;
/// Clients' requests in the layers at a time, over all clients; what comes
/// beyond waits with its client, is withdrawn with it, and has its turn in a
/// line. Far above the depth of any queue below.
const REQUESTS_MAX: usize = 2048;
/// The bytes of these requests, which long requests reach first.
const BYTES_MAX: u64 = 256 << 20;

/// One served stack.
pub(crate) struct World {
    pub(crate) name: String,
    /// The layouts, from the top.
    pub(crate) layout: String,
    pub(crate) machine: Machine,
    pub(crate) store: Store,
    pub(crate) watch: Watch,
    /// What clients are told unasked.
    pub(crate) signals: Signals,
    pub(crate) lateness: Lateness,
    pub(crate) operations: Operations,
    /// Whose next request waits for a place in the layers, or for memory.
    pub(crate) queued: VecDeque<ClientId>,
    /// Requests of which the layers have finished, and the bytes have not.
    pub(crate) slow: VecDeque<Slow>,
    /// Parts that wait until others are served.
    pub(crate) held: Vec<Held>,
    /// A comparison of all redundancy that is under way.
    pub(crate) scrub: Option<Scrub>,
    /// What was to be compared when the store was opened.
    to_compare: Bytes,
    /// Whether members are being filled.
    pub(crate) rebuilding: bool,
    bytes_in_flight: u64,
    /// Whether people know that the store has stopped.
    pub(crate) told_stop: bool,
    /// Whether a flush has said that the store has lost data, or the store was opened so.
    told_loss: bool,
    /// Members, and how far they are to be filled on the bytes.
    pub(crate) unfilled: VecDeque<(Vec<usize>, Sectors)>,
    /// Volumes that have gears, and what the layers have said of them.
    pub(crate) gears: Vec<Geared>,
    /// Volumes, and the gears that their bytes are to follow into.
    pub(crate) shifts: VecDeque<(Vec<usize>, Gear)>,
    pub(crate) tickets: Vec<Option<Ticket>>,
    free: Vec<u32>,
}

/// A volume that has gears.
pub(crate) struct Geared {
    pub(crate) path: Vec<usize>,
    pub(crate) gear: Gear,
    /// How often it has begun to shift.
    pub(crate) shifts: u64,
}

impl Geared {
    pub(crate) fn status(&self) -> GearStatus {
        GearStatus {
            volume: dotted(&self.path),
            gear: self.gear.name().to_owned(),
            shifts: self.shifts,
        }
    }
}

impl World {
    pub(crate) fn new(
        name: String,
        layout: String,
        machine: Machine,
        store: Store,
        recorder: Option<Recorder>,
    ) -> World {
        World {
            name,
            layout,
            machine,
            to_compare: store.left_to_compare(),
            told_loss: store.has_failed() || store.has_lost_data(),
            gears: store
                .geared()
                .into_iter()
                .map(|path| Geared {
                    path,
                    gear: Gear::default(),
                    shifts: 0,
                })
                .collect(),
            store,
            watch: Watch {
                recorder,
                ..Watch::default()
            },
            signals: Signals::default(),
            lateness: Lateness::new(),
            operations: Operations::default(),
            queued: VecDeque::new(),
            slow: VecDeque::new(),
            held: Vec::new(),
            scrub: None,
            rebuilding: false,
            bytes_in_flight: 0,
            told_stop: false,
            unfilled: VecDeque::new(),
            shifts: VecDeque::new(),
            tickets: Vec::new(),
            free: Vec::new(),
        }
    }

    /// What is still to be compared since the last server was killed.
    pub(crate) fn comparing(&self) -> Option<ComparingStatus> {
        let (left, of) = (self.store.left_to_compare(), self.to_compare);
        (left > Bytes(0)).then_some(ComparingStatus {
            left_bytes: left.0,
            of_bytes: of.0,
        })
    }

    /// Whether the layers take another request of clients.
    #[inline]
    pub(crate) fn has_place(&self) -> bool {
        self.machine.in_flight() < REQUESTS_MAX && self.bytes_in_flight < BYTES_MAX
    }

    /// A client's request arrives.
    pub(crate) fn submit(&mut self, now: Time, mut ticket: Ticket) {
        self.advance(now);
        ticket.arrived = self.machine.now();
        if ticket.request.command.changes() {
            // The host's disk has until the layers have finished it.
            self.announce(&ticket.request);
        }
        let place = self.keep(ticket);
        self.begin(place);
    }

    /// Whether something is to happen that nobody waits for with the clock.
    pub(crate) fn has_to_hurry(&self) -> bool {
        // The layers do not run away from the bytes.
        let rebuilds =
            self.rebuilding && !self.is_filling() && self.machine.next_wake() != Time::NEVER;
        self.machine.in_flight() > 0 || rebuilds
    }

    /// Whether volumes have said something that was not carried out yet.
    pub(crate) fn has_signals(&self) -> bool {
        !self.watch.sent.is_empty() || self.is_filling()
    }

    /// Whether something has happened that was not carried out on the bytes yet.
    pub(crate) fn has_news(&self) -> bool {
        self.has_signals() || self.has_unanswered()
    }

    /// Whether the layers have finished something that was not answered yet.
    pub(crate) fn has_unanswered(&self) -> bool {
        !self.watch.ended.is_empty() || !self.slow.is_empty()
    }

    /// Lets everything happen that is due by `now`.
    pub(crate) fn advance(&mut self, now: Time) {
        self.machine
            .advance(now.max(self.machine.now()), &mut self.watch);
    }

    /// Lets the next thing happen, whenever it is due.
    ///
    /// # Panics
    /// If requests are in flight and nothing is due: a layer has lost one.
    pub(crate) fn hurry(&mut self) {
        let stuck = self.machine.in_flight() > 0 && self.machine.next_wake() == Time::NEVER;
        assert!(
            !stuck,
            "a layer has lost {} requests",
            self.machine.in_flight()
        );
        self.machine.wake(&mut self.watch);
    }

    /// Why a request is not begun at all. A disk zeroes no faster than it
    /// writes, unless it may deallocate.
    pub(crate) fn refuses(&self, request: &fullstroke_nbd::Request) -> Option<ErrorCode> {
        let fast = request
            .flags
            .contains(CommandFlags::FAST_ZERO | CommandFlags::NO_HOLE);
        fast.then_some(ErrorCode::NotSupported)
    }

    /// Which parts of a range are allocated.
    pub(crate) fn allocation(&mut self, request: &fullstroke_nbd::Request) -> Vec<StatusExtent> {
        let Extent { start, sectors } = extent(request);
        let mut skipped = (request.offset_bytes % SECTOR_BYTES) as u32;
        let one = request.flags.contains(CommandFlags::ONE_EXTENT);
        let mut extents: Vec<StatusExtent> = Vec::new();
        let found = self
            .store
            .allocated(start, sectors, &mut |run, takes_room| {
                let state = if takes_room {
                    Allocation::empty()
                } else {
                    Allocation::HOLE | Allocation::ZERO
                };
                let length_bytes = run.sectors.bytes().0 as u32 - std::mem::take(&mut skipped);
                extents.push(StatusExtent {
                    length_bytes,
                    state,
                });
                if one || extents.len() == EXTENTS_MAX {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
        // No extents say that all of it is data, which is never wrong.
        found.map(|()| extents).unwrap_or_default()
    }

    /// Counts a request that is answered.
    pub(crate) fn count(&mut self, ticket: &Ticket, ended: &Ended, failed: bool) {
        let kind = match timed(&ticket.request).operation {
            Operation::Read => &mut self.operations.read,
            Operation::Write => &mut self.operations.write,
            Operation::Flush => &mut self.operations.flush,
            Operation::Discard => &mut self.operations.discard,
            // NBD has no commands for these.
            Operation::Standby | Operation::Start | Operation::Answer => return,
        };
        let response = ended.finished.completion.finished.since(ticket.arrived);
        kind.add(
            ticket.request.length_bytes.into(),
            response.as_secs_f64(),
            failed,
        );
    }

    /// Whose request has ended.
    pub(crate) fn asked(&self, ended: &Ended) -> Option<ClientId> {
        let ticket = self
            .tickets
            .get(ended.finished.completion.id.0 as usize)?
            .as_ref()?;
        Some(ticket.client)
    }

    /// Takes the ticket from its place.
    pub(crate) fn release(&mut self, place: u32) -> Option<Ticket> {
        let ticket = self.tickets.get_mut(place as usize)?.take()?;
        self.free.push(place);
        self.bytes_in_flight -= ticket.request.payload_bytes();
        self.others_are_served(&ticket);
        Some(ticket)
    }

    /// Whether a change can be carried out without waiting for the host's disk: it
    /// must be durable before that its regions are being written. What goes wrong
    /// here goes wrong again when it is carried out, and is told then.
    pub(crate) fn announce(&mut self, request: &fullstroke_nbd::Request) -> bool {
        self.store.announce(extent(request)).unwrap_or(true)
    }

    /// Carries a request that has ended out on the bytes; a read into `into`.
    pub(crate) fn carry(
        &mut self,
        ticket: &mut Ticket,
        status: Status,
        into: &mut [u8],
    ) -> Carried {
        let (failure, is_carried) = ticket
            .parts
            .as_mut()
            .map_or((None, false), |parts| parts.outcome());
        if let Some(failure) = failure {
            return failure;
        }
        if status != Status::Done {
            return Carried::Lost;
        }
        let request = &ticket.request;
        let (offset, length) = (request.offset_bytes, u64::from(request.length_bytes));
        let start = extent(request).start;
        if request.command.carries_data() || request.command.changes() {
            self.finish_within(extent(request));
        }
        let done = match request.command {
            _ if is_carried => Ok(()),
            Command::Read if is_unaligned(request) => self.read_bytes(offset, into),
            Command::Read => self.store.read(start, into),
            Command::Write if is_unaligned(request) => self.write_bytes(offset, &ticket.payload),
            Command::Write => self.store.write(start, &ticket.payload),
            Command::WriteZeroes => self.zero_bytes(
                offset,
                length,
                !request.flags.contains(CommandFlags::NO_HOLE),
            ),
            Command::Trim => self.discard_bytes(offset, length),
            // What was written before may be lost. It is said once, as fsync(2) does.
            Command::Flush if self.has_lost_untold() => return Carried::Lost,
            Command::Flush | Command::Cache | Command::BlockStatus => Ok(()),
        };
        match Carried::of(done) {
            Carried::Done => ticket.done(),
            failed => failed,
        }
    }

    /// Whether data were lost and no flush has failed for it yet; the next answer is no.
    fn has_lost_untold(&mut self) -> bool {
        let lost = self.store.has_failed() || self.store.has_lost_data();
        let told = std::mem::replace(&mut self.told_loss, lost);
        lost && !told
    }

    /// The answer to a request has left, so much later than it was due.
    pub(crate) fn answered(&mut self, ended: &Ended, late_ns: u64) {
        self.lateness.add(late_ns);
        if let Some(recorder) = &mut self.watch.recorder {
            recorder.answered(ended, late_ns);
        }
    }

    fn keep(&mut self, ticket: Ticket) -> u32 {
        self.bytes_in_flight += ticket.request.payload_bytes();
        if let Some(place) = self.free.pop() {
            self.tickets[place as usize] = Some(ticket);
            return place;
        }
        self.tickets.push(Some(ticket));
        self.tickets.len() as u32 - 1
    }
}
