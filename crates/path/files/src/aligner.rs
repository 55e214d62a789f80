//! Moves files of an existing layout onto tracks, as a defragmenter would (Qian &
//! Wang, section 4.2, "user level"): a file that fits on a track comes to lie on one,
//! a longer one begins where a track does.
//!
//! Only free pages are moved to, and a file's old place is free as soon as it has been
//! moved: nothing is written over that has not been copied, and until the file system
//! is told of a file's new place the old one holds. What has no room yet is tried
//! again after the others have moved. Metadata, directories and what is set aside stay
//! where they are.

use crate::fragmentation::{Fragment, Laid, laid_out};
use crate::{FileError, FileSystem, Kind, PAGE_SECTORS, Place};
use fullstroke_tracks::Boundaries;
use fullstroke_units::Lbn;
use serde::Serialize;
use std::ops::Range;

mod space;

#[cfg(test)]
mod tests;

use space::Space;

/// Passes over the files that have not found room, at most: each frees what the one
/// before could have used.
const PASSES_MAX: usize = 16;

/// Where files lie, what cannot be moved, and where tracks begin.
pub struct Layout<'a> {
    /// The files, each once.
    pub files: &'a [Laid],
    /// Other pages that are in use.
    pub fixed: &'a [Range<u64>],
    /// Pages of the device.
    pub pages: u64,
    /// Its tracks.
    pub tracks: &'a Boundaries,
}

/// How well files lie on tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Alignment {
    /// Files with pages on the device.
    pub files: u64,
    /// Those that lie as they should: on as few tracks as their length allows where they
    /// begin, and, if that is more than one, from the beginning of a track.
    pub aligned: u64,
    /// Tracks that reading each file once comes to.
    pub visits: u64,
    /// Tracks that it would come to if each file lay as it should where it begins.
    pub visits_least: u64,
}

/// One file's move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Index of the file.
    pub file: usize,
    /// Where it lies before.
    pub from: Vec<Fragment>,
    /// Where it lies then.
    pub to: Vec<Fragment>,
}

/// Pages that follow each other in the file, at the old place and at the new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// The first page of the file.
    pub page: u64,
    /// The first page of the device that is read.
    pub from: u64,
    /// The first page of the device that is written.
    pub to: u64,
    /// How many.
    pub pages: u64,
}

/// What is to be moved, in this order, and what comes of it.
#[derive(Clone, Debug)]
pub struct Moves {
    /// One after the other.
    pub moves: Vec<Move>,
    /// The files afterwards, by the same index.
    pub after: Vec<Laid>,
    /// How they lay.
    pub was: Alignment,
    /// How they lie.
    pub is: Alignment,
}

impl Layout<'_> {
    /// Plans the moves.
    pub fn plan(&self) -> Moves {
        let mut space = Space::new(self);
        let mut after = self.files.to_vec();
        let mut moves = Vec::new();
        let mut waiting: Vec<usize> = (0..after.len())
            .filter(|&file| !self.is_aligned(&after[file].fragments))
            .collect();
        // The longest need the longest runs, which the others would cut.
        waiting.sort_by_key(|&file| std::cmp::Reverse(after[file].pages()));
        for _ in 0..PASSES_MAX {
            let before = moves.len();
            waiting.retain(|&file| match self.better(&after[file].fragments, &space) {
                None => true,
                Some(to) => {
                    space.swap(&after[file].fragments, &to);
                    let from = std::mem::replace(&mut after[file].fragments, to.clone());
                    moves.push(Move { file, from, to });
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

    /// How well files lie.
    pub fn alignment(&self, files: &[Laid]) -> Alignment {
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

    /// Tracks that reading the file comes to: as often as it comes back to one.
    fn visits(&self, fragments: &[Fragment]) -> u64 {
        fragments
            .iter()
            .map(|fragment| self.tracks_of(fragment.block, fragment.pages))
            .sum()
    }

    /// The same, if all of it lay from the beginning of its first track on.
    fn visits_least(&self, fragments: &[Fragment]) -> u64 {
        let Some(first) = fragments.first() else {
            return 0;
        };
        let pages = fragments.iter().map(|fragment| fragment.pages).sum();
        let begin = self.first_page_of_track(first.block);
        self.tracks_of(begin, pages)
    }

    /// Tracks that so many pages from `block` on touch; what would lie behind the device
    /// is on none.
    fn tracks_of(&self, block: u64, pages: u64) -> u64 {
        let last = ((block + pages) * PAGE_SECTORS).min(self.tracks.capacity().0) - 1;
        let number = |lbn: u64| self.tracks.number_of(Lbn(lbn));
        match (number(block * PAGE_SECTORS), number(last)) {
            (Some(first), Some(last)) => last - first + 1,
            _ => 0,
        }
    }

    /// The first page that lies wholly on the track that `block` begins on; `block`
    /// itself where the track has no whole page before it.
    fn first_page_of_track(&self, block: u64) -> u64 {
        let track = self.tracks.track_at(Lbn(block * PAGE_SECTORS));
        track.map_or(block, |track| {
            track.start.0.div_ceil(PAGE_SECTORS).min(block)
        })
    }

    /// A place in free pages where the file lies better, if there is one.
    fn better(&self, fragments: &[Fragment], space: &Space<'_>) -> Option<Vec<Fragment>> {
        let pages = fragments.iter().map(|fragment| fragment.pages).sum();
        let near = fragments.first()?.block;
        let visits = self.visits(fragments);
        let place = |runs: Vec<Range<u64>>| {
            let to = laid(fragments, &runs);
            let (aligned, then) = (self.is_aligned(&to), self.visits(&to));
            (then < visits || (then == visits && aligned)).then_some(to)
        };
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

/// The file's pages in these runs, in order: holes stay holes.
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
    Laid::new(String::new(), pieces).fragments
}

impl Move {
    /// What is copied, in order of the file.
    pub fn pieces(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let (mut olds, mut news) = (self.from.iter().copied(), self.to.iter().copied());
        let (mut old, mut new) = (olds.next(), news.next());
        while let (Some(from), Some(to)) = (old, new) {
            let pages = from.pages.min(to.pages);
            pieces.push(Piece {
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

    /// How many pages.
    pub fn pages(&self) -> u64 {
        self.from.iter().map(|fragment| fragment.pages).sum()
    }
}

/// What is left of a fragment behind its first pages.
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

/// The files of a file system, and the pages that are used by anything else.
///
/// # Errors
/// A file system without names, which has no files to move.
pub fn used(system: &dyn FileSystem) -> Result<(Vec<Laid>, Vec<Range<u64>>), FileError> {
    let files = laid_out(system)?;
    let mut fixed = system.metadata();
    for object in system.objects() {
        if system.attributes(object)?.kind == Kind::Directory {
            let mut extents = Vec::new();
            system.extents(object, &mut extents)?;
            fixed.extend(extents.iter().filter_map(|mapped| match mapped.place {
                Place::Device(lbn) => {
                    let first = lbn.0 / PAGE_SECTORS;
                    Some(first..first + mapped.pages)
                }
                Place::Delayed | Place::Hole => None,
            }));
        }
    }
    Ok((files, fixed))
}
