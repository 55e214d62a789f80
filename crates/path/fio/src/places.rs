//! Space in which a worker works: one part of a volume, or files one behind another in the worker's
//! own address space.

use crate::job::{FileOrder, FioJob, IoDirection};
use crate::offsets::{OffsetBlock, Offsets};
use crate::region::{CloneRegion, Misfit};
use fullstroke_units::Random;

/// Regions of one worker, one for each file, and the worker's total amount of I/O.
#[derive(Clone, Debug)]
pub(crate) struct WorkerRegions {
    pub(crate) regions: Vec<CloneRegion>,
    /// Total of all regions. Only its amounts are used, not its position.
    pub(crate) whole: CloneRegion,
}

impl From<CloneRegion> for WorkerRegions {
    fn from(whole: CloneRegion) -> WorkerRegions {
        WorkerRegions {
            regions: vec![whole],
            whole,
        }
    }
}

/// Generator of one worker's blocks, which serves several files in turn.
pub(crate) struct BlockPlaces {
    files: Vec<File>,
    service: FileOrder,
    service_ios: u64,
    /// Index of the current file, and the number of I/Os left in its turn.
    at: usize,
    left: u64,
    /// True if the files begin again when all are done.
    endless: bool,
}

struct File {
    offsets: Offsets,
    done: bool,
}

impl BlockPlaces {
    pub(crate) fn new(
        job: &FioJob,
        ground: WorkerRegions,
        popular: &mut Random,
        random: &mut Random,
    ) -> Result<BlockPlaces, Misfit> {
        let several = ground.regions.len() > 1;
        // With several files, a file is done at its end, and the turn passes to the next file.
        let once = FioJob {
            time_based: job.time_based && !several,
            ..job.clone()
        };
        let one = |region| {
            Ok(File {
                offsets: Offsets::new(&once, region, popular, random)?,
                done: false,
            })
        };
        let files = ground
            .regions
            .into_iter()
            .map(one)
            .collect::<Result<_, Misfit>>()?;
        let left = job.files.service_ios;
        Ok(BlockPlaces {
            files,
            service: job.files.service,
            service_ios: left,
            at: 0,
            left,
            endless: job.time_based && several,
        })
    }

    pub(crate) fn files(&self) -> usize {
        self.files.len()
    }

    /// Begins again, as at the next loop of a job.
    pub(crate) fn restart(&mut self, random: &mut Random) {
        for file in &mut self.files {
            file.offsets.restart(random);
            file.done = false;
        }
        (self.at, self.left) = (0, self.service_ios);
    }

    /// Takes a turn. Returns the file of the next I/O.
    pub(crate) fn turn(&mut self, random: &mut Random) -> usize {
        let count = self.files.len();
        if count == 1 {
            return 0;
        }
        if self.left == 0 {
            self.left = self.service_ios;
            self.at = match self.service {
                FileOrder::RoundRobin => (self.at + 1) % count,
                FileOrder::Sequential => self.at,
                FileOrder::Random => random.below(count as u64) as usize,
            };
        }
        let open = |at: &usize| !self.files[*at % count].done;
        self.at = (self.at..self.at + count).find(open).unwrap_or(self.at) % count;
        self.left -= 1;
        self.at
    }

    /// Returns the next block; `None` if all files are done.
    pub(crate) fn next(
        &mut self,
        direction: IoDirection,
        random: &mut Random,
    ) -> Option<OffsetBlock> {
        let found = self.next_of_any(direction, random);
        if found.is_some() || !self.endless {
            return found;
        }
        self.restart(random);
        self.next_of_any(direction, random)
    }

    fn next_of_any(&mut self, direction: IoDirection, random: &mut Random) -> Option<OffsetBlock> {
        while self.files.iter().any(|file| !file.done) {
            let at = self.turn(random);
            match self.files[at].offsets.next(direction, random) {
                Some(block) => return Some(block),
                None => (self.files[at].done, self.left) = (true, 0),
            }
        }
        None
    }
}
