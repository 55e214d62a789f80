//! Curves beside each other in one frame.

use plotters::coord::Shift;
use plotters::prelude::*;

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A line with its name.
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

const COLORS: [RGBColor; 6] = [
    RGBColor(25, 70, 140),
    RGBColor(200, 30, 40),
    RGBColor(30, 130, 60),
    RGBColor(140, 60, 150),
    RGBColor(220, 130, 20),
    RGBColor(90, 90, 90),
];

/// Draws them from 0 on, with the names of the axes.
pub(crate) fn panel(
    area: &Area<'_>,
    caption: &str,
    axes: [&str; 2],
    curves: &[Curve],
) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let right = points().map(|point| point.0).fold(1e-6, f64::max);
    let top = points().map(|point| point.1).fold(1e-6, f64::max) * 1.15;
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(55)
        .build_cartesian_2d(0.0..right, 0.0..top)?;
    let plain = |value: &f64| format!("{}", (value * 1e6).round() / 1e6);
    chart
        .configure_mesh()
        .x_desc(axes[0])
        .y_desc(axes[1])
        .x_label_formatter(&plain)
        .y_label_formatter(&plain)
        .light_line_style(TRANSPARENT)
        .draw()?;
    for (curve, &color) in curves.iter().zip(COLORS.iter().cycle()) {
        chart
            .draw_series(LineSeries::new(curve.points.iter().copied(), color.stroke_width(2)))?
            .label(&curve.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()
}
