//! Arrivals and response times of requests as a heat map. The colour of a cell is the cause of most
//! of its response time. The opacity grows with the number of requests.

use crate::candidate::CandidateReport;
use crate::markup::Markup;
use crate::svg::{
    Axis, Drawing, LegendEntry, MarkForm, SvgTitle, WIDTH, horizontal, label, line, name_upwards,
    path, plain, short,
};
use fullstroke_measure::{CauseReport, CellReport, TimelineReport, number};
use std::collections::BTreeMap;

const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 12.0;
const TOP: f64 = 6.0;
const ROW: f64 = 9.0;
/// Least number of rows. The name of the axis needs this height.
const ROWS_MIN: usize = 10;

/// Limits of opacity: cells with fewer requests than `FEW` are faint; cells with `MANY` or more are
/// opaque.
const FEW: u64 = 10;
const MANY: u64 = 100;

/// Draws the map of one candidate, the `order`-th of its page.
pub(crate) fn heat(markup: &mut Markup, order: usize, candidate: &CandidateReport<'_>) {
    let (Some(map), Some(timeline)) = (heat_map(order, candidate), timeline(candidate)) else {
        return;
    };
    map.show(markup);
    let note = format!(
        "A column is {} s. Faint: fewer than {FEW} requests, full: {MANY} or more.",
        plain((timeline.column_s * 1e6).round() / 1e6)
    );
    markup.element("p", &[("class", "note")], &note);
}

/// Returns the map alone; `None` without a request.
pub(crate) fn heat_map(order: usize, candidate: &CandidateReport<'_>) -> Option<Drawing> {
    let timeline = timeline(candidate)?;
    let (cells, bounds) = (&timeline.cells, &timeline.rows_ms);
    let (column_s, span) = (timeline.column_s, UsedCells::of(cells, bounds)?);
    let causes: Vec<&CauseReport> = timeline
        .causes_ms
        .iter()
        .filter(|cause| cause.mean_ms > 0.0)
        .collect();
    let legend: Vec<LegendEntry> = causes
        .iter()
        .filter(|cause| cells.iter().any(|cell| cell.cause == cause.cause))
        .map(|cause| {
            let name = cause.cause.name();
            LegendEntry {
                class: format!("cause-{name}"),
                name: name.to_owned(),
                mark: MarkForm::Area,
            }
        })
        .collect();
    let (id, title) = (
        format!("heat-{order}"),
        format!("{}: response times by cause", candidate.label),
    );
    let description = described(&causes);
    let bottom = TOP + ROW * (span.rows.1 - span.rows.0) as f64;
    let frame = SvgTitle {
        id: &id,
        title: &title,
        description: &description,
        height: bottom + 44.0,
        legend,
    };
    let seconds = column_s * span.columns as f64;
    Some(Drawing::of(frame, |svg| {
        // The lines of the rows come first, so that the cells cover them.
        rows(svg, bounds, &span, bottom);
        let time = Axis::linear((0.0, seconds), (LEFT, RIGHT));
        horizontal(svg, &time, (TOP, bottom), "arrival (s)");
        let width = (RIGHT - LEFT) / span.columns as f64;
        for ((cause, level), way) in ways(cells, &span, width, bottom) {
            let class = format!("cause-{cause} level-{level}");
            path(svg, &way, &class);
        }
    }))
}

fn timeline<'a>(candidate: &CandidateReport<'a>) -> Option<&'a TimelineReport> {
    candidate.report()?.over_time.timeline.as_ref()
}

/// Used part of the map: columns from the first, rows from one to before another.
struct UsedCells {
    columns: usize,
    rows: (usize, usize),
}

impl UsedCells {
    /// Returns whole decades of the rows with these lower bounds, at least two.
    fn of(cells: &[CellReport], bounds: &[f64]) -> Option<UsedCells> {
        let columns = cells.iter().map(|cell| cell.column).max()? + 1;
        let least = cells.iter().map(|cell| cell.row).min()?;
        let most = cells.iter().map(|cell| cell.row).max()?.min(bounds.len());
        let decades = || (0..bounds.len()).filter(|&row| power(bounds[row]).is_some());
        let below = |row: usize| decades().rev().find(|decade| *decade <= row).unwrap_or(0);
        let above = |row: usize| {
            decades()
                .find(|decade| *decade > row)
                .unwrap_or(bounds.len())
        };
        let (mut from, mut to) = (below(least), above(most));
        while to - from < ROWS_MIN && to < bounds.len() {
            to = above(to);
        }
        while to - from < ROWS_MIN && from > 0 {
            from = below(from - 1);
        }
        Some(UsedCells {
            columns,
            rows: (from, to),
        })
    }
}

/// Returns the exponent if `ms` is a power of ten.
fn power(ms: f64) -> Option<f64> {
    let power = ms.log10();
    // The bounds are rounded to nanoseconds, so a power of ten is recognised with a tolerance.
    (ms > 0.0 && (power - power.round()).abs() < 1e-3).then_some(power.round())
}

fn described(causes: &[&CauseReport]) -> String {
    let each = causes
        .iter()
        .map(|cause| format!("{} {} ms", cause.cause.name(), number(cause.mean_ms)));
    format!(
        "A map of time of arrival against response time. Of the mean response time went into {}.",
        each.collect::<Vec<_>>().join(", ")
    )
}

/// Draws a rule and a number at each row that begins at a power of ten, and the name of the axis.
fn rows(svg: &mut Markup, bounds: &[f64], span: &UsedCells, bottom: f64) {
    for (row, &bound) in bounds
        .iter()
        .enumerate()
        .take(span.rows.1 + 1)
        .skip(span.rows.0)
    {
        if let Some(power) = power(bound) {
            let y = bottom - ROW * (row - span.rows.0) as f64;
            line(svg, (LEFT, y), (RIGHT, y), "rule");
            label(svg, (LEFT - 6.0, y + 4.0), "end", &plain(10f64.powf(power)));
        }
    }
    name_upwards(svg, (TOP + bottom) / 2.0, "response (ms)");
}

/// Returns one path for the cells of each style. Neighbours in a row form one area.
fn ways(
    cells: &[CellReport],
    span: &UsedCells,
    width: f64,
    bottom: f64,
) -> BTreeMap<(&'static str, u8), String> {
    let look = |cell: &CellReport| {
        let level = match cell.requests {
            requests if requests >= MANY => 3,
            requests if requests >= FEW => 2,
            _ => 1,
        };
        (cell.cause.name(), level)
    };
    let mut places: Vec<_> = cells
        .iter()
        .map(|cell| (look(cell), cell.row, cell.column))
        .collect();
    // Sorted by look first, so that cells of one look become one path, and the page is the same in
    // each run.
    places.sort_unstable();
    let mut ways: BTreeMap<(&str, u8), String> = BTreeMap::new();
    let next =
        |one: &(_, usize, usize), other: &(_, usize, usize)| (one.0, one.1, one.2 + 1) == *other;
    for run in places.chunk_by(next) {
        let (look, row, column) = run[0];
        let (x, y) = (
            LEFT + width * column as f64,
            bottom - ROW * (row - span.rows.0 + 1) as f64,
        );
        let wide = short(width * run.len() as f64);
        ways.entry(look).or_default().push_str(&format!(
            "M{} {}h{wide}v{ROW}h-{wide}z",
            short(x),
            short(y)
        ));
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_measure::Cause;

    #[test]
    fn rows_are_whole_decades_with_room_for_the_name_of_the_axis() {
        let bounds: Vec<f64> = (0..42)
            .map(|row| {
                if row == 0 {
                    0.0
                } else {
                    0.01 * 10f64.powf(f64::from(row - 1) / 6.0)
                }
            })
            .collect();
        let cell = |row| CellReport {
            column: 0,
            row,
            requests: 1,
            cause: Cause::Seek,
        };
        for (rows, span) in [
            ((15, 15), (13, 25)),
            ((0, 0), (0, 13)),
            ((41, 41), (31, 42)),
            ((14, 29), (13, 31)),
            ((18, 19), (13, 25)),
        ] {
            assert_eq!(
                UsedCells::of(&[cell(rows.0), cell(rows.1)], &bounds)
                    .unwrap()
                    .rows,
                span,
                "{rows:?}"
            );
        }
        assert!(UsedCells::of(&[], &bounds).is_none());
    }
}
