//! A figure of a study: lines with intervals, and published points as crosses.

use super::curves::{DrawResult, SvgArea, picture};
use crate::plot::PlotError;
use fullstroke_study::{ChartLine, Figure};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const PAGE: (u32, u32) = (900, 540);

/// Width of the legend, which stands beside the data so that it covers none.
const LEGEND: u32 = 190;

/// Distance of the lines of a legend, in pixels.
const LEADING: i32 = 22;

/// Width of a letter below the abscissa, and of the ordinate with both margins, in pixels.
const LETTER: usize = 7;
const BESIDE_PLOT: usize = 88;

/// Distance of two lines of names below the abscissa, in pixels.
const NAME_HEIGHT: i32 = 15;

/// Colours that readers without red-green vision can distinguish (Okabe & Ito, 2008), then further
/// colours (Tol, "muted", 2021). Each line has a colour of its own.
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

/// There are as many colours as lines of a figure.
const _: () = assert!(COLOURS.len() == fullstroke_study::LINES_MAX);

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Returns the figure as SVG.
///
/// # Errors
/// Errors of the plotting library.
pub fn figure(figure: &Figure) -> Result<String, PlotError> {
    picture("the figure", PAGE, |page| draw(figure, page))
}

fn draw(figure: &Figure, page: &SvgArea<'_>) -> DrawResult {
    let legend = legend(figure);
    let width = if legend.is_empty() {
        PAGE.0
    } else {
        PAGE.0 - LEGEND
    };
    let (plot, beside) = page.split_horizontally(width);
    frame(figure, &plot, width)?;
    draw_legend(&beside, legend)
}

/// Draws the axes with the names below them, and the lines.
fn frame(figure: &Figure, plot: &SvgArea<'_>, width: u32) -> DrawResult {
    let (low, high) = figure.ordinate();
    let places = figure.ticks().iter().map(|tick| tick.0);
    let (first, last) = places.fold((f64::MAX, f64::MIN), |(low, high), at| {
        (low.min(at), high.max(at))
    });
    // At least 0.1, because a figure with one place has no width otherwise.
    let margin = ((last - first) * 0.04).max(0.1);
    let numeric = figure
        .ticks()
        .iter()
        .enumerate()
        .any(|(at, tick)| tick.0 != at as f64);
    let lines = if numeric {
        1
    } else {
        name_lines(figure, width as usize)
    };
    let mut chart = ChartBuilder::on(plot)
        .caption(figure.title(), ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(42 + NAME_HEIGHT.unsigned_abs() * (lines as u32 - 1))
        .y_label_area_size(64)
        .build_cartesian_2d(first - margin..last + margin, low..high)?;
    let named = |value: &f64| {
        // Plotters writes one line of names. Several lines are drawn below by hand.
        if lines > 1 {
            String::new()
        } else {
            name_at(figure, *value, numeric)
        }
    };
    chart
        .configure_mesh()
        .x_desc(figure.abscissa_name())
        .y_desc(figure.ordinate_name())
        .x_labels(figure.ticks().len().clamp(2, 12))
        .x_label_formatter(&named)
        .y_label_formatter(&|value| plain(*value))
        .light_line_style(TRANSPARENT)
        .draw()?;
    let centred =
        TextStyle::from(("sans-serif", 12).into_font()).pos(Pos::new(HPos::Center, VPos::Top));
    for (at, (place, name)) in figure.ticks().iter().enumerate().filter(|_| lines > 1) {
        let (x, y) = chart.backend_coord(&(*place, low));
        let y = y + 6 + NAME_HEIGHT * (at % lines) as i32;
        plot.draw(&Text::new(name.as_str(), (x, y), centred.clone()))?;
    }
    for (line, colour) in figure.lines().iter().zip(COLOURS) {
        draw_line(&mut chart, figure, line, colour)?;
    }
    Ok(())
}

/// Draws one line, its points with their intervals, and published points as crosses.
fn draw_line(
    chart: &mut Chart<'_, '_>,
    figure: &Figure,
    line: &ChartLine,
    colour: RGBColor,
) -> DrawResult {
    let style = ShapeStyle {
        color: colour.to_rgba(),
        filled: true,
        stroke_width: 2,
    };
    let found = || {
        let with_place = figure.ticks().iter().zip(line.points());
        with_place.filter_map(|(tick, point)| point.map(|(value, width)| (tick.0, value, width)))
    };
    chart.draw_series(LineSeries::new(found().map(|(x, y, _)| (x, y)), style))?;
    chart.draw_series(found().map(|(x, y, _)| Circle::new((x, y), 3, style)))?;
    let bars =
        found().filter_map(|(x, y, width)| Some((x, y, width.filter(|width| *width > 0.0)?)));
    chart.draw_series(bars.map(|(x, y, width)| {
        PathElement::new([(x, y - width), (x, y + width)], colour.stroke_width(1))
    }))?;
    let crosses = line
        .published()
        .iter()
        .map(|&point| Cross::new(point, 5, colour.stroke_width(2)));
    chart.draw_series(crosses)?;
    Ok(())
}

fn draw_legend(beside: &SvgArea<'_>, legend: Vec<(String, Option<RGBColor>)>) -> DrawResult {
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
    Ok(())
}

/// Returns the number of lines for the names below an abscissa of this width, so that no name
/// covers another.
fn name_lines(figure: &Figure, width: usize) -> usize {
    let longest = figure
        .ticks()
        .iter()
        .map(|tick| tick.1.chars().count())
        .max()
        .unwrap_or(0);
    let room = width.saturating_sub(BESIDE_PLOT) / figure.ticks().len().max(1);
    (longest * LETTER).div_ceil(room.max(1)).clamp(1, 3)
}

/// Returns the names of lines with their colours, and the meaning of crosses without a colour.
fn legend(figure: &Figure) -> Vec<(String, Option<RGBColor>)> {
    let named = figure
        .lines()
        .iter()
        .zip(COLOURS)
        .filter(|(line, _)| !line.name().is_empty());
    let mut legend: Vec<_> = named
        .map(|(line, colour)| (line.name().to_owned(), Some(colour)))
        .collect();
    if figure
        .lines()
        .iter()
        .any(|line| !line.published().is_empty())
    {
        legend.push(("published".to_owned(), None));
    }
    legend
}

fn name_at(figure: &Figure, value: f64, numeric: bool) -> String {
    let near = |tick: &&(f64, String)| (tick.0 - value).abs() < 1e-9;
    match figure.ticks().iter().find(near) {
        Some((_, name)) => name.clone(),
        None if numeric => plain(value),
        None => String::new(),
    }
}

/// Returns the shortest form of a number, never minus zero.
fn plain(value: f64) -> String {
    // The sum with 0 turns -0 into 0.
    format!("{}", (value * 1e6).round() / 1e6 + 0.0)
}
