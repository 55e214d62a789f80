//! ASCII format of MQSim and SSDSim.

use super::disksim::place;
use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::fields::{LineFields, Parsed};
use crate::row::{LineParser, LineRows, TraceRow};
use fullstroke_contract::Operation;

pub(super) const FORMAT: Format = Format {
    name: "mqsim",
    summary: "MQSim and SSDSim ASCII: times in ns (give --format, because disksim has the same columns)",
    columns: "arrival (ns), device, first sector, sectors, operation (1 = read, 0 = write)",
    counted: PlaceUnit::Lines,
    detect,
    open: |_| Ok(Box::new(LineRows(MqSim))),
};

struct MqSim;

fn detect(head: &TraceHead<'_>) -> Confidence {
    head.understood_by(MqSim, Confidence::Possible)
}

impl LineParser for MqSim {
    #[inline]
    fn row(&mut self, line: &[u8]) -> Parsed<Option<TraceRow>> {
        let mut fields = LineFields::new(line);
        fields.spaces();
        let arrival = fields.integer("an arrival time in whole ns")?;
        let (device, start, sectors) = place(&mut fields)?;
        let operation = match fields.peek() {
            Some(b'1') => Operation::Read,
            Some(b'0') => Operation::Write,
            _ => return Err(fields.mismatch("1 (read) or 0 (write)")),
        };
        fields.skip(1);
        fields.end()?;
        Ok(Some(TraceRow {
            device,
            ..TraceRow::new(arrival, operation, start, sectors)
        }))
    }
}
