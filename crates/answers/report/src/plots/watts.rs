//! What the drives drew over time, as a picture.

use super::curves::{Curve, panel, picture};
use crate::plot::PlotError;
use fullstroke_measure::{Report, WattsReport};

const PAGE: (u32, u32) = (1000, 560);
/// More drives than this are drawn as their sum alone.
const DRIVES: usize = 12;

/// What the drives of a run drew over time, as SVG.
///
/// # Errors
/// If no drive's file says what it draws.
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
    picture("what drives draw", PAGE, |page| {
        panel(page, &caption, ["time (s)", "power (W)"], &curves)
    })
}

/// Steps: each span's mean at its beginning and its end.
fn points(watts: &WattsReport, mean_w: &[f64]) -> Vec<(f64, f64)> {
    let span = |(at, &mean): (usize, &f64)| {
        let begin = at as f64 * watts.span_s;
        [
            (begin, mean),
            ((begin + watts.span_s).min(watts.end_s), mean),
        ]
    };
    mean_w.iter().enumerate().flat_map(span).collect()
}
