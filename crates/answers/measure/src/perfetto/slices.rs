//! Contents of a trace: processes with tracks, slices on tracks, flows between slices, counters.

use super::{ArmTrack, CompletedSlice, Depth, PerfettoRun, PerfettoTrace};
use crate::perfetto::wire::{Counter, Note, PerfettoProcess, PerfettoTrack, Slice, TraceContents};
use fullstroke_contract::{Breakdown, Completion, Extent, Operation, Request};
use fullstroke_engine::Finished;
use fullstroke_units::{Duration, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

/// Contents of one run, or of several runs.
#[derive(Debug, Default)]
pub(super) struct RunSlices {
    pub(super) contents: TraceContents,
    /// Number of requests of workloads and drives.
    pub(super) requests: usize,
    /// Prefix of the names of processes.
    prefix: String,
    next_id: u64,
    next_flow: u64,
}

impl RunSlices {
    /// Adds a run up to `to`. If there are several runs, `name` distinguishes the processes.
    pub(super) fn add(&mut self, name: Option<&str>, run: &PerfettoRun, to: Time) {
        let PerfettoRun {
            trace,
            workloads,
            drives,
        } = run;
        self.prefix = name.map_or_else(String::new, |name| format!("{name}: "));
        let requests = self.add_requests(trace, workloads, to);
        let mut by_server: BTreeMap<ArmTrack, Vec<&CompletedSlice>> = BTreeMap::new();
        for served in trace
            .served
            .iter()
            .filter(|served| served.completion.finished <= to)
        {
            by_server.entry(served.server).or_default().push(served);
            self.requests += 1;
        }
        let processes: Vec<u64> = drives
            .iter()
            .map(|name| self.add_process(&format!("drive {name}")))
            .collect();
        let several = |drive| {
            by_server
                .keys()
                .any(|server| server.drive == drive && server.arm.is_some())
        };
        for (server, served) in &by_server {
            let Some(&process) = processes.get(server.drive) else {
                continue;
            };
            self.add_served(process, *server, served, several(server.drive), &requests);
        }
        self.add_depths(trace, &processes, to);
    }

    /// Adds the requests of workloads. Returns the index of each request's slice by origin.
    fn add_requests(
        &mut self,
        trace: &PerfettoTrace,
        names: &[String],
        to: Time,
    ) -> HashMap<u64, usize> {
        let mut by_workload: BTreeMap<u16, Vec<&Finished>> = BTreeMap::new();
        let within = |finished: &&Finished| finished.completion.finished <= to;
        for finished in trace.requests.iter().filter(within) {
            by_workload
                .entry(finished.workload)
                .or_default()
                .push(finished);
        }
        let mut slices = HashMap::new();
        for (workload, requests) in &mut by_workload {
            let name = names
                .get(usize::from(*workload))
                .map(|name| format!("workload {name}"));
            let process = self.add_process(name.as_deref().unwrap_or("workload"));
            self.requests += requests.len();
            // Lanes are filled in the order of begin. The origin makes the picture the same in each
            // run.
            requests.sort_by_key(|finished| (finished.arrived, finished.origin));
            let spans = requests
                .iter()
                .map(|finished| (finished.arrived, finished.completion.finished));
            let lanes = self.add_lanes(process, spans, |lane| format!("requests, slot {lane}"));
            for (finished, track) in requests.iter().zip(lanes) {
                slices.insert(finished.origin, self.contents.slices.len());
                self.contents.slices.push(request_slice(finished, track));
            }
        }
        if !trace.under_way.is_empty() {
            let process = self.add_process("requests");
            let id = self.add_track(process, "under way".into(), true);
            self.contents
                .counters
                .extend(under_way(trace, to).map(|(at, value)| Counter {
                    track: id,
                    at,
                    value,
                }));
        }
        slices
    }

    /// Adds the requests of a drive, or of one arm of several, and the parts of their service.
    fn add_served(
        &mut self,
        process: u64,
        server: ArmTrack,
        served: &[&CompletedSlice],
        several: bool,
        requests: &HashMap<u64, usize>,
    ) {
        let mut residences = vec![None; served.len()];
        if server.arm.is_none() {
            let mut order: Vec<usize> = (0..served.len()).collect();
            // By index among equal times, so that the picture is the same in each run.
            order.sort_by_key(|&index| (served[index].completion.submitted, index));
            let spans = order.iter().map(|&index| {
                let Completion {
                    submitted,
                    finished,
                    ..
                } = served[index].completion;
                (submitted, finished)
            });
            let lanes = self.add_lanes(process, spans, |lane| format!("slot {lane}"));
            for (index, track) in order.into_iter().zip(lanes) {
                residences[index] = Some(self.contents.slices.len());
                self.contents.slices.push(residence(served[index], track));
            }
        }
        let mut first_parts = vec![None; served.len()];
        if server.arm.is_some() || !several {
            let number = server.arm.map_or_else(String::new, |arm| format!(" {arm}"));
            self.add_service(
                process,
                &format!("arm{number}"),
                served,
                moves_arm,
                &mut first_parts,
            );
            let buffered = |served: &CompletedSlice| !moves_arm(served);
            self.add_service(
                process,
                &format!("buffer{number}"),
                served,
                buffered,
                &mut first_parts,
            );
        }
        for (index, served) in served.iter().enumerate() {
            let request = requests.get(&served.given.origin).copied();
            self.add_flow([request, residences[index], first_parts[index]]);
        }
    }

    /// Adds the parts of the requests that `by_it` selects, on tracks called `name`.
    fn add_service(
        &mut self,
        process: u64,
        name: &str,
        served: &[&CompletedSlice],
        by_it: impl Fn(&CompletedSlice) -> bool,
        first_parts: &mut [Option<usize>],
    ) {
        let lasts = |served: &CompletedSlice| began(served) < served.completion.finished;
        let mut order: Vec<usize> = (0..served.len())
            .filter(|&index| by_it(served[index]) && lasts(served[index]))
            .collect();
        // By index among equal times, as above.
        order.sort_by_key(|&index| (began(served[index]), index));
        let spans = order
            .iter()
            .map(|&index| (began(served[index]), served[index].completion.finished));
        let beside = |lane| {
            if lane == 0 {
                name.to_owned()
            } else {
                format!("{name}, beside it {lane}")
            }
        };
        let lanes = self.add_lanes(process, spans, beside);
        for (index, track) in order.into_iter().zip(lanes) {
            first_parts[index] = Some(self.contents.slices.len());
            self.contents.slices.extend(parts(served[index], track));
        }
    }

    /// Adds a flow through the slices that have a duration, in order.
    fn add_flow(&mut self, slices: [Option<usize>; 3]) {
        let lasts =
            |&slice: &usize| self.contents.slices[slice].begin < self.contents.slices[slice].end;
        let mut slices: Vec<usize> = slices.into_iter().flatten().filter(lasts).collect();
        let Some(last) = slices.pop().filter(|_| !slices.is_empty()) else {
            return;
        };
        self.next_flow += 1;
        for slice in slices {
            self.contents.slices[slice].flows.push(self.next_flow);
        }
        self.contents.slices[last].flow_ends = Some(self.next_flow);
    }

    fn add_depths(&mut self, trace: &PerfettoTrace, processes: &[u64], to: Time) {
        let mut tracks = HashMap::new();
        for &Depth {
            at,
            drive,
            requests,
        } in &trace.depths
        {
            let Some(&process) = processes.get(drive).filter(|_| at <= to) else {
                continue;
            };
            let track = *tracks
                .entry(drive)
                .or_insert_with(|| self.add_track(process, "queue".into(), true));
            self.contents.counters.push(Counter {
                track,
                at,
                value: requests.into(),
            });
        }
    }

    /// Adds tracks for spans, ordered by begin, such that no spans overlap on a track. Returns the
    /// track of each span.
    fn add_lanes(
        &mut self,
        process: u64,
        spans: impl Iterator<Item = (Time, Time)>,
        name: impl Fn(usize) -> String,
    ) -> Vec<u64> {
        let mut taken: BinaryHeap<Reverse<(Time, usize)>> = BinaryHeap::new();
        let mut free: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
        let mut tracks = Vec::new();
        let lane_of = |(begin, end): (Time, Time)| {
            while let Some(&Reverse((until, lane))) = taken.peek()
                && until <= begin
            {
                taken.pop();
                free.push(Reverse(lane));
            }
            let lane = free.pop().map_or_else(
                || {
                    tracks.push(self.add_track(process, name(tracks.len()), false));
                    tracks.len() - 1
                },
                |Reverse(lane)| lane,
            );
            taken.push(Reverse((end, lane)));
            lane
        };
        let lanes: Vec<usize> = spans.map(lane_of).collect();
        lanes.into_iter().map(|lane| tracks[lane]).collect()
    }

    fn add_process(&mut self, name: &str) -> u64 {
        self.next_id += 1;
        self.contents.processes.push(PerfettoProcess {
            id: self.next_id,
            name: format!("{}{name}", self.prefix),
        });
        self.next_id
    }

    fn add_track(&mut self, process: u64, name: String, counter: bool) -> u64 {
        self.next_id += 1;
        self.contents.tracks.push(PerfettoTrack {
            id: self.next_id,
            process,
            name,
            counter,
        });
        self.next_id
    }
}

/// Returns the number of requests in flight at each change within the window.
fn under_way(trace: &PerfettoTrace, to: Time) -> impl Iterator<Item = (Time, i64)> {
    let mut steps: Vec<(Time, i64)> = trace
        .under_way
        .iter()
        .flat_map(|&(begin, end)| [(begin, 1), (end, -1)])
        .collect();
    // At one instant, ends (-1) sort before begins (1), so that the count shows no peak that never
    // was.
    steps.sort_unstable();
    let mut value = 0;
    let mut values: Vec<(Time, i64)> = Vec::new();
    for (at, step) in steps {
        value += step;
        match values.last_mut() {
            Some(last) if last.0 == at => last.1 = value,
            _ => values.push((at, value)),
        }
    }
    let from = trace.window.from;
    values
        .into_iter()
        .filter(move |(at, _)| (from..=to).contains(at))
}

fn request_slice(finished: &Finished, track: u64) -> Slice {
    let Finished {
        origin,
        operation,
        extent,
        completion,
        ..
    } = finished;
    let mut notes = about(*origin, *operation, *extent);
    notes.push(("process", Note::Number(finished.process.into())));
    notes.extend(times(&completion.breakdown));
    Slice {
        track,
        begin: finished.arrived,
        end: completion.finished,
        level: 0,
        notes,
        ..named(*operation)
    }
}

/// Returns the slice of a request in a drive, from submission to completion.
fn residence(served: &CompletedSlice, track: u64) -> Slice {
    let CompletedSlice {
        given, completion, ..
    } = served;
    let mut notes = about(given.origin, given.operation, given.extent);
    notes.extend(times(&completion.breakdown));
    let Completion {
        submitted,
        finished,
        ..
    } = *completion;
    Slice {
        track,
        begin: submitted,
        end: finished,
        level: 1,
        notes,
        ..named(given.operation)
    }
}

/// Returns slices of the arm's work for a request, in order. If the work repeats between the tracks
/// of one request, each slice contains the repeated time.
fn parts(served: &CompletedSlice, track: u64) -> impl Iterator<Item = Slice> {
    let CompletedSlice {
        given, completion, ..
    } = *served;
    let Breakdown {
        overhead,
        seek,
        rotation,
        transfer,
        seek_cylinders,
        ..
    } = completion.breakdown;
    let moves = if seek_cylinders == 0 {
        "head switch"
    } else {
        "seek"
    };
    let parts = [
        ("overhead", overhead),
        (moves, seek),
        ("rotation", rotation),
        ("transfer", transfer),
    ];
    let mut begin = began(served);
    parts
        .into_iter()
        .filter(|(_, lasts)| *lasts > Duration::ZERO)
        .map(move |(name, lasts)| {
            let mut notes = about(given.origin, given.operation, given.extent);
            if name == "seek" {
                notes.push(("cylinders", Note::Number(seek_cylinders.into())));
            }
            let end = begin + lasts;
            let slice = Slice {
                track,
                begin,
                end,
                name,
                level: 2,
                notes,
                ..Slice::default()
            };
            begin = end;
            slice
        })
}

/// Returns the time when the drive began to work on the request.
fn began(served: &CompletedSlice) -> Time {
    let Completion {
        submitted,
        breakdown,
        ..
    } = served.completion;
    submitted + breakdown.queue + breakdown.parity
}

/// Returns true if the request reached the medium. Otherwise buffer and electronics answered the
/// request.
fn moves_arm(served: &CompletedSlice) -> bool {
    let Breakdown {
        seek,
        rotation,
        transfer,
        ..
    } = served.completion.breakdown;
    seek + rotation + transfer > Duration::ZERO
}

fn named(operation: Operation) -> Slice {
    Slice {
        name: operation.name(),
        ..Slice::default()
    }
}

fn about(origin: u64, operation: Operation, extent: Extent) -> Vec<(&'static str, Note)> {
    let request = match origin {
        Request::BACKGROUND => Note::Word("none: a layer's own work"),
        origin => Note::Number(origin),
    };
    vec![
        ("request", request),
        ("operation", Note::Word(operation.name())),
        ("lbn", Note::Number(extent.start.0)),
        ("sectors", Note::Number(extent.sectors.0)),
    ]
}

/// Returns the parts of a response time, named as the columns of the request log.
fn times(parts: &Breakdown) -> impl Iterator<Item = (&'static str, Note)> {
    [
        ("queue_ns", parts.queue),
        ("parity_ns", parts.parity),
        ("overhead_ns", parts.overhead),
        ("seek_ns", parts.seek),
        ("rotation_ns", parts.rotation),
        ("transfer_ns", parts.transfer),
    ]
    .into_iter()
    .map(|(name, time)| (name, Note::Number(time.as_nanos())))
}
