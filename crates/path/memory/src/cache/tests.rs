//! All combinations of policies, under random operations and a device that completes in any order.
//! Invariants are checked after each call.

#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story from its beginning to its end"
)]

use super::*;
use crate::config::CachePolicy;
use crate::out::{OperationAnswer, PageIo, Ticket};
use crate::pages::{ASIDE, LISTS, NOWHERE};
use crate::replacement::ListPlace;
use crate::run::PAGE_BYTES;
use crate::{read_ahead, replacement, write_back};
use fullstroke_contract::registry::Keys;
use fullstroke_units::{Bytes, Duration};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;

const OBJECTS: u32 = 4;

/// The flags of each page.
type State = BTreeMap<(u32, u64), u16>;

/// Kind of the last call, because some calls allow a temporary surplus.
#[derive(Clone, Copy, PartialEq)]
enum Called {
    Plain,
    /// The I/O of a run has ended, or the run was discarded.
    Ended(PageRun),
}

struct World {
    cache: PageCache,
    now: Time,
    out: CacheOut,
    files: Vec<FileId>,
    sizes: Vec<u64>,
    reads: Vec<PageIo>,
    writes: Vec<PageIo>,
    before: State,
    waiting: Vec<Ticket>,
    next_ticket: u64,
    /// Log of all events, for the comparison of two runs.
    log: Vec<String>,
    /// True if sequential reads begin anew with each call.
    plain: bool,
}

fn policy(name: &str, key: Option<(&str, serde_json::Value)>) -> Option<CachePolicy> {
    let mut table = Keys::from_iter([("policy".to_owned(), json!(name))]);
    table.extend(key.map(|(key, value)| (key.to_owned(), value)));
    Some(CachePolicy::Table(table))
}

impl World {
    fn new(choice: (usize, usize, usize), limit: u64, queue: QueueLimits) -> World {
        let kernels = ["2.4", "2.6", "3.0", "today"];
        let replacement = match choice.0 {
            lru2 @ 0..4 => policy("lru2", Some(("kernel", json!(kernels[lru2])))),
            other => policy(replacement::REGISTRY[other - 3].name, None),
        };
        let keys = MemoryKeys {
            size: Bytes(limit * PAGE_BYTES),
            replacement,
            read_ahead: policy(read_ahead::REGISTRY[choice.1].name, None),
            write_back: policy(write_back::REGISTRY[choice.2].name, None),
        };
        let mut cache = PageCache::new(&keys, queue).unwrap();
        let files = (0..2 * OBJECTS)
            .map(|file| cache.open(Object(file % OBJECTS)))
            .collect();
        World {
            cache,
            now: Time::ZERO,
            out: CacheOut::default(),
            files,
            sizes: vec![300 * PAGE_BYTES - 100; OBJECTS as usize],
            reads: Vec::new(),
            writes: Vec::new(),
            before: State::new(),
            waiting: Vec::new(),
            next_ticket: 0,
            log: Vec::new(),
            plain: false,
        }
    }

    fn state(&self) -> State {
        let pages = &self.cache.pages;
        let lists = (0..LISTS as u8).flat_map(|list| {
            std::iter::successors(pages.oldest(list), |&slot| pages.newer(slot))
                .map(move |slot| (list, slot))
        });
        let mut state = State::new();
        for (list, slot) in lists {
            let stretch = *pages.get(slot);
            assert_eq!(stretch.list, list);
            assert!(list != ASIDE || stretch.origin != NOWHERE);
            for page in stretch.first..stretch.end() {
                let twice = state.insert((stretch.object.0, page), stretch.flags);
                assert!(twice.is_none(), "a page is in two lists");
                assert_eq!(pages.look(stretch.object, page), Some(slot));
            }
        }
        state
    }

    /// Checks the invariants after a call.
    fn check(&mut self, called: Called) {
        let state = self.state();
        let (before, out) = (
            std::mem::take(&mut self.before),
            std::mem::take(&mut self.out),
        );
        let held = self.cache.pages.held();
        let count = |flag: u16| state.values().filter(|&&flags| flags & flag != 0).count() as u64;
        assert_eq!(
            held.pages,
            state.len() as u64,
            "each page that is held is in a list"
        );
        assert!(
            held.pages <= self.cache.limit,
            "{} of {} pages",
            held.pages,
            self.cache.limit
        );
        assert_eq!(
            (held.dirty, held.writing, held.reading),
            (
                count(flag::DIRTY),
                count(flag::WRITING),
                count(flag::READING)
            )
        );
        let ended = |object: u32, page: u64| matches!(called, Called::Ended(run) if run.holds(Object(object), page));
        let written: Vec<(u32, u64)> = out.writes.iter().flat_map(pages).collect();
        for (place, &page) in written.iter().enumerate() {
            let was = before.get(&page).copied().unwrap_or(0);
            assert!(
                was & flag::WRITING == 0 || ended(page.0, page.1),
                "{page:?} is written twice at a time"
            );
            assert!(
                !written[..place].contains(&page),
                "{page:?} is written twice in a call"
            );
            assert!(state[&page] & flag::WRITING != 0);
        }
        for (page, was) in before {
            let now = state.get(&page).copied();
            let dropped = now.is_none_or(|now| now & flag::DIRTY == 0);
            let saved = written.contains(&page) || ended(page.0, page.1);
            assert!(
                was & flag::DIRTY == 0 || !dropped || saved,
                "{page:?} was dirty and is not written"
            );
            let gone = now.is_none();
            assert!(
                was & flag::BUSY == 0 || !gone || ended(page.0, page.1),
                "{page:?} went while it was under I/O"
            );
        }
        self.reads.extend(&out.reads);
        self.writes.extend(&out.writes);
        for (ios, flag) in [(&self.reads, flag::READING), (&self.writes, flag::WRITING)] {
            let mut under_way: Vec<(u32, u64)> = ios.iter().flat_map(pages).collect();
            under_way.sort_unstable();
            let flagged: Vec<(u32, u64)> = state
                .iter()
                .filter(|(_, flags)| **flags & flag != 0)
                .map(|(&page, _)| page)
                .collect();
            assert_eq!(
                flagged, under_way,
                "what is under I/O is what was asked for"
            );
        }
        for woken in &out.woken {
            let place = self
                .waiting
                .iter()
                .position(|&ticket| ticket == woken.ticket);
            self.waiting.remove(place.expect("who is woken has waited"));
        }
        assert_eq!(self.waiting.len(), self.cache.waiting.len());
        let gauges = Gauges {
            stretches: 0,
            ..self.cache.gauges()
        };
        self.log.push(format!(
            "{:?} {out:?} {gauges:?} {:?}",
            self.now,
            self.cache.counters()
        ));
        if self.plain {
            self.cache.streak = None;
        }
        self.before = state;
    }

    fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }

    fn answered(&mut self, ticket: Ticket, answer: OperationAnswer) {
        if answer == OperationAnswer::Waits {
            self.waiting.push(ticket);
        }
        self.check(Called::Plain);
    }

    fn access(&self, file: usize, at: u64, bytes: u64) -> FileAccess {
        FileAccess::new(at * 700, bytes, self.sizes[file % OBJECTS as usize])
    }

    /// Completes one of the I/Os in flight, or its first pages.
    fn complete(&mut self, which: u64, part: u64) {
        let all = self.reads.len() + self.writes.len();
        if all == 0 {
            return;
        }
        let which = which as usize % all;
        let is_read = which < self.reads.len();
        let ios = if is_read {
            &mut self.reads
        } else {
            &mut self.writes
        };
        let place = if is_read {
            which
        } else {
            which - (all - ios.len())
        };
        let io = &mut ios[place];
        let pages = if part.is_multiple_of(3) {
            1 + part % io.run.pages
        } else {
            io.run.pages
        };
        let run = PageRun { pages, ..io.run };
        let id = io.id;
        io.run = PageRun::new(run.object, run.end(), io.run.pages - pages);
        if io.run.pages == 0 {
            ios.remove(place);
        }
        if is_read {
            self.cache
                .read_done(self.now, id, run, RequestStatus::Done, &mut self.out);
        } else {
            self.cache
                .written(self.now, id, run, RequestStatus::Done, &mut self.out);
        }
        self.check(Called::Ended(run));
    }

    fn wake(&mut self, later: Duration) {
        self.now += later;
        self.cache.wake(self.now, &mut self.out);
        self.check(Called::Plain);
    }

    fn step(&mut self, (step, file, at, bytes): (u8, usize, u64, u64)) {
        let (now, id) = (self.now, self.files[file]);
        let object = Object(file as u32 % OBJECTS);
        let run = PageRun::new(object, at / 5, 1 + bytes / PAGE_BYTES);
        let access = self.access(file, at, bytes);
        let ticket = self.ticket();
        match step {
            0..=5 => {
                let answer = self.cache.read(now, id, access, ticket, &mut self.out);
                self.answered(ticket, answer);
            }
            6..=11 => {
                let answer = self
                    .cache
                    .write(now, id, access, step == 6, ticket, &mut self.out);
                let size = &mut self.sizes[file % OBJECTS as usize];
                *size = (*size).max(access.offset + access.bytes);
                self.answered(ticket, answer);
            }
            12 => {
                let answer = self.cache.fsync(now, object, ticket, &mut self.out);
                self.answered(ticket, answer);
            }
            13 => {
                let answer = match at % 3 {
                    0 => self.cache.sync(now, ticket, &mut self.out),
                    1 => self.cache.direct(now, run, true, ticket, &mut self.out),
                    _ => self.cache.direct(now, run, false, ticket, &mut self.out),
                };
                self.answered(ticket, answer);
            }
            14 => {
                let from = if at % 2 == 0 { 0 } else { at / 5 };
                self.cache.discard(now, object, from, &mut self.out);
                self.check(Called::Ended(PageRun::new(object, from, u64::MAX)));
            }
            15 => {
                self.cache.invalidate(run);
                self.check(Called::Plain);
            }
            16 => {
                let place = [ListPlace::Usual, ListPlace::Hot, ListPlace::Cold][at as usize % 3];
                let arrival = if bytes % 2 == 0 {
                    DataSource::Here
                } else {
                    DataSource::ToRead
                };
                self.cache.push(now, run, place, arrival, &mut self.out);
                self.check(Called::Plain);
            }
            17 => {
                if at % 2 == 0 {
                    self.cache.pull(now, run, &mut self.out);
                } else {
                    self.cache.pull_any(now, bytes / 1000, &mut self.out);
                }
                self.check(Called::Plain);
            }
            18 => {
                let answer = match at % 2 {
                    0 => self.cache.read_run(now, run, ticket, &mut self.out),
                    _ => self.cache.write_run(now, run, ticket, &mut self.out),
                };
                self.answered(ticket, answer);
            }
            19..=25 => self.complete(at, bytes),
            26 => self.wake(Duration::from_millis(bytes / 10)),
            _ => self.wake(Duration::from_millis(bytes)),
        }
    }

    /// Runs until no operation waits and no I/O is in flight.
    fn drain(&mut self) {
        for _ in 0..100_000 {
            if self.reads.is_empty() && self.writes.is_empty() {
                if self.waiting.is_empty() {
                    return;
                }
                let next = self.cache.next_wake();
                assert!(next < Time::NEVER, "somebody waits for ever");
                self.now = self.now.max(next);
                self.wake(Duration::ZERO);
            } else {
                self.complete(0, 1);
                self.wake(Duration::from_micros(100));
            }
        }
        panic!("no end: {:?}", self.cache.gauges());
    }

    fn run(&mut self, steps: &[(u8, usize, u64, u64)]) {
        steps.iter().for_each(|&step| self.step(step));
        self.drain();
        let ticket = self.ticket();
        let answer = self.cache.sync(self.now, ticket, &mut self.out);
        self.answered(ticket, answer);
        self.drain();
        assert_eq!(
            (self.cache.gauges().dirty, self.cache.gauges().writing),
            (0, 0),
            "a sync leaves nothing dirty"
        );
        let counters = self.cache.counters();
        assert!(counters.ahead_used + counters.ahead_wasted <= counters.ahead);
        assert!(
            counters.misses + counters.late <= counters.read + 300 * 4,
            "{counters:?}"
        );
    }
}

fn pages(io: &PageIo) -> impl Iterator<Item = (u32, u64)> {
    let run = io.run;
    (run.first..run.end()).map(move |page| (run.object.0, page))
}

fn steps() -> impl Strategy<Value = Vec<(u8, usize, u64, u64)>> {
    let bytes = prop_oneof![
        Just(PAGE_BYTES),
        1u64..3 * PAGE_BYTES,
        1u64..60 * PAGE_BYTES
    ];
    prop::collection::vec(
        (0u8..28, 0..2 * OBJECTS as usize, 0u64..1500, bytes),
        1..120,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_books_are_kept(
        replacement in 0usize..8, read_ahead in 0usize..5, write_back in 0usize..4,
        limit in 64u64..200, nr_requests in 1u32..40, request_pages in 1u64..64,
        steps in steps(),
    ) {
        let queue = QueueLimits { nr_requests, request_pages };
        let run = |plain: bool| {
            let mut world = World::new((replacement, read_ahead, write_back), limit, queue);
            world.plain = plain;
            world.run(&steps);
            world.log
        };
        let first = run(false);
        prop_assert!(first == run(false), "two runs differ");
        prop_assert!(first == run(true), "what is used in order is not as if it were cut off first");
    }
}

#[test]
fn every_policy_takes_part() {
    assert_eq!(
        (
            replacement::REGISTRY.len() + 3,
            read_ahead::REGISTRY.len(),
            write_back::REGISTRY.len()
        ),
        (8, 5, 4)
    );
}

fn cache(limit: u64) -> PageCache {
    PageCache::new(
        &MemoryKeys::of(Bytes(limit * PAGE_BYTES)),
        QueueLimits::default(),
    )
    .unwrap()
}

#[test]
fn a_read_is_a_miss_then_a_hit() {
    let (mut cache, mut out) = (cache(1000), CacheOut::default());
    let file = cache.open(Object(1));
    let access = FileAccess::new(0, PAGE_BYTES, 100 * PAGE_BYTES);
    let asked = cache.read(Time::ZERO, file, access, Ticket(1), &mut out);
    assert_eq!(asked, OperationAnswer::Waits);
    let read = out.reads[0];
    assert_eq!(
        (read.run, read.ticket),
        (PageRun::new(Object(1), 0, 4), Some(Ticket(1)))
    );
    out.clear();
    cache.read_done(Time::ZERO, read.id, read.run, RequestStatus::Done, &mut out);
    assert_eq!(
        out.woken,
        [crate::WokenOperation {
            ticket: Ticket(1),
            status: RequestStatus::Done
        }]
    );
    assert_eq!(
        cache.read(Time::ZERO, file, access, Ticket(2), &mut out),
        OperationAnswer::Done
    );
    let counters = cache.counters();
    assert_eq!(
        (
            counters.read,
            counters.misses,
            counters.hits,
            counters.ahead
        ),
        (2, 1, 1, 3)
    );
}

#[test]
fn who_waits_for_a_page_that_cannot_be_read_is_told() {
    let (mut cache, mut out) = (cache(1000), CacheOut::default());
    let run = PageRun::new(Object::DEVICE, 7, 1);
    assert_eq!(
        cache.read_run(Time::ZERO, run, Ticket(1), &mut out),
        OperationAnswer::Waits
    );
    let read = out.reads[0];
    cache.read_done(Time::ZERO, read.id, read.run, RequestStatus::Lost, &mut out);
    assert_eq!(
        out.woken,
        [crate::WokenOperation {
            ticket: Ticket(1),
            status: RequestStatus::Lost
        }]
    );
    assert!(!cache.holds(run));
}

#[test]
fn fsync_tells_of_pages_that_could_not_be_written() {
    let (mut cache, mut out) = (cache(1000), CacheOut::default());
    let run = PageRun::new(Object(1), 7, 3);
    assert_eq!(
        cache.write_run(Time::ZERO, run, Ticket(1), &mut out),
        OperationAnswer::Done
    );
    assert_eq!(
        cache.fsync(Time::ZERO, Object(1), Ticket(2), &mut out),
        OperationAnswer::Waits
    );
    let write = out.writes[0];
    assert_eq!(write.run, run);
    cache.written(
        Time::ZERO,
        write.id,
        write.run,
        RequestStatus::Lost,
        &mut out,
    );
    assert_eq!(
        out.woken,
        [crate::WokenOperation {
            ticket: Ticket(2),
            status: RequestStatus::Lost
        }]
    );
    assert_eq!(cache.counters().lost, 3);
}

#[test]
fn a_write_of_part_of_a_page_reads_it_first_where_the_file_has_more_of_it() {
    let (mut cache, mut out) = (cache(1000), CacheOut::default());
    let file = cache.open(Object(1));
    let write = |offset: u64, bytes: u64| FileAccess::new(offset, bytes, 10 * PAGE_BYTES);
    // From the middle of page 0 to the middle of page 2: both end pages are read first.
    let access = write(2000, 2 * PAGE_BYTES);
    assert_eq!(
        cache.write(Time::ZERO, file, access, false, Ticket(1), &mut out),
        OperationAnswer::Waits
    );
    assert_eq!(out.reads[0].run, PageRun::new(Object(1), 0, 1));
    let read = out.reads[0];
    out.clear();
    cache.read_done(Time::ZERO, read.id, read.run, RequestStatus::Done, &mut out);
    assert_eq!(out.reads[0].run, PageRun::new(Object(1), 2, 1));
    assert_eq!(cache.gauges().dirty, 2);
    // There is nothing to read after the end of the file.
    out.clear();
    let access = write(10 * PAGE_BYTES, 100);
    assert_eq!(
        cache.write(Time::ZERO, file, access, false, Ticket(2), &mut out),
        OperationAnswer::Done
    );
    assert_eq!(cache.counters().filled, 2);
}

#[test]
fn storage_pulls_what_is_dirty_and_pushes_what_is_absent() {
    let (mut cache, mut out) = (cache(1000), CacheOut::default());
    for (object, first) in [(2, 10), (1, 0)] {
        let run = PageRun::new(Object(object), first, 5);
        assert_eq!(
            cache.write_run(Time::from_nanos(first), run, Ticket(0), &mut out),
            OperationAnswer::Done
        );
    }
    assert_eq!(
        cache.pull(Time::ZERO, PageRun::new(Object(1), 3, 100), &mut out),
        2
    );
    // Object 2 has been dirty longer.
    assert_eq!(cache.pull_any(Time::ZERO, 7, &mut out), 7);
    let runs: Vec<PageRun> = out.writes.iter().map(|io| io.run).collect();
    assert_eq!(
        runs,
        [
            PageRun::new(Object(1), 3, 2),
            PageRun::new(Object(2), 10, 5),
            PageRun::new(Object(1), 0, 2)
        ]
    );
    assert_eq!(cache.pull_any(Time::ZERO, 7, &mut out), 1);
    let pushed = cache.push(
        Time::ZERO,
        PageRun::new(Object(1), 0, 20),
        ListPlace::Cold,
        DataSource::Here,
        &mut out,
    );
    assert_eq!((pushed, out.reads.len()), (15, 0));
    assert!(cache.holds(PageRun::new(Object(1), 0, 20)));
}

#[test]
fn a_file_read_in_order_costs_a_few_stretches_whatever_its_length() {
    let (mut cache, mut out) = (cache(100_000), CacheOut::default());
    let file = cache.open(Object(1));
    let size = 80_000 * PAGE_BYTES;
    for page in 0..80_000 {
        let access = FileAccess::new(page * PAGE_BYTES, PAGE_BYTES, size);
        let _ = cache.read(Time::ZERO, file, access, Ticket(page), &mut out);
        for read in std::mem::take(&mut out.reads) {
            cache.read_done(Time::ZERO, read.id, read.run, RequestStatus::Done, &mut out);
        }
        out.clear();
    }
    assert_eq!((cache.gauges().cached, cache.gauges().waiting), (80_000, 0));
    assert!(cache.gauges().stretches < 10, "{:?}", cache.gauges());
}

/// Reads a file in order while pages of another are written in between. Returns the pages of both
/// files that are kept when room is needed.
fn kept_of_both(replacement: &str, plain: bool) -> Vec<bool> {
    let keys = MemoryKeys {
        replacement: Some(CachePolicy::Name(replacement.to_owned())),
        write_back: Some(CachePolicy::Name("none".to_owned())),
        ..MemoryKeys::of(Bytes(200 * PAGE_BYTES))
    };
    let (mut cache, mut out) = (
        PageCache::new(&keys, QueueLimits::default()).unwrap(),
        CacheOut::default(),
    );
    let (now, size) = (Time::ZERO, 100 * PAGE_BYTES);
    let file = cache.open(Object(1));
    cache.push(
        now,
        PageRun::new(Object(1), 0, 100),
        ListPlace::Usual,
        DataSource::Here,
        &mut out,
    );
    for page in 0..60 {
        let access = FileAccess::new(page * PAGE_BYTES, PAGE_BYTES, size);
        assert_eq!(
            cache.read(now, file, access, Ticket(0), &mut out),
            OperationAnswer::Done
        );
        if page % 3 == 0 {
            cache.push(
                now,
                PageRun::new(Object(2), page, 1),
                ListPlace::Usual,
                DataSource::Here,
                &mut out,
            );
        }
        if plain {
            cache.streak = None;
        }
    }
    cache.push(
        now,
        PageRun::new(Object(3), 0, 160),
        ListPlace::Usual,
        DataSource::Here,
        &mut out,
    );
    (1..3)
        .flat_map(|object| (0..100).map(move |page| PageRun::new(Object(object), page, 1)))
        .map(|run| cache.holds(run))
        .collect()
}

#[test]
fn reads_in_order_do_not_overtake_what_comes_in_between() {
    for entry in replacement::REGISTRY {
        let kept = kept_of_both(entry.name, false);
        assert_eq!(kept, kept_of_both(entry.name, true), "{}", entry.name);
        assert!(
            kept.contains(&true) && kept.contains(&false),
            "{}",
            entry.name
        );
    }
}

#[test]
fn pages_that_were_used_leave_with_their_object() {
    for entry in replacement::REGISTRY {
        let keys = MemoryKeys {
            replacement: Some(CachePolicy::Name(entry.name.to_owned())),
            ..MemoryKeys::of(Bytes(200 * PAGE_BYTES))
        };
        let (mut cache, mut out) = (
            PageCache::new(&keys, QueueLimits::default()).unwrap(),
            CacheOut::default(),
        );
        let run = PageRun::new(Object(1), 0, 20);
        for leaves in [true, false] {
            cache.push(
                Time::ZERO,
                run,
                ListPlace::Usual,
                DataSource::Here,
                &mut out,
            );
            assert_eq!(
                cache.read_run(Time::ZERO, run, Ticket(0), &mut out),
                OperationAnswer::Done
            );
            if leaves {
                cache.discard(Time::ZERO, Object(1), 0, &mut out);
            } else {
                assert_eq!(cache.invalidate(run), 20, "{}", entry.name);
            }
            assert_eq!(cache.gauges().cached, 0, "{}", entry.name);
        }
    }
}
