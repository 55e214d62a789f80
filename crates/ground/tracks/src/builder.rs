//! Builds a table: consecutive tracks of equal length become runs, and repeated runs become
//! patterns.

use crate::boundaries::{Boundaries, RunPattern, TrackRun};
use crate::error::{TRACK_SECTORS_MAX, TRACKS_MAX, TrackError};
use fullstroke_contract::TrackTable;
use fullstroke_units::{Lbn, Sectors};
use std::collections::BTreeMap;

/// Largest number of tracks in a run, so that the run's sectors fit 32 bits. A longer run becomes a
/// pattern of full runs.
const RUN_TRACKS_MAX: u32 = 1 << 10;

/// Largest number of sectors in a pattern: 2 TB.
const PATTERN_SECTORS_MAX: u64 = u32::MAX as u64;

/// Largest number of runs in a detected pattern. A serpentine over bands of 20 surfaces, in both
/// directions, with spares at each end, needs 80.
const PATTERN_RUNS_MAX: usize = 96;

/// Largest number of runs in a segment without a pattern.
const STRETCH_RUNS_MAX: usize = 1 << 16;

/// Smallest number of runs that a pattern must save: as much memory as the pattern's own entry
/// takes.
const SAVED_RUNS_MIN: usize = 4;

/// Consecutive tracks of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EqualTracks {
    pub(crate) sectors: u32,
    pub(crate) tracks: u32,
}

impl EqualTracks {
    fn total(self) -> u64 {
        u64::from(self.sectors) * u64::from(self.tracks)
    }
}

/// Builds a table from tracks that are given in order, from address 0 on.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    starts: Vec<u64>,
    segments: Vec<RunPattern>,
    runs: Vec<TrackRun>,
    stretches: Vec<u32>,
    /// Maps each pattern to the index of its first run in `runs`.
    known: BTreeMap<Vec<EqualTracks>, u32>,
    /// Sectors and tracks of all segments.
    covered: (u64, u64),
    /// The last run, if it may still grow.
    growing: Option<EqualTracks>,
    /// Runs outside segments, except those of `repeating`.
    pending: Vec<EqualTracks>,
    pending_sectors: u64,
    repeating: Option<Repeating>,
    /// Sectors and tracks given so far.
    told: (u64, u64),
}

/// A pattern at the end of the tracks that has repeated and may repeat further.
#[derive(Clone, Debug)]
struct Repeating {
    pattern: Vec<EqualTracks>,
    times: u64,
    /// Number of runs of the next, incomplete repetition.
    into: usize,
}

impl Boundaries {
    /// Builds the table of a medium with known tracks, such as a simulated drive.
    ///
    /// # Errors
    /// If a track is longer than [`crate::TRACK_SECTORS_MAX`].
    pub fn of(
        medium: &dyn TrackTable,
        source: impl Into<String>,
    ) -> Result<Boundaries, TrackError> {
        let mut builder = Builder::default();
        let end = Lbn(medium.capacity().0);
        let mut next = Lbn(0);
        while next < end {
            let track = medium.track_at(next);
            assert_eq!(
                track.first, next,
                "the medium's tracks lie one behind the other"
            );
            builder.push(track.sectors)?;
            next += track.sectors;
        }
        builder.finish(source)
    }
}

impl Builder {
    /// Adds the next track.
    ///
    /// # Errors
    /// If the table cannot hold the track. The table stays unchanged in this case.
    pub fn push(&mut self, sectors: Sectors) -> Result<(), TrackError> {
        self.push_run(sectors, 1)
    }

    /// Adds the next `tracks` tracks with `sectors` sectors each.
    ///
    /// # Errors
    /// As for [`Builder::push`].
    pub fn push_run(&mut self, sectors: Sectors, tracks: u64) -> Result<(), TrackError> {
        let length = length(sectors.0)?;
        // The totals are checked first, so that a refused run leaves the table unchanged.
        self.tell(sectors.0, 1, tracks)?;
        let mut left = tracks;
        if let Some(grown) = self.growing.filter(|growing| growing.sectors == length) {
            let room = u64::from(RUN_TRACKS_MAX - grown.tracks).min(left);
            self.growing = Some(EqualTracks {
                tracks: grown.tracks + room as u32,
                ..grown
            });
            left -= room;
        }
        if left == 0 {
            return Ok(());
        }
        self.end_run();
        let whole = left / u64::from(RUN_TRACKS_MAX);
        let full = EqualTracks {
            sectors: length,
            tracks: RUN_TRACKS_MAX,
        };
        // Many full runs are one pattern. For a few, the entry of a pattern would take more memory.
        if whole > SAVED_RUNS_MIN as u64 {
            self.settle();
            self.add_segment(&[full], whole);
        } else {
            (0..whole).for_each(|_| self.add_run(full));
        }
        let rest = (left % u64::from(RUN_TRACKS_MAX)) as u32;
        self.growing = (rest > 0).then_some(EqualTracks {
            sectors: length,
            tracks: rest,
        });
        Ok(())
    }

    /// Adds the tracks of `runs` `times` times. Each run is a track length and a number of tracks.
    ///
    /// # Errors
    /// As for [`Builder::push`], and if the runs are too long for a pattern.
    pub fn push_pattern(&mut self, runs: &[(Sectors, u64)], times: u64) -> Result<(), TrackError> {
        let mut pattern = Vec::with_capacity(runs.len());
        let (mut sectors, mut tracks) = (0u64, 0u64);
        for &(each, count) in runs.iter().filter(|(_, count)| *count > 0) {
            let length = length(each.0)?;
            let all = each
                .0
                .checked_mul(count)
                .and_then(|all| all.checked_add(sectors));
            sectors = all
                .filter(|&all| all <= PATTERN_SECTORS_MAX)
                // A pattern is one entry with 32 bits for its sectors.
                .ok_or(TrackError::Pattern)?;
            // Each track has at least one sector, so the number of tracks fits 32 bits if the
            // sectors do.
            tracks += count;
            pattern.push(EqualTracks {
                sectors: length,
                tracks: count as u32,
            });
        }
        if times == 0 || pattern.is_empty() {
            return Ok(());
        }
        self.tell(sectors, tracks, times)?;
        // The tracks so far lie before the pattern, and must be in segments before the pattern
        // becomes one.
        self.settle();
        self.add_segment(&pattern, times);
        Ok(())
    }

    /// Returns the number of sectors of all tracks so far.
    pub fn sectors(&self) -> Sectors {
        Sectors(self.told.0)
    }

    /// Returns the table of all tracks.
    ///
    /// # Errors
    /// If there are no tracks.
    pub fn finish(mut self, source: impl Into<String>) -> Result<Boundaries, TrackError> {
        self.settle();
        if self.segments.is_empty() {
            return Err(TrackError::Empty);
        }
        assert_eq!(
            self.covered, self.told,
            "sectors and tracks of the segments are those that were told"
        );
        // Tables live as long as the stack, and the lists have grown by doubling.
        self.starts.shrink_to_fit();
        self.segments.shrink_to_fit();
        self.runs.shrink_to_fit();
        self.stretches.shrink_to_fit();
        Ok(Boundaries {
            capacity: self.covered.0,
            tracks: self.covered.1 as u32,
            starts: self.starts,
            segments: self.segments,
            runs: self.runs,
            stretches: self.stretches,
            source: source.into(),
        })
    }

    /// Adds `times` times `sectors` and `tracks` to the totals.
    fn tell(&mut self, sectors: u64, tracks: u64, times: u64) -> Result<(), TrackError> {
        let sectors = sectors
            .checked_mul(times)
            .and_then(|all| all.checked_add(self.told.0));
        let tracks = tracks
            .checked_mul(times)
            .and_then(|all| all.checked_add(self.told.1));
        match (sectors, tracks.filter(|&tracks| tracks <= TRACKS_MAX)) {
            (Some(sectors), Some(tracks)) => self.told = (sectors, tracks),
            _ => return Err(TrackError::TooMany),
        }
        Ok(())
    }

    /// Ends the growing run.
    fn end_run(&mut self) {
        if let Some(run) = self.growing.take() {
            self.add_run(run);
        }
    }

    /// Moves all tracks so far into segments.
    fn settle(&mut self) {
        self.end_run();
        self.end_repeating();
        self.flush();
    }

    fn add_run(&mut self, run: EqualTracks) {
        if let Some(repeating) = &mut self.repeating {
            if repeating.pattern[repeating.into] == run {
                repeating.into += 1;
                if repeating.into == repeating.pattern.len() {
                    repeating.into = 0;
                    repeating.times += 1;
                }
                return;
            }
            self.end_repeating();
        }
        if self.pending_sectors + run.total() > PATTERN_SECTORS_MAX
            || self.pending.len() == STRETCH_RUNS_MAX
        {
            self.flush();
        }
        self.pending.push(run);
        self.pending_sectors += run.total();
        self.find_pattern();
    }

    /// Looks for a pattern at the end of the pending runs, repeated often enough to save memory.
    /// Starts a repetition if there is one.
    fn find_pattern(&mut self) {
        let pending = &self.pending;
        let Some(last) = pending.last() else { return };
        for runs in 1..=PATTERN_RUNS_MAX.min(pending.len() / 2) {
            // The smallest number of repetitions that saves `SAVED_RUNS_MIN` runs.
            let times = SAVED_RUNS_MIN.div_ceil(runs) + 1;
            // The comparison of one run is cheap, and excludes almost all pattern lengths before
            // the long comparison.
            if pending[pending.len() - 1 - runs] != *last || pending.len() < runs * times {
                continue;
            }
            let tail = &pending[pending.len() - runs * times..];
            if tail[runs..] == tail[..tail.len() - runs] {
                let pattern = tail[..runs].to_vec();
                self.pending.truncate(self.pending.len() - runs * times);
                // The runs before the repetition become a segment first, because segments are in
                // order of address.
                self.flush();
                self.repeating = Some(Repeating {
                    pattern,
                    times: times as u64,
                    into: 0,
                });
                return;
            }
        }
    }

    fn end_repeating(&mut self) {
        let Some(Repeating {
            pattern,
            times,
            into,
        }) = self.repeating.take()
        else {
            return;
        };
        self.add_segment(&pattern, times);
        // The repetition was cut short. Its runs wait as if they had come without a pattern.
        self.pending = pattern[..into].to_vec();
        self.pending_sectors = self.pending.iter().map(|run| run.total()).sum();
    }

    /// Turns the pending runs into a segment without a pattern.
    fn flush(&mut self) {
        self.pending_sectors = 0;
        assert!(
            self.repeating.is_none(),
            "runs behind a pattern become a segment after the pattern"
        );
        let pending = std::mem::take(&mut self.pending);
        let tracks: usize = pending.iter().map(|run| run.tracks as usize).sum();
        let may_come_again = pending.len() <= PATTERN_RUNS_MAX;
        // 4 bytes for each track against 12 for each run. A short sequence stays a list of runs,
        // because later segments can share the list.
        if !may_come_again && tracks * size_of::<u32>() < pending.len() * size_of::<TrackRun>() {
            self.add_stretch(&pending, tracks as u32);
        } else if !pending.is_empty() {
            self.add_segment(&pending, 1);
        }
    }

    /// Adds runs as a stretch. A stretch takes less memory than runs if each run has few tracks.
    fn add_stretch(&mut self, runs: &[EqualTracks], tracks: u32) {
        let list = self.stretches.len() as u32;
        let mut start = 0;
        for run in runs {
            for _ in 0..run.tracks {
                self.stretches.push(start);
                // The start behind the last track may be 2^32, and is never used.
                start = start.wrapping_add(run.sectors);
            }
        }
        let sectors: u64 = runs.iter().map(|run| run.total()).sum();
        assert!(
            sectors <= PATTERN_SECTORS_MAX,
            "a stretch of {sectors} sectors does not fit its entry"
        );
        self.cover(
            RunPattern {
                first_track: self.covered.1 as u32,
                sectors: sectors as u32,
                tracks,
                list,
                runs: 0,
            },
            1,
        );
    }

    fn add_segment(&mut self, pattern: &[EqualTracks], times: u64) {
        let list = match self.known.get(pattern) {
            Some(&list) => list,
            None => self.add_pattern(pattern),
        };
        let sectors: u64 = pattern.iter().map(|run| run.total()).sum();
        let tracks: u32 = pattern.iter().map(|run| run.tracks).sum();
        assert!(
            sectors <= PATTERN_SECTORS_MAX,
            "a pattern of {sectors} sectors does not fit its entry"
        );
        let runs = pattern.len() as u32;
        self.cover(
            RunPattern {
                first_track: self.covered.1 as u32,
                sectors: sectors as u32,
                tracks,
                list,
                runs,
            },
            times,
        );
    }

    fn cover(&mut self, segment: RunPattern, times: u64) {
        assert!(
            segment.sectors >= segment.tracks && segment.tracks > 0 && times > 0,
            "a segment has tracks, and each has a sector: {segment:?}, {times} times"
        );
        self.starts.push(self.covered.0);
        self.covered.0 += u64::from(segment.sectors) * times;
        self.covered.1 += u64::from(segment.tracks) * times;
        self.segments.push(segment);
    }

    fn add_pattern(&mut self, pattern: &[EqualTracks]) -> u32 {
        let first = self.runs.len() as u32;
        let (mut start, mut track) = (0, 0);
        for run in pattern {
            self.runs.push(TrackRun {
                start,
                track,
                sectors: run.sectors,
            });
            // As for stretches: only the start behind the last run may wrap.
            start = start.wrapping_add(run.total() as u32);
            track += run.tracks;
        }
        // A long sequence without a pattern is unlikely to repeat.
        if pattern.len() <= PATTERN_RUNS_MAX {
            self.known.insert(pattern.to_vec(), first);
        }
        first
    }
}

/// Checks the length of a track.
fn length(sectors: u64) -> Result<u32, TrackError> {
    if (1..=TRACK_SECTORS_MAX).contains(&sectors) {
        return Ok(sectors as u32);
    }
    Err(TrackError::Length { found: sectors })
}
