//! Some rows of a table, in memory.

/// Some rows of a table.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<Values>,
}

#[derive(Debug)]
pub(crate) struct Values {
    pub(crate) data: Data,
    /// One for each row; empty where no row is empty.
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
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether the cell is empty.
    #[inline]
    pub fn is_null(&self, column: usize, row: usize) -> bool {
        self.columns[column].filled.get(row) == Some(&false)
    }

    /// A cell of a `U64` or `U32` column; 0 if it is empty.
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

    /// A cell of a `U32` column; 0 if it is empty.
    ///
    /// # Panics
    /// If the column has another type or the row is beyond the batch.
    #[inline]
    pub fn u32(&self, column: usize, row: usize) -> u32 {
        // The range was checked when the batch was read.
        self.u64(column, row) as u32
    }

    /// A cell of an `I64` column; 0 if it is empty.
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

    /// A cell of an `F64` column; 0 if it is empty.
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

    /// A cell of a `Text` column; empty text if it is empty.
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

    /// A cell of a `Bool` column; false if it is empty.
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

    /// A cell of a `U64` or `U32` column, or `None` if it is empty.
    ///
    /// # Panics
    /// If the column has another type or the row is beyond the batch.
    #[inline]
    pub fn optional_u64(&self, column: usize, row: usize) -> Option<u64> {
        (!self.is_null(column, row)).then(|| self.u64(column, row))
    }

    /// A cell of an `F64` column, or `None` if it is empty.
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
