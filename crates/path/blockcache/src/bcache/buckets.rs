//! Space on the flash device, in buckets.

use std::collections::VecDeque;

/// Priority of a bucket just used (`INITIAL_PRIO`, bcache.h).
const PRIORITY: u64 = 32_768;

/// `fifo_free` (`cache_alloc`, super.c) has a 1024th of the buckets.
const FREE_SHARE: usize = 1024;

/// One bucket.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    generation: u32,
    /// Time of the last use, in steps of the aging of priorities.
    used_at: u64,
    /// Mapped sectors, and dirty ones among them.
    live: u32,
    dirty: u32,
    /// I/Os in flight to the bucket.
    pins: u32,
    /// True while the bucket has or receives data.
    taken: bool,
}

/// An open bucket.
#[derive(Clone, Copy, Debug)]
struct OpenBucket {
    bucket: u32,
    /// Sectors given out.
    filled: u64,
}

/// All buckets of data.
///
/// Invariant: a bucket with dirty data or with I/Os in flight is never given to other data.
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    buckets: Vec<Bucket>,
    /// Sectors of a bucket, and the place of the first one.
    size: u64,
    first: u64,
    free: VecDeque<u32>,
    /// Open buckets for clean and for dirty data: `pick_data_bucket` (alloc.c) keeps both apart.
    open: [Option<OpenBucket>; 2],
    /// Steps of aging so far, and the sectors until the next step.
    age: u64,
    until_older: u64,
    /// Buckets with dirty data.
    dirty_buckets: u64,
    pub(super) dirty_sectors: u64,
    /// Buckets whose data were given up for other data.
    pub(super) reused: u64,
    /// Buckets that were opened for data.
    pub(super) opened: u64,
}

impl Buckets {
    /// Returns `count` empty buckets of `size` sectors; the first begins at `first`.
    pub(super) fn new(count: u64, size: u64, first: u64) -> Buckets {
        Buckets {
            buckets: vec![Bucket::default(); count as usize],
            size,
            first,
            free: (0..count as u32).collect(),
            open: [None; 2],
            age: 0,
            until_older: count * size / 1024,
            dirty_buckets: 0,
            dirty_sectors: 0,
            reused: 0,
            opened: 0,
        }
    }

    /// Number of sectors of all buckets.
    pub(super) fn sectors(&self) -> u64 {
        self.buckets.len() as u64 * self.size
    }

    fn index(&self, place: u64) -> usize {
        ((place - self.first) / self.size) as usize
    }

    /// Gives out up to `wanted` sectors of one bucket, with an I/O in flight to them. Returns place,
    /// sectors and generation. `None` if no bucket can be had.
    pub(super) fn allocate(&mut self, wanted: u64, dirty: bool) -> Option<(u64, u64, u32)> {
        // Clean and dirty data have buckets of their own, so that a clean bucket can be reused as a
        // whole.
        let which = usize::from(dirty);
        if self.open[which].is_none() {
            let bucket = self.take_bucket()?;
            self.open[which] = Some(OpenBucket { bucket, filled: 0 });
        }
        let open = self.open[which].as_mut()?;
        let sectors = wanted.min(self.size - open.filled);
        let place = self.first + u64::from(open.bucket) * self.size + open.filled;
        open.filled += sectors;
        let index = open.bucket as usize;
        if open.filled == self.size {
            self.open[which] = None;
        }
        self.pin(place);
        self.touch(place);
        Some((place, sectors, self.buckets[index].generation))
    }

    /// True if clean data fit without giving up other data.
    pub(super) fn has_room(&self) -> bool {
        self.open[0].is_some() || !self.free.is_empty()
    }

    /// Takes a free bucket, or one whose clean data are given up.
    fn take_bucket(&mut self) -> Option<u32> {
        if self.free.is_empty() {
            self.give_up();
        }
        let bucket = self.free.pop_front()?;
        self.buckets[bucket as usize].taken = true;
        self.opened += 1;
        Some(bucket)
    }

    /// Gives up the clean data of the buckets with the least product of priority and data
    /// (`bucket_prio`, `invalidate_buckets_lru` in alloc.c).
    fn give_up(&mut self) {
        let open: Vec<u32> = self.open.iter().flatten().map(|open| open.bucket).collect();
        let age = self.age;
        // A bucket that was never read again ages by one for each 1/1024 of the cache that is
        // filled.
        let priority = |bucket: &Bucket| PRIORITY.saturating_sub(age - bucket.used_at);
        let least = self.buckets.iter().map(priority).min().unwrap_or(0);
        let score = |bucket: &Bucket| (priority(bucket) - least) * u64::from(bucket.live);
        let mut all: Vec<(u64, u64, u32)> = (0..)
            .zip(&self.buckets)
            .filter(|(index, bucket)| {
                bucket.taken && bucket.dirty == 0 && bucket.pins == 0 && !open.contains(index)
            })
            .map(|(index, bucket)| (score(bucket), bucket.used_at, index))
            .collect();
        let wanted = (self.buckets.len() / FREE_SHARE).max(1).min(all.len());
        if wanted == 0 {
            return;
        }
        // A cache may have millions of buckets, so only the chosen ones are sorted.
        all.select_nth_unstable(wanted - 1);
        all.truncate(wanted);
        all.sort_unstable();
        for (.., index) in all {
            let bucket = &mut self.buckets[index as usize];
            // The new generation makes the extents of the old content stale, without a search of
            // the map (`bch_inc_gen`).
            bucket.generation += 1;
            bucket.live = 0;
            bucket.taken = false;
            self.reused += 1;
            self.free.push_back(index);
        }
    }

    /// True if `generation` is that of the bucket at `place`.
    pub(super) fn is_current(&self, place: u64, generation: u32) -> bool {
        self.buckets[self.index(place)].generation == generation
    }

    /// Notes a use of the data at `place`.
    pub(super) fn touch(&mut self, place: u64) {
        let index = self.index(place);
        self.buckets[index].used_at = self.age;
    }

    /// Lets all priorities age by the sectors of a request (`bch_rescale_priorities`, alloc.c).
    pub(super) fn pass(&mut self, sectors: u64) {
        let mut left = sectors;
        while left >= self.until_older {
            left -= self.until_older;
            self.age += 1;
            self.until_older = (self.sectors() / 1024).max(1);
        }
        self.until_older -= left;
    }

    pub(super) fn pin(&mut self, place: u64) {
        let index = self.index(place);
        self.buckets[index].pins += 1;
    }

    pub(super) fn unpin(&mut self, place: u64) {
        let index = self.index(place);
        self.buckets[index].pins -= 1;
    }

    /// Notes mapped data.
    pub(super) fn map(&mut self, place: u64, sectors: u64, dirty: bool) {
        let index = self.index(place);
        let bucket = &mut self.buckets[index];
        bucket.live += sectors as u32;
        if dirty {
            self.dirty_buckets += u64::from(bucket.dirty == 0);
            bucket.dirty += sectors as u32;
            self.dirty_sectors += sectors;
        }
    }

    /// Notes the end of a mapping. Data of an earlier generation do not count.
    pub(super) fn unmap(&mut self, place: u64, sectors: u64, generation: u32, dirty: bool) {
        let index = self.index(place);
        let bucket = &mut self.buckets[index];
        if bucket.generation != generation {
            return;
        }
        bucket.live -= sectors as u32;
        if dirty {
            bucket.dirty -= sectors as u32;
            self.dirty_buckets -= u64::from(bucket.dirty == 0);
            self.dirty_sectors -= sectors;
        }
    }

    /// Share of the buckets with dirty data, in percent (`gc_stats.in_use`).
    pub(super) fn in_use(&self) -> u64 {
        self.dirty_buckets * 100 / self.buckets.len() as u64
    }
}
