//! `fullstroke study check`: checks the claims of studies.

use super::{LoadedStudies, Selection, Traces};
use crate::output::{CommandFailure, CommandOutput};
use crate::outputs;
use crate::report::Reporting;
use clap::Args;
use fullstroke_measure::table;
use fullstroke_report::{AnswerBody, CommandAnswer};
use fullstroke_study::{
    CheckedClaims, ClaimVerdict, HeldOut, JudgedClaim, Study, StudyRecord, VERSION,
};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};

/// Check the claims of studies against the available results. Status 1 if a claim fails and no
/// variant of the study restores it.
///
/// --seeds and --vary-free test the verdicts with other seeds, and with other values of the choices
/// that the source leaves open, one at a time. The required runs are made first.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) selection: Selection,

    /// As in `study run`: use the results with these keys.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,

    #[command(flatten)]
    pub(super) traces: Traces,

    #[command(flatten)]
    pub(super) reporting: Reporting,

    /// Judge again with this number of other sets of seeds. Each set is as large as the study's.
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub(super) seeds: u32,

    /// Judge again with every other value of each open choice.
    #[arg(long)]
    pub(super) vary_free: bool,

    /// Number of seeds per point for judging again. Default: as in the study.
    #[arg(long, value_name = "NUMBER")]
    pub(super) replications: Option<NonZeroU32>,

    /// Print the number of runs for judging again, and stop.
    #[arg(long)]
    pub(super) count: bool,

    /// Store the verdicts in held-out.json beside the studies. The studies' pages show them.
    #[arg(long, conflicts_with_all = ["set", "trace"])]
    pub(super) record: bool,

    /// Number of runs at a time. Default: number of cores.
    #[arg(long, value_name = "NUMBER")]
    pub(super) jobs: Option<NonZeroUsize>,
}

impl Arguments {
    /// True if verdicts are tested with other seeds or other values.
    pub(super) fn holds_out(&self) -> bool {
        self.seeds > 0 || self.vary_free
    }
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    if arguments.count || arguments.record {
        return Err(CommandFailure::Input(
            "--count and --record need --seeds or --vary-free".into(),
        ));
    }
    let loaded = arguments
        .selection
        .load(&arguments.set, &arguments.traces)?;
    check_targets(&arguments.reporting, &loaded.studies, &arguments.traces)?;
    let checked = check_all(&loaded)?;
    // The page is written even if standard output has no reader any more, so this error is returned
    // last.
    let shown = output.show(&checked, text(&checked));
    write_page(
        &arguments.reporting,
        (&verdict(&checked), &checked),
        None,
        &loaded.studies,
    )
    .and(shown)?;
    let passes = checked
        .iter()
        .flat_map(|study| &study.claims)
        .all(|claim| claim.verdict.passes());
    if passes {
        Ok(())
    } else {
        Err(CommandFailure::Checks)
    }
}

/// Checks the claims of all loaded studies against the available results.
pub(super) fn check_all(loaded: &LoadedStudies) -> Result<Vec<CheckedClaims<'_>>, CommandFailure> {
    let each = loaded.studies.iter().enumerate().map(|(index, study)| {
        let held_out = HeldOut::read(study.folder()).map_err(CommandFailure::input)?;
        Ok(check(index, study, loaded, held_out.of(study)))
    });
    each.collect()
}

/// Refuses a page or a figure that would replace an input file of `studies`.
pub(super) fn check_targets(
    reporting: &Reporting,
    studies: &[Study],
    traces: &Traces,
) -> Result<(), CommandFailure> {
    let mut read = files(studies);
    read.extend(traces.trace.iter().map(|(_, file)| file.clone()));
    outputs::check(reporting.targets(), &read)
}

/// Returns the files that people wrote for the studies: study files and stacks.
fn files(studies: &[Study]) -> Vec<PathBuf> {
    let stack = |study: &Study| Some(study.folder().join(study.config.stack.as_ref()?));
    let mut files: Vec<PathBuf> = studies
        .iter()
        .flat_map(|study| [Some(study.file.clone()), stack(study)])
        .flatten()
        .collect();
    // Several studies of a document share a stack, and the page prints each file once.
    let mut seen = HashSet::new();
    files.retain(|file| seen.insert(file.clone()));
    files
}

/// Writes the page about `checked` with its verdict, if requested.
pub(super) fn write_page(
    reporting: &Reporting,
    (verdict, checked): (&str, &[CheckedClaims<'_>]),
    wall_s: Option<f64>,
    studies: &[Study],
) -> Result<(), CommandFailure> {
    let answer = CommandAnswer {
        found: AnswerBody::Studies {
            verdict: Some(verdict),
            checked,
        },
        version: VERSION,
        wall_s,
    };
    reporting.write(
        &answer,
        &files(studies)
            .iter()
            .map(PathBuf::as_path)
            .collect::<Vec<&Path>>(),
    )
}

/// Checks the claims of one study against the results, and adds the verdicts of `record`.
pub(super) fn check<'a>(
    index: usize,
    study: &'a Study,
    loaded: &LoadedStudies,
    record: Option<&StudyRecord>,
) -> CheckedClaims<'a> {
    CheckedClaims::new(index, study, &loaded.run_list, &loaded.results, record)
}

fn text(checked: &[CheckedClaims<'_>]) -> String {
    let mut text = String::new();
    for study in checked {
        let _ = writeln!(text, "{}\n{}\n", study.study, lines(&study.claims));
        for variant in &study.variants {
            let _ = writeln!(
                text,
                "{}, changed: {}\n{}\n",
                study.study,
                variant.title,
                lines(&variant.claims)
            );
        }
    }
    text + &verdict(checked)
}

/// Returns a sentence with the number of supported claims.
pub(super) fn verdict(checked: &[CheckedClaims<'_>]) -> String {
    let claims = || checked.iter().flat_map(|study| &study.claims);
    let hold = claims().filter(|claim| claim.verdict.passes()).count();
    let not_run = claims()
        .filter(|claim| claim.verdict == ClaimVerdict::NotRun)
        .count();
    let not_run = match not_run {
        0 => String::new(),
        1 => "; 1 was not run yet".to_owned(),
        many => format!("; {many} were not run yet"),
    };
    format!(
        "{hold} of {} claims hold or are restored by a variant{not_run}.",
        claims().count()
    )
}

fn lines(claims: &[JudgedClaim]) -> String {
    let mut table = table(
        ["claim", "published", "obtained", "verdict", "statement"],
        &[0, 1, 2, 3, 4],
    );
    for claim in claims {
        table.add_row([
            &claim.id,
            &claim.published,
            &claim.shown,
            claim.verdict.text(),
            &claim.says,
        ]);
    }
    let mut text = table.trim_fmt();
    for claim in claims {
        if let Some(why) = &claim.why {
            let _ = write!(text, "\n{}: {why}", claim.id);
        }
        for flip in &claim.flips {
            let _ = write!(text, "\n{}: another verdict with {flip}", claim.id);
        }
    }
    text
}
