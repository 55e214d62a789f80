//! Through a table run by run; what two tables differ in.

use crate::boundaries::{Boundaries, Segment};
use fullstroke_units::Lbn;

/// Neighbouring tracks of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Equal {
    pub(crate) sectors: u64,
    pub(crate) tracks: u64,
}

/// Goes through the runs of a table in the order of addresses.
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

    /// Passes `tracks` of the run in hand.
    fn pass(&mut self, tracks: u64) {
        if let Some(left) = &mut self.left {
            left.tracks -= tracks;
            if left.tracks == 0 {
                self.left = self.next_run();
            }
        }
    }
}

impl Boundaries {
    /// How often segment number `segment` repeats its pattern.
    pub(crate) fn times(&self, segment: usize) -> u64 {
        let end = self
            .starts
            .get(segment + 1)
            .copied()
            .unwrap_or(self.capacity);
        (end - self.starts[segment]) / u64::from(self.segments[segment].sectors)
    }

    /// Run number `run` of a segment.
    pub(crate) fn equal_tracks(&self, segment: &Segment, run: usize) -> Equal {
        if segment.is_stretch() {
            return Equal {
                sectors: u64::from(self.run_of_stretch(segment, run).sectors),
                tracks: 1,
            };
        }
        let (sectors, tracks) = (
            self.runs_of(segment)[run].sectors,
            self.tracks_of_run(segment, run),
        );
        Equal {
            sectors: u64::from(sectors),
            tracks,
        }
    }

    /// Tracks of run number `run` of a segment.
    fn tracks_of_run(&self, segment: &Segment, run: usize) -> u64 {
        let runs = self.runs_of(segment);
        let end = runs.get(run + 1).map_or(segment.tracks, |next| next.track);
        u64::from(end - runs[run].track)
    }
}

/// The first address at which a track begins or ends in one table only.
pub(crate) fn first_difference(one: &Boundaries, other: &Boundaries) -> Option<Lbn> {
    let (mut a, mut b) = (Walk::new(one), Walk::new(other));
    let mut at = 0;
    loop {
        match (a.left, b.left) {
            (None, None) => return None,
            (None, Some(_)) | (Some(_), None) => return Some(Lbn(at)),
            (Some(x), Some(y)) if x.sectors != y.sectors => {
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
