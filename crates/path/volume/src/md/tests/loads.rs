//! Sums over loads.

use super::laboratory::{Laboratory, MemberIo};
use fullstroke_contract::Operation;
use fullstroke_units::{Duration, Time};
use serde_json::json;

/// Sums over the member I/O of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    reads: u64,
    read_kib: u64,
    writes: u64,
    written_kib: u64,
}

fn sums(ios: &[MemberIo]) -> Sums {
    let mut sums = Sums::default();
    for &(operation, _, _, bytes) in ios {
        let (count, kib) = match operation {
            Operation::Read => (&mut sums.reads, &mut sums.read_kib),
            _ => (&mut sums.writes, &mut sums.written_kib),
        };
        *count += 1;
        *kib += bytes / 1024;
    }
    sums
}

/// Writes `count` times `bytes`, one behind the other, `depth` at a time. The process needs `gap`
/// for each request.
fn sequential_writes(count: u64, bytes: u64, depth: u64, gap: Duration) -> Sums {
    let keys = json!({ "like": "md", "chunk": "64KiB", "stripe_cache": 256, "largest_member_io": 255 * 512 });
    let mut laboratory = Laboratory::new("raid5", &keys, 5);
    let (mut submitted, mut free) = (0, Time::ZERO);
    while laboratory.done.len() < count as usize {
        let may = submitted < count && submitted < laboratory.done.len() as u64 + depth;
        let next = laboratory.next();
        let at = free.max(laboratory.now);
        if may && at <= next {
            laboratory.now = at;
            laboratory.submit(submitted, Operation::Write, submitted * bytes, bytes);
            submitted += 1;
            free = at + gap;
        } else {
            laboratory.step();
        }
    }
    sums(&laboratory.issued)
}

/// True if `found` is within a tenth of `kernel`.
fn is_near(found: u64, kernel: u64) -> bool {
    found.abs_diff(kernel) * 10 <= kernel
}

#[test]
fn neighbouring_writes_become_full_stripes() {
    // The kernel: 6 reads of 264 KiB, 144 writes of 5242 KiB in all. A processor that needs no time
    // hands over all eight writes before the thread runs, so that not even the first is alone.
    let sums = sequential_writes(64, 65_536, 8, Duration::ZERO);
    assert!(is_near(sums.written_kib, 5242), "{sums:?}");
    assert!(sums.read_kib <= 264 && sums.reads <= 6, "{sums:?}");
    assert!(sums.writes <= 144, "{sums:?}");
}

#[test]
fn writes_one_at_a_time_find_the_pages_of_their_predecessors() {
    // The kernel: 3.0 member I/Os for each of 64 writes of 4 KiB.
    let sums = sequential_writes(64, 4096, 1, Duration::from_nanos(10_000));
    assert_eq!(sums.reads + sums.writes, 3 * 64, "{sums:?}");
}

#[test]
fn a_slow_processor_lets_fewer_neighbours_join() {
    // The kernel in an emulated machine: 12 reads and 78 writes, 1205 KiB in all, for 128 writes of
    // 4 KiB with 32 at a time. The count of I/Os depends on the speed of the processor. The bytes lie
    // between those of a machine that is infinitely fast and those of a machine in which each
    // request comes alone.
    let together = sequential_writes(128, 4096, 32, Duration::ZERO);
    let alone = sequential_writes(128, 4096, 32, Duration::from_nanos(20_000));
    let all = |sums: Sums| sums.read_kib + sums.written_kib;
    assert!(
        (all(together)..=all(alone)).contains(&1205),
        "{together:?} {alone:?}"
    );
    assert!(together.reads + together.writes <= 90 && alone.reads + alone.writes >= 90);
}
