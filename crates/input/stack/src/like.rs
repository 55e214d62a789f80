//! Arrays that stand for Linux's md, and their defaults.

use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::Keys;
use fullstroke_volume::{Like, WriteIntent};
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

/// Takes the key `bitmap` out of the keys of a volume.
///
/// # Errors
/// If the value is unknown, or if the array is not like md.
pub(crate) fn write_intent(own: &mut Keys) -> Result<WriteIntent, ConfigError> {
    let Some(value) = own.remove("bitmap") else {
        return Ok(WriteIntent::None);
    };
    let message = format!("found {value}; expected \"none\" or \"internal\"");
    let intent = serde_json::from_value(value).map_err(|_| ConfigError::new("bitmap", message))?;
    if intent == WriteIntent::Internal && own.get(LIKE) != Some(&json!(Like::Md)) {
        let message = "only an array like md has a write-intent bitmap; leave it out";
        return Err(ConfigError::new("bitmap", message));
    }
    Ok(intent)
}
