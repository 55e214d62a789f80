//! What a varied key does to the metric: a line for each way in which all else was set.

use crate::candidate::{Candidate, LINES, varied};
use crate::markup::Markup;
use crate::metric::{axis, words};
use crate::svg::{Axis, Figure, Key, Mark, WIDTH, figure, label, line, polyline, vertical};
use crate::value::{float, text};
use fullstroke_measure::number;

const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 20.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 240.0;

/// A figure for each key that was varied.
pub(crate) fn sensitivity(markup: &mut Markup, by: &str, candidates: &[Candidate<'_>]) {
    let keys = candidates.first().map(|first| varied(first.ranked)).unwrap_or_default();
    for (order, (key, _)) in keys.iter().enumerate() {
        one(markup, order, by, key, candidates);
    }
}

/// A line: what else was set, and the value at each of the key's values.
type Line = (String, Vec<Option<f64>>);

fn one(markup: &mut Markup, order: usize, by: &str, key: &str, candidates: &[Candidate<'_>]) {
    let values = values_of(key, candidates);
    if values.len() < 2 {
        return;
    }
    let lines = lines(key, &values, candidates);
    let shown = &lines[..lines.len().min(LINES)];
    let most = shown.iter().flat_map(|(_, points)| points.iter().flatten()).copied().fold(0.0, f64::max);
    let step = (RIGHT - LEFT) / values.len() as f64;
    let x = |place: usize| LEFT + step * (place as f64 + 0.5);
    let y = Axis::linear((0.0, most * 1.05), (BOTTOM, TOP));
    let legend: Vec<Key> = shown
        .iter()
        .enumerate()
        .map(|(order, (name, _))| Key {
            class: format!("series-{order}"),
            name: name.clone(),
            mark: Mark::Line,
        })
        .collect();
    let in_words = |(name, points): &Line| {
        let each = values.iter().zip(points);
        let each = each.filter_map(|(value, point)| Some(format!("{value} {}", number((*point)?))));
        format!("{name}: {}", each.collect::<Vec<_>>().join(", "))
    };
    let title = format!("What {key} does to {}", words(by));
    let description =
        format!("{} at each value. {}.", axis(by), shown.iter().map(in_words).collect::<Vec<_>>().join("; "));
    let frame = Figure {
        id: &format!("sensitivity-{order}"),
        title: &title,
        description: &description,
        height: BOTTOM + 44.0,
        legend,
    };
    figure(markup, frame, |svg| {
        vertical(svg, &y, (LEFT, RIGHT), &axis(by));
        for (place, value) in values.iter().enumerate() {
            line(svg, (x(place), BOTTOM), (x(place), BOTTOM + 5.0), "rule");
            label(svg, (x(place), BOTTOM + 18.0), "middle", value);
        }
        label(svg, ((LEFT + RIGHT) / 2.0, BOTTOM + 36.0), "middle name", key);
        for (order, (_, points)) in shown.iter().enumerate() {
            let way = points.iter().enumerate();
            let way = way.map(|(place, value)| (x(place), value.map_or(f64::NAN, |value| y.at(value))));
            polyline(svg, way, &format!("series-{order} dotted"));
        }
    });
    if lines.len() > shown.len() {
        let note = format!("{} lines more are in the table of candidates.", lines.len() - shown.len());
        markup.element("p", &[("class", "note")], &note);
    }
}

/// The values of a key: numbers by size, else as they first come.
fn values_of<'a>(key: &str, candidates: &[Candidate<'a>]) -> Vec<&'a str> {
    let mut values: Vec<&str> = Vec::new();
    for candidate in candidates {
        let own = varied(candidate.ranked).into_iter().find(|(own, _)| *own == key);
        values.extend(own.map(|(_, value)| value).filter(|value| !values.contains(value)));
    }
    values.sort_by(|one, other| match (size(one), size(other)) {
        (Some(one), Some(other)) => one.total_cmp(&other),
        _ => one.cmp(other),
    });
    values
}

/// The number that a value begins with, in its unit: `64KiB`, `5ms`, `12`.
fn size(value: &str) -> Option<f64> {
    let digits = value.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(value.len());
    let number: f64 = value[..digits].parse().ok()?;
    let unit = match &value[digits..] {
        "KiB" | "kB" | "KB" | "us" => 1e3,
        "MiB" | "MB" | "ms" => 1e6,
        "GiB" | "GB" | "s" => 1e9,
        "TiB" | "TB" | "min" => 6e10,
        _ => 1.0,
    };
    Some(number * unit)
}

fn lines(key: &str, values: &[&str], candidates: &[Candidate<'_>]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for candidate in candidates {
        let mut name = text(candidate.ranked, "name").to_owned();
        let mut place = None;
        for (own, value) in varied(candidate.ranked) {
            if own == key {
                place = values.iter().position(|known| *known == value);
            } else {
                name.push_str(&format!(" {own}={value}"));
            }
        }
        let Some(place) = place else { continue };
        let index = lines.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            lines.push((name, vec![None; values.len()]));
            lines.len() - 1
        });
        lines[index].1[place] = float(candidate.ranked, "value");
    }
    lines
}
