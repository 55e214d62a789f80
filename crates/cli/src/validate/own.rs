//! `fullstroke validate --fit`: fits a model to a log of the user's own disk.

use super::panel_title;
use crate::output::{CommandFailure, CommandOutput, write_whole};
use crate::outputs::{self, OutputKind, Target};
use fullstroke_calibrate::validate::{
    FoundDrive, LogPart, OwnDisk, OwnLog, TimeOrigin, fit_given_disk, fit_own_disk,
};
use fullstroke_drive::{DriveConfig, DriveModel};
use fullstroke_measure::{number, table};
use fullstroke_report::plots::{Distributions, distributions};
use fullstroke_stack::drives;
use fullstroke_trace::TraceOptions;
use fullstroke_units::Seed;
use std::path::{Path, PathBuf};

/// Options of `--fit`.
#[derive(Debug, clap::Args)]
pub(super) struct LogArguments {
    /// Format of the log. Needed if the contents do not show it.
    #[arg(long, value_name = "NAME", requires = "fit")]
    format: Option<String>,

    /// Number of the disk in a log of several disks.
    #[arg(long, value_name = "NUMBER", requires = "fit")]
    device: Option<u32>,

    /// Number of requests to use from the beginning of the log.
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 20_000,
        requires = "fit"
    )]
    requests: usize,

    /// Drive file for the fitted drive.
    #[arg(long, value_name = "FILE.toml", requires = "fit")]
    write_drive: Option<PathBuf>,
}

impl LogArguments {
    /// Returns the drive file to write.
    pub(super) fn target(&self) -> Option<Target<'_>> {
        Target::of("--write-drive", &self.write_drive, OutputKind::Toml)
    }
}

pub(super) fn execute(
    arguments: &super::Arguments,
    output: &CommandOutput,
) -> Result<(), CommandFailure> {
    let [path] = arguments.paths.as_slice() else {
        let found = arguments.paths.len();
        return Err(CommandFailure::Input(format!(
            "found {found} paths; expected one log with --fit"
        )));
    };
    outputs::check(arguments.targets(), &arguments.read().collect::<Vec<_>>())?;
    let own = &arguments.own;
    let options = TraceOptions {
        format: own.format.clone(),
        devices: own.device.into_iter().collect(),
        ..TraceOptions::default()
    };
    let log = OwnLog::read(path, &options, own.requests).map_err(CommandFailure::input)?;
    let disk = fit_own_disk(log, arguments.drive.as_deref(), Seed(arguments.seed))
        .map_err(CommandFailure::input)?;
    if let Some(path) = &own.write_drive {
        let comments = [format!(
            "{}, fitted to a log by `fullstroke validate --fit`.",
            disk.title
        )];
        write_whole(
            path,
            &drives::to_toml(&disk.drive_file(), &comments).map_err(CommandFailure::input)?,
        )?;
    }
    if let Some(path) = &arguments.plot {
        write_whole(
            path,
            &distributions(&[panel(&disk)]).map_err(CommandFailure::input)?,
        )?;
    }
    output.show(&disk, text(&disk, arguments.by_class))
}

/// Number of requests of a log that `fullstroke fit --log` uses.
const REQUESTS: usize = 20_000;
/// Seed of the bootstrap resamples of `fullstroke fit --log`.
const SEED: Seed = Seed(1);

/// The drive from which a fit to a log starts.
pub(crate) enum LogStart<'a> {
    /// A drive of the library or of a file; `None` for the nearest of the library.
    Library(Option<&'a str>),
    /// A drive of the user's own figures, and the names of their files.
    Given(Box<DriveConfig>, String),
}

/// Fits a drive to a log, and writes the drive to `target`.
pub(crate) fn fit_log(
    log: &Path,
    start: LogStart<'_>,
    target: Option<&Path>,
    output: &CommandOutput,
) -> Result<(), CommandFailure> {
    let log =
        OwnLog::read(log, &TraceOptions::default(), REQUESTS).map_err(CommandFailure::input)?;
    let disk = match start {
        LogStart::Library(drive) => fit_own_disk(log, drive, SEED),
        LogStart::Given(config, name) => {
            let model = DriveModel::new(*config).map_err(CommandFailure::input)?;
            fit_given_disk(log, FoundDrive { name, model }, SEED)
        }
    };
    let disk = disk.map_err(CommandFailure::input)?;
    if let Some(path) = target {
        let comments = [format!(
            "{}, fitted to a log by `fullstroke fit`.",
            disk.title
        )];
        write_whole(
            path,
            &drives::to_toml(&disk.drive_file(), &comments).map_err(CommandFailure::input)?,
        )?;
    }
    output.show(&disk, text(&disk, false))
}

/// Returns both distributions of the second half of the log, which judges the fitted drive.
fn panel(disk: &OwnDisk) -> Distributions<'_> {
    let part = &disk.held_out;
    let name = format!("{} held out", disk.log.file);
    Distributions {
        title: panel_title(&name, part.rms_ms, part.rms_share, disk.noise_ms),
        measured_ms: disk.measured.values(),
        simulated_ms: disk.simulated.values(),
    }
}

fn text(disk: &OwnDisk, by_class: bool) -> String {
    let mut parts = vec![log(disk), nearest(disk), parameters(disk), overview(disk)];
    if by_class {
        parts.push(kinds(disk));
    }
    parts.push(format!(
        "{}\n  {}",
        disk.trust.verdict,
        disk.trust.sentences.join("\n  ")
    ));
    parts.join("\n\n")
}

fn log(disk: &OwnDisk) -> String {
    let log = &disk.log;
    let times = match log.times {
        TimeOrigin::Issue => "from issue to completion",
        TimeOrigin::Arrival => "from arrival to completion",
    };
    let mut text = format!(
        "{}: {} reads and writes ({}), {times}",
        log.file, log.requests, log.format
    );
    let left_out = [
        (log.without_completion, "without a completion"),
        (
            log.other_operations,
            "that are neither reads, writes nor flushes",
        ),
    ];
    for (count, what) in left_out.iter().filter(|(count, _)| *count > 0) {
        text += &format!("; left out: {count} {what}");
    }
    if log.cut {
        text += "; the rest of the log is not used (--requests)";
    }
    text += &match &log.rotation {
        Some(rotation) => format!(
            "\nspeed: {} revolutions a minute; {rotation}",
            number(rotation.rpm)
        ),
        None => "\nspeed: the log does not tell it, and the drive keeps its own".to_owned(),
    };
    text
}

fn nearest(disk: &OwnDisk) -> String {
    let mut table = table(["drive", "as it is, ms away", "fitted"], &[0]);
    for candidate in &disk.candidates {
        table.add_row([
            candidate.drive.clone(),
            number(candidate.as_it_is_ms),
            number(candidate.fitted_ms),
        ]);
    }
    format!("{}\n\n{}", disk.title, table.trim_fmt())
}

fn parameters(disk: &OwnDisk) -> String {
    let mut table = table(
        ["key", "library", "fitted", "told from lower", "from higher"],
        &[0],
    );
    for parameter in &disk.parameters {
        let bound = |bound: &Option<String>| bound.clone().unwrap_or_else(|| "-".to_owned());
        table.add_row([
            parameter.key.to_owned(),
            parameter.library.clone(),
            parameter.fitted.clone(),
            bound(&parameter.least),
            bound(&parameter.most),
        ]);
    }
    table.trim_fmt()
}

fn overview(disk: &OwnDisk) -> String {
    let header = [
        "half", "", "requests", "mean ms", "p50", "p90", "p99", "RMS ms", "RMS %", "noise ms",
    ];
    let mut table = table(header, &[0, 1]);
    let mut add = |name: &str, part: &LogPart, noise: String| {
        let times =
            |mean: f64, quantiles: [f64; 3]| [mean, quantiles[0], quantiles[1], quantiles[2]];
        let mut first = vec![name.to_owned(), "measured".to_owned(), part.n.to_string()];
        first.extend(times(part.measured_mean_ms, part.measured_quantiles_ms).map(number));
        first.extend([String::new(), String::new(), noise]);
        let mut second = vec![String::new(), "simulated".to_owned(), String::new()];
        second.extend(times(part.simulated_mean_ms, part.simulated_quantiles_ms).map(number));
        second.extend([
            number(part.rms_ms),
            format!("{:.2}", 100.0 * part.rms_share),
            String::new(),
        ]);
        table.add_row(first);
        table.add_row(second);
    };
    add("fitted on", &disk.fitted_on, String::new());
    add("held out", &disk.held_out, number(disk.noise_ms));
    add(
        "held out, not fitted",
        &disk.held_out_unfitted,
        String::new(),
    );
    table.trim_fmt()
}

fn kinds(disk: &OwnDisk) -> String {
    let header = [
        "held out by",
        "",
        "requests",
        "measured mean ms",
        "simulated mean ms",
        "RMS ms",
        "RMS %",
    ];
    let mut table = table(header, &[0, 1]);
    let mut last = "";
    for kind in &disk.kinds {
        let by = if kind.by == last { "" } else { kind.by };
        last = kind.by;
        table.add_row([
            by.to_owned(),
            kind.class.to_owned(),
            kind.part.n.to_string(),
            number(kind.part.measured_mean_ms),
            number(kind.part.simulated_mean_ms),
            number(kind.part.rms_ms),
            format!("{:.1}", 100.0 * kind.part.rms_share),
        ]);
    }
    table.trim_fmt()
}
