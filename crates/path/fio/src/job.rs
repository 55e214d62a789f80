//! Description of one job, as read from its file.

use crate::units::Amount;
use crate::zones::ZonesOfJob;
use fullstroke_contract::{Operation, PriorityClass};
use fullstroke_units::{Duration, SECTOR_BYTES};

/// Page of the page cache, in bytes.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// Direction of an I/O. fio separates reads, writes and trims; an array over directions has this
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IoDirection {
    Read = 0,
    Write = 1,
    Trim = 2,
}

impl IoDirection {
    pub(crate) const ALL: [IoDirection; 3] =
        [IoDirection::Read, IoDirection::Write, IoDirection::Trim];

    pub(crate) fn operation(self) -> Operation {
        match self {
            IoDirection::Read => Operation::Read,
            IoDirection::Write => Operation::Write,
            IoDirection::Trim => Operation::Discard,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        ["read", "write", "trim"][self as usize]
    }
}

/// Directions of a job's I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobDirections {
    Only(IoDirection),
    /// Reads and writes, chosen at random by `rwmixread`.
    Mixed,
    /// Each block is trimmed, then written.
    TrimThenWrite,
}

impl JobDirections {
    pub(crate) fn goes(self, direction: IoDirection) -> bool {
        match self {
            JobDirections::Only(only) => only == direction,
            JobDirections::Mixed => direction != IoDirection::Trim,
            JobDirections::TrimThenWrite => direction != IoDirection::Read,
        }
    }
}

/// Limits of a job, by direction; `None` if there is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FloorsOfJob {
    /// Least rate, in bytes a second (`rate_min`).
    pub(crate) bytes_per_s: [Option<u64>; 3],
    /// Least number of I/Os a second (`rate_iops_min`).
    pub(crate) iops: [Option<u64>; 3],
    /// Largest latency (`max_latency`).
    pub(crate) latency: [Option<Duration>; 3],
}

/// Block sizes of one direction, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// Uniform distribution: a number of bytes up to the second value, rounded up to a multiple of
    /// the first value, at most the second value.
    Range(u64, u64),
    /// Sizes with percentages that add up to 100.
    Split(Vec<(u64, u8)>),
}

impl Blocks {
    pub(crate) fn smallest(&self) -> u64 {
        match self {
            Blocks::Range(low, _) => *low,
            Blocks::Split(parts) => parts.iter().map(|(bytes, _)| *bytes).min().unwrap_or(0),
        }
    }

    pub(crate) fn largest(&self) -> u64 {
        match self {
            Blocks::Range(_, high) => *high,
            Blocks::Split(parts) => parts.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0),
        }
    }
}

/// Distribution of random offsets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OffsetDistribution {
    Uniform,
    /// Rank k has a probability proportional to k^-theta.
    Zipf {
        theta: f64,
        center: Option<f64>,
    },
    /// Place (n - 1) u^(ln h / ln (1 - h)), with u uniform from 0 to 1.
    Pareto {
        h: f64,
        center: Option<f64>,
    },
    /// Mean of twelve uniform places, plus a uniform deviation of `percent`.
    Normal {
        percent: f64,
        center: Option<f64>,
    },
    /// Zones for each direction: percentage of the accesses, and size of the zone.
    Zoned([Vec<(u8, Amount)>; 3]),
}

/// Effect of `rw=randread:8` on the I/Os that follow a random offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequencer {
    Sequential,
    Identical,
}

/// Behaviour of the I/O engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// One I/O at a time, whatever `iodepth` says.
    Synchronous,
    /// Up to `iodepth` I/Os in flight. The job waits for each flush.
    Queued,
    /// Up to `iodepth` I/Os in flight. A flush counts as one of these.
    QueuedFlush,
}

/// Event that `thinktime_blocks` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThinkAfter {
    Completed,
    Issued,
}

/// Jobs that end together with the first job that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitWhat {
    Group,
    All,
    Stonewall,
}

/// Order in which a job turns to its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileOrder {
    RoundRobin,
    Sequential,
    Random,
}

/// Files of a job that works on files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilesOfJob {
    /// Directories, which the clones take in turn.
    pub(crate) directories: Vec<String>,
    pub(crate) names: Vec<String>,
    /// Form of the files' names, with `$jobname`, `$jobnum` and `$filenum`. Default: all three,
    /// separated by dots.
    pub(crate) name_format: Option<String>,
    pub(crate) number: Option<u64>,
    pub(crate) service: FileOrder,
    /// Number of I/Os to a file before the turn of the next file.
    pub(crate) service_ios: u64,
    pub(crate) overwrite: bool,
    pub(crate) create_on_open: bool,
    /// True if files that are written have their space before the run. Default: true, because
    /// `fallocate=native` is fio's default.
    pub(crate) allocated: bool,
}

/// Verification of written data: the job reads its writes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VerifyOfJob {
    /// True with `verify`. Default: false.
    pub(crate) on: bool,
    /// True if the writes of an iteration are read back at its end (`do_verify`). Default: true.
    pub(crate) at_end: bool,
    /// Number of writes after which a part is read back (`verify_backlog`). Default: 0 (never).
    pub(crate) backlog: u64,
    /// Number of reads of such a part. Default: 0 (as many as `backlog`).
    pub(crate) batch: u64,
}

/// One job with all its options. The clones made by `numjobs` share the description.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FioJob {
    pub(crate) name: String,
    pub(crate) line: usize,
    /// Position of the job in the file, from 0.
    pub(crate) place: usize,
    /// Remarks on values, while the job is read.
    pub(crate) notes: Vec<String>,
    /// Settings of the job's own section as written, for reports.
    pub(crate) options: Vec<(String, String)>,
    pub(crate) group: u32,
    /// Number of stonewalls before the job.
    pub(crate) stage: usize,
    pub(crate) clones: u32,
    pub(crate) group_reporting: bool,
    pub(crate) stonewall: bool,
    pub(crate) new_group: bool,
    pub(crate) wait_for: Option<String>,
    /// Position of the job named by `wait_for`.
    pub(crate) waits_for: Option<usize>,
    pub(crate) exit_all: bool,
    pub(crate) exit_what: ExitWhat,

    pub(crate) work: JobDirections,
    pub(crate) random: bool,
    /// Number n in `rw=...:n`: a count of I/Os for random I/O, bytes for sequential I/O.
    pub(crate) modifier: i64,
    pub(crate) sequencer: Sequencer,
    pub(crate) read_percent: u64,
    pub(crate) blocks: [Blocks; 3],
    pub(crate) alignment: Option<[u64; 3]>,

    pub(crate) size: Option<Amount>,
    pub(crate) io_size: Option<Amount>,
    pub(crate) file_size: Option<u64>,
    pub(crate) offset: Amount,
    pub(crate) offset_increment: Amount,
    pub(crate) offset_align: u64,
    pub(crate) number_ios: Option<u64>,
    pub(crate) loops: u64,

    pub(crate) distribution: OffsetDistribution,
    pub(crate) percentage_random: [u64; 3],
    pub(crate) random_map: bool,
    pub(crate) soft_random_map: bool,
    pub(crate) seed: Option<u64>,
    pub(crate) repeat: bool,

    pub(crate) engine: Engine,
    /// Name of the engine in the job file. Default: psync.
    pub(crate) engine_name: String,
    pub(crate) depth: u32,
    pub(crate) depth_low: Option<u32>,
    pub(crate) reap_least: u32,
    pub(crate) offload: bool,
    pub(crate) durable_writes: bool,
    /// True if durable writes do not wait for changes of times (`sync=dsync`).
    pub(crate) durable_data_only: bool,
    /// True if I/O bypasses the page cache.
    pub(crate) direct: bool,
    pub(crate) flush_every: u64,
    /// True if these flushes are `fdatasync`.
    pub(crate) flush_data_only: bool,
    pub(crate) flush_at_end: bool,
    pub(crate) class: PriorityClass,
    pub(crate) level: u8,

    pub(crate) think: Duration,
    pub(crate) think_blocks: Option<u64>,
    pub(crate) think_after: ThinkAfter,
    pub(crate) think_io_time: Duration,
    pub(crate) rate_bytes_per_s: [Option<u64>; 3],
    pub(crate) rate_iops: [Option<u64>; 3],
    pub(crate) poisson: bool,
    pub(crate) rate_ignores_think: bool,

    pub(crate) runtime: Option<Duration>,
    pub(crate) time_based: bool,
    pub(crate) ramp: Duration,
    pub(crate) start_delay: (Duration, Duration),

    pub(crate) zones: ZonesOfJob,
    pub(crate) floors: FloorsOfJob,
    /// True if the job goes on to the end of the volume, whatever `size` says (`fill_device`).
    pub(crate) fills: bool,
    pub(crate) files: FilesOfJob,
    pub(crate) verify: VerifyOfJob,
    pub(crate) percentiles: Vec<f64>,
    pub(crate) clat_percentiles: bool,
    pub(crate) lat_percentiles: bool,
}

impl FilesOfJob {
    /// Returns the directory of a clone's files.
    pub(crate) fn directory_of(&self, clone: u32) -> Option<&str> {
        let count = self.directories.len();
        // Without directories the remainder by 0 is `None`.
        let at = (clone as usize).checked_rem(count)?;
        Some(&self.directories[at])
    }
}

impl FioJob {
    /// Makes a job with fio's defaults.
    #[expect(clippy::too_many_lines, reason = "a table: a default for each option")]
    pub(crate) fn new(name: &str, line: usize) -> FioJob {
        FioJob {
            name: name.to_owned(),
            line,
            place: 0,
            notes: Vec::new(),
            options: Vec::new(),
            group: 0,
            stage: 0,
            clones: 1,
            group_reporting: false,
            stonewall: false,
            new_group: false,
            wait_for: None,
            waits_for: None,
            exit_all: false,
            exit_what: ExitWhat::Group,
            work: JobDirections::Only(IoDirection::Read),
            random: false,
            modifier: 0,
            sequencer: Sequencer::Sequential,
            read_percent: 50,
            // The defaults of fio(1): blocks of 4 KiB, psync, a depth of 1, buffered I/O.
            blocks: std::array::from_fn(|_| Blocks::Range(4096, 4096)),
            alignment: None,
            size: None,
            io_size: None,
            file_size: None,
            offset: Amount::Bytes(0),
            offset_increment: Amount::Bytes(0),
            offset_align: 0,
            number_ios: None,
            loops: 1,
            distribution: OffsetDistribution::Uniform,
            percentage_random: [100; 3],
            random_map: true,
            soft_random_map: false,
            seed: None,
            repeat: true,
            engine: Engine::Synchronous,
            engine_name: "psync".to_owned(),
            depth: 1,
            depth_low: None,
            reap_least: 1,
            offload: false,
            durable_writes: false,
            durable_data_only: false,
            direct: false,
            flush_every: 0,
            flush_data_only: false,
            flush_at_end: false,
            class: PriorityClass::BestEffort,
            // `IOPRIO_BE_NORM` (`include/uapi/linux/ioprio.h`): the level of a process without one
            // of its own.
            level: 4,
            think: Duration::ZERO,
            think_blocks: None,
            think_after: ThinkAfter::Completed,
            think_io_time: Duration::ZERO,
            rate_bytes_per_s: [None; 3],
            rate_iops: [None; 3],
            poisson: false,
            rate_ignores_think: false,
            runtime: None,
            time_based: false,
            ramp: Duration::ZERO,
            start_delay: (Duration::ZERO, Duration::ZERO),
            zones: ZonesOfJob::default(),
            floors: FloorsOfJob::default(),
            fills: false,
            files: FilesOfJob {
                directories: Vec::new(),
                names: Vec::new(),
                name_format: None,
                number: None,
                service: FileOrder::RoundRobin,
                service_ios: 1,
                overwrite: false,
                create_on_open: false,
                allocated: true,
            },
            verify: VerifyOfJob {
                on: false,
                at_end: true,
                backlog: 0,
                batch: 0,
            },
            percentiles: vec![
                1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5,
                99.9, 99.95, 99.99,
            ],
            clat_percentiles: true,
            lat_percentiles: false,
        }
    }

    /// Returns the number of I/Os that the job keeps in flight.
    pub(crate) fn effective_depth(&self) -> u32 {
        if self.engine == Engine::Synchronous {
            1
        } else {
            self.depth
        }
    }

    /// Returns the block sizes of the directions that the job uses.
    pub(crate) fn used_blocks(&self) -> impl Iterator<Item = &Blocks> {
        let goes = |direction: &IoDirection| self.work.goes(*direction);
        IoDirection::ALL
            .into_iter()
            .filter(goes)
            .map(|direction| &self.blocks[direction as usize])
    }

    /// Returns true if a block is no multiple of a sector. Such blocks reach the volume in pages.
    pub(crate) fn is_in_pages(&self) -> bool {
        let whole = |bytes: u64| bytes.is_multiple_of(SECTOR_BYTES);
        self.used_blocks().any(|blocks| match blocks {
            Blocks::Range(low, high) => !whole(*low) || !whole(*high),
            Blocks::Split(parts) => parts.iter().any(|(bytes, _)| !whole(*bytes)),
        })
    }

    /// Returns the size of all blocks, if they have the same size.
    pub(crate) fn single_size(&self) -> Option<u64> {
        let smallest = self.used_blocks().map(Blocks::smallest).min()?;
        let largest = self.used_blocks().map(Blocks::largest).max()?;
        (smallest == largest).then_some(smallest)
    }
}
