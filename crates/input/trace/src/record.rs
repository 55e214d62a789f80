//! One request of a trace.

use fullstroke_contract::{Extent, Operation};
use fullstroke_units::{Duration, Time};
use serde::ser::{Serialize, SerializeStruct as _, Serializer};

/// One request of a trace. Times count from the trace's first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// Arrival time at the traced layer.
    pub arrival: Time,
    /// Operation.
    pub operation: Operation,
    /// Address and length in 512-byte sectors; empty for a flush. A byte range that does not begin
    /// and end at a sector boundary is widened to whole sectors.
    pub extent: Extent,
    /// Device number of the format; 0 if the format has none.
    pub device: u32,
    /// Issuing process; 0 means unknown.
    pub process: u32,
    /// Time of issue to the device, if known.
    pub issued: Option<Time>,
    /// Completion time, if known.
    pub completed: Option<Time>,
}

impl TraceRecord {
    /// Returns the time from arrival to completion, if the completion is known.
    pub fn response(&self) -> Option<Duration> {
        self.completed
            .map(|completed| completed.since(self.arrival))
    }

    /// Returns the time from issue to completion, if both are known.
    pub fn service(&self) -> Option<Duration> {
        Some(self.completed?.since(self.issued?))
    }
}

impl Serialize for TraceRecord {
    /// Serialises to the columns of the native format.
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
