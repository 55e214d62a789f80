use super::*;
use crate::{CacheUse, DeviceAccess, open};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// Returns a folder with a file of 1 MiB.
fn with_file() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    File::create(&file).unwrap().set_len(1 << 20).unwrap();
    (folder, file)
}

fn refusal(path: &Path) -> String {
    open(path, DeviceAccess::Write, CacheUse::OfFiles)
        .unwrap_err()
        .to_string()
}

/// A loop device, removed on drop.
struct TestLoopDevice(PathBuf);

impl TestLoopDevice {
    /// Creates a loop device. Prints a note and returns `None` if this user or host has no loop
    /// devices.
    fn over(file: &Path, options: &[&str]) -> Option<TestLoopDevice> {
        let made = Command::new("losetup")
            .args(["--find", "--show"])
            .args(options)
            .arg(file)
            .output();
        match made {
            Ok(made) if made.status.success() => Some(TestLoopDevice(
                String::from_utf8(made.stdout).unwrap().trim().into(),
            )),
            _ => {
                eprintln!("skipped: no loop device can be made here");
                None
            }
        }
    }
}

impl Drop for TestLoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.0)
            .status();
    }
}

#[test]
fn what_is_open_for_writing_is_refused_under_all_of_its_names() {
    let (folder, file) = with_file();
    let (soft, hard) = (folder.path().join("soft"), folder.path().join("hard"));
    symlink(&file, &soft).unwrap();
    fs::hard_link(&file, &hard).unwrap();
    let held = open(&file, DeviceAccess::Write, CacheUse::OfFiles).unwrap();
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&held.file);
    let by_descriptor = PathBuf::from(format!("/dev/fd/{descriptor}"));
    for name in [&file, &soft, &hard, &by_descriptor] {
        assert!(
            refusal(name).contains("in use by another process"),
            "{name:?}"
        );
    }
    // A reader does no harm.
    open(&hard, DeviceAccess::Read, CacheUse::OfFiles).unwrap();
    drop(held);
    open(&hard, DeviceAccess::Write, CacheUse::OfFiles).unwrap();
}

#[test]
fn the_lock_outlives_the_name_of_the_file() {
    let (folder, file) = with_file();
    let hard = folder.path().join("hard");
    fs::hard_link(&file, &hard).unwrap();
    let _held = open(&file, DeviceAccess::Write, CacheUse::OfFiles).unwrap();
    fs::remove_file(&file).unwrap();
    assert!(refusal(&hard).contains("in use by another process"));
}

#[test]
fn a_file_under_a_loop_device_is_in_use_by_all_of_its_names() {
    let (folder, file) = with_file();
    let (soft, hard) = (folder.path().join("soft"), folder.path().join("hard"));
    symlink(&file, &soft).unwrap();
    fs::hard_link(&file, &hard).unwrap();
    let Some(device) = TestLoopDevice::over(&file, &[]) else {
        return;
    };
    for name in [&file, &soft, &hard] {
        let error = refusal(name);
        assert!(
            error.contains("loop device") && error.contains(&*device.0.to_string_lossy()),
            "{error}"
        );
        assert!(share_bytes(name, &device.0) && share_bytes(&device.0, name));
        assert!(user_of(name).is_some());
    }
    // The name is gone, but the inode still exists.
    fs::rename(&file, folder.path().join("elsewhere")).unwrap();
    assert!(refusal(&hard).contains("loop device"));
}

#[test]
fn a_loop_device_over_a_file_in_use_is_in_use() {
    let (_folder, file) = with_file();
    let held = open(&file, DeviceAccess::Write, CacheUse::OfFiles).unwrap();
    let Some(device) = TestLoopDevice::over(&file, &[]) else {
        return;
    };
    let error = refusal(&device.0);
    assert!(
        error.contains("stands on") && error.contains("in use by another process"),
        "{error}"
    );
    // A loop device over a loop device leads to the same file.
    let Some(second) = TestLoopDevice::over(&device.0, &[]) else {
        return;
    };
    assert!(refusal(&second.0).contains("in use by another process"));
    drop(held);
    open(&second.0, DeviceAccess::Write, CacheUse::OfFiles).unwrap();
}

#[test]
fn two_loop_devices_share_what_they_overlap_in() {
    let (_folder, file) = with_file();
    let Some(one) = TestLoopDevice::over(&file, &["--sizelimit", "524288"]) else {
        return;
    };
    let Some(other) = TestLoopDevice::over(&file, &["--offset", "524288"]) else {
        return;
    };
    assert!(!share_bytes(&one.0, &other.0));
    let _held = open(&one.0, DeviceAccess::Write, CacheUse::OfFiles).unwrap();
    open(&other.0, DeviceAccess::Write, CacheUse::OfFiles).unwrap();
    let Some(whole) = TestLoopDevice::over(&file, &[]) else {
        return;
    };
    assert!(share_bytes(&one.0, &whole.0));
    assert!(refusal(&whole.0).contains("and so does the loop device"));
}

#[test]
fn a_file_that_another_process_has_locked_is_in_use() {
    // Locks of `flock(1)` and of `fcntl` differ. Python's `lockf` takes the second kind. QEMU takes
    // locks of an open file description.
    is_refused_while_locked("fcntl.lockf(f,fcntl.LOCK_EX,10,100)", "process ");
    let lock = "fcntl.fcntl(f,fcntl.F_OFD_SETLK,struct.pack('hhqqi',fcntl.F_WRLCK,0,0,0,0))";
    is_refused_while_locked(lock, "another process");
}

fn is_refused_while_locked(lock: &str, owner: &str) {
    let (_folder, file) = with_file();
    let script = format!(
        "import fcntl,struct,sys\nf=open(sys.argv[1],'r+')\n{lock}\nprint('locked',flush=True)\nsys.stdin.read()"
    );
    let child = Command::new("python3")
        .args(["-c", &script])
        .arg(&file)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        eprintln!("skipped: no python3 to lock the file");
        return;
    };
    let mut line = [0; 6];
    io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
    let error = refusal(&file);
    assert!(
        error.contains("has locked it") && error.contains(owner),
        "{error}"
    );
    drop(child.stdin.take());
    child.wait().unwrap();
    open(&file, DeviceAccess::Write, CacheUse::OfFiles).unwrap();
}

#[test]
fn folders_are_claimed_by_inode_and_shared_by_readers() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    fs::create_dir(&store).unwrap();
    let (one, other) = (File::open(&store).unwrap(), File::open(&store).unwrap());
    let held = Claim::share(&one, &store).unwrap();
    Claim::share(&other, &store).unwrap();
    assert!(Claim::take(&other, &store).is_err());
    drop((held, one, other));
    let (one, other) = (File::open(&store).unwrap(), File::open(&store).unwrap());
    let _held = Claim::take(&one, &store).unwrap();
    fs::rename(&store, folder.path().join("renamed")).unwrap();
    let error = Claim::take(&other, &store).unwrap_err().to_string();
    assert!(error.contains("in use"), "{error}");
}
