//! `fullstroke extract`: finds a disk's tracks and mechanics from outside.

mod check;
mod checked;
mod found;
mod kinds;

use self::check::check;
use self::found::ExtractionResult;
use crate::output::{CommandFailure, CommandOutput, write_whole};
use crate::outputs::{self, Target};
use clap::{Args, ValueEnum};
use fullstroke_calibrate::extract::scsi::ScsiGeneric;
use fullstroke_calibrate::extract::{BlockDevice, ExtractionPace, SimulatedDrive, SplittingHost};
use fullstroke_stack::drives;
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Duration, Seed};
use std::fmt;
use std::path::{Path, PathBuf};

/// Find track boundaries, rotation and seek times of a disk, by timed reads or by queries.
///
/// The disk is a simulated drive under virtual time, a block device, or a file. Nothing is written
/// to the disk without `--writes`. docs/extract.md explains each kind and its accuracy.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name from `drive list`, a drive file, or the path of a device.
    device: String,

    /// Method and result of the extraction.
    #[arg(long, value_enum, default_value_t = ExtractionKind::Survey)]
    kind: ExtractionKind,

    /// Confirm every track, or skip repeated tracks.
    #[arg(long, value_enum, default_value_t = Speed::Jumping)]
    pace: Speed,

    /// Let `--kind translate` step sector by sector through a track whose length differs from the
    /// one before, as Qian and Wang do. By default it tries lengths seen before and then halves the
    /// interval.
    #[arg(long)]
    by_sector: bool,

    /// Seed of all random addresses.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Number of reads across boundaries for `--kind verify`. As many reads go within tracks.
    #[arg(long, value_name = "NUMBER", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    reads: u64,

    /// Table of boundaries for `--kind verify`, `seek` and `zero-latency`. Without a table the last
    /// two find their own boundaries. A table of another drive is refused: a simulated drive
    /// compares all boundaries, and on a device `seek` and `zero-latency` first read some.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,

    /// Write the table of boundaries to this file.
    #[arg(long, value_name = "FILE")]
    write_table: Option<PathBuf>,

    /// Write a drive file from the result of `--kind survey`.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Let `--kind cache` write the present contents back, to find out whether writes are cached in
    /// the buffer. The device must not be in use.
    #[arg(long)]
    writes: bool,

    /// Compare the result with the truth of a simulated drive.
    #[arg(long)]
    check: bool,

    /// Let the host of a simulated drive split reads into pieces of this number of sectors.
    #[arg(long, value_name = "SECTORS", value_parser = clap::value_parser!(u64).range(1..))]
    split: Option<u64>,

    /// Let the host of a simulated drive notice completions late by this mean number of
    /// microseconds.
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0)]
    late_us: u64,
}

/// Method and result of an extraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExtractionKind {
    /// Rotation, tracks, seek curve and zero latency, by timing.
    Survey,
    /// Rotation and tracks, by timing.
    Timing,
    /// The map of zones, by timing.
    Zones,
    /// Tracks, by address translation.
    Translate,
    /// The revolution, by timing.
    #[value(alias = "rotation")]
    Rpm,
    /// The seek curve, by tracks crossed.
    Seek,
    /// Skew between the end of a track and the start of the next.
    Skew,
    /// Zero latency: reads that start at any sector under the head.
    ZeroLatency,
    /// The buffer: segments, read-ahead, and with `--writes` write-back.
    Cache,
    /// Number of commands that the device reorders.
    Depth,
    /// Check of a table of boundaries.
    Verify,
    /// End of the first track, by reads of growing length. Shows how this method fails.
    Growth,
}

impl ExtractionKind {
    /// True if this kind can use an existing table.
    fn takes_a_table(self) -> bool {
        matches!(
            self,
            ExtractionKind::Verify | ExtractionKind::Seek | ExtractionKind::ZeroLatency
        )
    }

    /// True if this kind finds tracks for a table.
    fn finds_tracks(self) -> bool {
        matches!(
            self,
            ExtractionKind::Survey | ExtractionKind::Timing | ExtractionKind::Translate
        )
    }
}

/// Selection of the tracks to confirm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Speed {
    /// All tracks.
    Every,
    /// All tracks except those that repeat; repeated tracks are assumed equal.
    Jumping,
}

impl From<Speed> for ExtractionPace {
    fn from(speed: Speed) -> ExtractionPace {
        match speed {
            Speed::Every => ExtractionPace::Every,
            Speed::Jumping => ExtractionPace::Jumping,
        }
    }
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    // Before the device is opened, because an extraction takes minutes and its result would have no
    // place to go.
    arguments.check_files()?;
    outputs::check(arguments.targets(), &arguments.read())?;
    let path = Path::new(&arguments.device);
    // A drive file or a folder of DiskSim describes a drive. Any other path that exists is a
    // device.
    let described = path
        .extension()
        .is_some_and(|extension| extension == "toml")
        || path.is_dir();
    let found = if path.exists() && !described {
        if arguments.check {
            return Err(CommandFailure::input(
                "--check: the truth of a device is not known; give a simulated drive",
            ));
        }
        let fail =
            |error: std::io::Error| CommandFailure::Input(format!("{}: {error}", path.display()));
        let open = if arguments.writes {
            BlockDevice::open_for_writing
        } else {
            BlockDevice::open
        };
        let mut device = open(path).map_err(&fail)?;
        // Only this kind sends SCSI commands (RECEIVE DIAGNOSTIC RESULTS, `sg`), so the other kinds
        // work on any block device.
        if arguments.kind == ExtractionKind::Translate {
            device = device.translated_by(Box::new(ScsiGeneric::open(path).map_err(fail)?));
        }
        kinds::find(&mut device, arguments, output)?
    } else {
        simulated(arguments, output)?
    };
    // The files are written before the text, because the text may have no reader.
    write(arguments, &found)?;
    output.show(&found, &found)
}

fn simulated(
    arguments: &Arguments,
    output: &CommandOutput,
) -> Result<ExtractionResult, CommandFailure> {
    let model = drives::load(&arguments.device).map_err(CommandFailure::input)?;
    let late = Duration::from_micros(arguments.late_us);
    if let (Some(path), Some(table)) = (&arguments.table, arguments.table()?) {
        let truth = Boundaries::of(&*model.tracks(), "the drive").map_err(CommandFailure::input)?;
        // A simulated drive has the truth, so a table of another drive is found at once. On a
        // device `spot_check` finds the difference.
        table
            .check_equal(&truth)
            .map_err(|error| CommandFailure::Input(format!("{}: {error}", path.display())))?;
    }
    let mut drive = SimulatedDrive::new(&model).map_err(CommandFailure::input)?;
    if late > Duration::ZERO {
        drive = drive.noticed_late(late, Seed(arguments.seed));
    }
    // A host that splits reads hides the track boundaries from the timing method; the option shows
    // how well the method copes.
    let mut found = match arguments.split {
        Some(sectors) => kinds::find(&mut SplittingHost::new(drive, sectors), arguments, output)?,
        None => kinds::find(&mut drive, arguments, output)?,
    };
    if arguments.check {
        found.check = Some(check(&found, &model)?);
    }
    Ok(found)
}

impl Arguments {
    /// Checks that the result will have the data for the requested files, because an extraction
    /// takes minutes.
    fn check_files(&self) -> Result<(), CommandFailure> {
        if self.write_table.is_some() && !self.kind.finds_tracks() {
            return Err(CommandFailure::input(
                "--write-table: this kind finds no tracks",
            ));
        }
        if self.table.is_some() && !self.kind.takes_a_table() {
            return Err(CommandFailure::input(
                "--table: has an effect only with --kind verify, seek and zero-latency",
            ));
        }
        if self.by_sector && self.kind != ExtractionKind::Translate {
            return Err(CommandFailure::input(
                "--by-sector: has an effect only with --kind translate",
            ));
        }
        if self.output.is_some() && self.kind != ExtractionKind::Survey {
            return Err(CommandFailure::input(
                "--output: only --kind survey makes a drive file",
            ));
        }
        if self.writes && self.kind != ExtractionKind::Cache {
            return Err(CommandFailure::input("--writes: only --kind cache writes"));
        }
        Ok(())
    }

    /// Returns the files to read.
    fn read(&self) -> Vec<PathBuf> {
        self.table
            .iter()
            .cloned()
            .chain([PathBuf::from(&self.device)])
            .collect()
    }

    /// Returns the files to write.
    fn targets(&self) -> [Option<Target<'_>>; 2] {
        [
            Target::of(
                "--write-table",
                &self.write_table,
                outputs::OutputKind::Other,
            ),
            Target::of("--output", &self.output, outputs::OutputKind::Toml),
        ]
    }

    /// Reads the table of `--table`.
    fn table(&self) -> Result<Option<Boundaries>, CommandFailure> {
        let Some(path) = &self.table else {
            return Ok(None);
        };
        let fail = |error: &dyn fmt::Display| {
            CommandFailure::Input(format!("{}: {error}", path.display()))
        };
        let text = std::fs::read_to_string(path).map_err(|error| fail(&error))?;
        Boundaries::parse(&text)
            .map(Some)
            .map_err(|error| fail(&error))
    }
}

/// Writes the requested files.
fn write(arguments: &Arguments, found: &ExtractionResult) -> Result<(), CommandFailure> {
    if let (Some(path), Some(table)) = (&arguments.write_table, &found.table) {
        write_whole(path, table.to_text())?;
    }
    if let (Some(path), Some(mechanics)) = (&arguments.output, &found.mechanics) {
        let title = format!("extracted from {}", arguments.device);
        let config = mechanics.drive_file(&title, &arguments.device);
        let comments =
            ["[sources] names the unknown values and the methods of measurement.".to_owned()];
        write_whole(
            path,
            &drives::to_toml(&config, &comments).map_err(CommandFailure::input)?,
        )?;
    }
    Ok(())
}
