//! A model with a frequency-independent time and a number of cycles: D + C / f.
//!
//! Table 3 of *Pro-active storage systems* (2012, section 4.2.4) has request rates at two
//! frequencies, 1 / rate = D + C / f. There C is about 56,400 cycles and D 170 µs. The model
//! interprets four numbers, not a processor: D contains caches, memory and other cores.

use super::RequestCost;
use super::governor::{Governor, GovernorKind};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str =
    "a model: a time and cycles of a processor, D + C / f, whose frequency f a governor chooses";

/// The keys of the model.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CyclesConfig {
    /// D: time of a request at any frequency.
    pub time: Duration,
    /// C: additional processor cycles of a request.
    pub cycles: u32,
    /// Possible frequencies of the processor, ascending, MHz.
    pub frequencies_mhz: Vec<u32>,
    /// Linux governor of the processor frequency. Default: ondemand.
    #[serde(default)]
    pub governor: GovernorKind,
    /// Part of `time` in which the processor waits. `ondemand` counts this part as idle. Default:
    /// 0.
    #[serde(default)]
    pub waiting: Duration,
    /// Sampling period of `ondemand`. Default: 80ms, twice the minimum of ten ticks at HZ=250.
    #[serde(default = "sampling")]
    pub sampling: Duration,
    /// Utilisation in per cent above which `ondemand` chooses the highest frequency. Default: 80.
    #[serde(default = "up_threshold")]
    pub up_threshold: u32,
    /// True if a neighbour keeps another core busy all the time. All cores run at the frequency of
    /// the busiest core, so `ondemand` stays at the highest frequency.
    #[serde(default)]
    pub neighbour_busy: bool,
}

/// `MIN_STAT_SAMPLING_RATE` of `drivers/cpufreq/cpufreq_ondemand.c` in Linux 2.6.18.
fn sampling() -> Duration {
    Duration::from_millis(80)
}

/// `DEF_FREQUENCY_UP_THRESHOLD`, in the same file.
fn up_threshold() -> u32 {
    80
}

struct Cycles {
    time: Duration,
    cycles: u64,
    waiting: Duration,
    governor: Governor,
    requests: u64,
    /// Sum of the frequencies at the start of the requests.
    mhz: u64,
    busy: Duration,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn RequestCost>, ConfigError> {
    let config: CyclesConfig = read(keys)?;
    let refuse = |key: &str, message: String| Err(ConfigError::new(key, message));
    let frequencies = &config.frequencies_mhz;
    if config.cycles == 0 {
        return refuse(
            "cycles",
            "found 0; expected at least 1, or model = \"fixed\"".into(),
        );
    }
    if frequencies.is_empty() {
        return refuse(
            "frequencies_mhz",
            "found none; expected one at least".into(),
        );
    }
    if frequencies[0] == 0 || frequencies.windows(2).any(|pair| pair[0] >= pair[1]) {
        return refuse(
            "frequencies_mhz",
            format!("found {frequencies:?}; expected numbers above 0, ascending"),
        );
    }
    if config.waiting > config.time {
        let [waiting, time] =
            [config.waiting, config.time].map(|time| time.as_millis_f64() * 1000.0);
        return refuse(
            "waiting",
            format!("found {waiting} us; expected no more than `time`, {time} us"),
        );
    }
    if config.sampling == Duration::ZERO {
        return refuse("sampling", "found 0; expected some time".into());
    }
    // `MIN_FREQUENCY_UP_THRESHOLD` and `MAX_FREQUENCY_UP_THRESHOLD`.
    if !(11..=100).contains(&config.up_threshold) {
        return refuse(
            "up_threshold",
            format!("found {}; expected 11 to 100", config.up_threshold),
        );
    }
    let CyclesConfig {
        time,
        cycles,
        frequencies_mhz,
        governor,
        waiting,
        sampling,
        up_threshold,
        ..
    } = config;
    let governor = Governor::new(
        governor,
        frequencies_mhz,
        (sampling, up_threshold),
        config.neighbour_busy,
    );
    let (requests, mhz, busy) = (0, 0, Duration::ZERO);
    Ok(Box::new(Cycles {
        time,
        cycles: u64::from(cycles),
        waiting,
        governor,
        requests,
        mhz,
        busy,
    }))
}

impl RequestCost for Cycles {
    fn take(&mut self, at: Time) -> Duration {
        let mhz = u64::from(self.governor.mhz(at));
        // A cycle at 1 MHz is 1000 ns; rounded to the nearest.
        let cost = self.time + Duration::from_nanos((self.cycles * 1000 + mhz / 2) / mhz);
        let busy = cost.saturating_sub(self.waiting);
        self.governor.busy(at, at + busy);
        self.requests += 1;
        self.mhz += mhz;
        self.busy += busy;
        cost
    }

    fn readings(&self, now: Time) -> Vec<(&'static str, f64)> {
        let whole = now.since(Time::ZERO).as_secs_f64();
        vec![
            (
                "stage_mhz_mean",
                self.mhz as f64 / self.requests.max(1) as f64,
            ),
            (
                "stage_busy_share",
                if whole > 0.0 {
                    self.busy.as_secs_f64() / whole
                } else {
                    0.0
                },
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Table 3: governor, neighbour busy, requests a second, share of the processor, MHz.
    const TABLE_3: [(&str, bool, f64, f64, f64); 4] = [
        ("ondemand", false, 4756.0, 0.647, 1400.0),
        ("ondemand", true, 5169.0, 0.638, 2400.0),
        ("performance", false, 5166.0, 0.629, 2400.0),
        ("performance", true, 5163.0, 0.632, 2400.0),
    ];

    /// D in seconds and C, from the first two rows.
    fn fitted() -> (f64, f64) {
        let [(.., slow, _, low), (.., fast, _, high)] = [TABLE_3[0], TABLE_3[1]];
        let cycles = (1.0 / slow - 1.0 / fast) / (1e-6 / low - 1e-6 / high);
        (1.0 / slow - cycles * 1e-6 / low, cycles)
    }

    #[test]
    fn two_rows_of_table_3_give_the_other_two() {
        let (time, cycles) = fitted();
        assert!(
            (time - 170e-6).abs() < 0.5e-6 && (cycles - 56_400.0).abs() < 100.0,
            "{time} s, {cycles}"
        );
        for (_, _, rate, _, mhz) in &TABLE_3[2..] {
            let predicted = 1.0 / (time + cycles * 1e-6 / mhz);
            assert!(
                (predicted / rate - 1.0).abs() < 0.002,
                "{predicted}, {rate} published"
            );
        }
    }

    /// Requests a second, share of the processor and mean frequency over a minute with a request at
    /// all times.
    fn simulated(governor: &str, neighbour_busy: bool) -> (f64, f64, f64) {
        let (time, cycles) = fitted();
        // In the first row the processor is busy for 64.7 % of a request's time.
        let waiting = (1.0 - TABLE_3[0].3) / TABLE_3[0].2;
        let nanos = |seconds: f64| format!("{}ns", (seconds * 1e9).round());
        let keys = json!({
            "time": nanos(time), "cycles": cycles.round() as u64, "frequencies_mhz": [1400, 2400],
            "governor": governor, "neighbour_busy": neighbour_busy, "waiting": nanos(waiting),
        });
        let mut cost = build(keys.as_object().unwrap()).unwrap();
        let (mut now, mut requests) = (Time::ZERO, 0.0);
        while now < Time::ZERO + Duration::from_secs(60) {
            now += cost.take(now);
            requests += 1.0;
        }
        let readings = cost.readings(now);
        assert_eq!(
            readings.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            ["stage_mhz_mean", "stage_busy_share"]
        );
        (
            requests / now.since(Time::ZERO).as_secs_f64(),
            readings[1].1,
            readings[0].1,
        )
    }

    #[test]
    fn the_governors_of_table_3_choose_its_frequencies_and_rates() {
        for (governor, neighbour_busy, rate, share, mhz) in TABLE_3 {
            let (obtained, busy, mean) = simulated(governor, neighbour_busy);
            assert!(
                (obtained / rate - 1.0).abs() < 0.003,
                "{governor}, {neighbour_busy}: {obtained} a second"
            );
            assert!(
                (busy - share).abs() < 0.025,
                "{governor}, {neighbour_busy}: {busy} of the processor"
            );
            assert!(
                (mean / mhz - 1.0).abs() < 0.002,
                "{governor}, {neighbour_busy}: {mean} MHz"
            );
        }
        assert!(
            simulated("powersave", true).0 < 1.002 * TABLE_3[0].2,
            "whatever the neighbour does"
        );
    }

    #[test]
    fn where_the_processor_never_waits_ondemand_goes_up_by_itself() {
        let keys = json!({ "time": "170us", "cycles": 56_400, "frequencies_mhz": [1400, 2400] });
        let mut cost = build(keys.as_object().unwrap()).unwrap();
        let mut now = Time::ZERO;
        let first = cost.take(now);
        while now < Time::ZERO + Duration::from_millis(200) {
            now += cost.take(now);
        }
        assert_eq!(
            (first, cost.take(now)),
            (Duration::from_nanos(210_286), Duration::from_nanos(193_500))
        );
    }
}
