//! Single requests, one after the other.

use super::laboratory::{Laboratory, MemberIo};
use fullstroke_contract::{Operation, Order};
use serde_json::json;

/// The member I/O of the running kernel.
const ORACLE: &str = include_str!("../../../../../../samples/oracle/md/single.txt");

/// Bytes of the largest member I/O of the oracle's null_blk: 255 sectors, `BLK_SAFE_MAX_SECTORS`.
const LARGEST: u64 = 255 * 512;

fn array(layout: &str, members: usize) -> Laboratory {
    let keys = match layout {
        "raid10" => json!({ "like": "md", "chunk": "64KiB", "read_policy": "md-nonrotational" }),
        _ => {
            json!({ "like": "md", "chunk": "64KiB", "stripe_cache": 256, "largest_member_io": LARGEST })
        }
    };
    Laboratory::new(layout, &keys, members)
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

#[test]
fn member_io_of_single_requests_is_that_of_the_kernel() {
    let (mut laboratory, mut checked, mut wrong) = (None, 0, Vec::new());
    for line in ORACLE.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["array", layout, members] => {
                laboratory = Some(array(layout, members.parse().unwrap()));
            }
            ["cold"] => laboratory.as_mut().unwrap().cool(),
            ["fail", member] => {
                let member = member.parse().unwrap();
                laboratory.as_mut().unwrap().order(Order::Fail { member });
            }
            [kind, offset, bytes, "->", ref expected @ ..] => {
                let operation = if kind == "r" {
                    Operation::Read
                } else {
                    Operation::Write
                };
                let (offset, bytes) = (offset.parse().unwrap(), bytes.parse().unwrap());
                let found = laboratory
                    .as_mut()
                    .unwrap()
                    .single(operation, offset, bytes);
                let found: Vec<String> = found.iter().map(written).collect();
                checked += 1;
                if found != expected {
                    wrong.push(format!("{line}\n   found {}", found.join(" ")));
                }
            }
            _ => panic!("{line}"),
        }
    }
    assert!(checked > 50, "only {checked} requests were compared");
    assert!(
        wrong.is_empty(),
        "{} of {checked}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
