//! Power of the drives over time.

use super::curves::{Curve, panel, picture};
use crate::plot::PlotError;
use fullstroke_measure::{Report, WattsReport};

const PAGE: (u32, u32) = (1000, 560);
/// Largest number of drives that are drawn individually. With more drives only the sum is drawn.
const DRIVES: usize = 12;

/// Returns the power of the drives of a run over time, as SVG.
///
/// # Errors
/// If no drive has power figures.
pub fn watts(report: &Report) -> Result<String, PlotError> {
    let watts = report.over_time.watts.as_ref();
    let watts = watts
        .filter(|watts| !watts.drives.is_empty())
        .ok_or(PlotError::NoWatts)?;
    let mut curves = vec![Curve {
        name: "all drives".into(),
        points: points(watts, &watts.all_w),
    }];
    if watts.drives.len() <= DRIVES {
        let each = watts.drives.iter();
        curves.extend(each.map(|drive| Curve {
            name: format!("drive {}", drive.name),
            points: points(watts, &drive.mean_w),
        }));
    }
    let caption = format!("Power, mean of each {} s", watts.span_s);
    picture("power of the drives", PAGE, |page| {
        panel(page, &caption, ["time (s)", "power (W)"], &curves)
    })
}

/// Returns steps: each span's mean at its begin and its end.
fn points(watts: &WattsReport, mean_w: &[f64]) -> Vec<(f64, f64)> {
    let span = |(at, &mean): (usize, &f64)| {
        let begin = at as f64 * watts.span_s;
        // Two points make a step: the mean holds for the whole span. The last span ends with the
        // run.
        [
            (begin, mean),
            ((begin + watts.span_s).min(watts.end_s), mean),
        ]
    };
    mean_w.iter().enumerate().flat_map(span).collect()
}
