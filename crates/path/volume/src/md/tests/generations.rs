//! What earlier kernels do otherwise.

use super::laboratory::Laboratory;
use fullstroke_contract::Operation;
use serde_json::json;

const PAGE: u64 = 4096;

fn laboratory(layout: &str, members: usize, kernel: &str) -> Laboratory {
    let keys = json!({ "like": "md", "chunk": "64KiB", "stripe_cache": 256, "kernel": kernel });
    Laboratory::new(layout, &keys, members)
}

/// Number of member I/Os of an operation.
fn count(ios: &[super::laboratory::MemberIo], operation: Operation) -> usize {
    ios.iter().filter(|io| io.0 == operation).count()
}

#[test]
fn early_reads_go_through_the_stripes_and_find_their_pages_again() {
    for (kernel, second) in [("2.6.16", 0), ("2.6.23", 1), ("6.12", 1)] {
        let mut laboratory = laboratory("raid5", 4, kernel);
        let first = laboratory.single(Operation::Read, 0, 4 * PAGE);
        assert_eq!(first, [(Operation::Read, 0, 0, 4 * PAGE)], "{kernel}");
        let again = laboratory.single(Operation::Read, 0, 4 * PAGE);
        assert_eq!(again.len(), second, "{kernel}: {again:?}");
    }
}

#[test]
fn early_raid6_reads_the_other_data_of_a_row() {
    // A page on eight members: five other pages of data, or old data, P and Q.
    for (kernel, reads) in [("2.6.16", 5), ("2.6.23", 5), ("6.12", 3)] {
        let ios = laboratory("raid6", 8, kernel).single(Operation::Write, 0, PAGE);
        assert_eq!(count(&ios, Operation::Read), reads, "{kernel}: {ios:?}");
        assert_eq!(count(&ios, Operation::Write), 3, "{kernel}: {ios:?}");
    }
}

#[test]
fn early_kernels_hold_back_direct_writes_until_one_has_read() {
    // Two direct writes to different stripes: today both read at once, early kernels let the second
    // wait for the first.
    for (kernel, reads) in [("2.6.16", 2), ("2.6.23", 2), ("6.12", 4)] {
        let mut laboratory = laboratory("raid5", 5, kernel);
        laboratory.submit(1, Operation::Write, 0, PAGE);
        // The thread runs, and the first stripe reads.
        laboratory.step();
        laboratory.submit(2, Operation::Write, 64 * 1024 * 40, PAGE);
        laboratory.step();
        let begun = count(&laboratory.issued, Operation::Read);
        assert_eq!(begun, reads, "{kernel}: {:?}", laboratory.issued);
        while laboratory.ended() < 2 {
            laboratory.step();
        }
        assert_eq!(count(&laboratory.issued, Operation::Read), 4, "{kernel}");
    }
}
