//! Difference of each candidate to the best, with the interval, which shows if a lead is
//! significant.

use super::bars::whisker;
use crate::candidate::CandidateReport;
use crate::markup::Markup;
use crate::metric::axis;
use crate::svg::{
    Axis, LegendEntry, MarkForm, SvgTitle, WIDTH, figure, fitting, horizontal, label, line,
};
use fullstroke_measure::{Significance, number};

const LEFT: f64 = 290.0;
const RIGHT: f64 = WIDTH - 30.0;
const TOP: f64 = 8.0;
const ROW: f64 = 28.0;

/// Significance of a difference, sign, and meaning.
const SIGNS: [(Significance, &str, &str); 4] = [
    (Significance::Significant, "●", "significant"),
    (
        Significance::Consistent,
        "◆",
        "equal sign in nearly all batches of requests",
    ),
    (
        Significance::NotSignificant,
        "○",
        "not significant: may be chance",
    ),
    (Significance::Unknown, "?", "no interval"),
];

/// Returns the sign for the significance of a difference.
fn sign(significance: Significance) -> &'static str {
    SIGNS
        .iter()
        .find(|(own, ..)| *own == significance)
        .map_or("?", |(_, sign, _)| sign)
}

/// Returns the difference of a candidate to the best, if there is one.
fn difference(candidate: &CandidateReport<'_>) -> Option<f64> {
    let value = candidate.difference()?.value;
    Some(value).filter(|value| value.is_finite())
}

/// Returns half the width of the difference's interval, if there is one.
fn half_width(candidate: &CandidateReport<'_>) -> Option<f64> {
    let width = candidate.difference()?.half_width?;
    Some(width).filter(|width| width.is_finite())
}

fn significance(candidate: &CandidateReport<'_>) -> Significance {
    let difference = candidate.difference();
    difference.map_or(Significance::Unknown, |difference| difference.significance)
}

/// Draws the candidates of a ranking with a difference. Draws nothing if there is none.
pub(crate) fn differences(markup: &mut Markup, by: &str, candidates: &[CandidateReport<'_>]) {
    let shown: Vec<&CandidateReport<'_>> = candidates
        .iter()
        .filter(|candidate| difference(candidate).is_some())
        .collect();
    if shown.is_empty() {
        return;
    }
    let ends = |candidate: &&CandidateReport<'_>| {
        let (value, half_width) = (
            difference(candidate).unwrap_or(0.0),
            half_width(candidate).unwrap_or(0.0),
        );
        [value - half_width, value + half_width]
    };
    // 0 is always in the figure, because the sign of a difference is what the reader looks for.
    let all: Vec<f64> = shown.iter().flat_map(ends).chain([0.0]).collect();
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let scale = Axis::linear((least, most), (LEFT, RIGHT));
    let bottom = TOP + ROW * shown.len() as f64;
    let legend = SIGNS.map(|(_, sign, meaning)| LegendEntry {
        class: String::new(),
        name: meaning.to_owned(),
        mark: MarkForm::Sign(sign),
    });
    let each = shown.iter().map(|candidate| {
        let value = difference(candidate).unwrap_or(f64::NAN);
        let significance = significance(candidate).name();
        format!("{}: {}, {significance}", candidate.label, number(value))
    });
    let description = format!(
        "Each candidate's value less that of the best, with an interval. {}.",
        each.collect::<Vec<_>>().join("; ")
    );
    let title = "Differences to the best, with 95 % intervals over all pairs together";
    let axis = format!("less that of the best: {}", axis(by));
    let frame = SvgTitle {
        id: "differences",
        title,
        description: &description,
        height: bottom + 44.0,
        legend: legend.to_vec(),
    };
    figure(markup, frame, |svg| {
        horizontal(svg, &scale, (TOP, bottom), &axis);
        line(svg, (scale.at(0.0), TOP), (scale.at(0.0), bottom), "zero");
        for (row, candidate) in shown.iter().enumerate() {
            let middle = TOP + ROW * (row as f64 + 0.5);
            let value = difference(candidate).unwrap_or(0.0);
            label(
                svg,
                (LEFT - 8.0, middle + 4.0),
                "end",
                &fitting(&candidate.label),
            );
            if let Some(half_width) = half_width(candidate) {
                whisker(
                    svg,
                    (scale.at(value - half_width), scale.at(value + half_width)),
                    middle,
                );
            }
            let sign = sign(significance(candidate));
            // The sign comes after the whisker, because SVG paints later marks above earlier ones.
            label(svg, (scale.at(value), middle + 5.0), "middle sign", sign);
        }
    });
}
