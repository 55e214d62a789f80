//! A comparison with the kernel: the number of pages of a file in its page cache after each read,
//! beside that of `today`. Needs Linux 6.16 or later, `fincore`, `dd`, and a file system with large
//! folios. Elsewhere the test prints the missing requirement and compares nothing.
//!
//! `cargo test -p fullstroke-memory --test kernel -- --ignored --nocapture`

// The test reads a real file.
#![allow(clippy::disallowed_methods)]

use fullstroke_contract::{Object, RequestStatus};
use fullstroke_memory::{
    CacheOut, CachePolicy, FileAccess, MemoryKeys, PAGE_BYTES, PageCache, QueueLimits, Ticket,
};
use fullstroke_units::{Bytes, Time};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

const SIZE: u64 = 4096;

/// First page and number of pages of each read.
type Reads = Vec<(u64, u64)>;

fn patterns() -> Vec<(&'static str, Reads)> {
    let mut state = 1u64;
    let mut draw = move |bound: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    vec![
        ("in order, 4 KiB", (0..120).map(|page| (page, 1)).collect()),
        (
            "in order, 64 KiB, from page 1000",
            (0..12).map(|piece| (1000 + piece * 16, 16)).collect(),
        ),
        (
            "at random, 4 KiB",
            (0..60).map(|_| (draw(SIZE), 1)).collect(),
        ),
        (
            "every second page",
            (0..60).map(|page| (500 + page * 2, 1)).collect(),
        ),
        (
            "backwards, 8 KiB",
            (0..40).map(|piece| (3000 - piece * 2, 2)).collect(),
        ),
        (
            "1.5 MiB at a time",
            (0..4).map(|piece| (100 + piece * 384, 384)).collect(),
        ),
    ]
}

/// Returns the missing requirement, if there is one.
fn missing() -> Option<String> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|part| part.trim().parse::<u32>().ok());
    let version = (numbers.next()?, numbers.next()?);
    if version < (6, 16) {
        return Some(format!("Linux {} is older than 6.16", release.trim()));
    }
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    ["fincore", "dd"]
        .into_iter()
        .find(|program| !has(program))
        .map(|program| format!("there is no `{program}`"))
}

/// Drops the kernel's pages of a file.
fn drop_pages(path: &Path) {
    let mut of = std::ffi::OsString::from("of=");
    of.push(path);
    let arguments = [
        "oflag=nocache",
        "conv=notrunc,fdatasync",
        "count=0",
        "status=none",
        "if=/dev/null",
    ];
    let status = Command::new("dd").arg(of).args(arguments).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "dd drops the pages"
    );
}

fn held_by_kernel(path: &Path) -> u64 {
    let output = Command::new("fincore")
        .args(["-b", "-n", "-o", "PAGES"])
        .arg(path)
        .output();
    let text = String::from_utf8(output.expect("fincore runs").stdout).expect("digits");
    text.trim().parse().expect("a number of pages")
}

/// Returns the number of pages that the kernel holds. Waits for read-ahead in flight, at most half
/// a second, until the expected number is there.
fn settled(path: &Path, expected: u64) -> u64 {
    let mut held = held_by_kernel(path);
    for _ in 0..50 {
        if held >= expected {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        held = held_by_kernel(path);
    }
    held
}

fn by_kernel(path: &Path, reads: &Reads, expected: &[u64]) -> Vec<u64> {
    drop_pages(path);
    assert_eq!(held_by_kernel(path), 0, "nothing is held at first");
    let file = File::open(path).expect("the file is there");
    let mut buffer = vec![0; 400 * PAGE_BYTES as usize];
    reads
        .iter()
        .zip(expected)
        .map(|(&(first, pages), &expected)| {
            let part = &mut buffer[..(pages * PAGE_BYTES) as usize];
            file.read_exact_at(part, first * PAGE_BYTES)
                .expect("the file is long enough");
            settled(path, expected)
        })
        .collect()
}

/// Returns a queue setting of a file's device.
fn queue_key(path: &Path, key: &str) -> u64 {
    let device = std::fs::metadata(path).expect("the file is there").dev();
    let (major, minor) = (
        (device >> 8) & 0xfff,
        (device & 0xff) | ((device >> 12) & 0xf_ff00),
    );
    let folder = format!("/sys/dev/block/{major}:{minor}");
    // A partition has the queue of its disk.
    let files = [
        format!("{folder}/queue/{key}"),
        format!("{folder}/../queue/{key}"),
    ];
    let text = files
        .iter()
        .find_map(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| text.trim().parse().ok())
        .expect("a block device with a queue")
}

fn by_model(reads: &Reads, read_ahead_kb: u64, max_sectors_kb: u64) -> Vec<u64> {
    let mut keys = MemoryKeys::of(Bytes(1 << 30));
    let read_ahead = [
        ("read_ahead_kb", read_ahead_kb),
        ("max_sectors_kb", max_sectors_kb),
    ];
    keys.read_ahead = Some(CachePolicy::Table(
        read_ahead
            .iter()
            .map(|&(key, value)| (key.to_owned(), value.into()))
            .collect(),
    ));
    let mut cache = PageCache::new(&keys, QueueLimits::default()).expect("keys of today");
    let (file, mut out) = (cache.open(Object(1)), CacheOut::default());
    let access = |&(first, pages): &(u64, u64)| {
        FileAccess::new(first * PAGE_BYTES, pages * PAGE_BYTES, SIZE * PAGE_BYTES)
    };
    reads
        .iter()
        .map(|read| {
            let _ = cache.read(Time::ZERO, file, access(read), Ticket(0), &mut out);
            while let Some(io) = out.reads.pop() {
                cache.read_done(Time::ZERO, io.id, io.run, RequestStatus::Done, &mut out);
            }
            cache.gauges().cached
        })
        .collect()
}

fn file_of(size: u64) -> PathBuf {
    let path = std::env::temp_dir().join(format!("fullstroke-memory-{}", std::process::id()));
    std::fs::write(&path, vec![7; (size * PAGE_BYTES) as usize]).expect("there is room for 16 MiB");
    path
}

#[test]
#[ignore = "reads a file of 16 MiB through the kernel's page cache"]
fn the_kernel_holds_what_today_holds() {
    if let Some(reason) = missing() {
        println!("not compared: {reason}");
        return;
    }
    let path = file_of(SIZE);
    let (read_ahead_kb, max_sectors_kb) = (
        queue_key(&path, "read_ahead_kb"),
        queue_key(&path, "max_sectors_kb"),
    );
    println!("read_ahead_kb {read_ahead_kb}, max_sectors_kb {max_sectors_kb}");
    let mut differ = Vec::new();
    println!(
        "{:34} {:>6} {:>8} {:>8} {:>12}",
        "pages held after all reads", "reads", "kernel", "model", "reads alike"
    );
    for (name, reads) in patterns() {
        let model = by_model(&reads, read_ahead_kb, max_sectors_kb);
        let kernel = by_kernel(&path, &reads, &model);
        let alike = kernel
            .iter()
            .zip(&model)
            .filter(|(kernel, model)| kernel == model)
            .count();
        let (last_kernel, last_model) = (kernel[reads.len() - 1], model[reads.len() - 1]);
        println!(
            "{name:34} {:6} {last_kernel:8} {last_model:8} {alike:12}",
            reads.len()
        );
        if let Some(at) = (0..reads.len()).find(|&at| kernel[at] != model[at]) {
            println!(
                "  from read {at} on, of {:?}: {:?} and {:?}",
                reads[at],
                &kernel[at..],
                &model[at..]
            );
            differ.push(name);
        }
    }
    std::fs::remove_file(&path).expect("it was made above");
    assert!(
        differ.is_empty(),
        "kernel and model differ: {}",
        differ.join(", ")
    );
}
