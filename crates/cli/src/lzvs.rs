//! `fullstroke lzvs`: volumes of constant transfer rate.

pub(crate) mod measure;
mod plan;
mod plot;
mod sweep;

use crate::output::{CommandFailure, CommandOutput};
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Plan(plan::Arguments),
    Measure(measure::Arguments),
    Sweep(sweep::Arguments),
    Plot(plot::Arguments),
}

pub(crate) fn execute(command: &Command, output: &CommandOutput) -> Result<(), CommandFailure> {
    match command {
        Command::Plan(arguments) => plan::execute(arguments, output),
        Command::Measure(arguments) => measure::execute(arguments, output),
        Command::Sweep(arguments) => sweep::execute(arguments, output),
        Command::Plot(arguments) => plot::execute(arguments, output),
    }
}
