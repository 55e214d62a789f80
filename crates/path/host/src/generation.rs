//! Generations of the host: the values that the kernels of one time had in common.
//!
//! | | `linux-6.x` | `linux-2.6.23` | `ideal` |
//! |---|---|---|---|
//! | elevator, if `like` is given | mq-deadline | cfq | none |
//! | requests | shared, 256 | 128 for each direction | 128 for each direction |
//! | flush | sequence | drain | that of the elevator's kernel |
//! | ticks a second, of elevators that count in ticks | 250 | 250 | exact |
//! | write-back throttling | 75 ms, without bfq | none | none |
//! | time of the host | 13 and 82 µs | 13 and 82 µs | 0 |
//! | read-ahead | today | on-demand | today |
//! | write-back | today | 2.6.23 | today |
//! | XFS, ext4 | today | 2.6.24, bitmaps on the device | 2.6.24, bitmaps on the device |
//!
//! `ideal` is no kernel: the host takes no time, and each elevator has the flushes of its own time.

use crate::block::{Flushing, HostTime};
use fullstroke_contract::registry::Keys;
use fullstroke_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The generations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Generation {
    /// Linux 6: one pool of requests for reads and writes, flushes that delay nothing, write-back
    /// throttling.
    #[default]
    #[serde(rename = "linux-6.x")]
    Linux6,
    /// Linux 2.6.23: requests for each direction, flushes as barriers, pdflush.
    #[serde(rename = "linux-2.6.23")]
    Linux2_6_23,
    /// A host that takes no time and counts no ticks.
    #[serde(rename = "ideal")]
    Ideal,
}

impl Generation {
    /// Returns the elevator for a disk: `elevator_get_default` of `block/elevator.c` in Linux 6 for
    /// a device with one hardware queue, `CONFIG_DEFAULT_CFQ` of `block/Kconfig.iosched` in 2.6.23.
    pub(crate) fn elevator(self) -> Option<&'static str> {
        match self {
            Generation::Linux6 => Some("mq-deadline"),
            Generation::Linux2_6_23 => Some("cfq"),
            Generation::Ideal => None,
        }
    }

    /// Returns the number of requests. Linux 6 has twice the commands of the host adapter, and
    /// counts at most `BLKDEV_DEFAULT_RQ` = 128 of these (`blk_mq_init_sched`): 256 behind a SAS
    /// adapter or a loop device, 64 behind AHCI. 2.6.23 has `BLKDEV_MAX_RQ`.
    pub(crate) fn requests(self) -> u32 {
        match self {
            Generation::Linux6 => 256,
            Generation::Linux2_6_23 | Generation::Ideal => 128,
        }
    }

    pub(crate) fn shares_requests(self) -> bool {
        self == Generation::Linux6
    }

    /// Returns the flushes of the generation, or those of the elevator's own kernel.
    pub(crate) fn flush(self, of_elevator: Flushing) -> Flushing {
        match self {
            Generation::Linux6 => Flushing::Sequence,
            Generation::Linux2_6_23 => Flushing::Drain,
            Generation::Ideal => of_elevator,
        }
    }

    /// Returns the ticks a second of the clock: `CONFIG_HZ_250` is the default of
    /// `kernel/Kconfig.hz` since 2.6.13.
    pub(crate) fn hz(self) -> Option<u32> {
        (self != Generation::Ideal).then_some(250)
    }

    /// Returns the target of write-back throttling: `RWB_NONROT_LAT` and its sibling for disks in
    /// `wbt_default_latency_nsec` of `block/blk-wbt.c`.
    pub(crate) fn read_target(self) -> Option<Duration> {
        (self == Generation::Linux6).then_some(Duration::from_millis(75))
    }

    /// Returns the time of the host for one request. The values are medians of 377 reads at depth 1
    /// under Linux 6.18 in a virtual machine on an AMD EPYC (`tools/kernel-check.py --host-time`):
    /// from `block_bio_queue` to `block_rq_issue`, and from `block_rq_complete` to the next
    /// `block_bio_queue`. The second time has the interrupt, the way out of the processor's idle
    /// state and the switch to the process. No machine with 2.6.23 was at hand; it has the same
    /// values.
    pub(crate) fn time(self) -> HostTime {
        match self {
            Generation::Linux6 | Generation::Linux2_6_23 => HostTime {
                submission: Duration::from_micros(13),
                completion: Duration::from_micros(82),
                dispatch: match self {
                    // Median from `block_rq_complete` to the worker thread's first look at the
                    // queue: 26 to 43 us in eleven runs of bfq, with the same machine.
                    Generation::Linux6 => Duration::from_micros(35),
                    // `scsi_run_queue` of `drivers/scsi/scsi_lib.c` ran in the interrupt.
                    _ => Duration::ZERO,
                },
            },
            Generation::Ideal => HostTime::default(),
        }
    }

    /// Adds the keys of a file system in which the generations differ.
    pub(crate) fn complete_files(self, files: &mut Keys) {
        let today = self == Generation::Linux6;
        let kernel = if today { "today" } else { "2.6.24" };
        let keys: &[(&str, Value)] = match files.get("kind").and_then(|kind| kind.as_str()) {
            Some("xfs") => &[("kernel", kernel.into())],
            Some("ext4") => &[
                ("uninit_bg", today.into()),
                ("dioread_nolock", today.into()),
                ("prefetch_block_bitmaps", today.into()),
            ],
            _ => &[],
        };
        for (key, value) in keys {
            files.entry(*key).or_insert(value.clone());
        }
        // `relatime` is the default since Linux 2.6.30, and of ZFS since OpenZFS 2.2 (`zfs_prop_init`).
        // ext2 and the old XFS follow older kernels.
        let is_zfs = files.get("kind").is_some_and(|kind| kind == "zfs");
        let old = files.get("kernel").is_some_and(|kernel| kernel == "2.6.24");
        if today && (!keys.is_empty() || is_zfs) && !old {
            files.entry("atime").or_insert("relatime".into());
        }
    }

    /// Returns the policies of read-ahead and write-back of the page cache.
    pub(crate) fn memory(self) -> [&'static str; 2] {
        match self {
            Generation::Linux6 | Generation::Ideal => ["today", "today"],
            Generation::Linux2_6_23 => ["on-demand", "2.6.23"],
        }
    }
}
