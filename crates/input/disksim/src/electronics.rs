//! Buffer, overheads and scheduler of a disk, with the values of the file.

use crate::error::{ImportError, ImportLoss};
use crate::fields::BlockFields;
use serde::Serialize;

/// The treatment of a key. No key is silently ignored: a key without effect has a reason, and a key
/// with an effect in DiskSim but not here is a loss.
#[derive(Clone, Copy, Debug)]
pub enum KeyTreatment {
    /// The drive uses the value.
    Carried,
    /// The drive uses these values only. Another value is a loss, and the text names the
    /// substitute.
    CarriedFor(&'static [f64], &'static str),
    /// The key has no effect here, for the reason in the text.
    Idle(&'static str),
    /// The key is not modelled. A value outside the list is a loss, and the text names the
    /// substitute.
    Left(&'static [f64], &'static str),
}

/// A key of a block, and its treatment.
#[derive(Clone, Copy, Debug)]
pub struct KeyUse {
    /// Name of the key.
    pub key: &'static str,
    /// Treatment of the key.
    pub usage: KeyTreatment,
}

impl KeyUse {
    /// Returns the loss for the value of the key, if there is one.
    fn loss(&self, fields: &BlockFields<'_>) -> Result<Option<ImportLoss>, ImportError> {
        let (KeyTreatment::CarriedFor(exact, what) | KeyTreatment::Left(exact, what)) = self.usage
        else {
            return Ok(None);
        };
        let value = fields.required(self.key)?.number()?;
        let loss = || ImportLoss::new(fields.path(self.key), format!("{value}: {what}"));
        Ok((!exact.contains(&value)).then(loss))
    }
}

/// Declares a struct with one field per key of a block, each required, and the table of the keys'
/// treatment.
macro_rules! keys {
    (
        $(#[$doc:meta])* $name:ident, $table:ident, others: [$($other:literal),*];
        $($(#[$field_doc:meta])* $field:ident: $type:ty = $key:literal $read:ident, $usage:expr;)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub struct $name {
            $(
                $(#[$field_doc])*
                #[doc = concat!("\n\nKey: `", $key, "`.")]
                pub $field: $type,
            )*
        }

        const $table: &[&str] = &[$($key,)* $($other,)*];

        impl $name {
            /// All keys, and their treatment.
            pub const USES: &[KeyUse] = &[$(KeyUse { key: $key, usage: $usage },)*];

            fn read(fields: &BlockFields<'_>) -> Result<$name, ImportError> {
                Ok($name { $($field: fields.required($key)?.$read()?,)* })
            }
        }
    };
}

keys! {
    /// The keys of a `disksim_disk` block except `Model` and `Scheduler`. Times are in
    /// milliseconds, flags are 0 or 1.
    DiskKeys, DISK_KEYS, others: ["Model", "Scheduler"];
    /// Time added to every request at its arrival.
    per_request_overhead_ms: f64 = "Per-request overhead time" number, KeyTreatment::Carried;
    /// Factor of all overheads.
    overhead_scale: f64 = "Time scale for overheads" number, KeyTreatment::Carried;
    /// Bus time of one sector.
    sector_transfer_ms: f64 = "Bulk sector transfer time" number, KeyTreatment::Carried;
    /// 1 if a read holds the bus throughout its transfer.
    hold_bus_for_read: i64 = "Hold bus entire read xfer" integer, KeyTreatment::Idle("the bus is the drive's own: nobody else could use it meanwhile");
    /// 1 if a write holds the bus throughout its transfer.
    hold_bus_for_write: i64 = "Hold bus entire write xfer" integer, KeyTreatment::Idle("the bus is the drive's own: nobody else could use it meanwhile");
    /// 1 if a read of a sector in prefetch counts as a partial hit.
    almost_read_hits: i64 = "Allow almost read hits" integer, KeyTreatment::Carried;
    /// 1 if a full hit may pass another request that uses the arm.
    sneaky_full_read_hits: i64 = "Allow sneaky full read hits" integer, KeyTreatment::Carried;
    /// 1 if a partial hit may pass another request that uses the arm.
    sneaky_partial_read_hits: i64 = "Allow sneaky partial read hits" integer, KeyTreatment::Left(&[0.0], "a read of which the buffer has only a part waits for its turn");
    /// 1 if queued hits may use the idle bus.
    sneaky_intermediate_read_hits: i64 = "Allow sneaky intermediate read hits" integer, KeyTreatment::Carried;
    /// 1 if reads may hit written data.
    read_hits_on_write_data: i64 = "Allow read hits on write data" integer, KeyTreatment::Carried;
    /// 1 if queued writes may send data over the idle bus.
    write_prebuffering: i64 = "Allow write prebuffering" integer, KeyTreatment::Left(&[0.0], "a write waits for its turn before its data are sent");
    /// 0: the arm waits for the completion handshake; 1: until it is prepared; 2: until the last
    /// sector is accessed.
    preseeking: i64 = "Preseeking level" integer, KeyTreatment::Left(&[0.0], "the arm moves for a request when the one before has completed");
    /// 1 if a request holds the bus from arrival to completion.
    never_disconnect: i64 = "Never disconnect" integer, KeyTreatment::Carried;
    /// 1 if DiskSim reports on the disk.
    print_statistics: i64 = "Print stats" integer, KeyTreatment::Idle("it is about DiskSim's report");
    /// Mean number of sectors per cylinder, for schedulers outside the disk.
    sectors_per_cylinder: i64 = "Avg sectors per cylinder" integer, KeyTreatment::Idle("schedulers outside of the disk know its layout here");
    /// Largest number of requests in the disk, including the request in service.
    queue_length: i64 = "Max queue length" integer, KeyTreatment::Carried;
    /// Number of buffer segments.
    segments: i64 = "Number of buffer segments" integer, KeyTreatment::Carried;
    /// Largest number of segments with written data.
    write_segments: i64 = "Maximum number of write segments" integer, KeyTreatment::Carried;
    /// Sectors of a segment.
    segment_sectors: i64 = "Segment size (in blks)" integer, KeyTreatment::Carried;
    /// 1 if one segment serves all writes, and only writes.
    separate_write_segment: i64 = "Use separate write segment" integer, KeyTreatment::Carried;
    /// Share of dirty data below which a write reconnects.
    low_water_mark: f64 = "Low (write) water mark" number, KeyTreatment::CarriedFor(&[0.0], "a write begins by it (rule write_mark); one that is larger than its segment goes on without pause");
    /// Share of data from which a read reconnects.
    high_water_mark: f64 = "High (read) water mark" number, KeyTreatment::Carried;
    /// 1 if the marks are shares of the request, 0 if of the segment.
    water_marks_by_request: i64 = "Set watermark by reqsize" integer, KeyTreatment::Carried;
    /// Without effect in DiskSim 4.0.
    sector_by_sector: i64 = "Calc sector by sector" integer, KeyTreatment::Idle("DiskSim 4.0 ignores it, too");
    /// 1 if the buffer is a cache.
    caching: i64 = "Enable caching in buffer" integer, KeyTreatment::CarriedFor(&[0.0, 1.0], "taken as 1; DiskSim's documentation gives it no meaning of its own");
    /// Read-ahead: 0 none; 1 to the end of the track; 2 to the end of the cylinder; 3 until the
    /// segment is full; 4 to the end of the next track of a sequential stream.
    continuous_read: i64 = "Buffer continuous read" integer, KeyTreatment::Carried;
    /// Sectors of read-ahead before another request is served.
    read_ahead_sectors_min: i64 = "Minimum read-ahead (blks)" integer, KeyTreatment::Left(&[0.0], "another request may end read-ahead at once");
    /// Largest number of sectors of read-ahead.
    read_ahead_sectors_max: i64 = "Maximum read-ahead (blks)" integer, KeyTreatment::Carried;
    /// 1 if read-ahead may overwrite the data of the last request.
    read_ahead_over_requested: i64 = "Read-ahead over requested" integer, KeyTreatment::Carried;
    /// 1 if a full hit starts read-ahead.
    read_ahead_on_idle_hit: i64 = "Read-ahead on idle hit" integer, KeyTreatment::Carried;
    /// 1 if sectors before the requested ones are kept when they pass the head.
    read_free_blocks: i64 = "Read any free blocks" integer, KeyTreatment::CarriedFor(&[0.0], "sectors that pass before the requested ones are kept where reads begin wherever the head lands, and dropped otherwise");
    /// Write-back: 0 none; 1 for appending writes; 2 also between other requests.
    fast_write: i64 = "Fast write level" integer, KeyTreatment::CarriedFor(&[0.0, 2.0], "taken as 2: writes that find room are acknowledged, in sequence or not");
    /// 1 if a read starts at any sector under the head.
    immediate_read: i64 = "Immediate buffer read" integer, KeyTreatment::CarriedFor(&[0.0, 1.0], "taken as 1");
    /// 1 if a write starts at any sector under the head.
    immediate_write: i64 = "Immediate buffer write" integer, KeyTreatment::CarriedFor(&[0.0, 1.0], "taken as 1");
    /// 1 if sequential writes share a segment.
    combine_writes: i64 = "Combine seq writes" integer, KeyTreatment::Carried;
    /// 1 if read-ahead may end inside a sector.
    stop_prefetch_in_sector: i64 = "Stop prefetch in sector" integer, KeyTreatment::Left(&[1.0], "read-ahead ends at once, and not at the end of a sector");
    /// 1 if a write disconnects when the arm still moves at the end of its transfer.
    disconnect_write_in_seek: i64 = "Disconnect write if seek" integer, KeyTreatment::Idle("the bus is the drive's own: nobody else could use it meanwhile");
    /// 1 if a write hit ends read-ahead.
    write_hit_stops_prefetch: i64 = "Write hit stop prefetch" integer, KeyTreatment::Left(&[1.0], "a write ends read-ahead");
    /// 1 if a sector needs space in the buffer before it is read.
    read_directly_to_buffer: i64 = "Read directly to buffer" integer, KeyTreatment::Idle("a ring has room for the next sector at any time");
    /// 1 if the first part of a partial hit is sent at once.
    immediate_partial_hit: i64 = "Immed transfer partial hit" integer, KeyTreatment::Carried;
    /// Overhead of a read hit after a read.
    read_hit_after_read_ms: f64 = "Read hit over. after read" number, KeyTreatment::Carried;
    /// Overhead of a read hit after a write.
    read_hit_after_write_ms: f64 = "Read hit over. after write" number, KeyTreatment::Carried;
    /// Overhead of a read miss after a read.
    read_miss_after_read_ms: f64 = "Read miss over. after read" number, KeyTreatment::Carried;
    /// Overhead of a read miss after a write.
    read_miss_after_write_ms: f64 = "Read miss over. after write" number, KeyTreatment::Carried;
    /// Overhead of a write with early completion, after a read.
    write_hit_after_read_ms: f64 = "Write hit over. after read" number, KeyTreatment::Carried;
    /// Overhead of a write with early completion, after a write.
    write_hit_after_write_ms: f64 = "Write hit over. after write" number, KeyTreatment::Carried;
    /// Overhead of a write through to the medium, after a read.
    write_miss_after_read_ms: f64 = "Write miss over. after read" number, KeyTreatment::Carried;
    /// Overhead of a write through to the medium, after a write.
    write_miss_after_write_ms: f64 = "Write miss over. after write" number, KeyTreatment::Carried;
    /// Time before the completion of a read is sent.
    read_completion_ms: f64 = "Read completion overhead" number, KeyTreatment::Carried;
    /// Time before the completion of a write is sent.
    write_completion_ms: f64 = "Write completion overhead" number, KeyTreatment::Carried;
    /// Time before data are sent over the bus.
    data_preparation_ms: f64 = "Data preparation overhead" number, KeyTreatment::Carried;
    /// Time before the first reconnection of a request.
    first_reselect_ms: f64 = "First reselect overhead" number, KeyTreatment::Carried;
    /// Time before each later reconnection.
    other_reselect_ms: f64 = "Other reselect overhead" number, KeyTreatment::Carried;
    /// Time before a read disconnects, after a read.
    read_disconnect_after_read_ms: f64 = "Read disconnect afterread" number, KeyTreatment::Idle("it passes while the arm moves");
    /// Time before a read disconnects, after a write.
    read_disconnect_after_write_ms: f64 = "Read disconnect afterwrite" number, KeyTreatment::Idle("it passes while the arm moves");
    /// Time before a write disconnects.
    write_disconnect_ms: f64 = "Write disconnect overhead" number, KeyTreatment::Idle("it passes while the arm moves");
    /// 1 if a write disconnects before any data are sent (extra disconnection).
    extra_write_disconnect: i64 = "Extra write disconnect" integer, KeyTreatment::Carried;
    /// Overhead of a write with the extra disconnection, in place of the others.
    extra_command_ms: f64 = "Extradisc command overhead" number, KeyTreatment::Carried;
    /// Time before the extra disconnection.
    extra_disconnect_ms: f64 = "Extradisc disconnect overhead" number, KeyTreatment::Carried;
    /// Time from the extra disconnection to the reconnection.
    extra_between_disconnects_ms: f64 = "Extradisc inter-disconnect delay" number, KeyTreatment::Carried;
    /// Time before the second disconnection of a write with the extra disconnection.
    extra_second_disconnect_ms: f64 = "Extradisc 2nd disconnect overhead" number, KeyTreatment::Carried;
    /// Time from the command of a write with the extra disconnection to the movement of the arm.
    extra_seek_ms: f64 = "Extradisc seek delta" number, KeyTreatment::Carried;
    /// Shortest time before a non-sequential write reaches the medium.
    minimum_seek_ms: f64 = "Minimum seek delay" number, KeyTreatment::Left(&[0.0], "a write that is not sequential reaches the medium as soon as arm and platter allow");
}

keys! {
    /// The keys of a `disksim_ioqueue` block.
    Scheduler, SCHEDULER_KEYS, others: [];
    /// 1 FCFS, 2 LOOK, 3 C-LOOK, 4 SSTF (by LBN), 5-7 the same by cylinder, 8-10 SATF and variants,
    /// above 10 weighted and aged policies.
    policy: i64 = "Scheduling policy" integer, KeyTreatment::Carried;
    /// Knowledge of the scheduler about the layout.
    cylinder_mapping: i64 = "Cylinder mapping strategy" integer, KeyTreatment::Idle("the queue knows the layout");
    /// Overhead of a write in the scheduler's estimates.
    write_initiation_ms: f64 = "Write initiation delay" number, KeyTreatment::Left(&[0.0], "the queue adds the drive's command overhead to its estimates");
    /// Overhead of a read in the scheduler's estimates.
    read_initiation_ms: f64 = "Read initiation delay" number, KeyTreatment::Left(&[0.0], "the queue adds the drive's command overhead to its estimates");
    /// Bits: 0 concatenate reads, 1 concatenate writes, 2 schedule sequential reads together, 3 the
    /// same for writes, 4 both.
    sequential_scheme: i64 = "Sequential stream scheme" integer, KeyTreatment::Left(&[0.0], "requests in sequence are neither joined nor scheduled together");
    /// Largest number of sectors of concatenated requests.
    concatenated_sectors_max: i64 = "Maximum concat size" integer, KeyTreatment::Idle("requests are not joined; `Sequential stream scheme` says so");
    /// 0: overlapping requests are independent.
    overlapping_scheme: i64 = "Overlapping request scheme" integer, KeyTreatment::Left(&[0.0], "overlapping requests are independent");
    /// Largest gap between sequential requests, in sectors.
    sequential_gap_max: i64 = "Sequential stream diff maximum" integer, KeyTreatment::Idle("requests are not joined; `Sequential stream scheme` says so");
    /// 0: the age of a request does not matter.
    timeout_scheme: i64 = "Scheduling timeout scheme" integer, KeyTreatment::Left(&[0.0], "no request is preferred for its age");
    /// Age in seconds, or weight of an aged policy.
    timeout: i64 = "Timeout time/weight" integer, KeyTreatment::Idle("no request is preferred for its age; `Scheduling timeout scheme` says so");
    /// Policy among old requests.
    timeout_policy: i64 = "Timeout scheduling" integer, KeyTreatment::Idle("no request is preferred for its age; `Scheduling timeout scheme` says so");
    /// 0: urgent requests have no queue of their own.
    priority_scheme: i64 = "Scheduling priority scheme" integer, KeyTreatment::Left(&[0.0], "urgent requests have no queue of their own");
    /// Policy in the queue of urgent requests.
    priority_policy: i64 = "Priority scheduling" integer, KeyTreatment::Idle("urgent requests have no queue of their own; `Scheduling priority scheme` says so");
}

/// All properties of a disk except mechanics and layout.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Electronics {
    /// Buffer, overheads and bus.
    pub disk: DiskKeys,
    /// Queue inside the disk.
    pub scheduler: Scheduler,
    /// Bus of the disk; `None` if the file describes none.
    pub bus: Option<BusTimes>,
}

/// Times of a bus. The times of the disk cannot be shorter.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BusTimes {
    /// Name of the block.
    pub name: String,
    /// Time to win the bus.
    pub arbitration_ms: f64,
    /// Shortest time of a sector that is read.
    pub read_sector_ms: f64,
    /// Shortest time of a sector that is written.
    pub write_sector_ms: f64,
    /// Shortest time of a sector in the controller above.
    pub controller_sector_ms: f64,
    /// Number of disks on the bus.
    pub disks: u32,
}

impl Electronics {
    /// Reads the keys of a `disksim_disk` block.
    pub(crate) fn read(
        fields: &BlockFields<'_>,
        strict: bool,
        losses: &mut Vec<ImportLoss>,
    ) -> Result<Electronics, ImportError> {
        fields.only(DISK_KEYS, strict, losses)?;
        let disk = DiskKeys::read(fields)?;
        // `G4_LBA_64bit_4T.diskspecs`, an extracted file, has -0.015.
        if disk.sector_transfer_ms < 0.0 {
            let what = format!(
                "found {}; a time cannot be negative, read it as 0",
                disk.sector_transfer_ms
            );
            losses.push(ImportLoss::new(
                fields.path("Bulk sector transfer time"),
                what,
            ));
        }
        for usage in DiskKeys::USES {
            losses.extend(usage.loss(fields)?);
        }
        let queue = fields.required("Scheduler")?;
        let prefix = fields.path("Scheduler.");
        let queue = BlockFields::new(fields.document, queue.block()?, &prefix);
        queue.only(SCHEDULER_KEYS, strict, losses)?;
        let scheduler = Scheduler::read(&queue)?;
        // With one request at a time, a scheduler has no choice, so its keys cause no loss.
        if disk.queue_length > 1 {
            for usage in Scheduler::USES {
                losses.extend(usage.loss(&queue)?);
            }
        }
        Ok(Electronics {
            disk,
            scheduler,
            bus: None,
        })
    }
}

/// The keys of a `disksim_bus` block, and their treatment.
pub const BUS_USES: &[KeyUse] = &[
    KeyUse {
        key: "Arbitration time",
        usage: KeyTreatment::Left(&[0.0], "the bus is won in no time"),
    },
    KeyUse {
        key: "Read block transfer time",
        usage: KeyTreatment::Carried,
    },
    KeyUse {
        key: "Write block transfer time",
        usage: KeyTreatment::Carried,
    },
    KeyUse {
        key: "type",
        usage: KeyTreatment::Idle("a drive's own bus is never contended for"),
    },
    KeyUse {
        key: "Arbitration type",
        usage: KeyTreatment::Idle("a drive's own bus is never contended for"),
    },
    KeyUse {
        key: "Print stats",
        usage: KeyTreatment::Idle("it is about DiskSim's report"),
    },
];

impl BusTimes {
    /// Reads the keys of a `disksim_bus` block that have an effect here.
    pub(crate) fn read(
        fields: &BlockFields<'_>,
        losses: &mut Vec<ImportLoss>,
    ) -> Result<BusTimes, ImportError> {
        for usage in BUS_USES {
            losses.extend(usage.loss(fields)?);
        }
        Ok(BusTimes {
            name: fields.block.name.clone().unwrap_or_default(),
            arbitration_ms: fields.required("Arbitration time")?.milliseconds()?,
            read_sector_ms: fields
                .required("Read block transfer time")?
                .milliseconds()?,
            write_sector_ms: fields
                .required("Write block transfer time")?
                .milliseconds()?,
            controller_sector_ms: 0.0,
            disks: 1,
        })
    }

    /// Returns the table of a stack file for several drives on this bus.
    pub fn link_table(&self) -> String {
        let sector_ms = self
            .read_sector_ms
            .max(self.write_sector_ms)
            .max(self.controller_sector_ms);
        let rate = if sector_ms > 0.0 {
            // 512 bytes per sector; bytes per millisecond divided by 1000 are MB/s.
            512.0 / sector_ms / 1000.0
        } else {
            1000.0
        };
        format!("[link]\nkind = \"scsi\"\nrate_mb_per_s = {rate:.3}\n")
    }
}
