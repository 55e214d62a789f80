//! Keys of command overheads and of the bus.

use super::is_default;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Overheads and bus times of a drive. The keys follow extracted parameter sets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ElectronicsConfig {
    /// Bus time of one sector read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bus_read_ms_per_sector: f64,
    /// Bus time of one sector written.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bus_write_ms_per_sector: f64,
    /// Number of sectors of a request that cost the bus times above. Further sectors cost
    /// `bus_bulk_ms_per_sector`. Times that were measured on small requests hold overheads of the
    /// request and would throttle large requests. Default: all sectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_measured_sectors: Option<u32>,
    /// Bus time of each further sector. Needs `bus_measured_sectors`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bus_bulk_ms_per_sector: f64,
    /// Overhead in ms of reads from the buffer and of writes into the buffer. Replaces
    /// `command_overhead_ms` for these requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit_overhead_ms: Option<f64>,
    /// Overhead before a read from the buffer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_hit: OverheadConfig,
    /// Overhead before a read from the medium.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_miss: OverheadConfig,
    /// Overhead before a read from the track under the heads, if different from `read_miss`. An
    /// extracted seek curve can contain an overhead that a read without a seek has, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_in_place: Option<OverheadConfig>,
    /// Overhead before a write into the buffer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_hit: OverheadConfig,
    /// Overhead before a write to the medium.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_miss: OverheadConfig,
    /// Time in ms from the last sector on the bus to the completion of a read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_completion_ms: f64,
    /// Time in ms from the last sector to the completion of a write.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_completion_ms: f64,
    /// Time in ms before data go over the bus.
    #[serde(default, skip_serializing_if = "is_default")]
    pub data_preparation_ms: f64,
    /// Share of a request that must have been read before the data go over the bus, 0 to 1.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_watermark: f64,
    /// True if a watermark is a share of the buffer segment instead of the request.
    #[serde(default, skip_serializing_if = "is_default")]
    pub watermark_of_segment: bool,
    /// Share of a write that must have arrived over the bus before the first sector is written, 0
    /// to 1. With `watermark_of_segment`, a share of the segment.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_watermark: f64,
    /// True if the buffered part of a read waits for the watermark before the part goes over the
    /// bus. By default the part goes at once.
    #[serde(default, skip_serializing_if = "is_default")]
    pub partial_hits_wait: bool,
    /// Time in ms from the end of a write on the medium to the completion.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_reselect_ms: f64,
    /// Times of a write that leaves the bus before the data are sent. The times replace the
    /// overhead of a write miss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_disconnect: Option<WriteDisconnectConfig>,
    /// Time in ms from the watermark of a read to the data on the bus, if the drive has left the
    /// bus.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_reselect_ms: f64,
    /// True if the overhead of a write hit depends on the distance to the last request. A write
    /// within one buffer segment is near. A near write costs `after_write_ms` after a write, and
    /// the mean of both values after a read. A far write costs `after_read_ms`. By default the kind
    /// of the last request alone decides.
    #[serde(default, skip_serializing_if = "is_default")]
    pub near_write_hits: bool,
    /// True if the data of a write to the medium come over the bus while the write waits in the
    /// queue. By default the data come when the drive serves the write.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_data_early: bool,
    /// True if transfers from and to the medium take link time from buffer hits. By default only
    /// buffer hits wait for each other. Needs `buffered_first`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shared_link: bool,
    /// True if a write to the medium may begin although its sectors may not arrive in time. By
    /// default the heads wait until the sectors will be in time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_underruns: bool,
}

/// An overhead depending on the kind of the last request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverheadConfig {
    /// Overhead in ms after a read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub after_read_ms: f64,
    /// Overhead in ms after a write.
    #[serde(default, skip_serializing_if = "is_default")]
    pub after_write_ms: f64,
}

/// Times of a write that leaves the bus before the data are sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteDisconnectConfig {
    /// Time in ms from the command to the start of the arm's movement.
    pub seek_ms: f64,
    /// Time in ms from the command to the start of the data.
    pub data_ms: f64,
}
