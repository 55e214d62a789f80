//! Reads a seek file of arbitrary bytes.
#![no_main]

use fullstroke_disksim::seek_file;
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|text: &[u8]| {
    let _ = seek_file(Path::new("x.seek"), &String::from_utf8_lossy(text));
});
