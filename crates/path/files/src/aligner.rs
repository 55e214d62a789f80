//! Moves the files of an existing layout onto tracks, as a defragmenter would (Qian & Wang, section
//! 4.2, "user level"). A file that fits on one track moves to one track. A longer file moves so
//! that it begins at the beginning of a track.
//!
//! Moves go only to free pages. The old pages of a file become free after the whole file has been
//! copied. So no page is overwritten before its copy exists, and the old place stays valid until
//! the file system learns the new place. A file without a suitable free place is tried again after
//! the other files have moved. Metadata, directories and pre-allocated pages stay in place.

use crate::fragmentation::{FileFragments, Fragment, laid_out};
use crate::{FileError, FileSystem, ObjectKind, PAGE_SECTORS, PagePlace};
use fullstroke_tracks::Boundaries;
use fullstroke_units::Lbn;
use serde::Serialize;
use std::ops::Range;

mod space;

#[cfg(test)]
mod tests;

use space::Space;

/// Largest number of passes over the files that wait for a place. Each pass may free pages that the
/// pass before could have used.
const PASSES_MAX: usize = 16;

/// Input of the planner: places of the files, immovable pages and track boundaries.
pub struct AlignerInput<'a> {
    /// The files, each listed once.
    pub files: &'a [FileFragments],
    /// Used pages that must not move.
    pub fixed: &'a [Range<u64>],
    /// Number of pages of the device.
    pub pages: u64,
    /// Track boundaries of the device.
    pub tracks: &'a Boundaries,
}

/// Alignment of files with tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Alignment {
    /// Number of files with pages on the device.
    pub files: u64,
    /// Number of aligned files. An aligned file touches as few tracks as possible for its length. A
    /// file that needs several tracks must also begin at the beginning of a track.
    pub aligned: u64,
    /// Number of track visits when each file is read once.
    pub visits: u64,
    /// Number of track visits if each file were contiguous from the beginning of its first track.
    pub visits_least: u64,
}

/// The move of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMove {
    /// Index of the file.
    pub file: usize,
    /// Fragments before the move.
    pub from: Vec<Fragment>,
    /// Fragments after the move.
    pub to: Vec<Fragment>,
}

/// Pages contiguous in the file, at the old place and at the new place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MovedPages {
    /// First page in the file.
    pub page: u64,
    /// First page on the device to read.
    pub from: u64,
    /// First page on the device to write.
    pub to: u64,
    /// Number of pages.
    pub pages: u64,
}

/// Planned moves in order, and the resulting layout.
#[derive(Clone, Debug)]
pub struct Moves {
    /// The moves, in the order of execution.
    pub moves: Vec<FileMove>,
    /// The files after all moves, with the same indices.
    pub after: Vec<FileFragments>,
    /// Alignment before the moves.
    pub was: Alignment,
    /// Alignment after the moves.
    pub is: Alignment,
}

impl AlignerInput<'_> {
    /// Plans the moves.
    pub fn plan(&self) -> Moves {
        let mut space = Space::new(self.files, self.fixed, self.pages, self.tracks);
        let mut after = self.files.to_vec();
        let mut moves = Vec::new();
        let mut waiting: Vec<usize> = (0..after.len())
            .filter(|&file| !self.is_aligned(&after[file].fragments))
            .collect();
        // Longest files first: they need the longest free runs, and shorter files would cut these
        // runs.
        waiting.sort_by_key(|&file| std::cmp::Reverse(after[file].pages()));
        for _ in 0..PASSES_MAX {
            let before = moves.len();
            waiting.retain(|&file| match self.better(&after[file].fragments, &space) {
                None => true,
                Some(to) => {
                    space.swap(&after[file].fragments, &to);
                    let from = std::mem::replace(&mut after[file].fragments, to.clone());
                    moves.push(FileMove { file, from, to });
                    false
                }
            });
            if moves.len() == before {
                break;
            }
        }
        Moves {
            moves,
            was: self.alignment(self.files),
            is: self.alignment(&after),
            after,
        }
    }

    /// Returns the alignment of `files` with the tracks.
    pub fn alignment(&self, files: &[FileFragments]) -> Alignment {
        let mut sum = Alignment::default();
        for file in files.iter().filter(|file| !file.fragments.is_empty()) {
            sum.files += 1;
            sum.aligned += u64::from(self.is_aligned(&file.fragments));
            sum.visits += self.visits(&file.fragments);
            sum.visits_least += self.visits_least(&file.fragments);
        }
        sum
    }

    fn is_aligned(&self, fragments: &[Fragment]) -> bool {
        let Some(first) = fragments.first() else {
            return true;
        };
        let least = self.visits_least(fragments);
        let begins = least == 1 || self.first_page_of_track(first.block) == first.block;
        begins && self.visits(fragments) <= least
    }

    /// Returns the number of track visits when the file is read once. A track that several
    /// fragments touch counts once for each fragment.
    fn visits(&self, fragments: &[Fragment]) -> u64 {
        fragments
            .iter()
            .map(|fragment| self.tracks_of(fragment.block, fragment.pages))
            .sum()
    }

    /// Returns the number of track visits if the whole file were contiguous from the first page of
    /// its first track.
    fn visits_least(&self, fragments: &[Fragment]) -> u64 {
        let Some(first) = fragments.first() else {
            return 0;
        };
        let pages = fragments.iter().map(|fragment| fragment.pages).sum();
        let begin = self.first_page_of_track(first.block);
        self.tracks_of(begin, pages)
    }

    /// Returns the number of tracks that `pages` pages from `block` on touch. Pages behind the end
    /// of the device touch no track.
    fn tracks_of(&self, block: u64, pages: u64) -> u64 {
        let last = ((block + pages) * PAGE_SECTORS).min(self.tracks.capacity().0) - 1;
        let number = |lbn: u64| self.tracks.number_of(Lbn(lbn));
        match (number(block * PAGE_SECTORS), number(last)) {
            (Some(first), Some(last)) => last - first + 1,
            _ => 0,
        }
    }

    /// Returns the first whole page of the track on which `block` begins. Returns `block` itself if
    /// the track has no whole page before `block`.
    fn first_page_of_track(&self, block: u64) -> u64 {
        let track = self.tracks.track_at(Lbn(block * PAGE_SECTORS));
        track.map_or(block, |track| {
            track.start.0.div_ceil(PAGE_SECTORS).min(block)
        })
    }

    /// Returns a place in free pages where the file needs fewer visits or becomes aligned; `None`
    /// if there is none.
    fn better(&self, fragments: &[Fragment], space: &Space<'_>) -> Option<Vec<Fragment>> {
        let pages = fragments.iter().map(|fragment| fragment.pages).sum();
        let near = fragments.first()?.block;
        let visits = self.visits(fragments);
        let place = |runs: Vec<Range<u64>>| {
            let to = laid(fragments, &runs);
            let (aligned, then) = (self.is_aligned(&to), self.visits(&to));
            (then < visits || (then == visits && aligned)).then_some(to)
        };
        // From the best place to the worst: one track needs one visit, one run needs no seek in
        // between, and several runs need a seek for each.
        let in_a_track = space.within_a_track(near, pages).map(|run| vec![run]);
        in_a_track
            .and_then(place)
            .or_else(|| {
                space
                    .run_of_tracks(near, pages)
                    .map(|run| vec![run])
                    .and_then(place)
            })
            .or_else(|| space.whole_tracks(near, pages).and_then(place))
    }
}

/// Lays the file's pages into `runs` in order. Holes of the file stay holes.
fn laid(fragments: &[Fragment], runs: &[Range<u64>]) -> Vec<Fragment> {
    let mut runs = runs.iter().cloned();
    let mut run = runs.next().unwrap_or(0..0);
    let mut pieces = Vec::new();
    for fragment in fragments {
        let (mut page, mut left) = (fragment.page, fragment.pages);
        while left > 0 {
            while run.is_empty() {
                let Some(next) = runs.next() else {
                    return joined(pieces);
                };
                run = next;
            }
            let pages = left.min(run.end - run.start);
            pieces.push(Fragment {
                page,
                block: run.start,
                pages,
            });
            (page, left, run.start) = (page + pages, left - pages, run.start + pages);
        }
    }
    joined(pieces)
}

fn joined(pieces: Vec<Fragment>) -> Vec<Fragment> {
    FileFragments::new(String::new(), pieces).fragments
}

impl FileMove {
    /// Returns the pieces to copy, in file order.
    pub fn pieces(&self) -> Vec<MovedPages> {
        let mut pieces = Vec::new();
        let (mut olds, mut news) = (self.from.iter().copied(), self.to.iter().copied());
        let (mut old, mut new) = (olds.next(), news.next());
        while let (Some(from), Some(to)) = (old, new) {
            let pages = from.pages.min(to.pages);
            pieces.push(MovedPages {
                page: from.page,
                from: from.block,
                to: to.block,
                pages,
            });
            old = behind(from, pages).or_else(|| olds.next());
            new = behind(to, pages).or_else(|| news.next());
        }
        pieces
    }

    /// Returns the number of pages to move.
    pub fn pages(&self) -> u64 {
        self.from.iter().map(|fragment| fragment.pages).sum()
    }
}

/// Returns the rest of a fragment behind its first `pages` pages; `None` if nothing is left.
fn behind(fragment: Fragment, pages: u64) -> Option<Fragment> {
    let Fragment {
        page,
        block,
        pages: all,
    } = fragment;
    (all > pages).then(|| Fragment {
        page: page + pages,
        block: block + pages,
        pages: all - pages,
    })
}

/// Returns the files of a file system, and the pages in use by anything else.
///
/// # Errors
/// Fails for a file system without names, because it has no files to move.
pub fn used(system: &dyn FileSystem) -> Result<(Vec<FileFragments>, Vec<Range<u64>>), FileError> {
    let files = laid_out(system)?;
    let mut fixed = system.metadata();
    for object in system.objects() {
        if system.attributes(object)?.kind == ObjectKind::Directory {
            let mut extents = Vec::new();
            system.extents(object, &mut extents)?;
            fixed.extend(extents.iter().filter_map(|mapped| match mapped.place {
                PagePlace::Device(lbn) => {
                    let first = lbn.0 / PAGE_SECTORS;
                    Some(first..first + mapped.pages)
                }
                PagePlace::Delayed | PagePlace::Hole => None,
            }));
        }
    }
    Ok((files, fixed))
}
