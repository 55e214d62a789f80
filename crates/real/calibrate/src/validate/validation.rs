//! Measured and simulated times, compared as distributions.

use crate::validate::{EmpiricalTimes, FoundDrive, ReplayedTrace, TraceFile};
use fullstroke_contract::Operation;
use fullstroke_trace::{CacheOutcome, ValidateRow};
use fullstroke_units::Seed;
use serde::Serialize;

/// Number of bootstrap resamples for [`Validation::noise_ms`]. The mean of 500 resamples repeats to
/// about 2 %.
pub const RESAMPLES: u32 = 500;

/// Comparison of a model with the measurement of a real disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Validation {
    /// Name of the measured disk: the trace's name.
    pub drive: String,
    /// Number of requests.
    pub n: usize,
    /// Mean service time of the real disk, in ms.
    pub measured_mean_ms: f64,
    /// Mean service time of the model, in ms.
    pub simulated_mean_ms: f64,
    /// Root-mean-square horizontal distance of the two distributions, in ms (see
    /// [`EmpiricalTimes::demerit`]).
    pub rms_ms: f64,
    /// Root-mean-square distance as a share of the measured mean.
    pub rms_share: f64,
    /// Sampling noise of the measurement itself, in ms (see [`EmpiricalTimes::bootstrap_noise`]).
    pub noise_ms: f64,
    /// Median of the real disk.
    pub measured_p50_ms: f64,
    /// Median of the model.
    pub simulated_p50_ms: f64,
    /// 90th percentile of the real disk.
    pub measured_p90_ms: f64,
    /// 90th percentile of the model.
    pub simulated_p90_ms: f64,
    /// 99th percentile of the real disk.
    pub measured_p99_ms: f64,
    /// 99th percentile of the model.
    pub simulated_p99_ms: f64,
    /// Longest service of the real disk.
    pub measured_max_ms: f64,
    /// Longest service of the model.
    pub simulated_max_ms: f64,
    /// Model: a name of the library, or the file with its description.
    pub model: String,
    /// Title of the model.
    pub title: String,
    /// Path of the trace.
    pub trace: String,
    /// Comparison by class of request, in fixed order; classes without requests are left out.
    pub classes: Vec<ClassValidation>,
    /// Distribution of the measured times, for plots.
    #[serde(skip)]
    pub measured: EmpiricalTimes,
    /// Distribution of the model's times.
    #[serde(skip)]
    pub simulated: EmpiricalTimes,
}

/// Comparison of a model on one class of requests. The distribution of a class is compared by
/// itself, so the figures of all classes do not add up to the figure of the whole.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassValidation {
    /// Read or write.
    pub operation: Operation,
    /// Outcome in the real disk's buffer according to the trace: `Hit`, `Miss`, `Doub` or `Trip`.
    pub outcome: &'static str,
    /// Number of requests.
    pub n: usize,
    /// Mean service time of the real disk.
    pub measured_mean_ms: f64,
    /// Mean service time of the model.
    pub simulated_mean_ms: f64,
    /// Root-mean-square distance of the class's two distributions.
    pub rms_ms: f64,
}

impl Validation {
    /// Compares the `replay` of `trace` on `drive`. `seed` is the seed of the bootstrap resamples.
    pub fn new(
        trace: &TraceFile,
        drive: &FoundDrive,
        replay: &ReplayedTrace,
        seed: Seed,
    ) -> Validation {
        let (measured, simulated) = samples(replay, |_| true);
        let rms_ms = measured.demerit(&simulated);
        Validation {
            drive: trace.name.clone(),
            n: measured.len(),
            measured_mean_ms: measured.mean(),
            simulated_mean_ms: simulated.mean(),
            rms_ms,
            rms_share: rms_ms / measured.mean(),
            noise_ms: measured.bootstrap_noise(seed, RESAMPLES),
            measured_p50_ms: measured.quantile(0.5),
            simulated_p50_ms: simulated.quantile(0.5),
            measured_p90_ms: measured.quantile(0.9),
            simulated_p90_ms: simulated.quantile(0.9),
            measured_p99_ms: measured.quantile(0.99),
            simulated_p99_ms: simulated.quantile(0.99),
            measured_max_ms: measured.max(),
            simulated_max_ms: simulated.max(),
            model: drive.name.clone(),
            title: drive.model.config().title.clone(),
            trace: trace.path.display().to_string(),
            classes: classes(replay),
            measured,
            simulated,
        }
    }
}

impl ClassValidation {
    /// Returns the operation as traces write it: `R` or `W`.
    pub fn operation_letter(&self) -> &'static str {
        operation_letter(self.operation)
    }
}

/// Returns an operation as traces write it.
pub(crate) fn operation_letter(operation: Operation) -> &'static str {
    if operation == Operation::Write {
        "W"
    } else {
        "R"
    }
}

/// Returns a buffer outcome as traces write it.
pub(crate) fn outcome_name(outcome: CacheOutcome) -> &'static str {
    match outcome {
        CacheOutcome::Hit => "Hit",
        CacheOutcome::Miss => "Miss",
        CacheOutcome::Double => "Doub",
        CacheOutcome::Triple => "Trip",
    }
}

fn samples(
    replay: &ReplayedTrace,
    chosen: impl Fn(&ValidateRow) -> bool,
) -> (EmpiricalTimes, EmpiricalTimes) {
    let times = replay.requests().filter(|(row, _)| chosen(row));
    let (measured, simulated) = times
        .map(|(row, simulated)| (row.service.as_millis_f64(), simulated))
        .unzip();
    (
        EmpiricalTimes::new(measured),
        EmpiricalTimes::new(simulated),
    )
}

fn classes(replay: &ReplayedTrace) -> Vec<ClassValidation> {
    let outcomes = [
        CacheOutcome::Hit,
        CacheOutcome::Miss,
        CacheOutcome::Double,
        CacheOutcome::Triple,
    ];
    let class = |operation, outcome| {
        let (measured, simulated) = samples(replay, |row| {
            row.operation == operation && row.outcome == outcome
        });
        ClassValidation {
            operation,
            outcome: outcome_name(outcome),
            n: measured.len(),
            measured_mean_ms: measured.mean(),
            simulated_mean_ms: simulated.mean(),
            rms_ms: measured.demerit(&simulated),
        }
    };
    let of_operation = |operation| outcomes.map(|outcome| class(operation, outcome));
    let all = [Operation::Read, Operation::Write]
        .into_iter()
        .flat_map(of_operation);
    all.filter(|class| class.n > 0).collect()
}
