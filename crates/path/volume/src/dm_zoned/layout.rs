//! dm-zoned as a layout of a stack: sizes.

use super::config::ZonedFormat;
use crate::geometry::Geometry;
use crate::layout::{Layout, Location, Role};
use crate::plan::Plan;
use crate::states::MemberStates;
use fullstroke_contract::registry::Keys;
use fullstroke_contract::{ConfigError, LayersBelow, Request, RequestStatus};
use fullstroke_units::{Lbn, Sectors};

/// The layout of dm-zoned. The layout tells sizes only: reclaim moves the chunks, and the node
/// knows the places. [`locate`](Layout::locate) gives the place in which a chunk would lie if the
/// chunks followed the metadata in order.
pub(super) struct ZonedLayout {
    format: ZonedFormat,
    drive: Sectors,
    states: MemberStates,
}

impl ZonedLayout {
    /// See [`BuildLayout`](crate::BuildLayout).
    pub(super) fn build(keys: &Keys, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
        let format = ZonedFormat::read(keys, members)?;
        Ok(Box::new(ZonedLayout {
            format,
            drive: members[0],
            states: MemberStates::alive(1),
        }))
    }
}

impl Layout for ZonedLayout {
    fn name(&self) -> &'static str {
        "dm-zoned"
    }

    fn capacity(&self) -> Sectors {
        self.format.capacity
    }

    fn member_capacity(&self, _: usize) -> Sectors {
        self.drive
    }

    fn member_used(&self, _: usize) -> Sectors {
        self.drive
    }

    fn geometry(&self) -> Geometry {
        Geometry::Varying
    }

    fn failures_survived(&self) -> u32 {
        0
    }

    fn member_states(&self) -> &MemberStates {
        &self.states
    }

    fn member_states_mut(&mut self) -> &mut MemberStates {
        &mut self.states
    }

    fn locate(&self, lbn: Lbn) -> Location {
        assert!(lbn.0 < self.capacity().0, "{lbn} is not below the capacity");
        Location {
            member: 0,
            lbn: Lbn(lbn.0 + self.format.sector(self.format.first(), 0)),
        }
    }

    fn role_of(&self, _: usize, _: Lbn) -> Role {
        Role::Unused
    }

    /// dm-zoned makes no plans: it has a node of its own.
    fn plan_transfer(&mut self, _: &Request, _: LayersBelow<'_>, _: &mut Plan) -> RequestStatus {
        RequestStatus::Lost
    }
}
