//! `fullstroke extract`: a disk's tracks and mechanics, found from outside.

use crate::bars::Bars;
use crate::output::{Failure, Output, write_whole};
use clap::{Args, ValueEnum};
use fullstroke_drive::Model;
use fullstroke_extract::{
    Angles, BlockDevice, Device, Effort, Extraction, FoundZone, Latency, Mechanics, Nearness, Pace, Rotation,
    Seeks, SimulatedDrive, SplittingHost, Verified, compare, growth, run, seek_error, survey, timing,
    translate, verify, zone_error,
};
use fullstroke_stack::drives;
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Duration, Lbn, Seed};
use serde::Serialize;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

/// Reads between two looks at the progress.
const WATCHED: u64 = 256;

/// Find where the tracks of a disk begin, how it turns and how its arm moves, by
/// timed reads or by asking it.
///
/// The disk is a simulated drive, under virtual time, or anything that can be read:
/// a block device, or a file. Nothing is written to it. docs/extract.md says how each
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

    /// The seed of all addresses that are chosen at random.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Reads across boundaries, and as many within tracks, of `--kind verify`.
    #[arg(long, value_name = "NUMBER", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    reads: u64,

    /// A table of boundaries, for `--kind verify`.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,

    /// Write the table of boundaries to this file.
    #[arg(long, value_name = "FILE")]
    write_table: Option<PathBuf>,

    /// Write a drive file of what `--kind survey` found.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

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
    /// Tracks, by address translation.
    Translate,
    /// The revolution, by timing.
    Rotation,
    /// Whether the boundaries of a table are any.
    Verify,
    /// The end of the first track, by reads that grow: to see how that fails.
    Growth,
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

/// What is printed.
#[derive(Debug, Default, Serialize)]
struct Found {
    effort: Effort,
    #[serde(skip_serializing_if = "Option::is_none")]
    rotation: Option<Rotation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracks: Option<TracksFound>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seeks: Option<Seeks>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<Latency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<Verified>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_track_ends: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<Checked>,
    #[serde(skip)]
    table: Option<Boundaries>,
    #[serde(skip)]
    mechanics: Option<Mechanics>,
}

#[derive(Debug, Serialize)]
struct TracksFound {
    tracks: u64,
    table_bytes: usize,
    first_tracks: Vec<u64>,
    zones: Vec<FoundZone>,
    /// How they were found.
    how: String,
}

#[derive(Debug, Serialize)]
struct Checked {
    boundaries: Nearness,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone_starts_off_sectors_mean: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seek_rms_ms: Option<f64>,
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    arguments.check_files()?;
    let path = Path::new(&arguments.device);
    let described = path.extension().is_some_and(|extension| extension != "img" && extension != "raw");
    let found = if path.exists() && !described {
        if arguments.check {
            return Err(Failure::input(
                "--check: the truth of a device is not known; give a simulated drive",
            ));
        }
        let fail = |error| Failure::Input(format!("{}: {error}", path.display()));
        find(&mut BlockDevice::open(path).map_err(fail)?, arguments, output)?
    } else {
        simulated(arguments, output)?
    };
    write(arguments, &found)?;
    output.show(&found, &found)
}

fn simulated(arguments: &Arguments, output: &Output) -> Result<Found, Failure> {
    let model = drives::load(&arguments.device).map_err(Failure::input)?;
    let late = Duration::from_micros(arguments.late_us);
    let mut drive = SimulatedDrive::new(&model).map_err(Failure::input)?;
    if late > Duration::ZERO {
        drive = drive.noticed_late(late, Seed(arguments.seed));
    }
    let mut found = match arguments.split {
        Some(sectors) => find(&mut SplittingHost::new(drive, sectors), arguments, output)?,
        None => find(&mut drive, arguments, output)?,
    };
    if arguments.check {
        found.check = check(&found, &model)?;
    }
    Ok(found)
}

fn check(found: &Found, model: &Model) -> Result<Option<Checked>, Failure> {
    let Some(table) = &found.table else { return Ok(None) };
    let truth = Boundaries::of(&*model.tracks(), "the drive").map_err(Failure::input)?;
    let zones = found.tracks.as_ref().filter(|tracks| !tracks.zones.is_empty());
    Ok(Some(Checked {
        boundaries: compare(table, &truth),
        zone_starts_off_sectors_mean: zones.map(|tracks| zone_error(&tracks.zones, model).0),
        seek_rms_ms: found.seeks.as_ref().map(|seeks| seek_error(seeks, table, model).0),
    }))
}

fn find(device: &mut dyn Device, arguments: &Arguments, output: &Output) -> Result<Found, Failure> {
    let (seed, pace) = (Seed(arguments.seed), Pace::from(arguments.pace));
    let capacity = device.capacity();
    let mut found = Found::default();
    match arguments.kind {
        Kind::Survey => {
            let extraction = Extraction::new(capacity, move |probe| survey(probe, seed, pace));
            let (mechanics, effort) = drive(device, extraction, output)?;
            found.effort = effort;
            found.rotation = Some(mechanics.rotation);
            found.seeks = Some(mechanics.seeks.clone());
            found.latency = Some(mechanics.latency);
            found.timed(&mechanics.timed);
            found.mechanics = Some(mechanics);
        }
        Kind::Timing => {
            let extraction = Extraction::new(capacity, move |probe| timing(probe, seed, pace));
            let (timed, effort) = drive(device, extraction, output)?;
            found.effort = effort;
            found.timed(&timed);
        }
        Kind::Translate => {
            let (translated, effort) = drive(device, Extraction::new(capacity, translate), output)?;
            let how = format!(
                "{} gone through sector by sector, {} sectors",
                translated.irregular, translated.irregular_sectors
            );
            found.effort = effort;
            found.tabled(&translated.table, how, Vec::new());
        }
        Kind::Rotation => {
            let measured = async move |probe| Ok(Angles::measure(probe, seed).await?.rotation());
            let (rotation, effort) = drive(device, Extraction::new(capacity, measured), output)?;
            (found.effort, found.rotation) = (effort, Some(rotation));
        }
        Kind::Verify => {
            let table = table(arguments)?;
            let reads = arguments.reads;
            let extraction = Extraction::new(capacity, move |probe| verify(probe, table, reads, seed));
            let (verified, effort) = drive(device, extraction, output)?;
            (found.effort, found.verified) = (effort, Some(verified));
        }
        Kind::Growth => {
            let extraction = Extraction::new(capacity, |probe| growth(probe, 2048));
            let (end, effort) = drive(device, extraction, output)?;
            (found.effort, found.first_track_ends) = (effort, Some(end));
        }
    }
    Ok(found)
}

/// Carries an extraction out, with progress.
fn drive<T>(
    device: &mut dyn Device,
    extraction: Extraction<T>,
    output: &Output,
) -> Result<(T, Effort), Failure> {
    let bars = Bars::new(["extract"], output);
    let result = run(device, extraction, &mut |progress, effort| {
        if effort.reads.is_multiple_of(WATCHED) {
            bars.advance(0, progress.done, Some(progress.of));
        }
    });
    bars.clear();
    result.map_err(Failure::input)
}

/// The table that is verified.
fn table(arguments: &Arguments) -> Result<Boundaries, Failure> {
    let Some(path) = &arguments.table else {
        return Err(Failure::input(
            "--kind verify: whose boundaries? give --table FILE, as --write-table has written it",
        ));
    };
    let fail = |error: &dyn fmt::Display| Failure::Input(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| fail(&error))?;
    Boundaries::parse(&text).map_err(|error| fail(&error))
}

impl Arguments {
    /// Whether there will be something to write to the files that were asked for: a
    /// disk is read for minutes before.
    fn check_files(&self) -> Result<(), Failure> {
        let finds_tracks = matches!(self.kind, Kind::Survey | Kind::Timing | Kind::Translate);
        if self.write_table.is_some() && !finds_tracks {
            return Err(Failure::input("--write-table: this kind finds no tracks"));
        }
        if self.output.is_some() && self.kind != Kind::Survey {
            return Err(Failure::input("--output: a drive file is made of what --kind survey finds"));
        }
        Ok(())
    }
}

/// Writes the files that were asked for.
fn write(arguments: &Arguments, found: &Found) -> Result<(), Failure> {
    if let (Some(path), Some(table)) = (&arguments.write_table, &found.table) {
        write_whole(path, &table.to_text())?;
    }
    if let (Some(path), Some(mechanics)) = (&arguments.output, &found.mechanics) {
        let title = format!("extracted from {}", arguments.device);
        let config = mechanics.drive_file(&title, &arguments.device);
        let comments = ["What is not known, and how the rest was measured, stands in [sources].".to_owned()];
        write_whole(path, &drives::to_toml(&config, &comments).map_err(Failure::input)?)?;
    }
    Ok(())
}

impl Found {
    fn timed(&mut self, timed: &fullstroke_extract::Timed) {
        let how = format!(
            "{} confirmed where predicted, {:.2} reads each; {} searched; {} skipped; {} reads answered by the \
             buffer and repeated",
            timed.predicted,
            timed.predicted_reads as f64 / timed.predicted.max(1) as f64,
            timed.searched,
            timed.skipped,
            timed.hits
        );
        self.tabled(&timed.table, how, timed.zones());
    }

    fn tabled(&mut self, table: &Boundaries, how: String, zones: Vec<FoundZone>) {
        let first_tracks = table.tracks_from(Lbn(0)).take(8).map(|track| track.sectors.0).collect();
        self.tracks =
            Some(TracksFound { tracks: table.len(), table_bytes: table.bytes(), first_tracks, zones, how });
        self.table = Some(table.clone());
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.lines(&mut text)?;
        f.write_str(text.trim_end())
    }
}

impl Found {
    fn lines(&self, text: &mut String) -> fmt::Result {
        let Effort { reads, translations, time_ns } = self.effort;
        writeln!(text, "{reads} reads, {translations} translations, {:.1} s", time_ns as f64 / 1e9)?;
        if let Some(rotation) = &self.rotation {
            let noise = rotation.noise * 100.0;
            writeln!(text, "rotation: {:.3} rpm, noise {noise:.4} % of a revolution", rotation.rpm())?;
            if rotation.evictions > 0 {
                let Rotation { evictions, .. } = rotation;
                writeln!(text, "buffer: forgets a sector after {evictions} reads elsewhere")?;
            }
        }
        if let Some(tracks) = &self.tracks {
            let TracksFound { first_tracks, how, .. } = tracks;
            writeln!(text, "tracks: {}, the first of {first_tracks:?} sectors: {how}", tracks.tracks)?;
            for zone in &tracks.zones {
                writeln!(
                    text,
                    "  zone from {}: {:.1} sectors a track",
                    Lbn(zone.first),
                    zone.sectors_per_track
                )?;
            }
        }
        if let Some(seeks) = &self.seeks {
            writeln!(text, "command overhead: {:.3} ms\nseek, by tracks crossed:", seeks.overhead_ms)?;
            for (tracks, ms) in &seeks.curve {
                writeln!(text, "  {tracks:>9}: {ms:.3} ms")?;
            }
        }
        if let Some(latency) = &self.latency {
            let answer = if latency.zero_latency { "yes" } else { "no" };
            let Latency { whole_tracks, soon_part, .. } = latency;
            writeln!(
                text,
                "zero latency: {answer}: whole tracks take {:.3} ms, deviation {:.3}; of two neighbours in reverse \
                 order the second comes at once in {:.0} %",
                whole_tracks.mean_ms,
                whole_tracks.deviation_ms,
                soon_part * 100.0
            )?;
        }
        if let Some(verified) = &self.verified {
            let answer = if verified.confirmed { "confirmed" } else { "not confirmed" };
            writeln!(
                text,
                "boundaries: {answer}: 64 sectors across one {:.2} ms, within a track {:.2} ms, difference {:.2} +- \
                 {:.2} ms",
                verified.crossing.mean_ms, verified.within.mean_ms, verified.difference_ms, verified.error_ms
            )?;
        }
        if let Some(end) = self.first_track_ends {
            writeln!(text, "the first track ends before {}", Lbn(end))?;
        }
        if let Some(check) = &self.check {
            check.lines(text)?;
        }
        Ok(())
    }
}

impl Checked {
    fn lines(&self, text: &mut String) -> fmt::Result {
        let Nearness { boundaries, wrong, missed, precision, recall, .. } = self.boundaries;
        writeln!(
            text,
            "check: precision {precision:.6}, recall {recall:.6}: {wrong} wrong and {missed} missed of {boundaries}"
        )?;
        if let Some(off) = self.zone_starts_off_sectors_mean {
            writeln!(text, "check: zones begin {off:.0} sectors off on average")?;
        }
        if let Some(rms) = self.seek_rms_ms {
            writeln!(text, "check: seeks are {rms:.3} ms off (root mean square)")?;
        }
        Ok(())
    }
}
