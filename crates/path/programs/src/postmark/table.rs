//! The existing files.

use crate::mersenne::Mersenne;

/// A file. The number is the file's name in the directory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct File {
    pub number: u32,
    /// Index of the subdirectory over all locations.
    pub directory: u32,
    /// Length in bytes; 0 for no file.
    pub size: u32,
}

/// PostMark's table, with twice as many entries as the initial number of files. A new file takes
/// the entry after the previous new file. If the entry is in use, the new file takes the first free
/// entry. This rule determines the order of the final deletions.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Entries up to the last ever used.
    files: Vec<File>,
    entries: u32,
    behind_last: u32,
    /// Lower bound of the free entries.
    free_from: u32,
}

impl Table {
    pub fn new(files: u32) -> Table {
        Table {
            files: Vec::new(),
            entries: files * 2,
            behind_last: 0,
            free_from: 0,
        }
    }

    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// Returns the contents of an entry; size 0 for an empty entry.
    pub fn get(&self, entry: u32) -> File {
        self.files.get(entry as usize).copied().unwrap_or_default()
    }

    pub fn get_mut(&mut self, entry: u32) -> &mut File {
        &mut self.files[entry as usize]
    }

    /// Returns an entry for a new file, if one is free.
    pub fn take(&mut self) -> Option<u32> {
        if self.behind_last == self.entries || self.get(self.behind_last).size > 0 {
            self.behind_last =
                (self.free_from..self.entries).find(|&entry| self.get(entry).size == 0)?;
            self.free_from = self.behind_last + 1;
        }
        let entry = self.behind_last;
        assert!(
            entry < self.entries && self.get(entry).size == 0,
            "entry {entry} of {} is taken for a new file",
            self.entries
        );
        self.behind_last += 1;
        if self.files.len() <= entry as usize {
            self.files.resize(entry as usize + 1, File::default());
        }
        Some(entry)
    }

    pub fn free(&mut self, entry: u32) {
        assert!(
            self.get(entry).size > 0,
            "entry {entry} is freed, and no file is in it"
        );
        self.files[entry as usize].size = 0;
        self.free_from = self.free_from.min(entry);
    }

    /// Returns a random existing file. There must be at least one.
    pub fn any(&self, draws: &mut Mersenne) -> u32 {
        loop {
            let entry = draws.below(self.entries);
            if self.get(entry).size > 0 {
                return entry;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a table searched as in PostMark.
    #[test]
    fn new_files_take_the_entry_behind_the_last_or_the_first_that_is_free() {
        let mut table = Table::new(50);
        let (mut plain, mut last) = ([0u32; 100], 0usize);
        let mut draws = Mersenne::new(3);
        for number in 1..5000 {
            let free = if last < 100 && plain[last] == 0 {
                Some(last)
            } else {
                plain.iter().position(|&n| n == 0)
            };
            // The table is filled completely, then most files are deleted, and so on.
            if draws.below(10) < if number / 500 % 2 == 0 { 7 } else { 3 } {
                assert_eq!(table.take().map(|entry| entry as usize), free, "{number}");
                if let Some(free) = free {
                    (plain[free], last) = (number, free + 1);
                    *table.get_mut(free as u32) = File {
                        number,
                        directory: 0,
                        size: 1,
                    };
                }
            } else if plain.iter().any(|&n| n > 0) {
                let entry = table.any(&mut draws);
                assert_eq!(table.get(entry).number, plain[entry as usize]);
                table.free(entry);
                plain[entry as usize] = 0;
            }
        }
    }
}
