//! The reference page: every policy and its keys, from the registries.

use crate::config::MeasurementConfig;
use crate::drives;
use crate::hosts::HostsKeys;
use crate::layouts::LAYOUTS;
use crate::schema;
use crate::workload::{self, Kind};
use crate::workloads::WorkloadKeys;
use fullstroke_contract::READINGS;
use fullstroke_contract::registry::{Entry, schema_of};
use fullstroke_controller::{ControllerConfig, DestageConfig};
use fullstroke_drive::DriveConfig;
use fullstroke_host::{HostKeys, PushedKeys, elevator};
use fullstroke_memory::MemoryKeys;
use fullstroke_stage::StageConfig;
use fullstroke_vfs::{DiskKeys, FilesKeys};
use fullstroke_workload::{addresses, arrivals};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Returns the page as Markdown.
pub fn reference() -> String {
    let mut page = String::from(
        "# Reference\n\n<!-- Written by `make generate`; a test holds it to the code. -->\n\n\
         A stack file has the tables `[workload]` (or several `[[workloads]]`), `[host]` (or several `[[hosts]]` and `[shared]`), `[[opportunities]]`, `[controller]`, `[link]`, `[volume]` and `[measurement]`, and the keys `title` and `seed`.\n\
         Sizes are written `64KiB` (1024) or `64KB` (1000), times `3.5ms`. `--set volume.chunk=256KiB` replaces any key.\n",
    );
    volume(&mut page);
    workloads(&mut page);
    one_host(&mut page);
    several_hosts(&mut page);
    between_host_and_volume(&mut page);
    measurement(&mut page);
    drive_files(&mut page);
    page
}

/// Writes the common keys of volumes, the layouts, and the disciplines of `xor`.
fn volume(page: &mut String) {
    section(
        page,
        "[volume]",
        "Every volume has these keys, and those of its layout.",
    );
    let of_every_volume = json!({ "properties": schema::volume_keys() });
    keys(page, &of_every_volume);
    policies(page, "Layouts: `layout = ...`", LAYOUTS);
    policies(
        page,
        "Disciplines: `discipline = ...` of the layout `xor`",
        fullstroke_smart::discipline::REGISTRY,
    );
}

/// Writes each kind of workload, several workloads at once, arrivals and addresses.
fn workloads(page: &mut String) {
    workload::REGISTRY
        .iter()
        .for_each(|kind| one_workload(page, kind));
    section(
        page,
        "[[workloads]]",
        &format!(
            "Several workloads at once, in place of `[workload]`: {}. Each has the keys of its kind and these; \
             results of each are `workloads.NAME.response_ms.p99`, `workloads.NAME.mb_per_s` and so on.",
            workload::names(workload::REGISTRY.iter().filter(|kind| !kind.build.alone)),
        ),
    );
    keys(page, schema_of::<WorkloadKeys>().as_value());
    policies(
        page,
        "Arrival processes: `arrivals = { process = ... }`",
        arrivals::REGISTRY,
    );
    policies(
        page,
        "Address patterns: `addresses = { pattern = ... }`",
        addresses::REGISTRY,
    );
}

/// Writes one host: block layer, file system and caches.
fn one_host(page: &mut String) {
    section(page, "[host]", "");
    keys(page, schema_of::<HostKeys>().as_value());
    policies(
        page,
        "Elevators: `elevator = ...` in `[host]` or `[host.members]`",
        elevator::REGISTRY,
    );
    section(
        page,
        "[host.files]",
        "The file system that programs work on; only with them. What each models: [files.md](files.md). It has these keys, and those of its kind.",
    );
    keys(page, schema_of::<FilesKeys>().as_value());
    policies(
        page,
        "File systems: `kind = ...` in `[host.files]`",
        fullstroke_files::REGISTRY,
    );
    section(
        page,
        "[host.memory]",
        "A page cache through which programs read and write the device; without the table all I/O reaches the volume. What it models of which kernel: \
         [memory.md](memory.md). Each of the three policies is a name, or a table of its keys with `policy` as the name.",
    );
    keys(page, schema_of::<MemoryKeys>().as_value());
    section(
        page,
        "[host.pushed]",
        "A cache of blocks beneath the page cache, of what storage pushes: [signals.md](signals.md).",
    );
    keys(page, schema_of::<PushedKeys>().as_value());
    policies(
        page,
        "Replacement: `replacement = ...` in `[host.memory]` and `[host.pushed]`",
        fullstroke_memory::replacement::REGISTRY,
    );
    policies(
        page,
        "Read-ahead: `read_ahead = ...` in `[host.memory]`",
        fullstroke_memory::read_ahead::REGISTRY,
    );
    policies(
        page,
        "Write-back: `write_back = ...` in `[host.memory]`",
        fullstroke_memory::write_back::REGISTRY,
    );
}

/// Writes several hosts and their common layers.
fn several_hosts(page: &mut String) {
    section(
        page,
        "[[hosts]]",
        "Several hosts above one array, in place of `[workload]` and `[host]`: each has a `[hosts.workload]` (or several `[[hosts.workloads]]`), the keys of \
         `[host]`, and these. Workloads with results of their own do not go here.",
    );
    keys(page, schema_of::<HostsKeys>().as_value());
    section(
        page,
        "[shared]",
        "What these hosts share above the controller or the volume: a target's or a Dom0's processor and queue. With the keys of `[host]` (`elevator`, `memory` …) \
         it has a block layer and a cache of its own below.",
    );
    keys(page, schema_of::<StageConfig>().as_value());
    policies(
        page,
        "Fairness: `fairness = ...` in `[shared]`",
        fullstroke_stage::fairness::REGISTRY,
    );
    policies(
        page,
        "Cost of a request: `cost = { model = ... }` in `[shared]`",
        fullstroke_stage::cost::REGISTRY,
    );
    section(
        page,
        "[shared.files]",
        "A file system above what is shared, in which each host's disk is a file of its `size`: [files.md](files.md#disks-that-are-files). With `[shared.memory]`, which \
         keeps its metadata. It has these keys, those of its kind, and those of `[host.files]` but `align`, `align_read_ahead`, `call_cost` and `copy_mb_per_s`.",
    );
    keys(page, schema_of::<DiskKeys>().as_value());
}

/// Writes opportunities, controllers and links, and the readings of layers.
fn between_host_and_volume(page: &mut String) {
    policies_with(
        page,
        "[[opportunities]]: `kind = ...`",
        "What the array, or its controller, notices about its load, and asks hosts for that have `[host.memory]`, or offers those that have `[host.pushed]`: [signals.md](signals.md).",
        fullstroke_opportunity::REGISTRY,
    );
    section(
        page,
        "[controller]",
        "A hardware RAID controller between host and volume; without the table there is none. Write caches of its drives are \
         theirs: `write_cache = true` in `[volume]`.",
    );
    keys(page, schema_of::<ControllerConfig>().as_value());
    section(page, "[controller.destage]", "");
    keys(page, schema_of::<DestageConfig>().as_value());
    policies(
        page,
        "Disciplines: `discipline = ...` in `[controller]`",
        fullstroke_controller::discipline::REGISTRY,
    );
    policies_with(
        page,
        "Links: `kind = ...` in `[link]`",
        "What a volume's commands and data pass on their way to its drives and back; without the table it takes no time. Each volume whose members \
         are drives has a link of its own. A drive holds what it reads until all of it is there. Drive files may describe a bus as well \
         (`electronics`): that comes on top.",
        fullstroke_link::REGISTRY,
    );
    section(
        page,
        "Readings of layers",
        "What links, controllers and volumes count over a whole run, the warm-up included: `layers` in the report, and `compare --by link_utilisation`.",
    );
    page.push_str("| reading | meaning |\n|---|---|\n");
    for reading in READINGS {
        let _ = writeln!(page, "| `{}` | {} |", reading.name, reading.meaning);
    }
}

/// Writes the keys of a measurement.
fn measurement(page: &mut String) {
    section(page, "[measurement]", "");
    keys(page, schema_of::<MeasurementConfig>().as_value());
}

/// Writes drive files, their policies, and the drive library.
fn drive_files(page: &mut String) {
    section(
        page,
        "Drive files",
        "One drive, as in `drives/`. Zones are a list of tables; `[sources]` says where each number comes from, and is required.",
    );
    keys(page, schema_of::<DriveConfig>().as_value());
    policies(
        page,
        "Queue disciplines: `queue = { discipline = ... }`",
        fullstroke_drive::queue::REGISTRY,
    );
    policies(
        page,
        "Idle platters: `spin_down = { policy = ... }`",
        fullstroke_drive::spin_down::REGISTRY,
    );
    section(page, "The drive library", "");
    page.push_str("| name | drive |\n|---|---|\n");
    for name in drives::names() {
        let title = drives::load(name).map_or_else(
            |error| error.to_string(),
            |model| model.config().title.clone(),
        );
        let _ = writeln!(page, "| `{name}` | {title} |");
    }
}

fn section(page: &mut String, title: &str, text: &str) {
    let _ = write!(page, "\n## {title}\n\n");
    if !text.is_empty() {
        let _ = write!(page, "{text}\n\n");
    }
}

/// Writes a kind of workload: keys, an example, and nested tables.
fn one_workload(page: &mut String, kind: &Entry<Kind>) {
    section(
        page,
        &format!("[workload] with kind = \"{}\"", kind.name),
        &sentence(kind.summary),
    );
    let schema = (kind.schema)();
    keys(page, schema.as_value());
    let _ = write!(
        page,
        "```toml\n[workload]\nkind = \"{}\"\n{}\n```\n",
        kind.name, kind.build.example
    );
    for (key, table) in kind.build.tables {
        let title = match schema.as_value()["properties"][key]["type"] == "array" {
            true => format!("[[workload.{key}]]"),
            false => format!("[workload.{key}]"),
        };
        section(page, &title, "");
        keys(page, table().as_value());
    }
}

/// Returns a summary with a capital letter and a full stop.
fn sentence(summary: &str) -> String {
    let mut letters = summary.chars();
    letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .chain(letters)
        .chain(['.'])
        .collect()
}

/// Writes one entry for each policy of a registry.
fn policies<F>(page: &mut String, title: &str, registry: &[Entry<F>]) {
    policies_with(page, title, "", registry);
}

fn policies_with<F>(page: &mut String, title: &str, text: &str, registry: &[Entry<F>]) {
    section(page, title, text);
    for entry in registry {
        let _ = write!(page, "### {}\n\n{}.\n\n", entry.name, entry.summary);
        keys(page, (entry.schema)().as_value());
    }
}

/// Writes a table of the keys of an object schema; nothing for a schema without keys.
fn keys(page: &mut String, schema: &Value) {
    let Some(properties) = schema["properties"]
        .as_object()
        .filter(|properties| !properties.is_empty())
    else {
        return;
    };
    page.push_str("| key | value | unless said | meaning |\n|---|---|---|---|\n");
    for (key, property) in properties {
        let required = schema["required"]
            .as_array()
            .is_some_and(|list| list.iter().any(|name| name == key));
        let default = match &property["default"] {
            Value::Null if required => "required".to_owned(),
            Value::Null => String::new(),
            Value::String(text) => format!("`{text}`"),
            other => format!("`{other}`"),
        };
        let meaning = property["description"]
            .as_str()
            .unwrap_or_default()
            .replace('\n', " ");
        let _ = writeln!(
            page,
            "| `{key}` | {} | {default} | {meaning} |",
            kind(property, schema)
        );
    }
    page.push('\n');
}

/// Returns the type of a value, in a few words.
fn kind(property: &Value, root: &Value) -> String {
    if let Some(name) = property["$ref"]
        .as_str()
        .and_then(|path| path.rsplit('/').next())
    {
        let target = &root["$defs"][name];
        let names = choices(target);
        return if names.is_empty() {
            name.to_lowercase()
        } else {
            names.join(", ")
        };
    }
    let names = choices(property);
    if !names.is_empty() {
        return names.join(", ");
    }
    if let Some(options) = property["anyOf"].as_array() {
        let kinds: Vec<String> = options
            .iter()
            .filter(|option| option["type"] != "null")
            .map(|option| kind(option, root))
            .collect();
        return kinds.join(" or ");
    }
    match &property["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            let kinds: Vec<&str> = kinds
                .iter()
                .filter_map(Value::as_str)
                .filter(|kind| *kind != "null")
                .collect();
            kinds.join(" or ")
        }
        _ => "table".into(),
    }
}

/// Returns the names of an enumeration.
fn choices(schema: &Value) -> Vec<String> {
    let constants = schema["oneOf"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|option| option["const"].as_str());
    let names = schema["enum"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    constants
        .chain(names)
        .map(|name| format!("`{name}`"))
        .collect()
}
