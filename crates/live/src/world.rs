//! One served stack: its layers, its bytes, and what is on its way.

use crate::lateness::Lateness;
use crate::parts::{Held, Slow};
use crate::record::{RecordedOrder, Recorder};
use crate::scrub::Scrub;
use crate::status::{ComparingStatus, Operations};
use crate::ticket::{Carried, ClientId, Ticket, extent, is_unaligned, timed};
use crate::watch::{Ended, Sent, Watch};
use fullstroke_bytes::{Dropped, MemberStatus, RebuildRecord, Store, StoreError};
use fullstroke_contract::{Extent, MemberState, Operation, Order, RebuildSpeed, Refusal, Signal, Status};
use fullstroke_engine::Machine;
use fullstroke_nbd::{Allocation, Command, CommandFlags, ErrorCode, StatusExtent};
use fullstroke_units::{Bytes, SECTOR_BYTES, Sectors, Time};
use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::time::Instant;

/// Extents of status in one answer; a client asks again for the rest.
const EXTENTS_MAX: usize = 4096;
/// What is filled between two looks at the sockets: 1 MiB takes about a
/// millisecond.
const FILLED_AT_ONCE: Sectors = Sectors((1 << 20) / SECTOR_BYTES);

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
    pub(crate) lateness: Lateness,
    pub(crate) operations: Operations,
    /// Whose next request waits for a place in the layers, or for memory.
    pub(crate) line: VecDeque<ClientId>,
    /// Requests of which the layers have finished, and the bytes have not.
    pub(crate) slow: VecDeque<Slow>,
    /// Parts that wait until others are served.
    pub(crate) held: Vec<Held>,
    /// A comparison of all redundancy that is under way.
    pub(crate) scrub: Option<Scrub>,
    /// What was to be compared when the store was opened.
    to_compare: Bytes,
    rebuilding: bool,
    bytes_in_flight: u64,
    /// Whether people know that the store has stopped.
    told_stop: bool,
    /// Members, and how far they are to be filled on the bytes.
    unfilled: VecDeque<(Vec<usize>, Sectors)>,
    pub(crate) tickets: Vec<Option<Ticket>>,
    free: Vec<u32>,
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
            store,
            watch: Watch { recorder, ..Watch::default() },
            lateness: Lateness::new(),
            operations: Operations::default(),
            line: VecDeque::new(),
            slow: VecDeque::new(),
            held: Vec::new(),
            scrub: None,
            rebuilding: false,
            bytes_in_flight: 0,
            told_stop: false,
            unfilled: VecDeque::new(),
            tickets: Vec::new(),
            free: Vec::new(),
        }
    }

    /// What is still to be compared since the last server was killed.
    pub(crate) fn comparing(&self) -> Option<ComparingStatus> {
        let (left, of) = (self.store.left_to_compare(), self.to_compare);
        (left > Bytes(0)).then_some(ComparingStatus { left_bytes: left.0, of_bytes: of.0 })
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

    /// The member at `path` has failed.
    pub(crate) fn fail(&mut self, now: Time, path: &[usize]) -> Result<(), Refusal> {
        self.advance(now);
        self.fill_all();
        self.store.fail_member(path).map_err(refusal)?;
        self.watch.rebuilds.forget(path);
        self.order(now, path, |member| Order::Fail { member })
    }

    /// The failed member at `path` was replaced by an empty one. If the volume
    /// has failed, somebody must say that its data may be lost.
    pub(crate) fn restore(
        &mut self,
        now: Time,
        path: &[usize],
        rate: Option<Bytes>,
        accept_data_loss: bool,
    ) -> Result<(), Refusal> {
        self.advance(now);
        self.fill_all();
        if accept_data_loss && self.store.has_failed() {
            match self.store.accept_data_loss() {
                // It was said before, or there is nothing to accept.
                Ok(()) | Err(StoreError::Refused(_)) => {}
                Err(error) => return Err(refusal(error)),
            }
        }
        self.store.restore_member(path).map_err(|error| restore_refusal(error, path))?;
        let ordered = self.order_restore(now, path, Sectors::ZERO, rate);
        if ordered.is_err() {
            // The bytes follow the layers. It was a failed member a moment ago.
            let _ = self.store.fail_member(path);
            return ordered;
        }
        self.keep_speed(|speed| speed.rate = rate)
    }

    /// The failed member at `path` stands in its place again, as it was.
    pub(crate) fn re_add(&mut self, now: Time, path: &[usize]) -> Result<(), Refusal> {
        self.advance(now);
        self.fill_all();
        self.store.re_add_member(path).map_err(refusal)?;
        let ordered = self.order(now, path, |member| Order::ReAdd { member });
        if ordered.is_err() {
            // The bytes follow the layers. It was a failed member a moment ago.
            let _ = self.store.fail_member(path);
        }
        ordered
    }

    /// The bytes have taken the member: whether data is lost thereby was theirs
    /// to ask. Within a volume that has all its data, an inner volume that has
    /// failed loses nothing by an empty member.
    fn order_restore(
        &mut self,
        now: Time,
        path: &[usize],
        done: Sectors,
        rate: Option<Bytes>,
    ) -> Result<(), Refusal> {
        let sent = self.watch.sent.len();
        let accept_data_loss = !self.store.has_failed() || self.store.has_lost_data();
        self.order(now, path, |member| Order::Restore { member, done, rate, accept_data_loss })?;
        // Unless all of it was passed over at once, and said so.
        let own = |sent: &Sent| path.split_last().is_some_and(|(_, volume)| sent.path == volume);
        if !self.watch.sent.iter().skip(sent).any(own) {
            let used = self.store.member_used(path).unwrap_or_default();
            self.watch.rebuilds.begin(self.machine.now(), path, done, used);
        }
        Ok(())
    }

    /// From now on members are filled at this speed, in all volumes.
    pub(crate) fn set_speed(&mut self, now: Time, speed: RebuildSpeed) -> Result<(), Refusal> {
        self.advance(now);
        let volumes: Vec<Vec<usize>> = self.machine.graph().volume_paths().map(<[usize]>::to_vec).collect();
        if volumes.is_empty() {
            return Err(Refusal("a single drive is not a member of a volume".into()));
        }
        for volume in volumes {
            self.order_volume(&volume, Order::Speed(speed))?;
        }
        self.keep_speed(|kept| {
            let RebuildSpeed { least, most } = speed;
            *kept = RebuildRecord { rate: None, speed_limit_min: Some(least), speed_limit_max: most };
        })
    }

    fn keep_speed(&mut self, change: impl FnOnce(&mut RebuildRecord)) -> Result<(), Refusal> {
        let mut speed = self.store.rebuild_speed();
        change(&mut speed);
        self.store.keep_rebuild_speed(speed).map_err(refusal)
    }

    /// Members that were not whole when the bytes were left are not whole now,
    /// and are filled as fast as was said.
    pub(crate) fn resume(&mut self) {
        let kept = self.store.rebuild_speed();
        if kept.speed_limit_min.is_some() || kept.speed_limit_max.is_some() {
            let least = kept.speed_limit_min.unwrap_or(RebuildSpeed::default().least);
            let speed = RebuildSpeed { least, most: kept.speed_limit_max };
            let volumes: Vec<Vec<usize>> =
                self.machine.graph().volume_paths().map(<[usize]>::to_vec).collect();
            for volume in volumes {
                // A volume whose members never fail has no use for it.
                let _ = self.order_volume(&volume, Order::Speed(speed));
            }
        }
        let path_of = |member: &MemberStatus| -> Vec<usize> {
            member.member.split('.').filter_map(|index| index.parse().ok()).collect()
        };
        let members = self.store.status();
        let members =
            || members.iter().map(|member| (path_of(member), member)).filter(|(path, _)| !path.is_empty());
        // A rebuild that had lost its sources waits for them: first those that
        // are filled, then those that have failed.
        for (path, member) in members().filter(|(_, member)| member.state == "rebuilding") {
            // What the stack file says already is refused, rightly.
            let _ = self.order(Time::ZERO, &path, |member| Order::Fail { member });
            if self.store.is_read_only() {
                // It is filled by whoever serves it for writing.
                continue;
            }
            let done = Sectors(member.done_sectors.unwrap_or_default());
            let _ = self.order_restore(Time::ZERO, &path, done, kept.rate);
        }
        for (path, _) in members().filter(|(_, member)| member.state == "failed") {
            let _ = self.order(Time::ZERO, &path, |member| Order::Fail { member });
        }
    }

    /// Whether something is to happen that nobody waits for with the clock.
    pub(crate) fn has_to_hurry(&self) -> bool {
        // The layers do not run away from the bytes.
        let rebuilds = self.rebuilding && !self.is_filling() && self.machine.next_wake() != Time::NEVER;
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

    fn note_rebuilding(&mut self) {
        self.rebuilding = self.store.status().iter().any(|member| member.state == "rebuilding");
    }

    /// Says something to the layers about the member at `path`.
    fn order(&mut self, now: Time, path: &[usize], order: impl Fn(usize) -> Order) -> Result<(), Refusal> {
        let Some((&member, volume)) = path.split_last() else {
            return Err(Refusal("a single drive is not a member of a volume".into()));
        };
        self.advance(now);
        self.order_volume(volume, order(member))
    }

    /// Says something to the volume at `volume`, now.
    fn order_volume(&mut self, volume: &[usize], order: Order) -> Result<(), Refusal> {
        let now = self.machine.now();
        let submitted = self.machine.submitted();
        self.machine.order(now, volume, order, &mut self.watch)?;
        if let Some(recorder) = &mut self.watch.recorder {
            recorder.ordered(RecordedOrder::new(now, submitted, volume, order));
        }
        self.note_rebuilding();
        Ok(())
    }

    /// Lets everything happen that is due by `now`.
    pub(crate) fn advance(&mut self, now: Time) {
        self.machine.advance(now.max(self.machine.now()), &mut self.watch);
    }

    /// Lets the next thing happen, whenever it is due.
    ///
    /// # Panics
    /// If requests are in flight and nothing is due: a layer has lost one.
    pub(crate) fn hurry(&mut self) {
        let stuck = self.machine.in_flight() > 0 && self.machine.next_wake() == Time::NEVER;
        assert!(!stuck, "a layer has lost {} requests", self.machine.in_flight());
        self.machine.wake(&mut self.watch);
    }

    /// Carries what the volumes have rebuilt out on the bytes, some of it at
    /// least, and not much longer than `until`.
    pub(crate) fn carry_signals(&mut self, until: Instant) {
        self.note_signals();
        while self.is_filling() {
            self.fill();
            if Instant::now() >= until {
                return;
            }
        }
    }

    /// Notes what the volumes have rebuilt.
    fn note_signals(&mut self) {
        while let Some(Sent { mut path, signal }) = self.watch.sent.pop_front() {
            let Signal::Rebuilt { member, done, .. } = signal else { continue };
            path.push(member as usize);
            match self.unfilled.iter_mut().find(|unfilled| unfilled.0 == path) {
                Some((_, upto)) => *upto = done,
                None => self.unfilled.push_back((path, done)),
            }
        }
    }

    /// Whether something is to be filled on the bytes.
    fn is_filling(&self) -> bool {
        !self.unfilled.is_empty()
    }

    /// Fills some of it, so little that clients hardly wait. A member that the
    /// host cannot fill has failed again.
    fn fill(&mut self) {
        let Some((path, upto)) = self.unfilled.pop_front() else { return };
        let filled = match self.store.member_state(&path) {
            Ok(MemberState::Rebuilding { done }) => {
                self.store.rebuild_member(&path, upto.min(done + FILLED_AT_ONCE))
            }
            // It is whole already, or has failed meanwhile.
            _ => Ok(upto),
        };
        match filled {
            Ok(done) if done < upto => return self.unfilled.push_front((path, upto)),
            Ok(_) => {}
            // It waits, as far as it is filled, for what it needs.
            Err(StoreError::Failed { .. }) => {}
            Err(error) => {
                let member = path.iter().map(usize::to_string).collect::<Vec<_>>().join(".");
                // Who reads standard error may have gone, which is no reason to end.
                let _ = writeln!(io::stderr(), "fullstroke: member {member} cannot be rebuilt: {error}");
                // Either may know already.
                let _ = self.store.fail_member(&path);
                let _ = self.order(self.machine.now(), &path, |member| Order::Fail { member });
            }
        }
        self.note_rebuilding();
    }

    /// Tells the layers which members have failed because the host's storage
    /// did, and people that it did.
    pub(crate) fn tell_dropped(&mut self) {
        for Dropped { path, why } in self.store.take_dropped() {
            let drive = path.iter().map(usize::to_string).collect::<Vec<_>>().join(".");
            let _ = writeln!(io::stderr(), "fullstroke: {}: drive {drive} has failed: {why}", self.name);
            // They may know already.
            let _ = self.order(self.machine.now(), &path, |member| Order::Fail { member });
        }
        if let Some(why) = self.store.stopped()
            && !self.told_stop
        {
            self.told_stop = true;
            let _ = writeln!(
                io::stderr(),
                "fullstroke: {}: nothing is served any more, since writes may be lost: {why}",
                self.name
            );
        }
    }

    /// Fills all of it: before states change, the bytes must be as far as the
    /// layers are.
    fn fill_all(&mut self) {
        self.note_signals();
        while self.is_filling() {
            self.fill();
        }
    }

    /// Why a request is not begun at all. A disk zeroes no faster than it
    /// writes, unless it may deallocate.
    pub(crate) fn refuses(&self, request: &fullstroke_nbd::Request) -> Option<ErrorCode> {
        let fast = request.flags.contains(CommandFlags::FAST_ZERO | CommandFlags::NO_HOLE);
        fast.then_some(ErrorCode::NotSupported)
    }

    /// Which parts of a range are allocated.
    pub(crate) fn allocation(&mut self, request: &fullstroke_nbd::Request) -> Vec<StatusExtent> {
        let Extent { start, sectors } = extent(request);
        let mut skipped = (request.offset_bytes % SECTOR_BYTES) as u32;
        let one = request.flags.contains(CommandFlags::ONE_EXTENT);
        let mut extents: Vec<StatusExtent> = Vec::new();
        let found = self.store.allocated(start, sectors, &mut |run, takes_room| {
            let state = if takes_room { Allocation::empty() } else { Allocation::HOLE | Allocation::ZERO };
            let length_bytes = run.sectors.bytes().0 as u32 - std::mem::take(&mut skipped);
            extents.push(StatusExtent { length_bytes, state });
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
        };
        let response = ended.finished.completion.finished.since(ticket.arrived);
        kind.add(ticket.request.length_bytes.into(), response.as_secs_f64(), failed);
    }

    /// Whose request has ended.
    pub(crate) fn asked(&self, ended: &Ended) -> Option<ClientId> {
        let ticket = self.tickets.get(ended.finished.completion.id.0 as usize)?.as_ref()?;
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
    pub(crate) fn carry(&mut self, ticket: &mut Ticket, status: Status, into: &mut [u8]) -> Carried {
        let (failure, is_carried) = ticket.parts.as_mut().map_or((None, false), |parts| parts.outcome());
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
            Command::WriteZeroes => {
                self.zero_bytes(offset, length, !request.flags.contains(CommandFlags::NO_HOLE))
            }
            Command::Trim => self.discard_bytes(offset, length),
            Command::Flush | Command::Cache | Command::BlockStatus => Ok(()),
        };
        match Carried::of(done) {
            Carried::Done => ticket.done(),
            failed => failed,
        }
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

/// Why a member cannot be restored, with the way out.
fn restore_refusal(error: StoreError, path: &[usize]) -> Refusal {
    let member = path.iter().map(usize::to_string).collect::<Vec<_>>().join(".");
    match error {
        StoreError::Failed { .. } => Refusal(format!(
            "{error}: an empty drive would be filled with nothing. If the data may be lost, say so: \
             restore {member} --accept-data-loss"
        )),
        other => refusal(other),
    }
}

fn refusal(error: StoreError) -> Refusal {
    Refusal(error.to_string())
}
