//! Runs one candidate, or many on all cores.

use crate::hurried::at_load;
use crate::media::faster_than_media;
use crate::rebuild_plan;
use crate::stopwatch::Stopwatch;
use crate::{ComparedStack, LabError, Varied};
use fullstroke_counters::Counter;
use fullstroke_drive::DriveModel;
use fullstroke_engine::{Engine, RunOutcome};
use fullstroke_fio::{BehindRate, FioGroupResults, FioProgram, FioResults, FioSource};
use fullstroke_measure::{
    MeasuredRun, Measurement, MemberReport, Overload, PerfettoRun, PerfettoTrace, Progress, Report,
    RequestLog, ResponseWindows, RunIdentity, RunRecorder, StreamsReport, Timeline, WarmUp,
    WattsOverTime,
};
use fullstroke_stack::{HostNodes, PoolCapacity, PreparedRun, VolumeSummary};
use fullstroke_units::Time;
use fullstroke_vfs::Vfs;
use fullstroke_workload::Streams;
use serde::Serialize;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Results of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Values of the varied keys.
    pub varied: Varied,
    /// Measures and their batches.
    pub measured: MeasuredRun,
    /// Size and redundancy of the volume.
    pub volume: VolumeReport,
    /// Results of a fio workload, by job.
    pub fio: Option<FioGroupResults>,
    /// Trace for Perfetto, if requested.
    pub perfetto: Option<PerfettoRun>,
}

/// Size and redundancy of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VolumeReport {
    /// Layouts, from the top down.
    pub layout: String,
    /// Total number of drives.
    pub drives: usize,
    /// Addressable bytes.
    pub usable_bytes: u64,
    /// Bytes of all drives together.
    pub raw_bytes: u64,
    /// Number of further drive failures that the volume survives in the worst case.
    pub failures_survived: u32,
    /// Capacity of a pool as ZFS shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolCapacity>,
}

impl From<&VolumeSummary> for VolumeReport {
    fn from(summary: &VolumeSummary) -> VolumeReport {
        VolumeReport {
            layout: summary.layout.clone(),
            drives: summary.drives,
            usable_bytes: summary.usable.0,
            raw_bytes: summary.raw.0,
            failures_survived: summary.failures_survived,
            pool: summary.pool,
        }
    }
}

/// Progress of candidate number `candidate` (in the order given) of [`run_all`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidateProgress {
    /// Index of the candidate.
    pub candidate: usize,
    /// Number of finished requests so far.
    pub finished: u64,
    /// Total number of requests, if known.
    pub expected: Option<u64>,
    /// True if the run is over.
    pub over: bool,
}

/// Runs a candidate to the end. With `log`, every request is written to that file. `progress` is
/// called with the number of finished requests and, if known, the total number of requests.
///
/// # Errors
/// Errors of the stack, the workload or the log, or the candidate was stopped. After an error no
/// log is left behind.
pub fn run(
    candidate: &ComparedStack,
    log: Option<&Path>,
    progress: &dyn Fn(u64, Option<u64>),
) -> Result<RunResult, LabError> {
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
    let mut engine = PreparedRun {
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
    let watch = Stopwatch::start();
    let outcome = engine
        .run(&mut recorder)
        .map_err(|source| LabError::Workload {
            candidate: candidate.label(),
            source,
        })?;
    let wall_s = watch.seconds();
    // Programs of a host may end without a request below the page cache, so a run with hosts may
    // have no requests.
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
    let watched = ExtraRecords {
        timeline: recorder.timeline,
        windows: recorder.windows,
        watts: recorder.watts,
    };
    let mut measured = recorder.measurement.finish(&outcome, &drives, identity);
    watched.into_report(&mut measured.report, &outcome, &drives);
    let (models, array) = (stack.drives(), &mut measured.report.array);
    array.drive_notes = outside(&models, &array.members);
    let faster = faster_than_media(&models, &array.members);
    array.media_notes.extend(faster);
    measured.report.cost.wall_s = wall_s;
    measured.report.cost.requests_per_wall_s =
        wall_s.map(|wall_s| outcome.requests as f64 / wall_s.max(f64::MIN_POSITIVE));
    let fio = of_workload(&engine, &mut measured.report, &outcome, &drives);
    Ok(RunResult {
        varied: candidate.varied.clone(),
        measured,
        volume: summary,
        fio,
        perfetto,
    })
}

/// Returns a sentence for each model whose requests lie outside the requests with which the model
/// was measured. A drive with several arms has a member for each arm and no such statement.
fn outside(models: &[&DriveModel], members: &[MemberReport]) -> Vec<String> {
    let mut notes: Vec<(&str, String)> = Vec::new();
    if models.len() != members.len() {
        return Vec::new();
    }
    for (model, member) in models.iter().zip(members) {
        let title = model.config().title.as_str();
        let known = notes.iter().any(|(noted, _)| *noted == title);
        let Some(validated) = model.config().validated.filter(|_| !known) else {
            continue;
        };
        let counts = &member.statistics;
        let requests = counts.reads + counts.writes;
        if requests == 0 || member.seconds <= 0.0 {
            continue;
        }
        let sectors = (counts.sectors_read + counts.sectors_written).0 as f64 / requests as f64;
        let depth = counts.queue_length_ns as f64 / 1e9 / member.seconds;
        if let Some(sentence) = validated.left_by(sectors, depth) {
            notes.push((title, format!("The drive {title}: {sentence}")));
        }
    }
    notes.into_iter().map(|(_, note)| note).collect()
}

/// Returns the measurement for a run of the candidate on `drives` drives.
fn measurement(
    candidate: &ComparedStack,
    drives: usize,
    open: bool,
) -> Result<Measurement, LabError> {
    let stack = &candidate.stack;
    let warm_up = WarmUp {
        requests: 0,
        until: Time::ZERO + stack.measurement().warm_up,
    };
    let rebuilt = stack.rebuilt_members()?.into_iter().map(rebuild_plan::plan);
    Ok(Measurement::new(warm_up)
        .with_processes(stack.process_names())
        .with_workloads(stack.workload_names())
        .with_drives(drives)
        .with_rebuilds(rebuilt.collect())
        .with_rebuild_settling(Time::ZERO + candidate.rebuild_settling)
        .with_open_arrivals(open))
}

/// Returns the recorder of a run: its measurement, its log, and the optional records of the
/// candidate.
fn recorder<'a>(
    candidate: &ComparedStack,
    measurement: Measurement,
    log: Option<RequestLog>,
    tell: &'a Progress<'a>,
    drives: usize,
) -> RunRecorder<'a> {
    let mut recorder = RunRecorder::new(measurement, log, Some(tell));
    recorder.timeline = candidate.timeline.then(|| Timeline::new(drives));
    recorder.windows = candidate.windows.map(ResponseWindows::of);
    recorder.watts = candidate.watts.then(WattsOverTime::default);
    recorder.perfetto = candidate
        .perfetto
        .map(|window| Box::new(PerfettoTrace::new(window)));
    recorder.stop = candidate.stop.clone();
    recorder
}

fn identity(candidate: &ComparedStack) -> RunIdentity {
    RunIdentity {
        name: candidate.name.clone(),
        seed: candidate.stack.seed().0,
        config_digest: candidate.stack.digest().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Adds the workload's own counts to the report. Returns the results of fio jobs, if any.
fn of_workload(
    engine: &Engine,
    report: &mut Report,
    outcome: &RunOutcome,
    drives: &[String],
) -> Option<FioGroupResults> {
    let streams = engine.workload::<Streams>();
    report.streams = streams.map(|source| StreamsReport::new(&source.results()));
    let on_files = || Some(engine.workload::<Vfs>()?.program::<FioProgram>()?.results());
    let results = engine.workload::<FioSource>().map(FioSource::results);
    let results = results.or_else(on_files)?;
    report.arrived.overload = results.behind_rate().map(|late| behind(&late, report));
    Some(fio_report(&results, outcome, drives))
}

/// Optional records of a run besides the measurement.
struct ExtraRecords {
    timeline: Option<Timeline>,
    windows: Option<ResponseWindows>,
    watts: Option<WattsOverTime>,
}

impl ExtraRecords {
    fn into_report(self, report: &mut Report, outcome: &RunOutcome, drives: &[String]) {
        report.over_time.timeline = self.timeline.map(|timeline| timeline.report(drives));
        report.over_time.windows = self.windows.as_ref().map(ResponseWindows::report);
        report.over_time.watts = self
            .watts
            .map(|watts| watts.report(outcome.end, &outcome.counters.drives, drives));
    }
}

impl RunResult {
    /// Returns an error if the run has no measured request. A report without values would print
    /// only dashes, so a caller with a single candidate reports the error. In a comparison such a
    /// candidate ranks last.
    ///
    /// # Errors
    /// All requests of the run belong to the warm-up.
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

fn fio_report(results: &FioResults, outcome: &RunOutcome, drives: &[String]) -> FioGroupResults {
    let named = drives
        .iter()
        .cloned()
        .zip(outcome.counters.drives.iter().copied())
        .collect();
    results.report(named, outcome.end.since(Time::ZERO))
}

fn begin_log(
    path: &Path,
    drives: &[String],
    identity: &RunIdentity,
) -> Result<RequestLog, LabError> {
    let seed = identity.seed.to_string();
    let notes = [
        ("stack", identity.name.as_str()),
        ("seed", seed.as_str()),
        ("config_digest", identity.config_digest.as_str()),
        ("version", identity.version.as_str()),
    ];
    Ok(RequestLog::create(path, drives, &notes)?)
}

/// Runs all candidates, up to `jobs` at a time, each on one thread. Results are in the order of the
/// candidates and do not depend on `jobs`.
///
/// # Errors
/// The error of the first candidate, in their order, that failed. After a failure no further
/// candidate is started.
pub fn run_all(
    candidates: &[ComparedStack],
    jobs: usize,
    progress: &(dyn Fn(CandidateProgress) + Sync),
) -> Result<Vec<RunResult>, LabError> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let results: Vec<Mutex<Option<Result<RunResult, LabError>>>> =
        candidates.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        // Relaxed: after a failure some further runs may begin, which does no harm.
        while !failed.load(Ordering::Relaxed) {
            // Relaxed: the counter only hands out indexes; results come through their own locks.
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
        // The calling thread works too, so one thread less is started.
        (1..threads).for_each(|_| {
            scope.spawn(work);
        });
        work();
    });
    // Candidates without a result come after a failed one, and the failure ends the collection
    // below first.
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
    candidate: &ComparedStack,
    progress: &(dyn Fn(CandidateProgress) + Sync),
) -> Result<RunResult, LabError> {
    let result = run(candidate, None, &|finished, expected| {
        progress(CandidateProgress {
            candidate: index,
            finished,
            expected,
            over: false,
        });
    });
    if let Ok(ran) = &result {
        let finished = ran.measured.report.arrived.requests;
        progress(CandidateProgress {
            candidate: index,
            finished,
            expected: Some(finished),
            over: true,
        });
    }
    result
}
