//! Reads a DiskSim parameter file of arbitrary bytes. The file may include itself.
#![no_main]

use fullstroke_disksim::import_from;
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fuzz_target!(|text: &[u8]| {
    // A second file follows after a zero byte, for `source b`.
    let (first, second) = text
        .iter()
        .position(|&byte| byte == 0)
        .map_or((text, &text[..0]), |at| (&text[..at], &text[at + 1..]));
    let files: BTreeMap<PathBuf, Vec<u8>> =
        [("a".into(), first.to_vec()), ("b".into(), second.to_vec())].into();
    let _ = import_from(
        &files,
        Path::new("a"),
        &fullstroke_disksim::ImportOptions {
            strict: text.len() % 2 == 0,
            ..Default::default()
        },
    );
});
