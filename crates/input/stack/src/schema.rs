//! The JSON schemas of stack and drive files, assembled from the registries.

use crate::drives;
use crate::hosts::HostsKeys;
use crate::layouts::LAYOUTS;
use crate::measurement::MeasurementConfig;
use crate::workload::{self, WorkloadKind};
use crate::workloads::WorkloadKeys;
use fullstroke_contract::registry::{PolicyEntry, schema_of};
use fullstroke_controller::ControllerConfig;
use fullstroke_drive::{DriveConfig, SlowConfig};
use fullstroke_host::{HostKeys, elevator};
use fullstroke_stage::StageConfig;
use fullstroke_vfs::{DiskKeys, FilesKeys};
use fullstroke_volume::LATE_REGISTRY;
use fullstroke_workload::{addresses, arrivals};
use schemars::Schema;
use serde_json::{Map, Value, json};

/// Returns the whole schema. Policies contribute their own keys.
pub(crate) fn stack() -> Value {
    let mut definitions = Map::new();
    let layouts: Vec<Value> = LAYOUTS
        .iter()
        .map(|entry| policy(entry, "layout", volume_keys(), &mut definitions))
        .collect();
    let slow = hoisted(slow_member(), &mut definitions);
    definitions.insert("SlowMember".into(), slow);
    let late = choice(LATE_REGISTRY, "policy", &mut definitions);
    definitions.insert("Late".into(), late);
    let mut each = Vec::new();
    let mut beside = Vec::new();
    for kind in workload::REGISTRY.iter() {
        let schema = one_workload(kind, &mut definitions);
        // A kind with separate results runs alone, so an entry of [[workloads]] has no such kind.
        if !kind.build.alone {
            beside.push(schema.clone());
        }
        each.push(schema);
    }
    let workloads = side_by_side(beside, &mut definitions);
    definitions.insert("Workload".into(), json!({ "anyOf": each }));
    definitions.insert("Workloads".into(), workloads);
    let of_host = files(&mut definitions);
    definitions.insert("Files".into(), of_host);
    let of_guests = disks_that_are_files(&mut definitions);
    definitions.insert("FilesOfGuests".into(), of_guests);
    let pattern = choice(addresses::REGISTRY, "pattern", &mut definitions);
    definitions.insert("AddressesConfig".into(), pattern);
    let process = choice(arrivals::REGISTRY, "process", &mut definitions);
    definitions.insert("ArrivalsConfig".into(), process);
    definitions.insert("Volume".into(), json!({ "anyOf": layouts }));
    let mut controller = hoisted(schema_of::<ControllerConfig>().into(), &mut definitions);
    let disciplines = fullstroke_controller::discipline::REGISTRY
        .iter()
        .map(|entry| entry.name);
    controller["properties"]["discipline"]["enum"] = disciplines.collect();
    let link = choice(fullstroke_link::REGISTRY, "kind", &mut definitions);
    let cache = cache(&mut definitions);
    let host = host(&mut definitions);
    let hosts = hosts(&mut definitions);
    definitions.insert("Host".into(), host);
    let shared = shared(&mut definitions);
    let opportunity = choice(fullstroke_opportunity::REGISTRY, "kind", &mut definitions);
    let opportunities = json!({ "type": "array", "description": "opportunities that storage uses", "items": opportunity });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "a fullstroke stack",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "title": { "type": "string", "description": "title of the stack, one line" },
            "seed": { "type": "integer", "minimum": 0, "description": "the seed of all randomness" },
            "workload": { "$ref": "#/$defs/Workload" },
            "workloads": { "$ref": "#/$defs/Workloads" },
            "host": { "$ref": "#/$defs/Host" },
            "hosts": hosts,
            "shared": shared,
            "opportunities": opportunities,
            "controller": controller,
            "link": link,
            "cache": cache,
            "volume": { "$ref": "#/$defs/Volume" },
            "measurement": hoisted(schema_of::<MeasurementConfig>().into(), &mut definitions),
        },
        "required": ["volume"],
        "oneOf": [{ "required": ["workload"] }, { "required": ["workloads"] }, { "required": ["hosts"] }],
        "$defs": definitions,
    })
}

/// Returns the schema of a cache in front of the volume.
fn cache(definitions: &mut Map<String, Value>) -> Value {
    let mut each = choice(fullstroke_blockcache::CACHE_REGISTRY, "kind", definitions);
    let kinds = each["anyOf"].as_array_mut();
    for kind in kinds.into_iter().flatten() {
        if let Some(properties) = kind["properties"].as_object_mut() {
            // The loader takes the common keys out of the table before the kind reads its own
            // (`cache.rs`), so the schema of a kind lacks them.
            properties.extend(crate::cache::common_keys());
        }
    }
    each
}

/// Returns the schema of a workload of this kind.
fn one_workload(kind: &PolicyEntry<WorkloadKind>, definitions: &mut Map<String, Value>) -> Value {
    let mut schema = hoisted((kind.schema)().into(), definitions);
    schema["properties"]["kind"] = json!({ "const": kind.name });
    schema
}

/// Returns the schema of several workloads of these kinds, each with a name.
fn side_by_side(kinds: Vec<Value>, definitions: &mut Map<String, Value>) -> Value {
    let own = hoisted(schema_of::<WorkloadKeys>().into(), definitions);
    let named = |mut kind: Value| {
        if let (Some(properties), Some(own)) = (
            kind["properties"].as_object_mut(),
            own["properties"].as_object(),
        ) {
            properties.extend(own.clone());
        }
        match kind["required"].as_array_mut() {
            Some(required) => required.push(json!("name")),
            None => kind["required"] = json!(["name"]),
        }
        kind
    };
    let items: Vec<Value> = kinds.into_iter().map(named).collect();
    json!({ "type": "array", "description": "several workloads at once", "items": { "anyOf": items } })
}

/// Returns the schema of several hosts, each with workloads and keys of `[host]`.
fn hosts(definitions: &mut Map<String, Value>) -> Value {
    let mut host = hoisted(schema_of::<HostsKeys>().into(), definitions);
    let mut layer = hoisted(schema_of::<HostKeys>().into(), definitions);
    layer["properties"]["files"] = json!({ "$ref": "#/$defs/Files" });
    if let (Some(properties), Some(layer)) = (
        host["properties"].as_object_mut(),
        layer["properties"].as_object(),
    ) {
        properties.extend(
            layer
                .iter()
                // The members of the array lie below the shared layer, so only [shared] could have
                // a layer for each of them.
                .filter(|(key, _)| *key != "members")
                .map(|(key, value)| (key.clone(), value.clone())),
        );
        properties.insert("workload".into(), json!({ "$ref": "#/$defs/Workload" }));
        properties.insert("workloads".into(), json!({ "$ref": "#/$defs/Workloads" }));
    }
    // The elevator's own keys are in the same table.
    host["additionalProperties"] = json!(true);
    json!({ "type": "array", "description": "several hosts above one array", "items": host })
}

/// Returns the schema of a stage with its rule of fairness, and of the cache and block layer below.
fn shared(definitions: &mut Map<String, Value>) -> Value {
    let mut shared = choice(
        fullstroke_stage::fairness::REGISTRY,
        "fairness",
        definitions,
    );
    let mut layer = hoisted(schema_of::<HostKeys>().into(), definitions);
    let of_stage = hoisted(schema_of::<StageConfig>().into(), definitions);
    if let (Some(properties), Some(own)) = (
        layer["properties"].as_object_mut(),
        of_stage["properties"].as_object(),
    ) {
        properties.remove("members");
        properties["files"] = json!({ "$ref": "#/$defs/FilesOfGuests" });
        properties.extend(own.clone());
        let models = choice(fullstroke_stage::cost::REGISTRY, "model", definitions);
        let cost = &mut properties["cost"];
        let description = cost["description"].clone();
        let time = json!({ "$ref": "#/$defs/Duration" });
        *cost = json!({ "description": description, "anyOf": [time, models] });
    }
    shared["properties"] = layer["properties"].clone();
    shared
}

/// Returns the schema of a host without an elevator, or with an elevator and its keys.
fn host(definitions: &mut Map<String, Value>) -> Value {
    let mut plain = hoisted(schema_of::<HostKeys>().into(), definitions);
    plain["properties"]["members"] = json!({ "$ref": "#/$defs/Host" });
    plain["properties"]["files"] = json!({ "$ref": "#/$defs/Files" });
    let keys = plain["properties"].as_object().cloned().unwrap_or_default();
    let with_elevator = elevator::REGISTRY
        .iter()
        .map(|entry| policy(entry, "elevator", keys.clone(), definitions));
    let mut each: Vec<Value> = with_elevator.collect();
    // Without an elevator only these keys have an effect.
    let without = ["queue_depth", "files", "memory", "pushed", "members"]
        .map(|key| (key.to_owned(), keys[key].clone()));
    plain["properties"] = Value::Object(without.into_iter().collect());
    each.insert(0, plain);
    json!({ "anyOf": each })
}

/// Returns the schema of a file system: the common keys, and the keys of each kind.
fn files(definitions: &mut Map<String, Value>) -> Value {
    let common = properties_of(schema_of::<FilesKeys>(), definitions);
    file_systems(fullstroke_files::REGISTRY.iter(), &common, definitions)
}

/// Returns the schema of a file system whose files are disks of guests.
fn disks_that_are_files(definitions: &mut Map<String, Value>) -> Value {
    let mut common = properties_of(schema_of::<FilesKeys>(), definitions);
    common.retain(|key, _| DiskKeys::WITHOUT.iter().all(|(without, _)| without != key));
    common.extend(properties_of(schema_of::<DiskKeys>(), definitions));
    let named = fullstroke_files::REGISTRY
        .iter()
        // A raw device has no files that could be disks of guests.
        .filter(|entry| entry.name != "raw");
    file_systems(named, &common, definitions)
}

fn properties_of(schema: Schema, definitions: &mut Map<String, Value>) -> Map<String, Value> {
    let schema = hoisted(schema.into(), definitions);
    schema["properties"]
        .as_object()
        .cloned()
        .unwrap_or_default()
}

fn file_systems<'a, F: 'a>(
    entries: impl Iterator<Item = &'a PolicyEntry<F>>,
    common: &Map<String, Value>,
    definitions: &mut Map<String, Value>,
) -> Value {
    let each = entries.map(|entry| policy(entry, "kind", common.clone(), definitions));
    json!({ "anyOf": each.collect::<Vec<Value>>() })
}

/// Returns the schema of a choice among the policies of a registry.
fn choice<F>(
    registry: &[PolicyEntry<F>],
    name_key: &str,
    definitions: &mut Map<String, Value>,
) -> Value {
    let each: Vec<Value> = registry
        .iter()
        .map(|entry| policy(entry, name_key, Map::new(), definitions))
        .collect();
    json!({ "anyOf": each })
}

/// Returns the schema of one policy: name, own keys, and `common` keys.
fn policy<F>(
    entry: &PolicyEntry<F>,
    name_key: &str,
    common: Map<String, Value>,
    definitions: &mut Map<String, Value>,
) -> Value {
    let mut schema = hoisted((entry.schema)().into(), definitions);
    schema["description"] = json!(entry.summary);
    schema["type"] = json!("object");
    // Editors then underline a misspelt key, as the loader refuses it.
    schema["additionalProperties"] = json!(false);
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    if let Value::Object(properties) = &mut schema["properties"] {
        properties.extend(common);
        properties.insert(name_key.to_owned(), json!({ "const": entry.name }));
    }
    schema
}

/// Returns the schema of drive files.
pub fn drive() -> Value {
    let mut schema: Value = schema_of::<DriveConfig>().into();
    schema["title"] = json!("a fullstroke drive");
    // A flash device needs no arm and no platters.
    let arm = ["rpm", "surfaces", "zones", "seek"];
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|key| !arm.iter().any(|arm| key == arm));
    }
    schema["anyOf"] = json!([{ "required": arm }, { "required": ["flash"] }]);
    schema
}

/// Returns the keys of every volume.
pub(crate) fn volume_keys() -> Map<String, Value> {
    let keys = json!({
        "drive": {
            "anyOf": [{ "enum": drives::names() }, { "enum": drives::flash_names() }, { "type": "string", "pattern": "\\.toml$" }],
            "x-value": "name or file",
            "description": "a drive of the library, or a drive file relative to the stack file; needed, unless `members` or the volume around this one names the drives",
        },
        "drives": { "type": "integer", "minimum": 1, "description": "number of members, all of the drive in `drive`; not with `members`; default 1" },
        "tracks": {
            "anyOf": [
                { "type": "string" },
                {
                    "type": "object",
                    "properties": { "file": { "type": "string" }, "trust": { "type": "boolean" } },
                    "required": ["file"],
                    "additionalProperties": false,
                },
            ],
            "description": "track table for all layers above that align to tracks: a file of `fullstroke extract --write-table`, relative to the stack file, or { file = \"...\", trust = true } to use a table of other drives; default: the tracks of the drives",
        },
        "write_cache": {
            "type": "boolean",
            "description": "true if the drives acknowledge a write as soon as the data are in their buffers; default: as in the drive files",
        },
        "spindles": {
            "enum": ["together", "apart"],
            "description": "for the uppermost volume: angles of the platters at time 0, equal for all drives (`together`) or random for each drive (`apart`); default `together`",
        },
        "coordinate": {
            "enum": ["longest", "shortest"],
            "description": "a queue length, in requests, that goes along with each part of a request: the `longest` or the `shortest` queue of all members. The elevators of the members (`[host.members]`) weigh the length by their `queue_weight` (Qian & Wang, \"Cross-layer coordination to disks and RAIDs\", 2007, section 6). Default none",
        },
        "drive_settings": { "type": "object", "description": "keys of the drive file with other values, such as { queue = { discipline = \"satf\" } }; default none" },
        "members": {
            "type": "array",
            "items": { "$ref": "#/$defs/Volume" },
            "description": "members one by one, in place of `drives`: drives, or volumes with their own layout",
        },
        "count": { "type": "integer", "minimum": 1, "description": "in an entry of `members`: number of equal members that the entry stands for; default 1" },
        "rebuild": {
            "anyOf": [
                { "type": "integer", "minimum": 0 },
                { "type": "array", "items": { "type": "integer", "minimum": 0 } },
            ],
            "description": "member, counted from 0, that is new and empty at the start of a run, and is rebuilt while requests are served; or a list of members that are rebuilt together; default none",
        },
        "rebuild_from": {
            "type": ["integer", "string"], "description": "part of each rebuilt member, from its first address on, that is filled already at the start of the run, in bytes; a multiple of 4096; default 0",
        },
        "speed_limit_min": {
            "type": ["integer", "string"], "description": "rate of a rebuild on each filled member, in bytes a second: a slower rebuild does not yield to requests; default 1000KiB, as in md",
        },
        "speed_limit_max": {
            "type": ["integer", "string"], "description": "upper limit of a rebuild on each filled member, in bytes a second; default none, for an array like md 200000KiB, as in md",
        },
        "sync_io_depth": {
            "type": "integer", "description": "limit on the I/Os in flight of a rebuild of an array like md, while requests are served. Up to this number the rebuild goes on; above this number the rebuild waits. An I/O is a page of 4 KiB with parity, and 64 KiB with copies. Linux 6.16 and later have 32. Default none, with the rule of Linux 6.12: after every 128 KiB of the rebuild md checks the members. The rebuild waits if a member has done more than 64 sectors of other I/O since the latest check that found other I/O",
        },
    });
    let mut all = keys.as_object().cloned().unwrap_or_default();
    all.extend(keys_of_slowness());
    all.extend(keys_of_records());
    all
}

/// Returns the keys of arrays like md about superblocks and bitmap.
fn keys_of_records() -> Map<String, Value> {
    let keys = json!({
        "bitmap": {
            "enum": ["none", "internal"],
            "description": "Write-intent bitmap of an array like md with copies or parity. `internal`: the bit of a region is \
                            written to all members before a write to a clean region, and a region is clean 5 to 10 s after its \
                            last write. Default: none, unlike `mdadm --create` (4.2), which makes a bitmap if the array uses \
                            more than 100 GiB of each member. Set `internal` for such an array.",
        },
        "bitmap_chunk": {
            "type": ["integer", "string"],
            "description": "Size of a region of `bitmap` in bytes: a power of two, at least 4KiB. Only for an array like md. \
                            Default 64MiB, as in mdadm.",
        },
        "consistency_policy": {
            "enum": ["resync", "bitmap", "ppl", "journal"],
            "description": "How an array like md becomes consistent after a crash, as in `mdadm --consistency-policy`. `resync`: \
                            nothing is recorded. `bitmap`: as `bitmap = \"internal\"`. `ppl`, for raid5: the partial parity log. \
                            Before each write of data and parity, a log header of 4 KiB and the partial parity are written with \
                            FUA to the member with the parity. Afterwards the written members are flushed. `journal`: a journal \
                            device; the key `journal` names it. Default: `journal` with the key `journal`, `bitmap` with \
                            `bitmap = \"internal\"`, otherwise `resync`. `resync` or `ppl` beside `bitmap = \"internal\"` is \
                            an error.",
        },
        "journal": {
            "type": "string",
            "description": "Journal device of a raid4, raid5 or raid6 like md (`mdadm --write-journal`, mode write-through): \
                            `none`, a drive of the library, or a drive file relative to the stack file. All pages of data and parity of a write are \
                            on the journal device before they are written to the members, so each write waits for the journal \
                            device too, and a flush costs nothing. The mode write-back is not modelled. Default: `none`.",
        },
        "safe_mode_delay": {
            "type": "string",
            "description": "Time after the last write of an array like md until the superblocks of all members say that the array \
                            is clean. The first write afterwards waits until the superblocks say the contrary. Default: \
                            201ms with a bitmap, a partial parity log or a journal, as in md; otherwise writes of superblocks are not \
                            simulated. `0s`: the array stays active.",
        },
    });
    keys.as_object().cloned().unwrap_or_default()
}

/// Returns the keys of every volume about slow members.
fn keys_of_slowness() -> Map<String, Value> {
    let keys = json!({
        "slow": {
            "anyOf": [{ "$ref": "#/$defs/SlowMember" }, { "type": "array", "items": { "$ref": "#/$defs/SlowMember" } }],
            "description": "Members that answer late without failing, one table each: `[[volume.slow]]`. Default none.",
        },
        "late": {
            "$ref": "#/$defs/Late",
            "description": "Policy against slow members: `[volume.late]`. Default: the volume waits.",
        },
    });
    keys.as_object().cloned().unwrap_or_default()
}

/// Returns the schema of a slow member of a volume.
pub(crate) fn slow_member() -> Value {
    let mut schema: Value = schema_of::<SlowConfig>().into();
    schema["properties"][crate::slow::MEMBER] = json!({
        "type": "integer",
        "minimum": 0,
        "description": "Number of the slow member, counted from 0. The member is a drive.",
    });
    schema["required"] = json!([crate::slow::MEMBER]);
    schema
}

/// Moves the definitions of `schema` to the definitions of the root, because references start with
/// `#/$defs`.
fn hoisted(mut schema: Value, definitions: &mut Map<String, Value>) -> Value {
    if let Value::Object(table) = &mut schema {
        table.remove("$schema");
        if let Some(Value::Object(own)) = table.remove("$defs") {
            for (name, definition) in own {
                // A second type of the same name would replace the first, and the keys of the first
                // type would refuse good values.
                debug_assert!(
                    definitions
                        .get(&name)
                        .is_none_or(|other| *other == definition),
                    "two different types have the schema name {name}"
                );
                definitions.insert(name, definition);
            }
        }
    }
    schema
}
