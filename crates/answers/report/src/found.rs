//! What searches found: how much each candidate bears, and what was tried.

use crate::chart::{self, Bar};
use crate::markup::Markup;
use crate::svg::Drawing;
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

/// What each bears at most, as bars; none if nothing is known of any.
pub(crate) fn borne_bars(found: &[&Value]) -> Option<Drawing> {
    let streams = found.iter().any(|one| !at(one, "streams").is_null());
    let (key, axis) = if streams {
        ("streams", "streams")
    } else {
        ("load", "load (multiples of this one)")
    };
    let bars: Vec<Bar> = found
        .iter()
        .filter_map(|one| Some((text(one, "name").to_owned(), float(one, key)?, None)))
        .collect();
    (!bars.is_empty()).then(|| chart::bars("borne", "What each bears at most", axis, &bars))
}

/// What each bears at most.
pub(crate) fn borne(page: &mut Markup, found: &[&Value]) {
    if let Some(bars) = borne_bars(found) {
        bars.show(page);
    }
    let rows: Vec<(String, &Value)> = found
        .iter()
        .map(|one| (text(one, "name").to_owned(), *one))
        .collect();
    let columns = [
        column("streams", "streams", Shown::Whole),
        column("load", "load", Shown::Plain),
        column("too much", "too_much", Shown::Plain),
        column("IOPS", "iops", Shown::Plain),
        column("p99 ms", "p99_ms", Shown::Plain),
        column(
            "runs with an underrun, at most",
            "underrun_probability_max",
            Shown::Percent,
        ),
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
        let rows: Vec<(String, &Value)> = steps
            .map(|(step, tried)| (format!("step {}", step + 1), tried))
            .collect();
        table(
            page,
            &format!("{}: what was tried, in this order", text(one, "name")),
            &columns,
            &rows,
        );
    }
}
