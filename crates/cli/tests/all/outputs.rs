//! Tests that a command never replaces an input, a file in use, or a special file.

use crate::common::{Folder, refused, success};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

const STACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../stacks/demo/raid5.toml");

/// Writes a trace of a few requests.
fn trace(folder: &Folder) -> String {
    let row = |i: u64| {
        format!(
            "{},host,0,Read,{},4096,20000\n",
            1_000_000 + i * 30_000,
            i * 8192
        )
    };
    folder.put("trace.csv", &(0..50).map(row).collect::<String>())
}

fn new_drive(output: &str) -> Vec<&str> {
    vec![
        "drive",
        "new",
        "--capacity",
        "8T",
        "--rpm",
        "7200",
        "--outer",
        "245",
        "-o",
        output,
    ]
}

#[test]
fn a_new_drive_replaces_a_drive_and_nothing_else() {
    let folder = Folder::new();
    let drive = folder.name("drive.toml");
    success(&new_drive(&drive));
    success(&new_drive(&drive));
    let letter = folder.put("letter", "Dear all\n");
    let held = fs::File::open(&drive).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    fs::create_dir(folder.path("dir")).unwrap();
    for (output, said) in [
        (letter.as_str(), "found a file that begins with `Dear all`"),
        (&folder.name("dir"), "found a folder"),
        (&folder.name("nowhere/drive.toml"), "no folder"),
        (&drive, "in use by another process"),
        ("/proc/drive.toml", "cannot be written"),
        (&folder.name(&"n".repeat(251)), "cannot be written"),
    ] {
        let error = refused(&new_drive(output));
        assert!(
            error.contains(said) && error.contains("--output"),
            "{error}"
        );
    }
    drop(held);
    assert_eq!(fs::read_to_string(&letter).unwrap(), "Dear all\n");
    if let Some(device) = fs::read_dir("/dev").unwrap().find_map(|entry| {
        use std::os::unix::fs::FileTypeExt as _;
        let path = entry.unwrap().path();
        fs::metadata(&path)
            .is_ok_and(|found| found.file_type().is_block_device())
            .then_some(path)
    }) {
        let error = refused(&new_drive(device.to_str().unwrap()));
        assert!(error.contains("found a block device"), "{error}");
    }
}

#[test]
fn drives_traces_replace_neither_the_volumes_nor_the_stack() {
    let folder = Folder::new();
    let trace = trace(&folder);
    let out = folder.path("out");
    fs::create_dir(&out).unwrap();
    let remap = |output: &Path, trace: &str| {
        let output = output.to_str().unwrap().to_owned();
        [
            "trace", "remap", STACK, trace, "-o", &output, "--ending", "csv",
        ]
        .map(str::to_owned)
    };
    let arguments = remap(&out, &trace);
    success(&arguments.each_ref().map(String::as_str));
    let first = fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
    // The output path leads to the input: by a hard link, and by a symbolic link.
    let whole = fs::read(&trace).unwrap();
    for link in [
        |from: &str, to: &Path| fs::hard_link(from, to),
        |from: &str, to: &Path| symlink(from, to),
    ] {
        fs::remove_file(&first).unwrap();
        link(&trace, &first).unwrap();
        let error = refused(&arguments.each_ref().map(String::as_str));
        assert!(
            error.contains("a file that this command line reads"),
            "{error}"
        );
    }
    assert_eq!(fs::read(&trace).unwrap(), whole);
    // The input has the temporary name of an output.
    fs::remove_file(&first).unwrap();
    let partial = format!("{}.partial", first.display());
    fs::copy(&trace, &partial).unwrap();
    let arguments = remap(&out, &partial);
    let error = refused(&arguments.each_ref().map(String::as_str));
    assert!(
        error.contains("a file that this command line reads"),
        "{error}"
    );
    assert_eq!(fs::read(&partial).unwrap(), whole);
}

#[test]
fn a_plan_and_a_converted_trace_stand_beside_what_they_are_made_of() {
    let folder = Folder::new();
    let drive = folder.name("drive.toml");
    success(&new_drive(&drive));
    let error = refused(&["lzvs", "plan", "--drive", &drive, "-o", &drive]);
    assert!(
        error.contains("a file that this command line reads"),
        "{error}"
    );
    // All processors' files of a blktrace count as inputs.
    let trace = trace(&folder);
    let (first, second) = (
        folder.put("sda.blktrace.0", "x"),
        folder.put("sda.blktrace.1", "y"),
    );
    let error = refused(&["trace", "convert", &first, &second, "--to-format", "native"]);
    assert!(
        error.contains("a file that this command line reads"),
        "{error}"
    );
    // A command must not replace the file behind its own standard output.
    let out = folder.path("out.csv");
    let told = Command::new(env!("CARGO_BIN_EXE_fullstroke"))
        .args(["trace", "convert", &trace])
        .arg(&out)
        .stdout(fs::File::create(&out).unwrap())
        .output()
        .unwrap();
    let error = String::from_utf8(told.stderr).unwrap();
    assert!(error.contains("standard output"), "{error}");
}

#[test]
fn a_member_of_an_array_is_no_place_for_a_report() {
    let folder = Folder::new();
    let members = ["a", "b"].map(|name| {
        fs::File::create(folder.path(name))
            .unwrap()
            .set_len(8 << 20)
            .unwrap();
        folder.name(name)
    });
    success(&[
        "array",
        "create",
        "v",
        &members[0],
        &members[1],
        "--layout",
        "raid1",
    ]);
    let trace = trace(&folder);
    for output in &members {
        let error = refused(&["trace", "convert", &trace, output, "--to-format", "native"]);
        assert!(error.contains("a member of an array"), "{error}");
    }
}
