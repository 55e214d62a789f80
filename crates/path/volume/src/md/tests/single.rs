//! Single requests, one after the other.

use super::laboratory::{BIO, Laboratory, MemberIo};
use fullstroke_contract::{LayerOrder, Operation};
use serde_json::{Value, json};

/// The member I/O of the running kernel: a first harvest, and the files of `tools/kernel-lab.py`.
const FIRST: &str = include_str!("../../../../../../samples/oracle/md/single.txt");
const PARITY: &str = include_str!("../../../../../../samples/oracle/md/parity.txt");
const TIES: &str = include_str!("../../../../../../samples/oracle/md/ties.txt");
const DEGRADED: &str = include_str!("../../../../../../samples/oracle/md/degraded.txt");
const COPIES: &str = include_str!("../../../../../../samples/oracle/md/copies.txt");
const COPIES_MORE: &str = include_str!("../../../../../../samples/oracle/md/copies-more.txt");
const DRAWN: &str = include_str!("../../../../../../samples/oracle/md/drawn.txt");
const COPIES_NONROTATIONAL: &str =
    include_str!("../../../../../../samples/oracle/md/copies-nonrotational.txt");

/// Bytes of the largest member I/O of the oracle's null_blk: 255 sectors, `BLK_SAFE_MAX_SECTORS`.
const LARGEST: u64 = 255 * 512;

/// Bytes of a chunk that makes dozens of I/Os of a request.
const SMALL_CHUNK: u64 = 4096;

/// An array and the limits by which the block layer divides requests to the array.
struct Bench {
    laboratory: Laboratory,
    /// Bytes of the largest request.
    largest: u64,
    /// Bytes of a chunk that no request crosses (`chunk_sectors` of the array's queue).
    chunk: u64,
}

/// Returns the keys of a line of the oracle: level, members, and words such as `chunk=64`.
pub(super) fn keys_of(words: &[&str], policy: &str) -> Value {
    let mut keys = match words[0] {
        "raid0" => json!({ "like": "md" }),
        "raid1" => json!({ "like": "md", "read_policy": policy }),
        "raid10" => json!({ "like": "md", "chunk": "64KiB", "read_policy": policy }),
        _ => json!({ "like": "md", "chunk": "64KiB", "stripe_cache": 256 }),
    };
    for word in &words[2..] {
        match word.split_once('=').unwrap() {
            ("chunk", kib) => keys["chunk"] = format!("{kib}KiB").into(),
            ("layout", name) => {
                let (arrangement, copies) = name.split_at(1);
                let arrangement = match arrangement {
                    "n" => "near",
                    "f" => "far",
                    _ => "offset",
                };
                keys["arrangement"] = arrangement.into();
                keys["copies"] = copies.parse::<u32>().unwrap().into();
            }
            other => panic!("{other:?}"),
        }
    }
    keys
}

/// Returns an array of a line of the oracle: level, members, and words such as `chunk=64`.
fn array(words: &[&str], policy: &str) -> Bench {
    let (level, members) = (words[0], words[1].parse().unwrap());
    let mut keys = keys_of(words, policy);
    if !matches!(level, "raid0" | "raid1" | "raid10") {
        keys["largest_member_io"] = LARGEST.into();
    }
    let chunk_bytes = keys.get("chunk").map_or(64 * 1024, |chunk| {
        let kib = chunk.as_str().unwrap().strip_suffix("KiB").unwrap();
        1024 * kib.parse::<u64>().unwrap()
    });
    // The block layer divides requests by the limits of the array's queue. Arrays with parity and
    // RAID 0 take longer requests.
    let (largest, chunk) = match level {
        "raid10" => (LARGEST, chunk_bytes),
        "raid1" => (LARGEST, u64::MAX),
        _ => (u64::MAX, u64::MAX),
    };
    let laboratory = Laboratory::new(level, &keys, members);
    Bench {
        laboratory,
        largest,
        chunk,
    }
}

/// Returns a member I/O as the oracle writes it.
fn written(&(operation, member, offset, bytes): &MemberIo) -> String {
    let letter = if operation == Operation::Read {
        'R'
    } else {
        'W'
    };
    let kib = |bytes: u64| bytes as f64 / 1024.0;
    format!("{letter}{member}@{}K+{}K", kib(offset), kib(bytes))
}

/// Returns the extents that member I/O covers, by operation and member: adjacent I/Os are one
/// extent, in KiB.
pub(super) fn extents<'a>(ios: impl Iterator<Item = &'a str>) -> Vec<(String, f64, f64)> {
    let mut all: Vec<(String, f64, f64)> = ios
        .map(|io| {
            let (who, place) = io.split_once('@').unwrap();
            let (from, length) = place.split_once("K+").unwrap();
            let kib = |text: &str| text.trim_end_matches('K').parse::<f64>().unwrap();
            (who.to_owned(), kib(from), kib(from) + kib(length))
        })
        .collect();
    all.sort_by(|one, other| one.partial_cmp(other).unwrap());
    let mut joined: Vec<(String, f64, f64)> = Vec::new();
    for one in all {
        match joined.last_mut() {
            Some(last) if last.0 == one.0 && last.2 == one.1 => last.2 = one.2,
            _ => joined.push(one),
        }
    }
    joined
}

/// Carries out the lines of an oracle. Returns the number of requests, and the number of requests
/// whose member I/O covers the kernel's extents with other boundaries. Panics with the requests
/// whose member I/O covers other extents.
fn compare(oracle: &str, policy: &str) -> (u32, u32) {
    let (mut bench, mut checked, mut otherwise, mut wrong) = (None, 0, 0, Vec::new());
    let mut named = "";
    for line in oracle.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["array", ref of @ ..] => {
                bench = Some(array(of, policy));
                named = line;
            }
            ["cold"] => bench.as_mut().unwrap().laboratory.cool(),
            ["fail", member] => {
                let member = member.parse().unwrap();
                let laboratory = &mut bench.as_mut().unwrap().laboratory;
                laboratory.order(LayerOrder::Fail { member });
            }
            ["show" | "load", ..] => {}
            [kind, offset, bytes, "->", ref expected @ ..] => {
                let operation = if kind == "r" {
                    Operation::Read
                } else {
                    Operation::Write
                };
                let (offset, bytes): (u64, u64) = (offset.parse().unwrap(), bytes.parse().unwrap());
                let bench = bench.as_mut().unwrap();
                let limits = (bench.largest, bench.chunk);
                let found = bench.laboratory.pieces(operation, offset, bytes, limits);
                let found: Vec<String> = found.iter().map(written).collect();
                checked += 1;
                if found != expected {
                    let found = &found;
                    // Which copy answers depends on the boundaries of the bios, too. With small chunks
                    // it depends on the heads that dozens of reads leave, which end at the same time
                    // and in the kernel in any order.
                    let large = bench.largest < bench.chunk && bytes > BIO;
                    let small_chunks = bench.chunk <= SMALL_CHUNK;
                    let by_chance = kind == "r" && (large || small_chunks);
                    match by_chance
                        || extents(found.iter().map(String::as_str))
                            == extents(expected.iter().copied())
                    {
                        true => otherwise += 1,
                        false => {
                            wrong.push(format!("{named}: {line}\n   found {}", found.join(" ")))
                        }
                    }
                }
            }
            _ => panic!("{line}"),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {checked}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    (checked, otherwise)
}

#[test]
fn member_io_of_single_requests_is_that_of_the_kernel() {
    assert_eq!(compare(FIRST, "md-nonrotational"), (60, 0));
}

#[test]
fn member_io_of_parity_arrays_of_all_widths_is_that_of_the_kernel() {
    let (checked, otherwise) = compare(PARITY, "md");
    assert!(checked > 100 && otherwise == 0, "{checked} {otherwise}");
}

#[test]
fn the_tie_of_methods_of_all_widths_is_that_of_the_kernel() {
    let (checked, otherwise) = compare(TIES, "md");
    assert!(checked > 80 && otherwise == 0, "{checked} {otherwise}");
}

#[test]
fn member_io_of_degraded_parity_arrays_is_that_of_the_kernel() {
    // The boundaries of two requests of several rows depend on the speed of the processor: the
    // kernel itself joins the pages of one, and not those of the other.
    let (checked, otherwise) = compare(DEGRADED, "md");
    assert!(checked > 200 && otherwise <= 2, "{checked} {otherwise}");
}

#[test]
fn member_io_of_more_arrangements_of_copies_is_that_of_the_kernel() {
    // Requests of more than 1 MiB are several bios, whose boundaries and order depend on the memory
    // of the process.
    let (checked, otherwise) = compare(COPIES_MORE, "md");
    assert!(checked > 400 && otherwise <= 30, "{checked} {otherwise}");
}

#[test]
fn member_io_of_copies_on_disks_is_that_of_the_kernel() {
    let (checked, otherwise) = compare(COPIES, "md");
    assert!(checked > 90 && otherwise <= 4, "{checked} {otherwise}");
}

#[test]
fn member_io_of_copies_on_members_without_arms_is_that_of_the_kernel() {
    let (checked, otherwise) = compare(COPIES_NONROTATIONAL, "md-nonrotational");
    assert!(checked > 20 && otherwise == 0, "{checked} {otherwise}");
}

#[test]
fn member_io_of_drawn_requests_is_that_of_the_kernel() {
    // Levels, widths, chunks, failed members, places and sizes were drawn by chance.
    // 91 requests have other boundaries or another order, among them the reads past the stripes that
    // are longer than the requests of the kernel's members. 8 reads of RAID 10 with chunks of 4 KiB
    // take other copies.
    let (checked, otherwise) = compare(DRAWN, "md");
    println!("{checked} requests, {otherwise} with other boundaries or copies");
    assert!(checked > 1400 && otherwise <= 100, "{checked} {otherwise}");
}
