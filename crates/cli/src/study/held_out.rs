//! `fullstroke study check --seeds N --vary-free`: tests which verdicts survive.

use super::LoadedStudies;
use super::check::{Arguments, check, check_targets, verdict, write_page};
use super::run::{RunExecutor, run_missing};
use crate::options::jobs;
use crate::output::{CommandFailure, CommandOutput};
use fullstroke_measure::table;
use fullstroke_study::{
    CheckedClaims, Extent, HeldOut, JudgedClaim, RunList, Study, StudyRecord, Variation,
};
use serde::Serialize;
use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// Output of `study check --seeds N --vary-free --json`.
#[derive(Debug, Serialize)]
struct HeldOutReport<'a> {
    runs: usize,
    runs_done_before: usize,
    studies: Vec<HeldStudy<'a>>,
    written: Vec<PathBuf>,
    /// Verdict on the page. `None` if no page or figure was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checked: Option<Vec<CheckedClaims<'a>>>,
}

/// Claims of one study, each with the changes that flip its verdict.
#[derive(Debug, Serialize)]
struct HeldStudy<'a> {
    study: &'a str,
    tried: Vec<String>,
    claims: Vec<JudgedClaim>,
}

/// Output of `--count --json`.
#[derive(Debug, Serialize)]
struct CountOutput {
    runs: usize,
    runs_missing: usize,
}

pub(super) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let extent = Extent {
        seeds: arguments.seeds,
        vary_free: arguments.vary_free,
        replications: arguments.replications.map(NonZeroU32::get),
    };
    let (studies, store) = (
        arguments.selection.find_with(&arguments.traces)?,
        arguments.selection.store(),
    );
    // Before the runs, which may take days.
    check_targets(&arguments.reporting, &studies, &arguments.traces)?;
    let jobs = jobs(arguments.jobs);
    let run_list = RunList::held_out(&studies, &extent, &arguments.set, jobs)
        .map_err(CommandFailure::input)?;
    let results = store
        .read(&run_list.keys())
        .map_err(CommandFailure::input)?;
    let (runs, missing) = (run_list.tasks.len(), run_list.missing(&results).len());
    let cost = format!("{missing} of {runs} runs are to be done, {jobs} at a time");
    if arguments.count {
        return output.show(
            &CountOutput {
                runs,
                runs_missing: missing,
            },
            cost,
        );
    }
    if !output.json() {
        // On standard error, because a script reads the verdicts from standard output.
        eprintln!("{cost}");
    }
    let done = run_missing(&run_list, &store, RunExecutor::Threads(jobs), output)?;
    // Read again, because the runs that were missing are in the store only now.
    let results = store
        .read(&run_list.keys())
        .map_err(CommandFailure::input)?;
    let loaded = LoadedStudies {
        studies,
        run_list,
        results,
    };
    let studies = &loaded.studies;
    let records = records(&loaded, &extent)?;
    let each = || records.iter().enumerate();
    let checked = || {
        each()
            .map(|(index, (study, record))| check(index, study, &loaded, Some(record)))
            .collect()
    };
    let checked: Option<Vec<CheckedClaims<'_>>> = arguments.reporting.wanted().then(checked);
    let held = each().map(|(index, (study, record))| judge(index, study, record, &loaded));
    let held = held.collect();
    let written = match arguments.record {
        true => HeldOut::keep(records).map_err(CommandFailure::input)?,
        false => Vec::new(),
    };
    let verdict = checked.as_deref().map(verdict);
    let held = HeldOutReport {
        runs: done,
        runs_done_before: runs - done,
        studies: held,
        written,
        verdict,
        checked,
    };
    let shown = output.show(&held, text(&held, studies));
    let Some((verdict, checked)) = held.verdict.as_deref().zip(held.checked.as_deref()) else {
        return shown;
    };
    write_page(&arguments.reporting, (verdict, checked), None, studies).and(shown)
}

/// Returns each study with the record of its tests.
fn records<'a>(
    loaded: &'a LoadedStudies,
    extent: &Extent,
) -> Result<Vec<(&'a Study, StudyRecord)>, CommandFailure> {
    let studies = loaded.studies.iter().enumerate();
    let records = studies.map(|(index, study)| {
        let record = StudyRecord::new(index, study, extent, &loaded.run_list, &loaded.results);
        let message = || format!("{}: a claim looks at points that were not run", study.id);
        let record = record.ok_or_else(|| CommandFailure::Input(message()))?;
        Ok((study, record))
    });
    records.collect()
}

/// Judges the claims of a study with its record.
fn judge<'a>(
    index: usize,
    study: &'a Study,
    record: &StudyRecord,
    loaded: &LoadedStudies,
) -> HeldStudy<'a> {
    let table = |variation: Variation| {
        let run_list = &loaded.run_list;
        run_list.table(index, study, variation, &loaded.results)
    };
    let claims = study.claims.iter();
    let claims = claims.map(|claim| claim.judge(study, &table, Some(record)));
    HeldStudy {
        study: &study.id,
        tried: record.tried.clone(),
        claims: claims.collect(),
    }
}

fn text(held: &HeldOutReport<'_>, studies: &[Study]) -> String {
    let mut text = String::new();
    for study in &held.studies {
        let _ = writeln!(text, "{}: {}", study.study, study.tried.join("; "));
        let mut table = table(
            [
                "claim",
                "obtained",
                "verdict",
                "another verdict with",
                "undecided with",
            ],
            &[0, 1, 2, 3, 4],
        );
        for claim in &study.claims {
            let flips = claim.flips.join("; ");
            let undecided = claim.undecided_with.join("; ");
            let verdict = claim.verdict.text();
            table.add_row([&claim.id, &claim.shown, verdict, &flips, &undecided]);
        }
        let _ = writeln!(text, "{}\n", table.trim_fmt());
    }
    let claims = || held.studies.iter().flat_map(|study| &study.claims);
    let survive = claims().filter(|claim| claim.flips.is_empty()).count();
    let _ = write!(
        text,
        "{survive} of {} verdicts of {} studies survive.",
        claims().count(),
        studies.len()
    );
    for file in &held.written {
        let _ = write!(text, "\nwritten: {}", file.display());
    }
    text
}
