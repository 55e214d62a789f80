//! Results of searches: the largest load or number of streams of each candidate, and the steps of
//! the search.

use crate::answer::{AnswerBody, CommandAnswer};
use crate::chart::{self, Bar};
use crate::markup::Markup;
use crate::svg::Drawing;
use crate::value::{NumberFormat, TableCell, column, table};
use fullstroke_lab::{LargestLoad, TriedLoad, TriedStreams};

/// Returns the candidates of a search, or the single one; empty for other answers.
pub(crate) fn searches<'a>(answer: &CommandAnswer<'a>) -> &'a [LargestLoad] {
    match answer.found {
        AnswerBody::Sustained(load, _) => std::slice::from_ref(load),
        AnswerBody::LoadRanking(ranking, _) => &ranking.candidates,
        _ => &[],
    }
}

/// Returns bars of the largest load or number of streams of each candidate; `None` if none is
/// known.
pub(crate) fn load_bars(found: &[LargestLoad]) -> Option<Drawing> {
    let streams = found
        .iter()
        .any(|one| matches!(one, LargestLoad::Streams(_)));
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
    (!bars.is_empty())
        .then(|| chart::bars("sustained", "Largest sustained load of each", axis, &bars))
}

/// Writes the largest load or number of streams of each candidate.
pub(crate) fn sustained_loads(page: &mut Markup, found: &[LargestLoad]) {
    if let Some(bars) = load_bars(found) {
        bars.show(page);
    }
    let rows: Vec<(String, &LargestLoad)> = found
        .iter()
        .map(|one| (one.name().to_owned(), one))
        .collect();
    let of_load = |heading, number: fn(&fullstroke_lab::FoundLoad) -> TableCell| {
        column(
            heading,
            NumberFormat::Plain,
            move |one: &LargestLoad| match one {
                LargestLoad::Load(found) => number(found),
                LargestLoad::Streams(_) => TableCell::Nothing,
            },
        )
    };
    let columns = [
        column(
            "streams",
            NumberFormat::Whole,
            |one: &LargestLoad| match one {
                LargestLoad::Streams(found) => Some(found.streams),
                LargestLoad::Load(_) => None,
            },
        ),
        of_load("load", |found| found.load.into()),
        of_load("too much", |found| found.too_much.into()),
        of_load("IOPS", |found| found.iops.into()),
        of_load("p99 ms", |found| found.p99_ms.into()),
        column(
            "runs with an underrun, at most",
            NumberFormat::Percent,
            |one: &LargestLoad| match one {
                LargestLoad::Streams(found) => found.underrun_probability_max,
                LargestLoad::Load(_) => None,
            },
        ),
    ];
    table(page, "Largest sustained load of each", &columns, &rows);
}

/// Writes the steps of each search.
pub(crate) fn tried(page: &mut Markup, found: &[LargestLoad], room: usize) {
    for one in found {
        if page.len() > room {
            return;
        }
        let caption = format!("{}: tried values, in order", one.name());
        match one {
            LargestLoad::Streams(found) => streams_tried(page, &caption, &found.tried),
            LargestLoad::Load(found) => loads_tried(page, &caption, &found.tried),
        }
    }
}

/// Returns the steps with their numbers, from 1.
fn steps<T>(tried: &[T]) -> Vec<(String, &T)> {
    let each = tried.iter().enumerate();
    each.map(|(step, tried)| (format!("step {}", step + 1), tried))
        .collect()
}

fn streams_tried(page: &mut Markup, caption: &str, tried: &[TriedStreams]) {
    let columns = [
        column("streams", NumberFormat::Whole, |step: &TriedStreams| {
            step.streams
        }),
        column(
            "runs without an underrun",
            NumberFormat::Whole,
            |step: &TriedStreams| step.runs_that_held,
        ),
        column("underruns", NumberFormat::Whole, |step: &TriedStreams| {
            step.underruns
        }),
        column(
            "longest stall ms",
            NumberFormat::Plain,
            |step: &TriedStreams| step.longest_stall_ms,
        ),
        column(
            "drives busy",
            NumberFormat::Percent,
            |step: &TriedStreams| step.utilisation,
        ),
    ];
    table(page, caption, &columns, &steps(tried));
}

fn loads_tried(page: &mut Markup, caption: &str, tried: &[TriedLoad]) {
    let columns = [
        column("load", NumberFormat::Plain, |step: &TriedLoad| step.load),
        column("holds", NumberFormat::Plain, |step: &TriedLoad| step.held),
        column("carried", NumberFormat::Percent, |step: &TriedLoad| {
            step.carried_share
        }),
        column("IOPS", NumberFormat::Plain, |step: &TriedLoad| step.iops),
        column("p99 ms", NumberFormat::Plain, |step: &TriedLoad| {
            step.p99_ms
        }),
        column(
            "busiest drive",
            NumberFormat::Percent,
            |step: &TriedLoad| step.utilisation_max,
        ),
    ];
    table(page, caption, &columns, &steps(tried));
}
