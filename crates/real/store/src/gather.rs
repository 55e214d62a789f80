//! Writes of one row that come together become one.
//!
//! A row that is written in part costs reads, and a flush of a journal; written
//! whole it costs neither. Clients that write one address after the other send
//! their requests at the same time, and where one ends in the middle of a row the
//! next goes on. So whoever comes first to a row waits a moment for others, if
//! there are any.

use fullstroke_units::SECTOR_BYTES;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long: less than a flush takes on most devices.
const PATIENCE: Duration = Duration::from_millis(1);

/// Rows for which somebody waits.
#[derive(Debug, Default)]
pub(crate) struct Gatherings {
    rows: Mutex<BTreeMap<u64, Arc<Gathering>>>,
}

/// What is to be written in one row.
#[derive(Debug)]
pub(crate) struct Gathering {
    began: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Sectors of the row that somebody brings.
    brought: Vec<bool>,
    /// What others than the first bring: where in the row, in sectors.
    joined: Vec<(usize, Vec<u8>)>,
    /// How it ended.
    ended: Option<bool>,
}

/// A writer's part in it.
pub(crate) enum Place {
    /// It is the first, and writes for all.
    First(Arc<Gathering>),
    /// Its bytes are written by the first.
    Joined(Arc<Gathering>),
}

impl Gatherings {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Gathering>>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody brings bytes from this sector of a row of so many sectors.
    pub(crate) fn enter(&self, row: u64, sectors: usize, first: usize, bytes: &[u8]) -> Place {
        let count = bytes.len() / SECTOR_BYTES as usize;
        let mut rows = self.lock();
        if let Some(gathering) = rows.get(&row) {
            let mut state = gathering.lock();
            state.brought[first..first + count].fill(true);
            state.joined.push((first, bytes.to_vec()));
            drop(state);
            gathering.changed.notify_all();
            return Place::Joined(Arc::clone(gathering));
        }
        let mut brought = vec![false; sectors];
        brought[first..first + count].fill(true);
        let state = Mutex::new(State {
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
        Place::First(gathering)
    }

    /// The first has waited until the row is full, or for long enough. Answers
    /// what others have brought; nobody joins any more.
    pub(crate) fn close(&self, row: u64, gathering: &Gathering) -> Vec<(usize, Vec<u8>)> {
        let full = |state: &mut State| state.brought.iter().all(|&brought| brought);
        let left = PATIENCE.saturating_sub(gathering.began.elapsed());
        let state = gathering.lock();
        let waited = gathering
            .changed
            .wait_timeout_while(state, left, |state| !full(state));
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.lock().remove(&row);
        std::mem::take(&mut gathering.lock().joined)
    }
}

impl Gathering {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first has written all of it, or not.
    pub(crate) fn end(&self, well: bool) {
        self.lock().ended = Some(well);
        self.changed.notify_all();
    }

    /// Waits for that.
    pub(crate) fn wait(&self) -> bool {
        let state = self.lock();
        let ended = self
            .changed
            .wait_while(state, |state| state.ended.is_none());
        ended.unwrap_or_else(PoisonError::into_inner).ended == Some(true)
    }
}

/// The runs of a row that are brought: sector and bytes; where two bring the
/// same, the later one counts.
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
        let Place::First(first) = gatherings.enter(7, 4, 0, &[1; 512]) else {
            panic!("nobody was there")
        };
        let Place::Joined(joined) = gatherings.enter(7, 4, 1, &[2; 1536]) else {
            panic!("somebody waits")
        };
        assert_eq!(gatherings.close(7, &first), [(1, vec![2; 1536])]);
        assert!(
            matches!(gatherings.enter(7, 4, 0, &[1; 512]), Place::First(_)),
            "it is closed"
        );
        first.end(true);
        assert!(joined.wait());
    }
}
