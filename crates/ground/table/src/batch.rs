//! Rows of a table in memory.

/// A batch of rows of a table.
#[derive(Debug, Default)]
pub struct RowBatch {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<ColumnValues>,
}

#[derive(Debug)]
pub(crate) struct ColumnValues {
    pub(crate) data: ColumnData,
    /// By row: true if the cell has a value. An empty list means that all cells have values.
    pub(crate) filled: Vec<bool>,
}

#[derive(Debug)]
#[cfg_attr(
    not(feature = "parquet"),
    expect(dead_code, reason = "only the Parquet reader makes values")
)]
pub(crate) enum ColumnData {
    U64(Vec<u64>),
    I64(Vec<i64>),
    F64(Vec<f64>),
    Text(Texts),
    Bool(Vec<bool>),
}

/// Cells of text. Equal texts may occur more than once in the list.
#[derive(Debug, Default)]
#[cfg_attr(
    not(feature = "parquet"),
    expect(dead_code, reason = "only the Parquet reader makes texts")
)]
pub(crate) struct Texts {
    /// By row: index of the cell's text in `list`; without meaning for an empty cell.
    pub(crate) codes: Vec<u32>,
    pub(crate) list: Vec<String>,
    /// Indexes in `list` of texts that are not UTF-8 in the file. No cell of a batch has such a
    /// text.
    pub(crate) broken: Vec<u32>,
}

impl RowBatch {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns all cells of a `U64` or `U32` column; an empty cell is 0.
    ///
    /// # Panics
    /// If the column has another type.
    pub fn u64s(&self, column: usize) -> &[u64] {
        match &self.columns[column].data {
            ColumnData::U64(values) => values,
            _ => wrong_type(column, "u64"),
        }
    }

    /// Returns the cells of a `Text` column as indexes of a list of texts, and this list. The index
    /// of an empty cell has no meaning.
    ///
    /// # Panics
    /// If the column has another type.
    pub fn texts(&self, column: usize) -> (&[u32], &[String]) {
        match &self.columns[column].data {
            ColumnData::Text(texts) => (&texts.codes, &texts.list),
            _ => wrong_type(column, "text"),
        }
    }

    /// Returns true for each cell of a column that has a value; `None` if all cells have values.
    pub fn filled(&self, column: usize) -> Option<&[bool]> {
        let filled = &self.columns[column].filled;
        (!filled.is_empty()).then_some(filled)
    }

    /// Returns true if the cell is empty.
    #[inline]
    pub fn is_null(&self, column: usize, row: usize) -> bool {
        self.columns[column].filled.get(row) == Some(&false)
    }

    /// Returns a cell of a `U64` or `U32` column; 0 for an empty cell.
    ///
    /// # Panics
    /// If the column has another type or the row is beyond the batch.
    #[inline]
    pub fn u64(&self, column: usize, row: usize) -> u64 {
        match &self.columns[column].data {
            ColumnData::U64(values) => values[row],
            _ => wrong_type(column, "u64"),
        }
    }

    /// Returns a cell of a `U32` column; 0 for an empty cell.
    ///
    /// # Panics
    /// If the column has another type or the row is beyond the batch.
    #[inline]
    pub fn u32(&self, column: usize, row: usize) -> u32 {
        // The range was checked when the batch was read.
        self.u64(column, row) as u32
    }

    /// Returns a cell of an `I64` column; 0 for an empty cell.
    ///
    /// # Panics
    /// If the column has another type or the row is beyond the batch.
    #[inline]
    pub fn i64(&self, column: usize, row: usize) -> i64 {
        match &self.columns[column].data {
            ColumnData::I64(values) => values[row],
            _ => wrong_type(column, "i64"),
        }
    }

    /// Returns a cell of an `F64` column; 0 for an empty cell.
    ///
    /// # Panics
    /// If the column has another type or the row is beyond the batch.
    #[inline]
    pub fn f64(&self, column: usize, row: usize) -> f64 {
        match &self.columns[column].data {
            ColumnData::F64(values) => values[row],
            _ => wrong_type(column, "f64"),
        }
    }

    /// Returns a cell of a `Text` column; empty text for an empty cell.
    ///
    /// # Panics
    /// If the column has another type or the row is beyond the batch.
    #[inline]
    pub fn text(&self, column: usize, row: usize) -> &str {
        match &self.columns[column].data {
            ColumnData::Text(_) if self.is_null(column, row) => "",
            ColumnData::Text(texts) => &texts.list[texts.codes[row] as usize],
            _ => wrong_type(column, "text"),
        }
    }

    /// Returns a cell of a `Bool` column; false for an empty cell.
    ///
    /// # Panics
    /// If the column has another type or the row is beyond the batch.
    #[inline]
    pub fn bool(&self, column: usize, row: usize) -> bool {
        match &self.columns[column].data {
            ColumnData::Bool(values) => values[row],
            _ => wrong_type(column, "bool"),
        }
    }

    /// Returns a cell of a `U64` or `U32` column; `None` for an empty cell.
    ///
    /// # Panics
    /// If the column has another type or the row is beyond the batch.
    #[inline]
    pub fn optional_u64(&self, column: usize, row: usize) -> Option<u64> {
        (!self.is_null(column, row)).then(|| self.u64(column, row))
    }

    /// Returns a cell of an `F64` column; `None` for an empty cell.
    ///
    /// # Panics
    /// If the column has another type or the row is beyond the batch.
    #[inline]
    pub fn optional_f64(&self, column: usize, row: usize) -> Option<f64> {
        (!self.is_null(column, row)).then(|| self.f64(column, row))
    }
}

#[cold]
fn wrong_type(column: usize, wanted: &str) -> ! {
    panic!("column {column} does not hold {wanted}")
}
