//! Charts of results, published points laid over.

use crate::StudyError;
use crate::axes::label;
use crate::config::FigureConfig;
use crate::expression::{Data, Problem, Value};
use crate::study::Study;
use plotters::prelude::*;

/// One chart's numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    config: FigureConfig,
    /// What stands below the abscissa, and where.
    pub(crate) ticks: Vec<(f64, String)>,
    pub(crate) lines: Vec<Line>,
}

/// One line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// For each tick the value and half the width of its interval; `None` where
    /// the study has no point.
    pub(crate) points: Vec<Option<(f64, Option<f64>)>>,
    published: Vec<(f64, f64)>,
}

const PAGE: (u32, u32) = (900, 540);

/// Colours that are told apart also without red and green (Okabe & Ito, 2008).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
    RGBColor(120, 120, 120),
];

impl Figure {
    /// Figure number `index` of a study; `None` if results are missing.
    pub(crate) fn new(study: &Study, index: usize, data: &dyn Data) -> Option<Figure> {
        let config = study.config.figures.get(index)?.clone();
        let along = study.matrix.axis(&config.x).ok()?;
        let axis = &study.matrix.axes[along];
        let numbers: Option<Vec<f64>> = axis.values.iter().map(|value| value.number).collect();
        // What is no number stands side by side.
        let places = numbers.unwrap_or_else(|| (0..axis.values.len()).map(|at| at as f64).collect());
        let series: Vec<Option<(usize, usize)>> = match &config.series {
            None => vec![None],
            Some(name) => {
                let (axis, values) = study.matrix.domain(name).ok()?;
                values.into_iter().map(|value| Some((axis, value))).collect()
            }
        };
        let mut lines = Vec::with_capacity(series.len());
        for of in series {
            let name = of
                .map_or_else(String::new, |(axis, value)| study.matrix.axes[axis].values[value].name.clone());
            let mut points = Vec::with_capacity(places.len());
            for x in 0..places.len() {
                let bindings = study.figure_bindings(&config, x, of);
                match study.evaluator(data).evaluate(&study.figures[index], &bindings) {
                    Ok(Value::Number(number)) => {
                        points.push(
                            Some((number.mean(), number.half_width())).filter(|point| point.0.is_finite()),
                        );
                    }
                    Err(Problem::Missing) => return None,
                    Ok(_) | Err(Problem::Wrong(_)) => points.push(None),
                }
            }
            let ours = config
                .published
                .iter()
                .filter(|published| published.series.as_ref().is_none_or(|series| label(series) == name));
            let published = ours
                .flat_map(|published| &published.points)
                .filter_map(|(x, y)| Some((places[axis.index(&label(x)).ok()?], *y)))
                .collect();
            lines.push(Line { name, points, published });
        }
        let names = axis.values.iter().map(|value| value.name.clone());
        Some(Figure { ticks: places.into_iter().zip(names).collect(), lines, config })
    }

    /// The chart as SVG.
    pub(crate) fn draw(&self) -> Result<String, StudyError> {
        let mut svg = String::new();
        let drawn = self.draw_into(&mut svg);
        drawn.map_err(|error| StudyError::Figure {
            figure: self.config.id.clone(),
            message: error.to_string(),
        })?;
        Ok(svg)
    }

    fn draw_into(&self, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let page = SVGBackend::with_string(svg, PAGE).into_drawing_area();
        page.fill(&WHITE)?;
        let (low, high) = self.ordinate();
        let places = self.ticks.iter().map(|tick| tick.0);
        let (first, last) = places.fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(at), high.max(at)));
        let margin = ((last - first) * 0.04).max(0.1);
        let mut chart = ChartBuilder::on(&page)
            .caption(&self.config.title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(64)
            .build_cartesian_2d(first - margin..last + margin, low..high)?;
        let numeric = self.ticks.iter().enumerate().any(|(at, tick)| tick.0 != at as f64);
        let named = |value: &f64| self.name_at(*value, numeric);
        chart
            .configure_mesh()
            .x_desc(self.config.x_label.as_ref().unwrap_or(&self.config.x))
            .y_desc(self.config.y_label.as_ref().unwrap_or(&self.config.y))
            .x_labels(self.ticks.len().clamp(2, 12))
            .x_label_formatter(&named)
            .y_label_formatter(&|value| plain(*value))
            .light_line_style(TRANSPARENT)
            .draw()?;
        for (number, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let width = if number < COLOURS.len() { 2 } else { 1 };
            let style = ShapeStyle { color: colour.to_rgba(), filled: true, stroke_width: width };
            let found = || {
                let with_place = self.ticks.iter().zip(&line.points);
                with_place.filter_map(|(tick, point)| point.map(|(value, width)| (tick.0, value, width)))
            };
            let drawn = chart.draw_series(LineSeries::new(found().map(|(x, y, _)| (x, y)), style))?;
            if !line.name.is_empty() {
                drawn.label(&line.name).legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
            }
            chart.draw_series(found().map(|(x, y, _)| Circle::new((x, y), 3, style)))?;
            let bars = found().filter_map(|(x, y, width)| Some((x, y, width.filter(|width| *width > 0.0)?)));
            chart.draw_series(bars.map(|(x, y, width)| {
                PathElement::new([(x, y - width), (x, y + width)], colour.stroke_width(1))
            }))?;
            let crosses = line.published.iter().map(|&point| Cross::new(point, 5, colour.stroke_width(2)));
            chart.draw_series(crosses)?;
        }
        if self.lines.iter().any(|line| !line.published.is_empty()) {
            let nothing: [Cross<(f64, f64), i32>; 0] = [];
            chart
                .draw_series(nothing)?
                .label("published")
                .legend(|(x, y)| Cross::new((x + 10, y), 5, BLACK.stroke_width(2)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()?;
        page.present()?;
        Ok(())
    }

    /// From zero, or below the smallest, to above the largest.
    fn ordinate(&self) -> (f64, f64) {
        let obtained = self.lines.iter().flat_map(|line| line.points.iter().flatten());
        let ends =
            obtained.flat_map(|(value, width)| [value - width.unwrap_or(0.0), value + width.unwrap_or(0.0)]);
        let published = self.lines.iter().flat_map(|line| line.published.iter().map(|point| point.1));
        let (low, high) = ends
            .chain(published)
            .fold((0.0f64, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
        let margin = ((high - low) * 0.08).max(1e-9);
        (if low < 0.0 { low - margin } else { 0.0 }, high + margin)
    }

    fn name_at(&self, value: f64, numeric: bool) -> String {
        let near = |tick: &&(f64, String)| (tick.0 - value).abs() < 1e-9;
        match self.ticks.iter().find(near) {
            Some((_, name)) => name.clone(),
            None if numeric => plain(value),
            None => String::new(),
        }
    }
}

/// A number as short as it can be written.
fn plain(value: f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6 + 0.0)
}
