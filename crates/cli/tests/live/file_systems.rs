//! Tests of file systems on an export. nbdfuse shows the export as a file, and a loop device makes
//! the file a disk.

use crate::faulty::is_mounted;
use crate::pattern;
use crate::programs::{command, installed, output, run};
use crate::server::{PATIENCE, Server, StackFolder, text};
use crate::stacks::{RAID5, RAID6, TestedVolume};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

/// An export as a file and as a loop device. Dropping the value removes both.
pub struct ExportedDisk {
    fuse: Child,
    file: PathBuf,
    device: Option<String>,
    mounted: Option<PathBuf>,
}

impl ExportedDisk {
    /// Shows the export as a file only. Prints a note and returns `None` if the host lacks the
    /// means.
    pub fn shown(server: &Server) -> Option<ExportedDisk> {
        let file = server.place().path("file");
        fs::write(&file, "").unwrap();
        let fuse = command("nbdfuse")
            .arg(&file)
            .arg(server.uri())
            .spawn()
            .unwrap();
        let mut disk = ExportedDisk {
            fuse,
            file,
            device: None,
            mounted: None,
        };
        let begun = Instant::now();
        while fs::metadata(&disk.file).map_or(0, |metadata| metadata.len()) == 0 {
            if disk.fuse.try_wait().unwrap().is_some() {
                eprintln!("skipped: nbdfuse cannot show a file here");
                return None;
            }
            assert!(begun.elapsed() < PATIENCE, "nbdfuse shows nothing");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(disk)
    }

    /// Returns the path of the file.
    pub fn file(&self) -> String {
        text(&self.file)
    }

    /// Shows the export as a disk. Prints a note and returns `None` if the host lacks the means.
    pub fn of(server: &Server) -> Option<ExportedDisk> {
        let mut disk = ExportedDisk::shown(server)?;
        let set_up = run("losetup", &["--find", "--show", &text(&disk.file)]);
        if !set_up.status.success() {
            eprintln!(
                "skipped: no loop device: {}",
                String::from_utf8_lossy(&set_up.stderr).trim()
            );
            return None;
        }
        disk.device = Some(String::from_utf8(set_up.stdout).unwrap().trim().to_owned());
        Some(disk)
    }

    pub fn device(&self) -> &str {
        self.device.as_deref().unwrap()
    }

    pub fn mount(&mut self, at: &Path) {
        fs::create_dir_all(at).unwrap();
        output("mount", &[self.device(), &text(at)]);
        self.mounted = Some(at.to_owned());
    }

    pub fn unmount(&mut self) {
        if let Some(at) = self.mounted.take() {
            // A process forked by another test holds the files until it calls exec, so the unmount
            // is repeated.
            let begun = Instant::now();
            while !run("umount", &[&text(&at)]).status.success() {
                assert!(begun.elapsed() < PATIENCE, "{} stays mounted", at.display());
                thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// Removes the disk like `drop`, but an error fails the test.
    fn put_away(mut self) {
        self.unmount();
        output("losetup", &["--detach", &self.device.take().unwrap()]);
    }
}

impl Drop for ExportedDisk {
    fn drop(&mut self) {
        // A failed test may leave the file system mounted.
        if let Some(at) = &self.mounted {
            run("umount", &["--lazy", &text(at)]);
        }
        if let Some(device) = &self.device {
            run("losetup", &["--detach", device]);
        }
        run("fusermount3", &["-u", &text(&self.file)]);
        let begun = Instant::now();
        // If nbdfuse has ended, its mount stays until the loop device is gone.
        while self.fuse.try_wait().is_ok_and(|ended| ended.is_none()) || is_mounted(&self.file) {
            run("fusermount3", &["-u", &text(&self.file)]);
            if begun.elapsed() > Duration::from_secs(10) {
                run("fusermount3", &["-u", "-z", &text(&self.file)]);
                let _ = self.fuse.kill();
                let _ = self.fuse.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Returns names and contents of files of many sizes.
fn files() -> Vec<(String, Vec<u8>)> {
    let mut random = pattern::random("files");
    let sizes = (0..120)
        .map(|_| random.below(64 << 10))
        .chain([0, 1, 3 << 20, 8 << 20]);
    let named = sizes.enumerate().map(|(number, size)| {
        let name = format!("folder{}/file{number}", number % 7);
        (name, pattern::bytes(0, number as u64, size as usize))
    });
    named.collect()
}

fn put(files: &[(String, Vec<u8>)], under: &Path) {
    for (name, content) in files {
        let path = under.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

fn compare(files: &[(String, Vec<u8>)], under: &Path) {
    for (name, content) in files {
        pattern::assert_same(&fs::read(under.join(name)).unwrap(), content, name);
    }
}

/// Creates a file system, fills it, and compares the files after a new mount and after a restart of
/// the server.
fn holds_a_file_system(volume: TestedVolume, disk_mib: u64, make: &[&str], check: &[&str]) {
    let programs = [
        "nbdfuse",
        "losetup",
        "fusermount3",
        "mount",
        make[0],
        check[0],
    ];
    if !installed(&programs) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: file systems are mounted by root");
    }
    let place = StackFolder::new(volume, disk_mib);
    let at = place.path("mounted");
    let files = files();
    let server = place.serve_stored();
    let Some(mut disk) = ExportedDisk::of(&server) else {
        return;
    };
    output(make[0], &[&make[1..], &[disk.device()]].concat());
    disk.mount(&at);
    put(&files, &at);
    disk.unmount();
    output(check[0], &[&check[1..], &[disk.device()]].concat());
    disk.mount(&at);
    compare(&files, &at);
    fs::remove_dir_all(at.join("folder3")).unwrap();
    disk.put_away();
    server.scrub();
    server.stop_well();

    let server = place.serve_stored();
    assert_eq!(server.notes(), &[] as &[serde_json::Value]);
    let mut disk = ExportedDisk::of(&server).expect("as before");
    output(check[0], &[&check[1..], &[disk.device()]].concat());
    disk.mount(&at);
    let left: Vec<_> = files
        .into_iter()
        .filter(|(name, _)| !name.starts_with("folder3/"))
        .collect();
    compare(&left, &at);
    assert!(!at.join("folder3").exists());
    disk.put_away();
    server.stop_well();
}

#[test]
fn ext2_holds_its_files() {
    holds_a_file_system(RAID5, 32, &["mkfs.ext2", "-q"], &["e2fsck", "-f", "-n"]);
}

#[test]
fn ext4_holds_its_files() {
    holds_a_file_system(RAID6, 32, &["mkfs.ext4", "-q"], &["e2fsck", "-f", "-n"]);
}

#[test]
fn xfs_holds_its_files() {
    // XFS has a minimum size of 300 MB.
    holds_a_file_system(RAID5, 80, &["mkfs.xfs", "-q"], &["xfs_repair", "-n"]);
}

#[test]
fn ext4_above_a_cache_that_is_killed_has_what_was_synced() {
    let programs = [
        "nbdfuse",
        "losetup",
        "fusermount3",
        "mount",
        "mkfs.ext4",
        "e2fsck",
    ];
    if !installed(&programs) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: file systems are mounted by root");
    }
    let place = StackFolder::new(RAID5, 32);
    let at = place.path("mounted");
    let files = files();
    let server = place.serve_stored();
    let cache = server.cached(&["--size", "8MiB", "--deaf"]);
    let Some(mut disk) = ExportedDisk::of(&cache) else {
        return;
    };
    output("mkfs.ext4", &["-q", disk.device()]);
    disk.mount(&at);
    put(&files, &at);
    output("sync", &["--file-system", &text(&at)]);
    fs::write(at.join("later"), pattern::bytes(0, 999, 1 << 20)).unwrap();
    cache.kill();
    drop(disk);

    let mut disk = ExportedDisk::of(&server).expect("as before");
    disk.mount(&at);
    compare(&files, &at);
    disk.unmount();
    output("e2fsck", &["-f", "-n", disk.device()]);
    disk.put_away();
    server.scrub();
    server.stop_well();
}
