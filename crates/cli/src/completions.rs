//! `fullstroke completions`: for shells.

use crate::Cli;
use crate::output::{CommandFailure, CommandOutput};
use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};

/// Print a shell completion script.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name of the shell.
    shell: Shell,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let mut script = Vec::new();
    generate(
        arguments.shell,
        &mut Cli::command(),
        "fullstroke",
        &mut script,
    );
    output.print(&String::from_utf8_lossy(&script))
}
