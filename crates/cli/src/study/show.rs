//! `fullstroke study show`: shows question, axes and claims of studies.

use super::Selection;
use crate::output::{CommandFailure, CommandOutput};
use clap::Args;
use fullstroke_study::{Axis, Study, StudyChoice, StudyConfig};
use serde::Serialize;
use std::fmt;

/// Show the questions, the axes and the claims of studies.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: Selection,
}

/// Output of one study.
#[derive(Debug, Serialize)]
struct StudyOutput<'a> {
    id: &'a str,
    file: String,
    digest: &'a str,
    points: Vec<String>,
    #[serde(flatten)]
    config: &'a StudyConfig,
    #[serde(skip)]
    axes: &'a [Axis],
    #[serde(skip)]
    choices: &'a [StudyChoice],
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let studies = arguments.selection.find()?;
    let shown: Vec<StudyOutput<'_>> = studies.iter().map(StudyOutput::new).collect();
    let text: Vec<String> = shown.iter().map(ToString::to_string).collect();
    output.show(&shown, text.join("\n\n"))
}

impl<'a> StudyOutput<'a> {
    fn new(study: &'a Study) -> StudyOutput<'a> {
        StudyOutput {
            id: &study.id,
            file: study.file.display().to_string(),
            digest: &study.digest,
            points: study
                .matrix
                .points()
                .iter()
                .map(|point| study.matrix.describe(point))
                .collect(),
            config: &study.config,
            axes: &study.matrix.axes,
            choices: &study.choices,
        }
    }
}

impl fmt::Display for StudyOutput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = self.config;
        writeln!(f, "{}: {}", self.id, config.title)?;
        writeln!(f, "  {}", config.question)?;
        writeln!(f, "  source: {}", config.source)?;
        let seeds = if config.replications == 1 {
            "seed"
        } else {
            "seeds"
        };
        write!(
            f,
            "  {} points, {} {seeds} each",
            self.points.len(),
            config.replications
        )?;
        for axis in self.axes {
            let names: Vec<&str> = axis
                .values
                .iter()
                .map(|value| value.name.as_str())
                .collect();
            write!(f, "\n  {}: {}", axis.name, names.join(", "))?;
        }
        for claim in &config.claims {
            write!(f, "\n  {}: {}", claim.id, claim.says)?;
            if let (Some(quote), Some(at)) = (&claim.quote, &claim.at) {
                write!(f, "\n      “{quote}” ({at})")?;
            }
            write!(f, "\n      {}", claim.obtained)?;
        }
        for variant in &config.variants {
            write!(f, "\n  changed: {}", variant.title)?;
        }
        for choice in self.choices {
            let values: Vec<&str> = choice
                .values
                .iter()
                .map(|value| value.name.as_str())
                .collect();
            let (choice, values) = (&choice.config, values.join(", "));
            write!(
                f,
                "\n  free: {}: {}; else {values}",
                choice.name, choice.taken
            )?;
        }
        for sentence in &config.untestable {
            write!(
                f,
                "\n  not testable: “{}” ({}): {}",
                sentence.quote, sentence.at, sentence.why
            )?;
        }
        Ok(())
    }
}
