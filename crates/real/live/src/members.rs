//! The members of a served stack: they fail, are restored, and are filled.
//!
//! Their states are the store's: it knows first when the host's storage fails,
//! and keeps them when the server is killed. What becomes of a member is done on
//! the bytes, and the layers are told the state in which it then is
//! ([`World::tell_layers`]). Only how far it is filled goes the other way: when,
//! is for the layers to say.

use crate::record::RecordedOrder;
use crate::signals::Said;
use crate::watch::Sent;
use crate::world::World;
use fullstroke_contract::{Gear, MemberState, Order, RebuildSpeed, Refusal, Signal};
use fullstroke_store::bytes::{Dropped, MemberStatus, RebuildRecord, StoreError};
use fullstroke_transport::complain;
use fullstroke_units::{Bytes, SECTOR_BYTES, Sectors, Time};
use std::time::Instant;

/// What is filled between two looks at the sockets: 1 MiB takes about a
/// millisecond.
const FILLED_AT_ONCE: Sectors = Sectors((1 << 20) / SECTOR_BYTES);

impl World {
    /// The member at `path` has failed.
    pub(crate) fn fail(&mut self, now: Time, path: &[usize]) -> Result<(), Refusal> {
        self.catch_up(now);
        self.store.fail_member(path).map_err(refusal)?;
        self.tell_failure(path)
    }

    /// The failed member at `path` was replaced by an empty one. If the volume
    /// has failed, somebody must say that its data may be lost.
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
        self.tell_layers_or_fail(path, rate)?;
        self.fill_others(rate);
        self.keep_speed(|speed| speed.rate = rate)
    }

    /// The failed member at `path` stands in its place again, as it was.
    pub(crate) fn re_add(&mut self, now: Time, path: &[usize]) -> Result<(), Refusal> {
        self.catch_up(now);
        self.store.re_add_member(path).map_err(refusal)?;
        self.tell_layers_or_fail(path, None)?;
        self.fill_others(self.store.rebuild_speed().rate);
        Ok(())
    }

    /// Before states change, the bytes are as far as the layers are, and the
    /// layers know which members the bytes have lost.
    fn catch_up(&mut self, now: Time) {
        self.advance(now);
        self.fill_all();
        self.tell_dropped();
    }

    /// Tells the layers the state of the member at `path`; one that is being
    /// filled, at most at this rate.
    ///
    /// # Errors
    /// The layers refuse it: among other reasons, since they know already.
    fn tell_layers(&mut self, path: &[usize], rate: Option<Bytes>) -> Result<(), Refusal> {
        match self.store.member_state(path).map_err(refusal)? {
            MemberState::Alive => self.order(path, |member| Order::ReAdd { member }),
            MemberState::Rebuilding { done } => self.order_restore(path, done, rate),
            MemberState::Failed => {
                self.watch.rebuilds.forget(path);
                self.order(path, |member| Order::Fail { member })
            }
        }
    }

    /// Tells the layers that the member at `path` has failed, and volumes with it
    /// that had not failed in the layers: these run ahead of the bytes, and may
    /// have another member whole already.
    fn tell_failure(&mut self, path: &[usize]) -> Result<(), Refusal> {
        let told = self.tell_layers(path, None);
        for path in self.paths(MemberStatus::has_failed) {
            // Most know already, and refuse.
            let _ = self.tell_layers(&path, None);
        }
        told
    }

    /// Where the members are that are in such a state.
    fn paths(&self, wanted: impl Fn(&MemberStatus) -> bool) -> Vec<Vec<usize>> {
        let members = self.store.status();
        members
            .iter()
            .filter(|member| wanted(member))
            .map(path_of)
            .filter(|path| !path.is_empty())
            .collect()
    }

    /// Tells the layers the state of a member that had failed until now, and stays
    /// so if they refuse it.
    fn tell_layers_or_fail(&mut self, path: &[usize], rate: Option<Bytes>) -> Result<(), Refusal> {
        self.tell_layers(path, rate).inspect_err(|_| {
            // The bytes had it so a moment ago.
            let _ = self.store.fail_member(path);
        })
    }

    /// The bytes have taken the member: whether data is lost thereby was theirs
    /// to ask. Within a volume that has all its data, an inner volume that has
    /// failed loses nothing by an empty member.
    fn order_restore(
        &mut self,
        path: &[usize],
        done: Sectors,
        rate: Option<Bytes>,
    ) -> Result<(), Refusal> {
        let sent = self.watch.sent.len();
        let accept_data_loss = !self.store.has_failed() || self.store.has_lost_data();
        self.order(path, |member| Order::Restore {
            member,
            done,
            rate,
            accept_data_loss,
        })?;
        // Unless all of it was passed over at once, and said so.
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

    /// From now on members are filled at this speed, in all volumes.
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
            self.order_volume(&volume, Order::Speed(speed))?;
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

    /// Members that were not whole when the bytes were left are not whole now,
    /// and are filled as fast as was said.
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
                // A volume whose members never fail has no use for it.
                let _ = self.order_volume(&volume, Order::Speed(speed));
            }
        }
        self.tell_layers_all(kept.rate);
    }

    /// Tells the layers the states of all members, whatever the stack file says of
    /// them. A rebuild that had lost its sources waits for them: first those that
    /// are alive, then those that are filled, then those that have failed.
    fn tell_layers_all(&mut self, rate: Option<Bytes>) {
        // What they know already they refuse, rightly.
        for path in self.paths(MemberStatus::is_alive) {
            let _ = self.tell_layers(&path, None);
        }
        for path in self.paths(|member| member.filled().is_some()) {
            let _ = self.order(&path, |member| Order::Fail { member });
            // Otherwise it is filled by whoever serves it for writing.
            if !self.store.is_read_only() {
                let _ = self.tell_layers(&path, rate);
            }
        }
        for path in self.paths(MemberStatus::has_failed) {
            let _ = self.tell_layers(&path, None);
        }
    }

    fn note_rebuilding(&mut self) {
        self.rebuilding = self
            .store
            .status()
            .iter()
            .any(|member| member.filled().is_some());
    }

    /// Says something to the layers about the member at `path`.
    fn order(&mut self, path: &[usize], order: impl Fn(usize) -> Order) -> Result<(), Refusal> {
        let Some((&member, volume)) = path.split_last() else {
            return Err(Refusal("a single drive is not a member of a volume".into()));
        };
        self.advance(self.machine.now());
        self.order_volume(volume, order(member))
    }

    /// Says something to the volume at `volume`, now.
    fn order_volume(&mut self, volume: &[usize], order: Order) -> Result<(), Refusal> {
        let now = self.machine.now();
        let submitted = self.machine.submitted();
        self.machine.order(now, volume, order, &mut self.watch)?;
        if let Some(recorder) = &mut self.watch.recorder {
            recorder.ordered(RecordedOrder::new(now, submitted, volume, order));
        }
        self.note_rebuilding();
        Ok(())
    }

    /// Carries what the volumes have rebuilt out on the bytes, some of it at
    /// least, and not much longer than `until`.
    pub(crate) fn carry_signals(&mut self, until: Instant) {
        self.note_signals();
        while self.is_filling() {
            self.follow();
            if Instant::now() >= until {
                return;
            }
        }
    }

    /// Does a little of what the layers have said on the bytes. Members are filled in the high gear,
    /// and none stands before they are.
    fn follow(&mut self) {
        match self.shifts.front() {
            Some((_, Gear::Falling)) if !self.unfilled.is_empty() => self.fill(),
            Some(_) => self.shift(),
            None => self.fill(),
        }
    }

    /// Notes what the volumes have rebuilt, and what clients are told.
    fn note_signals(&mut self) {
        while let Some(Sent { mut path, signal }) = self.watch.sent.pop_front() {
            if let Some(said) = Said::of(signal) {
                self.signals.say(said);
                continue;
            }
            if let Signal::Shifted(gear) = signal {
                for geared in self.gears.iter_mut().filter(|geared| geared.path == path) {
                    geared.gear = gear;
                    geared.shifts += u64::from(matches!(gear, Gear::Falling | Gear::Rising));
                }
                self.shifts.push_back((path, gear));
                continue;
            }
            let Signal::Rebuilt { member, done, .. } = signal else {
                continue;
            };
            path.push(member as usize);
            match self.unfilled.iter_mut().find(|unfilled| unfilled.0 == path) {
                Some((_, upto)) => *upto = done,
                None => self.unfilled.push_back((path, done)),
            }
        }
    }

    /// Whether something is to be filled or copied on the bytes.
    pub(crate) fn is_filling(&self) -> bool {
        !self.unfilled.is_empty() || !self.shifts.is_empty()
    }

    /// Shifts on the bytes, so little that clients hardly wait: what is stale is copied when the shift
    /// begins, and what became so since when it ends. Where a member has failed meanwhile, or nothing
    /// may be written, the bytes may be in another gear, which nobody sees.
    fn shift(&mut self) {
        let Some((path, to)) = self.shifts.pop_front() else {
            return;
        };
        self.store.begin_shift(&path, to);
        let over = matches!(
            (to, self.store.gear(&path)),
            (Gear::Low, Some(Gear::Falling)) | (Gear::High, Some(Gear::Rising))
        );
        let settled = match self.store.copy_stale(&path, FILLED_AT_ONCE) {
            Ok(Sectors::ZERO) if over => self.store.settle(&path),
            Ok(Sectors::ZERO) => Ok(()),
            Ok(_) => return self.shifts.push_front((path, to)),
            Err(error) => Err(error),
        };
        if let Err(error) = settled
            && !self.store.is_read_only()
        {
            // Both places go on to be written, and the next shift copies the rest.
            complain(&format!("{}: a shift was not copied: {error}", self.name));
        }
    }

    /// Fills some of it, so little that clients hardly wait. A member that the
    /// host cannot fill has failed again.
    fn fill(&mut self) {
        let Some((path, upto)) = self.unfilled.pop_front() else {
            return;
        };
        let filled = match self.store.member_state(&path) {
            Ok(MemberState::Rebuilding { done }) => self
                .store
                .rebuild_member(&path, upto.min(done + FILLED_AT_ONCE)),
            // It is whole already, or has failed meanwhile.
            _ => Ok(upto),
        };
        match filled {
            Ok(done) if done < upto => return self.unfilled.push_front((path, upto)),
            // A volume that has its data again thereby is empty itself.
            Ok(_)
                if self
                    .store
                    .member_state(&path)
                    .is_ok_and(|state| state == MemberState::Alive) =>
            {
                self.fill_others(self.store.rebuild_speed().rate);
            }
            Ok(_) => {}
            // It waits, as far as it is filled, for what it needs.
            Err(StoreError::Failed { .. }) => self.fail_if_whole(&path, upto),
            Err(error) => {
                let member = dotted(&path);
                // Who reads standard error may have gone, which is no reason to end.
                complain(&format!("member {member} cannot be rebuilt: {error}"));
                // Either may know already.
                let _ = self.store.fail_member(&path);
                let _ = self.order(&path, |member| Order::Fail { member });
            }
        }
        self.note_rebuilding();
    }

    /// The bytes cannot be filled up to here. Layers that have the member whole
    /// must not rely on it, until it is [filled again](World::fill_others).
    fn fail_if_whole(&mut self, path: &[usize], upto: Sectors) {
        if self.store.member_used(path).is_ok_and(|used| upto >= used) {
            self.watch.rebuilds.forget(path);
            let _ = self.order(path, |member| Order::Fail { member });
        }
    }

    /// Members that the bytes have not filled are filled by the layers as well,
    /// from where the bytes are.
    fn fill_others(&mut self, rate: Option<Bytes>) {
        for path in self.paths(|member| member.filled().is_some()) {
            // Most know already, and refuse.
            let _ = self.tell_layers(&path, rate);
        }
    }

    /// Tells the layers which members have failed because the host's storage
    /// did, and people that it did.
    pub(crate) fn tell_dropped(&mut self) {
        for Dropped { path, why } in self.store.take_dropped() {
            let drive = dotted(&path);
            complain(&format!("{}: drive {drive} has failed: {why}", self.name));
            // They may know already.
            let _ = self.tell_failure(&path);
        }
        if let Some(why) = self.store.stopped()
            && !self.told_stop
        {
            self.told_stop = true;
            complain(&format!(
                "{}: nothing is served any more, since writes may be lost: {why}",
                self.name
            ));
        }
    }

    /// Fills all of it: before states change, the bytes must be as far as the
    /// layers are.
    fn fill_all(&mut self) {
        self.note_signals();
        while self.is_filling() {
            self.follow();
        }
    }
}

/// Why a member cannot be restored, with the way out.
fn restore_refusal(error: StoreError, path: &[usize]) -> Refusal {
    let member = dotted(path);
    match error {
        StoreError::Failed { .. } => Refusal(format!(
            "{error}: an empty drive would be filled with nothing. If the data may be lost, say so: \
             restore {member} --accept-data-loss"
        )),
        other => refusal(other),
    }
}

/// What a member is called: its indices from the top.
pub(crate) fn dotted(path: &[usize]) -> String {
    path.iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join(".")
}

/// The indices that a member is named by.
fn path_of(member: &MemberStatus) -> Vec<usize> {
    member
        .member
        .split('.')
        .filter_map(|index| index.parse().ok())
        .collect()
}

fn refusal(error: StoreError) -> Refusal {
    Refusal(error.to_string())
}

#[cfg(test)]
mod tests;
