//! Arrays that stand for Linux's md, and their defaults.

use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::Keys;
use fullstroke_volume::{JournalDevice, Like, MdRecords, WriteIntent};
use serde_json::{Value, json};

/// The key of a volume that names the implementation.
const LIKE: &str = "like";

/// Keys that only the ideal planner has. A volume with one of these keys is `ideal` by default.
const OF_IDEAL: [&str; 2] = ["coordinate", "dummy_parity_reads"];

/// Defaults of an array like md, by layout. `mdadm --create` makes chunks of 512 KiB
/// (`DEFAULT_CHUNK`, `mdadm.h`). md has 256 stripes (`NR_STRIPES`, `drivers/md/raid5.h`). A rebuild
/// has at most 200000 KiB a second (`sysctl_speed_limit_max`, `drivers/md/md.c`).
const DEFAULTS: [(&str, &[(&str, DefaultValue)]); 6] = [
    ("raid0", &[CHUNK]),
    ("raid1", &[READS, SPEED]),
    ("raid4", &[CHUNK, STRIPES, SPEED]),
    ("raid5", &[CHUNK, STRIPES, SPEED]),
    ("raid6", &[CHUNK, STRIPES, SPEED]),
    ("raid10", &[CHUNK, READS, SPEED]),
];

const CHUNK: (&str, DefaultValue) = ("chunk", DefaultValue::Text("512KiB"));
const STRIPES: (&str, DefaultValue) = ("stripe_cache", DefaultValue::Number(256));
const READS: (&str, DefaultValue) = ("read_policy", DefaultValue::Text("md"));

const SPEED: (&str, DefaultValue) = ("speed_limit_max", DefaultValue::Text("200000KiB"));

#[derive(Clone, Copy)]
enum DefaultValue {
    Text(&'static str),
    Number(u64),
}

/// The layout that is like md only if the file says so: without redundancy, only the number of I/Os
/// differs.
const BY_WORD: &str = "raid0";

/// Adds to the keys of a volume the implementation, if the keys have none, and the defaults of the
/// implementation.
pub(crate) fn complete(layout: &str, own: &mut Keys, default: Like) {
    let Some((_, defaults)) = DEFAULTS.iter().find(|(name, _)| *name == layout) else {
        return;
    };
    // `dummy_parity_reads = false` does not ask for the ideal planner.
    let says = |key: &str| own.get(key).is_some_and(|value| value != &json!(false));
    let is_ideal = OF_IDEAL.into_iter().any(says);
    if default == Like::Md && layout != BY_WORD && !own.contains_key(LIKE) && !is_ideal {
        own.insert(LIKE.to_owned(), json!(Like::Md));
    }
    if own.get(LIKE) != Some(&json!(Like::Md)) {
        return;
    }
    // The defaults become part of the volume's identity, because the place of the bytes follows
    // from the chunk.
    for (key, value) in *defaults {
        let value = match value {
            DefaultValue::Text(text) => Value::from(*text),
            DefaultValue::Number(number) => Value::from(*number),
        };
        own.entry((*key).to_owned()).or_insert(value);
    }
}

/// The keys of the records that md keeps on the members.
pub(crate) const RECORDS: [&str; 4] = [
    "bitmap",
    "bitmap_chunk",
    "consistency_policy",
    "safe_mode_delay",
];

/// The layout with a partial parity log: `ppl_init_log` (`drivers/md/raid5-ppl.c`) refuses others.
const PARTIAL_PARITY: &str = "raid5";

/// The layouts with a journal device: `raid456` (`drivers/md/raid5-cache.c`).
const JOURNALLED: [&str; 3] = ["raid4", "raid5", "raid6"];

/// How an array becomes consistent after a crash, by the names of `mdadm --consistency-policy`.
#[derive(Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Consistency {
    /// A resync of the whole array.
    Resync,
    /// A resync of the regions that the bitmap names.
    Bitmap,
    /// The partial parity log.
    Ppl,
    /// A journal device.
    Journal,
}

/// Takes the keys of md's records out of the keys of a volume. `journal` is the device of the key of
/// this name. Returns `None` for an array without
/// records: an array without these keys, an array that is not like md, and RAID 0.
///
/// # Errors
/// If a value is unknown, or if the array has no records.
pub(crate) fn take_records(
    layout: &str,
    own: &mut Keys,
    journal: Option<JournalDevice>,
) -> Result<Option<MdRecords>, ConfigError> {
    let given: Vec<(&str, Value)> = RECORDS
        .into_iter()
        .filter_map(|key| Some((key, own.remove(key)?)))
        .collect();
    // RAID 0 has no redundancy to bring in step after a crash, so md keeps no bitmap for it.
    let has_records = layout != BY_WORD && own.get(LIKE) == Some(&json!(Like::Md));
    if journal.is_some() && (!has_records || !JOURNALLED.contains(&layout)) {
        let found = match has_records {
            true => layout.to_owned(),
            false => format!("{layout} that is not like md"),
        };
        let message = format!(
            "found {found}; only raid4, raid5 and raid6 like md have a journal device. Leave the key out"
        );
        return Err(ConfigError::new("journal", message));
    }
    if !has_records {
        return match given.iter().find(|one| !is_without(one)) {
            None => Ok(None),
            Some((key, _)) => {
                let message =
                    "only an array like md with copies or parity has this setting; leave it out";
                Err(ConfigError::new(*key, message))
            }
        };
    }
    // Keys that switch records off leave the array as it is without the keys, and results do not
    // move.
    if given.iter().all(is_without) && journal.is_none() {
        return Ok(None);
    }
    // A bitmap only by word: writes to clean regions then wait for a flush of all members.
    let mut records = MdRecords {
        bitmap: Some(WriteIntent::None),
        journal,
        ..MdRecords::default()
    };
    for (key, value) in given {
        let wrong =
            |expected: &str| ConfigError::new(key, format!("found {value}; expected {expected}"));
        match key {
            "bitmap" => {
                let intent = serde_json::from_value(value.clone());
                records.bitmap = Some(intent.map_err(|_| wrong("\"none\" or \"internal\""))?);
            }
            "consistency_policy" => {
                let policy = serde_json::from_value(value.clone());
                let expected = "\"resync\", \"bitmap\", \"ppl\" or \"journal\"";
                policy_of(layout, policy.map_err(|_| wrong(expected))?, &mut records)?;
            }
            "bitmap_chunk" => {
                let size = serde_json::from_value(value.clone());
                records.region = size.map_err(|_| wrong("a size such as \"64MiB\""))?;
            }
            _ => {
                let delay = serde_json::from_value(value.clone());
                records.safe_mode_delay = delay.map_err(|_| wrong("a time such as \"201ms\""))?;
            }
        }
    }
    if journal.is_some() && records.bitmap == Some(WriteIntent::Internal) {
        let message = "an array with a journal device has no bitmap; remove bitmap or journal";
        return Err(ConfigError::new("bitmap", message));
    }
    records.check()?;
    Ok(Some(records))
}

/// True for a key that says that the array writes no records.
fn is_without((key, value): &(&str, Value)) -> bool {
    match *key {
        "bitmap" => value == &json!("none"),
        "consistency_policy" => value == &json!("resync"),
        _ => false,
    }
}

/// Gives the records a policy of consistency. The key `bitmap` was read before.
///
/// # Errors
/// If the layout has no such policy, or if the bitmap contradicts the policy.
fn policy_of(
    layout: &str,
    policy: Consistency,
    records: &mut MdRecords,
) -> Result<(), ConfigError> {
    let refuse = |message: String| Err(ConfigError::new("consistency_policy", message));
    let has_bitmap = records.bitmap == Some(WriteIntent::Internal);
    let has_journal = records.journal.is_some();
    match policy {
        Consistency::Journal if has_journal => {}
        Consistency::Journal => {
            return refuse(
                "found \"journal\" without the key journal; name the drive that holds the journal there"
                    .to_owned(),
            );
        }
        _ if has_journal => {
            return refuse(
                "found another policy beside the key journal; expected \"journal\"".to_owned(),
            );
        }
        Consistency::Bitmap => records.bitmap = Some(WriteIntent::Internal),
        Consistency::Resync if has_bitmap => {
            return refuse(
                "found \"resync\" beside bitmap = \"internal\"; remove one of the keys".to_owned(),
            );
        }
        Consistency::Resync => {}
        Consistency::Ppl if layout != PARTIAL_PARITY => {
            return refuse(format!(
                "found \"ppl\"; md has the partial parity log for raid5 only, and this array is {layout}"
            ));
        }
        Consistency::Ppl if has_bitmap => {
            return refuse(
                "found \"ppl\" beside bitmap = \"internal\"; md has no array with both".to_owned(),
            );
        }
        Consistency::Ppl => records.partial_parity = true,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records_of(layout: &str, given: Value) -> Result<Option<MdRecords>, String> {
        let mut own: Keys = serde_json::from_value(given).unwrap();
        own.insert(LIKE.to_owned(), json!("md"));
        let records = take_records(layout, &mut own, None).map_err(|error| error.to_string());
        assert!(records.is_err() || own.len() == 1, "{own:?}");
        records
    }

    #[test]
    fn the_policy_of_consistency_is_that_of_mdadm() {
        let policy = |name: &str| json!({ "consistency_policy": name });
        assert_eq!(records_of("raid5", policy("resync")), Ok(None));
        for (layout, policy, bitmap, partial_parity) in [
            ("raid5", policy("ppl"), WriteIntent::None, true),
            ("raid10", policy("bitmap"), WriteIntent::Internal, false),
        ] {
            let records = records_of(layout, policy).unwrap().unwrap();
            assert_eq!(records.bitmap, Some(bitmap));
            assert_eq!(records.partial_parity, partial_parity);
        }
    }

    #[test]
    fn a_journal_device_is_for_parity_arrays_like_md_without_a_bitmap() {
        let device = Some(JournalDevice {
            sectors: fullstroke_units::Sectors(1 << 24),
            volatile: true,
        });
        let taken = |layout: &str, given: Value| {
            let mut own: Keys = serde_json::from_value(given).unwrap();
            take_records(layout, &mut own, device).map_err(|error| error.to_string())
        };
        for layout in JOURNALLED {
            let records = taken(layout, json!({ "like": "md" })).unwrap().unwrap();
            assert_eq!((records.journal, records.partial_parity), (device, false));
            let given = json!({ "like": "md", "consistency_policy": "journal" });
            assert_eq!(taken(layout, given), Ok(Some(records)));
        }
        for (layout, given, part) in [
            ("raid10", json!({ "like": "md" }), "found raid10"),
            ("raid5", json!({ "like": "ideal" }), "not like md"),
            (
                "raid5",
                json!({ "like": "md", "consistency_policy": "resync" }),
                "expected \"journal\"",
            ),
            (
                "raid5",
                json!({ "like": "md", "bitmap": "internal" }),
                "has no bitmap",
            ),
        ] {
            let error = taken(layout, given.clone()).unwrap_err();
            assert!(error.contains(part), "{layout} {given}: {error}");
        }
        let small = JournalDevice {
            sectors: fullstroke_units::Sectors(1 << 16),
            volatile: true,
        };
        let error = small.check().unwrap_err().to_string();
        assert!(error.contains("at least"), "{error}");
    }

    #[test]
    fn policies_that_md_has_not_are_refused_with_the_reason() {
        for (layout, given, part) in [
            (
                "raid6",
                json!({ "consistency_policy": "ppl" }),
                "raid5 only",
            ),
            (
                "raid5",
                json!({ "consistency_policy": "journal" }),
                "without the key journal",
            ),
            ("raid5", json!({ "consistency_policy": 1 }), "found 1"),
            (
                "raid5",
                json!({ "consistency_policy": "ppl", "bitmap": "internal" }),
                "no array with both",
            ),
            (
                "raid5",
                json!({ "consistency_policy": "resync", "bitmap": "internal" }),
                "remove one",
            ),
        ] {
            let error = records_of(layout, given.clone()).unwrap_err();
            assert!(error.contains(part), "{layout} {given}: {error}");
        }
    }
}
