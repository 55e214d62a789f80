//! One request of a trace.

use fullstroke_contract::{Extent, Operation};
use fullstroke_units::{Duration, Time};
use serde::ser::{Serialize, SerializeStruct as _, Serializer};

/// One request of a trace, times counted from the trace's first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it arrived at the traced layer.
    pub arrival: Time,
    /// What was asked.
    pub operation: Operation,
    /// Where, in 512-byte sectors. A byte range that does not fall on sectors
    /// is widened: the start is rounded down, the end up. Empty for a flush.
    pub extent: Extent,
    /// The device, as the format numbers them; 0 where it does not.
    pub device: u32,
    /// The process that asked; 0 = unknown.
    pub process: u32,
    /// When it was sent on to the device; not all formats know.
    pub issued: Option<Time>,
    /// When it was complete; not all formats know.
    pub completed: Option<Time>,
}

impl Record {
    /// From arrival to completion, if the completion is known.
    pub fn response(&self) -> Option<Duration> {
        self.completed
            .map(|completed| completed.since(self.arrival))
    }

    /// From issue to completion, if both are known.
    pub fn service(&self) -> Option<Duration> {
        Some(self.completed?.since(self.issued?))
    }
}

impl Serialize for Record {
    /// The columns of the native format.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Record", 8)?;
        fields.serialize_field("arrival_ns", &self.arrival.as_nanos())?;
        fields.serialize_field("operation", self.operation.name())?;
        fields.serialize_field("start_sector", &self.extent.start.0)?;
        fields.serialize_field("sectors", &self.extent.sectors.0)?;
        fields.serialize_field("device", &self.device)?;
        fields.serialize_field("process", &self.process)?;
        fields.serialize_field("issued_ns", &self.issued.map(Time::as_nanos))?;
        fields.serialize_field("completed_ns", &self.completed.map(Time::as_nanos))?;
        fields.end()
    }
}
