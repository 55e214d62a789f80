//! Writes a table, row by row.

use crate::cells::{Cells, Interner, PendingCells};
use crate::csv::CsvWriter;
#[cfg(feature = "parquet")]
use crate::row_group::ParquetWriter;
use crate::{AtomicFile, Schema, TableError};
use std::fmt;
use std::path::{Path, PathBuf};

/// Number of rows that are collected and then written together.
// After an error, `keep_partial` loses at most this many rows.
pub const ROWS_PER_GROUP: usize = 65_536;

/// Writes a table. For each row call one of the typed methods (or [`null`](TableWriter::null)) for
/// every column, in any order, then [`end_row`](TableWriter::end_row). At the end call
/// [`finish`](TableWriter::finish).
///
/// A column is named by its position in the schema. A value of another type, two values for one
/// column of a row, or a missing value is a mistake in the program and panics.
pub struct TableWriter {
    path: PathBuf,
    columns: Vec<PendingCells>,
    interner: Interner,
    sink: Sink,
    rows_pending: usize,
    rows: u64,
}

enum Sink {
    Csv(CsvWriter),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetWriter>),
}

impl TableWriter {
    /// Starts a table with the target `path`: CSV if the name ends in `.csv` or `.csv.gz`,
    /// otherwise Parquet.
    ///
    /// # Errors
    /// If the file cannot be created, or if it would be Parquet and this build lacks Parquet.
    pub fn create(path: &Path, schema: &Schema) -> Result<TableWriter, TableError> {
        // The ending of a name counts in any case: `LOG.CSV` is CSV.
        let name = path.to_string_lossy().to_ascii_lowercase();
        let gzip = name.ends_with(".csv.gz");
        let csv = gzip || name.ends_with(".csv");
        #[cfg(not(feature = "parquet"))]
        if !csv {
            return Err(TableError::no_parquet(path));
        }
        let file = AtomicFile::create(path)?;
        let csv_sink = |file| {
            let writer = CsvWriter::new(file, gzip, schema);
            writer.map(Sink::Csv).map_err(|source| TableError::Write {
                path: path.to_owned(),
                source,
            })
        };
        #[cfg(not(feature = "parquet"))]
        let sink = csv_sink(file)?;
        #[cfg(feature = "parquet")]
        let sink = if csv {
            csv_sink(file)?
        } else {
            let writer = ParquetWriter::new(file, schema)
                .map_err(|error| TableError::writing(path, error))?;
            Sink::Parquet(Box::new(writer))
        };
        let pending = |column: &crate::TableColumn| PendingCells {
            cells: Cells::new(column.kind),
            levels: column.optional.then(Vec::new),
        };
        let mut table = TableWriter {
            path: path.to_owned(),
            columns: schema.columns().iter().map(pending).collect(),
            interner: Interner::default(),
            sink,
            rows_pending: 0,
            rows: 0,
        };
        for (key, value) in schema.notes() {
            table.note(key, value);
        }
        Ok(table)
    }

    /// Adds a note to the file's footer after the table has started.
    #[cfg_attr(not(feature = "parquet"), expect(unused_variables))]
    pub fn note(&mut self, key: &str, value: &str) {
        match &mut self.sink {
            // CSV has no place for notes.
            Sink::Csv(_) => {}
            #[cfg(feature = "parquet")]
            Sink::Parquet(writer) => writer.note(key, value),
        }
    }

    /// Returns the number of complete rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Sets a `U64` column of the current row.
    ///
    /// # Panics
    /// If the column has another type.
    #[inline]
    pub fn u64(&mut self, column: usize, value: u64) {
        match &mut self.columns[column].cells {
            Cells::U64(values) => values.push(value),
            _ => wrong_type(column, "u64"),
        }
        self.columns[column].fill();
    }

    /// Sets an `I64` column of the current row.
    ///
    /// # Panics
    /// If the column has another type.
    #[inline]
    pub fn i64(&mut self, column: usize, value: i64) {
        match &mut self.columns[column].cells {
            Cells::I64(values) => values.push(value),
            _ => wrong_type(column, "i64"),
        }
        self.columns[column].fill();
    }

    /// Sets a `U32` column of the current row.
    ///
    /// # Panics
    /// If the column has another type.
    #[inline]
    pub fn u32(&mut self, column: usize, value: u32) {
        match &mut self.columns[column].cells {
            Cells::U32(values) => values.push(value),
            _ => wrong_type(column, "u32"),
        }
        self.columns[column].fill();
    }

    /// Sets an `F64` column of the current row.
    ///
    /// # Panics
    /// If the column has another type.
    #[inline]
    pub fn f64(&mut self, column: usize, value: f64) {
        match &mut self.columns[column].cells {
            Cells::F64(values) => values.push(value),
            _ => wrong_type(column, "f64"),
        }
        self.columns[column].fill();
    }

    /// Sets a `Bool` column of the current row.
    ///
    /// # Panics
    /// If the column has another type.
    #[inline]
    pub fn bool(&mut self, column: usize, value: bool) {
        match &mut self.columns[column].cells {
            Cells::Bool(values) => values.push(value),
            _ => wrong_type(column, "bool"),
        }
        self.columns[column].fill();
    }

    /// Sets a `Text` column of the current row. A repeated text needs no allocation (for up to
    /// 4,096 different texts).
    ///
    /// # Panics
    /// If the column has another type.
    pub fn text(&mut self, column: usize, value: &str) {
        let value = self.interner.get(value);
        match &mut self.columns[column].cells {
            Cells::Text(values) => values.push(value),
            _ => wrong_type(column, "text"),
        }
        self.columns[column].fill();
    }

    /// Leaves an optional column of the current row empty.
    ///
    /// # Panics
    /// If the column is not optional.
    #[inline]
    pub fn null(&mut self, column: usize) {
        match &mut self.columns[column].levels {
            Some(levels) => levels.push(0),
            None => panic!("column {column} is not optional"),
        }
    }

    /// Sets an optional `U64` column, or leaves it empty.
    ///
    /// # Panics
    /// If the column has another type, or is `None` and not optional.
    #[inline]
    pub fn optional_u64(&mut self, column: usize, value: Option<u64>) {
        match value {
            Some(value) => self.u64(column, value),
            None => self.null(column),
        }
    }

    /// Sets an optional `F64` column, or leaves it empty.
    ///
    /// # Panics
    /// If the column has another type, or is `None` and not optional.
    #[inline]
    pub fn optional_f64(&mut self, column: usize, value: Option<f64>) {
        match value {
            Some(value) => self.f64(column, value),
            None => self.null(column),
        }
    }

    /// Ends the current row.
    ///
    /// # Errors
    /// If a full row group cannot be written.
    ///
    /// # Panics
    /// If a column has two values in a row, or none.
    pub fn end_row(&mut self) -> Result<(), TableError> {
        self.rows_pending += 1;
        self.rows += 1;
        // CSV is written in groups as well, so that both formats need the same memory.
        if self.rows_pending == ROWS_PER_GROUP {
            self.write_group()?;
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), TableError> {
        for (index, column) in self.columns.iter().enumerate() {
            assert_eq!(
                column.rows(),
                self.rows_pending,
                "column {index} has not one value for each row"
            );
        }
        match &mut self.sink {
            Sink::Csv(writer) => {
                writer
                    .write(&self.columns, self.rows_pending)
                    .map_err(|source| TableError::Write {
                        path: self.path.clone(),
                        source,
                    })?
            }
            #[cfg(feature = "parquet")]
            Sink::Parquet(writer) => {
                writer
                    .write(&self.columns)
                    .map_err(|error| TableError::writing(&self.path, error))?;
            }
        }
        for column in &mut self.columns {
            column.clear();
        }
        self.rows_pending = 0;
        Ok(())
    }

    /// Writes the rows in memory.
    ///
    /// # Errors
    /// If the rows cannot be written.
    pub fn flush(&mut self) -> Result<(), TableError> {
        if self.rows_pending > 0 {
            self.write_group()
        } else {
            Ok(())
        }
    }

    /// Returns the number of rows that [`keep_partial`](TableWriter::keep_partial) would save if
    /// writing failed now.
    pub fn rows_to_keep(&self) -> u64 {
        match &self.sink {
            Sink::Csv(_) => 0,
            #[cfg(feature = "parquet")]
            Sink::Parquet(writer) => writer.whole_rows(),
        }
    }

    /// After an error: turns the written rows of a Parquet table into a readable file. Returns the
    /// path of this file: the target with `.partial` at the end. Returns `None` for CSV, or if no
    /// row group is complete.
    pub fn keep_partial(self) -> Option<PathBuf> {
        match self.sink {
            Sink::Csv(_) => None,
            #[cfg(feature = "parquet")]
            Sink::Parquet(writer) => writer.cut().ok(),
        }
    }

    /// Writes the rows in memory and gives the file its name. Returns the number of rows.
    ///
    /// # Errors
    /// If the rest cannot be written. No file is left behind in this case.
    ///
    /// # Panics
    /// If a column has two values in a row, or none.
    pub fn finish(mut self) -> Result<u64, TableError> {
        self.flush()?;
        let path = self.path;
        let file = match self.sink {
            Sink::Csv(writer) => writer
                .into_file()
                .map_err(|source| TableError::Write { path, source })?,
            #[cfg(feature = "parquet")]
            Sink::Parquet(writer) => writer
                .into_file()
                .map_err(|error| TableError::writing(&path, error))?,
        };
        file.commit()?;
        Ok(self.rows)
    }
}

impl fmt::Debug for TableWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableWriter")
            .field("path", &self.path)
            .field("rows", &self.rows)
            .finish()
    }
}

#[cold]
fn wrong_type(column: usize, given: &str) -> ! {
    panic!("column {column} does not hold {given}")
}
