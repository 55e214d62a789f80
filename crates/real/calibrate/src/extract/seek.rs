//! The seek curve, by tracks crossed.
//!
//! The method looks for the shortest time between a sector of one track and a sector of another
//! (MTBRC of Worthington et al. 1995). A sector that comes by too soon costs a further revolution.
//! The angles of both sectors are known, so the shortest sufficient lead is found by halving. The
//! lead on one and the same track is the command's overhead. The seek is the lead less this
//! overhead.

use crate::extract::ExtractError;
use crate::extract::angles::{Angles, Rotation, nearest};
use crate::extract::arms::share;
use fullstroke_contract::Extent;
use fullstroke_tracks::Boundaries;
use fullstroke_units::Lbn;
use serde::Serialize;

/// Longest seek, in revolutions.
const LEAD_MAX: f64 = 8.0;

/// Number of halvings of the longest seek.
const HALVINGS: u32 = 13;

/// Number of pairs of tracks for each distance.
const PAIRS: usize = 3;

/// Largest number of reads to empty the buffer each time.
const EVICTIONS_MAX: u64 = 64;

/// Number of pairs for the shortest time.
pub(crate) const LEAST_PAIRS: u32 = 200;

/// Number of pairs on one track, for the overhead, which is subtracted from every seek. The second
/// sector of a pair lies in the first of `BEGINNING` parts of the track.
const OVERHEAD_PAIRS: u32 = 800;
const BEGINNING: u64 = 32;

/// Number of sectors tried where the buffer answers.
const TRIES: u32 = 8;

/// A seek between two tracks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Seek {
    /// Number of the first track.
    pub from: u64,
    /// Number of the second track.
    pub to: u64,
    /// Time in ms, without the command's overhead.
    pub ms: f64,
}

/// The seeks of a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seeks {
    /// Time in ms from the end of one command to the first possible movement for the next.
    pub overhead_ms: f64,
    /// All measured seeks.
    pub seeks: Vec<Seek>,
    /// Tracks crossed, and the median of the times in ms.
    pub curve: Vec<(u32, f64)>,
}

/// Measures seeks of the first of `arms` arms over growing distances. `None` counts as one arm.
///
/// # Errors
/// If a read fails.
pub async fn seeks(
    angles: &mut Angles,
    table: &Boundaries,
    arms: Option<u32>,
) -> Result<Seeks, ExtractError> {
    let tracks = table
        .number_of(Lbn(share(table.capacity().0, arms)))
        .unwrap_or(table.len());
    let revolution_ms = angles.rotation().revolution_ns / 1e6;
    if is_by_least(&angles.rotation()) {
        return by_least(angles, table, tracks).await;
    }
    let mut overheads = Vec::new();
    for _ in 0..PAIRS {
        let track = angles.random().below(tracks);
        overheads.push(lead(angles, table, track, track).await? * revolution_ms);
    }
    let overhead_ms = median(&mut overheads);
    let (mut seeks, mut curve) = (Vec::new(), Vec::new());
    let distances = distances(tracks);
    for (index, &distance) in distances.iter().enumerate() {
        angles
            .probe()
            .progress("seeks", index as u64, distances.len() as u64);
        assert!(
            distance < tracks,
            "a seek over {distance} of {tracks} tracks"
        );
        let mut times = Vec::new();
        for pair in 0..PAIRS {
            let low = angles.random().below(tracks - distance);
            let (from, to) = if pair % 2 == 0 {
                (low, low + distance)
            } else {
                (low + distance, low)
            };
            let ms = (lead(angles, table, from, to).await? * revolution_ms - overhead_ms).max(0.0);
            times.push(ms);
            seeks.push(Seek { from, to, ms });
        }
        curve.push((distance as u32, median(&mut times)));
    }
    Ok(Seeks {
        overhead_ms,
        seeks,
        curve,
    })
}

/// Returns true if the device's buffer prevents repeated reads of one sector.
pub(crate) fn is_by_least(rotation: &Rotation) -> bool {
    rotation.evictions > EVICTIONS_MAX || rotation.whole_tracks
}

/// Measures seeks where a buffer is too large to be emptied, or holds whole tracks.
///
/// Each sector is read only once. The result for a distance is the shortest time of many pairs of
/// sectors, less a correction. The correction is the mean of the shortest of as many random
/// latencies.
async fn by_least(
    angles: &mut Angles,
    table: &Boundaries,
    tracks: u64,
) -> Result<Seeks, ExtractError> {
    let mut found = Seeks {
        overhead_ms: 0.0,
        seeks: Vec::new(),
        curve: Vec::new(),
    };
    found.overhead_ms = least(angles, table, tracks, 0)
        .await?
        .map_or(0.0, |seek| seek.ms);
    let distances = distances(tracks);
    // A shorter time cannot be told from zero, and no seek takes zero time.
    let least_ms = angles.rotation().revolution_ns / 1e6 / f64::from(LEAST_PAIRS);
    for (index, &distance) in distances.iter().enumerate() {
        angles
            .probe()
            .progress("seeks", index as u64, distances.len() as u64);
        let Some(seek) = least(angles, table, tracks, distance).await? else {
            continue;
        };
        let ms = (seek.ms - found.overhead_ms).max(least_ms);
        found.seeks.push(Seek { ms, ..seek });
        found.curve.push((distance as u32, ms));
    }
    Ok(found)
}

/// Returns the shortest of many times between two sectors `distance` tracks apart, among the first
/// `tracks`.
async fn least(
    angles: &mut Angles,
    table: &Boundaries,
    tracks: u64,
    distance: u64,
) -> Result<Option<Seek>, ExtractError> {
    let rotation = angles.rotation();
    assert!(
        distance < tracks,
        "a seek over {distance} of {tracks} tracks"
    );
    let mut shortest: Option<(f64, u64)> = None;
    let mut pairs = 0.0;
    let tries = if distance == 0 {
        OVERHEAD_PAIRS
    } else {
        LEAST_PAIRS
    };
    for _ in 0..tries {
        let number = angles.random().below(tracks - distance);
        // Backwards, where nothing is read ahead.
        let (Some(from), Some(to)) = (table.nth(number + distance), table.nth(number)) else {
            continue;
        };
        // On one track, the second sector lies among the first sectors of the track, and the first
        // sector behind them. So the angle between the two takes any value.
        let (skipped, among) = if distance == 0 {
            let begins = (to.sectors.0 / BEGINNING).max(1);
            (begins, begins)
        } else {
            (0, to.sectors.0)
        };
        let first = from.start.0
            + skipped
            + angles
                .random()
                .below(from.sectors.0.saturating_sub(skipped).max(1));
        let second = to.start.0 + angles.random().below(among);
        let one = angles.probe().read(first, 1).await?;
        let other = angles.probe().read(second, 1).await?;
        if one.response_ns().min(other.response_ns()) <= rotation.hit_ns {
            continue;
        }
        pairs += 1.0;
        let ns = other.completed.saturating_since(one.completed).as_nanos() as f64;
        if shortest.is_none_or(|(least, _)| ns < least) {
            shortest = Some((ns, number));
        }
    }
    Ok(shortest.map(|(ns, to)| {
        // The least of n latencies, uniform over a revolution, is a revolution / (n + 1) in the
        // mean.
        let latency = rotation.revolution_ns / (pairs + 1.0);
        Seek {
            from: to + distance,
            to,
            ms: (ns - latency).max(0.0) / 1e6,
        }
    }))
}

/// Returns the numbers of tracks to cross: each up to 8, then by half octaves, and all.
fn distances(tracks: u64) -> Vec<u64> {
    let mut distances: Vec<u64> = (1..=8).collect();
    let mut distance = 8.0_f64;
    while distance < tracks as f64 {
        distance *= std::f64::consts::SQRT_2;
        distances.push(distance.round() as u64);
    }
    distances.push(tracks.saturating_sub(2));
    distances.retain(|&distance| distance > 0 && distance < tracks);
    distances.sort_unstable();
    distances.dedup();
    distances
}

/// Returns the least lead, in revolutions, at which a sector of track `to` is met after a sector of
/// track `from`. The lead runs from the end of one sector to the beginning of the other.
async fn lead(
    angles: &mut Angles,
    table: &Boundaries,
    from: u64,
    to: u64,
) -> Result<f64, ExtractError> {
    let track = |number| {
        table
            .nth(number)
            .ok_or_else(|| ExtractError::cannot_tell("a seek", "there is no such track"))
    };
    let (from, to) = (track(from)?, track(to)?);
    let line = TrackAngles::of(angles, to).await?;
    let (mut low, mut high) = (0.0, LEAD_MAX);
    for _ in 0..HALVINGS {
        let wanted = f64::midpoint(low, high);
        let Some((lead, took)) = try_lead(angles, from, &line, wanted).await? else {
            continue;
        };
        if took < lead + 0.5 {
            high = wanted.min(lead.max(low))
        } else {
            low = wanted.max(lead.min(high))
        }
    }
    Ok((high - line.width).max(0.0))
}

/// Reads a sector of `from`, then the sector of `to` that comes by `wanted` revolutions later.
/// Returns the exact lead of the second sector and its time of completion, both in revolutions
/// after the first completion. Returns `None` if the buffer answers.
async fn try_lead(
    angles: &mut Angles,
    from: Extent,
    to: &TrackAngles,
    wanted: f64,
) -> Result<Option<(f64, f64)>, ExtractError> {
    let rotation = angles.rotation();
    for _ in 0..TRIES {
        let start = from.start.0 + angles.random().below(from.sectors.0);
        let first = angles.probe().read(start, 1).await?;
        if first.response_ns() <= rotation.hit_ns {
            continue;
        }
        let at = first.completed.as_nanos() as f64 / rotation.revolution_ns;
        let offset = to.offset_at(at + wanted);
        let lead = wanted + nearest(to.angle_of(offset) - at - wanted);
        let second = angles.probe().read(to.extent.start.0 + offset, 1).await?;
        if second.response_ns() <= rotation.hit_ns && to.extent.start != from.start {
            // The buffer holds the sector from an earlier read or from read-ahead.
            angles.forget().await?;
            continue;
        }
        let took = second
            .completed
            .saturating_since(first.completed)
            .as_nanos() as f64;
        return Ok(Some((lead, took / rotation.revolution_ns)));
    }
    Ok(None)
}

/// The angles of the sectors of a track.
struct TrackAngles {
    extent: Extent,
    /// Angle of the first sector.
    angle: f64,
    /// Angle of one sector.
    width: f64,
}

impl TrackAngles {
    async fn of(angles: &mut Angles, extent: Extent) -> Result<TrackAngles, ExtractError> {
        let half = extent.sectors.0 / 2;
        let angle = angles.of(extent.start.0).await?;
        let middle = angles.of(extent.start.0 + half).await?;
        // Half a track covers about half a revolution, if the track has no spares.
        let turned = 0.5 + nearest(middle - angle - 0.5);
        let width = if half == 0 { 1.0 } else { turned / half as f64 };
        Ok(TrackAngles {
            extent,
            angle,
            width,
        })
    }

    /// Returns the offset of the sector nearest to `angle`.
    fn offset_at(&self, angle: f64) -> u64 {
        let offset = ((angle - self.angle).rem_euclid(1.0) / self.width).round() as u64;
        if offset < self.extent.sectors.0 {
            offset
        } else {
            0
        }
    }

    fn angle_of(&self, offset: u64) -> f64 {
        self.angle + offset as f64 * self.width
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}
