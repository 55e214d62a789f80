//! What searches found: how much each candidate bears, and what was tried.

use crate::chart;
use crate::markup::Markup;
use crate::value::{Shown, at, column, float, list, table, text};
use serde_json::Value;

/// The candidates of a search, or the one that it was of; none if the answer is no search's.
pub(crate) fn found(answer: &Value) -> Vec<&Value> {
    let is_found = |candidate: &&Value| at(candidate, "tried").is_array();
    match at(answer, "candidates") {
        Value::Array(all) => all.iter().filter(is_found).collect(),
        _ => Some(answer).into_iter().filter(is_found).collect(),
    }
}

/// What each bears at most.
pub(crate) fn borne(page: &mut Markup, found: &[&Value]) {
    let streams = found.iter().any(|one| !at(one, "streams").is_null());
    let (key, axis) = if streams { ("streams", "streams") } else { ("load", "multiples of this load") };
    let bars: Vec<(String, f64, Option<f64>)> =
        found.iter().filter_map(|one| Some((text(one, "name").to_owned(), float(one, key)?, None))).collect();
    if !bars.is_empty() {
        chart::bars(page, "borne", "What each bears at most", axis, &bars);
    }
    let rows: Vec<(String, &Value)> = found.iter().map(|one| (text(one, "name").to_owned(), *one)).collect();
    let columns = [
        column("streams", "streams", Shown::Whole),
        column("load", "load", Shown::Plain),
        column("too much", "too_much", Shown::Plain),
        column("IOPS", "iops", Shown::Plain),
        column("p99 ms", "p99_ms", Shown::Plain),
        column("runs with an underrun, at most", "underrun_probability_max", Shown::Percent),
    ];
    table(page, "What each bears at most", &columns, &rows);
}

/// The steps of each search.
pub(crate) fn tried(page: &mut Markup, found: &[&Value], room: usize) {
    let columns = [
        column("streams", "streams", Shown::Whole),
        column("load", "load", Shown::Plain),
        column("holds", "held", Shown::Plain),
        column("runs without an underrun", "runs_that_held", Shown::Whole),
        column("underruns", "underruns", Shown::Whole),
        column("longest stall ms", "longest_stall_ms", Shown::Plain),
        column("carried", "carried_share", Shown::Percent),
        column("IOPS", "iops", Shown::Plain),
        column("p99 ms", "p99_ms", Shown::Plain),
        column("busiest drive", "utilisation_max", Shown::Percent),
        column("drives busy", "utilisation", Shown::Percent),
    ];
    for one in found {
        if page.len() > room {
            return;
        }
        let steps = list(one, "tried").iter().enumerate();
        let rows: Vec<(String, &Value)> =
            steps.map(|(step, tried)| (format!("step {}", step + 1), tried)).collect();
        table(page, &format!("{}: what was tried, in this order", text(one, "name")), &columns, &rows);
    }
}
