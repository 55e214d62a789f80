//! Cost and gain of moving the files of a stack onto tracks. Both are simulated on the stack's own
//! layers below the page cache.

use fullstroke_contract::{Extent, Operation, SourceError};
use fullstroke_files::aligner::{AlignerInput, FileMove, Moves, used};
use fullstroke_files::fragmentation::{FileFragments, Fragment};
use fullstroke_files::script::{FailedOperation, Script, ScriptPlayer};
use fullstroke_files::{
    Caller, FileError, FileSystem, MetaAccess, MetaAccesses, PAGE_BYTES, PAGE_SECTORS, path,
};
use fullstroke_measure::{Difference, difference_over_seeds, half_width_over_seeds};
use fullstroke_stack::{Stack, StackError};
use fullstroke_units::{Bytes, Lbn, Sectors, Time};
use fullstroke_workload::{Job, Jobs};
use serde::Serialize;
use std::ops::Range;
use thiserror::Error;

/// Confidence of all intervals.
const CONFIDENCE: f64 = 0.95;

/// Reason why files could not be aligned, or the moves not simulated.
#[derive(Debug, Error)]
pub enum AlignError {
    /// The stack cannot be used.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// The file system has no files, or none can be moved.
    #[error("host.files: {0}")]
    Files(#[from] FileError),
    /// An operation of the script failed.
    #[error(transparent)]
    Script(#[from] FailedOperation),
    /// No file has pages on the device.
    #[error("host.files: no file has pages on the device, so there is no file to align")]
    NoFiles,
    /// A run broke off.
    #[error("{0}")]
    Run(SourceError),
    /// The array has lost members.
    #[error("{0} requests could not be served: more members have failed than the volume survives")]
    Lost(u64),
}

/// Files of a stack and the plan to align them.
pub struct AlignmentInput<'a> {
    stack: &'a Stack,
    system: Box<dyn FileSystem>,
    files: Vec<FileFragments>,
    moves: Moves,
}

/// Reads to measure the gain: each file is read completely, from the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct GainReads {
    /// Number of files read at the same time.
    pub readers: u32,
    /// Number of files read in a round. Each read chooses a file at random, with equal
    /// probability.
    pub files: u32,
    /// Number of rounds. Each round chooses other files.
    pub rounds: u32,
    /// Length of the longest request.
    pub request: Bytes,
}

/// Cost of the moves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MoveCost {
    /// Number of moved files.
    pub files: u64,
    /// Bytes read and written again.
    pub bytes: Bytes,
    /// Number of rewritten metadata pages: mappings, inodes, and maps of free space.
    pub metadata_pages: u64,
    /// Simulated seconds of all moves, without other load.
    pub seconds: f64,
}

/// Gain of the moves.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// Mean time to read a file before the moves, in ms; the mean of the rounds.
    pub before_ms: f64,
    /// Half the width of the 95 % interval of `before_ms`.
    pub before_half_width_ms: Option<f64>,
    /// Mean time to read a file after the moves, in ms.
    pub after_ms: f64,
    /// Half the width of the 95 % interval of `after_ms`.
    pub after_half_width_ms: Option<f64>,
    /// Time before the moves less the time after the moves, paired round by round.
    pub saved_ms: Difference,
    /// Number of file reads after which the moves have paid for their cost. `None` if the moves
    /// save nothing, or if the saving may be chance.
    pub pays_after_files: Option<u64>,
}

impl<'a> AlignmentInput<'a> {
    /// Finds the files after the operations of `script`, as the programs of the stack see the
    /// files, and plans the moves.
    ///
    /// # Errors
    /// A stack without files or tracks, and failed operations of the script.
    pub fn new(
        stack: &'a Stack,
        script: Option<&Script>,
    ) -> Result<AlignmentInput<'a>, AlignError> {
        let mut found = stack.files()?;
        if let Some(script) = script {
            ScriptPlayer::new(&mut *found.system, Time::ZERO).play_all(script)?;
        }
        let (files, fixed) = used(&*found.system)?;
        if files.is_empty() {
            return Err(AlignError::NoFiles);
        }
        let pages = found.capacity.0 / PAGE_SECTORS;
        let moves = AlignerInput {
            files: &files,
            fixed: &fixed,
            pages,
            tracks: &found.tracks,
        }
        .plan();
        Ok(AlignmentInput {
            stack,
            system: found.system,
            files,
            moves,
        })
    }

    /// Returns the plan of moves.
    pub fn moves(&self) -> &Moves {
        &self.moves
    }

    /// Returns the files at their places before the moves, by index.
    pub fn files(&self) -> &[FileFragments] {
        &self.files
    }

    /// Simulates the moves, one file after the other. Each file is read, written at the new place
    /// and flushed. Then the metadata are written in place: the mapping of the file, the inode, and
    /// the maps of free pages.
    ///
    /// # Errors
    /// Errors of the stack or of the run.
    pub fn cost(&mut self, request: Bytes) -> Result<MoveCost, AlignError> {
        let mut jobs = Vec::new();
        let (mut pages, mut metadata_pages) = (0, 0);
        for one in &self.moves.moves {
            let metadata = metadata(&mut *self.system, &self.files[one.file], one)?;
            metadata_pages += metadata.len() as u64;
            pages += one.pages();
            jobs.push(moved(one, &metadata, request));
        }
        let files = jobs.len() as u64;
        let seconds = match files {
            0 => 0.0,
            _ => run(self.stack, jobs, 1)?.iter().sum::<f64>() / 1e3,
        };
        Ok(MoveCost {
            files,
            bytes: Bytes(pages * PAGE_BYTES),
            metadata_pages,
            seconds,
        })
    }

    /// Reads the same files before and after the moves. The saved time must win back `cost`.
    ///
    /// # Errors
    /// Errors of the stack or of a run.
    pub fn gain(&self, programme: GainReads, cost: &MoveCost) -> Result<Gain, AlignError> {
        let mut rounds = Vec::new();
        for round in 0..programme.rounds {
            let mut random = self
                .stack
                .seed()
                .of("align")
                .stream(&format!("round {round}"));
            let chosen: Vec<usize> = (0..programme.files)
                .map(|_| random.below(self.files.len() as u64) as usize)
                .collect();
            let mean = |files: &[FileFragments]| -> Result<f64, AlignError> {
                let jobs = chosen
                    .iter()
                    .map(|&file| read(&files[file], programme.request))
                    .collect();
                let took = run(self.stack, jobs, programme.readers)?;
                Ok(took.iter().sum::<f64>() / took.len() as f64)
            };
            rounds.push((mean(&self.files)?, mean(&self.moves.after)?));
        }
        Ok(gained(&rounds, programme, cost))
    }
}

fn gained(rounds: &[(f64, f64)], programme: GainReads, cost: &MoveCost) -> Gain {
    let (before, after): (Vec<f64>, Vec<f64>) = rounds.iter().copied().unzip();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let saved_ms = difference_over_seeds(rounds, CONFIDENCE);
    let surely = saved_ms
        .half_width
        .is_some_and(|half_width| saved_ms.value > half_width);
    // `readers` files are read at the same time, so one file shortens the elapsed time by its
    // saving divided by `readers`.
    let each_s = saved_ms.value / 1e3 / f64::from(programme.readers);
    Gain {
        before_ms: mean(&before),
        before_half_width_ms: half_width_over_seeds(&before, CONFIDENCE),
        after_ms: mean(&after),
        after_half_width_ms: half_width_over_seeds(&after, CONFIDENCE),
        saved_ms,
        pays_after_files: surely.then(|| (cost.seconds / each_s).ceil() as u64),
    }
}

/// Runs `jobs` and returns the duration of each job in ms.
fn run(stack: &Stack, jobs: Vec<Job>, processes: u32) -> Result<Vec<f64>, AlignError> {
    let mut engine = stack.below_files(Box::new(Jobs::new(jobs, processes)))?;
    engine.run(&mut ()).map_err(AlignError::Run)?;
    let jobs = engine.workload::<Jobs>();
    let failed = jobs.map_or(0, Jobs::failed);
    if failed > 0 {
        return Err(AlignError::Lost(failed));
    }
    let took = jobs.map_or(&[][..], Jobs::took);
    Ok(took
        .iter()
        .map(|took| took.as_nanos() as f64 / 1e6)
        .collect())
}

/// Returns requests of at most `request` bytes for the consecutive pages `pages`.
fn requests(
    pages: Range<u64>,
    request: Bytes,
    operation: Operation,
) -> impl Iterator<Item = (Operation, Extent)> {
    let step = (request.0 / PAGE_BYTES).max(1);
    let end = pages.end;
    pages.step_by(step as usize).map(move |page| {
        let sectors = Sectors(step.min(end - page) * PAGE_SECTORS);
        (
            operation,
            Extent {
                start: Lbn(page * PAGE_SECTORS),
                sectors,
            },
        )
    })
}

fn read(file: &FileFragments, request: Bytes) -> Job {
    let runs = file
        .fragments
        .iter()
        .map(|fragment| fragment.block..fragment.block + fragment.pages);
    runs.flat_map(|run| requests(run, request, Operation::Read))
        .collect()
}

fn moved(one: &FileMove, metadata: &[u64], request: Bytes) -> Job {
    let runs = |fragments: &[Fragment], operation| -> Job {
        let runs = fragments
            .iter()
            .map(|fragment| fragment.block..fragment.block + fragment.pages);
        runs.flat_map(|run| requests(run, request, operation))
            .collect()
    };
    let flush = (
        Operation::Flush,
        Extent {
            start: Lbn(0),
            sectors: Sectors::ZERO,
        },
    );
    // Data before metadata, with a flush in between: after a crash between both, the metadata still
    // map the old place, which this move does not overwrite.
    let mut job = runs(&one.from, Operation::Read);
    job.extend(runs(&one.to, Operation::Write));
    job.push(flush);
    job.extend(
        metadata
            .iter()
            .flat_map(|&page| requests(page..page + 1, request, Operation::Write)),
    );
    job.push(flush);
    job
}

/// Returns the metadata pages that a move changes: the pages of the file's mapping, which
/// `read_map` reads; the inode; and the maps of free pages.
fn metadata(
    system: &mut dyn FileSystem,
    file: &FileFragments,
    one: &FileMove,
) -> Result<Vec<u64>, FileError> {
    let caller = Caller::default();
    let object = path::find(system, caller, &file.path, &mut MetaAccesses::new())?;
    let pages = file
        .fragments
        .last()
        .map_or(0, |fragment| fragment.page + fragment.pages);
    let (mut mapped, mut touches) = (Vec::new(), MetaAccesses::new());
    system.read_map(caller, object, 0..pages, &mut mapped, &mut touches)?;
    let read = touches
        .list()
        .iter()
        .filter(|touch| matches!(touch, MetaAccess::Read(_)));
    let mut metadata: Vec<u64> = read.map(|touch| touch.page()).collect();
    let places = one
        .from
        .iter()
        .chain(&one.to)
        .map(|piece| piece.block..piece.block + piece.pages);
    let mut changed = MetaAccesses::new();
    system.change_places(object, &places.collect::<Vec<_>>(), &mut changed);
    metadata.extend(changed.list().iter().map(|touch| touch.page()));
    // A page that several pieces change is written once.
    metadata.sort_unstable();
    metadata.dedup();
    Ok(metadata)
}
