//! Limits of classes, joined I/Os, and scrubs beside other I/O.

use super::*;
use crate::classes::async_writes;

fn io(class: Class, offset: u64, size: u64, block: u32) -> LeafIo {
    let reads = matches!(class, Class::SyncRead | Class::AsyncRead | Class::Scrub);
    LeafIo {
        class,
        operation: if reads {
            Operation::Read
        } else {
            Operation::Write
        },
        offset,
        size,
        block: Some(block),
    }
}

fn blocks(queue: &mut LeafQueue, sent: Sent) -> Vec<u32> {
    let mut all = Vec::new();
    queue.done(sent.id, &mut |block| all.push(block));
    all
}

#[test]
fn each_class_keeps_to_its_limits_and_classes_below_their_least_number_have_turns() {
    let mut queue = LeafQueue::default();
    for number in 0..40 {
        let far = u64::from(number) << 30;
        queue.push(Time::ZERO, io(Class::AsyncWrite, far, 4096, number));
        queue.push(Time::ZERO, io(Class::SyncRead, far, 4096, 100 + number));
    }
    let sent: Vec<Sent> = std::iter::from_fn(|| queue.next(2)).collect();
    let is_read = |sent: &&Sent| sent.operation == Operation::Read;
    let reads = sent.iter().filter(is_read);
    assert_eq!(reads.count(), 10);
    assert_eq!(sent.len(), 12, "two writes beside ten reads");
    let order: Vec<bool> = sent.iter().map(|sent| is_read(&sent)).collect();
    assert_eq!(order[..5], [true, false, true, false, true]);
    let more: Vec<Sent> = std::iter::from_fn(|| queue.next(10)).collect();
    assert_eq!(more.len(), 8, "with much dirty data ten writes");
}

#[test]
fn neighbours_join_up_to_a_mib_and_reads_across_gaps() {
    let mut queue = LeafQueue::default();
    for number in 0..40 {
        queue.push(
            Time::ZERO,
            io(Class::AsyncWrite, u64::from(number) << 16, 1 << 16, number),
        );
    }
    let sent = queue.next(10).unwrap();
    assert_eq!((sent.offset, sent.size), (0, 1 << 20));
    assert_eq!(blocks(&mut queue, sent).len(), 16);

    let mut queue = LeafQueue::default();
    for (number, offset) in [(0, 0), (1, 36 << 10), (2, 80 << 10), (3, 84 << 10)] {
        queue.push(Time::ZERO, io(Class::SyncRead, offset, 4096, number));
    }
    let sent = queue.next(10).unwrap();
    assert_eq!(
        sent.size,
        40 << 10,
        "a gap of 32 KiB is read, 40 KiB is not"
    );
    let next = queue.next(10).unwrap();
    assert_eq!((next.offset, next.size), (80 << 10, 8 << 10));
}

/// `zfs_vdev_aggregation_limit_non_rotating` is 128 KiB.
#[test]
fn on_a_flash_device_neighbours_join_up_to_128_kib() {
    let mut queue = LeafQueue::new(true);
    for number in 0..40 {
        let offset = u64::from(number) << 15;
        queue.push(Time::ZERO, io(Class::AsyncWrite, offset, 1 << 15, number));
    }
    let sent = queue.next(10).unwrap();
    assert_eq!((sent.offset, sent.size), (0, 128 << 10));
    // An I/O above the limit goes alone.
    queue.push(Time::ZERO, io(Class::SyncRead, 0, 1 << 20, 50));
    queue.push(Time::ZERO, io(Class::SyncRead, 1 << 20, 4096, 51));
    let reads =
        std::iter::from_fn(|| queue.next(2)).filter(|sent| sent.operation == Operation::Read);
    assert_eq!(reads.map(|sent| sent.size).max(), Some(1 << 20));
}

#[test]
fn optional_writes_close_gaps_or_go_away() {
    let optional = |offset| LeafIo {
        block: None,
        ..io(Class::AsyncWrite, offset, 4096, 0)
    };
    let mut queue = LeafQueue::default();
    queue.push(Time::ZERO, io(Class::AsyncWrite, 0, 4096, 1));
    queue.push(Time::ZERO, optional(4096));
    queue.push(Time::ZERO, io(Class::AsyncWrite, 8192, 4096, 2));
    queue.push(Time::ZERO, optional(12288));
    let sent = queue.next(10).unwrap();
    assert_eq!(
        (sent.offset, sent.size),
        (0, 12288),
        "the last sector joins nothing"
    );
    assert_eq!(blocks(&mut queue, sent), [1, 2]);
    assert!(
        queue.next(10).is_none(),
        "an optional write alone is dropped"
    );
}

#[test]
fn a_scrub_gives_way_to_interactive_requests() {
    let mut queue = LeafQueue::default();
    for number in 0..100 {
        queue.push(
            Time::ZERO,
            io(Class::Scrub, u64::from(number) << 30, 4096, number),
        );
    }
    let alone: Vec<Sent> = std::iter::from_fn(|| queue.next(10)).collect();
    assert_eq!(alone.len(), 1, "at first one, until five have ended");
    let mut running = alone;
    for _ in 0..6 {
        let sent = running.remove(0);
        blocks(&mut queue, sent);
        running.extend(std::iter::from_fn(|| queue.next(10)));
    }
    assert_eq!(running.len(), 3, "alone, a scrub has three");
    queue.push(Time::ZERO, io(Class::SyncRead, 0, 4096, 500));
    assert_eq!(queue.next(10).unwrap().block, 500);
    let sent = running.remove(0);
    blocks(&mut queue, sent);
    assert!(
        queue.next(10).is_none(),
        "beside a read at most one of the scrub"
    );
}

#[test]
fn dirty_data_opens_the_queue_for_writes() {
    let most = 1 << 30;
    assert_eq!(async_writes(0, most), 2);
    assert_eq!(async_writes(most * 45 / 100, most), 6);
    assert_eq!(async_writes(most * 7 / 10, most), 10);
}

/// Reads and writes of a sequential resilver share one class (`ZIO_PRIORITY_REBUILD`).
#[test]
fn a_sequential_resilver_has_three_reads_and_writes_in_a_drive() {
    let mut queue = LeafQueue::default();
    let mut all = Vec::new();
    for number in 0..40 {
        let mut one = io(Class::Rebuild, u64::from(number) << 30, 4096, number);
        if number % 2 == 0 {
            one.operation = Operation::Read;
        }
        queue.push(Time::ZERO, one);
    }
    for _ in 0..12 {
        all.extend(std::iter::from_fn(|| queue.next(10)));
        let sent: Sent = all.remove(0);
        blocks(&mut queue, sent);
    }
    all.extend(std::iter::from_fn(|| queue.next(10)));
    assert_eq!(all.len(), 3);
    let reads = all.iter().filter(|sent| sent.operation == Operation::Read);
    assert!((1..3).contains(&reads.count()));
    queue.push(Time::ZERO, io(Class::AsyncWrite, 0, 4096, 500));
    assert_eq!(queue.next(10).unwrap().block, 500);
    all.drain(..).for_each(|sent| _ = blocks(&mut queue, sent));
    assert!(
        queue
            .next(10)
            .is_some_and(|sent| sent.operation == Operation::Read || sent.block < 40)
    );
    assert!(queue.next(10).is_none(), "beside a write at most one");
}

/// `arc_read` hurries the read-ahead of a record for which a request waits.
#[test]
fn a_hurried_read_ahead_goes_beside_the_others() {
    let mut queue = LeafQueue::default();
    for number in 0..8 {
        let far = u64::from(number) << 30;
        queue.push(Time::ZERO, io(Class::AsyncRead, far, 4096, number));
    }
    let sent: Vec<Sent> = std::iter::from_fn(|| queue.next(2)).collect();
    assert_eq!(sent.len(), 3, "three read-aheads at a time");
    queue.hurry(6, 6 << 30);
    // Neither another block at this place nor a read-ahead in the drive changes anything.
    queue.hurry(6, 7 << 30);
    queue.hurry(0, 0);
    let hurried: Vec<u32> = std::iter::from_fn(|| queue.next(2))
        .map(|sent| sent.block)
        .collect();
    assert_eq!(hurried, [6]);
}

/// `vdev_queue_class_to_issue` leaves the turn alone while nothing waits.
#[test]
fn an_empty_queue_keeps_the_turn() {
    let mut queue = LeafQueue::default();
    let first_of_two = |queue: &mut LeafQueue, place: u64| {
        queue.push(Time::ZERO, io(Class::SyncRead, place, 4096, 1));
        queue.push(Time::ZERO, io(Class::AsyncWrite, place, 4096, 2));
        let first = queue.next(2).unwrap();
        let second = queue.next(2).unwrap();
        assert!(queue.next(2).is_none());
        blocks(queue, second);
        blocks(queue, first)
    };
    assert_eq!(first_of_two(&mut queue, 1 << 30), [1]);
    assert_eq!(
        first_of_two(&mut queue, 2 << 30),
        [1],
        "the write went last"
    );
    queue.push(Time::ZERO, io(Class::SyncRead, 3 << 30, 4096, 3));
    let read = queue.next(2).unwrap();
    assert_eq!(blocks(&mut queue, read), [3]);
    assert_eq!(first_of_two(&mut queue, 4 << 30), [2], "the read went last");
}
