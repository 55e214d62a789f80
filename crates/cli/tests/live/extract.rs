//! Test of track extraction from a served disk under the real clock. The noise is that of the host.

use crate::common::success;
use crate::file_systems::ExportedDisk;
use crate::programs::installed;
use crate::server::{StackFolder, text};
use crate::stacks::DISK;
use fullstroke_tracks::Boundaries;
use std::fs;
use std::process::Command;

fn table(path: &std::path::Path) -> Boundaries {
    Boundaries::parse(&fs::read_to_string(path).unwrap()).unwrap()
}

/// A host that is too busy for angles gives an error. A successful extraction is right except for
/// single tracks.
#[test]
fn tracks_of_a_served_disk_are_found_or_refused() {
    if !installed(&["nbdfuse", "fusermount3"]) {
        return;
    }
    let place = StackFolder::new(DISK, 4);
    let (truth, found) = (place.path("truth"), place.path("found"));
    let drive = text(&place.path("disk.toml"));
    success(&[
        "extract",
        &drive,
        "--kind",
        "translate",
        "--write-table",
        &text(&truth),
    ]);
    let server = place.serve(&[]);
    let Some(disk) = ExportedDisk::shown(&server) else {
        return;
    };
    let mut extract = Command::new(env!("CARGO_BIN_EXE_fullstroke"));
    extract.args([
        "extract",
        &disk.file(),
        "--kind",
        "timing",
        "--write-table",
        &text(&found),
    ]);
    let ended = extract.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    if !ended.status.success() {
        assert!(said.contains("cannot be told"), "{said}");
        eprintln!("refused: {}", said.trim());
        return;
    }
    let (truth, found) = (table(&truth), table(&found));
    let right = found
        .tracks_from(fullstroke_units::Lbn(0))
        .filter(|track| truth.is_boundary(track.start));
    let right = right.count() as f64;
    eprintln!(
        "{right} of {} boundaries, {} claimed",
        truth.len(),
        found.len()
    );
    assert!(
        right >= 0.9 * truth.len().max(found.len()) as f64,
        "{} of {}",
        right,
        truth.len()
    );
    drop(disk);
    server.stop_well();
}
