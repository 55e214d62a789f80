//! What the drives drew over time, as a picture.

use crate::curves::{Curve, panel};
use fullstroke_measure::{Report, WattsReport};
use plotters::prelude::*;

const PAGE: (u32, u32) = (1000, 560);
/// More drives than this are drawn as their sum alone.
const DRIVES: usize = 12;

/// The picture as SVG.
///
/// # Errors
/// If no drive's file says what it draws.
pub(crate) fn draw(report: &Report) -> Result<String, String> {
    let Some(watts) = report
        .over_time
        .watts
        .as_ref()
        .filter(|watts| !watts.drives.is_empty())
    else {
        let mend = "choose a drive with [power] (`fullstroke drive list`), or give `volume.drive_settings.power`";
        return Err(format!(
            "cannot draw what drives draw: found none whose file says so; {mend}"
        ));
    };
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
    let mut svg = String::new();
    let page = SVGBackend::with_string(&mut svg, PAGE).into_drawing_area();
    let caption = format!("Power, mean of each {} s", watts.span_s);
    let drawn = page
        .fill(&WHITE)
        .and_then(|()| panel(&page, &caption, ["time (s)", "power (W)"], &curves))
        .and_then(|()| page.present());
    drawn.map_err(|error| format!("cannot draw what drives draw: {error}"))?;
    drop(page);
    Ok(svg)
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
