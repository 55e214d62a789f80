//! The files that there are.

use crate::mersenne::Mersenne;

/// A file: its name is its number, in its directory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct File {
    pub number: u32,
    /// Location and subdirectory.
    pub directory: u32,
    /// In bytes; 0 is no file.
    pub size: u32,
}

/// PostMark's table: twice as many entries as files are created first. New files take
/// the entry behind the last new one, or else the first that is free, which is how the
/// order of the last deletions comes about.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// As far as entries have ever been used.
    files: Vec<File>,
    entries: u32,
    behind_last: u32,
    /// None before it is free.
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

    /// What is in an entry; size 0 if nothing is.
    pub fn get(&self, entry: u32) -> File {
        self.files.get(entry as usize).copied().unwrap_or_default()
    }

    pub fn get_mut(&mut self, entry: u32) -> &mut File {
        &mut self.files[entry as usize]
    }

    /// An entry for a new file, if there is one.
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

    /// Any of the files; there must be one.
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

    /// The table as PostMark searches it.
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
            // As many are created as there is room, then deleted down to a few.
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
