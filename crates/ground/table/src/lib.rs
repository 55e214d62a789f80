//! Columnar files that are written completely or not at all.
//!
//! A table is a [`Schema`] (columns declared once) and rows. [`TableWriter`] streams rows into
//! Parquet, or into CSV if the file's name ends in `.csv` or `.csv.gz`. The writer holds at most
//! one row group of 65,536 rows in memory. The file gets its name only when [`TableWriter::finish`]
//! succeeds. Until then the name is `<name>.partial`, and any error removes the partial file
//! ([`AtomicFile`]). [`TableReader`] reads Parquet in batches.
//!
//! The feature `parquet` (on by default) contains the Parquet library. Without the feature the
//! crate writes CSV only, and refuses every other file name.
//!
//! ```
//! use fullstroke_table::{ColumnType, Schema, TableReader, TableWriter};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("log.parquet");
//! let schema = Schema::new()
//!     .column("arrival_ns", ColumnType::U64)
//!     .column("operation", ColumnType::Text)
//!     .optional("response_ms", ColumnType::F64)
//!     .metadata("schema", "example");
//!
//! let mut table = TableWriter::create(&path, &schema)?;
//! table.u64(0, 1_500);
//! table.text(1, "read");
//! table.null(2);
//! table.end_row()?;
//! table.finish()?;
//!
//! let mut reader = TableReader::open(&path, &schema)?;
//! let batch = reader.next_batch(1024)?.ok_or("empty")?;
//! assert_eq!((batch.rows(), batch.u64(0, 0), batch.text(1, 0)), (1, 1_500, "read"));
//! assert!(batch.is_null(2, 0));
//! # Ok(())
//! # }
//! ```

mod atomic;
mod batch;
mod cells;
mod csv;
mod error;
#[cfg(feature = "parquet")]
mod reader;
#[cfg(not(feature = "parquet"))]
#[path = "no_reader.rs"]
mod reader;
#[cfg(feature = "parquet")]
mod row_group;
mod schema;
#[cfg(feature = "parquet")]
mod texts;
mod writer;

pub use atomic::{AtomicFile, remove_partial_files};
pub use batch::RowBatch;
pub use error::TableError;
pub use reader::TableReader;
pub use schema::{ColumnType, Schema, TableColumn};
pub use writer::{ROWS_PER_GROUP, TableWriter};
