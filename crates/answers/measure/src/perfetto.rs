//! Writes a window of a run as a trace for Perfetto (ui.perfetto.dev).
//!
//! Workloads and drives are processes of the trace. A request is a slice from arrival to
//! completion. A drive has a track for each occupied slot of the queue, and one for the arm. Flows
//! lead from a request to its drive I/Os. The queue of each drive, and the requests in flight, are
//! counters. Several runs share one timeline, each with processes of its own.
//!
//! | file | contents |
//! |---|---|
//! | `slices.rs` | tracks, slices and flows |
//! | `wire.rs` | the file format: Perfetto's messages in protobuf's encoding |

mod slices;
mod wire;

#[cfg(test)]
mod tests;

use fullstroke_contract::{Completion, Extent, Operation, Request, RequestId};
use fullstroke_engine::Finished;
use fullstroke_units::Time;
use std::collections::HashMap;

/// Default limit of requests of workloads and drives together in a trace.
pub const PERFETTO_REQUESTS: usize = 20_000;

/// Window of a run: events that began at `from` or later and ended at `to` or earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfettoWindow {
    /// The first instant.
    pub from: Time,
    /// The last instant.
    pub to: Time,
    /// Largest number of requests of workloads and drives together. The window ends before this
    /// number is exceeded.
    pub requests: usize,
}

impl PerfettoWindow {
    /// Divides the number of requests among `runs` runs of one trace.
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
    /// Contents of the file.
    pub bytes: Vec<u8>,
    /// Number of requests of workloads and drives in the trace.
    pub requests: usize,
    /// Time where the trace was cut, if there were more requests than the window allows.
    pub cut: Option<Time>,
}

/// Records of a finished run, with the names of its drives and, if there are several, of its
/// workloads.
#[derive(Clone, Debug)]
pub struct PerfettoRun {
    trace: PerfettoTrace,
    workloads: Vec<String>,
    drives: Vec<String>,
}

impl PerfettoFile {
    /// Writes the trace of a run.
    pub fn of(run: &PerfettoRun) -> PerfettoFile {
        PerfettoFile::of_all(&[(None, run)])
    }

    /// Writes the trace of several runs. The names given here distinguish the processes. If one run
    /// was cut, all runs end at the earliest cut.
    pub fn of_all(runs: &[(Option<&str>, &PerfettoRun)]) -> PerfettoFile {
        let cut = runs.iter().filter_map(|(_, run)| run.trace.cut).min();
        let mut shown = slices::RunSlices::default();
        for (name, run) in runs {
            shown.add(*name, run, cut.unwrap_or(run.trace.window.to));
        }
        PerfettoFile {
            bytes: wire::write(&shown.contents),
            requests: shown.requests,
            cut,
        }
    }
}

/// Keeps the events within a window.
#[derive(Clone, Debug)]
pub struct PerfettoTrace {
    window: PerfettoWindow,
    cut: Option<Time>,
    /// Latest end of all kept events.
    last: Time,
    given: HashMap<(ArmTrack, RequestId), IssuedRequest>,
    requests: Vec<Finished>,
    served: Vec<CompletedSlice>,
    /// Arrival and completion of each request that overlaps the window.
    under_way: Vec<(Time, Time)>,
    /// Number of requests in each drive.
    inside: Vec<u32>,
    /// Changes of `inside`, with their times.
    depths: Vec<Depth>,
}

/// A drive or, for a drive with several arms, an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct ArmTrack {
    drive: usize,
    arm: Option<usize>,
}

/// A request to a drive or an arm.
#[derive(Clone, Copy, Debug)]
struct IssuedRequest {
    origin: u64,
    operation: Operation,
    extent: Extent,
}

/// A request to a drive or an arm, after completion.
#[derive(Clone, Copy, Debug)]
struct CompletedSlice {
    server: ArmTrack,
    given: IssuedRequest,
    completion: Completion,
}

#[derive(Clone, Copy, Debug)]
struct Depth {
    at: Time,
    drive: usize,
    requests: u32,
}

impl PerfettoTrace {
    /// Begins the trace of a run.
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

    /// Ends the trace after the run. `workloads` holds the names of the workloads if there are
    /// several; `drives` holds the names of the drives.
    pub fn finish(self, workloads: Vec<String>, drives: Vec<String>) -> PerfettoRun {
        PerfettoRun {
            trace: self,
            workloads,
            drives,
        }
    }

    pub(crate) fn drive_io(&mut self, now: Time, drive: usize, request: &Request) {
        self.depth(now, drive, 1);
        self.give(now, ArmTrack { drive, arm: None }, request);
    }

    pub(crate) fn drive_done(&mut self, drive: usize, completion: &Completion) {
        self.depth(completion.finished, drive, u32::MAX);
        self.serve(ArmTrack { drive, arm: None }, completion);
    }

    pub(crate) fn arm_io(&mut self, now: Time, drive: usize, arm: usize, request: &Request) {
        self.give(
            now,
            ArmTrack {
                drive,
                arm: Some(arm),
            },
            request,
        );
    }

    pub(crate) fn arm_done(&mut self, drive: usize, arm: usize, completion: &Completion) {
        self.serve(
            ArmTrack {
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

    fn give(&mut self, now: Time, server: ArmTrack, request: &Request) {
        if self.holds(now) {
            let Request {
                origin,
                operation,
                extent,
                ..
            } = *request;
            self.given.insert(
                (server, request.id),
                IssuedRequest {
                    origin,
                    operation,
                    extent,
                },
            );
        }
    }

    fn serve(&mut self, server: ArmTrack, completion: &Completion) {
        let Some(given) = self.given.remove(&(server, completion.id)) else {
            return;
        };
        if self.takes(completion.submitted, completion.finished) {
            self.served.push(CompletedSlice {
                server,
                given,
                completion: *completion,
            });
        }
    }

    /// Returns true if there is room for an event from `begin` to `end`. If there is none, the
    /// window ends with the latest kept event.
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
        // `step` is 1, or `u32::MAX` to subtract 1.
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
