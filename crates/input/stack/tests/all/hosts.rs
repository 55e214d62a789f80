//! Several hosts above one array.

use fullstroke_contract::Request;
use fullstroke_engine::{Finished, Observer};
use fullstroke_stack::{Overrides, Stack};
use fullstroke_units::Time;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Finished requests, by workload.
#[derive(Default)]
struct FinishedByWorkload(BTreeMap<u16, Vec<Finished>>);

impl Observer for FinishedByWorkload {
    fn finished(&mut self, finished: &Finished) {
        let span = finished.completion.finished.since(finished.arrived);
        assert_eq!(
            finished.completion.breakdown.response(),
            span,
            "{finished:?}"
        );
        self.0.entry(finished.workload).or_default().push(*finished);
    }
}

fn load(text: &str) -> Result<Stack, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.toml");
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../samples/pgbench.parquet");
    fs::write(
        &path,
        text.replace("PGBENCH", &sample.display().to_string()),
    )
    .unwrap();
    Stack::load(&path, &Overrides::default()).map_err(|error| error.to_string())
}

fn run(text: &str) -> (Stack, FinishedByWorkload) {
    let stack = load(text).unwrap_or_else(|error| panic!("{error}"));
    let mut seen = FinishedByWorkload::default();
    stack.build().unwrap().engine().run(&mut seen).unwrap();
    (stack, seen)
}

const VOLUME: &str = "[volume]\nlayout = \"raid0\"\ndrive = \"seagate-cheetah-9lp\"\ndrives = 2\n";
const READER: &str = "workload = { kind = \"synthetic\", requests = 400, size = \"8KiB\", \
                      arrivals = { process = \"closed\", outstanding = 4 } }\n";

fn two(first: &str, second: &str, shared: &str) -> String {
    format!(
        "[[hosts]]\nname = \"one\"\n{READER}{first}\n[[hosts]]\nname = \"two\"\n{READER}{second}\n[shared]\n{shared}\n{VOLUME}"
    )
}

#[test]
fn each_host_has_its_own_workload_elevator_and_addresses() {
    let (stack, seen) = run(&two(
        "elevator = \"deadline\"",
        "size = \"1GiB\"\nstart = \"1s\"",
        "cost = \"30us\"",
    ));
    assert_eq!(stack.workload_names(), ["one", "two"]);
    assert_eq!(
        seen.0.values().map(Vec::len).collect::<Vec<_>>(),
        [400, 400]
    );
    let second = &seen.0[&1];
    assert!(
        second
            .iter()
            .all(|finished| finished.extent.end().0 <= (1 << 30) / 512)
    );
    assert!(
        second
            .iter()
            .all(|finished| finished.arrived.as_nanos() >= 1_000_000_000)
    );
    // The hosts draw different addresses, because each host has its own seed.
    let starts = |of: u16| {
        seen.0[&of]
            .iter()
            .map(|finished| finished.extent.start)
            .collect::<Vec<_>>()
    };
    assert_ne!(starts(0), starts(1));
}

/// Extents that the drives read and write.
#[derive(Default)]
struct DriveExtents(Vec<(u64, u64)>);

impl Observer for DriveExtents {
    fn drive_io(&mut self, _: Time, _: usize, request: &Request) {
        if request.operation.transfers() {
            self.0
                .push((request.extent.start.0, request.extent.end().0));
        }
    }
}

/// Accesses cover the partition, and none is outside.
#[test]
fn requests_of_a_guest_stay_in_the_partition_at_the_place_that_it_chose() {
    let guests = r#"
[[hosts]]
name = "guest"
at = "141GB"
size = "4GB"
files = { kind = "ext2" }
memory = { size = "16MiB" }
workload = { kind = "postmark", number = 4000, transactions = 1000, subdirectories = 100, size_low = "5kB", size_high = "5001B" }
[volume]
layout = "jbod"
drive = "hitachi-7k1000c-1tb"
"#;
    let mut touched = DriveExtents::default();
    load(guests)
        .unwrap()
        .build()
        .unwrap()
        .engine()
        .run(&mut touched)
        .unwrap();
    let (first, end) = (141_000_000_000 / 512, 145_000_000_000 / 512);
    assert!(touched.0.len() > 1000, "{}", touched.0.len());
    assert!(
        touched
            .0
            .iter()
            .all(|&(from, to)| from >= first && to <= end)
    );
    let lowest = touched.0.iter().map(|&(from, _)| from).min().unwrap();
    let highest = touched.0.iter().map(|&(_, to)| to).max().unwrap();
    let covered = (highest - lowest) as f64 / (end - first) as f64;
    assert!(
        covered > 0.9,
        "20 MB of files lie in {covered} of the partition"
    );
}

#[test]
fn a_host_that_is_alone_has_the_array_for_itself() {
    let host =
        "workload = { kind = \"trace\", path = \"PGBENCH\", requests = 3000, beyond = \"wrap\" }\n";
    let (_, alone) = run(&format!(
        "[[hosts]]\nname = \"one\"\n{host}elevator = \"mq-deadline\"\n{VOLUME}"
    ));
    let (_, plain) = run(&format!(
        "{host}[host]\nelevator = \"mq-deadline\"\nflush = \"sequence\"\n{VOLUME}"
    ));
    let times = |seen: &FinishedByWorkload| {
        let time = |finished: &Finished| {
            (
                finished.origin,
                finished.arrived,
                finished.completion.finished,
            )
        };
        seen.0[&0].iter().map(time).collect::<Vec<_>>()
    };
    assert_eq!(times(&alone).len(), 3000);
    assert!(
        times(&alone) == times(&plain),
        "what is shared costs nothing unless it is said to"
    );
}

#[test]
fn what_many_share_costs_each_of_them() {
    let mean = |shared: &str| {
        let (_, seen) = run(&two("", "", shared));
        let all = seen.0.values().flatten();
        all.map(|finished| {
            finished
                .completion
                .finished
                .since(finished.arrived)
                .as_millis_f64()
        })
        .sum::<f64>()
            / 800.0
    };
    let (free, slow) = (mean("cost = \"0us\""), mean("cost = \"10ms\""));
    // Eight requests wait for a processor that needs 10 ms for each.
    assert!(
        (slow - 80.0).abs() < 2.0 && free < 40.0,
        "{free} and {slow} ms"
    );
}

#[test]
fn weights_are_shares() {
    let of = |weight: u32, fairness: &str| {
        let keys = format!("weight = {weight}");
        let shared = format!("cost = \"10ms\"\nfairness = \"{fairness}\"");
        let text = two("", &keys, &shared)
            .replace("requests = 400", "requests = 4000, duration = \"20s\"");
        let (_, seen) = run(&text);
        seen.0[&1].len() as f64 / seen.0[&0].len() as f64
    };
    assert!((of(1, "round-robin") - 1.0).abs() < 0.05);
    let three = of(3, "weighted");
    assert!((three - 3.0).abs() < 0.3, "{three}");
}

#[test]
fn what_cannot_be_is_refused_at_its_key() {
    let host = |keys: &str| format!("[[hosts]]\nname = \"one\"\n{READER}{keys}\n{VOLUME}");
    for (text, key, words) in [
        (
            format!("{READER}{}", host("")),
            "workload",
            "move it into each",
        ),
        (
            format!("{READER}[shared]\ncost = \"1us\"\n{VOLUME}"),
            "shared",
            "[[hosts]]",
        ),
        (
            format!("hosts = 3\n{VOLUME}"),
            "hosts",
            "expected [[hosts]]",
        ),
        (
            format!("[[hosts]]\nname = \"one\"\n{VOLUME}"),
            "hosts[0].workload.kind",
            "no workload",
        ),
        (host("size = \"1TB\""), "hosts[0].size", "left"),
        (host("weight = 0"), "hosts[0].weight", "at least 1"),
        (
            host("elevater = \"cfq\""),
            "hosts[0].elevater",
            "did you mean `elevator`",
        ),
        (
            host("[hosts.members]\nelevator = \"cfq\""),
            "hosts[0].members",
            "do not belong to this host",
        ),
        (
            two("", "", "fairness = \"weigthed\""),
            "shared.fairness",
            "did you mean `weighted`",
        ),
        (
            two("", "", "fairness = \"\""),
            "shared.fairness",
            "known: fifo, round-robin, weighted",
        ),
        (
            two("", "", "quantum = \"64KiB\""),
            "shared.quantum",
            "unknown key",
        ),
        (
            two("", "", "queue_depth = 0"),
            "shared.queue_depth",
            "at least 1",
        ),
        (
            two("", "", "").replace("\"two\"", "\"one\""),
            "hosts[1].name",
            "twice",
        ),
        (
            two("size = \"9GB\"", "size = \"9.5GB\"", ""),
            "hosts[1].size",
            "left",
        ),
        (
            host("size = \"0B\""),
            "hosts[0].size",
            "found less than a sector",
        ),
        (
            host("at = \"18GB\"\nsize = \"1GB\""),
            "hosts[0].size",
            "behind `at`",
        ),
        (
            host("at = \"1TB\"\nsize = \"1GB\""),
            "hosts[0].at",
            "the array has",
        ),
        (
            host("at = \"1000B\"\nsize = \"1GB\""),
            "hosts[0].at",
            "multiple of 512",
        ),
        (
            two("size = \"9GB\"", "at = \"8GB\"\nsize = \"1GB\"", ""),
            "hosts[1].at",
            "hosts[0] has bytes 0 to",
        ),
        (
            two("at = \"8GB\"", "", "addresses = \"whole\""),
            "hosts[0].at",
            "has no effect",
        ),
    ] {
        let error = load(&text)
            .err()
            .unwrap_or_else(|| panic!("accepted:\n{text}"));
        assert!(
            error.contains(&format!("`{key}`")) && error.contains(words),
            "{key}: {error}"
        );
    }
}

#[test]
fn what_is_shared_may_have_a_cache_and_an_elevator_of_its_own() {
    let reading = |shared: &str, name: &str| {
        let stack = load(&two("", "", shared)).unwrap_or_else(|error| panic!("{error}"));
        let outcome = stack
            .build()
            .unwrap()
            .engine()
            .run(&mut FinishedByWorkload::default())
            .unwrap();
        let mut all = outcome
            .counters
            .layers
            .iter()
            .flat_map(|layer| &layer.readings);
        all.find(|reading| reading.name == name)
            .map(|reading| reading.value)
    };
    assert_eq!(reading("cost = \"30us\"", "memory_hit_share"), None);
    let cached = "cost = \"30us\"\nelevator = \"mq-deadline\"\nqueue_depth = 8\nmemory = { size = \"64MiB\" }";
    assert!(reading(cached, "memory_hit_share").is_some());
    assert_eq!(reading(cached, "stage_requests"), Some(800.0));
    for (shared, key) in [
        ("elevatr = \"cfq\"", "shared.elevatr"),
        ("elevator = \"cfq\"\nfifo_batch = 2", "shared.fifo_batch"),
        ("memory = { size = \"4KiB\" }", "shared.memory.size"),
        ("files = { kind = \"ext2\" }", "shared.memory"),
        ("nr_requests = 4", "shared.nr_requests"),
    ] {
        let error = load(&two("", "", shared))
            .err()
            .unwrap_or_else(|| panic!("{shared} was accepted"));
        assert!(error.contains(&format!("`{key}`")), "{error}");
    }
}

const FILES: &str = "files = { kind = \"ext4\" }\nmemory = { size = \"8MiB\" }";

#[test]
fn disks_that_are_files_serve_their_hosts_and_cost_what_their_file_system_asks_for() {
    let sized = |size: &str, shared: &str| two(size, size, shared);
    let finished = |text: &str| {
        let (stack, seen) = run(text);
        assert_eq!(
            seen.0.values().map(Vec::len).collect::<Vec<_>>(),
            [400, 400]
        );
        let outcome = stack
            .build()
            .unwrap()
            .engine()
            .run(&mut FinishedByWorkload::default())
            .unwrap();
        let mut all = outcome
            .counters
            .layers
            .iter()
            .flat_map(|layer| &layer.readings);
        all.find(|reading| reading.name == "files_metadata_reads")
            .map(|reading| reading.value)
    };
    assert_eq!(finished(&sized("size = \"2GiB\"", "")), None);
    assert!(finished(&sized("size = \"2GiB\"", FILES)).unwrap() > 0.0);
}

#[test]
fn disks_that_cannot_be_files_are_refused_at_their_keys() {
    let sized = |size: &str, shared: &str| two(size, size, shared);
    for (text, key, words) in [
        (sized("", FILES), "hosts[0].size", "set its size"),
        (
            sized("size = \"1GiB\"\nat = \"2GiB\"", FILES),
            "hosts[0].at",
            "placed by the file system",
        ),
        (
            sized("size = \"1GiB\"", "files = { kind = \"ext4\" }"),
            "shared.memory",
            "metadata",
        ),
        (
            sized(
                "size = \"1GiB\"",
                &format!("addresses = \"whole\"\n{FILES}"),
            ),
            "shared.addresses",
            "a disk image of its own",
        ),
        (
            sized("size = \"1GiB\"", &FILES.replace("ext4", "raw")),
            "shared.files.kind",
            "expected a file system",
        ),
        (
            sized("size = \"1GiB\"", &FILES.replace("ext4", "ext5")),
            "shared.files.kind",
            "ext4",
        ),
        (
            sized(
                "size = \"1GiB\"",
                &FILES.replace("\"ext4\"", "\"ext4\", align = \"tracks\""),
            ),
            "shared.files.align",
            "guests",
        ),
        (
            sized("size = \"9.1GB\"", FILES),
            "shared.files",
            "no space is left",
        ),
    ] {
        let error = load(&text)
            .err()
            .unwrap_or_else(|| panic!("accepted:\n{text}"));
        assert!(
            error.contains(&format!("`{key}`")) && error.contains(words),
            "{key}: {error}"
        );
    }
}

/// Returns two clients of a file server with these keys, and a load for each.
fn clients(server: &str, load: &str) -> String {
    let host = |name: &str| {
        format!(
            "[[hosts]]\nname = \"{name}\"\nsize = \"1GiB\"\n[hosts.workload]\n\
             kind = \"synthetic\"\narrivals = {{ process = \"closed\", outstanding = 1 }}\n{load}\n"
        )
    };
    format!(
        "{}{}[shared]\nfiles = {{ kind = \"xfs\", cache = \"writeback\" }}\n\
         memory = {{ size = \"64MiB\" }}\nserver = {{ {server} }}\n{VOLUME}",
        host("one"),
        host("two")
    )
}

const FILE_WRITES: &str = "requests = 64\nsize = \"64KiB\"\nread_share = 0.0";
const FILE_READS: &str = "requests = 2\nsize = \"4MiB\"";

#[test]
fn clients_of_a_file_server_send_the_calls_of_their_protocol() {
    for (server, job, calls) in [
        ("protocol = \"nfs\"", FILE_WRITES, [0.0, 128.0, 0.0]),
        (
            "protocol = \"nfs\", wsize = \"32KiB\"",
            FILE_WRITES,
            [0.0, 256.0, 0.0],
        ),
        ("protocol = \"smb\"", FILE_WRITES, [0.0, 128.0, 0.0]),
        ("protocol = \"nfs\"", FILE_READS, [16.0, 0.0, 0.0]),
        ("protocol = \"smb\"", FILE_READS, [4.0, 0.0, 0.0]),
    ] {
        let (stack, _) = run(&clients(server, job));
        let mut engine = stack.build().unwrap().engine();
        let outcome = engine.run(&mut FinishedByWorkload::default()).unwrap();
        let layers = &outcome.counters.layers;
        let counted = ["server_reads", "server_writes", "server_commits"].map(|name| {
            let mut readings = layers.iter().flat_map(|layer| &layer.readings);
            readings.find(|reading| reading.name == name).unwrap().value
        });
        assert_eq!(counted, calls, "{server}, {job}");
    }
}

#[test]
fn a_file_server_without_its_file_system_or_with_a_foreign_key_is_refused() {
    let nfs = clients("protocol = \"nfs\"", FILE_READS);
    for (text, key) in [
        (
            nfs.replace("files = { kind = \"xfs\", cache = \"writeback\" }\n", ""),
            "shared.files",
        ),
        (
            nfs.replace(", cache = \"writeback\"", ""),
            "shared.files.cache",
        ),
        (
            nfs.replace("[shared]\n", "[shared]\nqueue_depth = 4\n"),
            "shared.queue_depth",
        ),
        (
            nfs.replace("\"nfs\"", "\"nfs\", strict_sync = true"),
            "shared.server.strict_sync",
        ),
        (
            nfs.replace("\"nfs\"", "\"nfs\", rsize = \"2MiB\""),
            "shared.server.rsize",
        ),
    ] {
        let error = load(&text)
            .err()
            .unwrap_or_else(|| panic!("accepted:\n{text}"));
        assert!(error.contains(&format!("`{key}`")), "{key}: {error}");
    }
}
