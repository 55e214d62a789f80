//! How far apart the heads of each candidate's drives were, over time, as a picture
//! (Qian & Wang, figure 6.3.3).

use crate::curves::{Curve, panel};
use fullstroke_lab::{Ranked, Ranking};
use plotters::prelude::*;

const PAGE: (u32, u32) = (1000, 560);

/// The picture as SVG.
///
/// # Errors
/// If no candidate has several drives that were all used for as long as a window.
pub(crate) fn draw(ranking: &Ranking) -> Result<String, String> {
    let curves: Vec<Curve> = ranking
        .candidates
        .iter()
        .map(curve)
        .filter(|curve| !curve.points.is_empty())
        .collect();
    if curves.is_empty() {
        let why = "found no stack with several drives that were all used for 20 simulated seconds";
        return Err(format!("cannot draw how far apart heads are: {why}"));
    }
    let mut svg = String::new();
    let page = SVGBackend::with_string(&mut svg, PAGE).into_drawing_area();
    let axes = [
        "time (s)",
        "standard deviation of the heads' addresses (MB)",
    ];
    let drawn = page
        .fill(&WHITE)
        .and_then(|()| panel(&page, "How far apart the drives' heads are", axes, &curves))
        .and_then(|()| page.present());
    drawn.map_err(|error| format!("cannot draw how far apart heads are: {error}"))?;
    drop(page);
    Ok(svg)
}

/// The mean of each window, at its middle.
fn curve(ranked: &Ranked) -> Curve {
    let heads = &ranked.report.heads;
    let place = |(index, &apart): (usize, &f64)| (heads.window_s * (index as f64 + 0.5), apart);
    Curve {
        name: ranked.label(),
        points: heads
            .windows_apart_mb
            .iter()
            .enumerate()
            .map(place)
            .collect(),
    }
}
