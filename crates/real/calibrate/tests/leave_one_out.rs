//! Rules chosen on some disks and held against another.

use fullstroke_calibrate::validate::{MeasuredDisk, TraceFile, leave_one_out};
use std::path::Path;

/// The measurements of some disks, or `None`, said aloud, where they are not
/// there.
fn measured(names: &[&str]) -> Option<Vec<MeasuredDisk>> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/oracle/disks");
    if !shared.is_dir() {
        eprintln!("skipped: {} is not there", shared.display());
        return None;
    }
    let disk = |name: &&str| {
        let path = shared.join(format!("{name}.trace.gz"));
        MeasuredDisk::read(&TraceFile {
            name: (*name).to_owned(),
            path,
        })
        .unwrap()
        .unwrap()
    };
    Some(names.iter().map(disk).collect())
}

/// The first holds whole tracks, by which its read-ahead does not matter any
/// more; without that rule it tells that read-ahead fills segments.
#[test]
fn a_rule_that_another_hides_on_the_disks_of_a_fit_is_kept_for_the_next_disk() {
    let Some(disks) = measured(&["atlas10k", "cheetah9LP"]) else {
        return;
    };
    let found = leave_one_out(&disks).unwrap();
    let cheetah = &found.disks[1];
    for rule in ["fill=1", "whole_tracks=1"] {
        assert!(
            cheetah.rules.iter().any(|chosen| chosen == rule),
            "{rule}: {cheetah:?}"
        );
    }
    eprintln!("{:.3} ms left out", cheetah.left_out.rms_ms);
}
