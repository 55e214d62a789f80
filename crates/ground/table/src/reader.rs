//! Reads tables in batches.

use crate::batch::{ColumnData, ColumnValues, RowBatch, Texts};
use crate::texts::{self, AddedTexts};
use crate::{ColumnType, Schema, TableError};
use bytes::Bytes;
use parquet::basic::{IntType, LogicalType, Type as PhysicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, FileReader, RowGroupReader, SerializedFileReader};
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
    wanted: Vec<WantedColumn>,
    group: usize,
    /// Readers of the current row group, one for each wanted column.
    open: Vec<WantedReader>,
    scratch: Scratch,
    rows_left_in_group: u64,
    rows_read: u64,
    batch: RowBatch,
}

#[derive(Clone, Debug)]
struct WantedColumn {
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
        let wanted = guarded(|| Ok(choose(path, &file, schema)))
            .map_err(|error| TableError::reading(path, error))??;
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
            scratch: Scratch::default(),
            rows_left_in_group: 0,
            rows_read: 0,
            batch: RowBatch::default(),
        })
    }

    /// Returns the note called `key` in the file's footer.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.notes.get(key).map(String::as_str)
    }

    /// Returns the number of rows according to the file's footer.
    pub fn rows(&self) -> u64 {
        // A damaged footer may have a negative number.
        u64::try_from(self.file.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    /// Reads up to `rows` further rows. Returns `None` at the end of the table.
    ///
    /// # Errors
    /// If the file is damaged, a required value is empty, or a value is out of range.
    pub fn next_batch(&mut self, rows: usize) -> Result<Option<&RowBatch>, TableError> {
        while self.rows_left_in_group == 0 {
            if !self.open_group()? {
                self.batch.rows = 0;
                return Ok(None);
            }
        }
        let left = usize::try_from(self.rows_left_in_group).unwrap_or(usize::MAX);
        // At least one row, or a caller with 0 rows would never reach the end.
        let count = rows.clamp(1, left);
        let columns = self.wanted.iter().zip(&mut self.open);
        for ((wanted, column), values) in columns.zip(&mut self.batch.columns) {
            let scratch = &mut self.scratch;
            let bad = guarded(
                || match read_values(wanted, column, count, scratch, values) {
                    Ok(()) => Ok(None),
                    Err(ColumnFault::Cell(row, found)) => Ok(Some((row, found))),
                    Err(ColumnFault::Library(error)) => Err(error),
                },
            );
            let bad = bad.map_err(|error| TableError::reading(&self.path, error))?;
            if let Some((row, found)) = bad {
                return Err(TableError::BadValue {
                    path: self.path.clone(),
                    column: wanted.name.clone(),
                    row: self.rows_read + row as u64,
                    found,
                    expected: wanted.kind,
                });
            }
        }
        self.batch.rows = count;
        self.rows_left_in_group -= count as u64;
        self.rows_read += count as u64;
        Ok(Some(&self.batch))
    }

    /// Returns the rows of the latest [`next_batch`](TableReader::next_batch).
    pub fn batch(&self) -> &RowBatch {
        &self.batch
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
                .map(|wanted| WantedReader::open(&*reader, wanted))
                .collect();
            Ok((rows, columns?))
        });
        let (rows, columns) = opened.map_err(|error| TableError::reading(&self.path, error))?;
        self.group += 1;
        self.rows_left_in_group = rows;
        self.open = columns;
        self.batch.columns = self.wanted.iter().map(empty).collect();
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
        // A hook is a property of the process, so it is set once. The thread's flag tells the hook
        // if the panic is the library's.
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !READS_OUTSIDE.get() {
                before(panic);
            }
        }));
    });
    // The old value is restored, because a guarded read may stand inside another one.
    let outer = READS_OUTSIDE.replace(true);
    let read = catch_unwind(AssertUnwindSafe(read));
    READS_OUTSIDE.set(outer);
    read.unwrap_or_else(|_| {
        Err(ParquetError::General(
            "its contents contradict each other".to_owned(),
        ))
    })
}

fn choose(
    path: &Path,
    file: &dyn FileReader,
    schema: &Schema,
) -> Result<Vec<WantedColumn>, TableError> {
    let leaves = file.metadata().file_metadata().schema_descr().columns();
    let mut wanted = Vec::new();
    // Found by name, because a file of another program may have the columns in any order.
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
        wanted.push(WantedColumn {
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

/// Reader of one wanted column in the current row group.
enum WantedReader {
    /// The file lacks the column.
    Absent,
    Values(ColumnReader),
    /// A column of text, read as numbers of texts.
    Numbers(ColumnReader, AddedTexts),
}

impl WantedReader {
    fn open(group: &dyn RowGroupReader, wanted: &WantedColumn) -> ParquetResult<WantedReader> {
        let Some(leaf) = wanted.leaf else {
            return Ok(WantedReader::Absent);
        };
        if wanted.kind == ColumnType::Text
            && let Some((reader, added)) = texts::open(group, leaf)?
        {
            return Ok(WantedReader::Numbers(reader, added));
        }
        group.get_column_reader(leaf).map(WantedReader::Values)
    }
}

/// Memory that is used for each column of each batch.
#[derive(Default)]
struct Scratch {
    /// Definition levels; 0 for an empty cell.
    levels: Vec<i16>,
    longs: Vec<i64>,
    ints: Vec<i32>,
    doubles: Vec<f64>,
    floats: Vec<f32>,
    bools: Vec<bool>,
    texts: Vec<ByteArray>,
}

/// Error of a column's values.
enum ColumnFault {
    Library(ParquetError),
    /// A cell with a value outside the wanted type: row in the batch, value found.
    Cell(usize, String),
}

impl From<ParquetError> for ColumnFault {
    fn from(error: ParquetError) -> ColumnFault {
        ColumnFault::Library(error)
    }
}

/// Returns a column of a batch without rows.
fn empty(wanted: &WantedColumn) -> ColumnValues {
    let data = match wanted.kind {
        ColumnType::U64 | ColumnType::U32 => ColumnData::U64(Vec::new()),
        ColumnType::I64 => ColumnData::I64(Vec::new()),
        ColumnType::F64 => ColumnData::F64(Vec::new()),
        ColumnType::Text => ColumnData::Text(Texts::default()),
        ColumnType::Bool => ColumnData::Bool(Vec::new()),
    };
    ColumnValues {
        data,
        filled: Vec::new(),
    }
}

/// Replaces the cells of `values` by the next `rows` cells of the column.
fn read_values(
    wanted: &WantedColumn,
    column: &mut WantedReader,
    rows: usize,
    scratch: &mut Scratch,
    values: &mut ColumnValues,
) -> Result<(), ColumnFault> {
    let ColumnValues { data, filled } = values;
    filled.clear();
    let (reader, added) = match column {
        WantedReader::Absent => {
            leave_empty(rows, data);
            filled.resize(rows, false);
            return Ok(());
        }
        WantedReader::Values(reader) => (reader, None),
        WantedReader::Numbers(reader, added) => (reader, Some(added)),
    };
    let levels = &mut scratch.levels;
    match (reader, data) {
        (ColumnReader::Int32ColumnReader(reader), ColumnData::Text(texts)) => {
            let found = &mut scratch.ints;
            records(reader, rows, levels, found, filled)?;
            required(wanted, filled)?;
            spread(found, filled, &mut texts.codes, i32::cast_unsigned);
            add_texts(&added.map(|added| added.take()).unwrap_or_default(), texts);
            check_texts(texts, filled)
        }
        (ColumnReader::Int64ColumnReader(reader), data) => {
            let found = &mut scratch.longs;
            records(reader, rows, levels, found, filled)?;
            required(wanted, filled)?;
            whole(wanted, found, filled, data, i64::cast_unsigned)
        }
        (ColumnReader::Int32ColumnReader(reader), data) => {
            let found = &mut scratch.ints;
            records(reader, rows, levels, found, filled)?;
            required(wanted, filled)?;
            if wanted.unsigned {
                whole(wanted, found, filled, data, |value| {
                    u64::from(value.cast_unsigned())
                })
            } else {
                whole(wanted, found, filled, data, |value| {
                    i64::from(value).cast_unsigned()
                })
            }
        }
        (ColumnReader::DoubleColumnReader(reader), ColumnData::F64(cells)) => {
            let found = &mut scratch.doubles;
            records(reader, rows, levels, found, filled)?;
            spread(found, filled, cells, |value| value);
            required(wanted, filled)
        }
        (ColumnReader::FloatColumnReader(reader), ColumnData::F64(cells)) => {
            let found = &mut scratch.floats;
            records(reader, rows, levels, found, filled)?;
            spread(found, filled, cells, f64::from);
            required(wanted, filled)
        }
        (ColumnReader::BoolColumnReader(reader), ColumnData::Bool(cells)) => {
            let found = &mut scratch.bools;
            records(reader, rows, levels, found, filled)?;
            spread(found, filled, cells, |value| value);
            required(wanted, filled)
        }
        (ColumnReader::ByteArrayColumnReader(reader), ColumnData::Text(texts)) => {
            let found = &mut scratch.texts;
            records(reader, rows, levels, found, filled)?;
            required(wanted, filled)?;
            copy_texts(found, texts, filled)
        }
        _ => Err(ColumnFault::Library(ParquetError::General(format!(
            "column `{}` changes its type",
            wanted.name
        )))),
    }
}

/// Makes `rows` empty cells.
fn leave_empty(rows: usize, data: &mut ColumnData) {
    match data {
        ColumnData::U64(cells) => reset(cells, rows),
        ColumnData::I64(cells) => reset(cells, rows),
        ColumnData::F64(cells) => reset(cells, rows),
        ColumnData::Bool(cells) => reset(cells, rows),
        ColumnData::Text(texts) => reset(&mut texts.codes, rows),
    }
}

fn reset<T: Default + Clone>(cells: &mut Vec<T>, rows: usize) {
    cells.clear();
    cells.resize(rows, T::default());
}

/// Refuses empty cells in a required column.
fn required(wanted: &WantedColumn, filled: &[bool]) -> Result<(), ColumnFault> {
    match filled.iter().position(|filled| !filled) {
        Some(row) if !wanted.optional => Err(ColumnFault::Cell(row, "empty".to_owned())),
        _ => Ok(()),
    }
}

/// Reads exactly `rows` rows: the values of the filled cells, and in `filled` one flag for each row
/// if at least one cell is empty.
fn records<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    levels: &mut Vec<i16>,
    values: &mut Vec<T::T>,
    filled: &mut Vec<bool>,
) -> ParquetResult<()> {
    levels.clear();
    values.clear();
    let (records, found, _) = reader.read_records(rows, Some(levels), None, values)?;
    // A file whose columns have different lengths would shift the cells of one row into another.
    if records != rows || found != values.len() {
        return Err(ParquetError::General(format!(
            "a column ends after {records} of {rows} rows"
        )));
    }
    if found == rows {
        return Ok(());
    }
    filled.extend(levels.iter().map(|&level| level == 1));
    if filled.len() != rows || filled.iter().filter(|&&filled| filled).count() != found {
        return Err(ParquetError::General(
            "a column's values and levels contradict each other".to_owned(),
        ));
    }
    Ok(())
}

/// Puts each value into its row. Empty cells get the default value.
fn spread<T: Copy, U: Default>(
    values: &[T],
    filled: &[bool],
    cells: &mut Vec<U>,
    convert: impl Fn(T) -> U,
) {
    cells.clear();
    if filled.is_empty() {
        cells.extend(values.iter().map(|&value| convert(value)));
        return;
    }
    let mut values = values.iter();
    cells.extend(filled.iter().map(|&filled| {
        let value = filled.then(|| values.next()).flatten();
        value.map_or_else(U::default, |&value| convert(value))
    }));
}

/// Puts whole numbers into their rows, and checks their range. `bits` extends a number to 64 bits,
/// by its sign if the file marks the numbers as signed.
fn whole<T: Copy>(
    wanted: &WantedColumn,
    values: &[T],
    filled: &[bool],
    data: &mut ColumnData,
    bits: impl Fn(T) -> u64,
) -> Result<(), ColumnFault> {
    // Without its sign, a negative number is above the largest positive number.
    let limit = match (wanted.kind, wanted.unsigned) {
        (ColumnType::U32, _) => u64::from(u32::MAX),
        (ColumnType::I64, true) | (ColumnType::U64, false) => i64::MAX.cast_unsigned(),
        _ => u64::MAX,
    };
    match data {
        ColumnData::U64(cells) => {
            spread(values, filled, cells, bits);
            within(wanted, cells.iter().copied(), limit)
        }
        ColumnData::I64(cells) => {
            spread(values, filled, cells, |value| bits(value).cast_signed());
            within(wanted, cells.iter().map(|cell| cell.cast_unsigned()), limit)
        }
        _ => Err(ColumnFault::Library(ParquetError::General(format!(
            "column `{}` changes its type",
            wanted.name
        )))),
    }
}

/// Refuses cells above `limit`.
fn within(
    wanted: &WantedColumn,
    mut cells: impl Iterator<Item = u64> + Clone,
    limit: u64,
) -> Result<(), ColumnFault> {
    if limit == u64::MAX {
        return Ok(());
    }
    // Most batches have no such cell; a loop without an early end is faster.
    let beyond = cells.clone().fold(false, |any, cell| any | (cell > limit));
    match beyond
        .then(|| cells.clone().position(|cell| cell > limit))
        .flatten()
    {
        None => Ok(()),
        Some(row) => {
            let bits = cells.nth(row).unwrap_or_default();
            let found = if wanted.unsigned {
                bits.to_string()
            } else {
                bits.cast_signed().to_string()
            };
            Err(ColumnFault::Cell(row, found))
        }
    }
}

/// Adds the texts of the latest pages to the list. A text that is not UTF-8 is an error only if a
/// row of this batch has the text.
fn add_texts(added: &[Bytes], texts: &mut Texts) {
    for text in added {
        let text = std::str::from_utf8(text);
        if text.is_err() {
            texts.broken.push(texts.list.len() as u32);
        }
        texts.list.push(text.unwrap_or_default().to_owned());
    }
}

/// Refuses cells with a text that is not UTF-8, and cells with a text beyond the list.
fn check_texts(texts: &Texts, filled: &[bool]) -> Result<(), ColumnFault> {
    let count = texts.list.len();
    let mut beyond = false;
    for (row, &code) in texts.codes.iter().enumerate() {
        beyond |= code as usize >= count && filled.get(row) != Some(&false);
    }
    if beyond {
        return Err(ColumnFault::Library(ParquetError::General(
            "a column of text has a number beyond its texts".to_owned(),
        )));
    }
    if texts.broken.is_empty() {
        return Ok(());
    }
    let mut codes = texts.codes.iter().enumerate();
    // The list of broken texts is ascending, because texts are added with ascending numbers.
    let bad = codes.find(|(row, code)| {
        filled.get(*row) != Some(&false) && texts.broken.binary_search(code).is_ok()
    });
    bad.map_or(Ok(()), |(row, _)| {
        Err(ColumnFault::Cell(row, "no UTF-8".to_owned()))
    })
}

/// Copies texts that only the library can decode. Texts that follow each other are often equal; an
/// equal text is not copied again.
fn copy_texts(found: &[ByteArray], texts: &mut Texts, filled: &[bool]) -> Result<(), ColumnFault> {
    texts.list.clear();
    texts.broken.clear();
    let mut codes = Vec::with_capacity(found.len());
    for (index, text) in found.iter().enumerate() {
        if index == 0 || found[index - 1].data() != text.data() {
            add_texts(&[Bytes::copy_from_slice(text.data())], texts);
        }
        codes.push((texts.list.len() - 1) as u32);
    }
    spread(&codes, filled, &mut texts.codes, |code| code);
    check_texts(texts, filled)
}
