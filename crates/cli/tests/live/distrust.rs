//! Tests of untrustworthy members: restored, cut, replaced or foreign files.

use crate::array::{MemberFiles, pattern, strings};
use crate::common::{refused, success};
use crate::server::text;
use fullstroke_nbd::CommandFlags;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;

const ALL: [usize; 3] = [0, 1, 2];

/// Copies have no chunks.
fn create(place: &MemberFiles, indices: &[usize], options: &[&str]) -> Vec<String> {
    let mut create = place.create(indices, options);
    if options.contains(&"raid1") {
        create.drain(3..5);
    }
    create
}

/// Creates an array of three files and writes to it once.
fn written(layout: &str, tag: u8) -> MemberFiles {
    let place = MemberFiles::new(4);
    success(&strings(&create(&place, &ALL, &["--layout", layout])));
    write_all(&place, tag).stop();
    place
}

fn write_all(place: &MemberFiles, tag: u8) -> crate::array::ServedArray {
    let served = place.assemble(&ALL, &[]).unwrap();
    let mut client = served.client();
    let size = client.properties().size_bytes as usize;
    let bytes = pattern(size, tag);
    client.write(0, &bytes, CommandFlags::empty()).unwrap();
    client.flush().unwrap();
    served
}

fn holds(place: &MemberFiles, indices: &[usize], options: &[&str], tag: u8) {
    let served = place.assemble(indices, options).unwrap();
    let mut client = served.client();
    let mut found = vec![0; client.properties().size_bytes as usize];
    client.read(0, &mut found).unwrap();
    assert!(found == pattern(found.len(), tag));
    served.stop();
}

fn refusal(place: &MemberFiles) -> String {
    place.assemble(&ALL, &[]).map(drop).unwrap_err()
}

#[test]
fn a_member_that_is_restored_from_a_backup_is_out_of_date() {
    for layout in ["raid1", "raid5"] {
        let place = written(layout, 1);
        let backup = fs::read(place.member(0)).unwrap();
        write_all(&place, 2).kill();
        fs::write(place.member(0), &backup).unwrap();
        let error = refusal(&place);
        assert!(
            error.contains("member0` is out of date: found events"),
            "{layout}: {error}"
        );
        holds(&place, &ALL, &["--degraded"], 2);
    }
}

#[test]
fn a_member_that_is_cut_to_half_its_size_is_not_whole() {
    let place = written("raid5", 1);
    let file = File::options().write(true).open(place.member(1)).unwrap();
    file.set_len(2 << 20).unwrap();
    let error = refusal(&place);
    assert!(
        error.contains("member1`: it has 2097152 bytes; expected 4194304: it was cut"),
        "{error}"
    );
    assert!(success(&["array", "examine", &place.member(1)]).contains("doubt   it has 2097152"));
    // A device that was cut and enlarged again has lost the same data.
    file.set_len(4 << 20).unwrap();
    let error = refusal(&place);
    assert!(
        error.contains("member1`: the last superblock, at byte 4177920, is missing"),
        "{error}"
    );
    let error = place.assemble(&ALL, &["--trust", "elsewhere"]);
    assert!(
        error
            .map(drop)
            .unwrap_err()
            .contains("--trust: found `elsewhere`")
    );
    holds(&place, &ALL, &["--degraded"], 1);
}

/// The unit of docs/arrays.md names a disk by its place. After a replacement, the place has a blank
/// disk.
#[test]
fn a_blank_disk_in_the_place_of_a_member_counts_as_missing() {
    let place = written("raid1", 1);
    let error = place.assemble(&[0, 1, 3], &[]).map(drop).unwrap_err();
    assert!(
        error.contains("member3` is no member of an array") && error.contains("--degraded"),
        "{error}"
    );
    let blank = fs::read(place.member(3)).unwrap();
    holds(&place, &[0, 1, 3], &["--degraded"], 1);
    assert!(fs::read(place.member(3)).unwrap() == blank);
    let served = place.assemble(&[0, 1, 3], &["--degraded"]).unwrap();
    success(&["array", "add", &text(&served.socket), &place.member(3)]);
    served.until("whole");
    served.stop();
    holds(&place, &[0, 1, 3], &[], 1);
}

#[test]
fn create_takes_nothing_that_holds_data_and_changes_nothing_before_all_is_checked() {
    let place = MemberFiles::new(2);
    let header = b"QFI\xFB\0\0\0\x03";
    let file = File::options().write(true).open(place.member(0)).unwrap();
    for at in [0, 2 << 20] {
        file.write_all_at(header, at).unwrap();
        let before = fs::read(place.member(0)).unwrap();
        let error = refused(&strings(&create(&place, &[0, 1], &["--layout", "raid1"])));
        assert!(error.contains("member0` holds unknown data"), "{error}");
        assert!(fs::read(place.member(0)).unwrap() == before);
        file.write_all_at(&[0; 8], at).unwrap();
    }
    // A superblock has no room for so many members.
    let many = MemberFiles::new(150);
    let indices: Vec<usize> = (0..150).collect();
    for &index in &indices {
        let file = File::options().write(true).open(many.member(index));
        file.unwrap().write_all_at(b"PRECIOUS", 2_000_000).unwrap();
    }
    let error = refused(&strings(
        &many.create(&indices, &["--layout", "raid0", "--force"]),
    ));
    assert!(
        error.contains("a superblock of 150 members") && error.contains("nothing was changed"),
        "{error}"
    );
    for &index in &indices {
        let bytes = fs::read(many.member(index)).unwrap();
        assert!(&bytes[2_000_000..][..8] == b"PRECIOUS");
    }
}
