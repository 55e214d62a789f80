//! `--report` and `--plot`: write an answer as a page and draw its main figure.

use crate::output::{CommandFailure, write_whole};
use crate::outputs::{OutputKind, Target};
use clap::Args;
use fullstroke_report::{AnswerSource, CommandAnswer, page, plot};
use std::path::{Path, PathBuf};

/// Options of pages and figures.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Reporting {
    /// Write the answer as one HTML page with charts, which works without a network and prints
    /// (docs/report.md).
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    /// Draw the main figure of the answer as SVG: the bars of a ranking (with the breakdown for
    /// mean response times), the response times of a run by cause, or the figures of studies
    /// (docs/report.md).
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

impl Reporting {
    /// True if the user asked for a page.
    pub(crate) fn page_wanted(&self) -> bool {
        self.report.is_some()
    }

    /// True if the user asked for a page or a figure.
    pub(crate) fn wanted(&self) -> bool {
        self.page_wanted() || self.plot.is_some()
    }

    /// Returns the files to write.
    pub(crate) fn targets(&self) -> [Option<Target<'_>>; 2] {
        [
            Target::of("--report", &self.report, OutputKind::Page),
            Target::of("--plot", &self.plot, OutputKind::Figure),
        ]
    }

    /// Writes the page and the figure of `answer`. The page includes the text of the input files. A
    /// failed drawing does not lose the answer, because the answer is already printed.
    pub(crate) fn write(
        &self,
        answer: &CommandAnswer<'_>,
        files: &[&Path],
    ) -> Result<(), CommandFailure> {
        if !self.wanted() {
            return Ok(());
        }
        // The page comes first, because an answer without a figure still has a page.
        if let Some(path) = &self.report {
            let source = AnswerSource {
                command: command(),
                files: files.iter().filter_map(|file| named(file)).collect(),
            };
            write_whole(path, page(answer, &source))?;
        }
        if let Some(path) = &self.plot {
            let svg = plot(answer)
                .map_err(|why| CommandFailure::Input(format!("`{}`: {why}", path.display())))?;
            write_whole(path, svg)?;
        }
        Ok(())
    }
}

/// Returns the words of this command line, with the program's bare name.
fn command() -> Vec<String> {
    let words = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned());
    std::iter::once("fullstroke".to_owned())
        .chain(words)
        .collect()
}

/// Returns name and text of an input file. A file that is gone or no text is left out, because the
/// page takes no number from it.
fn named(file: &Path) -> Option<(String, String)> {
    Some((
        file.display().to_string(),
        std::fs::read_to_string(file).ok()?,
    ))
}
