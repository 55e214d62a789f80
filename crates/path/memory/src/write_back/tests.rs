//! Write-back above a device of a known rate: the times of the writes, and the waits of the
//! writers.

use crate::config::{CachePolicy, MemoryKeys};
use crate::out::{CacheOut, IoReason, OperationAnswer, PageIo, Ticket};
use crate::{FileAccess, FileId, PAGE_BYTES, PageCache, QueueLimits};
use fullstroke_contract::{Object, RequestStatus};
use fullstroke_units::{Bytes, Duration, Time};
use serde_json::json;
use std::collections::VecDeque;

/// Pages of memory; 10 % are 1000 pages.
const LIMIT: u64 = 10_000;

/// A cache above a device that serves one write after the other, in a fixed time for each page.
struct World {
    cache: PageCache,
    now: Time,
    out: CacheOut,
    page: Duration,
    queue: VecDeque<PageIo>,
    free: Time,
    ends: VecDeque<Time>,
    /// Time of the issue of each write.
    asked: Vec<(Time, PageIo)>,
    dirty_most: u64,
}

impl World {
    fn new(write_back: &str, page: Duration) -> World {
        let mut keys = MemoryKeys::of(Bytes(LIMIT * PAGE_BYTES));
        keys.write_back = Some(CachePolicy::Name(write_back.to_owned()));
        World {
            cache: PageCache::new(&keys, QueueLimits::default()).unwrap(),
            now: Time::ZERO,
            out: CacheOut::default(),
            page,
            queue: VecDeque::new(),
            free: Time::ZERO,
            ends: VecDeque::new(),
            asked: Vec::new(),
            dirty_most: 0,
        }
    }

    fn take(&mut self) {
        for io in std::mem::take(&mut self.out.writes) {
            self.asked.push((self.now, io));
            self.free = self.free.max(self.now) + self.page * io.run.pages;
            self.ends.push_back(self.free);
            self.queue.push_back(io);
        }
        let gauges = self.cache.gauges();
        self.dirty_most = self.dirty_most.max(gauges.dirty + gauges.writing);
    }

    /// Handles the next event up to `until`. Returns false if there was none.
    fn step(&mut self, until: Time) -> bool {
        let end = self.ends.front().copied().unwrap_or(Time::NEVER);
        let wake = self.cache.next_wake();
        let next = end.min(wake);
        if next > until {
            self.now = until;
            return false;
        }
        self.now = self.now.max(next);
        if end <= wake {
            self.ends.pop_front();
            let io = self.queue.pop_front().unwrap();
            self.cache
                .written(self.now, io.id, io.run, RequestStatus::Done, &mut self.out);
        } else {
            self.cache.wake(self.now, &mut self.out);
        }
        self.take();
        true
    }

    fn run_to(&mut self, until: Time) {
        while self.step(until) {}
    }

    /// Writes pages, and waits until the writer may continue.
    fn write(&mut self, file: FileId, first: u64, pages: u64) {
        let access = FileAccess::new(first * PAGE_BYTES, pages * PAGE_BYTES, 0);
        self.out.woken.clear();
        let answer = self
            .cache
            .write(self.now, file, access, false, Ticket(first), &mut self.out);
        self.take();
        while answer == OperationAnswer::Waits && self.out.woken.is_empty() {
            assert!(self.step(Time::NEVER), "the writer waits for ever");
        }
    }

    fn runs(&self) -> Vec<(f64, u32, u64, u64, IoReason)> {
        let row = |&(at, io): &(Time, PageIo)| {
            (
                at.as_secs_f64(),
                io.run.object.0,
                io.run.first,
                io.run.pages,
                io.why,
            )
        };
        self.asked.iter().map(row).collect()
    }
}

const FAST: Duration = Duration::from_micros(10);

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

#[test]
fn what_is_dirty_for_30_seconds_is_written_at_the_next_look() {
    for write_back in ["2.6.17", "2.6.23", "today"] {
        let mut world = World::new(write_back, FAST);
        let files = [2, 1].map(|object| world.cache.open(Object(object)));
        world.run_to(at(2));
        world.write(files[0], 5, 300);
        world.run_to(at(8));
        world.write(files[1], 0, 10);
        // A second write while the pages are dirty: they stay dirty since second 2.
        world.write(files[0], 305, 10);
        world.run_to(at(60));
        // pdflush searches at multiples of 5 s. The flusher searches every 5 s from the first dirty
        // page on.
        let (first, second) = if write_back == "today" {
            (32.0, 42.0)
        } else {
            (35.0, 40.0)
        };
        assert_eq!(
            world.runs(),
            [
                (first, 2, 5, 128, IoReason::Periodic),
                (first, 2, 133, 128, IoReason::Periodic),
                (first, 2, 261, 54, IoReason::Periodic),
                (second, 1, 0, 10, IoReason::Periodic),
            ],
            "{write_back}"
        );
    }
}

/// `get_dirty_limits` of Linux 2.6.17 (`mm/page-writeback.c`) limits `dirty_ratio` to 5 % of the
/// memory at least and to half of the unmapped memory at most.
#[test]
fn pdflush_lets_at_most_half_of_the_memory_become_dirty_and_at_least_a_twentieth() {
    let dirty_most = |ratio: u64| {
        let mut keys = MemoryKeys::of(Bytes(LIMIT * PAGE_BYTES));
        let policy =
            json!({ "policy": "2.6.17", "dirty_ratio": ratio, "dirty_background_ratio": ratio });
        keys.write_back = Some(serde_json::from_value(policy).unwrap());
        let mut world = World::new("2.6.17", Duration::from_millis(1));
        world.cache = PageCache::new(&keys, QueueLimits::default()).unwrap();
        let file = world.cache.open(Object(1));
        (0..LIMIT / 10).for_each(|at| world.write(file, at * 8, 8));
        world.dirty_most
    };
    assert_eq!(dirty_most(50), dirty_most(90));
    assert!(dirty_most(50) > dirty_most(30));
    assert_eq!(dirty_most(5), dirty_most(1));
}

#[test]
fn none_writes_nothing_by_itself() {
    let mut world = World::new("none", FAST);
    let file = world.cache.open(Object(1));
    world.write(file, 0, LIMIT);
    world.run_to(at(1000));
    assert_eq!(world.runs(), []);
    // All pages are dirty. One page more causes the write-back of some, oldest first.
    world.write(file, LIMIT, 1);
    assert!(
        world
            .runs()
            .iter()
            .all(|&(.., why)| why == IoReason::Reclaim)
    );
    assert_eq!(world.asked[0].1.run.first, 0);
}

#[test]
fn above_the_background_ratio_objects_are_written_until_it_is_reached() {
    for (write_back, ratio) in [("2.6.17", 1000), ("2.6.23", 500), ("today", 1000)] {
        let mut world = World::new(write_back, FAST);
        let file = world.cache.open(Object(1));
        world.write(file, 0, ratio - 100);
        world.run_to(at(1));
        assert_eq!(world.runs(), [], "{write_back}");
        // pdflush learns of dirty pages when the writer asks, after 1/32 of memory.
        world.write(file, ratio - 100, 400);
        world.run_to(at(4));
        let written: u64 = world.asked.iter().map(|(_, io)| io.run.pages).sum();
        assert!(
            world
                .runs()
                .iter()
                .all(|&(.., why)| why == IoReason::Background)
        );
        match write_back {
            // The flusher checks after each turn of an object. A turn has at least 1024 pages.
            "today" => assert!(written >= 300, "{written}"),
            _ => assert!(written >= 300, "{write_back}: {written}"),
        }
        assert!(world.cache.gauges().dirty <= ratio);
        assert_eq!(world.cache.counters().throttles, 0, "{write_back}");
    }
}

#[test]
fn pdflush_gives_each_object_1024_pages_in_turn() {
    let mut world = World::new("2.6.17", Duration::from_millis(1));
    let files = [1, 2].map(|object| world.cache.open(Object(object)));
    world.write(files[0], 0, 600);
    world.run_to(at(1));
    world.write(files[1], 0, 2500);
    world.run_to(at(20));
    let mut turns: Vec<(u32, u64)> = Vec::new();
    for &(_, object, _, pages, _) in &world.runs() {
        match turns.last_mut() {
            Some((last, sum)) if *last == object => *sum += pages,
            _ => turns.push((object, pages)),
        }
    }
    // Object 1 has been dirty longer. The rest of the turn belongs to object 2.
    assert_eq!(turns[0], (1, 600));
    assert_eq!(turns[1].0, 2);
    assert!(world.cache.gauges().dirty <= 1000);
}

/// A writer at full speed, above a device of 10,000 pages a second.
fn written_in_20_seconds(write_back: &str) -> (u64, u64, f64) {
    let mut world = World::new(write_back, Duration::from_micros(100));
    let file = world.cache.open(Object(1));
    let mut page = 0;
    while world.now < at(20) {
        world.write(file, page, 16);
        page += 16;
        // The copy of a page takes a microsecond.
        let copied = world.now + Duration::from_micros(16);
        world.run_to(copied);
    }
    (
        page,
        world.dirty_most,
        world.cache.counters().throttled.as_secs_f64(),
    )
}

#[test]
fn a_writer_is_slowed_down_to_what_the_device_writes() {
    // Limit of the dirty pages, and the excess before the next question of the writer.
    for (write_back, most, slack) in [
        ("2.6.17", 4000, 512),
        ("2.6.23", 1000, 512),
        ("today", 2000, 256),
    ] {
        let (pages, dirty, throttled) = written_in_20_seconds(write_back);
        assert!(
            dirty <= most + slack,
            "{write_back}: {dirty} pages were dirty"
        );
        let rate = (pages as f64 - most as f64) / 20.0;
        assert!(
            (9_000.0..11_000.0).contains(&rate),
            "{write_back}: {rate} pages a second"
        );
        assert!(throttled > 10.0, "{write_back}: {throttled} s");
    }
}

#[test]
fn what_fsync_has_cleaned_is_as_old_as_it_was_with_today() {
    let mut world = World::new("today", FAST);
    let file = world.cache.open(Object(1));
    world.write(file, 0, 10);
    world.run_to(at(10));
    let _ = world
        .cache
        .fsync(world.now, Object(1), Ticket(0), &mut world.out);
    world.take();
    world.run_to(at(12));
    world.write(file, 20, 5);
    world.run_to(at(40));
    assert_eq!(
        world.runs(),
        [
            (10.0, 1, 0, 10, IoReason::Sync),
            (30.0, 1, 20, 5, IoReason::Periodic)
        ]
    );
}

#[test]
fn a_flush_of_what_is_old_takes_what_becomes_dirty_meanwhile_with_today() {
    let mut world = World::new("today", Duration::from_millis(1));
    let file = world.cache.open(Object(1));
    (0..1000).for_each(|page| world.write(file, page * 2, 1));
    world.run_to(at(30) + Duration::from_millis(500));
    world.write(file, 5000, 1);
    world.run_to(at(60));
    let late = world
        .asked
        .iter()
        .find(|(_, io)| io.run.first == 5000)
        .map(|&(when, _)| when);
    assert!(late.is_some_and(|when| when < at(32)), "{late:?}");
}
