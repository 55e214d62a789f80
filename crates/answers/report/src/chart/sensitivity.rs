//! Effect of a varied key on the metric: one line for each setting of the other keys.

use super::abscissa::Abscissa;
use crate::answer::CommandAnswer;
use crate::candidate::{CandidateReport, IN_A_CHART, LINES, saw_the_same};
use crate::markup::Markup;
use crate::metric::{axis, words};
use crate::svg::{
    Axis, LegendEntry, MarkForm, SvgTitle, WIDTH, figure, fitting, polyline, vertical,
};
use fullstroke_measure::number;
use fullstroke_units::{parse_bit_rate, parse_bytes, parse_duration};
use std::collections::HashSet;

const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 20.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 240.0;

/// The drawn number: label with the unit, name without the unit, and getter.
struct DrawnNumber {
    axis: String,
    words: String,
    of: fn(&CandidateReport<'_>) -> Option<f64>,
}

impl DrawnNumber {
    /// Returns the value. In a race the candidates may have seen different parts of the workload.
    /// Then the number is the difference to the best, which compares the same parts.
    fn new(by: &str, candidates: &[CandidateReport<'_>]) -> DrawnNumber {
        if saw_the_same(candidates) {
            return DrawnNumber {
                axis: axis(by),
                words: words(by),
                of: |candidate| candidate.value(),
            };
        }
        let of = |candidate: &CandidateReport<'_>| match candidate.difference() {
            None => Some(0.0),
            Some(difference) => Some(difference.value).filter(|value| value.is_finite()),
        };
        DrawnNumber {
            axis: axis(by),
            words: format!("{}, less that of the best", words(by)),
            of,
        }
    }
}

/// Draws a figure for each varied key.
pub(crate) fn sensitivity(
    markup: &mut Markup,
    answer: &CommandAnswer<'_>,
    candidates: &[CandidateReport<'_>],
) {
    let number = DrawnNumber::new(answer.by(), candidates);
    let keys = candidates
        .first()
        .map(CandidateReport::varied)
        .unwrap_or_default();
    for (order, (key, _)) in keys.iter().enumerate() {
        one(markup, order, &number, (key, answer.given(key)), candidates);
    }
}

/// A line: the setting of the other keys, and the value at each of the key's values.
type Line = (String, Vec<Option<f64>>);

fn one(
    markup: &mut Markup,
    order: usize,
    drawn: &DrawnNumber,
    (key, given): (&str, &[String]),
    candidates: &[CandidateReport<'_>],
) {
    let values = values_of(key, given, candidates);
    let lines = lines(key, &values, drawn, candidates);
    let measured = |(_, points): &Line| points.iter().any(Option::is_some);
    // One value has no effect to show.
    if values.len() < 2 || !lines.iter().any(measured) {
        return;
    }
    let shown = &lines[..lines.len().min(LINES)];
    let points = || {
        shown
            .iter()
            .flat_map(|(_, points)| points.iter().flatten())
            .copied()
    };
    // The axis contains 0, so that a small effect does not look large.
    let (least, most) = (points().fold(0.0, f64::min), points().fold(0.0, f64::max));
    let step = (RIGHT - LEFT) / values.len() as f64;
    let x = |place: usize| LEFT + step * (place as f64 + 0.5);
    let names: Vec<String> = values.iter().map(|value| fitting(value)).collect();
    let abscissa = Abscissa::new(
        names
            .iter()
            .enumerate()
            .map(|(place, name)| (name.as_str(), x(place))),
    );
    let y = Axis::linear((least * 1.05, most * 1.05), (BOTTOM, TOP));
    let legend: Vec<LegendEntry> = shown
        .iter()
        .enumerate()
        .map(|(order, (name, _))| LegendEntry {
            class: format!("series-{order}"),
            name: name.clone(),
            mark: MarkForm::Line,
        })
        .collect();
    let in_words = |(name, points): &Line| {
        let each = values.iter().zip(points);
        let each = each.filter_map(|(value, point)| Some(format!("{value} {}", number((*point)?))));
        let each = each.take(IN_A_CHART);
        format!("{name}: {}", each.collect::<Vec<_>>().join(", "))
    };
    let title = format!("Effect of {key} on {}", drawn.words);
    let description = format!(
        "{} at each value. {}.",
        drawn.axis,
        shown.iter().map(in_words).collect::<Vec<_>>().join("; ")
    );
    let frame = SvgTitle {
        id: &format!("sensitivity-{order}"),
        title: &title,
        description: &description,
        height: BOTTOM + abscissa.height(),
        legend,
    };
    figure(markup, frame, |svg| {
        vertical(svg, &y, (LEFT, RIGHT), &drawn.axis);
        abscissa.draw(svg, BOTTOM, (LEFT + RIGHT) / 2.0, key);
        for (order, (_, points)) in shown.iter().enumerate() {
            let way = points.iter().enumerate();
            let way =
                way.map(|(place, value)| (x(place), value.map_or(f64::NAN, |value| y.at(value))));
            polyline(svg, way, &format!("series-{order}"));
        }
    });
    if lines.len() > shown.len() {
        let note = format!(
            "{} lines more are in the table of candidates.",
            lines.len() - shown.len()
        );
        markup.element("p", &[("class", "note")], &note);
    }
}

/// Returns the values of a key: numbers by size, other values in the order given.
fn values_of<'a>(
    key: &str,
    given: &'a [String],
    candidates: &[CandidateReport<'a>],
) -> Vec<&'a str> {
    let of = |candidate: &CandidateReport<'a>| {
        let own = candidate.varied().into_iter().find(|(own, _)| *own == key);
        own.map(|(_, value)| value)
    };
    let known: HashSet<&str> = candidates.iter().filter_map(of).collect();
    let given = given
        .iter()
        .map(String::as_str)
        .filter(|value| known.contains(value));
    let mut values: Vec<&str> = Vec::new();
    let mut seen = HashSet::new();
    values.extend(
        given
            .chain(candidates.iter().filter_map(of))
            .filter(|value| seen.insert(*value)),
    );
    sorted(&values).unwrap_or(values)
}

/// Returns the values by size if all are numbers of one kind.
fn sorted<'a>(values: &[&'a str]) -> Option<Vec<&'a str>> {
    let sizes =
        |read: &Read| -> Option<Vec<f64>> { values.iter().map(|value| read(value)).collect() };
    let mut sized: Vec<(f64, &str)> = READ
        .iter()
        .find_map(sizes)?
        .into_iter()
        .zip(values.iter().copied())
        .collect();
    // A stable sort keeps the order of equal sizes, such as `1KiB` and `1024`.
    sized.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    Some(sized.into_iter().map(|(_, value)| value).collect())
}

type Read = fn(&str) -> Option<f64>;

/// Parsers of the values of a key. The values are sorted by the first parser that reads all of
/// them.
const READ: [Read; 5] = [
    |value| value.parse().ok(),
    |value| parse_bytes(value).ok().map(|bytes| bytes as f64),
    |value| parse_duration(value).ok().map(|time| time.as_secs_f64()),
    |value| parse_bit_rate(value).ok().map(|rate| rate as f64),
    |value| {
        let (over, under) = value.split_once('/')?;
        Some(over.trim().parse::<f64>().ok()? / under.trim().parse::<f64>().ok()?)
    },
];

fn lines(
    key: &str,
    values: &[&str],
    number: &DrawnNumber,
    candidates: &[CandidateReport<'_>],
) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for candidate in candidates {
        let mut name = candidate.name().to_owned();
        let mut place = None;
        for (own, value) in candidate.varied() {
            if own == key {
                place = values.iter().position(|known| *known == value);
            } else {
                name.push_str(&format!(" {own}={value}"));
            }
        }
        let Some(place) = place else { continue };
        // Candidates that differ only in `key` are points of one line.
        let index = lines
            .iter()
            .position(|(known, _)| *known == name)
            .unwrap_or_else(|| {
                lines.push((name, vec![None; values.len()]));
                lines.len() - 1
            });
        lines[index].1[place] = (number.of)(candidate);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::AnswerBody;
    use crate::candidate::candidates;
    use fullstroke_lab::{Tuned, TunedCandidate, Varied, VariedValues};

    #[test]
    fn values_stand_by_size_and_words_in_the_order_in_which_they_were_given() {
        for (given, drawn) in [
            (
                &["90s", "20min", "1h", "2h"][..],
                &["90s", "20min", "1h", "2h"][..],
            ),
            (&["5/2", "2/1", "25/12"], &["2/1", "25/12", "5/2"]),
            (&["2Mbit/s", "800kbit/s"], &["800kbit/s", "2Mbit/s"]),
            (&["1MiB", "64K", "512"], &["512", "64K", "1MiB"]),
            (&["sstf", "fcfs", "look"], &["sstf", "fcfs", "look"]),
        ] {
            // The best value is the last one given.
            let varied = |value: &str| Varied::new(&[format!("key={value}")]);
            let each = given.iter().rev().map(|value| TunedCandidate {
                varied: varied(value),
                ..TunedCandidate::default()
            });
            let tuned = Tuned {
                varied: VariedValues::of(
                    given
                        .iter()
                        .map(|value| varied(value))
                        .collect::<Vec<_>>()
                        .iter(),
                ),
                candidates: each.collect(),
                ..Tuned::default()
            };
            let answer = CommandAnswer {
                found: AnswerBody::Tuned(&tuned, &[]),
                version: "",
                wall_s: None,
            };
            assert_eq!(
                values_of("key", answer.given("key"), &candidates(&answer)),
                drawn
            );
        }
    }
}
