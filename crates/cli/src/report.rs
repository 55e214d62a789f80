//! `--report` and `--plot`: an answer as a page, and its main figure.

use crate::output::{Failure, write_whole};
use crate::outputs::{Kind, Target};
use clap::Args;
use fullstroke_report::{Answer, Source, page, plot};
use std::path::{Path, PathBuf};

/// Where an answer goes beside standard output.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Reporting {
    /// Write the answer as a page, too: one file with charts, which opens without a network
    /// and prints (docs/report.md).
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    /// Draw the answer's main figure, as SVG: of a ranking its bars, with where the time went for mean
    /// response times; of a run its response times by cause; of studies their figures
    /// (docs/report.md).
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

impl Reporting {
    /// Whether a page was asked for.
    pub(crate) fn page_wanted(&self) -> bool {
        self.report.is_some()
    }

    /// Whether a page or a figure was asked for.
    pub(crate) fn wanted(&self) -> bool {
        self.page_wanted() || self.plot.is_some()
    }

    /// The files that it writes.
    pub(crate) fn targets(&self) -> [Option<Target<'_>>; 2] {
        [
            Target::of("--report", &self.report, Kind::Page),
            Target::of("--plot", &self.plot, Kind::Figure),
        ]
    }

    /// Writes the page and the figure of `answer`, the page with the text of the files that it came
    /// from. What cannot be drawn takes no answer away: it is printed before.
    pub(crate) fn write(&self, answer: &Answer<'_>, files: &[&Path]) -> Result<(), Failure> {
        if !self.wanted() {
            return Ok(());
        }
        // The page first: an answer without a figure still makes one.
        if let Some(path) = &self.report {
            let source = Source {
                command: command(),
                files: files.iter().filter_map(|file| named(file)).collect(),
            };
            write_whole(path, page(answer, &source))?;
        }
        if let Some(path) = &self.plot {
            let svg = plot(answer)
                .map_err(|why| Failure::Input(format!("`{}`: {why}", path.display())))?;
            write_whole(path, svg)?;
        }
        Ok(())
    }
}

/// The words of this command line, the program by its name alone.
fn command() -> Vec<String> {
    let words = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned());
    std::iter::once("fullstroke".to_owned())
        .chain(words)
        .collect()
}

/// What has been read since, or is no text, is left out: the page needs it for no number.
fn named(file: &Path) -> Option<(String, String)> {
    Some((
        file.display().to_string(),
        std::fs::read_to_string(file).ok()?,
    ))
}
