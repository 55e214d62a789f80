//! `raid1`: every member holds a copy of all data.
//!
//! A write goes to all members and is complete when the last member has completed. A read goes to
//! one member; the read policy chooses the member. The smallest member sets the capacity.
//!
//! A member under rebuild gets all writes. Reads use only its filled part.

use crate::geometry::Geometry;
use crate::layout::{Layout, Location, Role};
use crate::like::Like;
use crate::members::{at_least, smallest};
use crate::mirror::{Balance, CopyChooser, ReadPolicy, ReadableCopy, copy_to_all, write_copies};
use crate::plan::{BufferPlace, Content, OpenIos, Plan, PlanWriter};
use crate::states::MemberStates;
use fullstroke_contract::registry::{self, Keys};
use fullstroke_contract::{ConfigError, Extent, LayersBelow, Operation, Request, RequestStatus};
use fullstroke_units::{Lbn, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys of `raid1`. The number of copies is the number of members.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Raid1Config {
    /// Behaviour of the array: `md` as Linux's md, or `ideal`. Simulations (`run`, `compare`,
    /// `advise`) have the default `md`, but `ideal` with `[controller]` and with `coordinate`. Live
    /// serving, arrays on devices and studies have the default `ideal`.
    #[schemars(extend("x-default" = "`md` in `run`, `compare` and other simulations, else `ideal`"))]
    pub like: Like,
    /// Policy for the choice of the copy to read: the copies in turn (`round-robin`), the member
    /// with the fewest requests (`shortest-queue`), the member with its arm nearest to the data
    /// (`nearest-head`), or the rule of Linux's md for members with arms (`md`) or without arms
    /// (`md-nonrotational`). Default `round-robin`; in a stack file with `like = "md"` `md`.
    #[schemars(extend("x-default" = "`md` if `like = \"md\"`, else `round-robin`"))]
    pub read_policy: ReadPolicy,
    /// Failed members, counted from 0; at least one member must be left. Default none.
    pub failed: Vec<u32>,
}

/// A copy of all data on every member.
#[derive(Debug)]
pub struct Raid1 {
    like: Like,
    capacities: Vec<Sectors>,
    capacity: Sectors,
    states: MemberStates,
    chooser: CopyChooser,
    open: OpenIos,
}

impl Raid1 {
    /// See [`BuildLayout`](crate::BuildLayout).
    pub fn build(keys: &Keys, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
        let config: Raid1Config = registry::read(keys)?;
        at_least("raid1", members, 2)?;
        Ok(Box::new(Raid1 {
            like: config.like,
            capacities: members.to_vec(),
            capacity: smallest(members).1,
            states: MemberStates::with_failed_at_most(
                &config.failed,
                members.len(),
                members.len() - 1,
            )?,
            chooser: CopyChooser::new(config.read_policy, members.len(), Balance::Mirror),
            open: OpenIos::new(members.len()),
        }))
    }
}

impl Layout for Raid1 {
    fn name(&self) -> &'static str {
        "raid1"
    }
    fn capacity(&self) -> Sectors {
        self.capacity
    }
    fn member_capacity(&self, member: usize) -> Sectors {
        self.capacities[member]
    }
    fn member_used(&self, _member: usize) -> Sectors {
        self.capacity
    }
    fn geometry(&self) -> Geometry {
        Geometry::Contiguous
    }
    fn like(&self) -> Like {
        self.like
    }
    fn failures_survived(&self) -> u32 {
        self.members() as u32 - 1
    }
    fn member_states(&self) -> &MemberStates {
        &self.states
    }
    fn member_states_mut(&mut self) -> &mut MemberStates {
        &mut self.states
    }

    fn locate(&self, lbn: Lbn) -> Location {
        assert!(lbn.0 < self.capacity.0, "{lbn} is not below the capacity");
        Location { member: 0, lbn }
    }

    fn role_of(&self, member: usize, lbn: Lbn) -> Role {
        assert!(
            lbn.0 < self.capacities[member].0,
            "{lbn} is not below the member's capacity"
        );
        match member {
            _ if lbn.0 >= self.capacity.0 => Role::Unused,
            0 => Role::Data(lbn),
            copy => Role::Copy {
                of: lbn,
                copy: copy as u32,
            },
        }
    }

    fn io_ended(&mut self, member: usize, operation: Operation, end: Lbn) {
        // `raid1_end_write_request` does not move the head, unlike the end of a write in
        // `raid10.c`.
        if operation == Operation::Read {
            self.chooser.io_ends(member, end);
        }
    }

    fn plan_transfer(
        &mut self,
        request: &Request,
        below: LayersBelow<'_>,
        plan: &mut Plan,
    ) -> RequestStatus {
        let (states, extent) = (&self.states, request.extent);
        let all = 0..self.capacities.len();
        let mut writer = PlanWriter::new(plan, &mut self.open);
        writer.begin_strand();
        if request.operation == Operation::Read {
            let copies = all.filter(|&member| extent.end().0 <= states.readable(member));
            let copies = copies.map(|member| ReadableCopy {
                member,
                lbn: extent.start,
                planned: 0,
            });
            let Some(copy) = self.chooser.choose(0, copies, below) else {
                return RequestStatus::Lost;
            };
            self.chooser.read_begins(copy.member, extent.end());
            writer.io(
                copy.member,
                Operation::Read,
                extent,
                BEGINNING,
                Content::Data,
            );
            return RequestStatus::Done;
        }
        let copies = all.map(|member| (member, extent));
        write_copies(
            &mut writer,
            states,
            request.operation,
            extent,
            BEGINNING,
            copies,
        )
    }

    fn plan_rebuild(
        &mut self,
        members: &[usize],
        from: Sectors,
        most: Sectors,
        plan: &mut Plan,
    ) -> Sectors {
        plan.clear();
        let others = (0..self.capacities.len())
            .rev()
            .filter(|other| !members.contains(other));
        // `max_by_key` returns the last of several maxima. The reversed order makes that the lowest
        // member.
        let source = others.max_by_key(|&other| self.states.readable(other));
        let Some(source) = source else {
            return self.capacity;
        };
        let filled = self.capacity.0.min(self.states.readable(source));
        if from.0 >= filled {
            return self.capacity;
        }
        let end = filled.min(from.0.saturating_add(most.0.max(1)));
        let run = Extent::new(from.0, end - from.0);
        copy_to_all(
            &mut PlanWriter::new(plan, &mut self.open),
            run,
            source,
            members,
        );
        members
            .iter()
            .for_each(|&member| self.states.fill(member, end));
        Sectors(end)
    }
}

/// The beginning of the request's buffer: each member gets the whole request.
const BEGINNING: BufferPlace = BufferPlace::Request(Sectors::ZERO);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Detail;
    use serde_json::json;

    fn raid1(keys: serde_json::Value, members: usize) -> Result<Box<dyn Layout>, ConfigError> {
        Raid1::build(keys.as_object().unwrap(), &vec![Sectors(1000); members])
    }

    fn members_of(layout: &mut dyn Layout, operation: Operation) -> Vec<u32> {
        let mut plan = Plan::new(Detail::Timing);
        let request = Request {
            operation,
            extent: Extent::new(10, 8),
            ..Request::default()
        };
        assert_eq!(
            layout.plan(&request, LayersBelow::NOTHING, &mut plan),
            RequestStatus::Done
        );
        plan.ios().iter().map(|io| io.member).collect()
    }

    #[test]
    fn writes_reach_every_copy_that_is_left_and_reads_one() {
        let mut layout = raid1(json!({ "failed": [1] }), 4).unwrap();
        assert_eq!(members_of(&mut *layout, Operation::Write), [0, 2, 3]);
        assert_eq!(members_of(&mut *layout, Operation::Read), [0]);
        assert_eq!(members_of(&mut *layout, Operation::Read), [2]);
        assert_eq!(members_of(&mut *layout, Operation::Discard), [0, 2, 3]);
        for operation in [Operation::Flush, Operation::Standby, Operation::Start] {
            assert_eq!(members_of(&mut *layout, operation), [0, 2, 3]);
        }
    }

    #[test]
    fn a_mirror_has_two_members_and_one_that_is_left() {
        assert_eq!(raid1(json!({}), 1).err().unwrap().key, "members");
        assert_eq!(
            raid1(json!({ "failed": [0, 1] }), 2).err().unwrap().key,
            "failed"
        );
        assert!(raid1(json!({ "failed": [0, 1] }), 3).is_ok());
    }

    #[test]
    fn an_unknown_read_policy_names_the_known_ones() {
        let error = raid1(json!({ "read_policy": "random" }), 2).err().unwrap();
        assert_eq!(error.key, "read_policy");
        assert!(error.message.contains("shortest-queue"), "{error}");
    }
}
