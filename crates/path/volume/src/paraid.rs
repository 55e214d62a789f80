//! `paraid` and `e-paraid`: arrays with two gears.
//!
//! In the high gear it is the RAID 0 or RAID 5 of its native data, which takes the front of each
//! member. In the low gear the last members stand, and what they hold is served from the soft state on
//! the others. `paraid` has that in one reserve behind the data (Weddle et al. 2007); `e-paraid` in
//! buckets between clusters of the data, beside that of the same rows, so that arms move less (the
//! thesis of 2012 on proactive storage, section 7.4). How gears and copies work: `gears.rs`.

use crate::gears::{GearMap, Geared, ShiftRules};
use crate::layout::Layout;
use crate::members::{DEFAULT_CHUNK, at_least, chunk_sectors, common_rows};
use crate::raid0::Raid0;
use crate::raid5;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{self, Keys};
use fullstroke_units::{Bytes, Duration, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The RAID level of both gears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// No redundancy.
    Raid0,
    /// One member may fail, in either gear.
    Raid5,
}

/// Keys of `paraid` and `e-paraid`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ParaidConfig {
    /// `raid0` or `raid5`: of the array, and of the soft state. Default `raid5`.
    pub level: Level,
    /// Bytes on one member before the next has its turn: a positive multiple
    /// of 512. Default 64KiB.
    pub chunk: Bytes,
    /// The member that has failed, counted from 0; at most one, and none of `raid0`. Default none.
    pub failed: Vec<u32>,
    /// Members that work in the low gear, the first ones. Default: three quarters of all, rounded up.
    pub active: Option<u32>,
    /// How much of each member holds native data, in per cent. Default 50. `paraid` has its reserve
    /// behind the middle.
    pub native_percent: u32,
    /// `e-paraid` only: chunks of a member between two buckets. Default 32.
    pub cluster: Option<u32>,
    /// The working members' mean utilisation below which the array shifts down, a share of the time.
    /// Default 0.1.
    pub shift_down: f64,
    /// The one above which it shifts up; more than what `shift_down` becomes on `active` members. Default 0.4.
    pub shift_up: f64,
    /// What the mean is taken over, in seconds. Default 60.
    pub window_s: f64,
    /// The least time in a gear, in seconds. Default 60.
    pub stay_s: f64,
    /// Bytes a second that a shift copies at most. Default: as fast as it goes, in the priority
    /// class `idle`.
    pub copy_rate: Option<Bytes>,
    /// How often the members may be stopped in 24 hours; then the array stays in the high gear.
    /// Default: as often as the load allows.
    pub stops_a_day: Option<u32>,
}

impl Default for ParaidConfig {
    fn default() -> ParaidConfig {
        ParaidConfig {
            level: Level::Raid5,
            chunk: DEFAULT_CHUNK,
            failed: Vec::new(),
            active: None,
            native_percent: 50,
            cluster: None,
            shift_down: 0.1,
            shift_up: 0.4,
            window_s: 60.0,
            stay_s: 60.0,
            copy_rate: None,
            stops_a_day: None,
        }
    }
}

/// The name of the one with buckets beside clusters.
pub(crate) const BESIDE: &str = "e-paraid";

/// The cluster of the thesis (section 7.4.2): large enough for sequential reads in the high gear,
/// small enough to bring both kinds of data together.
const CLUSTER: u32 = 32;

/// `paraid`; see [`BuildLayout`](crate::BuildLayout).
pub fn build(keys: &Keys, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
    let config: ParaidConfig = registry::read(keys)?;
    if config.cluster.is_some() {
        let message =
            "paraid has one reserve, not clusters with buckets; leave the key out, or use e-paraid";
        return Err(ConfigError::new("cluster", message));
    }
    assemble("paraid", &config, members, None)
}

/// `e-paraid`; see [`BuildLayout`](crate::BuildLayout).
pub fn build_beside(keys: &Keys, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
    let config: ParaidConfig = registry::read(keys)?;
    let cluster = u64::from(config.cluster.unwrap_or(CLUSTER));
    if cluster == 0 {
        return Err(ConfigError::new(
            "cluster",
            "buckets with nothing between them; write for example 32",
        ));
    }
    assemble(BESIDE, &config, members, Some(cluster))
}

fn assemble(
    name: &'static str,
    config: &ParaidConfig,
    members: &[Sectors],
    cluster: Option<u64>,
) -> Result<Box<dyn Layout>, ConfigError> {
    let parities = u64::from(config.level == Level::Raid5);
    at_least(name, members, if parities > 0 { 4 } else { 2 })?;
    let chunk = chunk_sectors(config.chunk)?;
    let units = common_rows(members, chunk)?;
    let (active, transient) = gears(config, members.len() as u64, parities)?;
    let map = map(config, units, cluster, [active, transient, parities])?;
    let native = vec![Sectors(map.rows * chunk); members.len()];
    let base = base(config, &native)?;
    let rules = ShiftRules {
        down: config.shift_down,
        up: config.shift_up,
        window: seconds("window_s", config.window_s)?,
        stay: seconds("stay_s", config.stay_s)?,
        rate: config.copy_rate,
        stops_a_day: config.stops_a_day,
    };
    let rules = rules.checked()?;
    thresholds(&rules, active, members.len() as u64)?;
    Ok(Box::new(Geared::new(
        name, base, map, chunk, rules, members,
    )))
}

/// Refuses what no utilisation reaches, and a load that would shift down and, on the low gear's fewer members,
/// up again for ever.
fn thresholds(rules: &ShiftRules, active: u64, members: u64) -> Result<(), ConfigError> {
    let ShiftRules { down, up, .. } = *rules;
    for (key, share) in [("shift_down", down), ("shift_up", up)] {
        if share > 1.0 {
            let message = format!(
                "found {share}; no utilisation is above 1. Expected a share of the time, such as 0.1"
            );
            return Err(ConfigError::new(key, message));
        }
    }
    let after = down * members as f64 / active as f64;
    // A share that comes to `shift_up` but for rounding is no less.
    if after < up * (1.0 - 1e-9) {
        return Ok(());
    }
    let message = format!(
        "found {down}: what keeps {members} members busy for that share keeps {active} so for {after:.3}, which is not \
         below `shift_up`, {up}, and would be shifted to and fro; expected less than {:.3}",
        up * active as f64 / members as f64
    );
    Err(ConfigError::new("shift_down", message))
}

/// How many members work in the low gear, and how many stop.
fn gears(config: &ParaidConfig, members: u64, parities: u64) -> Result<(u64, u64), ConfigError> {
    let active = config.active.map_or((members * 3).div_ceil(4), u64::from);
    let least = if parities > 0 { 3 } else { 1 };
    if active < least {
        let message = format!(
            "a gear of {active} members leaves no redundancy to a soft state of RAID 5, which needs {least}"
        );
        return Err(ConfigError::new(
            "active",
            if parities > 0 {
                message
            } else {
                "nobody works in the low gear; 1 at least".into()
            },
        ));
    }
    if active >= members {
        let message = format!(
            "{active} of {members} members work in the low gear: none stops; write {} at most",
            members - 1
        );
        return Err(ConfigError::new("active", message));
    }
    Ok((active, members - active))
}

fn map(
    config: &ParaidConfig,
    units: u64,
    cluster: Option<u64>,
    [active, transient, parities]: [u64; 3],
) -> Result<GearMap, ConfigError> {
    let percent = u64::from(config.native_percent);
    let rows = (u128::from(units) * u128::from(percent) / 100) as u64;
    if !(1..=100).contains(&percent) || rows == 0 {
        let message = format!(
            "{percent} per cent of {units} chunks on each member is no native data that fits; write 1 to 100"
        );
        return Err(ConfigError::new("native_percent", message));
    }
    let mut map = GearMap {
        active,
        transient,
        parities,
        rows,
        cluster: rows,
        bucket: 0,
        pitch: units,
        offset: rows.max(units / 2),
    };
    if let Some(cluster) = cluster {
        (map.cluster, map.offset) = (cluster, cluster);
    }
    map.bucket = map.bucket_for(map.cluster);
    if cluster.is_some() {
        map.pitch = map.cluster + map.bucket;
    }
    if map.end() <= units {
        return Ok(map);
    }
    let what = if cluster.is_some() {
        "buckets"
    } else {
        "the reserve"
    };
    let message = format!(
        "{what} of {} members' data on {active} others end at chunk {}, and the smallest member has {units}; \
         write less native data, or more active members",
        transient,
        map.end()
    );
    Err(ConfigError::new("native_percent", message))
}

/// The array of all members.
fn base(config: &ParaidConfig, native: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
    let mut keys = Keys::new();
    keys.insert("chunk".into(), json!(config.chunk.0));
    match config.level {
        Level::Raid0 if !config.failed.is_empty() => Err(ConfigError::new(
            "failed",
            "RAID 0 survives no failure; leave the key out",
        )),
        Level::Raid0 => Raid0::build(&keys, native),
        Level::Raid5 => {
            keys.insert("failed".into(), json!(config.failed));
            raid5::build(&keys, native)
        }
    }
}

fn seconds(key: &'static str, seconds: f64) -> Result<Duration, ConfigError> {
    if seconds.is_finite() && (0.0..=1e9).contains(&seconds) {
        return Ok(Duration::from_nanos((seconds * 1e9) as u64));
    }
    Err(ConfigError::new(
        key,
        format!("{seconds} is no time in seconds; write for example 60"),
    ))
}
