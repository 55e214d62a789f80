//! The number of commands held by a device, and the test if the device orders them.
//!
//! Many reads are issued together. Suppose that a device holds `d` reads and serves any of these
//! next. Then the read issued as number `i` can end as number `i - d + 1` at the earliest. So the
//! device holds at least one more read than the number of places by which a read overtakes. A
//! device that serves the nearest read first takes the newest of its `d` reads now and then. So the
//! bound is met.

use crate::extract::ExtractError;
use crate::extract::arms::share;
use crate::extract::machine::{ExtractionAlgorithm, RequestAnswer};
use fullstroke_contract::Extent;
use fullstroke_units::Seed;
use serde::Serialize;

/// Number of reads of one burst: more than a device holds. Where this is not enough, the number is
/// doubled, up to the queue depth of NVMe and SAS hosts.
const READS: u64 = 256;
const READS_MAX: u64 = 2048;

/// Number of bursts.
const BURSTS: u64 = 8;

/// Number of single reads, for comparison.
const SINGLE_READS: u64 = 64;

/// Largest fraction of overtaking reads on a device that serves in order. Noise alone makes reads
/// overtake there.
const OVERTAKING_MAX: f64 = 0.1;

/// Measured properties of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Depth {
    /// Number of commands among which an arm chooses; 1 if the arm serves in order. In that case
    /// the device may hold more commands.
    pub commands: u64,
    /// True if the device orders the commands.
    pub orders: bool,
    /// Reads per second at random addresses, one at a time.
    pub alone_per_s: f64,
    /// Reads per second at random addresses, in a burst.
    pub together_per_s: f64,
}

/// Measures the queue with reads at random addresses of the first of `arms` arms. `None` counts as
/// one arm. Each arm is assumed to have its own queue.
///
/// # Errors
/// If a read fails, or the device takes only one read at a time.
pub async fn depth(
    probe: ExtractionAlgorithm,
    arms: Option<u32>,
    seed: Seed,
) -> Result<Depth, ExtractError> {
    let mut random = seed.stream("depth");
    let capacity = share(probe.capacity().0, arms);
    let mut alone_ns = 0;
    for _ in 0..SINGLE_READS {
        alone_ns += probe.read(random.below(capacity), 1).await?.response_ns();
    }
    let mut reads = READS;
    loop {
        let (mut overtaken, mut overtaking, mut together_ns) = (0, 0, 0);
        for burst in 0..BURSTS {
            probe.progress("bursts", burst, BURSTS);
            let extents = (0..reads)
                .map(|_| Extent::new(random.below(capacity), 1))
                .collect();
            let answers = probe.burst(extents).await?;
            let overtakes = overtakes(&answers);
            overtaken = overtaken.max(overtakes.iter().copied().max().unwrap_or(0));
            overtaking += overtakes.iter().filter(|&&by| by > 0).count() as u64;
            together_ns += answers
                .iter()
                .map(RequestAnswer::response_ns)
                .max()
                .unwrap_or(0);
        }
        // So deep a queue may be limited by the size of the burst, so a larger burst must decide.
        if overtaken + 1 >= reads / 2 && reads < READS_MAX {
            reads *= 2;
            continue;
        }
        let orders = overtaking as f64 > OVERTAKING_MAX * (BURSTS * reads) as f64;
        let per_s = |reads: u64, ns: u64| reads as f64 * 1e9 / ns.max(1) as f64;
        return Ok(Depth {
            commands: if orders { overtaken + 1 } else { 1 },
            orders,
            alone_per_s: per_s(SINGLE_READS, alone_ns),
            together_per_s: per_s(BURSTS * reads, together_ns),
        });
    }
}

/// Returns the number of places by which each read ended earlier than its order of issue. The
/// result is in the order of completion.
fn overtakes(answers: &[RequestAnswer]) -> Vec<u64> {
    let mut issued: Vec<&RequestAnswer> = answers.iter().collect();
    issued.sort_by_key(|answer| answer.issued);
    let mut ended: Vec<(usize, &RequestAnswer)> = issued.into_iter().enumerate().collect();
    ended.sort_by_key(|(_, answer)| answer.completed);
    ended
        .iter()
        .enumerate()
        .map(|(place, (number, _))| number.saturating_sub(place) as u64)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::Time;

    #[test]
    fn a_read_overtakes_by_the_places_that_it_gains() {
        let ended = [30, 40, 10, 20];
        let answers = ended.map(|ns| RequestAnswer {
            completed: Time::from_nanos(ns),
            ..RequestAnswer::default()
        });
        assert_eq!(overtakes(&answers), [2, 2, 0, 0]);
    }
}
