//! What is in use is written by nobody else, by whatever name it is reached.

use crate::array::{Place as Members, strings};
use crate::common::{refused, success};
use crate::server::{Place, text};
use crate::stacks::{DISK, RAID5};
use fullstroke_nbd::CommandFlags;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes of 4 KiB, as a trace.
fn writes(folder: &Path) -> String {
    let path = folder.join("writes.csv");
    // Long enough to stand for a device of some sectors.
    let row = "1000000,host,0,Write,8192,4096,20000\n";
    fs::write(&path, row.repeat(1000)).unwrap();
    text(&path)
}

fn replay_refused(trace: &str, on: &Path) -> String {
    refused(&[
        "replay",
        trace,
        "--on",
        &text(on),
        "--writes",
        "overwrite",
        "--buffered",
    ])
}

/// A loop device over `file`; `None`, with a word, where none can be made.
pub struct Loop(pub PathBuf);

impl Loop {
    pub fn over(file: &Path) -> Option<Loop> {
        let made = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(file)
            .output();
        match made {
            Ok(made) if made.status.success() => {
                Some(Loop(String::from_utf8(made.stdout).unwrap().trim().into()))
            }
            _ => {
                eprintln!("skipped: no loop device can be made here");
                None
            }
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.0)
            .status();
    }
}

#[test]
fn a_member_of_an_assembled_array_is_neither_replayed_on_nor_made_anew() {
    let members = Members::new(3);
    success(&strings(
        &members.create(&[0, 1, 2], &["--layout", "raid5"]),
    ));
    let served = members.assemble(&[0, 1, 2], &[]).unwrap();
    let (folder, member) = (members.folder.path(), PathBuf::from(members.member(0)));
    let trace = writes(folder);
    let (soft, hard) = (folder.join("soft"), folder.join("hard"));
    symlink(&member, &soft).unwrap();
    fs::hard_link(&member, &hard).unwrap();
    for name in [&member, &soft, &hard] {
        let error = replay_refused(&trace, name);
        assert!(error.contains("in use by another process"), "{error}");
    }
    let other = folder.join("other");
    fs::File::create(&other).unwrap().set_len(4 << 20).unwrap();
    let create = |device: &Path| {
        let device = text(device);
        refused(&[
            "array",
            "create",
            "new",
            &device,
            &text(&other),
            "--layout",
            "raid1",
            "--force",
        ])
    };
    for name in [&member, &hard] {
        assert!(create(name).contains("in use by another process"));
    }
    if let Some(device) = Loop::over(&member) {
        assert!(create(&device.0).contains("stands on"));
        assert!(replay_refused(&trace, &device.0).contains("stands on"));
        // Beside the array, the loop device is a user, too.
        assert!(refused(&["array", "destroy", "--force", &text(&device.0)]).contains("stands on"));
    }
    let scrubbed = success(&["array", "scrub", &text(&served.socket)]);
    assert!(scrubbed.contains('0'), "{scrubbed}");
    served.stop();
}

#[test]
fn a_store_that_is_served_is_written_by_its_server_alone() {
    let place = Place::new(RAID5, 8);
    let server = place.serve_stored();
    let data = vec![7; 4096];
    server
        .client()
        .write(0, &data, CommandFlags::FORCE_UNIT_ACCESS)
        .unwrap();
    let store = place.path("store");
    let drive = fs::read_dir(&store)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.file_name().unwrap().to_string_lossy().contains('0'))
        .unwrap();
    // The file of the old lock can be deleted; that opens no door.
    fs::remove_file(store.join("lock")).unwrap();
    let (stack, elsewhere) = (place.stack(), place.name("elsewhere"));
    let serve = |store: &Path| {
        refused(&[
            "serve",
            &stack,
            "--no-delay",
            "--socket",
            &elsewhere,
            "--store",
            &text(store),
        ])
    };
    assert!(serve(&store).contains("in use"));
    // Nor does another name of the folder, or a folder of hard links to the same files.
    let soft = place.path("soft");
    symlink(&store, &soft).unwrap();
    assert!(serve(&soft).contains("in use"));
    let links = place.path("links");
    fs::create_dir(&links).unwrap();
    for entry in fs::read_dir(&store).unwrap() {
        let entry = entry.unwrap();
        fs::hard_link(entry.path(), links.join(entry.file_name())).unwrap();
    }
    let error = serve(&links);
    assert!(error.contains("in use by another process"), "{error}");
    let trace = writes(links.parent().unwrap());
    assert!(replay_refused(&trace, &drive).contains("in use by another process"));
    let error = refused(&[
        "array",
        "create",
        "new",
        &text(&drive),
        "--layout",
        "raid0",
        "--force",
    ]);
    assert!(error.contains("in use by another process"), "{error}");
    server.stop_well();
    // The same name is free afterwards.
    place.serve_stored().stop_well();
}

#[test]
fn a_file_of_a_store_that_a_loop_device_shows_is_not_served() {
    let place = Place::new(DISK, 8);
    place.serve_stored().stop_well();
    let store = place.path("store");
    let drive = fs::read_dir(&store)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| fs::metadata(path).unwrap().len() > 4 << 20)
        .unwrap();
    let hard = place.path("hard");
    fs::hard_link(&drive, &hard).unwrap();
    let Some(device) = Loop::over(&hard) else {
        return;
    };
    let before = fs::read(store.join("superblock")).ok();
    let error = place.serve_refused(&["--store", &text(&store)]);
    assert!(error.contains(&text(&device.0)), "{error}");
    assert_eq!(fs::read(store.join("superblock")).ok(), before);
    drop(device);
    place.serve_stored().stop_well();
}

#[test]
fn a_trace_is_not_replayed_over_itself() {
    let folder = tempfile::tempdir().unwrap();
    let trace = writes(folder.path());
    let whole = fs::read(&trace).unwrap();
    let hard = folder.path().join("hard");
    fs::hard_link(&trace, &hard).unwrap();
    for name in [Path::new(&trace), &hard] {
        let error = replay_refused(&trace, name);
        assert!(error.contains("the trace itself"), "{error}");
    }
    assert_eq!(fs::read(&trace).unwrap(), whole);
}
