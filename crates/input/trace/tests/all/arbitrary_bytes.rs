//! Tests that no input bytes, however damaged, make a reader panic, hang or violate its contract.

use fullstroke_trace::{FORMATS, TraceOptions, TraceReader};
use proptest::prelude::*;
use std::io::Cursor;

/// A few good rows of the text formats.
const TEXTS: &[(&str, &str)] = &[
    (
        "msr",
        "128166372003061629,src1,1,Read,7014609920,24576,41286\n128166372003061630,src1,1,Write,0,512,0\n",
    ),
    (
        "spc1",
        "0,20941264,8192,W,0.551706\n1,3,512,r,0.6,further\n",
    ),
    ("disksim", "0.5 0 1024 8 1\n10.25 3 1024 8 0\n"),
    ("mqsim", "5 0 1024 8 1\n10 3 1024 8 0\n"),
    (
        "disksim-validate",
        "R Miss 564347 2 14095.370 13876.270\nW Hit 3 1 1.0 2.0\n",
    ),
    (
        "blkparse",
        "  8,16 3 4 0.000011950 3645 Q R 4938888 + 256 [x]\n  8,16 3 5 0.1 3645 C R 4938888 + 256 [0]\n",
    ),
    (
        "fio",
        "fio version 2 iolog\na add\na read 0 512\na wait 500 0\na write 4096 512\na sync 0 0\n",
    ),
    (
        "fio-ms",
        "fio version 3 iolog\n1 a add\n2 a read 0 512\n3 b trim 0 512\n",
    ),
    (
        "fio-log",
        "7, 5519586, 0, 4096, 1011712, 0\n8, 192567, 1, 4096, 512, 0x0000\n",
    ),
    (
        "blkreplay",
        "start ; sector; length ; op\n 0.0 ; 8 ; 8 ; W ; 0.0 ; 0.0\n 0.5 ; 8 ; 8 ; R ; 0.1 ; 0.2\n",
    ),
    (
        "alibaba",
        "419,W,8792731648,16384,1577808144360767\n419,R,0,512,1577808144360768\n",
    ),
    (
        "tencent",
        "1538323200,12910952,128,0,1063\n1538323201,8,8,1,1063\n",
    ),
    (
        "systor",
        "1455592181.027841000,,R,3,44060672,4096\n1455592181.1,0.5,W,3,0,512\n",
    ),
    (
        "fiu",
        "89966445500000 4892 syslogd 904265560 8 W 6 1 531e\n89966445500001 1 nfsd 0 8 R 6 1\n",
    ),
    (
        "csv",
        "time_us;op;offset_kb;bytes;disk\n1;R;4;4096;sda\n2;WS;8;512;sdb\n",
    ),
    (
        "biosnoop",
        "TIME(s) COMM PID DISK T SECTOR BYTES QUE(ms) LAT(ms)\n0.1 a b 7 sda W 8 4096 0.1 0.7\n",
    ),
    (
        "ftrace",
        "dd-7 [000] .... 1.5: block_rq_issue: 8,0 R 4096 () 64 + 8 [dd]\n<idle>-0 [000] .... 1.6: block_rq_complete: 8,0 R () 64 + 8 [0]\n",
    ),
    (
        "hfplayer",
        "#ELAPSED_USECS.D,CMD.S,LBA.I,NBLKS.I\n1.5,RD_IN,0,8\n2.5,WR_IN,8,8\n",
    ),
];

/// Beginnings of the formats with a magic number, so that the tests reach more than the first check
/// of a format.
const BEGINNINGS: &[(&str, &[u8])] = &[
    ("blktrace", b"\x07tae"),
    ("blktrace", b"\x65at\x08"),
    ("vscsi", b"\0\0\0\0\0\x10\0\0\x01\0\0\0\x28\0\0\x01"),
    (
        "hp-srt",
        b"$$TR_IOREC\ndisks = {\n0 -> {\nsectorsize = 256\n}\n}\x0c\0\0\0\x38\0\x04\0\x01",
    ),
    ("native", b"PAR1"),
];

/// Reads `bytes` to the end or the first error.
fn read(format: Option<&str>, bytes: &[u8], skip_bad: u64) -> Result<(), TestCaseError> {
    let options = TraceOptions {
        format: format.map(str::to_owned),
        skip_bad,
        ..TraceOptions::default()
    };
    let source = Box::new(Cursor::new(bytes.to_vec()));
    let Ok(mut reader) = TraceReader::open_read("made up", source, &options) else {
        return Ok(());
    };
    let mut last = None;
    while let Ok(Some(record)) = reader.next() {
        prop_assert!(last <= Some(record.arrival), "out of order: {:?}", record);
        prop_assert!(
            record
                .extent
                .start
                .0
                .checked_add(record.extent.sectors.0)
                .is_some(),
            "{:?}",
            record
        );
        last = Some(record.arrival);
    }
    Ok(())
}

#[test]
fn good_rows_are_read_in_each_text_format() {
    for (format, text) in TEXTS {
        let source = Box::new(Cursor::new(text.as_bytes()));
        let mut reader =
            TraceReader::open_read("made up", source, &TraceOptions::for_format(format)).unwrap();
        assert!(reader.next().unwrap().is_some(), "{format}");
        while reader.next().unwrap().is_some() {}
    }
}

#[test]
fn text_formats_are_told_apart_by_their_rows() {
    for (format, text) in TEXTS {
        let source = Box::new(Cursor::new(text.as_bytes()));
        let reader = TraceReader::open_read("made up", source, &TraceOptions::default());
        let found = reader.as_ref().map(|reader| reader.format().name).ok();
        let expected = match *format {
            // Times in whole numbers could also be DiskSim's.
            "mqsim" => None,
            // Nothing distinguishes ms from us.
            "fio-ms" => Some("fio"),
            other => Some(other),
        };
        assert_eq!(found, expected, "{format}");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_end_in_records_or_an_error(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        skip_bad in prop::sample::select(vec![0, u64::MAX]),
    ) {
        read(None, &bytes, skip_bad)?;
        for format in FORMATS {
            read(Some(format.name), &bytes, skip_bad)?;
        }
        for (format, beginning) in BEGINNINGS {
            read(Some(format), &[beginning, bytes.as_slice()].concat(), skip_bad)?;
        }
    }

    #[test]
    fn damaged_text_ends_in_records_or_an_error(
        (format, text) in prop::sample::select(TEXTS),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in any::<prop::sample::Index>(),
    ) {
        let mut bytes = text.as_bytes().to_vec();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        read(Some(format), &bytes, 0)?;
        read(Some(format), &bytes, u64::MAX)?;
        read(None, &bytes, 0)?;
        bytes.truncate(end.index(bytes.len()));
        read(Some(format), &bytes, 0)?;
    }
}
