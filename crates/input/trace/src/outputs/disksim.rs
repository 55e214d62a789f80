//! DiskSim's ASCII format.

use super::text::TextFile;
use super::{RecordWriter, TraceOutput};
use crate::{TraceError, TraceRecord};
use fullstroke_contract::Operation;

pub(super) const OUTPUT: TraceOutput = TraceOutput {
    name: "disksim",
    summary: "DiskSim ASCII: arrival in ms with 6 decimals, device, sector, sectors, flags",
    loses: "all but reads and writes is left out; processes and the times of issue and completion are lost",
    endings: &[".disksim", ".ascii"],
    create: |path| Ok(Box::new(DiskSim(TextFile::create(path)?))),
};

const NANOS_PER_MILLI: u64 = 1_000_000;

struct DiskSim(TextFile);

impl RecordWriter for DiskSim {
    fn write(&mut self, record: &TraceRecord) -> Result<bool, TraceError> {
        let flags = match record.operation {
            Operation::Read => 1,
            Operation::Write => 0,
            _ => return Ok(false),
        };
        let arrival = record.arrival.as_nanos();
        let (whole, fraction) = (arrival / NANOS_PER_MILLI, arrival % NANOS_PER_MILLI);
        let (start, sectors) = (record.extent.start.0, record.extent.sectors.0);
        self.0.line(format_args!(
            "{whole}.{fraction:06} {} {start} {sectors} {flags}",
            record.device
        ))?;
        Ok(true)
    }

    fn finish(self: Box<Self>) -> Result<(), TraceError> {
        self.0.finish()
    }
}
