//! Changes of a stack file by the command line.

use crate::document::Document;
use crate::{StackError, drives};
use fullstroke_contract::registry::keys_of;
use fullstroke_trace::{FileKind, FileSource};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Changes of a stack file by the command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// `key=value` pairs, in order.
    pub set: Vec<String>,
    /// Trace in place of the file's workload. The path is relative to the current folder.
    pub trace: Option<PathBuf>,
    /// Job file of fio in place of the file's workload. The path is relative to the current folder.
    pub fio: Option<PathBuf>,
    /// Text of a job file or a command line of fio, in place of the file's workload.
    pub fio_text: Option<String>,
    /// Workloads in place of the file's workloads. They run side by side, each with the keys of a
    /// table of `[[workloads]]`.
    pub workloads: Vec<Map<String, Value>>,
    /// Further keys of the trace, such as `beyond` or `time_scale`. If all of several workloads are
    /// traces, the keys apply to each.
    pub trace_keys: Map<String, Value>,
    /// Drive in place of the file's drive: a name of the library, or a file relative to the current
    /// folder.
    pub drive: Option<String>,
    /// Seed in place of the file's seed.
    pub seed: Option<u64>,
    /// Number of requests after which the workload ends.
    pub requests: Option<u64>,
    /// Policy that stops platters, in place of the file's policy.
    pub stops: Option<SpinDownChoice>,
    /// True if arrays without the key `like` are like `ideal`. Studies set this, because their
    /// documents describe arrays of that kind.
    pub ideal_arrays: bool,
    /// True to keep workloads of the kind `background` beside the trace. The run does not wait for
    /// them.
    pub beside_background: bool,
    /// True to make each host with an elevator `like = "ideal"`, unless its table says otherwise.
    /// Studies need this, because their papers and results know nothing of today's kernel.
    pub ideal_hosts: bool,
    /// Source of the stack file and of each file that the stack names. Default: the file system.
    pub files: FileSource,
}

/// The policy that stops the platters of a stack's drives.
#[derive(Clone, Debug, PartialEq)]
pub enum SpinDownChoice {
    /// No stops: drives have no timer, arrays with gears stay in the high gear, and hosts are not
    /// asked for dirty data before a stop.
    Nobody,
    /// Each drive uses this table in place of its `[spin_down]`. Gears stay as in the file.
    Timer(Map<String, Value>),
}

impl Overrides {
    /// Writes the changes into the document; `set` comes last.
    ///
    /// # Errors
    /// Returns the change that is impossible, and the reason.
    pub(crate) fn apply(&self, document: &mut Document) -> Result<(), StackError> {
        if !self.workloads.is_empty() {
            // Hosts bring workloads of their own, and `[shared]` is nothing without hosts.
            ["workload", "workloads", "hosts", "shared"]
                .into_iter()
                .for_each(|key| document.remove(key));
            put(document, "workloads", json!(self.workloads))?;
        }
        // Before the trace is written, because this call removes the workloads of the file, or puts
        // the trace among the background workloads.
        self.apply_to_several(document)?;
        if let Some(trace) = self
            .trace
            .as_ref()
            // With `workloads` the trace is among them already (`apply_to_several`).
            .filter(|_| !document.values().contains_key("workloads"))
        {
            replace_by_trace(document, &self.absolute(trace)?)?;
        }
        if let Some(fio) = &self.fio {
            put(
                document,
                "workload",
                json!({ "kind": "fio", "path": self.absolute(fio)? }),
            )?;
        }
        if let Some(text) = &self.fio_text {
            put(document, "workload", json!({ "kind": "fio", "text": text }))?;
        }
        // Volumes among the members inherit the drive of the outermost volume, unless they name
        // their own.
        if let Some(drive) = &self.drive {
            put(document, "volume.drive", json!(self.name_of(drive)))?;
        }
        let several = document.values().contains_key("workloads");
        // After the job file and the trace are in place, because the keys belong to the traces that
        // will run.
        let traces = traces_at_once(document);
        for (key, value) in &self.trace_keys {
            match traces {
                Some(count) => (0..count).try_for_each(|each| {
                    put(document, &format!("workloads[{each}].{key}"), value.clone())
                })?,
                // With other workloads, the trace already has the keys.
                None if several => {}
                None => put(document, &format!("workload.{key}"), value.clone())?,
            }
        }
        if let Some(requests) = self.requests {
            put(document, "workload.requests", json!(requests))?;
        }
        if let Some(seed) = self.seed {
            put(document, "seed", json!(seed))?;
        }
        // `set` comes last, because a user may change keys of the workloads and drives above.
        self.set
            .iter()
            .try_for_each(|assignment| document.set(assignment))?;
        // After `set`, which may have added an elevator.
        if self.ideal_hosts {
            make_hosts_ideal(document)?;
        }
        self.stops
            .as_ref()
            .map_or(Ok(()), |stops| replace_stops(document, stops))
    }

    /// Handles a stack with several workloads or hosts. A trace or a job file replaces all of them.
    /// A key without a workload's name would be ambiguous and is refused.
    fn apply_to_several(&self, document: &mut Document) -> Result<(), StackError> {
        if self.beside_background && self.trace.is_some() {
            let beside = background(document);
            if !beside.is_empty() {
                return self.trace_beside(document, beside);
            }
        }
        if self.trace.is_some() || self.fio.is_some() || self.fio_text.is_some() {
            ["workloads", "hosts", "shared"]
                .into_iter()
                .for_each(|key| document.remove(key));
            return Ok(());
        }
        let keys = !self.trace_keys.is_empty() && traces_at_once(document).is_none();
        let changed = keys || self.requests.is_some();
        let several = [
            ("workloads", "workloads[0].requests=1000"),
            ("hosts", "hosts[0].workload.requests=1000"),
        ];
        let several = several
            .into_iter()
            // With several workloads, `--requests` could mean each or their sum, so the user must
            // name one.
            .find(|(key, _)| document.values().contains_key(*key));
        match several.filter(|_| changed) {
            None => Ok(()),
            Some((key, example)) => {
                let message = format!(
                    "the stack has several {key}; change one of them with --set, as in --set {example}"
                );
                Err(StackError::whole(document.file(), message))
            }
        }
    }

    /// Replaces the file's workloads by the trace and `beside`.
    fn trace_beside(&self, document: &mut Document, beside: Vec<Value>) -> Result<(), StackError> {
        let mut trace = self.trace_keys.clone();
        let path = self.trace.as_deref().map(|path| self.absolute(path));
        let path = path.transpose()?;
        trace.extend(
            [
                ("name", json!("trace")),
                ("kind", json!("trace")),
                ("path", json!(path)),
            ]
            .map(owned),
        );
        document.remove("workload");
        put(
            document,
            "workloads",
            std::iter::once(Value::Object(trace))
                .chain(beside)
                .collect(),
        )
    }
}

impl Overrides {
    /// Returns the same name in digests for each spelling of a drive's name. A path is relative to
    /// the current folder, not to the stack file.
    fn name_of(&self, drive: &str) -> String {
        let exists = |file: &str| self.files.kind(Path::new(file)) != FileKind::Missing;
        let file = drive.split('#').next().is_some_and(exists);
        let path = self.files.absolute(Path::new(drive)).ok();
        let known = || drives::resolve(drive).map_or_else(|_| drive.to_owned(), str::to_owned);
        path.filter(|_| file)
            .map_or_else(known, |path| path.display().to_string())
    }

    fn absolute(&self, path: &Path) -> Result<PathBuf, StackError> {
        self.files
            .absolute(path)
            .map_err(|error| StackError::whole(path.display().to_string(), error.to_string()))
    }
}

fn owned((key, value): (&str, Value)) -> (String, Value) {
    (key.to_owned(), value)
}

/// Returns the tables of `[[workloads]]` with kind `background`, changed so that a run does not
/// wait for them.
fn background(document: &Document) -> Vec<Value> {
    let items = document
        .values()
        .get("workloads")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let beside = items
        .into_iter()
        .filter(|item| item.get("kind") == Some(&json!("background")));
    beside
        .map(|mut item| {
            if let Some(keys) = item.as_object_mut() {
                // Without this key a scrub would keep the run going after the last request of the
                // trace.
                keys.insert("background".into(), json!(true));
            }
            item
        })
        .collect()
}

/// Writes the policy of stops into the volume, and removes all other policies of stops.
fn replace_stops(document: &mut Document, stops: &SpinDownChoice) -> Result<(), StackError> {
    let Some(Value::Object(volume)) = document.values().get("volume") else {
        return Ok(());
    };
    let mut volume = volume.clone();
    // Timers of inner volumes too, because an inner `drive_settings` would win over the one that is
    // written below.
    take_stops(&mut volume, *stops == SpinDownChoice::Nobody);
    put(document, "volume", Value::Object(volume))?;
    let timer = match stops {
        // Null also overrides a timer in the drive file.
        SpinDownChoice::Nobody => Value::Null,
        SpinDownChoice::Timer(keys) => Value::Object(keys.clone()),
    };
    put(document, "volume.drive_settings.spin_down", timer)?;
    let before_stops = |item: &Value| item.get("kind") == Some(&json!("pull-before-stop"));
    match document.values().get("opportunities") {
        Some(Value::Array(items))
            if *stops == SpinDownChoice::Nobody && items.iter().any(before_stops) =>
        {
            let others: Vec<Value> = items
                .iter()
                .filter(|item| !before_stops(item))
                .cloned()
                .collect();
            if others.is_empty() {
                document.remove("opportunities");
                return Ok(());
            }
            put(document, "opportunities", Value::Array(others))
        }
        _ => Ok(()),
    }
}

/// Removes the timers of a volume and of all volumes inside. With `gears`, arrays with gears stay
/// in the high gear.
fn take_stops(volume: &mut Map<String, Value>, gears: bool) {
    if let Some(Value::Object(settings)) = volume.get_mut("drive_settings") {
        settings.remove("spin_down");
    }
    if gears && has_gears(volume) {
        // A utilisation is never below 0, so the array never shifts down.
        volume.insert("shift_down".into(), json!(0.0));
    }
    let members = volume
        .get_mut("members")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten();
    members
        .filter_map(Value::as_object_mut)
        .for_each(|member| take_stops(member, gears));
}

/// Returns true if the volume itself has gears.
fn has_gears(volume: &Map<String, Value>) -> bool {
    volume
        .get("layout")
        .and_then(Value::as_str)
        .is_some_and(|name| GEARED.contains(&name))
}

/// Returns true if the volume, or a volume inside, has gears.
pub(crate) fn gears_within(volume: &Map<String, Value>) -> bool {
    let members = volume
        .get("members")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    has_gears(volume) || members.filter_map(Value::as_object).any(gears_within)
}

/// Layouts with gears.
const GEARED: [&str; 2] = ["paraid", "e-paraid"];

/// Returns the number of traces that are replayed at once, if there are several workloads and all
/// are traces.
fn traces_at_once(document: &Document) -> Option<usize> {
    let Some(Value::Array(each)) = document.values().get("workloads") else {
        return None;
    };
    each.iter()
        .all(|one| one["kind"] == json!("trace"))
        .then_some(each.len())
}

/// Replaces the workload by a trace. A trace keeps the keys of a replaced trace, except the format.
fn replace_by_trace(document: &mut Document, trace: &Path) -> Result<(), StackError> {
    let mut workload = match document.values().get("workload") {
        Some(Value::Object(keys)) if keys.get("kind") == Some(&json!("trace")) => keys.clone(),
        _ => keys_of([("kind".to_owned(), json!("trace"))]),
    };
    workload.insert("path".into(), json!(trace));
    // The format in the file belongs to the former trace.
    workload.remove("format");
    put(document, "workload", Value::Object(workload))
}

/// Gives `like = "ideal"` to each table with an elevator or files, and without `like`.
fn make_hosts_ideal(document: &mut Document) -> Result<(), StackError> {
    let values = document.values();
    let hosts = values.get("hosts").and_then(Value::as_array);
    let mut tables: Vec<String> = (0..hosts.map_or(0, Vec::len))
        .map(|host| format!("hosts[{host}]"))
        .collect();
    tables.extend(["host", "host.members", "shared"].map(str::to_owned));
    let meant: Vec<String> = tables
        .into_iter()
        .filter(|table| {
            let pointer = format!("/{}", table.replace(['.', '['], "/").replace(']', ""));
            let whole = Value::Object(values.clone());
            let keys = whole.pointer(&pointer).and_then(Value::as_object);
            let concerned = |keys: &Map<String, Value>| {
                ["elevator", "files"]
                    .iter()
                    .any(|&key| keys.contains_key(key))
            };
            keys.is_some_and(|keys| concerned(keys) && !keys.contains_key("like"))
        })
        .collect();
    meant
        .iter()
        .try_for_each(|table| put(document, &format!("{table}.like"), json!("ideal")))
}

fn put(document: &mut Document, key: &str, value: Value) -> Result<(), StackError> {
    document
        .put(key, value)
        .map_err(|error| StackError::whole(document.file(), error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str, overrides: &Overrides) -> Value {
        let mut document = Document::parse("stack.toml", text).unwrap();
        overrides.apply(&mut document).unwrap();
        Value::Object(document.values().clone())
    }

    const STOPS: &str = r#"
        [volume]
        layout = "raid1"
        drive_settings = { spin_down = { policy = "break-even", factor = 2.0 }, command_overhead_ms = 0.1 }
        [[volume.members]]
        layout = "e-paraid"
        drives = 4
        drive_settings = { spin_down = { policy = "fixed", after = "5min" } }
        [[opportunities]]
        kind = "idle-flush-on"
        [[opportunities]]
        kind = "pull-before-stop"
    "#;

    #[test]
    fn a_timer_is_replaced_whole_wherever_it_stands() {
        let timer = keys_of([
            ("policy".to_owned(), json!("fixed")),
            ("after".to_owned(), json!("60s")),
        ]);
        let stops = Some(SpinDownChoice::Timer(timer));
        let found = changed(
            STOPS,
            &Overrides {
                stops,
                ..Overrides::default()
            },
        );
        let volume = &found["volume"];
        let expected = json!({ "spin_down": { "policy": "fixed", "after": "60s" }, "command_overhead_ms": 0.1 });
        assert_eq!(volume["drive_settings"], expected);
        assert_eq!(volume["members"][0]["drive_settings"], json!({}));
        assert!(volume["members"][0].get("shift_down").is_none());
        assert_eq!(found["opportunities"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn nobody_stops_platters_where_nobody_shall() {
        let found = changed(
            STOPS,
            &Overrides {
                stops: Some(SpinDownChoice::Nobody),
                ..Overrides::default()
            },
        );
        assert_eq!(found["volume"]["drive_settings"]["spin_down"], Value::Null);
        assert_eq!(found["volume"]["members"][0]["shift_down"], json!(0.0));
        assert_eq!(found["opportunities"], json!([{ "kind": "idle-flush-on" }]));
    }

    #[test]
    fn readers_in_the_background_stay_beside_a_trace_if_they_shall() {
        let text = "[[workloads]]\nname = \"user\"\nkind = \"synthetic\"\n[[workloads]]\nname = \"scrub\"\n\
                    kind = \"background\"\nevery = \"1h\"\n";
        let trace = Some(PathBuf::from("/a.parquet"));
        let overrides = Overrides {
            trace,
            beside_background: true,
            ..Overrides::default()
        };
        let found = changed(text, &overrides);
        let trace = json!({ "name": "trace", "kind": "trace", "path": "/a.parquet" });
        let scrub =
            json!({ "name": "scrub", "kind": "background", "every": "1h", "background": true });
        assert_eq!(found, json!({ "workloads": [trace, scrub] }));
        let found = changed(
            text,
            &Overrides {
                beside_background: false,
                ..overrides
            },
        );
        assert_eq!(
            found,
            json!({ "workload": { "kind": "trace", "path": "/a.parquet" } })
        );
    }

    #[test]
    fn hosts_of_studies_are_ideal_unless_they_say_otherwise() {
        let ideal = Overrides {
            ideal_hosts: true,
            ..Overrides::default()
        };
        let text = r#"
            [host]
            elevator = "noop"
            [host.members]
            elevator = "cfq"
            like = "linux-2.6.23"
            [shared]
            queue_depth = 4
            [[hosts]]
            name = "a"
            [[hosts]]
            elevator = "deadline"
        "#;
        let document = changed(text, &ideal);
        assert_eq!(document["host"]["like"], "ideal");
        assert_eq!(document["host"]["members"]["like"], "linux-2.6.23");
        assert_eq!(document["shared"].get("like"), None);
        assert_eq!(document["hosts"][0].get("like"), None);
        assert_eq!(document["hosts"][1]["like"], "ideal");
    }
}
