//! Keys of the buffer.

use super::is_default;
use fullstroke_contract::registry::Keys;
use fullstroke_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The buffer of a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferConfig {
    /// Number of segments.
    pub segments: u32,
    /// Size of a segment in sectors.
    pub segment_sectors: u32,
    /// Size of the whole buffer in sectors, shared by all segments. `segment_sectors` is then the
    /// largest size of one segment. By default each segment has a fixed size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sectors: Option<u32>,
    /// Largest number of segments with written data. Default 1.
    #[serde(default = "one_segment")]
    pub write_segments: u32,
    /// End of read-ahead after a read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_ahead: ReadAhead,
    /// Largest number of sectors to read ahead. Default: no further limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead_sectors: Option<u32>,
    /// True if read-ahead may overwrite delivered data, so that a segment is a ring.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_ahead_over_delivered: bool,
    /// True if a read misses that begins at the sector under read-ahead. By default such a read
    /// joins read-ahead without a pause.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_ahead_misses_at_end: bool,
    /// True if read-ahead begins only after a continuation of the last read. Read-ahead then ends
    /// when the segment is full.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_ahead_waits_for_stream: bool,
    /// True if a hit on a full segment resumes read-ahead.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_ahead_on_hit: bool,
    /// True if writes complete when the data are in the buffer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_back: bool,
    /// True if sequential writes share a segment.
    #[serde(default, skip_serializing_if = "is_default")]
    pub combine_writes: bool,
    /// True if reads may hit written data even after the data are on the medium.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_hits_on_written: bool,
    /// True if a write drops all read segments instead of the overwritten sectors only.
    #[serde(default, skip_serializing_if = "is_default")]
    pub writes_drop_reads: bool,
    /// Age at which acknowledged data are written in idle time. Default 0.
    #[serde(default, skip_serializing_if = "is_default")]
    pub destage_delay: Duration,
    /// Largest dirty share of the write segments. Above this share, destaging goes before reads.
    /// Default 1.
    #[serde(default = "whole")]
    pub destage_watermark: f64,
    /// Queue discipline that orders the writes of dirty data to the medium. Sequential writes then
    /// join any dirty segment that they continue. By default the oldest data go first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destage_discipline: Option<String>,
    /// Keys of `destage_discipline`. Default: the defaults of the discipline.
    #[serde(default, skip_serializing_if = "Keys::is_empty")]
    pub destage: Keys,
    /// True if buffer hits overtake requests waiting for the arm. The buffer must be able to answer
    /// at the arrival of the request.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hits_pass_queue: bool,
    /// True if the drive answers requests beside the arm. A read is answered when the buffer has
    /// the data, and a write when the buffer has room. A continuation of the current read-ahead
    /// goes first. Includes `hits_pass_queue`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub buffered_first: bool,
    /// Number of sectors for which the arm reads ahead after a read that continues an earlier read,
    /// although other requests wait. Needs `buffered_first`. Default 0.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stream_sectors: u32,
}

/// End of read-ahead after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAhead {
    /// No read-ahead.
    #[default]
    None,
    /// End of the request's track.
    Track,
    /// End of the request's cylinder.
    Cylinder,
    /// Until the segment is full, or another request needs the arm.
    Segment,
    /// End of the request's track. For a stream that came from the previous track, the end of the
    /// next track. The segment keeps the newest sectors.
    NextTrack,
    /// The whole track, from the sector under which the heads land: a track buffer.
    WholeTrack,
}

fn one_segment() -> u32 {
    1
}

fn whole() -> f64 {
    1.0
}
