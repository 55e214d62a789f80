//! A bound on the asynchronous requests that an elevator sees at once, as
//! today's kernel sets it for some of its schedulers: who would exceed it is
//! not yet given a request, so that the scheduler cannot sort what it would ask
//! for (`dd_limit_depth` of `block/mq-deadline.c`, `kyber_limit_depth` of
//! `block/kyber-iosched.c`).
//!
//! The layer's `nr_requests` counts each direction on its own and knows no
//! elevator; those beyond the bound are therefore kept here, in order of
//! arrival, until one of the others has completed.

use super::fifos::{Fifo, Fifos};

/// Where a request stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    /// It does not count.
    #[default]
    Free,
    /// It counts, and the elevator has it.
    Inside,
    /// It waits for one of the others to complete.
    Outside,
}

/// The bound, and who waits because of it.
#[derive(Debug)]
pub(super) struct Throttle {
    limit: u32,
    inside: u32,
    outside: Fifo,
    links: Fifos,
    /// By slot.
    standings: Vec<Standing>,
}

impl Throttle {
    /// At most `limit` requests inside; at least 1.
    pub(super) fn new(limit: u32) -> Throttle {
        let (outside, links) = (Fifo::default(), Fifos::default());
        Throttle {
            limit,
            inside: 0,
            outside,
            links,
            standings: Vec::new(),
        }
    }

    /// A request has come, and `counts` or not. Whether the elevator may have it
    /// now; otherwise [`leaves`](Throttle::leaves) names it later.
    pub(super) fn enters(&mut self, slot: u32, counts: bool) -> bool {
        if self.standings.len() <= slot as usize {
            self.standings.resize(slot as usize + 1, Standing::Free);
        }
        let standing = match counts {
            false => Standing::Free,
            true if self.inside < self.limit => Standing::Inside,
            true => Standing::Outside,
        };
        self.standings[slot as usize] = standing;
        match standing {
            Standing::Free => {}
            Standing::Inside => self.inside += 1,
            Standing::Outside => self.links.push_back(&mut self.outside, slot),
        }
        standing != Standing::Outside
    }

    /// Whether the elevator does not have `slot` yet.
    pub(super) fn keeps_out(&self, slot: u32) -> bool {
        self.standings[slot as usize] == Standing::Outside
    }

    /// `slot` has completed, or has become part of another. The request that may
    /// come in in its place, if one waits for that.
    pub(super) fn leaves(&mut self, slot: u32) -> Option<u32> {
        match std::mem::take(&mut self.standings[slot as usize]) {
            Standing::Free => return None,
            Standing::Inside => self.inside -= 1,
            Standing::Outside => self.links.remove(&mut self.outside, slot),
        }
        if self.inside == self.limit {
            return None;
        }
        let next = self.links.pop_front(&mut self.outside)?;
        self.standings[next as usize] = Standing::Inside;
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
