//! When a drive that has nothing to do stops its platters.
//!
//! The timer is the drive's, as that of ATA's STANDBY command is: it sees all that comes, whatever
//! stands above, and what the layers above order by requests goes on beside it. A policy is one
//! file: a type that implements [`SpinDown`], and one line in [`REGISTRY`].

mod adaptive;
mod break_even;
mod fixed;
mod schedule;

use crate::config::{DriveConfig, PowerConfig, SpinDownConfig};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Entry, Keys, find, read, schema_of};
use fullstroke_units::{Duration, Time};

/// Decides when a drive that is idle stops its platters.
pub trait SpinDown: Send {
    /// When to stop platters that are idle since `idle`, if nothing comes until then; an instant
    /// before is taken for `idle`, and [`Time::NEVER`] is never.
    fn stops_at(&self, idle: Time) -> Time;

    /// The shortest idle time behind which it may stop them.
    fn least_idle(&self) -> Duration;

    /// Platters that stood, or were about to, are needed again, so long after they began to stop.
    fn woken(&mut self, _away: Duration) {}
}

/// What a policy may know of its drive.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// From full speed to standing platters and back.
    pub round_trip: Duration,
    /// How long platters must be away for the energy of stopping and starting; `None` where
    /// nobody knows what the drive draws.
    pub break_even: Option<Duration>,
}

/// Builds a policy from its keys.
pub type BuildSpinDown = fn(&Keys, &Costs) -> Result<Box<dyn SpinDown>, ConfigError>;

/// Every policy.
pub const REGISTRY: &[Entry<BuildSpinDown>] = &[
    Entry {
        name: "fixed",
        summary: fixed::SUMMARY,
        schema: schema_of::<fixed::Config>,
        build: fixed::build,
    },
    Entry {
        name: "break-even",
        summary: break_even::SUMMARY,
        schema: schema_of::<break_even::Config>,
        build: break_even::build,
    },
    Entry {
        name: "adaptive",
        summary: adaptive::SUMMARY,
        schema: schema_of::<adaptive::Config>,
        build: adaptive::build,
    },
    Entry {
        name: "schedule",
        summary: schedule::SUMMARY,
        schema: schema_of::<schedule::Config>,
        build: schedule::build,
    },
];

impl Costs {
    /// Of a drive that stops and starts as `power` says.
    pub fn of(power: &PowerConfig) -> Costs {
        let round_trip = power.spin_down_ms + power.spin_up_ms;
        Costs {
            round_trip: Duration::from_millis_f64(round_trip),
            break_even: power.break_even(),
        }
    }
}

impl PowerConfig {
    /// How long platters must be away, from the begin of their stop until somebody needs them, so
    /// that stopping them costs no more than leaving them turn:
    /// `idle (t + up) = down + standby (t - t_down) + start`, and not less than they take to stop
    /// (Douglis, Krishnan and Marsh, Thwarting the power-hungry disk, 1994).
    pub fn break_even(&self) -> Option<Duration> {
        let (idle, standby) = (self.idle_a_w?, self.standby_w?);
        let (down, up) = (self.spin_down_ms / 1000.0, self.spin_up_ms / 1000.0);
        let extra = self.spin_down_j? + self.spin_up_j? - standby * down - idle * up;
        let saves = idle - standby;
        (saves > 0.0).then(|| Duration::from_secs_f64((extra / saves).max(down).min(1e9)))
    }
}

/// The policy of a drive that has one.
///
/// # Errors
/// Names the key that cannot be.
pub(crate) fn build(config: &DriveConfig) -> Result<Option<Box<dyn SpinDown>>, ConfigError> {
    let Some(SpinDownConfig { policy, keys }) = &config.spin_down else {
        return Ok(None);
    };
    if config.actuators > 1 {
        let message = "the arms of this drive have one spindle, and neither knows when the other is idle; \
                       leave it out";
        return Err(ConfigError::new("policy", message));
    }
    let Some(power) = &config.power else {
        let message =
            "the drive's file does not say how long it takes to stop and to start; give [power]";
        return Err(ConfigError::new("policy", message));
    };
    named(policy, keys, &Costs::of(power)).map(Some)
}

/// The policy of this name, for a drive that stops and starts at such costs.
///
/// # Errors
/// Names the key that cannot be.
pub fn named(policy: &str, keys: &Keys, costs: &Costs) -> Result<Box<dyn SpinDown>, ConfigError> {
    let entry = find("spin-down policy", REGISTRY, "policy", policy)?;
    (entry.build)(keys, costs)
}

/// The shortest idle time behind which a drive may stop by itself; `None` if it never does.
///
/// # Errors
/// Names the key that cannot be.
pub fn least_idle(config: &DriveConfig) -> Result<Option<Duration>, ConfigError> {
    Ok(build(config)?.map(|policy| policy.least_idle()))
}

/// Refuses an idle time behind which platters that are needed at once would go on stopping and
/// starting.
fn check_after(key: &str, after: Duration, costs: &Costs) -> Result<(), ConfigError> {
    if after >= costs.round_trip {
        return Ok(());
    }
    let message = format!(
        "found {} s; the drive needs {} s to stop and to start, and would do little else. Give at least that",
        after.as_secs_f64(),
        costs.round_trip.as_secs_f64()
    );
    Err(ConfigError::new(key, message))
}

/// [`Config`](fixed::Config) and its like, read from their keys.
fn keys<C: serde::de::DeserializeOwned + schemars::JsonSchema>(
    keys: &Keys,
) -> Result<C, ConfigError> {
    read(keys)
}

#[cfg(test)]
mod tests;
