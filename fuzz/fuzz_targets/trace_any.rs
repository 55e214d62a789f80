//! Reads arbitrary bytes in every trace format. The first byte chooses the format; the rest is the
//! file.
//!
//! The target checks two properties: no input causes a panic or a hang, and every record keeps the
//! promises of `Record`.

#![no_main]

use fullstroke_trace::{FORMATS, TraceOptions, TraceReader};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, file)) = bytes.split_first() else {
        return;
    };
    let format = FORMATS[usize::from(choice) % FORMATS.len()];
    for skip_bad in [0, u64::MAX] {
        let options = TraceOptions {
            skip_bad,
            ..TraceOptions::for_format(format.name)
        };
        read(file, &options);
    }
});

/// Reads to the end or to the first error.
fn read(file: &[u8], options: &TraceOptions) {
    let source = Box::new(Cursor::new(file.to_vec()));
    let Ok(mut reader) = TraceReader::open_read("fuzzed", source, options) else {
        return;
    };
    let (mut last, mut count) = (None, 0);
    while let Ok(Some(record)) = reader.next() {
        assert!(last <= Some(record.arrival), "out of order: {record:?}");
        assert!(
            record
                .extent
                .start
                .0
                .checked_add(record.extent.sectors.0)
                .is_some(),
            "{record:?}"
        );
        last = Some(record.arrival);
        count += 1;
        assert!(
            is_packed(file) || count <= file.len(),
            "more records than bytes"
        );
    }
}

/// True if the file may unpack to more bytes than its length.
fn is_packed(file: &[u8]) -> bool {
    matches!(
        file,
        [0x1f, 0x8b, ..] | [0x28, 0xb5, ..] | [0xfd, ..] | [b'P', b'A', b'R', b'1', ..]
    )
}
