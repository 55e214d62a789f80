//! The places of one block on the children of a vdev.

use std::ops::Range;

/// A run of bytes of one child. Addresses count from the end of the child's front labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Column {
    /// Index of the child.
    pub child: u32,
    /// First byte.
    pub offset: u64,
    /// Number of bytes; 0 for a data column without data.
    pub size: u64,
}

/// Columns with common parity: the parity columns first, then the data columns in the order of the
/// block's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRow {
    first: u32,
    end: u32,
    /// Number of parity columns. A row of a mirror has none: all its columns are copies.
    pub parities: u32,
}

/// The places of one block. The memory is reused from block to block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockMap {
    columns: Vec<Column>,
    rows: Vec<BlockRow>,
    /// Sectors that belong to the block and hold nothing. A write may write them, to join its
    /// neighbours.
    skips: Vec<Column>,
}

impl BlockRow {
    /// Returns the indices of all columns.
    pub fn all(&self) -> Range<usize> {
        self.first as usize..self.end as usize
    }

    /// Returns the indices of the data columns.
    pub fn data(&self) -> Range<usize> {
        (self.first + self.parities) as usize..self.end as usize
    }
}

impl BlockMap {
    /// Returns all columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the rows.
    pub fn rows(&self) -> &[BlockRow] {
        &self.rows
    }

    /// Returns the sectors without contents.
    pub fn skips(&self) -> &[Column] {
        &self.skips
    }

    /// Removes the contents and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.columns.clear();
        self.rows.clear();
        self.skips.clear();
    }

    /// Begins a row with `parities` parity columns.
    pub(crate) fn begin_row(&mut self, parities: u32) {
        let at = self.columns.len() as u32;
        self.rows.push(BlockRow {
            first: at,
            end: at,
            parities,
        });
    }

    /// Adds a column to the row that began last.
    pub(crate) fn push(&mut self, column: Column) {
        self.columns.push(column);
        let row = self.rows.last_mut().expect("a column belongs to a row");
        row.end += 1;
    }

    /// Adds a sector without contents.
    pub(crate) fn skip(&mut self, sector: Column) {
        self.skips.push(sector);
    }

    /// Makes all columns of each row as long as the first one. The added sectors are the skips of a
    /// dRAID (`vdev_draid_map_alloc_write`, `vdev_draid_map_alloc_scrub`).
    pub(crate) fn pad(&mut self) {
        for row in &self.rows {
            let columns = &mut self.columns[row.all()];
            let longest = columns.first().map_or(0, |column| column.size);
            columns.iter_mut().for_each(|column| column.size = longest);
        }
        self.skips.clear();
    }

    /// Exchanges the places of the first two columns of the row that began last.
    pub(crate) fn swap_first_two(&mut self) {
        let first = self.rows.last().map_or(0, |row| row.first as usize);
        assert_eq!(
            self.columns[first].size,
            self.columns[first + 1].size,
            "the first two columns of a row are equally long"
        );
        self.columns.swap(first, first + 1);
    }
}
