//! Arm movements under streams (Lloyd, figure 4.4).

use crate::lzvs::{LzvsError, SimulatedReads, TimedReads as _};
use fullstroke_contract::Extent;
use fullstroke_units::{Lbn, Sectors, Seed};
use serde::Serialize;

/// Movements of one drive's arm from the end of one transfer to the beginning of the next,
/// including movements of zero distance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seeks {
    /// The drive's name.
    pub drive: String,
    /// Number of requests to the drive.
    pub requests: u64,
    /// Distances in cylinders, ascending.
    pub cylinders: Vec<u32>,
    /// Mean distance of all movements, in cylinders.
    pub mean_cylinders: f64,
}

/// Reads `sectors` of a random stream, `reads` times. The `streams` streams begin equally far apart
/// and continue sequentially.
///
/// # Errors
/// A read fails, or the streams do not fit.
pub fn stream_seeks(
    target: &mut SimulatedReads,
    streams: u32,
    sectors: Sectors,
    reads: u32,
    seed: Seed,
) -> Result<Vec<Seeks>, LzvsError> {
    let capacity = target.capacity();
    let share = capacity.0 / u64::from(streams.max(1));
    if sectors == Sectors::ZERO || share < sectors.0 {
        return Err(LzvsError::Sweep { sectors, capacity });
    }
    let mut turns = seed.stream("turns of streams");
    let mut done = vec![0; streams as usize];
    target.take_moves();
    for _ in 0..reads {
        let stream = turns.below(u64::from(streams));
        let offset = &mut done[stream as usize];
        target.read(Extent::new(stream * share + *offset, sectors.0))?;
        *offset = if *offset + 2 * sectors.0 > share {
            0
        } else {
            *offset + sectors.0
        };
    }
    let moves = target.take_moves();
    let tracks: Vec<_> = target.graph().drive_tracks().cloned().collect();
    let seeks = |(drive, name): (usize, &str)| {
        let own = moves.iter().filter(|step| step.drive == drive);
        let distance = |step: &crate::lzvs::DriveRequest| {
            let from = tracks[drive].cylinder_of(Lbn(step.from?.saturating_sub(1)));
            Some(from.0.abs_diff(tracks[drive].cylinder_of(Lbn(step.to)).0))
        };
        let mut cylinders: Vec<u32> = own.clone().filter_map(distance).collect();
        cylinders.sort_unstable();
        let sum: u64 = cylinders
            .iter()
            .map(|&cylinders| u64::from(cylinders))
            .sum();
        Seeks {
            drive: name.to_owned(),
            requests: own.count() as u64,
            mean_cylinders: sum as f64 / cylinders.len().max(1) as f64,
            cylinders,
        }
    };
    Ok(target
        .graph()
        .drive_names()
        .enumerate()
        .map(seeks)
        .collect())
}
