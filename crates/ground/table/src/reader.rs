//! Reads tables in batches.

use crate::batch::{Batch, Data, Values};
use crate::{ColumnType, Schema, TableError};
use bytes::Bytes;
use parquet::basic::{IntType, LogicalType, Type as PhysicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescPtr;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Reads chosen columns of a Parquet file, a batch of rows at a time. A column is named by its
/// position in the schema given to [`open`](TableReader::open). The file may have further columns,
/// in any order.
pub struct TableReader {
    path: PathBuf,
    file: Box<dyn FileReader>,
    notes: BTreeMap<String, String>,
    wanted: Vec<Wanted>,
    group: usize,
    /// Readers of the current row group, one for each wanted column.
    open: Vec<Option<ColumnReader>>,
    rows_left_in_group: u64,
    rows_read: u64,
    batch: Batch,
}

#[derive(Clone, Debug)]
struct Wanted {
    name: String,
    kind: ColumnType,
    optional: bool,
    /// Index of the column in the file; `None` for an optional column that the file lacks.
    leaf: Option<usize>,
    /// True if the file marks the column's integers as unsigned.
    unsigned: bool,
}

impl TableReader {
    /// Opens the file at `path` to read the columns of `schema`. An optional column that the file
    /// lacks reads as empty.
    ///
    /// # Errors
    /// If the file cannot be read, is not Parquet, lacks a required column or has a column of
    /// another type.
    pub fn open(path: &Path, schema: &Schema) -> Result<TableReader, TableError> {
        #[expect(
            clippy::disallowed_methods,
            reason = "reading a named file is this crate's purpose; no layer calls it"
        )]
        let opened = File::open(path);
        let file = opened.map_err(|source| TableError::Read {
            path: path.to_owned(),
            source,
        })?;
        TableReader::over(path, file, schema)
    }

    /// Like [`open`](TableReader::open), for an open file. `name` is for messages.
    ///
    /// # Errors
    /// As for [`open`](TableReader::open).
    pub fn from_file(name: &Path, file: File, schema: &Schema) -> Result<TableReader, TableError> {
        TableReader::over(name, file, schema)
    }

    /// Like [`open`](TableReader::open), for bytes in memory. `name` is for messages.
    ///
    /// # Errors
    /// As for [`open`](TableReader::open).
    pub fn from_bytes(
        name: &Path,
        bytes: impl Into<Bytes>,
        schema: &Schema,
    ) -> Result<TableReader, TableError> {
        TableReader::over(name, bytes.into(), schema)
    }

    fn over<R: ChunkReader + 'static>(
        path: &Path,
        file: R,
        schema: &Schema,
    ) -> Result<TableReader, TableError> {
        let file = guarded(|| SerializedFileReader::new(file))
            .map_err(|error| TableError::reading(path, error))?;
        let wanted = choose(path, &file, schema)?;
        let notes = file.metadata().file_metadata().key_value_metadata();
        let notes = notes
            .into_iter()
            .flatten()
            .map(|note| (note.key.clone(), note.value.clone().unwrap_or_default()))
            .collect();
        Ok(TableReader {
            path: path.to_owned(),
            file: Box::new(file),
            notes,
            wanted,
            group: 0,
            open: Vec::new(),
            rows_left_in_group: 0,
            rows_read: 0,
            batch: Batch::default(),
        })
    }

    /// Returns the note called `key` in the file's footer.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.notes.get(key).map(String::as_str)
    }

    /// Returns the number of rows according to the file's footer.
    pub fn rows(&self) -> u64 {
        u64::try_from(self.file.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    /// Reads up to `rows` further rows. Returns `None` at the end of the table.
    ///
    /// # Errors
    /// If the file is damaged, a required value is empty, or a value is out of range.
    pub fn next_batch(&mut self, rows: usize) -> Result<Option<&Batch>, TableError> {
        while self.rows_left_in_group == 0 {
            if !self.open_group()? {
                return Ok(None);
            }
        }
        let left = usize::try_from(self.rows_left_in_group).unwrap_or(usize::MAX);
        let count = rows.clamp(1, left);
        self.batch.columns.clear();
        for (wanted, reader) in self.wanted.iter().zip(&mut self.open) {
            let values = guarded(|| read_values(wanted, reader.as_mut(), count));
            let values = values.map_err(|error| TableError::reading(&self.path, error))?;
            self.batch
                .columns
                .push(finish(&self.path, wanted, values, self.rows_read)?);
        }
        self.batch.rows = count;
        self.rows_left_in_group -= count as u64;
        self.rows_read += count as u64;
        Ok(Some(&self.batch))
    }

    /// Opens the next row group. Returns `false` at the end of the table.
    fn open_group(&mut self) -> Result<bool, TableError> {
        if self.group == self.file.num_row_groups() {
            return Ok(false);
        }
        let (file, wanted, group) = (&self.file, &self.wanted, self.group);
        let opened = guarded(|| {
            let reader = file.get_row_group(group)?;
            let rows = u64::try_from(reader.metadata().num_rows()).map_err(|_| {
                ParquetError::General("a row group has a negative length".to_owned())
            })?;
            let columns: ParquetResult<Vec<_>> = wanted
                .iter()
                .map(|column| {
                    column
                        .leaf
                        .map(|leaf| reader.get_column_reader(leaf))
                        .transpose()
                })
                .collect();
            Ok((rows, columns?))
        });
        let (rows, columns) = opened.map_err(|error| TableError::reading(&self.path, error))?;
        self.group += 1;
        self.rows_left_in_group = rows;
        self.open = columns;
        Ok(true)
    }
}

impl fmt::Debug for TableReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableReader")
            .field("path", &self.path)
            .field("rows_read", &self.rows_read)
            .finish()
    }
}

thread_local! {
    /// True while this thread reads untrusted bytes. A panic is then an error of the file.
    static READS_OUTSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Runs the Parquet library over untrusted bytes. The library checks much, but a damaged file can
/// still make it panic. Such a panic becomes an error of this file: the program continues, and no
/// panic message is printed.
fn guarded<T>(read: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !READS_OUTSIDE.get() {
                before(panic);
            }
        }));
    });
    let outer = READS_OUTSIDE.replace(true);
    let read = catch_unwind(AssertUnwindSafe(read));
    READS_OUTSIDE.set(outer);
    read.unwrap_or_else(|_| {
        Err(ParquetError::General(
            "its contents contradict each other".to_owned(),
        ))
    })
}

fn choose(path: &Path, file: &dyn FileReader, schema: &Schema) -> Result<Vec<Wanted>, TableError> {
    let leaves = file.metadata().file_metadata().schema_descr().columns();
    let mut wanted = Vec::new();
    for column in schema.columns() {
        let leaf = leaves
            .iter()
            .position(|leaf| leaf.path().string() == column.name);
        let unsigned = match leaf {
            Some(leaf) => check_type(path, &leaves[leaf], column.kind)?,
            None if column.optional => false,
            None => {
                let known: Vec<String> = leaves.iter().map(|leaf| leaf.path().string()).collect();
                return Err(TableError::MissingColumn {
                    path: path.to_owned(),
                    column: column.name.clone(),
                    known: known.join(", "),
                });
            }
        };
        let (name, kind, optional) = (column.name.clone(), column.kind, column.optional);
        wanted.push(Wanted {
            name,
            kind,
            optional,
            leaf,
            unsigned,
        });
    }
    Ok(wanted)
}

/// Returns true if the integers of `leaf` are unsigned, or an error if `leaf` does not fit `kind`.
fn check_type(path: &Path, leaf: &ColumnDescPtr, kind: ColumnType) -> Result<bool, TableError> {
    let physical = leaf.physical_type();
    let fits = match kind {
        ColumnType::U64 | ColumnType::I64 | ColumnType::U32 => {
            matches!(physical, PhysicalType::INT64 | PhysicalType::INT32)
        }
        ColumnType::F64 => matches!(physical, PhysicalType::DOUBLE | PhysicalType::FLOAT),
        ColumnType::Text => physical == PhysicalType::BYTE_ARRAY,
        ColumnType::Bool => physical == PhysicalType::BOOLEAN,
    };
    // Columns inside lists or structures have higher levels. The reader supports flat columns only.
    if fits && leaf.max_rep_level() == 0 && leaf.max_def_level() <= 1 {
        let logical = leaf.logical_type_ref();
        return Ok(matches!(
            logical,
            Some(LogicalType::Integer(IntType {
                is_signed: false,
                ..
            }))
        ));
    }
    Err(TableError::WrongType {
        path: path.to_owned(),
        column: leaf.path().string(),
        found: format!(
            "{physical}{}",
            if leaf.max_rep_level() > 0 {
                " lists"
            } else {
                ""
            }
        ),
        expected: kind,
    })
}

/// Values of the file, one per row.
struct Raw {
    data: RawData,
    filled: Vec<bool>,
}

// `i128` holds every signed and unsigned 64-bit integer, so one type serves all integer columns.
enum RawData {
    Whole(Vec<i128>),
    Float(Vec<f64>),
    Text(Vec<ByteArray>),
    Bool(Vec<bool>),
}

fn read_values(
    wanted: &Wanted,
    reader: Option<&mut ColumnReader>,
    rows: usize,
) -> ParquetResult<Raw> {
    let Some(reader) = reader else {
        return Ok(Raw::empty(wanted.kind, rows));
    };
    let unsigned = wanted.unsigned;
    let (data, filled) = match reader {
        ColumnReader::Int64ColumnReader(reader) => {
            let whole = |value: i64| {
                if unsigned {
                    i128::from(value.cast_unsigned())
                } else {
                    i128::from(value)
                }
            };
            let (values, filled) = spread(reader, rows, whole)?;
            (RawData::Whole(values), filled)
        }
        ColumnReader::Int32ColumnReader(reader) => {
            let whole = |value: i32| {
                if unsigned {
                    i128::from(value.cast_unsigned())
                } else {
                    i128::from(value)
                }
            };
            let (values, filled) = spread(reader, rows, whole)?;
            (RawData::Whole(values), filled)
        }
        ColumnReader::DoubleColumnReader(reader) => {
            let (values, filled) = spread(reader, rows, |value| value)?;
            (RawData::Float(values), filled)
        }
        ColumnReader::FloatColumnReader(reader) => {
            let (values, filled) = spread(reader, rows, f64::from)?;
            (RawData::Float(values), filled)
        }
        ColumnReader::ByteArrayColumnReader(reader) => {
            let (values, filled) = spread(reader, rows, |value| value)?;
            (RawData::Text(values), filled)
        }
        ColumnReader::BoolColumnReader(reader) => {
            let (values, filled) = spread(reader, rows, |value| value)?;
            (RawData::Bool(values), filled)
        }
        _ => {
            return Err(ParquetError::General(format!(
                "column `{}` changes its type",
                wanted.name
            )));
        }
    };
    Ok(Raw { data, filled })
}

impl Raw {
    fn empty(kind: ColumnType, rows: usize) -> Raw {
        let data = match kind {
            ColumnType::U64 | ColumnType::I64 | ColumnType::U32 => RawData::Whole(vec![0; rows]),
            ColumnType::F64 => RawData::Float(vec![0.0; rows]),
            ColumnType::Text => RawData::Text(vec![ByteArray::from(""); rows]),
            ColumnType::Bool => RawData::Bool(vec![false; rows]),
        };
        Raw {
            data,
            filled: vec![false; rows],
        }
    }
}

/// Reads exactly `rows` rows and puts each value into its row. Empty cells get the default value.
fn spread<T: DataType, U: Default>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    convert: impl Fn(T::T) -> U,
) -> ParquetResult<(Vec<U>, Vec<bool>)> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let (records, found, _) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    if records != rows || found > values.len() {
        return Err(ParquetError::General(format!(
            "a column ends after {records} of {rows} rows"
        )));
    }
    if found == rows {
        return Ok((values.into_iter().map(convert).collect(), Vec::new()));
    }
    let filled: Vec<bool> = levels.iter().map(|&level| level == 1).collect();
    if filled.len() != rows || filled.iter().filter(|&&filled| filled).count() != found {
        return Err(ParquetError::General(
            "a column's values and levels contradict each other".to_owned(),
        ));
    }
    let mut values = values.into_iter().map(convert);
    let spread = filled
        .iter()
        .map(|&filled| filled.then(|| values.next()).flatten().unwrap_or_default());
    Ok((spread.collect(), filled))
}

/// Checks the values and converts them to the wanted type.
fn finish(path: &Path, wanted: &Wanted, raw: Raw, first_row: u64) -> Result<Values, TableError> {
    let bad = |row: usize, found: String| TableError::BadValue {
        path: path.to_owned(),
        column: wanted.name.clone(),
        row: first_row + row as u64,
        found,
        expected: wanted.kind,
    };
    if !wanted.optional
        && let Some(row) = raw.filled.iter().position(|filled| !filled)
    {
        return Err(bad(row, "empty".to_owned()));
    }
    let data = match raw.data {
        RawData::Whole(values) => whole_numbers(wanted.kind, &values).map_err(|row| {
            bad(
                row,
                values.get(row).map_or_else(String::new, i128::to_string),
            )
        })?,
        RawData::Float(values) => Data::F64(values),
        RawData::Bool(values) => Data::Bool(values),
        RawData::Text(values) => {
            Data::Text(texts(&values).map_err(|row| bad(row, "no UTF-8".to_owned()))?)
        }
    };
    Ok(Values {
        data,
        filled: raw.filled,
    })
}

/// Converts the values to `kind`, or returns the first row with a value out of range.
fn whole_numbers(kind: ColumnType, values: &[i128]) -> Result<Data, usize> {
    let max = if kind == ColumnType::U32 {
        i128::from(u32::MAX)
    } else {
        i128::from(u64::MAX)
    };
    if kind == ColumnType::I64 {
        let numbers = values
            .iter()
            .enumerate()
            .map(|(row, &value)| i64::try_from(value).map_err(|_| row));
        return Ok(Data::I64(numbers.collect::<Result<_, _>>()?));
    }
    let numbers = values.iter().enumerate().map(|(row, &value)| {
        u64::try_from(value)
            .ok()
            .filter(|_| value <= max)
            .ok_or(row)
    });
    Ok(Data::U64(numbers.collect::<Result<_, _>>()?))
}

/// Converts the values to text, or returns the first row that is not UTF-8.
fn texts(values: &[ByteArray]) -> Result<Vec<String>, usize> {
    values
        .iter()
        .enumerate()
        .map(|(row, value)| value.as_utf8().map(str::to_owned).map_err(|_| row))
        .collect()
}
