//! Requests sorted by position: the store that most disciplines choose from.

use super::Waiting;

/// Requests in ascending order of a key, then of arrival. Queues inside drives
/// hold at most some hundreds, for which moving the tail of a vector is cheaper
/// than a tree; the large records stay where they are.
#[derive(Clone, Debug, Default)]
pub(super) struct Sorted {
    order: Vec<(u64, u32)>,
    records: Vec<Waiting>,
    free: Vec<u32>,
}

impl Sorted {
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn insert(&mut self, key: u64, waiting: Waiting) {
        let record = match self.free.pop() {
            Some(record) => {
                self.records[record as usize] = waiting;
                record
            }
            None => {
                self.records.push(waiting);
                self.records.len() as u32 - 1
            }
        };
        let at = self.order.partition_point(|&(other, _)| other <= key);
        self.order.insert(at, (key, record));
    }

    /// Index of the first request at `key` or behind.
    pub(super) fn at_or_after(&self, key: u64) -> usize {
        self.order.partition_point(|&(other, _)| other < key)
    }

    pub(super) fn key(&self, index: usize) -> Option<u64> {
        self.order.get(index).map(|&(key, _)| key)
    }

    pub(super) fn get(&self, index: usize) -> &Waiting {
        &self.records[self.order[index].1 as usize]
    }

    /// Index of the earliest arrival among the requests with the key of
    /// `index`.
    pub(super) fn first_of_key(&self, index: usize) -> usize {
        self.at_or_after(self.order[index].0)
    }

    pub(super) fn remove(&mut self, index: usize) -> Waiting {
        let (_, record) = self.order.remove(index);
        self.free.push(record);
        self.records[record as usize]
    }
}
