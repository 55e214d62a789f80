//! A map of a device in characters.

use fullstroke_files::fragmentation::{FileFragments, Fragment};
use fullstroke_files::{FileSystem, ObjectKind, PAGE_SECTORS, PagePlace};
use std::ops::Range;

/// Number of cells per line. `LINES_MAX` limits the number of lines.
const CELLS: u64 = 64;
const LINES_MAX: u64 = 32;

/// Legend of the map's characters.
pub(super) const LEGEND: &str = "F the file, M metadata or directories (half a cell or more), # full, + half or more, . less, blank free";

/// Contents of a map cell, in pages.
#[derive(Clone, Copy, Default)]
struct MapCell {
    file: u64,
    metadata: u64,
    data: u64,
}

/// Title and cells of one line of the map.
pub(super) type Line = (String, String);

/// Returns a line per region, or per group of regions if there are more than [`LINES_MAX`]. Pages
/// of the file `shown` appear as F.
pub(super) fn map(
    system: &dyn FileSystem,
    files: &[FileFragments],
    shown: Option<&FileFragments>,
) -> Vec<Line> {
    let regions = system.regions();
    let pages = system.usage().pages;
    // A file system of terabytes has thousands of block groups.
    let joined = regions.count.div_ceil(LINES_MAX).max(1);
    let lines = regions.count.div_ceil(joined);
    let line_pages = regions.pages * joined;
    let cell_pages = line_pages.div_ceil(CELLS).max(1);
    let mut cells = vec![MapCell::default(); (lines * CELLS) as usize];
    // A line starts at its first region, even if the last cell of the line before is not full.
    let mut fill = |range: Range<u64>, add: fn(&mut MapCell, u64)| {
        let mut at = range.start;
        while at < range.end {
            let (line, within) = (at / line_pages, at % line_pages);
            let cell = within / cell_pages;
            let stop = (line * line_pages + (cell + 1) * cell_pages).min((line + 1) * line_pages);
            let end = range.end.min(stop);
            if let Some(cell) = cells.get_mut((line * CELLS + cell) as usize) {
                add(cell, end - at);
            }
            at = end;
        }
    };
    let run = |fragment: &Fragment| fragment.block..fragment.block + fragment.pages;
    system
        .metadata()
        .into_iter()
        .for_each(|range| fill(range, |cell, pages| cell.metadata += pages));
    directories(system)
        .into_iter()
        .for_each(|range| fill(range, |cell, pages| cell.metadata += pages));
    for fragment in files.iter().flat_map(|file| &file.fragments) {
        fill(run(fragment), |cell, pages| cell.data += pages);
    }
    for fragment in shown.iter().flat_map(|file| &file.fragments) {
        fill(run(fragment), |cell, pages| cell.file += pages);
    }
    (0..lines)
        .map(|line| {
            (
                title(line, joined, regions.count),
                row(&cells, line, line_pages, cell_pages, pages),
            )
        })
        .collect()
}

fn title(line: u64, joined: u64, count: u64) -> String {
    let (first, last) = (line * joined, ((line + 1) * joined).min(count) - 1);
    if first == last {
        first.to_string()
    } else {
        format!("{first}-{last}")
    }
}

/// Returns the page ranges of directories on the device.
fn directories(system: &dyn FileSystem) -> Vec<Range<u64>> {
    let is_directory = |object: &_| {
        system
            .attributes(*object)
            .is_ok_and(|known| known.kind == ObjectKind::Directory)
    };
    let mut extents = Vec::new();
    for object in system
        .objects()
        .iter()
        .filter(|object| is_directory(object))
    {
        // A listed object exists, so `extents` cannot fail.
        let _ = system.extents(*object, &mut extents);
    }
    let placed = extents.iter().filter_map(|mapped| match mapped.place {
        PagePlace::Device(lbn) => Some(lbn.0 / PAGE_SECTORS..lbn.0 / PAGE_SECTORS + mapped.pages),
        _ => None,
    });
    placed.collect()
}

fn row(cells: &[MapCell], line: u64, line_pages: u64, cell_pages: u64, pages: u64) -> String {
    let glyph = |at: u64| {
        let start = line * line_pages + at * cell_pages;
        let end = (start + cell_pages).min((line + 1) * line_pages).min(pages);
        // The last line may have fewer cells than the others.
        let size = end.saturating_sub(start);
        if size == 0 {
            None
        } else {
            Some(cells[(line * CELLS + at) as usize].glyph(size))
        }
    };
    (0..CELLS).map_while(glyph).collect()
}

impl MapCell {
    fn glyph(self, size: u64) -> char {
        let used = self.metadata + self.data;
        match self {
            // First, because the user asked for this file: even one page of it must be seen in a
            // cell of thousands.
            cell if cell.file > 0 => 'F',
            // Before the full cell: a bitmap block or inode table fills its cell as data would.
            cell if 2 * cell.metadata >= size => 'M',
            _ if used >= size => '#',
            _ if 2 * used >= size => '+',
            _ if used > 0 => '.',
            _ => ' ',
        }
    }
}
