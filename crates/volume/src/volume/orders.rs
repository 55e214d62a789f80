//! Members fail, are replaced, and are rebuilt while the volume is in use.

use super::Volume;
use super::rebuild::Unit;
use fullstroke_contract::{MemberState, Order, Out, Refusal, Signal, Status};
use fullstroke_units::{Bytes, Sectors, Time};

impl Volume {
    /// See [`Layer::ordered`](fullstroke_contract::Layer::ordered).
    pub(super) fn carry_out(&mut self, now: Time, order: Order, out: &mut Out) -> Result<(), Refusal> {
        match order {
            Order::Fail { member } => self.check_fail(member).map(|()| self.fail(member, out)),
            Order::Restore { member, rate } => {
                self.check_restore(member, rate).map(|()| self.restore(now, member, rate, out))
            }
        }
    }

    /// What a member says about itself.
    pub(super) fn hear(&mut self, now: Time, member: usize, signal: Signal, out: &mut Out) {
        match signal {
            Signal::Failed => self.fail_unless_failed(member, out),
            Signal::Replaced => {
                self.fail_unless_failed(member, out);
                self.restore(now, member, self.latest_rate, out);
            }
            // It speaks of its own members, not of the volume's.
            Signal::Rebuilt { .. } => {}
            other => out.signal(other),
        }
    }

    fn fail_unless_failed(&mut self, member: usize, out: &mut Out) {
        if self.layout.member_state(member) != MemberState::Failed {
            self.fail(member, out);
        }
    }

    fn check_member(&self, member: usize) -> Result<MemberState, Refusal> {
        let members = self.layout.members();
        if member < members {
            return Ok(self.layout.member_state(member));
        }
        let last = members - 1;
        Err(Refusal(format!(
            "there is no member {member}: the {members} members are counted from 0 to {last}"
        )))
    }

    fn check_fail(&self, member: usize) -> Result<(), Refusal> {
        match self.check_member(member)? {
            MemberState::Failed => Err(Refusal(format!("member {member} has failed already"))),
            _ => Ok(()),
        }
    }

    fn check_restore(&self, member: usize, rate: Option<Bytes>) -> Result<(), Refusal> {
        let found = match self.check_member(member)? {
            MemberState::Failed if rate == Some(Bytes(0)) => {
                let mend = "give a positive rate, or none for as fast as it goes";
                return Err(Refusal(format!("at a rate of 0 bytes a second no rebuild ends; {mend}")));
            }
            MemberState::Failed => return Ok(()),
            MemberState::Alive => "is alive",
            MemberState::Rebuilding { .. } => "is being rebuilt already",
        };
        Err(Refusal(format!("member {member} {found}; only a member that has failed can be restored")))
    }

    fn fail(&mut self, member: usize, out: &mut Out) {
        self.rebuilds.forget(member);
        self.set_state(member, MemberState::Failed, out);
        self.rebuilds.halted = !self.answering;
    }

    fn restore(&mut self, now: Time, member: usize, rate: Option<Bytes>, out: &mut Out) {
        self.latest_rate = rate;
        self.restores += 1;
        self.rebuilds.add(now, member, rate, self.in_flight);
        self.rebuilds.halted = false;
        self.set_state(member, MemberState::Rebuilding { done: Sectors::ZERO }, out);
    }

    /// Changes a state, and says upwards if the volume answers no longer, or
    /// again.
    fn set_state(&mut self, member: usize, state: MemberState, out: &mut Out) {
        self.layout.set_member_state(member, state);
        self.changes += 1;
        self.first_alive = first_alive(&*self.layout);
        let answers = self.layout.answers();
        if answers != self.answering {
            self.answering = answers;
            out.signal(if answers { Signal::Replaced } else { Signal::Failed });
        }
    }

    /// Begins the unit of a rebuild that is due by `now`, if one is.
    #[inline]
    pub(super) fn catch_up(&mut self, now: Time, out: &mut Out) {
        if self.rebuilds.next_unit() <= now {
            self.begin_units(now, out);
        }
    }

    /// Begins units until one has I/O to wait for: others are over at once.
    fn begin_units(&mut self, now: Time, out: &mut Out) {
        while let Some(job) = self.rebuilds.job() {
            let begun = self.rebuilds.next_unit();
            if begun > now {
                return;
            }
            let slot = self.new_slot();
            let plan = &mut self.flights[slot].plan;
            let end = self.layout.plan_rebuild(job.member, job.done, self.unit, plan);
            if plan.ios().is_empty() {
                self.free.push(slot as u32);
                self.filled(job.member, end, out);
                continue;
            }
            self.rebuilds.begin(begun, Unit { member: job.member, end, changes: self.changes, counts: true });
            self.flights[slot].begin_rebuild(begun);
            self.begin_strands(slot, out);
        }
    }

    /// A unit has ended at `at`.
    pub(super) fn unit_ended(&mut self, at: Time, status: Status, out: &mut Out) {
        let Some(unit) = self.rebuilds.end(at).filter(|unit| unit.counts) else { return };
        if status == Status::Done {
            return self.filled(unit.member, unit.end, out);
        }
        // A member that failed meanwhile is why: it is planned again without.
        // Otherwise there is no more to be had from this member, until somebody
        // sees to it.
        self.rebuilds.halted |= unit.changes == self.changes;
        if let Some(job) = self.rebuilds.job() {
            self.layout.set_member_state(unit.member, MemberState::Rebuilding { done: job.done });
        }
    }

    /// The member whose turn it is, is filled up to `done`.
    fn filled(&mut self, member: usize, done: Sectors, out: &mut Out) {
        let whole = done >= self.layout.member_used(member);
        self.rebuilds.advance(done, whole);
        out.signal(Signal::Rebuilt { member: member as u32, done, whole });
        let state = if whole { MemberState::Alive } else { MemberState::Rebuilding { done } };
        self.set_state(member, state, out);
    }
}

/// The member whose arm stands for the volume's.
pub(super) fn first_alive(layout: &dyn crate::Layout) -> usize {
    let failed = layout.failed();
    let alive = (0..layout.members()).find(|&member| failed.binary_search(&(member as u32)).is_err());
    alive.unwrap_or(0)
}
