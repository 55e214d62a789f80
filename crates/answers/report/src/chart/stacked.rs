//! A bar of parts for each candidate: parts of the response time, or power states of the drives.

use crate::candidate::CandidateReport;
use crate::markup::Markup;
use crate::svg::{
    Axis, Drawing, LegendEntry, MarkForm, SvgTitle, WIDTH, fitting, horizontal, label, rectangle,
};
use fullstroke_contract::PowerState;
use fullstroke_measure::{Report, number};

const LEFT: f64 = 290.0;
const RIGHT: f64 = WIDTH - 90.0;
const TOP: f64 = 8.0;
const ROW: f64 = 30.0;
/// Least width of a part that contains its number.
const ROOM: f64 = 44.0;

/// Power states, each with a style of its own.
const STATES: [(PowerState, &str); 12] = [
    (PowerState::Seek, "cause-seek"),
    (PowerState::WriteSeek, "state-write_seek"),
    (PowerState::Rotate, "cause-rotation"),
    (PowerState::Read, "cause-transfer"),
    (PowerState::Write, "state-write"),
    (PowerState::IdleA, "cause-queue"),
    (PowerState::IdleB, "cause-cache"),
    (PowerState::IdleC, "cause-overhead"),
    (PowerState::Wake, "cause-switch"),
    (PowerState::SpinDown, "cause-parity"),
    (PowerState::Standby, "state-standby"),
    (PowerState::SpinUp, "state-spin_up"),
];

/// Contents of a chart of parts.
struct StackedParts<'a> {
    id: &'a str,
    title: &'a str,
    axis: &'a str,
    /// Names in order, each with its style.
    names: Vec<(&'static str, String)>,
    /// Values of a run in the order of the names; `None` if unknown.
    values: fn(&Report) -> Option<Vec<f64>>,
}

/// Returns the parts of the mean response time of each candidate; `None` if nothing took time.
pub(crate) fn time_parts(candidates: &[CandidateReport<'_>]) -> Option<Drawing> {
    let named = |report: &Report| report.times.time_ms.named();
    let parts = StackedParts {
        id: "time-parts",
        title: "Where the mean response time went",
        axis: "mean response time (ms)",
        names: named(&Report::default())
            .map(|(name, _)| (name, format!("cause-{name}")))
            .to_vec(),
        values: |report| Some(report.times.time_ms.named().map(|(_, ms)| ms).to_vec()),
    };
    parts.draw(candidates)
}

/// Returns the shares of time of the drives in each power state; `None` if unknown.
pub(crate) fn power_states(candidates: &[CandidateReport<'_>]) -> Option<Drawing> {
    let parts = StackedParts {
        id: "power-states",
        title: "In which state the drives were",
        axis: "share of the drives' time (0 to 1)",
        names: STATES
            .map(|(state, look)| (state.name(), look.to_owned()))
            .to_vec(),
        values: |report| {
            let shares = &report.array.energy.as_ref()?.residency_share;
            Some(STATES.map(|(state, _)| shares.in_state(state)).to_vec())
        },
    };
    parts.draw(candidates)
}

impl StackedParts<'_> {
    /// Returns the values of a candidate; NaN becomes zero.
    fn values(&self, candidate: &CandidateReport<'_>) -> Vec<f64> {
        let values = candidate.report().and_then(self.values);
        // A candidate without a report keeps its row, so that all charts of a page have the same
        // rows.
        let mut values = values.unwrap_or_else(|| vec![0.0; self.names.len()]);
        for value in values.iter_mut().filter(|value| !value.is_finite()) {
            // NaN would hide the whole candidate.
            *value = 0.0;
        }
        values
    }

    fn draw(&self, candidates: &[CandidateReport<'_>]) -> Option<Drawing> {
        let rows: Vec<(&CandidateReport<'_>, Vec<f64>)> = candidates
            .iter()
            .map(|candidate| (candidate, self.values(candidate)))
            .collect();
        let largest = rows
            .iter()
            .map(|(_, values)| values.iter().sum())
            .fold(0.0, f64::max);
        // Nothing to stack: all values are zero.
        if largest <= 0.0 {
            return None;
        }
        let present = |part: &usize| {
            rows.iter()
                // A part below a thousandth of the longest row is thinner than a pixel.
                .any(|(_, values)| values[*part] > 0.001 * largest)
        };
        let shown: Vec<usize> = (0..self.names.len()).filter(present).collect();
        let legend: Vec<LegendEntry> = shown
            .iter()
            .map(|&part| {
                let (name, class) = &self.names[part];
                LegendEntry {
                    class: class.clone(),
                    name: (*name).to_owned(),
                    mark: MarkForm::Area,
                }
            })
            .collect();
        let in_words = |(candidate, values): &(&CandidateReport<'_>, Vec<f64>)| {
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
        let StackedParts {
            id, title, axis, ..
        } = *self;
        let frame = SvgTitle {
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

    /// Draws the parts of one candidate. Only parts in the legend are drawn.
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
            // Thinner parts are invisible, and would only lengthen the page.
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
    use std::collections::BTreeSet;

    #[test]
    fn every_state_has_a_look_of_its_own_with_a_pattern_beside_all_colours_but_one() {
        assert_eq!(
            PowerState::ALL
                .map(PowerState::name)
                .into_iter()
                .collect::<BTreeSet<_>>(),
            STATES.map(|(state, _)| state.name()).into()
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
