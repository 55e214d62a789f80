//! Both distributions of each disk, overlaid, as SVG.

use crate::validate::{OwnDisk, Sample, ValidateError, Validation};
use plotters::coord::Shift;
use plotters::prelude::*;

const PANEL: (u32, u32) = (640, 400);
const COLUMNS: usize = 2;
const MEASURED: RGBColor = RGBColor(20, 20, 20);
const SIMULATED: RGBColor = RGBColor(200, 30, 40);
/// Points that a curve is drawn with at most; a finer one looks the same.
const POINTS_MAX: usize = 2000;

/// An SVG document with one panel for each validation: the share of requests
/// (%) served within a time (ms), measured and simulated.
///
/// # Errors
/// What the plotting library says.
pub fn plot(validations: &[Validation]) -> Result<String, ValidateError> {
    let panel = |validation: &Validation| Panel {
        title: title(
            &validation.drive,
            validation.rms_ms,
            validation.rms_share,
            validation.noise_ms,
        ),
        measured: validation.measured.clone(),
        simulated: validation.simulated.clone(),
    };
    page(&validations.iter().map(panel).collect::<Vec<_>>())
}

/// The same of the half of a log that judges a fitted drive.
///
/// # Errors
/// What the plotting library says.
pub fn plot_own_disk(disk: &OwnDisk) -> Result<String, ValidateError> {
    let part = &disk.held_out;
    let name = format!("{} held out", disk.log.file);
    page(&[Panel {
        title: title(&name, part.rms_ms, part.rms_share, disk.noise_ms),
        measured: disk.measured.clone(),
        simulated: disk.simulated.clone(),
    }])
}

struct Panel {
    title: String,
    measured: Sample,
    simulated: Sample,
}

fn title(name: &str, rms_ms: f64, rms_share: f64, noise_ms: f64) -> String {
    let percent = 100.0 * rms_share;
    format!("{name}: RMS {rms_ms:.3} ms ({percent:.1} % of the mean), noise {noise_ms:.3} ms")
}

fn page(panels: &[Panel]) -> Result<String, ValidateError> {
    let columns = COLUMNS.min(panels.len()).max(1);
    let rows = panels.len().div_ceil(columns).max(1);
    let size = (PANEL.0 * columns as u32, PANEL.1 * rows as u32);
    let mut svg = String::new();
    {
        let page = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        page.fill(&WHITE)
            .map_err(|error| ValidateError::Plot(error.to_string()))?;
        for (area, panel) in page.split_evenly((rows, columns)).iter().zip(panels) {
            draw(area, panel).map_err(|error| ValidateError::Plot(error.to_string()))?;
        }
        page.present()
            .map_err(|error| ValidateError::Plot(error.to_string()))?;
    }
    Ok(svg)
}

type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

fn draw(area: &DrawingArea<SVGBackend<'_>, Shift>, panel: &Panel) -> Drawn {
    let longest_ms = panel.measured.max().max(panel.simulated.max()).max(1e-3);
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
        ("measured", &panel.measured, MEASURED),
        ("simulated", &panel.simulated, SIMULATED),
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

/// A number as short as it can be written.
fn plain(value: &f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
}

/// The steps of a cumulative distribution: (ms, %).
fn cumulative(sample: &Sample) -> Vec<(f64, f64)> {
    let (values, stride) = (sample.values(), sample.len().div_ceil(POINTS_MAX).max(1));
    let percent = |count: usize| 100.0 * count as f64 / values.len() as f64;
    let mut points = vec![(values.first().copied().unwrap_or(0.0), 0.0)];
    for (index, &ms) in values.iter().enumerate().skip(stride - 1).step_by(stride) {
        points.push((ms, points[points.len() - 1].1));
        points.push((ms, percent(index + 1)));
    }
    if let Some(&longest_ms) = values.last() {
        points.push((longest_ms, 100.0));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_steps_up_at_each_value_and_ends_at_the_whole() {
        let points = cumulative(&Sample::new(vec![3.0, 1.0]));
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
        let points = cumulative(&Sample::new((0..100_001).map(f64::from).collect()));
        assert!(points.len() <= 2 * POINTS_MAX + 2, "{}", points.len());
        assert_eq!(points.last(), Some(&(100_000.0, 100.0)));
    }
}
