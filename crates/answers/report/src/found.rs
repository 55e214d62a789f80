//! Results of searches: the largest load or number of streams of each candidate, and the steps of
//! the search.

use crate::answer::{Answer, Found};
use crate::chart::{self, Bar};
use crate::markup::Markup;
use crate::svg::Drawing;
use crate::value::{Cell, Shown, column, table};
use fullstroke_lab::{Borne, Tried, TriedLoad};

/// Returns the candidates of a search, or the single one; empty for other answers.
pub(crate) fn searches<'a>(answer: &Answer<'a>) -> &'a [Borne] {
    match answer.found {
        Found::Borne(borne, _) => std::slice::from_ref(borne),
        Found::Most(ranking, _) => &ranking.candidates,
        _ => &[],
    }
}

/// Returns bars of the largest load or number of streams of each candidate; `None` if none is
/// known.
pub(crate) fn borne_bars(found: &[Borne]) -> Option<Drawing> {
    let streams = found.iter().any(|one| matches!(one, Borne::Streams(_)));
    let axis = if streams {
        "streams"
    } else {
        "load (multiples of this one)"
    };
    let bars: Vec<Bar> = found
        .iter()
        .map(|one| (one.name().to_owned(), one.value(), None))
        .filter(|(_, value, _)| value.is_finite())
        .collect();
    (!bars.is_empty()).then(|| chart::bars("borne", "What each bears at most", axis, &bars))
}

/// Writes the largest load or number of streams of each candidate.
pub(crate) fn borne(page: &mut Markup, found: &[Borne]) {
    if let Some(bars) = borne_bars(found) {
        bars.show(page);
    }
    let rows: Vec<(String, &Borne)> = found
        .iter()
        .map(|one| (one.name().to_owned(), one))
        .collect();
    let of_load = |heading, number: fn(&fullstroke_lab::FoundLoad) -> Cell| {
        column(heading, Shown::Plain, move |one: &Borne| match one {
            Borne::Load(found) => number(found),
            Borne::Streams(_) => Cell::Nothing,
        })
    };
    let columns = [
        column("streams", Shown::Whole, |one: &Borne| match one {
            Borne::Streams(found) => Some(found.streams),
            Borne::Load(_) => None,
        }),
        of_load("load", |found| found.load.into()),
        of_load("too much", |found| found.too_much.into()),
        of_load("IOPS", |found| found.iops.into()),
        of_load("p99 ms", |found| found.p99_ms.into()),
        column(
            "runs with an underrun, at most",
            Shown::Percent,
            |one: &Borne| match one {
                Borne::Streams(found) => found.underrun_probability_max,
                Borne::Load(_) => None,
            },
        ),
    ];
    table(page, "What each bears at most", &columns, &rows);
}

/// Writes the steps of each search.
pub(crate) fn tried(page: &mut Markup, found: &[Borne], room: usize) {
    for one in found {
        if page.len() > room {
            return;
        }
        let caption = format!("{}: what was tried, in this order", one.name());
        match one {
            Borne::Streams(found) => streams_tried(page, &caption, &found.tried),
            Borne::Load(found) => loads_tried(page, &caption, &found.tried),
        }
    }
}

/// Returns the steps with their numbers, from 1.
fn steps<T>(tried: &[T]) -> Vec<(String, &T)> {
    let each = tried.iter().enumerate();
    each.map(|(step, tried)| (format!("step {}", step + 1), tried))
        .collect()
}

fn streams_tried(page: &mut Markup, caption: &str, tried: &[Tried]) {
    let columns = [
        column("streams", Shown::Whole, |step: &Tried| step.streams),
        column("runs without an underrun", Shown::Whole, |step: &Tried| {
            step.runs_that_held
        }),
        column("underruns", Shown::Whole, |step: &Tried| step.underruns),
        column("longest stall ms", Shown::Plain, |step: &Tried| {
            step.longest_stall_ms
        }),
        column("drives busy", Shown::Percent, |step: &Tried| {
            step.utilisation
        }),
    ];
    table(page, caption, &columns, &steps(tried));
}

fn loads_tried(page: &mut Markup, caption: &str, tried: &[TriedLoad]) {
    let columns = [
        column("load", Shown::Plain, |step: &TriedLoad| step.load),
        column("holds", Shown::Plain, |step: &TriedLoad| step.held),
        column("carried", Shown::Percent, |step: &TriedLoad| {
            step.carried_share
        }),
        column("IOPS", Shown::Plain, |step: &TriedLoad| step.iops),
        column("p99 ms", Shown::Plain, |step: &TriedLoad| step.p99_ms),
        column("busiest drive", Shown::Percent, |step: &TriedLoad| {
            step.utilisation_max
        }),
    ];
    table(page, caption, &columns, &steps(tried));
}
