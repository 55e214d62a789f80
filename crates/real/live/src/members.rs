//! The members of a served stack: they fail, are restored, and are filled.
//!
//! The store owns the states of members. The store learns first of a failure of the host's storage,
//! and the stored states survive a kill of the server. A change of a member is carried out on the
//! data first. Then the layers are told the new state ([`ServedStack::tell_layers`]). Only the
//! progress of a rebuild goes the other way, because the layers decide on the timing.

use crate::following::FollowingStep;
use crate::member_names::{dotted, path_of};
use crate::record::RecordedOrder;
use crate::served_stack::ServedStack;
use crate::signal_extent::SignalExtent;
use crate::watch::Sent;
use fullstroke_contract::{Gear, LayerOrder, MemberState, RebuildSpeed, Refusal, Signal};
use fullstroke_store::bytes::{HostFailedMember, MemberStatus, RebuildRecord, StoreError};
use fullstroke_transport::print_error;
use fullstroke_units::{Bytes, SECTOR_BYTES, Sectors, Time};
use std::time::Instant;

/// Data filled between two checks of the sockets: 1 MiB takes about a millisecond.
const FILLED_AT_ONCE: Sectors = Sectors((1 << 20) / SECTOR_BYTES);

impl ServedStack {
    /// Marks the member at `path` as failed.
    pub(crate) fn fail(&mut self, now: Time, path: &[usize]) -> Result<(), Refusal> {
        self.catch_up(now);
        self.store.fail_member(path).map_err(refusal)?;
        self.tell_failure(path)
    }

    /// Replaces the failed member at `path` by an empty one. If the volume has failed, the user
    /// must accept the loss of data.
    pub(crate) fn restore(
        &mut self,
        now: Time,
        path: &[usize],
        rate: Option<Bytes>,
        accept_data_loss: bool,
    ) -> Result<(), Refusal> {
        self.catch_up(now);
        if accept_data_loss && self.store.awaits_loss() {
            self.store.accept_data_loss().map_err(refusal)?;
        }
        self.store
            .restore_member(path)
            .map_err(|error| restore_refusal(error, path))?;
        // The store comes first, because only the store knows if the data permit the order. The
        // layers follow, and if they refuse, the member fails again.
        self.tell_layers_or_fail(path, rate)?;
        self.fill_others(rate);
        self.keep_speed(|speed| speed.rate = rate)
    }

    /// Returns the failed member at `path` to its place, with its data.
    pub(crate) fn re_add(&mut self, now: Time, path: &[usize]) -> Result<(), Refusal> {
        self.catch_up(now);
        self.store.re_add_member(path).map_err(refusal)?;
        self.tell_layers_or_fail(path, None)?;
        self.fill_others(self.store.rebuild_speed().rate);
        Ok(())
    }

    /// Prepares a change of states: brings the data to the state of the layers, and tells the
    /// layers of failed members.
    fn catch_up(&mut self, now: Time) {
        self.advance(now);
        self.fill_all();
        self.tell_dropped();
    }

    /// Tells the layers the state of the member at `path`. A rebuild runs at most at `rate`.
    ///
    /// # Errors
    /// If the layers refuse the order, for example because the member already has this state there.
    fn tell_layers(&mut self, path: &[usize], rate: Option<Bytes>) -> Result<(), Refusal> {
        match self.store.member_state(path).map_err(refusal)? {
            MemberState::Alive => self.order(path, |member| LayerOrder::ReAdd { member }),
            MemberState::Rebuilding { done } => self.order_restore(path, done, rate),
            MemberState::Failed => {
                self.watch.rebuilds.forget(path);
                self.order(path, |member| LayerOrder::Fail { member })
            }
        }
    }

    /// Tells the layers that the member at `path` has failed. Also reports volumes that have failed
    /// in the data, but not in the layers. Such a difference arises because the layers run ahead of
    /// the data: another member may be whole there already.
    fn tell_failure(&mut self, path: &[usize]) -> Result<(), Refusal> {
        let told = self.tell_layers(path, None);
        for path in self.paths(MemberStatus::has_failed) {
            // Most layers know already, and refuse.
            let _ = self.tell_layers(&path, None);
        }
        told
    }

    /// Returns the paths of the members in the wanted state.
    fn paths(&self, wanted: impl Fn(&MemberStatus) -> bool) -> Vec<Vec<usize>> {
        let members = self.store.status();
        members
            .iter()
            .filter(|member| wanted(member))
            .map(path_of)
            .filter(|path| !path.is_empty())
            .collect()
    }

    /// Tells the layers the state of a member after a failure. If the layers refuse, the member
    /// stays failed.
    fn tell_layers_or_fail(&mut self, path: &[usize], rate: Option<Bytes>) -> Result<(), Refusal> {
        self.tell_layers(path, rate).inspect_err(|_| {
            // The member was in this state a moment ago, so this cannot fail.
            let _ = self.store.fail_member(path);
        })
    }

    /// Orders the layers to restore a member. The store has accepted the member, and has already
    /// checked for loss of data. If a volume has all its data, an empty member of a failed inner
    /// volume loses nothing.
    fn order_restore(
        &mut self,
        path: &[usize],
        done: Sectors,
        rate: Option<Bytes>,
    ) -> Result<(), Refusal> {
        let sent = self.watch.sent.len();
        let accept_data_loss = !self.store.has_failed() || self.store.has_lost_data();
        self.order(path, |member| LayerOrder::Restore {
            member,
            done,
            rate,
            accept_data_loss,
        })?;
        // Unless the whole rebuild was skipped at once, which a signal has reported.
        let own = |sent: &Sent| {
            path.split_last()
                .is_some_and(|(_, volume)| sent.path == volume)
        };
        if !self.watch.sent.iter().skip(sent).any(own) {
            let used = self.store.member_used(path).unwrap_or_default();
            self.watch
                .rebuilds
                .begin(self.machine.now(), path, done, used);
        }
        Ok(())
    }

    /// Sets the speed of rebuilds in all volumes.
    pub(crate) fn set_speed(&mut self, now: Time, speed: RebuildSpeed) -> Result<(), Refusal> {
        self.advance(now);
        let volumes: Vec<Vec<usize>> = self
            .machine
            .graph()
            .volume_paths()
            .map(<[usize]>::to_vec)
            .collect();
        if volumes.is_empty() {
            return Err(Refusal("a single drive is not a member of a volume".into()));
        }
        for volume in volumes {
            self.order_volume(&volume, LayerOrder::Speed(speed))?;
        }
        self.keep_speed(|kept| {
            let RebuildSpeed { least, most } = speed;
            *kept = RebuildRecord {
                rate: None,
                speed_limit_min: Some(least),
                speed_limit_max: most,
            };
        })
    }

    fn keep_speed(&mut self, change: impl FnOnce(&mut RebuildRecord)) -> Result<(), Refusal> {
        let mut speed = self.store.rebuild_speed();
        change(&mut speed);
        self.store.keep_rebuild_speed(speed).map_err(refusal)
    }

    /// Continues after a restart: incomplete members are rebuilt, at the stored speed.
    pub(crate) fn resume(&mut self) {
        let kept = self.store.rebuild_speed();
        if kept.speed_limit_min.is_some() || kept.speed_limit_max.is_some() {
            let least = kept
                .speed_limit_min
                .unwrap_or(RebuildSpeed::default().least);
            let speed = RebuildSpeed {
                least,
                most: kept.speed_limit_max,
            };
            let volumes: Vec<Vec<usize>> = self
                .machine
                .graph()
                .volume_paths()
                .map(<[usize]>::to_vec)
                .collect();
            for volume in volumes {
                // A volume whose members never fail refuses a speed.
                let _ = self.order_volume(&volume, LayerOrder::Speed(speed));
            }
        }
        self.tell_layers_all(kept.rate);
    }

    /// Tells the layers the states of all members, whatever the stack file says. A rebuild waits
    /// for missing sources. So the order is: members that are alive, then members being filled,
    /// then failed members.
    fn tell_layers_all(&mut self, rate: Option<Bytes>) {
        // The layers refuse states that they have already, which is harmless.
        for path in self.paths(MemberStatus::is_alive) {
            let _ = self.tell_layers(&path, None);
        }
        for path in self.paths(|member| member.filled().is_some()) {
            // The layers begin with whole members. A rebuild can only be ordered for a failed
            // member.
            let _ = self.order(&path, |member| LayerOrder::Fail { member });
            // On a read-only store the rebuild must wait for a server that may write.
            if !self.store.is_read_only() {
                let _ = self.tell_layers(&path, rate);
            }
        }
        for path in self.paths(MemberStatus::has_failed) {
            let _ = self.tell_layers(&path, None);
        }
    }

    fn note_rebuilding(&mut self) {
        let members = self.store.status();
        let rebuilding = members.iter().any(|member| member.filled().is_some());
        self.following.set_rebuilding(rebuilding);
    }

    /// Gives the layers an order about the member at `path`.
    fn order(
        &mut self,
        path: &[usize],
        order: impl Fn(usize) -> LayerOrder,
    ) -> Result<(), Refusal> {
        let Some((&member, volume)) = path.split_last() else {
            return Err(Refusal("a single drive is not a member of a volume".into()));
        };
        // Events that are due come before the order, as in a replay of the record.
        self.advance(self.machine.now());
        self.order_volume(volume, order(member))
    }

    /// Gives the volume at `volume` an order, now.
    fn order_volume(&mut self, volume: &[usize], order: LayerOrder) -> Result<(), Refusal> {
        let now = self.machine.now();
        let submitted = self.machine.submitted();
        self.machine.order(now, volume, order, &mut self.watch)?;
        if let Some(recorder) = &mut self.watch.recorder {
            recorder.ordered(RecordedOrder::new(now, submitted, volume, order));
        }
        self.note_rebuilding();
        Ok(())
    }

    /// Carries out the volumes' rebuild progress on the data: at least one step, and not much
    /// longer than `until`.
    pub(crate) fn carry_signals(&mut self, until: Instant) {
        self.note_signals();
        while let Some(step) = self.following.next() {
            self.follow(step);
            if Instant::now() >= until {
                return;
            }
        }
    }

    /// Carries out one step of the layers' signals on the data.
    fn follow(&mut self, step: FollowingStep) {
        match step {
            FollowingStep::Fill(path, upto) => self.fill(path, upto),
            FollowingStep::Shift(path, to) => self.shift(path, to),
        }
    }

    /// Takes the volumes' signals: rebuild progress, and signals for clients.
    fn note_signals(&mut self) {
        while let Some(Sent { mut path, signal }) = self.watch.sent.pop_front() {
            if let Some(said) = SignalExtent::of(signal) {
                self.signals.say(said);
                continue;
            }
            if let Signal::Shifted(gear) = signal {
                self.following.shifted(path, gear);
                continue;
            }
            let Signal::Rebuilt { member, done, .. } = signal else {
                continue;
            };
            path.push(member as usize);
            self.following.rebuilt(path, done);
        }
    }

    /// Returns true if data are to be filled or copied.
    pub(crate) fn is_filling(&self) -> bool {
        self.following.has_work()
    }

    /// Carries out one small step of a shift on the data, so that clients hardly wait. Stale data
    /// are copied at the start of the shift. Newly stale data are copied at the end. If a member
    /// has failed, or the store is read-only, the data may stay in another gear. This has no
    /// visible effect.
    fn shift(&mut self, path: Vec<usize>, to: Gear) {
        self.store.begin_shift(&path, to);
        let over = matches!(
            (to, self.store.gear(&path)),
            (Gear::Low, Some(Gear::Falling)) | (Gear::High, Some(Gear::Rising))
        );
        let settled = match self.store.copy_stale(&path, FILLED_AT_ONCE) {
            Ok(Sectors::ZERO) if over => self.store.settle(&path),
            Ok(Sectors::ZERO) => Ok(()),
            // The same shift goes on in the next step.
            Ok(_) => return self.following.put_back(FollowingStep::Shift(path, to)),
            Err(error) => Err(error),
        };
        if let Err(error) = settled
            && !self.store.is_read_only()
        {
            // Both places continue to be written, and the next shift copies the rest.
            print_error(&format!("{}: a shift was not copied: {error}", self.name));
        }
    }

    /// Fills one small step, so that clients hardly wait. If the host cannot fill a member, the
    /// member fails again.
    fn fill(&mut self, path: Vec<usize>, upto: Sectors) {
        let filled = match self.store.member_state(&path) {
            Ok(MemberState::Rebuilding { done }) => self
                .store
                // The sum of a step is bounded, so that clients wait for one step at most.
                .rebuild_member(&path, upto.min(done + FILLED_AT_ONCE)),
            // The member is whole already, or has failed meanwhile.
            _ => Ok(upto),
        };
        match filled {
            Ok(done) if done < upto => {
                return self.following.put_back(FollowingStep::Fill(path, upto));
            }
            // A volume that regains its data may itself be an empty member.
            Ok(_)
                if self
                    .store
                    .member_state(&path)
                    .is_ok_and(|state| state == MemberState::Alive) =>
            {
                self.fill_others(self.store.rebuild_speed().rate);
            }
            Ok(_) => {}
            // The member keeps its progress and waits for its sources.
            Err(StoreError::Failed { .. }) => self.fail_if_whole(&path, upto),
            Err(error) => {
                let member = dotted(&path);
                // Standard error may be closed, which must not end the server.
                print_error(&format!("member {member} cannot be rebuilt: {error}"));
                // Store or layers may know already.
                let _ = self.store.fail_member(&path);
                let _ = self.order(&path, |member| LayerOrder::Fail { member });
            }
        }
        self.note_rebuilding();
    }

    /// Handles data that cannot be filled up to `upto`. Layers with a whole member must not rely on
    /// this member until the member is [filled again](ServedStack::fill_others).
    fn fail_if_whole(&mut self, path: &[usize], upto: Sectors) {
        if self.store.member_used(path).is_ok_and(|used| upto >= used) {
            self.watch.rebuilds.forget(path);
            let _ = self.order(path, |member| LayerOrder::Fail { member });
        }
    }

    /// Tells the layers to fill the incomplete members, from the progress of the data on.
    fn fill_others(&mut self, rate: Option<Bytes>) {
        for path in self.paths(|member| member.filled().is_some()) {
            // Most layers know already, and refuse.
            let _ = self.tell_layers(&path, rate);
        }
    }

    /// Reports failures of members with the host's storage to the layers and to the user.
    pub(crate) fn tell_dropped(&mut self) {
        for HostFailedMember { path, why } in self.store.take_dropped() {
            let drive = dotted(&path);
            print_error(&format!("{}: drive {drive} has failed: {why}", self.name));
            // The layers may know already.
            let _ = self.tell_failure(&path);
        }
        if let Some(why) = self.store.stopped()
            && self.told.stop()
        {
            print_error(&format!(
                "{}: the export is stopped, because writes may be lost: {why}",
                self.name
            ));
        }
    }

    /// Fills everything, because before a change of states the data must be in the state of the
    /// layers.
    fn fill_all(&mut self) {
        self.note_signals();
        while let Some(step) = self.following.next() {
            self.follow(step);
        }
    }
}

/// Returns the reason why a member cannot be restored, with advice.
fn restore_refusal(error: StoreError, path: &[usize]) -> Refusal {
    let member = dotted(path);
    match error {
        StoreError::Failed { .. } => Refusal(format!(
            "{error}: an empty drive would not restore the data. If the data may be lost, use: restore {member} --accept-data-loss"
        )),
        other => refusal(other),
    }
}

fn refusal(error: StoreError) -> Refusal {
    Refusal(error.to_string())
}

#[cfg(test)]
pub(crate) mod tests;
