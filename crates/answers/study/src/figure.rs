//! Charts of results, published points laid over.

use crate::axes::label;
use crate::config::FigureConfig;
use crate::expression::{Data, Problem, Value};
use crate::study::Study;
use crate::{StudyError, StudyTable};
use fullstroke_measure::Metric;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde::Serialize;

/// The figures of a study without those whose results are missing, for whoever draws them otherwise.
pub fn drawn(study: &Study, results: &StudyTable<'_>) -> Vec<Drawn> {
    let figures = (0..study.figures.len()).filter_map(|number| {
        let caption = study.captions[number]
            .as_ref()
            .map(|caption| caption.filled(study, results));
        Some(Figure::new(study, number, results)?.numbers(caption))
    });
    figures.collect()
}

/// The numbers of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drawn {
    id: String,
    title: String,
    /// What stands at the abscissa.
    x: String,
    /// What stands at the ordinate.
    y: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    caption: Option<String>,
    ordinate: Ends,
    ticks: Vec<Tick>,
    lines: Vec<DrawnLine>,
}

/// Of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Ends {
    low: f64,
    high: f64,
}

/// Of the abscissa.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Tick {
    at: f64,
    name: String,
}

/// A line, with a point for each tick.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct DrawnLine {
    /// Empty where there is but one.
    name: String,
    points: Vec<DrawnPoint>,
}

/// What a study has at a tick, and what was published there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct DrawnPoint {
    value: Option<f64>,
    ci_half_width: Option<f64>,
    published: Option<f64>,
}

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
    /// The same with the axis that it is a value of; a value alone does not say of what.
    full_name: String,
    /// For each tick the value and half the width of its interval; `None` where
    /// the study has no point.
    pub(crate) points: Vec<Option<(f64, Option<f64>)>>,
    pub(crate) published: Vec<(f64, f64)>,
}

const PAGE: (u32, u32) = (900, 540);

/// A legend stands beside the data, not on them.
const LEGEND: u32 = 190;

/// What is between the lines of a legend, pixels.
const LEADING: i32 = 22;

/// What a letter below the abscissa takes, and the ordinate with both margins,
/// pixels.
const LETTER: usize = 7;
const BESIDE_PLOT: usize = 88;

/// What is between two lines of names below the abscissa, pixels.
const NAME_HEIGHT: i32 = 15;

/// Colours that are told apart also without red and green (Okabe & Ito, 2008),
/// then further ones (Tol, "muted", 2021). None stands for two lines.
const COLOURS: [RGBColor; 14] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
    RGBColor(140, 140, 140),
    RGBColor(136, 34, 85),
    RGBColor(51, 34, 136),
    RGBColor(153, 153, 51),
    RGBColor(68, 170, 153),
    RGBColor(204, 102, 119),
    RGBColor(102, 70, 40),
];

/// A figure has no more lines than there are colours.
pub(crate) const LINES_MAX: usize = COLOURS.len();

/// Unless a figure says, its ordinate begins at zero where the smallest value is
/// less than this share of the largest.
const NEAR_ZERO: f64 = 0.5;

impl Figure {
    /// Figure number `index` of a study; `None` if results are missing.
    pub(crate) fn new(study: &Study, index: usize, data: &dyn Data) -> Option<Figure> {
        let config = study.config.figures.get(index)?.clone();
        let along = study.matrix.axis(&config.x).ok()?;
        let axis = &study.matrix.axes[along];
        let numbers: Option<Vec<f64>> = axis.values.iter().map(|value| value.number).collect();
        // What is no number stands side by side.
        let places =
            numbers.unwrap_or_else(|| (0..axis.values.len()).map(|at| at as f64).collect());
        let series: Vec<Option<(usize, usize)>> = match &config.series {
            None => vec![None],
            Some(name) => {
                let (axis, values) = study.matrix.domain(name).ok()?;
                values
                    .into_iter()
                    .map(|value| Some((axis, value)))
                    .collect()
            }
        };
        let mut lines = Vec::with_capacity(series.len());
        for of in series {
            let name = of.map_or_else(String::new, |(axis, value)| {
                study.matrix.axes[axis].values[value].name.clone()
            });
            let mut points = Vec::with_capacity(places.len());
            for x in 0..places.len() {
                let bindings = study.figure_bindings(&config, x, of);
                match study
                    .evaluator(data)
                    .evaluate(&study.figures[index], &bindings)
                {
                    Ok(Value::Number(number)) => {
                        points.push(
                            Some((number.mean(), number.half_width()))
                                .filter(|point| point.0.is_finite()),
                        );
                    }
                    Err(Problem::Missing) => return None,
                    Ok(_) | Err(Problem::Wrong(_)) => points.push(None),
                }
            }
            let ours = config.published.iter().filter(|published| {
                published
                    .series
                    .as_ref()
                    .is_none_or(|series| label(series) == name)
            });
            let published = ours
                .flat_map(|published| &published.points)
                .filter_map(|(x, y)| Some((places[axis.index(&label(x)).ok()?], *y)))
                .collect();
            let full_name = of.map_or_else(String::new, |(axis, value)| {
                let axis = &study.matrix.axes[axis];
                format!("{} {}", axis.name, axis.values[value].name)
            });
            lines.push(Line {
                name,
                full_name,
                points,
                published,
            });
        }
        let names = axis.values.iter().map(|value| value.name.clone());
        Some(Figure {
            ticks: places.into_iter().zip(names).collect(),
            lines,
            config,
        })
    }

    fn numbers(&self, caption: Option<String>) -> Drawn {
        let line = |line: &Line| {
            let points = self
                .ticks
                .iter()
                .zip(&line.points)
                .map(|((place, _), point)| DrawnPoint {
                    value: point.map(|point| point.0),
                    ci_half_width: point.and_then(|point| point.1),
                    published: line
                        .published
                        .iter()
                        .find(|point| point.0 == *place)
                        .map(|point| point.1),
                });
            DrawnLine {
                name: line.full_name.clone(),
                points: points.collect(),
            }
        };
        let (low, high) = self.ordinate();
        Drawn {
            id: self.config.id.clone(),
            title: self.config.title.clone(),
            x: self.abscissa_name().to_owned(),
            y: self.ordinate_with_unit(),
            caption,
            ordinate: Ends { low, high },
            ticks: self
                .ticks
                .iter()
                .map(|(at, name)| Tick {
                    at: *at,
                    name: name.clone(),
                })
                .collect(),
            lines: self.lines.iter().map(line).collect(),
        }
    }

    fn abscissa_name(&self) -> &str {
        self.config.x_label.as_ref().unwrap_or(&self.config.x)
    }

    fn ordinate_name(&self) -> &str {
        self.config.y_label.as_ref().unwrap_or(&self.config.y)
    }

    /// The same with a unit where the expression is a metric alone and nothing else is said.
    fn ordinate_with_unit(&self) -> String {
        let name = self.ordinate_name();
        let metric = name.split_once('(').map_or(name, |(metric, _)| metric);
        match Metric::parse(metric).map(|metric| metric.unit()) {
            Ok(unit) if self.config.y_label.is_none() && unit != "1" => format!("{name} ({unit})"),
            _ => name.to_owned(),
        }
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
        let legend = self.legend();
        let width = if legend.is_empty() {
            PAGE.0
        } else {
            PAGE.0 - LEGEND
        };
        let (plot, beside) = page.split_horizontally(width);
        let (low, high) = self.ordinate();
        let places = self.ticks.iter().map(|tick| tick.0);
        let (first, last) = places.fold((f64::MAX, f64::MIN), |(low, high), at| {
            (low.min(at), high.max(at))
        });
        let margin = ((last - first) * 0.04).max(0.1);
        let numeric = self
            .ticks
            .iter()
            .enumerate()
            .any(|(at, tick)| tick.0 != at as f64);
        let lines = if numeric {
            1
        } else {
            self.name_lines(width as usize)
        };
        let mut chart = ChartBuilder::on(&plot)
            .caption(&self.config.title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(42 + NAME_HEIGHT.unsigned_abs() * (lines as u32 - 1))
            .y_label_area_size(64)
            .build_cartesian_2d(first - margin..last + margin, low..high)?;
        let named = |value: &f64| {
            if lines > 1 {
                String::new()
            } else {
                self.name_at(*value, numeric)
            }
        };
        chart
            .configure_mesh()
            .x_desc(self.abscissa_name())
            .y_desc(self.ordinate_name())
            .x_labels(self.ticks.len().clamp(2, 12))
            .x_label_formatter(&named)
            .y_label_formatter(&|value| plain(*value))
            .light_line_style(TRANSPARENT)
            .draw()?;
        let centred =
            TextStyle::from(("sans-serif", 12).into_font()).pos(Pos::new(HPos::Center, VPos::Top));
        for (at, (place, name)) in self.ticks.iter().enumerate().filter(|_| lines > 1) {
            let (x, y) = chart.backend_coord(&(*place, low));
            let y = y + 6 + NAME_HEIGHT * (at % lines) as i32;
            plot.draw(&Text::new(name.as_str(), (x, y), centred.clone()))?;
        }
        for (line, colour) in self.lines.iter().zip(COLOURS) {
            let style = ShapeStyle {
                color: colour.to_rgba(),
                filled: true,
                stroke_width: 2,
            };
            let found = || {
                let with_place = self.ticks.iter().zip(&line.points);
                with_place
                    .filter_map(|(tick, point)| point.map(|(value, width)| (tick.0, value, width)))
            };
            chart.draw_series(LineSeries::new(found().map(|(x, y, _)| (x, y)), style))?;
            chart.draw_series(found().map(|(x, y, _)| Circle::new((x, y), 3, style)))?;
            let bars = found()
                .filter_map(|(x, y, width)| Some((x, y, width.filter(|width| *width > 0.0)?)));
            chart.draw_series(bars.map(|(x, y, width)| {
                PathElement::new([(x, y - width), (x, y + width)], colour.stroke_width(1))
            }))?;
            let crosses = line
                .published
                .iter()
                .map(|&point| Cross::new(point, 5, colour.stroke_width(2)));
            chart.draw_series(crosses)?;
        }
        for (number, (name, colour)) in legend.into_iter().enumerate() {
            let y = 60 + LEADING * i32::try_from(number).unwrap_or(i32::MAX / LEADING);
            match colour {
                Some(colour) => {
                    beside.draw(&PathElement::new([(4, y), (26, y)], colour.stroke_width(2)))?;
                    beside.draw(&Circle::new((15, y), 3, colour.filled()))?;
                }
                None => beside.draw(&Cross::new((15, y), 5, BLACK.stroke_width(2)))?,
            }
            beside.draw(&Text::new(name, (34, y - 7), ("sans-serif", 14)))?;
        }
        page.present()?;
        Ok(())
    }

    /// Over how many lines the names below an abscissa of this width are spread,
    /// so that none covers another.
    fn name_lines(&self, width: usize) -> usize {
        let longest = self
            .ticks
            .iter()
            .map(|tick| tick.1.chars().count())
            .max()
            .unwrap_or(0);
        let room = width.saturating_sub(BESIDE_PLOT) / self.ticks.len().max(1);
        (longest * LETTER).div_ceil(room.max(1)).clamp(1, 3)
    }

    /// The names of lines with their colours, and without one what crosses are.
    fn legend(&self) -> Vec<(String, Option<RGBColor>)> {
        let named = self
            .lines
            .iter()
            .zip(COLOURS)
            .filter(|(line, _)| !line.name.is_empty());
        let mut legend: Vec<_> = named
            .map(|(line, colour)| (line.name.clone(), Some(colour)))
            .collect();
        if self.lines.iter().any(|line| !line.published.is_empty()) {
            legend.push(("published".to_owned(), None));
        }
        legend
    }

    /// From below the smallest, or from zero, to above the largest.
    fn ordinate(&self) -> (f64, f64) {
        let obtained = self
            .lines
            .iter()
            .flat_map(|line| line.points.iter().flatten());
        let ends = obtained.flat_map(|(value, width)| {
            [value - width.unwrap_or(0.0), value + width.unwrap_or(0.0)]
        });
        let published = self
            .lines
            .iter()
            .flat_map(|line| line.published.iter().map(|point| point.1));
        let all = ends.chain(published);
        let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        if low > high {
            return (0.0, 1.0);
        }
        let zero = self.config.zero.unwrap_or(low < NEAR_ZERO * high);
        let (low, high) = if zero {
            (low.min(0.0), high.max(0.0))
        } else {
            (low, high)
        };
        let margin = ((high - low) * 0.08).max(1e-9);
        (
            if zero && low == 0.0 {
                0.0
            } else {
                low - margin
            },
            high + margin,
        )
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
