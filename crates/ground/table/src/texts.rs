//! Texts of a Parquet column, read as numbers into a list of texts.
//!
//! The Parquet library makes one reference-counted value of each text of a row. Most columns of
//! text hold few different texts, and writers keep these texts in a dictionary. The pages of such a
//! column are therefore rewritten: each text becomes its number in a list, and the library decodes
//! numbers of 32 bits. A text is checked and copied once for each dictionary, not once for each
//! row.

use bytes::Bytes;
use parquet::basic::{Encoding, Repetition, Type as PhysicalType};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::Int32Type;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::RowGroupReader;
use parquet::schema::types::{ColumnDescriptor, Type};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of bytes before each text with the encoding `PLAIN` (Apache Parquet format, "Encodings").
const LENGTH_BYTES: usize = 4;
/// Number of known texts with which a text outside a dictionary is compared before the text is
/// added to the list again. Enough for columns of names, such as operations.
const COMPARED: usize = 16;

/// Texts that the pages have added since the last look, as bytes of the file.
#[derive(Clone, Default)]
pub(crate) struct AddedTexts(Arc<Mutex<Vec<Bytes>>>);

impl AddedTexts {
    fn lock(&self) -> MutexGuard<'_, Vec<Bytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the new texts.
    pub(crate) fn take(&self) -> Vec<Bytes> {
        std::mem::take(&mut self.lock())
    }
}

/// Opens the column of text `leaf` as a column of numbers. Returns `None` if the column has an
/// encoding that only the library decodes.
pub(crate) fn open(
    group: &dyn RowGroupReader,
    leaf: usize,
) -> ParquetResult<Option<(ColumnReader, AddedTexts)>> {
    let chunk = group.metadata().column(leaf);
    // `RLE` and `BIT_PACKED` are encodings of levels here.
    let known = chunk.encodings().all(|encoding| {
        matches!(
            encoding,
            Encoding::PLAIN
                | Encoding::PLAIN_DICTIONARY
                | Encoding::RLE_DICTIONARY
                | Encoding::RLE
                | BIT_PACKED
        )
    });
    if !known {
        return Ok(None);
    }
    let column = chunk.column_descr();
    let optional = column.max_def_level() > 0;
    let repetition = if optional {
        Repetition::OPTIONAL
    } else {
        Repetition::REQUIRED
    };
    let number = Type::primitive_type_builder(column.name(), PhysicalType::INT32)
        .with_repetition(repetition)
        .build()?;
    let number = ColumnDescriptor::new(
        Arc::new(number),
        column.max_def_level(),
        0,
        column.path().clone(),
    );
    let added = AddedTexts::default();
    let pages = TextPages {
        pages: group.get_column_page_reader(leaf)?,
        added: added.clone(),
        count: 0,
        recent: Vec::new(),
        optional,
    };
    let reader = ColumnReaderImpl::<Int32Type>::new(Arc::new(number), Box::new(pages));
    Ok(Some((ColumnReader::Int32ColumnReader(reader), added)))
}

/// The only encoding of levels in old files. The format deprecates this encoding, and so does the
/// library's name for the encoding.
#[expect(deprecated, reason = "old files have this encoding")]
const BIT_PACKED: Encoding = Encoding::BIT_PACKED;

/// Pages of a column of text, rewritten to pages of numbers.
struct TextPages {
    pages: Box<dyn PageReader>,
    added: AddedTexts,
    /// Number of texts added so far.
    count: i32,
    /// Latest texts outside a dictionary, with their numbers.
    recent: Vec<(Bytes, i32)>,
    /// True if the pages have definition levels.
    optional: bool,
}

impl TextPages {
    fn rewritten(&mut self, page: Page) -> ParquetResult<Page> {
        match page {
            Page::DictionaryPage {
                buf,
                num_values,
                encoding: Encoding::PLAIN | Encoding::PLAIN_DICTIONARY,
                ..
            } => self.dictionary(&buf, num_values),
            Page::DataPage {
                encoding: Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY,
                ..
            }
            | Page::DataPageV2 {
                encoding: Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY,
                ..
            } => Ok(page),
            Page::DataPage {
                buf,
                num_values,
                encoding: Encoding::PLAIN,
                def_level_encoding,
                rep_level_encoding,
                statistics,
            } => Ok(Page::DataPage {
                buf: self.plain(&buf, self.levels(&buf, num_values, def_level_encoding)?)?,
                num_values,
                encoding: Encoding::PLAIN,
                def_level_encoding,
                rep_level_encoding,
                statistics,
            }),
            Page::DataPageV2 {
                buf,
                num_values,
                encoding: Encoding::PLAIN,
                num_nulls,
                num_rows,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                statistics,
            } => Ok(Page::DataPageV2 {
                buf: self.plain(
                    &buf,
                    def_levels_byte_len as usize + rep_levels_byte_len as usize,
                )?,
                num_values,
                encoding: Encoding::PLAIN,
                num_nulls,
                num_rows,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                statistics,
            }),
            other => Err(damaged(format!(
                "a page of text has the encoding {}, which the footer does not name",
                other.encoding()
            ))),
        }
    }

    /// Returns the length in bytes of the levels at the beginning of a data page of version 1.
    fn levels(&self, page: &[u8], values: u32, encoding: Encoding) -> ParquetResult<usize> {
        if !self.optional {
            return Ok(0);
        }
        if encoding == BIT_PACKED {
            // One bit for each value, because the only level of a flat column is 0 or 1.
            return Ok(values.div_ceil(u8::BITS) as usize);
        }
        let length = page
            .first_chunk()
            .map(|length| u32::from_le_bytes(*length) as usize);
        length
            .map(|length| LENGTH_BYTES + length)
            // The length is that of the levels alone, without its own 4 bytes.
            .ok_or_else(|| damaged("a page of text ends within its levels"))
    }

    /// Adds all texts of a dictionary to the list. Returns the dictionary of their numbers.
    fn dictionary(&mut self, page: &Bytes, values: u32) -> ParquetResult<Page> {
        let (mut numbers, mut at) = (Vec::new(), 0);
        for _ in 0..values {
            let text = next_text(page, &mut at)?;
            // Numbers continue over all pages of a row group, so a number means one text in all of
            // them.
            numbers.extend_from_slice(&self.add(text)?.to_le_bytes());
        }
        Ok(Page::DictionaryPage {
            buf: numbers.into(),
            num_values: values,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        })
    }

    /// Returns a page with the same levels, and with numbers in place of the texts.
    fn plain(&mut self, page: &Bytes, levels: usize) -> ParquetResult<Bytes> {
        let levels = page
            .get(..levels)
            .ok_or_else(|| damaged("a page of text ends within its levels"))?;
        let (mut numbers, mut at) = (levels.to_vec(), levels.len());
        while at < page.len() {
            let text = next_text(page, &mut at)?;
            let known = self.recent.iter().find(|(known, _)| *known == text);
            let number = match known {
                Some(&(_, number)) => number,
                None => {
                    let number = self.add(text.clone())?;
                    if self.recent.len() == COMPARED {
                        self.recent.remove(0);
                    }
                    self.recent.push((text, number));
                    number
                }
            };
            numbers.extend_from_slice(&number.to_le_bytes());
        }
        Ok(numbers.into())
    }

    fn add(&mut self, text: Bytes) -> ParquetResult<i32> {
        let number = self.count;
        self.count = number
            .checked_add(1)
            .ok_or_else(|| damaged("a column chunk has more than 2^31 texts"))?;
        self.added.lock().push(text);
        Ok(number)
    }
}

/// Returns the text at the offset `at`, and moves the offset behind the text.
fn next_text(page: &Bytes, at: &mut usize) -> ParquetResult<Bytes> {
    let ended = || damaged("a page of text ends within a text");
    let length = page
        .get(*at..)
        .and_then(<[u8]>::first_chunk)
        .ok_or_else(ended)?;
    let begin = *at + LENGTH_BYTES;
    let end = begin + u32::from_le_bytes(*length) as usize;
    if end > page.len() {
        return Err(ended());
    }
    *at = end;
    Ok(page.slice(begin..end))
}

fn damaged(found: impl Into<String>) -> ParquetError {
    ParquetError::General(found.into())
}

impl Iterator for TextPages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<ParquetResult<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for TextPages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.map(|page| self.rewritten(page)).transpose()
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> ParquetResult<bool> {
        self.pages.at_record_boundary()
    }
}

#[cfg(test)]
mod tests {
    use crate::{ColumnType, Schema, TableReader};
    use parquet::basic::{Encoding, Repetition, Type as PhysicalType};
    use parquet::data_type::{ByteArray, ByteArrayType};
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::types::Type;
    use std::path::Path;
    use std::sync::Arc;

    /// Returns a file with one optional or required column of text.
    fn file(texts: &[Option<&str>], optional: bool, properties: WriterProperties) -> Vec<u8> {
        let repetition = if optional {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        let field = Type::primitive_type_builder("name", PhysicalType::BYTE_ARRAY)
            .with_repetition(repetition)
            .build()
            .unwrap();
        let schema = Type::group_type_builder("table")
            .with_fields(vec![Arc::new(field)])
            .build()
            .unwrap();
        let mut bytes = Vec::new();
        let mut file =
            SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(properties)).unwrap();
        for part in texts.chunks(400) {
            let values: Vec<ByteArray> = part.iter().flatten().map(|&text| text.into()).collect();
            let levels: Vec<i16> = part.iter().map(|text| i16::from(text.is_some())).collect();
            let mut group = file.next_row_group().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            column
                .typed::<ByteArrayType>()
                .write_batch(&values, optional.then_some(&levels), None)
                .unwrap();
            column.close().unwrap();
            group.close().unwrap();
        }
        file.close().unwrap();
        bytes
    }

    #[test]
    fn texts_of_all_encodings_come_back_as_they_were_written() {
        let named: Vec<String> = (0..1000).map(|row| format!("name {}", row % 37)).collect();
        for optional in [false, true] {
            let texts: Vec<Option<&str>> = named
                .iter()
                .enumerate()
                .map(|(row, name)| (!optional || row % 5 != 0).then_some(name.as_str()))
                .collect();
            for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
                for encoding in [
                    None,
                    Some(Encoding::PLAIN),
                    Some(Encoding::DELTA_LENGTH_BYTE_ARRAY),
                    Some(Encoding::DELTA_BYTE_ARRAY),
                ] {
                    let mut properties = WriterProperties::builder()
                        .set_writer_version(version)
                        .set_data_page_row_count_limit(150)
                        .set_write_batch_size(50)
                        .set_dictionary_enabled(encoding.is_none());
                    if let Some(encoding) = encoding {
                        properties = properties.set_encoding(encoding);
                    }
                    let bytes = file(&texts, optional, properties.build());
                    assert_eq!(
                        read(bytes).iter().map(Option::as_deref).collect::<Vec<_>>(),
                        texts,
                        "{optional} {version:?} {encoding:?}"
                    );
                }
            }
        }
    }

    fn read(bytes: Vec<u8>) -> Vec<Option<String>> {
        let schema = Schema::new().optional("name", ColumnType::Text);
        let mut reader = TableReader::from_bytes(Path::new("x"), bytes, &schema).unwrap();
        let mut texts = Vec::new();
        while let Some(batch) = reader.next_batch(64).unwrap() {
            for row in 0..batch.rows() {
                let text = (!batch.is_null(0, row)).then(|| batch.text(0, row).to_owned());
                texts.push(text);
            }
        }
        texts
    }
}
