//! Writes rows as Parquet.

use crate::cells::{Cells, PendingCells};
use crate::{AtomicFile, ColumnType, Schema};
use parquet::basic::{
    Compression, Encoding, LogicalType, Repetition, Type as PhysicalType, ZstdLevel,
};
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

/// A compromise: most of the compression of higher levels, at a fraction of their time.
const ZSTD_LEVEL: i32 = 3;

/// Number of the format version in the footer, as other readers name it.
const FORMAT_VERSION: i32 = 2;
const CREATED_BY: &str = concat!("fullstroke ", env!("CARGO_PKG_VERSION"));

/// Writes row groups to a Parquet file.
pub(crate) struct ParquetWriter {
    file: SerializedFileWriter<AtomicFile>,
    notes: Vec<KeyValue>,
    /// Row groups that are completely written, their rows, and the end of the last one in bytes.
    groups: usize,
    rows: u64,
    end: u64,
}

impl ParquetWriter {
    pub(crate) fn new(file: AtomicFile, schema: &Schema) -> Result<ParquetWriter> {
        let properties = Arc::new(properties(schema)?);
        let file = SerializedFileWriter::new(file, message(schema)?, properties)?;
        Ok(ParquetWriter {
            file,
            notes: Vec::new(),
            groups: 0,
            rows: 0,
            end: 0,
        })
    }

    pub(crate) fn note(&mut self, key: &str, value: &str) {
        self.notes
            .push(KeyValue::new(key.to_owned(), value.to_owned()));
    }

    pub(crate) fn write(&mut self, columns: &[PendingCells]) -> Result<()> {
        assert!(
            columns.windows(2).all(|two| two[0].rows() == two[1].rows()),
            "the columns of a row group have one length"
        );
        let mut group = self.file.next_row_group()?;
        for column in columns {
            if let Some(mut writer) = group.next_column()? {
                write_column(&mut writer, column)?;
                writer.close()?;
            }
        }
        group.close()?;
        // The flush makes this group complete on the file system. Otherwise the group's last bytes
        // would be lost in a buffer if the next group fails.
        self.file.flush()?;
        self.file.inner_mut().flush()?;
        self.groups += 1;
        self.rows += columns.first().map_or(0, PendingCells::rows) as u64;
        self.end = self.file.bytes_written() as u64;
        assert_eq!(
            self.file.flushed_row_groups().len(),
            self.groups,
            "each row group is written once"
        );
        Ok(())
    }

    pub(crate) fn into_file(mut self) -> Result<AtomicFile> {
        for note in std::mem::take(&mut self.notes) {
            self.file.append_key_value_metadata(note);
        }
        self.file.into_inner()
    }

    /// Returns the number of rows in completely written row groups.
    pub(crate) fn whole_rows(&self) -> u64 {
        self.rows
    }

    /// After an error: turns the complete row groups into a readable file under the partial name.
    pub(crate) fn cut(mut self) -> io::Result<PathBuf> {
        if self.groups == 0 {
            return Err(io::Error::other("no row group is whole"));
        }
        let metadata = FileMetaData::new(
            FORMAT_VERSION,
            self.rows.cast_signed(),
            Some(CREATED_BY.to_owned()),
            Some(std::mem::take(&mut self.notes)),
            Arc::new(self.file.schema_descr().clone()),
            None,
        );
        let groups = self.file.flushed_row_groups()[..self.groups].to_vec();
        let metadata = ParquetMetaData::new(metadata, groups);
        let mut footer = Vec::new();
        ParquetMetaDataWriter::new(&mut footer, &metadata)
            .finish()
            .map_err(io::Error::other)?;
        self.file.inner_mut().cut(self.end, &footer)
    }
}

fn properties(schema: &Schema) -> Result<WriterProperties> {
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(CREATED_BY.to_owned());
    for column in schema.columns() {
        let path = ColumnPath::from(column.name.as_str());
        // Times and addresses rarely repeat, but neighbouring values are close together.
        builder = match column.kind {
            ColumnType::U64 | ColumnType::I64 => builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            ColumnType::F64 => builder.set_column_dictionary_enabled(path, false),
            ColumnType::U32 | ColumnType::Text | ColumnType::Bool => builder,
        };
    }
    Ok(builder.build())
}

fn message(schema: &Schema) -> Result<TypePtr> {
    let mut fields = Vec::new();
    for column in schema.columns() {
        let (physical, logical) = representation(column.kind);
        let repetition = if column.optional {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        let field = Type::primitive_type_builder(&column.name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()?;
        fields.push(Arc::new(field));
    }
    Ok(Arc::new(
        Type::group_type_builder("table")
            .with_fields(fields)
            .build()?,
    ))
}

fn representation(kind: ColumnType) -> (PhysicalType, Option<LogicalType>) {
    match kind {
        ColumnType::U64 => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
        ColumnType::I64 => (PhysicalType::INT64, Some(LogicalType::integer(64, true))),
        ColumnType::U32 => (PhysicalType::INT32, Some(LogicalType::integer(32, false))),
        ColumnType::F64 => (PhysicalType::DOUBLE, None),
        ColumnType::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnType::Bool => (PhysicalType::BOOLEAN, None),
    }
}

fn write_column(writer: &mut SerializedColumnWriter<'_>, column: &PendingCells) -> Result<()> {
    let levels = column.levels.as_deref();
    match &column.cells {
        Cells::U64(values) => {
            // Parquet stores unsigned integers as the signed type of the same width; the logical
            // type tells the sign.
            let values: Vec<i64> = values.iter().map(|&value| value.cast_signed()).collect();
            put::<Int64Type>(writer, &values, levels)
        }
        Cells::I64(values) => put::<Int64Type>(writer, values, levels),
        Cells::U32(values) => {
            let values: Vec<i32> = values.iter().map(|&value| value.cast_signed()).collect();
            put::<Int32Type>(writer, &values, levels)
        }
        Cells::F64(values) => put::<DoubleType>(writer, values, levels),
        Cells::Text(values) => put::<ByteArrayType>(writer, values, levels),
        Cells::Bool(values) => put::<BoolType>(writer, values, levels),
    }
}

fn put<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<()> {
    writer
        .typed::<T>()
        .write_batch(values, levels, None)
        .map(|_| ())
}
