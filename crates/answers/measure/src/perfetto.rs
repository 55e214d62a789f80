//! A window of a run as a trace that Perfetto shows (ui.perfetto.dev).
//!
//! Workloads and drives are its processes. A request is a slice from its arrival
//! to its end; a drive has a track for each slot of its queue that is taken, and
//! one for its arm. Flows lead from a request to what it had drives do. The
//! queue of each drive, and the requests under way, are counters. Several runs stand on
//! one timeline, each with processes of its own.
//!
//! | file | what |
//! |---|---|
//! | `slices.rs` | what is shown: tracks, slices, flows |
//! | `wire.rs` | how that is written: Perfetto's messages in protobuf's encoding |

mod slices;
mod wire;

#[cfg(test)]
mod tests;

use fullstroke_contract::{Completion, Extent, Operation, Request, RequestId};
use fullstroke_engine::Finished;
use fullstroke_units::Time;
use std::collections::HashMap;

/// A trace holds so many requests of workloads and drives together, unless said.
pub const PERFETTO_REQUESTS: usize = 20_000;

/// What part of a run is shown: what began at `from` or later and ended at `to`
/// or earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfettoWindow {
    /// The first instant.
    pub from: Time,
    /// The last instant.
    pub to: Time,
    /// Requests of workloads and drives together; the window ends before there
    /// are more.
    pub requests: usize,
}

impl PerfettoWindow {
    /// The same for each of so many runs that one trace shows: what a trace holds is theirs together.
    #[must_use]
    pub fn shared_by(self, runs: usize) -> PerfettoWindow {
        PerfettoWindow {
            requests: (self.requests / runs.max(1)).max(1),
            ..self
        }
    }
}

impl Default for PerfettoWindow {
    fn default() -> PerfettoWindow {
        PerfettoWindow {
            from: Time::ZERO,
            to: Time::NEVER,
            requests: PERFETTO_REQUESTS,
        }
    }
}

/// A finished trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfettoFile {
    /// What the file holds.
    pub bytes: Vec<u8>,
    /// Requests of workloads and drives that it shows.
    pub requests: usize,
    /// Where it was cut short, if there were more than the window takes.
    pub cut: Option<Time>,
}

/// What was kept of a run that is over, with the names of its workloads, where there are several, and
/// of its drives.
#[derive(Clone, Debug)]
pub struct PerfettoRun {
    trace: PerfettoTrace,
    workloads: Vec<String>,
    drives: Vec<String>,
}

impl PerfettoFile {
    /// The trace of a run.
    pub fn of(run: &PerfettoRun) -> PerfettoFile {
        PerfettoFile::of_all(&[(None, run)])
    }

    /// The trace of several runs, whose processes are told apart by the names given here. Where one
    /// was cut short, none shows more.
    pub fn of_all(runs: &[(Option<&str>, &PerfettoRun)]) -> PerfettoFile {
        let cut = runs.iter().filter_map(|(_, run)| run.trace.cut).min();
        let mut shown = slices::Shown::default();
        for (name, run) in runs {
            shown.add(*name, run, cut.unwrap_or(run.trace.window.to));
        }
        PerfettoFile {
            bytes: wire::write(&shown),
            requests: shown.requests,
            cut,
        }
    }
}

/// Keeps what happens within a window.
#[derive(Clone, Debug)]
pub struct PerfettoTrace {
    window: PerfettoWindow,
    cut: Option<Time>,
    /// The end of what was kept last.
    last: Time,
    given: HashMap<(Server, RequestId), Given>,
    requests: Vec<Finished>,
    served: Vec<Served>,
    /// When requests that overlap the window were under way.
    under_way: Vec<(Time, Time)>,
    /// By drive: requests in it.
    inside: Vec<u32>,
    /// What that became, and when.
    depths: Vec<Depth>,
}

/// A drive or, of one that has several, an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Server {
    drive: usize,
    arm: Option<usize>,
}

/// A request that a drive or an arm was given.
#[derive(Clone, Copy, Debug)]
struct Given {
    origin: u64,
    operation: Operation,
    extent: Extent,
}

/// The same once it has been answered.
#[derive(Clone, Copy, Debug)]
struct Served {
    server: Server,
    given: Given,
    completion: Completion,
}

#[derive(Clone, Copy, Debug)]
struct Depth {
    at: Time,
    drive: usize,
    requests: u32,
}

impl PerfettoTrace {
    /// The trace of a run that begins.
    pub fn new(window: PerfettoWindow) -> PerfettoTrace {
        PerfettoTrace {
            window,
            cut: None,
            last: window.from,
            given: HashMap::new(),
            requests: Vec::new(),
            served: Vec::new(),
            under_way: Vec::new(),
            inside: Vec::new(),
            depths: Vec::new(),
        }
    }

    /// What there is once the run is over. `workloads` has the names of the
    /// workloads where there are several, `drives` those of the drives.
    pub fn finish(self, workloads: Vec<String>, drives: Vec<String>) -> PerfettoRun {
        PerfettoRun {
            trace: self,
            workloads,
            drives,
        }
    }

    pub(crate) fn drive_io(&mut self, now: Time, drive: usize, request: &Request) {
        self.depth(now, drive, 1);
        self.give(now, Server { drive, arm: None }, request);
    }

    pub(crate) fn drive_done(&mut self, drive: usize, completion: &Completion) {
        self.depth(completion.finished, drive, u32::MAX);
        self.serve(Server { drive, arm: None }, completion);
    }

    pub(crate) fn arm_io(&mut self, now: Time, drive: usize, arm: usize, request: &Request) {
        self.give(
            now,
            Server {
                drive,
                arm: Some(arm),
            },
            request,
        );
    }

    pub(crate) fn arm_done(&mut self, drive: usize, arm: usize, completion: &Completion) {
        self.serve(
            Server {
                drive,
                arm: Some(arm),
            },
            completion,
        );
    }

    pub(crate) fn finished(&mut self, finished: &Finished) {
        let (begin, end) = (finished.arrived, finished.completion.finished);
        if begin > self.window.to || end < self.window.from {
            return;
        }
        self.under_way.push((begin, end));
        if self.takes(begin, end) {
            self.requests.push(*finished);
        }
    }

    fn give(&mut self, now: Time, server: Server, request: &Request) {
        if self.holds(now) {
            let Request {
                origin,
                operation,
                extent,
                ..
            } = *request;
            self.given.insert(
                (server, request.id),
                Given {
                    origin,
                    operation,
                    extent,
                },
            );
        }
    }

    fn serve(&mut self, server: Server, completion: &Completion) {
        let Some(given) = self.given.remove(&(server, completion.id)) else {
            return;
        };
        if self.takes(completion.submitted, completion.finished) {
            self.served.push(Served {
                server,
                given,
                completion: *completion,
            });
        }
    }

    /// Whether there is room for what lasted from `begin` to `end`. Where there
    /// is none the window ends with what was kept before.
    fn takes(&mut self, begin: Time, end: Time) -> bool {
        if !(self.holds(begin) && self.holds(end)) {
            return false;
        }
        if self.requests.len() + self.served.len() >= self.window.requests {
            self.window.to = self.last;
            self.cut = Some(self.last);
            return false;
        }
        self.last = self.last.max(end);
        true
    }

    fn depth(&mut self, at: Time, drive: usize, step: u32) {
        if self.inside.len() <= drive {
            self.inside.resize(drive + 1, 0);
        }
        let inside = &mut self.inside[drive];
        *inside = inside.wrapping_add(step);
        let requests = *inside;
        if self.holds(at) {
            self.depths.push(Depth {
                at,
                drive,
                requests,
            });
        }
    }

    fn holds(&self, at: Time) -> bool {
        (self.window.from..=self.window.to).contains(&at)
    }
}
