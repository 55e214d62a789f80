//! `fullstroke fs`: file systems.

mod align;
mod draw;
mod show;

use crate::output::{CommandFailure, CommandOutput};
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Align(Box<align::Arguments>),
    Show(Box<show::Arguments>),
}

pub(crate) fn execute(command: &Command, output: &CommandOutput) -> Result<(), CommandFailure> {
    match command {
        Command::Align(arguments) => align::execute(arguments, output),
        Command::Show(arguments) => show::execute(arguments, output),
    }
}
