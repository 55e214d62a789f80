//! The state of an array, for people and monitors.

use crate::array::Array;
use crate::late::LateStatus;
use crate::limit::Limit;
use crate::stop_control::Standby;
use crate::superblock::{MemberSlot, SlotState};
use crate::uuid::Uuid;
use fullstroke_contract::Gear;
use fullstroke_contract::MemberState;
use fullstroke_units::SECTOR_BYTES;
use serde::Serialize;

/// State of an array.
#[derive(Clone, Debug, Serialize)]
pub struct ArrayStatus {
    /// Name of the array.
    pub name: String,
    /// Identifier of the array.
    pub array: Uuid,
    /// Layout: `raid5 of 4`.
    pub layout: String,
    /// Size in bytes.
    pub capacity_bytes: u64,
    /// `whole`, `filling`, `degraded`, `failed` or `halted`.
    pub state: &'static str,
    /// Reason why the array changes nothing any more; `None` before.
    pub halted: Option<String>,
    /// Reason why the array is served read-only; absent for an array with changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<&'static str>,
    /// Number of assemblies, stops and changes of members, each counted twice.
    pub events: u64,
    /// Size of a region of the bitmap, in bytes of a member.
    pub region_bytes: u64,
    /// Number of regions with present or recent writes.
    pub dirty_regions: u64,
    /// Gear: `high`, `falling`, `low` or `rising`; `None` without gears.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gear: Option<&'static str>,
    /// Number of rows of the soft state still to copy in a shift.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale_rows: Option<u64>,
    /// Reason why a shift cannot continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift_trouble: Option<String>,
    /// Policy against slow members; absent for an array that waits for its members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<LateStatus>,
    /// Slots, in order.
    pub slots: Vec<SlotStatus>,
    /// Devices of the spares.
    pub spares: Vec<String>,
}

/// State of a slot of an array.
#[derive(Clone, Debug, Serialize)]
pub struct SlotStatus {
    /// Name of its device.
    pub device: String,
    /// Identifier of the member.
    pub member: Uuid,
    /// `alive`, `failed` or `filling`.
    pub state: &'static str,
    /// Filled share, from 0 to 1.
    pub filled: f64,
    /// True if only missed regions are filled.
    pub missed_only: bool,
    /// True if the member was put to standby and not used since.
    pub standby: bool,
    /// True if the member gets no requests, because the array is in the low gear.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stands: bool,
    /// Time of a read as a multiple of the median of the other members, if the member is slow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowness: Option<f64>,
    /// Number of reads around the member; absent for an array that waits for its members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_io: Option<u64>,
    /// True if the member gets no reads for a while, because it is slow.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sits_out: bool,
    /// Number of reads of the member that no request waits for any more.
    #[serde(skip_serializing_if = "is_zero")]
    pub reads_left_behind: usize,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The states of [`ArrayStatus`], and of [`SlotStatus`].
pub(crate) const STATES: [&str; 5] = ["whole", "filling", "degraded", "failed", "halted"];
pub(crate) const SLOT_STATES: [&str; 3] = ["alive", "filling", "failed"];

impl Array {
    /// Returns the state of the array.
    pub fn status(&self) -> ArrayStatus {
        let states = self.states();
        let mut planner = self.planner();
        let gear = planner.gear();
        let shifts = matches!(gear, Some(Gear::Falling | Gear::Rising));
        let stale_rows = planner.stale().filter(|_| shifts);
        let used: Vec<u64> = (0..states.len())
            .map(|slot| planner.layout().member_used(slot).0)
            .collect();
        let layout = format!("{} of {}", planner.layout().name(), states.len());
        let answers = planner.answers();
        drop(planner);
        let book = self.book();
        assert_eq!(
            book.roster.slots.len(),
            states.len(),
            "each slot on record has a state"
        );
        let slots = book.roster.slots.iter().zip(&states).zip(used);
        let devices = self.devices();
        let slots = slots.zip(devices.iter()).enumerate();
        let late = self.late.get();
        let slots = slots.map(|(index, (((slot, &state), used), device))| {
            let limit = device.as_ref().and_then(|device| device.limit());
            let standby = device.as_ref().and_then(|device| device.standby());
            let standby = standby.is_some_and(Standby::is_in_standby);
            let stands = device.is_some() && self.is_in_standby(index);
            SlotStatus {
                standby,
                stands,
                slowness: self.condition.slowness(index),
                late_io: late.map(|late| late.late(index)),
                sits_out: device.is_some() && late.is_some_and(|late| late.sits_out(index)),
                reads_left_behind: limit.map_or(0, Limit::left_behind),
                ..slot_status(slot, state, used)
            }
        });
        let slots = slots.collect();
        let state = self.state_name(&states, answers);
        ArrayStatus {
            name: book.roster.name.clone(),
            array: self.uuid,
            layout,
            capacity_bytes: self.facts.capacity.bytes().0,
            state,
            halted: self.halted().map(str::to_owned),
            read_only: self.condition.read_only(),
            events: book.roster.events,
            region_bytes: book.roster.region_sectors * SECTOR_BYTES,
            dirty_regions: self
                .bitmap
                .as_ref()
                .map_or(0, |bitmap| bitmap.dirty().len() as u64),
            gear: gear.map(Gear::name),
            stale_rows,
            shift_trouble: self.shift.trouble(),
            late: late.map(|late| late.status()),
            slots,
            spares: book
                .roster
                .spares
                .iter()
                .map(|spare| spare.device.clone())
                .collect(),
        }
    }
}

impl Array {
    /// Returns the state of the array in a word. `answers` is true if all data is available.
    fn state_name(&self, states: &[MemberState], answers: bool) -> &'static str {
        let is_filling = |state: &MemberState| matches!(state, MemberState::Rebuilding { .. });
        match () {
            () if self.halted().is_some() => "halted",
            () if !answers => "failed",
            () if states.contains(&MemberState::Failed) => "degraded",
            () if states.iter().any(is_filling) => "filling",
            () => "whole",
        }
    }
}

fn slot_status(slot: &MemberSlot, state: MemberState, used: u64) -> SlotStatus {
    let (state, filled) = match state {
        MemberState::Alive => ("alive", 1.0),
        MemberState::Failed => ("failed", 0.0),
        MemberState::Rebuilding { done } => ("filling", done.0 as f64 / used.max(1) as f64),
    };
    let missed_only = matches!(
        slot.state,
        SlotState::Filling {
            missed_only: true,
            ..
        }
    );
    let (device, member) = (slot.device.clone(), slot.member);
    SlotStatus {
        device,
        member,
        state,
        filled,
        missed_only,
        standby: false,
        stands: false,
        slowness: None,
        late_io: None,
        sits_out: false,
        reads_left_behind: 0,
    }
}
