//! Joins concurrent writes of one row.
//!
//! A write of part of a row costs reads, and a flush of a journal; a write of the whole row costs
//! neither. Sequential writers send several requests at the same time. If a request ends in the
//! middle of a row, the next continues there. So the first writer of a row waits a moment for
//! others, if there are any.

use fullstroke_units::SECTOR_BYTES;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest wait of the first writer: less than a flush takes on most devices.
const PATIENCE: Duration = Duration::from_millis(1);

/// Rows whose first writer waits.
#[derive(Debug, Default)]
pub(crate) struct Gatherings {
    rows: Mutex<BTreeMap<u64, Arc<Gathering>>>,
}

/// Bytes to be written in one row.
#[derive(Debug)]
pub(crate) struct Gathering {
    began: Instant,
    state: Mutex<GatheredRow>,
    changed: Condvar,
}

#[derive(Debug)]
struct GatheredRow {
    /// True for each sector of the row with a writer.
    brought: Vec<bool>,
    /// Parts of the joined writers: first sector in the row, and bytes.
    joined: Vec<(usize, Vec<u8>)>,
    /// Result of the write; `None` before its end.
    ended: Option<bool>,
}

/// Role of a writer in a gathering.
pub(crate) enum WriterRole {
    /// The writer is the first, and writes for all.
    First(Arc<Gathering>),
    /// The first writer writes the bytes of this one.
    Joined(Arc<Gathering>),
}

impl Gatherings {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Gathering>>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds bytes from the sector `first` of a row of so many sectors.
    pub(crate) fn enter(&self, row: u64, sectors: usize, first: usize, bytes: &[u8]) -> WriterRole {
        let count = bytes.len() / SECTOR_BYTES as usize;
        assert!(
            count > 0
                && first + count <= sectors
                && bytes.len().is_multiple_of(SECTOR_BYTES as usize),
            "{} bytes from sector {first} on are no part of a row of {sectors} sectors",
            bytes.len()
        );
        let mut rows = self.lock();
        if let Some(gathering) = rows.get(&row) {
            let mut state = gathering.lock();
            state.brought[first..first + count].fill(true);
            state.joined.push((first, bytes.to_vec()));
            drop(state);
            gathering.changed.notify_all();
            return WriterRole::Joined(Arc::clone(gathering));
        }
        let mut brought = vec![false; sectors];
        brought[first..first + count].fill(true);
        let state = Mutex::new(GatheredRow {
            brought,
            joined: Vec::new(),
            ended: None,
        });
        let gathering = Arc::new(Gathering {
            began: Instant::now(),
            state,
            changed: Condvar::new(),
        });
        rows.insert(row, Arc::clone(&gathering));
        WriterRole::First(gathering)
    }

    /// Waits until the row is full or the time is over, and closes the gathering. Returns the parts
    /// of the joined writers.
    pub(crate) fn close(&self, row: u64, gathering: &Gathering) -> Vec<(usize, Vec<u8>)> {
        let full = |state: &mut GatheredRow| state.brought.iter().all(|&brought| brought);
        let left = PATIENCE.saturating_sub(gathering.began.elapsed());
        let state = gathering.lock();
        let waited = gathering
            .changed
            .wait_timeout_while(state, left, |state| !full(state));
        // Released before the list is locked, because `enter` locks the list first and then the
        // state.
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        // Removed before the parts are taken, so no part is added afterwards.
        let closed = self.lock().remove(&row);
        assert!(
            closed.is_some_and(|closed| std::ptr::eq(&*closed, gathering)),
            "the gathering of row {row} is closed twice, or for another"
        );
        std::mem::take(&mut gathering.lock().joined)
    }
}

impl Gathering {
    fn lock(&self) -> MutexGuard<'_, GatheredRow> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the result of the first writer's write.
    pub(crate) fn end(&self, well: bool) {
        let ended = self.lock().ended.replace(well);
        assert!(ended.is_none(), "a gathering ends twice");
        self.changed.notify_all();
    }

    /// Waits for the result of the first writer; true if the write succeeded.
    pub(crate) fn wait(&self) -> bool {
        let state = self.lock();
        let ended = self
            .changed
            .wait_while(state, |state| state.ended.is_none());
        ended.unwrap_or_else(PoisonError::into_inner).ended == Some(true)
    }
}

/// Returns the runs of a row with their first sectors. If two writers bring the same sector, the
/// later one counts.
pub(crate) fn runs(first: usize, own: &[u8], joined: &[(usize, Vec<u8>)]) -> Vec<(usize, Vec<u8>)> {
    let sector = SECTOR_BYTES as usize;
    let mut sectors: BTreeMap<usize, &[u8]> = BTreeMap::new();
    let all = std::iter::once((first, own))
        .chain(joined.iter().map(|(first, bytes)| (*first, &bytes[..])));
    for (first, bytes) in all {
        sectors.extend((first..).zip(bytes.chunks(sector)));
    }
    let mut runs: Vec<(usize, Vec<u8>)> = Vec::new();
    for (at, bytes) in sectors {
        match runs.last_mut() {
            Some((start, run)) if *start + run.len() / sector == at => run.extend_from_slice(bytes),
            _ => runs.push((at, bytes.to_vec())),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_brought_is_put_together_and_the_later_counts() {
        let own = [1; 1024];
        let joined = [(4, vec![2; 512]), (1, vec![3; 1536]), (9, vec![4; 512])];
        let found = runs(0, &own, &joined);
        let expected: Vec<u8> = [vec![1; 512], vec![3; 1536], vec![2; 512]].concat();
        assert_eq!(found, [(0, expected), (9, vec![4; 512])]);
    }

    #[test]
    fn the_first_writes_for_all_and_waits_no_longer_than_for_a_full_row() {
        let gatherings = Gatherings::default();
        let WriterRole::First(first) = gatherings.enter(7, 4, 0, &[1; 512]) else {
            panic!("nobody was there")
        };
        let WriterRole::Joined(joined) = gatherings.enter(7, 4, 1, &[2; 1536]) else {
            panic!("somebody waits")
        };
        assert_eq!(gatherings.close(7, &first), [(1, vec![2; 1536])]);
        assert!(
            matches!(gatherings.enter(7, 4, 0, &[1; 512]), WriterRole::First(_)),
            "it is closed"
        );
        first.end(true);
        assert!(joined.wait());
    }
}
