//! Extracts the parameters of simulated drives, whose true values are known: `cargo run --release
//! -p fullstroke-calibrate --example closed_loop [every|jumping|translate|verify|zones|arms|seeks]
//! [drive ...]`.

use fullstroke_calibrate::extract::{
    Angles, EndSearch, ExtractedDevice, Extraction, ExtractionPace, SeekTruth, SimulatedDrive,
    arms, compare, run, seek_curve, seek_error, seeks, survey, translate_by, verify, zone_error,
    zones,
};
use fullstroke_drive::DriveModel;
use fullstroke_stack::drives;
use fullstroke_tracks::Boundaries;
use fullstroke_units::Seed;
use std::error::Error;
use std::fmt::Write as _;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_else(|| "jumping".into());
    let mut names: Vec<String> = arguments.collect();
    if names.is_empty() {
        names = drives::names().into_iter().map(str::to_owned).collect();
    }
    for name in names {
        let model = drives::load_unchecked(&name)?;
        let told = match kind.as_str() {
            "translate" => translated(&model),
            "verify" => verified(&model),
            "zones" => zoned(&model),
            "seeks" => sought(&model),
            "arms" => armed(&model),
            "every" => timed(&model, ExtractionPace::Every),
            _ => timed(&model, ExtractionPace::Jumping),
        };
        println!("{name}: {}", told.unwrap_or_else(|error| error.to_string()));
    }
    Ok(())
}

fn truth(model: &DriveModel) -> Result<Boundaries, Box<dyn Error>> {
    Ok(Boundaries::of(&*model.tracks(), "the drive")?)
}

fn translated(model: &DriveModel) -> Result<String, Box<dyn Error>> {
    let mut told = Vec::new();
    for search in [EndSearch::Halves, EndSearch::Sectors] {
        let mut drive = SimulatedDrive::new(model)?;
        let extraction =
            Extraction::new(drive.capacity(), move |probe| translate_by(probe, search));
        let (found, effort) = run(&mut drive, extraction, &mut |_, _| {})?;
        let equal = found.table.check_equal(&truth(model)?).is_ok();
        told.push(format!(
            "{search:?}: equal {equal}; {} translations, {:.3} a track, {} irregular tracks of {} sectors, {:.1} \
             simulated min",
            effort.translations,
            effort.translations as f64 / found.table.len() as f64,
            found.irregular,
            found.irregular_sectors,
            effort.time_ns as f64 / 60e9
        ));
    }
    Ok(told.join("; "))
}

fn verified(model: &DriveModel) -> Result<String, Box<dyn Error>> {
    let mut drive = SimulatedDrive::new(model)?;
    let table = truth(model)?;
    let extraction = Extraction::new(drive.capacity(), |probe| {
        verify(probe, table, 1000, Seed(1))
    });
    let (found, _) = run(&mut drive, extraction, &mut |_, _| {})?;
    Ok(format!(
        "crossing {:.2} ms (deviation {:.2}), within {:.2} ms ({:.2}): {:.2} +- {:.2} ms",
        found.crossing.mean_ms,
        found.crossing.deviation_ms,
        found.within.mean_ms,
        found.within.deviation_ms,
        found.difference_ms,
        found.error_ms
    ))
}

fn zoned(model: &DriveModel) -> Result<String, Box<dyn Error>> {
    let mut drive = SimulatedDrive::new(model)?;
    let extraction = Extraction::new(drive.capacity(), |probe| zones(probe, Seed(1)));
    let (found, effort) = run(&mut drive, extraction, &mut |_, _| {})?;
    let (mean, most, truth) = zone_error(&found.zones, model);
    Ok(format!(
        "{} zones of {truth}, off {mean:.0} sectors, at most {most}; {} places, {} reads, {:.1} simulated min",
        found.zones.len(),
        found.places,
        effort.reads,
        effort.time_ns as f64 / 6e10,
    ))
}

fn armed(model: &DriveModel) -> Result<String, Box<dyn Error>> {
    let mut drive = SimulatedDrive::new(model)?;
    let told = async |probe| arms(&Angles::measure(probe, Seed(1)).await?, Seed(1)).await;
    let extraction = Extraction::new(drive.capacity(), told);
    let (found, effort) = run(&mut drive, extraction, &mut |_, _| {})?;
    let time = effort.time_ns as f64 / 6e10;
    Ok(format!(
        "{found:?} arms, truth {}; {} reads, {time:.1} simulated min",
        model.config().actuators,
        effort.reads
    ))
}

/// Measures seeks between tracks from the true table.
fn sought(model: &DriveModel) -> Result<String, Box<dyn Error>> {
    let mut drive = SimulatedDrive::new(model)?;
    let table = truth(model)?;
    let known = table.clone();
    let told = async move |probe| {
        let mut angles = Angles::measure(probe, Seed(1)).await?;
        let arms = arms(&angles, Seed(1)).await?;
        seeks(&mut angles, &known, arms).await
    };
    let extraction = Extraction::new(drive.capacity(), told);
    let (found, effort) = run(&mut drive, extraction, &mut |_, _| {})?;
    let (rms, mean) = seek_error(&found, &table, model);
    let mut text = format!(
        "{} reads, {:.1} simulated min; overhead {:.3} ms; RMS {rms:.3} of {mean:.2} ms",
        effort.reads,
        effort.time_ns as f64 / 6e10,
        found.overhead_ms
    );
    for SeekTruth {
        tracks,
        found_ms,
        truth_ms,
    } in seek_curve(&found, &table, model)
    {
        write!(
            text,
            "\n  {tracks}: {found_ms:.3} ms, truth {truth_ms:.3} ms"
        )?;
    }
    Ok(text)
}

fn timed(model: &DriveModel, pace: ExtractionPace) -> Result<String, Box<dyn Error>> {
    let mut drive = SimulatedDrive::new(model)?;
    let extraction = Extraction::new(drive.capacity(), move |probe| survey(probe, Seed(1), pace));
    let mut tracks_ns = 0;
    let watch = &mut |progress: fullstroke_calibrate::extract::ExtractionProgress,
                      effort: fullstroke_calibrate::extract::Effort| {
        if progress.stage == "tracks" {
            tracks_ns = effort.time_ns;
        }
    };
    let (found, effort) = run(&mut drive, extraction, watch)?;
    let near = compare(&found.timed.table, &truth(model)?);
    let (rms, mean) = seek_error(&found.seeks, &found.timed.table, model);
    let (zone_mean, zone_most, zones) = zone_error(&found.timed.zones(), model);
    let config = found.drive_file("found", "a simulated drive");
    let again = DriveModel::new(config).map(|again| {
        compare(
            &truth(&again).unwrap_or(found.timed.table.clone()),
            &found.timed.table,
        )
    });
    let file = match again {
        Ok(same) => format!("{} + {} differ", same.wrong, same.missed),
        Err(error) => error.to_string(),
    };
    Ok(format!(
        "precision {:.6} recall {:.6} ({} wrong, {} missed, {} outside holes) of {}; predicted {} at {:.2} reads, searched {}, \
         skipped {}; {} reads, {:.1} simulated min for tracks; rpm {:.3}; zones {} of {zones}, off {zone_mean:.0} sectors, at most {zone_most}; \
         seek RMS {rms:.3} of {mean:.2} ms; zero latency {:?} ({:.2} rev); {:?} arms; second of reversed pairs soon {:.0} %; file: {file}",
        near.precision,
        near.recall,
        near.wrong,
        near.missed,
        near.missed_outside_holes,
        near.boundaries,
        found.timed.predicted,
        found.timed.predicted_reads as f64 / found.timed.predicted.max(1) as f64,
        found.timed.searched,
        found.timed.skipped,
        effort.reads,
        tracks_ns as f64 / 6e10,
        found.rotation.rpm(),
        found.timed.zones().len(),
        found.latency.zero_latency,
        found.latency.whole_tracks.mean_ms * 1e6 / found.rotation.revolution_ns,
        found.arms,
        found.latency.soon_part * 100.0,
    ))
}
