//! Recognises the trace format of arbitrary bytes and reads them.
//!
//! The target checks that recognition never panics, and that reading by the format's name gives the
//! same records.

#![no_main]

use fullstroke_trace::{TraceOptions, TraceReader, TraceRecord};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

/// Number of records to compare.
const COMPARED: usize = 256;

fuzz_target!(|bytes: &[u8]| {
    let Some(recognised) = open(bytes, &TraceOptions::default()) else {
        return;
    };
    let options = TraceOptions::for_format(recognised.format().name);
    let Some(said) = open(bytes, &options) else {
        panic!("{} refuses what it recognised", recognised.format().name)
    };
    assert_eq!(first(recognised), first(said));
});

fn open(bytes: &[u8], options: &TraceOptions) -> Option<TraceReader> {
    TraceReader::open_read("fuzzed", Box::new(Cursor::new(bytes.to_vec())), options).ok()
}

/// Returns the first records, up to the first error.
fn first(mut reader: TraceReader) -> Vec<TraceRecord> {
    std::iter::from_fn(|| reader.next().ok().flatten())
        .take(COMPARED)
        .collect()
}
