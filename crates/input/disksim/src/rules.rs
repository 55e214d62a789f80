//! Converts the parameters of a file to a drive, by the rules of a [`Reading`].
//!
//! The files were fitted to DiskSim, whose buffer is simpler than the buffers of the disks. The
//! rules were found by comparison of measured disks with their files. VALIDATION.md has the effect
//! of each rule.

use crate::electronics::{DiskKeys, Electronics};
use crate::reading::Reading;
use fullstroke_drive::{
    BufferConfig, DriveConfig, ElectronicsConfig, OverheadConfig, ReadAhead, SectorsPerTrack,
    SeekTable, WriteDisconnectConfig, ZeroLatency,
};
use fullstroke_units::Duration;

/// Sets buffer, overheads and bus of the description.
pub(crate) fn apply(electronics: &Electronics, config: &mut DriveConfig, reading: &Reading) {
    let disk = &electronics.disk;
    config.electronics = overheads(electronics, reading);
    config.zero_latency = ZeroLatency::Each {
        reads: disk.immediate_read != 0,
        writes: disk.immediate_write != 0,
    };
    config.buffer = (disk.caching != 0 && disk.segments > 0 && disk.segment_sectors > 0)
        .then(|| buffer(disk, config, reading));
    // Kept before the rule changes the value, so that the source can say whether the rule applied.
    let switch_ms = config.head_switch_ms;
    settling(config, reading);
    origins(electronics, config, switch_ms);
}

/// Records the source of each key: the file, or a rule.
fn origins(file: &Electronics, config: &mut DriveConfig, switch_ms: f64) {
    let source = config.sources.get("rpm").cloned().unwrap_or_default();
    for key in ["electronics", "buffer", "queue", "zero_latency"] {
        config.sources.insert(key.to_owned(), source.clone());
    }
    let mut rule = |key: &str, applies: bool, name: &str| {
        let summary = Reading::RULES
            .iter()
            .find(|rule| rule.name == name)
            .map_or("", |rule| rule.summary);
        if applies {
            config
                .sources
                .insert(key.to_owned(), format!("fitted: rule {name}:{summary}"));
        }
    };
    let (electronics, buffer) = (config.electronics.clone(), config.buffer.clone());
    rule(
        "head_switch_ms",
        config.head_switch_ms != switch_ms,
        "settling",
    );
    rule("turn_round_ms", config.turn_round_ms > 0.0, "turn_round");
    rule(
        "electronics.near_write_hits",
        electronics.near_write_hits,
        "near_write_hits",
    );
    rule(
        "electronics.write_watermark",
        electronics.write_watermark > 0.0,
        "write_mark",
    );
    rule(
        "electronics.read_in_place",
        electronics.read_in_place.is_some(),
        "in_place",
    );
    let Some(buffer) = buffer else { return };
    rule(
        "buffer.writes_drop_reads",
        buffer.writes_drop_reads,
        "writes_drop_reads",
    );
    let fills = file.disk.continuous_read == 4 && buffer.read_ahead == ReadAhead::Segment;
    rule("buffer.read_ahead", fills, "fill");
    rule(
        "buffer.read_ahead",
        buffer.read_ahead == ReadAhead::WholeTrack,
        "whole_tracks",
    );
    rule(
        "buffer.read_ahead_waits_for_stream",
        buffer.read_ahead_waits_for_stream,
        "streams_only",
    );
}

/// Adds the settling time of the head. The head switch of an extracted file is often only the
/// electronic switch. The head must also settle: on another surface, and on its own surface after a
/// write, because the write element and the read element have different positions. The track skew
/// was designed for the settling time, and is therefore an upper bound.
fn settling(config: &mut DriveConfig, reading: &Reading) {
    let revolution_ms = 60_000.0 / config.rpm;
    let skew_ms = |zone: &fullstroke_drive::ZoneConfig| {
        let sectors = match &zone.sectors_per_track {
            SectorsPerTrack::Same(sectors) => *sectors,
            SectorsPerTrack::PerSurface(list) => list.first().copied().unwrap_or(1),
        };
        (zone.track_skew - 1.0) / f64::from(sectors) * revolution_ms
    };
    let room = config
        .zones
        .iter()
        .map(skew_ms)
        .fold(f64::INFINITY, f64::min)
        - config.write_settle_ms;
    let cylinders = config.zones.last().map_or(2, |zone| zone.last_cylinder + 1);
    let Ok(seek) = SeekTable::new(&config.seek, cylinders) else {
        return;
    };
    let bound = (reading.settling * revolution_ms)
        .min(room)
        .min(seek.time(1).as_millis_f64());
    // A larger value is no electronic switch alone. The file has the settling time in it already.
    if bound > 0.0 && config.head_switch_ms < bound / 2.0 {
        config.head_switch_ms = bound;
        config.turn_round_ms = bound * reading.turn_round;
    }
}

fn overheads(electronics: &Electronics, reading: &Reading) -> ElectronicsConfig {
    let disk = &electronics.disk;
    let scaled = |ms: f64| (ms * disk.overhead_scale).max(0.0);
    let of_request = |ms: f64| scaled(ms + disk.per_request_overhead_ms);
    let overhead = |after_read: f64, after_write: f64| OverheadConfig {
        after_read_ms: of_request(after_read),
        after_write_ms: of_request(after_write),
    };
    // A drive that never leaves the bus has no reselection.
    let reselect = |ms: f64| {
        if disk.never_disconnect == 0 {
            scaled(ms)
        } else {
            0.0
        }
    };
    let bus = electronics.bus.as_ref();
    // Drive, bus and controller pass on sectors at the same time, so the slowest determines the
    // rate.
    let slowest = |of_bus: Option<f64>| disk.sector_transfer_ms.max(of_bus.unwrap_or(0.0)).max(0.0);
    let write_disconnect = (disk.extra_write_disconnect != 0).then(|| {
        let seek_ms = disk.extra_command_ms + disk.extra_seek_ms;
        let data_ms = seek_ms
            + disk.extra_second_disconnect_ms
            + disk.extra_disconnect_ms
            + disk.extra_between_disconnects_ms
            + disk.first_reselect_ms;
        WriteDisconnectConfig {
            seek_ms: of_request(seek_ms),
            data_ms: of_request(data_ms),
        }
    });
    ElectronicsConfig {
        bus_read_ms_per_sector: slowest(
            bus.map(|bus| bus.read_sector_ms.max(bus.controller_sector_ms)),
        ),
        bus_write_ms_per_sector: slowest(
            bus.map(|bus| bus.write_sector_ms.max(bus.controller_sector_ms)),
        ),
        hit_overhead_ms: None,
        read_hit: overhead(disk.read_hit_after_read_ms, disk.read_hit_after_write_ms),
        read_miss: overhead(disk.read_miss_after_read_ms, disk.read_miss_after_write_ms),
        write_hit: overhead(disk.write_hit_after_read_ms, disk.write_hit_after_write_ms),
        write_miss: overhead(
            disk.write_miss_after_read_ms,
            disk.write_miss_after_write_ms,
        ),
        read_completion_ms: scaled(disk.read_completion_ms),
        write_completion_ms: scaled(disk.write_completion_ms),
        data_preparation_ms: scaled(disk.data_preparation_ms),
        read_watermark: disk.high_water_mark.clamp(0.0, 1.0),
        write_watermark: write_mark(disk, reading),
        watermark_of_segment: disk.water_marks_by_request == 0,
        write_reselect_ms: reselect(disk.other_reselect_ms),
        write_disconnect,
        read_in_place: in_place(disk, reading, &overhead),
        partial_hits_wait: disk.immediate_partial_hit == 0,
        near_write_hits: reading.near_write_hits > 0.0,
        write_underruns: false,
        shared_link: false,
        write_data_early: false,
        bus_measured_sectors: None,
        bus_bulk_ms_per_sector: 0.0,
        read_reselect_ms: reselect(disk.first_reselect_ms),
    }
}

/// Returns the share of a write that must be in the buffer before the write begins. A drive that
/// leaves the bus before the data are sent begins with the first data.
fn write_mark(disk: &DiskKeys, reading: &Reading) -> f64 {
    let begins_early = disk.extra_write_disconnect != 0 || reading.write_mark == 0.0;
    if begins_early {
        0.0
    } else {
        disk.low_water_mark.clamp(0.0, 1.0)
    }
}

/// Returns the overhead of a read without a seek, if it exceeds the file's overhead of misses.
fn in_place(
    disk: &DiskKeys,
    reading: &Reading,
    overhead: &dyn Fn(f64, f64) -> OverheadConfig,
) -> Option<OverheadConfig> {
    // A hit in place may cost what a hit or a miss costs. The larger value holds.
    let after_read_ms = disk
        .read_hit_after_read_ms
        .max(disk.read_miss_after_read_ms);
    let after_write_ms = disk
        .read_hit_after_write_ms
        .max(disk.read_miss_after_write_ms);
    let differs = (after_read_ms, after_write_ms)
        != (disk.read_miss_after_read_ms, disk.read_miss_after_write_ms);
    (reading.in_place > 0.0 && differs).then(|| overhead(after_read_ms, after_write_ms))
}

fn buffer(disk: &DiskKeys, config: &DriveConfig, reading: &Reading) -> BufferConfig {
    let count = |number: i64| u32::try_from(number).unwrap_or(0);
    let track_buffer =
        disk.immediate_read != 0 && disk.read_free_blocks != 0 && reading.whole_tracks > 0.0;
    // Such a segment overwrites its oldest sectors and so never fills up.
    let ring = disk.read_ahead_over_requested != 0;
    let short = disk.segment_sectors < shortest_track(config);
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
            3 => ReadAhead::Segment,
            _ if reading.fill > 0.0 && !short => ReadAhead::Segment,
            _ => ReadAhead::NextTrack,
        },
        read_ahead_sectors: (disk.read_ahead_sectors_max > 0)
            .then(|| count(disk.read_ahead_sectors_max)),
        read_ahead_over_delivered: ring,
        read_ahead_misses_at_end: disk.almost_read_hits == 0,
        read_ahead_waits_for_stream: reading.streams_only > 0.0
            && disk.continuous_read == 4
            && !ring
            && short,
        read_ahead_on_hit: disk.read_ahead_on_idle_hit != 0,
        write_back: disk.fast_write != 0,
        combine_writes: disk.combine_writes != 0,
        read_hits_on_written: disk.read_hits_on_write_data != 0,
        writes_drop_reads: reading.writes_drop_reads > 0.0 && disk.continuous_read < 4,
        destage_delay: Duration::ZERO,
        destage_watermark: 1.0,
        destage_discipline: None,
        destage: Default::default(),
        hits_pass_queue: disk.sneaky_full_read_hits != 0 || disk.sneaky_intermediate_read_hits != 0,
        buffered_first: false,
        stream_sectors: 0,
    }
}

/// Returns the sectors of the shortest track.
fn shortest_track(config: &DriveConfig) -> i64 {
    let shortest = |zone: &fullstroke_drive::ZoneConfig| match &zone.sectors_per_track {
        SectorsPerTrack::Same(sectors) => *sectors,
        SectorsPerTrack::PerSurface(list) => list.iter().copied().min().unwrap_or(0),
    };
    config.zones.iter().map(shortest).min().unwrap_or(0).into()
}
