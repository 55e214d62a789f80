//! The reader of a build without Parquet: refuses every file by name.

use crate::{RowBatch, Schema, TableError};
use bytes::Bytes;
use std::fs::File;
use std::path::Path;

/// A reader without files, because this build lacks the feature `parquet`.
#[derive(Debug)]
pub enum TableReader {}

impl TableReader {
    /// Refuses the file.
    ///
    /// # Errors
    /// Always [`TableError::NoParquet`].
    pub fn open(path: &Path, _: &Schema) -> Result<TableReader, TableError> {
        Err(TableError::no_parquet(path))
    }

    /// Refuses the file.
    ///
    /// # Errors
    /// Always [`TableError::NoParquet`].
    pub fn from_file(name: &Path, _: File, _: &Schema) -> Result<TableReader, TableError> {
        Err(TableError::no_parquet(name))
    }

    /// Refuses the bytes.
    ///
    /// # Errors
    /// Always [`TableError::NoParquet`].
    pub fn from_bytes(
        name: &Path,
        _: impl Into<Bytes>,
        _: &Schema,
    ) -> Result<TableReader, TableError> {
        Err(TableError::no_parquet(name))
    }

    /// Returns the note called `key` in the file's footer.
    pub fn metadata(&self, _: &str) -> Option<&str> {
        match *self {}
    }

    /// Returns the number of rows of the file.
    pub fn rows(&self) -> u64 {
        match *self {}
    }

    /// Reads further rows.
    ///
    /// # Errors
    /// None: no reader of this type exists.
    pub fn next_batch(&mut self, _: usize) -> Result<Option<&RowBatch>, TableError> {
        match *self {}
    }

    /// Returns the rows of the latest batch.
    pub fn batch(&self) -> &RowBatch {
        match *self {}
    }
}
