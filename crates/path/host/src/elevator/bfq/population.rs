//! Counts of the active queues, and the queue of the device.

use super::queue::QueueContribution;
use fullstroke_contract::PriorityClass;

/// Counts of the active queues.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Population {
    /// By class.
    busy: [u32; 3],
    raised: u32,
    /// Queues without favour, by level.
    plain: [u32; 8],
}

impl Population {
    /// Returns the number of busy queues: with requests or with the turn.
    pub(super) fn busy(&self) -> u32 {
        self.busy.iter().sum()
    }

    /// Returns the number of favoured queues among the busy ones.
    pub(super) fn raised(&self) -> u32 {
        self.raised
    }

    pub(super) fn change(
        &mut self,
        class: PriorityClass,
        level: u8,
        from: QueueContribution,
        to: QueueContribution,
    ) {
        let step = |count: &mut u32, from: bool, to: bool| {
            *count = *count + u32::from(to) - u32::from(from)
        };
        step(&mut self.busy[class as usize], from.busy, to.busy);
        step(&mut self.raised, from.raised, to.raised);
        step(&mut self.plain[usize::from(level)], from.plain, to.plain);
    }

    /// True if queues should get different shares and this queue does not have the least weight.
    pub(super) fn is_asymmetric_for(&self, level: u8, plain: bool) -> bool {
        let weights = self.plain.iter().filter(|&&count| count > 0).count();
        let least = self.plain.iter().rposition(|&count| count > 0) == Some(usize::from(level));
        let varied = weights > 1 && !(plain && least);
        varied || self.busy.iter().filter(|&&count| count > 0).count() > 1
    }
}

/// Knowledge about the queue of the device. Until measured, the device is assumed to queue
/// requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queueing {
    known: Option<bool>,
    samples: u32,
    most: u32,
}

/// A device without a queue of its own would have fewer requests at once than this:
/// `BFQ_HW_QUEUE_THRESHOLD`. The second constant is `BFQ_HW_QUEUE_SAMPLES`.
pub(super) const DEPTH: u32 = 3;
const SAMPLES: u32 = 32;

impl Queueing {
    /// Returns the largest number of requests in flight in the last samples.
    pub(super) fn most_in_flight(&self) -> u32 {
        self.most
    }

    pub(super) fn is_absent(&self) -> bool {
        self.known == Some(false)
    }

    /// Takes a sample at a completion. `starved` is true if few requests could have been sent: such
    /// a sample says nothing about the device (`bfq_update_hw_tag`).
    pub(super) fn sample(&mut self, in_driver: u32, waiting: u32, starved: bool) {
        self.most = self.most.max(in_driver);
        if self.known == Some(true)
            || in_driver + waiting <= DEPTH
            || (starved && in_driver < DEPTH)
        {
            return;
        }
        self.samples += 1;
        if self.samples > SAMPLES {
            *self = Queueing {
                known: Some(self.most > DEPTH),
                samples: 0,
                most: 0,
            };
        }
    }
}
