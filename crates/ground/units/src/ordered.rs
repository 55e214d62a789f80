//! Sorting and collecting outside of hot paths, with little code for each type.
//!
//! The sort of the standard library is compiled anew for each type and each comparison: 5 KB each
//! time, and a seventeenth of the module for browsers in the end. Here all types share one sort of
//! places, which costs a list of places and a second step that moves the items. The results are
//! those of the standard library.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Sorts items as [`slice::sort_by`] does: equal items keep their order.
pub fn order_by<T>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let order = order_of(items.len(), &mut |one, other| {
        compare(&items[one], &items[other])
    });
    rearrange(order, &mut |one, other| items.swap(one, other));
}

/// Sorts items as [`slice::sort_by_key`] does: items with equal keys keep their order.
pub fn order_by_key<T, K: Ord>(items: &mut [T], mut key: impl FnMut(&T) -> K) {
    order_by(items, |one, other| key(one).cmp(&key(other)));
}

/// Collects pairs as [`BTreeMap::from_iter`] does: of equal keys the last pair stays.
pub fn map_of<K: Ord, V>(pairs: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    for (key, value) in pairs {
        map.insert(key, value);
    }
    map
}

/// Returns the places from 0 to `count` in the order of a comparison. Equal places keep their order.
fn order_of(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&one, &other| compare(one, other));
    order
}

/// Exchanges items until each place has the item that was at the place `order[place]`.
fn rearrange(mut order: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for first in 0..order.len() {
        let mut place = first;
        // Each place of a cycle is marked as settled when its item has come.
        loop {
            let source = std::mem::replace(&mut order[place], place);
            if source == first || source == place {
                break;
            }
            swap(place, source);
            place = source;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;

    #[test]
    fn items_are_ordered_as_by_the_standard_library() {
        let mut random = Seed(1).stream("ordered");
        for count in (0..60).chain([1_000]) {
            // Few different keys, so that the order of equal items shows.
            let items: Vec<(u64, String)> = (0..count)
                .map(|index: u64| (random.below(1 + count / 3), format!("item {index}")))
                .collect();
            let (mut expected, mut found) = (items.clone(), items.clone());
            expected.sort_by_key(|item| item.0);
            order_by_key(&mut found, |item| item.0);
            assert_eq!(found, expected, "{count} items");
            let (mut expected, mut found) = (items.clone(), items.clone());
            expected.sort_by(|one, other| other.1.cmp(&one.1));
            order_by(&mut found, |one, other| other.1.cmp(&one.1));
            assert_eq!(found, expected, "{count} items");
            assert_eq!(
                map_of(items.clone()),
                items.into_iter().collect::<BTreeMap<_, _>>(),
                "{count} pairs"
            );
        }
    }
}
