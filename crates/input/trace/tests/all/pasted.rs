//! Tests of inputs as people have them: outputs of tools, several logs in one file, rows with a damage.

use fullstroke_contract::Operation;
use fullstroke_trace::{TraceError, TraceOptions, TraceReader, TraceRecord, TraceSummary};
use std::io::Cursor;

fn open(text: &str) -> Result<TraceReader, TraceError> {
    let bytes = Box::new(Cursor::new(text.as_bytes().to_vec()));
    TraceReader::open_read("pasted", bytes, &TraceOptions::default())
}

fn read(text: &str) -> (Vec<TraceRecord>, Vec<String>, &'static str) {
    let mut reader = open(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut records = Vec::new();
    if let Err(error) = reader.next_batch(&mut records, usize::MAX) {
        panic!("{text}: {error}");
    }
    (records, reader.notes(), reader.format().name)
}

fn error(text: &str) -> String {
    match open(text).and_then(|mut reader| reader.next_batch(&mut Vec::new(), usize::MAX)) {
        Ok(rows) => panic!("{rows} rows of {text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn each_tool_is_recognised_by_its_output() {
    for (text, format, requests) in [
        (
            "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n\
             0.100004    app            1950   sda     W 13092560   4096       0.74\n\
             0.100178    app            1950   sda     R 13092432   4096       5.61\n",
            "biosnoop",
            2,
        ),
        (
            "# tracer: nop\n#\n            dd-7   [001] d..1. 12.100000: block_rq_issue: 8,0 R 4096 () 64 + 8 [dd]\n\
             \x20       <idle>-0   [001] ..s1. 12.104000: block_rq_complete: 8,0 R () 64 + 8 [0]\n",
            "ftrace",
            1,
        ),
        (
            "version,time,op,size,lbn\n1,5633898,2a,512,42932745\n1,5633900,28,4096,42932760\n",
            "csv",
            2,
        ),
        (
            "timestamp;rw;offset;length;latency_us\n0,001;R;4096;4096;80\n0,002;W;8192;4096;90\n",
            "csv",
            2,
        ),
        (
            "ts_ns\tdisk\tdirection\tlba\tsectors\n5\tsda\twrite\t8\t8\n9\tsdb\tread\t16\t8\n",
            "csv",
            2,
        ),
    ] {
        let (records, _, found) = read(text);
        assert_eq!((found, records.len()), (format, requests), "{text}");
    }
}

#[test]
fn logs_one_behind_the_other_are_joined_with_a_note() {
    let part: String = (0..100)
        .map(|row| format!("{} /dev/sdb read {} 4096\n", row * 10_000, row * 4096))
        .collect();
    let header = "fio version 3 iolog\n0 /dev/sdb add\n0 /dev/sdb open\n";
    for text in [
        format!("{header}{part}{part}{part}"),
        format!("{header}{part}{header}{part}{header}{part}"),
    ] {
        let mut reader = open(&text).unwrap();
        let summary = TraceSummary::of(&mut reader).unwrap();
        assert_eq!(summary.requests, 300);
        assert!(
            (summary.duration_s - 2.97).abs() < 0.03,
            "{}",
            summary.duration_s
        );
        assert!(
            summary.notes[0].starts_with("the times begin anew 2 times (line "),
            "{:?}",
            summary.notes
        );
    }
    let events: String = (0..40)
        .map(|row| {
            let sector = row * 8;
            format!(
                "  8,0 0 {} {row}.000000000 7 Q R {sector} + 8 [x]\n  8,0 0 {} {row}.000100000 7 D R {sector} + 8 [x]\n  8,0 0 {} {row}.004000000 0 C R {sector} + 8 [0]\n",
                3 * row + 1, 3 * row + 2, 3 * row + 3
            )
        })
        .collect();
    let (records, notes, _) = read(&format!("{events}{events}"));
    assert_eq!(records.len(), 80);
    assert!(records.iter().all(|record| record.completed.is_some()));
    assert!(records[79].arrival.as_nanos() > 77_000_000_000);
    assert!(
        notes
            .iter()
            .any(|note| note.contains("begin anew once (line 121)")),
        "{notes:?}"
    );
}

#[test]
fn text_is_never_taken_for_a_binary_format() {
    const ROWS: &[&str] = &[
        "128166372003061629,hm,1,Read,15,4096,113736",
        "0,20941264,8192,W,0.551706",
        "0.5 0 1024 8 1",
        "R Miss 564347 2 14095.370 13876.270",
        "  8,16 3 4 0.000011950 3645 Q R 4938888 + 256 [x]",
        "419,W,8792731648,16384,1577808144360767",
        "1538323200,12910952,128,0,1063",
        "1455592181.027841000,0.5,R,3,44060672,4096",
        "89966445500000 4892 syslogd 904265560 8 W 6 1 531e",
        "0.5 ; 8 ; 8 ; R ; 0.1 ; 0.2",
        "7, 5519586, 0, 4096, 1011712, 0",
        "dd-7 [001] d..1. 12.100000: block_rq_issue: 8,0 R 4096 () 64 + 8 [dd]",
        "0.100004    app            1950   sda     W 13092560   4096       0.74",
        "a note that somebody wrote, of no format at all",
    ];
    let binary = ["oracle-general", "vscsi", "blktrace", "native", "hp-srt"];
    let check = |text: &str| match open(text) {
        Ok(reader) => assert!(
            !binary.contains(&reader.format().name),
            "{text}: {:?}",
            reader.format()
        ),
        Err(error) => assert!(!error.to_string().contains("byte 0"), "{text}: {error}"),
    };
    for row in ROWS {
        for place in 0..row.len() {
            for replacement in ["x", "1", ".", ",", " ", "e", "-", ""] {
                let mutated = format!("{}{replacement}{}", &row[..place], &row[place + 1..]);
                check(&mutated);
                check(&format!("{mutated}\n{mutated}\n{mutated}\n"));
            }
        }
        // Cut rows, rows of another name, and a name that means a binary format.
        for end in 0..row.len() {
            check(&format!("{} ", &row[..end]));
        }
    }
}

#[test]
fn a_row_that_is_nearly_right_is_named_by_its_column() {
    for (row, format, column) in [
        ("128166372003061629,hm,1,Read,1.5e9,4096,113736", "msr", 30),
        ("128166372003061629,hm,1,Erase,15,4096,113736", "msr", 25),
        ("128166372003061629,hm,one,Read,15,4096,113736", "msr", 23),
        ("419,W,8792731648,16k,1577808144360767", "alibaba", 18),
    ] {
        let error = error(&format!("{row}\n"));
        let place = format!("line 1, column {column}");
        assert!(
            error.contains(format) && error.contains(&place),
            "{row}: {error}"
        );
    }
}

#[test]
fn outputs_without_requests_say_what_reads_them() {
    let error = error(
        "Device            r/s     rkB/s     w/s     wkB/s  aqu-sz  %util\nsda 1.0 4.0 1.0 4.0 0.0 1.0\n",
    );
    assert!(
        error.contains("iostat") && error.contains("fullstroke like"),
        "{error}"
    );
}

#[test]
fn a_table_with_a_missing_column_lists_the_columns() {
    let error = error("time_us,op,size\n1,R,4096\n");
    assert!(
        error.contains("`time_us` (time)") && error.contains("columns for offset"),
        "{error}"
    );
}

#[test]
fn operations_of_tables_are_read() {
    let text =
        "time_s,op,lba,bytes\n0.1,read,0,512\n0.2,WS,8,512\n0.3,trim,16,512\n0.4,flush,0,0\n";
    let operations: Vec<Operation> = read(text).0.iter().map(|record| record.operation).collect();
    assert_eq!(
        operations,
        [
            Operation::Read,
            Operation::Write,
            Operation::Discard,
            Operation::Flush
        ]
    );
}
