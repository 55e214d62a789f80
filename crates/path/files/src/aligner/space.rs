//! Free pages of the device, searched by track.

use crate::PAGE_SECTORS;
use crate::fragmentation::{FileFragments, Fragment};
use fullstroke_tracks::Boundaries;
use fullstroke_units::Lbn;
use std::collections::BTreeMap;
use std::ops::Range;

/// Free runs of pages: start → end.
pub(super) struct Space<'a> {
    runs: BTreeMap<u64, u64>,
    tracks: &'a Boundaries,
    /// Upper bound of the whole pages of a track.
    longest: u64,
}

impl<'a> Space<'a> {
    /// Collects the pages of a device of `pages` pages that neither files nor fixed pages use.
    pub(super) fn new(
        files: &[FileFragments],
        fixed: &[Range<u64>],
        pages: u64,
        tracks: &'a Boundaries,
    ) -> Space<'a> {
        let files = files.iter().flat_map(|file| &file.fragments);
        let files = files.map(|fragment| fragment.block..fragment.block + fragment.pages);
        let mut used: Vec<Range<u64>> = files.chain(fixed.iter().cloned()).collect();
        used.sort_by_key(|run| run.start);
        let longest = tracks
            .tracks_from(Lbn(0))
            .map(|track| track.sectors.0 / PAGE_SECTORS);
        let mut space = Space {
            runs: BTreeMap::new(),
            tracks,
            longest: longest.max().unwrap_or(0),
        };
        let pages = pages.min(tracks.capacity().0 / PAGE_SECTORS);
        let mut at = 0;
        for run in used {
            space.add(at..run.start.min(pages));
            at = at.max(run.end);
        }
        space.add(at..pages);
        space
    }

    fn add(&mut self, run: Range<u64>) {
        if run.is_empty() {
            return;
        }
        let mut run = run;
        if let Some((&start, &end)) = self.runs.range(..run.start).next_back()
            && end == run.start
        {
            run.start = start;
        }
        if let Some(end) = self.runs.remove(&run.end) {
            run.end = end;
        }
        self.runs.insert(run.start, run.end);
    }

    fn take(&mut self, run: Range<u64>) {
        let found = self
            .runs
            .range(..=run.start)
            .next_back()
            .map(|(&start, &end)| start..end);
        let held = found
            .filter(|held| held.end >= run.end)
            .expect("only free pages are moved to");
        self.runs.remove(&held.start);
        self.add(held.start..run.start);
        self.add(run.end..held.end);
    }

    /// Takes the pages of the new place of a file, and frees the pages of the old place.
    pub(super) fn swap(&mut self, from: &[Fragment], to: &[Fragment]) {
        to.iter()
            .for_each(|run| self.take(run.block..run.block + run.pages));
        from.iter()
            .for_each(|run| self.add(run.block..run.block + run.pages));
    }

    /// Yields the free runs, sorted by the distance of their beginning from `near`.
    fn around(&self, near: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut below = self.runs.range(..near).rev().peekable();
        let mut above = self.runs.range(near..).peekable();
        std::iter::from_fn(move || {
            let next = match (below.peek(), above.peek()) {
                (Some((low, _)), Some((high, _))) if near - **low <= **high - near => below.next(),
                (_, Some(_)) => above.next(),
                (Some(_), None) => below.next(),
                (None, None) => None,
            };
            next.map(|(&start, &end)| start..end)
        })
    }

    /// Returns the whole pages of the track that holds the first sector of `page`, and the sector
    /// where the next track begins.
    fn track(&self, page: u64) -> Option<(Range<u64>, u64)> {
        let track = self.tracks.track_at(Lbn(page * PAGE_SECTORS))?;
        let first = track.start.0.div_ceil(PAGE_SECTORS);
        Some((
            first..(track.end().0 / PAGE_SECTORS).max(first),
            track.end().0,
        ))
    }

    /// Returns `pages` free pages on one track. The nearest run with a suitable gap wins. Within
    /// this run the smallest suitable gap wins, so that larger gaps stay for longer files.
    pub(super) fn within_a_track(&self, near: u64, pages: u64) -> Option<Range<u64>> {
        if pages > self.longest {
            return None;
        }
        let fits = |run: &Range<u64>| run.end - run.start >= pages;
        let in_run = |run: Range<u64>| {
            let gaps = self.gaps(run).filter(fits);
            gaps.min_by_key(|gap| gap.end - gap.start)
                .map(|gap| gap.start..gap.start + pages)
        };
        self.around(near).filter(fits).find_map(in_run)
    }

    /// Yields the parts of a free run that consist of whole pages of one track.
    fn gaps(&self, run: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        // A bound on the work: the following tracks of a run offer similar gaps.
        const LOOKED_AT: usize = 64;
        let mut page = run.start;
        let next = move || {
            let (track, end) = self.track(page).filter(|_| page < run.end)?;
            let gap = track.start.max(page)..track.end.min(run.end);
            // Continue at the next page that begins on another track.
            page = end.div_ceil(PAGE_SECTORS).max(page + 1);
            Some(gap)
        };
        std::iter::from_fn(next).take(LOOKED_AT)
    }

    /// Returns `pages` contiguous free pages that begin at the first whole page of a track.
    pub(super) fn run_of_tracks(&self, near: u64, pages: u64) -> Option<Range<u64>> {
        let fits = |run: &Range<u64>| run.end - run.start >= pages;
        self.around(near).filter(fits).find_map(|run| {
            let first = self.beginning(run.start)?;
            Some(first..first + pages).filter(|place| place.end <= run.end)
        })
    }

    /// Returns the first page at or behind `page` that is the first whole page of a track.
    fn beginning(&self, page: u64) -> Option<u64> {
        let (track, end) = self.track(page)?;
        if page <= track.start {
            return Some(track.start);
        }
        self.track(end.div_ceil(PAGE_SECTORS))
            .map(|(next, _)| next.start)
    }

    /// Returns `pages` free pages from several runs. Each part begins at the beginning of a track,
    /// and each part but the last ends at the end of a track.
    pub(super) fn whole_tracks(&self, near: u64, pages: u64) -> Option<Vec<Range<u64>>> {
        let (mut parts, mut left) = (Vec::new(), pages);
        for run in self.around(near) {
            let Some(first) = self.beginning(run.start).filter(|&first| first < run.end) else {
                continue;
            };
            // The last part of the file need not end at a track boundary.
            let free = run.end - first;
            let taken = if free >= left {
                left
            } else {
                self.last_end(first, run.end) - first
            };
            if taken > 0 {
                left -= taken;
                parts.push(first..first + taken);
            }
            if left == 0 {
                return Some(parts);
            }
        }
        None
    }

    /// Returns the end of the last track that is free between `first` and `end`; `first` if no
    /// track is.
    fn last_end(&self, first: u64, end: u64) -> u64 {
        match self.track(end) {
            Some((track, _)) if track.start > first => self.end_before(track.start, end),
            // No track lies at `end`, because the run ends at the end of the device.
            None => end,
            Some(_) => first,
        }
    }

    /// Returns the end of the last whole page in front of page `start`, at most `end`. `start` is
    /// the first whole page of a track; a page before `start` that both tracks share does not
    /// count.
    fn end_before(&self, start: u64, end: u64) -> u64 {
        let straddles = self
            .tracks
            .boundary_from(Lbn(start.saturating_sub(1) * PAGE_SECTORS + 1));
        let shared = straddles.is_some_and(|boundary| boundary.0 < start * PAGE_SECTORS);
        (start - u64::from(shared)).min(end)
    }
}
