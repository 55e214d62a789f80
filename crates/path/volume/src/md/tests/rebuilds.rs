//! Rebuilds beside loads, against the running kernel.

use super::laboratory::{Laboratory, MemberIo};
use super::loads::kernel_lab::number;
use super::loads::send;
use super::single::keys_of;
use fullstroke_contract::{LayerOrder, Operation};
use fullstroke_units::{Duration, Sectors};

/// The rebuilds of the running kernel, by `tools/kernel-lab.py`.
const REBUILDS: &str = include_str!("../../../../../../samples/oracle/md/rebuilds.txt");

const REBUILDS_6_17: &str = include_str!("../../../../../../samples/oracle/md/rebuilds-6.17.txt");

/// The same beside more requests than the members can do.
const OVERLOAD: &str = include_str!("../../../../../../samples/oracle/md/overload.txt");

const OVERLOAD_6_17: &str = include_str!("../../../../../../samples/oracle/md/overload-6.17.txt");

/// The members of a laboratory.
#[derive(Clone, Copy)]
struct Members {
    latency: Duration,
    /// Time that each member needs longer than the member before.
    step: Duration,
    one_at_a_time: bool,
}

/// Members whose requests do not end together.
const APART: Members = Members {
    latency: Duration::from_nanos(100_000_000),
    step: Duration::from_nanos(3_000_000),
    one_at_a_time: false,
};

/// Members that carry out one request at a time.
const BUSY: Members = Members {
    latency: Duration::from_nanos(10_000_000),
    step: Duration::ZERO,
    one_at_a_time: true,
};

/// Sectors of a member: 4 GiB less the 2 MiB before the data.
const MEMBER: u64 = 2 * 4094 * 1024;

/// Time that a process of the emulated machine needs for a request.
const GAP: Duration = Duration::from_nanos(300_000);

/// Time between two loads: 200 ms in which the process rests, and the time of the count.
const BETWEEN: Duration = Duration::from_nanos(250_000_000);

/// Time at the begin of a load whose I/O does not count: the rebuild has begun this I/O before the load.
const LEAD: Duration = Duration::from_nanos(1_000_000_000);

#[derive(Clone)]
struct Row {
    line: String,
    kernel_mb_per_s: f64,
    mb_per_s: f64,
    kernel_ms: f64,
    ms: f64,
}

/// Pauses between the begin of a rebuild and the first load. Requests and the rebuild may keep their
/// order for a whole load, and with another pause the order is another.
const PAUSES_MS: [u64; 3] = [3000, 3017, 3031];

/// Returns the means over all pauses, of the oracle and of the model. `depth` is the limit of Linux 6.16
/// and later.
fn compare(oracle: &str, of: Members, depth: Option<u32>) -> Vec<Row> {
    let all: Vec<Row> = (PAUSES_MS.iter())
        .flat_map(|&ms| compare_after(Duration::from_nanos(ms * 1_000_000), oracle, of, depth))
        .collect();
    let mut means: Vec<Row> = Vec::new();
    for row in &all {
        if means.iter().any(|mean| mean.line == row.line) {
            continue;
        }
        let same: Vec<&Row> = all.iter().filter(|other| other.line == row.line).collect();
        let mean =
            |of: fn(&Row) -> f64| same.iter().map(|row| of(row)).sum::<f64>() / same.len() as f64;
        means.push(Row {
            line: row.line.clone(),
            kernel_mb_per_s: mean(|row| row.kernel_mb_per_s),
            mb_per_s: mean(|row| row.mb_per_s),
            kernel_ms: mean(|row| row.kernel_ms),
            ms: mean(|row| row.ms),
        });
    }
    means
}

/// Carries out the lines of a file, with `pause` behind the begin of each rebuild.
fn compare_after(pause: Duration, oracle: &str, of: Members, depth: Option<u32>) -> Vec<Row> {
    let (mut of_array, mut rows, mut array, mut added) = (None, Vec::new(), String::new(), 0);
    for line in oracle.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[0] == "array" {
            let keys = keys_of(&words[1..], "md");
            let members = words[2].parse().unwrap();
            let mut laboratory =
                Laboratory::of(words[1], &keys, members, true, MEMBER, of.latency, depth);
            laboratory.step = of.step;
            if of.one_at_a_time {
                laboratory.one_at_a_time();
            }
            (of_array, array) = (Some(laboratory), words[1..].join(" "));
            continue;
        }
        let laboratory: &mut Laboratory = of_array.as_mut().unwrap();
        match words[0] {
            "add" => {
                added = words[1].parse().unwrap();
                begin_rebuild(laboratory, added);
                laboratory.rest(pause);
            }
            "rest" => {
                let ms: u64 = words[1].parse().unwrap();
                laboratory.rest(Duration::from_nanos(ms * 1_000_000));
            }
            _ => {
                let (mb_per_s, ms) = load(laboratory, &words[1..9], added);
                let kernel_ms = number(line, "ms") as f64;
                let counted_ms = kernel_ms - 1000.0 * LEAD.as_secs_f64();
                rows.push(Row {
                    line: format!("{array}: {}", words[..6].join(" ")),
                    kernel_mb_per_s: number(line, "rebuilt_kib") as f64 * 1.024 / counted_ms,
                    mb_per_s,
                    kernel_ms,
                    ms,
                });
            }
        }
    }
    rows
}

fn begin_rebuild(laboratory: &mut Laboratory, member: usize) {
    laboratory.order(LayerOrder::Fail { member });
    laboratory.order(LayerOrder::Restore {
        member,
        done: Sectors::ZERO,
        rate: None,
        accept_data_loss: false,
    });
}

/// Carries out a load. Returns the rate of the rebuild of member `added` in MB/s, and the time of the
/// load in ms.
fn load(laboratory: &mut Laboratory, words: &[&str], added: usize) -> (f64, f64) {
    let begin = laboratory.now;
    send(laboratory, words, GAP);
    let took = laboratory.now.since(begin);
    let is_rebuilt = |&&(operation, member, at, _): &&MemberIo| {
        operation == Operation::Write && member == added && at < MEMBER * 512 / 2
    };
    let rebuilt = laboratory.issued_after(begin + LEAD).filter(is_rebuilt);
    let bytes: u64 = rebuilt.map(|(.., bytes)| bytes).sum();
    laboratory.rest(BETWEEN);
    let seconds = took.as_secs_f64();
    (
        bytes as f64 / 1e6 / (seconds - LEAD.as_secs_f64()),
        1000.0 * seconds,
    )
}

/// Prints the rows, and returns those whose rate or time is not within these shares of the kernel's.
fn far(rows: &[Row], rate: f64, time: f64) -> Vec<&str> {
    let mut far = Vec::new();
    for row in rows {
        let share = |found: f64, kernel: f64| found / kernel - 1.0;
        let (of_rate, of_time) = (
            share(row.mb_per_s, row.kernel_mb_per_s),
            share(row.ms, row.kernel_ms),
        );
        println!(
            "{:6.2} {:6.2} MB/s {:+4.0} %, {:6.0} {:6.0} ms {:+4.0} %  {}",
            row.kernel_mb_per_s,
            row.mb_per_s,
            100.0 * of_rate,
            row.kernel_ms,
            row.ms,
            100.0 * of_time,
            row.line
        );
        if of_rate.abs() > rate || of_time.abs() > time {
            far.push(row.line.as_str());
        }
    }
    far
}

/// Returns the rows of arrays of a level that have a load. The members of the laboratory have no
/// media rate, so that a rebuild without load is as fast as its processor.
fn of<'a>(rows: &'a [Row], level: &str) -> impl Iterator<Item = Row> + 'a {
    let level = format!("{level} ");
    let has_load = move |row: &&Row| row.line.starts_with(&level);
    rows.iter().filter(has_load).cloned()
}

#[test]
fn a_rebuild_beside_loads_is_as_fast_as_in_the_kernel() {
    for (name, oracle, depth) in [("6.12", REBUILDS, None), ("6.17", REBUILDS_6_17, Some(32))] {
        println!("Linux {name}");
        let rows = compare(oracle, APART, depth);
        let parity: Vec<Row> = of(&rows, "raid5").chain(of(&rows, "raid6")).collect();
        let copies: Vec<Row> = of(&rows, "raid1").chain(of(&rows, "raid10")).collect();
        assert_eq!((parity.len(), copies.len()), (11, 6));
        // The rate with parity follows from the looks that find more than 64 sectors, and a look
        // earlier or later changes much.
        let far_parity = far(&parity, 0.25, 0.1);
        assert!(far_parity.len() <= 2, "{name}: {far_parity:?}");
        assert_eq!(far(&copies, 0.05, 0.05), [""; 0], "{name}");
    }
}

#[test]
fn a_rebuild_beside_an_overload_stays_below_the_least_speed_of_md() {
    // md makes no way below `sync_speed_min`, 1.02 MB/s. But requests that wait take the stripes of
    // parity arrays, and the members' queues belong to requests.
    for (name, oracle, depth) in [("6.12", OVERLOAD, None), ("6.17", OVERLOAD_6_17, Some(32))] {
        println!("Linux {name}");
        let rows = compare(oracle, BUSY, depth);
        far(&rows, 0.25, 0.1);
        let parity: Vec<Row> = of(&rows, "raid5").chain(of(&rows, "raid6")).collect();
        assert_eq!(parity.len(), 6);
        for row in parity {
            let rates = (row.kernel_mb_per_s, row.mb_per_s);
            assert!(rates.0 < 1.0 && rates.1 < 1.0, "{}: {rates:?}", row.line);
        }
    }
}
