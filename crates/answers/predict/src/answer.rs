//! Predictions by formulas for a stack's load, compared with a simulation.

use crate::{
    DiskParameters, DriveTables, Fingerprint, FingerprintBuilder, Gears, Load, LoadGatherer,
    Powers, PredictArrival, Predicted, REGIME, Reserve, Shifted, geared, plans, queues,
    seek_delays, striped,
};
use fullstroke_drive::DriveModel;
use fullstroke_lab::{
    LabError, PowerError, Recipe, Varied, arrivals, lacking_power, require_power, run,
};
use fullstroke_measure::{Stop, number, table};
use fullstroke_stack::{Overrides, Stack, StackError};
use fullstroke_units::{Bytes, Duration};
use fullstroke_volume::Shape;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::time::Instant;
use thiserror::Error;

/// Layouts that spread their load evenly over equal members.
const MODELLED: [&str; 5] = ["raid0", "raid1", "raid10", "raid5", "raid6"];

/// Stack to predict, and the parameters of the prediction.
#[derive(Clone, Debug)]
pub struct PredictQuestion {
    /// Path of the stack file. The equations use the number of drives, and the figures of the first
    /// drive.
    pub stack: PathBuf,
    /// Changes to the stack, such as a trace in place of its workload.
    pub overrides: Overrides,
    /// Length of a window of the fingerprint.
    pub window: Duration,
    /// Stripe unit of arrays with gears.
    pub unit: Bytes,
    /// Number of drives in standby in the low gear; `None` means a quarter of the drives.
    pub sleeping: Option<u32>,
    /// Mean utilisation over `averaged` below which the array shifts down.
    pub down: f64,
    /// Mean utilisation over `averaged` above which the array shifts up.
    pub up: f64,
    /// Time over which utilisation is averaged.
    pub averaged: Duration,
    /// True to assume the power of the drive's class if a drive file has no power figures.
    pub assume_power: bool,
    /// True to simulate the stack as well.
    pub simulate: bool,
}

impl PredictQuestion {
    /// Makes a question about this stack with the default parameters of the command.
    pub fn new(stack: PathBuf, overrides: Overrides) -> PredictQuestion {
        PredictQuestion {
            stack,
            overrides,
            // 100 ms is the window of the published validation (`WINDOW_S`).
            window: Duration::from_millis(100),
            unit: Bytes(64 * 1024),
            sleeping: None,
            down: 0.1,
            up: 0.5,
            averaged: Duration::from_secs(10),
            assume_power: false,
            simulate: true,
        }
    }
}

/// Reason why a prediction is impossible.
#[derive(Debug, Error)]
pub enum PredictError {
    /// The stack cannot be read.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// The simulation failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The power cannot be assumed.
    #[error(transparent)]
    Power(#[from] PowerError),
    /// The parameters or the stack do not allow a prediction.
    #[error("{0}")]
    Asked(String),
}

/// Predictions by formulas, and the simulation. `predict --json` prints this structure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Number of windows of the fingerprint.
    pub windows: u64,
    /// Number of windows with requests.
    pub busy_windows: u64,
    /// Number of reads and writes.
    pub requests: u64,
    /// Number of runs of adjacent requests.
    pub runs: u64,
    /// Computing time of all predictions, without the fingerprint and the tables of the drive.
    pub answered_us: f64,
    /// Computing time of the equations.
    pub equations_us: f64,
    /// Predictions of the equations, by layout.
    pub predicted: Vec<PredictedLayout>,
    /// Prediction of the queueing model for the stack's own array; `None` if the load has no
    /// arrivals.
    pub model: Option<QueueingPrediction>,
    /// Simulation of the stack; `None` if the question excludes the simulation.
    pub simulated: Option<SimulatedStack>,
    /// Source of assumed power figures; `None` if nothing is assumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed: Option<&'static str>,
    /// Reason why there is no power figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_watts: Option<String>,
}

/// Prediction of the equations for a layout.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PredictedLayout {
    /// Name of the layout.
    pub layout: String,
    /// Mean latency.
    pub latency_ms: f64,
    /// Utilisation: busy share of the drives' time.
    pub utilisation: f64,
    /// Throughput of reads and writes, in 10^6 bytes per second.
    pub mb_per_s: f64,
    /// Mean power of all drives, in watts; `None` if their power is unknown.
    pub mean_w: Option<f64>,
    /// Number of shifts between gears.
    pub gear_shifts: Option<usize>,
    /// Share of the time in the low gear.
    pub low_gear_share: Option<f64>,
}

/// Prediction of the queueing model for the stack.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueingPrediction {
    /// Computing time of the answer, without the fingerprint and the tables.
    pub answered_us: f64,
    /// Computing time of the tables of the drive.
    pub tabulated_ms: f64,
    /// Mean response time; `None` if the load exceeds the capacity.
    pub response_ms: Option<f64>,
    /// Utilisation: busy share of the drives' time.
    pub utilisation: Option<f64>,
    /// Mean number of outstanding requests.
    pub outstanding: Option<f64>,
    /// Mean power of all drives, in watts; `None` if their power is unknown.
    pub mean_w: Option<f64>,
    /// Measures of the load, with the bounds of agreement (10 %) between model and simulations.
    pub bounds: Vec<BoundedMeasure>,
    /// Reasons why the model may deviate more; empty if the load is within all bounds.
    pub outside: Vec<String>,
}

/// A measure of the load, with the bound of agreement (10 %) between model and simulations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BoundedMeasure {
    /// Name of the measure.
    pub name: &'static str,
    /// Value for this load.
    pub found: f64,
    /// Smallest value within the bound.
    pub least: Option<f64>,
    /// Largest value within the bound.
    pub most: f64,
}

/// Results of the simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimulatedStack {
    /// Name of the layout.
    pub layout: String,
    /// Computing time of the simulation, in real time.
    pub took_ms: f64,
    /// Mean response time.
    pub response_ms_mean: f64,
    /// Mean power of all drives, in watts; `None` if their power is unknown.
    pub mean_w: Option<f64>,
    /// Number of shifts between gears, for layouts with gears.
    pub gear_shifts: Option<f64>,
    /// Share of the time in the low gear.
    pub low_gear_share: Option<f64>,
}

/// Gathers the reads and writes of the stack's workload at their issue times: the fingerprint for
/// the equations, and the load for the model.
fn fingerprint(
    stack: &Stack,
    window: Duration,
) -> Result<(Fingerprint, Option<Load>), PredictError> {
    let mut gatherer = FingerprintBuilder::new(window.as_secs_f64()).ok_or_else(|| {
        PredictError::Asked("--window 0: expected a time, such as 100ms".to_owned())
    })?;
    let capacity = stack.shape()?.capacity();
    let mut load = LoadGatherer::new(capacity.0, window.as_secs_f64());
    arrivals(stack, &mut |now, request| {
        let arrival = PredictArrival::of(now, request);
        gatherer.add(arrival);
        // One pass over the trace for both models, because reading the trace takes most of the
        // time.
        load.add(arrival);
    })?;
    Ok((gatherer.finish(), load.finish()))
}

/// Applies the queueing model to the stack's array under this load.
fn modelled(stack: &Stack, load: &Load) -> Result<QueueingPrediction, PredictError> {
    let began = Instant::now();
    let drives = stack.drives();
    let mut shape = stack.shape()?;
    // Timed apart from the answer: the tables belong to the drive and serve every load.
    let tables = DriveTables::new(drives[0], used(&shape))
        .map_err(|error| PredictError::Asked(error.to_string()))?;
    let tabulated_ms = began.elapsed().as_secs_f64() * 1e3;
    let began = Instant::now();
    // On platters of one angle the parts of a request end whole revolutions apart, and at any
    // distance otherwise.
    let in_step = drives
        .iter()
        .all(|drive| drive.phase() == drives[0].phase());
    let planned = plans(load, &mut shape, in_step);
    let found = queues(load, &planned, &tables);
    let answered_us = began.elapsed().as_secs_f64() * 1e6;
    let mut outside = unlike(stack, &shape);
    outside.extend(tables.unlike().into_iter().map(str::to_owned));
    let mut bounds = Vec::new();
    match &found {
        None => outside.push("more arrives than can be served".to_owned()),
        Some(queues) => {
            for bound in &REGIME {
                let value = bound.found(load, queues);
                bounds.push(BoundedMeasure {
                    name: bound.name,
                    found: value,
                    least: bound.least,
                    most: bound.most,
                });
                if !bound.holds(value) {
                    outside.push(format!("{}: found {}", bound, number(value)));
                }
            }
        }
    }
    if planned.refused > 0 {
        outside.push("some requests exceed the volume or access lost data".to_owned());
    }
    Ok(QueueingPrediction {
        answered_us,
        tabulated_ms,
        response_ms: found.map(|queues| 1000.0 * queues.response_s),
        utilisation: found.map(|queues| queues.utilisation),
        outstanding: found.map(|queues| queues.outstanding),
        mean_w: found.and_then(|queues| queues.mean_w),
        bounds,
        outside,
    })
}

/// Returns the number of used sectors of the first drive.
fn used(shape: &Shape) -> u64 {
    match shape {
        Shape::Drive(capacity) => capacity.0,
        Shape::Volume { layout, members } => match &members[0] {
            Shape::Drive(_) => layout.member_used(0).0,
            nested => used(nested),
        },
    }
}

/// Returns the parts of a stack outside the model.
fn unlike(stack: &Stack, shape: &Shape) -> Vec<String> {
    let drives = stack.drives();
    let mut unlike: Vec<String> = stack
        .layers_beside_volume()
        .into_iter()
        .map(|key| format!("[{key}] is not in the model"))
        .collect();
    let first = drives[0].config();
    if drives.iter().any(|drive| drive.config() != first) {
        unlike.push("the drives differ".to_owned());
    }
    layouts(shape, &mut unlike);
    if stack.has_bitmap(shape) {
        unlike.push("writes wait for the array's bitmap (`bitmap`)".to_owned());
    }
    unlike
}

/// Adds the layouts whose members the model cannot treat as equal.
fn layouts(shape: &Shape, unlike: &mut Vec<String>) {
    let Shape::Volume { layout, members } = shape else {
        return;
    };
    if !MODELLED.contains(&layout.name()) {
        unlike.push(format!(
            "the layout `{}` is not in the model",
            layout.name()
        ));
    }
    if !layout.failed().is_empty() {
        unlike.push("members have failed".to_owned());
    }
    members.iter().for_each(|member| layouts(member, unlike));
}

/// Inputs of the equations from a stack and its load, computed once.
struct ArrayInputs {
    disk: DiskParameters,
    powers: Option<Powers>,
    drives: u32,
    seeks_of_one: Vec<f64>,
    seeks: Vec<f64>,
}

impl ArrayInputs {
    fn new(fingerprint: &Fingerprint, model: &DriveModel, drives: u32) -> ArrayInputs {
        let disk = DiskParameters::of(model);
        ArrayInputs {
            powers: Powers::of(model),
            drives,
            seeks_of_one: seek_delays(fingerprint, 1, &disk),
            seeks: seek_delays(fingerprint, drives, &disk),
            disk,
        }
    }
}

impl PredictQuestion {
    /// Returns the predictions of the formulas and, unless excluded, a simulation of the stack.
    ///
    /// # Errors
    /// Fails for errors of the stack or of the simulation, and for impossible parameters of gears.
    pub fn answer(&self, stop: &Stop) -> Result<Prediction, PredictError> {
        let mut overrides = self.overrides.clone();
        let assumed = match self.assume_power {
            true => require_power(&[&self.stack], &mut overrides, true)?,
            false => None,
        };
        let stack = Stack::load(&self.stack, &overrides)?;
        let drives = stack.drives();
        let model = drives
            .first()
            .ok_or_else(|| PredictError::Asked("the stack has no drives".to_owned()))?;
        let (fingerprint, load) = fingerprint(&stack, self.window)?;
        let array = ArrayInputs::new(&fingerprint, model, drives.len() as u32);
        let began = Instant::now();
        let predicted = self.predict(&fingerprint, &array)?;
        let equations_us = began.elapsed().as_secs_f64() * 1e6;
        let modelled = load.map(|load| modelled(&stack, &load)).transpose()?;
        let answered_us = equations_us + modelled.as_ref().map_or(0.0, |model| model.answered_us);
        let simulated = match self.simulate {
            true => Some(self.simulated(overrides, stop)?),
            false => None,
        };
        Ok(Prediction {
            windows: fingerprint.windows,
            busy_windows: fingerprint.busy.len() as u64,
            requests: fingerprint.busy.iter().map(|window| window.count()).sum(),
            runs: fingerprint
                .busy
                .iter()
                .map(|window| window.run_count())
                .sum(),
            answered_us,
            equations_us,
            predicted,
            model: modelled,
            simulated,
            assumed,
            no_watts: lacking_power(&stack),
        })
    }

    fn predict(
        &self,
        fingerprint: &Fingerprint,
        array: &ArrayInputs,
    ) -> Result<Vec<PredictedLayout>, PredictError> {
        let ArrayInputs {
            disk,
            powers,
            drives,
            seeks_of_one,
            seeks,
        } = array;
        let (drives, powers) = (*drives, powers.as_ref());
        let elapsed_s = fingerprint.windows as f64 * fingerprint.window_s;
        let plain = |layout: String, seeks: &[f64], drives| {
            PredictedLayout::new(
                layout,
                &striped(fingerprint, seeks, drives, disk, powers, f64::INFINITY),
                elapsed_s,
            )
        };
        let mut rows = vec![plain("one disk".to_owned(), seeks_of_one, 1)];
        if drives < 2 {
            return Ok(rows);
        }
        rows.push(plain(format!("raid0 of {drives}"), seeks, drives));
        for (name, reserve) in [("PARAID", Reserve::Far), ("e-PARAID", Reserve::Beside)] {
            let gears = self.gears(drives, reserve);
            let found = geared(fingerprint, seeks, &gears, disk, powers)
                .ok_or_else(|| gears_that_cannot_be(&gears))?;
            let name = format!("{name} {drives}/{}", drives - gears.sleeping);
            rows.push(PredictedLayout::of_gears(name, &found, elapsed_s));
        }
        Ok(rows)
    }

    fn gears(&self, disks: u32, reserve: Reserve) -> Gears {
        Gears {
            disks,
            sleeping: self.sleeping.unwrap_or((disks / 4).max(1)),
            unit: self.unit.0 / 512,
            reserve,
            averaged: (self.averaged.as_secs_f64() / self.window.as_secs_f64()).round() as u32,
            down: self.down,
            up: self.up,
        }
    }

    fn simulated(&self, overrides: Overrides, stop: &Stop) -> Result<SimulatedStack, PredictError> {
        let recipe = Recipe {
            name: "stack".to_owned(),
            varied: Varied::default(),
            file: self.stack.clone(),
            overrides,
        };
        let mut candidate = recipe.candidate()?;
        candidate.stop = stop.clone();
        let began = Instant::now();
        let ran = run(&candidate, None, &|_, _| {})?;
        ran.check_measured()?;
        let report = &ran.measured.report;
        let reading = |name: &str| {
            let mut all = report.array.layers.iter().flat_map(|layer| &layer.readings);
            all.find(|reading| reading.name == name)
                .map(|reading| reading.value)
        };
        let shifts = [reading("volume_shifts_down"), reading("volume_shifts_up")];
        Ok(SimulatedStack {
            gear_shifts: shifts.into_iter().flatten().reduce(|down, up| down + up),
            low_gear_share: reading("volume_low_gear_share"),
            took_ms: began.elapsed().as_secs_f64() * 1e3,
            layout: ran.volume.layout,
            response_ms_mean: report.times.response_ms.mean,
            mean_w: report.array.energy.as_ref().map(|energy| energy.mean_w),
        })
    }
}

fn gears_that_cannot_be(gears: &Gears) -> PredictError {
    // The thresholds are named only if nothing else is wrong, because their check assumes a
    // possible number of sleeping disks.
    let can_be = gears.sleeping < gears.disks && gears.unit > 0 && gears.averaged > 0;
    if let Some(message) = gears.thresholds().err().filter(|_| can_be) {
        return PredictError::Asked(format!("--down, --up: {message}"));
    }
    PredictError::Asked(format!(
        "found {} drives, {} in standby, a unit of {} sectors and {} averaged windows; expected --sleeping below the number of drives, and --unit and --averaged above 0",
        gears.disks, gears.sleeping, gears.unit, gears.averaged
    ))
}

impl PredictedLayout {
    fn new(layout: String, predicted: &Predicted, elapsed_s: f64) -> PredictedLayout {
        PredictedLayout {
            layout,
            latency_ms: 1000.0 * predicted.latency_s,
            utilisation: predicted.utilisation,
            mb_per_s: predicted.bandwidth * 512.0 / 1e6,
            mean_w: predicted.energy_j.map(|joules| joules / elapsed_s),
            gear_shifts: None,
            low_gear_share: None,
        }
    }

    fn of_gears(layout: String, shifted: &Shifted, elapsed_s: f64) -> PredictedLayout {
        let (gear_shifts, low_gear_share) = (Some(shifted.shifts_s.len()), Some(shifted.low_share));
        PredictedLayout {
            gear_shifts,
            low_gear_share,
            ..PredictedLayout::new(layout, &shifted.predicted, elapsed_s)
        }
    }
}

/// Returns the watts behind a comma; an empty text if they are unknown.
fn in_watts(watts: Option<f64>) -> String {
    watts.map_or_else(String::new, |watts| format!(", {} W", number(watts)))
}

impl Prediction {
    /// Returns a table with the predictions of the equations, by layout.
    fn rows(&self) -> String {
        let mut rows = table(
            [
                "by equations",
                "latency ms",
                "utilisation",
                "MB/s",
                "W",
                "shifts",
                "low gear",
            ],
            &[0],
        );
        let dash = || "-".to_owned();
        for row in &self.predicted {
            rows.add_row([
                row.layout.clone(),
                number(row.latency_ms),
                number(row.utilisation),
                number(row.mb_per_s),
                row.mean_w.map_or_else(dash, number),
                row.gear_shifts
                    .map_or_else(dash, |shifts| shifts.to_string()),
                row.low_gear_share
                    .map_or_else(dash, |share| format!("{:.1} %", 100.0 * share)),
            ]);
        }
        rows.trim_fmt()
    }
}

impl fmt::Display for SimulatedStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gears = match (self.gear_shifts, self.low_gear_share) {
            (Some(shifts), Some(low)) => {
                format!(", {shifts} shifts, {:.1} % in the low gear", 100.0 * low)
            }
            _ => String::new(),
        };
        write!(
            f,
            "Simulated, {}: mean response {} ms{}{gears}. That took {} ms.",
            self.layout,
            number(self.response_ms_mean),
            in_watts(self.mean_w),
            number(self.took_ms)
        )
    }
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Prediction {
            windows,
            busy_windows,
            requests,
            runs,
            equations_us,
            ..
        } = self;
        writeln!(
            f,
            "{requests} requests in {runs} runs; {busy_windows} of {windows} windows are busy.\n"
        )?;
        writeln!(f, "{}\n", self.rows())?;
        if let Some(model) = &self.model {
            writeln!(f, "{model}{}.", in_watts(model.mean_w))?;
        }
        if let Some(simulated) = &self.simulated {
            writeln!(f, "{simulated}")?;
        }
        if let Some(model) = &self.model {
            model.say_regime(f)?;
        }
        if let Some(source) = self.assumed {
            writeln!(f, "Source of the power figures: {source}.")?;
        }
        if let Some(why) = &self.no_watts {
            writeln!(f, "No watts: {why}.")?;
        }
        write!(
            f,
            "The equations took {} us. They do not model buffers, parity, overlapping requests on different drives, or a backlog from window to window.",
            number(*equations_us)
        )
    }
}

impl fmt::Display for QueueingPrediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(response), Some(busy), Some(outstanding)) =
            (self.response_ms, self.utilisation, self.outstanding)
        else {
            return write!(f, "As queues: more arrives than the drives can serve");
        };
        write!(
            f,
            "As queues: mean response {} ms, {} outstanding, drives busy for {:.1} % of the time",
            number(response),
            number(outstanding),
            100.0 * busy
        )
    }
}

impl QueueingPrediction {
    /// Writes whether the load is within the bounds of the model.
    fn say_regime(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outside[..] {
            [] => writeln!(
                f,
                "The queueing model was found within 10 % of simulations of such loads."
            )?,
            outside => {
                writeln!(
                    f,
                    "The queueing model may be far off here. In other cases the error was at most 10 %:"
                )?;
                outside.iter().try_for_each(|why| writeln!(f, "- {why}"))?;
            }
        }
        writeln!(
            f,
            "It took {} us, and its tables {} ms.\n",
            number(self.answered_us),
            number(self.tabulated_ms)
        )
    }
}
