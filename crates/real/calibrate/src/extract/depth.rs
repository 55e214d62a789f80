//! How many commands a device takes at once, and whether it orders them.
//!
//! Many reads are issued together. A device that holds `d` of them and serves any
//! of these next can let the one that was issued as number `i` end as number `i -
//! d + 1` at the earliest; so by as much as a read overtakes, the device holds at
//! least one more. One that serves the nearest first takes the newest of its `d`
//! every so often, and the bound is met.

use crate::extract::ExtractError;
use crate::extract::arms::share;
use crate::extract::machine::{Answer, Probe};
use fullstroke_contract::Extent;
use fullstroke_units::Seed;
use serde::Serialize;

/// Reads of one burst: more than a device holds. Twice as many where that is not
/// enough, up to what NVMe's queues and SAS hosts hold.
const READS: u64 = 256;
const READS_MAX: u64 = 2048;

/// Bursts.
const BURSTS: u64 = 8;

/// Single reads, for comparison.
const SINGLE_READS: u64 = 64;

/// Of a device that serves in order, reads overtake by noise only: this much of
/// them at most.
const OVERTAKING_MAX: f64 = 0.1;

/// What was seen of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Depth {
    /// Commands that an arm chooses among; 1 if it serves them in order, and then it
    /// may hold more.
    pub commands: u64,
    /// Whether it orders them.
    pub orders: bool,
    /// Reads a second at random addresses, one at a time.
    pub alone_per_s: f64,
    /// The same of a burst.
    pub together_per_s: f64,
}

/// Tells, with reads at random addresses of the first of `arms`; unless told, of one.
/// Each arm is taken to have a queue of its own.
///
/// # Errors
/// If a read fails, or the device takes one at a time only.
pub async fn depth(probe: Probe, arms: Option<u32>, seed: Seed) -> Result<Depth, ExtractError> {
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
            together_ns += answers.iter().map(Answer::response_ns).max().unwrap_or(0);
        }
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

/// By how many places each read ended sooner than it was issued, in the order in
/// which they ended.
fn overtakes(answers: &[Answer]) -> Vec<u64> {
    let mut issued: Vec<&Answer> = answers.iter().collect();
    issued.sort_by_key(|answer| answer.issued);
    let mut ended: Vec<(usize, &Answer)> = issued.into_iter().enumerate().collect();
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
        let answers = ended.map(|ns| Answer {
            completed: Time::from_nanos(ns),
            ..Answer::default()
        });
        assert_eq!(overtakes(&answers), [2, 2, 0, 0]);
    }
}
