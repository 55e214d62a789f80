//! A set of rows, one bit per row.

/// The soft rows still to be copied.
#[derive(Clone, Debug)]
pub(super) struct StaleRows {
    words: Vec<u64>,
    rows: u64,
    count: u64,
    /// Lower bound: no row below is in the set.
    from: u64,
}

impl StaleRows {
    /// Returns an empty set over `rows` rows.
    pub(super) fn none(rows: u64) -> StaleRows {
        StaleRows {
            words: vec![0; rows.div_ceil(64) as usize],
            rows,
            count: 0,
            from: rows,
        }
    }

    /// Returns the number of rows in the set.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn contains(&self, row: u64) -> bool {
        self.words[(row / 64) as usize] >> (row % 64) & 1 == 1
    }

    pub(super) fn insert(&mut self, row: u64) {
        let word = &mut self.words[(row / 64) as usize];
        let bit = 1 << (row % 64);
        self.count += u64::from(*word & bit == 0);
        *word |= bit;
        self.from = self.from.min(row);
    }

    pub(super) fn remove(&mut self, row: u64) {
        let word = &mut self.words[(row / 64) as usize];
        let bit = 1 << (row % 64);
        self.count -= u64::from(*word & bit != 0);
        *word &= !bit;
    }

    pub(super) fn insert_all(&mut self) {
        self.words.fill(u64::MAX);
        // Bits behind the last row must stay 0, because a search would return rows that do not
        // exist.
        if let Some(last) = self
            .words
            .last_mut()
            .filter(|_| !self.rows.is_multiple_of(64))
        {
            *last = (1 << (self.rows % 64)) - 1;
        }
        (self.count, self.from) = (self.rows, 0);
    }

    /// Removes the first run, at most `most` rows. Returns the first row and the number of rows.
    pub(super) fn take_run(&mut self, most: u64) -> Option<(u64, u64)> {
        let first = self.first()?;
        let run = (first..self.rows)
            .take(most as usize)
            .take_while(|&row| self.contains(row))
            .count() as u64;
        (first..first + run).for_each(|row| self.words[(row / 64) as usize] &= !(1 << (row % 64)));
        self.count -= run;
        self.from = first + run;
        Some((first, run))
    }

    fn first(&self) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let begin = (self.from / 64) as usize;
        let word = begin + self.words[begin..].iter().position(|word| *word != 0)?;
        Some(word as u64 * 64 + u64::from(self.words[word].trailing_zeros()))
    }
}
