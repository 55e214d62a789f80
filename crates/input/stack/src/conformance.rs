//! Every key of every policy must have an effect. Two stacks that differ only in this key must give
//! different results under a suitable load. A key without a line in [`TUNABLES`] fails. Elevators
//! have the same test in their own crate.

use crate::layouts::LAYOUTS;
use crate::{Overrides, Stack, workload};
use fullstroke_contract::registry::{PolicyEntry, known_keys, schema_of};
use fullstroke_contract::{Extent, Operation, Request};
use fullstroke_controller::{ControllerConfig, DestageConfig};
use fullstroke_engine::{Finished, Observer};
use fullstroke_units::Time;
use fullstroke_workload::{ProcessConfig, addresses, arrivals};
use schemars::Schema;
use std::collections::{BTreeSet, HashMap};
use toml::{Table, Value};

/// One line per key: policy and key, two values (`-`: key absent), the name of the load in
/// [`LOADS`], and further settings, separated by `;`.
const TUNABLES: &str = include_str!("conformance/tunables.txt");

/// Stacks by name: `[name]`, then a stack file without the policy.
const LOADS: &str = include_str!("conformance/loads.toml");

/// For each kind of policy: the place of its keys in a stack file, and the key with the policy's
/// name.
const PLACES: &[(&str, &str, &str)] = &[
    ("layout", "volume", "layout"),
    ("slow", "volume.slow", ""),
    ("late", "volume.late", "policy"),
    ("xor", "volume", "discipline"),
    ("queue", "volume.drive_settings.queue", "discipline"),
    ("spin-down", "volume.drive_settings.spin_down", "policy"),
    ("workload", "workload", "kind"),
    ("process", "workload.processes.0", ""),
    ("arrivals", "workload.arrivals", "process"),
    ("addresses", "workload.addresses", "pattern"),
    ("link", "link", "kind"),
    ("cache", "cache", "kind"),
    ("opportunity", "opportunities.0", "kind"),
    ("replacement", "host.memory.replacement", "policy"),
    ("read-ahead", "host.memory.read_ahead", "policy"),
    ("write-back", "host.memory.write_back", "policy"),
    ("fairness", "shared", "fairness"),
    ("cost", "shared.cost", "model"),
    ("controller", "controller", ""),
    ("destage", "controller.destage", ""),
    ("array-order", "controller", "discipline"),
];

/// Keys without an effect in a run of one stack, with the reason.
const WITHOUT: &[(&str, &str)] = &[
    (
        "layout paraid cluster",
        "belongs to e-paraid, and is refused here",
    ),
    (
        "layout lzvs-geo member_zones",
        "of members that are drives the zones are known; tests of the layout and of arrays",
    ),
    (
        "layout mirror special_force",
        "allows a special vdev that is refused otherwise: tests of the pool",
    ),
    (
        "layout raidz1 special_force",
        "allows a special vdev that is refused otherwise: tests of the pool",
    ),
    (
        "layout raidz2 special_force",
        "allows a special vdev that is refused otherwise: tests of the pool",
    ),
    (
        "layout raidz3 special_force",
        "allows a special vdev that is refused otherwise: tests of the pool",
    ),
    (
        "layout draid1 special_force",
        "allows a special vdev that is refused otherwise: tests of the pool",
    ),
    (
        "layout draid2 special_force",
        "allows a special vdev that is refused otherwise: tests of the pool",
    ),
    (
        "layout draid3 special_force",
        "allows a special vdev that is refused otherwise: tests of the pool",
    ),
    (
        "layout mirror snapshot",
        "keeps old blocks, which shows when the pool is full: tests of the pool",
    ),
    (
        "layout raidz1 snapshot",
        "keeps old blocks, which shows when the pool is full: tests of the pool",
    ),
    (
        "layout raidz2 snapshot",
        "keeps old blocks, which shows when the pool is full: tests of the pool",
    ),
    (
        "layout raidz3 snapshot",
        "keeps old blocks, which shows when the pool is full: tests of the pool",
    ),
    (
        "layout draid1 snapshot",
        "keeps old blocks, which shows when the pool is full: tests of the pool",
    ),
    (
        "layout draid2 snapshot",
        "keeps old blocks, which shows when the pool is full: tests of the pool",
    ),
    (
        "layout draid3 snapshot",
        "keeps old blocks, which shows when the pool is full: tests of the pool",
    ),
    (
        "layout mirror autotrim",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout mirror trim",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout mirror trim_rate",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout raidz1 autotrim",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout raidz1 trim",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout raidz1 trim_rate",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout raidz2 autotrim",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout raidz2 trim",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout raidz2 trim_rate",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout raidz3 autotrim",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout raidz3 trim",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout raidz3 trim_rate",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout draid1 autotrim",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout draid1 trim",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout draid1 trim_rate",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout draid2 autotrim",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout draid2 trim",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout draid2 trim_rate",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout draid3 autotrim",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout draid3 trim",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    (
        "layout draid3 trim_rate",
        "tells drives of free space, which takes a disk no time: tests of the pool",
    ),
    ("layout xor failed", "none is accepted"),
    (
        "layout dm-zoned zones",
        "the drive file has the zones: tests of the layout",
    ),
    (
        "workload trace skip_bad",
        "an effect on damaged files only: tests of the trace readers",
    ),
];

/// Returns the kind, name and keys of each policy.
fn policies() -> Vec<(String, Schema)> {
    fn of<F>(kind: &str, registry: &[PolicyEntry<F>]) -> Vec<(String, Schema)> {
        let named = |entry: &PolicyEntry<F>| (format!("{kind} {}", entry.name), (entry.schema)());
        registry.iter().map(named).collect()
    }
    // Programs are workloads, too, but have their own conformance tests.
    let programs = fullstroke_programs::REGISTRY;
    let mut workloads = of("workload", &workload::REGISTRY);
    workloads.retain(|(policy, _)| {
        programs
            .iter()
            .all(|program| *policy != format!("workload {}", program.name))
    });
    [
        of("layout", LAYOUTS),
        vec![("slow".into(), schema_of::<fullstroke_drive::SlowConfig>())],
        of("late", fullstroke_volume::LATE_REGISTRY),
        of("xor", fullstroke_smart::discipline::REGISTRY),
        of("queue", fullstroke_drive::queue::REGISTRY),
        of("spin-down", fullstroke_drive::spin_down::REGISTRY),
        workloads,
        vec![("process".into(), schema_of::<ProcessConfig>())],
        of("arrivals", arrivals::REGISTRY),
        of("addresses", addresses::REGISTRY),
        of("link", fullstroke_link::REGISTRY),
        of("cache", fullstroke_blockcache::CACHE_REGISTRY),
        of("opportunity", fullstroke_opportunity::REGISTRY),
        of("replacement", fullstroke_memory::replacement::REGISTRY),
        of("read-ahead", fullstroke_memory::read_ahead::REGISTRY),
        of("write-back", fullstroke_memory::write_back::REGISTRY),
        of("fairness", fullstroke_stage::fairness::REGISTRY),
        of("cost", fullstroke_stage::cost::REGISTRY),
        vec![("controller".into(), schema_of::<ControllerConfig>())],
        vec![("destage".into(), schema_of::<DestageConfig>())],
        of("array-order", fullstroke_controller::discipline::REGISTRY),
    ]
    .concat()
}

/// Two values of a key, and a stack in which they lead to different results.
struct Tunable {
    policy: String,
    key: String,
    values: [String; 2],
    load: String,
    settings: Vec<(String, Value)>,
}

fn tunables() -> Vec<Tunable> {
    let lines = TUNABLES.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            let fields: Vec<&str> = line.split('|').map(str::trim).collect();
            let &[subject, one, other, load, ref settings @ ..] = &fields[..] else {
                panic!("tunables.txt, line {}: {line}", number + 1)
            };
            let (policy, key) = subject.rsplit_once(' ').unwrap();
            let settings = settings.iter().flat_map(|all| all.split(';'));
            let settings = settings.filter(|setting| !setting.trim().is_empty());
            let setting = |text: &str| {
                let (path, value) = text.split_once('=').unwrap();
                (path.trim().to_owned(), value_of(value))
            };
            Tunable {
                policy: policy.to_owned(),
                key: key.to_owned(),
                values: [one.to_owned(), other.to_owned()],
                load: load.to_owned(),
                settings: settings.map(setting).collect(),
            }
        })
        .collect()
}

fn value_of(text: &str) -> Value {
    let table: Table = format!("value = {text}")
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    table["value"].clone()
}

/// Sets the key at a path of table names and list indices. The value `-` removes the key.
fn set(root: &mut Value, path: &str, value: Value) {
    let (parents, key) = path.rsplit_once('.').unwrap_or(("", path));
    let mut at = root;
    for part in parents.split('.').filter(|part| !part.is_empty()) {
        at = match part.parse::<usize>() {
            Ok(index) => {
                let list = at.as_array_mut().unwrap();
                if list.len() <= index {
                    // A line of the list may name an item that the load does not have, such as the
                    // first opportunity.
                    list.push(Value::Table(Table::new()));
                }
                &mut list[index]
            }
            Err(_) => {
                let list = part == "opportunities" || part == "processes";
                let empty = if list {
                    Value::Array(Vec::new())
                } else {
                    Value::Table(Table::new())
                };
                let table = at.as_table_mut().unwrap();
                table.entry(part.to_owned()).or_insert(empty)
            }
        };
    }
    let table = at.as_table_mut().unwrap();
    if value.as_str() == Some("-") {
        table.remove(key);
    } else {
        table.insert(key.to_owned(), value);
    }
}

impl Tunable {
    /// Returns the stack file with one of the two values.
    fn stack(&self, value: &str) -> String {
        let loads: Table = LOADS.parse().unwrap();
        let load = loads.get(&self.load);
        let mut stack = load
            .unwrap_or_else(|| panic!("no load `{}`", self.load))
            .clone();
        let (kind, name) = self.policy.split_once(' ').unwrap_or((&self.policy, ""));
        let (_, place, names) = PLACES.iter().find(|place| place.0 == kind).unwrap();
        if !names.is_empty() {
            set(&mut stack, &format!("{place}.{names}"), name.into());
        }
        for (path, value) in &self.settings {
            set(&mut stack, path, value.clone());
        }
        if value != "-" {
            set(
                &mut stack,
                &format!("{place}.{}", self.key),
                value_of(value),
            );
        }
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");
        toml::to_string(&stack).unwrap().replace("$ROOT", root)
    }

    /// Runs the stack `text`, which has one of the two values, and returns all results.
    fn answers(&self, value: &str, text: &str) -> RunResults {
        let whose = format!("{} `{}` = {value}", self.policy, self.key);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stack.toml");
        std::fs::write(&path, text).unwrap();
        // The keys `devices` and `columns` show an effect only with traces of these two kinds.
        std::fs::write(folder.path().join("two-devices.trace"), two_devices()).unwrap();
        std::fs::write(folder.path().join("columns.csv"), columns()).unwrap();
        let stack = Stack::load(&path, &Overrides::default())
            .unwrap_or_else(|error| panic!("{whose}: {error}\n{text}"));
        let mut answers = RunResults::default();
        let outcome = stack.build().unwrap().engine().run(&mut answers);
        let outcome = outcome.unwrap_or_else(|error| panic!("{whose}: {error}\n{text}"));
        assert!(outcome.completed > 0, "{whose}: nothing was answered");
        // Compared as text, because counters may be NaN, and NaN equals nothing.
        answers.counted = format!("{:?}", outcome.counters);
        answers
    }
}

/// Returns a trace of two devices in a format without a fixed unit of time.
fn two_devices() -> String {
    (1..200)
        .map(|at| format!("{}000000 {} {} 8 1\n", at * 7, at % 2, at * 1000))
        .collect()
}

/// Returns a table whose columns have two meanings.
fn columns() -> String {
    let rows = (1..50).map(|at| format!("{at},{at},{},W,4096\n", at * 4096));
    "time_ms,elapsed,offset_bytes,op,size_bytes\n".to_owned() + &rows.collect::<String>()
}

/// The results of a run: extent and times of each request, time and extent of each drive request,
/// and all counters.
#[derive(Debug, Default, PartialEq)]
struct RunResults {
    finished: Vec<(u64, Extent, Time, Time)>,
    ios: Vec<(Time, usize, Operation, Extent)>,
    counted: String,
}

impl Observer for RunResults {
    fn finished(&mut self, finished: &Finished) {
        let (arrived, ended) = (finished.arrived, finished.completion.finished);
        self.finished
            .push((finished.origin, finished.extent, arrived, ended));
    }
    fn drive_io(&mut self, now: Time, drive: usize, request: &Request) {
        self.ios
            .push((now, drive, request.operation, request.extent));
    }
}

#[test]
fn every_key_has_a_line_and_every_line_a_key() {
    let keys = |(policy, schema): (String, Schema)| {
        let keys = known_keys(&schema).into_iter();
        keys.map(move |key| format!("{policy} {key}"))
    };
    let known: BTreeSet<String> = policies().into_iter().flat_map(keys).collect();
    let without = WITHOUT.iter().map(|(key, _)| (*key).to_owned());
    let told: BTreeSet<String> = tunables()
        .iter()
        .map(|tunable| format!("{} {}", tunable.policy, tunable.key))
        .chain(without)
        .collect();
    let missing: Vec<_> = known.difference(&told).collect();
    assert!(
        missing.is_empty(),
        "no test shows what these do; add them to conformance/tunables.txt: {missing:#?}"
    );
    let unknown: Vec<_> = told.difference(&known).collect();
    assert!(unknown.is_empty(), "there are no such keys: {unknown:#?}");
}

#[test]
fn every_key_has_an_effect() {
    let tunables = tunables();
    let equal: Vec<String> = std::thread::scope(|scope| {
        // Two threads, because the runs take half a minute and the machines of the checks have two
        // cores.
        let half = tunables.len().div_ceil(2);
        let parts: Vec<_> = tunables
            .chunks(half)
            .map(|part| scope.spawn(|| without_effect(part)))
            .collect();
        let joined = parts.into_iter().map(|part| part.join());
        joined
            .flat_map(|part| part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    assert!(
        equal.is_empty(),
        "these pairs of values do the same: {equal:#?}"
    );
}

fn without_effect(tunables: &[Tunable]) -> Vec<String> {
    // Absent keys leave the load unchanged. Such a stack runs only once.
    let mut known: HashMap<String, RunResults> = HashMap::new();
    let same = tunables.iter().filter(|tunable| {
        let stacks = tunable.values.each_ref().map(|value| {
            let stack = tunable.stack(value);
            known
                .entry(stack.clone())
                .or_insert_with(|| tunable.answers(value, &stack));
            stack
        });
        known[&stacks[0]] == known[&stacks[1]]
    });
    same.map(|tunable| {
        let [one, other] = &tunable.values;
        format!("{} `{}`: {one} and {other}", tunable.policy, tunable.key)
    })
    .collect()
}
