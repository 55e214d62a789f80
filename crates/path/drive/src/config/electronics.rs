//! Keys of command overheads and of the bus.

use super::is_default;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Overheads and bus times of a drive, as extracted parameter sets distinguish
/// them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ElectronicsConfig {
    /// Bus time of one sector read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bus_read_ms_per_sector: f64,
    /// Bus time of one sector written.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bus_write_ms_per_sector: f64,
    /// Takes the place of `command_overhead_ms` for reads that the buffer answers
    /// and writes that it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit_overhead_ms: Option<f64>,
    /// Before a read that the buffer answers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_hit: OverheadConfig,
    /// Before a read from the medium.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_miss: OverheadConfig,
    /// Before a read from the track on which the heads stand, where that is not
    /// `read_miss`: extracted seek curves can hold an overhead that a read
    /// without a seek has, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_in_place: Option<OverheadConfig>,
    /// Before a write that the buffer takes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_hit: OverheadConfig,
    /// Before a write to the medium.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_miss: OverheadConfig,
    /// Between the last sector on the bus and the completion of a read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_completion_ms: f64,
    /// Between the last sector and the completion of a write.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_completion_ms: f64,
    /// Before data go over the bus.
    #[serde(default, skip_serializing_if = "is_default")]
    pub data_preparation_ms: f64,
    /// Part of a request that must have been read before its data go over the
    /// bus, 0 to 1.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_watermark: f64,
    /// The watermark is a part of the buffer segment rather than of the request.
    #[serde(default, skip_serializing_if = "is_default")]
    pub watermark_of_segment: bool,
    /// Part of a write (or of the segment, as for reads) that must have come over
    /// the bus before its first sector is written, 0 to 1.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_watermark: f64,
    /// What the buffer holds of a read goes over the bus only when the watermark
    /// is reached; unless said, at once.
    #[serde(default, skip_serializing_if = "is_default")]
    pub partial_hits_wait: bool,
    /// Between the end of a write on the medium and its completion.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_reselect_ms: f64,
    /// A write leaves the bus before its data are sent: then these replace the
    /// overhead of a write miss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_disconnect: Option<WriteDisconnectConfig>,
    /// Between the watermark of a read and its data on the bus, where the drive
    /// has left the bus.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_reselect_ms: f64,
    /// The overhead of a write hit depends on whether it is near the last
    /// request (within a buffer segment): `after_write_ms` behind a write,
    /// halfway behind a read, and `after_read_ms` if it is not near. Unless
    /// said, it depends on the last request's kind alone.
    #[serde(default, skip_serializing_if = "is_default")]
    pub near_write_hits: bool,
    /// A write to the medium may begin before its sectors will be there in time.
    /// Unless said, the heads pass until they are.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_underruns: bool,
}

/// An overhead that depends on what the drive did before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverheadConfig {
    /// When the last request was a read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub after_read_ms: f64,
    /// When the last request was a write.
    #[serde(default, skip_serializing_if = "is_default")]
    pub after_write_ms: f64,
}

/// Times of a write that leaves the bus before its data are sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteDisconnectConfig {
    /// From the command to the start of the arm's movement.
    pub seek_ms: f64,
    /// From the command to the start of the data.
    pub data_ms: f64,
}
