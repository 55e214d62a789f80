//! `fullstroke drive`: descriptions of drives.

mod check;
mod import;
mod list;
mod new;
mod plot;
mod show;

use crate::output::{CommandFailure, CommandOutput};
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    List(list::Arguments),
    Show(show::Arguments),
    Check(check::Arguments),
    Plot(plot::Arguments),
    Import(import::Arguments),
    New(new::Arguments),
}

pub(crate) fn execute(command: &Command, output: &CommandOutput) -> Result<(), CommandFailure> {
    match command {
        Command::List(arguments) => list::execute(arguments, output),
        Command::Show(arguments) => show::execute(arguments, output),
        Command::Check(arguments) => check::execute(arguments, output),
        Command::Plot(arguments) => plot::execute(arguments, output),
        Command::Import(arguments) => import::execute(arguments, output),
        Command::New(arguments) => new::execute(arguments, output),
    }
}
