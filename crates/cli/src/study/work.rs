//! `fullstroke study work`: runs tasks of studies for a coordinator.

use crate::output::CommandFailure;
use clap::Args;
use fullstroke_study::{Digests, RunNumber, Task, VERSION};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead as _, Write as _};

/// Run tasks from standard input, one line of JSON each. `study run --dask` starts this command.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Build of the caller. Another build is refused, because its results may differ.
    #[arg(long, value_name = "VERSION")]
    build: String,
}

/// Outcome of a run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum StudyRunOutcome {
    Kept(Vec<RunNumber>),
    Failed(String),
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CommandFailure> {
    if arguments.build != VERSION {
        let message = format!(
            "this is build {VERSION}; expected {}, the build of the caller",
            arguments.build
        );
        return Err(CommandFailure::Input(message));
    }
    let known = Digests::default();
    let mut out = io::stdout().lock();
    for (index, line) in io::stdin().lock().lines().enumerate() {
        let task = line.map_err(CommandFailure::input).and_then(|line| {
            let task: Result<Task, _> = serde_json::from_str(&line);
            task.map_err(|error| {
                CommandFailure::Input(format!("standard input, line {}: {error}", index + 1))
            })
        })?;
        let outcome = match task.run_elsewhere(&known) {
            Ok(kept) => StudyRunOutcome::Kept(kept),
            Err(error) => StudyRunOutcome::Failed(error.to_string()),
        };
        let line = serde_json::to_string(&outcome).map_err(CommandFailure::input)?;
        // A coordinator that has gone needs no result, so this is no error.
        writeln!(out, "{line}").map_err(|_| CommandFailure::NoReader)?;
    }
    Ok(())
}
