//! Counters of a drive since the beginning, in a server's status.

use fullstroke_contract::{MemberStatistics, PowerState, PowerStatistics};
use fullstroke_counters::{Counter, CounterTotal, Total};
use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Key of the seconds in each power state, if the drive's power is known.
const STATES: &str = "power_states_s";

/// Totals of a drive: one for each of [`Counter::all_served`], by its key, and the time in each
/// power state.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveTotals {
    totals: Vec<Total>,
    states_s: Option<[f64; PowerState::ALL.len()]>,
}

impl DriveTotals {
    /// Returns the totals shown by servers, from a drive's statistics.
    pub fn of(statistics: &MemberStatistics) -> DriveTotals {
        let seconds = |power: PowerStatistics| {
            PowerState::ALL.map(|state| power.time_in(state).as_secs_f64())
        };
        DriveTotals {
            totals: Counter::all_served()
                .map(|served| (served.total)(statistics))
                .collect(),
            states_s: statistics.power.map(seconds),
        }
    }

    /// Returns all totals, in order.
    pub fn all(&self) -> impl Iterator<Item = (CounterTotal, Total)> {
        Counter::all_served().zip(self.totals.iter().copied())
    }

    /// Returns the seconds in each power state; none if the drive's power is unknown.
    pub fn power_states(&self) -> impl Iterator<Item = (PowerState, f64)> {
        self.states_s
            .into_iter()
            .flat_map(|seconds| PowerState::ALL.into_iter().zip(seconds))
    }

    /// Returns the total of `counter`, in its unit; not a number if servers do not show it.
    pub fn value(&self, counter: Counter) -> f64 {
        let Some(wanted) = counter.served else {
            return f64::NAN;
        };
        self.all()
            .find(|(served, _)| served.key == wanted.key)
            .map_or(f64::NAN, |(_, total)| total.value())
    }
}

impl Serialize for DriveTotals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (served, total) in self
            .all()
            .filter(|(_, total)| *total != Total::Joules(None))
        {
            map.serialize_entry(served.key, &total)?;
        }
        if self.states_s.is_some() {
            let states: Map<String, Value> = self
                .power_states()
                .map(|(state, seconds)| (state.name().to_owned(), seconds.into()))
                .collect();
            map.serialize_entry(STATES, &states)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for DriveTotals {
    /// Ignores keys of another version.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DriveTotals, D::Error> {
        let found = Map::deserialize(deserializer)?;
        let total = |served: CounterTotal| {
            // A server without power data leaves out the energy, so its absence is no error.
            let unknown = (served.total)(&MemberStatistics::default()) == Total::Joules(None);
            let Some(value) = found.get(served.key) else {
                return if unknown {
                    Ok(Total::Joules(None))
                } else {
                    Err(D::Error::missing_field(served.key))
                };
            };
            read(served, value).ok_or_else(|| {
                D::Error::custom(format!(
                    "`{}`: found {value}, expected a number",
                    served.key
                ))
            })
        };
        let seconds = |states: &Value| {
            PowerState::ALL.map(|state| states[state.name()].as_f64().unwrap_or(0.0))
        };
        Ok(DriveTotals {
            totals: Counter::all_served().map(total).collect::<Result<_, _>>()?,
            states_s: found.get(STATES).map(seconds),
        })
    }
}

fn read(served: CounterTotal, value: &Value) -> Option<Total> {
    match (served.total)(&MemberStatistics::default()) {
        Total::Count(_) => value.as_u64().map(Total::Count),
        Total::Bytes(_) => value.as_u64().map(Total::Bytes),
        Total::Seconds(_) => value.as_f64().map(Total::Seconds),
        Total::Joules(_) => value.as_f64().map(|joules| Total::Joules(Some(joules))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::{Draw, Residency};
    use fullstroke_units::{Duration, Sectors};
    use serde_json::json;

    fn totals() -> DriveTotals {
        DriveTotals::of(&MemberStatistics {
            reads: 20,
            writes: 10,
            sectors_read: Sectors(240),
            busy: Duration::from_millis(6250),
            buffer_hits: 9,
            ..MemberStatistics::default()
        })
    }

    #[test]
    fn totals_are_keys_of_the_status() {
        let status =
            json!({ "busy_s": 6.25, "ios": 30, "reads": 20, "bytes": 122_880, "buffer_hits": 9 });
        assert_eq!(serde_json::to_value(totals()).unwrap(), status);
        assert_eq!(
            serde_json::from_value::<DriveTotals>(status).unwrap(),
            totals()
        );
        assert_eq!(totals().value(Counter::BYTES), 122_880.0);
        assert!(totals().value(Counter::SEEK).is_nan());
    }

    #[test]
    fn energy_is_there_where_it_is_known() {
        let mut status =
            json!({ "busy_s": 1.5, "ios": 3, "reads": 0, "bytes": 0, "buffer_hits": 0 });
        let of = |status: &Value| serde_json::from_value::<DriveTotals>(status.clone()).unwrap();
        assert!(
            of(&status).value(Counter::ENERGY).is_nan(),
            "it is not known what the drive draws"
        );
        status["energy_j"] = json!(12.5);
        assert_eq!(of(&status).value(Counter::ENERGY), 12.5);
        assert_eq!(serde_json::to_value(of(&status)).unwrap(), status);
    }

    #[test]
    fn time_in_each_state_of_power_is_kept_where_it_is_known() {
        let mut residency = Residency::default();
        residency.add(PowerState::IdleA, Duration::from_millis(2500));
        residency.add(PowerState::Standby, Duration::from_millis(500));
        let power = Some(PowerStatistics::new(&Draw::default(), residency, 0, 0, 0));
        let known = DriveTotals::of(&MemberStatistics {
            power,
            ..MemberStatistics::default()
        });
        assert_eq!(
            known
                .power_states()
                .map(|(_, seconds)| seconds)
                .sum::<f64>(),
            3.0
        );
        let status = serde_json::to_value(&known).unwrap();
        assert_eq!(status["power_states_s"]["idle_a"], 2.5);
        assert_eq!(
            serde_json::from_value::<DriveTotals>(status).unwrap(),
            known
        );
        assert_eq!(totals().power_states().count(), 0);
    }

    #[test]
    fn a_total_that_is_missing_or_no_number_is_named() {
        let refused = |status: Value| {
            serde_json::from_value::<DriveTotals>(status)
                .unwrap_err()
                .to_string()
        };
        assert!(refused(json!({ "busy_s": 1.5 })).contains("`ios`"));
        let status =
            json!({ "busy_s": 1.5, "ios": "many", "reads": 0, "bytes": 0, "buffer_hits": 0 });
        assert!(refused(status).contains("`ios`: found \"many\""));
    }
}
