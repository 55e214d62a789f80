//! Loads that need more stripes than the cache has at first, against the running kernel.

use super::laboratory::Laboratory;
use super::loads::{kernel_lab, send};
use super::single::keys_of;
use fullstroke_contract::Operation;
use fullstroke_units::Duration;
use kernel_lab::number;

/// Sums and times of the running kernel, by `tools/kernel-lab.py --counted`.
const GROWTH: &str = include_str!("../../../../../../samples/oracle/md/growth.txt");

const LATENCY: Duration = Duration::from_nanos(20_000_000);
const STEP: Duration = Duration::from_nanos(500_000);
/// Time that a process of the emulated machine needs for a request.
const GAP: Duration = Duration::from_nanos(1_000);
const MEMBER: u64 = 2 * 1022 * 1024;

/// Panics if a number is not within these percent of the kernel's.
fn near(kernel: u64, found: u64, percent: u64, of: &str) {
    let is_near = found.abs_diff(kernel) * 100 <= percent * kernel;
    assert!(is_near, "{kernel} in the kernel, {found} here: {of}");
}

#[test]
fn the_cache_grows_as_in_the_kernel() {
    let (mut array, mut loads) = (None, 0);
    for line in GROWTH.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[0] == "array" {
            let mut keys = keys_of(&words[1..], "md");
            keys["largest_member_io"] = (2560 * 512).into();
            let members = words[2].parse().unwrap();
            let mut laboratory =
                Laboratory::of(words[1], &keys, members, true, MEMBER, LATENCY, None);
            laboratory.step = STEP;
            array = Some(laboratory);
            println!("{line}");
            continue;
        }
        let laboratory: &mut Laboratory = array.as_mut().unwrap();
        laboratory.rest(Duration::from_nanos(300_000_000));
        let begin = laboratory.now;
        send(laboratory, &words[1..9], GAP);
        let ms = laboratory.now.since(begin).as_nanos() / 1_000_000;
        laboratory.rest(Duration::from_nanos(100_000_000));
        let kib = |wanted| {
            let ios = laboratory.issued.iter().filter(|io| io.0 == wanted);
            ios.map(|io| io.3 / 1024).sum::<u64>()
        };
        let found = (kib(Operation::Read), kib(Operation::Write));
        let kernel = (number(line, "read_kib"), number(line, "written_kib"));
        let kernel_ms = number(line, "ms");
        let of = words[..9].join(" ");
        println!("{kernel_ms:6} {ms:6} ms, {kernel:?} {found:?} KiB, {of}");
        loads += 1;
        // The processor of the guest needs about 30 µs for the parity of a stripe, so that long
        // requests wait for the thread there.
        let is_long = words[3] == "1048576";
        let (bytes, time) = if is_long { (20, 45) } else { (2, 18) };
        near(kernel.0 + kernel.1, found.0 + found.1, bytes, &of);
        near(kernel_ms, ms, time, &of);
    }
    assert_eq!(loads, 21);
}
