//! Work shared among threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Applies `work` to each item, up to `jobs` at a time. Results are in the order of the items.
pub(crate) fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    jobs: usize,
    work: &(dyn Fn(&T) -> R + Sync),
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take_turns = || {
        let mut done = Vec::new();
        loop {
            // Relaxed: the counter only hands out indexes. The results come through the joins.
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else {
                return done;
            };
            done.push((index, work(item)));
        }
    };
    let mut results: Vec<(usize, R)> = thread::scope(|scope| {
        // The calling thread works too, so there is one thread less.
        let others: Vec<_> = (1..jobs.clamp(1, items.len().max(1)))
            .map(|_| scope.spawn(take_turns))
            .collect();
        let mut all = take_turns();
        for other in others {
            all.extend(other.join().expect("work on an item does not panic"));
        }
        all
    });
    // The threads finish in any order, and the results belong to the order of the items.
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}
