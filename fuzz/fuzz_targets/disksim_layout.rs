//! Reads a layout of arbitrary bytes in an otherwise valid disk. In an accepted drive every address
//! has a location.
#![no_main]

use fullstroke_disksim::import_from;
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const MODEL: &str = "dm_disk M { Number of data surfaces = 4, Number of cylinders = 1000,
    Block count = 100000, Layout Model = source layout, Mechanical Model = dm_mech_g1 {
    Access time type = trackSwitchPlusRotation, Seek type = constant, Constant seek time = 1.5,
    Add. write settling delay = 0.1, Head switch time = 0.2, Rotation speed (in rpms) = 10000,
    Percent error in rpms = 0.0 } }";

fuzz_target!(|text: &[u8]| {
    let files: BTreeMap<PathBuf, Vec<u8>> = [
        ("a".into(), MODEL.as_bytes().to_vec()),
        ("layout".into(), text.to_vec()),
    ]
    .into();
    let _ = import_from(
        &files,
        Path::new("a"),
        &fullstroke_disksim::ImportOptions {
            strict: false,
            ..Default::default()
        },
    );
});
