//! `array create --measure`: measures the member properties that layouts of constant transfer rate
//! need.

use crate::lzvs::measure::{TimedDevice, measured};
use crate::output::{CommandFailure, CommandOutput};
use fullstroke_lab::lzvs::{RateProfile, measured_keys};
use fullstroke_store::{Design, Device, MemberRates, room};
use fullstroke_volume::LzvsConfig;
use std::path::PathBuf;
use std::sync::Arc;

/// Layouts with the keys that `--measure` finds.
const KEYS: [(&str, &[&str]); 2] = [
    ("lzvs", &["ratio", "zones"]),
    ("lzvs-geo", &["member_zones"]),
];

/// Measures the data area of each member in turn, and adds the results to the design.
pub(super) fn members(
    design: &mut Design,
    paths: &[PathBuf],
    devices: &[Arc<dyn Device>],
    output: &CommandOutput,
) -> Result<(), CommandFailure> {
    let Some((_, keys)) = KEYS.iter().find(|(layout, _)| *layout == design.layout) else {
        return Err(CommandFailure::Input(format!(
            "--measure: found the layout {}; expected lzvs or lzvs-geo, which are made by their members' rates",
            design.layout
        )));
    };
    // A given value and a measured value would contradict each other, and neither should win
    // silently.
    if let Some(given) = keys.iter().find(|key| design.keys.contains_key(**key)) {
        return Err(CommandFailure::Input(format!(
            "--measure: found --set {given} as well; expected one of the two"
        )));
    }
    let parts = room(design, devices).map_err(CommandFailure::input)?;
    let profiles = paths.iter().zip(parts).map(|(path, part)| {
        let fail = |failure: CommandFailure| match failure {
            CommandFailure::Input(why) => {
                CommandFailure::Input(format!("`{}`: {why}", path.display()))
            }
            other => other,
        };
        // Only the part for data is timed: the sectors of superblocks and journal never hold data of the
        // array.
        measured(&mut TimedDevice::open(path, Some(part))?, output).map_err(fail)
    });
    let profiles = profiles.collect::<Result<Vec<RateProfile>, CommandFailure>>()?;
    design
        .keys
        .extend(measured_keys(&design.layout, &profiles).unwrap_or_default());
    design.measured = profiles.iter().map(in_short).collect();
    Ok(())
}

/// Returns a warning about assumed member properties that were neither measured nor given.
pub(super) fn assumed(design: &Design) -> Option<String> {
    let given = |key: &str| design.keys.contains_key(key);
    // `lzvs-geo` has no assumed values: without `member_zones` the layout refuses the design.
    if design.layout != "lzvs" || given("ratio") && given("zones") {
        return None;
    }
    let LzvsConfig { zones, ratio, .. } = LzvsConfig::default();
    let mut what = Vec::new();
    if !given("ratio") {
        what.push(format!("a ratio of {ratio}"));
    }
    if !given("zones") {
        what.push(format!("{zones} zones"));
    }
    Some(format!(
        "{} (Lloyd's example) are assumed; the transfer rate is constant only on members with these values; \
         --measure measures the members",
        what.join(" and ")
    ))
}

fn in_short(profile: &RateProfile) -> MemberRates {
    let rate =
        |zone: Option<&fullstroke_volume::MemberZone>| zone.map_or(0, |zone| zone.bytes_per_s);
    MemberRates {
        outer_bytes_per_s: rate(profile.zones.first()),
        inner_bytes_per_s: rate(profile.zones.last()),
        ratio_interval: profile.ratio_interval,
        zones: profile.zones.len() as u32,
        seconds: profile.seconds,
    }
}
