//! The commands of a page, and their answers.

use crate::changes::{Changes, Progress};
use crate::error::CommandError;
use crate::question::{Question, ask, outcome, stack_file, step, take_outcome, watch};
use crate::recognise::recognise;
use crate::session::Session;
use fullstroke_advise::{AdviceRequest, Condition, DevicePrices, StackDevices, WishFile, advise};
use fullstroke_contract::registry::read_value;
use fullstroke_lab::{
    ComparedStack, DEFAULT_BUDGET, Ranking, Recipe, Vary, recipes, run, sample_long_work,
    sample_long_work_of_each,
};
use fullstroke_measure::{Metric, Stop};
use fullstroke_stack::{Overrides, READY_LOADS, ReadyLoad, facts};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Number of runs at a time. A module has one thread.
const JOBS: usize = 1;

impl Session {
    /// Carries out a command in JSON. Returns `{"answer": ...}`, or `{"error": "a sentence"}`.
    /// `progress` is called during runs with the number of finished requests and, if known, the
    /// total number.
    pub fn call(&mut self, command: &str, progress: &dyn Fn(u64, Option<u64>)) -> String {
        let answer = Command::read(command).and_then(|command| carry_out(self, command, progress));
        let whole: Value = match answer {
            Ok(answer) => json!({ "answer": answer }),
            Err(error) => json!({ "error": error.to_string() }),
        };
        whole.to_string()
    }
}

/// A command.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Command {
    /// Returns the version.
    Version {},
    /// Returns the drives of the library.
    Drives {},
    /// Returns the ready loads.
    Uses {},
    /// Returns the kind of a file, and the facts in the file.
    Recognise { file: PathBuf },
    /// Removes a file.
    Remove { file: PathBuf },
    /// Runs a stack: `fullstroke run --json`.
    Run {
        stack: PathBuf,
        #[serde(default)]
        changes: Changes,
    },
    /// Compares stacks: `fullstroke compare --json`.
    Compare(Comparison),
    /// Answers a wish file: `fullstroke advise --json`.
    Advise {
        wishes: PathBuf,
        #[serde(default)]
        changes: Changes,
    },
    /// Begins an advice that becomes surer step by step.
    Ask(Box<Question>),
    /// Carries out the next step of the advice.
    Step {},
    /// Returns the outcome of a layout in a condition. The advice does not change: another worker may
    /// have the advice.
    Outcome { name: String, condition: Condition },
    /// Returns the events of a layout over time, for drawings.
    Watch { name: String, condition: Condition },
    /// Takes an outcome of another worker.
    TakeOutcome {
        name: String,
        condition: Condition,
        /// The field `outcome` of the other worker's answer, unchanged.
        outcome: Value,
    },
    /// Returns the stack file of a layout of the advice.
    StackFile { name: String },
}

impl Command {
    /// Reads `{"command": NAME, ...}`. The other keys belong to the command.
    pub(crate) fn read(text: &str) -> Result<Command, CommandError> {
        let mut keys: Map<String, Value> =
            serde_json::from_str(text).map_err(CommandError::Command)?;
        let name = match keys.remove("command") {
            Some(Value::String(name)) => name,
            Some(other) => {
                let why = format!("command: found {other}; expected a name");
                return Err(CommandError::Other(why));
            }
            None => return Err(CommandError::other("the key `command` is missing")),
        };
        read_value(json!({ name: keys })).map_err(|(_, error)| CommandError::Command(error))
    }
}

/// Stacks to compare.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Comparison {
    stacks: Vec<PathBuf>,
    /// Metric of the ranking. Default: the mean response time, or the duration of programs.
    by: Option<String>,
    /// `key=value,value` pairs; all combinations run.
    #[serde(default)]
    vary: Vec<String>,
    #[serde(default)]
    changes: Changes,
}

/// Carries out a command.
pub(crate) fn carry_out(
    session: &mut Session,
    command: Command,
    progress: Progress<'_>,
) -> Result<Value, CommandError> {
    match command {
        Command::Version {} => Ok(json!({ "version": env!("CARGO_PKG_VERSION") })),
        Command::Drives {} => Ok(json!(facts::library())),
        Command::Uses {} => Ok(READY_LOADS.iter().map(ready_load).collect()),
        Command::Recognise { file } => recognise(session.files(), &file),
        Command::Remove { file } => {
            session.remove(&file);
            Ok(Value::Null)
        }
        Command::Run { stack, changes } => {
            let overrides = changes.overrides(session);
            run_one(&stack, &overrides, progress)
        }
        Command::Compare(comparison) => compare(session, comparison, progress),
        Command::Advise { wishes, changes } => {
            let overrides = changes.overrides(session);
            advise_file(session, &wishes, overrides)
        }
        Command::Ask(question) => ask(session, *question),
        Command::Step {} => step(session, progress),
        Command::Outcome { name, condition } => outcome(session, &name, condition, progress),
        Command::Watch { name, condition } => watch(session, &name, condition, progress),
        Command::TakeOutcome {
            name,
            condition,
            outcome,
        } => take_outcome(session, &name, condition, outcome),
        Command::StackFile { name } => stack_file(session, &name),
    }
}

/// Returns name, use, description and text of a ready load.
fn ready_load(load: &ReadyLoad) -> Value {
    json!({ "name": load.name, "what": load.what, "about": load.about(), "text": load.text })
}

fn run_one(
    stack: &Path,
    overrides: &Overrides,
    progress: Progress<'_>,
) -> Result<Value, CommandError> {
    let recipes = recipes(&[stack.to_owned()], overrides, &[]);
    let candidate = recipes[0].candidate()?;
    let mut ran = run(&candidate, None, progress)?;
    // A report without a measured request has no values, and the page would draw empty bars.
    ran.check_measured()?;
    sample_long_work(&recipes[0], &mut ran, JOBS, &Stop::default())?;
    Ok(json!(ran.measured.report))
}

fn compare(
    session: &Session,
    comparison: Comparison,
    progress: Progress<'_>,
) -> Result<Value, CommandError> {
    if comparison.stacks.is_empty() {
        return Err(CommandError::other(
            "stacks: found none; expected at least one",
        ));
    }
    let overrides = comparison.changes.overrides(session);
    let vary = comparison.vary.iter().map(|text| text.parse::<Vary>());
    let vary = vary.collect::<Result<Vec<_>, _>>()?;
    let by = comparison.by.as_deref().map(Metric::parse);
    let by = by.transpose().map_err(CommandError::other)?;
    let recipes = recipes(&comparison.stacks, &overrides, &vary);
    // All candidates are built before the first run, so that a wrong stack is an error at once.
    let candidates = recipes
        .iter()
        .map(Recipe::candidate)
        .collect::<Result<Vec<ComparedStack>, _>>()?;
    let mut ran = Vec::new();
    for candidate in &candidates {
        ran.push(run(candidate, None, progress)?);
    }
    sample_long_work_of_each(&recipes, &mut ran, by, JOBS, &Stop::default())?;
    let ranking = Ranking::by(&ran, 1, by)?;
    let mut answer = json!(ranking);
    // The command line has the key for --degraded and --rebuilding. The page runs each stack
    // healthy, so the list is empty.
    answer["not_redundant"] = json!([]);
    // As on the command line, stacks without flash devices and prices have no such key.
    let devices = StackDevices::of_each(&recipes, &ran, 1, DevicePrices::default());
    if !devices.is_empty() {
        answer["devices"] = json!(devices);
    }
    answer["wall_s"] = Value::Null;
    answer["peak_rss_mb"] = Value::Null;
    answer["version"] = json!(env!("CARGO_PKG_VERSION"));
    Ok(answer)
}

fn advise_file(
    session: &Session,
    path: &Path,
    mut overrides: Overrides,
) -> Result<Value, CommandError> {
    let missing = |what: &str| {
        CommandError::Other(format!(
            "{}: {what} is missing under [drives]",
            path.display()
        ))
    };
    let file = WishFile::read_in(session.files(), path)?.ok_or_else(|| {
        CommandError::Other(format!(
            "{}: no wish file: the key stack is missing",
            path.display()
        ))
    })?;
    // A wish file with a mix of loads replaces the workloads of its stack.
    overrides.workloads = file.load;
    let drive = overrides.drive.clone().or(file.drives.model);
    let counts = file.drives.count.ok_or_else(|| missing("count"))?;
    let request = AdviceRequest {
        stack: file.stack,
        overrides,
        drive: drive.ok_or_else(|| missing("model"))?,
        counts: counts.each(),
        drive_price: file.drives.price,
        controller_price: file.drives.controller_price,
        flash_price: file.drives.flash_price,
        wishes: file.wishes,
        choices: file.choices,
        assumptions: file.assumptions,
        jobs: JOBS,
        timeline: false,
        costs: file.costs,
        // As on the command line, so that both give the same answer to the bit.
        budget: file.budget.or(Some(DEFAULT_BUDGET)),
    };
    let advice = advise(&request, &|_| {})?;
    let mut answer = json!({ "title": file.title });
    if let (Value::Object(answer), Value::Object(advice)) = (&mut answer, json!(advice)) {
        answer.extend(advice);
    }
    answer["wall_s"] = Value::Null;
    answer["peak_rss_mb"] = Value::Null;
    answer["version"] = json!(env!("CARGO_PKG_VERSION"));
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_of_a_rebuild_come_from_windows_as_on_the_command_line() {
        let mut session = Session::default();
        let stack = "seed = 1\n[workload]\nkind = \"synthetic\"\nrequests = 300\n\
            arrivals = { process = \"poisson\", rate_per_s = 20 }\n[volume]\nlayout = \"raid5\"\n\
            drive = \"seagate-cheetah-9lp\"\ndrives = 4\nrebuild = 0\n";
        session.put("stack.toml", stack.as_bytes());
        for command in [
            json!({ "command": "run", "stack": "stack.toml" }),
            json!({ "command": "compare", "stacks": ["stack.toml"] }),
        ] {
            let answer = session.call(&command.to_string(), &|_, _| {});
            let answer: Value = serde_json::from_str(&answer).unwrap();
            let report = match command["command"] == "run" {
                true => &answer["answer"],
                false => &answer["answer"]["candidates"][0]["report"],
            };
            let windows = report["rebuild"]["windows"].as_u64();
            assert!(windows >= Some(12), "{command}: {}", report["rebuild"]);
        }
    }
}
