//! Jobs on files: a program whose processes carry out the I/O of the clones.
//!
//! The workers are the same as for a volume. Each worker has its own address space, with its files
//! one behind another. An I/O in this address space becomes a call on a file.
//!
//! A clone with one I/O at a time is one process. A clone with a queue depth has a process for its
//! times and a process for each place of the queue, because a process makes one call at a time. So
//! the calls of an asynchronous engine run side by side, as direct I/O does in Linux (`iomap_dio_rw`
//! returns before the I/O is done). The depth in effect is smaller where Linux and glibc wait:
//! buffered libaio waits in `io_submit`, and posixaio carries out one I/O for each file at a time
//! (glibc's `aio_misc.c`).

mod check;

use crate::file_places::{FilePlace, ground, places};
use crate::job::{FioJob, IoDirection, JobDirections};
use crate::option::Treatment;
use crate::options::find;
use crate::{FioError, FioResults, FioSource, JobSet};
use fullstroke_contract::SourceError;
use fullstroke_contract::{Effects, Operation, Request, RequestStatus};
use fullstroke_programs::{
    Call, CallAnswer, Fd, InitialFile, OpenFlags, Program, ProgramAction, ProgramReport,
    ProgramTurn,
};
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Seed, Time};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

pub(crate) use check::check;

/// A call of a process. The number is the index of the file.
#[derive(Clone, Copy, Debug)]
enum FileCall {
    Open(usize),
    Read(usize, u64, u64),
    Write(usize, u64, u64),
    Fsync(usize),
    Fdatasync(usize),
    Close(usize),
}

/// Role of a process for its clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The only process: keeps the times and makes the calls.
    Both,
    /// Keeps the times.
    Times,
    /// Makes calls.
    Calls,
}

/// A process of a clone.
struct JobProcess {
    /// Number of the clone's worker.
    worker: u32,
    role: Role,
    how: OpenFlags,
    places: Arc<[FilePlace]>,
    open: Vec<bool>,
    steps: VecDeque<FileCall>,
    /// `request` is the request that ends with the last step. `asked` is the length of the running
    /// transfer in bytes.
    request: Option<u32>,
    asked: Option<u64>,
    ended: bool,
}

/// Returns the roles of a clone's processes.
fn roles(job: &FioJob) -> Vec<Role> {
    match job.effective_depth() {
        1 => vec![Role::Both],
        depth => {
            // A process has one call at a time, so each I/O in flight needs a process.
            let calls = (0..depth).map(|_| Role::Calls);
            std::iter::once(Role::Times).chain(calls).collect()
        }
    }
}

impl JobSet {
    /// Returns the jobs with the queue depths that are in effect on files, and a note for each
    /// smaller depth.
    fn with_depths_of_files(&self) -> JobSet {
        let mut set = self.clone();
        for job in &mut set.jobs {
            let asked = job.effective_depth();
            let (depth, why) = match &job.engine_name[..] {
                "libaio" | "solarisaio" | "windowsaio" if !job.direct => (
                    1,
                    "without direct=1 io_submit waits for each I/O".to_owned(),
                ),
                "posixaio" => (
                    (job.files.count() as u32).clamp(1, asked),
                    "glibc carries out one I/O of a file at a time".to_owned(),
                ),
                _ => (asked, String::new()),
            };
            if depth < asked {
                set.notes.push(format!(
                    "[{}]: iodepth={asked} is {depth} in effect with ioengine={}: {why}",
                    job.name, job.engine_name
                ));
                job.depth = depth;
            }
        }
        set
    }
}

/// Jobs on files as a program.
pub struct FioProgram {
    set: JobSet,
    source: FioSource,
    processes: Vec<JobProcess>,
    /// Processes of each worker.
    clones: Vec<Range<usize>>,
    out: Effects,
}

impl FioProgram {
    /// Makes the program. It ends after `requests` I/Os, if a number is given.
    ///
    /// # Errors
    /// Fails for an option that is not simulated for jobs on files, and for a size that holds no
    /// block.
    pub fn new(set: &JobSet, seed: Seed, requests: Option<u64>) -> Result<FioProgram, FioError> {
        if let Some(error) = &set.off_files {
            return Err(error.clone());
        }
        let set = set.with_depths_of_files().seen_from_mount();
        let source = FioSource::on(&set, &ground, seed, requests, None)?;
        let mut processes = Vec::with_capacity(set.workers());
        let mut clones = Vec::with_capacity(set.workers());
        for job in &set.jobs {
            for clone in 0..job.clones {
                let places: Arc<[FilePlace]> = places(job, clone)
                    .map_err(|(option, message)| set.error(Some(job.line), option, message))?
                    .into();
                let (worker, first) = (clones.len() as u32, processes.len());
                for role in roles(job) {
                    processes.push(JobProcess::new(job, worker, role, Arc::clone(&places)));
                }
                clones.push(first..processes.len());
            }
        }
        Ok(FioProgram {
            set,
            source,
            processes,
            clones,
            out: Effects::new(),
        })
    }

    /// Returns the results so far. They are complete when the run is over.
    pub fn results(&self) -> FioResults {
        self.source
            .results()
            .without_ignored(|name| !is_ignored(name))
    }

    /// Converts requests of the workers into steps of free processes.
    fn collect(&mut self) {
        for request in self.out.requests() {
            let worker = request.hints.process as usize - 1;
            let range = self.clones[worker].clone();
            let free = self.processes[range].iter_mut().find(|one| one.is_free());
            // A worker has as many processes for calls as I/Os in flight, and a flush outside the
            // queue waits for a place (`JobWorker::step`).
            let Some(process) = free else {
                unreachable!("worker {worker} has more I/Os in flight than processes")
            };
            process.request = Some(request.id.0 as u32);
            if request.operation == Operation::Flush {
                let worker = self.source.worker(worker);
                let data_only = worker.flushes_data_only();
                worker
                    .flushed_files()
                    .for_each(|file| process.fsync(file, data_only));
            } else {
                process.transfer(&request);
            }
        }
    }

    /// Handles the answer to a call.
    fn handle_answer(
        &mut self,
        now: Time,
        number: usize,
        answer: &CallAnswer,
    ) -> Result<(), SourceError> {
        let process = &mut self.processes[number];
        let bytes = answer.result.as_ref().map_err(|error| {
            let job = &self.source.worker(process.worker as usize).job;
            SourceError(format!(
                "job [{}], line {}: {}: {error}",
                job.name,
                job.line,
                answer.kind.name()
            ))
        })?;
        let asked = process.asked.take();
        // That was the open in front of the transfer, or one of several flushes.
        if !process.steps.is_empty() {
            return Ok(());
        }
        if let Some(slot) = process.request.take() {
            // A short transfer met the end of the file. On a volume that is an address beyond the
            // end.
            let whole = asked.is_none_or(|asked| asked == *bytes);
            let status = if whole {
                RequestStatus::Done
            } else {
                RequestStatus::OutOfRange
            };
            self.source
                .finished(answer.began, now, slot, status, &mut self.out);
            self.collect();
        }
        Ok(())
    }
}

impl JobProcess {
    fn new(job: &FioJob, worker: u32, role: Role, places: Arc<[FilePlace]>) -> JobProcess {
        let write = job.work != JobDirections::Only(IoDirection::Read);
        let how = OpenFlags {
            write,
            create: write,
            direct: job.direct,
            durable: job.durable_writes,
            data_only: job.durable_data_only,
            ..OpenFlags::READ
        };
        let open = vec![false; places.len()];
        JobProcess {
            worker,
            role,
            how,
            places,
            open,
            steps: VecDeque::new(),
            request: None,
            asked: None,
            ended: false,
        }
    }

    /// Returns true if the process can take an I/O.
    fn is_free(&self) -> bool {
        self.role != Role::Times && self.request.is_none()
    }

    fn opened(&mut self, file: usize) {
        // A job opens a file at its first use, as fio's `td_io_open_file` does.
        if !std::mem::replace(&mut self.open[file], true) {
            self.steps.push_back(FileCall::Open(file));
        }
    }

    fn fsync(&mut self, file: usize, data_only: bool) {
        self.opened(file);
        self.steps.push_back(if data_only {
            FileCall::Fdatasync(file)
        } else {
            FileCall::Fsync(file)
        });
    }

    fn transfer(&mut self, request: &Request) {
        let start = request.extent.start.0 * SECTOR_BYTES;
        let bytes = request.extent.sectors.0 * SECTOR_BYTES;
        let file = self
            .places
            .partition_point(|place| place.start <= start)
            .saturating_sub(1);
        let at = start - self.places[file].start;
        self.opened(file);
        self.steps.push_back(match request.operation {
            Operation::Read => FileCall::Read(file, at, bytes),
            _ => FileCall::Write(file, at, bytes),
        });
    }

    fn close_all(&mut self) {
        let open = self.open.iter().enumerate().filter(|(_, open)| **open);
        self.steps
            .extend(open.map(|(file, _)| FileCall::Close(file)));
    }

    fn call(&mut self, step: FileCall) -> Call<'_> {
        let fd = |file: usize| Fd(file as u32);
        match step {
            FileCall::Open(file) => Call::Open {
                path: &self.places[file].path,
                fd: fd(file),
                how: self.how,
            },
            FileCall::Read(file, at, bytes) => {
                self.asked = Some(bytes);
                Call::Read {
                    fd: fd(file),
                    at: Some(at),
                    bytes,
                }
            }
            FileCall::Write(file, at, bytes) => {
                self.asked = Some(bytes);
                Call::Write {
                    fd: fd(file),
                    at: Some(at),
                    bytes,
                }
            }
            FileCall::Fsync(file) => Call::Fsync { fd: fd(file) },
            FileCall::Fdatasync(file) => Call::Fdatasync { fd: fd(file) },
            FileCall::Close(file) => Call::Close { fd: fd(file) },
        }
    }
}

impl Program for FioProgram {
    fn processes(&self) -> u32 {
        self.processes.len() as u32
    }

    /// Returns the files and directories that exist before the run: files that a job reads or
    /// overwrites, and the directories of all jobs.
    fn laid_out(&self) -> Vec<InitialFile> {
        let jobs = self
            .set
            .jobs
            .iter()
            .flat_map(|job| (0..job.clones).map(move |clone| (job, clone)));
        let mut laid = Vec::new();
        for ((job, clone), processes) in jobs.zip(&self.clones) {
            let directory = job.files.directory_of(clone);
            laid.extend(
                directory
                    .filter(|path| !path.is_empty())
                    .map(|path| InitialFile {
                        path: path.to_owned(),
                        bytes: None,
                        unwritten: false,
                    }),
            );
            let allocated = job.files.allocated && !job.files.create_on_open;
            // fio writes files that it reads or overwrites, and only reserves the others
            // (`fallocate`).
            let written = job.work.goes(IoDirection::Read) || job.files.overwrite;
            if written || allocated {
                let file = |place: &FilePlace| InitialFile {
                    path: place.path.clone(),
                    bytes: Some(Bytes(place.bytes)),
                    unwritten: !written,
                };
                laid.extend(self.processes[processes.start].places.iter().map(file));
            }
        }
        laid
    }

    fn next(&mut self, turn: ProgramTurn<'_>) -> ProgramAction<'_> {
        let (now, number) = (turn.now, turn.process as usize);
        if let Some(answer) = turn.answer
            && let Err(message) = self.handle_answer(now, number, answer)
        {
            return ProgramAction::Fail(message);
        }
        let JobProcess { worker, role, .. } = self.processes[number];
        loop {
            if let Some(step) = self.processes[number].steps.pop_front() {
                return ProgramAction::Call(self.processes[number].call(step));
            }
            if self.source.worker(worker as usize).has_ended() {
                // The second visit ends the process, because the first visit has closed the files.
                if std::mem::replace(&mut self.processes[number].ended, true) {
                    return ProgramAction::End;
                }
                self.processes[number].close_all();
                continue;
            }
            let alarm = self.source.worker(worker as usize).alarm();
            if role == Role::Calls || alarm == Time::NEVER {
                return ProgramAction::Wait;
            }
            if alarm > now {
                return ProgramAction::Compute(alarm.since(now));
            }
            self.source.go_on(now, worker, &mut self.out);
            self.collect();
            if role == Role::Times {
                // A wait would not count as progress, and the processes for calls would sleep on.
                return ProgramAction::Compute(Duration::ZERO);
            }
        }
    }

    /// Returns the report in fio's format.
    fn report(&self) -> ProgramReport {
        let results = self.results();
        let mut report = results.report(Vec::new(), Duration::ZERO);
        let ignored = std::mem::take(&mut report.ignored);
        let notes = std::mem::take(&mut report.notes);
        ProgramReport {
            figures: results.figures(),
            text: report.to_string(),
            notes: notes
                .into_iter()
                .chain(
                    ignored
                        .iter()
                        .map(|one| format!("`{}` changes nothing: {}", one.name, one.why)),
                )
                .collect(),
        }
    }
}

/// Returns true if an option has no effect on jobs on files either.
fn is_ignored(option: &str) -> bool {
    find(option).is_none_or(|entry| {
        entry.files.is_none() && !matches!(entry.treatment, Treatment::OnFiles(..))
    })
}

#[cfg(test)]
mod tests;
