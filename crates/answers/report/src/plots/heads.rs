//! Distance between the heads of each candidate's drives over time (Qian & Wang, figure 6.3.3).

use super::curves::{Curve, panel, picture};
use crate::plot::PlotError;
use fullstroke_lab::{Ranked, Ranking};

const PAGE: (u32, u32) = (1000, 560);

/// Returns the distance between the heads of each candidate's drives over time, as SVG.
///
/// # Errors
/// If no candidate has several drives that were all used for at least a window.
pub fn heads(ranking: &Ranking) -> Result<String, PlotError> {
    let curves: Vec<Curve> = ranking
        .candidates
        .iter()
        .map(curve)
        .filter(|curve| !curve.points.is_empty())
        .collect();
    if curves.is_empty() {
        return Err(PlotError::NoHeads);
    }
    let axes = [
        "time (s)",
        "standard deviation of the heads' addresses (MB)",
    ];
    picture("how far apart heads are", PAGE, |page| {
        panel(page, "How far apart the drives' heads are", axes, &curves)
    })
}

/// Returns the mean of each window, at its middle.
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
