//! The values of one column in memory.

use crate::ColumnType;
#[cfg(feature = "parquet")]
use parquet::data_type::ByteArray;
use std::collections::HashMap;

/// A shared text, cheap to clone, like the `ByteArray` of the Parquet library.
#[cfg(not(feature = "parquet"))]
#[derive(Clone, Debug)]
pub(crate) struct ByteArray(std::sync::Arc<str>);

#[cfg(not(feature = "parquet"))]
impl ByteArray {
    pub(crate) fn data(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

#[cfg(not(feature = "parquet"))]
impl From<&str> for ByteArray {
    fn from(text: &str) -> ByteArray {
        ByteArray(text.into())
    }
}

/// Values of one type: one value per non-empty cell.
#[derive(Debug)]
pub(crate) enum Cells {
    U64(Vec<u64>),
    I64(Vec<i64>),
    U32(Vec<u32>),
    F64(Vec<f64>),
    Text(Vec<ByteArray>),
    Bool(Vec<bool>),
}

impl Cells {
    pub(crate) fn new(kind: ColumnType) -> Cells {
        match kind {
            ColumnType::U64 => Cells::U64(Vec::new()),
            ColumnType::I64 => Cells::I64(Vec::new()),
            ColumnType::U32 => Cells::U32(Vec::new()),
            ColumnType::F64 => Cells::F64(Vec::new()),
            ColumnType::Text => Cells::Text(Vec::new()),
            ColumnType::Bool => Cells::Bool(Vec::new()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Cells::U64(values) => values.len(),
            Cells::I64(values) => values.len(),
            Cells::U32(values) => values.len(),
            Cells::F64(values) => values.len(),
            Cells::Text(values) => values.len(),
            Cells::Bool(values) => values.len(),
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Cells::U64(values) => values.clear(),
            Cells::I64(values) => values.clear(),
            Cells::U32(values) => values.clear(),
            Cells::F64(values) => values.clear(),
            Cells::Text(values) => values.clear(),
            Cells::Bool(values) => values.clear(),
        }
    }
}

/// The rows of one column that are not yet written.
#[derive(Debug)]
pub(crate) struct PendingCells {
    pub(crate) cells: Cells,
    /// For an optional column, by row: 1 = filled, 0 = empty (Parquet's definition level).
    pub(crate) levels: Option<Vec<i16>>,
}

impl PendingCells {
    pub(crate) fn rows(&self) -> usize {
        debug_assert!(
            self.levels
                .as_ref()
                .is_none_or(|levels| levels.len() >= self.cells.len()),
            "{} values stand in {:?} rows",
            self.cells.len(),
            self.levels.as_ref().map(Vec::len)
        );
        self.levels
            .as_ref()
            .map_or_else(|| self.cells.len(), Vec::len)
    }

    #[inline]
    pub(crate) fn fill(&mut self) {
        if let Some(levels) = &mut self.levels {
            levels.push(1);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.cells.clear();
        if let Some(levels) = &mut self.levels {
            levels.clear();
        }
    }
}

/// Largest number of different texts that are kept, to bound the memory.
const INTERNED_MAX: usize = 4096;

/// A table of earlier texts: a repeated text needs no allocation.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    known: HashMap<String, ByteArray>,
}

impl Interner {
    pub(crate) fn get(&mut self, text: &str) -> ByteArray {
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        let value = ByteArray::from(text);
        if self.known.len() < INTERNED_MAX {
            self.known.insert(text.to_owned(), value.clone());
        }
        value
    }
}
