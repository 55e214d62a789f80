//! The policy `sit-out`: a persistently slow member gets no reads for a while.
//!
//! OpenZFS 2.4 compares the read latencies of the members of a RAID-Z once a second. A member
//! beyond Tukey's fence (the third quartile plus a multiple of the distance between the quartiles)
//! is an outlier. A member that stays an outlier sits out for ten minutes: its data are computed
//! from parity, and writes still reach the member (`vdev_child_slow_outlier`, `vdev_raidz.c`;
//! `vdev_read_sit_out_secs`, `vdev_raidz_outlier_check_interval_ms`,
//! `vdev_raidz_outlier_insensitivity` in zfs.4). At most as many members sit out as the parity
//! covers.
//!
//! Departures: the model compares the mean latency of each check interval, where OpenZFS has
//! histograms. A check without a read of every other member does not count.

use super::LateRule;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fewest members of which quartiles say something.
const MEMBERS_MIN: usize = 4;

/// Keys of `sit-out`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SitOutConfig {
    /// Time between two comparisons. Default 1s, as in OpenZFS.
    pub check: Duration,
    /// The fence is the limit above which the mean response time of a member is an outlier among
    /// the members. `fence` is its distance from the third quartile, as a multiple of the distance
    /// between the quartiles. Default 50, as in OpenZFS.
    pub fence: f64,
    /// Number of comparisons with a mean beyond the fence after which a member sits out. A
    /// comparison with a mean within the fence reduces the count by one. Default 20.
    pub checks: u32,
    /// Time for which a member sits out. Default 600s, as in OpenZFS.
    pub rest: Duration,
}

impl Default for SitOutConfig {
    fn default() -> SitOutConfig {
        SitOutConfig {
            check: Duration::from_secs(1),
            fence: 50.0,
            checks: 20,
            rest: Duration::from_secs(600),
        }
    }
}

/// What the policy knows of a member.
#[derive(Clone, Copy, Debug, Default)]
struct MemberReads {
    /// Reads since the last comparison, and their time together.
    count: u64,
    total: Duration,
    /// Comparisons beyond the fence, less those within.
    outlier: u32,
    /// End of sitting out.
    until: Time,
}

/// Lets slow members sit out.
#[derive(Debug)]
struct SitOut {
    config: SitOutConfig,
    members: Vec<MemberReads>,
    next: Time,
    means: Vec<u64>,
}

impl SitOut {
    /// Returns the fence of the means of all members, in ns.
    fn fence(&self) -> f64 {
        let quartile = |quarters: usize| {
            let place = (self.means.len() - 1) * quarters;
            let (low, part) = (place / 4, (place % 4) as f64 / 4.0);
            let high = (low + 1).min(self.means.len() - 1);
            let (low, high) = (self.means[low] as f64, self.means[high] as f64);
            low + (high - low) * part
        };
        let (first, third) = (quartile(1), quartile(3));
        third + self.config.fence * (third - first)
    }

    /// Compares the members. Returns true if one begins to sit out.
    fn compare(&mut self, now: Time) -> bool {
        let reads = |member: &MemberReads| member.count > 0;
        self.means.clear();
        self.means.extend(
            (self.members.iter().filter(|member| reads(member)))
                .map(|member| member.total.as_nanos() / member.count),
        );
        self.means.sort_unstable();
        let mut begins = false;
        if self.means.len() >= MEMBERS_MIN {
            let fence = self.fence();
            for member in self.members.iter_mut().filter(|member| reads(member)) {
                let mean = member.total.as_nanos() / member.count;
                if mean as f64 > fence {
                    member.outlier += 1;
                } else {
                    // A single good check does not clear a member, because slow members are slow
                    // now and then only.
                    member.outlier = member.outlier.saturating_sub(1);
                }
                if member.outlier >= self.config.checks {
                    member.outlier = 0;
                    member.until = now.saturating_add(self.config.rest);
                    begins = true;
                }
            }
        }
        for member in &mut self.members {
            (member.count, member.total) = (0, Duration::ZERO);
        }
        begins
    }
}

impl LateRule for SitOut {
    fn sits_out(&self, member: usize, now: Time) -> bool {
        now < self.members[member].until
    }

    fn ended(&mut self, now: Time, member: usize, response: Duration) -> bool {
        let begins = now >= self.next && self.compare(now);
        if now >= self.next {
            self.next = now.saturating_add(self.config.check);
        }
        let member = &mut self.members[member];
        member.count += 1;
        member.total += response;
        begins
    }
}

pub(super) fn build(keys: &Keys, members: usize) -> Result<Box<dyn LateRule>, ConfigError> {
    let config: SitOutConfig = read(keys)?;
    let refuse = |key: &str, message: String| Err(ConfigError::new(key, message));
    if members < MEMBERS_MIN {
        let message = format!("found sit-out with {members} members; quartiles need {MEMBERS_MIN}");
        return refuse("policy", message);
    }
    for (key, time) in [("check", config.check), ("rest", config.rest)] {
        if time == Duration::ZERO {
            return refuse(key, "found 0; expected a time above 0".into());
        }
    }
    if !(config.fence.is_finite() && config.fence >= 0.0) {
        return refuse(
            "fence",
            format!("found {}; expected 0 or more", config.fence),
        );
    }
    if config.checks == 0 {
        return refuse("checks", "found 0; expected 1 or more".into());
    }
    Ok(Box::new(SitOut {
        members: vec![MemberReads::default(); members],
        next: Time::ZERO + config.check,
        means: Vec::with_capacity(members),
        config,
    }))
}
