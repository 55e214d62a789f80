//! Block traces in all known formats, read as a stream.
//!
//! [`TraceReader::open`] recognises the format of a trace by its contents, also inside gzip, zstd
//! or xz. The reader returns requests as [`TraceRecord`]s in order of arrival, and its memory does
//! not grow with the trace. [`TraceOptions`] select devices, operations and a window of time, and
//! define the treatment of addresses beyond a volume. [`TraceSummary`] describes a trace,
//! [`convert`] writes it in another format, and [`render_head`] shows its first requests.
//!
//! A format is one file in `formats/` and one line in the list in `formats.rs`.

mod columns;
mod convert;
mod error;
mod events;
mod fault;
mod fields;
mod files;
mod fio_report;
mod footprint;
mod formats;
mod head;
mod input;
mod options;
mod outputs;
mod pasted;
mod place;
mod processor_files;
mod reader;
mod record;
mod restart;
mod restarts;
mod row;
mod shared;
mod sort;
mod source;
mod summary;
mod unselected;

pub use convert::{Conversion, convert, output_for};
pub use error::TraceError;
pub use fault::TracePlace;
pub use files::{DiskFiles, FileKind, FileSource, FileVersion, Files, MemoryFiles};
pub use fio_report::{FioDirection, FioJob, FioReport};
pub use formats::disksim_validate::{CacheOutcome, ValidateReader, ValidateRow};
pub use formats::native::{column as native_column, schema as native_schema};
pub use formats::{Confidence, FORMATS, Format, PlaceUnit, TraceHead, find_format};
pub use head::{head, render_head};
pub use options::{BeyondPolicy, FootprintPolicy, SORT_WINDOW_ROWS, TraceOptions};
pub use outputs::{OUTPUTS, TraceOutput, TraceWriter};
pub use processor_files::{files_in, files_of};
pub use reader::TraceReader;
pub use record::TraceRecord;
pub use shared::SharedReader;
pub use summary::{
    AddressSummary, Completions, OperationSummary, SummaryDistribution, TraceSummary,
};
pub use unselected::Unselected;
