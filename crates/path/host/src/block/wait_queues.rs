//! The wait queues of submitters that found no free request (`struct sbq_wait_state` of
//! `lib/sbitmap.c`, Linux 6.18).
//!
//! 1. Each wait goes to the next of eight queues in a ring.
//! 2. Each wake-up goes to the next queue with a sleeper in the same ring. The two positions in the
//!    ring are independent. So a submitter may be woken before others that wait for longer.
//! 3. After a number of completions, the batch, as many sleepers are woken.

/// Number of queues: `SBQ_WAIT_QUEUES`.
const QUEUES: u8 = 8;
/// Largest batch: `SBQ_WAKE_BATCH`.
const BATCH_MAX: u32 = 8;

/// Positions in the ring of wait queues, and the completions that were not yet answered by
/// wake-ups.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitQueues {
    /// Queue of the next wait: `hctx->wait_index`.
    next_wait: u8,
    /// First queue of the next wake-up: `sbq->wake_index`.
    next_wake: u8,
    batch: u32,
    /// Completions since the last batch (`completion_cnt` - `wakeup_cnt`).
    completions: u32,
}

impl WaitQueues {
    /// Returns the queues of a layer with `requests` requests. `least` is the smallest number of
    /// these requests to which the elevator limits a submitter, and `words` the number of words of
    /// the map of requests (`sbq_calc_wake_batch`). The positions outlive a load on a real device,
    /// so a load finds any: here they are a quarter of the ring apart.
    pub(super) fn new(requests: u32, least: u32, words: u32) -> WaitQueues {
        let usable = if least >= requests {
            requests
        } else {
            // Each word is limited by itself, to one request at least.
            (least / words.max(1)).max(1) * words
        };
        WaitQueues {
            next_wait: 0,
            next_wake: QUEUES / 4,
            batch: (usable / u32::from(QUEUES)).clamp(1, BATCH_MAX),
            completions: 0,
        }
    }

    /// Returns the queue of a new sleeper.
    pub(super) fn sleep(&mut self) -> u8 {
        let queue = self.next_wait;
        self.next_wait = (queue + 1) % QUEUES;
        queue
    }

    /// Notes `completions` while somebody sleeps. Returns the number of wake-ups, in whole batches.
    pub(super) fn completed(&mut self, completions: u32) -> u32 {
        self.completions += completions;
        let due = self.completions / self.batch * self.batch;
        self.completions -= due;
        due
    }

    /// Chooses sleepers for one batch. `sleepers(queue, most)` wakes up to `most` sleepers of a
    /// queue and returns their number.
    pub(super) fn wake(&mut self, mut sleepers: impl FnMut(u8, u32) -> u32) {
        let mut left = self.batch;
        for _ in 0..QUEUES {
            let queue = self.next_wake;
            // The position moves on before the look into the queue, so that no queue is emptied
            // before the others have had a turn (`__sbitmap_queue_wake_up`).
            self.next_wake = (queue + 1) % QUEUES;
            left -= sleepers(queue, left);
            if left == 0 {
                return;
            }
        }
    }

    /// Returns the number of completions for as many wake-ups.
    pub(super) fn batch(&self) -> u32 {
        self.batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_an_eighth_of_the_usable_requests_and_at_most_eight() {
        let batch = |requests, least, words| WaitQueues::new(requests, least, words).batch();
        assert_eq!(
            [batch(8, 8, 4), batch(32, 32, 4), batch(256, 256, 4)],
            [1, 4, 8]
        );
        // bfq and mq-deadline limit some submitters to one request of each word, kyber to 75 %.
        assert_eq!([batch(256, 1, 4), batch(256, 192, 4)], [1, 8]);
    }

    #[test]
    fn sleepers_are_woken_in_the_order_of_the_ring_from_the_wake_position_on() {
        let mut queues = WaitQueues::new(8, 8, 4);
        let mut sleeping: Vec<u8> = (0..4).map(|_| queues.sleep()).collect();
        let mut woken = Vec::new();
        for _ in 0..4 {
            assert_eq!(queues.completed(1), 1);
            queues.wake(|queue, most| {
                let before = sleeping.len();
                sleeping.retain(|&other| other != queue);
                let found = (before - sleeping.len()) as u32;
                assert!(found <= most);
                woken.extend((0..found).map(|_| queue));
                found
            });
        }
        // The third to come is the first to go.
        assert_eq!(woken, [2, 3, 0, 1]);
    }

    #[test]
    fn completions_are_answered_in_batches() {
        let mut queues = WaitQueues::new(32, 32, 4);
        let due: Vec<u32> = (0..8).map(|_| queues.completed(1)).collect();
        assert_eq!(due, [0, 0, 0, 4, 0, 0, 0, 4]);
    }
}
