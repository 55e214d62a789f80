//! Conditions on a readable drive description: the numbers add up, agree with the vendor's data,
//! and have sources.

use crate::config::DriveConfig;
use crate::drive::DriveModel;
use crate::flash::FlashConfig;
use fullstroke_units::three_digits;
use serde::Serialize;
use serde_json::{Map, Value};

/// Relative difference allowed between model and data sheet, because data sheets round. A drive
/// file can set another value.
const TOLERANCE: f64 = 0.03;

/// The outcome of one check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Subject of the check.
    pub name: &'static str,
    /// Checked key.
    pub key: String,
    /// Value stated or implied by the description.
    pub found: String,
    /// Expected value.
    pub expected: String,
    /// True if the check passed.
    pub passed: bool,
}

/// Returns all checks of a loaded description.
pub fn checks(model: &DriveModel) -> Vec<Check> {
    let config = model.config();
    let geometry = model.mechanics().geometry();
    let held =
        geometry.zones().map(|zone| zone.sectors.0).sum::<u64>() * u64::from(config.actuators);
    let mut checks = vec![Check {
        name: "tracks x sectors = capacity",
        key: "capacity_sectors".into(),
        found: held.to_string(),
        expected: config.capacity_sectors.0.to_string(),
        passed: held == config.capacity_sectors.0,
    }];
    let published = &config.published;
    let tolerance = published.tolerance.unwrap_or(TOLERANCE);
    let mut against = |name, key: &str, found: Option<f64>, expected: Option<f64>, unit: &str| {
        if let (Some(found), Some(expected)) = (found, expected) {
            checks.push(Check {
                name,
                key: format!("published.{key}"),
                found: format!("{} {unit}", three_digits(found)),
                expected: format!("{expected} {unit} within {:.1} %", tolerance * 100.0),
                passed: (found / expected - 1.0).abs() <= tolerance,
            });
        }
    };
    let rates: Vec<f64> = geometry
        .zones()
        .map(|zone| zone.rate_mb_per_s(config.rpm))
        .collect();
    let outer = rates.first().copied();
    let inner = rates.last().copied();
    let average = published
        .average_seek_ms
        .map(|_| model.mechanics().seek_table().average().as_millis_f64());
    against(
        "sustained rate at the outer edge",
        "outer_mb_per_s",
        outer,
        published.outer_mb_per_s,
        "MB/s",
    );
    against(
        "sustained rate at the inner edge",
        "inner_mb_per_s",
        inner,
        published.inner_mb_per_s,
        "MB/s",
    );
    against(
        "average seek",
        "average_seek_ms",
        average,
        published.average_seek_ms,
        "ms",
    );
    checks.extend(unsourced(config).into_iter().map(|key| Check {
        name: "every number has a source",
        found: "no source".into(),
        expected: format!("a line `{key} = \"...\"` in [sources]"),
        key,
        passed: false,
    }));
    checks
}

/// Returns the keys with numbers but without a source.
fn unsourced(config: &DriveConfig) -> Vec<String> {
    // A flash device has no tracks, so no source of tracks is due.
    if let Some(flash) = &config.flash {
        return unsourced_flash(config, flash);
    }
    let mut keys = vec![
        "capacity_sectors",
        "rpm",
        "surfaces",
        "zones",
        "seek",
        "queue",
    ];
    let switches = [
        ("head_switch_ms", config.head_switch_ms),
        ("write_settle_ms", config.write_settle_ms),
        ("command_overhead_ms", config.command_overhead_ms),
        ("power", f64::from(config.power.is_some())),
        ("validated", f64::from(config.validated.is_some())),
        (
            "published.outer_mb_per_s",
            config.published.outer_mb_per_s.unwrap_or(0.0),
        ),
        (
            "published.inner_mb_per_s",
            config.published.inner_mb_per_s.unwrap_or(0.0),
        ),
        (
            "published.average_seek_ms",
            config.published.average_seek_ms.unwrap_or(0.0),
        ),
        (
            "published.idle_bels",
            config.published.idle_bels.unwrap_or(0.0),
        ),
        (
            "published.seek_bels",
            config.published.seek_bels.unwrap_or(0.0),
        ),
    ];
    keys.extend(
        switches
            .iter()
            .filter(|(_, value)| *value != 0.0)
            .map(|(key, _)| *key),
    );
    let sourced = |key: &str| {
        let prefixes = key
            .match_indices('.')
            .map(|(at, _)| &key[..at])
            .chain([key]);
        prefixes
            .into_iter()
            .any(|prefix| config.sources.contains_key(prefix))
    };
    keys.into_iter()
        .filter(|key| !sourced(key))
        .map(str::to_owned)
        .collect()
}

/// Returns the keys of a flash device without a source. Arm and platters are nominal there, and need
/// none.
fn unsourced_flash(config: &DriveConfig, flash: &FlashConfig) -> Vec<String> {
    let given = match serde_json::to_value(flash) {
        Ok(Value::Object(keys)) => keys,
        _ => Map::new(),
    };
    let sourced = |key: &String| {
        config.sources.contains_key(key)
            || key.starts_with("flash.") && config.sources.contains_key("flash")
    };
    std::iter::once("capacity_sectors".to_owned())
        .chain(given.keys().map(|key| format!("flash.{key}")))
        .filter(|key| !sourced(key))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::small_drive;

    fn sourced() -> DriveConfig {
        let keys = [
            "capacity_sectors",
            "rpm",
            "surfaces",
            "zones",
            "seek",
            "queue",
            "head_switch_ms",
            "write_settle_ms",
            "published",
        ];
        let sources = keys
            .map(|key| (key.to_owned(), "made up for a test".to_owned()))
            .into();
        DriveConfig {
            sources,
            ..small_drive()
        }
    }

    /// Returns the key of the first failed check.
    fn failing(config: DriveConfig) -> Option<String> {
        let failed = checks(&DriveModel::new(config).unwrap())
            .into_iter()
            .find(|check| !check.passed);
        failed.map(|check| check.key)
    }

    #[test]
    fn a_number_without_a_source_is_named() {
        let mut config = sourced();
        config.sources.remove("rpm");
        assert_eq!(failing(config).as_deref(), Some("rpm"));
    }

    #[test]
    fn a_rate_that_the_geometry_does_not_give_is_found() {
        let mut config = sourced();
        // 80 sectors in 2 revolutions and skews of 3 + 5 sectors of 40: 2.2 x 6 ms.
        config.published.outer_mb_per_s = Some(80.0 * 512.0 / 13.2e-3 / 1e6);
        assert_eq!(failing(config.clone()), None);
        config.published.outer_mb_per_s = Some(4.0);
        assert_eq!(failing(config).as_deref(), Some("published.outer_mb_per_s"));
    }
}
