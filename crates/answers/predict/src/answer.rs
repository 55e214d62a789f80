//! What formulas say of a stack's load at once, beside a simulation.

use crate::{
    Arrival, Disk, DriveTables, Fingerprint, Gatherer, Gears, Load, LoadGatherer, Powers,
    Predicted, REGIME, Reserve, Shifted, geared, plans, queues, seek_delays, striped,
};
use fullstroke_drive::Model;
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

/// Layouts that spread their load evenly over members that are alike.
const MODELLED: [&str; 5] = ["raid0", "raid1", "raid10", "raid5", "raid6"];

/// Which stack, and by which parameters.
#[derive(Clone, Debug)]
pub struct PredictQuestion {
    /// The stack file, of which the equations take the number of drives and the first one's figures.
    pub stack: PathBuf,
    /// What is changed of it, such as a trace in place of its workload.
    pub overrides: Overrides,
    /// The window of the fingerprint.
    pub window: Duration,
    /// The stripe unit of arrays with gears.
    pub unit: Bytes,
    /// Drives that sleep in the low gear; a quarter of them if `None`.
    pub sleeping: Option<u32>,
    /// Shift down when the mean utilisation of the last `averaged` is below this.
    pub down: f64,
    /// Shift up when the mean utilisation is above this.
    pub up: f64,
    /// The time over which utilisation is averaged.
    pub averaged: Duration,
    /// Let drives whose files do not say what they draw draw what their class is assumed to.
    pub assume_power: bool,
    /// Simulate the stack beside the formulas.
    pub simulate: bool,
}

impl PredictQuestion {
    /// A question about this stack with the parameters that the command has unless said otherwise.
    pub fn new(stack: PathBuf, overrides: Overrides) -> PredictQuestion {
        PredictQuestion {
            stack,
            overrides,
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

/// Why no prediction can be given.
#[derive(Debug, Error)]
pub enum PredictError {
    /// The stack cannot be read.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// The simulation failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// Watts cannot be assumed.
    #[error(transparent)]
    Power(#[from] PowerError),
    /// Parameters, or a stack, of which nothing can be predicted.
    #[error("{0}")]
    Asked(String),
}

/// What formulas say of a load, beside a simulation; what `predict --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Windows of the fingerprint.
    pub windows: u64,
    /// Windows with requests.
    pub busy_windows: u64,
    /// Reads and writes.
    pub requests: u64,
    /// Runs of adjacent requests.
    pub runs: u64,
    /// How long all predictions took, the fingerprint and the tables of the drive given.
    pub answered_us: f64,
    /// How long the equations took.
    pub equations_us: f64,
    /// Layouts by the equations.
    pub predicted: Vec<PredictedLayout>,
    /// The stack's own array by the queueing model; `None` where the load has no arrivals.
    pub model: Option<Modelled>,
    /// The simulation of the stack; `None` where none was asked for.
    pub simulated: Option<SimulatedStack>,
    /// Where what the drives draw is from, if that is assumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed: Option<&'static str>,
    /// Why there are no watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_watts: Option<String>,
}

/// A layout by the equations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PredictedLayout {
    /// The layout.
    pub layout: String,
    /// Mean latency.
    pub latency_ms: f64,
    /// Share of the time in which drives are busy.
    pub utilisation: f64,
    /// Read and written, in 10^6 bytes a second.
    pub mb_per_s: f64,
    /// Mean power of all drives, in watts; `None` where nobody says what they draw.
    pub mean_w: Option<f64>,
    /// Shifts between gears.
    pub gear_shifts: Option<usize>,
    /// Share of the time in the low gear.
    pub low_gear_share: Option<f64>,
}

/// The stack as it is, by the queueing model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Modelled {
    /// How long the answer took, the fingerprint and the tables given.
    pub answered_us: f64,
    /// How long the tables of the drive took.
    pub tabulated_ms: f64,
    /// `None`: more arrives than can be served.
    pub response_ms: Option<f64>,
    /// Share of the time in which drives are busy.
    pub utilisation: Option<f64>,
    /// Mean number of requests under way.
    pub outstanding: Option<f64>,
    /// Mean power of all drives, in watts; `None` where nobody says what they draw.
    pub mean_w: Option<f64>,
    /// What was found of the load, and where the model was found within 10 % of a simulation.
    pub bounds: Vec<Bounded>,
    /// Why the model may be further off; none of it where it was found within 10 %.
    pub outside: Vec<String>,
}

/// A bound within which the model was found within 10 % of a simulation, and the load's value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bounded {
    /// What is bounded.
    pub name: &'static str,
    /// The load's value.
    pub found: f64,
    /// The least value inside.
    pub least: Option<f64>,
    /// The largest value inside.
    pub most: f64,
}

/// The stack as it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimulatedStack {
    /// The layout.
    pub layout: String,
    /// How long the simulation took, of the world's time.
    pub took_ms: f64,
    /// Mean response time.
    pub response_ms_mean: f64,
    /// Mean power of all drives, in watts; `None` where nobody says what they draw.
    pub mean_w: Option<f64>,
    /// Of layouts with gears.
    pub gear_shifts: Option<f64>,
    /// Share of the time in the low gear.
    pub low_gear_share: Option<f64>,
}

/// That of the reads and writes of the stack's workload, at the times at which it issues them, for the
/// equations and for the model.
fn fingerprint(
    stack: &Stack,
    window: Duration,
) -> Result<(Fingerprint, Option<Load>), PredictError> {
    let mut gatherer = Gatherer::new(window.as_secs_f64()).ok_or_else(|| {
        PredictError::Asked("--window 0: expected a time, such as 100ms".to_owned())
    })?;
    let capacity = stack.shape()?.capacity();
    let mut load = LoadGatherer::new(capacity.0, window.as_secs_f64());
    arrivals(stack, &mut |now, request| {
        let arrival = Arrival::of(now, request);
        gatherer.add(arrival);
        load.add(arrival);
    })?;
    Ok((gatherer.finish(), load.finish()))
}

/// The queueing model of the stack's array under this load.
fn modelled(stack: &Stack, load: &Load) -> Result<Modelled, PredictError> {
    let began = Instant::now();
    let drives = stack.drives();
    let mut shape = stack.shape()?;
    let tables = DriveTables::new(drives[0], used(&shape))
        .map_err(|error| PredictError::Asked(error.to_string()))?;
    let tabulated_ms = began.elapsed().as_secs_f64() * 1e3;
    let began = Instant::now();
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
                bounds.push(Bounded {
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
        outside.push("requests beyond the volume's end, or to what is lost".to_owned());
    }
    Ok(Modelled {
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

/// Sectors of the first drive that the volume uses.
fn used(shape: &Shape) -> u64 {
    match shape {
        Shape::Drive(capacity) => capacity.0,
        Shape::Volume { layout, members } => match &members[0] {
            Shape::Drive(_) => layout.member_used(0).0,
            nested => used(nested),
        },
    }
}

/// Parts of a stack that the model does not have.
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
    unlike
}

/// Layouts whose members the model cannot take to be alike.
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

/// What the equations take of a stack and its load, once.
struct Array {
    disk: Disk,
    powers: Option<Powers>,
    drives: u32,
    seeks_of_one: Vec<f64>,
    seeks: Vec<f64>,
}

impl Array {
    fn new(fingerprint: &Fingerprint, model: &Model, drives: u32) -> Array {
        let disk = Disk::of(model);
        Array {
            powers: Powers::of(model),
            drives,
            seeks_of_one: seek_delays(fingerprint, 1, &disk),
            seeks: seek_delays(fingerprint, drives, &disk),
            disk,
        }
    }
}

impl PredictQuestion {
    /// What the formulas say, and unless it is left out a simulation of the stack beside them.
    ///
    /// # Errors
    /// The stack's, those of the simulation, and gears that cannot be.
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
        let array = Array::new(&fingerprint, model, drives.len() as u32);
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
        array: &Array,
    ) -> Result<Vec<PredictedLayout>, PredictError> {
        let Array {
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
    let can_be = gears.sleeping < gears.disks && gears.unit > 0 && gears.averaged > 0;
    if let Some(message) = gears.thresholds().err().filter(|_| can_be) {
        return PredictError::Asked(format!("--down, --up: {message}"));
    }
    PredictError::Asked(format!(
        "an array of {} drives of which {} sleep, in units of {} sectors, over {} windows: expected fewer asleep \
         than there are, and more than 0 of the others (--sleeping, --unit, --averaged)",
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

/// Watts behind a comma; nothing where they are not known.
fn in_watts(watts: Option<f64>) -> String {
    watts.map_or_else(String::new, |watts| format!(", {} W", number(watts)))
}

impl Prediction {
    /// What equations say of each layout.
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
            writeln!(f, "What the drives draw is {source}.")?;
        }
        if let Some(why) = &self.no_watts {
            writeln!(f, "No watts: {why}.")?;
        }
        write!(
            f,
            "The equations took {} us. They know no buffer, no parity and no overlap of requests on different drives, \
             and carry no backlog from window to window.",
            number(*equations_us)
        )
    }
}

impl fmt::Display for Modelled {
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

impl Modelled {
    /// Whether the model was found to hold for such a load.
    fn say_regime(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outside[..] {
            [] => writeln!(
                f,
                "The queueing model was found within 10 % of simulations of such loads."
            )?,
            outside => {
                writeln!(
                    f,
                    "The queueing model may be far off here. It was found within 10 % elsewhere:"
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
