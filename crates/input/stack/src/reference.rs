//! The reference pages: every policy and its keys, from the registries. One page a table.

use crate::drives;
use crate::hosts::HostsKeys;
use crate::layouts::LAYOUTS;
use crate::measurement::MeasurementConfig;
use crate::schema;
use crate::workload::{self, WorkloadKind};
use crate::workloads::WorkloadKeys;
use fullstroke_contract::READINGS;
use fullstroke_contract::registry::{PolicyEntry, schema_of};
use fullstroke_controller::{ControllerConfig, DestageConfig};
use fullstroke_drive::DriveConfig;
use fullstroke_host::{HostKeys, PushedKeys, elevator};
use fullstroke_memory::MemoryKeys;
use fullstroke_stage::StageConfig;
use fullstroke_vfs::{DiskKeys, FilesKeys};
use fullstroke_workload::{addresses, arrivals};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// A page of the reference.
pub struct ReferencePage {
    /// Name of the file below `docs/`.
    pub file: String,
    /// Markdown.
    pub text: String,
}

/// A page of one table: file name, title, summary for the index, and the function that writes the
/// content.
type Page = (&'static str, &'static str, &'static str, fn(&mut String));

/// All pages, in the order of the index.
#[rustfmt::skip]
const PAGES: &[Page] = &[
    ("volume", "[volume]", "drives, layouts and their keys", volume),
    ("workload", "[workload]", "kinds of workload, arrivals and addresses", workloads),
    ("programs", "[workload] of programs", "programs on files: Postmark, bonnie, recorded calls and others", programs),
    ("host", "[host]", "block layer and elevators of a host", one_host),
    ("files", "[host.files]", "file systems of a host", files),
    ("memory", "[host.memory]", "page cache: replacement, read-ahead, write-back, pushed blocks", memory),
    ("hosts", "[[hosts]] and [shared]", "several hosts and their common layers", several_hosts),
    ("opportunities", "[[opportunities]]", "work of storage in idle time and rotational latency", opportunities),
    ("controller", "[controller]", "RAID controller with memory", controller),
    ("cache", "[cache]", "cache on a flash device in front of the volume", cache),
    ("link", "[link]", "bus between volume and drives", link),
    ("measurement", "[measurement]", "warm-up and intervals", measurement),
    ("readings", "Readings of layers", "counters of hosts, caches, controllers, links and volumes", readings),
    ("drive", "Drive files", "keys of a drive, queue disciplines, spin-down", drive_files),
    ("library", "The drive library", "names of the shipped drives", library),
];

/// Returns the index and all pages.
pub fn reference() -> Vec<ReferencePage> {
    let mut index = String::from(
        "# Reference\n\n<!-- Written by `make generate`; a test holds the page to the code. -->\n\n\
         A stack file has the tables of the following pages, and the keys `title` (text) and `seed` (whole number). \
         `[[workloads]]` replaces `[workload]` for several workloads, and `[[hosts]]` with `[shared]` replaces `[host]` for several hosts.\n\n\
         Sizes are written `64KiB` (1024) or `64KB` (1000), times `3.5ms`, bit rates `25Mbit/s`. `--set volume.chunk=256KiB` replaces any key.\n\n\
         | page | content |\n|---|---|\n",
    );
    let mut pages = Vec::new();
    for (name, title, content, write) in PAGES {
        let _ = writeln!(index, "| [{title}](reference/{name}.md) | {content} |");
        let mut text = format!(
            "# {title}\n\n<!-- Written by `make generate`; a test holds the page to the code. -->\n"
        );
        write(&mut text);
        pages.push(ReferencePage {
            file: format!("reference/{name}.md"),
            text: text.trim_end().to_owned() + "\n",
        });
    }
    pages.insert(
        0,
        ReferencePage {
            file: "reference.md".to_owned(),
            text: index,
        },
    );
    pages
}

/// Writes the common keys of volumes, the layouts, and the disciplines of `xor`.
fn volume(page: &mut String) {
    section(
        page,
        "All volumes",
        "Every volume has the key `layout` (default `jbod`), these keys and the keys of its layout. An empty cell in the \
         column `default` means that the text says what happens without the key. Some defaults differ between simulations \
         (`run`, `compare`, `advise`) on one side, and live serving ([serving.md](../serving.md)), arrays on devices \
         ([arrays.md](../arrays.md)) and studies ([studies.md](../studies.md)) on the other side. The cell then names both. \
         [reference.md](../reference.md) explains how sizes are written; rates are sizes a second. A row is the chunks of all \
         members at one offset; the [glossary](../glossary.md) has the other terms.\n\n\
         An array like `md` works as Linux's md does: stripes of 4 KiB pages with a cache, writes that wait for their \
         neighbours, md's choice of the copy to read. An array like `ideal` knows each request as a whole, locks rows, and \
         reads as little as possible.\n\n\
         `drive` names a drive of the [library](library.md) or a [drive file](drive.md). [host](host.md) has the elevators that \
         use the key `coordinate`.",
    );
    let of_every_volume = json!({ "properties": schema::volume_keys() });
    keys(page, &of_every_volume);
    section(
        page,
        "Slow members: `[[volume.slow]]`",
        "A member that answers late without failing. [slow.md](../slow.md) shows what each policy makes of it.",
    );
    keys(page, &schema::slow_member());
    policies_with(
        page,
        "Policies against slow members: `[volume.late]` with `policy = ...`",
        "An array like md has the policies `wait` and `fail` only.",
        fullstroke_volume::LATE_REGISTRY,
    );
    policies(page, "Layouts: `layout = ...`", LAYOUTS);
    policies_with(
        page,
        "Disciplines: `discipline = ...` of the layout `xor`",
        "XDW is the command XDWRITE: the data disk writes new data and keeps the exclusive or with the old data. XPW is \
         XPWRITE: the parity disk adds this exclusive or to the parity (SBC). The paper is Chang & Du, \"Efficient RAID disk \
         scheduling on smart disks\".",
        fullstroke_smart::discipline::REGISTRY,
    );
}

/// Writes the workloads that run programs.
fn programs(page: &mut String) {
    page.push_str("\nPrograms work on the files of `[host.files]`. [programs.md](../programs.md) describes the models.\n");
    workload::REGISTRY
        .iter()
        .filter(|kind| kind.build.is_program())
        .for_each(|kind| one_workload(page, kind));
}

/// Writes the other kinds of workload, several workloads at once, arrivals and addresses.
fn workloads(page: &mut String) {
    workload::REGISTRY
        .iter()
        .filter(|kind| !kind.build.is_program())
        .for_each(|kind| one_workload(page, kind));
    section(
        page,
        "[[workloads]]",
        &format!(
            "Several workloads at once, in place of `[workload]`: {}. Each has the keys of its kind and these keys; \
             the results of each are `workloads.NAME.response_ms.p99`, `workloads.NAME.mb_per_s` and so on.",
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

/// Writes the block layer of a host and its elevators.
fn one_host(page: &mut String) {
    section(page, "All hosts", "");
    keys(page, schema_of::<HostKeys>().as_value());
    policies(
        page,
        "Elevators: `elevator = ...` in `[host]` or `[host.members]`",
        elevator::REGISTRY,
    );
}

/// Writes the file system of a host.
fn files(page: &mut String) {
    section(
        page,
        "All file systems",
        "The file system that programs work on. The table has an effect only with a workload of programs. [files.md](../files.md) describes the models. \
         A table takes the keys below, and the keys of the file system that `kind` names.",
    );
    keys(page, schema_of::<FilesKeys>().as_value());
    policies(
        page,
        "File systems: `kind = ...` in `[host.files]`",
        fullstroke_files::REGISTRY,
    );
}

/// Writes the page cache of a host, the cache of pushed blocks, and their policies.
fn memory(page: &mut String) {
    section(
        page,
        "The page cache",
        "A page cache through which programs read and write the device; without the table all I/O reaches the volume. \
         [memory.md](../memory.md) names the modelled kernels. Each of the three policies is a name, such as `replacement = \"lru\"`, or a table: `policy` has the name, and the other keys are those of the policy.",
    );
    keys(page, schema_of::<MemoryKeys>().as_value());
    section(
        page,
        "[host.pushed]",
        "A cache below the page cache for blocks that storage pushes: [signals.md](../signals.md).",
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
        "Several hosts above one array, in place of `[workload]` and `[host]`. Each has a `[hosts.workload]` (or several `[[hosts.workloads]]`), the keys of \
         `[host]`, and these keys. Workloads with separate results are not possible here.",
    );
    keys(page, schema_of::<HostsKeys>().as_value());
    section(
        page,
        "[shared]",
        "The common layer of the hosts above the controller or the volume: processor and queue of a target or a Dom0. With the keys of `[host]` (`elevator`, `memory` …) \
         the layer has its own block layer and cache.",
    );
    let shared = schema_of::<StageConfig>();
    keys(page, shared.as_value());
    nested_tables(page, "shared.", shared.as_value(), shared.as_value());
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
        "A file system above the common layer. The disk of each host is a file of its `size`: [files.md](../files.md#disks-that-are-files). Needs `[shared.memory]`, which \
         keeps the metadata. The table has these keys, the keys of its kind, and the keys of `[host.files]` except `align`, `align_read_ahead`, `call_cost` and `copy_mb_per_s`.",
    );
    keys(page, schema_of::<DiskKeys>().as_value());
}

/// Writes the opportunities.
fn opportunities(page: &mut String) {
    policies_with(
        page,
        "Kinds: `kind = ...`",
        "The array or its controller observes the load. It asks hosts with `[host.memory]` for dirty data, or offers data to hosts with `[host.pushed]`: [signals.md](../signals.md).",
        fullstroke_opportunity::REGISTRY,
    );
}

/// Writes the controller.
fn controller(page: &mut String) {
    section(
        page,
        "The controller",
        "A hardware RAID controller between host and volume. Default: no controller. The write caches of the drives are set by \
         `write_cache` in `[volume]`.",
    );
    keys(page, schema_of::<ControllerConfig>().as_value());
    section(page, "[controller.destage]", "");
    keys(page, schema_of::<DestageConfig>().as_value());
    policies(
        page,
        "Disciplines: `discipline = ...` in `[controller]`",
        fullstroke_controller::discipline::REGISTRY,
    );
}

/// Writes the caches in front of a volume.
fn cache(page: &mut String) {
    section(
        page,
        "Every cache",
        "A cache on a flash device between the host and the volume (above `[controller]`). Default: no cache. \
         [flash.md](../flash.md) shows examples. A run begins with an empty cache, or with the data of `warm`.",
    );
    keys(page, &json!({ "properties": crate::cache::common_keys() }));
    policies_with(
        page,
        "Kinds: `kind = ...`",
        "",
        fullstroke_blockcache::CACHE_REGISTRY,
    );
}

/// Writes the links.
fn link(page: &mut String) {
    policies_with(
        page,
        "Kinds: `kind = ...`",
        "The bus between a volume and its drives. Without the table, transfers take no time. Each volume whose members \
         are drives has its own link. A drive sends the data of a read after the whole read. Drive files may describe a bus as well \
         (`electronics`); its times are added.",
        fullstroke_link::REGISTRY,
    );
}

/// Writes the readings of layers.
fn readings(page: &mut String) {
    page.push_str(
        "\nCounters of a whole run, including the warm-up: `layers` in the report, and `compare --by link_utilisation`.\n\n",
    );
    page.push_str("| reading | meaning |\n|---|---|\n");
    for reading in READINGS {
        let _ = writeln!(page, "| `{}` | {} |", reading.name, reading.meaning);
    }
}

/// Writes the keys of a measurement.
fn measurement(page: &mut String) {
    page.push('\n');
    keys(page, schema_of::<MeasurementConfig>().as_value());
}

/// Writes drive files and their policies.
fn drive_files(page: &mut String) {
    section(
        page,
        "All drives",
        "One drive, as in `drives/`. Zones are a list of tables. `[sources]` names the source of each number, and is required.",
    );
    let schema = schema_of::<DriveConfig>();
    keys(page, schema.as_value());
    nested_tables(page, "", schema.as_value(), schema.as_value());
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
}

/// Writes the drive library.
fn library(page: &mut String) {
    page.push_str("\n| name | drive |\n|---|---|\n");
    for name in drives::names().into_iter().chain(drives::flash_names()) {
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
fn one_workload(page: &mut String, kind: &PolicyEntry<WorkloadKind>) {
    section(
        page,
        &format!("[workload] with kind = \"{}\"", kind.name),
        // The pages lie one folder below the documents that a summary links to.
        &sentence(kind.summary).replace("](", "](../"),
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
fn policies<F>(page: &mut String, title: &str, registry: &[PolicyEntry<F>]) {
    policies_with(page, title, "", registry);
}

fn policies_with<F>(page: &mut String, title: &str, text: &str, registry: &[PolicyEntry<F>]) {
    section(page, title, text);
    for entry in registry {
        let _ = write!(page, "### {}\n\n{}.\n\n", entry.name, entry.summary);
        keys(page, (entry.schema)().as_value());
    }
}

/// Writes a table of the keys of an object schema; nothing for a schema without keys.
fn keys(page: &mut String, schema: &Value) {
    keys_of(page, schema, schema);
}

/// Writes the keys of `schema`, an object schema within the schema `root`.
fn keys_of(page: &mut String, schema: &Value, root: &Value) {
    let Some(properties) = schema["properties"]
        .as_object()
        .filter(|properties| !properties.is_empty())
    else {
        return;
    };
    page.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
    for (key, property) in properties {
        let required = schema["required"]
            .as_array()
            .is_some_and(|list| list.iter().any(|name| name == key));
        // A key whose default depends on its use has the words for the cell in its schema, because
        // a JSON schema knows one default.
        let in_words = property["x-default"].as_str();
        let default = match (in_words, &property["default"]) {
            (Some(words), _) => words.to_owned(),
            (None, Value::Null) if required => "required".to_owned(),
            (None, Value::Null) => String::new(),
            (None, Value::String(text)) => format!("`{text}`"),
            (None, other) => format!("`{}`", as_written(other)),
        };
        let meaning = meaning(property, root);
        let _ = writeln!(
            page,
            "| `{key}` | {} | {default} | {meaning} |",
            kind(property, root)
        );
    }
    page.push('\n');
}

/// Writes a section for each key of `schema` that holds a table or a list of tables, and for the
/// keys of these tables. Keys with one kind of table share a section. `above` is the name of the
/// table around, with a dot at its end.
fn nested_tables(page: &mut String, above: &str, schema: &Value, root: &Value) {
    let mut sections: Vec<(&Value, Vec<String>)> = Vec::new();
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        let list = property["items"].is_object();
        let item = if list { &property["items"] } else { property };
        for table in table_schemas(item, root) {
            let name = table_name(&format!("{above}{key}"), list, table);
            match sections.iter_mut().find(|(other, _)| *other == table) {
                Some((_, names)) => names.push(name),
                None => sections.push((table, vec![name])),
            }
        }
    }
    for (table, names) in sections {
        let text = table["description"].as_str().unwrap_or_default();
        section(page, &names.join(", "), &one_line(text));
        keys_of(page, table, root);
        let above = names[0].trim_matches(['[', ']']);
        nested_tables(page, &format!("{above}."), table, root);
    }
}

/// Returns the name of a table as a stack file has it. A key with several kinds of tables has a key
/// with one possible value, which tells the kinds apart.
fn table_name(key: &str, list: bool, table: &Value) -> String {
    let name = match list {
        true => format!("[[{key}]]"),
        false => format!("[{key}]"),
    };
    let properties = table["properties"].as_object().into_iter().flatten();
    let constants =
        properties.filter_map(|(key, property)| Some((key, property["const"].as_str()?)));
    constants.fold(name, |name, (key, value)| {
        format!("{name} with {key} = \"{value}\"")
    })
}

/// Returns the name of the type whose definition a property refers to.
fn type_name(property: &Value) -> Option<&str> {
    property["$ref"].as_str()?.rsplit('/').next()
}

/// Returns the alternatives of a schema.
fn options(schema: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["oneOf", "anyOf"].map(|list| schema[list].as_array());
    lists.into_iter().flatten().flatten()
}

/// Returns the object schemas with keys that a value may follow.
fn table_schemas<'v>(property: &'v Value, root: &'v Value) -> Vec<&'v Value> {
    if let Some(name) = type_name(property) {
        return table_schemas(&root["$defs"][name], root);
    }
    if property["properties"].is_object() {
        return vec![property];
    }
    options(property)
        .flat_map(|option| table_schemas(option, root))
        .collect()
}

/// Returns the description of a key. The values of an enumeration follow with their own
/// descriptions, unless the description of the key quotes each value.
fn meaning(property: &Value, root: &Value) -> String {
    let mut meaning = one_line(property["description"].as_str().unwrap_or_default());
    let values = described_values(property, root);
    let quoted = |name: &str| {
        meaning.contains(&format!("`{name}`")) || meaning.contains(&format!("\"{name}\""))
    };
    if property["x-value"].is_string() || values.iter().all(|(name, _)| quoted(name)) {
        return meaning;
    }
    for (name, description) in values {
        let _ = write!(meaning, " `{name}`: {}", one_line(description));
    }
    meaning
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

/// Returns the values of an enumeration with their descriptions.
fn described_values<'v>(property: &'v Value, root: &'v Value) -> Vec<(&'v str, &'v str)> {
    if let Some(name) = type_name(property) {
        return described_values(&root["$defs"][name], root);
    }
    options(property)
        .flat_map(
            |option| match (option["const"].as_str(), option["description"].as_str()) {
                (Some(name), Some(description)) => vec![(name, description)],
                _ => described_values(option, root),
            },
        )
        .collect()
}

/// Returns a value as a stack file has it: the reader of a page knows TOML, and no JSON. Keys
/// without a value are left out.
fn as_written(value: &Value) -> String {
    let Value::Object(keys) = value else {
        return value.to_string();
    };
    let given: Vec<String> = keys
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| format!("{key} = {}", as_written(value)))
        .collect();
    format!("{{ {} }}", given.join(", "))
}

/// Largest number of names in a cell of a table.
const NAMES_MOST: usize = 12;

/// Returns the kind of a value, in a few words.
fn kind(property: &Value, root: &Value) -> String {
    if let Some(value) = property["const"].as_str() {
        return format!("`{value}`");
    }
    // Names and any other text: the list of names would say less than the words.
    if let Some(words) = property["x-value"].as_str() {
        return words.to_owned();
    }
    if let Some(name) = type_name(property) {
        return match name {
            "Bytes" => "size".to_owned(),
            "Duration" => "time".to_owned(),
            "BitRate" => "bit rate".to_owned(),
            _ => kind(&root["$defs"][name], root),
        };
    }
    let names = choices(property);
    // A longer list would push the meaning of each key off the page.
    if names.len() > NAMES_MOST {
        return format!("one of {} names", names.len());
    }
    if !names.is_empty() {
        return names.join(", ");
    }
    for list in ["anyOf", "oneOf"] {
        if let Some(options) = property[list].as_array() {
            // `null` is the schema's way to say that the key may be absent.
            let kinds = options.iter().filter(|option| option["type"] != "null");
            return one_of(kinds.map(|option| kind(option, root)));
        }
    }
    match &property["type"] {
        Value::String(name) => plain(name, property, root),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str);
            let names: Vec<&str> = names.filter(|name| *name != "null").collect();
            match names.as_slice() {
                // A number of bytes, or a text with a unit.
                ["integer", "string"] => "size".to_owned(),
                names => one_of(names.iter().map(|name| plain(name, property, root))),
            }
        }
        _ => "table".into(),
    }
}

/// Returns different kinds with `or` between them.
fn one_of(kinds: impl Iterator<Item = String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for kind in kinds {
        if !different.contains(&kind) {
            different.push(kind);
        }
    }
    different.join(" or ")
}

/// Returns the kind of a JSON type.
fn plain(name: &str, property: &Value, root: &Value) -> String {
    match name {
        "integer" => "whole number".to_owned(),
        "number" => "number".to_owned(),
        "boolean" => "`true`, `false`".to_owned(),
        "string" => "text".to_owned(),
        "array" if property["items"].is_object() => {
            format!("list of: {}", kind(&property["items"], root))
        }
        "array" => property["prefixItems"].as_array().map_or_else(
            || "list".to_owned(),
            |items| {
                let kinds = one_of(items.iter().map(|item| kind(item, root)));
                format!("list of {}: {kinds}", items.len())
            },
        ),
        _ => "table".to_owned(),
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
