//! MSR Cambridge CSV.

use super::text::TextFile;
use super::{RecordWriter, TraceOutput};
use crate::{TraceError, TraceRecord};
use fullstroke_contract::Operation;
use fullstroke_units::SECTOR_BYTES;

pub(super) const OUTPUT: TraceOutput = TraceOutput {
    name: "msr",
    summary: "MSR Cambridge CSV: FILETIMEs from 1970 on, host `trace`, offsets and sizes in bytes",
    loses: "times are cut to 100 ns (a known response is at least that long); all but reads and writes is left out; \
            processes and times of issue are lost",
    endings: &[".csv"],
    create: |path| Ok(Box::new(Msr(TextFile::create(path)?))),
};

const TICK_NS: u64 = 100;
/// 1 January 1970 as FILETIME (100 ns since 1601).
const BEGINNING_TICKS: u64 = 116_444_736_000_000_000;

struct Msr(TextFile);

impl RecordWriter for Msr {
    fn write(&mut self, record: &TraceRecord) -> Result<bool, TraceError> {
        let operation = match record.operation {
            Operation::Read => "Read",
            Operation::Write => "Write",
            _ => return Ok(false),
        };
        let timestamp = BEGINNING_TICKS + record.arrival.as_nanos() / TICK_NS;
        // At least one tick, because 0 would mean that the response time is unknown.
        let response = record
            .response()
            .map_or(0, |response| (response.as_nanos() / TICK_NS).max(1));
        let offset = u128::from(record.extent.start.0) * u128::from(SECTOR_BYTES);
        let size = u128::from(record.extent.sectors.0) * u128::from(SECTOR_BYTES);
        let device = record.device;
        self.0.line(format_args!(
            "{timestamp},trace,{device},{operation},{offset},{size},{response}"
        ))?;
        Ok(true)
    }

    fn finish(self: Box<Self>) -> Result<(), TraceError> {
        self.0.finish()
    }
}
