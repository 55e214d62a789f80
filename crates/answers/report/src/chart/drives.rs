//! Each drive over time: first addresses of its requests, and queue length at their arrival.

use crate::candidate::CandidateReport;
use crate::markup::Markup;
use crate::svg::{
    Axis, LegendEntry, MarkForm, SvgTitle, WIDTH, figure, horizontal, label, line, name_upwards,
    path, plain, polyline, short,
};
use fullstroke_measure::DriveTimeline;

const LEFT: f64 = 110.0;
const RIGHT: f64 = WIDTH - 12.0;
const TOP: f64 = 8.0;
/// Height of one drive's strip.
const STRIP: f64 = 46.0;
const GAP: f64 = 14.0;
/// Largest number of drives in the figure.
const DRIVES: usize = 12;

/// A list of a drive with one number for each column. NaN leaves the column empty.
type TimelineList = fn(&DriveTimeline) -> &[f64];

/// Drawn data of a drive: a band between two lists, and a line through a third list.
struct DriveCurves<'a> {
    id: String,
    title: String,
    unit: &'a str,
    axis: &'a str,
    band: [TimelineList; 2],
    line: TimelineList,
    legend: [&'a str; 2],
}

/// Draws the first addresses of the requests of each drive.
pub(crate) fn offsets(markup: &mut Markup, order: usize, candidate: &CandidateReport<'_>) {
    let curves = DriveCurves {
        id: format!("offsets-{order}"),
        title: format!("{}: where the drives' requests began", candidate.label),
        unit: "GB",
        axis: "offset (GB)",
        band: [|drive| &drive.offset_gb_min, |drive| &drive.offset_gb_max],
        line: |drive| &drive.offset_gb_mean,
        legend: ["from the least to the most", "mean"],
    };
    curves.draw(markup, candidate);
}

/// Draws the number of requests in each drive when another request arrived.
pub(crate) fn queues(markup: &mut Markup, order: usize, candidate: &CandidateReport<'_>) {
    let curves = DriveCurves {
        id: format!("queues-{order}"),
        title: format!(
            "{}: requests in the drives at the arrival of another",
            candidate.label
        ),
        unit: "requests",
        axis: "requests",
        band: [|_| &[], |drive| &drive.ahead_max],
        line: |drive| &drive.ahead_mean,
        legend: ["up to the most", "mean"],
    };
    curves.draw(markup, candidate);
}

impl DriveCurves<'_> {
    fn draw(&self, markup: &mut Markup, candidate: &CandidateReport<'_>) {
        let timeline = candidate
            .report()
            .and_then(|report| report.over_time.timeline.as_ref());
        let Some(timeline) = timeline.filter(|timeline| !timeline.drives.is_empty()) else {
            return;
        };
        let (drives, column_s) = (&timeline.drives, timeline.column_s);
        let shown = &drives[..drives.len().min(DRIVES)];
        let columns = shown
            .iter()
            .map(|drive| drive.requests.len())
            .max()
            .unwrap_or(0);
        let seconds = column_s * columns as f64;
        let most = shown
            .iter()
            .flat_map(|drive| numbers(drive, self.band[1]))
            // One scale for all strips, so that drives can be compared.
            .fold(0.0, f64::max);
        let bottom = TOP + (STRIP + GAP) * shown.len() as f64 - GAP;
        let legend = [
            LegendEntry {
                class: "band".to_owned(),
                name: self.legend[0].to_owned(),
                mark: MarkForm::Area,
            },
            LegendEntry {
                class: "series-0".to_owned(),
                name: self.legend[1].to_owned(),
                mark: MarkForm::Line,
            },
        ];
        let description = self.in_words(shown);
        let frame = SvgTitle {
            id: &self.id,
            title: &self.title,
            description: &description,
            height: bottom + 44.0,
            legend: legend.to_vec(),
        };
        let time = Axis::linear((0.0, seconds), (LEFT, RIGHT));
        figure(markup, frame, |svg| {
            horizontal(svg, &time, (TOP, bottom), "time (s)");
            name_upwards(svg, (TOP + bottom) / 2.0, self.axis);
            for (place, drive) in shown.iter().enumerate() {
                let top = TOP + (STRIP + GAP) * place as f64;
                let scale = Axis::linear((0.0, most), (top + STRIP, top));
                self.strip(svg, &time, &scale, column_s, drive);
                label(
                    svg,
                    (LEFT - 44.0, top + STRIP / 2.0 + 4.0),
                    "end",
                    &format!("drive {}", drive.name),
                );
            }
        });
        if drives.len() > DRIVES {
            let note = format!("{} drives more are in --json.", drives.len() - DRIVES);
            markup.element("p", &[("class", "note")], &note);
        }
    }

    /// Returns the maximum of each drive as text, for readers who cannot see the figure.
    fn in_words(&self, shown: &[DriveTimeline]) -> String {
        let each = shown.iter().map(|drive| {
            let most = numbers(drive, self.band[1]).fold(0.0, f64::max);
            format!(
                "drive {}: at most {} {}",
                drive.name,
                plain((most * 1e3).round() / 1e3),
                self.unit
            )
        });
        format!(
            "A strip for each drive over time. {}.",
            each.collect::<Vec<_>>().join("; ")
        )
    }

    fn strip(
        &self,
        svg: &mut Markup,
        time: &Axis,
        scale: &Axis,
        column_s: f64,
        drive: &DriveTimeline,
    ) {
        // A strip of 46 pixels has room for the two ends of the scale only.
        for value in [0.0, scale.ticks().last().copied().unwrap_or(0.0)] {
            let y = scale.at(value);
            line(svg, (LEFT, y), (RIGHT, y), "rule");
            label(svg, (LEFT - 6.0, y + 4.0), "end small", &plain(value));
        }
        let middle = |column: usize| time.at(column_s * (column as f64 + 0.5));
        let least: Vec<f64> = numbers(drive, self.band[0]).collect();
        let width = time.at(column_s) - time.at(0.0);
        let mut way = String::new();
        // A column without a request is NaN, and stays empty.
        for (column, most) in numbers(drive, self.band[1])
            .enumerate()
            .filter(|(_, most)| !most.is_nan())
        {
            let (upper, lower) = (
                scale.at(most),
                scale.at(least.get(column).copied().unwrap_or(0.0)),
            );
            // At least a pixel, so that a single request stays visible.
            let (left, height) = (middle(column) - width / 2.0, (lower - upper).max(1.0));
            way.push_str(&format!(
                "M{} {}h{}v{}h-{}z",
                short(left),
                short(upper),
                short(width),
                short(height),
                short(width)
            ));
        }
        path(svg, &way, "band");
        let points = numbers(drive, self.line)
            .enumerate()
            .map(|(column, value)| (middle(column), scale.at(value)));
        polyline(svg, points, "series-0");
    }
}

/// Returns the numbers of a list.
fn numbers(drive: &DriveTimeline, list: TimelineList) -> impl Iterator<Item = f64> {
    list(drive).iter().copied()
}
