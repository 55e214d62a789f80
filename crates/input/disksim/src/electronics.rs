//! Buffer, overheads and scheduler of a disk, as the file has them.

use crate::error::{ImportError, Loss};
use crate::fields::Fields;
use serde::Serialize;

/// What becomes of a key. None is read and forgotten: what changes nothing says
/// why, and what has an effect in DiskSim but none here is a loss.
#[derive(Clone, Copy, Debug)]
pub enum Use {
    /// The drive is made from it.
    Carried,
    /// The same, but for values other than these, of which it says what becomes.
    CarriedFor(&'static [f64], &'static str),
    /// It changes nothing here, because.
    Idle(&'static str),
    /// It is not modelled: values other than these are losses, of which it says
    /// what is done instead.
    Left(&'static [f64], &'static str),
}

/// A key of a block, and what becomes of it.
#[derive(Clone, Copy, Debug)]
pub struct KeyUse {
    /// The key.
    pub key: &'static str,
    /// What becomes of it.
    pub usage: Use,
}

impl KeyUse {
    /// What is lost of a value.
    fn loss(&self, fields: &Fields<'_>) -> Result<Option<Loss>, ImportError> {
        let (Use::CarriedFor(exact, what) | Use::Left(exact, what)) = self.usage else {
            return Ok(None);
        };
        let value = fields.required(self.key)?.number()?;
        let loss = || Loss::new(fields.path(self.key), format!("{value}: {what}"));
        Ok((!exact.contains(&value)).then(loss))
    }
}

/// A struct whose fields are the keys of a block, each required, and the table
/// of what becomes of them.
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
            /// Every key, and what becomes of it.
            pub const USES: &[KeyUse] = &[$(KeyUse { key: $key, usage: $usage },)*];

            fn read(fields: &Fields<'_>) -> Result<$name, ImportError> {
                Ok($name { $($field: fields.required($key)?.$read()?,)* })
            }
        }
    };
}

keys! {
    /// The keys of a `disksim_disk` block but `Model` and `Scheduler`. Times are
    /// in milliseconds, flags are 0 or 1.
    DiskKeys, DISK_KEYS, others: ["Model", "Scheduler"];
    /// Added to every request as it arrives.
    per_request_overhead_ms: f64 = "Per-request overhead time" number, Use::Carried;
    /// Factor of all overheads.
    overhead_scale: f64 = "Time scale for overheads" number, Use::Carried;
    /// Bus time of one sector.
    sector_transfer_ms: f64 = "Bulk sector transfer time" number, Use::Carried;
    /// Whether a read keeps the bus throughout its transfer.
    hold_bus_for_read: i64 = "Hold bus entire read xfer" integer, Use::Idle("the bus is the drive's own: nobody else could use it meanwhile");
    /// Whether a write keeps the bus throughout its transfer.
    hold_bus_for_write: i64 = "Hold bus entire write xfer" integer, Use::Idle("the bus is the drive's own: nobody else could use it meanwhile");
    /// Whether a read of a sector that is being prefetched counts as a partial hit.
    almost_read_hits: i64 = "Allow almost read hits" integer, Use::Carried;
    /// Whether a full hit may pass another request that uses the arm.
    sneaky_full_read_hits: i64 = "Allow sneaky full read hits" integer, Use::Carried;
    /// Whether a partial hit may do so.
    sneaky_partial_read_hits: i64 = "Allow sneaky partial read hits" integer, Use::Left(&[0.0], "a read of which the buffer has only a part waits for its turn");
    /// Whether queued hits may use the bus while it is idle.
    sneaky_intermediate_read_hits: i64 = "Allow sneaky intermediate read hits" integer, Use::Carried;
    /// Whether reads hit on data that was written.
    read_hits_on_write_data: i64 = "Allow read hits on write data" integer, Use::Carried;
    /// Whether queued writes may send data while the bus is idle.
    write_prebuffering: i64 = "Allow write prebuffering" integer, Use::Left(&[0.0], "a write waits for its turn before its data are sent");
    /// 0: the arm waits for the completion handshake; 1: until it is prepared; 2: until the last sector is accessed.
    preseeking: i64 = "Preseeking level" integer, Use::Left(&[0.0], "the arm moves for a request when the one before has completed");
    /// Whether the bus is kept from arrival to completion.
    never_disconnect: i64 = "Never disconnect" integer, Use::Carried;
    /// Whether DiskSim reports on the disk.
    print_statistics: i64 = "Print stats" integer, Use::Idle("it is about DiskSim's report");
    /// Mean sectors a cylinder, for schedulers outside.
    sectors_per_cylinder: i64 = "Avg sectors per cylinder" integer, Use::Idle("schedulers outside of the disk know its layout here");
    /// Requests in the disk at once, the one in service included.
    queue_length: i64 = "Max queue length" integer, Use::Carried;
    /// Segments of the buffer.
    segments: i64 = "Number of buffer segments" integer, Use::Carried;
    /// Segments that may hold written data.
    write_segments: i64 = "Maximum number of write segments" integer, Use::Carried;
    /// Sectors of a segment.
    segment_sectors: i64 = "Segment size (in blks)" integer, Use::Carried;
    /// Whether one segment serves all writes and nothing else.
    separate_write_segment: i64 = "Use separate write segment" integer, Use::Carried;
    /// Fraction of dirty data below which a write reconnects.
    low_water_mark: f64 = "Low (write) water mark" number, Use::CarriedFor(&[0.0], "a write begins by it (rule write_mark); one that is larger than its segment goes on without pause");
    /// Fraction of data from which on a read reconnects.
    high_water_mark: f64 = "High (read) water mark" number, Use::Carried;
    /// Whether the marks are fractions of the request, not of the segment.
    water_marks_by_request: i64 = "Set watermark by reqsize" integer, Use::Carried;
    /// Without effect in DiskSim 4.0.
    sector_by_sector: i64 = "Calc sector by sector" integer, Use::Idle("DiskSim 4.0 ignores it, too");
    /// Whether the buffer caches.
    caching: i64 = "Enable caching in buffer" integer, Use::CarriedFor(&[0.0, 1.0], "taken as 1; DiskSim's documentation gives it no meaning of its own");
    /// Read-ahead: 0 none; 1 to the track's end; 2 to the cylinder's; 3 until the segment is full; 4 to the end of the next track of a sequential stream.
    continuous_read: i64 = "Buffer continuous read" integer, Use::Carried;
    /// Sectors read ahead before another request is served.
    read_ahead_sectors_min: i64 = "Minimum read-ahead (blks)" integer, Use::Left(&[0.0], "another request may end read-ahead at once");
    /// Sectors read ahead at most.
    read_ahead_sectors_max: i64 = "Maximum read-ahead (blks)" integer, Use::Carried;
    /// Whether read-ahead may overwrite what was asked for last.
    read_ahead_over_requested: i64 = "Read-ahead over requested" integer, Use::Carried;
    /// Whether a full hit starts read-ahead.
    read_ahead_on_idle_hit: i64 = "Read-ahead on idle hit" integer, Use::Carried;
    /// Whether sectors that pass before the requested ones are kept.
    read_free_blocks: i64 = "Read any free blocks" integer, Use::CarriedFor(&[0.0], "sectors that pass before the requested ones are kept where reads begin wherever the head lands, and dropped otherwise");
    /// Write-back: 0 none; 1 for appending writes; 2 also between other requests.
    fast_write: i64 = "Fast write level" integer, Use::CarriedFor(&[0.0, 2.0], "taken as 2: writes that find room are acknowledged, in sequence or not");
    /// Whether reads begin wherever the head lands.
    immediate_read: i64 = "Immediate buffer read" integer, Use::CarriedFor(&[0.0, 1.0], "taken as 1");
    /// Whether writes begin wherever the head lands.
    immediate_write: i64 = "Immediate buffer write" integer, Use::CarriedFor(&[0.0, 1.0], "taken as 1");
    /// Whether sequential writes share a segment.
    combine_writes: i64 = "Combine seq writes" integer, Use::Carried;
    /// Whether read-ahead may end inside of a sector.
    stop_prefetch_in_sector: i64 = "Stop prefetch in sector" integer, Use::Left(&[1.0], "read-ahead ends at once, and not at the end of a sector");
    /// Whether a write disconnects when the arm still moves at the end of its transfer.
    disconnect_write_in_seek: i64 = "Disconnect write if seek" integer, Use::Idle("the bus is the drive's own: nobody else could use it meanwhile");
    /// Whether a write hit ends read-ahead.
    write_hit_stops_prefetch: i64 = "Write hit stop prefetch" integer, Use::Left(&[1.0], "a write ends read-ahead");
    /// Whether a sector needs space in the buffer before it is read.
    read_directly_to_buffer: i64 = "Read directly to buffer" integer, Use::Idle("a ring has room for the next sector at any time");
    /// Whether the first part of a partial hit is sent at once.
    immediate_partial_hit: i64 = "Immed transfer partial hit" integer, Use::Carried;
    /// Overhead of a read hit behind a read.
    read_hit_after_read_ms: f64 = "Read hit over. after read" number, Use::Carried;
    /// Overhead of a read hit behind a write.
    read_hit_after_write_ms: f64 = "Read hit over. after write" number, Use::Carried;
    /// Overhead of a read miss behind a read.
    read_miss_after_read_ms: f64 = "Read miss over. after read" number, Use::Carried;
    /// Overhead of a read miss behind a write.
    read_miss_after_write_ms: f64 = "Read miss over. after write" number, Use::Carried;
    /// Overhead of a write reported early, behind a read.
    write_hit_after_read_ms: f64 = "Write hit over. after read" number, Use::Carried;
    /// Overhead of a write reported early, behind a write.
    write_hit_after_write_ms: f64 = "Write hit over. after write" number, Use::Carried;
    /// Overhead of a write through to the media, behind a read.
    write_miss_after_read_ms: f64 = "Write miss over. after read" number, Use::Carried;
    /// Overhead of a write through to the media, behind a write.
    write_miss_after_write_ms: f64 = "Write miss over. after write" number, Use::Carried;
    /// Before the completion of a read is sent.
    read_completion_ms: f64 = "Read completion overhead" number, Use::Carried;
    /// Before the completion of a write is sent.
    write_completion_ms: f64 = "Write completion overhead" number, Use::Carried;
    /// Before data are sent over the bus.
    data_preparation_ms: f64 = "Data preparation overhead" number, Use::Carried;
    /// Before the first reconnection of a request.
    first_reselect_ms: f64 = "First reselect overhead" number, Use::Carried;
    /// Before each later one.
    other_reselect_ms: f64 = "Other reselect overhead" number, Use::Carried;
    /// Before a read disconnects, behind a read.
    read_disconnect_after_read_ms: f64 = "Read disconnect afterread" number, Use::Idle("it passes while the arm moves");
    /// Before a read disconnects, behind a write.
    read_disconnect_after_write_ms: f64 = "Read disconnect afterwrite" number, Use::Idle("it passes while the arm moves");
    /// Before a write disconnects.
    write_disconnect_ms: f64 = "Write disconnect overhead" number, Use::Idle("it passes while the arm moves");
    /// Whether a write disconnects before any data are sent.
    extra_write_disconnect: i64 = "Extra write disconnect" integer, Use::Carried;
    /// Overhead of such a write, in place of the others.
    extra_command_ms: f64 = "Extradisc command overhead" number, Use::Carried;
    /// Before its first disconnection.
    extra_disconnect_ms: f64 = "Extradisc disconnect overhead" number, Use::Carried;
    /// From there to its reconnection.
    extra_between_disconnects_ms: f64 = "Extradisc inter-disconnect delay" number, Use::Carried;
    /// Before its second disconnection.
    extra_second_disconnect_ms: f64 = "Extradisc 2nd disconnect overhead" number, Use::Carried;
    /// From its command to the arm's movement.
    extra_seek_ms: f64 = "Extradisc seek delta" number, Use::Carried;
    /// Shortest time before a write that is not sequential reaches the media.
    minimum_seek_ms: f64 = "Minimum seek delay" number, Use::Left(&[0.0], "a write that is not sequential reaches the medium as soon as arm and platter allow");
}

keys! {
    /// The keys of a `disksim_ioqueue` block.
    Scheduler, SCHEDULER_KEYS, others: [];
    /// 1 FCFS, 2 LOOK, 3 C-LOOK, 4 SSTF (by LBN), 5-7 the same by cylinder, 8-10 SATF and its variants, further ones weighted and aged.
    policy: i64 = "Scheduling policy" integer, Use::Carried;
    /// What the scheduler knows of the layout.
    cylinder_mapping: i64 = "Cylinder mapping strategy" integer, Use::Idle("the queue knows the layout");
    /// Overhead of a write as the scheduler assumes it.
    write_initiation_ms: f64 = "Write initiation delay" number, Use::Left(&[0.0], "the queue adds the drive's command overhead to its estimates");
    /// Overhead of a read as the scheduler assumes it.
    read_initiation_ms: f64 = "Read initiation delay" number, Use::Left(&[0.0], "the queue adds the drive's command overhead to its estimates");
    /// Bits: 0 concatenate reads, 1 writes, 2 schedule sequential reads together, 3 writes, 4 both.
    sequential_scheme: i64 = "Sequential stream scheme" integer, Use::Left(&[0.0], "requests in sequence are neither joined nor scheduled together");
    /// Sectors of concatenated requests at most.
    concatenated_sectors_max: i64 = "Maximum concat size" integer, Use::Idle("requests are not joined; `Sequential stream scheme` says so");
    /// 0: overlapping requests are independent.
    overlapping_scheme: i64 = "Overlapping request scheme" integer, Use::Left(&[0.0], "overlapping requests are independent");
    /// Sectors that may lie between sequential requests.
    sequential_gap_max: i64 = "Sequential stream diff maximum" integer, Use::Idle("requests are not joined; `Sequential stream scheme` says so");
    /// 0: no request is preferred for its age.
    timeout_scheme: i64 = "Scheduling timeout scheme" integer, Use::Left(&[0.0], "no request is preferred for its age");
    /// The age in seconds, or the weight of aged policies.
    timeout: i64 = "Timeout time/weight" integer, Use::Idle("no request is preferred for its age; `Scheduling timeout scheme` says so");
    /// Policy among requests that are old.
    timeout_policy: i64 = "Timeout scheduling" integer, Use::Idle("no request is preferred for its age; `Scheduling timeout scheme` says so");
    /// Whether urgent requests have a queue of their own.
    priority_scheme: i64 = "Scheduling priority scheme" integer, Use::Left(&[0.0], "urgent requests have no queue of their own");
    /// Policy in that queue.
    priority_policy: i64 = "Priority scheduling" integer, Use::Idle("urgent requests have no queue of their own; `Scheduling priority scheme` says so");
}

/// Everything about a disk but its mechanics and layout.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Electronics {
    /// Buffer, overheads, bus.
    pub disk: DiskKeys,
    /// The queue inside of the disk.
    pub scheduler: Scheduler,
    /// The bus that the disk hangs on, where the file describes one.
    pub bus: Option<Bus>,
}

/// Times of a bus, which the disk's own cannot undercut.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Bus {
    /// The block's name.
    pub name: String,
    /// Time to win the bus.
    pub arbitration_ms: f64,
    /// Least time of a sector that is read.
    pub read_sector_ms: f64,
    /// Least time of a sector that is written.
    pub write_sector_ms: f64,
    /// Least time of a sector in the controller above.
    pub controller_sector_ms: f64,
    /// Disks that hang on it.
    pub disks: u32,
}

impl Electronics {
    /// The keys of a `disksim_disk` block.
    pub(crate) fn read(
        fields: &Fields<'_>,
        strict: bool,
        losses: &mut Vec<Loss>,
    ) -> Result<Electronics, ImportError> {
        fields.only(DISK_KEYS, strict, losses)?;
        let disk = DiskKeys::read(fields)?;
        if disk.sector_transfer_ms < 0.0 {
            let what = format!(
                "found {}; a time cannot be negative, read it as 0",
                disk.sector_transfer_ms
            );
            losses.push(Loss::new(fields.path("Bulk sector transfer time"), what));
        }
        for usage in DiskKeys::USES {
            losses.extend(usage.loss(fields)?);
        }
        let queue = fields.required("Scheduler")?;
        let prefix = fields.path("Scheduler.");
        let queue = Fields::new(fields.document, queue.block()?, &prefix);
        queue.only(SCHEDULER_KEYS, strict, losses)?;
        let scheduler = Scheduler::read(&queue)?;
        // One request at a time leaves a scheduler nothing to choose.
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

/// The keys of a `disksim_bus` block, and what becomes of them.
pub const BUS_USES: &[KeyUse] = &[
    KeyUse {
        key: "Arbitration time",
        usage: Use::Left(&[0.0], "the bus is won in no time"),
    },
    KeyUse {
        key: "Read block transfer time",
        usage: Use::Carried,
    },
    KeyUse {
        key: "Write block transfer time",
        usage: Use::Carried,
    },
    KeyUse {
        key: "type",
        usage: Use::Idle("a drive's own bus is never contended for"),
    },
    KeyUse {
        key: "Arbitration type",
        usage: Use::Idle("a drive's own bus is never contended for"),
    },
    KeyUse {
        key: "Print stats",
        usage: Use::Idle("it is about DiskSim's report"),
    },
];

impl Bus {
    /// The keys of a `disksim_bus` block that matter here.
    pub(crate) fn read(fields: &Fields<'_>, losses: &mut Vec<Loss>) -> Result<Bus, ImportError> {
        for usage in BUS_USES {
            losses.extend(usage.loss(fields)?);
        }
        Ok(Bus {
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

    /// The table of a stack file in which several drives share the bus.
    pub fn link_table(&self) -> String {
        let sector_ms = self
            .read_sector_ms
            .max(self.write_sector_ms)
            .max(self.controller_sector_ms);
        let rate = if sector_ms > 0.0 {
            512.0 / sector_ms / 1000.0
        } else {
            1000.0
        };
        format!("[link]\nkind = \"scsi\"\nrate_mb_per_s = {rate:.3}\n")
    }
}
