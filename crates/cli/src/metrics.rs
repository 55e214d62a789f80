//! `--list-metrics`: the list of metrics for comparisons.

use crate::output::{CommandFailure, CommandOutput};
use fullstroke_measure::{Metric, table};
use serde::Serialize;

#[derive(Debug, Serialize)]
struct MetricEntry {
    name: String,
    unit: &'static str,
    more_is_better: bool,
    meaning: String,
}

/// Prints every metric with unit and meaning.
pub(crate) fn list(output: &CommandOutput) -> Result<(), CommandFailure> {
    let listed: Vec<MetricEntry> = Metric::all()
        .iter()
        .map(|metric| MetricEntry {
            name: metric.name(),
            unit: metric.unit(),
            more_is_better: metric.more_is_better(),
            meaning: metric.meaning(),
        })
        .collect();
    let mut table = table(["metric", "unit", "meaning"], &[0, 1, 2]);
    for metric in &listed {
        table.add_row([metric.name.as_str(), metric.unit, metric.meaning.as_str()]);
    }
    output.show(&listed, table.trim_fmt())
}
