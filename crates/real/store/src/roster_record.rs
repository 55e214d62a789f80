//! The recorded description of an array in use.

use crate::superblock::{Roster, SlotState, Superblock};
use crate::uuid::Uuid;
use crate::{ArrayError, Device};
use fullstroke_contract::MemberState;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// The recorded description of the array, and the devices with the record.
pub(crate) struct RosterRecord {
    pub(crate) roster: Roster,
    /// Index of the newest copy of the superblock on each member.
    pub(crate) newest: BTreeMap<Uuid, usize>,
    pub(crate) spares: Vec<Arc<dyn Device>>,
}

/// Makes a new identifier for an array, a member or an event.
pub(crate) fn new_uuid() -> Result<Uuid, ArrayError> {
    Uuid::new().map_err(no_randomness)
}

fn no_randomness(error: io::Error) -> ArrayError {
    ArrayError::device("/dev/urandom".into(), "read", error)
}

impl RosterRecord {
    /// Counts an event.
    pub(crate) fn next_event(&mut self, is_known_to_all: bool) -> Result<(), ArrayError> {
        self.roster
            .next_event(is_known_to_all)
            .map_err(no_randomness)
    }
}

/// Copies the members' states to the roster. `before` identifies the latest event known to the
/// members that fail in this one.
pub(crate) fn note_states(roster: &mut Roster, states: &[MemberState], before: Option<Uuid>) {
    let events = roster.events;
    for (slot, &state) in roster.slots.iter_mut().zip(states) {
        let missed_only = matches!(
            slot.state,
            SlotState::Filling {
                missed_only: true,
                ..
            }
        );
        let next = match state {
            MemberState::Alive => SlotState::Alive,
            MemberState::Failed => SlotState::Failed,
            MemberState::Rebuilding { done } => SlotState::Filling {
                done_sectors: done.0,
                missed_only,
            },
        };
        if next == SlotState::Failed && slot.state != SlotState::Failed {
            (slot.failed_at, slot.failed_after) = (events, before);
        }
        if next == SlotState::Alive {
            (slot.failed_at, slot.failed_after) = (0, None);
        }
        slot.state = next;
    }
    let whole = roster
        .slots
        .iter()
        .all(|slot| slot.state == SlotState::Alive)
        && roster.low_gear.is_none();
    roster.missed_since = if whole {
        None
    } else {
        roster.missed_since.or(Some(events))
    };
}

/// True if the bitmap has all missed regions of the member. For this, the member must have been
/// alive until it failed, and the bitmap must have recorded missed regions from then on.
pub(crate) fn knows_what_it_missed(roster: &Roster, slot: usize, own: &Superblock) -> bool {
    let (failed_at, failed_after) = (
        roster.slots[slot].failed_at,
        roster.slots[slot].failed_after,
    );
    let alive = own
        .roster
        .slots
        .get(slot)
        .is_some_and(|slot| slot.state == SlotState::Alive);
    let since = roster.missed_since.is_some_and(|since| since <= failed_at);
    let to_the_end = own.roster.events + 1 == failed_at && own.roster.event_id() == failed_after;
    alive && since && to_the_end
}
