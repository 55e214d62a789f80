//! A figure of a study: a line for each value of an axis, with intervals, and published points as crosses.

use crate::candidate::LINES;
use crate::markup::Markup;
use crate::svg::{Axis, Drawing, Figure, Key, Mark, WIDTH, label, line, path, polyline, short, vertical};
use crate::value::{Column, Shown, column, float, list, table, text};
use serde_json::{Map, Value, json};

const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 20.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 260.0;

/// What a letter takes, and two rows of names are apart.
const LETTER: f64 = 7.0;
const ROW: f64 = 15.0;
/// Rows of names below the abscissa.
const ROWS: usize = 3;
/// Half of a cross.
const ARM: f64 = 4.5;

/// The chart and, folded, its numbers.
pub(crate) fn lines(markup: &mut Markup, id: &str, drawn: &Value) {
    let Some(chart) = line_chart(id, drawn) else { return };
    chart.show(markup);
    if !text(drawn, "caption").is_empty() {
        markup.element("p", &[("class", "note")], text(drawn, "caption"));
    }
    let all = list(drawn, "lines");
    if all.len() > LINES {
        let note = format!("{} lines more are in the table.", all.len() - LINES);
        markup.element("p", &[("class", "note")], &note);
    }
    let names: Vec<&str> = list(drawn, "ticks").iter().map(|tick| text(tick, "name")).collect();
    markup.within("details", &[], |markup| {
        markup.element("summary", &[], "Its numbers");
        numbers(markup, drawn, &names, all);
    });
}

/// The chart alone; none if nothing can be drawn.
pub(crate) fn line_chart(id: &str, drawn: &Value) -> Option<Drawing> {
    let ticks = list(drawn, "ticks");
    let places: Vec<f64> = ticks.iter().filter_map(|tick| float(tick, "at")).collect();
    let (low, high) = (float(drawn, "ordinate.low")?, float(drawn, "ordinate.high")?);
    if places.is_empty() || places.len() < ticks.len() {
        return None;
    }
    let ends = |(low, high): (f64, f64), at: &f64| (low.min(*at), high.max(*at));
    let (first, last) = places.iter().fold((f64::INFINITY, f64::NEG_INFINITY), ends);
    let margin = ((last - first) * 0.04).max(0.1);
    let x = Axis::linear((first - margin, last + margin), (LEFT, RIGHT));
    let y = Axis::linear((low, high), (BOTTOM, TOP));
    let names: Vec<&str> = ticks.iter().map(|tick| text(tick, "name")).collect();
    let all = list(drawn, "lines");
    let shown = &all[..all.len().min(LINES)];
    let rows = rows_of(&names, &places, &x);
    let below = BOTTOM + 18.0 + ROW * rows.iter().flatten().copied().max().unwrap_or(0) as f64;
    let legend = legend(shown);
    let frame = Figure {
        id,
        title: text(drawn, "title"),
        description: &description(drawn, shown),
        height: below + 26.0,
        legend,
    };
    Some(Drawing::of(frame, |svg| {
        vertical(svg, &y, (LEFT, RIGHT), text(drawn, "y"));
        for ((name, place), row) in names.iter().zip(&places).zip(&rows) {
            let at = x.at(*place);
            line(svg, (at, BOTTOM), (at, BOTTOM + 5.0), "rule");
            if let Some(row) = row {
                let at = within(name, at);
                label(svg, (at, BOTTOM + 18.0 + ROW * *row as f64), "middle", name);
            }
        }
        label(svg, ((LEFT + RIGHT) / 2.0, below + 18.0), "middle name", text(drawn, "x"));
        for (order, own) in shown.iter().enumerate() {
            one(svg, order, list(own, "points"), &places, (&x, &y));
        }
    }))
}

fn one(svg: &mut Markup, order: usize, points: &[Value], places: &[f64], (x, y): (&Axis, &Axis)) {
    let of = |key: &'static str| {
        let each = places.iter().zip(points);
        each.map(move |(place, point)| (x.at(*place), float(point, key)))
    };
    let way = of("value").map(|(at, value)| (at, value.map_or(f64::NAN, |value| y.at(value))));
    polyline(svg, way, &format!("series-{order}"));
    let firm = format!("series-{order} firm");
    for ((at, value), (_, half_width)) in of("value").zip(of("ci_half_width")) {
        if let (Some(value), Some(half_width)) = (value, half_width) {
            line(svg, (at, y.at(value - half_width)), (at, y.at(value + half_width)), &firm);
        }
    }
    for (at, value) in of("published") {
        if let Some(value) = value {
            cross(svg, (at, y.at(value)), &firm);
        }
    }
}

fn cross(svg: &mut Markup, (x, y): (f64, f64), class: &str) {
    let [left, right, top, bottom] = [x - ARM, x + ARM, y - ARM, y + ARM].map(short);
    path(svg, &format!("M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}"), class);
}

/// In which row each name stands, so that none covers another; `None` where there is no room.
fn rows_of(names: &[&str], places: &[f64], x: &Axis) -> Vec<Option<usize>> {
    let mut taken = [f64::NEG_INFINITY; ROWS];
    let mut place = |(name, at): (&&str, &f64)| {
        let (middle, half) = (within(name, x.at(*at)), half(name));
        let row = taken.iter().position(|taken| *taken < middle - half)?;
        taken[row] = middle + half + LETTER;
        Some(row)
    };
    names.iter().zip(places).map(&mut place).collect()
}

/// Half of what a name takes.
fn half(name: &str) -> f64 {
    LETTER * name.chars().count() as f64 / 2.0
}

/// Where the middle of a name stands that is wanted at `at`, so that its ends are within the figure.
fn within(name: &str, at: f64) -> f64 {
    let half = half(name).min(WIDTH / 2.0);
    at.clamp(half, WIDTH - half)
}

fn name_of(line: &Value) -> &str {
    match text(line, "name") {
        "" => "value",
        name => name,
    }
}

fn is_published(line: &Value) -> bool {
    list(line, "points").iter().any(|point| float(point, "published").is_some())
}

fn legend(lines: &[Value]) -> Vec<Key> {
    let line = |(order, line): (usize, &Value)| Key {
        class: format!("series-{order}"),
        name: name_of(line).to_owned(),
        mark: Mark::Line,
    };
    let mut legend: Vec<Key> = lines.iter().enumerate().map(line).collect();
    if lines.iter().any(is_published) {
        legend.push(Key { class: String::new(), name: "published".to_owned(), mark: Mark::Sign("×") });
    }
    legend
}

fn description(drawn: &Value, lines: &[Value]) -> String {
    let names: Vec<&str> = lines.iter().map(name_of).collect();
    let crosses = if lines.iter().any(is_published) { " Crosses are what was published." } else { "" };
    format!(
        "{} over {}: {}.{crosses} The table below has the numbers.",
        text(drawn, "y"),
        text(drawn, "x"),
        names.join(", ")
    )
}

/// A row for each value of the abscissa.
fn numbers(markup: &mut Markup, drawn: &Value, names: &[&str], lines: &[Value]) {
    const KEYS: [(&str, &str); 3] = [("value", ""), ("ci_half_width", " ±"), ("published", ", published")];
    let mut headings: Vec<(String, String)> = Vec::new();
    for (order, line) in lines.iter().enumerate() {
        headings
            .extend(KEYS.map(|(key, what)| (format!("{}{what}", name_of(line)), format!("{order}.{key}"))));
    }
    let columns: Vec<Column<'_>> =
        headings.iter().map(|(heading, path)| column(heading, path, Shown::Plain)).collect();
    let row = |place: usize| -> Value {
        let cells = lines.iter().enumerate().map(|(order, line)| {
            (order.to_string(), list(line, "points").get(place).cloned().unwrap_or_default())
        });
        json!(cells.collect::<Map<String, Value>>())
    };
    let rows: Vec<Value> = (0..names.len()).map(row).collect();
    let named: Vec<(String, &Value)> = names.iter().map(|name| (*name).to_owned()).zip(&rows).collect();
    table(
        markup,
        &format!("{}: {} by {}", text(drawn, "title"), text(drawn, "y"), text(drawn, "x")),
        &columns,
        &named,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_below_the_abscissa_never_cover_each_other() {
        let names: Vec<String> = (0..40).map(|number| format!("name of {number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let places: Vec<f64> = (0..40).map(f64::from).collect();
        let x = Axis::linear((-1.0, 40.0), (LEFT, RIGHT));
        let rows = rows_of(&names, &places, &x);
        for row in 0..ROWS {
            let spans: Vec<(f64, f64)> = (0..40)
                .filter(|&at| rows[at] == Some(row))
                .map(|at| (x.at(places[at]), LETTER * names[at].len() as f64 / 2.0))
                .collect();
            assert!(spans.len() > 2);
            assert!(spans.windows(2).all(|two| two[0].0 + two[0].1 < two[1].0 - two[1].1), "{spans:?}");
        }
        assert_eq!(
            rows_of(&["1", "2"], &[1.0, 2.0], &Axis::linear((0.0, 3.0), (LEFT, RIGHT))),
            [Some(0), Some(0)]
        );
    }
}
