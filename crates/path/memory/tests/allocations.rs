//! A cache at its full size allocates nothing. There is a single test, because the allocator counts
//! for the whole process.

use cap::Cap;
use fullstroke_contract::{Object, RequestStatus};
use fullstroke_memory::{
    CacheOut, CachePolicy, FileAccess, FileId, MemoryKeys, OperationAnswer, PAGE_BYTES, PageCache,
    PageIo, QueueLimits, Ticket, read_ahead, replacement, write_back,
};
use fullstroke_units::{Bytes, Duration, Seed, Time};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

const LIMIT: u64 = 2000;
const FILES: u32 = 20;

struct World {
    cache: PageCache,
    files: Vec<FileId>,
    out: CacheOut,
    ios: Vec<(bool, PageIo)>,
    waits: bool,
    now: Time,
}

impl World {
    fn new(replacement: &str, read_ahead: &str, write_back: &str) -> World {
        let mut keys = MemoryKeys::of(Bytes(LIMIT * PAGE_BYTES));
        keys.replacement = Some(CachePolicy::Name(replacement.to_owned()));
        keys.read_ahead = Some(CachePolicy::Name(read_ahead.to_owned()));
        keys.write_back = Some(CachePolicy::Name(write_back.to_owned()));
        let mut cache = PageCache::new(&keys, QueueLimits::default()).unwrap();
        let files = (0..FILES).map(|file| cache.open(Object(file))).collect();
        World {
            cache,
            files,
            out: CacheOut::default(),
            ios: Vec::new(),
            waits: false,
            now: Time::ZERO,
        }
    }

    fn take(&mut self) {
        self.ios
            .extend(self.out.reads.drain(..).map(|io| (false, io)));
        self.ios
            .extend(self.out.writes.drain(..).map(|io| (true, io)));
        self.waits &= self.out.woken.is_empty();
        self.out.woken.clear();
    }

    /// Completes the I/O in flight, and lets time pass until no operation waits.
    fn settle(&mut self) {
        self.take();
        while self.waits || !self.ios.is_empty() {
            self.now += Duration::from_millis(1);
            match self.ios.pop() {
                Some((true, io)) => {
                    self.cache
                        .written(self.now, io.id, io.run, RequestStatus::Done, &mut self.out)
                }
                Some((false, io)) => self.cache.read_done(
                    self.now,
                    io.id,
                    io.run,
                    RequestStatus::Done,
                    &mut self.out,
                ),
                None => self.cache.wake(self.now, &mut self.out),
            }
            self.take();
        }
    }

    /// Performs the same operations in each round, on the same pages.
    fn round(&mut self) {
        let mut random = Seed(7).stream("operations");
        for number in 0..3000 {
            let file = self.files[random.below(u64::from(FILES)) as usize];
            let access = FileAccess::new(
                random.below(1000) * 4000,
                1 + random.below(16 * PAGE_BYTES),
                1100 * PAGE_BYTES,
            );
            let ticket = Ticket(number);
            let answer = match number % 50 {
                0 => self.cache.fsync(self.now, Object(3), ticket, &mut self.out),
                1..=20 => self
                    .cache
                    .write(self.now, file, access, false, ticket, &mut self.out),
                _ => self
                    .cache
                    .read(self.now, file, access, ticket, &mut self.out),
            };
            self.waits = answer == OperationAnswer::Waits;
            self.settle();
        }
    }
}

#[test]
fn a_cache_that_has_grown_allocates_nothing() {
    let of = |replacement: &str, read_ahead: &str, write_back: &str| {
        let mut world = World::new(replacement, read_ahead, write_back);
        (0..4).for_each(|_| world.round());
        // A round may still need a little more memory than all rounds before, so the test takes the
        // least of several rounds. The thread of the test harness allocates a little too.
        let grown = (0..4).map(|_| {
            let before = ALLOCATOR.total_allocated();
            world.round();
            ALLOCATOR.total_allocated() - before
        });
        let least = grown.min().unwrap();
        assert!(
            least < 3_000,
            "{replacement}, {read_ahead}, {write_back}: {least} bytes by 3000 operations"
        );
    };
    replacement::REGISTRY
        .iter()
        .for_each(|entry| of(entry.name, "today", "today"));
    read_ahead::REGISTRY
        .iter()
        .for_each(|entry| of("lru2", entry.name, "today"));
    write_back::REGISTRY
        .iter()
        .for_each(|entry| of("lru2", "today", entry.name));
}
