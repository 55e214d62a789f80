//! An assembled array: requests and members.

mod trim;

use crate::ArrayError;
use crate::bitmap::{Bitmap, Granules};
use crate::buffers::{Buffers, RequestBytes};
use crate::device::Aligned;
use crate::gather::{self, Gatherings, WriterRole};
use crate::gears::{self, GearFacts};
use crate::group::Group;
use crate::journal::{BeforeFlush, Change, ChangeRun, ChangedContent, MemberJournal};
use crate::locks::Locks;
use crate::members::{ArrayEvent, RosterRecord};
use crate::superblock::{JournalPolicy, Uuid};
use crate::transfer::{Carrier, Devices, FailedTransfer, MemberTransfer, TransferDirection};
use fullstroke_contract::{Extent, LayersBelow, MemberState, Operation, Request, RequestStatus};
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};
use fullstroke_volume::{Content, Detail, Layout, ParityRows, Plan};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

/// Largest number of attempts for one request. An attempt is repeated after a member was mended or
/// has failed.
pub(crate) const ATTEMPTS: usize = 64;

/// An array of members in use.
///
/// - **Requests**: [`read`](Array::read), [`write`](Array::write),
///   [`write_zeroes`](Array::write_zeroes), [`flush`](Array::flush); from any number of threads,
///   each with a [`RequestScratch`] of its own.
/// - **Upkeep**, by the caller: [`tidy`](Array::tidy) about once a second, [`advance_maintenance`](Array::advance_maintenance) as
///   long as it returns true, [`take_happenings`](Array::take_happenings), [`stop`](Array::stop).
/// - **Members**: [`fail`](Array::fail), [`add`](Array::add), [`status`](Array::status),
///   [`scrub_step`](Array::scrub_step).
///
/// # Guarantees
/// - Data written before a flush began is there after any loss of power, once the flush has
///   returned successfully.
/// - Each unflushed sector is old or new, also where a member is missing afterwards. See
///   [`JournalPolicy`] for the exception of the default policy.
/// - A write that a member missed is answered after all other members have recorded the member's
///   failure.
pub struct Array {
    pub(crate) uuid: Uuid,
    pub(crate) facts: ArrayProperties,
    pub(crate) planner: Mutex<Planner>,
    pub(crate) devices: RwLock<Arc<Devices>>,
    pub(crate) book: Mutex<RosterRecord>,
    /// `None` without redundancy, because there is nothing to mend then.
    pub(crate) bitmap: Option<Bitmap>,
    /// One for each slot; empty without parity.
    pub(crate) logs: Vec<MemberJournal>,
    /// Requests share this lock. Changes of members and rebuild steps need exclusive access.
    gate: RwLock<()>,
    locks: Locks,
    /// Locks of blocks during partial changes.
    edges: Locks,
    gatherings: Gatherings,
    /// Number of writes in progress.
    writers: AtomicUsize,
    flushing: Group,
    log_flushes: Vec<Group>,
    /// Number of begun flushes, plus one.
    epoch: AtomicU64,
    /// Latest epoch whose changes are all durable.
    pub(crate) flushed: AtomicU64,
    pub(crate) changes: AtomicU64,
    /// Rows with changes in the journals, each with the number of its records.
    journalled: Mutex<BTreeMap<u64, u32>>,
    /// Number of failures of members, and the number of failures on record.
    pub(crate) failures: AtomicU64,
    pub(crate) settled: AtomicU64,
    halted: OnceLock<String>,
    /// True if a member could not be written because its file system has no room.
    pub(crate) lacks_room: AtomicBool,
    /// Reason why the array accepts no changes since its assembly, if so. Writes to members stay in
    /// memory then.
    pub(crate) read_only: OnceLock<&'static str>,
    /// True if data could not be computed from the remaining members, and no flush has reported the
    /// loss yet.
    pub(crate) lost: AtomicBool,
    /// True while members stand in the low gear, and nothing is written to them.
    pub(crate) resting: AtomicBool,
    /// Size of a step of a shift. Requests wait during a step.
    pub(crate) copied_at_once: Sectors,
    /// Reason why a shift cannot continue.
    pub(crate) shift_trouble: Mutex<Option<String>>,
    /// Place of the latest failed read of a shift; a second failure there fails the member.
    pub(crate) unread: Mutex<Option<(usize, u64)>>,
    pub(crate) happenings: Mutex<Vec<ArrayEvent>>,
    pub(crate) sabotage: Sabotage,
}

/// A transfer of fewer bytes is copied to aligned memory, because the copy takes no time.
const COPIED_BELOW: usize = 64 << 10;

/// Fixed properties of an array in use.
#[derive(Clone, Debug)]
pub(crate) struct ArrayProperties {
    pub(crate) capacity: Sectors,
    /// `None` without parity.
    pub(crate) rows: Option<ParityRows>,
    /// Sectors of a unit; a rebuild step begins at a multiple of this.
    pub(crate) unit: u64,
    /// Number of failures that the array survives.
    pub(crate) survived: u32,
    /// First byte of the bitmap on each member.
    pub(crate) bitmap_at: u64,
    /// First byte of the data on each member.
    pub(crate) data_at: u64,
    /// Granularity of requests to members, in bytes.
    pub(crate) block_bytes: u64,
    pub(crate) policy: JournalPolicy,
    /// `None` for layouts without gears.
    pub(crate) gears: Option<GearFacts>,
}

/// The layout, and the number of changes of its members' states.
pub(crate) struct Planner {
    pub(crate) layout: Box<dyn Layout>,
    pub(crate) version: u64,
}

/// Piece of the machinery to leave out in a test, which shows the need for the piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sabotage {
    #[default]
    Nothing,
    /// Journals are not flushed before changes are made.
    JournalUnflushed,
    /// Changes of part of a row are not journalled.
    NoJournal,
    /// Regions are not marked.
    NoMarks,
    /// Records count as given up before a flush has passed.
    RetiredEarly,
    /// A member's failure is not recorded.
    FailureForgotten,
    /// A request for a flush may join an earlier flush.
    FlushShared,
    /// A writer who brings part of a row is answered before the write.
    JoinedEarly,
    /// Several writers may change a row at a time.
    RowsUnlocked,
    /// Gears are not recorded.
    GearUnrecorded,
    /// A gear is recorded before copies are durable.
    CopiesUnflushed,
    /// Changes in the low gear are not journalled.
    LowUnjournalled,
    /// Changes in the low gear go to the journals of the members with the row's parity.
    JournalsApart,
    /// Journals are not emptied where gears change.
    JournalsKept,
    /// Several writers may change rows with shared parity of soft rows.
    GroupsUnlocked,
    /// Writes in the low gear do not mark the regions of their home.
    HomesUnmarked,
    /// Standing members learn of no events before the high gear is recorded.
    StandingBehind,
}

/// Memory of one thread that serves requests.
pub struct RequestScratch {
    plan: Plan,
    scratch: Aligned,
    data: Aligned,
    record: Aligned,
    gathered: Aligned,
    pub(crate) carrier: Carrier,
}

impl RequestScratch {
    /// Returns a worker for concurrent transfers, if the kernel has io_uring.
    #[must_use]
    pub fn new() -> RequestScratch {
        RequestScratch::with(Carrier::new())
    }

    /// Returns a worker for one transfer after the other.
    #[must_use]
    pub fn one_by_one() -> RequestScratch {
        RequestScratch::with(Carrier::one_by_one())
    }

    fn with(carrier: Carrier) -> RequestScratch {
        let [scratch, data, record, gathered] = [(); 4].map(|()| Aligned::default());
        RequestScratch {
            plan: Plan::new(Detail::Bytes),
            scratch,
            data,
            record,
            gathered,
            carrier,
        }
    }

    /// True if transfers are carried out at the same time.
    #[must_use]
    pub fn is_parallel(&self) -> bool {
        self.carrier.is_parallel()
    }
}

impl Default for RequestScratch {
    fn default() -> RequestScratch {
        RequestScratch::new()
    }
}

/// Reason of a failed attempt.
enum Setback {
    /// A member could not be read.
    Unread(FailedTransfer),
    /// The attempt is to be repeated at once.
    Again,
    Error(ArrayError),
}

impl From<ArrayError> for Setback {
    fn from(error: ArrayError) -> Setback {
        Setback::Error(error)
    }
}

impl Array {
    pub(crate) fn new(
        uuid: Uuid,
        facts: ArrayProperties,
        layout: Box<dyn Layout>,
        devices: Devices,
        book: RosterRecord,
        sabotage: Sabotage,
    ) -> Array {
        let roster = &book.roster;
        let redundant = facts.survived > 0;
        let bitmap = redundant.then(|| Bitmap::new(uuid, roster.region_sectors, roster.regions));
        let slots = devices.len();
        let journals = if roster.journal_bytes > 0 { slots } else { 0 };
        let logs = (0..journals)
            .map(|_| MemberJournal::new(uuid, roster.journal_at, roster.journal_bytes))
            .collect();
        Array {
            uuid,
            facts,
            planner: Mutex::new(Planner { layout, version: 0 }),
            devices: RwLock::new(Arc::new(devices)),
            book: Mutex::new(book),
            bitmap,
            logs,
            gate: RwLock::new(()),
            locks: Locks::default(),
            edges: Locks::default(),
            gatherings: Gatherings::default(),
            writers: AtomicUsize::new(0),
            flushing: Group::default(),
            log_flushes: (0..slots).map(|_| Group::default()).collect(),
            epoch: AtomicU64::new(1),
            flushed: AtomicU64::new(0),
            changes: AtomicU64::new(1),
            journalled: Mutex::default(),
            failures: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            halted: OnceLock::new(),
            lacks_room: AtomicBool::new(false),
            read_only: OnceLock::new(),
            lost: AtomicBool::new(false),
            resting: AtomicBool::new(false),
            copied_at_once: gears::COPIED_AT_ONCE,
            shift_trouble: Mutex::default(),
            unread: Mutex::default(),
            happenings: Mutex::default(),
            sabotage,
        }
    }

    /// Identifier of the array.
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// Addresses `0..capacity`.
    pub fn capacity(&self) -> Sectors {
        self.facts.capacity
    }

    /// Block size for requests in bytes. Aligned requests need no additional reads or copies.
    pub fn block_bytes(&self) -> u64 {
        self.facts.block_bytes
    }

    /// Reads from the byte `at` on.
    ///
    /// # Errors
    /// Out of range, lost, or a device's.
    pub fn read(
        &self,
        worker: &mut RequestScratch,
        at: u64,
        into: &mut [u8],
    ) -> Result<(), ArrayError> {
        let extent = self.around_bytes(at, into.len())?;
        if extent.sectors.bytes().0 == into.len() as u64 && self.takes_it_as_it_is(into.len()) {
            return self.read_extent(worker, extent, into);
        }
        let mut data = std::mem::take(&mut worker.data);
        let bytes = data.of(extent.sectors.bytes().0 as usize);
        let result = self.read_extent(worker, extent, bytes);
        if result.is_ok() {
            into.copy_from_slice(
                &bytes[(at - (extent.start.0 * SECTOR_BYTES)) as usize..][..into.len()],
            );
        }
        worker.data = data;
        result
    }

    /// Writes from the byte `at` on.
    ///
    /// # Errors
    /// Out of range, lost, or a device's. Part of the bytes may have been written then, sector by
    /// sector.
    pub fn write(
        &self,
        worker: &mut RequestScratch,
        at: u64,
        from: &[u8],
    ) -> Result<(), ArrayError> {
        let extent = self.around_bytes(at, from.len())?;
        let length = extent.sectors.bytes().0 as usize;
        let whole = length == from.len();
        // The bytes beside the write in its blocks are read and written back. No other writer may
        // change them meanwhile.
        let _edges = self.edges.hold(extent, !whole);
        if whole && self.takes_it_as_it_is(from.len()) {
            return self.write_extent(worker, extent, from);
        }
        let mut data = std::mem::take(&mut worker.data);
        let bytes = data.of(length);
        let offset = (at - (extent.start.0 * SECTOR_BYTES)) as usize;
        let result = if whole {
            bytes.copy_from_slice(from);
            self.write_extent(worker, extent, bytes)
        } else {
            self.read_extent(worker, extent, bytes).and_then(|()| {
                bytes[offset..][..from.len()].copy_from_slice(from);
                self.write_extent(worker, extent, bytes)
            })
        };
        worker.data = data;
        result
    }

    /// Makes the bytes read as zeros.
    ///
    /// # Errors
    /// As [`write`](Array::write).
    pub fn write_zeroes(
        &self,
        worker: &mut RequestScratch,
        at: u64,
        length: u64,
    ) -> Result<(), ArrayError> {
        let zeros = vec![0; length.min(1 << 20) as usize];
        let mut done = 0;
        while done < length {
            // Each step ends at a multiple of 1 MiB, which is a whole number of rows in many
            // arrays.
            let step = ((1 << 20) - (at + done) % (1 << 20)).min(length - done);
            self.write(worker, at + done, &zeros[..step as usize])?;
            done += step;
        }
        Ok(())
    }

    /// True if members accept memory of any alignment, and a copy of `length` bytes would cost more
    /// than it saves.
    fn takes_it_as_it_is(&self, length: usize) -> bool {
        length >= COPIED_BELOW
            && self
                .devices()
                .iter()
                .flatten()
                .all(|device| device.is_cached())
    }

    /// Returns the whole blocks around a run of bytes.
    fn around_bytes(&self, at: u64, length: usize) -> Result<Extent, ArrayError> {
        let block = self.facts.block_bytes;
        let end = at.saturating_add(length as u64);
        let asked = Extent::new(
            at / SECTOR_BYTES,
            end.div_ceil(SECTOR_BYTES) - at / SECTOR_BYTES,
        );
        if length == 0 || !asked.within(self.facts.capacity) {
            return Err(ArrayError::OutOfRange {
                extent: asked,
                capacity: self.facts.capacity,
            });
        }
        let (first, behind) = (at / block * block, end.next_multiple_of(block));
        Ok(Extent::new(
            first / SECTOR_BYTES,
            (behind - first) / SECTOR_BYTES,
        ))
    }

    fn read_extent(
        &self,
        worker: &mut RequestScratch,
        extent: Extent,
        into: &mut [u8],
    ) -> Result<(), ArrayError> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            // `try_to_read` has released the gate when it returns. `mend_read` needs the gate
            // exclusively, and would wait forever otherwise.
            match self.try_to_read(worker, extent, into) {
                Ok(()) => return Ok(()),
                Err(Setback::Again) => {}
                Err(Setback::Error(error)) => return Err(error),
                Err(Setback::Unread(failed)) => self.mend_read(worker, failed, &mut last)?,
            }
        }
        Err(ArrayError::Lost { extent })
    }

    fn try_to_read(
        &self,
        worker: &mut RequestScratch,
        extent: Extent,
        into: &mut [u8],
    ) -> Result<(), Setback> {
        let _passed = self.pass();
        let mut held = None;
        loop {
            self.plan(Operation::Read, extent, &mut worker.plan)?;
            // Data is computed from several members, so no writer may change its row meanwhile. A
            // member may fail while the lock is waited for, so the plan is made again.
            if worker.plan.bands().is_empty() || held.is_some() {
                break;
            }
            held = Some(self.locks.hold(self.held_with(extent), false));
        }
        let devices = self.devices();
        let RequestScratch {
            plan,
            scratch,
            carrier,
            ..
        } = worker;
        let scratch = scratch.of(plan.scratch().bytes().0 as usize);
        let mut buffers = Buffers {
            request: RequestBytes::Into(into),
            scratch,
        };
        let reads = self.transfers(plan, Operation::Read);
        let failed = carrier.carry(TransferDirection::Read, &reads, &devices, &mut buffers);
        if let Some(failed) = failed.into_iter().next() {
            return Err(Setback::Unread(failed));
        }
        buffers.run_steps(plan);
        Ok(())
    }

    fn write_extent(
        &self,
        worker: &mut RequestScratch,
        extent: Extent,
        from: &[u8],
    ) -> Result<(), ArrayError> {
        // A single writer does not wait for other parts of a row.
        let others = self.writers.fetch_add(1, Ordering::SeqCst) > 0;
        let result = match self.facts.rows {
            Some(rows) if others => self.write_with_others(worker, extent, from, rows.data.0),
            _ => self.write_parts(worker, extent, from),
        };
        let writers = self.writers.fetch_sub(1, Ordering::SeqCst);
        assert!(writers > 0, "a write ends that has not begun");
        // A failure during the write must be on record before the write is answered.
        result.and_then(|()| self.settle())
    }

    fn write_parts(
        &self,
        worker: &mut RequestScratch,
        extent: Extent,
        from: &[u8],
    ) -> Result<(), ArrayError> {
        for part in self.parts(extent) {
            let bytes = part_of(from, extent, part);
            if !self.write_part(worker, part, bytes)? {
                for row in self.rows_of(part) {
                    self.write_part(worker, row, part_of(from, extent, row))?;
                }
            }
        }
        Ok(())
    }

    /// Writes an extent while others write too. Parts of rows may be joined with the parts of other
    /// writers. Whole rows are written first, to give other writers time to join. The writer's own
    /// gatherings are written before the wait for gatherings of others, so no two writers wait for
    /// each other.
    fn write_with_others(
        &self,
        worker: &mut RequestScratch,
        extent: Extent,
        from: &[u8],
        row: u64,
    ) -> Result<(), ArrayError> {
        let parts: Vec<Extent> = self.parts(extent).collect();
        let (whole, cut): (Vec<Extent>, Vec<Extent>) = parts
            .into_iter()
            .partition(|&part| self.around(part) == part);
        let (mut led, mut joined) = (Vec::new(), Vec::new());
        for part in cut {
            let first = (part.start.0 % row) as usize;
            let bytes = part_of(from, extent, part);
            match self
                .gatherings
                .enter(part.start.0 / row, row as usize, first, bytes)
            {
                WriterRole::First(gathering) => led.push((part, gathering)),
                WriterRole::Joined(gathering) => joined.push((part, gathering)),
            }
        }
        let mut result = Ok(());
        for part in whole {
            result =
                result.and_then(|()| self.write_parts(worker, part, part_of(from, extent, part)));
        }
        for (part, gathering) in led {
            let (number, first) = (part.start.0 / row, (part.start.0 % row) as usize);
            let others = self.gatherings.close(number, &gathering);
            let bytes = part_of(from, extent, part);
            let written = if others.is_empty() {
                self.write_parts(worker, part, bytes)
            } else {
                self.write_runs(worker, number * row, gather::runs(first, bytes, &others))
            };
            gathering.end(written.is_ok());
            result = result.and(written);
        }
        for (part, gathering) in joined {
            if self.sabotage != Sabotage::JoinedEarly && !gathering.wait() {
                // The joined write failed. The writer repeats its own part, so it gets the error of
                // its own part.
                result = result.and(self.write_parts(worker, part, part_of(from, extent, part)));
            }
        }
        result
    }

    fn write_runs(
        &self,
        worker: &mut RequestScratch,
        row: u64,
        runs: Vec<(usize, Vec<u8>)>,
    ) -> Result<(), ArrayError> {
        let mut gathered = std::mem::take(&mut worker.gathered);
        let mut result = Ok(());
        for (first, bytes) in runs {
            let aligned = gathered.of(bytes.len());
            aligned.copy_from_slice(&bytes);
            let run = Extent::new(row + first as u64, bytes.len() as u64 / SECTOR_BYTES);
            result = result.and_then(|()| self.write_parts(worker, run, aligned));
        }
        worker.gathered = gathered;
        result
    }

    /// Returns the part of the first row unless the row is whole, the whole rows, and the rest.
    fn parts(&self, extent: Extent) -> impl Iterator<Item = Extent> + use<> {
        let whole = self.facts.rows.map_or(extent, |rows| rows.within(extent));
        let cut = |from: Lbn, to: Lbn| Extent {
            start: from,
            sectors: Sectors(to.0.saturating_sub(from.0)),
        };
        let all = match whole.sectors {
            // No row is whole, but the extent may touch two rows.
            Sectors::ZERO => {
                let row = self.facts.rows.map_or(u64::MAX, |rows| rows.data.0);
                let border = Lbn(extent.start.0.saturating_add(row) / row * row).min(extent.end());
                [
                    cut(extent.start, border),
                    cut(border, extent.end()),
                    Extent::default(),
                ]
            }
            _ => [
                cut(extent.start, whole.start),
                whole,
                cut(whole.end(), extent.end()),
            ],
        };
        all.into_iter().filter(|part| part.sectors > Sectors::ZERO)
    }

    /// Cuts the extent at the borders of rows.
    fn rows_of(&self, extent: Extent) -> impl Iterator<Item = Extent> + use<> {
        let row = self.facts.rows.map_or(u64::MAX, |rows| rows.data.0);
        let end = extent.end().0;
        let mut at = extent.start.0;
        std::iter::from_fn(move || {
            let next = (at / row).saturating_add(1).saturating_mul(row).min(end);
            let part = (at < end).then(|| Extent::new(at, next - at));
            at = next;
            part
        })
    }

    /// Writes a part. Returns false if the part must be written row by row instead.
    fn write_part(
        &self,
        worker: &mut RequestScratch,
        part: Extent,
        from: &[u8],
    ) -> Result<bool, ArrayError> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match self.try_to_write(worker, part, from) {
                Ok(done) => return Ok(done),
                Err(Setback::Again) => {}
                Err(Setback::Error(error)) => return Err(error),
                Err(Setback::Unread(failed)) => self.mend_read(worker, failed, &mut last)?,
            }
        }
        Err(ArrayError::Lost { extent: part })
    }

    fn try_to_write(
        &self,
        worker: &mut RequestScratch,
        part: Extent,
        from: &[u8],
    ) -> Result<bool, Setback> {
        let _passed = self.pass();
        let _held = self.locks.hold(
            self.held_with(part),
            self.sabotage != Sabotage::RowsUnlocked,
        );
        self.check_changes()?;
        let (version, missing) = self.plan(Operation::Write, part, &mut worker.plan)?;
        let journalled = self.is_journalled(&worker.plan, part, missing);
        if (journalled || self.goes_row_by_row()) && self.rows_of(part).nth(1).is_some() {
            return Ok(false);
        }
        if !journalled && self.has_journalled_rows(part) {
            // This write makes no record. A record of an earlier change would overwrite it in a
            // replay.
            self.give_up_records()?;
        }
        self.marked(worker, version, part, missing, |worker| {
            self.make(worker, part, from, journalled)
        })?;
        Ok(true)
    }

    /// Marks the regions of the plan, carries the plan out, and ends the marks. `missing` is true
    /// if a member lacks the new data.
    fn marked(
        &self,
        worker: &mut RequestScratch,
        version: u64,
        part: Extent,
        missing: bool,
        carry_out: impl FnOnce(&mut RequestScratch) -> Result<(), Setback>,
    ) -> Result<(), Setback> {
        let Some(bitmap) = self
            .bitmap
            .as_ref()
            .filter(|_| self.sabotage != Sabotage::NoMarks)
        else {
            return carry_out(worker);
        };
        let ios = worker
            .plan
            .ios()
            .iter()
            .filter(|io| io.operation == Operation::Write);
        let homes = self.native_run(part);
        let regions = ios.map(|io| io.extent).chain(homes);
        let regions: BTreeSet<u32> = regions
            .flat_map(|extent| bitmap.regions_of(extent))
            .collect();
        debug_assert!(!regions.is_empty(), "{part:?} is written in no region");
        let Ok(()) = bitmap.begin(&regions, missing, |granules| {
            self.write_granules(&granules, true);
            Ok::<(), Infallible>(())
        });
        // If a member failed since planning, the regions were not marked as missed by it. So the
        // write is planned again.
        let result = if self.planner().version == version {
            carry_out(worker)
        } else {
            Err(Setback::Again)
        };
        bitmap.end(&regions, self.epoch.load(Ordering::SeqCst));
        result
    }

    /// True if the planned change is written to the journal first.
    fn is_journalled(&self, plan: &Plan, part: Extent, missing: bool) -> bool {
        let Some(rows) = self.facts.rows else {
            return false;
        };
        let sabotaged = self.sabotage == Sabotage::NoJournal
            || self.sabotage == Sabotage::LowUnjournalled && self.reads_soft();
        if sabotaged || self.facts.policy == JournalPolicy::None {
            return false;
        }
        let whole = rows.within(part) == part && !missing;
        let usual = self.facts.policy == JournalPolicy::Partial && whole;
        !usual
            && plan
                .pieces()
                .iter()
                .any(|piece| self.is_written_parity(plan, piece))
    }

    fn is_written_parity(&self, plan: &Plan, piece: &fullstroke_volume::MemoryPiece) -> bool {
        let parity = matches!(piece.content, Content::Parity | Content::SecondParity);
        parity && plan.ios()[piece.io as usize].operation == Operation::Write
    }

    /// Carries out the plan of a write.
    fn make(
        &self,
        worker: &mut RequestScratch,
        part: Extent,
        from: &[u8],
        journalled: bool,
    ) -> Result<(), Setback> {
        let devices = self.devices();
        let RequestScratch {
            plan,
            scratch,
            carrier,
            record,
            ..
        } = worker;
        let scratch = scratch.of(plan.scratch().bytes().0 as usize);
        let mut buffers = Buffers {
            request: RequestBytes::From(from),
            scratch,
        };
        let reads = self.transfers(plan, Operation::Read);
        let failed = carrier.carry(TransferDirection::Read, &reads, &devices, &mut buffers);
        if let Some(failed) = failed.into_iter().next() {
            return Err(Setback::Unread(failed));
        }
        buffers.run_steps(plan);
        let records = match journalled {
            true => self.write_down(plan, part, &buffers, &devices, record)?,
            false => Vec::new(),
        };
        let writes = self.transfers(plan, Operation::Write);
        let failed = carrier.carry(TransferDirection::Write, &writes, &devices, &mut buffers);
        // All other members have been written, so the row is whole without the failed ones.
        for failed in failed {
            let why = format!("write failed: {}", failed.error);
            self.drop_member(failed.transfer.slot, &why, failed.error)?;
        }
        records
            .into_iter()
            .for_each(|(slot, number)| self.logs[slot].applied(number));
        Ok(())
    }

    /// Writes the bytes of the plan to the journals of the members with the row's parity, and makes
    /// the records durable.
    fn write_down(
        &self,
        plan: &Plan,
        part: Extent,
        buffers: &Buffers<'_>,
        devices: &Devices,
        record: &mut Aligned,
    ) -> Result<Vec<(usize, u64)>, Setback> {
        let id = self.changes.fetch_add(1, Ordering::SeqCst);
        let mut change = Change {
            id,
            runs: Vec::new(),
            bytes: Vec::new(),
        };
        let mut holders = BTreeSet::new();
        for piece in plan.pieces() {
            let io = &plan.ios()[piece.io as usize];
            if io.operation == Operation::Write {
                assert!(
                    piece.sectors.0 <= u64::from(u32::MAX),
                    "a record holds no run of {}",
                    piece.sectors
                );
                let run = ChangeRun {
                    slot: io.member,
                    sectors: piece.sectors.0 as u32,
                    lbn: piece.lbn.0,
                    kind: ChangedContent::Written,
                };
                change.runs.push(run);
                change
                    .bytes
                    .extend_from_slice(buffers.at(piece.place, piece.sectors));
            }
            if self.is_written_parity(plan, piece) {
                holders.insert(io.member as usize);
            }
        }
        if let Some(shared) = self.shared_journals(part) {
            holders = shared.into_iter().collect();
        }
        debug_assert!(
            !holders.is_empty(),
            "no journal takes the change of {part:?}"
        );
        let row = self.facts.rows.map_or(0, |rows| part.start.0 / rows.data.0);
        let mut numbers = Vec::new();
        for slot in holders {
            let Some(device) = &devices[slot] else {
                continue;
            };
            let room = MemberJournal::room(change.runs.len(), change.bytes.len() as u64);
            if !self.logs[slot].fits(room) {
                let message = format!("a change takes {room} bytes, more than a journal has");
                return Err(ArrayError::Refused(message).into());
            }
            // Counted before the record is there: a flush by another thread may give the record
            // up, and must find it counted.
            *self.journalled().entry(row).or_default() += 1;
            let written = loop {
                match self.logs[slot].append(&**device, row, &change, record) {
                    Ok(written) => break written,
                    Err(crate::journal::JournalFull) => self.give_up_records()?,
                }
            };
            if written.is_err() {
                self.forget_journalled(vec![row]);
            }
            let durable = written.and_then(|number| {
                numbers.push((slot, number));
                if self.sabotage != Sabotage::JournalUnflushed {
                    // Several writers share a flush. If the flush fails, all of them see the
                    // failure, but only one has its error.
                    let mut failure = None;
                    let well = self.log_flushes[slot].join(false, || {
                        device
                            .flush()
                            .map_err(|error| failure = Some(error))
                            .is_ok()
                    });
                    if !well {
                        return Err(failure.unwrap_or_else(|| std::io::ErrorKind::Other.into()));
                    }
                }
                Ok(())
            });
            if let Err(error) = durable {
                let why = format!("write of the journal failed: {error}");
                self.drop_member(slot, &why, error)?;
                // No member is changed before the others have recorded the failure. Otherwise power
                // may fail, and the failed member may be back afterwards without the record.
                self.settle()?;
                numbers
                    .into_iter()
                    .for_each(|(slot, number): (usize, u64)| self.logs[slot].applied(number));
                return Err(Setback::Again);
            }
        }
        Ok(numbers)
    }

    /// Makes all earlier writes durable.
    ///
    /// # Errors
    /// A device's, if no redundancy replaces the data. Also, once, if data was lost since the last
    /// flush: earlier writes may be among the lost data. fsync(2) also fails once for pages that
    /// could not be written.
    pub fn flush(&self) -> Result<(), ArrayError> {
        if self.is_read_only() {
            return Ok(());
        }
        self.make_durable()?;
        match self.lost.swap(false, Ordering::SeqCst) {
            true => Err(ArrayError::LostBefore),
            false => Ok(()),
        }
    }

    /// As [`flush`](Array::flush), for the array's own purposes: does not report lost data.
    pub(crate) fn make_durable(&self) -> Result<(), ArrayError> {
        self.flushing
            .join(self.sabotage == Sabotage::FlushShared, || {
                self.flush_members()
            });
        self.settle()?;
        self.check_running()
    }

    fn flush_members(&self) -> bool {
        // Taken before the flush, together with the epoch: the flush does not cover changes that
        // end during the flush.
        let before: Vec<BeforeFlush> = self.logs.iter().map(MemberJournal::before_flush).collect();
        let epoch = self.epoch.fetch_add(1, Ordering::SeqCst);
        if !self.flush_devices() {
            return false;
        }
        let earlier = self.flushed.fetch_max(epoch, Ordering::SeqCst);
        debug_assert!(
            earlier < epoch,
            "two flushes at a time: epoch {epoch} ends behind epoch {earlier}"
        );
        let devices = self.devices();
        for (slot, (log, mut before)) in self.logs.iter().zip(before).enumerate() {
            if self.sabotage == Sabotage::RetiredEarly {
                before.marked = before.applied;
            }
            let Some(device) = &devices[slot] else {
                self.forget_journalled(log.abandon());
                continue;
            };
            let (rows, marked) = log.after_flush(&**device, before);
            self.forget_journalled(rows);
            if let Err(error) = marked {
                let why = format!("write of the journal failed: {error}");
                if self.drop_member(slot, &why, error).is_err() {
                    return false;
                }
                self.forget_journalled(log.abandon());
            }
        }
        true
    }

    /// Flushes every device. A failed flush fails the device.
    pub(crate) fn flush_devices(&self) -> bool {
        let mut well = true;
        for (slot, result) in flush_each(&self.turning()) {
            if let Err(error) = result {
                let why = format!("flush failed: {error}");
                if let Err(error) = self.drop_member(slot, &why, error) {
                    // The device's writes are lost, and no other member has them.
                    self.halt(&error.to_string());
                    well = false;
                }
            }
        }
        well
    }

    /// Clears the marks of regions without writes during several calls. Call this about once a
    /// second.
    ///
    /// # Errors
    /// As [`flush`](Array::flush).
    pub fn tidy(&self) -> Result<(), ArrayError> {
        let Some(bitmap) = self.bitmap.as_ref().filter(|_| !self.is_read_only()) else {
            return Ok(());
        };
        self.check_running()?;
        // Flushes only if the writes of a quiet region are not known to be durable.
        if bitmap.look(self.flushed.load(Ordering::SeqCst)) {
            self.make_durable()?;
        }
        let flushed = self.flushed.load(Ordering::SeqCst);
        // The cleared bits need no flush: a mark that stays set costs only a comparison after a
        // crash.
        bitmap.clear_quiet(flushed, |granules| self.write_granules(&granules, false));
        self.settle()
    }

    /// Gives up the records of the journals with two flushes: the first makes changes durable, the
    /// second their markers.
    pub(crate) fn give_up_records(&self) -> Result<(), ArrayError> {
        for _ in 0..2 {
            if !self.flushing.join(false, || self.flush_members()) {
                self.check_running()?;
            }
        }
        Ok(())
    }

    /// Records new failures of members. If another thread is recording, the call waits for the end.
    pub(crate) fn settle(&self) -> Result<(), ArrayError> {
        if self.sabotage == Sabotage::FailureForgotten {
            return Ok(());
        }
        while self.is_unsettled() {
            let mut book = self.book();
            if self.is_unsettled() {
                self.commit(&mut book)?;
            }
        }
        Ok(())
    }

    fn is_unsettled(&self) -> bool {
        self.settled.load(Ordering::SeqCst) < self.failures.load(Ordering::SeqCst)
    }

    /// Plans a request. Returns the version of the members' states, and true if members are
    /// missing.
    pub(crate) fn plan(
        &self,
        operation: Operation,
        extent: Extent,
        plan: &mut Plan,
    ) -> Result<(u64, bool), ArrayError> {
        let mut planner = self.planner();
        let request = Request {
            operation,
            extent,
            ..Request::default()
        };
        match planner.layout.plan(&request, LayersBelow::NOTHING, plan) {
            RequestStatus::Done | RequestStatus::Differs => {}
            RequestStatus::Lost => {
                self.lost.store(true, Ordering::SeqCst);
                return Err(ArrayError::Lost { extent });
            }
            RequestStatus::OutOfRange => {
                return Err(ArrayError::OutOfRange {
                    extent,
                    capacity: self.facts.capacity,
                });
            }
        }
        Ok((planner.version, planner.lacks_members()))
    }

    /// Returns the reads or the writes of the plan as transfers.
    pub(crate) fn transfers(&self, plan: &Plan, operation: Operation) -> Vec<MemberTransfer> {
        let pieces = plan.pieces().iter().filter_map(|piece| {
            let io = &plan.ios()[piece.io as usize];
            let at = self.facts.data_at + piece.lbn.0 * SECTOR_BYTES;
            let slot = io.member as usize;
            (io.operation == operation).then_some(MemberTransfer {
                slot,
                at,
                place: piece.place,
                sectors: piece.sectors,
            })
        });
        pieces.collect()
    }

    /// Returns the whole rows around an extent; without parity the extent.
    pub(crate) fn around(&self, extent: Extent) -> Extent {
        self.facts.rows.map_or(extent, |rows| rows.around(extent))
    }

    /// Writes parts of the bitmap to every member.
    pub(crate) fn write_granules(&self, granules: &Granules, durable: bool) {
        let at = self.facts.bitmap_at;
        let devices = self.turning();
        let mut buffer = Aligned::default();
        for (slot, device) in devices.iter().enumerate() {
            let Some(device) = device else { continue };
            let written = granules.iter().try_for_each(|(offset, bytes)| {
                let aligned = buffer.of(bytes.len());
                aligned.copy_from_slice(bytes);
                device.write(at + offset, aligned)
            });
            if let Err(error) = written {
                // A member whose bitmap cannot be written fails. If the array does not survive
                // that, `drop_member` halts the array, so no write is made without a mark.
                let _ =
                    self.drop_member(slot, &format!("write of the bitmap failed: {error}"), error);
            }
        }
        if durable {
            self.flush_devices();
        }
    }

    fn has_journalled_rows(&self, part: Extent) -> bool {
        let Some(rows) = self.facts.rows.filter(|_| !self.logs.is_empty()) else {
            return false;
        };
        let (first, behind) = (
            part.start.0 / rows.data.0,
            part.end().0.div_ceil(rows.data.0),
        );
        self.journalled().range(first..behind).next().is_some()
    }

    pub(crate) fn has_any_journalled(&self) -> bool {
        !self.journalled().is_empty()
    }

    fn forget_journalled(&self, rows: Vec<u64>) {
        let mut journalled = self.journalled();
        for row in rows {
            if let Some(count) = journalled.get_mut(&row) {
                assert!(*count > 0, "row {row} is listed without a record");
                *count -= 1;
                if *count == 0 {
                    journalled.remove(&row);
                }
            }
        }
    }

    /// Clears the list of rows with records, because the journals have begun anew.
    pub(crate) fn forget_all_journalled(&self) {
        self.journalled().clear();
    }

    /// Returns an error if the array has halted.
    pub(crate) fn check_running(&self) -> Result<(), ArrayError> {
        match self.halted.get() {
            None => Ok(()),
            Some(why) => Err(ArrayError::Halted { why: why.clone() }),
        }
    }

    /// Halts the array: no change is made any more.
    pub(crate) fn halt(&self, why: &str) -> ArrayError {
        ArrayError::Halted {
            why: self.halted.get_or_init(|| why.to_owned()).clone(),
        }
    }

    /// Returns an error if the array has halted or is read-only.
    pub(crate) fn check_changes(&self) -> Result<(), ArrayError> {
        match self.read_only.get() {
            Some(&why) => Err(ArrayError::ReadOnly { why }),
            None => self.check_running(),
        }
    }

    /// True if the array was assembled read-only: by order, or because a member's file system has
    /// no room.
    pub fn is_read_only(&self) -> bool {
        self.read_only.get().is_some()
    }

    /// Reason of the halt; `None` while the array changes data.
    pub fn halted(&self) -> Option<&str> {
        self.halted.get().map(String::as_str)
    }

    /// Shares the gate with other requests.
    fn pass(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no request is in progress, and holds up all others.
    pub(crate) fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn planner(&self) -> MutexGuard<'_, Planner> {
        self.planner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn devices(&self) -> Arc<Devices> {
        Arc::clone(&self.devices.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, RosterRecord> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn journalled(&self) -> MutexGuard<'_, BTreeMap<u64, u32>> {
        self.journalled
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Planner {
    /// True if members are missing or being filled.
    pub(crate) fn is_impaired(&self) -> bool {
        (0..self.layout.members()).any(|slot| self.layout.member_state(slot) != MemberState::Alive)
    }
}

/// Returns the bytes of a part.
fn part_of(bytes: &[u8], extent: Extent, part: Extent) -> &[u8] {
    assert!(
        extent.start <= part.start && part.end() <= extent.end(),
        "{part:?} is no part of {extent:?}"
    );
    let start = part.start.since(extent.start).bytes().0 as usize;
    &bytes[start..][..part.sectors.bytes().0 as usize]
}

/// Flushes the devices: at the same time if all have descriptors, otherwise one after the other.
fn flush_each(devices: &Devices) -> Vec<(usize, std::io::Result<()>)> {
    let present = devices
        .iter()
        .enumerate()
        .filter_map(|(slot, device)| Some((slot, device.as_ref()?)));
    let present: Vec<_> = present.collect();
    if present
        .iter()
        .any(|(_, device)| device.descriptor().is_none())
    {
        return present
            .into_iter()
            .map(|(slot, device)| (slot, device.flush()))
            .collect();
    }
    std::thread::scope(|scope| {
        let begun = present
            .iter()
            .map(|&(slot, device)| (slot, scope.spawn(move || device.flush())));
        let begun: Vec<_> = begun.collect();
        let ended = begun.into_iter().map(|(slot, flush)| {
            (
                slot,
                flush
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            )
        });
        ended.collect()
    })
}
