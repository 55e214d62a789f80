//! The common part of the layouts of paired disks: the outside of one disk with the inside of
//! another.
//!
//! | file | content |
//! |---|---|
//! | `map.rs` | the address map |
//! | `divisor.rs` | division by a divisor that is known in advance |
//! | `zoning.rs` | the mathematics of logical zones |
//! | `ratio.rs` | outer transfer rate divided by inner, as a fraction |
//! | `timeline.rs` | the real zones of a disk, with the time to pass each zone |
//! | `walk.rs` | pairs of real zones |
//! | `floors.rs` | parts of a volume with floors of their own |
//!
//! Members come in pairs. Of members 2j and 2j+1, the first is the **forward** member, passed from
//! its outer edge to its inner. The second is the **backward** member, passed from its inner edge
//! to its outer. The volume is a sequence of sections. In each section, a **row** is one chunk on
//! the forward and one on the backward member of a pair. Rows are dealt to the pairs in turn.

#[cfg(test)]
mod cases;
mod divisor;
mod floors;
mod map;
mod ratio;
mod timeline;
mod walk;
mod zoning;

pub use floors::{Floor, VolumePart};
pub use ratio::{Ratio, RatioError};
pub use timeline::MemberZone;
pub use zoning::{Fraction, ZONES_MAX, ZonePair, Zoning};

#[cfg(test)]
pub(crate) use cases::paired_cases;
pub(crate) use floors::with_floors;
pub(crate) use map::{MapSection, PassDirection};
pub(crate) use timeline::Timeline;
pub(crate) use walk::{WalkedSection, balanced, packed};

use crate::geometry::Geometry;
use crate::layout::{Layout, Location, Role};
use crate::members::at_least;
use crate::plan::{BufferPlace, Content, OpenIos, Plan, PlanWriter};
use crate::states::MemberStates;
use fullstroke_contract::{ConfigError, Extent, LayersBelow, Request, RequestStatus};
use fullstroke_units::{Bytes, Lbn, SECTOR_BYTES, Sectors};
use map::Map;

/// Smallest chunk of these layouts without a key: the chunk of Lloyd's example (figure 3.3).
pub(crate) const DEFAULT_BLOCKING: Bytes = Bytes(8 << 10);

/// A layout of pairs.
#[derive(Debug)]
pub(crate) struct Paired {
    name: &'static str,
    capacities: Vec<Sectors>,
    map: Map,
    states: MemberStates,
    open: OpenIos,
}

/// Returns the blocking factor in sectors.
pub(crate) fn blocking_sectors(blocking: Bytes) -> Result<u64, ConfigError> {
    match blocking.sectors() {
        Some(Sectors(sectors)) if sectors > 0 => Ok(sectors),
        _ => {
            let expected =
                format!("expected a positive multiple of the sector, {SECTOR_BYTES} bytes");
            Err(ConfigError::new(
                "blocking",
                format!("found {blocking}; {expected}, such as 8KiB"),
            ))
        }
    }
}

/// Returns the number of pairs, or an error if the number of members is odd or 0.
pub(crate) fn pairs_of(layout: &str, members: &[Sectors]) -> Result<u64, ConfigError> {
    at_least(layout, members, 2)?;
    if members.len().is_multiple_of(2) {
        return Ok(members.len() as u64 / 2);
    }
    let found = members.len();
    let message =
        format!("{layout} needs members in pairs, and has {found}; add or remove one member");
    Err(ConfigError::new("members", message))
}

impl Paired {
    /// Returns a layout of these sections. On each member, the sections follow one another without
    /// gaps from sector 0 on, in any order.
    pub(crate) fn layout(
        name: &'static str,
        members: &[Sectors],
        sections: &[MapSection],
        saw: PassDirection,
    ) -> Result<Box<dyn Layout>, ConfigError> {
        Ok(Box::new(Paired {
            name,
            capacities: members.to_vec(),
            map: Map::new(members.len() as u64 / 2, sections, saw)?,
            states: MemberStates::alive(members.len()),
            open: OpenIos::new(members.len()),
        }))
    }
}

impl Layout for Paired {
    fn name(&self) -> &'static str {
        self.name
    }
    fn capacity(&self) -> Sectors {
        Sectors(self.map.capacity)
    }
    fn member_capacity(&self, member: usize) -> Sectors {
        self.capacities[member]
    }
    fn member_used(&self, member: usize) -> Sectors {
        assert!(member < self.members(), "there is no member {member}");
        Sectors(self.map.used[member % 2])
    }
    fn geometry(&self) -> Geometry {
        self.map.geometry()
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
        assert!(lbn.0 < self.map.capacity, "{lbn} is not below the capacity");
        self.map.place(self.map.section_at(lbn.0), lbn.0).0
    }

    fn role_of(&self, member: usize, lbn: Lbn) -> Role {
        assert!(
            lbn.0 < self.capacities[member].0,
            "{lbn} is not below the member's capacity"
        );
        match self.map.sector_at(member as u64 / 2, member % 2, lbn.0) {
            Some(sector) => Role::Data(Lbn(sector)),
            None => Role::Unused,
        }
    }

    fn plan_transfer(
        &mut self,
        request: &Request,
        _below: LayersBelow<'_>,
        plan: &mut Plan,
    ) -> RequestStatus {
        let mut writer = PlanWriter::new(plan, &mut self.open);
        writer.begin_strand();
        let (begin, end) = (request.extent.start.0, request.extent.end().0);
        let mut at = begin;
        while at < end {
            let section = self.map.section_at(at);
            while at < section.end.min(end) {
                let (Location { member, lbn }, left) = self.map.place(section, at);
                let extent = Extent::new(lbn.0, left.min(end - at));
                let place = BufferPlace::Request(Sectors(at - begin));
                writer.io(member, request.operation, extent, place, Content::Data);
                at += extent.sectors.0;
            }
        }
        RequestStatus::Done
    }
}
