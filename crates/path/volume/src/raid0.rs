//! `raid0`: chunks dealt to the members in turn.
//!
//! Chunk k lies on member k mod n, in row k div n. A large request occupies all members at once,
//! each with one I/O. Like md, each part of a chunk is an I/O of its own. There is no redundancy.
//! If the members differ in size, the size of the smallest counts, rounded down to whole chunks.

use crate::geometry::{Geometry, Stripe};
use crate::layout::{Layout, Location, Role};
use crate::like::Like;
use crate::md::check_whole_pages;
use crate::members::{DEFAULT_CHUNK, at_least, capacity_of, chunk_sectors, common_rows};
use crate::plan::{BufferPlace, Content, OpenIos, Plan, PlanWriter};
use crate::states::MemberStates;
use fullstroke_contract::registry::{self, Keys};
use fullstroke_contract::{ConfigError, Extent, LayersBelow, Request, RequestStatus};
use fullstroke_units::{Bytes, Lbn, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys of `raid0`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Raid0Config {
    /// Behaviour of the array: `md` as Linux's md, or `ideal`. Default `ideal`.
    pub like: Like,
    /// Bytes on one member before the next member has its turn: a positive multiple of 512. Default
    /// 64KiB; in a stack file with `like = "md"` 512KiB, as `mdadm --create` makes it.
    #[schemars(extend("x-default" = "`512KiB` if `like = \"md\"`, else `64KiB`"))]
    pub chunk: Bytes,
}

impl Default for Raid0Config {
    fn default() -> Raid0Config {
        Raid0Config {
            like: Like::Ideal,
            chunk: DEFAULT_CHUNK,
        }
    }
}

/// Chunks dealt to the members in turn.
#[derive(Debug)]
pub struct Raid0 {
    capacities: Vec<Sectors>,
    like: Like,
    /// Chunk size in sectors.
    chunk: u64,
    /// Number of whole chunks on each member.
    rows: u64,
    capacity: Sectors,
    states: MemberStates,
    open: OpenIos,
}

impl Raid0 {
    /// See [`BuildLayout`](crate::BuildLayout).
    pub fn build(keys: &Keys, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
        let config: Raid0Config = registry::read(keys)?;
        at_least("raid0", members, 1)?;
        let chunk = chunk_sectors(config.chunk)?;
        if config.like == Like::Md {
            check_whole_pages(chunk)?;
        }
        let rows = common_rows(members, chunk)?;
        let capacity = capacity_of([rows, members.len() as u64, chunk])?;
        let (states, open) = (
            MemberStates::alive(members.len()),
            OpenIos::new(members.len()),
        );
        Ok(Box::new(Raid0 {
            capacities: members.to_vec(),
            like: config.like,
            chunk,
            rows,
            capacity,
            states,
            open,
        }))
    }
}

impl Layout for Raid0 {
    fn name(&self) -> &'static str {
        "raid0"
    }
    fn capacity(&self) -> Sectors {
        self.capacity
    }
    fn member_capacity(&self, member: usize) -> Sectors {
        self.capacities[member]
    }
    fn member_used(&self, _member: usize) -> Sectors {
        Sectors(self.rows * self.chunk)
    }
    fn geometry(&self) -> Geometry {
        if self.members() == 1 {
            return Geometry::Contiguous;
        }
        let row = Sectors(self.members() as u64 * self.chunk);
        Geometry::Striped(Stripe {
            unit: Sectors(self.chunk),
            row: Some(row),
            parities: 0,
        })
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
        assert!(lbn.0 < self.capacity.0, "{lbn} is not below the capacity");
        let (index, offset) = (lbn.0 / self.chunk, lbn.0 % self.chunk);
        let members = self.members() as u64;
        let member = (index % members) as usize;
        Location {
            member,
            lbn: Lbn(index / members * self.chunk + offset),
        }
    }

    fn role_of(&self, member: usize, lbn: Lbn) -> Role {
        assert!(
            lbn.0 < self.capacities[member].0,
            "{lbn} is not below the member's capacity"
        );
        let (row, offset) = (lbn.0 / self.chunk, lbn.0 % self.chunk);
        if row >= self.rows {
            return Role::Unused;
        }
        let index = row * self.members() as u64 + member as u64;
        Role::Data(Lbn(index * self.chunk + offset))
    }

    fn plan_transfer(
        &mut self,
        request: &Request,
        _below: LayersBelow<'_>,
        plan: &mut Plan,
    ) -> RequestStatus {
        let (members, chunk) = (self.members() as u64, self.chunk);
        let mut writer = PlanWriter::new(plan, &mut self.open);
        writer.begin_strand();
        let (begin, end) = (request.extent.start.0, request.extent.end().0);
        let add = |writer: &mut PlanWriter<'_>, at: u64, sectors: u64| {
            let (index, offset) = (at / chunk, at % chunk);
            let extent = Extent::new(index / members * chunk + offset, sectors);
            let place = BufferPlace::Request(Sectors(at - begin));
            let member = (index % members) as usize;
            writer.io(member, request.operation, extent, place, Content::Data);
        };
        let mut at = begin;
        while at < end {
            let rest = chunk - at % chunk;
            if self.like == Like::Ideal {
                let sectors = rest.min(end - at);
                add(&mut writer, at, sectors);
                at += sectors;
                continue;
            }
            // The block layer cuts a request into pieces of a chunk from its beginning
            // (`max_hw_sectors` of `raid0_set_limits`). A piece that crosses into the next chunk is
            // cut again, and its second part is issued first (Linux 6.12, `tools/kernel-lab.py`).
            let piece = chunk.min(end - at);
            if piece > rest {
                writer.part();
                add(&mut writer, at + rest, piece - rest);
            }
            writer.part();
            add(&mut writer, at, piece.min(rest));
            at += piece;
        }
        RequestStatus::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Detail;
    use fullstroke_contract::Operation;

    #[test]
    fn a_large_read_is_one_io_for_each_member() {
        let mut raid0 = Raid0::build(&Keys::new(), &[Sectors(10_000); 5]).unwrap();
        let mut plan = Plan::new(Detail::Timing);
        let request = Request {
            operation: Operation::Read,
            extent: Extent::new(100, 4_000),
            ..Request::default()
        };
        assert_eq!(
            raid0.plan(&request, LayersBelow::NOTHING, &mut plan),
            RequestStatus::Done
        );
        assert_eq!(plan.ios().len(), 5);
    }

    #[test]
    fn what_is_behind_the_smallest_members_last_chunk_is_unused() {
        let raid0 = Raid0::build(&Keys::new(), &[Sectors(1000), Sectors(300)]).unwrap();
        assert_eq!(raid0.capacity(), Sectors(512));
        assert_eq!(raid0.unused(), Sectors(744 + 44));
        assert_eq!(raid0.role_of(1, Lbn(256)), Role::Unused);
    }
}
