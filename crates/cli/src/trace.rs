//! `fullstroke trace`: block traces.

mod convert;
mod formats;
mod head;
mod info;
mod remap;

use crate::output::{CommandFailure, CommandOutput};
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Info(info::Arguments),
    Convert(convert::Arguments),
    Head(head::Arguments),
    Formats(formats::Arguments),
    Remap(remap::Arguments),
}

pub(crate) fn execute(command: &Command, output: &CommandOutput) -> Result<(), CommandFailure> {
    match command {
        Command::Info(arguments) => info::execute(arguments, output),
        Command::Convert(arguments) => convert::execute(arguments, output),
        Command::Head(arguments) => head::execute(arguments, output),
        Command::Formats(arguments) => formats::execute(arguments, output),
        Command::Remap(arguments) => remap::execute(arguments, output),
    }
}
