//! The formats that a trace can be written in. Each is one file; the list
//! below is their registry.

use crate::{Record, TraceError};
use fullstroke_contract::registry::nearest;
use std::fmt;
use std::path::Path;

mod disksim;
mod fio;
mod msr;
mod native;
mod text;

/// Every format that can be written, as documented in `docs/traces.md`.
pub const OUTPUTS: &[&Output] = &[
    &native::OUTPUT,
    &fio::OUTPUT,
    &disksim::OUTPUT,
    &msr::OUTPUT,
];

/// One format that a trace can be written in.
pub struct Output {
    /// The name, as for reading.
    pub name: &'static str,
    /// One sentence for lists and reference pages.
    pub summary: &'static str,
    /// What the format cannot express, or keeps less precisely.
    pub loses: &'static str,
    /// What file names end in that mean this format, without a packing's ending.
    pub endings: &'static [&'static str],
    /// Begins a file.
    pub(crate) create: fn(&Path) -> Result<Box<dyn RecordWriter>, TraceError>,
}

/// Writes one file. Dropped before [`finish`](RecordWriter::finish), it leaves
/// nothing behind.
pub(crate) trait RecordWriter: Send {
    /// Writes `record`; `false` if the format cannot express it.
    fn write(&mut self, record: &Record) -> Result<bool, TraceError>;
    /// Puts the file in its place.
    fn finish(self: Box<Self>) -> Result<(), TraceError>;
}

/// A file that records are written to one by one. Dropped before
/// [`finish`](TraceWriter::finish), it leaves nothing behind.
pub struct TraceWriter {
    writer: Box<dyn RecordWriter>,
}

impl TraceWriter {
    /// Begins a file at `path`; text is packed if its name ends in `.gz`, `.zst`
    /// or `.xz`.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(output: &Output, path: &Path) -> Result<TraceWriter, TraceError> {
        Ok(TraceWriter {
            writer: (output.create)(path)?,
        })
    }

    /// Writes `record`; `false` if the format cannot express it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, record: &Record) -> Result<bool, TraceError> {
        self.writer.write(record)
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<(), TraceError> {
        self.writer.finish()
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("name", &self.name).finish()
    }
}

/// The output called `name`.
///
/// # Errors
/// If there is none; the error names the nearest one.
pub(crate) fn find_output(name: &str) -> Result<&'static Output, TraceError> {
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

/// `name` (in lower case) without the ending of a packing.
pub(crate) fn packing_stripped(name: &str) -> &str {
    text::PACKINGS
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .unwrap_or(name)
}
