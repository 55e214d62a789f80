//! The keys of an array's layout, recorded with all defaults. The places of the array's bytes must
//! not depend on the defaults of a later program.

use crate::ArrayError;
use fullstroke_contract::registry::Keys;
use fullstroke_volume::{REGISTRY, find_layout};
use serde_json::Value;

/// Values of keys missing in a superblock of version 1: such a superblock has only the given keys.
/// The table stays as it is, whatever the layouts' defaults become. A later key of a layout is
/// added here, with the value for the former behaviour of the layout.
const VERSION_1: &[(&str, &str)] = &[
    ("jbod", "{}"),
    ("raid0", r#"{"like":"ideal","chunk":65536}"#),
    (
        "raid1",
        r#"{"like":"ideal","read_policy":"round-robin","failed":[]}"#,
    ),
    (
        "raid10",
        r#"{"like":"ideal","chunk":65536,"copies":2,"arrangement":"near","read_policy":"round-robin","failed":[]}"#,
    ),
    (
        "raid4",
        r#"{"like":"ideal","chunk":65536,"failed":[],"stripe_cache":0,"parity_updates":"fewer",
    "preread_bypass_threshold":1,"largest_member_io":1310720,"kernel":"6.12"}"#,
    ),
    (
        "raid5",
        r#"{"like":"ideal","chunk":65536,"rotation":"left-symmetric","failed":[],"stripe_cache":0,"parity_updates":"fewer",
    "preread_bypass_threshold":1,"largest_member_io":1310720,"kernel":"6.12","dummy_parity_reads":false}"#,
    ),
    (
        "raid6",
        r#"{"like":"ideal","chunk":65536,"rotation":"left-symmetric","failed":[],"stripe_cache":0,"parity_updates":"fewer",
    "preread_bypass_threshold":1,"largest_member_io":1310720,"kernel":"6.12","dummy_parity_reads":false}"#,
    ),
    ("lzvs", r#"{"zones":24,"ratio":"10/6","blocking":8192}"#),
    (
        "lzvs-geo",
        r#"{"blocking":8192,"zones":[],"member_zones":[]}"#,
    ),
    ("lzvs-naive", r#"{"blocking":8192}"#),
    ("paraid", GEARS),
    ("e-paraid", GEARS),
];

/// Keys of `paraid` and `e-paraid`. The number of turning members and the clusters are missing
/// here, because every array has records of both.
const GEARS: &str = r#"{"level":"raid5","chunk":65536,"failed":[],"active":null,"native_percent":50,"cluster":null,
    "shift_down":0.1,"shift_up":0.4,"window_s":60.0,"stay_s":60.0,"copy_rate":null,"stops_a_day":null}"#;

/// Returns the keys of a new array: the given ones, and the present defaults of all others.
///
/// # Errors
/// There is no such layout.
pub(crate) fn resolved(layout: &str, given: &Keys) -> Result<Keys, ArrayError> {
    let entry =
        find_layout(REGISTRY, layout).map_err(|error| ArrayError::Refused(error.to_string()))?;
    let schema = (entry.schema)();
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let defaults =
        properties.filter_map(|(key, about)| Some((key.clone(), about.get("default")?.clone())));
    Ok(defaults.chain(given.clone()).collect())
}

/// Returns the keys of an existing array: those in its superblock, and for all others the values
/// that the array was made with.
pub(crate) fn keys_of_existing(layout: &str, written: &Keys) -> Keys {
    of_version_1(layout).chain(written.clone()).collect()
}

fn of_version_1(layout: &str) -> impl Iterator<Item = (String, Value)> {
    let text = VERSION_1
        .iter()
        .find(|(name, _)| *name == layout)
        .map_or("{}", |(_, keys)| keys);
    serde_json::from_str::<Keys>(text)
        .unwrap_or_default()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power::{dynamic, simulated};
    use crate::{Design, JournalPolicy, assemble, create};
    use fullstroke_contract::registry::known_keys;
    use serde_json::json;

    fn design(layout: &str) -> Design {
        let zone = json!([{ "sectors": 16_384, "bytes_per_s": 100_000_000 }]);
        let keys = match layout {
            "lzvs-geo" => json!({ "member_zones": vec![zone; 4] }),
            "e-paraid" => json!({ "cluster": 4 }),
            _ => json!({}),
        };
        Design {
            name: "vol".into(),
            layout: layout.into(),
            keys: keys.as_object().unwrap().clone(),
            journal: JournalPolicy::None,
            spares: 0,
            force: false,
            sparse: true,
            member_bytes: Some(8 << 20),
            region_bytes: None,
            measured: Vec::new(),
        }
    }

    #[test]
    fn every_key_of_every_layout_is_written_down_and_frozen() {
        for entry in REGISTRY {
            let (devices, _) = simulated(4, 16 << 20);
            let roster = create(&design(entry.name), &dynamic(&devices)).unwrap();
            let known = known_keys(&(entry.schema)());
            for key in &known {
                let written = roster.keys.get(key);
                assert!(
                    written.is_some(),
                    "{}: `{key}` is not written down: has it a default?",
                    entry.name
                );
            }
            let mut frozen: Vec<String> = of_version_1(entry.name).map(|(key, _)| key).collect();
            let mut known = known.clone();
            frozen.sort();
            known.sort();
            assert_eq!(
                frozen, known,
                "{}: a key is new, or has gone; see VERSION_1",
                entry.name
            );
        }
    }

    #[test]
    fn what_follows_from_the_number_of_members_is_written_down_as_it_came_out() {
        let (devices, _) = simulated(6, 16 << 20);
        let given = |keys: serde_json::Value| keys.as_object().unwrap().clone();
        let made = |layout: &str, keys| {
            let design = Design {
                keys: given(keys),
                force: true,
                ..design(layout)
            };
            create(&design, &dynamic(&devices)).unwrap().keys
        };
        let keys = made("paraid", json!({}));
        assert_eq!(
            (&keys["active"], &keys["cluster"]),
            (&json!(5), &Value::Null)
        );
        let keys = made("e-paraid", json!({ "active": 4 }));
        assert_eq!((&keys["active"], &keys["cluster"]), (&json!(4), &json!(32)));
    }

    #[test]
    fn what_is_frozen_builds_what_it_always_has() {
        // The lines of the table are JSON, and the layouts accept them.
        for (layout, text) in VERSION_1 {
            let mut keys: Keys = serde_json::from_str(text).unwrap();
            keys.extend(design(layout).keys);
            let entry = find_layout(REGISTRY, layout).unwrap();
            let built = (entry.build)(&keys, &[fullstroke_units::Sectors(16_384); 4]);
            assert!(built.is_ok(), "{layout}: {:?}", built.err());
        }
    }

    #[test]
    fn what_was_given_goes_before_what_is_taken_for_granted() {
        let given = json!({ "chunk": "16KiB" }).as_object().unwrap().clone();
        assert_eq!(resolved("raid5", &given).unwrap()["chunk"], "16KiB");
        assert_eq!(keys_of_existing("raid5", &given)["chunk"], "16KiB");
        assert_eq!(keys_of_existing("raid5", &Keys::new())["chunk"], 65536);
        assert!(
            resolved("raid7", &given)
                .unwrap_err()
                .to_string()
                .contains("raid7")
        );
    }

    #[test]
    fn an_assembled_array_has_all_keys_whatever_its_superblock_has() {
        let (devices, _) = simulated(4, 16 << 20);
        let devices = dynamic(&devices);
        create(&design("raid5"), &devices).unwrap();
        // Older versions made arrays without these keys.
        for device in &devices {
            let mut found = crate::superblock::read(&**device)
                .unwrap()
                .unwrap()
                .superblock;
            found.roster.keys.clear();
            for copy in 0..2 {
                let found = found.clone().on(&**device, copy);
                crate::superblock::COPIES
                    .write(&**device, copy, &found.encode().unwrap())
                    .unwrap();
            }
        }
        let (array, _) = assemble(&devices, false).unwrap();
        let keys = array.book().roster.keys.clone();
        assert_eq!(
            (&keys["chunk"], &keys["rotation"]),
            (&json!(65536), &json!("left-symmetric"))
        );
    }
}
