//! Lengths of the loads of a stack: the keys that end a workload.

use crate::Stack;
use fullstroke_units::Duration;
use serde_json::{Map, Value};

/// A key that ends a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadLength {
    /// Path of the key in the stack, such as `workload.requests`.
    pub key: String,
    /// Value of the key.
    pub value: LengthValue,
}

/// Value of a key that ends a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LengthValue {
    /// Number of requests.
    Requests(u64),
    /// Time during which requests are issued.
    Time(Duration),
}

impl LoadLength {
    /// Returns the assignment `key=value` for a load `factor` times as long, of at least one
    /// request.
    pub fn scaled(&self, factor: f64) -> String {
        let key = &self.key;
        match self.value {
            LengthValue::Requests(requests) => {
                format!(
                    "{key}={}",
                    // Rounded up: one request less might leave the run too short once more.
                    (requests as f64 * factor).ceil().max(1.0) as u64
                )
            }
            LengthValue::Time(time) => {
                format!(
                    "{key}={}ms",
                    (time.as_millis_f64() * factor).ceil().max(1.0)
                )
            }
        }
    }
}

impl Stack {
    /// Returns the keys `requests` and `duration` of all workloads. Empty if nothing but the end of
    /// a trace, of a job file or of a program ends the load.
    pub fn load_lengths(&self) -> Vec<LoadLength> {
        let mut lengths = Vec::new();
        tables(self.document.values(), "", &mut |table, path| {
            let requests = table.get("requests").and_then(Value::as_u64);
            let time = table
                .get("duration")
                // A wrong value is reported where the workload is read.
                .and_then(|value| serde_json::from_value::<Duration>(value.clone()).ok());
            let values = [
                ("requests", requests.map(LengthValue::Requests)),
                ("duration", time.map(LengthValue::Time)),
            ];
            for (key, value) in values {
                lengths.extend(value.map(|value| LoadLength {
                    key: format!("{path}.{key}"),
                    value,
                }));
            }
        });
        lengths
    }
}

/// Calls `each` with every table of a workload and its path, also below hosts.
fn tables(of: &Map<String, Value>, at: &str, each: &mut dyn FnMut(&Map<String, Value>, &str)) {
    let path = |key: &str| match at {
        "" => key.to_owned(),
        at => format!("{at}.{key}"),
    };
    if let Some(Value::Object(table)) = of.get("workload") {
        each(table, &path("workload"));
    }
    for (place, table) in items(of, "workloads").enumerate() {
        each(table, &format!("{}[{place}]", path("workloads")));
    }
    for (place, host) in items(of, "hosts").enumerate() {
        tables(host, &format!("{}[{place}]", path("hosts")), each);
    }
}

fn items<'a>(
    of: &'a Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = &'a Map<String, Value>> {
    let list = of.get(key).and_then(Value::as_array);
    list.map_or(&[][..], Vec::as_slice)
        .iter()
        .filter_map(Value::as_object)
}
