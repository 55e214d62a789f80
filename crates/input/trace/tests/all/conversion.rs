//! Tests that a trace written in a format reads back unchanged, up to the precision that
//! `docs/traces.md` states.

use fullstroke_contract::{Extent, Operation};
use fullstroke_trace::{
    TraceError, TraceOptions, TraceReader, TraceRecord, convert, head, output_for, render_head,
};
use fullstroke_units::Time;
use proptest::prelude::*;
use std::path::Path;

/// Generates the content of a native trace.
fn records() -> impl Strategy<Value = Vec<TraceRecord>> {
    let operation = prop_oneof![
        Just(Operation::Read),
        Just(Operation::Write),
        Just(Operation::Flush),
        Just(Operation::Discard)
    ];
    let times = (
        0u64..3_000_000,
        prop::option::of((0u64..5_000_000, 0u64..50_000_000)),
    );
    let record = (
        times,
        operation,
        0u64..1 << 40,
        1u64..5_000,
        0u32..3,
        0u32..100_000,
    );
    prop::collection::vec(record, 1..60).prop_map(|raw| {
        let mut arrival = 0;
        let mut all: Vec<TraceRecord> = raw
            .into_iter()
            .map(
                |((gap, later), operation, start, sectors, device, process)| {
                    arrival += gap;
                    let extent = match operation {
                        Operation::Flush => Extent::new(0, 0),
                        _ => Extent::new(start, sectors),
                    };
                    TraceRecord {
                        arrival: Time::from_nanos(arrival),
                        operation,
                        extent,
                        device,
                        process,
                        issued: later.map(|(wait, _)| Time::from_nanos(arrival + wait)),
                        completed: later
                            .map(|(wait, service)| Time::from_nanos(arrival + wait + service)),
                    }
                },
            )
            .collect();
        // Every format can express the first request, a read at time 0.
        all[0].operation = Operation::Read;
        all[0].extent = Extent::new(1, 8);
        let first = all[0].arrival.as_nanos();
        let earlier = |time: Time| Time::from_nanos(time.as_nanos() - first);
        for record in &mut all {
            record.arrival = earlier(record.arrival);
            record.issued = record.issued.map(earlier);
            record.completed = record.completed.map(earlier);
        }
        all
    })
}

fn write_native(records: &[TraceRecord], path: &Path) {
    let schema = fullstroke_trace::native_schema();
    let mut table = fullstroke_table::TableWriter::create(path, &schema).unwrap();
    for record in records {
        let value = serde_json::to_value(record).unwrap();
        for (index, column) in schema.columns().iter().enumerate() {
            match &value[&column.name] {
                serde_json::Value::Null => table.null(index),
                serde_json::Value::String(text) => table.text(index, text),
                number if column.kind == fullstroke_table::ColumnType::U32 => {
                    table.u32(index, number.as_u64().unwrap() as u32);
                }
                number => table.u64(index, number.as_u64().unwrap()),
            }
        }
        table.end_row().unwrap();
    }
    table.finish().unwrap();
}

fn read(path: &Path, format: &str) -> Vec<TraceRecord> {
    let mut reader = TraceReader::open(path, &TraceOptions::for_format(format)).unwrap();
    head(&mut reader, usize::MAX).unwrap()
}

/// Returns the part of `record` that the format keeps; `None` if the format leaves the record out.
fn kept(format: &str, record: &TraceRecord) -> Option<TraceRecord> {
    let cut = |time: Time, unit: u64| Time::from_nanos(time.as_nanos() / unit * unit);
    let left_out = matches!(record.operation, Operation::Flush | Operation::Discard);
    let plain = TraceRecord {
        process: 0,
        issued: None,
        completed: None,
        ..*record
    };
    match format {
        "native" => Some(*record),
        "disksim" => (!left_out).then_some(plain),
        "fio" => Some(TraceRecord {
            arrival: cut(record.arrival, 1_000),
            device: 0,
            ..plain
        }),
        _ => {
            let arrival = cut(record.arrival, 100);
            let completed = record.response().map(|response| {
                Time::from_nanos(arrival.as_nanos() + (response.as_nanos() / 100).max(1) * 100)
            });
            (!left_out).then_some(TraceRecord {
                arrival,
                completed,
                ..plain
            })
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_output_reads_back_up_to_its_precision(records in records(), packing in 0usize..4) {
        let folder = tempfile::tempdir().unwrap();
        let native = folder.path().join("trace.parquet");
        write_native(&records, &native);
        prop_assert_eq!(&read(&native, "native"), &records);
        let packing = ["", ".gz", ".zst", ".xz"][packing];
        for (format, ending) in [("native", "parquet"), ("disksim", "disksim"), ("fio", "fio"), ("msr", "csv")] {
            let packing = if format == "native" { "" } else { packing };
            let path = folder.path().join(format!("converted.{ending}{packing}"));
            let output = output_for(&path, None).unwrap();
            prop_assert_eq!(output.name, format);
            let mut reader = TraceReader::open(&native, &TraceOptions::default()).unwrap();
            let conversion = convert(&mut reader, output, &path).unwrap();
            let expected: Vec<TraceRecord> = records.iter().filter_map(|record| kept(format, record)).collect();
            prop_assert_eq!(conversion.requests, expected.len() as u64);
            prop_assert_eq!(conversion.left_out, (records.len() - expected.len()) as u64);
            let mut found = read(&path, format);
            if format == "fio" {
                found.iter_mut().for_each(|record| record.device = 0);
            }
            prop_assert_eq!(found, expected, "{}", format);
        }
    }
}

const TEXT: &str = "1.5 0 100 8 1\n2.5 0 108 8 0\n";

fn reader(text: &str, options: &TraceOptions) -> TraceReader {
    TraceReader::open_read(
        "trace",
        Box::new(std::io::Cursor::new(text.to_owned())),
        options,
    )
    .unwrap()
}

#[test]
fn a_conversion_that_fails_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["out.parquet", "out.csv.gz", "out.fio.zst", "out.disksim.xz"] {
        let path = folder.path().join(name);
        let output = output_for(&path, None).unwrap();
        let damaged = format!("{TEXT}rubbish\n");
        let options = TraceOptions::for_format("disksim");
        assert!(convert(&mut reader(&damaged, &options), output, &path).is_err());
        let nothing = TraceOptions {
            devices: vec![9],
            ..options
        };
        let nothing = TraceReader::open_read(
            "trace",
            Box::new(std::io::Cursor::new(TEXT.to_owned())),
            &nothing,
        )
        .and_then(|mut reader| convert(&mut reader, output, &path));
        let error = nothing.unwrap_err();
        assert!(error.to_string().contains("selects no request"), "{error}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    for name in ["native", "msr", "fio", "disksim"] {
        let path = Path::new("/dev/full");
        let output = output_for(path, Some(name)).unwrap();
        let error = convert(
            &mut reader(TEXT, &TraceOptions::for_format("disksim")),
            output,
            path,
        )
        .unwrap_err();
        assert!(
            matches!(error, TraceError::Table(_) | TraceError::Write { .. }),
            "{error}"
        );
        assert!(error.to_string().contains("/dev/full"), "{error}");
    }
}

#[test]
fn a_name_that_tells_no_format_is_an_error_that_lists_them() {
    let error = output_for(Path::new("out.dat"), None)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(".parquet") && error.contains(".csv"),
        "{error}"
    );
    let error = output_for(Path::new("out"), Some("mrs"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("`msr`"), "{error}");
    let native = output_for(Path::new("out.csv"), Some("native")).unwrap();
    let error = convert(
        &mut reader(TEXT, &TraceOptions::for_format("disksim")),
        native,
        Path::new("out.csv"),
    );
    assert!(error.unwrap_err().to_string().contains(".parquet"));
}

#[test]
fn the_head_is_a_table_and_serializes_to_the_native_columns() {
    let records = head(&mut reader(TEXT, &TraceOptions::default()), 1).unwrap();
    let line = serde_json::to_string(&records[0]).unwrap();
    assert!(
        line.starts_with(r#"{"arrival_ns":0,"operation":"read","start_sector":100,"sectors":8"#),
        "{line}"
    );
    let table = render_head(&records);
    assert!(
        table.contains("arrival ms") && table.contains("read"),
        "{table}"
    );
}
