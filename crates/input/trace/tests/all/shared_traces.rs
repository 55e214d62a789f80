//! Tests that every real trace is read with its documented count. The files are no part of the
//! project; if a file is missing, its test says so and passes.
//!
//! A decoder that is not part of this project (the script `tools/oracle.py`) extracted the first
//! 200 requests of each file. The tests write these requests in each trace's format and read them
//! back. If the files exist, the tests also compare the files with these requests.

use crate::oracle::{self, Table};
use crate::whole::check_digest;
use flate2::read::MultiGzDecoder;
use fullstroke_contract::{Extent, Operation};
use fullstroke_trace::{TraceOptions, TraceReader, TraceRecord, TraceSummary};
use fullstroke_units::Time;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

fn shared(file: &str) -> Option<PathBuf> {
    oracle::shared(&format!("traces/{file}"))
}

/// A request as extracted by the oracle.
#[derive(Clone, Copy)]
struct Fact {
    arrival_ns: u64,
    read: bool,
    start: u64,
    sectors: u64,
    response_ns: Option<u64>,
}

fn facts(table: &Table) -> Vec<Fact> {
    let (arrival_ns, start, sectors) = (
        table.numbers("arrival_ns"),
        table.numbers("start_sector"),
        table.numbers("sectors"),
    );
    let (operation, response) = (table.column("operation"), table.column("response_ns"));
    (0..start.len())
        .map(|at| Fact {
            arrival_ns: arrival_ns[at],
            read: operation[at] == "R",
            start: start[at],
            sectors: sectors[at],
            response_ns: response[at].parse().ok(),
        })
        .collect()
}

/// Returns lines of text of a format.
fn lines(facts: &[Fact], line: impl Fn(&Fact) -> String) -> Vec<u8> {
    facts.iter().map(line).collect::<String>().into_bytes()
}

/// Returns a time as a decimal number of units of `unit_ns`.
fn units(time_ns: u64, unit_ns: u64) -> String {
    let digits = unit_ns.ilog10() as usize;
    format!("{}.{:0digits$}", time_ns / unit_ns, time_ns % unit_ns)
}

fn blkreplay(facts: &[Fact]) -> Vec<u8> {
    let mut text = b"start ; sector; length ; op ; replay_delay ; replay_duration\n".to_vec();
    text.extend(lines(facts, |fact| {
        let (start, response) = (
            units(fact.arrival_ns, 1_000_000_000),
            units(fact.response_ns.unwrap_or(0), 1_000_000_000),
        );
        let operation = if fact.read { 'R' } else { 'W' };
        format!(
            "{start} ; {} ; {} ; {operation} ; 0.0 ; {response}\n",
            fact.start, fact.sectors
        )
    }));
    text
}

fn msr(facts: &[Fact]) -> Vec<u8> {
    lines(facts, |fact| {
        let time = 128_166_372_003_061_629 + fact.arrival_ns / 100;
        let operation = if fact.read { "Read" } else { "Write" };
        let response = fact.response_ns.unwrap_or(0) / 100;
        format!(
            "{time},host,1,{operation},{},{},{response}\n",
            fact.start * 512,
            fact.sectors * 512
        )
    })
}

/// Version 1: 32 bytes a record, little-endian.
fn vscsi(facts: &[Fact]) -> Vec<u8> {
    let record = |fact: &Fact| {
        let command: u16 = if fact.read { 0x28 } else { 0x2a };
        let mut record = 7u32.to_le_bytes().to_vec();
        record.extend((fact.sectors as u32 * 512).to_le_bytes());
        record.extend(1u32.to_le_bytes());
        record.extend(command.to_le_bytes());
        record.extend(0x0100u16.to_le_bytes());
        record.extend(fact.start.to_le_bytes());
        record.extend((5_633_898_368_802 + fact.arrival_ns / 1000).to_le_bytes());
        record
    };
    facts.iter().flat_map(record).collect()
}

/// Returns the events of arrival and completion, in order of time.
fn events(facts: &[Fact]) -> Vec<(u64, bool, Fact)> {
    let mut events: Vec<(u64, bool, Fact)> = Vec::new();
    for fact in facts {
        events.push((fact.arrival_ns, false, *fact));
        if let Some(response) = fact.response_ns {
            events.push((fact.arrival_ns + response, true, *fact));
        }
    }
    events.sort_by_key(|event| event.0);
    events
}

/// Version 7: 48 bytes an event, little-endian.
fn blktrace(facts: &[Fact]) -> Vec<u8> {
    let record = |(number, (time, completes, fact)): (u32, (u64, bool, Fact))| {
        let action: u32 = if completes { 8 | 0x80 << 16 } else { 1 };
        let flags: u32 = if fact.read { 1 } else { 2 };
        let mut record = 0x6561_7407u32.to_le_bytes().to_vec();
        record.extend((number + 1).to_le_bytes());
        record.extend((1_000_000 + time).to_le_bytes());
        record.extend(fact.start.to_le_bytes());
        record.extend((fact.sectors as u32 * 512).to_le_bytes());
        record.extend((action | flags << 16).to_le_bytes());
        record.extend(77u32.to_le_bytes());
        record.extend((8u32 << 20).to_le_bytes());
        record.extend([0; 8]);
        record
    };
    (0..).zip(events(facts)).flat_map(record).collect()
}

fn blkparse(facts: &[Fact]) -> Vec<u8> {
    let line = |(number, (time, completes, fact)): (u32, (u64, bool, Fact))| {
        let (action, end) = if completes {
            ('C', "[0]")
        } else {
            ('I', "[java]")
        };
        let flags = if fact.read { 'R' } else { 'W' };
        let seconds = units(time, 1_000_000_000);
        format!(
            "  8,16   0 {:8} {seconds:>15}  3645  {action}   {flags} {} + {} {end}\n",
            number + 1,
            fact.start,
            fact.sectors
        )
    };
    let text: String = (0..).zip(events(facts)).map(line).collect();
    text.into_bytes()
}

/// Fourteen big-endian words a record; blocks of 256 bytes.
fn hp_srt(facts: &[Fact]) -> Vec<u8> {
    let mut bytes =
        b"$$TR_IOREC-1.3\n\0disks = {\n 0 -> {\n sectorsize  = 256\n }\n};\n\x0c".to_vec();
    for fact in facts {
        let response_us = fact.response_ns.unwrap_or(0) as u32 / 1000;
        let words = [
            56,
            4 << 16 | 1,
            (fact.arrival_ns / 1_000_000_000) as u32,
            (fact.arrival_ns % 1_000_000_000 / 1000) as u32,
            0,
            response_us,
            fact.sectors as u32 * 512,
            fact.start as u32 * 2,
            0x0800_0007,
            4,
            1,
            u32::from(fact.read),
            0,
            1,
        ];
        bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    }
    bytes
}

fn hfplayer(facts: &[Fact]) -> Vec<u8> {
    let mut text =
        b"#ELAPSED_USECS.D,CMD.S,INFLIGHT_IOS.I,LBA.I,NBLKS.I,LATENCY_USECS.D\n".to_vec();
    text.extend(lines(facts, |fact| {
        let command = if fact.read { "RD_IN" } else { "WR_IN" };
        let elapsed = units(81_442_951_096 + fact.arrival_ns, 1000);
        let latency = units(fact.response_ns.unwrap_or(0), 1000);
        format!(
            "{elapsed},{command},0,{},{},{latency}\n",
            fact.start, fact.sectors
        )
    }));
    text
}

fn mqsim(facts: &[Fact]) -> Vec<u8> {
    lines(facts, |fact| {
        let (time, kind) = (938_513_000 + fact.arrival_ns, u8::from(fact.read));
        format!("{time} 0 {} {} {kind}\n", fact.start, fact.sectors)
    })
}

/// Source file, format, name of a file of the format, and function that writes the format.
type Written = (
    &'static str,
    &'static str,
    &'static str,
    fn(&[Fact]) -> Vec<u8>,
);

const WRITTEN: [Written; 12] = [
    (
        "blkreplay/linux-webserver-2.load.gz",
        "blkreplay",
        "x.load",
        blkreplay,
    ),
    (
        "blkreplay/linux-mysql.load.gz",
        "blkreplay",
        "x.load",
        blkreplay,
    ),
    (
        "blkreplay/windows-shared-server.load.gz",
        "blkreplay",
        "x.load",
        blkreplay,
    ),
    ("msr/rsrch_1.csv.gz", "msr", "x.csv", msr),
    ("msr/wdev_1.csv.gz", "msr", "x.csv", msr),
    ("msr/wdev_3.csv.gz", "msr", "x.csv", msr),
    ("vscsi/cloudPhysicsIO.vscsi.gz", "vscsi", "x.vscsi", vscsi),
    (
        "blktrace/sample.blktrace.0.gz",
        "blktrace",
        "x.blktrace.0",
        blktrace,
    ),
    (
        "blktrace/ext4.blkparse.txt.gz",
        "blkparse",
        "x.txt",
        blkparse,
    ),
    ("hpl/ajw.1week.srt.gz", "hp-srt", "x.srt", hp_srt),
    ("hfplayer/small-tpch.csv.gz", "hfplayer", "x.csv", hfplayer),
    ("mqsim/tpcc-small.head2000.trace", "mqsim", "x.trace", mqsim),
];

fn table_of(file: &str) -> Table {
    let name = file.rsplit('/').next().unwrap().split('.').next().unwrap();
    Table::read(&format!("traces/{name}"))
}

/// Compares the first requests read from `path` with the oracle.
fn assert_read(path: &Path, format: &str, facts: &[Fact]) {
    let options = if format == "mqsim" {
        TraceOptions::for_format(format)
    } else {
        TraceOptions::default()
    };
    let mut reader = TraceReader::open(path, &options).unwrap();
    assert_eq!(reader.format().name, format, "{}", path.display());
    let read: Vec<TraceRecord> = (0..facts.len())
        .map_while(|_| reader.next().unwrap())
        .collect();
    assert_eq!(read.len(), facts.len(), "{}", path.display());
    let origin = read[0].arrival.as_nanos();
    for (number, (record, fact)) in read.iter().zip(facts).enumerate() {
        let operation = if fact.read {
            Operation::Read
        } else {
            Operation::Write
        };
        let whose = format!("{}: request {number}: {record:?}", path.display());
        assert_eq!(
            record.arrival.as_nanos() - origin,
            fact.arrival_ns,
            "{whose}"
        );
        assert_eq!(record.operation, operation, "{whose}");
        assert_eq!(
            record.extent,
            Extent::new(fact.start, fact.sectors),
            "{whose}"
        );
        if let Some(response) = fact.response_ns {
            let completed = Time::from_nanos(record.arrival.as_nanos() + response);
            assert_eq!(record.completed, Some(completed), "{whose}");
        }
    }
}

#[test]
fn requests_of_real_traces_are_read_from_each_format() {
    let folder = tempfile::tempdir().unwrap();
    for (file, format, name, write) in WRITTEN {
        let facts = facts(&table_of(file));
        assert!(facts.len() == 200, "{file}");
        let path = folder.path().join(name);
        std::fs::write(&path, write(&facts)).unwrap();
        assert_read(&path, format, &facts);
    }
}

/// Returns the facts `times` over, one set behind the other.
fn repeated(facts: &[Fact], times: u64) -> Vec<Fact> {
    let last = facts.last().unwrap().arrival_ns;
    let responses = facts.iter().filter_map(|fact| fact.response_ns);
    let set = last + responses.max().unwrap_or(0) + 1_000_000_000;
    let moved = |round| {
        facts.iter().map(move |fact| Fact {
            arrival_ns: fact.arrival_ns + round * set,
            ..*fact
        })
    };
    (0..times).flat_map(moved).collect()
}

#[test]
fn more_requests_than_the_sort_window_holds_are_read_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let times = 50;
    for (file, format, name, write) in WRITTEN {
        let facts = repeated(&facts(&table_of(file)), times);
        assert!(
            facts.len() > 2 * TraceOptions::default().sort_window,
            "{file}"
        );
        let path = folder.path().join(name);
        std::fs::write(&path, write(&facts)).unwrap();
        assert_read(&path, format, &facts);
    }
}

#[test]
fn requests_of_real_traces_are_read_from_their_files() {
    for (file, format, ..) in WRITTEN {
        let Some(path) = shared(file) else { continue };
        let (table, mut bytes) = (table_of(file), Vec::new());
        let packed = File::open(&path).unwrap();
        if file.ends_with(".gz") {
            MultiGzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
        } else {
            { packed }.read_to_end(&mut bytes).unwrap();
        }
        check_digest(&table, &table.sources[0][0], &bytes);
        assert_read(&path, format, &facts(&table));
    }
}

/// Reads `file` and returns its summary. The format is recognised unless `said` is true.
fn summary(file: &str, format: &str, said: bool) -> Option<TraceSummary> {
    let path = shared(file)?;
    let options = if said {
        TraceOptions::for_format(format)
    } else {
        TraceOptions::default()
    };
    let mut reader = TraceReader::open(&path, &options).unwrap();
    assert_eq!(reader.format().name, format, "{file}");
    Some(TraceSummary::of(&mut reader).unwrap())
}

fn share(summary: &TraceSummary, operation: &str) -> f64 {
    summary
        .operations
        .iter()
        .find(|of| of.operation == operation)
        .map_or(0.0, |of| of.share)
}

#[test]
fn every_trace_is_recognised_and_has_its_documented_count() {
    for (file, format, requests) in [
        ("blkreplay/linux-webserver-2.load.gz", "blkreplay", 269_007),
        ("blkreplay/linux-mysql.load.gz", "blkreplay", 80_794),
        (
            "blkreplay/windows-shared-server.load.gz",
            "blkreplay",
            1_371,
        ),
        ("msr/rsrch_1.csv.gz", "msr", 13_780),
        ("msr/wdev_1.csv.gz", "msr", 1_055),
        ("msr/wdev_3.csv.gz", "msr", 682),
        ("vscsi/cloudPhysicsIO.vscsi.gz", "vscsi", 113_872),
        ("blktrace/sample.blktrace.0.gz", "blktrace", 963),
        ("hpl/ajw.1week.srt.gz", "hp-srt", 44_519),
        ("hfplayer/small-tpch.csv.gz", "hfplayer", 780),
    ] {
        let Some(summary) = summary(file, format, false) else {
            continue;
        };
        assert_eq!(
            (summary.requests, summary.skipped_rows),
            (requests, 0),
            "{file}"
        );
    }
}

#[test]
fn an_mqsim_trace_is_read_when_its_format_is_said_and_asked_for_otherwise() {
    let file = "mqsim/tpcc-small.head2000.trace";
    let Some(summary) = summary(file, "mqsim", true) else {
        return;
    };
    assert_eq!(summary.requests, 2_000);
    let error = TraceReader::open(&shared(file).unwrap(), &TraceOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("--format disksim or --format mqsim"),
        "{error}"
    );
}

#[test]
fn the_blkparse_sample_has_a_request_for_each_insert_event() {
    // The trace has no queue events but 9,888 inserts, one of which has neither issue nor
    // completion.
    let Some(summary) = summary("blktrace/ext4.blkparse.txt.gz", "blkparse", false) else {
        return;
    };
    assert_eq!(summary.requests, 9_888);
    assert_eq!(
        summary.response_ms.map(|response| response.count),
        Some(9_887)
    );
}

#[test]
fn mixes_sizes_and_spans_are_the_documented_ones() {
    if let Some(summary) = summary("blkreplay/linux-webserver-2.load.gz", "blkreplay", false) {
        assert!((share(&summary, "read") - 0.55).abs() < 0.01, "{summary}");
        assert!(
            (720.5..721.5).contains(
                &(summary.addresses.unwrap().end_sector as f64 * 512.0 / (1u64 << 30) as f64)
            ),
            "{summary}"
        );
        assert!(
            (3_590.0..3_610.0).contains(&summary.duration_s),
            "{summary}"
        );
    }
    if let Some(summary) = summary("blkreplay/linux-mysql.load.gz", "blkreplay", false) {
        assert!((share(&summary, "read") - 0.089).abs() < 0.001, "{summary}");
    }
    if let Some(summary) = summary("msr/rsrch_1.csv.gz", "msr", false) {
        assert!((share(&summary, "read") - 0.003).abs() < 0.001, "{summary}");
        assert!(summary.duration_s > 6.5 * 86_400.0, "{summary}");
    }
    if let Some(summary) = summary("vscsi/cloudPhysicsIO.vscsi.gz", "vscsi", false) {
        assert!((share(&summary, "read") - 0.41).abs() < 0.01, "{summary}");
    }
}
