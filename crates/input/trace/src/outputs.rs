//! Output formats. Each format is one file; the list below is their registry.

use crate::{TraceError, TraceRecord};
use fullstroke_contract::registry::nearest;
use std::fmt;
use std::path::Path;

mod disksim;
mod fio;
mod msr;
mod native;
mod text;

/// All output formats, as documented in `docs/traces.md`.
pub const OUTPUTS: &[&TraceOutput] = &[
    &native::OUTPUT,
    &fio::OUTPUT,
    &disksim::OUTPUT,
    &msr::OUTPUT,
];

/// An output format.
pub struct TraceOutput {
    /// Name, the same as for reading.
    pub name: &'static str,
    /// One-sentence description for lists and reference pages.
    pub summary: &'static str,
    /// Properties of a request that the format cannot express, or keeps with less precision.
    pub loses: &'static str,
    /// Extensions of file names that select this format, without the extension of a packing.
    pub endings: &'static [&'static str],
    /// Begins a file.
    pub(crate) create: fn(&Path) -> Result<Box<dyn RecordWriter>, TraceError>,
}

/// Writer of one file. Drop before [`finish`](RecordWriter::finish) leaves no file behind.
pub(crate) trait RecordWriter: Send {
    /// Writes `record`. Returns `false` if the format cannot express it.
    fn write(&mut self, record: &TraceRecord) -> Result<bool, TraceError>;
    /// Moves the complete file to its place.
    fn finish(self: Box<Self>) -> Result<(), TraceError>;
}

/// A file to which records are written one by one. Drop before [`finish`](TraceWriter::finish)
/// leaves no file behind.
pub struct TraceWriter {
    writer: Box<dyn RecordWriter>,
}

impl TraceWriter {
    /// Begins a file at `path`. Text is packed if the name ends in `.gz`, `.zst` or `.xz`.
    ///
    /// # Errors
    /// Fails if the file cannot be created.
    pub fn create(output: &TraceOutput, path: &Path) -> Result<TraceWriter, TraceError> {
        Ok(TraceWriter {
            writer: (output.create)(path)?,
        })
    }

    /// Writes `record`. Returns `false` if the format cannot express it.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&mut self, record: &TraceRecord) -> Result<bool, TraceError> {
        self.writer.write(record)
    }

    /// Moves the complete file to its place.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn finish(self) -> Result<(), TraceError> {
        self.writer.finish()
    }
}

impl fmt::Debug for TraceOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("name", &self.name).finish()
    }
}

/// Returns the output format called `name`.
///
/// # Errors
/// Fails if the name is unknown. The error names the nearest format.
pub(crate) fn find_output(name: &str) -> Result<&'static TraceOutput, TraceError> {
    OUTPUTS
        .iter()
        .copied()
        .find(|output| output.name == name)
        .ok_or_else(|| {
            let names: Vec<&str> = OUTPUTS.iter().map(|output| output.name).collect();
            TraceError::Option(format!(
                "traces cannot be written as `{name}`{}; known: {}",
                nearest(name, &names),
                names.join(", ")
            ))
        })
}

/// Returns `name` (in lower case) without the extension of a packing.
pub(crate) fn packing_stripped(name: &str) -> &str {
    text::PACKINGS
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .unwrap_or(name)
}
