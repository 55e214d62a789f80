//! Reads that do not wait for a late member.
//!
//! With a policy that reads around members ([`LatePolicy`](crate::LatePolicy)), each read of a member
//! runs on a thread of the member, in memory of its own. A request then need not wait for the
//! thread:
//!
//! 1. All reads begin. A read of a member that the policy leaves out does not begin; step 2 follows
//!    at once.
//! 2. A read that is late starts a **detour**: reads of other members, and the arithmetic that gives
//!    the same bytes. A detour that is late itself starts one more detour, which avoids the members
//!    that are late there, too, as long as the redundancy allows this.
//! 3. The first answer counts, of the member or of a detour. The request leaves the other reads
//!    behind. Their memory belongs to their threads, so a late answer changes no byte of a request.
//!
//! A detour on parity computes data from several members, so no writer may change the row
//! meanwhile. A write holds the row already. A read holds the row from its first detour to its end.
//! A row that a writer holds is not waited for: the member may answer before the writer ends. The
//! read tries again every [`RETRY`].

use super::{Array, Sabotage};
use crate::Device;
use crate::buffers::{Buffers, RequestBytes};
use crate::device::{Aligned, EndedRead};
use crate::late::{LateReads, LateView};
use crate::limit::no_answer;
use crate::locks::RangeGuard;
use crate::member_transfer::{FailedTransfer, MemberTransfer, TransferDirection};
use crate::transfer::{Carrier, Devices};
use fullstroke_contract::{Extent, Operation};
use fullstroke_units::{SECTOR_BYTES, Sectors};
use fullstroke_volume::{BufferPlace, Plan};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Interval between two attempts to get a row that a writer holds.
const RETRY: Duration = Duration::from_millis(1);
/// Longest run of adjacent pieces of a member that one thread reads.
const RUN_BYTES_MAX: u64 = 1 << 20;
/// Longest wait without a deadline. A wait ends earlier with each answer.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Lock of the rows of a read.
#[derive(Clone, Copy, Debug)]
pub(super) enum RowsOfReads {
    /// The caller holds the rows.
    Held,
    /// Nobody holds the rows of this extent yet.
    Free(Extent),
}

/// Reads of one plan, with their detours.
struct ReadRace<'a> {
    array: &'a Array,
    late: &'a Arc<LateReads>,
    devices: &'a Devices,
    view: LateView,
    /// Rows to hold before the first detour; `None` once they are held, or without parity.
    rows: Option<Extent>,
    held: Option<RangeGuard<'a>>,
    send: Sender<Answer>,
    receive: Receiver<Answer>,
    runs: Vec<ReadRun>,
    detours: Vec<Detour>,
}

/// Adjacent pieces of a member.
struct ReadRun {
    slot: usize,
    /// First byte on the device.
    at: u64,
    sectors: Sectors,
    /// The member's own read, while under way.
    own: Option<BegunRead>,
    /// Time of the next detour; `None` = never.
    next: Option<Instant>,
    /// Members that the latest detour avoids; empty before the first.
    avoided: Vec<usize>,
    /// Result; `None` before the end.
    result: Option<io::Result<Aligned>>,
}

/// A read under way.
#[derive(Clone, Copy, Debug)]
struct BegunRead {
    slot: usize,
    number: u64,
    began: Instant,
}

/// Reads of other members that give the bytes of a run.
struct Detour {
    run: usize,
    plans: Vec<DetourPlan>,
    parts: Vec<DetourPart>,
    /// Number of parts under way.
    left: usize,
    /// Bytes of the run.
    bytes: Aligned,
    /// False once the detour has lost or failed.
    is_open: bool,
}

/// The plan of one run of addresses of a detour.
struct DetourPlan {
    plan: Plan,
    scratch: Aligned,
    /// First byte in the run, and number of bytes.
    first: usize,
    bytes: usize,
}

struct DetourPart {
    plan: usize,
    transfer: MemberTransfer,
    begun: Option<BegunRead>,
}

/// Read that an answer belongs to.
#[derive(Clone, Copy, Debug)]
enum AnswerTo {
    Run(usize),
    Part { detour: usize, part: usize },
}

struct Answer {
    to: AnswerTo,
    read: EndedRead,
}

impl Array {
    /// Carries out the reads of a plan under the policy against slow members. Returns the failed
    /// reads.
    pub(super) fn carry_reads(
        &self,
        carrier: &mut Carrier,
        reads: &[MemberTransfer],
        devices: &Devices,
        buffers: &mut Buffers<'_>,
        rows: RowsOfReads,
    ) -> Vec<FailedTransfer> {
        let direction = TransferDirection::Read;
        let Some(late) = self.late.get() else {
            return carrier.carry(direction, reads, devices, buffers);
        };
        let view = late.look(devices);
        if view.delay.is_none() && !reads.iter().any(|read| view.left_out[read.slot]) {
            // No read can be late, so the ring may carry the reads out.
            let note = |slot, took| late.ended(slot, took);
            return carrier.carry_noting(direction, reads, devices, buffers, &note);
        }
        let (runs, places) = runs_of(reads);
        let (send, receive) = channel();
        let rows = match rows {
            RowsOfReads::Free(extent) if self.facts.rows.is_some() => Some(self.held_with(extent)),
            _ => None,
        };
        let mut race = ReadRace {
            array: self,
            late,
            devices,
            view,
            rows: rows.filter(|_| self.sabotage != Sabotage::AroundUnlocked),
            held: None,
            send,
            receive,
            runs,
            detours: Vec::new(),
        };
        race.run();
        let mut failed = Vec::new();
        for (read, &(run, offset)) in reads.iter().zip(&places) {
            match &mut race.runs[run].result {
                Some(Ok(bytes)) => {
                    let length = read.bytes() as usize;
                    let from = &bytes.of(offset + length)[offset..];
                    buffers
                        .at_mut(read.place, read.sectors)
                        .copy_from_slice(from);
                }
                _ => failed.push(*read),
            }
        }
        drop(race);
        // The usual way tries again, and returns the reads that fail for good.
        match failed.is_empty() {
            true => Vec::new(),
            false => carrier.carry(direction, &failed, devices, buffers),
        }
    }
}

/// Joins the reads to runs of adjacent pieces. Returns the runs, and for each read its run and its
/// first byte in the run.
fn runs_of(reads: &[MemberTransfer]) -> (Vec<ReadRun>, Vec<(usize, usize)>) {
    let mut order: Vec<usize> = (0..reads.len()).collect();
    order.sort_unstable_by_key(|&index| (reads[index].slot, reads[index].at));
    let mut runs: Vec<ReadRun> = Vec::new();
    let mut places = vec![(0, 0); reads.len()];
    for index in order {
        let read = &reads[index];
        let run = match runs.last_mut() {
            Some(run)
                if run.slot == read.slot
                    && run.at + run.sectors.bytes().0 == read.at
                    && run.sectors.bytes().0 + read.bytes() <= RUN_BYTES_MAX =>
            {
                run
            }
            _ => {
                runs.push(ReadRun {
                    slot: read.slot,
                    at: read.at,
                    sectors: Sectors::ZERO,
                    own: None,
                    next: None,
                    avoided: Vec::new(),
                    result: None,
                });
                let last = runs.len() - 1;
                &mut runs[last]
            }
        };
        let offset = run.sectors.bytes().0 as usize;
        run.sectors += read.sectors;
        places[index] = (runs.len() - 1, offset);
    }
    (runs, places)
}

impl ReadRace<'_> {
    fn run(&mut self) {
        for run in 0..self.runs.len() {
            if self.view.left_out[self.runs[run].slot] {
                self.go_around(run, Instant::now());
            } else {
                self.begin_own(run);
            }
        }
        while self.runs.iter().any(|run| run.result.is_none()) {
            self.act(Instant::now());
            if self.runs.iter().all(|run| run.result.is_some()) {
                return;
            }
            let wait = self
                .next_deadline()
                .saturating_duration_since(Instant::now());
            if let Ok(answer) = self.receive.recv_timeout(wait.min(LONGEST_WAIT)) {
                self.take(answer);
            }
        }
    }

    /// Returns the time of the next detour, or of the next exceeded limit.
    fn next_deadline(&self) -> Instant {
        let now = Instant::now();
        let waiting = self.runs.iter().filter(|run| run.result.is_none());
        let times = waiting.flat_map(|run| run.next.into_iter().chain(self.limit_of(run.own)));
        let open = self.detours.iter().filter(|detour| detour.is_open);
        let parts = open.flat_map(|detour| &detour.parts);
        let times = times.chain(parts.filter_map(|part| self.limit_of(part.begun)));
        times.min().unwrap_or(now + LONGEST_WAIT)
    }

    /// Returns the time at which a read under way exceeds the limit of its member.
    fn limit_of(&self, read: Option<BegunRead>) -> Option<Instant> {
        let read = read?;
        let limit = self.devices[read.slot].as_ref()?.limit()?;
        read.began.checked_add(limit.each())
    }

    /// Begins the own read of a run.
    fn begin_own(&mut self, run: usize) {
        let (slot, at, sectors) = {
            let run = &self.runs[run];
            (run.slot, run.at, run.sectors)
        };
        match self.begin(slot, at, sectors, AnswerTo::Run(run)) {
            Ok(Ok(begun)) => {
                let run = &mut self.runs[run];
                run.own = Some(begun);
                run.next = self.view.delay.map(|delay| begun.began + delay);
            }
            Ok(Err(bytes)) => self.end(run, Ok(bytes)),
            Err(error) => self.end(run, Err(error)),
        }
    }

    /// Begins a read of a member. Returns the bytes at once if the device does not let a read be
    /// left behind.
    fn begin(
        &self,
        slot: usize,
        at: u64,
        sectors: Sectors,
        to: AnswerTo,
    ) -> io::Result<Result<BegunRead, Aligned>> {
        let Some(device) = &self.devices[slot] else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let (send, late) = (self.send.clone(), Arc::clone(self.late));
        let (began, bytes) = (Instant::now(), sectors.bytes().0 as usize);
        let take = move |read: EndedRead| {
            match (&read.result, read.is_left) {
                (Ok(_), _) => late.ended(slot, read.took),
                (Err(error), true) => {
                    let place = BufferPlace::Scratch(Sectors::ZERO);
                    let transfer = MemberTransfer {
                        slot,
                        at,
                        place,
                        sectors,
                    };
                    late.note_unread(transfer, io::Error::new(error.kind(), error.to_string()));
                }
                (Err(_), false) => {}
            }
            // The request may have ended without this read.
            let _ = send.send(Answer { to, read });
        };
        if let Some(number) = device.begin_read(at, bytes, Box::new(take))? {
            return Ok(Ok(BegunRead {
                slot,
                number,
                began,
            }));
        }
        let mut memory = Aligned::default();
        device.read(at, memory.of(bytes))?;
        self.late.ended(slot, began.elapsed());
        Ok(Err(memory))
    }

    /// Acts on the deadlines that have passed at `now`.
    fn act(&mut self, now: Instant) {
        for run in 0..self.runs.len() {
            if self.runs[run].result.is_some() {
                continue;
            }
            if self.runs[run].next.is_some_and(|next| next <= now) {
                self.go_around(run, now);
            }
            let own = self.runs[run].own;
            if self.limit_of(own).is_some_and(|limit| limit <= now) {
                let error = self.has_hung(own, now);
                self.end(run, Err(error));
            }
        }
        for detour in 0..self.detours.len() {
            let hung = self.detours[detour].parts.iter().find_map(|part| {
                let limit = self.limit_of(part.begun)?;
                (limit <= now).then_some(part.begun)
            });
            if let Some(read) = hung.filter(|_| self.detours[detour].is_open) {
                self.has_hung(read, now);
                self.give_up(detour);
            }
        }
    }

    /// Notes that the member of a read has hung.
    fn has_hung(&self, read: Option<BegunRead>, now: Instant) -> io::Error {
        let limit = read.and_then(|read| self.devices[read.slot].as_ref()?.limit());
        let Some(limit) = limit else {
            return io::ErrorKind::TimedOut.into();
        };
        limit.check_begun(now);
        no_answer(limit.each())
    }

    /// Takes an answer.
    fn take(&mut self, answer: Answer) {
        match answer.to {
            AnswerTo::Run(run) => {
                self.runs[run].own = None;
                if self.runs[run].result.is_none() {
                    self.end(run, answer.read.result);
                }
            }
            AnswerTo::Part { detour, part } => {
                self.detours[detour].parts[part].begun = None;
                if self.detours[detour].is_open {
                    self.take_part(detour, part, answer.read.result);
                }
            }
        }
    }

    /// Takes the bytes of a part. The last part ends the run.
    fn take_part(&mut self, detour: usize, part: usize, result: io::Result<Aligned>) {
        let Ok(mut read) = result else {
            return self.give_up(detour);
        };
        let one = &mut self.detours[detour];
        let DetourPart { plan, transfer, .. } = &one.parts[part];
        let (plan, transfer) = (&mut one.plans[*plan], *transfer);
        plan.with_buffers(&mut one.bytes, |buffers, _| {
            let into = buffers.at_mut(transfer.place, transfer.sectors);
            into.copy_from_slice(read.of(transfer.bytes() as usize));
        });
        one.left -= 1;
        if one.left > 0 {
            return;
        }
        for plan in &mut one.plans {
            plan.with_buffers(&mut one.bytes, |buffers, plan| buffers.run_steps(plan));
        }
        let (run, bytes) = (one.run, std::mem::take(&mut one.bytes));
        self.late.note_first();
        self.end(run, Ok(bytes));
    }

    /// Ends a run. Its open detours have lost.
    fn end(&mut self, run: usize, result: io::Result<Aligned>) {
        debug_assert!(self.runs[run].result.is_none(), "run {run} ends twice");
        self.runs[run].result = Some(result);
        for detour in self.detours.iter_mut().filter(|detour| detour.run == run) {
            detour.is_open = false;
        }
    }

    /// Gives a detour up, because another member does not have its data. The member's own answer
    /// counts then.
    fn give_up(&mut self, detour: usize) {
        let detour = &mut self.detours[detour];
        detour.is_open = false;
        let run = detour.run;
        let is_lonely = !(self.detours.iter()).any(|other| other.run == run && other.is_open);
        if is_lonely && self.runs[run].own.is_none() && self.runs[run].result.is_none() {
            self.begin_own(run);
            // The same detour would fail again.
            self.runs[run].next = None;
        }
    }

    /// Starts a detour for a run, if the other members have the data.
    fn go_around(&mut self, run: usize, now: Instant) {
        let array = self.array;
        if let Some(rows) = self.rows {
            self.held = array.order.try_to_hold_rows(rows);
            if self.held.is_none() {
                self.runs[run].next = Some(now + RETRY);
                return;
            }
            self.rows = None;
        }
        let again = self.view.delay.map(|delay| now + delay.max(RETRY));
        self.runs[run].next = again;
        let Some(plans) = self.plan_around(run, now) else {
            let is_alone = !(self.detours.iter()).any(|other| other.run == run && other.is_open);
            if is_alone && self.runs[run].own.is_none() {
                self.begin_own(run);
            }
            return;
        };
        self.begin_detour(run, plans);
    }

    /// Plans the reads of a detour. The members that are late are avoided, and as far as possible
    /// also the members that are slow without being late at the moment.
    fn plan_around(&mut self, run: usize, now: Instant) -> Option<Vec<(Extent, Plan)>> {
        let late = self.late_members(run, now);
        let array = self.array;
        let is_slow =
            |slot: usize| self.view.left_out[slot] || array.condition.slowness(slot).is_some();
        let mut all = late.clone();
        let slow = (0..self.devices.len()).filter(|slot| !late.contains(slot) && is_slow(*slot));
        all.extend(slow);
        let one = &mut self.runs[run];
        let lbn = (one.at - array.facts.data_at) / SECTOR_BYTES;
        let piece = Extent::new(lbn, one.sectors.0);
        for avoided in [all, late] {
            // A second detour past the same members would be as late as the first.
            let is_new = avoided.iter().any(|slot| !one.avoided.contains(slot));
            if !is_new {
                continue;
            }
            let plans = array.planner().plan_around(one.slot, piece, &avoided);
            if plans.is_some() {
                one.avoided = avoided;
                return plans;
            }
        }
        None
    }

    /// Returns the member of a run, and the other members that are late at `now` or stall.
    fn late_members(&self, run: usize, now: Instant) -> Vec<usize> {
        let own = self.runs[run].slot;
        let stalls = self.view.stalls.iter().enumerate();
        let stalls = stalls.filter_map(|(slot, stalls)| (*stalls && slot != own).then_some(slot));
        let mut late: Vec<usize> = std::iter::once(own).chain(stalls).collect();
        let delay = self.view.delay;
        let is_late = |read: &BegunRead| delay.is_some_and(|delay| read.began + delay <= now);
        let own = self.runs.iter().filter_map(|run| run.own);
        let parts = self.detours.iter().flat_map(|detour| &detour.parts);
        let all = own.chain(parts.filter_map(|part| part.begun));
        for read in all.filter(is_late) {
            if !late.contains(&read.slot) {
                late.push(read.slot);
            }
        }
        late
    }

    /// Begins the reads of a detour.
    fn begin_detour(&mut self, run: usize, plans: Vec<(Extent, Plan)>) {
        let index = self.detours.len();
        let (mut own, mut parts, mut first) = (Vec::new(), Vec::new(), 0);
        for (extent, plan) in plans {
            let transfers = self.array.transfers(&plan, Operation::Read);
            parts.extend(transfers.into_iter().map(|transfer| DetourPart {
                plan: own.len(),
                transfer,
                begun: None,
            }));
            let bytes = extent.sectors.bytes().0 as usize;
            own.push(DetourPlan {
                plan,
                scratch: Aligned::default(),
                first,
                bytes,
            });
            first += bytes;
        }
        let mut bytes = Aligned::default();
        bytes.of(first);
        if self.detours.iter().all(|detour| detour.run != run) {
            self.late.note_late(self.runs[run].slot);
        }
        self.late.note_member_ios(parts.len());
        let count = parts.len();
        self.detours.push(Detour {
            run,
            plans: own,
            left: count,
            parts,
            bytes,
            is_open: true,
        });
        for part in 0..count {
            // A part that was read at once may have ended the detour.
            if !self.detours[index].is_open {
                return;
            }
            let transfer = self.detours[index].parts[part].transfer;
            let to = AnswerTo::Part {
                detour: index,
                part,
            };
            match self.begin(transfer.slot, transfer.at, transfer.sectors, to) {
                Ok(Ok(begun)) => self.detours[index].parts[part].begun = Some(begun),
                Ok(Err(bytes)) => self.take_part(index, part, Ok(bytes)),
                Err(error) => self.take_part(index, part, Err(error)),
            }
        }
    }
}

impl DetourPlan {
    /// Calls `act` with the memory of the plan. `bytes` are those of the whole run.
    fn with_buffers(&mut self, bytes: &mut Aligned, act: impl FnOnce(&mut Buffers<'_>, &Plan)) {
        let end = self.first + self.bytes;
        let scratch = self.plan.scratch().bytes().0 as usize;
        let mut buffers = Buffers {
            request: RequestBytes::Into(&mut bytes.of(end)[self.first..]),
            scratch: self.scratch.of(scratch),
        };
        act(&mut buffers, &self.plan);
    }
}

impl Drop for ReadRace<'_> {
    /// Leaves all reads under way behind.
    fn drop(&mut self) {
        let own = self.runs.iter().filter_map(|run| run.own);
        let parts = self.detours.iter().flat_map(|detour| &detour.parts);
        for read in own.chain(parts.filter_map(|part| part.begun)) {
            let device: &Option<Arc<dyn Device>> = &self.devices[read.slot];
            if let Some(limit) = device.as_ref().and_then(|device| device.limit()) {
                limit.leave_read(read.number);
            }
        }
    }
}
