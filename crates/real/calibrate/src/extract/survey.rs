//! All measurements by timing, one after the other.

use crate::extract::ExtractError;
use crate::extract::angles::Angles;
use crate::extract::arms::arms;
use crate::extract::drive_file::Mechanics;
use crate::extract::machine::ExtractionAlgorithm;
use crate::extract::seek::seeks;
use crate::extract::timing::{ExtractionPace, tracks};
use crate::extract::zero_latency::zero_latency;
use fullstroke_units::Seed;

/// Measures the revolution, the tracks, the number of arms, the seek curve and zero latency.
///
/// # Errors
/// If one of these cannot be measured.
pub async fn survey(
    probe: ExtractionAlgorithm,
    seed: Seed,
    pace: ExtractionPace,
) -> Result<Mechanics, ExtractError> {
    let angles = Angles::measure(probe, seed).await?;
    let (timed, mut angles) = tracks(angles, pace).await?;
    let arms = arms(&angles, seed).await?;
    let seeks = seeks(&mut angles, &timed.table, arms).await?;
    let latency = zero_latency(&mut angles, &timed.table).await?;
    Ok(Mechanics {
        rotation: angles.rotation(),
        timed,
        arms,
        seeks,
        latency,
    })
}
