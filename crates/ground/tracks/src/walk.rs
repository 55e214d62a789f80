//! Comparison of two tables, run by run.

use crate::boundaries::{Boundaries, Equal};
use crate::error::MisfitError;
use fullstroke_units::Lbn;

/// Visits the runs of a table in the order of addresses.
struct Walk<'a> {
    table: &'a Boundaries,
    segment: usize,
    repeat: u64,
    run: usize,
    left: Option<Equal>,
}

impl<'a> Walk<'a> {
    fn new(table: &'a Boundaries) -> Walk<'a> {
        let mut walk = Walk {
            table,
            segment: 0,
            repeat: 0,
            run: 0,
            left: None,
        };
        walk.left = walk.next_run();
        walk
    }

    fn next_run(&mut self) -> Option<Equal> {
        let segment = self.table.segments.get(self.segment)?;
        let run = self.table.equal_tracks(segment, self.run);
        self.run += 1;
        if self.run == segment.listed() {
            self.run = 0;
            self.repeat += 1;
            if self.repeat == self.table.times(self.segment) {
                self.repeat = 0;
                self.segment += 1;
            }
        }
        Some(run)
    }

    /// Skips `tracks` tracks of the current run.
    fn pass(&mut self, tracks: u64) {
        if let Some(left) = &mut self.left {
            left.tracks -= tracks;
            if left.tracks == 0 {
                self.left = self.next_run();
            }
        }
    }
}

/// Returns the first address at which a track starts or ends in only one of the tables.
fn first_difference(one: &Boundaries, other: &Boundaries) -> Option<Lbn> {
    let (mut a, mut b) = (Walk::new(one), Walk::new(other));
    let mut at = 0;
    loop {
        match (a.left, b.left) {
            (None, None) => return None,
            // One table ends here and the other goes on.
            (None, Some(_)) | (Some(_), None) => return Some(Lbn(at)),
            (Some(x), Some(y)) if x.sectors != y.sectors => {
                // Both tracks start at `at`. The shorter track ends first, and there the other
                // table has no boundary.
                return Some(Lbn(at + x.sectors.min(y.sectors)));
            }
            (Some(x), Some(y)) => {
                let tracks = x.tracks.min(y.tracks);
                at += tracks * x.sectors;
                a.pass(tracks);
                b.pass(tracks);
            }
        }
    }
}

impl Boundaries {
    /// Checks that the table has the same boundaries as `other`.
    ///
    /// # Errors
    /// Returns the first address at which the tables differ. If all tracks agree up to the end of
    /// the shorter table, returns the two capacities.
    pub fn check_equal(&self, other: &Boundaries) -> Result<(), MisfitError> {
        match first_difference(self, other) {
            None => Ok(()),
            // The difference lies at the end of the shorter table, so the capacities tell more than
            // the address.
            Some(at) if at.0 >= self.capacity.min(other.capacity) => {
                self.check_capacity(other.capacity())
            }
            Some(at) => Err(MisfitError::Boundary { at }),
        }
    }
}

impl PartialEq for Boundaries {
    fn eq(&self, other: &Boundaries) -> bool {
        self.check_equal(other).is_ok()
    }
}
