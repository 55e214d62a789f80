//! The cost of the write-intent bitmap against the running kernel.

use super::super::bitmap::WriteIntent;
use super::super::records::MdRecords;
use super::laboratory::{Laboratory, MemberIo};
use super::loads::{kernel_lab, send};
use super::single::keys_of;
use fullstroke_contract::Operation;
use fullstroke_units::Duration;
use kernel_lab::number;
use serde_json::Value;

/// Records and times of the running kernel, by `tools/kernel-lab.py --counted --metadata`.
const BITMAP: &str = include_str!("../../../../../../samples/oracle/md/bitmap.txt");

/// Latency of a member of the laboratory, without a write cache.
const LATENCY: Duration = Duration::from_nanos(20_000_000);

/// Time that each member needs longer than the member before.
const STEP: Duration = Duration::from_nanos(3_000_000);

/// Sectors of a member: 24,000 GiB less what mdadm keeps before the data.
const MEMBER: u64 = 2 * (24_000 * 1024 - 130) * 1024;

/// Sectors of the members in front of the data that the model keeps for its records.
const RECORDS: u64 = 1 << 30;

/// Time that a process of the emulated machine needs for a request.
const GAP: Duration = Duration::from_nanos(1_000);

struct Line<'a> {
    words: &'a str,
    kernel_records: u64,
    records: u64,
    kernel_ms: u64,
    ms: u64,
}

/// True for a write of the superblock or of the bitmap, which the model keeps in the first sectors
/// of the data. No load writes there.
fn is_record(&(operation, _, at, _): &MemberIo) -> bool {
    operation == Operation::Write && at < RECORDS
}

fn compare(oracle: &str) -> Vec<Line<'_>> {
    let (mut of_array, mut lines) = (None, Vec::new());
    for line in oracle.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[0] == "array" {
            let keys: Value = keys_of(&words[1..3], "md");
            let records = MdRecords {
                bitmap: Some(WriteIntent::Internal),
                ..MdRecords::default()
            };
            let members = words[2].parse().unwrap();
            let mut laboratory =
                Laboratory::recorded_over(words[1], &keys, members, MEMBER, LATENCY, records);
            laboratory.flush_latency = Duration::ZERO;
            laboratory.step = STEP;
            of_array = Some(laboratory);
            println!("{line}");
            continue;
        }
        let laboratory: &mut Laboratory = of_array.as_mut().unwrap();
        // What the guest did between two lines, with its count of the last line.
        laboratory.issued.clear();
        laboratory.rest(Duration::from_nanos(1_000_000 * number(line, "since_ms")));
        laboratory.issued.clear();
        let begin = laboratory.now;
        match words[0] {
            "rest" => {
                let ms: u64 = words[1].parse().unwrap();
                laboratory.rest(Duration::from_nanos(ms * 1_000_000));
            }
            _ => {
                let mut load: Vec<String> = words[1..9].iter().map(ToString::to_string).collect();
                let offset: u64 = load[5].parse().unwrap();
                load[5] = (offset + (1 << 40)).to_string();
                let load: Vec<&str> = load.iter().map(String::as_str).collect();
                send(laboratory, &load, GAP);
            }
        }
        let records = laboratory.issued.iter().filter(|io| is_record(io)).count() as u64;
        let (words, _) = line.split_once(" -> ").unwrap();
        let found = Line {
            words,
            kernel_records: number(line, "records"),
            records,
            kernel_ms: number(line, "ms"),
            ms: laboratory.now.since(begin).as_nanos() / 1_000_000,
        };
        println!(
            "{:6} {:6} records, {:6} {:6} ms  {words}",
            found.kernel_records, found.records, found.kernel_ms, found.ms
        );
        lines.push(found);
    }
    lines
}

/// Lines that the model does not equal. The second of two equal loads finds regions that the daemon has
/// not cleaned: under load md's thread seldom has the time. Direct sequential writes on RAID 6 read more
/// in the model, also without a bitmap.
fn is_apart(place: usize, lines: &[Line<'_>]) -> bool {
    let repeats = place > 0 && lines[place - 1].words == lines[place].words;
    repeats || lines[place].words.starts_with("rest") || lines[place].words.contains(" w seq ")
}

#[test]
fn a_bitmap_costs_as_many_writes_and_as_much_time_as_in_the_kernel() {
    let lines = compare(BITMAP);
    let near = |found: u64, kernel: u64, share: u64| found.abs_diff(kernel) * 100 <= share * kernel;
    let held: Vec<&Line<'_>> = (0..lines.len())
        .filter(|&place| !is_apart(place, &lines))
        .map(|place| &lines[place])
        .collect();
    assert_eq!((lines.len(), held.len()), (35, 15));
    for line in held {
        // With 32 requests at a time, the thread has more stripes than it handles at once.
        let share = if line.words.contains(" 32 ") { 12 } else { 6 };
        assert!(
            near(line.ms, line.kernel_ms, share),
            "{} ms: {}",
            line.ms,
            line.words
        );
        let records = (line.records, line.kernel_records);
        assert!(near(records.0, records.1, 9), "{records:?}: {}", line.words);
    }
}
