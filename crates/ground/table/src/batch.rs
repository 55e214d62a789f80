//! Rows of a table in memory.

/// A batch of rows of a table.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<Values>,
}

#[derive(Debug)]
pub(crate) struct Values {
    pub(crate) data: Data,
    /// By row: true if the cell has a value. An empty list means that all cells have values.
    pub(crate) filled: Vec<bool>,
}

#[derive(Debug)]
#[cfg_attr(
    not(feature = "parquet"),
    expect(dead_code, reason = "only the Parquet reader makes values")
)]
pub(crate) enum Data {
    U64(Vec<u64>),
    I64(Vec<i64>),
    F64(Vec<f64>),
    Text(Vec<String>),
    Bool(Vec<bool>),
}

impl Batch {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
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
            Data::U64(values) => values[row],
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
            Data::I64(values) => values[row],
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
            Data::F64(values) => values[row],
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
            Data::Text(values) => &values[row],
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
            Data::Bool(values) => values[row],
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
