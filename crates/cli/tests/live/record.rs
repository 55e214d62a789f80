//! Tests of records of live runs and their replay under the virtual clock.

use crate::common::{fullstroke, success};
use crate::pattern;
use crate::server::{Server, StackFolder, text};
use crate::stacks::{self, NESTED, RAID5, RAID6, TestedVolume};
use fullstroke_nbd::{CommandFlags, RequestCommand};
use fullstroke_table::{ColumnType, ROWS_PER_GROUP, Schema, TableReader, TableWriter};
use fullstroke_trace::native_schema;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::thread;

/// File size between one and two row groups of such reads.
const SHORT_KIB: u64 = 1200;

/// Row of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRow {
    pub arrival_ns: u64,
    pub operation: String,
    pub start: u64,
    pub sectors: u64,
    pub process: u32,
    pub completed_ns: u64,
    pub force_unit_access: bool,
    pub members: String,
    completion: u64,
    decisions: u64,
}

/// Returns the schema of a record: a trace's columns and the additional ones.
fn schema() -> Schema {
    native_schema()
        .column("force_unit_access", ColumnType::Bool)
        .column("status", ColumnType::Text)
        .column("members", ColumnType::Text)
        .column("late_ns", ColumnType::U64)
        .column("completion", ColumnType::U64)
        .column("decisions", ColumnType::U64)
}

/// Reads all rows of a record.
pub fn rows(path: &Path) -> Vec<RecordRow> {
    let schema = schema();
    let at = |name: &str| schema.position(name).unwrap();
    let mut table = TableReader::open(path, &schema).unwrap();
    let mut rows = Vec::new();
    while let Some(batch) = table.next_batch(1000).unwrap() {
        rows.extend((0..batch.rows()).map(|row| RecordRow {
            arrival_ns: batch.u64(0, row),
            operation: batch.text(1, row).to_owned(),
            start: batch.u64(2, row),
            sectors: batch.u64(3, row),
            process: batch.u32(at("process"), row),
            completed_ns: batch.optional_u64(7, row).unwrap(),
            force_unit_access: batch.bool(at("force_unit_access"), row),
            members: batch.text(at("members"), row).to_owned(),
            completion: batch.u64(at("completion"), row),
            decisions: batch.u64(at("decisions"), row),
        }));
    }
    rows
}

/// Copies a record with changed rows.
fn rewrite(from: &Path, to: &Path, change: impl Fn(&mut Vec<RecordRow>)) {
    let schema = schema();
    let notes = TableReader::open(from, &schema).unwrap();
    let mut table = TableWriter::create(to, &schema).unwrap();
    for key in ["stack", "config_digest", "seed", "version", "orders"] {
        table.note(key, notes.metadata(key).unwrap());
    }
    let mut rows = rows(from);
    change(&mut rows);
    for row in rows {
        table.u64(0, row.arrival_ns);
        table.text(1, &row.operation);
        table.u64(2, row.start);
        table.u64(3, row.sectors);
        table.u32(4, 0);
        table.u32(5, row.process);
        table.null(6);
        table.u64(7, row.completed_ns);
        table.bool(8, row.force_unit_access);
        table.text(9, "done");
        table.text(10, &row.members);
        table.u64(11, 0);
        table.u64(12, row.completion);
        table.u64(13, row.decisions);
        table.end_row().unwrap();
    }
    table.finish().unwrap();
}

/// Runs several clients with several requests in flight each.
fn load(server: &Server, clients: u64, requests: u64) {
    let streams: Vec<_> = (0..clients).map(|_| server.client()).collect();
    thread::scope(|scope| {
        for (number, mut client) in streams.into_iter().enumerate() {
            scope.spawn(move || {
                let mut random = pattern::random(&format!("client {number}"));
                let sectors = client.properties().size_bytes / 512;
                for request in 0..requests {
                    let count = 1 + random.below(100);
                    let (offset, length) =
                        (random.below(sectors - count) * 512, count as u32 * 512);
                    let (command, flags) = match random.below(12) {
                        0 => (RequestCommand::Flush, CommandFlags::empty()),
                        1 => (RequestCommand::Trim, CommandFlags::empty()),
                        2 => (RequestCommand::WriteZeroes, CommandFlags::NO_HOLE),
                        3 => (RequestCommand::Write, CommandFlags::FORCE_UNIT_ACCESS),
                        4..7 => (RequestCommand::Write, CommandFlags::empty()),
                        _ => (RequestCommand::Read, CommandFlags::empty()),
                    };
                    let (offset, length) = if command == RequestCommand::Flush {
                        (0, 0)
                    } else {
                        (offset, length)
                    };
                    let payload = if command == RequestCommand::Write {
                        vec![9; length as usize]
                    } else {
                        vec![]
                    };
                    client
                        .submit(command, offset, length, flags, &payload)
                        .unwrap();
                    while client.in_flight() >= if request + 1 == requests { 1 } else { 8 } {
                        assert_eq!(client.receive().unwrap().result, Ok(()));
                    }
                }
            });
        }
    });
}

/// Records a run.
fn recorded(volume: TestedVolume, pace: &[&str], clients: u64, orders: bool) -> StackFolder {
    let place = StackFolder::new(volume, 8);
    let record = place.name("record.parquet");
    let server = place.serve(&[pace, &["--record", &record]].concat());
    let requests = 60;
    load(&server, clients, requests);
    let mut expected = clients * requests;
    if orders {
        let drive = volume.expendable[0];
        server.ctl(&["fail", drive]);
        load(&server, clients, requests);
        server.ctl(&["restore", drive, "--rate", "2MiB"]);
        load(&server, clients, requests);
        expected *= 3;
    }
    let summary = server.stop_well();
    assert_eq!(summary["recorded_requests"], expected);
    place
}

fn replay(place: &StackFolder, record: &str) -> (Option<i32>, String, String) {
    let output = fullstroke(&[
        "run",
        &place.stack(),
        "--replay-decisions",
        &place.name(record),
    ]);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn is_decided_again(volume: TestedVolume, pace: &[&str], clients: u64, orders: bool) {
    let place = recorded(volume, pace, clients, orders);
    let (status, said, error) = replay(&place, "record.parquet");
    let case = format!("{} {pace:?}, {clients} clients: {said}{error}", volume.name);
    assert_eq!(status, Some(0), "{case}");
    assert!(
        said.contains("the same decisions in the same order for all"),
        "{case}"
    );
    assert_eq!(said.contains("and 2 orders to members"), orders, "{case}");
}

#[test]
fn healthy_runs_are_decided_again_alike_at_every_pace() {
    for pace in [&["--speed", "1"][..], &["--speed", "20"], &["--no-delay"]] {
        is_decided_again(RAID5, pace, 1, false);
    }
    is_decided_again(RAID6, &["--speed", "20"], 4, false);
    is_decided_again(NESTED, &["--no-delay"], 4, false);
}

#[test]
fn runs_with_failures_and_rebuilds_are_decided_again_alike() {
    is_decided_again(RAID5, &["--speed", "20"], 3, true);
    is_decided_again(RAID6, &["--no-delay"], 3, true);
    is_decided_again(NESTED, &["--speed", "20"], 2, true);
}

#[test]
fn another_decision_is_named_and_status_1() {
    let place = recorded(RAID5, &["--no-delay"], 1, false);
    let record = place.path("record.parquet");
    rewrite(&record, &place.path("same.parquet"), |_| {});
    assert_eq!(replay(&place, "same.parquet").0, Some(0));
    rewrite(&record, &place.path("moved.parquet"), |rows| {
        let row = rows[10..]
            .iter_mut()
            .find(|row| row.operation == "read")
            .unwrap();
        row.start = if row.start < 10_000 {
            row.start + 9_000
        } else {
            row.start - 9_000
        };
    });
    rewrite(&record, &place.path("later.parquet"), |rows| {
        rows[20].decisions ^= 1
    });
    for name in ["moved.parquet", "later.parquet"] {
        let (status, said, error) = replay(&place, name);
        assert_eq!((status, error.as_str()), (Some(1), ""), "{said}");
        assert!(said.contains("the first that was not is request"), "{said}");
    }
    assert!(
        replay(&place, "later.parquet")
            .1
            .starts_with("59 of 60 requests")
    );
}

#[test]
fn a_record_of_another_stack_is_refused() {
    let place = recorded(RAID5, &["--no-delay"], 1, false);
    let other = text(&stacks::write(RAID6, 8, place.stack.parent().unwrap()));
    let record = place.name("record.parquet");
    for arguments in [
        vec!["run", &other, "--replay-decisions", &record],
        vec![
            "run",
            &place.stack(),
            "--replay-decisions",
            &record,
            "--set",
            "volume.chunk=32KiB",
        ],
    ] {
        let error = crate::common::refused(&arguments);
        assert!(
            error.contains("record.parquet") && error.contains("raid5"),
            "{error}"
        );
    }
}

#[test]
fn a_record_is_a_trace_for_every_format_that_can_be_written() {
    let place = recorded(RAID5, &["--speed", "20"], 2, false);
    let record = place.name("record.parquet");
    let told: Value =
        serde_json::from_str(&success(&["trace", "info", &record, "--json"])).unwrap();
    assert!(told.to_string().contains("120"), "{told}");
    for format in fullstroke_trace::OUTPUTS.iter().map(|output| output.name) {
        let converted = place.name(&format!("as-{format}"));
        success(&[
            "trace",
            "convert",
            &record,
            &converted,
            "--to-format",
            format,
        ]);
        let head = success(&[
            "trace", "head", &converted, "--format", format, "--number", "1000", "--json",
        ]);
        let rows: Vec<Value> = head
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(rows.len() >= 60, "{format}: {} rows", rows.len());
    }
}

#[test]
fn a_record_tells_who_asked_for_what_and_which_drives_worked() {
    let place = StackFolder::new(RAID5, 8);
    let record = place.path("record.parquet");
    let server = place.serve(&["--no-delay", "--record", record.to_str().unwrap()]);
    let (mut first, mut second) = (server.client(), server.client());
    first
        .write(0, &[1; 16 << 10], CommandFlags::FORCE_UNIT_ACCESS)
        .unwrap();
    second.read(0, &mut [0; 4096]).unwrap();
    first.flush().unwrap();
    second.trim(0, 1 << 16).unwrap();
    drop((first, second));
    server.stop_well();
    let rows = rows(&record);
    let seen: Vec<_> = rows
        .iter()
        .map(|row| (row.operation.as_str(), row.start, row.sectors))
        .collect();
    assert_eq!(
        seen,
        [
            ("write", 0, 32),
            ("read", 0, 8),
            ("flush", 0, 0),
            ("discard", 0, 128)
        ]
    );
    assert_eq!(
        rows.iter()
            .map(|row| row.force_unit_access)
            .collect::<Vec<_>>(),
        [true, false, false, false]
    );
    assert!(rows[0].process == rows[2].process && rows[1].process == rows[3].process);
    assert_ne!(rows[0].process, rows[1].process);
    // The write is in one chunk, so its drive and the parity drive work.
    assert_eq!(
        (rows[0].members.as_str(), rows[1].members.as_str()),
        ("0 4", "0")
    );
    assert!(rows.iter().all(|row| row.completed_ns >= row.arrival_ns));
    assert_eq!(
        rows.iter().map(|row| row.completion).collect::<Vec<_>>(),
        [0, 1, 2, 3]
    );
}

const READS_IN_FLIGHT: u64 = 64;

/// Reads at random places with many requests in flight.
fn read_often(server: &Server, requests: u64) {
    let mut client = server.client();
    let mut random = pattern::random("reads");
    for request in 0..requests {
        let offset = random.below(4096) * 512;
        client
            .submit(
                RequestCommand::Read,
                offset,
                512,
                CommandFlags::empty(),
                &[],
            )
            .unwrap();
        while client.in_flight()
            >= if request + 1 == requests {
                1
            } else {
                READS_IN_FLIGHT as usize
            }
        {
            assert_eq!(client.receive().unwrap().result, Ok(()));
        }
    }
}

#[test]
fn a_record_whose_disk_is_full_is_kept_as_far_as_it_was_written() {
    let group = ROWS_PER_GROUP as u64;
    let place = StackFolder::new(RAID5, 8);
    let (record, partial) = (
        place.path("record.parquet"),
        place.path("record.parquet.partial"),
    );
    let server =
        place.serve_with_short_files(SHORT_KIB, &["--no-delay", "--record", &text(&record)]);
    read_often(&server, 2 * group);
    let end = server.stop();
    assert_eq!(
        (end.status.code(), end.summary),
        (Some(2), None),
        "{}",
        end.complaints
    );
    let told = [
        "record.parquet`: File too large",
        "first 65536 requests",
        "record.parquet.partial`",
    ];
    assert!(
        told.iter().all(|words| end.complaints.contains(words)),
        "{}",
        end.complaints
    );
    assert!(!record.exists());
    fs::rename(&partial, &record).unwrap();
    assert_eq!(rows(&record).len() as u64, group);
    // The last kept requests may have been in flight with the first lost one, so their decisions
    // may differ.
    let (status, said, error) = replay(&place, "record.parquet");
    let alike = match status {
        Some(0) => group,
        _ => said
            .split(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap_or_else(|_| panic!("{said}{error}")),
    };
    assert!(
        (group - READS_IN_FLIGHT..=group).contains(&alike),
        "{said}{error}"
    );
}

#[test]
fn a_record_of_which_nothing_could_be_written_is_told_and_leaves_nothing() {
    let place = StackFolder::new(RAID5, 8);
    let record = place.name("record.parquet");
    let server = place.serve_with_short_files(1, &["--no-delay", "--record", &record]);
    read_often(&server, 10_000);
    let end = server.stop();
    assert_eq!(end.status.code(), Some(2), "{}", end.complaints);
    let told = [
        "record.parquet`: File too large",
        "no request of the record is kept",
    ];
    assert!(
        told.iter().all(|words| end.complaints.contains(words)),
        "{}",
        end.complaints
    );
    for name in ["record.parquet", "record.parquet.partial"] {
        assert!(!place.path(name).exists(), "{name}");
    }
}
