//! Keys of the buffer.

use super::is_default;
use fullstroke_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The buffer of a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferConfig {
    /// Segments.
    pub segments: u32,
    /// Sectors of a segment.
    pub segment_sectors: u32,
    /// Sectors of the whole buffer, which segments share as they need them; then
    /// `segment_sectors` is what one has at most. Unless said, each has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sectors: Option<u32>,
    /// Segments that may hold written data.
    #[serde(default = "one_segment")]
    pub write_segments: u32,
    /// How far the drive reads on behind a read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_ahead: ReadAhead,
    /// Sectors read ahead at most; no other limit unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead_sectors: Option<u32>,
    /// Read-ahead may overwrite what was delivered: a segment is a ring.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_ahead_over_delivered: bool,
    /// A read that begins with the sector on which read-ahead is misses; unless
    /// said, it goes on with it without a pause.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_ahead_misses_at_end: bool,
    /// Read-ahead begins only behind a read that goes on where the last one
    /// ended, and ends where the segment is full.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_ahead_waits_for_stream: bool,
    /// A hit on a full segment lets read-ahead go on.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_ahead_on_hit: bool,
    /// Writes are acknowledged when they are in the buffer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_back: bool,
    /// Sequential writes share a segment.
    #[serde(default, skip_serializing_if = "is_default")]
    pub combine_writes: bool,
    /// Reads hit on data that were written, after these are on the medium too.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_hits_on_written: bool,
    /// A write drops all read segments, not only what it overwrites.
    #[serde(default, skip_serializing_if = "is_default")]
    pub writes_drop_reads: bool,
    /// Age of acknowledged data from which on idle time is used to write them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub destage_delay: Duration,
    /// Part of the write segments above which writing goes before reads.
    #[serde(default = "whole")]
    pub destage_watermark: f64,
    /// The order in which written data go to the medium: a discipline of the
    /// queue. Then sequential writes share segments wherever they go on. Unless
    /// said, the oldest go first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destage_discipline: Option<String>,
    /// Requests that the buffer answers pass those that wait for the arm, if it
    /// can answer them when they come.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hits_pass_queue: bool,
    /// Requests are answered beside the arm as soon as the buffer has what they
    /// read, or room for what they write; and a read goes first that goes on
    /// where the heads are reading. Includes `hits_pass_queue`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub buffered_first: bool,
    /// Sectors for which the arm stays behind a read that goes on where an
    /// earlier one ended, though others wait, with `buffered_first`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stream_sectors: u32,
}

/// How far a drive reads on behind a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAhead {
    /// Not at all.
    #[default]
    None,
    /// To the end of the request's track.
    Track,
    /// To the end of the request's cylinder.
    Cylinder,
    /// Until the segment is full, or another request needs the arm.
    Segment,
    /// To the end of the request's track, and behind a stream that came over
    /// from the track before to the end of the next one. The segment keeps the
    /// newest sectors.
    NextTrack,
    /// The whole track, from where the heads land: a track buffer.
    WholeTrack,
}

fn one_segment() -> u32 {
    1
}

fn whole() -> f64 {
    1.0
}
