//! Fragmentation of files. The layout may come from a file system of this crate, or from `filefrag`
//! on a real file system.

use crate::{FileError, FileSystem, ObjectKind, PAGE_SECTORS, PagePlace};
use serde::Serialize;

/// Pages of a file that are contiguous on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fragment {
    /// First page in the file.
    pub page: u64,
    /// First page on the device.
    pub block: u64,
    /// Number of pages.
    pub pages: u64,
}

/// Layout of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileFragments {
    /// Path from the root.
    pub path: String,
    /// Fragments in file order. Fragments that are adjacent in the file and on the device are
    /// joined.
    pub fragments: Vec<Fragment>,
}

impl FileFragments {
    /// Makes the layout, and joins fragments that are adjacent in the file and on the device.
    pub fn new(path: String, fragments: impl IntoIterator<Item = Fragment>) -> FileFragments {
        let mut joined: Vec<Fragment> = Vec::new();
        for fragment in fragments {
            match joined.last_mut() {
                Some(last)
                    if last.page + last.pages == fragment.page
                        && last.block + last.pages == fragment.block =>
                {
                    last.pages += fragment.pages;
                }
                _ => joined.push(fragment),
            }
        }
        FileFragments {
            path,
            fragments: joined,
        }
    }

    /// Returns the number of pages on the device.
    pub fn pages(&self) -> u64 {
        self.fragments.iter().map(|fragment| fragment.pages).sum()
    }
}

/// Returns the layout of all files of a file system, by path. Directories and empty files are left
/// out.
pub fn laid_out(system: &dyn FileSystem) -> Result<Vec<FileFragments>, FileError> {
    let mut files = Vec::new();
    let mut waiting = vec![(system.root(), String::new())];
    while let Some((directory, path)) = waiting.pop() {
        for (name, object) in system.entries(directory)? {
            let path = if path.is_empty() {
                name
            } else {
                format!("{path}/{name}")
            };
            match system.attributes(object)?.kind {
                ObjectKind::Directory => waiting.push((object, path)),
                ObjectKind::File => {
                    let mut extents = Vec::new();
                    system.extents(object, &mut extents)?;
                    let placed = extents.iter().filter_map(|mapped| match mapped.place {
                        PagePlace::Device(lbn) => Some(Fragment {
                            page: mapped.page,
                            block: lbn.0 / PAGE_SECTORS,
                            pages: mapped.pages,
                        }),
                        _ => None,
                    });
                    files.push(FileFragments::new(path, placed));
                }
            }
        }
    }
    files.retain(|file| !file.fragments.is_empty());
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// Number of files in one class of fragment counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Smallest number of fragments.
    pub from: u64,
    /// Largest number of fragments.
    pub to: u64,
    /// Number of files in the class.
    pub files: u64,
}

/// Fragmentation of all files.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fragmentation {
    /// Number of files with pages on the device.
    pub files: u64,
    /// Number of pages of these files.
    pub pages: u64,
    /// Number of fragments of these files.
    pub fragments: u64,
    /// Files by number of fragments, in classes that double.
    pub distribution: Vec<Share>,
    /// Contiguity from 0 to 1: of all pages except each file's first page, the share that follows
    /// its predecessor on the device. 1 if there are no such pages.
    pub contiguity: f64,
    /// Number of regions (block groups, allocation groups) with data.
    pub regions_used: u64,
    /// Share of all data that lies in the fullest region.
    pub fullest_share: f64,
    /// Mean number of regions in which a file lies.
    pub regions_a_file: f64,
}

impl Fragmentation {
    /// Returns the mean number of fragments of a file; 0 without files.
    pub fn fragments_a_file(&self) -> f64 {
        if self.files == 0 {
            0.0
        } else {
            self.fragments as f64 / self.files as f64
        }
    }

    /// Computes the fragmentation of `files` on a device with regions of `region_pages` pages.
    pub fn of(files: &[FileFragments], region_pages: u64) -> Fragmentation {
        let region_pages = region_pages.max(1);
        let mut regions = std::collections::BTreeMap::<u64, u64>::new();
        let mut visits = 0;
        let mut distribution: Vec<Share> = Vec::new();
        for file in files {
            let mut own = std::collections::BTreeSet::new();
            for fragment in &file.fragments {
                let end = fragment.block + fragment.pages;
                let mut at = fragment.block;
                while at < end {
                    let region = at / region_pages;
                    let stop = end.min((region + 1) * region_pages);
                    *regions.entry(region).or_default() += stop - at;
                    own.insert(region);
                    at = stop;
                }
            }
            visits += own.len() as u64;
            let class = (file.fragments.len() as u64).max(1).ilog2() as usize;
            while distribution.len() <= class {
                let from = 1 << distribution.len();
                distribution.push(Share {
                    from,
                    to: 2 * from - 1,
                    files: 0,
                });
            }
            distribution[class].files += 1;
        }
        let pages: u64 = files.iter().map(FileFragments::pages).sum();
        let fragments: u64 = files.iter().map(|file| file.fragments.len() as u64).sum();
        let count = files.len() as u64;
        let part = |of: u64, all: u64, none: f64| {
            if all == 0 {
                none
            } else {
                of as f64 / all as f64
            }
        };
        Fragmentation {
            files: count,
            pages,
            fragments,
            distribution,
            contiguity: part(pages - fragments, pages - count, 1.0),
            regions_used: regions.len() as u64,
            fullest_share: part(regions.values().copied().max().unwrap_or(0), pages, 0.0),
            regions_a_file: part(visits, count, 0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_are_counted_as_the_device_has_them() {
        let fragment = |page, block, pages| Fragment { page, block, pages };
        let one = FileFragments::new("a".into(), [fragment(0, 10, 4), fragment(4, 14, 4)]);
        assert_eq!(one.fragments, [fragment(0, 10, 8)]);
        let other = FileFragments::new(
            "b".into(),
            [
                fragment(0, 98, 4),
                fragment(8, 300, 4),
                fragment(12, 200, 4),
            ],
        );
        let all = Fragmentation::of(&[one, other], 100);
        assert_eq!((all.files, all.pages, all.fragments), (2, 20, 4));
        assert_eq!(all.contiguity, 16.0 / 18.0);
        assert_eq!((all.regions_used, all.regions_a_file), (4, 2.5));
        assert_eq!(all.fullest_share, 0.5);
        assert_eq!(
            all.distribution
                .iter()
                .map(|share| share.files)
                .collect::<Vec<_>>(),
            [1, 1]
        );
    }
}
