//! fullstroke's own format; see `formats/native.rs` for its schema.

use super::text::PACKINGS;
use super::{RecordWriter, TraceOutput};
use crate::formats::native::{column, schema};
use crate::{TraceError, TraceRecord};
use fullstroke_table::TableWriter;
use fullstroke_units::Time;
use std::path::Path;

pub(super) const OUTPUT: TraceOutput = TraceOutput {
    name: "native",
    summary: "Parquet, one row per request, times in ns",
    loses: "nothing",
    endings: &[".parquet"],
    create: |path| Ok(Box::new(Native(create(path)?))),
};

struct Native(TableWriter);

/// Creates the table. Refuses names that would select another format than Parquet, and names of a
/// packing, because Parquet is packed already.
fn create(path: &Path) -> Result<TableWriter, TraceError> {
    let name = path.to_string_lossy().to_ascii_lowercase();
    if name.ends_with(".csv") || PACKINGS.iter().any(|ending| name.ends_with(ending)) {
        return Err(TraceError::Option(format!(
            "`{}` is no name for a native trace, which is Parquet and compressed inside; let it end in .parquet",
            path.display()
        )));
    }
    Ok(TableWriter::create(path, &schema())?)
}

impl RecordWriter for Native {
    fn write(&mut self, record: &TraceRecord) -> Result<bool, TraceError> {
        let table = &mut self.0;
        table.u64(column::ARRIVAL, record.arrival.as_nanos());
        table.text(column::OPERATION, record.operation.name());
        table.u64(column::START, record.extent.start.0);
        table.u64(column::SECTORS, record.extent.sectors.0);
        table.u32(column::DEVICE, record.device);
        table.u32(column::PROCESS, record.process);
        table.optional_u64(column::ISSUED, record.issued.map(Time::as_nanos));
        table.optional_u64(column::COMPLETED, record.completed.map(Time::as_nanos));
        table.end_row()?;
        Ok(true)
    }

    fn finish(self: Box<Self>) -> Result<(), TraceError> {
        self.0.finish()?;
        Ok(())
    }
}
