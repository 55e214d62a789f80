//! `fullstroke validate`: compares the drive model with measured disks.

mod own;

pub(crate) use own::{LogStart, fit_log};

use crate::output::{CommandFailure, CommandOutput, print_error, write_whole};
use crate::outputs::{self, OutputKind, Target};
use clap::Args;
use fullstroke_calibrate::validate::{
    Distance, FailedTrace, FoundDrive, LeaveOneOut, MeasuredDisk, ReplayedTrace, TraceFile, Traces,
    ValidateError, Validation, find_traces, leave_one_out, write_log,
};
use fullstroke_measure::{number, table};
use fullstroke_report::plots::{Distributions, distributions};
use fullstroke_units::Seed;
use serde::Serialize;
use std::path::PathBuf;

/// Replay requests measured on real disks on the model of each disk, and report the distance
/// between the two distributions of service time.
///
/// A validation trace has a line for each request: R or W, outcome (Hit, Miss, Doub or Trip), first
/// sector, sectors, measured service time (us), think time (us). The replay is closed with one
/// request outstanding: the next request is issued the think time after the completion.
///
/// RMS is the root-mean-square horizontal distance of the two cumulative distributions (the demerit
/// figure of Ruemmler & Wilkes), in ms and as a share of the measured mean. Noise is the mean RMS
/// between the measurement and bootstrap resamples of it. A model below the noise cannot be told
/// from a perfect one.
///
/// The drive of X.trace is the drive of --drive, else the file X.toml, X.parv or X.diskspecs beside
/// the trace, else the library drive with X in its name.
///
/// An unusable trace or drive in a folder gets a row of its own. The others stand, and the exit
/// status is 1.
///
/// With --fit, the input is a log of a disk of your own, in any format with latencies (blktrace,
/// fio, a file of `record`). The first half of the log chooses the nearest drive and fits it. The
/// second half judges the fit and gives its trustworthiness.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Traces, or folders of traces (X.trace; plain, gzip, zstd or xz).
    #[arg(required = true)]
    paths: Vec<PathBuf>,

    /// Measured drive: a name from `drive list`, a drive file, or a parameter file of DiskSim.
    #[arg(long, value_name = "NAME|FILE")]
    drive: Option<String>,

    /// Fit the drive, or the nearest library drive, to this log of a disk of your own.
    #[arg(long, conflicts_with_all = ["leave_one_out", "log"])]
    fit: bool,

    #[command(flatten)]
    own: own::LogArguments,

    /// Choose the rules for parameter files of DiskSim (those of `drive import --rule`) on all
    /// disks, and for each disk on all others. Show the distance of both models from the disk.
    #[arg(long, conflicts_with_all = ["drive", "by_class", "plot", "log"])]
    leave_one_out: bool,

    /// Also compare each class of requests (operation and outcome). With --json the classes are
    /// always present.
    #[arg(long)]
    by_class: bool,

    /// Draw both distributions of each disk into this file.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    /// Write both times of every request to this file: CSV if the name ends in .csv or .csv.gz,
    /// else Parquet.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Seed of the bootstrap resamples.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

/// Row of one disk: a comparison, or an error.
#[derive(Serialize)]
#[serde(untagged)]
enum DiskRow<'a, T> {
    Compared(&'a T),
    Failed {
        drive: &'a str,
        trace: String,
        error: String,
    },
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    if arguments.fit {
        return own::execute(arguments, output);
    }
    let Traces {
        found, mut failed, ..
    } = traces(arguments)?;
    let read = found
        .iter()
        .map(|(trace, _)| trace.path.clone())
        .chain(arguments.read());
    outputs::check(arguments.targets(), &read.collect::<Vec<_>>())?;
    let alone = found.len() + failed.len() == 1;
    if arguments.leave_one_out {
        return leave_out(found, failed, output);
    }
    let mut validations = Vec::new();
    let mut replays = Vec::new();
    for (trace, drive) in found {
        match ReplayedTrace::run(&trace.path, &drive) {
            Ok(replay) => {
                validations.push(Validation::new(
                    &trace,
                    &drive,
                    &replay,
                    Seed(arguments.seed),
                ));
                replays.push(replay);
            }
            Err(error) => failed.push(FailedTrace { trace, error }),
        }
    }
    // A single trace without a result is unusable input (status 2), not a failed check.
    if let ([only], true) = (failed.as_slice(), alone) {
        return Err(CommandFailure::input(&only.error));
    }
    if let Some(path) = &arguments.plot {
        let panels: Vec<Distributions<'_>> = validations.iter().map(panel).collect();
        write_whole(
            path,
            &distributions(&panels).map_err(CommandFailure::input)?,
        )?;
    }
    if let Some(path) = &arguments.log {
        let names = validations
            .iter()
            .map(|validation| validation.drive.as_str());
        write_log(path, names.zip(&replays)).map_err(CommandFailure::input)?;
    }
    let mut text = overview(&validations);
    if arguments.by_class {
        text += &format!("\n\n{}", by_class(&validations));
    }
    output.show(
        &rows(&validations, &failed),
        format!("{text}{}", not_compared(&failed)),
    )?;
    if failed.is_empty() {
        Ok(())
    } else {
        Err(CommandFailure::Checks)
    }
}

/// Returns both distributions of a disk for the figure.
fn panel(validation: &Validation) -> Distributions<'_> {
    Distributions {
        title: panel_title(
            &validation.drive,
            validation.rms_ms,
            validation.rms_share,
            validation.noise_ms,
        ),
        measured_ms: validation.measured.values(),
        simulated_ms: validation.simulated.values(),
    }
}

/// Returns the title of the distributions of the disk `name`.
fn panel_title(name: &str, rms_ms: f64, rms_share: f64, noise_ms: f64) -> String {
    let percent = 100.0 * rms_share;
    format!("{name}: RMS {rms_ms:.3} ms ({percent:.1} % of the mean), noise {noise_ms:.3} ms")
}

impl Arguments {
    /// Returns the files that the command line names as input.
    fn read(&self) -> impl Iterator<Item = PathBuf> {
        self.paths
            .iter()
            .cloned()
            .chain(self.drive.as_ref().map(PathBuf::from))
    }

    /// Returns the files to write.
    fn targets(&self) -> [Option<Target<'_>>; 3] {
        [
            Target::of("--plot", &self.plot, OutputKind::Figure),
            Target::of("--log", &self.log, OutputKind::Other),
            self.own.target(),
        ]
    }
}

fn rows<'a, T>(compared: &'a [T], failed: &'a [FailedTrace]) -> Vec<DiskRow<'a, T>> {
    let failed = failed.iter().map(|failed| DiskRow::Failed {
        drive: &failed.trace.name,
        trace: failed.trace.path.display().to_string(),
        error: failed.error.to_string(),
    });
    compared
        .iter()
        .map(DiskRow::Compared)
        .chain(failed)
        .collect()
}

fn not_compared(failed: &[FailedTrace]) -> String {
    failed
        .iter()
        .map(|failed| format!("\n{}: not compared: {}", failed.trace.name, failed.error))
        .collect()
}

/// Compares each disk with rules that were chosen on the other disks.
fn leave_out(
    found: Vec<(TraceFile, FoundDrive)>,
    mut failed: Vec<FailedTrace>,
    output: &CommandOutput,
) -> Result<(), CommandFailure> {
    let mut disks = Vec::new();
    for (trace, _) in found {
        match MeasuredDisk::read(&trace) {
            Ok(Some(disk)) => disks.push(disk),
            Ok(None) => {
                let error = ValidateError::NoParameters {
                    trace: trace.path.display().to_string(),
                };
                failed.push(FailedTrace { trace, error });
            }
            Err(error) => failed.push(FailedTrace { trace, error }),
        }
    }
    if disks.len() < 2 {
        let message = format!(
            "found {} measured disks with a parameter file of DiskSim beside the trace; expected two or more{}",
            disks.len(),
            not_compared(&failed)
        );
        return Err(CommandFailure::Input(message));
    }
    let result = leave_one_out(&disks).map_err(CommandFailure::input)?;
    if output.json() {
        #[derive(Serialize)]
        struct ValidationOutput<'a> {
            disks: Vec<DiskRow<'a, fullstroke_calibrate::validate::HeldOutDisk>>,
            rules: &'a [String],
            replays: usize,
        }
        let disks = rows(&result.disks, &failed);
        output.show_json(&ValidationOutput {
            disks,
            rules: &result.rules,
            replays: result.replays,
        })?;
    } else {
        output.print(&format!("{}{}\n", left_out(&result), not_compared(&failed)))?;
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(CommandFailure::Checks)
    }
}

fn left_out(result: &LeaveOneOut) -> String {
    let header = [
        "disk",
        "mean ms",
        "as written",
        "by default",
        "all fitted",
        "left out",
        "left out %",
    ];
    let mut table = table(header, &[0]);
    let mut chosen = String::new();
    for disk in &result.disks {
        let ms = |distance: &Distance| format!("{:.3}", distance.rms_ms);
        table.add_row([
            disk.drive.clone(),
            number(disk.measured_mean_ms),
            ms(&disk.as_written),
            ms(&disk.by_default),
            ms(&disk.all_fitted),
            ms(&disk.left_out),
            format!("{:.2}", 100.0 * disk.left_out.rms_share),
        ]);
        chosen += &format!("\n{} left out: {}", disk.drive, disk.rules.join(", "));
    }
    let all = result.rules.join(", ");
    format!(
        "RMS in ms\n{}\n\nall disks: {all}{chosen}",
        table.trim_fmt()
    )
}

/// Finds all traces with their drives, and names skipped traces on standard error.
fn traces(arguments: &Arguments) -> Result<Traces, CommandFailure> {
    let mut all = Traces::default();
    for path in &arguments.paths {
        let traces =
            find_traces(path, arguments.drive.as_deref()).map_err(CommandFailure::input)?;
        all.found.extend(traces.found);
        all.skipped.extend(traces.skipped);
        all.failed.extend(traces.failed);
    }
    for trace in &all.skipped {
        print_error(&format!(
            "left out {}: {}",
            trace.path.display(),
            trace.reason
        ));
    }
    Ok(all)
}

fn overview(validations: &[Validation]) -> String {
    let header = [
        "disk", "", "requests", "mean ms", "p50", "p90", "p99", "max", "RMS ms", "RMS %",
        "noise ms",
    ];
    let mut table = table(header, &[0, 1]);
    for validation in validations {
        let measured = [
            validation.measured_mean_ms,
            validation.measured_p50_ms,
            validation.measured_p90_ms,
            validation.measured_p99_ms,
            validation.measured_max_ms,
        ];
        let simulated = [
            validation.simulated_mean_ms,
            validation.simulated_p50_ms,
            validation.simulated_p90_ms,
            validation.simulated_p99_ms,
            validation.simulated_max_ms,
        ];
        let blank = String::new;
        let mut first = vec![
            validation.drive.clone(),
            "measured".to_owned(),
            validation.n.to_string(),
        ];
        first.extend(measured.map(number));
        first.extend([blank(), blank(), number(validation.noise_ms)]);
        let mut second = vec![blank(), "simulated".to_owned(), blank()];
        second.extend(simulated.map(number));
        second.extend([
            number(validation.rms_ms),
            format!("{:.2}", 100.0 * validation.rms_share),
            blank(),
        ]);
        table.add_row(first);
        table.add_row(second);
    }
    let models = validations
        .iter()
        .map(|validation| format!("\n{}: {}", validation.drive, validation.title));
    format!("{}\n{}", table.trim_fmt(), models.collect::<String>())
}

fn by_class(validations: &[Validation]) -> String {
    let header = [
        "disk",
        "class",
        "requests",
        "measured mean ms",
        "simulated mean ms",
        "RMS ms",
    ];
    let mut table = table(header, &[0, 1]);
    for validation in validations {
        for class in &validation.classes {
            table.add_row([
                validation.drive.clone(),
                format!("{} {}", class.operation_letter(), class.outcome),
                class.n.to_string(),
                number(class.measured_mean_ms),
                number(class.simulated_mean_ms),
                number(class.rms_ms),
            ]);
        }
    }
    table.trim_fmt()
}
