//! `fullstroke study`: runs and checks published studies.

mod check;
mod dask;
mod held_out;
mod list;
mod results;
mod run;
mod show;
mod work;

use crate::options::jobs;
use crate::output::{CommandFailure, CommandOutput};
use clap::{Args, Subcommand};
use fullstroke_contract::{Reason, reason};
use fullstroke_study::{Outline, Results, RunList, Store, Study, StudyError, find, outlines};
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    List(list::Arguments),
    Show(show::Arguments),
    Run(run::Arguments),
    Check(check::Arguments),
    Results(results::Arguments),
    #[command(hide = true)]
    Work(work::Arguments),
}

pub(crate) fn execute(command: &Command, output: &CommandOutput) -> Result<(), CommandFailure> {
    match command {
        Command::List(arguments) => list::execute(arguments, output),
        Command::Show(arguments) => show::execute(arguments, output),
        Command::Run(arguments) => run::execute(arguments, output),
        Command::Check(arguments) if arguments.holds_out() => held_out::execute(arguments, output),
        Command::Check(arguments) => check::execute(arguments, output),
        Command::Results(arguments) => results::execute(arguments, output),
        Command::Work(arguments) => work::execute(arguments),
    }
}

/// Options that select studies.
#[derive(Clone, Debug, Args)]
pub(crate) struct Selection {
    /// Names of studies from `study list`. The beginning of a name selects all studies with that
    /// beginning. Default: all studies.
    ids: Vec<String>,

    /// Folder of the studies: `<folder>/<author-year>/<study>.toml`.
    #[arg(long, value_name = "FOLDER", default_value = "studies")]
    studies: PathBuf,

    /// Folder for the results. Default: `results` in the folder of the studies.
    #[arg(long, value_name = "FOLDER")]
    results: Option<PathBuf>,

    /// Select only studies that take seconds.
    #[arg(long)]
    short: bool,
}

/// Options that replace traces of a study.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Traces {
    /// Replay this file where the study's axis `trace` has NAME, for users with the source's own
    /// trace. The results are kept apart (may be repeated).
    #[arg(long, value_name = "NAME=FILE", value_parser = named_trace)]
    trace: Vec<(String, PathBuf)>,
}

fn named_trace(text: &str) -> Result<(String, PathBuf), Reason> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && Path::new(file).exists() => {
            let file = std::path::absolute(file).map_err(|error| reason!("{file}: {error}"))?;
            Ok((name.to_owned(), file))
        }
        Some((name, file)) if !name.is_empty() => Err(reason!("no file {file}")),
        _ => Err("expected NAME=FILE, such as transactions=prxy_1.csv.gz".into()),
    }
}

/// Studies with their required runs and the available results.
struct LoadedStudies {
    studies: Vec<Study>,
    run_list: RunList,
    results: Results,
}

impl Selection {
    /// Returns the selected studies.
    fn find(&self) -> Result<Vec<Study>, CommandFailure> {
        let mut studies = find(&self.studies, &self.ids).map_err(CommandFailure::input)?;
        studies.retain(|study| study.config.short || !self.short);
        Ok(studies)
    }

    /// Returns the outlines of the chosen studies.
    fn outlines(&self) -> Result<Vec<Outline>, CommandFailure> {
        let mut outlines = outlines(&self.studies, &self.ids).map_err(CommandFailure::input)?;
        outlines.retain(|outline| outline.short || !self.short);
        Ok(outlines)
    }

    /// Returns the selected studies with replaced traces.
    fn find_with(&self, traces: &Traces) -> Result<Vec<Study>, CommandFailure> {
        let mut studies = self.find()?;
        for (name, file) in &traces.trace {
            let replaced = studies
                .iter_mut()
                .filter_map(|study| study.replace_trace(name, file).then_some(()));
            if replaced.count() == 0 {
                let mut known: Vec<&str> = studies.iter().flat_map(Study::traces).collect();
                // Sorted, so that `dedup` finds the traces of several studies.
                known.sort_unstable();
                known.dedup();
                let known = if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                };
                return Err(CommandFailure::Input(format!(
                    "--trace {name}: no chosen study has a trace of that name; found {known}"
                )));
            }
        }
        Ok(studies)
    }

    fn store(&self) -> Store {
        Store::new(
            &self
                .results
                .clone()
                .unwrap_or_else(|| self.studies.join("results")),
        )
    }

    /// Loads the selected studies and their results, with `set` applied to the stacks. If the store
    /// is empty, no stack is read and the list of runs is empty.
    fn load(&self, set: &[String], traces: &Traces) -> Result<LoadedStudies, CommandFailure> {
        let (studies, store) = (self.find_with(traces)?, self.store());
        let load = || -> Result<_, StudyError> {
            // Without results the list of runs is not built, because the list loads every stack.
            if store.is_empty()? {
                return Ok((RunList::default(), Results::default()));
            }
            let run_list = RunList::new(&studies, set, jobs(None))?;
            let results = store.read(&run_list.keys())?;
            Ok((run_list, results))
        };
        let (run_list, results) = load().map_err(CommandFailure::input)?;
        Ok(LoadedStudies {
            studies,
            run_list,
            results,
        })
    }
}
