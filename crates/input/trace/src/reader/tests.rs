use super::*;
use crate::BeyondPolicy;
use fullstroke_contract::Operation;
use fullstroke_units::{Duration, Sectors};
use proptest::prelude::*;
use std::io::Write as _;

const TEXT: &str = "5.0 0 1000 8 1\n5.5 1 4000 16 0\n6.0 0 9000 8 1\n7.0 1 2000 8 0\n";

fn open(text: &str, options: &TraceOptions) -> Result<TraceReader, TraceError> {
    let options = TraceOptions {
        format: Some("disksim".to_owned()),
        ..options.clone()
    };
    TraceReader::open_read(
        "trace",
        Box::new(std::io::Cursor::new(text.to_owned())),
        &options,
    )
}

fn read(text: &str, options: &TraceOptions) -> Result<Vec<TraceRecord>, TraceError> {
    let mut records = Vec::new();
    open(text, options)?.next_batch(&mut records, usize::MAX)?;
    Ok(records)
}

fn starts(text: &str, options: &TraceOptions) -> Vec<(u64, u64)> {
    let records = read(text, options).unwrap();
    records
        .iter()
        .map(|record| (record.arrival.as_nanos(), record.extent.start.0))
        .collect()
}

#[test]
fn a_reader_can_be_sent_to_another_thread() {
    fn sendable<T: Send>() {}
    sendable::<TraceReader>();
}

#[test]
fn times_count_from_the_first_request() {
    let expected = [
        (0, 1000),
        (500_000, 4000),
        (1_000_000, 9000),
        (2_000_000, 2000),
    ];
    assert_eq!(starts(TEXT, &TraceOptions::default()), expected);
}

#[test]
fn devices_and_operations_are_chosen_without_moving_the_others() {
    let options = TraceOptions {
        devices: vec![1],
        ..TraceOptions::default()
    };
    assert_eq!(starts(TEXT, &options), [(500_000, 4000), (2_000_000, 2000)]);
    let options = TraceOptions {
        operations: vec![Operation::Read],
        ..TraceOptions::default()
    };
    assert_eq!(starts(TEXT, &options), [(0, 1000), (1_000_000, 9000)]);
}

#[test]
fn a_selection_of_nothing_is_an_error_that_says_what_there_is() {
    let late = Some(Duration::from_nanos(1));
    for (options, said) in [
        (
            TraceOptions {
                devices: vec![7, 8],
                ..TraceOptions::default()
            },
            "--device 7 --device 8 selects no request; read so far: 4 requests from 0s to 0.002s, devices 0, 1, operations read, write",
        ),
        (
            TraceOptions {
                operations: vec![Operation::Discard],
                ..TraceOptions::default()
            },
            "--operation discard selects no request; read so far: 4 requests",
        ),
        (
            TraceOptions {
                from: Duration::from_nanos(9_000_000_000),
                ..TraceOptions::default()
            },
            "--from 9s selects no request; read so far: 4 requests",
        ),
        (
            TraceOptions {
                devices: vec![1],
                to: late,
                ..TraceOptions::default()
            },
            "--device 1 --to 1ns selects no request; read so far: 2 requests",
        ),
    ] {
        let error = read(TEXT, &options).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_window_of_time_begins_at_0_and_is_scaled() {
    let (from, to) = (
        Duration::from_nanos(500_000),
        Some(Duration::from_nanos(2_000_000)),
    );
    let options = TraceOptions {
        from,
        to,
        time_scale: 2.0,
        ..TraceOptions::default()
    };
    assert_eq!(starts(TEXT, &options), [(0, 4000), (1_000_000, 9000)]);
}

#[test]
fn rows_out_of_order_are_sorted_or_damaged() {
    let text = "1.0 0 1 1 1\n3.0 0 3 1 1\n2.0 0 2 1 1\n4.0 0 4 1 1\n";
    assert_eq!(
        starts(text, &TraceOptions::default())
            .iter()
            .map(|row| row.1)
            .collect::<Vec<_>>(),
        [1, 2, 3, 4]
    );
    let unsorted = TraceOptions {
        sort_window: 0,
        ..TraceOptions::default()
    };
    let error = read(text, &unsorted).unwrap_err().to_string();
    assert!(
        error.contains("line 3") && error.contains("order of arrival"),
        "{error}"
    );
    let tolerant = TraceOptions {
        skip_bad: 1,
        ..unsorted
    };
    assert_eq!(starts(text, &tolerant).len(), 3);
}

#[test]
fn damaged_rows_are_tolerated_and_counted_up_to_the_limit() {
    let text = "1.0 0 1 1 1\nrubbish\n2.0 0 2 0 1\n3.0 0 3 1 1\n";
    let error = read(text, &TraceOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`trace`, line 2, column 1") && error.contains("`rubbish`"),
        "{error}"
    );
    let error = read(
        text,
        &TraceOptions {
            skip_bad: 1,
            ..TraceOptions::default()
        },
    )
    .unwrap_err();
    assert!(
        matches!(error, TraceError::TooManyDamaged { tolerated: 1, .. }),
        "{error}"
    );
    let mut reader = open(
        text,
        &TraceOptions {
            skip_bad: 2,
            ..TraceOptions::default()
        },
    )
    .unwrap();
    let mut records = Vec::new();
    assert_eq!(reader.next_batch(&mut records, 10).unwrap(), 2);
    assert_eq!(reader.skipped(), 2);
}

#[test]
fn nothing_follows_an_error() {
    let mut reader = open(
        "1.0 0 1 1 1\nrubbish\n3.0 0 3 1 1\n",
        &TraceOptions::default(),
    )
    .unwrap();
    assert!(reader.next().is_err());
    assert!(reader.next().unwrap().is_none());
}

#[test]
fn a_trace_without_requests_is_an_error() {
    for text in ["", "\n\n"] {
        assert!(
            matches!(
                read(text, &TraceOptions::default()),
                Err(TraceError::Empty { .. })
            ),
            "{text:?}"
        );
    }
}

#[test]
fn a_byte_order_mark_and_carriage_returns_are_tolerated() {
    let text = format!("\u{feff}{}", TEXT.replace('\n', "\r\n"));
    assert_eq!(
        starts(&text, &TraceOptions::default()),
        starts(TEXT, &TraceOptions::default())
    );
}

#[test]
fn a_request_beyond_the_volume_is_an_error_that_names_it() {
    let options = TraceOptions {
        devices: vec![0],
        capacity: Some(Sectors(5000)),
        ..TraceOptions::default()
    };
    let error = read(TEXT, &options).unwrap_err().to_string();
    assert!(
        error.contains("line 3") && error.contains("9000 to 9008") && error.contains("5000"),
        "{error}"
    );
}

#[test]
fn scaling_finds_the_span_of_the_chosen_devices_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.disksim");
    // 8 MiB in the trace, 4 MiB in the volume.
    std::fs::write(
        &path,
        "1.0 0 0 8 1\n2.0 0 4100 8 1\n3.0 0 16376 8 1\n4.0 7 99999999 8 1\n",
    )
    .unwrap();
    let options = TraceOptions {
        devices: vec![0],
        capacity: Some(Sectors(8192)),
        beyond: BeyondPolicy::Scale,
        operations: vec![Operation::Read],
        ..TraceOptions::default()
    };
    let mut records = Vec::new();
    TraceReader::open(&path, &options)
        .unwrap()
        .next_batch(&mut records, 10)
        .unwrap();
    let starts: Vec<u64> = records.iter().map(|record| record.extent.start.0).collect();
    assert_eq!(starts, [0, 2048 + 4, 3 * 2048 + 2040]);
    let error = read(TEXT, &options).unwrap_err();
    assert!(error.to_string().contains("only once"), "{error}");
}

#[test]
fn several_devices_lie_side_by_side_or_are_an_error_that_names_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.disksim");
    std::fs::write(&path, TEXT).unwrap();
    let volume = |sectors| TraceOptions {
        capacity: Some(Sectors(sectors)),
        ..TraceOptions::default()
    };
    let read = |options: &TraceOptions| {
        let mut reader = TraceReader::open(&path, options)?;
        let mut records = Vec::new();
        reader.next_batch(&mut records, 10)?;
        let starts: Vec<u64> = records.iter().map(|record| record.extent.start.0).collect();
        Ok::<_, TraceError>((starts, reader.notes()))
    };
    // Device 0 ends at sector 9008; device 1 begins at the next multiple of 1 MiB.
    let (starts, notes) = read(&volume(100_000)).unwrap();
    assert_eq!(starts, [1000, 10_240 + 4000, 9000, 10_240 + 2000]);
    assert!(
        notes[0].starts_with("2 devices of the trace lie side by side"),
        "{notes:?}"
    );
    let error = read(&volume(10_000)).unwrap_err().to_string();
    assert!(
        error.contains("14256 sectors") && error.contains("--device"),
        "{error}"
    );
    let one = TraceOptions {
        devices: vec![1],
        ..volume(10_000)
    };
    assert_eq!(read(&one).unwrap().0, [4000, 2000]);
}

#[test]
fn absurd_rows_get_a_note_with_their_place() {
    let notes = |text: &str| {
        let mut reader = open(text, &TraceOptions::default()).unwrap();
        reader.next_batch(&mut Vec::new(), usize::MAX).unwrap();
        reader.notes()
    };
    let rows: String = (0..20)
        .map(|row| format!("{row}.0 0 {row} 8 1\n"))
        .collect();
    assert!(notes(&rows).is_empty());
    let large = notes(&format!("{rows}21.0 0 0 99999999999 1\n"));
    assert!(
        large[0].starts_with("line 21: a read of 48828125 MiB"),
        "{large:?}"
    );
    // 1,000 s behind a trace of 19 ms.
    let late = notes(&format!("{rows}1000000.0 0 0 8 1\n"));
    assert!(
        late[0].starts_with("line 21: 999.981 s without a request"),
        "{late:?}"
    );
}

#[test]
fn packed_traces_are_told_by_their_first_bytes_and_must_be_whole() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(TEXT.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(TEXT.as_bytes(), 1).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(TEXT.as_bytes()).unwrap();
    let xz = xz.finish().unwrap();
    let two_members = [gzip.clone(), gzip.clone()].concat();
    let count = |bytes: Vec<u8>| -> Result<usize, TraceError> {
        let bytes = Box::new(std::io::Cursor::new(bytes));
        let mut reader = TraceReader::open_read("trace", bytes, &TraceOptions::default())?;
        reader.next_batch(&mut Vec::new(), usize::MAX)
    };
    for (bytes, requests) in [(&gzip, 4), (&zstd, 4), (&xz, 4), (&two_members, 8)] {
        assert_eq!(count(bytes.clone()).unwrap(), requests);
    }
    for bytes in [gzip, zstd, xz] {
        let error = count(bytes[..bytes.len() - 5].to_vec()).unwrap_err();
        assert!(matches!(error, TraceError::Truncated { .. }), "{error}");
    }
}

#[test]
fn missing_files_and_folders_are_errors_that_name_them() {
    let error =
        TraceReader::open(Path::new("/no/such/trace"), &TraceOptions::default()).unwrap_err();
    assert!(error.to_string().contains("/no/such/trace"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let error = TraceReader::open(folder.path(), &TraceOptions::default()).unwrap_err();
    assert!(error.to_string().contains("folder"), "{error}");
    let error = TraceReader::open(folder.path(), &TraceOptions::for_format("msrr")).unwrap_err();
    assert!(
        matches!(
            error,
            TraceError::Read { .. } | TraceError::UnknownFormat { .. }
        ),
        "{error}"
    );
}

proptest! {
    #[test]
    fn wrapped_and_scaled_requests_fit_the_volume(
        start in 0u64..1 << 54,
        sectors in 1u64..4096,
        capacity in 4096u64..1 << 40,
        wrap: bool,
    ) {
        let beyond = if wrap { BeyondPolicy::Wrap } else { BeyondPolicy::Scale };
        let capacity = Sectors(capacity);
        let span = Some(Sectors(start + sectors));
        let options = TraceOptions { capacity: Some(capacity), beyond, span, ..TraceOptions::default() };
        let records = read(&format!("1.0 0 {start} {sectors} 1\n"), &options).unwrap();
        prop_assert!(records[0].extent.within(capacity));
        prop_assert_eq!(records[0].extent.sectors.0, sectors);
    }
}
