//! `--perfetto`: writes a window of a run for ui.perfetto.dev.

use crate::output::{CommandFailure, print_error, write_whole};
use crate::outputs::{OutputKind, Target};
use clap::Args;
use fullstroke_contract::{Reason, reason};
use fullstroke_lab::RunResult;
use fullstroke_measure::{PerfettoFile, PerfettoWindow};
use fullstroke_units::{Duration, Time};
use std::path::PathBuf;

/// Options of the trace for Perfetto.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Perfetto {
    /// Write requests, drive activity and queues as a trace for ui.perfetto.dev (docs/perfetto.md).
    #[arg(long, value_name = "FILE.pftrace", conflicts_with = "find")]
    perfetto: Option<PathBuf>,

    /// Time window of the trace in seconds of simulated time, such as 10..12.5. Either end may be
    /// left out. The trace ends in any case after 20,000 requests of workloads and drives, over all
    /// stacks.
    #[arg(long, value_name = "FROM..TO", requires = "perfetto", value_parser = window)]
    perfetto_window: Option<PerfettoWindow>,
}

impl Perfetto {
    /// Returns the window to trace, or `None` without `--perfetto`.
    pub(crate) fn window(&self) -> Option<PerfettoWindow> {
        self.perfetto
            .as_ref()
            .map(|_| self.perfetto_window.unwrap_or_default())
    }

    /// Returns the file to write.
    pub(crate) fn target(&self) -> Option<Target<'_>> {
        Target::of("--perfetto", &self.perfetto, OutputKind::Perfetto)
    }

    /// Writes the traces of several runs into one file.
    pub(crate) fn write_all(&self, ran: &[RunResult]) -> Result<(), CommandFailure> {
        if self.perfetto.is_none() {
            return Ok(());
        }
        let labels: Vec<String> = ran
            .iter()
            .map(|ran| ran.varied.label(&ran.measured.report.name))
            .collect();
        let runs = labels
            .iter()
            .zip(ran)
            .filter_map(|(label, ran)| Some((Some(label.as_str()), ran.perfetto.as_ref()?)));
        self.write(&PerfettoFile::of_all(&runs.collect::<Vec<_>>()))
    }

    /// Writes the file, and prints a note if the trace was cut.
    pub(crate) fn write(&self, file: &PerfettoFile) -> Result<(), CommandFailure> {
        let Some(path) = &self.perfetto else {
            return Ok(());
        };
        write_whole(path, &file.bytes)?;
        let note = match file.cut {
            Some(end) => format!(
                "ends at {} s of simulated time, after {} requests of workloads and drives; --perfetto-window FROM..TO shows another part",
                end.since(Time::ZERO).as_secs_f64(),
                file.requests
            ),
            None if file.requests == 0 => {
                "is empty: no request begins and ends in that window".to_owned()
            }
            None => return Ok(()),
        };
        // The note goes to standard error. A failed write is ignored, because the file is complete.
        print_error(&format!("{} {note}", path.display()));
        Ok(())
    }
}

/// Parses `FROM..TO` in seconds.
fn window(text: &str) -> Result<PerfettoWindow, Reason> {
    let wrong = || {
        reason!(
            "found `{text}`; expected FROM..TO in seconds with FROM before TO, such as 10..12.5"
        )
    };
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let whole = PerfettoWindow::default();
    let from = instant(from, whole.from).ok_or_else(wrong)?;
    let to = instant(to, whole.to).ok_or_else(wrong)?;
    if from >= to {
        return Err(wrong());
    }
    Ok(PerfettoWindow { from, to, ..whole })
}

fn instant(text: &str, unless_said: Time) -> Option<Time> {
    if text.trim().is_empty() {
        return Some(unless_said);
    }
    let seconds: f64 = text.trim().parse().ok()?;
    // NaN, infinite and negative times are no times of a run.
    (seconds.is_finite() && seconds >= 0.0).then(|| Time::ZERO + Duration::from_secs_f64(seconds))
}
