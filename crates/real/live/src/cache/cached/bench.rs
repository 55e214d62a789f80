//! A cache above a server that loses power and fails requests on command, with the knowledge of the
//! clients.
//!
//! Data of a failed write below are stored neither there nor in memory. So the data are lost, but
//! not silently if the next flush fails. Data left volatile by a failed flush become durable with
//! the next successful flush.

use super::*;
use crate::cache::pages::SECTOR;
use fullstroke_units::Bytes;
use proptest::prelude::*;
use std::ops::Range;

/// Sectors of the device: more than memory holds.
const SECTORS: u64 = 1024;

/// Versions of sectors, and the knowledge of the clients.
pub(super) struct CacheBench {
    cached: Cached,
    now: Time,
    jobs: Vec<NumberedWork>,
    /// Versions on the server below. `durable` holds the durable versions.
    below: Vec<u8>,
    durable: Vec<u8>,
    /// Newest version of each sector: written by a client, answered, lost on the way, and reported
    /// as lost.
    asked: Vec<u8>,
    answered: Vec<u8>,
    lost: Vec<u8>,
    told: Vec<u8>,
    writes: BTreeMap<u64, (Range<usize>, u8, bool)>,
    /// Answered versions at the start of each flush. `flushed` holds those of the last successful
    /// flush.
    flushes: BTreeMap<u64, Vec<u8>>,
    flushed: Vec<u8>,
    reads: BTreeMap<u64, Range<usize>>,
    next_tag: u64,
    failures: u32,
}

#[derive(Clone, Debug)]
pub(super) enum CacheStep {
    Read(u64, u64),
    Write(u64, u64, bool),
    Flush,
    Pull(Option<u64>, u64),
    Push(u64, u64),
    End(usize, bool),
    Sleep(u64),
}

impl CacheBench {
    pub fn new() -> CacheBench {
        let none = || vec![0; SECTORS as usize];
        CacheBench {
            cached: Cached::new(&MemoryKeys::of(Bytes(64 * PAGE_BYTES)), SECTORS * SECTOR).unwrap(),
            now: Time::ZERO,
            jobs: Vec::new(),
            below: none(),
            durable: none(),
            asked: none(),
            answered: none(),
            lost: none(),
            told: none(),
            writes: BTreeMap::new(),
            flushes: BTreeMap::new(),
            flushed: none(),
            reads: BTreeMap::new(),
            next_tag: 0,
            failures: 0,
        }
    }

    pub fn step(&mut self, step: &CacheStep) {
        let tag = self.next_tag;
        self.next_tag += 1;
        match *step {
            CacheStep::Read(start, sectors) => {
                self.reads
                    .insert(tag, start as usize..(start + sectors) as usize);
                let asked = ClientRequest::Read {
                    offset: start * SECTOR,
                    bytes: (sectors * SECTOR) as u32,
                };
                self.cached.ask(self.now, tag, asked);
            }
            CacheStep::Write(start, sectors, durable) => {
                let range = start as usize..(start + sectors) as usize;
                let version = self.asked[range.clone()].iter().max().unwrap() + 1;
                if version == u8::MAX {
                    return;
                }
                self.asked[range.clone()].fill(version);
                self.writes.insert(tag, (range, version, durable));
                let data = vec![version; (sectors * SECTOR) as usize];
                self.cached.ask(
                    self.now,
                    tag,
                    ClientRequest::Write {
                        offset: start * SECTOR,
                        data,
                        durable,
                    },
                );
            }
            CacheStep::Flush => {
                self.flushes.insert(tag, self.answered.clone());
                self.cached.ask(self.now, tag, ClientRequest::Flush);
            }
            CacheStep::Pull(None, sectors) => {
                self.cached.pull_any(self.now, sectors * SECTOR);
            }
            CacheStep::Pull(Some(start), sectors) => {
                self.cached.pull(self.now, start * SECTOR, sectors * SECTOR);
            }
            CacheStep::Push(start, sectors) => {
                self.cached.push(self.now, start * SECTOR, sectors * SECTOR);
            }
            CacheStep::End(which, fails) => self.end(which, fails),
            CacheStep::Sleep(ms) => {
                self.now = Time::from_nanos(self.now.as_nanos() + ms * 1_000_000);
                self.cached.wake(self.now);
            }
        }
        self.collect();
    }

    /// Ends any job in flight, or fails the whole job.
    fn end(&mut self, which: usize, fails: bool) {
        if self.jobs.is_empty() {
            return;
        }
        let NumberedWork { id, work } = self.jobs.swap_remove(which % self.jobs.len());
        self.failures += u32::from(fails);
        let mut read = Vec::new();
        match work {
            ServerWork::Read { offset, bytes } => {
                let sectors =
                    (offset / SECTOR) as usize..((offset + u64::from(bytes)) / SECTOR) as usize;
                read = self.below[sectors]
                    .iter()
                    .flat_map(|&version| [version; 512])
                    .collect();
            }
            ServerWork::Write { offset, data } => {
                for (index, sector) in data.chunks(SECTOR as usize).enumerate() {
                    let at = (offset / SECTOR) as usize + index;
                    assert!(
                        sector.iter().all(|&byte| byte == sector[0]),
                        "a torn sector"
                    );
                    let there = if fails {
                        &mut self.lost[at]
                    } else {
                        &mut self.below[at]
                    };
                    assert!(fails || *there <= sector[0], "older over newer");
                    *there = sector[0].max(*there);
                }
            }
            ServerWork::Flush if fails => {}
            ServerWork::Flush => self.durable.clone_from(&self.below),
        }
        self.cached
            .ended(self.now, id, if fails { Err(()) } else { Ok(read) });
    }

    /// Ends all jobs with success from now on.
    pub fn drain(&mut self) {
        for _ in 0..20_000 {
            if self.jobs.is_empty() {
                if self.cached.waiting.is_empty() {
                    return;
                }
                self.step(&CacheStep::Sleep(200));
            }
            self.step(&CacheStep::End(0, false));
        }
        panic!("it does not end");
    }

    fn collect(&mut self) {
        self.jobs.extend(self.cached.jobs());
        let answers: Vec<_> = self.cached.answers().collect();
        for (tag, outcome) in answers {
            if let Some(range) = self.reads.remove(&tag) {
                self.have_read(range, &outcome);
            } else if let Some(write) = self.writes.remove(&tag) {
                self.have_written(write, &outcome);
            } else {
                let promised = self.flushes.remove(&tag).expect("one of them");
                self.have_flushed(&promised, &outcome);
            }
            assert!(
                self.failures > 0 || outcome != ClientOutcome::Failed,
                "nothing has failed here"
            );
        }
        self.check_flushed();
    }

    /// A read must return the newest version. After a loss it may return the lost or an earlier
    /// version.
    fn have_read(&self, range: Range<usize>, outcome: &ClientOutcome) {
        let ClientOutcome::Data(data) = outcome else {
            assert_eq!(*outcome, ClientOutcome::Failed);
            return;
        };
        for (sector, bytes) in range.zip(data.chunks(SECTOR as usize)) {
            let (version, newest) = (bytes[0], self.asked[sector]);
            assert!(bytes.iter().all(|&byte| byte == version), "a torn sector");
            assert!(version <= newest, "nobody wrote that");
            let excused = self.lost[sector].max(self.told[sector]) > version;
            assert!(
                version == newest || excused,
                "sector {sector}: {version} read for {newest}"
            );
        }
    }

    fn have_written(
        &mut self,
        (range, version, durable): (Range<usize>, u8, bool),
        outcome: &ClientOutcome,
    ) {
        for sector in range {
            match outcome {
                ClientOutcome::Done => {
                    self.answered[sector] = self.answered[sector].max(version);
                    let kept = self.durable[sector].max(self.told[sector]);
                    assert!(
                        !durable || kept >= version,
                        "FUA of sector {sector}: {kept} for {version}"
                    );
                }
                // The client knows that the data may be missing.
                _ => self.told[sector] = self.told[sector].max(version),
            }
        }
    }

    fn have_flushed(&mut self, promised: &[u8], outcome: &ClientOutcome) {
        if *outcome == ClientOutcome::Failed {
            let all = self.told.iter_mut().zip(&self.lost);
            all.for_each(|(told, lost)| *told = (*told).max(*lost));
            return;
        }
        let newer = self.flushed.iter_mut().zip(promised);
        newer.for_each(|(flushed, promised)| *flushed = *promised.max(flushed));
    }

    /// Checks that all flushed versions would survive a kill now, or that the client was told of
    /// the loss.
    fn check_flushed(&self) {
        for (sector, flushed) in self.flushed.iter().enumerate() {
            let kept = self.durable[sector].max(self.told[sector]);
            assert!(
                kept >= *flushed,
                "sector {sector}: {kept} is kept or told of {flushed}"
            );
        }
    }

    /// Checks the state after all requests are answered.
    pub fn check_end(&self) {
        assert!(self.reads.is_empty() && self.writes.is_empty() && self.flushes.is_empty());
        let known =
            (0..SECTORS as usize).all(|at| self.durable[at].max(self.told[at]) >= self.asked[at]);
        assert!(known, "something is lost of which nobody was told");
        assert!(
            self.failures > 0 || self.durable == self.asked,
            "not everything is durable"
        );
        // No more pages are kept than memory holds, plus the slack of sweeping.
        assert!(self.cached.pages.len() <= slack(64));
    }
}

/// Requests, signals and ends of jobs. The share `fails` of the jobs fails.
pub(super) fn steps(fails: f64) -> impl Strategy<Value = Vec<CacheStep>> {
    let place = (0..SECTORS - 64, 1u64..64);
    let fails = if fails > 0.0 {
        prop::bool::weighted(fails).boxed()
    } else {
        Just(false).boxed()
    };
    let step = prop_oneof![
        3 => place.clone().prop_map(|(start, sectors)| CacheStep::Read(start, sectors)),
        5 => (place.clone(), prop::bool::weighted(0.1)).prop_map(|((start, sectors), durable)| CacheStep::Write(start, sectors, durable)),
        2 => Just(CacheStep::Flush),
        1 => (prop::option::of(0..SECTORS), 1u64..256).prop_map(|(start, sectors)| CacheStep::Pull(start, sectors)),
        1 => place.prop_map(|(start, sectors)| CacheStep::Push(start, sectors)),
        10 => (any::<usize>(), fails).prop_map(|(which, fails)| CacheStep::End(which, fails)),
        2 => (1u64..3000).prop_map(CacheStep::Sleep),
    ];
    prop::collection::vec(step, 1..250)
}
