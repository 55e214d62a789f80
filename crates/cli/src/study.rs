//! `fullstroke study`: published studies, run and checked.

mod check;
mod dask;
mod held_out;
mod list;
mod results;
mod run;
mod show;
mod work;

use crate::options::jobs;
use crate::output::{Failure, Output};
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

pub(crate) fn execute(command: &Command, output: &Output) -> Result<(), Failure> {
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

/// Which studies, and where.
#[derive(Clone, Debug, Args)]
pub(crate) struct Selection {
    /// Studies as `study list` names them; the beginning of a name stands for
    /// all that begin so. All studies unless said.
    ids: Vec<String>,

    /// The folder of the studies: `<folder>/<author-year>/<study>.toml`.
    #[arg(long, value_name = "FOLDER", default_value = "studies")]
    studies: PathBuf,

    /// Where results are kept; `results` in the folder of the studies unless
    /// said.
    #[arg(long, value_name = "FOLDER")]
    results: Option<PathBuf>,

    /// Only studies that take seconds.
    #[arg(long)]
    short: bool,
}

/// Traces in place of a study's.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Traces {
    /// Replay this file where the study's axis `trace` has NAME, as whoever has the source's own trace does;
    /// its results are kept apart (may be repeated).
    #[arg(long, value_name = "NAME=FILE", value_parser = named_trace)]
    trace: Vec<(String, PathBuf)>,
}

fn named_trace(text: &str) -> Result<(String, PathBuf), Reason> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && Path::new(file).exists() => {
            let file = std::path::absolute(file).map_err(|error| reason!("{file}: {error}"))?;
            Ok((name.to_owned(), file))
        }
        Some((name, file)) if !name.is_empty() => Err(reason!("there is no file {file}")),
        _ => Err("expected NAME=FILE, such as transactions=prxy_1.csv.gz".into()),
    }
}

/// Studies, the runs that they need, and what there is of them.
struct Loaded {
    studies: Vec<Study>,
    run_list: RunList,
    results: Results,
}

impl Selection {
    /// The chosen studies.
    fn find(&self) -> Result<Vec<Study>, Failure> {
        let mut studies = find(&self.studies, &self.ids).map_err(Failure::input)?;
        studies.retain(|study| study.config.short || !self.short);
        Ok(studies)
    }

    /// Returns the outlines of the chosen studies.
    fn outlines(&self) -> Result<Vec<Outline>, Failure> {
        let mut outlines = outlines(&self.studies, &self.ids).map_err(Failure::input)?;
        outlines.retain(|outline| outline.short || !self.short);
        Ok(outlines)
    }

    /// The chosen studies with other traces.
    fn find_with(&self, traces: &Traces) -> Result<Vec<Study>, Failure> {
        let mut studies = self.find()?;
        for (name, file) in &traces.trace {
            let replaced = studies
                .iter_mut()
                .filter_map(|study| study.replace_trace(name, file).then_some(()));
            if replaced.count() == 0 {
                let mut known: Vec<&str> = studies.iter().flat_map(Study::traces).collect();
                known.sort_unstable();
                known.dedup();
                let known = if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                };
                return Err(Failure::Input(format!(
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

    /// The chosen studies with what there is of them, with keys of their stacks
    /// set. Where there is nothing at all no stack is read: the list is empty.
    fn load(&self, set: &[String], traces: &Traces) -> Result<Loaded, Failure> {
        let (studies, store) = (self.find_with(traces)?, self.store());
        let load = || -> Result<_, StudyError> {
            if store.is_empty()? {
                return Ok((RunList::default(), Results::default()));
            }
            let run_list = RunList::new(&studies, set, jobs(None))?;
            let results = store.read(&run_list.keys())?;
            Ok((run_list, results))
        };
        let (run_list, results) = load().map_err(Failure::input)?;
        Ok(Loaded {
            studies,
            run_list,
            results,
        })
    }
}
