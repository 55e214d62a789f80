//! Charts of results, with published points on top.

use crate::StudyTable;
use crate::axes::label;
use crate::config::FigureConfig;
use crate::expression::{ExpressionValue, Problem, ResultSource};
use crate::study::Study;
use fullstroke_measure::Metric;
use serde::Serialize;

/// Returns the numbers of a study's figures, except figures with missing results.
pub fn drawn(study: &Study, results: &StudyTable<'_>) -> Vec<FigureNumbers> {
    let figures = (0..study.figures.len()).filter_map(|number| {
        let caption = study.captions[number]
            .as_ref()
            .map(|caption| caption.filled(&study.evaluator(results)));
        Some(Figure::new(study, number, results)?.numbers(caption))
    });
    figures.collect()
}

/// The numbers of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureNumbers {
    /// Id of the figure in its study.
    pub id: String,
    /// Title above the figure.
    pub title: String,
    /// Label of the abscissa.
    pub x: String,
    /// Label of the ordinate.
    pub y: String,
    /// Caption below the figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
    /// Range of the ordinate.
    pub ordinate: AxisEnds,
    /// Labels below the abscissa, with their positions.
    pub ticks: Vec<Tick>,
    /// The lines.
    pub lines: Vec<DrawnLine>,
}

/// Ends of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AxisEnds {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// A label of the abscissa.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tick {
    /// Position on the abscissa.
    pub at: f64,
    /// Text of the label.
    pub name: String,
}

/// A line, with a point for each tick.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DrawnLine {
    /// Name of the line; empty if there is only one line.
    pub name: String,
    /// The points.
    pub points: Vec<DrawnPoint>,
}

/// Value of the study at a tick, and the published value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DrawnPoint {
    /// Value; `None` if the study has no such point.
    pub value: Option<f64>,
    /// Half the width of the interval of `value`.
    pub ci_half_width: Option<f64>,
    /// The published value.
    pub published: Option<f64>,
}

/// The numbers of a chart, without a style.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    config: FigureConfig,
    /// Labels below the abscissa, with their positions.
    pub(crate) ticks: Vec<(f64, String)>,
    pub(crate) lines: Vec<ChartLine>,
}

/// One line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartLine {
    pub(crate) name: String,
    /// Name with the axis of the value, because a value alone does not name its axis.
    full_name: String,
    /// Value and half the width of its interval for each tick; `None` if the study has no such
    /// point.
    pub(crate) points: Vec<Option<(f64, Option<f64>)>>,
    pub(crate) published: Vec<(f64, f64)>,
}

/// Default rule of a figure: the ordinate begins at zero if the smallest value is less than this
/// share of the largest.
const NEAR_ZERO: f64 = 0.5;

impl Figure {
    /// Returns figure number `index` of a study; `None` if results are missing.
    pub(crate) fn new(study: &Study, index: usize, data: &dyn ResultSource) -> Option<Figure> {
        let config = study.config.figures.get(index)?.clone();
        let along = study.matrix.axis(&config.x).ok()?;
        let axis = &study.matrix.axes[along];
        let numbers: Option<Vec<f64>> = axis.values.iter().map(|value| value.number).collect();
        // Values without numbers stand side by side at equal distances.
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
                    Ok(ExpressionValue::Number(number)) => {
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
            lines.push(ChartLine {
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

    fn numbers(&self, caption: Option<String>) -> FigureNumbers {
        let line = |line: &ChartLine| {
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
        FigureNumbers {
            id: self.config.id.clone(),
            title: self.config.title.clone(),
            x: self.abscissa_name().to_owned(),
            y: self.ordinate_with_unit(),
            caption,
            ordinate: AxisEnds { low, high },
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

    /// Returns the label of the abscissa.
    pub fn abscissa_name(&self) -> &str {
        self.config.x_label.as_ref().unwrap_or(&self.config.x)
    }

    /// Returns the label of the ordinate.
    pub fn ordinate_name(&self) -> &str {
        self.config.y_label.as_ref().unwrap_or(&self.config.y)
    }

    /// Returns the label of the ordinate. The unit is added if there is no explicit label and the
    /// expression is a metric.
    fn ordinate_with_unit(&self) -> String {
        let name = self.ordinate_name();
        let metric = name.split_once('(').map_or(name, |(metric, _)| metric);
        match Metric::parse(metric).map(|metric| metric.unit()) {
            Ok(unit) if self.config.y_label.is_none() && unit != "1" => format!("{name} ({unit})"),
            _ => name.to_owned(),
        }
    }

    /// Returns the id in the study.
    pub(crate) fn id(&self) -> &str {
        &self.config.id
    }

    /// Returns the title above the figure.
    pub fn title(&self) -> &str {
        &self.config.title
    }

    /// Returns the labels below the abscissa, with their positions.
    pub fn ticks(&self) -> &[(f64, String)] {
        &self.ticks
    }

    /// Returns the lines.
    pub fn lines(&self) -> &[ChartLine] {
        &self.lines
    }

    /// Returns the range of the ordinate: from below the smallest value, or from zero, to above the
    /// largest.
    pub fn ordinate(&self) -> (f64, f64) {
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
            // A figure without values still needs an axis.
            return (0.0, 1.0);
        }
        let zero = self.config.zero.unwrap_or(low < NEAR_ZERO * high);
        let (low, high) = if zero {
            (low.min(0.0), high.max(0.0))
        } else {
            (low, high)
        };
        // 8 % keep the points off the frame. A constant line needs a height above 0 for the scale.
        let margin = ((high - low) * 0.08).max(1e-9);
        (
            // An axis that begins at 0 begins exactly there.
            if zero && low == 0.0 {
                0.0
            } else {
                low - margin
            },
            high + margin,
        )
    }
}

impl ChartLine {
    /// Returns the name in the legend; empty if there is only one line.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns value and half the width of its interval for each tick; `None` if the study has no
    /// such point.
    pub fn points(&self) -> &[Option<(f64, Option<f64>)>] {
        &self.points
    }

    /// Returns the published points: positions on the abscissa, and values.
    pub fn published(&self) -> &[(f64, f64)] {
        &self.published
    }
}
