//! `fullstroke predict`: what formulas say of a load at once, beside a simulation.

use crate::options::Edits;
use crate::output::{Failure, Output};
use crate::power::Assuming;
use clap::Args;
use fullstroke_measure::Stop;
use fullstroke_predict::PredictQuestion;
use fullstroke_stack::Overrides;
use fullstroke_units::{Bytes, Duration};
use std::path::PathBuf;

/// Predict latency, bandwidth and energy of a load on the drives of a stack, by the equations and the
/// queueing model of docs/prediction.md, and simulate the stack beside it.
///
/// The load is reduced to a fingerprint once; one disk, a stripe over all of them, PARAID and e-PARAID
/// follow from that at once by the equations, and the stack's own array by the model.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A trace in place of the stack's workload.
    trace: Option<PathBuf>,

    /// The stack file, of which the equations take the number of drives and the first one's figures.
    #[arg(long, value_name = "FILE")]
    stack: PathBuf,

    #[command(flatten)]
    edits: Edits,

    /// The window of the fingerprint.
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    window: Duration,

    /// The stripe unit of arrays with gears.
    #[arg(long, value_name = "SIZE", default_value = "64KiB")]
    unit: Bytes,

    /// Drives that sleep in the low gear; a quarter of them unless said.
    #[arg(long, value_name = "NUMBER")]
    sleeping: Option<u32>,

    /// Shift down when the mean utilisation of the last --averaged is below this.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    down: f64,

    /// Shift up when it is above this.
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    up: f64,

    /// The time over which utilisation is averaged.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    averaged: Duration,

    #[command(flatten)]
    assuming: Assuming,

    /// Do not simulate the stack.
    #[arg(long)]
    no_simulation: bool,
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
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
    let answer = question.answer(&Stop::default()).map_err(Failure::input)?;
    output.show(&answer, &answer)
}
