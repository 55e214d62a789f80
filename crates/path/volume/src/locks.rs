//! Exclusive use of runs of rows, first come, first served.
//!
//! Two writes that share a row must not interleave, because the second would read parity that the
//! first is about to change. Each taker names one run of rows. The taker waits for all earlier
//! takers of any of these rows. A taker that holds its rows waits for nothing more. A deadlock is
//! therefore impossible.
//!
//! The central structure maps runs of rows to the latest taker of each run. A new taker waits only
//! for the latest takers of its rows, because those wait for the takers before them. Each request
//! therefore costs a few look-ups, however long the queue on a row is. A run of a million rows
//! costs no more than one row. In the long run, only the nodes of the map are allocated.

use crate::plan::ChunkRows;
use std::collections::BTreeMap;

/// Handle of one call of [`RowLocks::acquire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockId(u32);

/// Locks on runs of rows; see the module.
#[derive(Debug, Default)]
pub(crate) struct RowLocks {
    /// Disjoint runs of rows, keyed by their first row, each with its latest taker.
    latest: BTreeMap<u64, LockRequest>,
    takers: Vec<LockOwner>,
    free_takers: Vec<u32>,
    /// Entries of the takers' lists of followers.
    links: Vec<LockLink>,
    free_links: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct LockRequest {
    last: u64,
    taker: u32,
}

#[derive(Clone, Copy, Debug)]
struct LockOwner {
    rows: ChunkRows,
    token: u64,
    /// Number of waits for earlier takers; 0 if the taker holds its rows.
    waits: u32,
    /// List of waiting takers, in order of arrival.
    first_follower: Option<u32>,
    last_follower: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct LockLink {
    taker: u32,
    next: Option<u32>,
}

impl RowLocks {
    /// Asks for `rows` in the name of `token`. Returns a handle and true if the rows are free.
    /// Otherwise [`release`](RowLocks::release) later returns the token.
    pub(crate) fn acquire(&mut self, rows: ChunkRows, token: u64) -> (LockId, bool) {
        assert!(rows.first <= rows.last, "{rows:?} are no run of rows");
        let taker = self.new_taker(LockOwner {
            rows,
            token,
            waits: 0,
            first_follower: None,
            last_follower: None,
        });
        while let Some((first, asked)) = self.latest_in(rows.first, rows.last) {
            self.latest.remove(&first);
            self.follow(asked.taker, taker);
            // The parts of the older run outside `rows` keep their taker.
            if first < rows.first {
                self.latest.insert(
                    first,
                    LockRequest {
                        last: rows.first - 1,
                        ..asked
                    },
                );
            }
            if asked.last > rows.last {
                self.latest.insert(rows.last + 1, asked);
            }
        }
        self.latest.insert(
            rows.first,
            LockRequest {
                last: rows.last,
                taker,
            },
        );
        (LockId(taker), self.takers[taker as usize].waits == 0)
    }

    /// Releases the rows of `lock`. Appends to `granted` the tokens with free rows now, in order of
    /// arrival.
    pub(crate) fn release(&mut self, lock: LockId, granted: &mut Vec<u64>) {
        let LockOwner {
            rows,
            first_follower,
            waits,
            ..
        } = self.takers[lock.0 as usize];
        assert_eq!(
            waits, 0,
            "{rows:?} are given back by somebody who waits for them"
        );
        // The map must not name a taker that has released its rows: a later taker would wait for it
        // for ever.
        self.forget(rows, lock.0);
        self.free_takers.push(lock.0);
        let mut next = first_follower;
        while let Some(link) = next {
            let LockLink {
                taker,
                next: behind,
            } = self.links[link as usize];
            self.free_links.push(link);
            let follower = &mut self.takers[taker as usize];
            assert!(
                follower.waits > 0,
                "{:?} follow {rows:?} and wait for nobody",
                follower.rows
            );
            follower.waits -= 1;
            if follower.waits == 0 {
                granted.push(follower.token);
            }
            next = behind;
        }
    }

    /// Returns the last run that overlaps `first..=last`.
    fn latest_in(&self, first: u64, last: u64) -> Option<(u64, LockRequest)> {
        let (&start, &asked) = self.latest.range(..=last).next_back()?;
        (asked.last >= first).then_some((start, asked))
    }

    /// Removes all runs of `taker` from the map. All these runs lie in `rows`.
    fn forget(&mut self, rows: ChunkRows, taker: u32) {
        let mut last = rows.last;
        while let Some((first, asked)) = self.latest_in(rows.first, last) {
            if asked.taker == taker {
                self.latest.remove(&first);
            }
            if first <= rows.first {
                break;
            }
            last = first - 1;
        }
    }

    fn follow(&mut self, leader: u32, follower: u32) {
        let link = take_slot(
            &mut self.links,
            &mut self.free_links,
            LockLink {
                taker: follower,
                next: None,
            },
        );
        self.takers[follower as usize].waits += 1;
        let leader = &mut self.takers[leader as usize];
        match leader.last_follower.replace(link) {
            None => leader.first_follower = Some(link),
            Some(previous) => self.links[previous as usize].next = Some(link),
        }
    }

    fn new_taker(&mut self, taker: LockOwner) -> u32 {
        take_slot(&mut self.takers, &mut self.free_takers, taker)
    }
}

/// Puts `value` into a free place of `slab`, or appends it.
fn take_slot<T>(slab: &mut Vec<T>, free: &mut Vec<u32>, value: T) -> u32 {
    match free.pop() {
        Some(index) => {
            slab[index as usize] = value;
            index
        }
        None => {
            slab.push(value);
            slab.len() as u32 - 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(first: u64, last: u64) -> ChunkRows {
        ChunkRows { first, last }
    }

    fn released(locks: &mut RowLocks, lock: LockId) -> Vec<u64> {
        let mut granted = Vec::new();
        locks.release(lock, &mut granted);
        granted
    }

    #[test]
    fn a_row_is_granted_in_the_order_of_asking() {
        let mut locks = RowLocks::default();
        let (first, free) = locks.acquire(rows(5, 5), 1);
        assert!(free);
        let (second, free) = locks.acquire(rows(5, 5), 2);
        assert!(!free);
        let (third, free) = locks.acquire(rows(5, 5), 3);
        assert!(!free);
        assert_eq!(released(&mut locks, first), [2]);
        assert_eq!(released(&mut locks, second), [3]);
        assert!(released(&mut locks, third).is_empty());
        assert!(locks.latest.is_empty(), "nothing is left behind");
    }

    #[test]
    fn a_long_run_waits_for_all_and_all_wait_for_it() {
        let mut locks = RowLocks::default();
        let (low, _) = locks.acquire(rows(2, 2), 1);
        let (high, _) = locks.acquire(rows(8, 8), 2);
        let (long, free) = locks.acquire(rows(0, 1_000_000), 3);
        assert!(!free);
        let (late, free) = locks.acquire(rows(500, 500), 4);
        assert!(!free);
        assert!(released(&mut locks, low).is_empty());
        assert_eq!(released(&mut locks, high), [3]);
        assert_eq!(released(&mut locks, long), [4]);
        assert!(released(&mut locks, late).is_empty());
        assert!(locks.latest.is_empty());
    }

    /// A simple model of the rule: a list in order of asking.
    #[derive(Default)]
    struct PlainLocks(Vec<(ChunkRows, u64)>);

    impl PlainLocks {
        fn is_free(&self, at: usize) -> bool {
            let (mine, _) = self.0[at];
            self.0[..at]
                .iter()
                .all(|(rows, _)| rows.last < mine.first || mine.last < rows.first)
        }
        fn free(&self) -> Vec<u64> {
            (0..self.0.len())
                .filter(|&at| self.is_free(at))
                .map(|at| self.0[at].1)
                .collect()
        }
    }

    proptest! {
        #[test]
        fn grants_follow_the_plain_rule(
            script in prop::collection::vec((any::<bool>(), 0u64..30, 0u64..8, any::<prop::sample::Index>()), 1..120),
        ) {
            let (mut locks, mut plain) = (RowLocks::default(), PlainLocks::default());
            let mut held: Vec<(u64, LockId)> = Vec::new();
            let mut waiting: Vec<(u64, LockId)> = Vec::new();
            for (token, (take, first, more, pick)) in script.into_iter().enumerate() {
                let token = token as u64;
                if take || held.is_empty() {
                    let wanted = rows(first, first + more);
                    let (lock, free) = locks.acquire(wanted, token);
                    plain.0.push((wanted, token));
                    prop_assert_eq!(free, plain.is_free(plain.0.len() - 1));
                    if free { held.push((token, lock)) } else { waiting.push((token, lock)) }
                } else {
                    let (token, lock) = held.swap_remove(pick.index(held.len()));
                    let granted = released(&mut locks, lock);
                    let before = plain.free();
                    plain.0.retain(|entry| entry.1 != token);
                    let expected: Vec<u64> =
                        plain.free().into_iter().filter(|token| !before.contains(token)).collect();
                    prop_assert_eq!(&granted, &expected);
                    for token in granted {
                        let at = waiting.iter().position(|entry| entry.0 == token).unwrap();
                        held.push(waiting.swap_remove(at));
                    }
                }
            }
        }
    }
}
