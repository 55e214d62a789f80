//! Arrays that stand for Linux's md, and their defaults.

use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::Keys;
use fullstroke_volume::{Like, Records, WriteIntent};
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
pub(crate) const RECORDS: [&str; 3] = ["bitmap", "bitmap_chunk", "safe_mode_delay"];

/// Takes the keys of md's records out of the keys of a volume. Returns `None` for an array without
/// records: an array without these keys, an array that is not like md, and RAID 0.
///
/// # Errors
/// If a value is unknown, or if the array has no records.
pub(crate) fn take_records(layout: &str, own: &mut Keys) -> Result<Option<Records>, ConfigError> {
    let given: Vec<(&str, Value)> = RECORDS
        .into_iter()
        .filter_map(|key| Some((key, own.remove(key)?)))
        .collect();
    let has_records = layout != BY_WORD && own.get(LIKE) == Some(&json!(Like::Md));
    if !has_records {
        let said = |(key, value): &(&str, Value)| *key != "bitmap" || value != &json!("none");
        return match given.iter().find(|one| said(one)) {
            None => Ok(None),
            Some((key, _)) => {
                let message =
                    "only an array like md with copies or parity has this setting; leave it out";
                Err(ConfigError::new(*key, message))
            }
        };
    }
    let without = |(key, value): &(&str, Value)| *key == "bitmap" && value == &json!("none");
    if given.iter().all(without) {
        return Ok(None);
    }
    // A bitmap only by word: writes to clean regions then wait for a flush of all members.
    let mut records = Records {
        bitmap: Some(WriteIntent::None),
        ..Records::default()
    };
    for (key, value) in given {
        let wrong =
            |expected: &str| ConfigError::new(key, format!("found {value}; expected {expected}"));
        match key {
            "bitmap" => {
                let intent = serde_json::from_value(value.clone());
                records.bitmap = Some(intent.map_err(|_| wrong("\"none\" or \"internal\""))?);
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
    records.check()?;
    Ok(Some(records))
}
