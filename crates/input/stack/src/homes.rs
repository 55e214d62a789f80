//! The tables to which a key belongs, for a key that was written without its table: `chunk` is
//! `volume.chunk`.

use crate::layouts::LAYOUTS;
use crate::measurement::MeasurementConfig;
use crate::{schema, workload};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, PolicyEntry, check_known, known_keys, schema_of};
use fullstroke_controller::ControllerConfig;
use fullstroke_host::{HostKeys, elevator};
use serde_json::Value;

/// Checks the keys at the top of a stack file. If an unknown key belongs to a table of the file,
/// the error suggests the path with the table.
pub(crate) fn check(values: &Keys, known: &[String]) -> Result<(), ConfigError> {
    check_known(values, known).map_err(|error| {
        let homes = homes(values, &error.key);
        if homes.is_empty() {
            return error;
        }
        let homes: Vec<String> = homes.iter().map(|home| format!("`{home}`")).collect();
        let message = format!(
            "unknown key (did you mean {}?); known here: {}",
            homes.join(" or "),
            known.join(", ")
        );
        ConfigError::new(error.key, message)
    })
}

/// Returns the paths of the key below the tables of `values`.
fn homes(values: &Keys, key: &str) -> Vec<String> {
    let table = |name: &str| values.get(name).and_then(Value::as_object);
    let volume = table("volume").is_some_and(|volume| {
        schema::volume_keys().contains_key(key) || of_policy(LAYOUTS, volume, "layout", key)
    });
    let host = table("host").is_some_and(|host| {
        known_keys(&schema_of::<HostKeys>())
            .iter()
            .any(|own| own == key)
            || of_policy(elevator::REGISTRY, host, "elevator", key)
    });
    let workload = table("workload")
        .is_some_and(|workload| of_policy(&workload::REGISTRY, workload, "kind", key));
    let has = |schema: schemars::Schema| known_keys(&schema).iter().any(|own| own == key);
    let controller = table("controller").is_some() && has(schema_of::<ControllerConfig>());
    // Without a look at the file, because `[measurement]` is optional and seldom there yet.
    let measurement = has(schema_of::<MeasurementConfig>());
    [
        (volume, "volume"),
        (host, "host"),
        (workload, "workload"),
        (controller, "controller"),
        (measurement, "measurement"),
    ]
    .into_iter()
    .filter(|(found, _)| *found)
    .map(|(_, table)| format!("{table}.{key}"))
    .collect()
}

/// True if the policy that `table` names under `chooser` has the key.
fn of_policy<F>(registry: &[PolicyEntry<F>], table: &Keys, chooser: &str, key: &str) -> bool {
    let name = table.get(chooser).and_then(Value::as_str);
    registry
        .iter()
        .filter(|entry| Some(entry.name) == name)
        .any(|entry| known_keys(&(entry.schema)()).iter().any(|own| own == key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_without_its_table_is_suggested_with_it() {
        let values = json!({
            "volume": { "layout": "raid5" },
            "host": { "elevator": "deadline" },
            "workload": { "kind": "synthetic" },
        });
        let Value::Object(mut values) = values else {
            unreachable!("an object was written")
        };
        for (key, home) in [
            ("chunk", "`volume.chunk`"),
            ("drives", "`volume.drives`"),
            ("queue_depth", "`host.queue_depth`"),
            ("fifo_batch", "`host.fifo_batch`"),
            ("arrivals", "`workload.arrivals`"),
        ] {
            values.insert(key.to_owned(), json!(1));
            let known = ["volume", "host", "workload"].map(str::to_owned);
            let message = check(&values, &known).unwrap_err().to_string();
            assert!(message.contains(home), "{message}");
            values.remove(key);
        }
        values.insert("copies".to_owned(), json!(1));
        assert!(homes(&values, "copies").is_empty(), "raid5 has no copies");
    }
}
