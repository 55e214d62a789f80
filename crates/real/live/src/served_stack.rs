//! One served stack: its layers, its data, and its requests in flight.

use crate::completed::CompletedRequest;
use crate::deferred::Deferred;
use crate::following::Following;
use crate::lateness::Lateness;
use crate::record::RequestRecorder;
use crate::scrub_state::Comparisons;
use crate::signals::Signals;
use crate::status::{ComparingStatus, Operations};
use crate::ticket::{ClientId, RequestOutcome, Ticket, extent, is_unaligned, timed};
use crate::tickets::TicketTable;
use crate::told::Told;
use crate::watch::EventCollector;
use fullstroke_contract::{Extent, Operation, RequestStatus};
use fullstroke_engine::Machine;
use fullstroke_nbd::{Allocation, CommandFlags, ErrorCode, RequestCommand, StatusExtent};
use fullstroke_store::bytes::Store;
use fullstroke_units::{SECTOR_BYTES, Time};
use fullstroke_volume::{PeerConfig, PeerWatch};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Largest number of status extents in one answer; a client asks again for the rest.
const EXTENTS_MAX: usize = 4096;
/// Largest number of clients' requests in the layers, over all clients. Further requests wait with
/// their client and have their turn in a queue. If the client leaves, these requests are withdrawn.
/// The limit is far above the depth of any queue below.
const REQUESTS_MAX: usize = 2048;
/// Largest sum of these requests' bytes. Long requests reach this limit first.
const BYTES_MAX: u64 = 256 << 20;

/// One served stack.
pub(crate) struct ServedStack {
    pub(crate) name: String,
    /// Layouts, from the top.
    pub(crate) layout: String,
    pub(crate) machine: Machine,
    pub(crate) store: Store,
    pub(crate) watch: EventCollector,
    /// Signals to clients.
    pub(crate) signals: Signals,
    pub(crate) lateness: Lateness,
    pub(crate) operations: Operations,
    /// Clients whose next request waits for a place in the layers, or for memory.
    pub(crate) queued: VecDeque<ClientId>,
    pub(crate) deferred: Deferred,
    pub(crate) comparisons: Comparisons,
    pub(crate) told: Told,
    pub(crate) following: Following,
    pub(crate) tickets: TicketTable,
    /// Finds drives that are slow beside the others.
    pub(crate) peers: PeerWatch,
}

impl ServedStack {
    pub(crate) fn new(
        name: String,
        layout: String,
        machine: Machine,
        store: Store,
        recorder: Option<RequestRecorder>,
    ) -> ServedStack {
        ServedStack {
            name,
            layout,
            peers: PeerWatch::new(
                machine.graph().drive_names().count(),
                PeerConfig::default(),
                machine.now(),
            ),
            machine,
            comparisons: Comparisons::since_opening(store.left_to_compare()),
            told: Told::since_opening(store.has_failed() || store.has_lost_data()),
            following: Following::new(store.geared()),
            store,
            watch: EventCollector {
                recorder,
                ..EventCollector::default()
            },
            signals: Signals::default(),
            lateness: Lateness::new(),
            operations: Operations::default(),
            queued: VecDeque::new(),
            deferred: Deferred::default(),
            tickets: TicketTable::default(),
        }
    }

    /// Returns the rest of the comparison after the last server was killed.
    pub(crate) fn comparing(&self) -> Option<ComparingStatus> {
        self.comparisons.after_kill(self.store.left_to_compare())
    }

    /// Returns true if the layers accept another request of clients.
    #[inline]
    pub(crate) fn has_place(&self) -> bool {
        self.machine.in_flight() < REQUESTS_MAX && self.tickets.bytes() < BYTES_MAX
    }

    /// Takes an arriving request of a client.
    pub(crate) fn submit(&mut self, now: Time, mut ticket: Ticket) {
        self.advance(now);
        // The machine's time, because a request that arrives while the clock is behind an event
        // arrives after that event.
        ticket.arrived = self.machine.now();
        if ticket.request.command.changes() {
            // The host's disk has time until the layers have finished the request.
            self.announce(&ticket.request);
        }
        let place = self.tickets.keep(ticket);
        self.begin(place);
    }

    /// Returns true if an event is due that does not wait for the clock.
    pub(crate) fn has_to_hurry(&self) -> bool {
        // The layers must not run away from the data.
        let rebuilds = self.following.waits_for_layers() && self.machine.next_wake() != Time::NEVER;
        self.machine.in_flight() > 0 || rebuilds
    }

    /// Returns true if signals of volumes were not carried out yet.
    pub(crate) fn has_signals(&self) -> bool {
        !self.watch.sent.is_empty() || self.is_filling()
    }

    /// Returns true if events were not carried out on the data yet.
    pub(crate) fn has_news(&self) -> bool {
        self.has_signals() || self.has_unanswered()
    }

    /// Returns true if finished requests were not answered yet.
    pub(crate) fn has_unanswered(&self) -> bool {
        !self.watch.ended.is_empty() || self.deferred.has_slow()
    }

    /// Carries out all events due by `now`.
    pub(crate) fn advance(&mut self, now: Time) {
        self.machine
            // The clock may lie before the machine's time, after events that were carried out
            // without waiting.
            .advance(now.max(self.machine.now()), &mut self.watch);
    }

    /// Carries out the next event, whenever it is due.
    ///
    /// # Panics
    /// If requests are in flight and no event is due, because a layer has lost a request.
    pub(crate) fn run_next_event(&mut self) {
        let stuck = self.machine.in_flight() > 0 && self.machine.next_wake() == Time::NEVER;
        assert!(
            !stuck,
            "a layer has lost {} requests",
            self.machine.in_flight()
        );
        self.machine.wake(&mut self.watch);
    }

    /// Returns the error of a request that is not begun at all. A disk zeroes no faster than by
    /// writing, unless deallocation is permitted.
    pub(crate) fn refuses(&self, request: &fullstroke_nbd::NbdRequest) -> Option<ErrorCode> {
        let fast = request
            .flags
            .contains(CommandFlags::FAST_ZERO | CommandFlags::NO_HOLE);
        fast.then_some(ErrorCode::NotSupported)
    }

    /// Returns the allocated parts of a range.
    pub(crate) fn allocation(&mut self, request: &fullstroke_nbd::NbdRequest) -> Vec<StatusExtent> {
        let Extent { start, sectors } = extent(request);
        let mut skipped = request.offset_bytes % SECTOR_BYTES;
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
                // A run of whole sectors may be longer than the largest range of the protocol. Such
                // a run is the last one.
                let length = run.sectors.bytes().0 - std::mem::take(&mut skipped);
                let length_bytes = u32::try_from(length).unwrap_or(u32::MAX);
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
        // An empty list means that all of the range is data, which is never wrong.
        found.map(|()| extents).unwrap_or_default()
    }

    /// Counts an answered request.
    pub(crate) fn count(&mut self, ticket: &Ticket, ended: &CompletedRequest, failed: bool) {
        let kind = match timed(&ticket.request).operation {
            Operation::Read => &mut self.operations.read,
            Operation::Write => &mut self.operations.write,
            Operation::Flush => &mut self.operations.flush,
            Operation::Discard => &mut self.operations.discard,
            // NBD has no commands for these operations.
            Operation::Standby | Operation::Start | Operation::Answer => return,
        };
        let response = ended.finished.completion.finished.since(ticket.arrived);
        kind.add(
            ticket.request.length_bytes.into(),
            response.as_secs_f64(),
            failed,
        );
    }

    /// Returns the client whose request has ended.
    pub(crate) fn asked(&self, ended: &CompletedRequest) -> Option<ClientId> {
        let ticket = self.tickets.get(ended.finished.completion.id.0 as u32)?;
        Some(ticket.client)
    }

    /// Takes the ticket from its place.
    pub(crate) fn release(&mut self, place: u32) -> Option<Ticket> {
        let ticket = self.tickets.take(place)?;
        self.others_are_served(&ticket);
        Some(ticket)
    }

    /// Returns true if a change can be carried out without waiting for the host's disk. The mark
    /// that its regions are being written must be durable first. An error here occurs again when
    /// the change is carried out, and is reported then.
    pub(crate) fn announce(&mut self, request: &fullstroke_nbd::NbdRequest) -> bool {
        self.store.announce(extent(request)).unwrap_or(true)
    }

    /// Carries out a finished request on the data; a read into `into`.
    pub(crate) fn carry(
        &mut self,
        ticket: &mut Ticket,
        status: RequestStatus,
        into: &mut [u8],
    ) -> RequestOutcome {
        let (failure, is_carried) = ticket
            .parts
            .as_mut()
            .map_or((None, false), |parts| parts.outcome());
        if let Some(failure) = failure {
            return failure;
        }
        if status != RequestStatus::Done {
            return RequestOutcome::Lost;
        }
        let request = &ticket.request;
        let (offset, length) = (request.offset_bytes, u64::from(request.length_bytes));
        let start = extent(request).start;
        // A slow discard of the same sectors must come first, or the discard would destroy newer
        // data.
        if request.command.carries_data() || request.command.changes() {
            self.finish_within(extent(request));
        }
        let done = match request.command {
            _ if is_carried => Ok(()),
            RequestCommand::Read if is_unaligned(request) => self.read_bytes(offset, into),
            RequestCommand::Read => self.store.read(start, into),
            RequestCommand::Write if is_unaligned(request) => {
                self.write_bytes(offset, &ticket.payload)
            }
            RequestCommand::Write => self.store.write(start, &ticket.payload),
            RequestCommand::WriteZeroes => self.zero_bytes(
                offset,
                length,
                !request.flags.contains(CommandFlags::NO_HOLE),
            ),
            RequestCommand::Trim => self.discard_bytes(offset, length),
            // Earlier writes may be lost. This is reported once, as by fsync(2).
            RequestCommand::Flush if self.has_unreported_loss() => return RequestOutcome::Lost,
            RequestCommand::Flush | RequestCommand::Cache | RequestCommand::BlockStatus => Ok(()),
        };
        match RequestOutcome::of(done) {
            RequestOutcome::Done => ticket.done(),
            failed => failed,
        }
    }

    /// Returns true if data were lost and no flush has failed for this yet. The next call returns
    /// false.
    fn has_unreported_loss(&mut self) -> bool {
        let lost = self.store.has_failed() || self.store.has_lost_data();
        self.told.loss(lost)
    }

    /// Records that the answer to a request was sent, `late_ns` after its due time.
    pub(crate) fn answered(&mut self, ended: &CompletedRequest, late_ns: u64) {
        self.lateness.add(late_ns);
        if let Some(recorder) = &mut self.watch.recorder {
            recorder.answered(ended, late_ns);
        }
    }
}
