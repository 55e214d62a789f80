//! The records that Linux's md keeps on the members of an array with redundancy: superblocks and
//! the write-intent bitmap (`drivers/md/md.c` and `drivers/md/md-bitmap.c`, Linux 6.12).
//!
//! 1. The superblocks say whether the array is clean. The first write to a clean array waits until
//!    the superblocks of all members say *active* (`md_write_start`, `md_update_sb`).
//! 2. Some time after its last write the array is clean again, and the superblocks are written once
//!    more (`md_safemode_timeout`, `set_in_sync`). No request waits for these writes, unless a
//!    write arrives meanwhile.
//! 3. With a bitmap, each change of the superblocks writes the first page of the bitmap before, and
//!    a write waits until the bits of its regions are on all members.
//!
//! The process of a write waits in `md_write_start`. On RAID 1 and RAID 10 the process of a direct
//! write also waits for the bits, because the plug of its request ends with `md_bitmap_unplug`
//! (`raid1_unplug`, `raid10_unplug`): a process without other writers writes one page of the bitmap
//! for each write, however many writes the process has in flight. A parity array takes pages of
//! writes meanwhile, and its thread writes the bits.
//!
//! Each of these writes flushes the member's buffer before, and is forced to the medium
//! (`md_super_write`: `REQ_PREFLUSH`, `REQ_FUA`). A parity array's thread waits for the bitmap and
//! handles no stripe meanwhile (`raid5d`, `md_bitmap_unplug`).
//!
//! Departure: the records lie at the beginning of the members' data. md has them before the data, a
//! few tracks away.

mod node;

use super::bitmap::{self, Bitmap, WriteIntent};
use super::journal::JournalDevice;
use super::ppl::PartialParityLog;
use super::{MdVolume, WAKE_UP};
use crate::layout::Layout;
use crate::volume::Volume;
use fullstroke_contract::{
    Completion, ConfigError, Effect, Effects, Extent, Hints, Node, NodeContext, Operation, Port,
    Request, RequestId,
};
use fullstroke_units::{Bytes, Duration, Time};
use std::collections::{BTreeMap, VecDeque};

/// Default of `safe_mode_delay`: 201 ms (`DEFAULT_SAFEMODE_DELAY`, `drivers/md/md.c`).
const SAFE_MODE_DELAY: Duration = Duration::from_nanos(201_000_000);

/// Bit of the ids of this module's member I/O. Below the bit stand a number and the kind.
const OWN: u64 = 1 << 62;
/// Bits of the kind.
const KIND: u64 = 3;
/// A write that nothing waits for.
const LATER: u64 = 0;
/// A flush before a write that an array's step waits for.
const FLUSH: u64 = 1;
/// A write that an array's step waits for.
const WRITE: u64 = 2;
/// A flush before writes that nothing waits for.
const LATER_FLUSH: u64 = 3;

/// Sectors of the superblock: 4 KiB from the beginning of the member (version 1.2), here at sector
/// 0 of the data.
pub(super) const SUPERBLOCK: Extent = Extent {
    start: fullstroke_units::Lbn(0),
    sectors: fullstroke_units::Sectors(1),
};

/// First sector of the bitmap: 4 KiB behind the superblock (`add_internal_bitmap1`).
const BITMAP: u64 = 8;

/// Settings of the records of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MdRecords {
    /// Bitmap of the array; `None` for the choice of `mdadm --create`: a bitmap if more than
    /// 100 GiB of each member are used.
    pub bitmap: Option<WriteIntent>,
    /// Size of a region of the bitmap.
    pub region: Bytes,
    /// Time after the last write until the array is clean; zero for an array that stays active.
    pub safe_mode_delay: Duration,
    /// True for a RAID 5 with a partial parity log.
    pub partial_parity: bool,
    /// Device of the journal of a parity array: the port behind the members.
    pub journal: Option<JournalDevice>,
}

impl Default for MdRecords {
    fn default() -> MdRecords {
        MdRecords {
            bitmap: None,
            region: bitmap::REGION,
            safe_mode_delay: SAFE_MODE_DELAY,
            partial_parity: false,
            journal: None,
        }
    }
}

impl MdRecords {
    /// Checks the settings.
    ///
    /// # Errors
    /// Names the key that mdadm refuses.
    pub fn check(&self) -> Result<(), ConfigError> {
        if let Some(journal) = &self.journal {
            journal.check()?;
        }
        bitmap::check_region(self.region)
    }

    /// Most members of an array with a partial parity log: the bits of `disk_flush_bitmap`
    /// (`ppl_init_log`).
    pub const LOGS_MAX: usize = PartialParityLog::MEMBERS_MAX;

    /// Returns the policy of consistency and its greatest number of members, if an array of so many
    /// members may not have these records.
    pub fn excess(&self, members: usize) -> Option<(&'static str, usize)> {
        let limits = [
            ("ppl", MdRecords::LOGS_MAX, self.partial_parity),
            (
                "journal",
                JournalDevice::MEMBERS_MAX,
                self.journal.is_some(),
            ),
        ];
        let exceeded = limits
            .into_iter()
            .find(|&(_, most, has)| has && members > most);
        exceeded.map(|(policy, most, _)| (policy, most))
    }

    /// Returns true if an array of this layout has a write-intent bitmap.
    pub fn has_bitmap(&self, layout: &dyn Layout) -> bool {
        let intent = self.bitmap.unwrap_or_else(|| WriteIntent::of_mdadm(layout));
        intent == WriteIntent::Internal
    }
}

/// A write that waits for the records, or is below; or another request that waited behind a write of
/// its process.
#[derive(Clone, Copy, Debug)]
struct HeldRequest {
    request: Request,
    from: Port,
    submitted: Time,
    /// Regions of a write.
    regions: Option<(u64, u64)>,
}

/// The contents of the superblocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArrayState {
    Clean,
    Active,
}

/// Writes to all members that the next step waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The first page of the bitmap, before the superblocks of the state.
    BitmapOf(ArrayState),
    Superblocks(ArrayState),
    /// Pages of the bitmap with new bits.
    Bits,
}

pub(super) enum RecordedArray {
    Stripes(Box<MdVolume>),
    Copies(Box<Volume>),
}

/// An array with its records.
pub(super) struct Recorder {
    array: RecordedArray,
    bitmap: Option<Bitmap>,
    safe_mode_delay: Duration,
    state: ArrayState,
    /// The step under way, and the extents that it writes on each member.
    step: Option<Step>,
    extents: Vec<Extent>,
    /// Member I/Os of the step that have not ended.
    flying: u32,
    /// True if no page cache is above, so that every write is direct.
    direct: bool,
    /// Writes that wait for the next step.
    held: VecDeque<HeldRequest>,
    /// Writes that wait for the bits of the step under way.
    waiting: Vec<HeldRequest>,
    /// Processes that wait in a write, each with its requests behind this write.
    blocked: BTreeMap<u32, VecDeque<HeldRequest>>,
    /// Number of requests in `blocked`.
    behind: u32,
    /// Requests in the array, by id.
    below: BTreeMap<u64, HeldRequest>,
    /// Time of the thread's next step.
    due: Option<Time>,
    /// Time of the next check whether the array is clean.
    safe_mode: Option<Time>,
    daemon: Option<Time>,
    /// Pages of the bitmap that the latest run of the daemon writes on each member.
    later: Vec<Extent>,
    /// Flushes before the pages of `later` that have not ended.
    later_flushes: u32,
    /// Number of the next member I/O of the records.
    next: u64,
    /// Number of writes of records to members.
    written: u64,
    /// Effects of the array; empty between events.
    inner: Effects,
}

impl Recorder {
    /// Returns the array with its records, or the array itself if it has none.
    pub(super) fn over(
        array: RecordedArray,
        records: Option<MdRecords>,
        direct: bool,
    ) -> Box<dyn Node> {
        match (records, array) {
            (Some(records), array) => Box::new(Recorder::new(array, records, direct)),
            (None, RecordedArray::Stripes(array)) => array,
            (None, RecordedArray::Copies(array)) => array,
        }
    }

    /// Returns the array with its records. `direct` is true if no page cache is above.
    pub(super) fn new(mut array: RecordedArray, records: MdRecords, direct: bool) -> Recorder {
        let layout = layout_of(&array);
        let map = match &array {
            RecordedArray::Stripes(array) => Some(array.core.map),
            RecordedArray::Copies(_) => None,
        };
        let bitmap = records
            .has_bitmap(layout)
            .then(|| Bitmap::new(layout, map, records.region));
        if let RecordedArray::Stripes(array) = &mut array {
            array.core.looks_for_bits = bitmap.is_some();
        }
        Recorder {
            array,
            bitmap,
            safe_mode_delay: records.safe_mode_delay,
            state: ArrayState::Clean,
            step: None,
            extents: Vec::new(),
            flying: 0,
            direct,
            held: VecDeque::new(),
            waiting: Vec::new(),
            blocked: BTreeMap::new(),
            behind: 0,
            below: BTreeMap::new(),
            due: None,
            safe_mode: None,
            daemon: None,
            later: Vec::new(),
            later_flushes: 0,
            next: 0,
            written: 0,
            inner: Effects::new(),
        }
    }

    fn node(&mut self) -> &mut dyn Node {
        match &mut self.array {
            RecordedArray::Stripes(array) => &mut **array,
            RecordedArray::Copies(array) => &mut **array,
        }
    }

    fn node_ref(&self) -> &dyn Node {
        match &self.array {
            RecordedArray::Stripes(array) => &**array,
            RecordedArray::Copies(array) => &**array,
        }
    }

    fn layout(&self) -> &dyn Layout {
        layout_of(&self.array)
    }

    #[cfg(test)]
    pub(super) fn stripes_mut(&mut self) -> Option<&mut MdVolume> {
        match &mut self.array {
            RecordedArray::Stripes(array) => Some(array),
            RecordedArray::Copies(_) => None,
        }
    }

    /// True if no member is missing.
    fn is_whole(&self) -> bool {
        self.layout().member_states().impaired().is_empty()
    }

    /// True if the array has a journal, whose device has a superblock like the members.
    fn has_journal(&self) -> bool {
        matches!(&self.array, RecordedArray::Stripes(array) if array.core.has_journal())
    }

    /// True while the thread of a parity array waits for a step.
    fn thread_waits(&self) -> bool {
        self.flying > 0 && matches!(self.array, RecordedArray::Stripes(_))
    }

    /// Calls the array, and passes its effects on.
    fn call(
        &mut self,
        cx: &mut NodeContext<'_>,
        event: impl FnOnce(&mut dyn Node, &mut NodeContext<'_>),
    ) {
        let mut out = std::mem::take(&mut self.inner);
        let node = self.node();
        event(
            node,
            &mut NodeContext {
                below: cx.below,
                out: &mut out,
            },
        );
        if let Some(error) = out.take_stop() {
            cx.out.stop(error);
        }
        for effect in out.drain() {
            match effect {
                Effect::Issue { port, request } => cx.out.issue(port.index(), request),
                Effect::Notice { port, notice } => cx.out.notice(port, notice),
                Effect::Complete { port, completion } => {
                    let completion = self.note_completed(completion);
                    cx.out.complete_to(port, completion);
                }
            }
        }
        self.inner = out;
    }

    /// Takes note of the end of a request in the array.
    fn note_completed(&mut self, mut completion: Completion) -> Completion {
        let Some(held) = self.below.remove(&completion.id.0) else {
            return completion;
        };
        let now = completion.finished;
        if let Some(regions) = held.regions {
            let whole = self.is_whole();
            if let Some(bitmap) = &mut self.bitmap {
                bitmap.end(regions, whole);
                self.daemon.get_or_insert(bitmap::first_run(now));
            }
            if self.safe_mode_delay > Duration::ZERO {
                self.safe_mode = Some(round_up(now, self.safe_mode_delay) + self.safe_mode_delay);
            }
        }
        // The wait for the records counts too, so that the parts of the breakdown sum up to the
        // response.
        completion.breakdown.parity += completion.submitted.since(held.submitted);
        completion.submitted = held.submitted;
        completion
    }

    /// True for a write that the records must know of.
    fn is_recorded(&self, request: &Request) -> bool {
        request.operation == Operation::Write
            && request.extent.sectors.0 > 0
            && request.extent.within(self.layout().capacity())
    }

    /// Takes a request from above that no earlier request holds back.
    fn take(&mut self, now: Time, mut held: HeldRequest, cx: &mut NodeContext<'_>) {
        let request = held.request;
        if !self.is_recorded(&request) {
            if held.submitted < now {
                self.below.insert(request.id.0, held);
            }
            let from = held.from;
            return self.call(cx, |node, cx| node.submit(now, from, request, cx));
        }
        let (mut regions, mut durable) = ((0, 0), true);
        if let Some(bitmap) = &mut self.bitmap {
            regions = bitmap.regions_of(request.extent);
            durable = bitmap.begin(regions);
        }
        held.regions = Some(regions);
        // While the superblocks are being marked clean, the array is no longer active.
        let leaves = matches!(
            self.step,
            Some(Step::BitmapOf(ArrayState::Clean) | Step::Superblocks(ArrayState::Clean))
        );
        let active = self.state == ArrayState::Active && !leaves;
        if durable && active {
            return self.pass(now, held, cx);
        }
        let process = request.hints.process;
        let waits_for_bits =
            matches!(self.array, RecordedArray::Copies(_)) && (self.direct || request.hints.direct);
        if process != 0 && (!active || waits_for_bits) {
            self.blocked.entry(process).or_default();
        }
        self.held.push_back(held);
        // A step under way takes the held writes at its end.
        if self.step.is_none() && self.due.is_none() {
            self.due = Some(now + WAKE_UP);
        }
    }

    /// Sends a write into the array. Its process goes on with the requests behind the write.
    fn pass(&mut self, now: Time, write: HeldRequest, cx: &mut NodeContext<'_>) {
        self.below.insert(write.request.id.0, write);
        let (from, request) = (write.from, write.request);
        self.call(cx, |node, cx| node.submit(now, from, request, cx));
        let process = request.hints.process;
        let Some(mut behind) = self.blocked.remove(&process) else {
            return;
        };
        while let Some(next) = behind.pop_front() {
            self.behind -= 1;
            self.take(now, next, cx);
            // The process waits again, in this write.
            if let Some(blocked) = self.blocked.get_mut(&process) {
                *blocked = behind;
                return;
            }
        }
    }

    /// Begins the next step that the waiting writes need.
    fn advance(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        if self.step.is_some() || self.held.is_empty() {
            return;
        }
        if self.state == ArrayState::Clean {
            return self.change_state(now, ArrayState::Active, cx);
        }
        // Writes that come later may need other bits, so they wait for the next step.
        self.waiting.extend(self.held.drain(..));
        let Some(bitmap) = &mut self.bitmap else {
            return self.pass_waiting(now, cx);
        };
        let dirty = bitmap.take_dirty();
        if dirty.is_empty() {
            return self.pass_waiting(now, cx);
        }
        self.extents.clear();
        let extents = dirty.into_iter().map(|page| extent_of(bitmap, page));
        self.extents.extend(extents);
        self.begin(now, Step::Bits, cx);
    }

    /// Begins to write the superblocks of a state.
    fn change_state(&mut self, now: Time, state: ArrayState, cx: &mut NodeContext<'_>) {
        self.extents.clear();
        let step = match &self.bitmap {
            Some(bitmap) => {
                self.extents.push(extent_of(bitmap, 0));
                Step::BitmapOf(state)
            }
            None => {
                self.extents.push(SUPERBLOCK);
                Step::Superblocks(state)
            }
        };
        self.begin(now, step, cx);
    }

    /// Flushes all members that have not failed, in order to write the extents of a step.
    fn begin(&mut self, now: Time, step: Step, cx: &mut NodeContext<'_>) {
        self.step = Some(step);
        if let RecordedArray::Stripes(array) = &mut self.array {
            array.sleep(cx.out);
        }
        self.flying += self.flush_members(FLUSH, cx);
        if self.flying == 0 {
            self.end(now, cx);
        }
    }

    /// Flushes all members that have not failed, for writes of records behind the flushes. Returns the
    /// number of flushes.
    fn flush_members(&mut self, kind: u64, cx: &mut NodeContext<'_>) -> u32 {
        let mut flushes = 0;
        // md has added the latest member to the head of its list (`bind_rdev_to_array`).
        for member in (0..self.layout().members()).rev() {
            if !self.layout().member_states().has_failed(member) {
                flushes += 1;
                let flush = self.record(kind, Extent::default());
                cx.out.issue(member, flush);
            }
        }
        if self.has_journal() {
            flushes += 1;
            let (port, flush) = (
                self.layout().members(),
                self.record(kind, Extent::default()),
            );
            cx.out.issue(port, flush);
        }
        flushes
    }

    /// Returns a member I/O of the records with a number of its own.
    fn record(&mut self, kind: u64, extent: Extent) -> Request {
        let operation = match kind {
            FLUSH | LATER_FLUSH => Operation::Flush,
            _ => Operation::Write,
        };
        self.next += 1;
        self.written += u64::from(operation == Operation::Write);
        Request {
            id: RequestId(OWN | self.next << 2 | kind),
            origin: Request::BACKGROUND,
            operation,
            extent,
            hints: Hints {
                // `md_super_write`: `REQ_SYNC`, also for pages that nothing waits for.
                synchronous: true,
                force_unit_access: operation == Operation::Write,
                ..Hints::default()
            },
            ..Request::default()
        }
    }

    /// Takes note of the end of a step.
    fn end(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        match self.step.take() {
            Some(Step::BitmapOf(state)) => {
                self.extents.clear();
                self.extents.push(SUPERBLOCK);
                return self.begin(now, Step::Superblocks(state), cx);
            }
            Some(Step::Superblocks(state)) => self.state = state,
            Some(Step::Bits) => {
                if let RecordedArray::Stripes(array) = &mut self.array {
                    array.core.after_bits = true;
                }
                self.pass_waiting(now, cx);
            }
            None => {}
        }
        // The thread handles a batch of stripes before it looks for new bits (`raid5d`,
        // drivers/md/raid5.c: `handle_active_stripes` follows `md_bitmap_unplug`).
        if self.node_ref().next_wake().at() <= now {
            self.call(cx, |node, cx| node.wake(now, cx));
        }
        self.advance(now, cx);
    }

    /// Sends the waiting writes into the array, because their bits are on the members.
    fn pass_waiting(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for write in waiting.drain(..) {
            if let (Some(bitmap), Some(regions)) = (&mut self.bitmap, write.regions) {
                bitmap.note_durable(regions);
            }
            self.pass(now, write, cx);
        }
        self.waiting = waiting;
    }

    /// Marks the array clean if no write is under way.
    fn check_clean(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        let writes = !self.held.is_empty() || !self.waiting.is_empty() || !self.below.is_empty();
        if !writes && self.step.is_none() && self.state == ArrayState::Active {
            self.change_state(now, ArrayState::Clean, cx);
        }
    }

    /// Writes the pages of the bitmap whose regions became clean, and cleans regions. No request
    /// waits for these pages. Like all records, each member gets them behind a flush
    /// (`md_bitmap_daemon_work`, `write_sb_page`, `md_super_write`).
    fn run_daemon(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        let whole = self.is_whole();
        let Some(bitmap) = &mut self.bitmap else {
            return;
        };
        if self.later_flushes > 0 {
            self.daemon = Some(bitmap::first_run(now));
            return;
        }
        let pages = bitmap.run_daemon(whole);
        // With all bits clean, the daemon sleeps until the next write (`allclean`,
        // `md_bitmap_daemon_work`).
        self.daemon = (!bitmap.rests()).then(|| bitmap::first_run(now));
        self.later.clear();
        let extents = pages.into_iter().map(|page| extent_of(bitmap, page));
        self.later.extend(extents);
        if self.later.is_empty() {
            return;
        }
        self.later_flushes += self.flush_members(LATER_FLUSH, cx);
    }
}

/// Returns the place of a page of the bitmap on each member.
fn extent_of(bitmap: &Bitmap, page: u64) -> Extent {
    Extent::new(BITMAP + page * 8, bitmap.sectors_of(page))
}

fn layout_of(array: &RecordedArray) -> &dyn Layout {
    match array {
        RecordedArray::Stripes(array) => array.volume.layout(),
        RecordedArray::Copies(array) => array.layout(),
    }
}

/// Returns the first multiple of `step` at or after `now`. md rounds the time of its timer up, so
/// that the timer is set rarely (`md_write_end`).
fn round_up(now: Time, step: Duration) -> Time {
    let step = step.as_nanos();
    let since = now.since(Time::ZERO).as_nanos();
    Time::ZERO + Duration::from_nanos(since.div_ceil(step).saturating_mul(step))
}
