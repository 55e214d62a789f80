//! Rebuilds beside loads, against the running kernel.

use super::laboratory::Laboratory;
use super::loads::kernel_lab::number;
use super::loads::send;
use super::single::keys_of;
use fullstroke_contract::{LayerOrder, Operation};
use fullstroke_units::{Duration, Sectors, Time};

/// The rebuilds of the running kernel, by `tools/kernel-lab.py`.
const REBUILDS: &str = include_str!("../../../../../../samples/oracle/md/rebuilds.txt");

const REBUILDS_6_17: &str = include_str!("../../../../../../samples/oracle/md/rebuilds-6.17.txt");

/// Latency of a member in this laboratory.
const LATENCY: Duration = Duration::from_nanos(100_000_000);

/// Sectors of a member: 4 GiB less the 2 MiB before the data.
const MEMBER: u64 = 2 * 4094 * 1024;

/// Time that a process of the emulated machine needs for a request.
const GAP: Duration = Duration::from_nanos(300_000);

#[derive(Clone)]
struct Row {
    line: String,
    kernel_mb_per_s: f64,
    mb_per_s: f64,
    kernel_ms: f64,
    ms: f64,
}

/// Pauses between the begin of a rebuild and the first load. All members take the same time for a
/// request, so that requests and the rebuild keep their order for a whole load; with another pause
/// the order is another.
const PAUSES_MS: [u64; 7] = [3000, 3017, 3031, 3043, 3059, 3071, 3089];

/// Returns the mean over all pauses.
fn compare(oracle: &str, depth: Option<u32>) -> Vec<Row> {
    let mut all =
        PAUSES_MS.map(|ms| compare_after(Duration::from_nanos(ms * 1_000_000), oracle, depth));
    let (first, others) = all.split_first_mut().unwrap();
    for (index, row) in first.iter_mut().enumerate() {
        for other in others.iter() {
            row.mb_per_s += other[index].mb_per_s;
            row.ms += other[index].ms;
        }
        row.mb_per_s /= PAUSES_MS.len() as f64;
        row.ms /= PAUSES_MS.len() as f64;
    }
    std::mem::take(first)
}

/// Carries out the lines of a file, with `pause` behind the begin of each rebuild. `depth` is the limit
/// of Linux 6.16 and later.
fn compare_after(pause: Duration, oracle: &str, depth: Option<u32>) -> Vec<Row> {
    let (mut laboratory, mut rows, mut array) = (None, Vec::new(), String::new());
    let mut added = 0;
    for line in oracle.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "array" => {
                let keys = keys_of(&words[1..], "md");
                let members = words[2].parse().unwrap();
                laboratory = Some(Laboratory::of(
                    words[1], &keys, members, true, MEMBER, LATENCY, depth,
                ));
                array = words[1..].join(" ");
                continue;
            }
            "add" => {
                let laboratory: &mut Laboratory = laboratory.as_mut().unwrap();
                added = words[1].parse().unwrap();
                laboratory.order(LayerOrder::Fail { member: added });
                laboratory.order(LayerOrder::Restore {
                    member: added,
                    done: Sectors::ZERO,
                    rate: None,
                    accept_data_loss: false,
                });
                laboratory.rest(pause);
                continue;
            }
            _ => {}
        }
        let laboratory = laboratory.as_mut().unwrap();
        let begin = laboratory.now;
        let end = if words[0] == "rest" {
            laboratory.issued.clear();
            let ms: u64 = words[1].parse().unwrap();
            laboratory.rest(Duration::from_nanos(ms * 1_000_000));
            laboratory.now
        } else {
            send(laboratory, &words[1..9], GAP);
            laboratory.now
        };
        let half = MEMBER * 512 / 2;
        let rebuilt: u64 = laboratory
            .issued
            .iter()
            .filter(|(operation, member, at, _)| {
                *operation == Operation::Write && *member == added && *at < half
            })
            .map(|(.., bytes)| bytes)
            .sum();
        let seconds = |from: Time, to: Time| to.since(from).as_secs_f64();
        let ms = number(line, "ms") as f64;
        rows.push(Row {
            line: format!("{array}: {}", words[..words.len().min(9)].join(" ")),
            kernel_mb_per_s: number(line, "rebuilt_kib") as f64 * 1.024 / ms,
            mb_per_s: rebuilt as f64 / 1e6 / seconds(begin, end),
            kernel_ms: ms,
            ms: 1000.0 * seconds(begin, end),
        });
    }
    rows
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
    let has_load = move |row: &&Row| row.line.starts_with(&level) && row.line.contains(": load");
    rows.iter().filter(has_load).cloned()
}

#[test]
fn a_rebuild_beside_loads_is_as_fast_as_in_the_kernel() {
    for (name, oracle, depth, of_parity) in [
        // All requests of the laboratory take the same time, so that they end together. By chance a
        // look of the emulated kernel comes before they end, and finds the array idle.
        ("6.12", REBUILDS, None, 0.75),
        ("6.17", REBUILDS_6_17, Some(32), 0.4),
    ] {
        println!("Linux {name}");
        let rows = compare(oracle, depth);
        let parity: Vec<Row> = of(&rows, "raid5").chain(of(&rows, "raid6")).collect();
        let (raid1, raid10): (Vec<Row>, Vec<Row>) =
            (of(&rows, "raid1").collect(), of(&rows, "raid10").collect());
        assert_eq!((parity.len(), raid1.len(), raid10.len()), (11, 3, 3));
        let far_parity = far(&parity, of_parity, 0.3);
        assert!(far_parity.len() <= 1, "{name}: {far_parity:?}");
        assert_eq!(far(&raid1, 0.3, 0.12), [""; 0]);
        // The emulated processor lets a rebuild begin dozens of blocks before the next request, so
        // that rates say nothing; requests wait for the same I/O.
        assert_eq!(far(&raid10, 1.0, 0.3), [""; 0]);
    }
}
