//! Tests if transfers begin at any sector under the heads.
//!
//! The first test reads tracks without their first sector, from random angles. Without zero latency
//! each read ends when the end of the track has passed, at one angle from the first sector. With
//! zero latency a read ends one revolution after the heads landed, at any angle. The test also
//! works where a slow bus makes reads longer than a revolution, and where the times of reads tell
//! nothing.
//!
//! The second test reads two neighbouring sectors in reverse order (Worthington et al. 1995; Qian &
//! Wang, figure 4.1.4). The second read comes from the buffer, or waits.

use crate::extract::ExtractError;
use crate::extract::angles::Angles;
use crate::extract::sample::TimeSummary;
use fullstroke_tracks::Boundaries;
use fullstroke_units::Duration;
use serde::Serialize;

/// Number of whole tracks to read, and number of pairs.
const READS: u64 = 200;

/// Number of tracks from one read to the next, downward: seeks are short, and nothing is read
/// ahead.
const STEP: u64 = 2;

/// Agreement of the angles at which reads end, as the length of their mean. Above the first value
/// reads wait for the beginning of the track; below the second value reads do not wait.
const AGREE: (f64, f64) = (0.8, 0.7);

/// Least time of a whole track in revolutions, where the bus is slower than the platter. From a
/// random sector on, the mean is one and a half without a slow bus.
const SLOW: f64 = 1.9;

/// Least mean time of reads of whole tracks, in revolutions. A shorter extent is no track, and ends
/// at one angle in either case.
const WHOLE: f64 = 0.8;

/// Time in revolutions below which a read did not wait for the platter.
const SOON: f64 = 0.25;

/// Result of the test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ZeroLatencyResult {
    /// True if reads of whole tracks wait for no beginning. `None` if the data come over the bus in
    /// order and more slowly than the platter turns, because zero latency then makes no difference.
    pub zero_latency: Option<bool>,
    /// Agreement of the angles at which the reads end: 0 for random angles, 1 for equal angles.
    pub agreement: f64,
    /// Reads of whole tracks without their first sector.
    pub whole_tracks: TimeSummary,
    /// The second reads of reversed pairs.
    pub reversed: TimeSummary,
    /// Fraction of second reads that ended within a quarter of a revolution.
    pub soon_part: f64,
}

/// Tests a device whose tracks are known.
///
/// # Errors
/// If a read fails, the tracks of `table` are wrong, or the angles neither agree nor differ.
pub async fn zero_latency(
    angles: &mut Angles,
    table: &Boundaries,
) -> Result<ZeroLatencyResult, ExtractError> {
    let (whole, agreement) = whole_tracks(angles, table).await?;
    let revolution = angles.rotation().revolution_ns;
    let taken = TimeSummary::of(&whole).mean_ms * 1e6 / revolution;
    if taken < WHOLE {
        let saw = format!(
            "reads of whole tracks, as the table has them, take {taken:.2} of a revolution; expected {WHOLE} at \
             least: they are no tracks"
        );
        return Err(ExtractError::cannot_tell("zero latency", saw));
    }
    let mut second = Vec::new();
    for _ in 0..READS {
        let capacity = angles.probe().capacity().0;
        let lbn = angles.random().below(capacity - 1);
        angles.probe().read(lbn + 1, 1).await?;
        second.push(angles.probe().read(lbn, 1).await?.response_ns());
    }
    let soon = second
        .iter()
        .filter(|&&ns| (ns as f64) < SOON * revolution)
        .count();
    if (AGREE.1..AGREE.0).contains(&agreement) {
        let saw = format!(
            "the angles at which reads of whole tracks end agree by {agreement:.2}; expected less than {} or more \
             than {}",
            AGREE.1, AGREE.0
        );
        return Err(ExtractError::cannot_tell("zero latency", saw));
    }
    let whole_tracks = TimeSummary::of(&whole);
    let differ = agreement < AGREE.1;
    let slow = whole_tracks.mean_ms * 1e6 > SLOW * revolution;
    Ok(ZeroLatencyResult {
        zero_latency: (differ || !slow).then_some(differ),
        agreement,
        whole_tracks,
        soon_part: soon as f64 / second.len().max(1) as f64,
        reversed: TimeSummary::of(&second),
    })
}

/// Reads tracks without their first sectors, and then the first sectors. Returns the times of the
/// former, and the agreement of the angles between the ends of both.
async fn whole_tracks(
    angles: &mut Angles,
    table: &Boundaries,
) -> Result<(Vec<u64>, f64), ExtractError> {
    let revolution = angles.rotation().revolution_ns;
    let reads = READS.min(table.len() / STEP);
    let top = STEP * reads + angles.random().below(table.len() - STEP * reads + 1);
    let mut whole = Vec::new();
    let (mut cosines, mut sines) = (0.0, 0.0);
    for number in 0..reads {
        angles.probe().progress("whole tracks", number, reads);
        let Some(track) = table
            .nth(top - STEP * (number + 1))
            .filter(|track| track.sectors.0 > 1)
        else {
            continue;
        };
        // Start at any angle.
        let pause = angles.random().unit() * revolution;
        angles
            .probe()
            .idle(Duration::from_nanos(pause as u64))
            .await?;
        let read = angles
            .probe()
            .read(track.start.0 + 1, track.sectors.0 - 1)
            .await?;
        let first = angles.completion(track.start.0).await?;
        whole.push(read.response_ns());
        // Tracks of other lengths end elsewhere, by about a sector.
        let turned =
            (read.completed.as_nanos() as f64 - first) / revolution * std::f64::consts::TAU;
        cosines += turned.cos();
        sines += turned.sin();
    }
    let agreement = cosines.hypot(sines) / whole.len().max(1) as f64;
    Ok((whole, agreement))
}
