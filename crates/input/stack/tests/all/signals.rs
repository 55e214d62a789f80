//! Storage that asks hosts for dirty pages, offers tracks to hosts, and verifies its writes.

use fullstroke_contract::Counters;
use fullstroke_engine::{Finished, Observer};
use fullstroke_stack::{Overrides, Stack};
use fullstroke_units::Duration;
use std::fs;

const HOSTS: &str = r#"
[[hosts]]
name = "reader"
size = "5GB"
memory = { size = "64MiB", write_back = "2.6.17" }
workload = { kind = "processes", duration = "90s", processes = [{ think_time = "40ms", region_size = "5GB" }] }
[[hosts]]
name = "writer"
size = "5GB"
memory = { size = "64MiB", write_back = "2.6.17" }
workload = { kind = "processes", duration = "90s", processes = [{ read_share = 0, think_time = "15ms", region_size = "5GB" }] }
[volume]
layout = "jbod"
drive = "maxtor-atlas-10k-v-73gb-c0k"
"#;

/// Longest wait of the reader.
#[derive(Default)]
struct Longest(Duration);

impl Observer for Longest {
    fn finished(&mut self, finished: &Finished) {
        if finished.workload == 0 {
            self.0 = self
                .0
                .max(finished.completion.finished.since(finished.arrived));
        }
    }
}

fn load(text: &str) -> Result<Stack, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.toml");
    fs::write(&path, text).unwrap();
    Stack::load(&path, &Overrides::default()).map_err(|error| error.to_string())
}

/// Returns the reader's longest wait in ms, and the counters.
fn run(text: &str) -> (f64, Counters) {
    let mut longest = Longest::default();
    let end = load(text)
        .unwrap()
        .build()
        .unwrap()
        .engine()
        .run(&mut longest)
        .unwrap();
    (longest.0.as_millis_f64(), end.counters)
}

fn reading(counters: &Counters, name: &str) -> f64 {
    let layers = counters.layers.iter().flat_map(|layer| &layer.readings);
    layers
        .filter(|reading| reading.name == name)
        .map(|reading| reading.value)
        .sum()
}

#[test]
fn a_disk_that_pulls_when_it_is_idle_leaves_periodic_write_back_little_and_readers_alone() {
    let (regular, counters) = run(HOSTS);
    assert_eq!(reading(&counters, "memory_written_pulled_mb"), 0.0);
    let periodic = reading(&counters, "memory_written_periodic_mb");
    assert!(periodic > 10.0, "{periodic} MB");
    for kind in ["idle-flush", "idle-flush-on"] {
        let table = format!("[[opportunities]]\nkind = \"{kind}\"\nwait = \"20ms\"\n");
        let every = if kind == "idle-flush" {
            "every = \"40ms\"\n"
        } else {
            ""
        };
        let (longest, counters) = run(&format!("{HOSTS}{table}{every}"));
        assert!(
            longest < regular / 4.0,
            "{kind}: {longest} ms, and {regular} without"
        );
        let left = reading(&counters, "memory_written_periodic_mb");
        assert!(
            left < periodic / 4.0,
            "{kind}: {left} MB, and {periodic} without"
        );
        let (asked, pulled) = (
            reading(&counters, "signals_pulled_mb"),
            reading(&counters, "memory_written_pulled_mb"),
        );
        assert!(
            pulled > 10.0 && pulled <= asked,
            "{kind}: {pulled} of {asked} MB"
        );
    }
}

/// Returns the data that each host's page cache wrote for PULLs. The last value is that of the
/// shared page cache.
fn pulled_mb(counters: &Counters) -> Vec<f64> {
    let all = counters.layers.iter().flat_map(|layer| &layer.readings);
    all.filter(|reading| reading.name == "memory_written_pulled_mb")
        .map(|reading| reading.value)
        .collect()
}

#[test]
fn memory_that_hosts_share_hands_on_what_is_pulled_and_keeps_no_answer_back() {
    // If regions begin inside pages, a page of a guest touches two pages of the shared memory.
    let hosts = HOSTS.replace("5GB", "5GiB");
    for kind in ["idle-flush", "idle-flush-on"] {
        let every = if kind == "idle-flush" {
            "every = \"40ms\"\n"
        } else {
            ""
        };
        let opportunity = format!("[[opportunities]]\nkind = \"{kind}\"\nwait = \"20ms\"\n{every}");
        let (_, alone) = run(&format!("{hosts}{opportunity}"));
        let (_, counters) = run(&format!(
            "[shared]\nmemory = {{ size = \"64MiB\" }}\n{hosts}{opportunity}"
        ));
        let (alone, with) = (pulled_mb(&alone), pulled_mb(&counters));
        let ([_, writer], [_, beside, shared]) = (&alone[..], &with[..]) else {
            panic!("{alone:?}, {with:?}")
        };
        assert!(
            *beside > 0.9 * writer,
            "{kind}: the writer wrote {beside} MB, {writer} with nothing between"
        );
        // A page that is overwritten during its write-back goes down twice.
        assert!(
            *shared >= *beside && *shared < 1.1 * beside,
            "{kind}: {shared} of {beside} MB went on down"
        );
        let asked = reading(&counters, "signals_pulled_mb");
        assert!(*shared <= asked, "{kind}: {shared} of {asked} MB");
    }
}

#[test]
fn guests_write_for_drives_that_are_about_to_stop_through_the_memory_that_they_share() {
    let guests = r#"
[[hosts]]
name = "one"
memory = { size = "64MiB", write_back = { policy = "today", dirty_expire = "30min" } }
workload = { kind = "synthetic", duration = "2h", read_share = 0, arrivals = { process = "poisson", rate_per_s = 0.02 } }
[[hosts]]
name = "two"
memory = { size = "64MiB", write_back = { policy = "today", dirty_expire = "30min" } }
workload = { kind = "synthetic", duration = "2h", arrivals = { process = "poisson", rate_per_s = 0.001 } }
[[opportunities]]
kind = "pull-before-stop"
[volume]
layout = "jbod"
drive = "seagate-ironwolf-8tb"
drive_settings = { spin_down = { policy = "fixed", after = "5min" } }
"#;
    let (_, alone) = run(guests);
    let (_, with) = run(&format!(
        "[shared]\nmemory = {{ size = \"64MiB\" }}\n{guests}"
    ));
    let (guests, shared) = (pulled_mb(&alone), pulled_mb(&with));
    assert!(
        guests[0] > 0.0 && shared[0] > 0.8 * guests[0],
        "{shared:?}, {guests:?} with nothing between"
    );
    assert!(shared[2] >= shared[0], "{shared:?}");
    let answered = reading(&with, "stop_pulls_answered");
    assert!(
        answered > 0.0 && answered >= reading(&alone, "stop_pulls_answered") - 1.0,
        "{answered}"
    );
}

/// Two guests write in pauses, above shared memory. The drive asks for dirty data around each read.
#[test]
fn a_pull_of_addresses_finds_the_guest_that_has_them_dirty() {
    let guests = r#"
[shared]
memory = { size = "64MiB" }
[[hosts]]
name = "one"
size = "1GiB"
memory = { size = "64MiB", write_back = "2.6.17" }
workload = { kind = "processes", duration = "20s", processes = [{ think_time = "5ms", region_size = "1GiB", read_share = 0.5 }] }
[[hosts]]
name = "two"
size = "1GiB"
memory = { size = "64MiB", write_back = "2.6.17" }
workload = { kind = "processes", duration = "20s", processes = [{ think_time = "5ms", region_size = "1GiB", read_share = 0.5 }] }
[[opportunities]]
kind = "free-block-pull"
tracks = 129
[volume]
layout = "jbod"
drive = "maxtor-atlas-10k-v-73gb-c0k"
drive_settings = { buffer = { write_back = false }, queue = { background = {} } }
"#;
    let (_, counters) = run(guests);
    let pulled = pulled_mb(&counters);
    assert!(pulled[0] > 0.1 && pulled[1] > 0.1, "{pulled:?}");
    assert!(pulled[2] >= pulled[0] + pulled[1], "{pulled:?}");
    // If each disk is a file, addresses are translated through the file's place.
    let on_files =
        |keys: &str| guests.replace("[shared]\n", &format!("[shared]\nfiles = {{ {keys} }}\n"));
    for keys in ["kind = \"ext2\"", "kind = \"xfs\""] {
        let pulled = pulled_mb(&run(&on_files(keys)).1);
        assert!(pulled[0] > 0.1 && pulled[1] > 0.1, "{keys}: {pulled:?}");
    }
}

#[test]
fn guests_hear_what_is_pulled_of_any_through_files_that_are_their_disks() {
    let opportunity = "[[opportunities]]\nkind = \"idle-flush-on\"\nwait = \"20ms\"\n";
    let (_, alone) = run(&format!("{HOSTS}{opportunity}"));
    let writer = pulled_mb(&alone)[1];
    for cache in ["none", "writeback"] {
        let files = format!(
            "files = {{ kind = \"ext4\", cache = \"{cache}\" }}\nmemory = {{ size = \"64MiB\" }}\n"
        );
        let (_, counters) = run(&format!("[shared]\n{files}{HOSTS}{opportunity}"));
        let beside = pulled_mb(&counters)[1];
        assert!(
            beside > 0.8 * writer,
            "{cache}: the writer wrote {beside} MB, {writer} in a part of the disk"
        );
    }
}

/// Look-ups in the first 16 MB, beside a scan.
const LOOKUPS: &str = r#"
[workload]
kind = "processes"
duration = "60s"
processes = [
    { name = "lookups", count = 4, think_time = "10ms", region_size = "16MB" },
    { name = "scan", addresses = { pattern = "sequential" }, size = "128KiB", region_start = "20GB", region_size = "40GB" },
]
[host]
memory = { size = "2MiB", read_ahead = "none" }
pushed = { size = "32MiB" }
[[opportunities]]
kind = "track-push"
[volume]
layout = "jbod"
drive = "maxtor-atlas-10k-v-73gb-c0k"
[volume.drive_settings.buffer]
segments = 32
segment_sectors = 1144
read_ahead = "whole-track"
"#;

#[test]
fn tracks_in_use_are_pushed_before_a_scan_sweeps_them_from_the_buffer() {
    for when in ["window", "eviction", "blocking"] {
        let (_, counters) = run(&LOOKUPS.replace(
            "\"track-push\"",
            &format!("\"track-push\"\nwhen = \"{when}\""),
        ));
        let hits = reading(&counters, "pushed_hit_share");
        assert!(hits > 0.1, "{when}: {hits}");
        let (offered, fetched) = (
            reading(&counters, "signals_pushed_mb"),
            reading(&counters, "pushed_fetched_mb"),
        );
        let refused = reading(&counters, "pushed_refused_mb");
        assert!(
            (offered - fetched - refused).abs() < 1e-6,
            "{when}: {offered} = {fetched} + {refused}"
        );
        let held = reading(&counters, "signals_held_ms");
        assert_eq!(held > 0.0, when == "blocking", "{when}: {held} ms");
    }
    let (_, counters) = run(&LOOKUPS.replace(
        "pushed = { size = \"32MiB\" }",
        "pushed = { size = \"256KiB\" }",
    ));
    assert!(reading(&counters, "pushed_wasted_mb") > 0.0);
}

/// A writer with pauses, on a drive with faulty writes.
const WRITER: &str = r#"
[workload]
kind = "processes"
requests = 600
processes = [{ read_share = 0.3, think_time = "300ms", exponential = true, region_size = "1GB", synchronous = true }]
[[opportunities]]
kind = "idle-verify"
wait = "20ms"
[volume]
layout = "jbod"
drive = "seagate-cheetah-9lp"
drive_settings = { faults = { rate = 0.1, misdirected = 0 } }
"#;

#[test]
fn writes_that_go_wrong_are_found_and_mended_while_nothing_comes() {
    for volume in [
        "layout = \"jbod\"",
        "layout = \"raid0\"\nchunk = \"64KiB\"\ndrives = 3",
    ] {
        let text = WRITER.replace("layout = \"jbod\"", volume);
        let (_, counters) = run(&text);
        let faults = reading(&counters, "faults_lost") + reading(&counters, "faults_torn");
        assert!(faults > 20.0, "{volume}: {faults}");
        // A faulty write is not found if it is overwritten before its verification, or if the run
        // ends first.
        let found = reading(&counters, "verify_found");
        assert!(
            found >= 0.9 * faults && found <= faults,
            "{volume}: {found} of {faults}"
        );
        let (wrong, left) = (
            reading(&counters, "faults_wrong_mb"),
            reading(&counters, "verify_left_mb"),
        );
        assert!(
            wrong <= left + 0.07,
            "{volume}: {wrong} MB are wrong, {left} are unverified"
        );
        let (_, without) = run(&text.replace(
            "kind = \"idle-verify\"\nwait = \"20ms\"",
            "kind = \"idle-verify\"\nwait = \"1h\"",
        ));
        assert_eq!(reading(&without, "verify_found"), 0.0);
        assert!(
            reading(&without, "faults_wrong_mb") > wrong + 0.05,
            "{volume}"
        );
    }
}

#[test]
fn what_is_in_a_drives_write_cache_is_verified_on_the_medium() {
    let cached = WRITER.replace("faults = {", "buffer = { segments = 16, segment_sectors = 256, write_segments = 8, write_back = true, read_hits_on_written = true }, faults = {");
    let (_, counters) = run(&cached);
    let faults = reading(&counters, "faults_lost") + reading(&counters, "faults_torn");
    assert!(reading(&counters, "verify_found") >= 0.9 * faults && faults > 20.0);
}

#[test]
fn what_cannot_be_verified_or_go_wrong_is_refused() {
    let refused = |text: &str| load(text).err().unwrap();
    let raid = WRITER.replace(
        "layout = \"jbod\"",
        "layout = \"raid5\"\nchunk = \"64KiB\"\ndrives = 4",
    );
    assert!(
        refused(&raid).contains("a layout without redundancy"),
        "{}",
        refused(&raid)
    );
    let error = refused(&WRITER.replace(
        "misdirected = 0",
        "at = [{ lbn = 99999999999, kind = \"lost\" }]",
    ));
    assert!(
        error.contains("at[0].lbn") && error.contains("the drive has sectors 0 to"),
        "{error}"
    );
    let error = refused(&WRITER.replace("rate = 0.1", "rate = 2"));
    assert!(error.contains("faults.rate"), "{error}");
}

/// Rare requests, above drives where half of the writes are faulty.
const ALONE: &str = r#"
[workload]
kind = "processes"
requests = 60
processes = [{ read_share = 0.3, size = "64KiB", think_time = "20s", exponential = true, region_size = "1GB", synchronous = true }]
[[opportunities]]
kind = "idle-scrub"
at_a_time = "8MiB"
every = "1s"
[volume]
layout = "raid1"
drives = 2
drive = "seagate-cheetah-9lp"
drive_settings = { faults = { rate = 0.5 } }
"#;

#[test]
fn a_scrub_in_idle_time_finds_what_is_wrong_on_any_member() {
    let nested = "layout = \"raid0\"\nchunk = \"64KiB\"\n[[volume.members]]\nlayout = \"raid1\"\ndrives = 2\n\
                  drive = \"seagate-cheetah-9lp\"\ndrive_settings = { faults = { rate = 0.5 } }\n\
                  [[volume.members]]\nlayout = \"raid1\"\ndrives = 2\ndrive = \"seagate-cheetah-9lp\"\n";
    let volume = &ALONE[ALONE.find("layout = ").unwrap()..];
    let drives = |layout: &str, drives: u32| {
        volume.replace(
            "\"raid1\"\ndrives = 2",
            &format!("\"{layout}\"\nchunk = \"64KiB\"\ndrives = {drives}"),
        )
    };
    let jbod = volume.replace("\"raid1\"\ndrives = 2", "\"jbod\"");
    for volume_of in [
        volume.to_owned(),
        jbod,
        drives("raid5", 3),
        drives("raid6", 4),
        nested.to_owned(),
    ] {
        let text = ALONE.replace(volume, &volume_of);
        let (_, counters) = run(&text);
        let passes = reading(&counters, "scrub_passes");
        assert!(passes > 1.0, "{volume_of}: {passes}");
        let drive_mb = reading(&counters, "scrub_read_mb") / passes;
        assert!(
            (9_000.0..9_200.0).contains(&drive_mb),
            "{volume_of}: {drive_mb} MB a pass"
        );
        assert!(reading(&counters, "scrub_found") > 0.0, "{volume_of}");
        assert_eq!(reading(&counters, "scrub_unread_mb"), 0.0, "{volume_of}");
        let (_, counters) = run(&text.replace("rate = 0.5", "rate = 0"));
        assert_eq!(reading(&counters, "scrub_found"), 0.0, "{volume_of}");
    }
}

#[test]
fn a_scrub_is_refused_where_something_answers_for_the_media() {
    let refused = |text: &str| load(text).err().unwrap();
    let error = refused(&format!("{ALONE}[controller]\n"));
    assert!(
        error.contains("opportunities[0].kind") && error.contains("leave [controller] out"),
        "{error}"
    );
    let error = refused(&format!("{ALONE}[host]\nmembers = {{}}\n"));
    assert!(error.contains("remove [host.members]"), "{error}");
}

#[test]
fn no_opportunity_waits_for_longer_than_a_run_lasts() {
    let with = |wait: &str| {
        load(&format!(
            "{HOSTS}[[opportunities]]\nkind = \"idle-flush-on\"\nwait = \"{wait}\"\n"
        ))
    };
    let error = with("90s").err().unwrap();
    assert!(
        error.contains("opportunities[0].wait")
            && error.contains("less than 90s, the length of the run"),
        "{error}"
    );
    assert!(with("89s").is_ok());
    // A workload without a duration may last as long as the wait.
    assert!(load(&ALONE.replace("at_a_time = \"8MiB\"", "wait = \"240h\"")).is_ok());
}

#[test]
fn what_cannot_be_says_why() {
    let refused = |text: &str| load(text).err().unwrap();
    let with = |table: &str| format!("{HOSTS}[[opportunities]]\n{table}\n");
    assert!(refused(&with("")).contains("opportunities[0].kind"));
    assert!(refused(&with("kind = \"idle-flsh\"")).contains("did you mean `idle-flush`?"));
    assert!(
        refused(&with("kind = \"idle-flush\"\nflush = \"100B\""))
            .contains("opportunities[0].flush")
    );
    assert!(refused(&format!("opportunities = 3\n{HOSTS}")).contains("[[opportunities]]"));
    let many = format!(
        "{HOSTS}{}",
        "[[opportunities]]\nkind = \"idle-flush\"\n".repeat(65)
    );
    assert!(refused(&many).contains("found 65; expected 64 at most"));
    let no_memory = "[workload]\nkind = \"synthetic\"\nrequests = 9\narrivals = { process = \"closed\" }\n[[opportunities]]\nkind = \"idle-flush\"\n\
                     [volume]\nlayout = \"jbod\"\ndrive = \"seagate-cheetah-9lp\"\n";
    assert!(refused(no_memory).contains("no dirty data to ask for"));
    assert!(
        refused(&with("kind = \"idle-flush\"\nflush = \"1GiB\""))
            .contains("the largest page cache of a host")
    );
    let unheard = refused(&with("kind = \"track-push\""));
    assert!(
        unheard.contains("opportunities[0]") && unheard.contains("no host has [host.pushed]"),
        "{unheard}"
    );
    let keeps = LOOKUPS.replace(
        "[volume]\nlayout = \"jbod\"",
        "[volume]\nlayout = \"raid0\"\ndrives = 2\nchunk = \"64KiB\"",
    );
    assert!(
        refused(&keeps).contains("there are no tracks to offer"),
        "{}",
        refused(&keeps)
    );
}

#[test]
fn clients_of_a_stack_that_is_served_are_told_but_nothing_is_done_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.toml");
    let load = |kind: &str| {
        let volume = "[volume]\nlayout = \"jbod\"\ndrive = \"seagate-cheetah-9lp\"\n";
        fs::write(
            &path,
            format!("[[opportunities]]\nkind = \"{kind}\"\n{volume}"),
        )
        .unwrap();
        Stack::load_for_clients(&path, &Overrides::default())
            .unwrap()
            .serve()
            .map(drop)
    };
    load("idle-flush").unwrap();
    load("track-push").unwrap();
    let error = load("idle-verify").unwrap_err();
    assert!(
        error
            .to_string()
            .contains("which a served stack cannot carry out on its bytes"),
        "{error}"
    );
}

/// Four readers for one minute. The host gives the drive one request at a time.
const BUSY: &str = r#"
[host]
elevator = "noop"
queue_depth = 1
[workload]
kind = "processes"
duration = "20s"
processes = [{ count = 4 }]
[volume]
layout = "jbod"
drive = "seagate-cheetah-9lp"
"#;

#[test]
fn a_drive_reads_free_blocks_at_no_cost_and_an_array_at_some() {
    let (plain, counters) = run(BUSY);
    assert_eq!(reading(&counters, "freeblock_read_mb"), 0.0);
    let (inside, counters) = run(&format!("{BUSY}drive_settings = {{ freeblock = {{}} }}\n"));
    assert_eq!(inside, plain, "the longest wait is the same");
    let free = reading(&counters, "freeblock_potential_share");
    assert!((0.1..0.6).contains(&free), "{free}");
    let (_, counters) = run(&format!("{BUSY}[[opportunities]]\nkind = \"free-block\"\n"));
    let outside = reading(&counters, "freeblock_potential_share");
    assert!(
        outside > 0.02 && outside < free,
        "{outside}, and {free} inside"
    );
}

#[test]
fn free_blocks_of_what_is_not_one_drive_are_refused() {
    let table = "[[opportunities]]\nkind = \"free-block\"\n";
    let stack =
        format!("{BUSY}{table}").replace("\"jbod\"", "\"raid0\"\ndrives = 2\nchunk = \"64KiB\"");
    let refused = load(&stack).err().unwrap();
    assert!(
        refused.contains("opportunities[0].kind") && refused.contains("several drives"),
        "{refused}"
    );
    let stack = format!("{BUSY}drive_settings = {{ freeblock = {{ margin_ms = 6.0 }} }}\n");
    let refused = load(&stack).err().unwrap();
    assert!(refused.contains("freeblock.margin_ms"), "{refused}");
}

/// Two hosts. One host reads data that the other may hold.
const FRIENDS: &str = r#"
[[hosts]]
name = "one"
elevator = "mq-deadline"
memory = { size = "16MiB", read_ahead = "none" }
workload = { kind = "synthetic", duration = "60s", read_share = 0.9, region_size = "64MB", arrivals = { process = "poisson", rate_per_s = 50 } }
[[hosts]]
name = "two"
memory = { size = "16MiB", read_ahead = "none" }
workload = { kind = "synthetic", duration = "60s", read_share = 0.9, region_size = "64MB", arrivals = { process = "poisson", rate_per_s = 50 } }
[shared]
addresses = "whole"
[volume]
layout = "jbod"
drive = "maxtor-atlas-10k-v-73gb-c0k"
"#;

#[test]
fn hosts_answer_each_other_from_their_page_caches() {
    let with =
        |keys: &str| FRIENDS.replace("[volume]", &format!("cooperation = {{ {keys} }}\n[volume]"));
    let written = |counters: &Counters| reading(counters, "memory_written_periodic_mb");
    let (alone, before) = run(FRIENDS);
    let (nobody, counters) = run(&with("log = 0"));
    assert_eq!(
        (nobody, written(&counters)),
        (alone, written(&before)),
        "an empty log changes nothing"
    );
    let (_, counters) = run(&with(""));
    let told = |name: &str| reading(&counters, &format!("cooperation_{name}"));
    assert!(
        told("served_share") > 0.05 && told("refused") > 0.0,
        "{counters:?}"
    );
    assert_eq!(told("asked"), told("served") + told("refused"));
    assert!((told("served_mb") - told("served") * 0.004096).abs() < 1e-6);
}

#[test]
fn cooperation_that_cannot_be_is_refused() {
    let with =
        |keys: &str| FRIENDS.replace("[volume]", &format!("cooperation = {{ {keys} }}\n[volume]"));
    for (text, part) in [
        (
            with("").replace("\"whole\"", "\"parts\""),
            "`shared.cooperation`: cooperation needs addresses = \"whole\"",
        ),
        (
            with("mb_per_s = 0"),
            "`shared.cooperation.mb_per_s`: found 0",
        ),
        (
            with("")
                .replace("memory = ", "pushed = ")
                .replace(", read_ahead = \"none\"", ""),
            "0 of them with memory",
        ),
        (with("latancy = \"1ms\""), "unknown field `latancy`"),
    ] {
        let error = load(&text).err().unwrap();
        assert!(error.contains(part), "{error}");
    }
}

/// Readers beside a writer. The host delays the write-back of the writer's pages, and the drive
/// delays writes as well.
const PUT_OFF: &str = r#"
[host]
memory = { size = "64MiB", write_back = "2.6.17" }
[workload]
kind = "processes"
duration = "40s"
processes = [
    { count = 4, region_size = "1GB" },
    { read_share = 0, think_time = "20ms", exponential = true, region_size = "1GB" },
]
[volume]
layout = "jbod"
drive = "maxtor-atlas-10k-v-73gb-c0k"
drive_settings = { buffer = { write_back = false }, queue = { background = { idle = "1s" } } }
"#;

#[test]
fn what_is_pulled_where_the_arm_will_be_is_written_for_nothing() {
    let (_, counters) = run(PUT_OFF);
    let share = |counters: &_| {
        let [free, idle, late] =
            ["free", "idle", "late"].map(|how| reading(counters, &format!("background_{how}_mb")));
        free / (free + idle + late)
    };
    let alone = share(&counters);
    let (_, counters) = run(&format!(
        "{PUT_OFF}[[opportunities]]\nkind = \"free-block-pull\"\n"
    ));
    let pulled = share(&counters);
    assert!(reading(&counters, "freeblock_pulled_mb") > 0.0);
    assert!(
        pulled > 0.9 && pulled > alone,
        "{pulled}, and {alone} where nobody is asked"
    );
}

#[test]
fn writes_that_a_buffer_takes_do_not_wait_for_their_sector() {
    let refused = load(&PUT_OFF.replace("write_back = false", "write_back = true"))
        .err()
        .unwrap();
    assert!(
        refused.contains("queue.background") && refused.contains("buffer.write_back = false"),
        "{refused}"
    );
    let several = PUT_OFF.replace("\"jbod\"", "\"raid5\"\ndrives = 3\nchunk = \"64KiB\"");
    load(&format!(
        "{several}[[opportunities]]\nkind = \"idle-flush\"\n"
    ))
    .unwrap();
}
