//! Places of a file's pages: maps runs of pages to runs of device pages.

use std::ops::Range;

/// `pages` pages of the file from `page` on, at the device pages from `block` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MappedPages {
    pub(crate) page: u64,
    pub(crate) block: u64,
    pub(crate) pages: u64,
}

impl MappedPages {
    pub(crate) fn end(&self) -> u64 {
        self.page + self.pages
    }
}

/// Pieces of one file, ascending. Adjacent pieces are joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileMap {
    pieces: Vec<MappedPages>,
}

impl FileMap {
    pub(crate) fn pieces(&self) -> &[MappedPages] {
        &self.pieces
    }

    /// Returns the number of pages with a place.
    pub(crate) fn pages(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.pages).sum()
    }

    pub(crate) fn end(&self) -> u64 {
        self.pieces.last().map_or(0, MappedPages::end)
    }

    /// Returns the index of the first piece that ends behind `page`.
    pub(crate) fn index_from(&self, page: u64) -> usize {
        self.pieces.partition_point(|piece| piece.end() <= page)
    }

    /// Returns the place of `page`.
    pub(crate) fn block(&self, page: u64) -> Option<u64> {
        let piece = self.pieces.get(self.index_from(page))?;
        (piece.page <= page).then(|| piece.block + (page - piece.page))
    }

    /// Returns the last page before `page` that has a place, and this place.
    pub(crate) fn before(&self, page: u64) -> Option<(u64, u64)> {
        let piece = self.pieces[..self.pieces.partition_point(|piece| piece.page < page)].last()?;
        let last = piece.end().min(page) - 1;
        Some((last, piece.block + (last - piece.page)))
    }

    /// Returns the first page from `page` on that has a place.
    pub(crate) fn first_from(&self, page: u64) -> Option<u64> {
        self.pieces
            .get(self.index_from(page))
            .map(|piece| piece.page.max(page))
    }

    /// Returns the parts of `range` without a place, in order.
    pub(crate) fn gaps(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut gaps = Vec::new();
        let mut at = range.start;
        for piece in &self.pieces[self.index_from(range.start)..] {
            if piece.page >= range.end {
                break;
            }
            if piece.page > at {
                gaps.push(at..piece.page);
            }
            at = piece.end();
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        gaps
    }

    /// Gives a place to pages that have none.
    pub(crate) fn insert(&mut self, new: MappedPages) {
        let at = self.index_from(new.page);
        assert!(new.pages > 0, "no page is placed: {new:?}");
        debug_assert!(
            self.pieces
                .get(at)
                .is_none_or(|next| next.page >= new.end()),
            "a page is placed twice"
        );
        let follows = |one: &MappedPages, other: &MappedPages| {
            one.end() == other.page && one.block + one.pages == other.block
        };
        let joins_next = self.pieces.get(at).is_some_and(|next| follows(&new, next));
        let joins_last = at > 0 && follows(&self.pieces[at - 1], &new);
        match (joins_last, joins_next) {
            (true, true) => {
                self.pieces[at - 1].pages += new.pages + self.pieces[at].pages;
                self.pieces.remove(at);
            }
            (true, false) => self.pieces[at - 1].pages += new.pages,
            (false, true) => {
                let next = &mut self.pieces[at];
                *next = MappedPages {
                    pages: new.pages + next.pages,
                    ..new
                };
            }
            (false, false) => self.pieces.insert(at, new),
        }
    }

    /// Removes and returns the places of all pages from `page` on.
    pub(crate) fn cut(&mut self, page: u64) -> Vec<MappedPages> {
        let at = self.index_from(page);
        let mut rest = self.pieces.split_off(at);
        debug_assert!(
            self.end() <= page,
            "pages behind {page} keep their places: {:?}",
            self.pieces.last()
        );
        if let Some(first) = rest.first_mut()
            && first.page < page
        {
            let kept = page - first.page;
            self.pieces.push(MappedPages {
                pages: kept,
                ..*first
            });
            assert!(
                kept < first.pages,
                "{kept} pages are kept of {first:?}, which is cut at {page}"
            );
            *first = MappedPages {
                page,
                block: first.block + kept,
                pages: first.pages - kept,
            };
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_become_one_piece_and_a_cut_parts_it() {
        let mut map = FileMap::default();
        map.insert(MappedPages {
            page: 0,
            block: 100,
            pages: 4,
        });
        map.insert(MappedPages {
            page: 8,
            block: 108,
            pages: 4,
        });
        assert_eq!(map.gaps(0..14), [4..8, 12..14]);
        assert_eq!(map.before(8), Some((3, 103)));
        map.insert(MappedPages {
            page: 4,
            block: 104,
            pages: 4,
        });
        assert_eq!(
            map.pieces(),
            [MappedPages {
                page: 0,
                block: 100,
                pages: 12
            }]
        );
        assert_eq!(
            map.cut(5),
            [MappedPages {
                page: 5,
                block: 105,
                pages: 7
            }]
        );
        assert_eq!(
            (map.pages(), map.block(4), map.block(5)),
            (5, Some(104), None)
        );
    }
}
