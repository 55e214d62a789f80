//! A bar of parts for each candidate: where the time went, and in which state its drives were.

use crate::candidate::Candidate;
use crate::markup::Markup;
use crate::svg::{Axis, Drawing, Figure, Key, Mark, WIDTH, fitting, horizontal, label, rectangle};
use crate::value::at;
use fullstroke_measure::number;

const LEFT: f64 = 290.0;
const RIGHT: f64 = WIDTH - 90.0;
const TOP: f64 = 8.0;
const ROW: f64 = 30.0;
/// A part's number stands in it from this width on.
const ROOM: f64 = 44.0;

/// Parts of the mean response time.
const TIME: [&str; 6] = [
    "queue", "parity", "overhead", "seek", "rotation", "transfer",
];

/// States of power, each with a look of its own.
const STATES: [(&str, &str); 12] = [
    ("seek", "cause-seek"),
    ("write_seek", "state-write_seek"),
    ("rotate", "cause-rotation"),
    ("read", "cause-transfer"),
    ("write", "state-write"),
    ("idle_a", "cause-queue"),
    ("idle_b", "cause-cache"),
    ("idle_c", "cause-overhead"),
    ("wake", "cause-switch"),
    ("spin_down", "cause-parity"),
    ("standby", "state-standby"),
    ("spin_up", "state-spin_up"),
];

/// What a chart of parts shows.
struct Parts<'a> {
    id: &'a str,
    title: &'a str,
    axis: &'a str,
    path: &'a str,
    /// Names in their order, each with the look that it has.
    names: Vec<(String, String)>,
}

/// Where the mean response time of each went; none if nothing took time.
pub(crate) fn time_parts(candidates: &[Candidate<'_>]) -> Option<Drawing> {
    let parts = Parts {
        id: "time-parts",
        title: "Where the mean response time went",
        axis: "mean response time (ms)",
        path: "time_ms",
        names: TIME
            .map(|name| (name.to_owned(), format!("cause-{name}")))
            .to_vec(),
    };
    parts.draw(candidates)
}

/// Which share of the time the drives of each were in each state of power; none if that is not known.
pub(crate) fn power_states(candidates: &[Candidate<'_>]) -> Option<Drawing> {
    let parts = Parts {
        id: "power-states",
        title: "In which state the drives were",
        axis: "share of the drives' time (0 to 1)",
        path: "energy.residency_share",
        names: STATES
            .map(|(name, look)| (name.to_owned(), look.to_owned()))
            .to_vec(),
    };
    parts.draw(candidates)
}

impl Parts<'_> {
    fn values(&self, candidate: &Candidate<'_>) -> Vec<f64> {
        let parts = at(candidate.report, self.path);
        self.names
            .iter()
            .map(|(name, _)| parts[name.as_str()].as_f64().unwrap_or(0.0))
            .collect()
    }

    fn draw(&self, candidates: &[Candidate<'_>]) -> Option<Drawing> {
        let rows: Vec<(&Candidate<'_>, Vec<f64>)> = candidates
            .iter()
            .map(|candidate| (candidate, self.values(candidate)))
            .collect();
        let largest = rows
            .iter()
            .map(|(_, values)| values.iter().sum())
            .fold(0.0, f64::max);
        if largest <= 0.0 {
            return None;
        }
        let present = |part: &usize| {
            rows.iter()
                .any(|(_, values)| values[*part] > 0.001 * largest)
        };
        let shown: Vec<usize> = (0..self.names.len()).filter(present).collect();
        let legend: Vec<Key> = shown
            .iter()
            .map(|&part| {
                let (name, class) = self.names[part].clone();
                Key {
                    class,
                    name,
                    mark: Mark::Area,
                }
            })
            .collect();
        let in_words = |(candidate, values): &(&Candidate<'_>, Vec<f64>)| {
            let parts = shown
                .iter()
                .map(|&part| format!("{} {}", self.names[part].0, number(values[part])));
            format!(
                "{}: {}",
                candidate.label,
                parts.collect::<Vec<_>>().join(", ")
            )
        };
        let description = format!(
            "A bar of parts each. {}.",
            rows.iter().map(in_words).collect::<Vec<_>>().join("; ")
        );
        let bottom = TOP + ROW * rows.len() as f64;
        let scale = Axis::linear((0.0, largest), (LEFT, RIGHT));
        let Parts {
            id, title, axis, ..
        } = *self;
        let frame = Figure {
            id,
            title,
            description: &description,
            height: bottom + 44.0,
            legend,
        };
        Some(Drawing::of(frame, |svg| {
            horizontal(svg, &scale, (TOP, bottom), axis);
            for (row, (candidate, values)) in rows.iter().enumerate() {
                self.bar(
                    svg,
                    &scale,
                    TOP + ROW * row as f64,
                    &candidate.label,
                    (values, &shown),
                );
            }
        }))
    }

    /// One candidate's parts, of which those that the legend names are drawn.
    fn bar(
        &self,
        svg: &mut Markup,
        scale: &Axis,
        top: f64,
        name: &str,
        (values, shown): (&[f64], &[usize]),
    ) {
        label(
            svg,
            (LEFT - 8.0, top + ROW / 2.0 + 4.0),
            "end",
            &fitting(name),
        );
        let mut from = 0.0;
        for (part, ((_, class), value)) in self.names.iter().zip(values).enumerate() {
            let (left, right) = (scale.at(from), scale.at(from + value));
            from += value;
            if right - left < 0.2 || !shown.contains(&part) {
                continue;
            }
            rectangle(svg, (left, top + 5.0), (right - left, ROW - 10.0), class);
            if right - left >= ROOM {
                let middle = ((left + right) / 2.0, top + ROW / 2.0 + 4.0);
                label(svg, middle, "middle on", &number(*value));
            }
        }
        label(
            svg,
            (scale.at(from) + 8.0, top + ROW / 2.0 + 4.0),
            "start",
            &number(from),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_measure::Shares;
    use std::collections::BTreeSet;

    #[test]
    fn every_state_has_a_look_of_its_own_with_a_pattern_beside_all_colours_but_one() {
        let shares = serde_json::to_value(Shares::default()).unwrap();
        let names = shares.as_object().unwrap().keys().map(String::as_str);
        assert_eq!(
            names.collect::<BTreeSet<_>>(),
            STATES.map(|(name, _)| name).into()
        );
        let rules = include_str!("../looks.css");
        let fills = STATES.map(|(_, look)| {
            let rule = rules
                .split_once(&format!(".{look}{{fill:"))
                .map(|(_, rest)| rest);
            rule.and_then(|rule| rule.split('}').next())
                .unwrap_or_else(|| panic!("{look} has no rule"))
        });
        assert_eq!(
            fills.iter().collect::<BTreeSet<_>>().len(),
            STATES.len(),
            "{fills:?}"
        );
        let patterns: Vec<&str> = fills
            .iter()
            .filter_map(|fill| fill.strip_prefix("url(#"))
            .collect();
        assert_eq!(patterns.len() + 1, STATES.len());
        for pattern in patterns {
            let id = pattern.trim_end_matches(')');
            assert!(
                include_str!("../patterns.svg").contains(&format!("id=\"{id}\"")),
                "{id}"
            );
        }
    }
}
