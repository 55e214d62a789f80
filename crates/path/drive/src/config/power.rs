//! Power draw of a drive, and cost of stopping and starting the platters.

use super::{DriveConfig, milliseconds};
use fullstroke_contract::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Upper limit of a power in watts. No drive draws more.
const WATTS_MAX: f64 = 1000.0;

/// Upper limit of the energy in joules of one stop or start. No drive needs more.
const JOULES_MAX: f64 = 1e6;

/// Lower limit of an idle timer in ms. No drive unloads the heads sooner.
const IDLE_MS_MIN: f64 = 100.0;

/// Power draw of a drive, and cost of stopping and starting the platters.
///
/// With the times alone, the drive stops and starts, and no energy is counted. Energy needs all
/// keys in watts and joules except `write_seek_w`, `idle_b` and `idle_c`. For a drive of several
/// arms, the active watts hold while one arm works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PowerConfig {
    /// Time in ms from standing platters to the first access ("standby to ready").
    pub spin_up_ms: f64,
    /// Time in ms from full speed to standing platters ("ready to spindle stop").
    pub spin_down_ms: f64,
    /// Energy in joules to start the platters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spin_up_j: Option<f64>,
    /// Energy in joules to stop the platters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spin_down_j: Option<f64>,
    /// Power in watts while the arm moves or settles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seek_w: Option<f64>,
    /// Power in watts while the arm moves or settles for a write. Default `seek_w`. A drive with
    /// delayed writes need not hurry: manuals list less power for random writes than for random
    /// reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_seek_w: Option<f64>,
    /// Power in watts on the track with a command, while the drive waits for a sector or for data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotate_w: Option<f64>,
    /// Power in watts while sectors are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_w: Option<f64>,
    /// Power in watts while sectors are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_w: Option<f64>,
    /// Power in watts when idle at full speed, with the heads on a track (Idle_A).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_a_w: Option<f64>,
    /// The idle state with unloaded heads (Idle_B). By default the drive does not unload the heads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_b: Option<IdleConfig>,
    /// The idle state with unloaded heads at a lower speed (Idle_C). By default the platters keep
    /// full speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_c: Option<IdleConfig>,
    /// Power in watts while the platters stand (Standby_Z).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standby_w: Option<f64>,
    /// Rated number of starts and stops of the platters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_stop_cycles: Option<u64>,
    /// Rated number of load cycles: the heads leave the platters and come back. Each stop of the
    /// platters and each idle state with unloaded heads is a load cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_cycles: Option<u64>,
}

/// An idle state that a drive enters by itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdleConfig {
    /// Power in watts in this state.
    pub w: f64,
    /// Idle time in ms before the drive enters the state (timer of the power condition).
    pub after_ms: f64,
    /// Time in ms from the state to the first access. The drive draws `seek_w` meanwhile.
    pub wake_ms: f64,
}

impl PowerConfig {
    /// True if the keys suffice to count energy.
    pub fn counts_energy(&self) -> bool {
        self.missing().is_empty()
    }

    /// Returns the missing keys for counting energy.
    pub fn missing(&self) -> Vec<&'static str> {
        let missing = |(key, value): (&'static str, Option<f64>)| value.is_none().then_some(key);
        self.amounts().into_iter().filter_map(missing).collect()
    }

    /// Returns the keys in watts and joules with their values.
    fn amounts(&self) -> [(&'static str, Option<f64>); 8] {
        [
            ("seek_w", self.seek_w),
            ("rotate_w", self.rotate_w),
            ("read_w", self.read_w),
            ("write_w", self.write_w),
            ("idle_a_w", self.idle_a_w),
            ("standby_w", self.standby_w),
            ("spin_up_j", self.spin_up_j),
            ("spin_down_j", self.spin_down_j),
        ]
    }

    /// Refuses impossible values.
    ///
    /// # Errors
    /// Names the invalid key.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        milliseconds("spin_up_ms", self.spin_up_ms)?;
        milliseconds("spin_down_ms", self.spin_down_ms)?;
        for (key, value) in self
            .amounts()
            .into_iter()
            .chain([("write_seek_w", self.write_seek_w)])
        {
            let (most, unit) = if key.ends_with("_w") {
                (WATTS_MAX, "watts")
            } else {
                (JOULES_MAX, "joules")
            };
            value.map_or(Ok(()), |value| amount(key, value, most, unit))?;
        }
        self.check_all_there()?;
        self.check_order()?;
        self.check_idle("idle_b", self.idle_b)?;
        self.check_idle("idle_c", self.idle_c)?;
        self.check_depth()
    }

    /// Checks the presence of either all amounts or none.
    fn check_all_there(&self) -> Result<(), ConfigError> {
        let missing = self.missing();
        let more = self.write_seek_w.is_some() || self.idle_b.is_some() || self.idle_c.is_some();
        // Either all amounts or none: a sum of energy with an unknown state would be wrong without
        // a sign of it.
        if missing.is_empty() || missing.len() == self.amounts().len() && !more {
            return Ok(());
        }
        let message = format!(
            "missing{}; counting energy needs all of these keys. Give all of them, or only spin_up_ms and spin_down_ms",
            match &missing[1..] {
                [] => String::new(),
                others => format!(", as are {}", others.join(", ")),
            }
        );
        Err(ConfigError::new(missing[0], message))
    }

    /// Checks that a deeper state draws no more than the state above.
    fn check_order(&self) -> Result<(), ConfigError> {
        let idle = [("idle_b.w", self.idle_b), ("idle_c.w", self.idle_c)];
        let idle = idle.map(|(key, idle)| (key, idle.map(|idle| idle.w)));
        let active = self
            .amounts()
            .into_iter()
            .take(4)
            .chain([("write_seek_w", self.write_seek_w)]);
        // No state can need less than the state below, because the deeper state switches parts off
        // (Seagate PowerChoice).
        for (key, value) in active {
            not_above(("idle_a_w", self.idle_a_w), (key, value))?;
        }
        let mut above = ("idle_a_w", self.idle_a_w);
        for below in idle
            .into_iter()
            .chain([("standby_w", self.standby_w)])
            .filter(|(_, w)| w.is_some())
        {
            not_above(below, above)?;
            above = below;
        }
        Ok(())
    }

    fn check_idle(&self, key: &str, idle: Option<IdleConfig>) -> Result<(), ConfigError> {
        let Some(IdleConfig {
            w,
            after_ms,
            wake_ms,
        }) = idle
        else {
            return Ok(());
        };
        amount(&format!("{key}.w"), w, WATTS_MAX, "watts")?;
        milliseconds_up_to_a_day(&format!("{key}.after_ms"), after_ms)?;
        milliseconds(&format!("{key}.wake_ms"), wake_ms)?;
        if after_ms < IDLE_MS_MIN {
            let message =
                format!("found {after_ms}; no drive unloads its heads within {IDLE_MS_MIN} ms");
            return Err(ConfigError::new(format!("{key}.after_ms"), message));
        }
        Ok(())
    }

    /// Checks that Idle_C is deeper than Idle_B: entered later, and not faster to leave.
    fn check_depth(&self) -> Result<(), ConfigError> {
        let (Some(b), Some(c)) = (self.idle_b, self.idle_c) else {
            return Ok(());
        };
        // The standard's order: idle_c follows idle_b with the same or a longer way back (ACS-3,
        // extended power conditions).
        if c.after_ms <= b.after_ms {
            let message = format!(
                "found {}; expected more than idle_b.after_ms, {}",
                c.after_ms, b.after_ms
            );
            return Err(ConfigError::new("idle_c.after_ms", message));
        }
        if c.wake_ms < b.wake_ms {
            let message = format!(
                "found {}; expected at least idle_b.wake_ms, {}",
                c.wake_ms, b.wake_ms
            );
            return Err(ConfigError::new("idle_c.wake_ms", message));
        }
        Ok(())
    }

    /// Returns assumed watts and times for a drive without `[power]`, and the source of the
    /// assumption. Speed, capacity and surfaces choose the class.
    pub fn assumed_for(config: &DriveConfig) -> (PowerConfig, &'static str) {
        let bytes = config.capacity_sectors.bytes().0;
        // 2.5-inch drives of 5400 rpm reach about 1 TB on up to 4 surfaces. Larger slow drives have
        // 3.5 inches.
        let small = bytes < 1_100_000_000_000 && config.surfaces <= 4;
        let class = match config.rpm {
            rpm if rpm >= 12_500.0 => &CLASSES[0],
            rpm if rpm >= 8_500.0 => &CLASSES[1],
            rpm if rpm >= 6_500.0 => &CLASSES[2],
            _ if small => &CLASSES[4],
            _ => &CLASSES[3],
        };
        (class.power, class.source)
    }
}

/// Watts and times of a kind of drive.
struct PowerClass {
    power: PowerConfig,
    source: &'static str,
}

const fn class(
    [seek_w, rotate_w, read_w, write_w, idle_a_w, standby_w]: [f64; 6],
    [spin_up_ms, spin_up_j, spin_down_ms, spin_down_j]: [f64; 4],
    start_stop_cycles: u64,
    source: &'static str,
) -> PowerClass {
    let power = PowerConfig {
        spin_up_ms,
        spin_down_ms,
        spin_up_j: Some(spin_up_j),
        spin_down_j: Some(spin_down_j),
        seek_w: Some(seek_w),
        write_seek_w: None,
        rotate_w: Some(rotate_w),
        read_w: Some(read_w),
        write_w: Some(write_w),
        idle_a_w: Some(idle_a_w),
        idle_b: None,
        idle_c: None,
        standby_w: Some(standby_w),
        start_stop_cycles: Some(start_stop_cycles),
        load_cycles: None,
    };
    PowerClass { power, source }
}

impl PowerClass {
    /// Returns the class with another power for the seeks of writes.
    const fn seeking_to_write(self, watts: f64) -> PowerClass {
        PowerClass {
            power: PowerConfig {
                write_seek_w: Some(watts),
                ..self.power
            },
            source: self.source,
        }
    }
}

/// Classes by speed and size. Some manuals give watts under random reads. The seek power then
/// follows under the assumption that seeks take 60 % of the time. A seek for a write adds 3.80 W to
/// idle on the 4 TB model, as `tests/all/held_out_energy.rs` finds.
const CLASSES: [PowerClass; 5] = [
    class(
        [15.70, 8.71, 11.68, 11.58, 8.71, 2.88],
        [20_000.0, 360.0, 15_000.0, 45.0],
        50_000,
        "assumed: power of the 300 GB model in Seagate's Cheetah 15K.7 manual 100516226, table 5, for 15,000 rpm drives; start 20 s at 18 W",
    ),
    class(
        [11.35, 4.63, 7.59, 7.29, 4.63, 1.97],
        [15_000.0, 135.0, 10_000.0, 25.0],
        50_000,
        "assumed: power of 450 GB models of 2.5 inches in a Seagate manual of 2010, for 10,000 rpm drives; start 15 s at 9 W",
    ),
    class(
        [14.45, 7.97, 10.70, 10.43, 7.97, 1.20],
        [15_000.0, 300.0, 20_000.0, 60.0],
        50_000,
        "assumed: power of the 4 TB model in Seagate's Constellation ES.3 SAS manual, table 2, for 7,200 rpm drives; start 15 s at 20 W, stop 20 s at 3 W",
    )
    .seeking_to_write(11.77),
    class(
        [7.0, 3.3, 4.5, 4.5, 3.3, 0.4],
        [10_000.0, 120.0, 10_000.0, 15.0],
        50_000,
        "assumed: a slow 3.5-inch drive of several TB; 3.3 W idle, 4.5 W reading, starting for 10 s at 12 W",
    ),
    class(
        [2.2, 1.7, 1.8, 1.8, 1.7, 0.2],
        [3_500.0, 13.3, 1_000.0, 0.5],
        50_000,
        "assumed: power of Hitachi's 5K320 specification, table 14, for slow 2.5-inch drives; start 3.5 s at 3.8 W",
    ),
];

fn amount(key: &str, value: f64, most: f64, unit: &str) -> Result<(), ConfigError> {
    if value.is_finite() && (0.0..=most).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::new(
        key,
        format!("found {value}; expected {unit}, 0 to {most}"),
    ))
}

fn milliseconds_up_to_a_day(key: &str, value: f64) -> Result<(), ConfigError> {
    if value.is_finite() && (0.0..=86_400_000.0).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::new(
        key,
        format!("found {value}; expected milliseconds, up to a day"),
    ))
}

fn not_above(
    (below_key, below): (&str, Option<f64>),
    (above_key, above): (&str, Option<f64>),
) -> Result<(), ConfigError> {
    match (below, above) {
        (Some(below), Some(above)) if below > above => {
            let message = format!("found {below}; expected no more than `{above_key}`, {above}");
            Err(ConfigError::new(below_key, message))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::small_drive;
    use crate::drive::DriveModel;

    fn full() -> PowerConfig {
        PowerConfig::assumed_for(&small_drive()).0
    }

    fn refused(change: impl FnOnce(&mut PowerConfig)) -> ConfigError {
        let mut power = full();
        change(&mut power);
        DriveModel::new(DriveConfig {
            power: Some(power),
            ..small_drive()
        })
        .expect_err("it is refused")
    }

    #[test]
    fn every_class_is_a_drive_that_can_be() {
        for class in &CLASSES {
            class.power.check().unwrap();
            assert!(class.power.counts_energy());
            assert!(class.source.starts_with("assumed: "), "{}", class.source);
        }
    }

    #[test]
    fn what_no_drive_draws_is_refused_at_its_key() {
        assert_eq!(
            refused(|power| power.seek_w = Some(-1.0)).key,
            "power.seek_w"
        );
        assert_eq!(
            refused(|power| power.write_seek_w = Some(-1.0)).key,
            "power.write_seek_w"
        );
        assert_eq!(
            refused(|power| power.read_w = Some(f64::NAN)).key,
            "power.read_w"
        );
        assert_eq!(
            refused(|power| power.spin_up_j = Some(-0.1)).key,
            "power.spin_up_j"
        );
        assert_eq!(
            refused(|power| power.standby_w = Some(9.0)).key,
            "power.standby_w"
        );
        assert_eq!(
            refused(|power| power.write_w = Some(0.1)).key,
            "power.idle_a_w"
        );
        let idle = |w, after_ms, wake_ms| {
            Some(IdleConfig {
                w,
                after_ms,
                wake_ms,
            })
        };
        assert_eq!(
            refused(|power| power.idle_b = idle(4.0, 5.0, 0.0)).key,
            "power.idle_b.after_ms"
        );
        let both =
            |power: &mut PowerConfig, c| (power.idle_b, power.idle_c) = (idle(4.0, 2e5, 500.0), c);
        assert_eq!(
            refused(|power| both(power, idle(3.0, 1e5, 500.0))).key,
            "power.idle_c.after_ms"
        );
        assert_eq!(
            refused(|power| both(power, idle(3.0, 3e5, 100.0))).key,
            "power.idle_c.wake_ms"
        );
        assert_eq!(
            refused(|power| both(power, idle(4.5, 3e5, 600.0))).key,
            "power.idle_c.w"
        );
    }

    #[test]
    fn a_part_of_the_watts_names_what_is_missing() {
        let error = refused(|power| (power.read_w, power.spin_up_j) = (None, None));
        assert_eq!(error.key, "power.read_w");
        assert!(error.message.contains("spin_up_j"), "{}", error.message);
    }

    #[test]
    fn times_alone_stop_and_start_a_drive() {
        let power = PowerConfig {
            spin_up_ms: 20.0,
            spin_down_ms: 5.0,
            ..PowerConfig::default()
        };
        power.check().unwrap();
        assert!(!power.counts_energy());
    }
}
