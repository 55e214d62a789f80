//! `fullstroke study results`: writes pages of results, and finds the best value of an axis.

use super::{LoadedStudies, Selection, Traces};
use crate::output::{CommandFailure, CommandOutput};
use clap::Args;
use fullstroke_measure::{Metric, number, table};
use fullstroke_report::plots;
use fullstroke_study::{Best, Figure, Study, Variation, best, outdated_parts, write_pages};
use serde::Serialize;
use std::path::PathBuf;

/// Write RESULTS.md and the figures of studies from the available results, check that they are up
/// to date, or find the best value of an axis.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: Selection,

    /// Write RESULTS.md and figures beside the study files.
    #[arg(long)]
    write: bool,

    /// Check that RESULTS.md agrees with the studies and their results. Status 1 if not.
    #[arg(long, conflicts_with = "write")]
    check: bool,

    /// Find the axis value with the best metric, for each combination of the other axes.
    #[arg(long, value_name = "METRIC", value_parser = Metric::parse, conflicts_with_all = ["write", "check"])]
    best: Option<Metric>,

    /// Axis of --best. Default: the only axis.
    #[arg(long, value_name = "AXIS", requires = "best")]
    over: Option<String>,

    /// As in `study run`: use the results with these keys.
    #[arg(long, value_name = "KEY=VALUE", requires = "best", conflicts_with_all = ["write", "check"])]
    set: Vec<String>,
}

/// Output of `study results --json` without --best.
#[derive(Debug, Serialize)]
struct ResultsOutput {
    written: Vec<PathBuf>,
    drifted: Vec<String>,
    /// Number of runs of the selected studies; 0 without any results.
    runs: usize,
    runs_missing: usize,
}

/// Output of `study results --best --json` per study.
#[derive(Debug, Serialize)]
struct BestResults<'a> {
    study: &'a str,
    by: String,
    best: Vec<Best>,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let loaded = arguments
        .selection
        .load(&arguments.set, &Traces::default())?;
    match arguments.best {
        Some(metric) => show_best(&loaded, metric, arguments.over.as_deref(), output),
        None => pages(&loaded, arguments, output),
    }
}

fn pages(
    loaded: &LoadedStudies,
    arguments: &Arguments,
    output: &CommandOutput,
) -> Result<(), CommandFailure> {
    let LoadedStudies {
        studies,
        run_list,
        results,
        ..
    } = loaded;
    let (runs, missing) = (run_list.tasks.len(), run_list.missing(results).len());
    // An empty store gives an empty list of runs, so that no run is missing either. A study without
    // a stack needs none.
    let nothing = runs == 0 && studies.iter().any(|study| study.config.stack.is_some());
    // A page with gaps would look like a finding, so all runs must be there.
    if arguments.write && (nothing || missing > 0) {
        let lacking = if nothing {
            "no run has".to_owned()
        } else {
            format!("{missing} of {runs} runs have no")
        };
        let message =
            format!("{lacking} results here, and a page needs all; `fullstroke study run` first");
        return Err(CommandFailure::Input(message));
    }
    let written = match arguments.write {
        true => write_pages(studies, run_list, results, &draw).map_err(CommandFailure::input)?,
        false => Vec::new(),
    };
    // After the pages are written, so that --write reports only the parts that the new pages still
    // lack.
    let drifted =
        outdated_parts(studies, run_list, results, &draw).map_err(CommandFailure::input)?;
    let pages = ResultsOutput {
        written,
        drifted,
        runs_missing: missing,
        runs,
    };
    let mut lines: Vec<String> = pages
        .written
        .iter()
        .map(|path| format!("written: {}", path.display()))
        .collect();
    lines.extend(pages.drifted.iter().cloned());
    lines.push(match (pages.runs, pages.runs_missing) {
        (0, _) => "no runs have results here".to_owned(),
        (runs, 0) => format!("{runs} runs, all done"),
        (runs, missing) => {
            format!("{missing} of {runs} runs have no results here; `fullstroke study run`")
        }
    });
    // Printed before the check, because the lines name the parts that differ.
    output.show(&pages, lines.join("\n"))?;
    if arguments.check && !pages.drifted.is_empty() {
        Err(CommandFailure::Checks)
    } else {
        Ok(())
    }
}

/// Returns a figure as SVG.
fn draw(figure: &Figure) -> Result<String, String> {
    plots::figure(figure).map_err(|error| error.to_string())
}

fn show_best(
    loaded: &LoadedStudies,
    metric: Metric,
    over: Option<&str>,
    output: &CommandOutput,
) -> Result<(), CommandFailure> {
    let mut found = Vec::new();
    for (index, study) in loaded.studies.iter().enumerate() {
        found.push(of_study(index, study, loaded, metric, over)?);
    }
    let text: Vec<String> = found.iter().map(text).collect();
    output.show(&found, text.join("\n\n"))
}

fn of_study<'a>(
    index: usize,
    study: &'a Study,
    loaded: &LoadedStudies,
    metric: Metric,
    over: Option<&str>,
) -> Result<BestResults<'a>, CommandFailure> {
    let results = loaded
        .run_list
        .table(index, study, Variation::Base, &loaded.results);
    let best = best(study, &results, metric, over).map_err(CommandFailure::input)?;
    Ok(BestResults {
        study: &study.id,
        by: metric.name(),
        best,
    })
}

fn text(found: &BestResults<'_>) -> String {
    if found.best.is_empty() {
        return format!(
            "{}: no results to compare; run `fullstroke study run`",
            found.study
        );
    }
    let mut table = table(
        [
            "at",
            "best",
            &found.by,
            "± 95 %",
            "next",
            "behind by",
            "± 95 %",
            "",
        ],
        &[0, 1, 4, 7],
    );
    let width = |width: Option<f64>| width.map_or_else(|| "-".to_owned(), number);
    for best in &found.best {
        let mut row = vec![
            best.others.clone(),
            best.best.clone(),
            number(best.value),
            width(best.ci_half_width),
        ];
        match &best.runner_up {
            Some(next) => row.extend([
                next.name.clone(),
                number(next.difference),
                width(next.ci_half_width),
                match next.significant {
                    Some(true) => String::new(),
                    Some(false) => "may be chance".to_owned(),
                    None => "no interval".to_owned(),
                },
            ]),
            // With a single value of the axis nothing comes second.
            None => row.extend(["-".to_owned(), String::new(), String::new(), String::new()]),
        }
        table.add_row(row);
    }
    format!("{}\n{}", found.study, table.trim_fmt())
}
