//! `fullstroke validate`: the drive model beside measured disks.

use crate::output::{Failure, Output};
use clap::Args;
use fullstroke_measure::{number, table};
use fullstroke_table::AtomicFile;
use fullstroke_units::Seed;
use fullstroke_validate::{FoundDrive, Replay, TraceFile, Validation, find_traces, plot, write_log};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Replay requests measured on real disks on the model of each, and say how far
/// the two distributions of service time lie apart.
///
/// A validation trace has a line for each request: R or W, outcome (Hit, Miss,
/// Doub or Trip), first sector, sectors, measured service time (us), think time
/// (us). The replay is closed with one request outstanding: the next one is
/// issued the think time after it completed.
///
/// RMS is the root-mean-square horizontal distance of the two cumulative
/// distributions (the demerit figure of Ruemmler & Wilkes), in ms and as a
/// share of the measured mean. Noise is the mean RMS between the measurement
/// and bootstrap resamples of it: a model below it cannot be told from a
/// perfect one.
///
/// The drive of X.trace is the one said with --drive, else the one in
/// X.toml, X.parv or X.diskspecs beside the trace, else the one of the library
/// that has X in its name.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Traces, or folders of them (each X.trace in it; plain, gzip, zstd or xz).
    #[arg(required = true)]
    paths: Vec<PathBuf>,

    /// The drive that was measured: a name from `drive list`, a drive file, or a
    /// parameter file of DiskSim.
    #[arg(long, value_name = "NAME|FILE")]
    drive: Option<String>,

    /// Compare each class of requests (operation and outcome) by itself as well;
    /// with --json the classes are always there.
    #[arg(long)]
    by_class: bool,

    /// Draw both distributions of each disk into this file.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    /// Write both times of every request to this file: CSV if it ends in .csv or
    /// .csv.gz, else Parquet.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// The seed of the bootstrap resamples.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let mut validations = Vec::new();
    let mut replays = Vec::new();
    for (trace, drive) in traces(arguments)? {
        let replay = Replay::run(&trace.path, &drive).map_err(Failure::input)?;
        validations.push(Validation::new(&trace, &drive, &replay, Seed(arguments.seed)));
        replays.push(replay);
    }
    if let Some(path) = &arguments.plot {
        write_whole(path, &plot(&validations).map_err(Failure::input)?)?;
    }
    if let Some(path) = &arguments.log {
        let names = validations.iter().map(|validation| validation.drive.as_str());
        write_log(path, names.zip(&replays)).map_err(Failure::input)?;
    }
    let mut text = overview(&validations);
    if arguments.by_class {
        text += &format!("\n\n{}", by_class(&validations));
    }
    output.show(&validations, text)
}

/// All traces with their drives; says on standard error which were left out.
fn traces(arguments: &Arguments) -> Result<Vec<(TraceFile, FoundDrive)>, Failure> {
    let mut found = Vec::new();
    let mut skipped = Vec::new();
    for path in &arguments.paths {
        let traces = find_traces(path, arguments.drive.as_deref()).map_err(Failure::input)?;
        found.extend(traces.found);
        skipped.extend(traces.skipped);
    }
    for trace in skipped {
        // If nobody reads the notes, the results stand without them.
        let _ = writeln!(io::stderr(), "fullstroke: left out {}: {}", trace.path.display(), trace.reason);
    }
    Ok(found)
}

/// Writes a file that appears whole or not at all.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    let mut file = AtomicFile::create(path).map_err(Failure::input)?;
    file.write_all(text.as_bytes())
        .map_err(|error| Failure::Input(format!("cannot write `{}`: {error}", path.display())))?;
    file.commit().map_err(Failure::input)
}

fn overview(validations: &[Validation]) -> String {
    let header =
        ["disk", "", "requests", "mean ms", "p50", "p90", "p99", "max", "RMS ms", "RMS %", "noise ms"];
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
        let mut first = vec![validation.drive.clone(), "measured".to_owned(), validation.n.to_string()];
        first.extend(measured.map(number));
        first.extend([blank(), blank(), number(validation.noise_ms)]);
        let mut second = vec![blank(), "simulated".to_owned(), blank()];
        second.extend(simulated.map(number));
        second.extend([number(validation.rms_ms), format!("{:.2}", 100.0 * validation.rms_share), blank()]);
        table.add_row(first);
        table.add_row(second);
    }
    let models = validations.iter().map(|validation| format!("\n{}: {}", validation.drive, validation.title));
    format!("{}\n{}", table.trim_fmt(), models.collect::<String>())
}

fn by_class(validations: &[Validation]) -> String {
    let header = ["disk", "class", "requests", "measured mean ms", "simulated mean ms", "RMS ms"];
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
