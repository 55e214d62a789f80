//! The member I/O of OpenZFS in a running kernel, beside the model's.
//!
//! `samples/oracle/zfs/*.txt` are results of `tools/kernel-lab.py --zfs`: OpenZFS 2.3.2 on Linux 6.1 with
//! four allocators, a processor of 10^9 instructions a second, and members that need 200 ms for each
//! request, any number at a time. Slow members, so that the time of the processor hardly counts.

use super::*;

#[path = "../../../../samples/oracle/kernel_lab.rs"]
mod kernel_lab;
use kernel_lab::{number, random};

const LOADS: &str = include_str!("../../../../samples/oracle/zfs/loads.txt");
const MORE: &str = include_str!("../../../../samples/oracle/zfs/more.txt");

/// Another run. The ids of pools are random, and choose the places of metadata.
const AGAIN: &str = include_str!("../../../../samples/oracle/zfs/again.txt");

/// Time of a member's request in the laboratory.
const SERVICE_OF_MEMBERS: Duration = Duration::from_millis(200);

/// Sectors of a member of the laboratory, and of the labels before and behind the data.
const MEMBER: u64 = 4 << 21;
const LABELS_BEFORE: u64 = 4 << 11;
const LABELS_BEHIND: u64 = 1 << 10;

/// Time that the process needs for a request. An estimate.
const GAP: Duration = Duration::from_micros(100);

/// Time of the guest's processor for a read of 128 KiB in order. One value for all pools; with 200 µs to
/// 1.5 ms the bytes are the same within 4 %.
const GAP_OF_STREAM: Duration = Duration::from_micros(500);

/// Counts over the members: requests and KiB, without labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    reads: u64,
    read_kib: u64,
    writes: u64,
    written_kib: u64,
    /// Number of transaction groups written.
    groups: u64,
}

fn sums(bench: &Bench) -> Sums {
    let mut sums = Sums {
        groups: bench.pool.txg.groups,
        ..Sums::default()
    };
    for (_, request) in &bench.sent {
        let start = request.extent.start.0;
        if !(LABELS_BEFORE..MEMBER - LABELS_BEHIND).contains(&start) {
            continue;
        }
        let (count, kib) = match request.operation {
            Operation::Read => (&mut sums.reads, &mut sums.read_kib),
            Operation::Write => (&mut sums.writes, &mut sums.written_kib),
            _ => continue,
        };
        *count += 1;
        *kib += request.extent.sectors.0 / 2;
    }
    sums
}

/// Returns the number of groups of a line of the kernel: `labels=READ/WRITTEN`.
fn groups(line: &str, drives: usize) -> u64 {
    let (_, rest) = line.split_once(" labels=").unwrap();
    let labels = rest.split_whitespace().next().unwrap();
    let (_, written) = labels.split_once('/').unwrap();
    written.parse::<u64>().unwrap() / (LABELS * drives as u64)
}

/// Reads a line `pool BLOCK SIZE VDEV DRIVE.. [VDEV DRIVE..] [log DRIVE]`.
fn pool(words: &[&str], filled: u64) -> (Kind, Value, usize) {
    let mut keys = json!({
        "recordsize": words[0].replace('k', "KiB"),
        "volsize": filled,
        "arc": "600MB",
    });
    let drives = words
        .iter()
        .filter(|word| word.starts_with("/dev/"))
        .count();
    let (kind, shape) = words[2].split_once(':').unwrap_or((words[2], ""));
    let logs = usize::from(words.contains(&"log"));
    if let Some(ashift) = words.iter().find_map(|word| word.strip_prefix("ashift=")) {
        keys["ashift"] = json!(ashift.parse::<u32>().unwrap());
    }
    let vdevs = words.iter().filter(|word| **word == words[2]).count();
    keys["logs"] = json!(logs);
    if vdevs > 1 || kind == "mirror" {
        keys["width"] = json!((drives - logs) / vdevs);
    }
    for part in shape.split(':') {
        if let Some(data) = part.strip_suffix('d') {
            keys["data"] = json!(data.parse::<u32>().unwrap());
        }
        if let Some(spares) = part.strip_suffix('s') {
            keys["spares"] = json!(spares.parse::<u32>().unwrap());
        }
    }
    let kind = match kind {
        "mirror" => Kind::Mirror,
        "raidz1" => Kind::Raidz(1),
        "raidz2" => Kind::Raidz(2),
        "raidz3" => Kind::Raidz(3),
        "draid1" => Kind::Draid(1),
        "draid2" => Kind::Draid(2),
        other => panic!("{other}"),
    };
    (kind, keys, drives)
}

fn bench(kind: Kind, keys: &Value, drives: usize) -> Bench {
    let members = vec![Sectors(MEMBER); drives];
    let settings = PoolSettings::read(kind, keys.as_object().unwrap(), &members).unwrap();
    Bench {
        parallel: Some(SERVICE_OF_MEMBERS),
        ..Bench::of(settings)
    }
}

/// Carries out a line `load KIND ORDER BYTES DEPTH COUNT OFFSET SPAN SEED`, and waits for the end of
/// the transaction group.
fn load(bench: &mut Bench, words: &[&str]) -> Sums {
    let (kind, order) = (words[0], words[1]);
    let numbers: Vec<u64> = words[2..]
        .iter()
        .map(|word| word.parse().unwrap())
        .collect();
    let [bytes, depth, count, offset, span, mut state] = numbers[..] else {
        panic!("{words:?}")
    };
    let operation = if kind == "r" {
        Operation::Read
    } else {
        Operation::Write
    };
    let mut gap = GAP;
    if (kind, order) == ("r", "seq") {
        gap = GAP_OF_STREAM;
        // The guest has looked for partitions, so the first record is in memory.
        bench.submit(u64::MAX, operation, 0, 8, false);
        bench.seconds(10);
        bench.done.clear();
        bench.sent.clear();
    }
    let mut submitted = 0;
    while (bench.done.len() as u64) < count {
        if submitted < count && submitted < bench.done.len() as u64 + depth {
            let index = match order {
                "rand" => random(&mut state) % (span / bytes),
                _ => submitted,
            };
            let start = (offset + index * bytes) / 512;
            bench.submit(submitted, operation, start, bytes / 512, kind == "s");
            submitted += 1;
            bench.run(bench.now + gap);
        } else {
            bench.run(bench.now + Duration::from_millis(1));
        }
    }
    bench.seconds(200);
    sums(bench)
}

/// Returns the writes and the KiB of a group with one record, or of a group that notes the progress of a
/// scan.
fn of_a_group(kind: Kind, keys: &Value, drives: usize, scans: bool) -> (u64, u64) {
    let mut keys = keys.clone();
    keys["txg_timeout_s"] = json!(1);
    keys["scrub"] = json!(scans);
    let mut bench = bench(kind, &keys, drives);
    if !scans {
        bench.submit(0, Operation::Write, 0, 8, false);
    }
    bench.seconds(200);
    let sums = sums(&bench);
    let groups = sums.groups.max(1);
    (sums.writes / groups, sums.written_kib / groups)
}

/// Metadata that the pool reads in a load, in KiB: space maps and indirect blocks after an import, which the
/// model has in memory.
const METADATA_READ_KIB: u64 = 300;

/// Reads of this metadata.
const METADATA_READS: u64 = 22;

/// Label writes of a group on each drive.
const LABELS: u64 = 4;

/// Carries out a line, and returns `None` for a line without a counterpart.
fn carry_out(asked: &[&str], shape: &[&str], filled: u64) -> Option<Sums> {
    let (kind, mut keys, drives) = pool(shape, filled);
    match asked[0] {
        "load" => Some(load(&mut bench(kind, &keys, drives), &asked[1..])),
        "scrub" => {
            keys["scrub"] = json!(true);
            let mut bench = bench(kind, &keys, drives);
            bench.seconds(1000);
            Some(sums(&bench))
        }
        "replace" => {
            let mut bench = bench(kind, &keys, drives);
            let names: Vec<&&str> = shape
                .iter()
                .filter(|word| word.starts_with("/dev/"))
                .collect();
            // The pool's blocks begin two drives further on than the model's: the drive that was
            // replaced got the shortest column of each record and has all padding.
            let member = names.iter().position(|name| **name == asked[1]).unwrap();
            let member = (member + names.len() / 2) % names.len();
            let pool =
                std::mem::replace(&mut bench.pool, Bench::new(Kind::Mirror, json!({}), 2).pool);
            bench.pool = pool.resilvering(member, Sectors::ZERO);
            // Tasks of `zpool replace` wait for a later group, so each drive takes ten writes at a time
            // (`spa_has_pending_synctask`). Much dirty data has the same effect.
            bench.pool.txg.dirty = bench.pool.txg.most;
            bench.seconds(1000);
            Some(sums(&bench))
        }
        "idle" => None,
        other => panic!("{other}"),
    }
}

/// A line of the laboratory.
struct Line<'a> {
    /// The words behind `pool`.
    shape: Vec<&'a str>,
    filled: u64,
    asked: &'a str,
    kernel: Sums,
}

impl Line<'_> {
    fn name(&self) -> String {
        let vdevs = self.shape[2..].join(" ").replace("/dev/nullb", "");
        format!("{vdevs} {}: {}", self.shape[0], self.asked)
    }
}

fn lines(oracle: &str) -> Vec<Line<'_>> {
    let (mut all, mut shape, mut filled) = (Vec::new(), Vec::new(), 0);
    for line in oracle.lines().filter(|line| !line.starts_with('#')) {
        let (asked, _) = line.split_once(" ->").unwrap_or((line, ""));
        let words: Vec<&str> = asked.split_whitespace().collect();
        match words[0] {
            "pool" => shape = words[1..].to_vec(),
            "fill" => filled = words[1].parse().unwrap(),
            _ => all.push(Line {
                shape: shape.clone(),
                filled,
                asked,
                kernel: Sums {
                    reads: number(line, "reads"),
                    read_kib: number(line, "read_kib"),
                    writes: number(line, "writes"),
                    written_kib: number(line, "written_kib"),
                    groups: groups(line, pool(&shape, filled).2),
                },
            }),
        }
    }
    all
}

/// The bytes of every load, scrub and resilver agree, and the number of reads and of writes.
/// `cargo test -p fullstroke-pool laboratory -- --nocapture` prints all rows.
#[test]
fn loads_have_the_bytes_and_requests_of_openzfs_on_the_members() {
    let again = lines(AGAIN);
    let (mut far, mut rows) = (Vec::new(), 0);
    for line in [LOADS, MORE].into_iter().flat_map(lines) {
        let words: Vec<&str> = line.asked.split_whitespace().collect();
        let Some(model) = carry_out(&words, &line.shape, line.filled) else {
            continue;
        };
        rows += 1;
        let (kind, keys, drives) = pool(&line.shape, line.filled);
        let group = of_a_group(kind, &keys, drives, words[0] != "load");
        let name = line.name();
        let mut kernel = vec![line.kernel];
        let other = again.iter().find(|other| other.name() == name);
        kernel.extend(other.map(|other| other.kernel));
        let row = format!("{name}\n  OpenZFS {kernel:?}\n  model   {model:?}, {group:?} a group");
        println!("{row}");
        if !is_near(&name, &kernel, &model, group) {
            far.push(row);
        }
    }
    assert!(far.is_empty(), "{}", far.join("\n"));
    assert!(rows >= 50, "{rows}");
}

/// Returns true if the model's counts of a line are near those of a run of the kernel.
fn is_near(name: &str, kernel: &[Sums], model: &Sums, group: (u64, u64)) -> bool {
    let is_scan = name.contains("scrub") || name.contains("replace");
    // The time of a group differs, so that a load may end in another number of groups.
    let adjusted = |count: u64, of_a_group: u64, run: &Sums| match is_scan {
        true => count,
        false => (count + of_a_group * run.groups).saturating_sub(of_a_group * model.groups),
    };
    let near = |a: u64, b: u64, percent: u64, more: u64| a.abs_diff(b) <= b * percent / 100 + more;
    kernel.iter().any(|run| {
        let writes = adjusted(model.writes, group.0, run);
        let written_kib = adjusted(model.written_kib, group.1, run);
        let reads = |percent, more| near(model.reads, run.reads, percent, more);
        let read_kib = |percent, more| near(model.read_kib, run.read_kib, percent, more);
        if is_scan {
            // A scan of OpenZFS takes further groups, and reads metadata of its own groups.
            let is_scrub = name.contains("scrub");
            return reads(15, 0) && read_kib(1, 0) && (is_scrub || near(writes, run.writes, 20, 0));
        }
        if name.contains("load r seq") {
            // The time at which the program goes on decides whether a read-ahead grows by an eighth.
            return reads(15, 0) && read_kib(14, 0);
        }
        // The checksums of small records of the laboratory have few random bits, so that their pointers
        // compress better than those of other data.
        let pointers = match name.contains(" 16k:") || name.contains(" 8k:") {
            true => 600 * run.groups,
            false => 0,
        };
        reads(1, METADATA_READS)
            && read_kib(1, METADATA_READ_KIB)
            && near(writes, run.writes, 16, 0)
            && near(written_kib, run.written_kib, 3, pointers)
    })
}
