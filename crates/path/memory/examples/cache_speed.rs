//! Measures the speed of a cache: page look-ups in a second of processor time, and the number of
//! runs, by policy and pattern.
//!
//! `cargo run --release -p fullstroke-memory --example cache_speed [REPLACEMENT..]`

// The example measures real time, which the layers must not know.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use fullstroke_contract::{Object, RequestStatus};
use fullstroke_memory::{
    CacheOut, CachePolicy, FileAccess, FileId, MemoryKeys, PAGE_BYTES, PageCache, PageRun,
    QueueLimits, Ticket, replacement,
};
use fullstroke_units::{Bytes, Random, Seed, Time};
use std::sync::OnceLock;
use std::time::Instant;

/// Pages of memory: 1 GiB.
const LIMIT: u64 = 1 << 18;
/// Number of look-ups.
const LOOKED_UP: u64 = 4_000_000;

/// Returns the processor time of this thread in seconds, or the elapsed time if the system does not
/// tell.
fn processor_time() -> f64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = text.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(
        || BEGIN.get_or_init(Instant::now).elapsed().as_secs_f64(),
        |ns| ns / 1e9,
    )
}

struct CacheBench {
    cache: PageCache,
    file: FileId,
    out: CacheOut,
    random: Random,
}

impl CacheBench {
    fn new(replacement: &str) -> CacheBench {
        let mut keys = MemoryKeys::of(Bytes(LIMIT * PAGE_BYTES));
        keys.replacement = Some(CachePolicy::Name(replacement.to_owned()));
        let mut cache =
            PageCache::new(&keys, QueueLimits::default()).expect("the name is the registry's");
        let file = cache.open(Object(1));
        CacheBench {
            cache,
            file,
            out: CacheOut::default(),
            random: Seed(1).stream("addresses"),
        }
    }

    /// Reads pages. Missing pages come at once.
    fn read(&mut self, first: u64, pages: u64, size: u64) {
        let access = FileAccess::new(first * PAGE_BYTES, pages * PAGE_BYTES, size * PAGE_BYTES);
        let _ = self
            .cache
            .read(Time::ZERO, self.file, access, Ticket(0), &mut self.out);
        while let Some(read) = self.out.reads.pop() {
            self.cache.read_done(
                Time::ZERO,
                read.id,
                read.run,
                RequestStatus::Done,
                &mut self.out,
            );
        }
        self.out.clear();
    }

    /// Fills half of memory with single pages, none adjacent.
    fn scatter(&mut self) {
        for page in 0..LIMIT / 2 {
            let place = (page * 7919) % (LIMIT / 2);
            let run = PageRun::new(Object(1), place * 2, 1);
            let _ = self
                .cache
                .read_run(Time::ZERO, run, Ticket(0), &mut self.out);
            let read = self.out.reads[0];
            self.cache.read_done(
                Time::ZERO,
                read.id,
                read.run,
                RequestStatus::Done,
                &mut self.out,
            );
            self.out.clear();
        }
    }

    fn measure(
        &mut self,
        name: &str,
        total: u64,
        pages: u64,
        mut next: impl FnMut(&mut CacheBench, u64),
    ) {
        let begin = processor_time();
        (0..total / pages).for_each(|number| next(self, number));
        let million = total as f64 / 1e6 / (processor_time() - begin);
        let gauges = self.cache.gauges();
        println!(
            "  {name:34} {million:7.2} M pages/s   {:6} pages in {:6} runs",
            gauges.cached, gauges.stretches
        );
    }
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for entry in replacement::REGISTRY {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == entry.name) {
            continue;
        }
        println!("{}", entry.name);
        let half = LIMIT / 2;
        let mut bench = CacheBench::new(entry.name);
        bench.scatter();
        bench.measure("held, single pages at random", LOOKED_UP, 1, |bench, _| {
            let page = bench.random.below(half) * 2;
            bench.read(page, 1, LIMIT);
        });
        let mut bench = CacheBench::new(entry.name);
        (0..half / 32).for_each(|piece| bench.read(piece * 32, 32, half));
        bench.measure(
            "held, in order, 4 KiB a read",
            LOOKED_UP,
            1,
            |bench, number| bench.read(number % half, 1, half),
        );
        bench.measure(
            "held, in order, 128 KiB a read",
            LOOKED_UP,
            32,
            |bench, number| {
                bench.read(number * 32 % half, 32, half);
            },
        );
        // This cuts the runs to pieces.
        bench.measure(
            "the same, single pages at random",
            LOOKED_UP,
            1,
            |bench, _| {
                let page = bench.random.below(half);
                bench.read(page, 1, half);
            },
        );
        let mut bench = CacheBench::new(entry.name);
        bench.measure(
            "not held, in order, 4 KiB a read",
            LOOKED_UP,
            1,
            |bench, number| bench.read(number, 1, u64::MAX >> 13),
        );
        let mut bench = CacheBench::new(entry.name);
        bench.measure(
            "not held, single pages at random",
            LOOKED_UP / 8,
            1,
            |bench, _| {
                let page = bench.random.below(LIMIT * 64);
                bench.read(page, 1, LIMIT * 64);
            },
        );
    }
}
