//! Gain of a queue: positioning becomes shorter with the number of requests to choose from. The
//! curve of a drive's own queue discipline is measured once on the simulated mechanics.

use super::access::ArmModel;
use super::load::PLACES;
use super::moments::Moments;
use fullstroke_contract::{
    ConfigError, Effect, Effects, Extent, Node, NodeContext, Port, Request, RequestId, Wake,
};
use fullstroke_drive::{Drive, DriveConfig, DriveModel};
use fullstroke_units::{Random, Sectors, Seed, Time};

/// Queue depths at which the curve is measured.
const DEPTHS: [usize; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];

/// Number of measured accesses at each depth, and number of accesses before the measurement.
const ACCESSES: u64 = 1500;
const WARMING: u64 = 200;

/// Length of an access in sectors.
const LENGTH: u64 = 8;

/// Gain curve of a drive.
#[derive(Clone, Debug)]
pub struct QueueGain {
    /// Mean and variance of positioning relative to a single request, by number of requests from 1
    /// on.
    factors: Vec<(f64, f64)>,
}

impl QueueGain {
    /// Measures the curve of a drive with random reads over the whole drive, at constant queue
    /// depth.
    ///
    /// # Errors
    /// As [`DriveModel::new`].
    pub fn new(model: &DriveModel) -> Result<QueueGain, ConfigError> {
        let config = DriveConfig {
            buffer: None,
            electronics: Default::default(),
            // The curve is that of the positioning alone.
            command_overhead_ms: 0.0,
            queued_overhead_ms: 0.0,
            power: None,
            spin_down: None,
            faults: None,
            freeblock: None,
            limits: None,
            shingled: None,
            zoned: None,
            flash: None,
            ..model.config().clone()
        };
        let depth = config.queue.depth as usize;
        let bare = DriveModel::new(config)?;
        let used = bare.mechanics().geometry().capacity().0;
        let one = ArmModel::new(&bare, used).access(
            &[1.0 / PLACES as f64; PLACES],
            Moments::of(LENGTH as f64),
            false,
        );
        let mut found = vec![(1.0, (1.0, 1.0))];
        for &outstanding in DEPTHS
            .iter()
            .skip(1)
            .filter(|&&outstanding| outstanding <= depth)
        {
            let access = kept_full(&bare, used, outstanding as u64)?;
            let positioning = Moments::varied(
                access.mean - one.transfer.mean,
                access.variance() - one.transfer.variance(),
            );
            let alone = one.positioning();
            let factors = (
                positioning.mean / alone.mean,
                positioning.variance() / alone.variance(),
            );
            found.push((outstanding as f64, factors));
        }
        let last = found[found.len() - 1].0 as usize;
        Ok(QueueGain {
            // One factor for each number, so that the chain of states only looks them up.
            factors: (1..=last)
                .map(|count| between(&found, count as f64))
                .collect(),
        })
    }

    /// Returns the positioning of a request chosen from `count`. `alone` is the positioning of a
    /// single request.
    pub fn positioning(&self, alone: Moments, count: usize) -> Moments {
        // Beyond the measured depths the gain of the greatest depth holds.
        let (mean, variance) = self.factors[count.clamp(1, self.factors.len()) - 1];
        Moments::varied(alone.mean * mean, alone.variance() * variance)
    }

    /// Returns the mean positioning of a request chosen from `count`, relative to a single request.
    pub fn factor(&self, count: usize) -> f64 {
        self.factors[count.clamp(1, self.factors.len()) - 1].0
    }
}

/// Interpolates along the logarithm of the number.
fn between(found: &[(f64, (f64, f64))], count: f64) -> (f64, f64) {
    let above = found
        .iter()
        .position(|(at, _)| *at >= count)
        .unwrap_or(found.len() - 1);
    let ((from, low), (to, high)) = (found[above.saturating_sub(1)], found[above]);
    let part = if to > from {
        // Interpolated by the logarithm, because the measured depths are spaced by ratios.
        (count / from).ln() / (to / from).ln()
    } else {
        1.0
    };
    (
        low.0 + part * (high.0 - low.0),
        low.1 + part * (high.1 - low.1),
    )
}

/// Returns the time of an access while `outstanding` requests are always outstanding.
fn kept_full(model: &DriveModel, used: u64, outstanding: u64) -> Result<Moments, ConfigError> {
    // A constant seed, so that two predictions for one drive have the same table.
    let mut full = ClosedLoad {
        drive: model.drive()?,
        random: Seed(1).stream("queue gain"),
        places: used / LENGTH,
        sent: 0,
        out: Effects::new(),
    };
    (0..outstanding).for_each(|_| full.send(Time::ZERO));
    let (mut before, mut accesses) = (Time::ZERO, Vec::with_capacity(ACCESSES as usize));
    for done in 0..WARMING + ACCESSES {
        let now = full.next();
        if done >= WARMING {
            accesses.push((1.0, Moments::of(now.since(before).as_secs_f64())));
        }
        // In a closed load the time between two completions is the time of an access, waiting
        // excluded.
        before = now;
        full.send(now);
    }
    Ok(Moments::mixed(accesses.into_iter()))
}

/// A drive with its closed load.
struct ClosedLoad {
    drive: Drive,
    random: Random,
    places: u64,
    sent: u64,
    out: Effects,
}

impl ClosedLoad {
    fn send(&mut self, now: Time) {
        let start = self.random.below(self.places) * LENGTH;
        let extent = Extent {
            start: fullstroke_units::Lbn(start),
            sectors: Sectors(LENGTH),
        };
        let request = Request {
            id: RequestId(self.sent),
            extent,
            ..Request::default()
        };
        self.sent += 1;
        self.drive.submit(
            now,
            Port::FIRST,
            request,
            &mut NodeContext::alone(&mut self.out),
        );
    }

    /// Returns the time when the next request ends.
    fn next(&mut self) -> Time {
        loop {
            let done = self.out.drain().find_map(|effect| match effect {
                Effect::Complete { completion, .. } => Some(completion.finished),
                _ => None,
            });
            if let Some(at) = done {
                return at;
            }
            let (Wake::Work(at) | Wake::Chore(at)) = self.drive.next_wake();
            self.drive.wake(at, &mut NodeContext::alone(&mut self.out));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::access::tests::model;
    use fullstroke_drive::QueueConfig;

    fn curve(discipline: &str) -> QueueGain {
        let queue = QueueConfig {
            discipline: discipline.to_owned(),
            ..QueueConfig::default()
        };
        let config = DriveConfig {
            queue,
            ..model("curve", Some(4)).config().clone()
        };
        QueueGain::new(&DriveModel::new(config).unwrap()).unwrap()
    }

    #[test]
    fn a_queue_that_chooses_by_access_time_gains_most_and_one_in_order_nothing() {
        let [satf, sstf, fcfs] = ["satf", "sstf", "fcfs"].map(curve);
        for count in [4, 16, 32] {
            assert!(
                satf.factor(count) < sstf.factor(count) && sstf.factor(count) < 0.95,
                "{count}"
            );
            assert!(
                (fcfs.factor(count) - 1.0).abs() < 0.03,
                "{}",
                fcfs.factor(count)
            );
        }
        assert!(
            satf.factor(32) < 0.4 && satf.factor(1) == 1.0 && satf.factor(100) == satf.factor(32)
        );
        let alone = Moments::varied(0.012, 1e-5);
        assert!(satf.positioning(alone, 8).mean < satf.positioning(alone, 2).mean);
    }

    #[test]
    fn a_drive_that_takes_one_command_at_a_time_gains_nothing() {
        let queue = QueueConfig {
            depth: 1,
            ..QueueConfig::default()
        };
        let config = DriveConfig {
            queue,
            ..model("one", Some(4)).config().clone()
        };
        assert_eq!(
            QueueGain::new(&DriveModel::new(config).unwrap())
                .unwrap()
                .factor(32),
            1.0
        );
    }
}
