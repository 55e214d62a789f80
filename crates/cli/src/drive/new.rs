//! `fullstroke drive new`: builds a first drive file from the figures of a data sheet.

use crate::output::{CommandFailure, CommandOutput, write_whole};
use crate::outputs::{self, OutputKind, Target};
use clap::Args;
use fullstroke_drive::presets::DriveClass;
use fullstroke_drive::{DataSheet, DriveConfig, DriveModel, PowerConfig, sectors_of};
use fullstroke_lab::capacity;
use fullstroke_stack::drives;
use fullstroke_stack::facts::Facts;
use fullstroke_units::{Bytes, QuantityError, parse_bytes};
use std::path::PathBuf;

/// Write a first drive file from the figures of a data sheet. Missing values are fitted and marked
/// under `[sources]`. The file passes `drive check`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    /// Capacity on the label: 8T is 8 x 10^12 bytes. The drive gets the usual number of sectors of
    /// drives of that size.
    #[arg(long, value_name = "SIZE", value_parser = sold_as)]
    capacity: Bytes,

    /// Revolutions per minute.
    #[arg(long, value_name = "NUMBER")]
    rpm: f64,

    /// Sustained transfer rate at the outer edge, in MB/s (10^6 bytes).
    #[arg(long, value_name = "MB/S", allow_negative_numbers = true)]
    outer: f64,

    /// Sustained transfer rate at the inner edge, in MB/s. Default 0.458 of the outer rate, as on a
    /// measured Toshiba X300.
    #[arg(long, value_name = "MB/S", allow_negative_numbers = true)]
    inner: Option<f64>,

    /// Average seek time of reads, in milliseconds. Default 8.5.
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    seek: Option<f64>,

    /// Number of recording surfaces (heads). Default: by the length of the tracks.
    #[arg(long, value_name = "NUMBER")]
    surfaces: Option<u32>,

    /// Size of the buffer, such as 256MiB. Default 64MiB.
    #[arg(long, value_name = "SIZE")]
    cache: Option<Bytes>,

    /// Class of the drive, for the queue and the write cache: desktop, laptop, nearline or sas.
    /// Default: sas from 9,000 rpm, nearline from 10 TB, otherwise desktop.
    #[arg(long, value_name = "CLASS")]
    class: Option<DriveClass>,

    /// Power in watts while idle at full speed. Together with --active-w this enables energy.
    #[arg(long, value_name = "WATTS", requires = "active_w")]
    idle_w: Option<f64>,

    /// Power in watts during random reads and writes ("operating").
    #[arg(long, value_name = "WATTS", requires = "idle_w")]
    active_w: Option<f64>,

    /// Power in watts with stopped platters ("standby", "sleep"). Default: the value of drives of
    /// this speed.
    #[arg(long, value_name = "WATTS", requires = "idle_w")]
    standby_w: Option<f64>,

    /// Title of the drive for people. Default: capacity and speed.
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Drive file to write. Default: standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLE: &str = "\
Example:
  fullstroke drive new --capacity 8T --rpm 7200 --outer 245 --inner 120 --seek 8.5 -o mine.toml
  fullstroke drive new --capacity 8T --rpm 7200 --outer 245 --idle-w 5.5 --active-w 8.0 --standby-w 0.8 -o watts.toml
  fullstroke drive show mine.toml";

/// Parses a size in the vendors' notation, where a bare letter is decimal.
fn sold_as(text: &str) -> Result<Bytes, QuantityError> {
    let decimal = text
        .trim()
        .ends_with(|letter: char| "KMGTkmgt".contains(letter));
    parse_bytes(&if decimal {
        format!("{}B", text.trim())
    } else {
        text.to_owned()
    })
    .map(Bytes)
}

impl Arguments {
    fn sheet(&self) -> DataSheet {
        let title = || {
            format!(
                "{}, {} rpm, from its data sheet",
                capacity(self.capacity.0),
                self.rpm
            )
        };
        DataSheet {
            title: self.title.clone().unwrap_or_else(title),
            capacity: sectors_of(self.capacity),
            rpm: self.rpm,
            outer_mb_per_s: self.outer,
            inner_mb_per_s: self.inner,
            average_seek_ms: self.seek,
            surfaces: self.surfaces,
            buffer: self.cache,
            class: self.class,
        }
    }

    /// Returns the power figures and their source, if the data sheet has some. Starts and stops are
    /// in no data sheet, so their figures are those of drives of the same speed.
    fn power(&self, config: &DriveConfig) -> Option<(PowerConfig, String)> {
        let (idle, active) = (self.idle_w?, self.active_w?);
        let (class, assumed) = PowerConfig::assumed_for(config);
        let power = PowerConfig {
            // A sheet has one idle power, with turning platters and loaded heads: the first idle
            // state and the power of rotation alike.
            idle_a_w: Some(idle),
            rotate_w: Some(idle),
            read_w: Some(active),
            write_w: Some(active),
            // The sheet's operating power is a mean over seeks and transfers. The excess over idle
            // arises in the share of the time with seeks.
            seek_w: Some(rounded(idle + (active - idle) / SEEKING)),
            standby_w: self.standby_w.or(class.standby_w),
            ..class
        };
        let standby = match self.standby_w {
            Some(watts) => format!("standby {watts} W: given"),
            None => "standby as below".to_owned(),
        };
        let source = format!(
            "idle {idle} W, active {active} W, {standby}. fitted: the power of seeks follows from the active watts with {:.0} % of the time in seeks, as in random reads. Starts, stops and missing values {assumed}",
            100.0 * SEEKING
        );
        Some((power, source))
    }
}

/// Share of the time that random reads spend on seeks. The value is the one behind the assumed
/// `[power]` of drive classes.
const SEEKING: f64 = 0.6;

fn rounded(watts: f64) -> f64 {
    (watts * 100.0).round() / 100.0
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    outputs::check(
        [Target::of("--output", &arguments.output, OutputKind::Toml)],
        &[],
    )?;
    let refused = |error: fullstroke_contract::ConfigError| {
        CommandFailure::Input(format!("--{}: {}", error.key, error.message))
    };
    let sheet = arguments.sheet();
    let mut config = sheet.drive().map_err(refused)?;
    if let Some((power, source)) = arguments.power(&config) {
        config.power = Some(power);
        config.sources.insert("power".to_owned(), source);
        // The power figures are checked apart from the rest, so that the error names the options
        // and not keys that the user never wrote.
        DriveModel::new(config.clone()).map_err(|error| {
            CommandFailure::Input(format!(
                "--idle-w, --active-w, --standby-w: {}: {}",
                error.key, error.message
            ))
        })?;
    }
    let comments = [
        format!("{}.", sheet.title),
        "A first description from a data sheet; [sources] names the fitted and the assumed values."
            .to_owned(),
    ];
    let text = drives::to_toml(&config, &comments).map_err(CommandFailure::input)?;
    let Some(path) = &arguments.output else {
        return if output.json() {
            output.show_json(&config)
        } else {
            output.print(&text)
        };
    };
    write_whole(path, &text)?;
    let name = path.display().to_string();
    let facts = Facts::new(&name, &DriveModel::new(config).map_err(refused)?);
    let told = format!(
        "{name}: {} sectors on {} surfaces of {} cylinders, {:.1} to {:.1} MB/s",
        sheet.capacity.0,
        facts.surfaces,
        facts.cylinders,
        facts.outer_mb_per_s,
        facts.inner_mb_per_s
    );
    output.show(&facts, told)
}
