//! Test of claimed track boundaries (Qian & Wang, figure 4.1.3). Reads of 64 sectors begin at
//! random offsets around the boundaries. Reads that cross a boundary are compared with reads that
//! do not. All reads are also reported by offset, as in the figure.

use crate::extract::ExtractError;
use crate::extract::machine::ExtractionAlgorithm;
use crate::extract::sample::TimeSummary;
use fullstroke_tracks::Boundaries;
use fullstroke_units::Seed;
use serde::Serialize;
use std::collections::BTreeMap;

/// Length of a read in sectors, as in the document.
const SECTORS: u64 = 64;

/// Divisor of the number of tracks: only the first part is measured, as the document measures its
/// first zone. Reads elsewhere would add seeks and so only widen the spread.
const PART: u64 = 16;

/// Least difference between the two kinds of reads, in standard errors.
const ERRORS: f64 = 3.0;

/// Largest number of bins of offsets: as many as a terminal shows of the figure's axis.
const BINS: i64 = 48;

/// Reads that begin at about one offset from the nearest boundary.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Offset {
    /// Distance in sectors from the boundary to the bin's first offset; negative before the
    /// boundary.
    pub from: i64,
    /// Times of the reads.
    pub sample: TimeSummary,
}

/// Times of both kinds of reads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verified {
    /// Reads that cross a boundary.
    pub crossing: TimeSummary,
    /// Reads within a track.
    pub within: TimeSummary,
    /// Mean difference between crossing reads and reads within a track, in ms.
    pub difference_ms: f64,
    /// Standard error of the difference, in ms.
    pub error_ms: f64,
    /// True if crossing reads take longer, beyond chance.
    pub confirmed: bool,
    /// Number of sectors of each bin of `offsets`.
    pub bin_sectors: i64,
    /// Time against the offset from the boundary (Qian & Wang, figure 4.1.3).
    pub offsets: Vec<Offset>,
}

/// Reads `reads` times across boundaries of `table`, and as often within tracks.
///
/// # Errors
/// If the table is not of this device, or its tracks are too short for the test.
pub async fn verify(
    probe: ExtractionAlgorithm,
    table: Boundaries,
    reads: u64,
    seed: Seed,
) -> Result<Verified, ExtractError> {
    let misfit = |error: fullstroke_tracks::MisfitError| {
        ExtractError::cannot_tell("whether these are boundaries", error.to_string())
    };
    table.check_capacity(probe.capacity()).map_err(misfit)?;
    let mut random = seed.stream("verification");
    let (mut crossing, mut within) = (Vec::new(), Vec::new());
    let mut at_offsets = Vec::new();
    let tracks = (table.len() / PART).max(2).min(table.len() - 1);
    let mut tries = 0;
    while (crossing.len() as u64) < reads || (within.len() as u64) < reads {
        tries += 1;
        if tries > 64 * reads {
            let saw = format!("hardly any track has {SECTORS} sectors");
            return Err(ExtractError::cannot_tell(
                "whether these are boundaries",
                saw,
            ));
        }
        probe.progress(
            "reads",
            crossing.len() as u64 + within.len() as u64,
            2 * reads,
        );
        let Some(track) = table.nth(random.below(tracks)) else {
            continue;
        };
        let end = track.end().0;
        let crosses = crossing.len() <= within.len();
        let start = if crosses {
            end.checked_sub(1 + random.below(SECTORS - 1))
        } else {
            track
                .sectors
                .0
                .checked_sub(SECTORS)
                .map(|room| track.start.0 + random.below(room + 1))
        };
        let Some(start) = start.filter(|start| start + SECTORS <= probe.capacity().0) else {
            continue;
        };
        let response = probe.read(start, SECTORS).await?.response_ns();
        // The offset from the boundary behind the track or before the track, whichever is nearer.
        let (behind, before) = (
            start as i64 - end as i64,
            start as i64 - track.start.0 as i64,
        );
        at_offsets.push((if -behind <= before { behind } else { before }, response));
        if crosses {
            crossing.push(response)
        } else {
            within.push(response)
        }
    }
    let (crossing, within) = (TimeSummary::of(&crossing), TimeSummary::of(&within));
    let difference_ms = crossing.mean_ms - within.mean_ms;
    let error_ms = crossing.error_ms().hypot(within.error_ms());
    let confirmed = difference_ms > ERRORS * error_ms;
    let (bin_sectors, offsets) = binned(&at_offsets);
    Ok(Verified {
        crossing,
        within,
        difference_ms,
        error_ms,
        confirmed,
        bin_sectors,
        offsets,
    })
}

/// Groups times in ns by offset. Returns the width of a bin, which is half a read or a multiple,
/// and the bins that are not empty.
fn binned(at_offsets: &[(i64, u64)]) -> (i64, Vec<Offset>) {
    let half = SECTORS as i64 / 2;
    let reach = at_offsets
        .iter()
        .map(|(offset, _)| offset.abs())
        .max()
        .unwrap_or(0);
    let width = half * (2 * reach / (half * BINS) + 1);
    let mut bins: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
    for &(offset, response) in at_offsets {
        bins.entry(offset.div_euclid(width))
            .or_default()
            .push(response);
    }
    let offset = |(bin, times): (i64, Vec<u64>)| Offset {
        from: bin * width,
        sample: TimeSummary::of(&times),
    };
    (width, bins.into_iter().map(offset).collect())
}
