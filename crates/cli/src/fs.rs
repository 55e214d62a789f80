//! `fullstroke fs`: file systems.

mod align;
mod draw;
mod show;

use crate::output::{Failure, Output};
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Align(Box<align::Arguments>),
    Show(Box<show::Arguments>),
}

pub(crate) fn execute(command: &Command, output: &Output) -> Result<(), Failure> {
    match command {
        Command::Align(arguments) => align::execute(arguments, output),
        Command::Show(arguments) => show::execute(arguments, output),
    }
}
