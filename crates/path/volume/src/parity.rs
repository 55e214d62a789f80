//! The common part of raid4, raid5 and raid6: rows of chunks with parity.
//!
//! Row r is chunk r of every member. In the plan of a request, each partly written row is a strand,
//! and each run of whole rows is a strand. Within a row, the written part is cut so that each cut
//! concerns the same chunks from end to end (see [`bands`]). Each cut gets the method with the
//! lowest cost (see [`choice`]).
//!
//! Members fail and are filled again from row 0 upwards ([`refill`]). A member under rebuild counts
//! as alive in the filled rows and as failed in the other rows. A row is broken if it has lost more
//! chunks than its parities can restore. The remaining data of a broken row can be read, but the
//! row cannot be written.

mod bands;
mod choice;
mod map;
mod recovery;
mod refill;
mod row;
mod rows;
mod stripe_cache;
mod writes;

#[cfg(test)]
mod tests;

pub use map::Rotation;
pub(crate) use map::{Placement, RowMap, RowShape};

use crate::geometry::{Geometry, Stripe};
use crate::layout::{Layout, Location, Role, longest, part_of_chunk};
use crate::md::{MdKeys, Setup as MdSetup};
use crate::members::{at_least, capacity_of, chunk_sectors, common_rows};
use crate::plan::{Detail, OpenIos, Plan, PlanWriter};
use crate::states::MemberStates;
use fullstroke_contract::{
    ConfigError, LayersBelow, MemberState, Operation, Request, RequestStatus,
};
use fullstroke_units::{Bytes, Lbn, Sectors};
use map::ChunkContent;
use rows::{RowPlanner, RowRequest, Term};
use std::ops::Range;
use stripe_cache::StripeCache;

/// The keys of a parity layout.
pub(crate) struct ParityConfig<'a> {
    pub(crate) name: &'static str,
    pub(crate) parities: usize,
    pub(crate) placement: Placement,
    pub(crate) chunk: Bytes,
    pub(crate) failed: &'a [u32],
    pub(crate) stripe_cache: u32,
    pub(crate) dummy_parity_reads: bool,
    /// The keys of md; `None` for the ideal planner.
    pub(crate) md: Option<MdKeys>,
}

/// Rows of chunks with one or two parities.
#[derive(Debug)]
pub(crate) struct ParityLayout {
    name: &'static str,
    capacities: Vec<Sectors>,
    capacity: Sectors,
    rows: RowPlanner,
    md: Option<MdSetup>,
    open: OpenIos,
    /// Terms of a sum; kept to reuse the allocated memory.
    terms: Vec<Term>,
}

impl ParityLayout {
    pub(crate) fn build(
        config: &ParityConfig<'_>,
        members: &[Sectors],
    ) -> Result<ParityLayout, ConfigError> {
        let count = members.len();
        // mdadm makes RAID 4 and RAID 5 of two members (`Create`, `Create.c` of mdadm 4.2): one
        // data chunk and its parity in each row.
        let least = match (&config.md, config.parities) {
            (Some(_), 1) => 2,
            (_, parities) => parities + 2,
        };
        at_least(config.name, members, least)?;
        check_code_length(config, count)?;
        let chunk = chunk_sectors(config.chunk)?;
        let rows = common_rows(members, chunk)?;
        let map = RowMap {
            members: count as u64,
            parities: config.parities as u64,
            placement: config.placement,
            chunk,
            rows,
        };
        Ok(ParityLayout {
            name: config.name,
            capacities: members.to_vec(),
            capacity: capacity_of([rows, map.data(), chunk])?,
            md: config.md.map(|keys| keys.setup(map)).transpose()?,
            rows: RowPlanner {
                map,
                states: MemberStates::with_failed_at_most(config.failed, count, config.parities)?,
                cache: match config.md {
                    // The stripes of md have the cache, and the plans of the volume bypass it.
                    Some(_) => None,
                    None => StripeCache::new(config.stripe_cache, count)?,
                },
                dummy_reads: config.dummy_parity_reads,
            },
            open: OpenIos::new(count),
            terms: Vec::with_capacity(count),
        })
    }
}

impl ParityLayout {
    /// Records in the stripe cache the sectors of a plan. Plans are made in the order of their
    /// locks. A later plan may rely on the record, because the later plan also runs later.
    fn went_through_stripes(&mut self, operation: Operation, plan: &Plan) {
        let Some(cache) = self
            .rows
            .cache
            .as_mut()
            // Plans for bytes do not use the cache.
            .filter(|_| plan.detail() == Detail::Timing)
        else {
            return;
        };
        for strand in plan
            .strands()
            .iter()
            .filter(|strand| strand.exclusive_rows().is_some())
        {
            for io in &plan.ios()[strand.first_phase().start..strand.second_phase().end] {
                match operation {
                    Operation::Discard => cache.forget(io.extent),
                    _ => cache.hold(io.member as usize, io.extent),
                }
            }
        }
    }
}

/// Q can distinguish at most 255 data chunks, because the generator of GF(2^8) has 255 different
/// powers.
fn check_code_length(config: &ParityConfig<'_>, members: usize) -> Result<(), ConfigError> {
    // The generator of GF(2^8) has 255 powers, one for each data member of Q. P and Q come on top.
    if config.parities < 2 || members <= 257 {
        return Ok(());
    }
    let message = format!(
        "{} supports at most 257 members, because its second parity can distinguish 255 data chunks; found {members}. Build several arrays and stripe over them",
        config.name
    );
    Err(ConfigError::new("members", message))
}

impl Layout for ParityLayout {
    fn name(&self) -> &'static str {
        self.name
    }
    fn capacity(&self) -> Sectors {
        self.capacity
    }
    fn member_capacity(&self, member: usize) -> Sectors {
        self.capacities[member]
    }
    fn member_used(&self, _member: usize) -> Sectors {
        Sectors(self.rows.map.rows * self.rows.map.chunk)
    }
    fn geometry(&self) -> Geometry {
        let map = &self.rows.map;
        Geometry::Striped(Stripe {
            unit: Sectors(map.chunk),
            row: Some(Sectors(map.row_sectors())),
            parities: map.parities as u32,
        })
    }
    fn md(&self) -> Option<MdSetup> {
        self.md
    }
    fn failures_survived(&self) -> u32 {
        self.rows.map.parities as u32
    }
    fn member_states(&self) -> &MemberStates {
        &self.rows.states
    }
    fn member_states_mut(&mut self) -> &mut MemberStates {
        &mut self.rows.states
    }

    fn locate(&self, lbn: Lbn) -> Location {
        assert!(lbn.0 < self.capacity.0, "{lbn} is not below the capacity");
        let map = &self.rows.map;
        let (row, within) = (lbn.0 / map.row_sectors(), lbn.0 % map.row_sectors());
        let member = map.shape(row).data_member(within / map.chunk) as usize;
        Location {
            member,
            lbn: Lbn(row * map.chunk + within % map.chunk),
        }
    }

    fn role_of(&self, member: usize, lbn: Lbn) -> Role {
        assert!(
            lbn.0 < self.capacities[member].0,
            "{lbn} is not below the member's capacity"
        );
        let map = &self.rows.map;
        let (row, offset) = (lbn.0 / map.chunk, lbn.0 % map.chunk);
        if row >= map.rows {
            return Role::Unused;
        }
        match map.shape(row).cell(member as u64) {
            ChunkContent::P => Role::Parity {
                row,
                offset: Sectors(offset),
            },
            ChunkContent::Q => Role::SecondParity {
                row,
                offset: Sectors(offset),
            },
            ChunkContent::Data(index) => {
                Role::Data(Lbn(row * map.row_sectors() + index * map.chunk + offset))
            }
        }
    }

    fn plan_transfer(
        &mut self,
        request: &Request,
        _below: LayersBelow<'_>,
        plan: &mut Plan,
    ) -> RequestStatus {
        let wanted = RowRequest {
            operation: request.operation,
            begin: request.extent.start.0,
            end: request.extent.end().0,
        };
        let writer = &mut PlanWriter::new(plan, &mut self.open);
        let terms = &mut self.terms;
        let status = match request.operation {
            Operation::Read => self.rows.read(wanted, terms, writer),
            Operation::Write => self.rows.write(wanted, terms, writer),
            Operation::Discard => self.rows.discard(wanted, writer),
            Operation::Flush | Operation::Standby | Operation::Start | Operation::Answer => {
                RequestStatus::Done
            }
        };
        if status == RequestStatus::Done {
            self.went_through_stripes(request.operation, plan);
        }
        status
    }

    /// A failure clears the stripe cache, because the planned I/O of the failed member may not have
    /// taken place.
    fn set_member_state(&mut self, member: usize, state: MemberState) {
        if state == MemberState::Failed
            && let Some(cache) = &mut self.rows.cache
        {
            cache.clear();
        }
        self.rows.states.set(member, state);
    }

    fn plan_rebuild(
        &mut self,
        members: &[usize],
        from: Sectors,
        most: Sectors,
        plan: &mut Plan,
    ) -> Sectors {
        let rows = self.rows.refillable(from, most);
        let chunk = 0..self.rows.map.chunk;
        self.plan_refill(members, rows, chunk, plan)
    }

    fn plan_rebuild_of_pages(
        &mut self,
        members: &[usize],
        from: Sectors,
        most: Sectors,
        plan: &mut Plan,
    ) -> Sectors {
        let Some(part) = part_of_chunk(from, most, self.rows.map.chunk) else {
            return self.plan_rebuild(members, from, most, plan);
        };
        let rows = self.rows.refillable(from, Sectors::ZERO);
        self.plan_refill(members, rows, part, plan)
    }
}
impl ParityLayout {
    /// Plans the rebuild of a part of each chunk of some rows. Returns the end of the filled part.
    fn plan_refill(
        &mut self,
        members: &[usize],
        rows: Range<u64>,
        part: Range<u64>,
        plan: &mut Plan,
    ) -> Sectors {
        plan.clear();
        if rows.is_empty() {
            return longest(self, members);
        }
        let end = (rows.end - 1) * self.rows.map.chunk + part.end;
        // A rebuild reads every source from the members, also sectors that the stripe cache holds.
        let cache = self.rows.cache.take();
        self.rows.refill(
            members,
            rows,
            part,
            &mut self.terms,
            &mut PlanWriter::new(plan, &mut self.open),
        );
        self.rows.cache = cache;
        members
            .iter()
            .for_each(|&member| self.rows.states.fill(member, end));
        Sectors(end)
    }
}
