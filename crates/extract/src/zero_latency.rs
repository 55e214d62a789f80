//! Whether transfers begin wherever the heads land.
//!
//! Two tests. Whole tracks are read: with zero latency each takes one revolution,
//! wherever the heads land; without, one and a half on average, and the spread is
//! that of rotational latency. And two neighbouring sectors are read in reverse
//! order (Worthington et al. 1995; Qian & Wang, figure 4.1.4): the second comes
//! from the buffer, or waits.

use crate::ExtractError;
use crate::angles::Angles;
use crate::sample::Sample;
use fullstroke_tracks::Boundaries;
use fullstroke_units::Duration;
use serde::Serialize;

/// Whole tracks that are read, and pairs.
const READS: u64 = 200;

/// From one to the next, downward: seeks are short, and nothing is read ahead.
const STEP: u64 = 2;

/// Spread of whole-track reads, in revolutions, below which they wait for nothing:
/// half of what a latency at random has.
const SPREAD_MAX: f64 = 0.145;

/// Of a revolution: what comes sooner did not wait for one.
const SOON: f64 = 0.25;

/// What was seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Whether reads of whole tracks wait for no beginning.
    pub zero_latency: bool,
    /// Reads of whole tracks.
    pub whole_tracks: Sample,
    /// The second reads of reversed pairs.
    pub reversed: Sample,
    /// How many of these came within a quarter of a revolution.
    pub soon_part: f64,
}

/// Tells, of a device whose tracks are known.
///
/// # Errors
/// If a read fails.
pub async fn zero_latency(angles: &mut Angles, table: &Boundaries) -> Result<Latency, ExtractError> {
    let revolution = angles.rotation().revolution_ns;
    let reads = READS.min(table.len() / STEP);
    let top = STEP * reads + angles.random().below(table.len() - STEP * reads + 1);
    let mut whole = Vec::new();
    for number in 0..reads {
        angles.probe().progress("whole tracks", number, reads);
        let Some(track) = table.nth(top - STEP * (number + 1)) else { continue };
        // From any angle.
        let pause = angles.random().unit() * revolution;
        angles.probe().idle(Duration::from_nanos(pause as u64)).await?;
        whole.push(angles.probe().read(track.start.0, track.sectors.0).await?.response_ns());
    }
    let mut second = Vec::new();
    for _ in 0..READS {
        let capacity = angles.probe().capacity().0;
        let lbn = angles.random().below(capacity - 1);
        angles.probe().read(lbn + 1, 1).await?;
        second.push(angles.probe().read(lbn, 1).await?.response_ns());
    }
    let soon = second.iter().filter(|&&ns| (ns as f64) < SOON * revolution).count();
    let whole_tracks = Sample::of(&whole);
    Ok(Latency {
        zero_latency: whole_tracks.deviation_ms * 1e6 < SPREAD_MAX * revolution,
        whole_tracks,
        soon_part: soon as f64 / second.len().max(1) as f64,
        reversed: Sample::of(&second),
    })
}
