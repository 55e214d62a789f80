//! `fullstroke predict`: predicts by formulas, beside a simulation.

use crate::options::Edits;
use crate::output::{CommandFailure, CommandOutput};
use crate::power::PowerAssumption;
use clap::Args;
use fullstroke_measure::Stop;
use fullstroke_predict::PredictQuestion;
use fullstroke_stack::Overrides;
use fullstroke_units::{Bytes, Duration};
use std::path::PathBuf;

/// Predict latency, bandwidth and energy of a load on the drives of a stack, by the equations and
/// the queueing model of docs/prediction.md, and simulate the stack for comparison.
///
/// The load is reduced to a fingerprint once: rates, sizes and places of the requests in windows of
/// time (--window). The equations then predict a single disk, a stripe over all disks, PARAID and
/// e-PARAID; the model predicts the stack's own array.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Trace that replaces the stack's workload.
    trace: Option<PathBuf>,

    /// Stack file. The equations use the number of drives and the figures of the first drive.
    #[arg(long, value_name = "FILE")]
    stack: PathBuf,

    #[command(flatten)]
    edits: Edits,

    /// Time window of the fingerprint.
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    window: Duration,

    /// Stripe unit of arrays with gears.
    #[arg(long, value_name = "SIZE", default_value = "64KiB")]
    unit: Bytes,

    /// Number of drives in standby in the low gear. Default: a quarter of the drives.
    #[arg(long, value_name = "NUMBER")]
    sleeping: Option<u32>,

    /// Mean utilisation over --averaged below which the array shifts down.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    down: f64,

    /// Mean utilisation over --averaged above which the array shifts up.
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    up: f64,

    /// Time over which utilisation is averaged.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    averaged: Duration,

    #[command(flatten)]
    assuming: PowerAssumption,

    /// Do not simulate the stack.
    #[arg(long)]
    no_simulation: bool,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let question = PredictQuestion {
        stack: arguments.stack.clone(),
        overrides: Overrides {
            trace: arguments.trace.clone(),
            ..arguments.edits.overrides()
        },
        window: arguments.window,
        unit: arguments.unit,
        sleeping: arguments.sleeping,
        down: arguments.down,
        up: arguments.up,
        averaged: arguments.averaged,
        assume_power: arguments.assuming.assumes(),
        simulate: !arguments.no_simulation,
    };
    let answer = question
        .answer(&Stop::default())
        .map_err(CommandFailure::input)?;
    output.show(&answer, &answer)
}
