//! Volumes side by side: completion times and rates by address, and arm movements.

use super::curves::{Curve, DrawResult, SvgArea, panel, picture};
use crate::plot::PlotError;
use fullstroke_lab::lzvs::{RateAt, Seeks, Sweep, VolumeRates};
use fullstroke_units::Sectors;

const PAGE: (u32, u32) = (1200, 900);
const UPPER_HEIGHT: u32 = 440;

/// Drawn data of a volume.
#[derive(Clone, Copy, Debug)]
pub struct VolumeDrawing<'a> {
    /// Name of the volume.
    pub name: &'a str,
    /// Completion times of reads by address.
    pub sweep: &'a Sweep,
    /// Transfer rates by address, from the drives' zones.
    pub rates: &'a VolumeRates,
    /// Arm movements of each drive between reads.
    pub seeks: &'a [Seeks],
}

/// Draws the volumes side by side, as SVG; `load` names the load of the arm movements.
///
/// # Errors
/// Errors of the plotting library.
pub fn volumes(all: &[VolumeDrawing<'_>], load: &str) -> Result<String, PlotError> {
    picture("the plot", PAGE, |page| panels(page, all, load))
}

fn panels(page: &SvgArea<'_>, all: &[VolumeDrawing<'_>], load: &str) -> DrawResult {
    let (upper, lower) = page.split_vertically(UPPER_HEIGHT);
    let (left, right) = upper.split_horizontally(PAGE.0 / 2);
    let times = all.iter().map(|drawn| Curve {
        name: drawn.name.to_owned(),
        points: drawn
            .sweep
            .points
            .iter()
            .map(|point| (point.percent, point.mean_ms))
            .collect(),
    });
    let read = all
        .first()
        .map_or(Sectors::ZERO, |drawn| drawn.sweep.read_sectors)
        .bytes();
    let caption = format!("Completion time of {read} reads by address");
    panel(
        &left,
        &caption,
        ["address (% of the volume)", "completion time (ms)"],
        &times.collect::<Vec<_>>(),
    )?;
    let rates = all.iter().map(|drawn| {
        let points = &drawn.rates.points;
        let last = points.last().map_or(1, |point| point.start.0).max(1) as f64;
        let place = |point: &RateAt| (100.0 * point.start.0 as f64 / last, point.mb_per_s);
        Curve {
            name: drawn.name.to_owned(),
            points: points.iter().map(place).collect(),
        }
    });
    let axes = ["address (% of the volume)", "rate (MB/s)"];
    panel(
        &right,
        "Transfer rate that the zones allow",
        axes,
        &rates.collect::<Vec<_>>(),
    )?;
    let seeks = all
        .iter()
        .flat_map(|drawn| drawn.seeks.iter().map(|seeks| seek_curve(drawn, seeks)));
    let caption = format!("Moves of the arms under {load}");
    panel(
        &lower,
        &caption,
        ["distance (cylinders)", "% of moves up to it"],
        &seeks.collect::<Vec<_>>(),
    )
}

/// Returns the share of movements up to each distance.
fn seek_curve(drawn: &VolumeDrawing<'_>, seeks: &Seeks) -> Curve {
    let count = seeks.cylinders.len();
    // 300 to 600 points are enough for a panel of 1200 pixels.
    let step = (count / 300).max(1);
    let place = |(index, &cylinders): (usize, &u32)| {
        (
            f64::from(cylinders),
            100.0 * (index + 1) as f64 / count as f64,
        )
    };
    Curve {
        name: format!(
            "{}, drive {}, mean {:.0}",
            drawn.name, seeks.drive, seeks.mean_cylinders
        ),
        points: seeks
            .cylinders
            .iter()
            .enumerate()
            .step_by(step)
            .map(place)
            .collect(),
    }
}
