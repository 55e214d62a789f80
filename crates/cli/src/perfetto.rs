//! `--perfetto`: a window of a run for ui.perfetto.dev.

use crate::output::{Failure, complain, write_whole};
use crate::outputs::{Kind, Target};
use clap::Args;
use fullstroke_contract::{Reason, reason};
use fullstroke_lab::Ran;
use fullstroke_measure::{PerfettoFile, PerfettoWindow};
use fullstroke_units::{Duration, Time};
use std::path::PathBuf;

/// Where the trace goes, and of what.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Perfetto {
    /// Write requests, what drives do for them and their queues as a trace that ui.perfetto.dev
    /// opens (docs/perfetto.md).
    #[arg(long, value_name = "FILE.pftrace", conflicts_with = "find")]
    perfetto: Option<PathBuf>,

    /// What of the run that shows, in seconds of simulated time, such as 10..12.5; either end may
    /// be left out. It ends after 20,000 requests of workloads and drives, of all stacks together, in any case.
    #[arg(long, value_name = "FROM..TO", requires = "perfetto", value_parser = window)]
    perfetto_window: Option<PerfettoWindow>,
}

impl Perfetto {
    /// What is kept of the run, if anything is.
    pub(crate) fn window(&self) -> Option<PerfettoWindow> {
        self.perfetto
            .as_ref()
            .map(|_| self.perfetto_window.unwrap_or_default())
    }

    /// The file that it writes.
    pub(crate) fn target(&self) -> Option<Target<'_>> {
        Target::of("--perfetto", &self.perfetto, Kind::Perfetto)
    }

    /// Writes what was kept of some runs as one file.
    pub(crate) fn write_all(&self, ran: &[Ran]) -> Result<(), Failure> {
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

    /// Writes the file, and says where it was cut.
    pub(crate) fn write(&self, file: &PerfettoFile) -> Result<(), Failure> {
        let Some(path) = &self.perfetto else {
            return Ok(());
        };
        write_whole(path, &file.bytes)?;
        let note = match file.cut {
            Some(end) => format!(
                "ends at {} s of simulated time, after {} requests of workloads and drives; \
                 --perfetto-window FROM..TO shows others",
                end.since(Time::ZERO).as_secs_f64(),
                file.requests
            ),
            None if file.requests == 0 => {
                "is empty: no request begins and ends in that window".to_owned()
            }
            None => return Ok(()),
        };
        // If nobody reads it, nothing is lost.
        complain(&format!("{} {note}", path.display()));
        Ok(())
    }
}

/// `FROM..TO` in seconds.
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
    (seconds.is_finite() && seconds >= 0.0).then(|| Time::ZERO + Duration::from_secs_f64(seconds))
}
