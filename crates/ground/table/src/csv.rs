//! Rows as comma-separated values (RFC 4180): a header line, then one line per row. An empty cell
//! has no characters. Text is quoted if necessary.

use crate::cells::{Cells, PendingCells};
use crate::{AtomicFile, Schema};
#[cfg(not(target_family = "wasm"))]
use flate2::{Compression, write::GzEncoder};
use std::io::{self, Write};

/// Writes CSV, compressed or not.
#[derive(Debug)]
pub(crate) enum CsvWriter {
    Plain(AtomicFile),
    // WebAssembly has no files (`atomic.rs`), and the encoder is 26 KB of the module for browsers.
    #[cfg(not(target_family = "wasm"))]
    Gzip(Box<GzEncoder<AtomicFile>>),
}

impl CsvWriter {
    pub(crate) fn new(file: AtomicFile, gzip: bool, schema: &Schema) -> io::Result<CsvWriter> {
        let mut writer = match gzip {
            #[cfg(not(target_family = "wasm"))]
            true => CsvWriter::Gzip(Box::new(GzEncoder::new(file, Compression::default()))),
            _ => CsvWriter::Plain(file),
        };
        let mut line = Vec::new();
        for (index, column) in schema.columns().iter().enumerate() {
            separate(&mut line, index);
            put_text(&mut line, column.name.as_bytes());
        }
        line.push(b'\n');
        writer.out().write_all(&line)?;
        Ok(writer)
    }

    fn out(&mut self) -> &mut dyn Write {
        match self {
            CsvWriter::Plain(file) => file,
            #[cfg(not(target_family = "wasm"))]
            CsvWriter::Gzip(encoder) => encoder,
        }
    }

    pub(crate) fn write(&mut self, columns: &[PendingCells], rows: usize) -> io::Result<()> {
        // An optional column stores values only for filled cells, so each column needs its own
        // position.
        let mut next = vec![0; columns.len()];
        let mut line = Vec::new();
        for row in 0..rows {
            line.clear();
            for (index, column) in columns.iter().enumerate() {
                separate(&mut line, index);
                // An empty cell is no text between two commas. Empty text looks the same; CSV does
                // not distinguish the two.
                if column.levels.as_ref().is_none_or(|levels| levels[row] == 1) {
                    put_cell(&mut line, &column.cells, next[index])?;
                    next[index] += 1;
                }
            }
            line.push(b'\n');
            self.out().write_all(&line)?;
        }
        Ok(())
    }

    pub(crate) fn into_file(self) -> io::Result<AtomicFile> {
        match self {
            CsvWriter::Plain(file) => Ok(file),
            #[cfg(not(target_family = "wasm"))]
            CsvWriter::Gzip(encoder) => encoder.finish(),
        }
    }
}

fn separate(line: &mut Vec<u8>, index: usize) {
    if index > 0 {
        line.push(b',');
    }
}

fn put_cell(line: &mut Vec<u8>, cells: &Cells, at: usize) -> io::Result<()> {
    match cells {
        Cells::U64(values) => write!(line, "{}", values[at]),
        Cells::I64(values) => write!(line, "{}", values[at]),
        Cells::U32(values) => write!(line, "{}", values[at]),
        Cells::F64(values) => write!(line, "{}", values[at]),
        Cells::Bool(values) => write!(line, "{}", values[at]),
        Cells::Text(values) => {
            put_text(line, values[at].data());
            Ok(())
        }
    }
}

fn put_text(line: &mut Vec<u8>, text: &[u8]) {
    // RFC 4180, section 2: fields with commas, quotes or line breaks are quoted, and a quote is
    // doubled.
    if !text
        .iter()
        .any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r'))
    {
        line.extend_from_slice(text);
        return;
    }
    line.push(b'"');
    for &byte in text {
        if byte == b'"' {
            line.push(b'"');
        }
        line.push(byte);
    }
    line.push(b'"');
}
