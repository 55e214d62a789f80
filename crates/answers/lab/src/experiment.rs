//! One run, or many on all cores.

use crate::load::at_load;
use crate::{Candidate, LabError, Varied};
use fullstroke_counters::Counter;
use fullstroke_engine::{Engine, Outcome};
use fullstroke_fio::{BehindRate, FioProgram, FioReport, FioResults, FioSource};
use fullstroke_measure::{
    Identity, Measured, Measurement, Overload, PerfettoRun, PerfettoTrace, Progress, RebuildPlan,
    Recorder, Report, RequestLog, StreamsReport, Timeline, WarmUp, WattsOverTime, Windows,
};
use fullstroke_stack::{HostNodes, RebuiltMember, Run, VolumeSummary};
use fullstroke_units::Time;
use fullstroke_vfs::Vfs;
use fullstroke_workload::Streams;
use serde::Serialize;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

/// What came out of a run.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The values that were varied for it.
    pub varied: Varied,
    /// The numbers and their batches.
    pub measured: Measured,
    /// What the volume amounts to.
    pub volume: VolumeReport,
    /// The results of a workload of fio's, by job.
    pub fio: Option<FioReport>,
    /// What Perfetto shows of it, if that was wanted.
    pub perfetto: Option<PerfettoRun>,
}

/// What a volume amounts to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VolumeReport {
    /// The layouts, from the top.
    pub layout: String,
    /// Drives in all.
    pub drives: usize,
    /// Bytes that can be addressed.
    pub usable_bytes: u64,
    /// Bytes of all drives together.
    pub raw_bytes: u64,
    /// How many more drives may fail, whichever they are, without loss.
    pub failures_survived: u32,
}

impl From<&VolumeSummary> for VolumeReport {
    fn from(summary: &VolumeSummary) -> VolumeReport {
        VolumeReport {
            layout: summary.layout.clone(),
            drives: summary.drives,
            usable_bytes: summary.usable.0,
            raw_bytes: summary.raw.0,
            failures_survived: summary.failures_survived,
        }
    }
}

/// What happens to candidate number `candidate` (in the order given) of
/// [`run_all`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its index.
    pub candidate: usize,
    /// Requests that have finished so far.
    pub finished: u64,
    /// Requests that there will be in all, if that is known.
    pub expected: Option<u64>,
    /// Whether the run is over.
    pub over: bool,
}

/// Runs a candidate to its end. With `log`, every request is written to that
/// file. `progress` is told now and then how many requests have finished, and
/// how many there will be, if that is known.
///
/// # Errors
/// The stack's, the workload's or the log's, or the candidate was stopped; no log is left behind then.
pub fn run(
    candidate: &Candidate,
    log: Option<&Path>,
    progress: &dyn Fn(u64, Option<u64>),
) -> Result<Ran, LabError> {
    let stack = &candidate.stack;
    let run = stack
        .build()
        .map_err(|source| candidate.varied.refused(source))?;
    let identity = identity(candidate);
    let sources = || run.hosts.iter().map(|host| &host.source);
    let expected = sources()
        .map(|source| source.expected_requests())
        .sum::<Option<u64>>();
    let open = sources().any(|source| source.arrivals_are_open());
    let summary = VolumeReport::from(&run.summary);
    let hurried = |host: HostNodes| HostNodes {
        source: at_load(host.source, candidate.load),
        ..host
    };
    let mut engine = Run {
        hosts: run.hosts.into_iter().map(hurried).collect(),
        ..run
    }
    .engine();
    let drives: Vec<String> = engine.graph().drive_names().map(str::to_owned).collect();
    let log = log
        .map(|path| begin_log(path, &drives, &identity))
        .transpose()?;
    let tell: &Progress<'_> = &|finished| progress(finished, expected);
    let measurement = measurement(candidate, drives.len(), open)?;
    let mut recorder = recorder(candidate, measurement, log, tell, drives.len());
    tell(0);
    let began = Instant::now();
    let outcome = engine
        .run(&mut recorder)
        .map_err(|source| LabError::Workload {
            candidate: candidate.label(),
            source,
        })?;
    let wall_s = began.elapsed().as_secs_f64();
    if outcome.requests == 0 && outcome.counters.hosts.is_empty() {
        return Err(LabError::NoRequests {
            candidate: candidate.name.clone(),
        });
    }
    if let Some(log) = recorder.log {
        log.finish()?;
    }
    let perfetto = recorder
        .perfetto
        .map(|trace| trace.finish(stack.workload_names(), drives.clone()));
    let watched = Watched {
        timeline: recorder.timeline,
        windows: recorder.windows,
        watts: recorder.watts,
    };
    let mut measured = recorder.measurement.finish(&outcome, &drives, identity);
    watched.into_report(&mut measured.report, &outcome, &drives);
    measured.report.cost.wall_s = Some(wall_s);
    measured.report.cost.requests_per_wall_s =
        Some(outcome.requests as f64 / wall_s.max(f64::MIN_POSITIVE));
    let fio = of_workload(&engine, &mut measured.report, &outcome, &drives);
    Ok(Ran {
        varied: candidate.varied.clone(),
        measured,
        volume: summary,
        fio,
        perfetto,
    })
}

/// What counts the run of a candidate on so many drives.
fn measurement(candidate: &Candidate, drives: usize, open: bool) -> Result<Measurement, LabError> {
    let stack = &candidate.stack;
    let warm_up = WarmUp {
        requests: 0,
        until: Time::ZERO + stack.measurement().warm_up,
    };
    let rebuilt = stack.rebuilt_members()?.into_iter().map(|member| {
        let RebuiltMember {
            path,
            used,
            zones,
            most,
        } = member;
        RebuildPlan {
            path,
            used,
            zones,
            most,
        }
    });
    Ok(Measurement::new(warm_up)
        .with_processes(stack.process_names())
        .with_workloads(stack.workload_names())
        .with_drives(drives)
        .with_rebuilds(rebuilt.collect())
        .with_open_arrivals(open))
}

/// What hears of the run of a candidate: its measurement, its log, and what else it wants
/// watched.
fn recorder<'a>(
    candidate: &Candidate,
    measurement: Measurement,
    log: Option<RequestLog>,
    tell: &'a Progress<'a>,
    drives: usize,
) -> Recorder<'a> {
    let mut recorder = Recorder::new(measurement, log, Some(tell));
    recorder.timeline = candidate.timeline.then(|| Timeline::new(drives));
    recorder.windows = candidate.windows.map(Windows::of);
    recorder.watts = candidate.watts.then(WattsOverTime::default);
    recorder.perfetto = candidate
        .perfetto
        .map(|window| Box::new(PerfettoTrace::new(window)));
    recorder.stop = candidate.stop.clone();
    recorder
}

fn identity(candidate: &Candidate) -> Identity {
    Identity {
        name: candidate.name.clone(),
        seed: candidate.stack.seed().0,
        config_digest: candidate.stack.digest().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Adds to the report what the workload itself counted; the results of fio's jobs.
fn of_workload(
    engine: &Engine,
    report: &mut Report,
    outcome: &Outcome,
    drives: &[String],
) -> Option<FioReport> {
    let streams = engine.workload::<Streams>();
    report.streams = streams.map(|source| StreamsReport::new(&source.results()));
    let on_files = || Some(engine.workload::<Vfs>()?.program::<FioProgram>()?.results());
    let results = engine.workload::<FioSource>().map(FioSource::results);
    let results = results.or_else(on_files)?;
    report.arrived.overload = results.behind_rate().map(|late| behind(&late, report));
    Some(fio_report(&results, outcome, drives))
}

/// What was watched besides the measurement.
struct Watched {
    timeline: Option<Timeline>,
    windows: Option<Windows>,
    watts: Option<WattsOverTime>,
}

impl Watched {
    fn into_report(self, report: &mut Report, outcome: &Outcome, drives: &[String]) {
        report.over_time.timeline = self.timeline.map(|timeline| timeline.report(drives));
        report.over_time.windows = self.windows.as_ref().map(Windows::report);
        report.over_time.watts = self
            .watts
            .map(|watts| watts.report(outcome.end, &outcome.counters.drives, drives));
    }
}

impl Ran {
    /// A report of nothing would be dashes: whoever asked for it alone learns
    /// why. Beside others such a candidate ranks last.
    ///
    /// # Errors
    /// All requests of the run were its warm-up.
    pub fn check_measured(&self) -> Result<(), LabError> {
        let report = &self.measured.report;
        if report.arrived.warm_up_requests < report.arrived.requests
            || !report.sources.hosts.is_empty()
        {
            return Ok(());
        }
        Err(LabError::OnlyWarmUp {
            candidate: report.name.clone(),
            requests: report.arrived.requests,
        })
    }
}

fn behind(late: &BehindRate, report: &Report) -> Overload {
    let busiest = report
        .array
        .members
        .iter()
        .map(|member| member.value(Counter::BUSY))
        .fold(f64::NAN, f64::max);
    Overload::of_rate(&late.job, late.share, late.behind.as_secs_f64(), busiest)
}

fn fio_report(results: &FioResults, outcome: &Outcome, drives: &[String]) -> FioReport {
    let named = drives
        .iter()
        .cloned()
        .zip(outcome.counters.drives.iter().copied())
        .collect();
    results.report(named, outcome.end.since(Time::ZERO))
}

fn begin_log(path: &Path, drives: &[String], identity: &Identity) -> Result<RequestLog, LabError> {
    let seed = identity.seed.to_string();
    let notes = [
        ("stack", identity.name.as_str()),
        ("seed", seed.as_str()),
        ("config_digest", identity.config_digest.as_str()),
        ("version", identity.version.as_str()),
    ];
    Ok(RequestLog::create(path, drives, &notes)?)
}

/// Runs all candidates, up to `jobs` at a time, each on one thread. Results
/// come in the order of the candidates and do not depend on `jobs`.
///
/// # Errors
/// That of the first candidate (in their order) that failed; no further one is
/// begun after a failure.
pub fn run_all(
    candidates: &[Candidate],
    jobs: usize,
    progress: &(dyn Fn(Event) + Sync),
) -> Result<Vec<Ran>, LabError> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let results: Vec<Mutex<Option<Result<Ran, LabError>>>> =
        candidates.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while !failed.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(candidate) = candidates.get(index) else {
                break;
            };
            let result = run_one(index, candidate, progress);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            if let Ok(mut place) = results[index].lock() {
                *place = Some(result);
            }
        }
    };
    thread::scope(|scope| {
        let threads = jobs.clamp(1, candidates.len().max(1));
        (1..threads).for_each(|_| {
            scope.spawn(work);
        });
        work();
    });
    // What was not begun follows a failure, which ends the collection first.
    let results: Vec<_> = results
        .into_iter()
        .filter_map(|place| place.into_inner().ok().flatten())
        .collect();
    assert!(
        results.len() == candidates.len() || results.iter().any(Result::is_err),
        "{} of {} candidates were run, and none has failed",
        results.len(),
        candidates.len()
    );
    results.into_iter().collect()
}

fn run_one(
    index: usize,
    candidate: &Candidate,
    progress: &(dyn Fn(Event) + Sync),
) -> Result<Ran, LabError> {
    let result = run(candidate, None, &|finished, expected| {
        progress(Event {
            candidate: index,
            finished,
            expected,
            over: false,
        });
    });
    if let Ok(ran) = &result {
        let finished = ran.measured.report.arrived.requests;
        progress(Event {
            candidate: index,
            finished,
            expected: Some(finished),
            over: true,
        });
    }
    result
}
