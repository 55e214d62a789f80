//! A figure of a study: a line for each value of an axis, with intervals, and published points as
//! crosses.

use super::abscissa::Abscissa;
use crate::candidate::LINES;
use crate::markup::Markup;
use crate::svg::{
    Axis, Drawing, LegendEntry, MarkForm, SvgTitle, WIDTH, line, path, polyline, short, vertical,
};
use crate::value::{NumberFormat, ReportColumn, TableCell, column, table};
use fullstroke_study::FigureNumbers;

const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 20.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 260.0;

/// Half the size of a cross.
const ARM: f64 = 4.5;

/// Numbers of a line chart.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    pub(crate) title: String,
    /// Label of the abscissa.
    pub(crate) x: String,
    /// Label of the ordinate.
    pub(crate) y: String,
    pub(crate) caption: Option<String>,
    /// Range of the ordinate.
    pub(crate) ordinate: (f64, f64),
    /// Positions on the abscissa, with their labels.
    pub(crate) ticks: Vec<(f64, String)>,
    pub(crate) lines: Vec<GraphLine>,
}

/// A line, with a point for each tick.
#[derive(Clone, Debug)]
pub(crate) struct GraphLine {
    /// Name of the line; empty if there is only one line.
    pub(crate) name: String,
    pub(crate) points: Vec<GraphPoint>,
}

/// A value with half its interval, and the published value.
#[derive(Clone, Debug)]
pub(crate) struct GraphPoint {
    value: TableCell,
    ci_half_width: TableCell,
    published: TableCell,
}

impl GraphPoint {
    /// Creates a value without interval and published value.
    pub(crate) fn of(value: TableCell) -> GraphPoint {
        GraphPoint {
            value,
            ci_half_width: TableCell::Nothing,
            published: TableCell::Nothing,
        }
    }
}

impl From<&FigureNumbers> for Graph {
    fn from(drawn: &FigureNumbers) -> Graph {
        let lines = drawn.lines.iter().map(|line| GraphLine {
            name: line.name.clone(),
            points: line
                .points
                .iter()
                .map(|point| GraphPoint {
                    value: point.value.into(),
                    ci_half_width: point.ci_half_width.into(),
                    published: point.published.into(),
                })
                .collect(),
        });
        Graph {
            title: drawn.title.clone(),
            x: drawn.x.clone(),
            y: drawn.y.clone(),
            caption: drawn.caption.clone(),
            ordinate: (drawn.ordinate.low, drawn.ordinate.high),
            ticks: drawn
                .ticks
                .iter()
                .map(|tick| (tick.at, tick.name.clone()))
                .collect(),
            lines: lines.collect(),
        }
    }
}

/// Draws the chart and a collapsed table of its numbers.
pub(crate) fn lines(markup: &mut Markup, id: &str, drawn: &Graph) {
    let Some(chart) = line_chart(id, drawn) else {
        return;
    };
    chart.show(markup);
    if let Some(caption) = drawn.caption.as_ref().filter(|words| !words.is_empty()) {
        markup.element("p", &[("class", "note")], caption);
    }
    if drawn.lines.len() > LINES {
        let note = format!("{} lines more are in the table.", drawn.lines.len() - LINES);
        markup.element("p", &[("class", "note")], &note);
    }
    markup.within("details", &[], |markup| {
        markup.element("summary", &[], "Its numbers");
        numbers(markup, drawn);
    });
}

/// Returns the chart alone; `None` if there is nothing to draw.
pub(crate) fn line_chart(id: &str, drawn: &Graph) -> Option<Drawing> {
    let ticks = &drawn.ticks;
    let (low, high) = drawn.ordinate;
    let drawable = |at: &f64| at.is_finite();
    if ticks.is_empty()
        || !ticks
            .iter()
            .map(|(at, _)| at)
            .chain([&low, &high])
            .all(drawable)
    {
        return None;
    }
    let ends = |(low, high): (f64, f64), at: &f64| (low.min(*at), high.max(*at));
    let places: Vec<f64> = ticks.iter().map(|(at, _)| *at).collect();
    let (first, last) = places.iter().fold((f64::INFINITY, f64::NEG_INFINITY), ends);
    // A figure with one place on the axis still needs a width.
    let margin = ((last - first) * 0.04).max(0.1);
    let x = Axis::linear((first - margin, last + margin), (LEFT, RIGHT));
    let y = Axis::linear((low, high), (BOTTOM, TOP));
    let shown = &drawn.lines[..drawn.lines.len().min(LINES)];
    let abscissa = Abscissa::new(
        ticks
            .iter()
            .map(|(place, name)| (name.as_str(), x.at(*place))),
    );
    let legend = legend(shown);
    let frame = SvgTitle {
        id,
        title: &drawn.title,
        description: &description(drawn, shown),
        height: BOTTOM + abscissa.height(),
        legend,
    };
    Some(Drawing::of(frame, |svg| {
        vertical(svg, &y, (LEFT, RIGHT), &drawn.y);
        abscissa.draw(svg, BOTTOM, (LEFT + RIGHT) / 2.0, &drawn.x);
        for (order, own) in shown.iter().enumerate() {
            one(svg, order, &own.points, &places, (&x, &y));
        }
    }))
}

fn one(
    svg: &mut Markup,
    order: usize,
    points: &[GraphPoint],
    places: &[f64],
    (x, y): (&Axis, &Axis),
) {
    let of = |number: fn(&GraphPoint) -> &TableCell| {
        let each = places.iter().zip(points);
        each.map(move |(place, point)| (x.at(*place), number(point).float()))
    };
    let values = || of(|point| &point.value);
    let way = values().map(|(at, value)| (at, value.map_or(f64::NAN, |value| y.at(value))));
    polyline(svg, way, &format!("series-{order}"));
    let firm = format!("series-{order} firm");
    for ((at, value), (_, half_width)) in values().zip(of(|point| &point.ci_half_width)) {
        if let (Some(value), Some(half_width)) = (value, half_width) {
            line(
                svg,
                (at, y.at(value - half_width)),
                (at, y.at(value + half_width)),
                &firm,
            );
        }
    }
    for (at, value) in of(|point| &point.published) {
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

fn name_of(line: &GraphLine) -> &str {
    match line.name.as_str() {
        "" => "value",
        name => name,
    }
}

fn is_published(line: &GraphLine) -> bool {
    line.points
        .iter()
        .any(|point| point.published.float().is_some())
}

fn legend(lines: &[GraphLine]) -> Vec<LegendEntry> {
    let line = |(order, line): (usize, &GraphLine)| LegendEntry {
        class: format!("series-{order}"),
        name: name_of(line).to_owned(),
        mark: MarkForm::Line,
    };
    let mut legend: Vec<LegendEntry> = lines.iter().enumerate().map(line).collect();
    if lines.iter().any(is_published) {
        legend.push(LegendEntry {
            class: String::new(),
            name: "published".to_owned(),
            mark: MarkForm::Sign("×"),
        });
    }
    legend
}

fn description(drawn: &Graph, lines: &[GraphLine]) -> String {
    let names: Vec<&str> = lines.iter().map(name_of).collect();
    let crosses = if lines.iter().any(is_published) {
        " Crosses are published values."
    } else {
        ""
    };
    format!(
        "{} over {}: {}.{crosses} The table below has the numbers.",
        drawn.y,
        drawn.x,
        names.join(", ")
    )
}

/// Writes a row for each value of the abscissa.
fn numbers(markup: &mut Markup, drawn: &Graph) {
    type Part = (fn(&GraphPoint) -> &TableCell, &'static str);
    const PARTS: [Part; 3] = [
        (|point| &point.value, ""),
        (|point| &point.ci_half_width, " ±"),
        (|point| &point.published, ", published"),
    ];
    let headings: Vec<[String; 3]> = drawn
        .lines
        .iter()
        .map(|line| PARTS.map(|(_, what)| format!("{}{what}", name_of(line))))
        .collect();
    let columns: Vec<ReportColumn<'_, usize>> = drawn
        .lines
        .iter()
        .zip(&headings)
        .flat_map(|(line, headings)| {
            let each = PARTS.iter().zip(headings);
            each.map(move |((part, _), heading)| {
                column(heading, NumberFormat::Plain, move |place: &usize| {
                    line.points
                        .get(*place)
                        .map_or(TableCell::Nothing, |point| part(point).clone())
                })
            })
        })
        .collect();
    let places: Vec<usize> = (0..drawn.ticks.len()).collect();
    let named: Vec<(String, &usize)> = drawn
        .ticks
        .iter()
        .map(|(_, name)| name.clone())
        .zip(&places)
        .collect();
    table(
        markup,
        &format!("{}: {} by {}", drawn.title, drawn.y, drawn.x),
        &columns,
        &named,
    );
}
