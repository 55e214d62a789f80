//! Tests of tables with named columns.

use super::*;
use crate::formats::blktrace::testing::{rows_in, rows_of};
use crate::input::BUFFER_BYTES;
use std::io::Cursor;

fn rows(text: &str) -> Vec<TraceRow> {
    rows_of(&FORMAT, text.as_bytes()).unwrap_or_else(|fault| panic!("{text}: {fault:?}"))
}

fn mapped(text: &str, map: &str) -> Result<Vec<TraceRow>, TraceFault> {
    let source = Cursor::new(text.as_bytes().to_vec());
    let mut input = crate::source::unpack(source, None, BUFFER_BYTES)?;
    input.set_columns(map.parse().unwrap());
    rows_in(&FORMAT, &mut input)
}

fn problem(text: &str) -> crate::fault::Problem {
    match rows_of(&FORMAT, text.as_bytes()) {
        Err(TraceFault::Row(problem) | TraceFault::Broken(problem)) => *problem,
        other => panic!("{text}: {other:?}"),
    }
}

/// Reads one row and returns arrival, operation, sector, sectors.
fn one(text: &str) -> (u64, Operation, u64, u64) {
    let rows = rows(text);
    assert_eq!(rows.len(), 1, "{text}");
    let row = rows[0];
    (row.arrival, row.operation, row.start, row.sectors)
}

#[test]
fn columns_are_found_in_any_order_and_with_any_delimiter() {
    let expected = (1_500_000_000, Operation::Write, 8, 16);
    for text in [
        "time_s,op,offset_bytes,size_bytes\n1.5,W,4096,8192\n",
        "op;size_bytes;offset_bytes;time_s\nwrite;8192;4096;1,5\n",
        "Offset(KiB)\tLen(KiB)\tIOType\tTimestamp(ms)\n4\t8\tWS\t1500\n",
        "ts_us|is_write|lba|sectors\n1500000|1|8|16\n",
        "# time_ns,type,sector,bytes\n1500000000,Write,8,8192\n",
        "\"time (s)\",\"I/O Type\",\"lba\",\"Bytes\",\"note\"\n\"1.5\",\"W\",\"8\",\"8192\",\"a,b\"\n",
        "time_s  op  lba  bytes\n1.5     W   8    8192\n",
        "sep=;\ntime_s;op;lba;bytes\n1,5;W;8;8192\n",
        "# captured on the NAS, second disk\n\ntime_s,op,lba,bytes\n1.5,W,8,8192\n",
    ] {
        assert_eq!(one(text), expected, "{text}");
        let head = TraceHead {
            name: "",
            bytes: text.as_bytes(),
        };
        assert!(detect(&head) >= Confidence::Likely, "{text}");
    }
}

#[test]
fn libcachesims_table_has_seconds_sectors_and_bytes() {
    let text = "version,time,op,size,lbn\n1,5633898,2a,512,42932745\n1,5633900,28,4096,42932760\n1,5633901,00,0,0\n";
    let rows = rows(text);
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (rows[0].arrival, rows[0].operation),
        (5_633_898_000_000_000, Operation::Write)
    );
    assert_eq!(
        (rows[1].start, rows[1].sectors, rows[1].operation),
        (42_932_760, 8, Operation::Read)
    );
}

#[test]
fn units_without_a_name_follow_from_the_rows() {
    for (times, unit) in [
        (["0", "10000", "20000"], 1000),
        (["0.0", "0.01", "0.02"], 1_000_000_000),
        (
            ["1700000000000", "1700000000010", "1700000000020"],
            1_000_000,
        ),
        (
            ["1700000000.5", "1700000000.6", "1700000000.7"],
            1_000_000_000,
        ),
        (
            [
                "128166372003061629",
                "128166372003061630",
                "128166372003061639",
            ],
            100,
        ),
        (
            [
                "1700000000000000000",
                "1700000000000000010",
                "1700000000000000020",
            ],
            1,
        ),
    ] {
        let text: String = times
            .iter()
            .map(|time| format!("{time},R,4096,512\n"))
            .collect();
        let rows = rows(&format!("time,op,offset,size\n{text}"));
        let expected = super::values::scaled(times[2].as_bytes(), unit, false).unwrap();
        assert_eq!(rows[2].arrival, expected, "{times:?}");
        assert_eq!((rows[0].start, rows[0].sectors), (8, 1));
    }
    let rows = rows("time,op,offset,size\n1,R,7,3\n2,R,10,3\n");
    assert_eq!((rows[1].start, rows[1].sectors), (10, 3));
}

#[test]
fn completions_follow_from_a_latency_or_an_end() {
    let rows = rows("time_ms,op,lba,bytes,latency_us\n10,R,0,512,1500\n20,R,0,512,\n");
    assert_eq!(
        (rows[0].arrival, rows[0].completed),
        (10_000_000, Some(11_500_000))
    );
    assert_eq!(rows[1].completed, None);
    let rows = super::tests::rows("start_ms,end_ms,op,lba,bytes\n10,12,R,0,512\n");
    assert_eq!(rows[0].completed, Some(12_000_000));
    let rows = super::tests::rows("end_ms,latency_ms,op,lba,bytes\n10,2,R,0,512\n");
    assert_eq!(
        rows[0].completed.map(|end| end - rows[0].arrival),
        Some(2_000_000)
    );
}

#[test]
fn devices_have_numbers_or_are_numbered_as_they_appear() {
    let numbers = rows("time_s,op,lba,bytes,disk\n1,R,0,512,7\n2,R,0,512,3\n");
    assert_eq!([numbers[0].device, numbers[1].device], [7, 3]);
    let names =
        rows("time_s,op,lba,bytes,host,disk\n1,R,0,512,a,0\n2,R,0,512,b,0\n3,R,0,512,a,0\n");
    assert_eq!([0, 1, 2].map(|row: usize| names[row].device), [0, 1, 0]);
}

#[test]
fn the_option_names_columns_of_any_table() {
    let text = "when,dir,where,amount\n5,in,2,3\n";
    let map = "time=when:ms,op=read,offset=where:4096,size=amount:KiB";
    let rows = mapped(text, map).unwrap();
    assert_eq!(
        (rows[0].arrival, rows[0].start, rows[0].sectors),
        (5_000_000, 16, 6)
    );
    // Without a header, by number.
    let rows = mapped(
        "5 W 2 3\n6 R 4 5\n",
        "time=1:us,op=2,offset=3:sectors,size=4:sectors",
    )
    .unwrap();
    assert_eq!((rows.len(), rows[0].arrival, rows[1].start), (2, 5000, 4));
    for (map, word) in [
        ("time", "ROLE=COLUMN"),
        ("when=a", "no role `when`"),
        ("time=a:h", "no unit `h`"),
        ("time=a,time=b", "twice"),
        ("time=:us", "names no column"),
    ] {
        let error = map.parse::<ColumnMap>().unwrap_err();
        assert!(error.contains(word), "{map}: {error}");
    }
    let Err(TraceFault::Broken(problem)) = mapped(text, "time=odd:us,op=read") else {
        panic!("there is no such column")
    };
    assert!(
        problem.found.contains("`where`") && problem.expected.contains("`odd`"),
        "{problem:?}"
    );
}

#[test]
fn an_error_lists_the_found_and_the_missing_columns() {
    let problem = problem("time_us,op,place,size\n1,R,0,512\n");
    assert!(problem.found.contains("`place`"), "{problem:?}");
    assert!(problem.found.contains("`time_us` (time)"), "{problem:?}");
    assert!(
        problem
            .expected
            .contains("offset; name them with --columns"),
        "{problem:?}"
    );
}

#[test]
fn a_damaged_field_is_named_by_line_and_column() {
    for (row, column, word) in [
        ("x,R,0,512", 1, "time"),
        ("1,Q,0,512", 3, "operation"),
        ("1,R,-5,512", 5, "address"),
        ("1,R,0,big", 7, "size"),
        ("1,R,0", 1, "4 columns"),
        ("1,R,18446744073709551615,512", 1, "2^64"),
    ] {
        let problem = problem(&format!("time_us,op,offset_bytes,size_bytes\n{row}\n"));
        assert_eq!(
            problem.place,
            crate::TracePlace::Line { line: 2, column },
            "{row}"
        );
        assert!(problem.expected.contains(word), "{row}: {problem:?}");
    }
}

#[test]
fn headers_of_other_formats_stay_theirs() {
    for header in OWN_HEADERS {
        let head = TraceHead {
            name: "",
            bytes: header.as_bytes(),
        };
        assert_eq!(detect(&head), Confidence::No, "{header}");
    }
    let head = TraceHead {
        name: "",
        bytes: b"1,R,0,512,4\n",
    };
    assert_eq!(detect(&head), Confidence::No);
}

#[test]
fn numbers_with_units_and_groups_of_digits_are_read() {
    let expected = (1_500_000_000, Operation::Write, 2048, 16);
    for text in [
        "time_s,op,offset,size\n1.5,W,1M,8k\n",
        "time_s,op,offset,size\n1.5,W,\"1,048,576\",\"8,192\"\n",
        "time_s;op;offset;size\n1,5;W;1 MiB;8 KiB\n",
    ] {
        assert_eq!(one(text), expected, "{text}");
    }
}

#[test]
fn tables_of_windows_and_of_perf_tools_are_read() {
    // DiskMon numbers its rows in a column called `#`.
    let diskmon =
        "#\tTime\tDuration (s)\tDisk\tRequest\tSector\tLength\n0\t1.5\t0.002\t1\tWrite\t8\t16\n";
    assert_eq!(one(diskmon), (1_500_000_000, Operation::Write, 8, 16));
    // Windows Performance Analyzer.
    let analyzer = "IO Type,Process,Disk,Min Offset,Size (B),Init Time (s),Complete Time (s),IO Time (\u{b5}s)\n\
        Write,System (4),0,4096,8192,1.500000,1.505000,\"5,000\"\n";
    let row = rows(analyzer)[0];
    assert_eq!((row.start, row.sectors), (8, 16));
    assert_eq!(row.completed, Some(row.arrival + 5_000_000));
    // iosnoop with -s and -t.
    let iosnoop = "Tracing block I/O. Ctrl-C to end.\n\
        STARTs         ENDs           COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\n\
        1.500000       1.500618       supervise    1809   W    202,1    8            8192      0.62\n";
    let row = rows(iosnoop)[0];
    assert_eq!(
        (row.arrival, row.completed),
        (1_500_000_000, Some(1_500_618_000))
    );
    // Without -s there is no time, and the error lists the columns.
    let bare = "Tracing block I/O. Ctrl-C to end.\nCOMM PID TYPE DEV BLOCK BYTES LATms\nx 1 W 202,1 8 8192 1.32\n";
    let problem = problem(bare);
    assert!(
        problem.found.contains("`LATms`") && problem.expected.contains("columns for time;"),
        "{problem:?}"
    );
}

#[test]
fn a_table_with_unknown_names_is_refused_with_its_columns() {
    let text = "Zeit;Typ;Offset;Laenge\n0,5;R;4096;8192\n";
    let head = TraceHead {
        name: "",
        bytes: text.as_bytes(),
    };
    assert_eq!(detect(&head), Confidence::Possible);
    assert!(problem(text).found.contains("`Laenge`"));
}
