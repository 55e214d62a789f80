//! `jbod`: the members one after another.
//!
//! The volume's addresses run through the first member, then through the second, and so on. Members
//! may differ in size; every sector of each member is used. There is no redundancy. A request
//! occupies a second member only if the request crosses the border between two members.

use crate::geometry::Geometry;
use crate::layout::{Layout, Location, Role};
use crate::members::{at_least, too_large};
use crate::plan::{BufferPlace, Content, OpenIos, Plan, PlanWriter};
use crate::states::MemberStates;
use fullstroke_contract::registry::{self, Keys};
use fullstroke_contract::{ConfigError, Extent, LayersBelow, Request, RequestStatus};
use fullstroke_units::{Lbn, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys of `jbod`: none.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JbodConfig {}

/// Members one after another.
#[derive(Debug)]
pub struct Jbod {
    /// First volume sector of each member; the last entry is the capacity.
    starts: Vec<u64>,
    states: MemberStates,
    open: OpenIos,
}

impl Jbod {
    /// See [`BuildLayout`](crate::BuildLayout).
    pub fn build(keys: &Keys, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
        let JbodConfig {} = registry::read(keys)?;
        at_least("jbod", members, 1)?;
        let mut starts = vec![0u64];
        for capacity in members {
            let start = starts[starts.len() - 1];
            starts.push(start.checked_add(capacity.0).ok_or_else(too_large)?);
        }
        let (states, open) = (
            MemberStates::alive(members.len()),
            OpenIos::new(members.len()),
        );
        Ok(Box::new(Jbod {
            starts,
            states,
            open,
        }))
    }
}

/// Returns the member with the volume's sector `lbn`.
fn member_at(starts: &[u64], lbn: u64) -> usize {
    // The first start is 0, so a start at or before each address exists.
    starts.partition_point(|&start| start <= lbn) - 1
}

impl Layout for Jbod {
    fn name(&self) -> &'static str {
        "jbod"
    }
    fn capacity(&self) -> Sectors {
        Sectors(self.starts[self.members()])
    }
    fn member_capacity(&self, member: usize) -> Sectors {
        Sectors(self.starts[member + 1] - self.starts[member])
    }
    fn member_used(&self, member: usize) -> Sectors {
        self.member_capacity(member)
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
        assert!(lbn.0 < self.capacity().0, "{lbn} is not below the capacity");
        let member = member_at(&self.starts, lbn.0);
        Location {
            member,
            lbn: Lbn(lbn.0 - self.starts[member]),
        }
    }

    fn role_of(&self, member: usize, lbn: Lbn) -> Role {
        assert!(
            lbn.0 < self.member_capacity(member).0,
            "{lbn} is not below the member's capacity"
        );
        Role::Data(Lbn(self.starts[member] + lbn.0))
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
            let member = member_at(&self.starts, at);
            let stop = end.min(self.starts[member + 1]);
            let extent = Extent::new(at - self.starts[member], stop - at);
            let place = BufferPlace::Request(Sectors(at - begin));
            writer.io(member, request.operation, extent, place, Content::Data);
            at = stop;
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
    fn a_request_across_the_border_occupies_two_members() {
        let mut jbod = Jbod::build(&Keys::new(), &[Sectors(100), Sectors(0), Sectors(50)]).unwrap();
        let mut plan = Plan::new(Detail::Timing);
        let request = Request {
            operation: Operation::Write,
            extent: Extent::new(90, 20),
            ..Request::default()
        };
        assert_eq!(
            jbod.plan(&request, LayersBelow::NOTHING, &mut plan),
            RequestStatus::Done
        );
        let ios: Vec<(u32, Extent)> = plan.ios().iter().map(|io| (io.member, io.extent)).collect();
        assert_eq!(ios, [(0, Extent::new(90, 10)), (2, Extent::new(0, 10))]);
    }

    #[test]
    fn members_beyond_the_address_space_are_refused() {
        let error = Jbod::build(&Keys::new(), &[Sectors(u64::MAX), Sectors(1)])
            .err()
            .unwrap();
        assert_eq!(error.key, "members");
        assert!(Jbod::build(&Keys::new(), &[]).is_err());
    }
}
