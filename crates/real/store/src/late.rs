//! Policies against slow members of an array.
//!
//! The policies are those of simulated volumes (`fullstroke-volume`, `late.rs`), with the same names
//! and keys. This file keeps the state of the policy while the array is in use. `array/race.rs`
//! carries reads out under the policy.
//!
//! `wait` is the absence of a policy. `fail` is the time limit of the members
//! ([`Timed`](crate::Timed)).

use crate::limit::nanos;
use crate::member_transfer::{FailedTransfer, MemberTransfer};
use crate::transfer::Devices;
use crate::{ArrayError, Device};
use fullstroke_contract::registry::Keys;
use fullstroke_units::Time;
use fullstroke_volume::{LateRule, Layout, late_rule};
use serde::Serialize;
use serde_json::Value;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Number of reads left behind on a member from which on the member gets no further reads: as many
/// as the server carries out at a time. Without this limit each read of a member that stalls would
/// leave one more thread behind.
pub(crate) const LEFT_BEHIND_MAX: usize = 16;

/// Number of members with which the keys of a policy are checked before the array is known. Each
/// policy accepts four members.
const MEMBERS: usize = 4;

/// Policy of an array against slow members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatePolicy {
    keys: Keys,
}

impl LatePolicy {
    /// Checks the keys of a policy. The key `policy` names the policy, as in the table
    /// `[volume.late]` of a stack file.
    ///
    /// # Errors
    /// Names the invalid key.
    pub fn new(keys: Keys) -> Result<LatePolicy, ArrayError> {
        let policy = LatePolicy { keys };
        policy.rule(MEMBERS)?;
        Ok(policy)
    }

    /// Name of the policy.
    pub fn name(&self) -> &str {
        let name = self.keys.get("policy").and_then(Value::as_str);
        name.unwrap_or_default()
    }

    /// Returns the time limit of each request to a member, if the policy is `fail`.
    pub fn fails_after(&self) -> Option<Duration> {
        let after = self.rule(MEMBERS).ok()?.fails_after()?;
        Some(Duration::from_nanos(after.as_nanos()))
    }

    /// True if the policy reads around members.
    pub fn reads_around(&self) -> bool {
        !matches!(self.name(), "wait" | "fail")
    }

    fn rule(&self, members: usize) -> Result<Box<dyn LateRule>, ArrayError> {
        late_rule(&self.keys, members).map_err(|error| ArrayError::Refused(error.to_string()))
    }

    /// Returns the state of the policy for an array of this layout and these devices. `None` if the
    /// policy does not read around members.
    ///
    /// # Errors
    /// The layout cannot have the policy, or the devices have no time limit.
    pub(crate) fn begin(
        &self,
        layout: &mut dyn Layout,
        devices: &Devices,
    ) -> Result<Option<LateReads>, ArrayError> {
        let rule = self.rule(layout.members())?;
        if !self.reads_around() {
            return Ok(None);
        }
        let (name, array) = (self.name(), layout.name());
        if layout.gears().is_some() {
            return Err(ArrayError::Refused(format!(
                "found the policy {name:?} for an array of layout {array}, whose data moves between two gears; expected \"wait\" or \"fail\""
            )));
        }
        if rule.needs_redundancy() && layout.failures_survived() == 0 {
            return Err(ArrayError::Refused(format!(
                "found the policy {name:?}; {array} has no second copy of its data. Expected \"wait\", or a layout with redundancy"
            )));
        }
        let unlimited = |device: &&std::sync::Arc<dyn Device>| device.limit().is_none();
        if let Some(device) = devices.iter().flatten().find(unlimited) {
            return Err(ArrayError::Refused(format!(
                "found the policy {name:?}; `{}` has no time limit, and the times of its reads are unknown. Expected a time limit above 0",
                device.name()
            )));
        }
        Ok(Some(LateReads::new(self.name(), rule, layout.members())))
    }
}

/// State of a policy that reads around members.
pub(crate) struct LateReads {
    name: String,
    rule: Mutex<Box<dyn LateRule>>,
    /// Time zero of the rule.
    zero: Instant,
    /// Reads around each member.
    late: Vec<AtomicU64>,
    /// Reads around a member that ended before the member's own answer.
    first: AtomicU64,
    /// Reads of other members for reads around a member.
    member_ios: AtomicU64,
    sit_outs: AtomicU64,
    /// Reads that a member could not carry out, after their requests were answered.
    unread: Mutex<Vec<FailedTransfer>>,
    /// Members that sat out at the last call of [`note_sitting`](LateReads::note_sitting).
    sat_out: Mutex<Vec<bool>>,
}

/// State of the policy against slow members, for people.
#[derive(Clone, Debug, Serialize)]
pub struct LateStatus {
    /// Name of the policy.
    pub policy: String,
    /// Time after which a read of a member is late, in ms; absent as long as the time is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<f64>,
    /// Reads around members.
    pub late_io: u64,
    /// Reads around a member that ended before the member's own answer.
    pub late_read_around: u64,
    /// Reads of other members for reads around a member.
    pub late_member_io: u64,
    /// Times that a member sat out of reads.
    pub late_sit_outs: u64,
}

/// Decision of the policy at a time.
pub(crate) struct LateView {
    /// Time after which a read is late. `None` = never.
    pub(crate) delay: Option<Duration>,
    /// For each member, true if reads go around the member at once.
    pub(crate) left_out: Vec<bool>,
    /// For each member, true if so many reads are left behind that the member stalls.
    pub(crate) stalls: Vec<bool>,
}

impl LateReads {
    fn new(name: &str, rule: Box<dyn LateRule>, members: usize) -> LateReads {
        LateReads {
            name: name.to_owned(),
            rule: Mutex::new(rule),
            zero: Instant::now(),
            late: (0..members).map(|_| AtomicU64::new(0)).collect(),
            first: AtomicU64::new(0),
            member_ios: AtomicU64::new(0),
            sit_outs: AtomicU64::new(0),
            unread: Mutex::default(),
            sat_out: Mutex::new(vec![false; members]),
        }
    }

    fn rule(&self) -> MutexGuard<'_, Box<dyn LateRule>> {
        self.rule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Time {
        Time::from_nanos(nanos(self.zero.elapsed()))
    }

    /// Takes note of a read of a member that took so long.
    pub(crate) fn ended(&self, slot: usize, took: Duration) {
        let (now, took) = (
            self.now(),
            fullstroke_units::Duration::from_nanos(nanos(took)),
        );
        let begins = self.rule().ended(now, slot, took);
        self.sit_outs
            .fetch_add(u64::from(begins), Ordering::Relaxed);
    }

    /// Returns the present decision of the policy.
    pub(crate) fn look(&self, devices: &Devices) -> LateView {
        let (now, rule) = (self.now(), self.rule());
        let delay = rule.reads_around_after();
        let stalls = devices.iter().map(|device| {
            let limit = device.as_ref().and_then(|device| device.limit());
            limit.is_some_and(|limit| limit.left_behind() >= LEFT_BEHIND_MAX)
        });
        let stalls: Vec<bool> = stalls.collect();
        let all = stalls.iter().enumerate();
        let left_out = all.map(|(slot, stalls)| *stalls || rule.sits_out(slot, now));
        LateView {
            delay: delay.map(|delay| Duration::from_nanos(delay.as_nanos())),
            left_out: left_out.collect(),
            stalls,
        }
    }

    /// Counts a read around a member.
    pub(crate) fn note_late(&self, slot: usize) {
        self.late[slot].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts reads of other members for a read around a member.
    pub(crate) fn note_member_ios(&self, count: usize) {
        self.member_ios.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Counts a read around a member that ended before the member's own answer.
    pub(crate) fn note_first(&self) {
        self.first.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a read that a member could not carry out, and that no request waits for.
    pub(crate) fn note_unread(&self, transfer: MemberTransfer, error: io::Error) {
        self.unread().push(FailedTransfer { transfer, error });
    }

    /// Returns the reads that members could not carry out since the last call.
    pub(crate) fn take_unread(&self) -> Vec<FailedTransfer> {
        std::mem::take(&mut self.unread())
    }

    fn unread(&self) -> MutexGuard<'_, Vec<FailedTransfer>> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes whether a member sits out. Returns true if this has changed since the last call.
    pub(crate) fn note_sitting(&self, slot: usize, sits_out: bool) -> bool {
        let mut sat_out = self.sat_out.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut sat_out[slot], sits_out) != sits_out
    }

    /// True if reads leave the member out.
    pub(crate) fn sits_out(&self, slot: usize) -> bool {
        self.rule().sits_out(slot, self.now())
    }

    /// Number of reads around a member.
    pub(crate) fn late(&self, slot: usize) -> u64 {
        self.late[slot].load(Ordering::Relaxed)
    }

    /// Returns the state for people.
    pub(crate) fn status(&self) -> LateStatus {
        let after = self.rule().reads_around_after();
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        LateStatus {
            policy: self.name.clone(),
            after_ms: after.map(|after| after.as_millis_f64()),
            late_io: self.late.iter().map(count).sum(),
            late_read_around: count(&self.first),
            late_member_io: count(&self.member_ios),
            late_sit_outs: count(&self.sit_outs),
        }
    }
}
