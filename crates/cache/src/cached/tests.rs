use super::*;
use crate::pages::SECTOR;
use fullstroke_units::Bytes;
use proptest::prelude::*;

/// Sectors of the device: more than memory holds.
const SECTORS: u64 = 1024;

/// A server below: what it has written, and what of that is durable.
struct Below {
    written: Vec<u8>,
    durable: Vec<u8>,
    jobs: Vec<Job>,
}

/// Versions of sectors as clients have asked for them.
struct Bench {
    cached: Cached,
    below: Below,
    now: Time,
    /// The newest of each sector, and the newest that was answered.
    asked: Vec<u8>,
    answered: Vec<u8>,
    /// The newest that was answered when the last flush began that was answered.
    flushed: Vec<u8>,
    /// By tag: sectors and version of writes, or what was answered when a flush began.
    writes: BTreeMap<u64, (std::ops::Range<usize>, u8, bool)>,
    flushes: BTreeMap<u64, Vec<u8>>,
    reads: BTreeMap<u64, u64>,
    next_tag: u64,
}

#[derive(Clone, Debug)]
enum Step {
    Read(u64, u64),
    Write(u64, u64, bool),
    Flush,
    Pull(Option<u64>, u64),
    Push(u64, u64),
    End(usize),
    Sleep(u64),
}

impl Bench {
    fn new() -> Bench {
        let cached = Cached::new(&MemoryKeys::of(Bytes(64 * PAGE_BYTES)), SECTORS * SECTOR).unwrap();
        let zeroes = || vec![0; SECTORS as usize];
        Bench {
            cached,
            below: Below { written: zeroes(), durable: zeroes(), jobs: Vec::new() },
            now: Time::ZERO,
            asked: zeroes(),
            answered: zeroes(),
            flushed: zeroes(),
            writes: BTreeMap::new(),
            flushes: BTreeMap::new(),
            reads: BTreeMap::new(),
            next_tag: 0,
        }
    }

    fn step(&mut self, step: &Step) {
        let tag = self.next_tag;
        self.next_tag += 1;
        match *step {
            Step::Read(start, sectors) => {
                self.reads.insert(tag, start);
                let asked = Asked::Read { offset: start * SECTOR, bytes: (sectors * SECTOR) as u32 };
                self.cached.ask(self.now, tag, asked);
            }
            Step::Write(start, sectors, durable) => {
                let range = start as usize..(start + sectors) as usize;
                let version = self.asked[range.clone()].iter().max().unwrap() + 1;
                if version == u8::MAX {
                    return;
                }
                self.asked[range.clone()].fill(version);
                self.writes.insert(tag, (range, version, durable));
                let data = vec![version; (sectors * SECTOR) as usize];
                self.cached.ask(self.now, tag, Asked::Write { offset: start * SECTOR, data, durable });
            }
            Step::Flush => {
                self.flushes.insert(tag, self.answered.clone());
                self.cached.ask(self.now, tag, Asked::Flush);
            }
            Step::Pull(None, sectors) => {
                self.cached.pull_any(self.now, sectors * SECTOR);
            }
            Step::Pull(Some(start), sectors) => {
                self.cached.pull(self.now, start * SECTOR, sectors * SECTOR);
            }
            Step::Push(start, sectors) => {
                self.cached.push(self.now, start * SECTOR, sectors * SECTOR);
            }
            Step::End(which) => self.end(which),
            Step::Sleep(ms) => {
                self.now = Time::from_nanos(self.now.as_nanos() + ms * 1_000_000);
                self.cached.wake(self.now);
            }
        }
        self.collect();
    }

    /// Any job that is under way ends.
    fn end(&mut self, which: usize) {
        if self.below.jobs.is_empty() {
            return;
        }
        let Job { id, work } = self.below.jobs.swap_remove(which % self.below.jobs.len());
        let mut read = Vec::new();
        match work {
            Work::Read { offset, bytes } => {
                let sectors = (offset / SECTOR) as usize..((offset + u64::from(bytes)) / SECTOR) as usize;
                read = self.below.written[sectors].iter().flat_map(|&version| [version; 512]).collect();
            }
            Work::Write { offset, data } => {
                for (index, sector) in data.chunks(SECTOR as usize).enumerate() {
                    let there = &mut self.below.written[(offset / SECTOR) as usize + index];
                    assert!(*there <= sector[0], "older over newer");
                    assert!(sector.iter().all(|&byte| byte == sector[0]), "a torn sector");
                    *there = sector[0];
                }
            }
            Work::Flush => self.below.durable.clone_from(&self.below.written),
        }
        self.cached.ended(self.now, id, Ok(read));
    }

    /// Everything that is under way ends.
    fn drain(&mut self) {
        for _ in 0..20_000 {
            if self.below.jobs.is_empty() {
                if self.cached.waiting.is_empty() {
                    return;
                }
                self.step(&Step::Sleep(200));
            }
            self.step(&Step::End(0));
        }
        panic!("it does not end");
    }

    fn collect(&mut self) {
        self.below.jobs.extend(self.cached.jobs());
        let answers: Vec<_> = self.cached.answers().collect();
        for (tag, outcome) in answers {
            match outcome {
                Outcome::Failed => panic!("nothing fails here"),
                Outcome::Data(data) => {
                    let start = self.reads.remove(&tag).unwrap() as usize;
                    for (index, sector) in data.chunks(SECTOR as usize).enumerate() {
                        assert_eq!(sector, [self.asked[start + index]; 512], "sector {}", start + index);
                    }
                }
                Outcome::Done => {
                    if let Some((range, version, durable)) = self.writes.remove(&tag) {
                        for sector in range {
                            self.answered[sector] = self.answered[sector].max(version);
                            assert!(!durable || self.below.durable[sector] >= version, "FUA");
                        }
                    } else {
                        let promised = self.flushes.remove(&tag).unwrap();
                        let newer = self.flushed.iter_mut().zip(promised);
                        newer.for_each(|(flushed, promised)| *flushed = promised.max(*flushed));
                    }
                }
            }
        }
        // Were it killed now, whatever was flushed would be there.
        let kept = self.below.durable.iter().zip(&self.flushed);
        assert!(kept.into_iter().all(|(durable, flushed)| durable >= flushed), "a flushed sector is lost");
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = (0..SECTORS - 64, 1u64..64);
    let step = prop_oneof![
        3 => place.clone().prop_map(|(start, sectors)| Step::Read(start, sectors)),
        5 => (place.clone(), prop::bool::weighted(0.1)).prop_map(|((start, sectors), durable)| Step::Write(start, sectors, durable)),
        1 => Just(Step::Flush),
        1 => (prop::option::of(0..SECTORS), 1u64..256).prop_map(|(start, sectors)| Step::Pull(start, sectors)),
        1 => place.prop_map(|(start, sectors)| Step::Push(start, sectors)),
        10 => any::<usize>().prop_map(Step::End),
        2 => (1u64..3000).prop_map(Step::Sleep),
    ];
    prop::collection::vec(step, 1..250)
}

proptest! {
    #[test]
    fn nothing_flushed_is_lost_nothing_is_older_and_reads_see_what_was_written(steps in steps()) {
        let mut bench = Bench::new();
        steps.iter().for_each(|step| bench.step(step));
        // In the end everything is answered, whatever waits for whom.
        bench.drain();
        bench.step(&Step::Flush);
        bench.drain();
        prop_assert!(bench.reads.is_empty() && bench.writes.is_empty() && bench.flushes.is_empty());
        prop_assert!(bench.below.durable == bench.asked, "not everything is durable");
        // No more is kept than memory has, and what sweeping leaves.
        prop_assert!(bench.cached.pages.len() <= slack(64));
    }
}

/// A cache of which everything that was asked below has been taken.
fn taken(cached: &mut Cached) -> Vec<Job> {
    cached.jobs().collect()
}

#[test]
fn a_write_that_is_lost_below_fails_the_next_flush_and_no_other() {
    let mut cached = Cached::new(&MemoryKeys::of(Bytes(64 * PAGE_BYTES)), 1 << 20).unwrap();
    cached.ask(Time::ZERO, 1, Asked::Write { offset: 0, data: vec![1; 4096], durable: false });
    assert_eq!(cached.answers().collect::<Vec<_>>(), [(1, Outcome::Done)]);
    assert_eq!(cached.pull_any(Time::ZERO, 4096), 1);
    let jobs = taken(&mut cached);
    assert_eq!(jobs[0].work, Work::Write { offset: 0, data: vec![1; 4096] });
    cached.ended(Time::ZERO, jobs[0].id, Err(()));
    for (tag, outcome) in [(2, Outcome::Failed), (3, Outcome::Done)] {
        cached.ask(Time::ZERO, tag, Asked::Flush);
        let flush = taken(&mut cached);
        assert_eq!(flush[0].work, Work::Flush);
        cached.ended(Time::ZERO, flush[0].id, Ok(Vec::new()));
        assert_eq!(cached.answers().collect::<Vec<_>>(), [(tag, outcome)]);
    }
}

#[test]
fn what_was_pushed_is_read_without_asking_below() {
    let mut cached = Cached::new(&MemoryKeys::of(Bytes(64 * PAGE_BYTES)), 1 << 20).unwrap();
    assert_eq!(cached.push(Time::ZERO, 8192, 4096), 1);
    let jobs = taken(&mut cached);
    assert_eq!(jobs[0].work, Work::Read { offset: 8192, bytes: 4096 });
    cached.ended(Time::ZERO, jobs[0].id, Ok(vec![7; 4096]));
    cached.ask(Time::ZERO, 1, Asked::Read { offset: 8192 + 512, bytes: 1024 });
    assert_eq!(cached.answers().collect::<Vec<_>>(), [(1, Outcome::Data(vec![7; 1024]))]);
    assert!(taken(&mut cached).iter().all(|job| !matches!(job.work, Work::Read { offset: 8192, .. })));
}

#[test]
fn a_read_that_fails_below_fails() {
    let mut cached = Cached::new(&MemoryKeys::of(Bytes(64 * PAGE_BYTES)), 1 << 20).unwrap();
    cached.ask(Time::ZERO, 1, Asked::Read { offset: 0, bytes: 4096 });
    for job in taken(&mut cached) {
        cached.ended(Time::ZERO, job.id, Err(()));
    }
    assert_eq!(cached.answers().collect::<Vec<_>>(), [(1, Outcome::Failed)]);
}
