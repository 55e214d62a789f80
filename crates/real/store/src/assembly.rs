//! Making, assembling, examining, stopping and destroying arrays.

use crate::array::{Array, ArrayProperties, RequestScratch, Sabotage};
use crate::bitmap;
use crate::comparison::RedundancyCheck;
use crate::device::{ALIGNMENT_BYTES, Aligned};
use crate::gear_state::GearFacts;
use crate::journal::MemberJournal;
use crate::keys;
use crate::label::{self, Label};
use crate::late::LatePolicy;
use crate::overlay::Overlay;
use crate::roster_record::{RosterRecord, knows_what_it_missed, new_uuid};
use crate::signatures::{LOOKED_AT_BYTES, OWN_BYTES};
use crate::superblock::{
    self, Copies, JournalPolicy, Knowledge, MemberRates, Roster, SlotState, Spare, Superblock,
};
use crate::transfer::Devices;
use crate::uuid::Uuid;
use crate::vacant::{allocate, refuse_owned, wipe};
use crate::{ArrayError, Device};
use fullstroke_contract::registry::{Keys, find};
use fullstroke_contract::{Extent, MemberState};
use fullstroke_units::{Bytes, SECTOR_BYTES, Sectors};
use fullstroke_volume::{Layout, REGISTRY};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// First byte of the bitmap: behind the superblock.
const BITMAP_AT: u64 = 64 << 10;
/// Smallest size of a region. The largest is [`REGION_MOST`], unless there would be more regions
/// than [`REGIONS_MOST`].
const REGION_LEAST: u64 = 1 << 20;
const REGION_MOST: u64 = 64 << 20;
const REGIONS_MOST: u64 = 1 << 18;
/// Size of the journal of a large member: 16 MiB.
const JOURNAL_BYTES: u64 = 16 << 20;
const JOURNAL_LEAST: u64 = 256 << 10;
/// Alignment of the first byte of data.
const DATA_ALIGNMENT: u64 = 1 << 20;

/// Smallest data area of a member.
const LEAST_DATA: u64 = 64 << 10;

/// Description of a new array.
#[derive(Clone, Debug)]
pub struct Design {
    /// Name of the array, for people and clients.
    pub name: String,
    /// The layout's name in [`REGISTRY`].
    pub layout: String,
    /// Keys of the layout, as in a stack file.
    pub keys: Keys,
    /// Changes to write to the journal first.
    pub journal: JournalPolicy,
    /// Number of spares; the last devices become spares.
    pub spares: usize,
    /// True if devices may have an owner or hold data.
    pub force: bool,
    /// True if files do not allocate all their room when the array is made.
    pub sparse: bool,
    /// Bytes of data on each member. Default: the room of the device.
    pub member_bytes: Option<u64>,
    /// Bytes of a member for each bit of the bitmap, a power of two. Default: depends on the
    /// members' size.
    pub region_bytes: Option<u64>,
    /// Measured rates of the members, in order; empty if nothing was measured.
    pub measured: Vec<MemberRates>,
}

/// Findings and repairs of an assembly.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct AssemblyReport {
    /// True if the array had been stopped properly.
    pub clean: bool,
    /// Number of changes repeated from the journals.
    pub replayed_changes: u64,
    /// Number of regions with redundancy made anew from the data.
    pub compared_regions: u64,
    /// Differences found in these regions.
    pub mended: RedundancyCheck,
    /// Number of regions with writes of whole rows during the loss of a member. The member's data
    /// in these rows may be neither old nor new.
    pub regions_at_risk: u64,
    /// Unreadable devices, and devices of no or other arrays. All count as missing.
    pub gone: Vec<String>,
    /// Remarks on accepted members: they have grown, or were accepted because the caller trusts
    /// them.
    pub remarks: Vec<String>,
    /// Members newly counted as failed.
    pub newly_failed: Vec<String>,
    /// Members that failed earlier, although their devices are here. All may be added again.
    pub left_out: Vec<String>,
    /// Number of damaged copies of superblocks.
    pub torn_superblocks: u64,
}

/// Makes an array of `devices`, in this order. Their data is lost. The data of the array is zeros
/// if the `devices` hold zeros, and anything consistent otherwise.
///
/// # Errors
/// A device has an owner or is too small. The layout does not accept the keys or the number of
/// members. Or a device's.
pub fn create(design: &Design, devices: &[Arc<dyn Device>]) -> Result<Roster, ArrayError> {
    let members = devices.len().saturating_sub(design.spares);
    check_free(design, devices)?;
    let (roster, mut layout) = plan_roster(design, devices, members)?;
    if layout.failures_survived() == 0 && design.spares > 0 {
        return Err(ArrayError::Refused(format!(
            "{} has no redundancy: found {} spares; expected none",
            design.layout, design.spares
        )));
    }
    let survived = layout.failures_survived() as usize;
    let may_fail = match (survived, layout.geometry().parity_rows()) {
        (0, _) => 0,
        (_, Some(_)) => survived,
        // One member of each pair may fail, or all copies but one. So all but one member may have
        // failed at a time.
        (_, None) => members - 1,
    };
    roster.check_room(may_fail, layout.gears().is_some())?;
    let array = new_uuid()?;
    // All checks are done. First the room is allocated, because that destroys nothing; only then is
    // anything written.
    if !design.sparse {
        devices.iter().try_for_each(|device| allocate(&**device))?;
    }
    // Zeros are a consistent array in every layout.
    let zeros = devices[..members].iter().all(|device| device.is_zero());
    devices
        .iter()
        .try_for_each(|device| wipe(&**device, LOOKED_AT_BYTES))?;
    let facts = ArrayProperties::of(&roster, &mut *layout);
    let book = RosterRecord {
        newest: BTreeMap::new(),
        spares: devices[members..].to_vec(),
        roster: roster.clone(),
    };
    let all: Devices = devices[..members]
        .iter()
        .map(|device| Some(Arc::clone(device)))
        .collect();
    let named = roster.slots.iter().map(|slot| slot.member);
    let named = named.chain(roster.spares.iter().map(|spare| spare.member));
    for (device, member) in devices.iter().zip(named) {
        let label = Label::of_device(array, member);
        label::write_unless_there(&**device, roster.label_at(), &label)?;
    }
    if !zeros {
        leave_to_be_filled(&mut *layout);
    }
    let array = Array::new(array, facts, layout, all, book, Sabotage::Nothing);
    array.begin_journals(0)?;
    let mut book = array.book();
    // Writes both copies of each superblock: each copy has one of the two numbers of the event.
    array.commit(&mut book)?;
    if let Some(failed) = array.take_happenings().into_iter().next() {
        return Err(ArrayError::Refused(format!(
            "`{}` failed: {}; the array was not created",
            failed.device, failed.why
        )));
    }
    Ok(book.roster.clone())
}

/// Returns the extent of the data on each device, for a future array without parity. The extent may
/// be measured to choose the layout's keys.
///
/// # Errors
/// As those of [`create`], except those of the layout.
pub fn room(design: &Design, devices: &[Arc<dyn Device>]) -> Result<Vec<Extent>, ArrayError> {
    check_free(design, devices)?;
    let places = RecordPlaces::of(design, devices)?;
    let data_at = places.without_journal();
    let extent = |device: &Arc<dyn Device>| {
        Ok(Extent::new(
            data_at / SECTOR_BYTES,
            data_sectors(design, &**device, data_at)?.0,
        ))
    };
    devices.iter().map(extent).collect()
}

/// Makes redundancy follow from the present content of the devices. As many members as the array
/// can do without, the last first, are filled from the others.
fn leave_to_be_filled(layout: &mut dyn Layout) {
    for slot in (0..layout.members()).rev() {
        layout.set_member_state(
            slot,
            MemberState::Rebuilding {
                done: Sectors::ZERO,
            },
        );
        if !layout.answers() {
            layout.set_member_state(slot, MemberState::Alive);
        }
    }
}

/// Returns an error if a device is named twice or has an owner.
fn check_free(design: &Design, devices: &[Arc<dyn Device>]) -> Result<(), ArrayError> {
    check_names(devices)?;
    devices
        .iter()
        .filter(|_| !design.force)
        .try_for_each(|device| refuse_owned(&**device))
}

fn check_names(devices: &[Arc<dyn Device>]) -> Result<(), ArrayError> {
    let mut names = BTreeSet::new();
    for device in devices {
        if !names.insert(device.name()) {
            return Err(ArrayError::Refused(format!(
                "`{}` is named twice; name each device once",
                device.name()
            )));
        }
    }
    Ok(())
}

/// Places of the records on each device, before its data.
struct RecordPlaces {
    region_bytes: u64,
    regions: u64,
    journal_at: u64,
    journal_bytes: u64,
}

impl RecordPlaces {
    fn of(design: &Design, devices: &[Arc<dyn Device>]) -> Result<RecordPlaces, ArrayError> {
        let smallest = devices
            .iter()
            .map(|device| device.bytes())
            .min()
            .unwrap_or(0);
        // All members have a bitmap of the same size, for the largest member.
        let largest = devices
            .iter()
            .map(|device| device.bytes())
            .max()
            .unwrap_or(0);
        let region_bytes = (largest / 1024)
            .next_power_of_two()
            .clamp(REGION_LEAST, REGION_MOST);
        let region_bytes = match design.region_bytes {
            Some(bytes) if bytes.is_power_of_two() && bytes >= 4096 => bytes,
            Some(bytes) => {
                return Err(ArrayError::Refused(format!(
                    "region: found {bytes} bytes; expected a power of two from 4 KiB on"
                )));
            }
            None => region_bytes,
        };
        let region_bytes = region_bytes.max(largest.div_ceil(REGIONS_MOST).next_power_of_two());
        let regions = largest.div_ceil(region_bytes);
        let journal_at = (BITMAP_AT + bitmap::room(regions)).next_multiple_of(ALIGNMENT_BYTES);
        let journal_bytes =
            (smallest / 64).clamp(JOURNAL_LEAST, JOURNAL_BYTES) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
        Ok(RecordPlaces {
            region_bytes,
            regions,
            journal_at,
            journal_bytes,
        })
    }

    fn with_journal(&self) -> u64 {
        (self.journal_at + self.journal_bytes).next_multiple_of(DATA_ALIGNMENT)
    }

    fn without_journal(&self) -> u64 {
        self.journal_at.next_multiple_of(DATA_ALIGNMENT)
    }
}

/// Returns the sectors of data on a device whose data begins at `data_at`.
fn data_sectors(design: &Design, device: &dyn Device, data_at: u64) -> Result<Sectors, ArrayError> {
    let end =
        (device.bytes() / 4096 * 4096).saturating_sub(superblock::SUPERBLOCK_BYTES) / 4096 * 4096;
    let room = end.saturating_sub(data_at);
    let wanted = design.member_bytes.unwrap_or(room) / 4096 * 4096;
    if wanted < LEAST_DATA || wanted > room {
        let expected = data_at + superblock::SUPERBLOCK_BYTES + wanted.max(LEAST_DATA);
        return Err(ArrayError::Refused(format!(
            "`{}` is too small: found {} bytes; expected at least {expected}",
            device.name(),
            device.bytes()
        )));
    }
    Ok(Sectors(wanted / SECTOR_BYTES))
}

/// Builds the layout, and the description with all places.
fn plan_roster(
    design: &Design,
    devices: &[Arc<dyn Device>],
    members: usize,
) -> Result<(Roster, Box<dyn Layout>), ArrayError> {
    let places = RecordPlaces::of(design, devices)?;
    let mut keys = keys::resolved(&design.layout, &design.keys)?;
    let block_bytes = devices
        .iter()
        .map(|device| device.block_bytes())
        .max()
        .unwrap_or(512);
    let build =
        |keys: &Keys, data_at: u64| -> Result<(Box<dyn Layout>, Vec<Sectors>), ArrayError> {
            let all = devices
                .iter()
                .map(|device| data_sectors(design, &**device, data_at));
            let all = all.collect::<Result<Vec<_>, _>>()?;
            Ok((layout_of(&design.layout, keys, &all[..members])?, all))
        };
    // Measured zones refer to the room without a journal, so the layout is built for that first.
    let (mut journal_bytes, mut data_at) = (0, places.without_journal());
    let (mut layout, mut all) = build(&keys, data_at)?;
    if let Some(gears) = layout.gears() {
        check_no_rules(design)?;
        keys.extend(gears.settled_keys());
    }
    if layout.geometry().parity_rows().is_some() {
        (journal_bytes, data_at) = (places.journal_bytes, places.with_journal());
        (layout, all) = build(&keys, data_at)?;
    }
    let unit = layout.geometry().stripe().map_or(1, |stripe| stripe.unit.0);
    if !(unit * SECTOR_BYTES).is_multiple_of(block_bytes) && unit > 1 {
        return Err(ArrayError::Refused(format!(
            "chunk: found {} bytes; expected a multiple of {block_bytes}, the blocks of the devices",
            unit * SECTOR_BYTES
        )));
    }
    if journal_bytes > 0 && design.journal != JournalPolicy::None {
        // With gears, a change writes the members and their soft state.
        let places = if layout.gears().is_some() {
            2 * members + 2
        } else {
            members
        };
        check_journal(journal_bytes, [members, places], unit * SECTOR_BYTES)?;
    }
    let created_s = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (slots, spares) = new_slots(design, devices, &all[..members])?;
    let roster = Roster {
        name: design.name.clone(),
        layout: design.layout.clone(),
        keys,
        created_s,
        events: 0,
        stamp: None,
        clean: true,
        journal: design.journal,
        bitmap_at: BITMAP_AT,
        region_sectors: places.region_bytes / SECTOR_BYTES,
        regions: places.regions,
        journal_at: places.journal_at,
        journal_bytes,
        data_at,
        block_bytes,
        missed_since: None,
        slots,
        spares,
        low_gear: None,
    };
    Ok((roster, layout))
}

/// Returns the slots of a new array for the first devices, and spares for the others. `sectors` has
/// the data of each slot.
fn new_slots(
    design: &Design,
    devices: &[Arc<dyn Device>],
    sectors: &[Sectors],
) -> Result<(Vec<superblock::MemberSlot>, Vec<Spare>), ArrayError> {
    let (members, spares) = devices.split_at(sectors.len());
    let slots = members.iter().zip(sectors).enumerate();
    let slots = slots.map(|(slot, (device, sectors))| {
        Ok(superblock::MemberSlot {
            member: new_uuid()?,
            device: device.name(),
            sectors: sectors.0,
            state: SlotState::Alive,
            failed_at: 0,
            failed_after: None,
            measured: design.measured.get(slot).copied(),
        })
    });
    let slots = slots.collect::<Result<Vec<_>, ArrayError>>()?;
    let spares = spares.iter().map(|device| {
        Ok(Spare {
            member: new_uuid()?,
            device: device.name(),
        })
    });
    Ok((slots, spares.collect::<Result<Vec<_>, ArrayError>>()?))
}

/// Keys for automatic shifts of layouts with gears.
const RULES: [&str; 5] = [
    "shift_down",
    "shift_up",
    "window_s",
    "stay_s",
    "stops_a_day",
];

/// Refuses keys without effect.
fn check_no_rules(design: &Design) -> Result<(), ArrayError> {
    let given = RULES
        .iter()
        .find_map(|&key| Some((key, design.keys.get(key)?)));
    let Some((key, value)) = given else {
        return Ok(());
    };
    Err(ArrayError::Refused(format!(
        "{key}: found {value}; expected no key: an array on devices shifts by `array gear` only, and not by the utilisation of its members"
    )))
}

/// Returns an error if two changes of a row do not fit into the journal: one is written while the
/// other is still in progress.
fn check_journal(
    journal_bytes: u64,
    [members, places]: [usize; 2],
    chunk: u64,
) -> Result<(), ArrayError> {
    let needed = |chunk: u64| 2 * MemberJournal::room(places * 64, places as u64 * chunk);
    if needed(chunk) <= journal_bytes {
        return Ok(());
    }
    let mut fits = chunk / 2;
    while fits >= SECTOR_BYTES && needed(fits) > journal_bytes {
        fits /= 2;
    }
    let mut ways = Vec::new();
    if fits >= SECTOR_BYTES {
        ways.push(format!("chunks of up to {}", Bytes(fits)));
    }
    if needed(chunk) <= JOURNAL_BYTES {
        ways.push(format!("devices of {} bytes", 64 * needed(chunk)));
    }
    ways.push(
        "--journal none, with which a power failure may lose the data of a missing member"
            .to_owned(),
    );
    Err(ArrayError::Refused(format!(
        "chunk: found {}, with which two changes of a row of {members} members take {} bytes; the journal of each \
         member has {journal_bytes}, a 64th of the smallest device within {} and {}; expected {}",
        Bytes(chunk),
        needed(chunk),
        Bytes(JOURNAL_LEAST),
        Bytes(JOURNAL_BYTES),
        ways.join(", or ")
    )))
}

/// Returns the unused sectors of each member, in order.
///
/// # Errors
/// The layout does not accept the roster's keys or members.
pub fn unused(roster: &Roster) -> Result<Vec<Sectors>, ArrayError> {
    let members: Vec<Sectors> = roster
        .slots
        .iter()
        .map(|slot| Sectors(slot.sectors))
        .collect();
    let keys = keys::keys_of_existing(&roster.layout, &roster.keys);
    let layout = layout_of(&roster.layout, &keys, &members)?;
    Ok(members
        .iter()
        .enumerate()
        .map(|(slot, all)| *all - layout.member_used(slot))
        .collect())
}

fn layout_of(name: &str, keys: &Keys, members: &[Sectors]) -> Result<Box<dyn Layout>, ArrayError> {
    let build = || (find("layout", REGISTRY, "layout", name)?.build)(keys, members);
    build().map_err(|error| ArrayError::Refused(error.to_string()))
}

impl ArrayProperties {
    fn of(roster: &Roster, layout: &mut dyn Layout) -> ArrayProperties {
        ArrayProperties {
            capacity: layout.capacity(),
            rows: layout.geometry().parity_rows(),
            unit: layout.geometry().stripe().map_or(8, |stripe| stripe.unit.0),
            survived: layout.failures_survived(),
            bitmap_at: roster.bitmap_at,
            data_at: roster.data_at,
            block_bytes: roster.block_bytes,
            policy: roster.journal,
            gears: GearFacts::of(layout),
        }
    }
}

/// A device with its superblocks.
struct FoundDevice {
    device: Arc<dyn Device>,
    copies: Copies,
}

impl FoundDevice {
    fn roster(&self) -> &Roster {
        &self.copies.superblock.roster
    }
    fn member(&self) -> Uuid {
        self.copies.superblock.member
    }
    /// Returns the reasons why the device cannot be part of the array, although its superblock
    /// names the array.
    fn reasons_of_doubt(&self) -> Option<String> {
        let doubts = &self.copies.doubts;
        (!doubts.is_empty()).then(|| format!("`{}`: {}", self.device.name(), doubts.join("; ")))
    }
}

/// Faults that an assembly accepts, and the policy of the array against slow members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowances {
    /// Members of the last assembly may be missing. Other devices count as missing members.
    pub degraded: bool,
    /// Names of devices that count as the members in their superblocks, in spite of a wrong size,
    /// wrong superblocks, or a count of events one behind.
    pub trusted: Vec<String>,
    /// True if the array is only read, and nothing is written to the devices. The effects of a loss
    /// of power are mended in memory.
    pub read_only: bool,
    /// Policy against slow members; `None` for an array that waits.
    pub late: Option<LatePolicy>,
}

/// Assembles the array of the `devices`, in any order. The effects of a loss of power are mended
/// first.
///
/// # Errors
/// Devices belong to no array or to several. Or members are missing, or a device cannot be read,
/// and `degraded` is false.
pub fn assemble(
    devices: &[Arc<dyn Device>],
    degraded: bool,
) -> Result<(Array, AssemblyReport), ArrayError> {
    assemble_without(devices, degraded, Sabotage::Nothing)
}

/// As [`assemble`], with a choice of the accepted faults.
///
/// # Errors
/// As those of [`assemble`].
pub fn assemble_with(
    devices: &[Arc<dyn Device>],
    allowances: &Allowances,
) -> Result<(Array, AssemblyReport), ArrayError> {
    assemble_sabotaged(devices, allowances, Sabotage::Nothing)
}

/// Reason of a read-only assembly by order.
const BY_ORDER: &str =
    "the array was assembled read-only; stop the array, and assemble the array without --read-only";
/// Reason of a read-only assembly without room.
const NO_ROOM: &str =
    "a member's file system is full; make room, stop the array, and assemble it again";

/// Reason of a failed assembly.
enum AssemblyFailure {
    Wholly(ArrayError),
    /// A file system has no room for the writes of an assembly. A read-only assembly may succeed.
    ForWantOfRoom(ArrayError),
}

impl From<ArrayError> for AssemblyFailure {
    fn from(error: ArrayError) -> AssemblyFailure {
        AssemblyFailure::Wholly(error)
    }
}

/// As [`assemble`], with a piece of the machinery left out.
pub(crate) fn assemble_without(
    devices: &[Arc<dyn Device>],
    degraded: bool,
    sabotage: Sabotage,
) -> Result<(Array, AssemblyReport), ArrayError> {
    let allowances = Allowances {
        degraded,
        ..Allowances::default()
    };
    assemble_sabotaged(devices, &allowances, sabotage)
}

pub(crate) fn assemble_sabotaged(
    devices: &[Arc<dyn Device>],
    allowances: &Allowances,
    sabotage: Sabotage,
) -> Result<(Array, AssemblyReport), ArrayError> {
    if allowances.read_only {
        return assemble_in_memory(devices, allowances, sabotage, BY_ORDER);
    }
    match assemble_for_use(devices, allowances, sabotage) {
        Ok(assembled) => Ok(assembled),
        Err(AssemblyFailure::Wholly(error)) => Err(error),
        Err(AssemblyFailure::ForWantOfRoom(error)) => {
            let (array, mut report) = assemble_in_memory(devices, allowances, sabotage, NO_ROOM)?;
            report.remarks.push(format!(
                "served read-only, since a member's file system has no room ({error}); make room, and assemble \
                 the array again"
            ));
            Ok((array, report))
        }
    }
}

/// Assembles an array that is read. All writes of the assembly stay in memory, so the devices do
/// not change.
fn assemble_in_memory(
    devices: &[Arc<dyn Device>],
    allowances: &Allowances,
    sabotage: Sabotage,
    why: &'static str,
) -> Result<(Array, AssemblyReport), ArrayError> {
    let covered: Vec<Arc<dyn Device>> = devices
        .iter()
        .map(|device| Arc::new(Overlay::over(Arc::clone(device))) as Arc<dyn Device>)
        .collect();
    let assembled = assemble_for_use(&covered, allowances, sabotage);
    let (array, report) = assembled.map_err(|failure| match failure {
        AssemblyFailure::Wholly(error) | AssemblyFailure::ForWantOfRoom(error) => error,
    })?;
    array.condition.be_read_only(why);
    Ok((array, report))
}

fn assemble_for_use(
    devices: &[Arc<dyn Device>],
    allowances: &Allowances,
    sabotage: Sabotage,
) -> Result<(Array, AssemblyReport), AssemblyFailure> {
    check_names(devices)?;
    let degraded = allowances.degraded;
    let mut report = AssemblyReport::default();
    let found = members_among(devices, allowances, &mut report)?;
    let latest = latest(&found)?;
    refuse_exchanged(&found, allowances)?;
    let torn =
        |found: &FoundDevice| found.copies.whole.iter().filter(|&&whole| !whole).count() as u64;
    report.clean = latest.roster.clean;
    report.torn_superblocks = found.iter().map(torn).sum();
    let mut roster = latest.roster.clone();
    roster.keys = keys::keys_of_existing(&roster.layout, &roster.keys);
    let present = members_of(&roster, &found, allowances, &mut report)?;
    if !report.newly_failed.is_empty() && !degraded {
        return Err(AssemblyFailure::Wholly(ArrayError::Missing(format!(
            "`{}` lacks members: {}",
            roster.name,
            report.newly_failed.join(", ")
        ))));
    }
    let mut layout = found_layout(&roster, &present)?;
    check_answers(&*layout, &roster)?;
    // A policy that the array cannot have is refused before anything is written.
    let late = allowances.late.as_ref();
    let late = late.map(|policy| policy.begin(&mut *layout, &present));
    let late = late.transpose()?.flatten();
    let spares = roster.spares.clone();
    let spare = |spare: &Spare| {
        let sound =
            |one: &&FoundDevice| one.member() == spare.member && one.reasons_of_doubt().is_none();
        found.iter().find(sound)
    };
    let spare_devices = spares
        .iter()
        .filter_map(|one| Some(Arc::clone(&spare(one)?.device)))
        .collect();
    roster.spares.retain(|one| spare(one).is_some());
    for (slot, device) in roster.slots.iter_mut().zip(&present) {
        slot.device = device
            .as_ref()
            .map_or_else(|| slot.device.clone(), |device| device.name());
    }
    catch_up(&latest, &found, &present)?;
    // `catch_up` wrote to the place of the older copy, which is the newest now.
    let newest = found.iter().map(|found| {
        let behind = is_interrupted(&latest.roster, found);
        let newest = found.copies.newest;
        (found.member(), if behind { 1 - newest } else { newest })
    });
    let newest = newest.collect();
    let book = RosterRecord {
        newest,
        spares: spare_devices,
        roster,
    };
    let facts = ArrayProperties::of(&book.roster, &mut *layout);
    let uuid = latest.array;
    let array = Array::new(uuid, facts, layout, present, book, sabotage);
    if let Some(late) = late {
        array.set_late(late);
    }
    match array.mend_after_loss_of_power(&mut report) {
        Ok(()) => Ok((array, report)),
        Err(error) if array.condition.lacks_room() => Err(AssemblyFailure::ForWantOfRoom(error)),
        Err(error) => Err(AssemblyFailure::Wholly(error)),
    }
}

/// Returns an error if the array lacks more members than its layout survives.
fn check_answers(layout: &dyn Layout, roster: &Roster) -> Result<(), ArrayError> {
    if layout.answers() {
        return Ok(());
    }
    let slots = roster.slots.iter().enumerate();
    let missing = slots.filter(|(slot, _)| layout.member_state(*slot) == MemberState::Failed);
    let missing: Vec<&str> = missing.map(|(_, slot)| &*slot.device).collect();
    Err(ArrayError::Refused(format!(
        "`{}` cannot be assembled: the array survives the loss of {} members, and lacks {}",
        roster.name,
        layout.failures_survived(),
        missing.join(", ")
    )))
}

/// Returns the layout of the array, with the recorded states of its members.
fn found_layout(roster: &Roster, present: &Devices) -> Result<Box<dyn Layout>, ArrayError> {
    let sectors: Vec<Sectors> = roster
        .slots
        .iter()
        .map(|slot| Sectors(slot.sectors))
        .collect();
    let mut layout = layout_of(&roster.layout, &roster.keys, &sectors)?;
    if let Some(gears) = layout.gears() {
        match roster.low_gear {
            Some(_) => gears.found_low(),
            None => gears.mark_all_stale(),
        }
    }
    for (slot, device) in present.iter().enumerate() {
        let state = match roster.slots[slot].state {
            _ if device.is_none() => MemberState::Failed,
            SlotState::Alive => MemberState::Alive,
            SlotState::Failed => MemberState::Failed,
            SlotState::Filling { done_sectors, .. } => MemberState::Rebuilding {
                done: Sectors(done_sectors),
            },
        };
        layout.set_member_state(slot, state);
    }
    Ok(layout)
}

/// Returns the member devices with their superblocks.
fn members_among(
    devices: &[Arc<dyn Device>],
    allowances: &Allowances,
    report: &mut AssemblyReport,
) -> Result<Vec<FoundDevice>, ArrayError> {
    let degraded = allowances.degraded;
    let mut found = Vec::new();
    for device in devices {
        match superblock::read(&**device) {
            Ok(Some(mut copies)) => {
                if allowances.trusted.contains(&device.name()) {
                    let name = device.name();
                    let trust = |doubt| format!("`{name}` is trusted: {doubt}");
                    report.remarks.extend(copies.doubts.drain(..).map(trust));
                }
                report.remarks.extend(has_grown(&**device, &copies));
                found.push(FoundDevice {
                    device: Arc::clone(device),
                    copies,
                });
            }
            Ok(None) => {
                let message = is_no_member(&**device);
                match degraded {
                    true => report.gone.push(format!("{message}; it counts as missing")),
                    false => return Err(ArrayError::Missing(message)),
                }
            }
            // A dead disk counts as missing.
            Err(error @ ArrayError::Device { .. }) if degraded => {
                report.gone.push(format!("{error}; it counts as missing"));
            }
            Err(error @ ArrayError::Device { .. }) => {
                return Err(ArrayError::Missing(error.to_string()));
            }
            Err(error) => return Err(error),
        }
    }
    if degraded {
        leave_out_strangers(&mut found, report);
    }
    Ok(found)
}

fn is_no_member(device: &dyn Device) -> String {
    let owners = crate::signatures::owners(device).unwrap_or_default();
    let found = if owners.is_empty() {
        "no superblock".to_owned()
    } else {
        owners.join(", ")
    };
    format!(
        "`{}` is no member of an array: found {found}",
        device.name()
    )
}

fn has_grown(device: &dyn Device, copies: &Copies) -> Option<String> {
    let before = copies.superblock.own?.bytes;
    let (name, bytes) = (device.name(), device.bytes());
    (bytes > before).then(|| {
        format!("`{name}` has grown from {before} to {bytes} bytes; the added space is not used")
    })
}

/// Leaves out devices of other arrays: a replacement disk may come from another array. The array of
/// most devices is the intended one.
fn leave_out_strangers(found: &mut Vec<FoundDevice>, report: &mut AssemblyReport) {
    let mut arrays: BTreeMap<Uuid, usize> = BTreeMap::new();
    for one in &*found {
        *arrays.entry(one.copies.superblock.array).or_default() += 1;
    }
    let most = arrays.values().copied().max().unwrap_or(0);
    let mut meant = arrays.iter().filter(|(_, count)| **count == most);
    let (Some((&array, _)), None) = (meant.next(), meant.next()) else {
        // No array has most devices, so the intended one is not known.
        return;
    };
    found.retain(|one| {
        let superblock = &one.copies.superblock;
        let is_own = superblock.array == array;
        if !is_own {
            report.gone.push(format!(
                "`{}` is of another array, {} ({}); it counts as missing",
                one.device.name(),
                superblock.array,
                superblock.roster.name
            ));
        }
        is_own
    });
}

/// Returns the superblock with the highest count of events.
fn latest(found: &[FoundDevice]) -> Result<Superblock, ArrayError> {
    let latest = found.iter().max_by_key(|found| found.roster().events);
    let latest =
        latest.ok_or_else(|| ArrayError::Refused("found no devices; expected members".into()))?;
    let mut members: BTreeMap<Uuid, String> = BTreeMap::new();
    for other in found {
        if other.copies.superblock.array != latest.copies.superblock.array {
            return Err(ArrayError::Refused(format!(
                "`{}` is of the array {} ({}), and `{}` of {} ({}); name members of one array",
                latest.device.name(),
                latest.copies.superblock.array,
                latest.roster().name,
                other.device.name(),
                other.copies.superblock.array,
                other.roster().name
            )));
        }
        if let Some(twin) = members.insert(other.member(), other.device.name()) {
            return Err(ArrayError::Refused(format!(
                "`{twin}` and `{}` have the same member number; leave out the copy",
                other.device.name()
            )));
        }
    }
    Ok(latest.copies.superblock.clone())
}

/// Returns an error if superblocks were exchanged between two of the devices. The owner of the data
/// on each device is not known then.
fn refuse_exchanged(found: &[FoundDevice], allowances: &Allowances) -> Result<(), ArrayError> {
    for one in found {
        let (name, member) = (one.device.name(), one.member());
        let Some(label) = one.copies.label.filter(|label| *label != member) else {
            continue;
        };
        let other = found.iter().find(|other| other.member() == label);
        if let Some(other) = other.filter(|_| !allowances.trusted.contains(&name)) {
            return Err(ArrayError::Refused(format!(
                "`{name}` and `{}` have exchanged superblocks: the superblocks of `{name}` name member {member}, but its label names member {label}, as do the superblocks of `{}`; restore each superblock, or leave both devices out and add them again",
                other.device.name(),
                other.device.name()
            )));
        }
    }
    Ok(())
}

/// Returns the devices in the order of their slots. A member counts as failed if it was out of date
/// when the array was last used, or if it was cut or overwritten.
fn members_of(
    roster: &Roster,
    found: &[FoundDevice],
    allowances: &Allowances,
    report: &mut AssemblyReport,
) -> Result<Devices, ArrayError> {
    let mut devices = Devices::new();
    for (index, slot) in roster.slots.iter().enumerate() {
        let own = found.iter().find(|found| found.member() == slot.member);
        if slot.state == SlotState::Failed {
            if let Some(own) = own {
                refuse_other_history(roster, index, own)?;
                let known = own.reasons_of_doubt().is_none()
                    && knows_what_it_missed(roster, index, &own.copies.superblock);
                let how = if known {
                    "only the missed changes are filled"
                } else {
                    "all of it is filled"
                };
                report
                    .left_out
                    .push(format!("{} (add it again: {how})", own.device.name()));
            }
            devices.push(None);
            continue;
        }
        let Some(own) = own else {
            report.newly_failed.push(format!(
                "the member in place {index} ({}, last `{}`)",
                slot.member, slot.device
            ));
            devices.push(None);
            continue;
        };
        let why_not = own.reasons_of_doubt().map_or_else(
            || why_not_fresh(roster, index, own, allowances),
            |why| Ok(Some(why)),
        )?;
        devices.push(why_not.is_none().then(|| Arc::clone(&own.device)));
        report.newly_failed.extend(why_not);
    }
    Ok(devices)
}

/// Returns the reason if a member is out of date according to its count of events.
fn why_not_fresh(
    roster: &Roster,
    slot: usize,
    own: &FoundDevice,
    allowances: &Allowances,
) -> Result<Option<String>, ArrayError> {
    let (name, events) = (own.device.name(), own.roster().events);
    match roster.knowledge(slot, own.roster()) {
        Knowledge::Fresh | Knowledge::Interrupted => Ok(None),
        Knowledge::Apart => Err(two_histories(&name, roster)),
        Knowledge::Behind if events + 1 == roster.events && allowances.trusted.contains(&name) => {
            Ok(None)
        }
        Knowledge::Behind => Ok(Some(format!(
            "`{name}` is out of date: found events {events}, expected {}",
            roster.events
        ))),
    }
}

fn is_interrupted(roster: &Roster, own: &FoundDevice) -> bool {
    let member = own.member();
    let slot = roster.slots.iter().position(|slot| slot.member == member);
    slot.is_some_and(|slot| roster.knowledge(slot, own.roster()) == Knowledge::Interrupted)
}

/// Writes the newest event to members without it, after a loss of power. Otherwise such members
/// would be two events behind if power fails again during the next event.
fn catch_up(
    latest: &Superblock,
    found: &[FoundDevice],
    present: &Devices,
) -> Result<(), ArrayError> {
    let is_present = |own: &&FoundDevice| {
        let mut devices = present.iter().flatten();
        devices.any(|device| Arc::ptr_eq(device, &own.device))
    };
    let behind = found.iter().filter(is_present);
    for own in behind.filter(|own| is_interrupted(&latest.roster, own)) {
        let copy = 1 - own.copies.newest;
        let superblock = Superblock {
            member: own.member(),
            ..latest.clone()
        };
        let encoded = superblock.on(&*own.device, copy).encode()?;
        // A device that fails here fails again at the next event, and is dropped then.
        let told = superblock::COPIES.write(&*own.device, copy, &encoded);
        let _ = told.and_then(|()| own.device.flush());
    }
    Ok(())
}

fn two_histories(device: &str, roster: &Roster) -> ArrayError {
    ArrayError::Refused(format!(
        "`{device}` and the other members were used separately: there are two histories of `{}`; leave out the members that you do not trust, and add them again afterwards",
        roster.name
    ))
}

/// Returns an error if a failed member counts a live member as failed: both have been used without
/// each other.
fn refuse_other_history(
    roster: &Roster,
    index: usize,
    own: &FoundDevice,
) -> Result<(), ArrayError> {
    let mut pairs = roster.slots.iter().zip(&own.roster().slots);
    let parted = pairs.any(|(ours, theirs)| {
        ours.state == SlotState::Alive
            && theirs.state == SlotState::Failed
            && ours.member == theirs.member
    });
    // The member may have been right at its time: the other one may have failed then, and come back
    // since. Only a superblock that is newer than this member's failure proves two histories.
    let newer = own.roster().events >= roster.slots[index].failed_at;
    if !(parted && newer) {
        return Ok(());
    }
    Err(two_histories(&own.device.name(), roster))
}

impl Array {
    /// Mends in this order: bitmap, journals, redundancy, and then the members' states.
    fn mend_after_loss_of_power(&self, report: &mut AssemblyReport) -> Result<(), ArrayError> {
        let mut worker = RequestScratch::new();
        let roster = self.book().roster.clone();
        let devices = self.devices();
        if let Some(bitmap) = &self.bitmap {
            // The members may have different bits, since power may have failed between their
            // writes. A bit counts if any member has it.
            bitmap.load(&self.read_bitmaps(&roster, &devices));
            if roster.missed_since.is_none() {
                bitmap.forget_missed();
            }
            if !report.newly_failed.is_empty() {
                bitmap.miss_dirty();
            }
        }
        self.find_stale();
        // The journal comes before the comparison: redundancy is computed from the data below, and
        // the journal may still change data.
        self.replay(&devices, report)?;
        let dirty = self
            .bitmap
            .as_ref()
            .map(|bitmap| bitmap.dirty())
            .unwrap_or_default();
        let planner = self.planner();
        let (impaired, comparable) = (
            planner.lacks_members(),
            planner.can_be_compared(&self.transient()),
        );
        drop(planner);
        // Without all members, parity cannot be told from the data that follows from it. The replay
        // of the journal has made the parity right, except in rows that were written whole.
        if !comparable && self.facts.rows.is_some() {
            let journalled = match self.facts.policy {
                JournalPolicy::All => true,
                JournalPolicy::Partial => self.reads_soft(),
                JournalPolicy::None => false,
            };
            let lost = !report.newly_failed.is_empty() && !journalled;
            report.regions_at_risk = if lost { dirty.len() as u64 } else { 0 };
        } else if !dirty.is_empty() {
            report.mended = self.mend_regions(&mut worker, &dirty)?;
            report.compared_regions = dirty.len() as u64;
        }
        if !self.flush_devices() {
            self.condition.check_running()?;
        }
        // Only after the flush: the journals hold the only copy of the repeated changes until these
        // are durable.
        self.begin_journals(roster.events + 1)?;
        if let Some(bitmap) = &self.bitmap {
            bitmap.forget_dirty();
            if !impaired {
                bitmap.forget_missed();
            }
        }
        self.write_labels(&roster);
        let mut book = self.book();
        book.roster.clean = false;
        self.commit(&mut book)?;
        drop(book);
        let is_low = self.gear() == Some(fullstroke_contract::Gear::Low);
        self.shift.set_resting(is_low);
        Ok(())
    }

    /// Writes labels to members of older arrays without labels. Standing members have labels,
    /// because an assembly in the high gear wrote them.
    fn write_labels(&self, roster: &Roster) {
        let low = roster.low_gear.as_ref();
        for (slot, device) in self.devices().iter().enumerate() {
            let stands = low.is_some_and(|low| low.standing.contains(&slot));
            let Some(device) = device.as_ref().filter(|_| !stands) else {
                continue;
            };
            // A device that cannot write a label cannot write a superblock either, and fails there.
            let label = Label::of_device(self.uuid, roster.slots[slot].member);
            let _ = label::write_unless_there(&**device, roster.label_at(), &label);
        }
    }

    /// Reads the bitmaps of the present members.
    fn read_bitmaps(&self, roster: &Roster, devices: &Devices) -> Vec<Vec<u8>> {
        let length = bitmap::room(roster.regions) as usize;
        let present = devices.iter().flatten();
        let mut buffer = Aligned::default();
        let mut read = |device: &Arc<dyn Device>| {
            let bytes = buffer.of(length);
            device
                .read(roster.bitmap_at, bytes)
                .ok()
                .map(|()| bytes.to_vec())
        };
        present.filter_map(&mut read).collect()
    }

    /// Repeats the changes in the journals. A second repetition gives the same result.
    fn replay(&self, devices: &Devices, report: &mut AssemblyReport) -> Result<(), ArrayError> {
        let changes = self.journals.read(devices)?;
        let mut buffer = Aligned::default();
        report.replayed_changes = changes.len() as u64;
        for change in changes.values() {
            let mut from = 0;
            for run in &change.runs {
                let length = run.sectors as usize * SECTOR_BYTES as usize;
                let bytes = buffer.of(length);
                bytes.copy_from_slice(&change.bytes[from..from + length]);
                from += length;
                let slot = run.slot as usize;
                let Some(device) = devices.get(slot).and_then(Option::as_ref) else {
                    continue;
                };
                let at = self.facts.data_at + run.lbn * SECTOR_BYTES;
                if let Err(error) = device.write(at, bytes) {
                    let why = format!("a change could not be made again: {error}");
                    self.drop_member(slot, &why, error)?;
                }
            }
        }
        Ok(())
    }

    /// Empties the journals.
    fn begin_journals(&self, epoch: u64) -> Result<(), ArrayError> {
        let devices = self.devices();
        for (slot, device) in devices.iter().enumerate() {
            let Some(device) = device else { continue };
            if let Err(error) = self.journals.start(slot, &**device, epoch) {
                let why = format!("write of the journal failed: {error}");
                self.drop_member(slot, &why, error)?;
            }
        }
        self.journals.forget_all();
        if !self.journals.are_absent() && !self.flush_devices() {
            self.condition.check_running()?;
        }
        Ok(())
    }

    /// Stops the array: makes all data durable, clears all marks, and records the stop on the
    /// members. The array must not be used afterwards.
    ///
    /// # Errors
    /// A device's.
    pub fn stop(&self) -> Result<(), ArrayError> {
        let _alone = self.order.alone();
        if self.is_read_only() {
            return Ok(());
        }
        self.condition.check_running()?;
        // The first flush makes changes durable, the second the markers, so no journal holds a
        // record.
        for _ in 0..2 {
            self.make_durable()?;
        }
        if let Some(bitmap) = &self.bitmap {
            bitmap.forget_dirty();
        }
        let mut book = self.book();
        book.roster.clean = true;
        self.commit(&mut book)
    }
}

/// Removes the records of an array from `device`. The data stays.
///
/// # Errors
/// The device is no member, unless `force` is given; or the device's.
pub fn destroy(device: &dyn Device, force: bool) -> Result<(), ArrayError> {
    let found = superblock::read(device);
    if !force && !matches!(found, Ok(Some(_))) {
        found?;
        return Err(ArrayError::Refused(format!(
            "`{}` is no member of an array: found no superblock; nothing was changed",
            device.name()
        )));
    }
    if let Ok(Some(found)) = &found {
        label::wipe(device, found.superblock.roster.label_at())
            .map_err(|error| ArrayError::device(device.name(), "write to", error))?;
    }
    wipe(device, if force { LOOKED_AT_BYTES } else { OWN_BYTES })
}

/// Reads the superblocks of a device.
///
/// # Errors
/// The device's.
pub fn examine(device: &dyn Device) -> Result<Option<Copies>, ArrayError> {
    superblock::read(device)
}
