//! `--quick`: a profile in minutes, with its accuracy.

#[cfg(feature = "real")]
use super::device::TimedDevice;
use crate::bars::Bars;
use crate::output::{CommandFailure, CommandOutput};

use fullstroke_drive::DriveModel;
use fullstroke_lab::lzvs::{Pair, RateProfile, TimedReads, measured_keys, profile};
use fullstroke_units::Seed;
use fullstroke_volume::MemberZone;
use serde::Serialize;
#[cfg(feature = "real")]
use std::path::Path;

/// Output of `lzvs measure --quick`.
#[derive(Serialize)]
struct QuickOutput {
    #[serde(flatten)]
    profile: RateProfile,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<Check>,
}

/// True values, and the floors of volumes of two such drives.
#[derive(Serialize)]
struct Check {
    true_ratio: f64,
    true_zones: usize,
    floors: Vec<Floor>,
}

/// Floor of a layout, in 10^6 bytes per second.
#[derive(Serialize)]
struct Floor {
    layout: &'static str,
    /// Floor with the measured zones.
    measured_mb_per_s: f64,
    /// Floor with the true zones.
    true_mb_per_s: f64,
}

#[cfg(feature = "real")]
pub(super) fn of_device(path: &Path, output: &CommandOutput) -> Result<(), CommandFailure> {
    let profile = measured(&mut TimedDevice::open(path, None)?, output)?;
    show(
        QuickOutput {
            profile,
            check: None,
        },
        output,
    )
}

pub(super) fn of_model(
    model: &DriveModel,
    seed: Seed,
    check: bool,
    output: &CommandOutput,
) -> Result<(), CommandFailure> {
    // Back to back, as a device is measured: pauses would add a random part of a revolution to each
    // read.
    let profile = measured(&mut super::reads(model, seed)?.back_to_back(), output)?;
    let check = if check {
        Some(Check::of(model, &profile)?)
    } else {
        None
    };
    show(QuickOutput { profile, check }, output)
}

/// Measures a profile with a progress bar.
pub(crate) fn measured(
    target: &mut dyn TimedReads,
    output: &CommandOutput,
) -> Result<RateProfile, CommandFailure> {
    let bars = Bars::new(["measure"], output);
    let found = profile(target, &mut |done, of| {
        bars.advance(0, u64::from(done), Some(u64::from(of)))
    });
    bars.clear();
    found.map_err(CommandFailure::input)
}

impl Check {
    fn of(model: &DriveModel, found: &RateProfile) -> Result<Check, CommandFailure> {
        let rates = model.tracks().zone_rates();
        let rate = |zone: Option<&fullstroke_contract::ZoneRate>| {
            zone.map_or(0.0, |zone| zone.bytes_per_s as f64)
        };
        let true_ratio = rate(rates.first()) / rate(rates.last());
        let zones = |zone: &fullstroke_contract::ZoneRate| MemberZone {
            sectors: zone.sectors,
            bytes_per_s: zone.bytes_per_s,
        };
        let zones: Vec<MemberZone> = rates.iter().map(zones).collect();
        let pair = Pair {
            zones: [rates.clone(), rates],
        };
        let truth = RateProfile {
            // The true ratio has no error of measurement; the interval only allows for rounding.
            ratio_interval: (true_ratio * 0.9999, true_ratio * 1.0001),
            zones,
            ..found.clone()
        };
        let floor = |layout: &'static str, profile: &RateProfile| -> Result<f64, CommandFailure> {
            let keys =
                measured_keys(layout, &[profile.clone(), profile.clone()]).unwrap_or_default();
            Ok(pair
                .offer(layout, &keys)
                .map_err(CommandFailure::input)?
                .0
                .floor_mb_per_s)
        };
        // RAID 0 needs no measured keys, and shows the floor without any pairing.
        let floors = ["raid0", "lzvs", "lzvs-geo"].into_iter().map(|layout| {
            let (measured_mb_per_s, true_mb_per_s) =
                (floor(layout, found)?, floor(layout, &truth)?);
            Ok(Floor {
                layout,
                measured_mb_per_s,
                true_mb_per_s,
            })
        });
        Ok(Check {
            true_ratio,
            true_zones: truth.zones.len(),
            floors: floors.collect::<Result<_, CommandFailure>>()?,
        })
    }
}

fn show(shown: QuickOutput, output: &CommandOutput) -> Result<(), CommandFailure> {
    let mut lines = vec![line(&shown.profile)];
    for zone in &shown.profile.zones {
        lines.push(format!(
            "  {:>10}  {:7.2} MB/s",
            zone.sectors.bytes().to_string(),
            zone.bytes_per_s as f64 / 1e6
        ));
    }
    if let Some(check) = &shown.check {
        lines.push(format!(
            "truth: ratio {:.4}, {} zones",
            check.true_ratio, check.true_zones
        ));
        let floors = check.floors.iter();
        lines.extend(floors.map(|floor| {
            format!(
                "floor of two as {}: {:.2} MB/s, and {:.2} with the truth",
                floor.layout, floor.measured_mb_per_s, floor.true_mb_per_s
            )
        }));
    }
    output.show(&shown, lines.join("\n"))
}

/// Returns the profile as one line of text.
fn line(found: &RateProfile) -> String {
    let (low, high) = found.ratio_interval;
    format!(
        "ratio {}: {:.4}, 95 % interval {low:.4} to {high:.4}; {} zones; {} reads of {} in {:.0} s",
        found.ratio,
        found.ratio_mean,
        found.zones.len(),
        found.reads,
        found.read_sectors.bytes(),
        found.seconds
    )
}
