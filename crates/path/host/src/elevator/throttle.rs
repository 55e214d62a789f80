//! A limit on the asynchronous requests that an elevator sees at once. Some schedulers of today's
//! kernel set such a limit (`dd_limit_depth` of `block/mq-deadline.c`, `kyber_limit_depth` of
//! `block/kyber-iosched.c`). A submitter above the limit gets no request yet, so the scheduler
//! cannot sort the further data.
//!
//! The layer's `nr_requests` counts each direction separately and knows nothing of the elevator.
//! Requests above the limit therefore wait here, in order of arrival, until another request has
//! completed.

use super::fifos::{Fifos, RequestFifo};

/// State of a request under the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LimitState {
    /// The limit does not apply to the request.
    #[default]
    Free,
    /// The request counts, and the elevator has it.
    Inside,
    /// The request waits until another one completes.
    Outside,
}

/// The limit, and the requests waiting because of the limit.
#[derive(Debug)]
pub(super) struct Throttle {
    limit: u32,
    inside: u32,
    outside: RequestFifo,
    links: Fifos,
    /// State by slot.
    standings: Vec<LimitState>,
}

impl Throttle {
    /// Returns a limit of `limit` requests, at least 1.
    pub(super) fn new(limit: u32) -> Throttle {
        let (outside, links) = (RequestFifo::default(), Fifos::default());
        Throttle {
            limit,
            inside: 0,
            outside,
            links,
            standings: Vec::new(),
        }
    }

    /// Records an arrival; `counts` says if the limit applies. Returns true if the elevator may
    /// have the request now. Otherwise a later [`leaves`](Throttle::leaves) returns the request.
    pub(super) fn enters(&mut self, slot: u32, counts: bool) -> bool {
        if self.standings.len() <= slot as usize {
            self.standings.resize(slot as usize + 1, LimitState::Free);
        }
        let standing = match counts {
            false => LimitState::Free,
            true if self.inside < self.limit => LimitState::Inside,
            true => LimitState::Outside,
        };
        self.standings[slot as usize] = standing;
        match standing {
            LimitState::Free => {}
            LimitState::Inside => self.inside += 1,
            LimitState::Outside => self.links.push_back(&mut self.outside, slot),
        }
        standing != LimitState::Outside
    }

    /// True if `slot` still waits outside the elevator.
    pub(super) fn keeps_out(&self, slot: u32) -> bool {
        self.standings[slot as usize] == LimitState::Outside
    }

    /// Records the completion of `slot`, or its merge into another. Returns the waiting request to
    /// let in, if there is one.
    pub(super) fn leaves(&mut self, slot: u32) -> Option<u32> {
        match std::mem::take(&mut self.standings[slot as usize]) {
            LimitState::Free => return None,
            LimitState::Inside => self.inside -= 1,
            LimitState::Outside => self.links.remove(&mut self.outside, slot),
        }
        if self.inside == self.limit {
            return None;
        }
        let next = self.links.pop_front(&mut self.outside)?;
        self.standings[next as usize] = LimitState::Inside;
        self.inside += 1;
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_more_than_the_limit_are_inside_and_none_waits_without_need(
            limit in 1u32..5, steps in prop::collection::vec((0u32..20, any::<bool>()), 1..200),
        ) {
            let mut throttle = Throttle::new(limit);
            let (mut held, mut inside, mut outside) = (Vec::new(), Vec::new(), Vec::new());
            for (slot, counts) in steps {
                if !held.contains(&slot) {
                    held.push(slot);
                    let enters = throttle.enters(slot, counts);
                    prop_assert_eq!(enters, !counts || inside.len() < limit as usize);
                    match (counts, enters) {
                        (false, _) => {}
                        (true, true) => inside.push(slot),
                        (true, false) => outside.push(slot),
                    }
                } else {
                    held.retain(|&other| other != slot);
                    inside.retain(|&other| other != slot);
                    outside.retain(|&other| other != slot);
                    let next = (inside.len() < limit as usize && !outside.is_empty()).then(|| outside.remove(0));
                    prop_assert_eq!(throttle.leaves(slot), next);
                    inside.extend(next);
                }
                prop_assert!(outside.iter().all(|&slot| throttle.keeps_out(slot)));
                prop_assert!(inside.iter().all(|&slot| !throttle.keeps_out(slot)));
            }
        }
    }
}
