//! `fullstroke stack`: stack files.

mod check;
mod schema;

use crate::output::{CommandFailure, CommandOutput};
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(Box<check::Arguments>),
    Schema(schema::Arguments),
}

pub(crate) fn execute(command: &Command, output: &CommandOutput) -> Result<(), CommandFailure> {
    match command {
        Command::Check(arguments) => check::execute(arguments, output),
        Command::Schema(arguments) => schema::execute(arguments, output),
    }
}
