//! A figure of a study: a line for each value of an axis, with intervals, and published points as crosses.

use super::abscissa::Abscissa;
use crate::candidate::LINES;
use crate::markup::Markup;
use crate::svg::{Axis, Drawing, Figure, Key, Mark, WIDTH, line, path, polyline, short, vertical};
use crate::value::{Column, Shown, column, float, list, table, text};
use serde_json::{Map, Value, json};

const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 20.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 260.0;

/// Half of a cross.
const ARM: f64 = 4.5;

/// The chart and, folded, its numbers.
pub(crate) fn lines(markup: &mut Markup, id: &str, drawn: &Value) {
    let Some(chart) = line_chart(id, drawn) else {
        return;
    };
    chart.show(markup);
    if !text(drawn, "caption").is_empty() {
        markup.element("p", &[("class", "note")], text(drawn, "caption"));
    }
    let all = list(drawn, "lines");
    if all.len() > LINES {
        let note = format!("{} lines more are in the table.", all.len() - LINES);
        markup.element("p", &[("class", "note")], &note);
    }
    let names: Vec<&str> = list(drawn, "ticks")
        .iter()
        .map(|tick| text(tick, "name"))
        .collect();
    markup.within("details", &[], |markup| {
        markup.element("summary", &[], "Its numbers");
        numbers(markup, drawn, &names, all);
    });
}

/// The chart alone; none if nothing can be drawn.
pub(crate) fn line_chart(id: &str, drawn: &Value) -> Option<Drawing> {
    let ticks = list(drawn, "ticks");
    let places: Vec<f64> = ticks.iter().filter_map(|tick| float(tick, "at")).collect();
    let (low, high) = (
        float(drawn, "ordinate.low")?,
        float(drawn, "ordinate.high")?,
    );
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
    let abscissa = Abscissa::new(
        names
            .iter()
            .zip(&places)
            .map(|(name, place)| (*name, x.at(*place))),
    );
    let legend = legend(shown);
    let frame = Figure {
        id,
        title: text(drawn, "title"),
        description: &description(drawn, shown),
        height: BOTTOM + abscissa.height(),
        legend,
    };
    Some(Drawing::of(frame, |svg| {
        vertical(svg, &y, (LEFT, RIGHT), text(drawn, "y"));
        abscissa.draw(svg, BOTTOM, (LEFT + RIGHT) / 2.0, text(drawn, "x"));
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
            line(
                svg,
                (at, y.at(value - half_width)),
                (at, y.at(value + half_width)),
                &firm,
            );
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
    path(
        svg,
        &format!("M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}"),
        class,
    );
}

fn name_of(line: &Value) -> &str {
    match text(line, "name") {
        "" => "value",
        name => name,
    }
}

fn is_published(line: &Value) -> bool {
    list(line, "points")
        .iter()
        .any(|point| float(point, "published").is_some())
}

fn legend(lines: &[Value]) -> Vec<Key> {
    let line = |(order, line): (usize, &Value)| Key {
        class: format!("series-{order}"),
        name: name_of(line).to_owned(),
        mark: Mark::Line,
    };
    let mut legend: Vec<Key> = lines.iter().enumerate().map(line).collect();
    if lines.iter().any(is_published) {
        legend.push(Key {
            class: String::new(),
            name: "published".to_owned(),
            mark: Mark::Sign("×"),
        });
    }
    legend
}

fn description(drawn: &Value, lines: &[Value]) -> String {
    let names: Vec<&str> = lines.iter().map(name_of).collect();
    let crosses = if lines.iter().any(is_published) {
        " Crosses are what was published."
    } else {
        ""
    };
    format!(
        "{} over {}: {}.{crosses} The table below has the numbers.",
        text(drawn, "y"),
        text(drawn, "x"),
        names.join(", ")
    )
}

/// A row for each value of the abscissa.
fn numbers(markup: &mut Markup, drawn: &Value, names: &[&str], lines: &[Value]) {
    const KEYS: [(&str, &str); 3] = [
        ("value", ""),
        ("ci_half_width", " ±"),
        ("published", ", published"),
    ];
    let mut headings: Vec<(String, String)> = Vec::new();
    for (order, line) in lines.iter().enumerate() {
        headings.extend(
            KEYS.map(|(key, what)| (format!("{}{what}", name_of(line)), format!("{order}.{key}"))),
        );
    }
    let columns: Vec<Column<'_>> = headings
        .iter()
        .map(|(heading, path)| column(heading, path, Shown::Plain))
        .collect();
    let row = |place: usize| -> Value {
        let cells = lines.iter().enumerate().map(|(order, line)| {
            (
                order.to_string(),
                list(line, "points").get(place).cloned().unwrap_or_default(),
            )
        });
        json!(cells.collect::<Map<String, Value>>())
    };
    let rows: Vec<Value> = (0..names.len()).map(row).collect();
    let named: Vec<(String, &Value)> = names
        .iter()
        .map(|name| (*name).to_owned())
        .zip(&rows)
        .collect();
    table(
        markup,
        &format!(
            "{}: {} by {}",
            text(drawn, "title"),
            text(drawn, "y"),
            text(drawn, "x")
        ),
        &columns,
        &named,
    );
}
