//! Stops are only counted here, so no disk is needed.

use super::*;
use crate::StoppableDevice;
use crate::power::{Simulated, design, dynamic, simulated};
use crate::{JournalPolicy, RequestScratch, assemble, create};
use fullstroke_device::scsi::CommandError;
use fullstroke_device::standby::StoppableDisk;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};

/// Counters of a device and of its means to stop.
#[derive(Default)]
struct StandbyCounts {
    /// Accesses and flushes of the device, and those in progress.
    accesses: AtomicU64,
    under_way: AtomicU32,
    stopping: AtomicBool,
    asked: AtomicU64,
    stops: AtomicU64,
    refuses: AtomicBool,
    /// Number of accesses during a stop, and of stops during an access.
    clashes: AtomicU64,
}

struct Probe(Arc<Simulated>, Arc<StandbyCounts>);

impl Probe {
    fn during<T>(&self, act: impl FnOnce() -> T) -> T {
        let bench = &self.1;
        bench.accesses.fetch_add(1, SeqCst);
        bench.under_way.fetch_add(1, SeqCst);
        bench
            .clashes
            .fetch_add(u64::from(bench.stopping.load(SeqCst)), SeqCst);
        let result = act();
        bench.under_way.fetch_sub(1, SeqCst);
        result
    }
}

impl Device for Probe {
    fn name(&self) -> String {
        self.0.name()
    }
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.during(|| self.0.read(at, into))
    }
    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        self.during(|| self.0.write(at, from))
    }
    fn flush(&self) -> io::Result<()> {
        self.during(|| self.0.flush())
    }
}

struct Fake(Arc<StandbyCounts>);

impl StoppableDisk for Fake {
    fn check(&self) -> Result<(), StandbyError> {
        self.0.asked.fetch_add(1, SeqCst);
        Ok(())
    }
    fn stop(&self) -> Result<(), StandbyError> {
        let bench = &self.0;
        if bench.refuses.load(SeqCst) {
            bench.asked.fetch_add(1, SeqCst);
            return Err(CommandError::Sense {
                key: 5,
                code: 0x24,
                qualifier: 0,
            }
            .into());
        }
        bench.stopping.store(true, SeqCst);
        bench
            .clashes
            .fetch_add(u64::from(bench.under_way.load(SeqCst) > 0), SeqCst);
        std::thread::sleep(std::time::Duration::from_micros(200));
        bench.stopping.store(false, SeqCst);
        bench.stops.fetch_add(1, SeqCst);
        Ok(())
    }
}

/// Makes an array on stoppable devices.
fn attended(layout: &str, members: usize) -> (Array, Vec<Arc<StandbyCounts>>) {
    let (devices, _) = simulated(members, 1300 << 10);
    create(
        &design(layout, 4096, JournalPolicy::Partial),
        &dynamic(&devices),
    )
    .unwrap();
    let benches: Vec<Arc<StandbyCounts>> = devices.iter().map(|_| Arc::default()).collect();
    let devices = devices.iter().zip(&benches).map(|(device, bench)| {
        let probe = Probe(Arc::clone(device), Arc::clone(bench));
        Arc::new(StoppableDevice::new(
            probe,
            Box::new(Fake(Arc::clone(bench))),
        )) as Arc<dyn Device>
    });
    let (array, _) = assemble(&devices.collect::<Vec<_>>(), false).unwrap();
    (array, benches)
}

fn sum(benches: &[Arc<StandbyCounts>], of: fn(&StandbyCounts) -> &AtomicU64) -> u64 {
    benches.iter().map(|bench| of(bench).load(SeqCst)).sum()
}

fn second(second: u64) -> Time {
    Time::from_nanos(second * 1_000_000_000)
}

#[test]
fn nothing_is_sent_to_a_disk_unless_somebody_asks() {
    let (array, benches) = attended("raid5", 4);
    let mut worker = RequestScratch::one_by_one();
    for at in 0..20 {
        array.write(&mut worker, at * 4096, &[7; 4096]).unwrap();
        array.flush().unwrap();
        array.tidy().unwrap();
    }
    array.fail(1).unwrap();
    array.stop().unwrap();
    assert_eq!(
        (
            sum(&benches, |bench| &bench.asked),
            sum(&benches, |bench| &bench.stops)
        ),
        (0, 0)
    );
}

#[test]
fn an_idle_time_has_one_stop_and_nothing_of_the_arrays_own_ends_it() {
    for (layout, members) in [("raid5", 4), ("raid1", 2), ("raid6", 5), ("jbod", 3)] {
        let (array, benches) = attended(layout, members);
        let mut worker = RequestScratch::one_by_one();
        let mut watch = StandbyWatch::new(Duration::from_secs(60)).unwrap();
        let stops = || {
            benches
                .iter()
                .map(|bench| bench.stops.load(SeqCst))
                .collect::<Vec<_>>()
        };
        let mut still = 0;
        for now in 0..1800 {
            // All members are accessed at 0 and at 1000 seconds, also for parts of rows.
            if now % 1000 == 0 {
                let bytes = vec![now as u8; array.capacity().bytes().0 as usize - 512];
                array.write(&mut worker, 512, &bytes).unwrap();
            }
            // A flush without writes wakes no disk.
            array.flush().unwrap();
            array.tidy().unwrap();
            array.rest(&mut watch, second(now)).unwrap();
            let expected = u64::from(now >= 70) + u64::from(now >= 1070);
            if matches!(now, 0..60 | 70..1060 | 1070..) {
                assert_eq!(stops(), vec![expected; members], "{layout} after {now} s");
            }
            match now {
                70 => still = sum(&benches, |bench| &bench.accesses),
                71..1000 => assert_eq!(
                    sum(&benches, |bench| &bench.accesses),
                    still,
                    "{layout}, {now} s"
                ),
                _ => {}
            }
        }
        assert!(array.status().slots.iter().all(|slot| slot.standby));
        let kinds: Vec<_> = array
            .take_happenings()
            .into_iter()
            .map(|happening| happening.kind)
            .collect();
        assert_eq!(kinds, vec!["standby"; 2 * members], "{layout}");
    }
}

#[test]
fn a_member_that_is_read_turns_while_the_others_stand() {
    let (array, benches) = attended("jbod", 3);
    let mut worker = RequestScratch::one_by_one();
    let mut watch = StandbyWatch::new(Duration::from_secs(60)).unwrap();
    for now in 0..300 {
        if now % 20 == 0 {
            array.read(&mut worker, 0, &mut [0; 512]).unwrap();
        }
        array.tidy().unwrap();
        array.rest(&mut watch, second(now)).unwrap();
    }
    let stops: Vec<u64> = benches
        .iter()
        .map(|bench| bench.stops.load(SeqCst))
        .collect();
    assert_eq!(stops, [0, 1, 1]);
    let stand: Vec<bool> = array
        .status()
        .slots
        .iter()
        .map(|slot| slot.standby)
        .collect();
    assert_eq!(stand, [false, true, true]);
}

#[test]
fn who_asks_has_all_stopped_at_once_and_nothing_is_left_to_be_written() {
    let (array, benches) = attended("raid5", 4);
    let mut worker = RequestScratch::one_by_one();
    array.write(&mut worker, 1000, &[3; 9000]).unwrap();
    assert_eq!(array.stand_by().unwrap(), "4 disks in standby");
    let before = sum(&benches, |bench| &bench.accesses);
    assert_eq!(array.stand_by().unwrap(), "4 disks in standby");
    for _ in 0..10 {
        array.tidy().unwrap();
        array.flush().unwrap();
    }
    assert_eq!(
        (
            sum(&benches, |bench| &bench.accesses),
            sum(&benches, |bench| &bench.stops)
        ),
        (before, 4)
    );
    // The written data is there.
    let mut bytes = vec![0; 9000];
    array.read(&mut worker, 1000, &mut bytes).unwrap();
    assert_eq!(bytes, [3; 9000]);
    assert!(array.status().slots.iter().any(|slot| !slot.standby));
}

#[test]
fn a_disk_that_does_not_do_it_is_told_once_and_not_asked_again() {
    let (array, benches) = attended("raid1", 2);
    benches[1].refuses.store(true, SeqCst);
    let mut watch = StandbyWatch::new(Duration::from_secs(60)).unwrap();
    let mut worker = RequestScratch::one_by_one();
    for now in 0..600 {
        if now % 100 == 0 {
            array.write(&mut worker, 0, &[1; 512]).unwrap();
        }
        array.tidy().unwrap();
        array.rest(&mut watch, second(now)).unwrap();
    }
    assert_eq!(benches[1].asked.load(SeqCst), 1);
    assert_eq!(benches[0].stops.load(SeqCst), 6);
    let told: Vec<_> = array
        .take_happenings()
        .into_iter()
        .filter(|one| one.kind == "refused")
        .collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].why.contains("illegal request"), "{told:?}");
}

#[test]
fn what_cannot_be_stopped_and_times_that_are_too_short_are_refused() {
    let (devices, _) = simulated(1, 1300 << 10);
    let refused = check_standby(Duration::from_secs(60), &dynamic(&devices))
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("`device 0`") && refused.contains("found a file"),
        "{refused}"
    );
    let refused = check_standby(Duration::from_secs(3), &[])
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("--standby-after: found 3s; expected at least 60s"),
        "{refused}"
    );
}

/// Four threads use an array as fast as they can, and one stops its members.
#[test]
fn no_disk_is_stopped_while_it_is_in_use() {
    let (array, benches) = attended("raid5", 4);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let array = &array;
            let ended = &ended;
            scope.spawn(move || {
                let mut worker = RequestScratch::one_by_one();
                let mut round = thread;
                while !ended.load(SeqCst) {
                    round += 1;
                    array
                        .write(
                            &mut worker,
                            round % 30 * 4096 + thread * 512,
                            &[round as u8; 512],
                        )
                        .unwrap();
                    array
                        .read(&mut worker, round % 17 * 4096, &mut [0; 2048])
                        .unwrap();
                    if round.is_multiple_of(5) {
                        array.flush().unwrap();
                        std::thread::sleep(std::time::Duration::from_micros(300));
                    }
                }
            });
        }
        let devices = array.all_devices();
        let began = std::time::Instant::now();
        while sum(&benches, |bench| &bench.stops) < 200 && began.elapsed().as_secs() < 20 {
            for (_, device) in &devices {
                device.standby().unwrap().stop(None).unwrap();
            }
        }
        ended.store(true, SeqCst);
    });
    assert!(
        sum(&benches, |bench| &bench.stops) >= 20,
        "it was hardly ever quiet"
    );
    assert_eq!(sum(&benches, |bench| &bench.clashes), 0);
}
