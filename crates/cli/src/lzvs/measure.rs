//! `fullstroke lzvs measure`: measures the ratio and the zones of a disk by timed reads.

#[cfg(feature = "real")]
mod device;
mod quick;

#[cfg(feature = "real")]
pub(crate) use device::TimedDevice;
#[cfg(feature = "real")]
pub(crate) use quick::measured;

use crate::output::{CommandFailure, CommandOutput};
use clap::Args;
use fullstroke_drive::DriveModel;
use fullstroke_engine::Graph;
use fullstroke_lab::lzvs::{SimulatedReads, Survey, TRIALS, survey};
use fullstroke_stack::drives;
use fullstroke_units::Seed;
use std::path::Path;

/// Measure the ratio of outer to inner transfer rate and the number of zones of a drive, by timed
/// reads alone.
///
/// The drive is a simulated drive under virtual time, a block device, or a file. Devices and files
/// are read past the page cache and always measured as with --quick.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name from `drive list`, a drive file, or the path of a device.
    drive: String,

    #[command(flatten)]
    trials: MeasureOptions,

    /// Take minutes of the drive's time instead of hours: one read per address instead of many
    /// trials.
    #[arg(long)]
    quick: bool,

    /// Compare the result of --quick with the truth of a simulated drive.
    #[arg(long, requires = "quick")]
    check: bool,
}

/// Options of the measurement.
#[derive(Clone, Debug, Args)]
pub(crate) struct MeasureOptions {
    /// Number of measurements at each address.
    #[arg(long, value_name = "NUMBER", default_value_t = TRIALS, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    trials: u32,

    /// Seed of the pauses between reads.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let path = Path::new(&arguments.drive);
    let described = path
        .extension()
        .is_some_and(|extension| extension == "toml")
        || path.is_dir();
    // A path that exists is read as a device, even if a drive of the library has the same name.
    if path.exists() && !described {
        if arguments.check {
            return Err(CommandFailure::input(
                "--check: the truth of a device is not known; give a simulated drive",
            ));
        }
        #[cfg(feature = "real")]
        return quick::of_device(path, output);
        #[cfg(not(feature = "real"))]
        return Err(crate::left_out::needs(
            &format!("lzvs measure {}", path.display()),
            "real",
        ));
    }
    let model = drives::load(&arguments.drive).map_err(CommandFailure::input)?;
    if arguments.quick {
        return quick::of_model(&model, Seed(arguments.trials.seed), arguments.check, output);
    }
    let found = measure(&model, &arguments.trials)?;
    output.show(&found, text(&found))
}

/// Measures a simulated drive.
pub(crate) fn measure(
    model: &DriveModel,
    trials: &MeasureOptions,
) -> Result<Survey, CommandFailure> {
    survey(&mut reads(model, Seed(trials.seed))?, trials.trials).map_err(CommandFailure::input)
}

/// Builds the timed reads of a single simulated drive.
fn reads(model: &DriveModel, seed: Seed) -> Result<SimulatedReads, CommandFailure> {
    let graph = Graph::new(model.branch().map_err(CommandFailure::input)?);
    Ok(SimulatedReads::new(
        graph,
        model.config().capacity_sectors,
        seed,
    ))
}

/// Returns the result as text for people.
pub(crate) fn text(found: &Survey) -> String {
    let Survey {
        trials,
        ratio,
        ratio_mean,
        ratio_interval: (low, high),
        zones,
        zones_range,
        ..
    } = found;
    format!(
        "ratio {ratio} ({ratio_mean:.4}, 95 % interval {low:.4} to {high:.4}) in {trials} trials of {}\n\
         {zones} zones ({} to {} in each fifth of the trials)",
        found.read_sectors.bytes(),
        zones_range.0,
        zones_range.1
    )
}
