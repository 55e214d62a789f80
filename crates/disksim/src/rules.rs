//! From the parameters of a file to a drive of ours: what they are taken to
//! mean.
//!
//! The files were fitted to DiskSim, whose buffer is simpler than those of the
//! disks. The rules here were found by holding five measured disks against
//! their files; VALIDATION.md says what each is worth.

use crate::electronics::{DiskKeys, Electronics};
use fullstroke_drive::{
    BufferConfig, DriveConfig, ElectronicsConfig, OverheadConfig, ReadAhead, SectorsPerTrack, SeekTable,
    WriteDisconnectConfig, ZeroLatency,
};
use fullstroke_units::Duration;

/// How a file's numbers are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// For the nearest answer to the disk that was measured.
    #[default]
    OfTheDisk,
    /// As written: the head switch at face value.
    AsWritten,
}

/// Head settling as a part of a revolution. Chosen: near-constant between 0.10
/// and 0.13 on four measured disks, in no file.
const SETTLING_OF_REVOLUTION: f64 = 0.11;

/// Puts buffer, overheads and bus into the description.
pub(crate) fn apply(electronics: &Electronics, config: &mut DriveConfig, reading: Reading) {
    let disk = &electronics.disk;
    config.electronics = overheads(electronics);
    config.zero_latency =
        ZeroLatency::Each { reads: disk.immediate_read != 0, writes: disk.immediate_write != 0 };
    config.buffer =
        (disk.caching != 0 && disk.segments > 0 && disk.segment_sectors > 0).then(|| buffer(disk));
    if reading == Reading::OfTheDisk {
        settling(config);
    }
    let source = config.sources.get("rpm").cloned().unwrap_or_default();
    for key in ["electronics", "buffer", "queue", "zero_latency"] {
        config.sources.insert(key.to_owned(), source.clone());
    }
    if config.turn_round_ms > 0.0 {
        let reason = "fitted: settling of a head, 0.11 of a revolution, within the track skew; \
                      the file holds the electronic switch only";
        config.sources.insert("head_switch_ms".into(), reason.into());
        config.sources.insert("turn_round_ms".into(), reason.into());
    }
}

/// The head switch of an extracted file is often only the electronic one. The
/// head must settle too, on another surface, and on its own after a write,
/// whose element is not where the read element is. The track skew was laid out
/// for that: it bounds the time from above.
fn settling(config: &mut DriveConfig) {
    let revolution_ms = 60_000.0 / config.rpm;
    let skew_ms = |zone: &fullstroke_drive::ZoneConfig| {
        let sectors = match &zone.sectors_per_track {
            SectorsPerTrack::Same(sectors) => *sectors,
            SectorsPerTrack::PerSurface(list) => list.first().copied().unwrap_or(1),
        };
        (zone.track_skew - 1.0) / f64::from(sectors) * revolution_ms
    };
    let room = config.zones.iter().map(skew_ms).fold(f64::INFINITY, f64::min) - config.write_settle_ms;
    let cylinders = config.zones.last().map_or(2, |zone| zone.last_cylinder + 1);
    let Ok(seek) = SeekTable::new(&config.seek, cylinders) else { return };
    let bound = (SETTLING_OF_REVOLUTION * revolution_ms).min(room).min(seek.time(1).as_millis_f64());
    if bound > 0.0 && config.head_switch_ms < bound / 2.0 {
        config.head_switch_ms = bound;
        config.turn_round_ms = bound;
    }
}

fn overheads(electronics: &Electronics) -> ElectronicsConfig {
    let disk = &electronics.disk;
    let scaled = |ms: f64| (ms * disk.overhead_scale).max(0.0);
    let of_request = |ms: f64| scaled(ms + disk.per_request_overhead_ms);
    let overhead = |after_read: f64, after_write: f64| OverheadConfig {
        after_read_ms: of_request(after_read),
        after_write_ms: of_request(after_write),
    };
    let bus = electronics.bus.as_ref();
    let slowest = |of_bus: Option<f64>| disk.sector_transfer_ms.max(of_bus.unwrap_or(0.0)).max(0.0);
    let write_disconnect = (disk.extra_write_disconnect != 0).then(|| {
        let seek_ms = disk.extra_command_ms + disk.extra_seek_ms;
        let data_ms = seek_ms
            + disk.extra_second_disconnect_ms
            + disk.extra_disconnect_ms
            + disk.extra_between_disconnects_ms
            + disk.first_reselect_ms;
        WriteDisconnectConfig { seek_ms: of_request(seek_ms), data_ms: of_request(data_ms) }
    });
    ElectronicsConfig {
        bus_read_ms_per_sector: slowest(bus.map(|bus| bus.read_sector_ms)),
        bus_write_ms_per_sector: slowest(bus.map(|bus| bus.write_sector_ms)),
        hit_overhead_ms: None,
        read_hit: overhead(disk.read_hit_after_read_ms, disk.read_hit_after_write_ms),
        read_miss: overhead(disk.read_miss_after_read_ms, disk.read_miss_after_write_ms),
        write_hit: overhead(disk.write_hit_after_read_ms, disk.write_hit_after_write_ms),
        write_miss: overhead(disk.write_miss_after_read_ms, disk.write_miss_after_write_ms),
        read_completion_ms: scaled(disk.read_completion_ms),
        write_completion_ms: scaled(disk.write_completion_ms),
        data_preparation_ms: scaled(disk.data_preparation_ms),
        read_watermark: disk.high_water_mark.clamp(0.0, 1.0),
        watermark_of_segment: disk.water_marks_by_request == 0,
        write_reselect_ms: scaled(disk.other_reselect_ms),
        write_disconnect,
    }
}

fn buffer(disk: &DiskKeys) -> BufferConfig {
    let count = |number: i64| u32::try_from(number).unwrap_or(0);
    let track_buffer = disk.immediate_read != 0 && disk.read_free_blocks != 0;
    let segments = count(disk.segments).max(1);
    BufferConfig {
        segments,
        segment_sectors: count(disk.segment_sectors).max(1),
        sectors: None,
        write_segments: if disk.separate_write_segment != 0 {
            1
        } else {
            count(disk.write_segments).clamp(1, segments)
        },
        read_ahead: match disk.continuous_read {
            _ if track_buffer => ReadAhead::WholeTrack,
            0 => ReadAhead::None,
            1 => ReadAhead::Track,
            2 => ReadAhead::Cylinder,
            _ => ReadAhead::Segment,
        },
        read_ahead_sectors: Some(count(disk.read_ahead_sectors_max)),
        read_ahead_over_delivered: disk.read_ahead_over_requested != 0,
        read_ahead_on_hit: disk.read_ahead_on_idle_hit != 0,
        write_back: disk.fast_write != 0,
        combine_writes: disk.combine_writes != 0,
        read_hits_on_written: disk.read_hits_on_write_data != 0,
        writes_drop_reads: disk.continuous_read < 4,
        destage_delay: Duration::ZERO,
        destage_watermark: 1.0,
        destage_discipline: None,
        hits_pass_queue: false,
        buffered_first: false,
        stream_sectors: 0,
    }
}
