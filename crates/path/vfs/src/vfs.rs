//! The node with programs at the top and requests to the device at the bottom.

use crate::config::FilesConfig;
use crate::kernel::VfsKernel;
use crate::laying::lay_out;
use crate::readings;
use crate::series::SampleSeries;
use crate::tally::CallTally;
use crate::task::ProcessIdentity;
use fullstroke_contract::{
    Alarms, Completion, ConfigError, Counters, DatasetStart, Effects, Node, NodeContext, Notice,
    Port, Signal, Source, SourceError, Wake,
};
use fullstroke_files::{FileSystem, FileSystemSite};
use fullstroke_memory::{PAGE_BYTES, PageCache};
use fullstroke_programs::{CallAnswer, CallKind, Events, Program, ProgramAction, ProgramTurn};
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Duration, Time};
use std::any::Any;
use std::sync::Arc;

/// A program of a host.
pub struct Started {
    /// Name in results.
    pub name: String,
    /// Path of the program's file, for errors; `None` for a program without a file.
    pub file: Option<String>,
    /// The program.
    pub program: Box<dyn Program>,
    /// Start time.
    pub start: Duration,
    /// True if the run ends without waiting for the program.
    pub background: bool,
    /// Number among the stack's workloads.
    pub workload: u16,
    /// Offset of the process numbers; the numbers begin at 1.
    pub first_process: u32,
}

/// The resources of a host for its programs.
pub struct Equipment<'a> {
    /// The file system.
    pub files: &'a FilesConfig,
    /// The page cache; must be empty.
    pub cache: PageCache,
    /// Place of the file system, with the tracks for its files.
    pub site: FileSystemSite,
    /// Boundaries of read-ahead windows.
    pub windows: Option<Arc<Boundaries>>,
    /// True to age the file system by its keys. A file system for a mere check of the configuration
    /// need not be aged.
    pub aged: bool,
    /// Calls that end before this time are not counted.
    pub counted_from: Time,
}

/// Programs above a file system above a page cache.
///
/// - **Events in**: `wake`, `completed`.
/// - **Effects out**: `issue` to the only member.
///
/// Each process makes one call at a time. A call changes names and lengths at once. Then the call
/// carries out its steps one after another: metadata in memory, pages of the cache, the journal.
/// The call ends with its processor time.
pub struct Vfs {
    running: Vec<RunningProgram>,
    processes: Vec<ProgramProcess>,
    /// Times of the next actions of processes.
    alarms: Alarms,
    kernel: VfsKernel,
    events: Events,
    counted_from: Time,
    /// Calls of all programs.
    tally: CallTally,
    /// Dirty memory over time, in 10^6 bytes.
    dirty: SampleSeries,
    /// Name of the host.
    name: String,
}

struct RunningProgram {
    started: Started,
    /// Index of the first process.
    first: u32,
    /// Number of processes that have not ended.
    alive: u32,
    /// Processes waiting for the progress of another process.
    waiting: Vec<u32>,
    tally: CallTally,
    /// Time when the last process ended.
    ended: Time,
}

/// State of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessState {
    /// The process computes, or is about to be asked for its next action.
    Computes,
    /// A call of this kind is in flight since this time.
    Calls(CallKind, Time),
    /// The process waits for other processes of the program.
    Waits,
    /// The process has waited and is about to be asked again.
    Woken,
    Over,
}

struct ProgramProcess {
    program: u32,
    state: ProcessState,
    answer: Option<CallAnswer>,
}

impl Vfs {
    /// Returns programs on a new file system with their files.
    ///
    /// # Errors
    /// A device without enough space for the file system, at the key, or for the files, at ``.
    pub fn new(started: Vec<Started>, equipment: Equipment<'_>) -> Result<Vfs, ConfigError> {
        let Equipment {
            files,
            cache,
            site,
            windows,
            aged,
            counted_from,
        } = equipment;
        let mut fs = files.build(&site, aged)?;
        for one in &started {
            lay_out(&mut *fs, &one.program.laid_out()).map_err(|error| {
                ConfigError::new("", format!("files of `{}`: {error}", one.name))
            })?;
        }
        let mut kernel = VfsKernel::new(fs, cache, &site, files.settings());
        kernel.tracks = windows;
        let mut processes = Vec::new();
        let mut running = Vec::new();
        for (index, started) in started.into_iter().enumerate() {
            let (first, count) = (processes.len() as u32, started.program.processes());
            for number in 0..count {
                kernel.threads.add_process(ProcessIdentity {
                    process: started.first_process + number + 1,
                    workload: started.workload,
                });
                processes.push(ProgramProcess {
                    program: index as u32,
                    state: ProcessState::Computes,
                    answer: None,
                });
            }
            running.push(RunningProgram {
                started,
                first,
                alive: count,
                waiting: Vec::new(),
                tally: CallTally::default(),
                ended: Time::ZERO,
            });
        }
        let mut alarms = Alarms::new(processes.len().max(1));
        for (number, process) in processes.iter().enumerate() {
            alarms.set(
                number,
                Time::ZERO + running[process.program as usize].started.start,
            );
        }
        let (events, tally) = (Events::default(), CallTally::default());
        Ok(Vfs {
            running,
            processes,
            alarms,
            kernel,
            events,
            counted_from,
            tally,
            dirty: SampleSeries::default(),
            name: String::new(),
        })
    }

    /// Returns the node with a name for the host.
    #[must_use]
    pub fn called(self, name: &str) -> Vfs {
        Vfs {
            name: name.to_owned(),
            ..self
        }
    }

    /// Returns the file system in its present state, without the programs.
    pub fn into_file_system(self) -> Box<dyn FileSystem> {
        self.kernel.fs
    }

    /// Returns the objects, for a pool below.
    pub fn dataset(&self) -> DatasetStart {
        crate::dataset::at_start(&*self.kernel.fs, false)
    }

    /// Returns the first program of this type, for results beyond its report.
    pub fn program<P: Program>(&self) -> Option<&P> {
        let programs = self
            .running
            .iter()
            .map(|running| &*running.started.program as &dyn Any);
        programs.filter_map(|program| program.downcast_ref()).next()
    }

    /// True if every program in the foreground has ended.
    fn is_over(&self) -> bool {
        self.running
            .iter()
            .all(|running| running.started.background || running.alive == 0)
    }

    /// Carries out all due work.
    fn advance(&mut self, now: Time, out: &mut Effects) {
        loop {
            self.kernel.carry_out(now, out);
            while let Some(process) = self.kernel.threads.next_ended() {
                self.end_call(now, process);
            }
            let cache = &self.kernel.cache;
            self.dirty
                .sample(now, || (cache.gauges().dirty * PAGE_BYTES) as f64 / 1e6);
            let (process, at) = self.alarms.first();
            // After the end of the foreground, background programs make no further calls.
            if at > now || self.is_over() {
                return;
            }
            self.ask(now, process as u32, out);
        }
    }

    /// Ends a call after its last step; the processor time of the call follows.
    fn end_call(&mut self, now: Time, number: u32) {
        let thread = &mut self.kernel.threads[number];
        let result = std::mem::replace(&mut thread.result, Ok(0));
        let ended = now + self.kernel.settings.cost(thread.copied);
        let process = &mut self.processes[number as usize];
        let ProcessState::Calls(kind, began) = process.state else {
            // The end of a process has closed its open files.
            return;
        };
        let running = &mut self.running[process.program as usize];
        // As for requests, the end of a call decides whether the call belongs to the warm-up.
        if ended >= self.counted_from {
            let moves = matches!(kind, CallKind::Read | CallKind::Write);
            let bytes = result
                .as_ref()
                .ok()
                .map(|&bytes| if moves { bytes } else { 0 });
            self.tally.call(kind, ended.since(began), bytes);
        }
        let own = |at: Time| own_time(at, running.started.start);
        process.answer = Some(CallAnswer {
            kind,
            began: own(began),
            ended: own(ended),
            result,
        });
        process.state = ProcessState::Computes;
        self.alarms.set(number as usize, ended);
    }

    /// Asks a process for its next action.
    fn ask(&mut self, now: Time, number: u32, out: &mut Effects) {
        let process = &mut self.processes[number as usize];
        let running = &mut self.running[process.program as usize];
        let answer = process.answer.take();
        let start = running.started.start;
        let turn = ProgramTurn {
            now: own_time(now, start),
            process: number - running.first,
            answer: answer.as_ref(),
            events: &mut self.events,
        };
        let mut alarm = Time::NEVER;
        let next = running.started.program.next(turn);
        // A process that wakes and waits again has changed nothing, and wakes nobody. Otherwise two
        // waiting processes would wake each other for ever.
        let goes_on = process.state != ProcessState::Woken || next != ProgramAction::Wait;
        match next {
            ProgramAction::Call(call) => {
                let kind = self.kernel.begin(now, number, &call);
                process.state = ProcessState::Calls(kind, now);
            }
            ProgramAction::Compute(time) => {
                process.state = ProcessState::Computes;
                // The sum may overflow: a recording may contain any time, and a factor multiplies
                // the time.
                alarm = now.capped_add(time);
            }
            ProgramAction::Wait => {
                process.state = ProcessState::Waits;
                running.waiting.push(number);
            }
            ProgramAction::End => {
                process.state = ProcessState::Over;
                running.alive -= 1;
                running.ended = now;
                self.kernel.close_all(now, number);
            }
            ProgramAction::Fail(error) => {
                let Started { name, file, .. } = &running.started;
                let file = file
                    .as_ref()
                    .map_or(String::new(), |file| format!("{file}: "));
                out.stop(SourceError(format!("{name}: {file}{error}")));
            }
        }
        self.alarms.set(number as usize, alarm);
        for ended in self.events.transactions.drain(..) {
            if now >= self.counted_from {
                let took = own_time(now, start).since(ended.began);
                running.tally.transaction(ended.kind, took);
            }
        }
        self.wake_those_who_wait(now, number, goes_on, out);
    }

    /// Wakes the waiting processes of a program after another process has gone on. If all remaining
    /// processes wait, none can ever go on, and the run stops with an error.
    fn wake_those_who_wait(&mut self, now: Time, by: u32, goes_on: bool, out: &mut Effects) {
        let running = &mut self.running[self.processes[by as usize].program as usize];
        if goes_on {
            let woken = running.waiting.extract_if(.., |number| *number != by);
            for number in woken {
                self.processes[number as usize].state = ProcessState::Woken;
                self.alarms.set(number as usize, now);
            }
        }
        if !running.waiting.is_empty() && running.waiting.len() as u32 == running.alive {
            let name = &running.started.name;
            out.stop(SourceError(format!(
                "{name}: deadlock, all remaining processes wait for each other"
            )));
        }
    }
}

/// Returns a program's own time at `now`.
fn own_time(now: Time, start: Duration) -> Time {
    Time::ZERO + since(Time::ZERO + start, now)
}

impl Node for Vfs {
    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.kernel.commit_if_due(now);
        self.kernel.cache.wake(now, self.kernel.todo.list());
        self.advance(now, cx.out);
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        self.kernel
            .completed(now, completion.id.0 as u32, completion.status);
        self.advance(now, cx.out);
    }

    /// Handles PULL, and the begin and the end of cleaning. All other notices are ignored.
    fn noticed(&mut self, now: Time, _: Port, notice: Notice, cx: &mut NodeContext<'_>) {
        match notice.signal {
            Signal::Pull { extent, sectors } => {
                self.kernel.pull(now, extent, sectors);
                self.advance(now, cx.out);
            }
            Signal::CleaningBegan => self.kernel.cache.note_cleaning(true),
            Signal::CleaningEnded => self.kernel.cache.note_cleaning(false),
            _ => {}
        }
    }

    /// The regular work of the cache and the journal never ends, and must not keep a run alive.
    /// Work for a process does.
    fn next_wake(&self) -> Wake {
        let own = self.kernel.cache.next_wake().min(self.kernel.next_commit());
        if self.is_over() {
            Wake::Chore(own)
        } else {
            Wake::Work(own.min(self.alarms.first().1))
        }
    }

    fn count(&self, now: Time, counters: &mut Counters) {
        let mut host = readings::of_host(&self.kernel, &self.tally, since(self.counted_from, now));
        for running in &self.running {
            let RunningProgram {
                started,
                tally,
                alive,
                ended,
                ..
            } = running;
            let from = self.counted_from.max(Time::ZERO + started.start);
            let until = if *alive == 0 { *ended } else { now };
            let elapsed = since(from, until);
            host.programs.push(readings::of_program(
                &started.name,
                &*started.program,
                tally,
                elapsed,
            ));
        }
        host.name.clone_from(&self.name);
        let seconds = |at: Time| at.since(Time::ZERO).as_secs_f64();
        host.dirty_mb = self
            .dirty
            .samples()
            .iter()
            .map(|&(at, mb)| (seconds(at), mb))
            .collect();
        counters.hosts.push(host);
        let name = Some(&*self.name).filter(|name| !name.is_empty());
        counters.layers.push(self.kernel.cache.readings_of(name));
    }
}

/// Returns the time from `then` to `now`; 0 if `then` is later.
fn since(then: Time, now: Time) -> Duration {
    if now > then {
        now.since(then)
    } else {
        Duration::ZERO
    }
}

impl Source for Vfs {}
