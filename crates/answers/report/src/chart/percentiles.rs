//! Share of requests against the response time that the share does not exceed, with room for slow
//! requests.

use crate::candidate::{CandidateReport, LINES};
use crate::markup::Markup;
use crate::svg::{
    Axis, LegendEntry, MarkForm, SvgTitle, WIDTH, figure, label, line, polyline, vertical,
};
use fullstroke_measure::number;

const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 20.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 290.0;

/// Shares with a label on the axis.
const NAMED: [(f64, &str); 6] = [
    (0.0, "0"),
    (0.5, "50"),
    (0.9, "90"),
    (0.99, "99"),
    (0.999, "99.9"),
    (0.9999, "99.99"),
];

/// Draws all candidates with a curve, or the first ones if there are too many.
pub(crate) fn percentiles(markup: &mut Markup, candidates: &[CandidateReport<'_>]) {
    let curves: Vec<(&str, Vec<(f64, f64)>)> = candidates
        .iter()
        .map(|candidate| (candidate.label.as_str(), curve(candidate)))
        .filter(|(_, points)| !points.is_empty())
        .take(LINES)
        .collect();
    let times = || {
        curves
            .iter()
            .flat_map(|(_, points)| points.iter().map(|(_, ms)| *ms))
    };
    let (least, most) = (
        times().fold(f64::INFINITY, f64::min),
        times().fold(0.0, f64::max),
    );
    if curves.is_empty() {
        return;
    }
    // Four nines are the right end of the axis: 99.99 %, the last named share.
    let x = Axis::linear((0.0, 4.0), (LEFT, RIGHT));
    let y = Axis::logarithmic((least, most), (BOTTOM, TOP));
    let legend: Vec<LegendEntry> = curves
        .iter()
        .enumerate()
        .map(|(order, (name, _))| LegendEntry {
            class: format!("series-{order}"),
            name: (*name).to_owned(),
            mark: MarkForm::Line,
        })
        .collect();
    let description = in_words(&curves);
    let frame = SvgTitle {
        id: "percentiles",
        title: "How many requests are done within which time",
        description: &description,
        height: BOTTOM + 44.0,
        legend,
    };
    figure(markup, frame, |svg| {
        vertical(svg, &y, (LEFT, RIGHT), "response (ms)");
        for (share, name) in NAMED {
            let x = x.at(nines(share));
            line(svg, (x, TOP), (x, BOTTOM), "rule");
            label(svg, (x, BOTTOM + 16.0), "middle", name);
        }
        label(
            svg,
            ((LEFT + RIGHT) / 2.0, BOTTOM + 34.0),
            "middle name",
            "requests done (%)",
        );
        for (order, (_, points)) in curves.iter().enumerate() {
            let way = points
                .iter()
                .map(|(share, ms)| (x.at(nines(*share)), y.at(*ms)));
            polyline(svg, way, &format!("series-{order}"));
        }
    });
}

/// Returns the share of requests that are done within each time, in milliseconds; empty if no time
/// was measured.
fn curve(candidate: &CandidateReport<'_>) -> Vec<(f64, f64)> {
    let timeline = candidate
        .report()
        .and_then(|report| report.over_time.timeline.as_ref());
    timeline
        .map_or(&[][..], |timeline| &timeline.percentiles)
        .iter()
        .map(|point| (point.share, point.response_ms))
        .filter(|(share, ms)| share.is_finite() && ms.is_finite() && *ms > 0.0)
        .collect()
}

/// Returns the median and the 99th percentile of each curve as text, for readers who cannot see the
/// figure.
fn in_words(curves: &[(&str, Vec<(f64, f64)>)]) -> String {
    let at = |points: &[(f64, f64)], share: f64| {
        let found = points.iter().find(|(own, _)| (own - share).abs() < 1e-9);
        found.map_or_else(|| "-".to_owned(), |(_, ms)| number(*ms))
    };
    let each = curves.iter().map(|(name, points)| {
        format!(
            "{name}: half within {} ms, 99 % within {} ms",
            at(points, 0.5),
            at(points, 0.99)
        )
    });
    format!(
        "A curve for each candidate. {}.",
        each.collect::<Vec<_>>().join("; ")
    )
}

/// Returns the number of leading nines of a share: 0.99 has two.
fn nines(share: f64) -> f64 {
    -(1.0 - share).log10()
}
