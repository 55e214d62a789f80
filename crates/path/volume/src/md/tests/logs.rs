//! The journal and the partial parity log against the running kernel.

use super::super::bitmap::WriteIntent;
use super::super::journal::JournalDevice;
use super::super::records::MdRecords;
use super::laboratory::{Laboratory, MemberIo};
use super::loads::{kernel_lab, send};
use super::single::{extents, keys_of};
use fullstroke_contract::{LayerOrder, Operation};
use fullstroke_units::{Duration, Sectors};
use kernel_lab::number;

/// Member I/O and sums of the running kernel, by `tools/kernel-lab.py --counted --metadata`.
const LOGS: &str = include_str!("../../../../../../samples/oracle/md/logs.txt");

const LATENCY: Duration = Duration::from_nanos(20_000_000);
const STEP: Duration = Duration::from_nanos(500_000);

/// Time that a process of the emulated machine needs for a request.
const GAP: Duration = Duration::from_nanos(1_000);

/// Sectors of a member of the laboratory, behind its records.
const MEMBER: u64 = 2 * 1022 * 1024;

/// Bytes before the first unit of the journal on its device.
const BEFORE_JOURNAL: u64 = 2 << 20;

/// Bytes before the data of a member with a partial parity log, as mdadm places them.
const BEFORE_DATA: u64 = 3068 << 10;

const KIB: f64 = 1024.0;

/// An array of the laboratory. The model keeps its records in the first sectors of the data, so
/// requests go to the same places of later rows.
struct Bench {
    laboratory: Laboratory,
    members: usize,
    has_journal: bool,
    /// Bytes by which requests are moved, and the bytes of a member that lie before their pages.
    moved: (u64, u64),
}

impl Bench {
    fn new(words: &[&str]) -> Bench {
        let (level, members) = (words[1], words[2].parse::<usize>().unwrap());
        let has_journal = words.contains(&"journal");
        let of_layout = words
            .iter()
            .filter(|word| !["journal", "ppl"].contains(word));
        let of_layout: Vec<&str> = of_layout.copied().collect();
        let mut keys = keys_of(&of_layout[1..], "md");
        keys["largest_member_io"] = (255 * 512).into();
        let records = MdRecords {
            bitmap: Some(WriteIntent::None),
            partial_parity: !has_journal,
            journal: has_journal.then_some(JournalDevice {
                sectors: Sectors(MEMBER + BEFORE_JOURNAL / 512),
                volatile: false,
            }),
            ..MdRecords::default()
        };
        let mut laboratory =
            Laboratory::recorded_over(level, &keys, members, MEMBER, LATENCY, records);
        laboratory.flush_latency = Duration::ZERO;
        laboratory.step = STEP;
        let chunk = keys["chunk"].as_str().unwrap();
        let chunk: u64 = 1024 * chunk.strip_suffix("KiB").unwrap().parse::<u64>().unwrap();
        let data = members as u64 - if level == "raid6" { 2 } else { 1 };
        let rows = (8_u64 << 20).div_ceil(chunk * members as u64) * members as u64;
        Bench {
            laboratory,
            members,
            has_journal,
            moved: (rows * chunk * data, rows * chunk),
        }
    }

    /// Returns a member I/O as the oracle writes it.
    fn written(&self, &(operation, member, at, bytes): &MemberIo) -> String {
        let letter = match operation {
            Operation::Read => 'R',
            _ => 'W',
        };
        let of_journal = member == self.members;
        let name = match of_journal {
            true => "J".to_owned(),
            false => member.to_string(),
        };
        let before = match (of_journal, self.has_journal, at < self.moved.1) {
            (true, _, _) if at == 0 => 2044 << 10,
            (true, _, _) => BEFORE_JOURNAL,
            (false, true, true) => 2044 << 10,
            (false, false, true) => BEFORE_DATA,
            (false, _, false) => self.moved.1,
        };
        let offset = (at as f64 - before as f64) / KIB;
        format!("{letter}{name}@{offset}K+{}K", bytes as f64 / KIB)
    }

    /// Returns the KiB read, the KiB written to data, to the journal and to other records.
    fn sums(&self) -> [f64; 4] {
        let mut sums = [0.0; 4];
        for io in &self.laboratory.issued {
            let place = match io {
                (Operation::Read, ..) => 0,
                (_, member, at, _) if *member == self.members && *at > 0 => 2,
                (_, _, at, _) if *at < self.moved.1 => 3,
                _ => 1,
            };
            sums[place] += io.3 as f64 / KIB;
        }
        sums
    }
}

/// Returns the KiB read, the KiB written to data, to the journal and to other records.
fn sums_of(line: &str) -> [f64; 4] {
    let journal = line.split_once("J:").map_or(0.0, |(_, rest)| {
        let (sums, _) = rest.split_once(',').unwrap();
        sums.split_once('/').unwrap().1.parse().unwrap()
    });
    let (_, records) = line.split_once("records_kib=").unwrap();
    let records = records.split(' ').next().unwrap().parse().unwrap();
    let written = number(line, "written_kib") as f64 - journal;
    [number(line, "read_kib") as f64, written, journal, records]
}

/// A load: its words, the times in ms and the sums of the kernel and of the model.
struct Load<'a> {
    words: &'a str,
    kernel_ms: u64,
    ms: u64,
    kernel: [f64; 4],
    found: [f64; 4],
}

impl Bench {
    /// Carries out a line with a single request. Returns both member I/Os if the model's has other
    /// boundaries.
    fn compare_single(&mut self, line: &str, words: &[&str]) -> Option<String> {
        let operation = match words[0] {
            "r" => Operation::Read,
            _ => Operation::Write,
        };
        let offset = self.moved.0 + words[1].parse::<u64>().unwrap();
        let bytes = words[2].parse().unwrap();
        let found = self.laboratory.single(operation, offset, bytes);
        let found: Vec<String> = found.iter().map(|io| self.written(io)).collect();
        // Writes of superblocks depend on the time since the latest write, which the guest does not
        // tell.
        let is_page = |io: &&str| !io.ends_with("+0.5K");
        let expected: Vec<&str> = words[4..].iter().copied().filter(is_page).collect();
        let found: Vec<&str> = found.iter().map(String::as_str).filter(is_page).collect();
        let text = format!("{line}\n   found {}", found.join(" "));
        let covers = |ios: &[&str]| extents(ios.iter().copied());
        assert_eq!(covers(&found), covers(&expected), "{text}");
        (found != expected).then_some(text)
    }

    /// Carries out a line with a load.
    fn load<'a>(&mut self, line: &'a str) -> Load<'a> {
        let (words, _) = line.split_once(" -> ").unwrap();
        let mut load: Vec<String> = words.split_whitespace().map(ToString::to_string).collect();
        load[6] = (load[6].parse::<u64>().unwrap() + self.moved.0).to_string();
        let load: Vec<&str> = load[1..].iter().map(String::as_str).collect();
        let begin = self.laboratory.now;
        send(&mut self.laboratory, &load, GAP);
        let ms = self.laboratory.now.since(begin).as_nanos() / 1_000_000;
        self.laboratory.rest(Duration::from_nanos(100_000_000));
        Load {
            words,
            kernel_ms: number(line, "ms"),
            ms,
            kernel: sums_of(line),
            found: self.sums(),
        }
    }
}

impl Load<'_> {
    /// Panics if the model is far from the kernel.
    fn check(&self) {
        let near = |kernel: f64, found: f64, percent: f64| {
            let near = (found - kernel).abs() * 100.0 <= percent * kernel;
            assert!(near, "{kernel} in the kernel, {found} here: {}", self.words);
        };
        // The processor of the guest needs time for the checksums of long requests.
        let is_long = !self.words.contains(" 4096 ");
        let percent = if is_long { 20.0 } else { 5.0 };
        near(self.kernel_ms as f64, self.ms as f64, percent);
        let of_members = |sums: [f64; 4]| sums[0] + sums[1];
        near(of_members(self.kernel), of_members(self.found), 10.0);
        // The partial parity log is a part of the records.
        let logged = |sums: [f64; 4]| if sums[2] > 0.0 { sums[2] } else { sums[3] };
        near(logged(self.kernel), logged(self.found), 17.0);
    }
}

#[test]
fn logs_get_the_writes_and_cost_the_time_of_the_kernel() {
    let (mut bench, mut otherwise, mut singles) = (None, Vec::new(), 0);
    let (mut loads, mut after_load) = (Vec::new(), false);
    for line in LOGS.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[0] == "array" {
            bench = Some(Bench::new(&words));
            println!("{line}");
            continue;
        }
        let bench: &mut Bench = bench.as_mut().unwrap();
        match words[0] {
            "cold" => bench.laboratory.cool(),
            "fail" => {
                let member = words[1].parse().unwrap();
                bench.laboratory.order(LayerOrder::Fail { member });
            }
            "rest" => {
                let ms: u64 = words[1].parse().unwrap();
                bench.laboratory.issued.clear();
                bench.laboratory.rest(Duration::from_nanos(ms * 1_000_000));
            }
            "load" => {
                // The guest counts this time from the latest load. Behind single requests, the
                // array is still active.
                if after_load {
                    let since = number(line, "since_ms");
                    bench
                        .laboratory
                        .rest(Duration::from_nanos(1_000_000 * since));
                }
                let load = bench.load(line);
                println!(
                    "{:6} {:6} ms, {:7.1?} {:7.1?} KiB  {}",
                    load.kernel_ms, load.ms, load.kernel, load.found, load.words
                );
                loads.push(load);
            }
            _ => {
                singles += 1;
                otherwise.extend(bench.compare_single(line, &words));
            }
        }
        after_load = words[0] == "load";
    }
    println!("{}", otherwise.join("\n"));
    // The ends of several units come at one time in the model, and a little apart in the guest, whose
    // thread then writes the pages of each unit for themselves.
    assert_eq!((singles, otherwise.len()), (27, 7));
    assert_eq!(loads.len(), 32);
    loads.iter().for_each(Load::check);
}
