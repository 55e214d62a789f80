//! Members hang: a request never ends.

use super::{Simulated, content, design, dynamic, kinds, simulated, some_bytes};
use crate::{Array, Device, JournalPolicy, RequestScratch, Timed, assemble, create};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_millis(300);
/// Longest time of a request, on a host with other load.
const PATIENCE: Duration = Duration::from_secs(60);

fn timed(devices: &[Arc<Simulated>]) -> Vec<Arc<dyn Device>> {
    dynamic(devices)
        .into_iter()
        .map(|device| Timed::limited(device, LIMIT))
        .collect()
}

fn filled(layout: &str, members: usize) -> (Array, Vec<Arc<Simulated>>, Vec<u8>) {
    let (devices, _) = simulated(members, 1300 << 10);
    create(
        &design(layout, 4096, JournalPolicy::Partial),
        &timed(&devices),
    )
    .unwrap();
    let (array, _) = assemble(&timed(&devices), false).unwrap();
    let bytes = some_bytes(array.capacity().bytes().0, 3);
    array
        .write(&mut RequestScratch::one_by_one(), 0, &bytes)
        .unwrap();
    array.flush().unwrap();
    (array, devices, bytes)
}

#[test]
fn a_member_that_hangs_has_failed_and_the_array_goes_on() {
    type Act = fn(&Array, &mut RequestScratch);
    let acts: [(&str, Act); 3] = [
        ("read", |array, worker| drop(content(array, worker))),
        ("write", |array, worker| {
            array.write(worker, 4096, &some_bytes(2048, 8)).unwrap();
        }),
        ("flush", |array, _| array.flush().unwrap()),
    ];
    for (layout, members) in [("raid1", 2), ("raid5", 3), ("raid6", 4), ("raid10", 4)] {
        for (what, act) in acts {
            let (array, devices, mut bytes) = filled(layout, members);
            let hung = &devices[1];
            hung.hangs.store(true, Ordering::SeqCst);
            let begun = Instant::now();
            std::thread::scope(|scope| {
                // One request waits for the member. The other waits for no member, and at most for
                // the first request.
                for _ in 0..2 {
                    scope.spawn(|| act(&array, &mut RequestScratch::one_by_one()));
                }
            });
            if what != "flush" {
                array.flush().unwrap();
            }
            assert!(begun.elapsed() < PATIENCE, "{layout}, {what}");
            assert!(kinds(&array).contains(&"failed"), "{layout}, {what}");
            assert_eq!(array.status().slots[1].state, "failed", "{layout}, {what}");
            if what == "write" {
                bytes[4096..6144].copy_from_slice(&some_bytes(2048, 8));
            }
            let begun = Instant::now();
            let found = content(&array, &mut RequestScratch::one_by_one());
            assert!(found == bytes, "{layout}, {what}");
            assert!(begun.elapsed() < PATIENCE, "{layout}, {what}");
            array.stop().unwrap();
            hung.hangs.store(false, Ordering::SeqCst);
        }
    }
}

#[test]
fn a_device_that_hangs_while_an_array_is_assembled_counts_as_missing() {
    let (array, devices, bytes) = filled("raid5", 3);
    array.stop().unwrap();
    drop(array);
    devices[2].hangs.store(true, Ordering::SeqCst);
    let error = match assemble(&timed(&devices), false) {
        Ok(_) => panic!("it lacks a member"),
        Err(error) => error.to_string(),
    };
    assert!(
        error.contains("`device 2`") && error.contains("no answer"),
        "{error}"
    );
    let (array, report) = assemble(&timed(&devices), true).unwrap();
    assert!(report.gone[0].contains("`device 2`"), "{report:?}");
    assert!(content(&array, &mut RequestScratch::one_by_one()) == bytes);
    devices[2].hangs.store(false, Ordering::SeqCst);
}

#[test]
fn a_device_without_a_limit_is_the_device_itself() {
    let (devices, _) = simulated(1, 4096);
    let device: Arc<dyn Device> = Arc::clone(&devices[0]) as Arc<dyn Device>;
    assert!(Arc::ptr_eq(
        &Timed::limited(Arc::clone(&device), Duration::ZERO),
        &device
    ));
}
