//! Spin-down policies for an idle drive.
//!
//! The timer belongs to the drive, like the timer of ATA's STANDBY command. The timer sees all
//! requests of all layers above. Commands of the layers to stop and start the platters work
//! independently. A policy is one file with a type that implements [`SpinDown`], and one line in
//! [`REGISTRY`].

mod adaptive;
mod break_even;
mod fixed;
mod schedule;

use crate::config::{DriveConfig, PowerConfig, SpinDownConfig};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, PolicyEntry, find, read, schema_of};
use fullstroke_units::{Duration, Time};

/// Decides when an idle drive stops its platters.
pub trait SpinDown: Send {
    /// Returns when to stop platters that are idle since `idle`, if no request comes until then. An
    /// instant before `idle` counts as `idle`, and [`Time::NEVER`] means never.
    fn stops_at(&self, idle: Time) -> Time;

    /// Returns the shortest idle time after which the policy may stop the platters.
    fn least_idle(&self) -> Duration;

    /// Tells the policy that stopped or stopping platters are needed again. `_away` is the time
    /// since the stop began.
    fn woken(&mut self, _away: Duration) {}
}

/// Costs of the drive, for a policy.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Time from full speed to standing platters and back.
    pub round_trip: Duration,
    /// Shortest absence of the platters that saves energy, including the energy of stopping and
    /// starting. `None` if the watts are not known.
    pub break_even: Option<Duration>,
}

/// Function to build a policy from its keys.
pub type BuildSpinDown = fn(&Keys, &Costs) -> Result<Box<dyn SpinDown>, ConfigError>;

/// Every policy.
pub const REGISTRY: &[PolicyEntry<BuildSpinDown>] = &[
    PolicyEntry {
        name: "fixed",
        summary: fixed::SUMMARY,
        schema: schema_of::<fixed::Config>,
        build: fixed::build,
    },
    PolicyEntry {
        name: "break-even",
        summary: break_even::SUMMARY,
        schema: schema_of::<break_even::Config>,
        build: break_even::build,
    },
    PolicyEntry {
        name: "adaptive",
        summary: adaptive::SUMMARY,
        schema: schema_of::<adaptive::Config>,
        build: adaptive::build,
    },
    PolicyEntry {
        name: "schedule",
        summary: schedule::SUMMARY,
        schema: schema_of::<schedule::Config>,
        build: schedule::build,
    },
];

impl Costs {
    /// Returns the costs of a drive with the keys `power`.
    pub fn of(power: &PowerConfig) -> Costs {
        let round_trip = power.spin_down_ms + power.spin_up_ms;
        Costs {
            round_trip: Duration::from_millis_f64(round_trip),
            break_even: power.break_even(),
        }
    }
}

impl PowerConfig {
    /// Returns the shortest time from the begin of a stop until the next need of the platters for
    /// which the stop costs no more than turning on. The time `t` solves `idle (t + up) = down +
    /// standby (t - t_down) + start`, and is at least the time to stop (Douglis, Krishnan and
    /// Marsh, Thwarting the power-hungry disk, 1994).
    pub fn break_even(&self) -> Option<Duration> {
        let (idle, standby) = (self.idle_a_w?, self.standby_w?);
        let (down, up) = (self.spin_down_ms / 1000.0, self.spin_up_ms / 1000.0);
        // The equation above, solved for `t`.
        let extra = self.spin_down_j? + self.spin_up_j? - standby * down - idle * up;
        let saves = idle - standby;
        // A saving of almost nothing gives a time that is too long for a [`Duration`].
        (saves > 0.0).then(|| Duration::from_secs_f64((extra / saves).max(down).min(1e9)))
    }
}

/// Returns the configured policy, if there is one.
///
/// # Errors
/// Names the invalid key.
pub(crate) fn build(config: &DriveConfig) -> Result<Option<Box<dyn SpinDown>>, ConfigError> {
    let Some(SpinDownConfig { policy, keys }) = &config.spin_down else {
        return Ok(None);
    };
    if config.actuators > 1 {
        let message = "a drive with several arms cannot stop by itself, because the arms share one spindle; remove [spin_down]";
        return Err(ConfigError::new("policy", message));
    }
    let Some(power) = &config.power else {
        let message = "the drive file has no stop and start times; add [power]";
        return Err(ConfigError::new("policy", message));
    };
    named(policy, keys, &Costs::of(power)).map(Some)
}

/// Returns the policy with this name, for a drive with the given costs.
///
/// # Errors
/// Names the invalid key.
pub fn named(policy: &str, keys: &Keys, costs: &Costs) -> Result<Box<dyn SpinDown>, ConfigError> {
    let entry = find("spin-down policy", REGISTRY, "policy", policy)?;
    (entry.build)(keys, costs)
}

/// Returns the shortest idle time after which a drive may stop by itself. `None` if the drive never
/// does.
///
/// # Errors
/// Names the invalid key.
pub fn least_idle(config: &DriveConfig) -> Result<Option<Duration>, ConfigError> {
    Ok(build(config)?.map(|policy| policy.least_idle()))
}

/// Refuses an idle time that is shorter than a stop and a start. Platters that are needed again at
/// once would otherwise stop and start all the time.
fn check_after(key: &str, after: Duration, costs: &Costs) -> Result<(), ConfigError> {
    if after >= costs.round_trip {
        return Ok(());
    }
    let message = format!(
        "found {} s; expected at least {} s, the time to stop and to start",
        after.as_secs_f64(),
        costs.round_trip.as_secs_f64()
    );
    Err(ConfigError::new(key, message))
}

/// Reads the keys of a policy, such as [`Config`](fixed::Config).
fn keys<C: serde::de::DeserializeOwned + schemars::JsonSchema>(
    keys: &Keys,
) -> Result<C, ConfigError> {
    read(keys)
}

#[cfg(test)]
mod tests;
