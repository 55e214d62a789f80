//! `fullstroke extract`: a disk's tracks and mechanics, found from outside.

mod checked;
mod found;
mod kinds;

use self::checked::check;
use self::found::Found;
use crate::output::{Failure, Output, write_whole};
use crate::outputs::{self, Target};
use clap::{Args, ValueEnum};
use fullstroke_calibrate::extract::scsi::ScsiGeneric;
use fullstroke_calibrate::extract::{BlockDevice, Pace, SimulatedDrive, SplittingHost};
use fullstroke_stack::drives;
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Duration, Seed};
use std::fmt;
use std::path::{Path, PathBuf};

/// Find where the tracks of a disk begin, how it turns and how its arm moves, by
/// timed reads or by asking it.
///
/// The disk is a simulated drive, under virtual time, or anything that can be read:
/// a block device, or a file. Nothing is written to it without `--writes`. docs/extract.md says how each
/// kind works, and how well.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A name from `drive list`, a drive file, or the path of a device.
    device: String,

    /// What is found, and how.
    #[arg(long, value_enum, default_value_t = Kind::Survey)]
    kind: Kind,

    /// Whether every track is confirmed, or tracks that repeat are skipped.
    #[arg(long, value_enum, default_value_t = Speed::Jumping)]
    pace: Speed,

    /// `--kind translate` goes through each track that is not as long as the one before sector by
    /// sector, as Qian and Wang do, rather than try lengths seen before and halve.
    #[arg(long)]
    by_sector: bool,

    /// The seed of all addresses that are chosen at random.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Reads across boundaries, and as many within tracks, of `--kind verify`.
    #[arg(long, value_name = "NUMBER", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    reads: u64,

    /// A table of boundaries: for `--kind verify`; and for `seek` and `zero-latency`, which
    /// find their own otherwise. One that is not of the simulated drive is refused; on a device
    /// the latter two read some of its boundaries first.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,

    /// Write the table of boundaries to this file.
    #[arg(long, value_name = "FILE")]
    write_table: Option<PathBuf>,

    /// Write a drive file of what `--kind survey` found.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// `--kind cache` may write, what stands there already, to see whether writes are
    /// taken in the buffer. The device must not be in use.
    #[arg(long)]
    writes: bool,

    /// Hold what was found against the truth, which a simulated drive has.
    #[arg(long)]
    check: bool,

    /// The host of a simulated drive splits reads into pieces of so many sectors.
    #[arg(long, value_name = "SECTORS", value_parser = clap::value_parser!(u64).range(1..))]
    split: Option<u64>,

    /// The host of a simulated drive notices completions late, by so many
    /// microseconds on average.
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0)]
    late_us: u64,
}

/// What is found, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Rotation, tracks, seek curve, zero latency, by timing.
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
    /// What passes between the end of a track and the beginning of the next.
    Skew,
    /// Whether reads begin wherever the heads land.
    ZeroLatency,
    /// The buffer: segments, read-ahead, and with `--writes` write-back.
    Cache,
    /// How many commands the device orders.
    Depth,
    /// Whether the boundaries of a table are any.
    Verify,
    /// The end of the first track, by reads that grow: to see how that fails.
    Growth,
}

impl Kind {
    /// Whether it can go by a table that is there already.
    fn takes_a_table(self) -> bool {
        matches!(self, Kind::Verify | Kind::Seek | Kind::ZeroLatency)
    }

    /// Whether it finds tracks in order to write a table.
    fn finds_tracks(self) -> bool {
        matches!(self, Kind::Survey | Kind::Timing | Kind::Translate)
    }
}

/// How many tracks are confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Speed {
    /// Each.
    Every,
    /// Those that do not repeat.
    Jumping,
}

impl From<Speed> for Pace {
    fn from(speed: Speed) -> Pace {
        match speed {
            Speed::Every => Pace::Every,
            Speed::Jumping => Pace::Jumping,
        }
    }
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    arguments.check_files()?;
    outputs::check(arguments.targets(), &arguments.read())?;
    let path = Path::new(&arguments.device);
    let described = path
        .extension()
        .is_some_and(|extension| extension == "toml")
        || path.is_dir();
    let found = if path.exists() && !described {
        if arguments.check {
            return Err(Failure::input(
                "--check: the truth of a device is not known; give a simulated drive",
            ));
        }
        let fail = |error: std::io::Error| Failure::Input(format!("{}: {error}", path.display()));
        let open = if arguments.writes {
            BlockDevice::open_for_writing
        } else {
            BlockDevice::open
        };
        let mut device = open(path).map_err(&fail)?;
        if arguments.kind == Kind::Translate {
            device = device.translated_by(Box::new(ScsiGeneric::open(path).map_err(fail)?));
        }
        kinds::find(&mut device, arguments, output)?
    } else {
        simulated(arguments, output)?
    };
    write(arguments, &found)?;
    output.show(&found, &found)
}

fn simulated(arguments: &Arguments, output: &Output) -> Result<Found, Failure> {
    let model = drives::load(&arguments.device).map_err(Failure::input)?;
    let late = Duration::from_micros(arguments.late_us);
    if let (Some(path), Some(table)) = (&arguments.table, arguments.table()?) {
        let truth = Boundaries::of(&*model.tracks(), "the drive").map_err(Failure::input)?;
        table
            .check_equal(&truth)
            .map_err(|error| Failure::Input(format!("{}: {error}", path.display())))?;
    }
    let mut drive = SimulatedDrive::new(&model).map_err(Failure::input)?;
    if late > Duration::ZERO {
        drive = drive.noticed_late(late, Seed(arguments.seed));
    }
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
    /// Whether there will be something to write to the files that were asked for: a
    /// disk is read for minutes before.
    fn check_files(&self) -> Result<(), Failure> {
        if self.write_table.is_some() && !self.kind.finds_tracks() {
            return Err(Failure::input("--write-table: this kind finds no tracks"));
        }
        if self.table.is_some() && !self.kind.takes_a_table() {
            return Err(Failure::input(
                "--table: only --kind verify, seek and zero-latency take one",
            ));
        }
        if self.by_sector && self.kind != Kind::Translate {
            return Err(Failure::input("--by-sector: only --kind translate goes so"));
        }
        if self.output.is_some() && self.kind != Kind::Survey {
            return Err(Failure::input(
                "--output: a drive file is made of what --kind survey finds",
            ));
        }
        if self.writes && self.kind != Kind::Cache {
            return Err(Failure::input("--writes: only --kind cache writes"));
        }
        Ok(())
    }

    /// The files that are read.
    fn read(&self) -> Vec<PathBuf> {
        self.table
            .iter()
            .cloned()
            .chain([PathBuf::from(&self.device)])
            .collect()
    }

    /// The files that are written.
    fn targets(&self) -> [Option<Target<'_>>; 2] {
        [
            Target::of("--write-table", &self.write_table, outputs::Kind::Other),
            Target::of("--output", &self.output, outputs::Kind::Other),
        ]
    }

    /// The table that was given.
    fn table(&self) -> Result<Option<Boundaries>, Failure> {
        let Some(path) = &self.table else {
            return Ok(None);
        };
        let fail =
            |error: &dyn fmt::Display| Failure::Input(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| fail(&error))?;
        Boundaries::parse(&text)
            .map(Some)
            .map_err(|error| fail(&error))
    }
}

/// Writes the files that were asked for.
fn write(arguments: &Arguments, found: &Found) -> Result<(), Failure> {
    if let (Some(path), Some(table)) = (&arguments.write_table, &found.table) {
        write_whole(path, table.to_text())?;
    }
    if let (Some(path), Some(mechanics)) = (&arguments.output, &found.mechanics) {
        let title = format!("extracted from {}", arguments.device);
        let config = mechanics.drive_file(&title, &arguments.device);
        let comments =
            ["What is not known, and how the rest was measured, stands in [sources].".to_owned()];
        write_whole(
            path,
            &drives::to_toml(&config, &comments).map_err(Failure::input)?,
        )?;
    }
    Ok(())
}
