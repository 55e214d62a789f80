//! `fullstroke predict`: what formulas say of a load at once, beside a simulation.

use crate::options::Edits;
use crate::output::{Failure, Output};
use crate::power::{Assuming, lacking};
use clap::Args;
use fullstroke_drive::Model;
use fullstroke_lab::{Recipe, Varied, arrivals, run};
use fullstroke_measure::{number, table};
use fullstroke_predict::{
    Arrival, Disk, DriveTables, Fingerprint, Gatherer, Gears, Load, LoadGatherer, Powers,
    Predicted, REGIME, Reserve, Shifted, geared, plans, queues, seek_delays, striped,
};
use fullstroke_stack::{Overrides, Stack};
use fullstroke_units::{Bytes, Duration};
use fullstroke_volume::Shape;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::time::Instant;

/// Layouts that spread their load evenly over members that are alike.
const MODELLED: [&str; 5] = ["raid0", "raid1", "raid10", "raid5", "raid6"];

/// Predict latency, bandwidth and energy of a load on the drives of a stack, by the equations and the
/// queueing model of docs/prediction.md, and simulate the stack beside it.
///
/// The load is reduced to a fingerprint once; one disk, a stripe over all of them, PARAID and e-PARAID
/// follow from that at once by the equations, and the stack's own array by the model.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A trace in place of the stack's workload.
    trace: Option<PathBuf>,

    /// The stack file, of which the equations take the number of drives and the first one's figures.
    #[arg(long, value_name = "FILE")]
    stack: PathBuf,

    #[command(flatten)]
    edits: Edits,

    /// The window of the fingerprint.
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    window: Duration,

    /// The stripe unit of arrays with gears.
    #[arg(long, value_name = "SIZE", default_value = "64KiB")]
    unit: Bytes,

    /// Drives that sleep in the low gear; a quarter of them unless said.
    #[arg(long, value_name = "NUMBER")]
    sleeping: Option<u32>,

    /// Shift down when the mean utilisation of the last --averaged is below this.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    down: f64,

    /// Shift up when it is above this.
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    up: f64,

    /// The time over which utilisation is averaged.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    averaged: Duration,

    #[command(flatten)]
    assuming: Assuming,

    /// Do not simulate the stack.
    #[arg(long)]
    no_simulation: bool,
}

/// What `predict --json` prints.
#[derive(Debug, Serialize)]
struct Answer {
    windows: u64,
    busy_windows: u64,
    requests: u64,
    runs: u64,
    /// How long all predictions took, the fingerprint and the tables of the drive given.
    answered_us: f64,
    equations_us: f64,
    predicted: Vec<Row>,
    model: Option<Modelled>,
    simulated: Option<Simulated>,
    /// Where what the drives draw is from, if that is assumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    assumed: Option<&'static str>,
    /// Why there are no watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_watts: Option<String>,
}

#[derive(Debug, Serialize)]
struct Row {
    layout: String,
    latency_ms: f64,
    utilisation: f64,
    mb_per_s: f64,
    mean_w: Option<f64>,
    gear_shifts: Option<usize>,
    low_gear_share: Option<f64>,
}

/// The stack as it is, by the queueing model.
#[derive(Debug, Serialize)]
struct Modelled {
    /// How long the answer took, the fingerprint and the tables given.
    answered_us: f64,
    /// How long the tables of the drive took.
    tabulated_ms: f64,
    /// `None`: more arrives than can be served.
    response_ms: Option<f64>,
    utilisation: Option<f64>,
    outstanding: Option<f64>,
    mean_w: Option<f64>,
    /// What was found of the load, and where the model was found within 10 % of a simulation.
    bounds: Vec<Bounded>,
    /// Why the model may be further off; none of it where it was found within 10 %.
    outside: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Bounded {
    name: &'static str,
    found: f64,
    least: Option<f64>,
    most: f64,
}

/// The stack as it is.
#[derive(Debug, Serialize)]
struct Simulated {
    layout: String,
    /// How long the simulation took, of the world's time.
    took_ms: f64,
    response_ms_mean: f64,
    mean_w: Option<f64>,
    /// Of layouts with gears.
    gear_shifts: Option<f64>,
    low_gear_share: Option<f64>,
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let mut overrides = Overrides {
        trace: arguments.trace.clone(),
        ..arguments.edits.overrides()
    };
    let assumed = arguments
        .assuming
        .require_if(false, &[&arguments.stack], &mut overrides)?;
    let stack = Stack::load(&arguments.stack, &overrides).map_err(Failure::input)?;
    let drives = stack.drives();
    let model = drives
        .first()
        .ok_or_else(|| Failure::input("the stack has no drives"))?;
    let (fingerprint, load) = fingerprint(&stack, arguments.window)?;
    let array = Array::new(&fingerprint, model, drives.len() as u32);
    let began = Instant::now();
    let predicted = arguments.predict(&fingerprint, &array)?;
    let equations_us = began.elapsed().as_secs_f64() * 1e6;
    let modelled = load.map(|load| modelled(&stack, &load)).transpose()?;
    let answered_us = equations_us + modelled.as_ref().map_or(0.0, |model| model.answered_us);
    let simulated = match arguments.no_simulation {
        true => None,
        false => Some(arguments.simulate(overrides)?),
    };
    let answer = Answer {
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
        no_watts: lacking(&stack),
    };
    output.show(&answer, &answer)
}

/// That of the reads and writes of the stack's workload, at the times at which it issues them, for the
/// equations and for the model.
fn fingerprint(stack: &Stack, window: Duration) -> Result<(Fingerprint, Option<Load>), Failure> {
    let mut gatherer = Gatherer::new(window.as_secs_f64())
        .ok_or_else(|| Failure::input("--window 0: expected a time, such as 100ms"))?;
    let capacity = stack.shape().map_err(Failure::input)?.capacity();
    let mut load = LoadGatherer::new(capacity.0, window.as_secs_f64());
    arrivals(stack, &mut |now, request| {
        let arrival = Arrival::of(now, request);
        gatherer.add(arrival);
        load.add(arrival);
    })
    .map_err(Failure::input)?;
    Ok((gatherer.finish(), load.finish()))
}

/// The queueing model of the stack's array under this load.
fn modelled(stack: &Stack, load: &Load) -> Result<Modelled, Failure> {
    let began = Instant::now();
    let drives = stack.drives();
    let mut shape = stack.shape().map_err(Failure::input)?;
    let tables = DriveTables::new(drives[0], used(&shape)).map_err(Failure::input)?;
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

impl Arguments {
    fn predict(&self, fingerprint: &Fingerprint, array: &Array) -> Result<Vec<Row>, Failure> {
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
            Row::new(
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
            rows.push(Row::of_gears(name, &found, elapsed_s));
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

    fn simulate(&self, overrides: Overrides) -> Result<Simulated, Failure> {
        let recipe = Recipe {
            name: "stack".to_owned(),
            varied: Varied::default(),
            file: self.stack.clone(),
            overrides,
        };
        let candidate = recipe.candidate().map_err(Failure::input)?;
        let began = Instant::now();
        let ran = run(&candidate, None, &|_, _| {}).map_err(Failure::input)?;
        ran.check_measured().map_err(Failure::input)?;
        let report = &ran.measured.report;
        let reading = |name: &str| {
            let mut all = report.array.layers.iter().flat_map(|layer| &layer.readings);
            all.find(|reading| reading.name == name)
                .map(|reading| reading.value)
        };
        let shifts = [reading("volume_shifts_down"), reading("volume_shifts_up")];
        Ok(Simulated {
            gear_shifts: shifts.into_iter().flatten().reduce(|down, up| down + up),
            low_gear_share: reading("volume_low_gear_share"),
            took_ms: began.elapsed().as_secs_f64() * 1e3,
            layout: ran.volume.layout,
            response_ms_mean: report.times.response_ms.mean,
            mean_w: report.array.energy.as_ref().map(|energy| energy.mean_w),
        })
    }
}

fn gears_that_cannot_be(gears: &Gears) -> Failure {
    let can_be = gears.sleeping < gears.disks && gears.unit > 0 && gears.averaged > 0;
    if let Some(message) = gears.thresholds().err().filter(|_| can_be) {
        return Failure::Input(format!("--down, --up: {message}"));
    }
    Failure::Input(format!(
        "an array of {} drives of which {} sleep, in units of {} sectors, over {} windows: expected fewer asleep \
         than there are, and more than 0 of the others (--sleeping, --unit, --averaged)",
        gears.disks, gears.sleeping, gears.unit, gears.averaged
    ))
}

impl Row {
    fn new(layout: String, predicted: &Predicted, elapsed_s: f64) -> Row {
        Row {
            layout,
            latency_ms: 1000.0 * predicted.latency_s,
            utilisation: predicted.utilisation,
            mb_per_s: predicted.bandwidth * 512.0 / 1e6,
            mean_w: predicted.energy_j.map(|joules| joules / elapsed_s),
            gear_shifts: None,
            low_gear_share: None,
        }
    }

    fn of_gears(layout: String, shifted: &Shifted, elapsed_s: f64) -> Row {
        let (gear_shifts, low_gear_share) = (Some(shifted.shifts_s.len()), Some(shifted.low_share));
        Row {
            gear_shifts,
            low_gear_share,
            ..Row::new(layout, &shifted.predicted, elapsed_s)
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Answer {
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
        writeln!(f, "{}\n", rows.trim_fmt())?;
        let watts = |watts: &Option<f64>| {
            watts.map_or_else(String::new, |watts| format!(", {} W", number(watts)))
        };
        if let Some(model) = &self.model {
            writeln!(f, "{model}{}.", watts(&model.mean_w))?;
        }
        if let Some(Simulated {
            layout,
            took_ms,
            response_ms_mean,
            mean_w,
            gear_shifts,
            low_gear_share,
        }) = &self.simulated
        {
            let response = number(*response_ms_mean);
            let gears = match (gear_shifts, low_gear_share) {
                (Some(shifts), Some(low)) => {
                    format!(", {shifts} shifts, {:.1} % in the low gear", 100.0 * low)
                }
                _ => String::new(),
            };
            writeln!(
                f,
                "Simulated, {layout}: mean response {response} ms{}{gears}. That took {} ms.",
                watts(mean_w),
                number(*took_ms)
            )?;
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
