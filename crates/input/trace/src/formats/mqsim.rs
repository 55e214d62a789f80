//! ASCII format of MQSim and SSDSim.

use super::disksim::place;
use super::{Confidence, Counted, Format, Head};
use crate::fields::{Fields, Parsed};
use crate::row::{LineParser, Lines, Row};
use fullstroke_contract::Operation;

pub(super) const FORMAT: Format = Format {
    name: "mqsim",
    summary: "MQSim and SSDSim ASCII: times in ns (must be said: disksim has the same columns)",
    columns: "arrival (ns), device, first sector, sectors, operation (1 = read, 0 = write)",
    counted: Counted::Lines,
    detect,
    open: |_| Ok(Box::new(Lines(MqSim))),
};

struct MqSim;

fn detect(head: &Head<'_>) -> Confidence {
    head.understood_by(MqSim, Confidence::Possible)
}

impl LineParser for MqSim {
    #[inline]
    fn row(&mut self, line: &[u8]) -> Parsed<Option<Row>> {
        let mut fields = Fields::new(line);
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
        Ok(Some(Row {
            device,
            ..Row::new(arrival, operation, start, sectors)
        }))
    }
}
