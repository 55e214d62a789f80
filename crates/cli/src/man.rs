//! `fullstroke man`: manual pages.

use crate::Cli;
use crate::output::{CommandFailure, CommandOutput};
use clap::{Args, CommandFactory as _};
use std::path::PathBuf;

/// Print the manual page, or write a page per subcommand into a folder.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Folder for the pages. It is created if missing.
    folder: Option<PathBuf>,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let command = Cli::command();
    let Some(folder) = &arguments.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command)
            .render(&mut page)
            .map_err(CommandFailure::input)?;
        return output.print(&String::from_utf8_lossy(&page));
    };
    // `make install` names a folder that a new prefix does not have yet.
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command, folder))
        .map_err(|error| {
            CommandFailure::Input(format!(
                "cannot write manual pages to `{}`: {error}",
                folder.display()
            ))
        })
}
