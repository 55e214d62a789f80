//! An assembled array: requests and members.

mod changing;
mod flushing;
mod race;
mod reading;
mod trim;
mod writing;

use crate::ArrayError;
use crate::bitmap::Bitmap;
use crate::condition::ArrayCondition;
use crate::device::Aligned;
use crate::epochs::FlushEpochs;
use crate::gear_state::{GearFacts, ShiftState};
use crate::journals::ArrayJournals;
use crate::late::LateReads;
use crate::member_layout::{MemberLayout, PlanRefusal};
use crate::member_transfer::{FailedTransfer, MemberTransfer};
use crate::order::RequestOrder;
use crate::roster_record::RosterRecord;
use crate::superblock::JournalPolicy;
use crate::transfer::{Carrier, Devices};
use crate::uuid::Uuid;
use fullstroke_contract::{Extent, Operation};
use fullstroke_units::{SECTOR_BYTES, Sectors};
use fullstroke_volume::{Detail, Layout, ParityRows, Plan};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

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
    pub(crate) planner: Mutex<MemberLayout>,
    pub(crate) devices: RwLock<Arc<Devices>>,
    pub(crate) book: Mutex<RosterRecord>,
    /// `None` without redundancy, because there is nothing to mend then.
    pub(crate) bitmap: Option<Bitmap>,
    pub(crate) journals: ArrayJournals,
    pub(crate) order: RequestOrder,
    epochs: FlushEpochs,
    pub(crate) condition: ArrayCondition,
    pub(crate) shift: ShiftState,
    /// Policy that reads around members; empty for an array that waits.
    pub(crate) late: OnceLock<Arc<LateReads>>,
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
    /// Reads around a member do not wait for writers of the row.
    AroundUnlocked,
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
enum AttemptFailure {
    /// A member could not be read.
    Unread(FailedTransfer),
    /// The attempt is to be repeated at once.
    Again,
    Error(ArrayError),
}

impl From<ArrayError> for AttemptFailure {
    fn from(error: ArrayError) -> AttemptFailure {
        AttemptFailure::Error(error)
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
        assert_eq!(
            devices.len(),
            roster.slots.len(),
            "each slot of the roster has a place for a device"
        );
        let bitmap = redundant.then(|| Bitmap::new(uuid, roster.region_sectors, roster.regions));
        let journals = ArrayJournals::new(uuid, roster, devices.len());
        Array {
            uuid,
            facts,
            planner: Mutex::new(MemberLayout::new(layout)),
            devices: RwLock::new(Arc::new(devices)),
            book: Mutex::new(book),
            bitmap,
            journals,
            order: RequestOrder::default(),
            epochs: FlushEpochs::default(),
            condition: ArrayCondition::default(),
            shift: ShiftState::default(),
            late: OnceLock::new(),
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

    /// Plans a request. Returns the version of the members' states, and true if members are
    /// missing.
    pub(crate) fn plan(
        &self,
        operation: Operation,
        extent: Extent,
        plan: &mut Plan,
    ) -> Result<(u64, bool), ArrayError> {
        let mut planner = self.planner();
        planner.plan(operation, extent, plan).map_err(|refusal| {
            if matches!(refusal, PlanRefusal::Lost { .. }) {
                self.condition.note_loss();
            }
            ArrayError::from(refusal)
        })?;
        Ok((planner.version(), planner.lacks_members()))
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

    /// Sets the policy against slow members, once.
    pub(crate) fn set_late(&self, late: LateReads) {
        let first = self.late.set(Arc::new(late));
        debug_assert!(first.is_ok(), "an array gets its policy once");
    }

    /// Returns the whole rows around an extent; without parity the extent.
    pub(crate) fn around(&self, extent: Extent) -> Extent {
        self.facts.rows.map_or(extent, |rows| rows.around(extent))
    }

    /// True if the array was assembled read-only: by order, or because a member's file system has
    /// no room.
    pub fn is_read_only(&self) -> bool {
        self.condition.read_only().is_some()
    }

    /// Reason of the halt; `None` while the array changes data.
    pub fn halted(&self) -> Option<&str> {
        self.condition.halted()
    }

    pub(crate) fn planner(&self) -> MutexGuard<'_, MemberLayout> {
        self.planner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn devices(&self) -> Arc<Devices> {
        Arc::clone(&self.devices.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, RosterRecord> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
