//! `paraid` and `e-paraid`: arrays with two gears.
//!
//! In the high gear, the array is the RAID 0 or RAID 5 of its native data. The native data takes
//! the front of each member. In the low gear, the last members are in standby. The soft state on
//! the other members serves the data of the members in standby. `paraid` keeps the soft state in
//! one reserve after the data (Weddle et al. 2007). `e-paraid` keeps the soft state in buckets
//! between clusters of the data, next to the data of the same rows, to make arms move less (the
//! thesis of 2012 on proactive storage, section 7.4). The file `gears.rs` describes gears and
//! copies.

use crate::gears::{GearMap, GearedLayout, ShiftRules};
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

/// RAID level of both gears.
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
    /// RAID level of the array and of the soft state: `raid0` or `raid5`. Default `raid5`.
    pub level: Level,
    /// Bytes on one member before the next member has its turn: a positive multiple of 512. Default
    /// 64KiB.
    pub chunk: Bytes,
    /// The failed member, counted from 0; at most one, and none with `raid0`. Default none.
    pub failed: Vec<u32>,
    /// Number of active members in the low gear; these are the first members. Default: three
    /// quarters of all members, rounded up.
    pub active: Option<u32>,
    /// Share of each member for the array's own data (native data), in per cent. Default 50. The
    /// reserve of `paraid` lies in the second half of each member.
    pub native_percent: u32,
    /// Only for `e-paraid`: number of chunks of a member between two buckets. Default 32.
    pub cluster: Option<u32>,
    /// The array shifts down if the mean utilisation of the working members is below this share of
    /// the time. Default 0.1.
    pub shift_down: f64,
    /// The array shifts up if the mean utilisation of the working members is above this share of
    /// the time. Must be more than `shift_down` times all members divided by `active` members.
    /// Default 0.4.
    pub shift_up: f64,
    /// Period of the mean utilisation, in seconds. Default 60.
    pub window_s: f64,
    /// Minimum time in a gear, in seconds. Default 60.
    pub stay_s: f64,
    /// Maximum copy rate of a shift, in bytes per second. Default: no limit; the copies have the
    /// priority class `idle`.
    pub copy_rate: Option<Bytes>,
    /// Maximum number of stops of the members in 24 hours; then the array stays in the high gear.
    /// Default: no limit.
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

/// Name of the layout with buckets next to clusters.
pub(crate) const BESIDE: &str = "e-paraid";

/// Cluster size of the thesis (section 7.4.2): large enough for sequential reads in the high gear,
/// and small enough to keep both kinds of data close together.
const CLUSTER: u32 = 32;

/// Builds `paraid`; see [`BuildLayout`](crate::BuildLayout).
pub fn build(keys: &Keys, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
    let config: ParaidConfig = registry::read(keys)?;
    if config.cluster.is_some() {
        let message =
            "paraid has one reserve, not clusters with buckets; remove the key, or use e-paraid";
        return Err(ConfigError::new("cluster", message));
    }
    assemble("paraid", &config, members, None)
}

/// Builds `e-paraid`; see [`BuildLayout`](crate::BuildLayout).
pub fn build_beside(keys: &Keys, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
    let config: ParaidConfig = registry::read(keys)?;
    let cluster = u64::from(config.cluster.unwrap_or(CLUSTER));
    if cluster == 0 {
        return Err(ConfigError::new(
            "cluster",
            "found 0; expected at least one chunk between two buckets, such as 32",
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
    // RAID 5 needs three members in the low gear, and at least one member must stop.
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
    Ok(Box::new(GearedLayout::new(
        name, base, map, chunk, rules, members,
    )))
}

/// Returns an error for a threshold above 1, because no utilisation reaches it. Also returns an
/// error if one load could shift the array down and, on the fewer members of the low gear, up again
/// for ever.
fn thresholds(rules: &ShiftRules, active: u64, members: u64) -> Result<(), ConfigError> {
    let ShiftRules { down, up, .. } = *rules;
    for (key, share) in [("shift_down", down), ("shift_up", up)] {
        if share > 1.0 {
            let message =
                format!("found {share}; expected a share of time from 0 to 1, such as 0.1");
            return Err(ConfigError::new(key, message));
        }
    }
    let after = down * members as f64 / active as f64;
    // A share that equals `shift_up` except for rounding counts as equal.
    if after < up * (1.0 - 1e-9) {
        return Ok(());
    }
    let message = format!(
        "found {down}: with {members} members at that utilisation, the {active} members of the low gear would have {after:.3}, which is not below `shift_up`, {up}, so the array would shift to and fro; expected less than {:.3}",
        up * active as f64 / members as f64
    );
    Err(ConfigError::new("shift_down", message))
}

/// Returns the numbers of active and of stopping members in the low gear.
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
                "found 0; the low gear needs at least 1 active member".into()
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
            "found {percent} per cent of {units} chunks per member; expected 1 to 100 and at least one chunk"
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
        // The reserve of `paraid` begins at the middle of each member, or after longer native data.
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
        "{what} for the data of {} members on {active} active members would end at chunk {}, but the smallest member has {units} chunks; reduce native_percent or add active members",
        transient,
        map.end()
    );
    Err(ConfigError::new("native_percent", message))
}

/// Builds the array of all members, for the high gear.
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
        format!("found {seconds}; expected a time in seconds, such as 60"),
    ))
}
