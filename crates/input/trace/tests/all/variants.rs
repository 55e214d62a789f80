//! Tests of variations in real files: other line ends, blank lines, comments, rows out of order,
//! clocks that jump, requests of no length.

use fullstroke_trace::{TraceError, TraceOptions, TraceReader, TraceRecord, TraceSummary};
use std::io::Cursor;

fn reader(format: &str, text: &str, skip_bad: u64) -> TraceReader {
    let options = TraceOptions {
        skip_bad,
        ..TraceOptions::for_format(format)
    };
    TraceReader::open_read("made up", Box::new(Cursor::new(text.to_owned())), &options).unwrap()
}

fn read(format: &str, text: &str, skip_bad: u64) -> Result<(Vec<TraceRecord>, u64), TraceError> {
    let mut reader = reader(format, text, skip_bad);
    let mut records = Vec::new();
    reader.next_batch(&mut records, usize::MAX)?;
    Ok((records, reader.skipped()))
}

#[test]
fn a_clock_that_jumps_by_years_gets_a_word() {
    let event = |seconds: u64, sector: u64| {
        format!(
            "  8,0 0 {sector} {seconds}.000000000 1 Q R {sector} + 8 [x]\n  8,0 0 1 {seconds}.000000001 1 C R {sector} + 8 [0]\n"
        )
    };
    let text = [
        event(1, 8),
        event(2, 16),
        event(1_700_000_000, 24),
        event(1_700_000_001, 32),
    ]
    .concat();
    let summary = TraceSummary::of(&mut reader("blkparse", &text, 0)).unwrap();
    let note = summary
        .notes
        .iter()
        .find(|note| note.contains("years"))
        .expect("a note");
    assert!(
        note.starts_with("line 5: 53.9 years without a request before this one:"),
        "{note}"
    );
    // The same holds in every format.
    let rows = "128166372003061629,a,0,Read,0,512,10\n138166372003061629,a,0,Read,0,512,10\n";
    let summary = TraceSummary::of(&mut reader("msr", rows, 0)).unwrap();
    assert!(
        summary.notes[0].starts_with("line 2: 31.7 years without"),
        "{summary}"
    );
    assert!(summary.to_string().contains("note: line 2"), "{summary}");
    let quiet = "128166372003061629,a,0,Read,0,512,10\n128167372003061629,a,0,Read,0,512,10\n";
    assert!(
        TraceSummary::of(&mut reader("msr", quiet, 0))
            .unwrap()
            .notes
            .is_empty()
    );
}

#[test]
fn line_ends_and_blank_lines_of_other_systems_are_read() {
    for (format, rows) in [
        (
            "msr",
            [
                "128166372003061629,a,0,Read,0,512,10",
                "128166372003061630,a,0,Write,512,512,10",
            ],
        ),
        ("spc1", ["0,8,512,W,0.5", "1,3,512,r,0.6,further"]),
        ("disksim", ["0.5 0 1024 8 1", "10.25 3 1024 8 0"]),
        (
            "blkreplay",
            ["0.0 ; 8 ; 8 ; W ; 0.0 ; 0.0", "0.5 ; 8 ; 8 ; R ; 0.1 ; 0.2"],
        ),
        (
            "alibaba",
            [
                "419,W,8192,512,1577808144360767",
                "419,R,0,512,1577808144360768",
            ],
        ),
        (
            "tencent",
            ["1538323200,129,8,0,1063", "1538323201,8,8,1,1063"],
        ),
        (
            "fio-log",
            ["7, 5000, 0, 4096, 8192, 0", "8, 5000, 1, 4096, 0, 0"],
        ),
        (
            "blkparse",
            [
                "8,16 3 4 0.000011950 3645 Q R 64 + 8 [x]",
                "8,16 3 5 0.1 3645 Q R 640 + 8 [x]",
            ],
        ),
    ] {
        let plain = read(format, &rows.join("\n"), 0).unwrap().0;
        assert_eq!(plain.len(), 2, "{format}");
        for text in [
            format!("\r\n{}\r\n\r\n{}\r\n", rows[0], rows[1]),
            format!("\u{feff}{}\n\n   \n{}\n\n\n", rows[0], rows[1]),
            format!("{}  \n{}\t\n", rows[0], rows[1]),
            // Rows a little out of order.
            format!("{}\n{}", rows[1], rows[0]),
        ] {
            assert_eq!(
                read(format, &text, 0).unwrap().0,
                plain,
                "{format}: {text:?}"
            );
        }
    }
}

#[test]
fn rows_that_cannot_be_are_errors_with_their_line_and_can_be_skipped() {
    let good = "128166372003061629,a,0,Read,0,512,10\n";
    for bad in [
        "128166372003061630,a,0,Read,0,0,10",
        "-5,a,0,Read,0,512,10",
        "128166372003061630,a,0,Read,-512,512,10",
        "128166372003061630,a,0,Read,18446744073709551615,512,10",
        "128166372003061630,a,0,Read,0,512",
        "128166372003061630,a,0,Read,0,512,10,11",
        "99999999999999999999999,a,0,Read,0,512,10",
    ] {
        let text = format!("{good}{bad}\n{good}");
        let error = read("msr", &text, 0).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        let (records, skipped) = read("msr", &text, 1).unwrap();
        assert_eq!((records.len(), skipped), (2, 1), "{bad}");
    }
}
