//! `partition`: a part of one member.

use crate::geometry::Geometry;
use crate::layout::{Layout, Location, Role};
use crate::members::at_least;
use crate::plan::{BufferPlace, Content, OpenIos, Plan, PlanWriter};
use crate::states::MemberStates;
use fullstroke_contract::registry::{self, Keys};
use fullstroke_contract::{ConfigError, Extent, LayersBelow, Request, RequestStatus};
use fullstroke_units::{Bytes, Lbn, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys of `partition`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartitionConfig {
    /// First byte of the part, a multiple of 512. Default 0.
    #[serde(default)]
    pub start: Bytes,
    /// Length of the part in bytes, a positive multiple of 512.
    pub size: Bytes,
}

/// A part of one member.
#[derive(Debug)]
pub struct Partition {
    member: Sectors,
    start: Sectors,
    size: Sectors,
    states: MemberStates,
    open: OpenIos,
}

impl Partition {
    /// See [`BuildLayout`](crate::BuildLayout).
    pub fn build(keys: &Keys, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
        let config: PartitionConfig = registry::read(keys)?;
        at_least("partition", members, 1)?;
        let sectors = |key, bytes: Bytes| {
            bytes.sectors().ok_or_else(|| {
                ConfigError::new(key, format!("found {bytes}; expected a multiple of 512B"))
            })
        };
        let (start, size) = (
            sectors("start", config.start)?,
            sectors("size", config.size)?,
        );
        if size == Sectors::ZERO || start + size > members[0] {
            let message = format!(
                "found {}; expected a part of the member, {}",
                config.size,
                members[0].bytes()
            );
            return Err(ConfigError::new("size", message));
        }
        let (states, open) = (MemberStates::alive(1), OpenIos::new(1));
        Ok(Box::new(Partition {
            member: members[0],
            start,
            size,
            states,
            open,
        }))
    }
}

impl Layout for Partition {
    fn name(&self) -> &'static str {
        "partition"
    }
    fn capacity(&self) -> Sectors {
        self.size
    }
    fn member_capacity(&self, _: usize) -> Sectors {
        self.member
    }
    fn member_used(&self, _: usize) -> Sectors {
        self.size
    }
    fn geometry(&self) -> Geometry {
        Geometry::Contiguous
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
        Location {
            member: 0,
            lbn: lbn + self.start,
        }
    }

    fn role_of(&self, _: usize, lbn: Lbn) -> Role {
        match lbn.0.checked_sub(self.start.0) {
            Some(offset) if offset < self.size.0 => Role::Data(Lbn(offset)),
            _ => Role::Unused,
        }
    }

    fn plan_transfer(
        &mut self,
        request: &Request,
        _: LayersBelow<'_>,
        plan: &mut Plan,
    ) -> RequestStatus {
        let extent = Extent {
            start: request.extent.start + self.start,
            ..request.extent
        };
        let mut writer = PlanWriter::new(plan, &mut self.open);
        writer.begin_strand();
        writer.io(
            0,
            request.operation,
            extent,
            BufferPlace::Request(Sectors::ZERO),
            Content::Data,
        );
        RequestStatus::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_moved_by_the_start() {
        let keys = serde_json::from_str(r#"{"start": "8KiB", "size": "64KiB"}"#).unwrap();
        let partition = Partition::build(&keys, &[Sectors(1000)]).unwrap();
        for lbn in 0..partition.capacity().0 {
            let place = partition.locate(Lbn(lbn));
            assert_eq!(partition.role_of(0, place.lbn), Role::Data(Lbn(lbn)));
        }
        assert_eq!(partition.role_of(0, Lbn(15)), Role::Unused);
    }

    #[test]
    fn a_part_beyond_the_member_is_refused() {
        let keys = serde_json::from_str(r#"{"start": "8KiB", "size": "1MiB"}"#).unwrap();
        assert_eq!(
            Partition::build(&keys, &[Sectors(1000)]).err().unwrap().key,
            "size"
        );
    }
}
