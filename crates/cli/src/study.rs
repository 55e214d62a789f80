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
use fullstroke_study::{Results, RunList, Store, Study, StudyError, find};
use std::path::PathBuf;

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

    fn store(&self) -> Store {
        Store::new(&self.results.clone().unwrap_or_else(|| self.studies.join("results")))
    }

    /// The chosen studies with what there is of them, with keys of their stacks
    /// set. Where there is nothing at all no stack is read: the list is empty.
    fn load(&self, set: &[String]) -> Result<Loaded, Failure> {
        let (studies, store) = (self.find()?, self.store());
        let load = || -> Result<_, StudyError> {
            if store.is_empty()? {
                return Ok((RunList::default(), Results::default()));
            }
            let run_list = RunList::new(&studies, set, jobs(None))?;
            let results = store.read(&run_list.keys())?;
            Ok((run_list, results))
        };
        let (run_list, results) = load().map_err(Failure::input)?;
        Ok(Loaded { studies, run_list, results })
    }
}
