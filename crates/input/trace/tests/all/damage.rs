//! Tests that reading of any bytes ends, with records or an error.

use fullstroke_trace::{FORMATS, TraceOptions, TraceReader};
use proptest::prelude::*;
use std::path::PathBuf;

/// Reads `bytes` as `format` (or as recognised) to the end.
fn read(bytes: &[u8], format: Option<&str>, skip_bad: u64) {
    let options = TraceOptions {
        format: format.map(str::to_owned),
        skip_bad,
        ..TraceOptions::default()
    };
    let bytes = Box::new(std::io::Cursor::new(bytes.to_vec()));
    let Ok(mut reader) = TraceReader::open_read("trace", bytes, &options) else {
        return;
    };
    let mut last = 0;
    while let Ok(Some(record)) = reader.next() {
        assert!(
            record.arrival.as_nanos() >= last,
            "records are in order of arrival"
        );
        last = record.arrival.as_nanos();
    }
}

fn read_as_all(bytes: &[u8]) {
    for skip_bad in [0, 1_000_000] {
        read(bytes, None, skip_bad);
        for format in FORMATS {
            read(bytes, Some(format.name), skip_bad);
        }
    }
}

const VALID: &[&[u8]] = &[
    b"128166372003061629,src1,1,Read,7014609920,24576,41286\n128166372003061630,src1,1,Write,0,512,1\n",
    b"0,20941264,8192,W,0.551706\n1,20939840,8192,r,0.554041,x\n",
    b"1.5 0 100 8 1\n2.5 0 108 8 0\n",
    b"R Miss 564347 2 14095.370 13876.270\nW Doub 1569163 3 10671.040 19196.570\n",
    b"  8,16 3 4 0.000011950 3645 Q R 64 + 8 [java]\n  8,16 3 5 0.000026421 3645 D R 64 + 8 [java]\n  8,16 3 7 0.001795683 0 C R 64 + 8 [0]\n",
    b"fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 0 4096\n/dev/sda wait 10\n/dev/sda write 4096 512\n",
    b"fio version 3 iolog\n0 a add\n0 a open\n1 a read 0 4096\n9 a trim 4096 512\n10 a sync\n",
    b"start ; sector ; length ; op ; replay_delay ; replay_duration\n0.1 ; 64 ; 8 ; R ; 0.0 ; 0.0\n0.2 ; 80 ; 8 ; W ; 0.0 ; 0.0\n",
    b"7, 5519586, 0, 4096, 1011712, 0\n8, 192567, 1, 4096, 512, 0x0000\n",
    b"1,R,4096,8192,1577808000000046\n2,W,0,512,1577808000000050\n",
    b"1538323200,12910952,128,0,1063\n1538323201,6265984,8,1,1071\n",
    b"1455592720.142,0.0003,R,0,4096,8192\n1455592720.143,,W,1,0,512\n",
    b"0 4892 syslogd 904265560 8 W 6 0 531e779b39068bb7ef8fd8ad36d5fe3a\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        read_as_all(&bytes);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "([0-9RW,.; +-]{0,40}\n){0,20}") {
        read_as_all(text.as_bytes());
    }

    #[test]
    fn mutated_traces_give_records_or_an_error(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = VALID[which.index(VALID.len())].repeat(4);
        for (place, value) in edits {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        read_as_all(&bytes);
    }

    #[test]
    fn mutated_real_traces_give_records_or_an_error(
        which in 0usize..4,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        from in any::<prop::sample::Index>(),
    ) {
        let file = ["vscsi/cloudPhysicsIO.vscsi.gz", "blktrace/sample.blktrace.0.gz", "hpl/ajw.1week.srt.gz",
            "hfplayer/small-tpch.csv.gz"][which];
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/traces").join(file);
        let Ok(packed) = std::fs::read(&path) else {
            eprintln!("skipped: {} is not there", path.display());
            return Ok(());
        };
        let mut bytes = Vec::new();
        let begin = std::io::Read::take(flate2::read::MultiGzDecoder::new(packed.as_slice()), 8_192);
        std::io::Read::read_to_end(&mut { begin }, &mut bytes).unwrap();
        for (place, value) in edits {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        bytes.truncate(from.index(bytes.len()) + 1);
        read_as_all(&bytes);
    }
}
