//! `fullstroke predict`: what equations say of a load at once, beside a simulation.

use crate::output::{Failure, Output};
use clap::Args;
use fullstroke_contract::Operation;
use fullstroke_drive::Model;
use fullstroke_lab::{Recipe, Varied, run};
use fullstroke_measure::{number, table};
use fullstroke_predict::{
    Arrival, Disk, Fingerprint, Gatherer, Gears, Powers, Predicted, Reserve, Shifted, geared, striped,
};
use fullstroke_stack::{Overrides, Stack};
use fullstroke_trace::{Options, TraceReader};
use fullstroke_units::{Bytes, Duration};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Records that are read at a time.
const BATCH: usize = 4096;

/// What the equations know.
const MOVING: [Operation; 2] = [Operation::Read, Operation::Write];

/// Predict latency, bandwidth and energy of a trace on the drives of a stack, by the equations of
/// docs/prediction.md, and simulate the stack beside it.
///
/// The trace is reduced to a fingerprint once; one disk, a stripe over all of them, PARAID and
/// e-PARAID follow from that at once.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The trace.
    trace: PathBuf,

    /// The stack file, of which the equations take the number of drives and the first one's figures.
    #[arg(long, value_name = "FILE")]
    stack: PathBuf,

    /// Use this drive throughout.
    #[arg(long, value_name = "DRIVE")]
    drive: Option<String>,

    /// Set a key of the stack file (may be repeated).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,

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
    /// How long all predictions took, the fingerprint given.
    answered_us: f64,
    predicted: Vec<Row>,
    simulated: Option<Simulated>,
}

#[derive(Debug, Serialize)]
struct Row {
    layout: String,
    latency_ms: f64,
    utilisation: f64,
    mb_per_s: f64,
    mean_w: Option<f64>,
    gear_shifts: Option<u64>,
    low_gear_share: Option<f64>,
}

/// The stack as it is.
#[derive(Debug, Serialize)]
struct Simulated {
    layout: String,
    response_ms_mean: f64,
    mean_w: Option<f64>,
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let overrides = Overrides {
        set: arguments.set.clone(),
        trace: Some(arguments.trace.clone()),
        drive: arguments.drive.clone(),
        ..Overrides::default()
    };
    let stack = Stack::load(&arguments.stack, &overrides).map_err(Failure::input)?;
    let drives = stack.drives();
    let model = drives.first().ok_or_else(|| Failure::input("the stack has no drives"))?;
    let fingerprint = fingerprint(&arguments.trace, arguments.window)?;
    let began = Instant::now();
    let predicted = arguments.predict(&fingerprint, model, drives.len() as u32)?;
    let answered_us = began.elapsed().as_secs_f64() * 1e6;
    let simulated = match arguments.no_simulation {
        true => None,
        false => Some(arguments.simulate(overrides)?),
    };
    let answer = Answer {
        windows: fingerprint.windows,
        busy_windows: fingerprint.busy.len() as u64,
        requests: fingerprint.busy.iter().map(|window| window.count()).sum(),
        runs: fingerprint.busy.iter().map(|window| window.run_count()).sum(),
        answered_us,
        predicted,
        simulated,
    };
    output.show(&answer, &answer)
}

/// That of the reads and writes of a trace.
fn fingerprint(path: &Path, window: Duration) -> Result<Fingerprint, Failure> {
    let mut gatherer = Gatherer::new(window.as_secs_f64())
        .ok_or_else(|| Failure::input("--window 0: expected a time, such as 100ms"))?;
    let mut reader = TraceReader::open(path, &Options::default()).map_err(Failure::input)?;
    let mut records = Vec::with_capacity(BATCH);
    while reader.next_batch(&mut records, BATCH).map_err(Failure::input)? > 0 {
        for record in records.drain(..).filter(|record| MOVING.contains(&record.operation)) {
            gatherer.add(Arrival {
                at_s: record.arrival.as_nanos() as f64 / 1e9,
                start: record.extent.start.0,
                sectors: record.extent.sectors.0,
                write: record.operation == Operation::Write,
            });
        }
    }
    Ok(gatherer.finish())
}

/// What the equations take of a drive: the mean rate of a read of all of it, the shortest and the
/// longest seek.
fn disk(model: &Model) -> Disk {
    let (mechanics, rpm) = (model.mechanics(), model.config().rpm);
    let geometry = mechanics.geometry();
    let sectors = geometry.capacity().0 as f64;
    let revolutions: f64 =
        geometry.zones().map(|zone| zone.sectors.0 as f64 / zone.sectors_per_revolution).sum();
    let cylinders = geometry.cylinders();
    let seek = |distance| mechanics.seek_table().time(distance).as_secs_f64();
    Disk {
        sequential: sectors / (revolutions * 60.0 / rpm),
        rotation_s: 30.0 / rpm,
        settle_s: seek(1.min(cylinders - 1)),
        full_stroke_s: seek(cylinders - 1),
        cylinders: f64::from(cylinders),
        sectors,
    }
}

/// Its watts, if its file says them: operating is reading.
fn powers(model: &Model) -> Option<Powers> {
    let power = model.config().power?;
    Some(Powers {
        rotating: power.idle_a_w?,
        operating: power.read_w?,
        seeking: power.seek_w?,
        standby: power.standby_w?,
        spin_up_j: power.spin_up_j?,
    })
}

impl Arguments {
    fn predict(&self, fingerprint: &Fingerprint, model: &Model, drives: u32) -> Result<Vec<Row>, Failure> {
        let (disk, powers) = (disk(model), powers(model));
        let powers = powers.as_ref();
        let elapsed_s = fingerprint.windows as f64 * fingerprint.window_s;
        let plain = |layout: String, drives| {
            Row::new(layout, &striped(fingerprint, drives, &disk, powers, f64::INFINITY), elapsed_s)
        };
        let mut rows = vec![plain("one disk".to_owned(), 1)];
        if drives < 2 {
            return Ok(rows);
        }
        rows.push(plain(format!("raid0 of {drives}"), drives));
        for (name, reserve) in [("PARAID", Reserve::Far), ("e-PARAID", Reserve::Beside)] {
            let gears = self.gears(drives, reserve);
            let found =
                geared(fingerprint, &gears, &disk, powers).ok_or_else(|| gears_that_cannot_be(&gears))?;
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
        let ran = run(&candidate, None, &|_, _| {}).map_err(Failure::input)?;
        ran.check_measured().map_err(Failure::input)?;
        let report = &ran.measured.report;
        Ok(Simulated {
            layout: ran.volume.layout,
            response_ms_mean: report.response_ms.mean,
            mean_w: report.energy.as_ref().map(|energy| energy.mean_w),
        })
    }
}

fn gears_that_cannot_be(gears: &Gears) -> Failure {
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
        let (gear_shifts, low_gear_share) = (Some(shifted.shifts), Some(shifted.low_share));
        Row { gear_shifts, low_gear_share, ..Row::new(layout, &shifted.predicted, elapsed_s) }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Answer { windows, busy_windows, requests, runs, answered_us, .. } = self;
        writeln!(f, "{requests} requests in {runs} runs; {busy_windows} of {windows} windows are busy.\n")?;
        let mut rows =
            table(["by equations", "latency ms", "utilisation", "MB/s", "W", "shifts", "low gear"], &[0]);
        let dash = || "-".to_owned();
        for row in &self.predicted {
            rows.add_row([
                row.layout.clone(),
                number(row.latency_ms),
                number(row.utilisation),
                number(row.mb_per_s),
                row.mean_w.map_or_else(dash, number),
                row.gear_shifts.map_or_else(dash, |shifts| shifts.to_string()),
                row.low_gear_share.map_or_else(dash, |share| format!("{:.1} %", 100.0 * share)),
            ]);
        }
        writeln!(f, "{}\n", rows.trim_fmt())?;
        if let Some(Simulated { layout, response_ms_mean, mean_w }) = &self.simulated {
            let watts = mean_w.map_or_else(String::new, |watts| format!(", {} W", number(watts)));
            writeln!(f, "Simulated, {layout}: mean response {} ms{watts}.", number(*response_ms_mean))?;
        }
        write!(
            f,
            "The equations took {} us. They know no buffer, no parity and no overlap of requests on different drives, \
             and carry no backlog from window to window.",
            number(*answered_us)
        )
    }
}
