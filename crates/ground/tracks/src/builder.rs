//! Tracks one after another become runs, and runs that repeat become patterns.

use crate::boundaries::{Boundaries, Run, Segment};
use crate::error::{TRACK_SECTORS_MAX, TRACKS_MAX, TrackError};
use fullstroke_contract::TrackTable;
use fullstroke_units::{Lbn, Sectors};
use std::collections::BTreeMap;

/// Tracks of a run at most, so that its sectors fit 32 bits. Longer ones are
/// patterns of such runs.
const RUN_TRACKS_MAX: u32 = 1 << 10;

/// Sectors of a pattern at most: 2 TB.
const PATTERN_SECTORS_MAX: u64 = u32::MAX as u64;

/// Runs of a pattern that is looked for: bands of 20 surfaces, there and back,
/// each with spares at its end, are 80.
const PATTERN_RUNS_MAX: usize = 96;

/// Runs of a stretch without a pattern.
const STRETCH_RUNS_MAX: usize = 1 << 16;

/// Runs that a pattern must save: as much as its own entry takes.
const SAVED_RUNS_MIN: usize = 4;

/// Tracks of equal length, one behind the other.
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

/// Makes a table of tracks that are told one after the other, from address 0 on.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    starts: Vec<u64>,
    segments: Vec<Segment>,
    runs: Vec<Run>,
    stretches: Vec<u32>,
    /// Where the runs of each pattern begin among those of the table.
    known: BTreeMap<Vec<EqualTracks>, u32>,
    /// Sectors and tracks of all segments.
    covered: (u64, u64),
    /// The run that grows.
    growing: Option<EqualTracks>,
    /// Runs that are in no segment yet, but for those that repeat.
    pending: Vec<EqualTracks>,
    pending_sectors: u64,
    repeating: Option<Repeating>,
    /// Sectors and tracks of all that was told.
    told: (u64, u64),
}

/// Runs that repeat, as far as it has gone.
#[derive(Clone, Debug)]
struct Repeating {
    pattern: Vec<EqualTracks>,
    times: u64,
    /// Runs of one more time that have come.
    into: usize,
}

impl Boundaries {
    /// The tracks of a medium that knows them, such as a simulated drive.
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
    /// The next track.
    ///
    /// # Errors
    /// If it cannot be held; then the table is as before.
    pub fn push(&mut self, sectors: Sectors) -> Result<(), TrackError> {
        self.push_run(sectors, 1)
    }

    /// The next `tracks` tracks, of `sectors` each.
    ///
    /// # Errors
    /// As for [`Builder::push`].
    pub fn push_run(&mut self, sectors: Sectors, tracks: u64) -> Result<(), TrackError> {
        let length = length(sectors.0)?;
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

    /// `times` the tracks of `runs`, which are lengths and how many tracks have
    /// each.
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
                .ok_or(TrackError::Pattern)?;
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
        self.settle();
        self.add_segment(&pattern, times);
        Ok(())
    }

    /// Sectors of all tracks so far.
    pub fn sectors(&self) -> Sectors {
        Sectors(self.told.0)
    }

    /// The table of all that was told.
    ///
    /// # Errors
    /// If that was nothing.
    pub fn finish(mut self, source: impl Into<String>) -> Result<Boundaries, TrackError> {
        self.settle();
        if self.segments.is_empty() {
            return Err(TrackError::Empty);
        }
        assert_eq!(
            self.covered, self.told,
            "sectors and tracks of the segments are those that were told"
        );
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

    /// Counts `times` as many sectors and tracks.
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

    /// No further track belongs to the growing run.
    fn end_run(&mut self) {
        if let Some(run) = self.growing.take() {
            self.add_run(run);
        }
    }

    /// Everything told is in a segment.
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

    /// Whether what came last has come before it, often enough.
    fn find_pattern(&mut self) {
        let pending = &self.pending;
        let Some(last) = pending.last() else { return };
        for runs in 1..=PATTERN_RUNS_MAX.min(pending.len() / 2) {
            let times = SAVED_RUNS_MIN.div_ceil(runs) + 1;
            if pending[pending.len() - 1 - runs] != *last || pending.len() < runs * times {
                continue;
            }
            let tail = &pending[pending.len() - runs * times..];
            if tail[runs..] == tail[..tail.len() - runs] {
                let pattern = tail[..runs].to_vec();
                self.pending.truncate(self.pending.len() - runs * times);
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
        self.pending = pattern[..into].to_vec();
        self.pending_sectors = self.pending.iter().map(|run| run.total()).sum();
    }

    /// What has no pattern becomes a segment of its own.
    fn flush(&mut self) {
        self.pending_sectors = 0;
        assert!(
            self.repeating.is_none(),
            "runs behind a pattern become a segment after the pattern"
        );
        let pending = std::mem::take(&mut self.pending);
        let tracks: usize = pending.iter().map(|run| run.tracks as usize).sum();
        let may_come_again = pending.len() <= PATTERN_RUNS_MAX;
        if !may_come_again && tracks * size_of::<u32>() < pending.len() * size_of::<Run>() {
            self.add_stretch(&pending, tracks as u32);
        } else if !pending.is_empty() {
            self.add_segment(&pending, 1);
        }
    }

    /// Runs of so few tracks that these take less by themselves.
    fn add_stretch(&mut self, runs: &[EqualTracks], tracks: u32) {
        let list = self.stretches.len() as u32;
        let mut start = 0;
        for run in runs {
            for _ in 0..run.tracks {
                self.stretches.push(start);
                start = start.wrapping_add(run.sectors);
            }
        }
        let sectors: u64 = runs.iter().map(|run| run.total()).sum();
        assert!(
            sectors <= PATTERN_SECTORS_MAX,
            "a stretch of {sectors} sectors does not fit its entry"
        );
        self.cover(
            Segment {
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
            Segment {
                first_track: self.covered.1 as u32,
                sectors: sectors as u32,
                tracks,
                list,
                runs,
            },
            times,
        );
    }

    fn cover(&mut self, segment: Segment, times: u64) {
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
            self.runs.push(Run {
                start,
                track,
                sectors: run.sectors,
            });
            start = start.wrapping_add(run.total() as u32);
            track += run.tracks;
        }
        // A long stretch without a pattern will not come again.
        if pattern.len() <= PATTERN_RUNS_MAX {
            self.known.insert(pattern.to_vec(), first);
        }
        first
    }
}

/// The length of a track, if it can be one.
fn length(sectors: u64) -> Result<u32, TrackError> {
    if (1..=TRACK_SECTORS_MAX).contains(&sectors) {
        return Ok(sectors as u32);
    }
    Err(TrackError::Length { found: sectors })
}
