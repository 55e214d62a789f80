//! The table of track boundaries and its queries.

use crate::error::MisfitError;
use fullstroke_contract::Extent;
use fullstroke_units::{Lbn, Sectors};

/// Consecutive tracks of equal length within a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TrackRun {
    /// First sector, counted within the pattern.
    pub(crate) start: u32,
    /// Number of tracks of the pattern before the run.
    pub(crate) track: u32,
    /// Sectors per track.
    pub(crate) sectors: u32,
}

/// Consecutive tracks of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Equal {
    pub(crate) sectors: u64,
    pub(crate) tracks: u64,
}

/// A pattern of runs, repeated once or more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunPattern {
    /// Number of tracks of the table before the segment.
    pub(crate) first_track: u32,
    /// Number of sectors of the pattern.
    pub(crate) sectors: u32,
    /// Number of tracks of the pattern.
    pub(crate) tracks: u32,
    /// Index of the segment's first run in the table's list of runs. For a stretch: index of its
    /// first track in `stretches`.
    pub(crate) list: u32,
    /// Number of runs; 0 for a stretch.
    pub(crate) runs: u32,
}

impl RunPattern {
    /// Returns true if the segment is a stretch, which lists each track by itself.
    pub(crate) fn is_stretch(&self) -> bool {
        self.runs == 0
    }

    /// Returns the number of runs, or of tracks in a stretch.
    pub(crate) fn listed(&self) -> usize {
        if self.is_stretch() {
            self.tracks as usize
        } else {
            self.runs as usize
        }
    }
}

/// The first address of each track of a device.
///
/// Consecutive tracks of equal length are a **run**. A sequence of runs that repeats is a
/// **pattern**. A zone of a regular drive is a pattern of one or a few runs (12 bytes each), for
/// any size of the zone. A track unlike its neighbours costs about a hundred bytes. Where all
/// tracks differ from each other, they are a **stretch** with 4 bytes per track.
///
/// Two tables are equal if they have the same boundaries, even from different sources.
#[derive(Clone, Debug)]
pub struct Boundaries {
    pub(crate) capacity: u64,
    pub(crate) tracks: u32,
    /// First address of each segment.
    pub(crate) starts: Vec<u64>,
    pub(crate) segments: Vec<RunPattern>,
    pub(crate) runs: Vec<TrackRun>,
    /// First sectors of the tracks of stretches, counted within each stretch.
    pub(crate) stretches: Vec<u32>,
    pub(crate) source: String,
}

/// The track of an address.
#[derive(Clone, Copy, Debug)]
struct TrackPlace {
    /// First address of the track.
    first: u64,
    sectors: u32,
    /// Number of the track.
    number: u32,
}

impl Boundaries {
    /// Returns the origin of the table, in words.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the number of addresses; valid addresses are `0..capacity`.
    pub fn capacity(&self) -> Sectors {
        Sectors(self.capacity)
    }

    /// Returns the number of tracks.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a table has at least one track"
    )]
    pub fn len(&self) -> u64 {
        u64::from(self.tracks)
    }

    /// Returns the memory of the table in bytes.
    pub fn bytes(&self) -> usize {
        self.starts.len() * size_of::<u64>()
            + self.segments.len() * size_of::<RunPattern>()
            + self.runs.len() * size_of::<TrackRun>()
            + self.stretches.len() * size_of::<u32>()
    }

    /// Returns the track of `lbn`; `None` beyond the end.
    #[inline]
    pub fn track_at(&self, lbn: Lbn) -> Option<Extent> {
        self.place(lbn.0).map(|place| place.extent())
    }

    /// Returns the number of the track of `lbn`, counted from 0 in the order of addresses. `None`
    /// beyond the end.
    #[inline]
    pub fn number_of(&self, lbn: Lbn) -> Option<u64> {
        self.place(lbn.0).map(|place| u64::from(place.number))
    }

    /// Returns the first boundary at or after `lbn`. A boundary is a track's first address, or the
    /// capacity, where the last track ends. `None` beyond the capacity.
    #[inline]
    pub fn boundary_from(&self, lbn: Lbn) -> Option<Lbn> {
        if lbn.0 >= self.capacity {
            return (lbn.0 == self.capacity).then_some(lbn);
        }
        let place = self.place(lbn.0)?;
        Some(Lbn(if place.first == lbn.0 {
            lbn.0
        } else {
            place.first + u64::from(place.sectors)
        }))
    }

    /// Returns true if a track starts at `lbn`, or if the last track ends there.
    #[inline]
    pub fn is_boundary(&self, lbn: Lbn) -> bool {
        self.boundary_from(lbn) == Some(lbn)
    }

    /// Returns true if `extent` has sectors of more than one track. Sectors beyond the end belong
    /// to no track.
    #[inline]
    pub fn straddles(&self, extent: Extent) -> bool {
        let Some(place) = self.place(extent.start.0) else {
            return false;
        };
        let end = place.first + u64::from(place.sectors);
        extent.start.0.saturating_add(extent.sectors.0) > end && end < self.capacity
    }

    /// Returns track number `number`, counted from 0; `None` if there are fewer tracks.
    #[inline]
    pub fn nth(&self, number: u64) -> Option<Extent> {
        let number = u32::try_from(number)
            .ok()
            .filter(|&number| number < self.tracks)?;
        let index = self
            .segments
            .partition_point(|segment| segment.first_track <= number)
            // The first segment begins with track 0, so the partition point is at least 1.
            - 1;
        let segment = &self.segments[index];
        let within = number - segment.first_track;
        let (repeat, within) = (within / segment.tracks, within % segment.tracks);
        let run = if segment.is_stretch() {
            self.run_of_stretch(segment, within as usize)
        } else {
            let runs = self.runs_of(segment);
            // The first run of a pattern begins with track 0 of the pattern.
            runs[runs.partition_point(|run| run.track <= within) - 1]
        };
        let first = self.starts[index]
            + u64::from(repeat) * u64::from(segment.sectors)
            + u64::from(run.start)
            + u64::from(within - run.track) * u64::from(run.sectors);
        Some(
            TrackPlace {
                first,
                sectors: run.sectors,
                number,
            }
            .extent(),
        )
    }

    /// Returns the length of the longest track; 0 without tracks.
    pub fn longest(&self) -> Sectors {
        let of_segment = |segment: &RunPattern| -> u32 {
            let run = |within: u32| self.run_of_stretch(segment, within as usize).sectors;
            match segment.is_stretch() {
                true => (0..segment.tracks).map(run).max().unwrap_or_default(),
                false => self
                    .runs_of(segment)
                    .iter()
                    .map(|run| run.sectors)
                    .max()
                    .unwrap_or_default(),
            }
        };
        Sectors(u64::from(
            self.segments
                .iter()
                .map(of_segment)
                .max()
                .unwrap_or_default(),
        ))
    }

    /// Iterates over the tracks, starting with the track of `lbn`.
    pub fn tracks_from(&self, lbn: Lbn) -> TrackIter<'_> {
        TrackIter {
            table: self,
            // An address beyond the end starts at the capacity, where `track_at` ends the
            // iteration.
            next: self.place(lbn.0).map_or(self.capacity, |place| place.first),
        }
    }

    /// Checks that the table fits a device with `capacity`.
    ///
    /// # Errors
    /// Returns both capacities if they differ.
    pub fn check_capacity(&self, capacity: Sectors) -> Result<(), MisfitError> {
        if capacity.0 == self.capacity {
            return Ok(());
        }
        Err(MisfitError::Capacity {
            table: self.capacity(),
            device: capacity,
        })
    }

    /// Returns the number of repetitions of the pattern in segment number `segment`.
    pub(crate) fn times(&self, segment: usize) -> u64 {
        let end = self
            .starts
            .get(segment + 1)
            .copied()
            .unwrap_or(self.capacity);
        (end - self.starts[segment]) / u64::from(self.segments[segment].sectors)
    }

    /// Returns run number `run` of a segment.
    pub(crate) fn equal_tracks(&self, segment: &RunPattern, run: usize) -> Equal {
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

    /// Returns the number of tracks in run number `run` of a segment.
    fn tracks_of_run(&self, segment: &RunPattern, run: usize) -> u64 {
        let runs = self.runs_of(segment);
        let end = runs.get(run + 1).map_or(segment.tracks, |next| next.track);
        u64::from(end - runs[run].track)
    }

    pub(crate) fn runs_of(&self, segment: &RunPattern) -> &[TrackRun] {
        &self.runs[segment.list as usize..][..segment.runs as usize]
    }

    /// Returns track number `track` of a stretch, as a run.
    pub(crate) fn run_of_stretch(&self, segment: &RunPattern, track: usize) -> TrackRun {
        let starts = self.stretch_of(segment);
        let start = starts[track];
        // The last track ends with the stretch, because a stretch lists only the starts.
        let end = starts.get(track + 1).copied().unwrap_or(segment.sectors);
        debug_assert!(start < end, "track {track} of a stretch has no sector");
        TrackRun {
            start,
            track: track as u32,
            sectors: end - start,
        }
    }

    fn stretch_of(&self, segment: &RunPattern) -> &[u32] {
        &self.stretches[segment.list as usize..][..segment.tracks as usize]
    }

    #[inline]
    fn place(&self, lbn: u64) -> Option<TrackPlace> {
        if lbn >= self.capacity {
            return None;
        }
        // The first segment starts at 0, so the partition point is at least 1.
        let index = self.starts.partition_point(|&start| start <= lbn) - 1;
        let segment = &self.segments[index];
        let offset = lbn - self.starts[index];
        let period = u64::from(segment.sectors);
        let (repeat, within) = (offset / period, (offset % period) as u32);
        let run = if segment.is_stretch() {
            let starts = self.stretch_of(segment);
            self.run_of_stretch(
                segment,
                last_from(starts, |&start| start, within, segment.sectors),
            )
        } else {
            let runs = self.runs_of(segment);
            runs[last_from(runs, |run| run.start, within, segment.sectors)]
        };
        debug_assert!(
            run.start <= within && within < segment.sectors,
            "sector {within} of a segment of {} was looked up in the run from {}",
            segment.sectors,
            run.start
        );
        let track = (within - run.start) / run.sectors;
        let back = u64::from(within - run.start - track * run.sectors);
        // No overflow: the builder refuses more than `TRACKS_MAX` tracks, which fit 32 bits.
        let number = segment.first_track + repeat as u32 * segment.tracks + run.track + track;
        Some(TrackPlace {
            first: lbn - back,
            sectors: run.sectors,
            number,
        })
    }
}

/// Returns the index of the last element of `list` that starts at or before `sector`. The list
/// covers `total` sectors. Tracks have similar lengths, so the first guess is proportional to the
/// sector. From there the search widens in doubling steps. A binary search would wait for memory at
/// each step of a long list.
#[inline]
fn last_from<T>(list: &[T], start: impl Fn(&T) -> u32, sector: u32, total: u32) -> usize {
    debug_assert!(
        sector < total,
        "sector {sector} was looked for in a list of {total} sectors"
    );
    // Below `list.len()`, because `sector < total`. 64 bits, because both factors may fill 32 bits.
    let guess = (u64::from(sector) * list.len() as u64 / u64::from(total)) as usize;
    let begins = |index: usize| start(&list[index]) <= sector;
    let mut step = 1;
    let (low, high) = if begins(guess) {
        let mut low = guess;
        while low + step < list.len() && begins(low + step) {
            low += step;
            step *= 2;
        }
        (low, (low + step).min(list.len()))
    } else {
        let mut high = guess;
        while high > step && !begins(high - step) {
            high -= step;
            step *= 2;
        }
        (high.saturating_sub(step), high)
    };
    // `low` starts at or before the sector, so only the elements behind `low` are searched.
    low + list[low + 1..high].partition_point(|each| start(each) <= sector)
}

impl TrackPlace {
    fn extent(self) -> Extent {
        Extent {
            start: Lbn(self.first),
            sectors: Sectors(u64::from(self.sectors)),
        }
    }
}

/// An iterator over tracks in the order of addresses.
#[derive(Clone, Debug)]
pub struct TrackIter<'a> {
    table: &'a Boundaries,
    next: u64,
}

impl Iterator for TrackIter<'_> {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        let track = self.table.track_at(Lbn(self.next))?;
        self.next += track.sectors.0;
        Some(track)
    }
}
