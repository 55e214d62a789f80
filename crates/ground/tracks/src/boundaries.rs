//! The table and its queries.

use crate::error::MisfitError;
use fullstroke_contract::Extent;
use fullstroke_units::{Lbn, Sectors};

/// Tracks of equal length, one behind the other, within a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Run {
    /// Its first sector, counted within the pattern.
    pub(crate) start: u32,
    /// Tracks of the pattern before it.
    pub(crate) track: u32,
    /// Sectors of each of its tracks.
    pub(crate) sectors: u32,
}

/// Neighbouring tracks of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Equal {
    pub(crate) sectors: u64,
    pub(crate) tracks: u64,
}

/// A pattern of runs that repeats, one or many times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// Tracks of the table before it.
    pub(crate) first_track: u32,
    /// Sectors of the pattern.
    pub(crate) sectors: u32,
    /// Tracks of the pattern.
    pub(crate) tracks: u32,
    /// Where its runs begin in the table's, or the tracks of a stretch.
    pub(crate) list: u32,
    /// How many runs they are; none of a stretch.
    pub(crate) runs: u32,
}

impl Segment {
    /// Whether each of its tracks is listed by itself.
    pub(crate) fn is_stretch(&self) -> bool {
        self.runs == 0
    }

    /// Runs, or tracks of a stretch.
    pub(crate) fn listed(&self) -> usize {
        if self.is_stretch() {
            self.tracks as usize
        } else {
            self.runs as usize
        }
    }
}

/// Where each track of a device begins.
///
/// Tracks of equal length are one **run**, runs that repeat one **pattern**. A
/// zone of a regular drive is a pattern of one or a few runs (12 bytes each),
/// whatever its size; a track unlike its neighbours costs about a hundred bytes,
/// and where tracks are all unlike each other, a **stretch**, 4 each.
///
/// Two tables are equal if they have the same boundaries, wherever they come
/// from.
#[derive(Clone, Debug)]
pub struct Boundaries {
    pub(crate) capacity: u64,
    pub(crate) tracks: u32,
    /// The first address of each segment.
    pub(crate) starts: Vec<u64>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) runs: Vec<Run>,
    /// The first sectors of the tracks of stretches, counted within each.
    pub(crate) stretches: Vec<u32>,
    pub(crate) source: String,
}

/// Where an address stands in a table.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// First address of the track.
    first: u64,
    sectors: u32,
    /// Number of the track.
    number: u32,
}

impl Boundaries {
    /// Where the table comes from, in words.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Addresses `0..capacity`.
    pub fn capacity(&self) -> Sectors {
        Sectors(self.capacity)
    }

    /// How many tracks there are.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a table has at least one track"
    )]
    pub fn len(&self) -> u64 {
        u64::from(self.tracks)
    }

    /// Bytes of memory that the table takes.
    pub fn bytes(&self) -> usize {
        self.starts.len() * size_of::<u64>()
            + self.segments.len() * size_of::<Segment>()
            + self.runs.len() * size_of::<Run>()
            + self.stretches.len() * size_of::<u32>()
    }

    /// The track that holds `lbn`; `None` beyond the end.
    #[inline]
    pub fn track_at(&self, lbn: Lbn) -> Option<Extent> {
        self.place(lbn.0).map(|place| place.extent())
    }

    /// The number of the track that holds `lbn`, counted from 0 in the order of
    /// addresses; `None` beyond the end.
    #[inline]
    pub fn number_of(&self, lbn: Lbn) -> Option<u64> {
        self.place(lbn.0).map(|place| u64::from(place.number))
    }

    /// The first boundary at `lbn` or behind it: a track's first address, or the
    /// capacity, where the last track ends. `None` beyond that.
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

    /// Whether a track begins at `lbn`, or the last one ends.
    #[inline]
    pub fn is_boundary(&self, lbn: Lbn) -> bool {
        self.boundary_from(lbn) == Some(lbn)
    }

    /// Whether `extent` has sectors of more than one track. Sectors beyond the
    /// end are on none.
    #[inline]
    pub fn straddles(&self, extent: Extent) -> bool {
        let Some(place) = self.place(extent.start.0) else {
            return false;
        };
        let end = place.first + u64::from(place.sectors);
        extent.start.0.saturating_add(extent.sectors.0) > end && end < self.capacity
    }

    /// Track number `number`, counted from 0; `None` if there are fewer.
    #[inline]
    pub fn nth(&self, number: u64) -> Option<Extent> {
        let number = u32::try_from(number)
            .ok()
            .filter(|&number| number < self.tracks)?;
        let index = self
            .segments
            .partition_point(|segment| segment.first_track <= number)
            - 1;
        let segment = &self.segments[index];
        let within = number - segment.first_track;
        let (repeat, within) = (within / segment.tracks, within % segment.tracks);
        let run = if segment.is_stretch() {
            self.run_of_stretch(segment, within as usize)
        } else {
            let runs = self.runs_of(segment);
            runs[runs.partition_point(|run| run.track <= within) - 1]
        };
        let first = self.starts[index]
            + u64::from(repeat) * u64::from(segment.sectors)
            + u64::from(run.start)
            + u64::from(within - run.track) * u64::from(run.sectors);
        Some(
            Place {
                first,
                sectors: run.sectors,
                number,
            }
            .extent(),
        )
    }

    /// Sectors of the longest track; none if there is no track.
    pub fn longest(&self) -> Sectors {
        let of_segment = |segment: &Segment| -> u32 {
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

    /// The tracks from the one that holds `lbn` on.
    pub fn tracks_from(&self, lbn: Lbn) -> Tracks<'_> {
        Tracks {
            table: self,
            next: self.place(lbn.0).map_or(self.capacity, |place| place.first),
        }
    }

    /// Whether the table can be of a device with `capacity`.
    ///
    /// # Errors
    /// With the first address that one has and the other has not.
    pub fn check_capacity(&self, capacity: Sectors) -> Result<(), MisfitError> {
        if capacity.0 == self.capacity {
            return Ok(());
        }
        Err(MisfitError::Capacity {
            table: self.capacity(),
            device: capacity,
        })
    }

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

    pub(crate) fn runs_of(&self, segment: &Segment) -> &[Run] {
        &self.runs[segment.list as usize..][..segment.runs as usize]
    }

    /// Track number `track` of a stretch, as a run.
    pub(crate) fn run_of_stretch(&self, segment: &Segment, track: usize) -> Run {
        let starts = self.stretch_of(segment);
        let start = starts[track];
        let end = starts.get(track + 1).copied().unwrap_or(segment.sectors);
        debug_assert!(start < end, "track {track} of a stretch has no sector");
        Run {
            start,
            track: track as u32,
            sectors: end - start,
        }
    }

    fn stretch_of(&self, segment: &Segment) -> &[u32] {
        &self.stretches[segment.list as usize..][..segment.tracks as usize]
    }

    #[inline]
    fn place(&self, lbn: u64) -> Option<Place> {
        if lbn >= self.capacity {
            return None;
        }
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
        let number = segment.first_track + repeat as u32 * segment.tracks + run.track + track;
        Some(Place {
            first: lbn - back,
            sectors: run.sectors,
            number,
        })
    }
}

/// The last of `list`, which covers `total` sectors, that begins at `sector` or
/// before. Tracks are of about one length, so that its place is guessed in
/// proportion; from there the search widens. A search by halves would wait for
/// memory at each step of a long list.
#[inline]
fn last_from<T>(list: &[T], start: impl Fn(&T) -> u32, sector: u32, total: u32) -> usize {
    debug_assert!(
        sector < total,
        "sector {sector} was looked for in a list of {total} sectors"
    );
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
    low + list[low + 1..high].partition_point(|each| start(each) <= sector)
}

impl Place {
    fn extent(self) -> Extent {
        Extent {
            start: Lbn(self.first),
            sectors: Sectors(u64::from(self.sectors)),
        }
    }
}

/// Tracks in the order of addresses.
#[derive(Clone, Debug)]
pub struct Tracks<'a> {
    table: &'a Boundaries,
    next: u64,
}

impl Iterator for Tracks<'_> {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        let track = self.table.track_at(Lbn(self.next))?;
        self.next += track.sectors.0;
        Some(track)
    }
}
