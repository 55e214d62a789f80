//! Results as text.

use crate::FioGroupResults;
use crate::job::IoDirection;
use crate::results::JobResult;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, presets};
use std::fmt;

const HEADER: [&str; 10] = [
    "job",
    "group",
    "",
    "I/Os",
    "IOPS",
    "KiB/s",
    "latency ms",
    "p50 ms",
    "p99 ms",
    "max ms",
];
/// Columns with text; the other columns are numbers.
const TEXTS: [usize; 2] = [0, 2];

impl fmt::Display for FioGroupResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.table().trim_fmt())?;
        for result in self.jobs.iter().filter(|result| result.tally.failed > 0) {
            write!(
                f,
                "\n{}: {} I/Os were not done, and are not counted",
                result.job.name, result.tally.failed
            )?;
        }
        let again = self.read_again();
        if !self.notes.is_empty() || again.is_some() {
            writeln!(f)?;
        }
        for note in self.notes.iter().chain(&again) {
            write!(f, "\n{note}")?;
        }
        if !self.ignored.is_empty() {
            write!(f, "\n\nOptions of the job file without effect here:")?;
            let width = self
                .ignored
                .iter()
                .map(|option| option.name.len())
                .max()
                .unwrap_or(0);
            for option in &self.ignored {
                write!(f, "\n  {:width$}  {}", option.name, option.why)?;
            }
        }
        Ok(())
    }
}

impl FioGroupResults {
    fn table(&self) -> Table {
        let mut table = Table::new();
        let line = LineStyle::none().fill('─').junction('─');
        table.load_style(presets::NOTHING.header_separator(line));
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(HEADER);
        for (index, column) in table.column_iter_mut().enumerate() {
            if !TEXTS.contains(&index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
            if index == 0 {
                column.set_padding((0, 1));
            }
        }
        for result in &self.jobs {
            for direction in IoDirection::ALL {
                if let Some(row) = row(result, direction) {
                    table.add_row(row);
                }
            }
        }
        table
    }
}

fn row(result: &JobResult, direction: IoDirection) -> Option<Vec<String>> {
    let lane = &result.tally.lanes[direction as usize];
    if lane.ios() == 0 {
        return None;
    }
    let seconds = result.tally.elapsed.as_secs_f64();
    // TRIMs of drives that take no time for them end when they begin.
    let per_second = |amount: f64, digits: usize| match seconds > 0.0 {
        true => format!("{:.digits$}", amount / seconds),
        false => "-".to_owned(),
    };
    let name = match result.workers {
        1 => result.job.name.clone(),
        workers => format!("{} (and {} more)", result.job.name, workers - 1),
    };
    let milliseconds = |nanoseconds: f64| format!("{:.3}", nanoseconds / 1e6);
    Some(vec![
        name,
        result.job.group.to_string(),
        direction.name().to_owned(),
        lane.ios().to_string(),
        per_second(lane.ios() as f64, 1),
        per_second(lane.bytes as f64 / 1024.0, 0),
        milliseconds(lane.latency_ns.mean()),
        milliseconds(lane.percentile_ns(50.0) as f64),
        milliseconds(lane.percentile_ns(99.0) as f64),
        milliseconds(lane.latency_ns.max() as f64),
    ])
}
