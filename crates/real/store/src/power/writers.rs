//! Power fails while several threads write, as the server's do.
//!
//! The first half of the array is dealt to the writers in runs of five sectors, so nearly every row
//! has sectors of all writers: rows are locked, gathered and flushed together. The second half has
//! a region for each writer, in which rows are written whole, too. A keeper clears marks meanwhile,
//! as a server's does once a second, and may let a device die.
//!
//! The requirements for one writer hold for the sectors of each writer. A flush by any writer
//! covers every earlier answered write of any writer. The acts of each thread follow from the seed.
//! The host decides the interleaving; slow devices provoke it.

use super::{AllowedFingerprints, Life, LossTally, SECTOR, SplitMix, fill, fingerprint};
use crate::{Array, ArrayError, RequestScratch};
use fullstroke_contract::Gear;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Length of a writer's run in shared rows.
const RUN: u64 = 5;

/// Allowed contents of sectors, while several threads write.
struct AllowedContents {
    model: AllowedFingerprints,
    /// For each sector, the number of versions ruled out by a flush.
    ruled_out: Vec<usize>,
    /// For each sector, the number of answered versions.
    answered: Vec<usize>,
}

impl AllowedContents {
    fn new(model: AllowedFingerprints) -> AllowedContents {
        let answered = model.0.iter().map(Vec::len).collect();
        AllowedContents {
            ruled_out: vec![0; model.0.len()],
            answered,
            model,
        }
    }

    /// Notes the success of a flush. `answered` are the numbers of answered versions when the flush
    /// began: the last of these versions is the oldest allowed one.
    fn flushed(&mut self, answered: &[usize]) {
        for ((versions, ruled_out), &answered) in self
            .model
            .0
            .iter_mut()
            .zip(&mut self.ruled_out)
            .zip(answered)
        {
            let behind = (answered - 1).saturating_sub(*ruled_out);
            versions.drain(..behind);
            *ruled_out += behind;
        }
    }

    fn answered(&mut self, first: u64, sectors: u64) {
        for sector in first as usize..(first + sectors) as usize {
            self.answered[sector] = self.ruled_out[sector] + self.model.0[sector].len();
        }
    }

    /// Returns rows with every sector written since a flush: the row may have been written whole,
    /// by one writer or several together.
    fn rows_that_may_be_loose(&self, row: u64) -> impl Iterator<Item = u64> {
        let rows = self.model.0.chunks_exact(row as usize).enumerate();
        let loose = rows.filter(|(_, sectors)| sectors.iter().all(|versions| versions.len() > 1));
        loose.map(|(row, _)| row as u64)
    }
}

/// Shared state of all threads of one life.
struct Scene<'a> {
    array: &'a Array,
    shared: Mutex<AllowedContents>,
    writers: u64,
    flushes: AtomicU64,
    writes: AtomicU64,
    ended: AtomicBool,
}

impl Scene<'_> {
    fn flush(&self) -> Result<(), ArrayError> {
        let answered = self.shared.lock().unwrap().answered.clone();
        self.array.flush()?;
        self.flushes.fetch_add(1, Ordering::SeqCst);
        self.shared.lock().unwrap().flushed(&answered);
        Ok(())
    }

    /// Chooses a run of the writer in shared rows, or any extent in its region.
    fn place(&self, writer: u64, random: &mut SplitMix) -> (u64, u64) {
        let sectors = self.array.capacity().0;
        let row = self.array.facts.rows.map_or(64, |rows| rows.data.0);
        let half = sectors / 2 / row * row;
        let region = (sectors - half) / self.writers / row * row;
        if random.chance(60) || region == 0 {
            let runs = half / (RUN * self.writers);
            // Some runs are written repeatedly.
            let few = if random.chance(50) { runs.min(3) } else { runs };
            let first = (random.below(few) * self.writers + writer) * RUN;
            let skipped = random.below(RUN);
            return (first + skipped, 1 + random.below(RUN - skipped));
        }
        let length = if random.chance(40) {
            row
        } else {
            1 + random.below(2 * row)
        }
        .min(region);
        let room = region - length;
        let within = random.below(room + 1);
        let within = if random.chance(50) {
            within / row * row
        } else {
            within
        };
        (half + writer * region + within, length)
    }

    /// Carries out one act of a writer.
    fn act(
        &self,
        writer: u64,
        worker: &mut RequestScratch,
        random: &mut SplitMix,
    ) -> Result<Result<(), ArrayError>, String> {
        if random.chance(12) {
            return Ok(self.flush());
        }
        let (first, sectors) = self.place(writer, random);
        let at = first * SECTOR as u64;
        let mut bytes = vec![0; sectors as usize * SECTOR];
        if random.chance(15) {
            if let Err(error) = self.array.read(worker, at, &mut bytes) {
                return Ok(Err(error));
            }
            let shared = self.shared.lock().unwrap();
            for (versions, sector) in shared.model.0[first as usize..]
                .iter()
                .zip(bytes.chunks(SECTOR))
            {
                if versions.last() != Some(&fingerprint(sector)) {
                    return Err(format!(
                        "writer {writer} reads something else than it wrote last"
                    ));
                }
            }
            return Ok(Ok(()));
        }
        fill(&mut bytes, random.next());
        self.shared.lock().unwrap().model.write(first, &bytes);
        self.writes.fetch_add(1, Ordering::SeqCst);
        if let Err(error) = self.array.write(worker, at, &bytes) {
            return Ok(Err(error));
        }
        self.shared.lock().unwrap().answered(first, sectors);
        // FUA: the server flushes before it answers.
        Ok(if random.chance(15) {
            self.flush()
        } else {
            Ok(())
        })
    }
}

impl Life<'_> {
    /// Runs `writers` threads and a keeper until power is gone.
    #[expect(
        clippy::too_many_lines,
        reason = "the threads of a life share their tallies"
    )]
    pub(super) fn many_until_power_fails(
        &mut self,
        array: &Array,
        writers: u64,
    ) -> Result<(), String> {
        let model = std::mem::replace(&mut self.model, AllowedFingerprints(Vec::new()));
        let scene = Scene {
            array,
            shared: Mutex::new(AllowedContents::new(model)),
            writers,
            flushes: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        };
        let power = &self.power;
        let judge = |ended: Result<Result<(), ArrayError>, String>| match ended {
            Err(wrong) => Some(Err(wrong)),
            Ok(Ok(())) => None,
            Ok(Err(error)) if power.0.load(Ordering::SeqCst) > 0 => {
                Some(Err(format!("with power: {error}")))
            }
            Ok(Err(_)) => Some(Ok(())),
        };
        let dies = self.died.is_none() && self.case.survives() > 0 && self.random.chance(15);
        let dying = dies.then(|| self.random.below(self.devices.len() as u64) as usize);
        let seeds: Vec<u64> = (0..=writers).map(|_| self.random.next()).collect();
        let results: Vec<Result<(), String>> = std::thread::scope(|scope| {
            let scene = &scene;
            let threads = (0..writers).map(|writer| {
                let seed = seeds[writer as usize];
                scope.spawn(move || {
                    let (mut worker, mut random) = (RequestScratch::new(), SplitMix(seed));
                    loop {
                        if let Some(ended) = judge(scene.act(writer, &mut worker, &mut random)) {
                            scene.ended.store(
                                ended.is_err() || scene.ended.load(Ordering::SeqCst),
                                Ordering::SeqCst,
                            );
                            return ended;
                        }
                        if scene.ended.load(Ordering::SeqCst) {
                            return Ok(());
                        }
                    }
                })
            });
            let threads: Vec<_> = threads.collect();
            let (devices, mut random) = (&self.devices, SplitMix(seeds[writers as usize]));
            let last_gear = &mut self.gear;
            let keeper = scope.spawn(move || {
                let mut dying = dying;
                let mut worker = RequestScratch::one_by_one();
                while !scene.ended.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_micros(100 + random.below(400)));
                    if let Some(slot) = dying.filter(|_| random.chance(30)) {
                        devices[slot].dead.store(true, Ordering::SeqCst);
                        dying = None;
                    }
                    *last_gear = scene.array.gear();
                    if last_gear.is_some() {
                        let shifted = super::shift_on(scene.array, &mut worker, &mut random);
                        if let Some(ended) = judge(Ok(shifted.map(drop))) {
                            return ended;
                        }
                    }
                    if let Some(ended) = judge(Ok(scene.array.tidy())) {
                        return ended;
                    }
                }
                Ok(())
            });
            let mut results: Vec<_> = threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect();
            scene.ended.store(true, Ordering::SeqCst);
            results.push(keeper.join().unwrap());
            results
        });
        let shared = scene.shared.into_inner().unwrap();
        let row = array.facts.rows.map_or(u64::MAX, |rows| rows.data.0);
        if row < u64::MAX {
            self.loose.extend(shared.rows_that_may_be_loose(row));
        }
        let dead = self
            .devices
            .iter()
            .position(|device| device.dead.load(Ordering::SeqCst));
        self.tally.died += u64::from(self.died.is_none() && dead.is_some());
        self.died = self.died.or(dead);
        self.model = shared.model;
        self.tally.writes += scene.writes.into_inner();
        self.tally.flushes += scene.flushes.into_inner();
        results.into_iter().collect()
    }
}

impl LossTally {
    pub(super) fn add(&mut self, other: &LossTally) {
        self.losses += other.losses;
        self.missing += other.missing;
        self.died += other.died;
        self.replayed += other.replayed;
        self.compared += other.compared;
        self.writes += other.writes;
        self.flushes += other.flushes;
        self.trimmed += other.trimmed;
        self.low += other.low;
        self.high += other.high;
        self.in_gear
            .iter_mut()
            .zip(other.in_gear)
            .for_each(|(sum, more)| *sum += more);
    }

    /// Counts the entry of a gear.
    pub(super) fn note(&mut self, gear: Option<Gear>) {
        self.low += u64::from(gear == Some(Gear::Low));
        self.high += u64::from(gear == Some(Gear::High));
    }
}
