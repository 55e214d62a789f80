//! `fullstroke fit`: a drive file from the measurements that a person has.

use crate::output::{CommandFailure, CommandOutput, write_whole};
use crate::outputs::{self, OutputKind, Target};
use crate::validate::{LogStart, fit_log};
use clap::Args;
use fullstroke_calibrate::depths::{
    DepthFit, Sheet, fit_by_depth, read_rows, read_sheet, read_smart,
};
use fullstroke_measure::{number, table};
use fullstroke_stack::drives;
use std::path::PathBuf;

/// Write a drive file from measurements of your own disk: response times by queue depth, the report
/// of smartctl, the data sheet, or a log.
///
/// The answer has each measured row beside the model. For each key the answer says if the
/// measurements determine the value of the key. Where the measurements do not determine a value, the answer takes the value
/// of the drive's class (desktop, laptop, nearline or sas) and marks the value as assumed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    /// Reports of fio by depth (--output-format=json), or CSV files with the columns rw, bs,
    /// iodepth and iops. A folder stands for its .json and .csv files. Random reads need depth 1
    /// and one more.
    #[arg(long, value_name = "FILE|FOLDER", num_args = 1..)]
    fio: Vec<PathBuf>,

    /// The text of `smartctl -x DEVICE`, or its JSON (-j): capacity, speed, sectors, minutes for
    /// the whole surface, spin-up time.
    #[arg(long, value_name = "FILE")]
    smart: Option<PathBuf>,

    /// A TOML file with figures of the data sheet: title, capacity, rpm, outer, inner, seek,
    /// surfaces, tracks (on one surface), cache, class.
    #[arg(long, value_name = "FILE.toml")]
    sheet: Option<PathBuf>,

    /// A log of the disk with latencies (blktrace, fio log, DiskSim), as `validate --fit` takes it.
    /// With --fio, --smart or --sheet as well, these make a drive first, and the log fits this
    /// drive further.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// With --log: the drive to begin with. Default: the nearest of the library.
    #[arg(long, value_name = "NAME|FILE", requires = "log", conflicts_with_all = ["fio", "smart", "sheet"])]
    drive: Option<String>,

    /// The drive file to write. Default: no file, the answer alone.
    #[arg(short, long, value_name = "FILE.toml")]
    output: Option<PathBuf>,
}

const EXAMPLE: &str = "\
Example:
  fullstroke fit --fio results/ --smart report.txt -o own.toml
  fullstroke fit --fio results/ --sheet sheet.toml -o own.toml
  fullstroke fit --log disk.blktrace --drive toshiba-x300-5tb -o own.toml
  fullstroke fit --log disk.blktrace --smart report.txt -o own.toml";

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let target = Target::of("--output", &arguments.output, OutputKind::Toml);
    let read: Vec<PathBuf> = arguments
        .fio
        .iter()
        .chain(&arguments.smart)
        .chain(&arguments.sheet)
        .chain(&arguments.log)
        .cloned()
        .collect();
    if read.is_empty() {
        return Err(CommandFailure::Input(
            "found nothing to fit to; expected --fio, --smart, --sheet or --log".to_owned(),
        ));
    }
    outputs::check([target], &read)?;
    // The log is the last of the list.
    let figures = &read[..read.len() - usize::from(arguments.log.is_some())];
    // A log has times of single requests. Results by depth have distributions only.
    if let Some(log) = arguments.log.as_ref().filter(|_| figures.is_empty()) {
        let start = LogStart::Library(arguments.drive.as_deref());
        return fit_log(log, start, arguments.output.as_deref(), output);
    }
    let rows = read_rows(&arguments.fio).map_err(CommandFailure::input)?;
    let smart = arguments.smart.as_deref().map(read_smart).transpose();
    let smart = smart.map_err(CommandFailure::input)?;
    let sheet = arguments.sheet.as_deref().map(read_sheet).transpose();
    let sheet = sheet
        .map_err(CommandFailure::input)?
        .unwrap_or_else(Sheet::default);
    let fit = fit_by_depth(&sheet, smart.as_ref(), &rows).map_err(CommandFailure::input)?;
    if let Some(log) = &arguments.log {
        let names: Vec<String> = figures
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        // The figures fix capacity, speed and zones, which a log of hours cannot tell; the log then
        // corrects the times.
        let start = LogStart::Given(Box::new(fit.config), names.join(", "));
        return fit_log(log, start, arguments.output.as_deref(), output);
    }
    if let Some(path) = &arguments.output {
        write_whole(
            path,
            &drives::to_toml(&fit.config, &comments(&fit)).map_err(CommandFailure::input)?,
        )?;
    }
    output.show(&fit, text(&fit))
}

fn comments(fit: &DepthFit) -> Vec<String> {
    let error = match fit.worst_mean {
        Some(worst) => format!(
            "Largest error of a mean response time: {:.1} %, over {} rows.",
            100.0 * worst,
            fit.compared.len()
        ),
        None => "No response times were given: nothing is fitted to a measurement.".to_owned(),
    };
    let fitted = "Written by `fullstroke fit`; [sources] says what is fitted, given or assumed.";
    vec![fit.config.title.clone(), error, fitted.to_owned()]
}

fn text(fit: &DepthFit) -> String {
    let mut parts = vec![fit.config.title.clone()];
    if !fit.compared.is_empty() {
        let header = [
            "", "depth", "mean ms", "model", "error %", "p99 ms", "model", "a second", "model",
        ];
        let mut rows = table(header, &[0]);
        for row in &fit.compared {
            let error = 100.0 * (row.mean_ms.1 / row.mean_ms.0 - 1.0);
            rows.add_row([
                row.rw.clone(),
                row.depth.to_string(),
                number(row.mean_ms.0),
                number(row.mean_ms.1),
                format!("{error:+.1}"),
                row.p99_ms.0.map_or_else(|| "-".to_owned(), number),
                number(row.p99_ms.1),
                number(row.per_s.0),
                number(row.per_s.1),
            ]);
        }
        parts.push(rows.trim_fmt());
    }
    // A source is a sentence, which does not fit into a column.
    for (told, heading) in [
        (true, "Determined by the measurements:"),
        (false, "Not determined by the measurements:"),
    ] {
        let keys = fit.told.iter().filter(|key| key.told == told);
        let lines: Vec<String> = keys
            .map(|key| format!("  {}: {}", key.key, key.source))
            .collect();
        if !lines.is_empty() {
            parts.push(format!("{heading}\n{}", lines.join("\n")));
        }
    }
    parts.join("\n\n")
}
