//! The kinds of extraction, carried out on a device.

use super::found::ExtractionResult;
use super::{Arguments, ExtractionKind};
use crate::bars::Bars;
use crate::output::{CommandFailure, CommandOutput};
use fullstroke_calibrate::extract::{
    Angles, Effort, EndSearch, ExtractError, ExtractedDevice, Extraction, ExtractionAlgorithm,
    ExtractionPace, Timed, arms, cache, depth, first_tracks, growth, run, seeks, skews, spot_check,
    survey, timing, tracks, translate_by, verify, zero_latency, zones,
};
use fullstroke_tracks::Boundaries;
use fullstroke_units::Seed;

/// Number of reads between two updates of the progress bar.
const WATCHED: u64 = 256;

/// Number of tracks to find before the test for zero latency.
const FIRST_TRACKS: u64 = 450;

/// Runs the requested kind of extraction.
pub(super) fn find(
    device: &mut dyn ExtractedDevice,
    arguments: &Arguments,
    output: &CommandOutput,
) -> Result<ExtractionResult, CommandFailure> {
    let (seed, pace) = (Seed(arguments.seed), ExtractionPace::from(arguments.pace));
    let capacity = device.capacity();
    let table = arguments.table()?;
    if let Some(table) = &table {
        table
            .check_capacity(capacity)
            .map_err(CommandFailure::input)?;
    }
    let mut found = ExtractionResult::default();
    match arguments.kind {
        ExtractionKind::Survey => all_at_once(device, arguments, output, &mut found)?,
        ExtractionKind::Timing => {
            let extraction = Extraction::new(capacity, move |probe| timing(probe, seed, pace));
            let timed = drive(device, extraction, output, &mut found.effort)?;
            found.timed(&timed);
        }
        ExtractionKind::Zones => {
            let extraction = Extraction::new(capacity, move |probe| zones(probe, seed));
            let map = drive(device, extraction, output, &mut found.effort)?;
            (found.rotation, found.zones) = (Some(map.rotation), map.zones);
        }
        ExtractionKind::Translate => translation(device, arguments, output, &mut found)?,
        ExtractionKind::Rpm => {
            let measured = async move |probe| Ok(Angles::measure(probe, seed).await?.rotation());
            let extraction = Extraction::new(capacity, measured);
            found.rotation = Some(drive(device, extraction, output, &mut found.effort)?);
        }
        ExtractionKind::Seek => seek(device, table, arguments, output, &mut found)?,
        ExtractionKind::Skew => skew(device, arguments, output, &mut found)?,
        ExtractionKind::ZeroLatency => latency(device, table, arguments, output, &mut found)?,
        ExtractionKind::Cache => caching(device, arguments, output, &mut found)?,
        ExtractionKind::Depth => queue_depth(device, arguments, output, &mut found)?,
        ExtractionKind::Verify => {
            let Some(table) = table else {
                return Err(CommandFailure::input(
                    "--kind verify needs boundaries; give --table FILE, written by --write-table",
                ));
            };
            let reads = arguments.reads;
            let extraction =
                Extraction::new(capacity, move |probe| verify(probe, table, reads, seed));
            found.verified = Some(drive(device, extraction, output, &mut found.effort)?);
        }
        ExtractionKind::Growth => {
            let extraction = Extraction::new(capacity, |probe| growth(probe, 2048));
            found.first_track_ends = Some(drive(device, extraction, output, &mut found.effort)?);
        }
    }
    Ok(found)
}

/// Runs `--kind survey`: all mechanics in one extraction.
fn all_at_once(
    device: &mut dyn ExtractedDevice,
    arguments: &Arguments,
    output: &CommandOutput,
    found: &mut ExtractionResult,
) -> Result<(), CommandFailure> {
    let (seed, pace) = (Seed(arguments.seed), ExtractionPace::from(arguments.pace));
    let capacity = device.capacity();
    let extraction = Extraction::new(capacity, move |probe| survey(probe, seed, pace));
    let mechanics = drive(device, extraction, output, &mut found.effort)?;
    found.rotation = Some(mechanics.rotation);
    found.seeks = Some(mechanics.seeks.clone());
    found.latency = Some(mechanics.latency);
    found.arms = mechanics.arms;
    found.timed(&mechanics.timed);
    found.mechanics = Some(mechanics);
    Ok(())
}

/// Asks the drive where each track begins.
fn translation(
    device: &mut dyn ExtractedDevice,
    arguments: &Arguments,
    output: &CommandOutput,
    found: &mut ExtractionResult,
) -> Result<(), CommandFailure> {
    let capacity = device.capacity();
    let search = if arguments.by_sector {
        EndSearch::Sectors
    } else {
        EndSearch::Halves
    };
    let extraction = Extraction::new(capacity, move |probe| translate_by(probe, search));
    let translated = drive(device, extraction, output, &mut found.effort)?;
    let how = format!(
        "{} not as long as the one before, {} sectors, {}; {:.2} translations a track, {:.2} ms each",
        translated.irregular,
        translated.irregular_sectors,
        if arguments.by_sector {
            "gone through sector by sector"
        } else {
            "searched"
        },
        found.effort.translations as f64 / translated.table.len() as f64,
        found.effort.time_ns as f64 / 1e6 / found.effort.translations.max(1) as f64
    );
    found.tabled(&translated.table, how);
    Ok(())
}

/// Tests for zero latency on tracks of `table`. Without a table the first tracks are found
/// beforehand.
fn latency(
    device: &mut dyn ExtractedDevice,
    table: Option<Boundaries>,
    arguments: &Arguments,
    output: &CommandOutput,
    found: &mut ExtractionResult,
) -> Result<(), CommandFailure> {
    let (seed, capacity) = (Seed(arguments.seed), device.capacity());
    let told = async move |probe: ExtractionAlgorithm| {
        let mut angles = Angles::measure(probe, seed).await?;
        let table = match table {
            Some(table) => {
                // A table of another drive would put the test across track boundaries, and its
                // result would be wrong without a sign.
                spot_check(&mut angles, &table).await?;
                table
            }
            None => {
                let (timed, measured) = first_tracks(angles, FIRST_TRACKS).await?;
                angles = measured;
                timed.table
            }
        };
        zero_latency(&mut angles, &table).await
    };
    let extraction = Extraction::new(capacity, told);
    found.latency = Some(drive(device, extraction, output, &mut found.effort)?);
    Ok(())
}

/// Measures the buffer.
fn caching(
    device: &mut dyn ExtractedDevice,
    arguments: &Arguments,
    output: &CommandOutput,
    found: &mut ExtractionResult,
) -> Result<(), CommandFailure> {
    let (seed, capacity) = (Seed(arguments.seed), device.capacity());
    let writes = arguments.writes;
    let told = async move |probe| {
        let mut angles = Angles::measure(probe, seed).await?;
        // A drive with two arms has a buffer and an address range for each, so the test stays
        // within the range of one arm.
        let arms = arms(&angles, seed).await?;
        Ok((arms, cache(&mut angles, arms, writes).await?))
    };
    let extraction = Extraction::new(capacity, told);
    let (arms, cache) = drive(device, extraction, output, &mut found.effort)?;
    (found.arms, found.cache) = (arms, Some(cache));
    Ok(())
}

/// Measures how many commands the drive queues.
fn queue_depth(
    device: &mut dyn ExtractedDevice,
    arguments: &Arguments,
    output: &CommandOutput,
    found: &mut ExtractionResult,
) -> Result<(), CommandFailure> {
    let (seed, capacity) = (Seed(arguments.seed), device.capacity());
    let told = async move |probe: ExtractionAlgorithm| {
        let arms = match Angles::measure(probe.clone(), seed).await {
            Ok(angles) => arms(&angles, seed).await?,
            // The rotation is too irregular for angles. The queue depth does not need angles.
            Err(ExtractError::CannotTell { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok((arms, depth(probe, arms, seed).await?))
    };
    let extraction = Extraction::new(capacity, told);
    let (arms, depth) = drive(device, extraction, output, &mut found.effort)?;
    (found.arms, found.depth) = (arms, Some(depth));
    Ok(())
}

/// Measures the seek curve between tracks of `table`. Without a table the tracks are found
/// beforehand.
fn seek(
    device: &mut dyn ExtractedDevice,
    table: Option<Boundaries>,
    arguments: &Arguments,
    output: &CommandOutput,
    found: &mut ExtractionResult,
) -> Result<(), CommandFailure> {
    let (seed, pace) = (Seed(arguments.seed), ExtractionPace::from(arguments.pace));
    let told = async move |probe: ExtractionAlgorithm| {
        let (mut angles, table) = angles_and_table(probe, table, seed, pace).await?;
        let arms = arms(&angles, seed).await?;
        Ok((arms, seeks(&mut angles, &table, arms).await?, table))
    };
    let extraction = Extraction::new(device.capacity(), told);
    let (arms, seeks, table) = drive(device, extraction, output, &mut found.effort)?;
    (found.arms, found.seeks, found.table) = (arms, Some(seeks), Some(table));
    Ok(())
}

async fn angles_and_table(
    probe: ExtractionAlgorithm,
    table: Option<Boundaries>,
    seed: Seed,
    pace: ExtractionPace,
) -> Result<(Angles, Boundaries), ExtractError> {
    let mut angles = Angles::measure(probe, seed).await?;
    let Some(table) = table else {
        let (Timed { table, .. }, angles) = tracks(angles, pace).await?;
        return Ok((angles, table));
    };
    spot_check(&mut angles, &table).await?;
    Ok((angles, table))
}

/// Finds the skews of all zones.
fn skew(
    device: &mut dyn ExtractedDevice,
    arguments: &Arguments,
    output: &CommandOutput,
    found: &mut ExtractionResult,
) -> Result<(), CommandFailure> {
    let (seed, pace) = (Seed(arguments.seed), ExtractionPace::from(arguments.pace));
    let told = async move |probe| tracks(Angles::measure(probe, seed).await?, pace).await;
    let extraction = Extraction::new(device.capacity(), told);
    let (timed, angles) = drive(device, extraction, output, &mut found.effort)?;
    found.skews = skews(&timed, angles.rotation().revolution_ns);
    found.skews_of = Some(timed);
    Ok(())
}

/// Runs an extraction with a progress bar.
fn drive<T>(
    device: &mut dyn ExtractedDevice,
    extraction: Extraction<T>,
    output: &CommandOutput,
    spent: &mut Effort,
) -> Result<T, CommandFailure> {
    let bars = Bars::new(["extract"], output);
    let result = run(device, extraction, &mut |progress, effort| {
        // A read from the buffer takes microseconds, and drawing at each read would take longer
        // than the read.
        if effort.reads.is_multiple_of(WATCHED) {
            bars.advance(0, progress.done, Some(progress.of));
        }
    });
    bars.clear();
    let (found, effort) = result.map_err(CommandFailure::input)?;
    *spent = effort;
    Ok(found)
}
