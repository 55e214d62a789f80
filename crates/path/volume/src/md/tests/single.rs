//! Single requests, one after the other.

use super::laboratory::{Laboratory, MemberIo};
use fullstroke_contract::{LayerOrder, Operation};
use serde_json::json;

/// The member I/O of the running kernel: a first harvest, and the files of `tools/kernel-lab.py`.
const FIRST: &str = include_str!("../../../../../../samples/oracle/md/single.txt");
const PARITY: &str = include_str!("../../../../../../samples/oracle/md/parity.txt");
const COPIES: &str = include_str!("../../../../../../samples/oracle/md/copies.txt");
const COPIES_NONROTATIONAL: &str =
    include_str!("../../../../../../samples/oracle/md/copies-nonrotational.txt");

/// Bytes of the largest member I/O of the oracle's null_blk: 255 sectors, `BLK_SAFE_MAX_SECTORS`.
const LARGEST: u64 = 255 * 512;

/// An array and the largest request that it takes whole.
struct Bench {
    laboratory: Laboratory,
    largest: u64,
}

/// Returns an array of a line of the oracle: level, members, and words such as `chunk=64`.
fn array(words: &[&str], policy: &str) -> Bench {
    let (level, members) = (words[0], words[1].parse().unwrap());
    let mut keys = match level {
        "raid0" => json!({ "like": "md" }),
        "raid1" => json!({ "like": "md", "read_policy": policy }),
        "raid10" => json!({ "like": "md", "chunk": "64KiB", "read_policy": policy }),
        _ => {
            json!({ "like": "md", "chunk": "64KiB", "stripe_cache": 256, "largest_member_io": LARGEST })
        }
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
    // The block layer divides requests to RAID 1, and to RAID 0 with longer chunks, by the limit of
    // the members. The other arrays take longer requests.
    let largest = match level {
        "raid0" if keys["chunk"] == "64KiB" => u64::MAX,
        "raid0" | "raid1" => LARGEST,
        _ => u64::MAX,
    };
    let laboratory = Laboratory::new(level, &keys, members);
    Bench {
        laboratory,
        largest,
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

/// Carries out the lines of an oracle and returns the number of requests. Panics with the requests
/// whose member I/O is not that of the kernel.
fn compare(oracle: &str, policy: &str) -> u32 {
    let (mut bench, mut checked, mut wrong) = (None, 0, Vec::new());
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
                let largest = bench.largest.min(bytes);
                let found = bench.laboratory.pieces(operation, offset, bytes, largest);
                let found: Vec<String> = found.iter().map(written).collect();
                checked += 1;
                if found != expected {
                    wrong.push(format!("{named}: {line}\n   found {}", found.join(" ")));
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
    checked
}

#[test]
fn member_io_of_single_requests_is_that_of_the_kernel() {
    assert_eq!(compare(FIRST, "md-nonrotational"), 60);
}

#[test]
fn member_io_of_parity_arrays_of_all_widths_is_that_of_the_kernel() {
    assert!(compare(PARITY, "md") > 100);
}

#[test]
fn member_io_of_copies_on_disks_is_that_of_the_kernel() {
    assert!(compare(COPIES, "md") > 90);
}

#[test]
fn member_io_of_copies_on_members_without_arms_is_that_of_the_kernel() {
    assert!(compare(COPIES_NONROTATIONAL, "md-nonrotational") > 20);
}
