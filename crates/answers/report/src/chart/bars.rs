//! A bar with an interval for each candidate.

use crate::markup::Markup;
use crate::svg::{Axis, Drawing, SvgTitle, WIDTH, fitting, horizontal, label, line, rectangle};
use fullstroke_measure::number;

const LEFT: f64 = 290.0;
const RIGHT: f64 = WIDTH - 90.0;
const TOP: f64 = 8.0;
const ROW: f64 = 30.0;

/// Name of a candidate, value, and half the width of its interval.
pub(crate) type Bar = (String, f64, Option<f64>);

/// Draws the values from zero on; `axis` is the label with the unit.
pub(crate) fn bars(id: &str, title: &str, axis: &str, bars: &[Bar]) -> Drawing {
    let reach = |(_, value, half_width): &Bar| value + half_width.unwrap_or(0.0);
    // A whisker may reach beyond the longest bar.
    let largest = bars.iter().map(reach).fold(0.0, f64::max);
    let bottom = TOP + ROW * bars.len() as f64;
    let scale = Axis::linear((0.0, largest), (LEFT, RIGHT));
    let each = bars
        .iter()
        .map(|(name, value, _)| format!("{name}: {}", number(*value)));
    let description = format!(
        "A bar for each candidate. {}.",
        each.collect::<Vec<_>>().join("; ")
    );
    let shown = SvgTitle {
        id,
        title,
        description: &description,
        height: bottom + 44.0,
        legend: Vec::new(),
    };
    Drawing::of(shown, |svg| {
        horizontal(svg, &scale, (TOP, bottom), axis);
        for (row, bar) in bars.iter().enumerate() {
            draw(svg, &scale, TOP + ROW * row as f64, bar);
        }
    })
}

fn draw(svg: &mut Markup, scale: &Axis, top: f64, (name, value, half_width): &Bar) {
    let middle = top + ROW / 2.0;
    label(svg, (LEFT - 8.0, middle + 4.0), "end", &fitting(name));
    rectangle(
        svg,
        (LEFT, top + 5.0),
        (scale.at(*value) - LEFT, ROW - 10.0),
        "bar",
    );
    let mut end = scale.at(*value);
    if let Some(half_width) = half_width {
        // The number stands behind the whisker, so that the two do not cover each other.
        let (from, to) = (scale.at(value - half_width), scale.at(value + half_width));
        whisker(svg, (from, to), middle);
        end = to;
    }
    label(svg, (end + 8.0, middle + 4.0), "start", &number(*value));
}

/// Draws an interval: a line with an end at each side.
pub(crate) fn whisker(svg: &mut Markup, (from, to): (f64, f64), middle: f64) {
    line(svg, (from, middle), (to, middle), "whisker");
    for end in [from, to] {
        line(svg, (end, middle - 5.0), (end, middle + 5.0), "whisker");
    }
}
