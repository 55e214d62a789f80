//! The node: programs at the top, requests to the device at the bottom.

use crate::config::FilesConfig;
use crate::kernel::{Identity, Kernel};
use crate::laying::lay_out;
use crate::readings;
use crate::series::Series;
use crate::tally::Tally;
use fullstroke_contract::{
    Alarms, Completion, ConfigError, Counters, Cx, Node, Notice, Out, Port, Signal, Source,
    SourceError, Wake,
};
use fullstroke_files::{FileSystem, Site};
use fullstroke_memory::{Cache, PAGE_BYTES};
use fullstroke_programs::{Answer, CallKind, Events, Next, Program, Turn};
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Duration, Time};
use std::any::Any;
use std::sync::Arc;

/// A program of a host.
pub struct Started {
    /// What it is called in results.
    pub name: String,
    /// The file that it was read from, if it was, for errors.
    pub file: Option<String>,
    /// The program.
    pub program: Box<dyn Program>,
    /// When it begins.
    pub start: Duration,
    /// Whether the run ends without waiting for it.
    pub background: bool,
    /// Its number among the stack's workloads.
    pub workload: u16,
    /// Added to the numbers of its processes, which begin at 1.
    pub first_process: u32,
}

/// What a host has for its programs.
pub struct Equipment<'a> {
    /// The file system.
    pub files: &'a FilesConfig,
    /// The page cache, empty.
    pub cache: Cache,
    /// Where the file system is made, and which tracks its files keep to.
    pub site: Site,
    /// Where windows of read-ahead end.
    pub windows: Option<Arc<Boundaries>>,
    /// Whether it is aged, if its keys say so: what is made to see whether it can be
    /// need not be.
    pub aged: bool,
    /// What ended before is not counted.
    pub counted_from: Time,
}

/// Programs above a file system above a page cache.
///
/// - **Events in**: `wake`, `completed`.
/// - **Effects out**: `issue` to the one member.
///
/// Each process makes one call at a time. A call changes names and lengths at once;
/// then it goes through what it needs, metadata in memory, pages of the cache, the
/// journal, one after another, and ends with the processor's time for it.
pub struct Vfs {
    running: Vec<Running>,
    processes: Vec<Process>,
    /// When each process goes on.
    alarms: Alarms,
    kernel: Kernel,
    events: Events,
    counted_from: Time,
    /// Calls of all programs.
    tally: Tally,
    /// Dirty memory in 10^6 bytes.
    dirty: Series,
    /// What the host is called.
    name: String,
}

struct Running {
    started: Started,
    /// Its first process here, and how many there are.
    first: u32,
    /// Processes that have not ended.
    alive: u32,
    /// Those that wait until another has gone on.
    waiting: Vec<u32>,
    tally: Tally,
    /// When its last process ended.
    ended: Time,
}

/// What a process does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It computes, or is about to be asked.
    Computes,
    /// A call of this kind is under way, since then.
    Calls(CallKind, Time),
    /// It waits for its like.
    Waits,
    /// It waited, and is about to be asked again.
    Woken,
    Over,
}

struct Process {
    program: u32,
    state: State,
    answer: Option<Answer>,
}

impl Vfs {
    /// Programs on a new file system, with the files laid out that they need.
    ///
    /// # Errors
    /// A device that is too small for the file system, at its key; files that do not
    /// fit, at ``.
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
        let mut kernel = Kernel::new(fs, cache, site.capacity, files.settings());
        kernel.tracks = windows;
        let mut processes = Vec::new();
        let mut running = Vec::new();
        for (index, started) in started.into_iter().enumerate() {
            let (first, count) = (processes.len() as u32, started.program.processes());
            for number in 0..count {
                kernel.add_process(Identity {
                    process: started.first_process + number + 1,
                    workload: started.workload,
                });
                processes.push(Process {
                    program: index as u32,
                    state: State::Computes,
                    answer: None,
                });
            }
            running.push(Running {
                started,
                first,
                alive: count,
                waiting: Vec::new(),
                tally: Tally::default(),
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
        let (events, tally) = (Events::default(), Tally::default());
        Ok(Vfs {
            running,
            processes,
            alarms,
            kernel,
            events,
            counted_from,
            tally,
            dirty: Series::default(),
            name: String::new(),
        })
    }

    /// The same, of a host of this name.
    #[must_use]
    pub fn called(self, name: &str) -> Vfs {
        Vfs {
            name: name.to_owned(),
            ..self
        }
    }

    /// The file system, as it is, without the programs.
    pub fn into_file_system(self) -> Box<dyn FileSystem> {
        self.kernel.fs
    }

    /// The first program of this type: for results of its own.
    pub fn program<P: Program>(&self) -> Option<&P> {
        let programs = self
            .running
            .iter()
            .map(|running| &*running.started.program as &dyn Any);
        programs.filter_map(|program| program.downcast_ref()).next()
    }

    /// Whether every program in the foreground has ended.
    fn is_over(&self) -> bool {
        self.running
            .iter()
            .all(|running| running.started.background || running.alive == 0)
    }

    /// Everything that is due happens.
    fn advance(&mut self, now: Time, out: &mut Out) {
        loop {
            self.kernel.carry_out(now, out);
            while let Some(process) = self.kernel.ended.pop_front() {
                self.end_call(now, process);
            }
            let cache = &self.kernel.cache;
            self.dirty
                .sample(now, || (cache.gauges().dirty * PAGE_BYTES) as f64 / 1e6);
            let (process, at) = self.alarms.first();
            if at > now || self.is_over() {
                return;
            }
            self.ask(now, process as u32, out);
        }
    }

    /// A call has got all that it waited for; the processor takes its time.
    fn end_call(&mut self, now: Time, number: u32) {
        let thread = &mut self.kernel.threads[number];
        let result = std::mem::replace(&mut thread.result, Ok(0));
        let ended = now + self.kernel.settings.cost(thread.copied);
        let process = &mut self.processes[number as usize];
        let State::Calls(kind, began) = process.state else {
            // What it had open was closed as it ended.
            return;
        };
        let running = &mut self.running[process.program as usize];
        if ended >= self.counted_from {
            let moves = matches!(kind, CallKind::Read | CallKind::Write);
            let bytes = result
                .as_ref()
                .ok()
                .map(|&bytes| if moves { bytes } else { 0 });
            self.tally.call(kind, ended.since(began), bytes);
        }
        let own = |at: Time| own_time(at, running.started.start);
        process.answer = Some(Answer {
            kind,
            began: own(began),
            ended: own(ended),
            result,
        });
        process.state = State::Computes;
        self.alarms.set(number as usize, ended);
    }

    /// A process is asked what it does next.
    fn ask(&mut self, now: Time, number: u32, out: &mut Out) {
        let process = &mut self.processes[number as usize];
        let running = &mut self.running[process.program as usize];
        let answer = process.answer.take();
        let start = running.started.start;
        let turn = Turn {
            now: own_time(now, start),
            process: number - running.first,
            answer: answer.as_ref(),
            events: &mut self.events,
        };
        let mut alarm = Time::NEVER;
        let next = running.started.program.next(turn);
        let goes_on = process.state != State::Woken || next != Next::Wait;
        match next {
            Next::Call(call) => {
                let kind = self.kernel.begin(now, number, &call);
                process.state = State::Calls(kind, now);
            }
            Next::Compute(time) => {
                process.state = State::Computes;
                // A recording may say any span, and a factor multiplies it.
                alarm = now.capped_add(time);
            }
            Next::Wait => {
                process.state = State::Waits;
                running.waiting.push(number);
            }
            Next::End => {
                process.state = State::Over;
                running.alive -= 1;
                running.ended = now;
                self.kernel.close_all(now, number);
            }
            Next::Fail(error) => {
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

    /// Those of a program who wait are asked again when another has gone on. If all
    /// that are left wait, nobody ever will.
    fn wake_those_who_wait(&mut self, now: Time, by: u32, goes_on: bool, out: &mut Out) {
        let running = &mut self.running[self.processes[by as usize].program as usize];
        if goes_on {
            let woken = running.waiting.extract_if(.., |number| *number != by);
            for number in woken {
                self.processes[number as usize].state = State::Woken;
                self.alarms.set(number as usize, now);
            }
        }
        if !running.waiting.is_empty() && running.waiting.len() as u32 == running.alive {
            let name = &running.started.name;
            out.stop(SourceError(format!(
                "{name}: all processes that are left wait for each other"
            )));
        }
    }
}

/// A program's own time at `now`.
fn own_time(now: Time, start: Duration) -> Time {
    Time::ZERO + since(Time::ZERO + start, now)
}

impl Node for Vfs {
    fn wake(&mut self, now: Time, cx: &mut Cx<'_>) {
        self.kernel.commit_if_due(now);
        self.kernel.cache.wake(now, &mut self.kernel.todo);
        self.advance(now, cx.out);
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut Cx<'_>) {
        self.kernel
            .completed(now, completion.id.0 as u32, completion.status);
        self.advance(now, cx.out);
    }

    /// PULL is heeded; nothing else that storage says is.
    fn noticed(&mut self, now: Time, _: Port, notice: Notice, cx: &mut Cx<'_>) {
        if let Signal::Pull { extent, sectors } = notice.signal {
            self.kernel.pull(now, extent, sectors);
            self.advance(now, cx.out);
        }
    }

    /// What the cache and the journal do by themselves goes on for ever; what
    /// somebody waits for does not.
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
            let Running {
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

/// From then to `now`, if that is later.
fn since(then: Time, now: Time) -> Duration {
    if now > then {
        now.since(then)
    } else {
        Duration::ZERO
    }
}

impl Source for Vfs {}
