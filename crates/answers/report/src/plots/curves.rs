//! Several curves in one frame.

use crate::plot::PlotError;
use plotters::coord::Shift;
use plotters::prelude::*;

pub(super) type SvgArea<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Result of the plotting library.
pub(super) type DrawResult = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Creates a picture of `what` with this size, drawn by `draw`.
pub(super) fn picture(
    what: &'static str,
    size: (u32, u32),
    draw: impl FnOnce(&SvgArea<'_>) -> DrawResult,
) -> Result<String, PlotError> {
    let mut svg = String::new();
    let page = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    page.fill(&WHITE)
        .and_then(|()| draw(&page))
        .and_then(|()| page.present())
        .map_err(|error| PlotError::Drawing(what, error.to_string()))?;
    // The drawing area borrows the text, and must go before the text is returned.
    drop(page);
    Ok(svg)
}

/// Returns the shortest form of a number.
pub(super) fn plain(value: &f64) -> String {
    // Rounded to hide the error of binary fractions, as in 0.30000000000000004.
    format!("{}", (value * 1e6).round() / 1e6)
}

/// A curve with its name.
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

const COLORS: [RGBColor; 6] = [
    RGBColor(25, 70, 140),
    RGBColor(200, 30, 40),
    RGBColor(30, 130, 60),
    RGBColor(140, 60, 150),
    RGBColor(220, 130, 20),
    RGBColor(90, 90, 90),
];

/// Draws the curves from 0 on, with the labels of the axes.
pub(super) fn panel(
    area: &SvgArea<'_>,
    caption: &str,
    axes: [&str; 2],
    curves: &[Curve],
) -> DrawResult {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    // An axis needs a length above 0 even if all values are 0.
    let right = points().map(|point| point.0).fold(1e-6, f64::max);
    let top = points().map(|point| point.1).fold(1e-6, f64::max) * 1.15;
    // The names stand to the right of the frame, so that they cover no curve.
    let letters = curves
        .iter()
        .map(|curve| curve.name.chars().count())
        .max()
        .unwrap_or(0) as u32;
    // The names take at most half of the panel.
    let names = (54 + 7 * letters).min(area.dim_in_pixel().0 / 2);
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 16))
        .margin(10)
        .margin_right(names)
        .x_label_area_size(40)
        .y_label_area_size(55)
        .build_cartesian_2d(0.0..right, 0.0..top)?;
    chart
        .configure_mesh()
        .x_desc(axes[0])
        .y_desc(axes[1])
        .x_label_formatter(&plain)
        .y_label_formatter(&plain)
        .light_line_style(TRANSPARENT)
        .draw()?;
    for (order, curve) in curves.iter().enumerate() {
        let color = COLORS[order % COLORS.len()];
        let style = color.stroke_width(2);
        // From the seventh curve on the colours repeat with dashed lines.
        match (order / COLORS.len()) as u32 {
            0 => chart.draw_series(LineSeries::new(curve.points.iter().copied(), style))?,
            round => chart.draw_series(DashedLineSeries::new(
                curve.points.iter().copied(),
                10 / round.min(5),
                5,
                style,
            ))?,
        };
    }
    legend(area, curves, names)
}

/// Draws each curve's name beside the curve, in the margin.
fn legend(area: &SvgArea<'_>, curves: &[Curve], margin: u32) -> DrawResult {
    let (width, height) = area.dim_in_pixel();
    let left = (width - margin) as i32 + 14;
    let row = 20
        .min((height as i32 - 50) / curves.len().max(1) as i32)
        .max(1);
    for (order, curve) in curves.iter().enumerate() {
        let y = 45 + row * order as i32;
        let style = COLORS[order % COLORS.len()].stroke_width(2);
        // Curves beyond the number of colours repeat the colours with dashes.
        let long = [20, 7, 4, 2][(order / COLORS.len()).min(3)];
        for from in (0..20).step_by(long as usize + 3) {
            let ends = [(left + from, y), (left + (from + long).min(20), y)];
            area.draw(&PathElement::new(ends.to_vec(), style))?;
        }
        area.draw(&Text::new(
            curve.name.clone(),
            (left + 26, y - 7),
            ("sans-serif", 14),
        ))?;
    }
    Ok(())
}
