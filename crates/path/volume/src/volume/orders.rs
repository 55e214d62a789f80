//! Failure, replacement and rebuild of members while the volume is in use.

use super::Volume;
use super::flight::RequestPurpose;
use super::rebuild::{Filling, RebuildJob, RebuildStep};
use super::yielding::Yielding;
use crate::like::Like;
use crate::members::PAGE;
use crate::plan::MemberIo;
use fullstroke_contract::{
    Effects, LayerOrder, LayersBelow, MemberState, Node as _, Notice, Operation, Port,
    PriorityClass, Refusal, RequestStatus, Signal,
};
use fullstroke_units::{Bytes, Sectors, Time};

/// Sectors of an I/O of a rebuild of copies: `RESYNC_BLOCK_SIZE` (`drivers/md/raid1-10.c`).
const BLOCK: Sectors = Sectors(128);

/// Sectors of a rebuild of copies in flight: one block less than `RESYNC_DEPTH`, 32, because the next
/// block raises the barrier before the block waits (`raise_barrier`, `drivers/md/raid1.c`).
const COPIES_IN_FLIGHT: Sectors = Sectors(31 * BLOCK.0);

/// Sectors of a turn of a rebuild of RAID 10, likewise: `RESYNC_DEPTH` is 512 blocks
/// (`drivers/md/raid10.c`).
const TURN: Sectors = Sectors(511 * BLOCK.0);

impl Volume {
    /// Carries out an order; see [`Node::ordered`](fullstroke_contract::Node::ordered).
    pub(super) fn carry_out(
        &mut self,
        now: Time,
        order: LayerOrder,
        below: LayersBelow<'_>,
        out: &mut Effects,
    ) -> Result<(), Refusal> {
        match order {
            LayerOrder::Fail { member } => {
                self.check_fail(member)?;
                self.fail(now, member, out);
            }
            LayerOrder::Restore {
                member,
                done,
                rate,
                accept_data_loss,
            } => {
                self.check_failed(member, "restored", below)?;
                self.check_restore(member, rate, accept_data_loss)?;
                self.restore(now, member, done, rate, out);
            }
            LayerOrder::ReAdd { member } => {
                self.check_failed(member, "re-added", below)?;
                self.take_back(now, member, out);
            }
            LayerOrder::Speed(speed) => {
                check_rate(speed.most)?;
                self.rebuilds.limit(now, speed);
            }
            LayerOrder::Slow { .. } => {
                return Err(Refusal("a volume is not slow; its drives may be".into()));
            }
            LayerOrder::Rest => self.rebuilds.halted = true,
        }
        Ok(())
    }

    /// Handles a notice from a member: a report about the member itself, or an offer or question
    /// about its addresses.
    pub(super) fn handle_member_notice(
        &mut self,
        now: Time,
        from: Port,
        notice: Notice,
        out: &mut Effects,
    ) {
        let member = from.index();
        match notice.signal {
            Signal::Failed => self.fail_unless_failed(now, member, out),
            // The member returns with the bytes of the time of its failure. These bytes are useless
            // if other members were written since.
            Signal::Returned if self.missed.binary_search(&(member as u32)).is_err() => {
                if self.layout.member_state(member) == MemberState::Failed {
                    self.take_back(now, member, out);
                }
            }
            Signal::Replaced | Signal::Returned => {
                self.fail_unless_failed(now, member, out);
                self.restore(now, member, Sectors::ZERO, self.latest_rate, out);
            }
            // The signal is about the members of the member, not about the members of this volume.
            Signal::Rebuilt { .. } | Signal::Shifted(_) => {}
            Signal::Push(_)
            | Signal::Pull { .. }
            | Signal::Ask(_)
            | Signal::SpunDown
            | Signal::SpunUp
            | Signal::CleaningBegan
            | Signal::CleaningEnded => {
                self.pass_on(from, notice, out);
            }
        }
    }

    fn fail_unless_failed(&mut self, now: Time, member: usize, out: &mut Effects) {
        if self.layout.member_state(member) != MemberState::Failed {
            self.fail(now, member, out);
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

    fn check_restore(
        &self,
        member: usize,
        rate: Option<Bytes>,
        accept_data_loss: bool,
    ) -> Result<(), Refusal> {
        check_rate(rate)?;
        if self.answering || accept_data_loss {
            return Ok(());
        }
        Err(Refusal(format!(
            "the volume has failed: {}. A {} of {} members does not survive this, and the lost data cannot be computed. An empty member {member} would not restore the data. If the old member still has its bytes, re-add it; accept the loss only if the lost data can be given up",
            self.lost_members(),
            self.layout.name(),
            self.layout.members()
        )))
    }

    /// Returns a list in words of the members that are not alive.
    fn lost_members(&self) -> String {
        let states = self.layout.member_states();
        let impaired = states
            .impaired()
            .iter()
            .map(|member| match states.get(*member as usize) {
                MemberState::Failed => format!("member {member} has failed"),
                _ => format!("member {member} is not filled"),
            });
        impaired.collect::<Vec<_>>().join(", ")
    }

    fn check_failed(
        &self,
        member: usize,
        done: &str,
        below: LayersBelow<'_>,
    ) -> Result<(), Refusal> {
        let found = match self.check_member(member)? {
            MemberState::Failed if !below.gauge(member).alive => {
                let message = format!(
                    "member {member} is a volume that has failed; restore its members first"
                );
                return Err(Refusal(message));
            }
            MemberState::Failed => return Ok(()),
            MemberState::Alive => "is alive",
            MemberState::Rebuilding { .. } => "is being rebuilt already",
        };
        Err(Refusal(format!(
            "member {member} {found}; only a member that has failed can be {done}"
        )))
    }

    fn fail(&mut self, now: Time, member: usize, out: &mut Effects) {
        if self.rebuilds.forget(member) {
            // The failed member may be a source or a target of planned units.
            self.count_on_what_is_filled();
        }
        self.set_state(now, member, MemberState::Failed, out);
        // After a loss of data, an operator must decide how to continue.
        self.rebuilds.halted = !self.answering;
    }

    /// Resets the states of members under rebuild to the progress so far. Planned units are
    /// cancelled or late; requests must not rely on them.
    fn count_on_what_is_filled(&mut self) {
        for filling in self.rebuilds.all() {
            let state = MemberState::Rebuilding { done: filling.done };
            self.layout.set_member_state(filling.member, state);
        }
    }

    fn restore(
        &mut self,
        now: Time,
        member: usize,
        done: Sectors,
        rate: Option<Bytes>,
        out: &mut Effects,
    ) {
        self.latest_rate = rate;
        self.restores += 1;
        assert!(
            self.rebuilds.all().all(|filling| filling.member != member),
            "member {member} is restored while it is filled"
        );
        let job = RebuildJob::new(now, member, done..self.layout.member_used(member), rate);
        self.rebuilds.halted = false;
        self.no_longer_missed(member);
        self.set_state(now, member, MemberState::Rebuilding { done }, out);
        self.start_yielding(now);
        let parted = !self.answering && self.rebuilds.part();
        if self.rebuilds.add(now, job, self.answering, self.in_flight) || parted {
            self.count_on_what_is_filled();
        }
    }

    /// Begins to watch the members' I/O for a rebuild of an array like md.
    pub(super) fn start_yielding(&mut self, now: Time) {
        if self.layout.like() != Like::Md {
            return;
        }
        let takes_turns = self.layout.takes_turns();
        let (grain, most) = match self.layout.md() {
            Some(setup) => (Sectors(PAGE), Sectors(u64::from(setup.stripes) * PAGE)),
            None if takes_turns => (BLOCK, TURN),
            None => (BLOCK, COPIES_IN_FLIGHT),
        };
        if takes_turns {
            self.turns.get_or_insert_default();
            self.rebuilds.sizes.long = Sectors(TURN.0 / 2);
        }
        let members = self.layout.members();
        let yielding = self
            .rebuilds
            .yielding
            .get_or_insert_with(|| Yielding::new(members, grain, most, takes_turns));
        yielding.set_limit(self.sync_io_depth);
        yielding.start(now);
    }

    /// Makes a failed member alive again with its old bytes.
    fn take_back(&mut self, now: Time, member: usize, out: &mut Effects) {
        self.no_longer_missed(member);
        self.returning = true;
        self.set_state(now, member, MemberState::Alive, out);
        self.returning = false;
        self.rebuilds.halted = !self.answering;
    }

    fn no_longer_missed(&mut self, member: usize) {
        self.missed.retain(|&other| other as usize != member);
    }

    /// Records that failed members miss the change of a request.
    #[inline]
    pub(super) fn note_missed(&mut self, operation: Operation) {
        let failed = self.layout.failed();
        let changes = matches!(operation, Operation::Write | Operation::Discard);
        // Without redundancy, a request for a failed member is lost as a whole, so that the member
        // misses nothing.
        if !failed.is_empty() && changes && self.layout.failures_survived() > 0 {
            self.missed.clear();
            self.missed.extend_from_slice(failed);
        }
    }

    /// Changes a state. Sends a signal upwards if the volume has failed or is available again.
    fn set_state(&mut self, now: Time, member: usize, state: MemberState, out: &mut Effects) {
        self.changes += 1;
        self.layout.set_member_state(member, state);
        self.first_alive = first_alive(&*self.layout);
        self.gears_changed(now, out);
        self.tell_whether_answering(out);
    }

    fn tell_whether_answering(&mut self, out: &mut Effects) {
        let answers = self.layout.answers();
        if answers != self.answering {
            self.answering = answers;
            out.signal(match answers {
                false => Signal::Failed,
                true if self.returning => Signal::Returned,
                true => Signal::Replaced,
            });
        }
    }

    /// Begins the rebuild units and the shifts due by `now`.
    #[inline]
    pub(super) fn catch_up(&mut self, now: Time, out: &mut Effects) {
        if self.next_unit() <= now {
            self.begin_units(now, out);
        }
        if self
            .shifts
            .as_ref()
            .is_some_and(|shifts| shifts.next() <= now)
        {
            self.shift_on(now, out);
        }
    }

    /// Begins units until a unit must wait.
    fn begin_units(&mut self, now: Time, out: &mut Effects) {
        loop {
            let begun = self.next_turn();
            if begun > now || !self.takes_turn() {
                return;
            }
            // A rebuild of md may have waited for memory, or for its turn, until now.
            let begun = match self.rebuilds.yielding {
                Some(_) => now,
                None => begun,
            };
            let Some(job) = self.rebuilds.job() else {
                return;
            };
            let (most, planned) = (job.next_of(&mut self.filled), job.planned);
            let slot = self.new_slot();
            let plan = &mut self.flights[slot].plan;
            let size = self.rebuilds.unit_size(begun, &self.pressure).min(most);
            let end = match self.rebuilds.yielding {
                Some(_) => (self.layout).plan_rebuild_of_pages(&self.filled, planned, size, plan),
                None => (self.layout).plan_rebuild(&self.filled, planned, size, plan),
            };
            assert!(
                end >= planned,
                "a unit of {:?} from {planned} on ends at {end}",
                self.filled
            );
            if plan.ios().is_empty() {
                // Sectors without a source are skipped at once.
                self.free.push(slot as u32);
                self.rebuilds.begin(begun, None, end, self.changes);
                self.follow_units(begun, out);
                continue;
            }
            self.rebuilds.begin(begun, Some(slot), end, self.changes);
            let class = self.rebuild_class();
            self.flights[slot].begin_background(begun, RequestPurpose::Rebuild, class);
            self.begin_strands(slot, out);
            let sectors = Sectors(end.0 - planned.0);
            self.rebuilds.sent(begun, sectors, &self.pressure);
        }
    }

    /// Returns the class of the I/O of a rebuild. md's threads give their I/O no priority, and the
    /// block layer takes the class of the thread, best effort (`bio_set_ioprio` in
    /// `block/blk-mq.c`, `__get_task_ioprio` in `include/linux/ioprio.h`, 6.12). An elevator with
    /// classes would hold back I/O of the idle class: mq-deadline for 10 s each
    /// (`prio_aging_expire`).
    fn rebuild_class(&self) -> PriorityClass {
        match self.layout.like() {
            Like::Md => PriorityClass::BestEffort,
            Like::Ideal => PriorityClass::Idle,
        }
    }

    /// Handles the end of the unit in `slot` at `at`. If a source has failed since, its data may be
    /// wrong, and the unit fills nothing.
    pub(super) fn unit_ended(
        &mut self,
        slot: usize,
        at: Time,
        status: RequestStatus,
        out: &mut Effects,
    ) {
        debug_assert!(
            self.flights[slot]
                .plan
                .ios()
                .iter()
                .all(|io| { io.operation != Operation::Read || !io.second_phase }),
            "a unit of a rebuild reads first, then writes"
        );
        let states = self.layout.member_states();
        let is_there = |io: &MemberIo| match io.operation {
            Operation::Read => io.extent.end().0 <= states.readable(io.member as usize),
            _ => !states.has_failed(io.member as usize),
        };
        let filled =
            status == RequestStatus::Done && self.flights[slot].plan.ios().iter().all(is_there);
        self.rebuilds.end(at, slot, filled);
        self.follow_units(at, out);
    }

    fn follow_units(&mut self, at: Time, out: &mut Effects) {
        while let Some(step) = self.rebuilds.step() {
            match step {
                RebuildStep::Filled(end) => {
                    while let Some(filling) = self.rebuilds.advance(end) {
                        self.member_filled(at, filling, out);
                    }
                }
                // If a member has failed meanwhile, the unit is planned again without that member.
                // Otherwise the source cannot be read, and the rebuild stops until an operator
                // acts.
                RebuildStep::Again { changes } => {
                    self.rebuilds.halted |= changes == self.changes;
                    self.count_on_what_is_filled();
                }
            }
        }
    }

    /// Records the progress of a member in the present job.
    fn member_filled(&mut self, at: Time, filling: Filling, out: &mut Effects) {
        let Filling { member, done, used } = filling;
        let whole = done == used;
        debug_assert!(
            matches!(
                self.layout.member_state(member),
                MemberState::Rebuilding { .. }
            ),
            "member {member} is filled up to {done}, and is not being rebuilt"
        );
        out.signal(Signal::Rebuilt {
            member: member as u32,
            done,
            used,
            whole,
        });
        if whole {
            return self.set_state(at, member, MemberState::Alive, out);
        }
        self.layout
            .set_member_state(member, MemberState::Rebuilding { done });
        if let Some(job) = self.rebuilds.job() {
            self.layout.member_states_mut().fill(member, job.planned.0);
        }
        self.tell_whether_answering(out);
    }
}

fn check_rate(rate: Option<Bytes>) -> Result<(), Refusal> {
    if rate != Some(Bytes(0)) {
        return Ok(());
    }
    let mend = "give a positive rate, or no rate for no limit";
    Err(Refusal(format!(
        "at a rate of 0 bytes a second no rebuild ends; {mend}"
    )))
}

/// Returns the member whose arm position the volume reports as its own: the first that has not
/// failed.
pub(super) fn first_alive(layout: &dyn crate::Layout) -> usize {
    let failed = layout.failed();
    let alive =
        (0..layout.members()).find(|&member| failed.binary_search(&(member as u32)).is_err());
    alive.unwrap_or(0)
}
