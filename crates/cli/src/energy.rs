//! `fullstroke energy`: calculates whether spin-down pays for a load.

use crate::bars::Bars;
use crate::options::{Edits, above_zero, jobs};
use crate::output::{CommandFailure, CommandOutput};
use crate::power::PowerAssumption;
use crate::standard_input;
use clap::Args;
use fullstroke_advise::DEFAULT_CURRENCY;
use fullstroke_lab::{EnergyPrice, EnergyQuestion};
use fullstroke_measure::Stop;
use fullstroke_stack::Overrides;
use fullstroke_units::Duration;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Calculate whether spin-down pays for a load: the best idle time, the response times, and the use
/// of the rated starts and stops.
///
/// The load runs several times: with platters that always turn, with the stack's own power policy
/// if it has one, once per idle time, and with the policies `break-even` and `adaptive`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Trace that replaces the stack's workloads. Workloads of the kind `background`, such as a
    /// scrub or a poller, stay.
    #[arg(value_parser = standard_input::file)]
    trace: Option<PathBuf>,

    /// The stack file.
    #[arg(long, value_name = "FILE")]
    stack: PathBuf,

    /// Idle time to try, such as 5min (may be repeated). Default: 30 s to an hour.
    #[arg(long, value_name = "TIME", value_delimiter = ',')]
    after: Vec<Duration>,

    /// Price of a kilowatt-hour, for the cost of a year.
    #[arg(long, value_name = "NUMBER", value_parser = above_zero)]
    energy_price: Option<f64>,

    /// Currency of the price.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_CURRENCY)]
    currency: String,

    #[command(flatten)]
    edits: Edits,

    #[command(flatten)]
    assuming: PowerAssumption,

    /// Number of runs at a time. Default: number of cores.
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let question = EnergyQuestion {
        stack: arguments.stack.clone(),
        overrides: Overrides {
            trace: arguments.trace.clone(),
            ..arguments.edits.overrides()
        },
        after: arguments.after.clone(),
        assume_power: arguments.assuming.assumes(),
        price: arguments.energy_price.map(|per_kwh| EnergyPrice {
            per_kwh,
            currency: arguments.currency.clone(),
        }),
    };
    let runs = question.runs().map_err(CommandFailure::input)?;
    let bars = Bars::new(runs.names(), output);
    let answer = runs.run(jobs(arguments.jobs), &Stop::default(), &|event| {
        bars.advance(event.candidate, event.finished, event.expected)
    });
    bars.clear();
    let answer = answer.map_err(CommandFailure::input)?;
    output.show(&answer, &answer)
}
