//! `fullstroke stack`: stack files.

mod check;
mod schema;

use crate::output::{Failure, Output};
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(Box<check::Arguments>),
    Schema(schema::Arguments),
}

pub(crate) fn execute(command: &Command, output: &Output) -> Result<(), Failure> {
    match command {
        Command::Check(arguments) => check::execute(arguments, output),
        Command::Schema(arguments) => schema::execute(arguments, output),
    }
}
