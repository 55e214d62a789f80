//! Rules chosen on some disks and tested on another.

#[path = "../../../../samples/oracle/table.rs"]
mod oracle;
#[path = "../../../../samples/oracle/parameters.rs"]
mod parameters;

use fullstroke_calibrate::validate::{MeasuredDisk, TraceFile, leave_one_out};
use fullstroke_disksim::Reading;
use std::path::Path;

/// Returns the measurements of some disks. Prints a note and returns `None` if they are absent.
fn measured(names: &[&str]) -> Option<Vec<MeasuredDisk>> {
    let shared = oracle::shared("oracle/disks")?;
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

/// The first disk holds whole tracks, so its read-ahead no longer matters. Without that rule the
/// disk shows that read-ahead fills segments.
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

/// Writes a disk's parameters and the first 200 requests of its measurement into `folder`.
fn of_the_oracle(disk: &str, folder: &Path) -> MeasuredDisk {
    parameters::write_parameters(disk, folder);
    let path = folder.join(format!("{disk}.trace"));
    let table = oracle::Table::read(&format!("disks/{disk}"));
    std::fs::write(&path, table.validation_trace()).unwrap();
    let name = disk.to_owned();
    MeasuredDisk::read(&TraceFile { path, name })
        .unwrap()
        .unwrap()
}

/// The second disk has a low water mark, and its rule reduces the distance. The first disk has
/// none, and cannot choose that rule for the second.
#[test]
fn a_rule_that_only_one_disk_tells_is_not_held_against_that_disk() {
    let folder = tempfile::tempdir().unwrap();
    let disks = ["hp_c2247a", "hp_c3323a"].map(|disk| of_the_oracle(disk, folder.path()));
    let found = leave_one_out(&disks).unwrap();
    println!("{found:?}");
    let second = &found.disks[1];
    assert!(
        found.rules.iter().any(|rule| rule == "write_mark=1"),
        "{found:?}"
    );
    assert!(
        second.rules.iter().all(|rule| rule != "write_mark=1"),
        "{second:?}"
    );
    assert_eq!(second.left_out.rms_ms, second.as_written.rms_ms);
    assert!(
        second.all_fitted.rms_ms < second.left_out.rms_ms,
        "{second:?}"
    );
    let as_written = disks[1].distance(&Reading::AS_WRITTEN).unwrap();
    assert_eq!(as_written.rms_ms, second.as_written.rms_ms);
}
