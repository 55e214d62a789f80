//! `fullstroke energy`: does stopping the platters pay for this load?

use crate::bars::Bars;
use crate::options::{Edits, jobs};
use crate::output::{Failure, Output};
use crate::power::Assuming;
use clap::Args;
use fullstroke_lab::EnergyQuestion;
use fullstroke_measure::Stop;
use fullstroke_stack::Overrides;
use fullstroke_units::Duration;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Say whether stopping the platters pays for a load, behind which idle time, at what response
/// times, and how fast it uses up the rated starts and stops.
///
/// The load is run once with platters that always turn, as the stack has it if that stops them, once behind
/// each idle time, and with the policies `break-even` and `adaptive`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A trace in place of the stack's workload, or workloads; those of the kind `background`, a scrub or
    /// whoever polls, stay beside it.
    trace: Option<PathBuf>,

    /// The stack file.
    #[arg(long, value_name = "FILE")]
    stack: PathBuf,

    /// An idle time to try, such as 5min (may be repeated); 30 s to an hour unless said.
    #[arg(long, value_name = "TIME", value_delimiter = ',')]
    after: Vec<Duration>,

    #[command(flatten)]
    edits: Edits,

    #[command(flatten)]
    assuming: Assuming,

    /// Runs at a time; as many as there are cores unless said.
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let question = EnergyQuestion {
        stack: arguments.stack.clone(),
        overrides: Overrides {
            trace: arguments.trace.clone(),
            ..arguments.edits.overrides()
        },
        after: arguments.after.clone(),
        assume_power: arguments.assuming.assumes(),
    };
    let runs = question.runs().map_err(Failure::input)?;
    let bars = Bars::new(runs.names(), output);
    let answer = runs.run(jobs(arguments.jobs), &Stop::default(), &|event| {
        bars.advance(event.candidate, event.finished, event.expected)
    });
    bars.clear();
    let answer = answer.map_err(Failure::input)?;
    output.show(&answer, &answer)
}
