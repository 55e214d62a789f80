//! Measured and simulated distributions, one panel for each disk.

use super::curves::{DrawResult, SvgArea, picture, plain};
use crate::plot::PlotError;
use plotters::prelude::*;

const PANEL: (u32, u32) = (640, 400);
const COLUMNS: usize = 2;
const MEASURED: RGBColor = RGBColor(20, 20, 20);
const SIMULATED: RGBColor = RGBColor(200, 30, 40);
/// Largest number of points of a curve. More points look the same.
const POINTS_MAX: usize = 2000;

/// Data of a disk: service times in ms, the shortest first.
#[derive(Clone, Debug)]
pub struct Distributions<'a> {
    /// Title above the panel.
    pub title: String,
    /// Measured times, in ms.
    pub measured_ms: &'a [f64],
    /// Simulated times, in ms.
    pub simulated_ms: &'a [f64],
}

/// Returns one panel for each disk, as SVG: the share of requests (%) served within a time (ms).
///
/// # Errors
/// Errors of the plotting library.
pub fn distributions(panels: &[Distributions<'_>]) -> Result<String, PlotError> {
    let columns = COLUMNS.min(panels.len()).max(1);
    let rows = panels.len().div_ceil(columns).max(1);
    let size = (PANEL.0 * columns as u32, PANEL.1 * rows as u32);
    picture("the plot", size, |page| {
        page.split_evenly((rows, columns))
            .iter()
            .zip(panels)
            .try_for_each(|(area, panel)| draw(area, panel))
    })
}

fn draw(area: &SvgArea<'_>, panel: &Distributions<'_>) -> DrawResult {
    let longest = |sorted_ms: &[f64]| sorted_ms.last().copied().unwrap_or(0.0);
    let longest_ms = longest(panel.measured_ms)
        .max(longest(panel.simulated_ms))
        .max(1e-3);
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d(0.0..longest_ms * 1.02, 0.0..100.0)?;
    chart
        .configure_mesh()
        .x_desc("service time (ms)")
        .y_desc("requests served within (%)")
        .x_label_formatter(&plain)
        .y_label_formatter(&plain)
        .light_line_style(TRANSPARENT)
        .axis_desc_style(("sans-serif", 13))
        .label_style(("sans-serif", 12))
        .draw()?;
    for (name, sample, color) in [
        ("measured", panel.measured_ms, MEASURED),
        ("simulated", panel.simulated_ms, SIMULATED),
    ] {
        chart
            .draw_series(LineSeries::new(cumulative(sample), color.stroke_width(2)))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE)
        .border_style(BLACK)
        .label_font(("sans-serif", 13))
        .draw()
}

/// Returns the steps of a cumulative distribution: (ms, %).
fn cumulative(values: &[f64]) -> Vec<(f64, f64)> {
    // Every n-th value, so that a long run gives a small file.
    let stride = values.len().div_ceil(POINTS_MAX).max(1);
    let percent = |count: usize| 100.0 * count as f64 / values.len() as f64;
    let mut points = vec![(values.first().copied().unwrap_or(0.0), 0.0)];
    for (index, &ms) in values.iter().enumerate().skip(stride - 1).step_by(stride) {
        // Two points for each value, because the distribution of a sample rises in steps.
        points.push((ms, points[points.len() - 1].1));
        points.push((ms, percent(index + 1)));
    }
    if let Some(&longest_ms) = values.last() {
        // The last value may fall between two strides, and the curve must end at 100 %.
        points.push((longest_ms, 100.0));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_steps_up_at_each_value_and_ends_at_the_whole() {
        let points = cumulative(&[1.0, 3.0]);
        assert_eq!(
            points,
            [
                (1.0, 0.0),
                (1.0, 0.0),
                (1.0, 50.0),
                (3.0, 50.0),
                (3.0, 100.0),
                (3.0, 100.0)
            ]
        );
    }

    #[test]
    fn long_samples_are_thinned_and_still_end_at_the_whole() {
        let points = cumulative(&(0..100_001).map(f64::from).collect::<Vec<f64>>());
        assert!(points.len() <= 2 * POINTS_MAX + 2, "{}", points.len());
        assert_eq!(points.last(), Some(&(100_000.0, 100.0)));
    }
}
