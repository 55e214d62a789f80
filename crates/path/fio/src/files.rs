//! Jobs on files: a program with one process for each clone of a job.
//!
//! The workers are the same as for a volume. Each worker has its own address space, with its files
//! one behind another. An I/O in this address space becomes a call on a file.

use crate::ini::{JobSection, Setting};
use crate::job::{Engine, FilesOfJob, FioJob, IoDirection, JobDirections};
use crate::option::Treatment;
use crate::options::find;
use crate::places::Ground;
use crate::region::{CloneRegion, Misfit, amounts, bytes, region};
use crate::table::OPTIONS;
use crate::units::Amount;
use crate::{FioError, FioResults, FioSource, JobSet};
use fullstroke_contract::SourceError;
use fullstroke_contract::{Effects, Operation, Request, RequestStatus};
use fullstroke_programs::{
    Call, CallAnswer, Fd, InitialFile, OpenFlags, Program, ProgramAction, ProgramReport,
    ProgramTurn,
};
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors, Seed, Time};
use std::collections::VecDeque;

/// Checks that a job can work on files.
pub(crate) fn check(set: &JobSet, job: &FioJob, section: &JobSection) -> Result<(), FioError> {
    let given = SectionSettings { set, section };
    given.check_options()?;
    given.check_work(job)?;
    given.check_sizes(job)
}

/// Settings of a job's section, with their lines.
#[derive(Clone, Copy)]
struct SectionSettings<'a> {
    set: &'a JobSet,
    section: &'a JobSection,
}

impl SectionSettings<'_> {
    /// Returns the effective setting of these names. The last setting wins, and a job's own
    /// settings win over `[global]`.
    fn find(&self, names: &[&str]) -> Option<&Setting> {
        let own = self.section.own.iter().rev();
        let mut all = own.chain(self.section.inherited.iter().rev());
        all.find(|setting| names.contains(&setting.option.as_str()))
    }

    /// Returns an error at the setting of these names. Without such a setting, the error is at the
    /// section and names the first of `names`.
    fn error(&self, names: &[&str], message: impl Into<String>) -> FioError {
        let setting = self.find(names);
        let line = setting.map_or(self.section.line, |setting| setting.line);
        let option = setting.map_or(names[0], |setting| setting.option.as_str());
        self.set.error(Some(line), option, message)
    }

    /// Checks the options that are not simulated on files: only values without effect are accepted.
    fn check_options(&self) -> Result<(), FioError> {
        for entry in OPTIONS {
            let Some(files) = entry.files else { continue };
            for name in entry.names {
                let Some(found) = self.find(&[name]) else {
                    continue;
                };
                let value = found.value.as_deref().unwrap_or("1");
                if !files.taken.contains(&value) {
                    let expected = files.expected();
                    let message = format!("found `{value}`; in jobs on files {expected}");
                    return Err(self.error(&[name], message));
                }
            }
        }
        Ok(())
    }

    fn check_work(&self, job: &FioJob) -> Result<(), FioError> {
        if job.engine != Engine::Synchronous && job.depth > 1 {
            let engine = self
                .find(&["ioengine"])
                .and_then(|setting| setting.value.as_deref())
                .unwrap_or("psync");
            let message = format!(
                "found {} with ioengine={engine}; on files one call at a time is simulated: expected 1, or ioengine=psync, \
                 with which fio makes it 1",
                job.depth
            );
            return Err(self.error(&["iodepth"], message));
        }
        if job.work.goes(IoDirection::Trim) {
            let message = "files are not trimmed; expected reads and writes";
            return Err(self.error(&["rw", "readwrite"], message));
        }
        if job.files.create_on_open && job.work.goes(IoDirection::Read) {
            let message =
                "the files would have no data to read; expected 0, or a job that only writes";
            return Err(self.error(&["create_on_open"], message));
        }
        let mut names = job.files.names.iter();
        if let Some(device) = names.find(|name| name.starts_with("/dev/")) {
            let message = format!("found `{device}`; expected a file");
            return Err(self.error(&["filename"], message));
        }
        Ok(())
    }

    /// Checks that `size` or `filesize` gives the size of the files, as in fio. A percentage is an
    /// error, because it refers to a device.
    fn check_sizes(&self, job: &FioJob) -> Result<(), FioError> {
        match (job.size, job.file_size) {
            (Some(Amount::Percent(_)), _) => {
                Err(self.error(&["size"], "found a percentage; on files expected bytes"))
            }
            (None, None) => {
                let message = format!(
                    "job [{}] has no file size; set size= or filesize=",
                    job.name
                );
                Err(self.set.error(Some(self.section.line), "size", message))
            }
            _ => Ok(()),
        }
    }
}

impl FilesOfJob {
    /// Returns true if the options describe a job on files.
    fn are_named(&self) -> bool {
        let plain = self.names.iter().any(|name| !name.starts_with("/dev/"));
        self.directory.is_some() || plain || self.number.is_some_and(|number| number > 1)
    }

    fn count(&self) -> u64 {
        if self.names.is_empty() {
            self.number.unwrap_or(1)
        } else {
            self.names.len() as u64
        }
    }

    /// Returns the path of a file, named as by fio.
    fn path(&self, job: &str, clone: u32, file: u64) -> String {
        let name = match self.names.get(file as usize) {
            Some(name) => name.clone(),
            None => format!("{job}.{clone}.{file}"),
        };
        self.directory.as_ref().map_or(name.clone(), |directory| {
            format!(
                "{}/{}",
                directory.trim_end_matches('/'),
                name.trim_start_matches('/')
            )
        })
    }
}

impl JobSet {
    /// Returns true if the jobs work on files. This is so if a job names a directory or a file, or
    /// sets a number of files above 1.
    pub fn is_of_files(&self) -> bool {
        self.jobs.iter().any(|job| job.files.are_named())
    }
}

/// Position of a file in the worker's address space.
#[derive(Clone, Debug)]
struct FilePlace {
    path: String,
    /// First byte in the worker's address space.
    start: u64,
    bytes: u64,
}

/// Returns the lengths of the job's files. If `size` is not divisible by the number of files, the
/// first files are one block longer, as in fio.
fn lengths(job: &FioJob) -> Result<Vec<u64>, Misfit> {
    let count = job.files.count();
    let offset = bytes(job.offset, 0);
    if let Some(each) = job.file_size {
        return Ok(vec![each; count as usize]);
    }
    let block = job
        .used_blocks()
        .map(crate::job::Blocks::smallest)
        .min()
        .unwrap_or(SECTOR_BYTES)
        .max(1);
    let blocks = bytes(job.size.unwrap_or(Amount::Bytes(0)), 0) / block;
    if blocks < count {
        return Err((
            "size",
            format!("{blocks} blocks of {block} bytes are fewer than {count} files"),
        ));
    }
    let of = |file: u64| offset + (blocks / count + u64::from(file < blocks % count)) * block;
    Ok((0..count).map(of).collect())
}

/// Returns the files of a clone.
fn places(job: &FioJob, clone: u32) -> Result<Vec<FilePlace>, Misfit> {
    let mut start = 0u64;
    let lay = |(file, bytes): (usize, u64)| {
        let place = FilePlace {
            path: job.files.path(&job.name, clone, file as u64),
            start,
            bytes,
        };
        start = start.saturating_add(bytes.next_multiple_of(SECTOR_BYTES));
        place
    };
    Ok(lengths(job)?.into_iter().enumerate().map(lay).collect())
}

fn ground(job: &FioJob, clone: u32) -> Result<Ground, Misfit> {
    let all_of_it = FioJob {
        size: None,
        file_size: None,
        ..job.clone()
    };
    let regions = places(job, clone)?.into_iter().map(|place| {
        let region = region(&all_of_it, 0, Sectors(place.bytes / SECTOR_BYTES))?;
        Ok(CloneRegion {
            start: place.start + region.start,
            ..region
        })
    });
    let regions = regions.collect::<Result<Vec<CloneRegion>, Misfit>>()?;
    let length = regions.iter().map(|region| region.length).sum();
    let said = job.size.map(|size| bytes(size, 0));
    let (iteration, limit) = amounts(
        job,
        length,
        said,
        job.io_size.map(|size| bytes(size, length)),
    );
    Ok(Ground {
        whole: CloneRegion {
            start: 0,
            length,
            iteration,
            limit,
        },
        regions,
    })
}

/// A call of a process. The number is the index of the file.
#[derive(Clone, Copy, Debug)]
enum FileCall {
    Open(usize),
    Read(usize, u64, u64),
    Write(usize, u64, u64),
    Fsync(usize),
    Close(usize),
}

/// A clone of a job as a process.
struct JobProcess {
    how: OpenFlags,
    places: Vec<FilePlace>,
    open: Vec<bool>,
    steps: VecDeque<FileCall>,
    /// `request` is the request that ends with the last step. `asked` is the length of the running
    /// transfer in bytes.
    request: Option<u32>,
    asked: Option<u64>,
    ended: bool,
}

/// Jobs on files as a program.
pub struct FioProgram {
    set: JobSet,
    source: FioSource,
    processes: Vec<JobProcess>,
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
        let source = FioSource::on(set, &ground, seed, requests, None)?;
        let mut processes = Vec::with_capacity(set.workers());
        for job in &set.jobs {
            for clone in 0..job.clones {
                let places = places(job, clone)
                    .map_err(|(option, message)| set.error(Some(job.line), option, message))?;
                processes.push(JobProcess::new(job, places));
            }
        }
        Ok(FioProgram {
            set: set.clone(),
            source,
            processes,
            out: Effects::new(),
        })
    }

    /// Returns the results so far. They are complete when the run is over.
    pub fn results(&self) -> FioResults {
        self.source
            .results()
            .without_ignored(|name| !is_ignored(name))
    }

    /// Converts requests of the workers into steps of their processes.
    fn collect(&mut self) {
        for request in self.out.requests() {
            let number = request.hints.process as usize - 1;
            let process = &mut self.processes[number];
            process.request = Some(request.id.0 as u32);
            if request.operation == Operation::Flush {
                self.source
                    .worker(number)
                    .flushed_files()
                    .for_each(|file| process.fsync(file));
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
            let job = &self.source.worker(number).job;
            SourceError(format!(
                "job [{}], line {}: {}: {error}",
                job.name,
                job.line,
                answer.kind.name()
            ))
        })?;
        let asked = process.asked.take();
        if !process.steps.is_empty() {
            return Ok(());
        }
        if let Some(slot) = process.request.take() {
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
    fn new(job: &FioJob, places: Vec<FilePlace>) -> JobProcess {
        let write = job.work != JobDirections::Only(IoDirection::Read);
        let how = OpenFlags {
            write,
            create: write,
            direct: job.direct,
            durable: job.durable_writes,
            ..OpenFlags::READ
        };
        let open = vec![false; places.len()];
        JobProcess {
            how,
            places,
            open,
            steps: VecDeque::new(),
            request: None,
            asked: None,
            ended: false,
        }
    }

    fn opened(&mut self, file: usize) {
        if !std::mem::replace(&mut self.open[file], true) {
            self.steps.push_back(FileCall::Open(file));
        }
    }

    fn fsync(&mut self, file: usize) {
        self.opened(file);
        self.steps.push_back(FileCall::Fsync(file));
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
            .flat_map(|job| (0..job.clones).map(move |_| job));
        let mut laid = Vec::new();
        for (job, process) in jobs.zip(&self.processes) {
            let directory = job.files.directory.iter();
            laid.extend(directory.map(|path| InitialFile {
                path: path.clone(),
                bytes: None,
            }));
            if job.work.goes(IoDirection::Read) || job.files.overwrite {
                let file = |place: &FilePlace| InitialFile {
                    path: place.path.clone(),
                    bytes: Some(Bytes(place.bytes)),
                };
                laid.extend(process.places.iter().map(file));
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
        loop {
            if let Some(step) = self.processes[number].steps.pop_front() {
                return ProgramAction::Call(self.processes[number].call(step));
            }
            if self.source.worker(number).has_ended() {
                if std::mem::replace(&mut self.processes[number].ended, true) {
                    return ProgramAction::End;
                }
                self.processes[number].close_all();
                continue;
            }
            let alarm = self.source.worker(number).alarm();
            if alarm == Time::NEVER {
                return ProgramAction::Wait;
            }
            if alarm > now {
                return ProgramAction::Compute(alarm.since(now));
            }
            self.source.go_on(now, turn.process, &mut self.out);
            self.collect();
        }
    }

    /// Returns the report in fio's format.
    fn report(&self) -> ProgramReport {
        let results = self.results();
        let mut report = results.report(Vec::new(), Duration::ZERO);
        let ignored = std::mem::take(&mut report.ignored);
        ProgramReport {
            figures: results.figures(),
            text: report.to_string(),
            notes: ignored
                .iter()
                .map(|one| format!("`{}` changes nothing: {}", one.name, one.why))
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
