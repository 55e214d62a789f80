//! The keys of the layout `xor`, and the address map from these keys.

use crate::discipline::{BuildXorDiscipline, REGISTRY};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{
    Keys, PolicyEntry, check_known, find, keys_of, known_keys, read, schema_of,
};
use fullstroke_units::{Bytes, Sectors};
use fullstroke_volume::{BuildLayout, Layout, Rotation, raid5};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Keys of `xor`, without the keys of the discipline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct XorConfig {
    /// Bytes on one disk before the next disk follows: a positive multiple of 512. Default 64KiB.
    pub chunk: Bytes,
    /// Pattern in which parity moves from row to row: towards member 0 (`left`) or away from it
    /// (`right`); data begins after the parity (`symmetric`) or at member 0 (`asymmetric`). Default
    /// `left-symmetric`, as in md.
    pub rotation: Rotation,
    /// Number of segments of each disk's buffer, at least 2. An XDW takes two segments and keeps
    /// one until the parity disk has fetched the result; an XPW, a write and a read take one.
    /// Default 8.
    pub segments: u32,
    /// Size of a segment, and largest transfer of one command: a positive multiple of 512. Default
    /// 64KiB.
    pub segment: Bytes,
    /// Discipline that chooses the next command of a disk. Default `greedy`.
    pub discipline: String,
    /// Failed disks. Must be empty, because the model has complete arrays only.
    pub failed: Vec<u32>,
}

impl Default for XorConfig {
    fn default() -> XorConfig {
        XorConfig {
            chunk: Bytes(64 << 10),
            rotation: Rotation::default(),
            segments: 8,
            segment: Bytes(64 << 10),
            discipline: "greedy".into(),
            failed: Vec::new(),
        }
    }
}

/// The layout in a stack file. The layout places the bytes as a [`raid5`] with the same chunk and
/// rotation does. [`SmartArray`](crate::SmartArray) is the layer.
pub const LAYOUT: PolicyEntry<BuildLayout> = PolicyEntry {
    name: "xor",
    summary: "rows of chunks as in raid5, on disks that compute parity themselves (XDWRITE EXTENDED)",
    schema,
    build: |keys, members| SmartSettings::new(keys)?.layout(members),
};

/// The keys that determine the places of the bytes.
pub const PLACING: [&str; 2] = ["chunk", "rotation"];

/// The checked keys.
pub(crate) struct SmartSettings {
    pub(crate) config: XorConfig,
    pub(crate) discipline: &'static PolicyEntry<BuildXorDiscipline>,
    /// The discipline's own keys.
    pub(crate) keys: Keys,
    /// The keys of the address map.
    placing: Keys,
}

impl SmartSettings {
    pub(crate) fn new(keys: &Keys) -> Result<SmartSettings, ConfigError> {
        let own = known_keys(&schema_of::<XorConfig>());
        let of = |wanted: &dyn Fn(&str) -> bool| -> Keys {
            let wanted = keys.iter().filter(|(key, _)| wanted(key));
            keys_of(wanted.map(|(key, value)| (key.clone(), value.clone())))
        };
        let config: XorConfig = read(&of(&|key| own.iter().any(|known| known == key)))?;
        let discipline = find("discipline", REGISTRY, "discipline", &config.discipline)?;
        let known: Vec<String> = own
            .iter()
            .cloned()
            .chain(known_keys(&(discipline.schema)()))
            .collect();
        check_known(keys, &known)?;
        let settings = SmartSettings {
            discipline,
            keys: of(&|key| own.iter().all(|known| known != key)),
            placing: of(&|key| PLACING.contains(&key)),
            config,
        };
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let XorConfig {
            segments,
            segment,
            ref failed,
            ..
        } = self.config;
        if segments < 2 {
            let message =
                format!("found {segments}; an XDWRITE needs 2, for the old data and for the new");
            return Err(ConfigError::new("segments", message));
        }
        if segment
            .sectors()
            .is_none_or(|sectors| sectors == Sectors::ZERO)
        {
            let message =
                format!("found {segment}; expected a positive multiple of the sector, 512 bytes");
            return Err(ConfigError::new("segment", message));
        }
        if !failed.is_empty() {
            let message = "found a failed disk; disk-based XOR arrays do not support failed disks: remove the key, or use layout = \"raid5\"";
            return Err(ConfigError::new("failed", message));
        }
        // Built once and dropped, so that a bad key of the discipline is found before any disk
        // exists.
        (self.discipline.build)(&self.keys, segments).map(drop)
    }

    /// Returns the layout of the bytes.
    pub(crate) fn layout(&self, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
        raid5::build(&self.placing, members)
    }
}

/// Returns the schema of the layout's keys, including the keys of all disciplines.
fn schema() -> Schema {
    let mut schema = schema_of::<XorConfig>();
    add_disciplines(&mut schema);
    schema
}

/// Adds the names of the disciplines and the keys of each discipline. The module for browsers has a
/// schema of names alone (`schema_of`): the value of each property is `true` there.
fn add_disciplines(schema: &mut Schema) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    // The keys of a discipline stand beside the keys of the layout, so the schema lists both.
    for entry in REGISTRY {
        if let Some(Value::Object(own)) = (entry.schema)().get("properties") {
            properties.extend(own.clone());
        }
    }
    if let Some(Value::Object(discipline)) = properties.get_mut("discipline") {
        let names: Vec<&str> = REGISTRY.iter().map(|entry| entry.name).collect();
        discipline.insert("enum".to_owned(), json!(names));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(keys: Value) -> ConfigError {
        let keys: Keys = serde_json::from_value(keys).unwrap();
        (LAYOUT.build)(&keys, &[Sectors(10_000); 4]).err().unwrap()
    }

    #[test]
    fn bytes_lie_as_in_raid5() {
        let keys: Keys = serde_json::from_value(json!({ "chunk": "8KiB", "segments": 4 })).unwrap();
        let ours = (LAYOUT.build)(&keys, &[Sectors(10_000); 4]).unwrap();
        let keys: Keys = serde_json::from_value(json!({ "chunk": "8KiB" })).unwrap();
        let raid5 = raid5::build(&keys, &[Sectors(10_000); 4]).unwrap();
        assert_eq!(ours.capacity(), raid5.capacity());
        for lbn in 0..1000 {
            let lbn = fullstroke_units::Lbn(lbn);
            assert_eq!(ours.locate(lbn), raid5.locate(lbn));
        }
    }

    #[test]
    fn what_cannot_be_names_its_key() {
        for (keys, key, says) in [
            (json!({ "segments": 1 }), "segments", "needs 2"),
            (
                json!({ "segment": "1000" }),
                "segment",
                "multiple of the sector",
            ),
            (json!({ "failed": [1] }), "failed", "raid5"),
            (
                json!({ "discipline": "xpvt" }),
                "discipline",
                "did you mean `xpwt`",
            ),
            (json!({ "delta_ms": 3 }), "delta_ms", "known here"),
            (
                json!({ "discipline": "xpwt", "delta_ms": -1 }),
                "delta_ms",
                "found -1",
            ),
            (
                json!({ "discipline": "xpwt", "delta": 3 }),
                "delta",
                "did you mean `delta_ms`",
            ),
            (
                json!({ "discipline": "xpwq", "max_xpw": -1 }),
                "max_xpw",
                "-1",
            ),
            (
                json!({ "discipline": "conditional", "threshold": 9 }),
                "threshold",
                "at most",
            ),
            (json!({ "chunk": 100 }), "chunk", ""),
        ] {
            let error = refused(keys);
            assert_eq!(error.key, key, "{error}");
            assert!(error.message.contains(says), "{error}");
        }
    }

    #[test]
    fn a_schema_of_names_alone_gets_the_keys_of_the_disciplines() {
        let mut schema = Schema::default();
        schema.insert("properties".to_owned(), json!({ "discipline": true }));
        add_disciplines(&mut schema);
        let known = known_keys(&schema);
        assert!(known.contains(&"delta_ms".to_owned()), "{known:?}");
    }

    #[test]
    fn the_schema_describes_every_key_of_every_discipline() {
        let schema = (LAYOUT.schema)();
        let known = known_keys(&schema);
        for key in ["chunk", "segments", "delta_ms", "max_xpw", "threshold"] {
            assert!(known.iter().any(|known| known == key), "{key}");
            assert!(
                schema.get("properties").unwrap()[key]
                    .get("description")
                    .is_some(),
                "{key}"
            );
        }
    }
}
