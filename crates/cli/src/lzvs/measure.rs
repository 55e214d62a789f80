//! `fullstroke lzvs measure`: ratio and zones of a disk, by timed reads.

use crate::output::{Failure, Output};
use clap::Args;
use fullstroke_drive::Model;
use fullstroke_engine::Graph;
use fullstroke_lzvs::{SimulatedReads, Survey, TRIALS, survey};
use fullstroke_stack::drives;
use fullstroke_units::Seed;

/// Measure how much faster the outside of a drive is than its inside, and how
/// many zones it has, by timed reads alone.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A name from `drive list`, or a drive file.
    drive: String,

    #[command(flatten)]
    trials: Trials,
}

/// How it is measured.
#[derive(Clone, Debug, Args)]
pub(crate) struct Trials {
    /// Measurements at each address.
    #[arg(long, value_name = "NUMBER", default_value_t = TRIALS, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    trials: u32,

    /// The seed of the pauses between reads.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let model = drives::load(&arguments.drive).map_err(Failure::input)?;
    let found = measure(&model, &arguments.trials)?;
    output.show(&found, text(&found))
}

/// Measures a simulated drive.
pub(crate) fn measure(model: &Model, trials: &Trials) -> Result<Survey, Failure> {
    let graph = Graph::new(model.branch().map_err(Failure::input)?);
    let mut target = SimulatedReads::new(graph, model.config().capacity_sectors, Seed(trials.seed));
    survey(&mut target, trials.trials).map_err(Failure::input)
}

/// What was measured, for people.
pub(crate) fn text(found: &Survey) -> String {
    let Survey { trials, ratio, ratio_mean, ratio_interval: (low, high), zones, zones_range, .. } = found;
    format!(
        "ratio {ratio}: {ratio_mean:.4}, 95 % interval {low:.4} to {high:.4}, {trials} trials of {}\n\
         zones {zones}: {} to {} in fifths of the trials",
        found.read_sectors.bytes(),
        zones_range.0,
        zones_range.1
    )
}
