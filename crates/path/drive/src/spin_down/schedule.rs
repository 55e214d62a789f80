//! Stops only at some hours of the day.

use super::{Costs, SpinDown, check_after, keys};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::Keys;
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const SUMMARY: &str = "stops after an idle time, only at given hours of the day";

const DAY_HOURS: f64 = 24.0;
const HOUR_NS: f64 = 3600e9;

/// Keys of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Idle time before the platters stop.
    pub after: Duration,
    /// First hour of the day at which the platters may stop, such as 22 or 22.5.
    pub from_hour: f64,
    /// Hour until which the platters may begin to stop. An hour before `from_hour` means the next
    /// day.
    pub to_hour: f64,
    /// Hour of the day at the beginning of a run. Default: midnight.
    #[serde(default)]
    pub begins_at_hour: f64,
}

struct Schedule {
    after: Duration,
    /// Times in nanoseconds of a day.
    from: u64,
    length: u64,
    begins_at: u64,
}

const DAY: u64 = 86_400_000_000_000;

pub(super) fn build(own: &Keys, costs: &Costs) -> Result<Box<dyn SpinDown>, ConfigError> {
    let Config {
        after,
        from_hour,
        to_hour,
        begins_at_hour,
    } = keys(own)?;
    check_after("after", after, costs)?;
    for (key, hour) in [
        ("from_hour", from_hour),
        ("to_hour", to_hour),
        ("begins_at_hour", begins_at_hour),
    ] {
        if !(hour.is_finite() && (0.0..=DAY_HOURS).contains(&hour)) {
            return Err(ConfigError::new(
                key,
                format!("found {hour}; expected an hour, 0 to 24"),
            ));
        }
    }
    // Hour 24 is hour 0 of the next day.
    let ns = |hour: f64| (hour * HOUR_NS) as u64 % DAY;
    let length = (ns(to_hour) + DAY - ns(from_hour)) % DAY;
    if length == 0 {
        let message =
            format!("found {to_hour}, equal to `from_hour`; for all hours use policy = \"fixed\"");
        return Err(ConfigError::new("to_hour", message));
    }
    Ok(Box::new(Schedule {
        after,
        from: ns(from_hour),
        length,
        begins_at: ns(begins_at_hour),
    }))
}

impl SpinDown for Schedule {
    fn stops_at(&self, idle: Time) -> Time {
        let due = idle + self.after;
        // One more day, so that the difference is not negative.
        let since_from = (due.as_nanos() % DAY + self.begins_at + DAY - self.from) % DAY;
        if since_from < self.length {
            due
        } else {
            // Outside the allowed hours, the stop waits for the next `from_hour`.
            due + Duration::from_nanos(DAY - since_from)
        }
    }

    fn least_idle(&self) -> Duration {
        self.after
    }
}
