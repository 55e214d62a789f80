//! Recognises the format of arbitrary bytes and reads them in it.
//!
//! Guards that recognition never panics, and that it agrees with saying the
//! recognised format by name.

#![no_main]

use fullstroke_trace::{Options, Record, TraceReader};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

/// Records that are compared.
const COMPARED: usize = 256;

fuzz_target!(|bytes: &[u8]| {
    let Some(recognised) = open(bytes, &Options::default()) else {
        return;
    };
    let options = Options::for_format(recognised.format().name);
    let Some(said) = open(bytes, &options) else {
        panic!("{} refuses what it recognised", recognised.format().name)
    };
    assert_eq!(first(recognised), first(said));
});

fn open(bytes: &[u8], options: &Options) -> Option<TraceReader> {
    TraceReader::open_read("fuzzed", Box::new(Cursor::new(bytes.to_vec())), options).ok()
}

/// The first records, up to the first error.
fn first(mut reader: TraceReader) -> Vec<Record> {
    std::iter::from_fn(|| reader.next().ok().flatten())
        .take(COMPARED)
        .collect()
}
