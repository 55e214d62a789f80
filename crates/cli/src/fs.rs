//! `fullstroke fs`: file systems.

mod draw;
mod show;

use crate::output::{Failure, Output};
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Show(Box<show::Arguments>),
}

pub(crate) fn execute(command: &Command, output: &Output) -> Result<(), Failure> {
    match command {
        Command::Show(arguments) => show::execute(arguments, output),
    }
}
