//! Tests of arrays as block devices of ublk. They run in an emulated machine, because few kernels
//! have ublk. Another test covers the error without ublk.

use crate::programs::installed;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A folder with `boot` and `lib/modules`, or a Debian package of a kernel.
const KERNEL: &str = "FULLSTROKE_UBLK_KERNEL";
/// Exit status of the script if the test is impossible here.
const IMPOSSIBLE: i32 = 2;

#[test]
fn in_an_emulated_machine_an_array_is_a_block_device_that_keeps_what_was_flushed_through_kills() {
    if !installed(&["python3"]) {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/ublk-in-qemu.py");
    let kernel = std::env::var(KERNEL).unwrap_or_else(|_| "/".to_owned());
    let output = Command::new("python3")
        .arg(script)
        .args([
            "--kernel",
            &kernel,
            "--fullstroke",
            env!("CARGO_BIN_EXE_fullstroke"),
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(IMPOSSIBLE) {
        eprintln!("skipped: {} ({KERNEL} names a kernel)", said.trim());
        return;
    }
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.ends_with("PASS\n"),
        "{said}{error}"
    );
    println!("{said}");
}

#[test]
fn without_ublk_an_array_is_refused_before_its_members_are_touched() {
    if Path::new("/dev/ublk-control").exists() {
        eprintln!("skipped: the kernel has ublk");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let member = folder.path().join("member");
    fs::write(&member, vec![0; 4096]).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_fullstroke"))
        .args(["array", "assemble", "--ublk", "--control"])
        .arg(folder.path().join("control"))
        .arg(&member)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for word in [
        "`/dev/ublk-control`",
        "found",
        "expected",
        "modprobe ublk_drv",
        "--socket",
    ] {
        assert!(said.contains(word), "no {word}: {said}");
    }
}
