//! The counters of a layer by name, for reports.

/// All names of readings, one per line. Reports and metrics derive from this list. A name ends with
/// the unit.
#[rustfmt::skip]
pub static READINGS: &[ReadingName] = &[
    less("replay_duration_ratio", "time from the first to the last request of the replay, divided by that of the trace"),
    less("replay_outstanding_trace_mean", "mean number of outstanding requests of the trace at an arrival"),
    less("replay_outstanding_mean", "the same value for the replay"),
    less("replay_outstanding_trace_p90", "90th percentile of the requests outstanding in the trace at an arrival"),
    less("replay_outstanding_p90", "the same value for the replay"),
    less("replay_outstanding_error_mean", "mean absolute difference between replay and trace at an arrival"),
    less("replay_outstanding_bias", "mean signed difference: above 0 if the replay has more outstanding requests"),
    less("replay_outstanding_error_max", "largest difference at an arrival"),
    less("replay_outstanding_distance", "area between the two distributions: mean distance that makes one distribution of the other"),
    less("link_utilisation", "share of the time in which a lane was busy, on average over lanes"),
    less("link_wait_ms_mean", "mean time between the offer of a transfer and its start"),
    less("link_wait_ms_max", "longest of these times"),
    less("link_transfers", "commands, readinesses, data and statuses"),
    less("link_tenancies", "number of times that a port won the link"),
    less("link_payload_mb", "data, in 10^6 bytes"),
    less("link_overhead_mb", "all other transmitted data"),
    less("link_to_members_mb", "data from the host to members"),
    less("link_to_host_mb", "data from members to the host"),
    less("link_between_members_mb", "data from member to member"),
    more("memory_hit_share", "share of the requested pages that reads found in the page cache, 0 to 1"),
    less("memory_read_ahead_mb", "data read in addition to the requested data, in 10^6 bytes"),
    more("memory_read_ahead_used_share", "share of the read-ahead that reads used, 0 to 1"),
    less("memory_read_ahead_wasted_mb", "read-ahead that was evicted before a read used it, in 10^6 bytes"),
    less("memory_dirtied_mb", "clean data that writes made dirty, in 10^6 bytes"),
    less("memory_written_background_mb", "data written back because of the amount of dirty data, in 10^6 bytes"),
    less("memory_written_periodic_mb", "data written back because of its age, in 10^6 bytes"),
    less("memory_written_throttled_mb", "dirty pages written back by throttled writers, in 10^6 bytes"),
    less("memory_written_sync_mb", "data written back by fsync, O_SYNC and O_DIRECT, in 10^6 bytes"),
    less("memory_written_reclaim_mb", "data written back because memory was short, in 10^6 bytes"),
    less("memory_written_pulled_mb", "data written back because storage asked for it, in 10^6 bytes"),
    less("memory_pull_asked_mb", "amount that PULL requests without addresses have asked of this cache, in 10^6 bytes"),
    less("memory_pull_refused_mb", "part of memory_pull_asked_mb without a dirty page that was not already being written; shared memory then asks the hosts"),
    less("memory_dirty_mb", "dirty data at the end of the run, in 10^6 bytes"),
    less("memory_throttled_ms", "total time that dirty throttling made writers wait"),
    less("stage_requests", "requests of all hosts that passed the shared layers"),
    less("stage_wait_ms_mean", "mean waiting time of a request for the processor"),
    less("stage_wait_ms_max", "longest of these times"),
    less("stage_utilisation", "share of the time in which the processor worked"),
    more("stage_mhz_mean", "mean frequency of the processor over requests, if cost is a model of cycles"),
    less("stage_busy_share", "with a model of cycles: share of the time in which the processor worked and did not wait"),
    less("server_reads", "read calls that reached the file server"),
    less("server_writes", "write calls that reached the file server"),
    less("server_commits", "COMMIT calls (NFS) or flush calls (SMB) that reached the file server"),
    less("server_wait_ms_mean", "mean waiting time of a call for a thread of the file server"),
    less("server_network_share", "share of the time in which the file server's wire was busy, mean of both directions, 0 to 1"),
    less("cooperation_asked", "reads passed to another host"),
    more("cooperation_served", "reads that another host has sent"),
    more("cooperation_served_mb", "data of the reads served by other hosts, in 10^6 bytes"),
    more("cooperation_served_share", "share of served reads among the reads that the host's own cache could not answer, 0 to 1"),
    less("cooperation_refused", "reads passed to a host that held only a part of the data, or had changed the data"),
    less("cooperation_silent", "reads without an answer"),
    less("signals_pulls", "number of times that storage asked hosts for dirty data"),
    less("signals_pulled_mb", "amount of dirty data that storage asked for, in 10^6 bytes"),
    less("signals_pushes", "number of times that storage offered hosts its data"),
    less("signals_pushed_mb", "offered data, in 10^6 bytes"),
    less("signals_held_ms", "total time that storage held requests until hosts had fetched the offered data"),
    more("pushed_hits", "reads that hosts answered with pushed data"),
    more("pushed_hit_share", "share of these among the reads that page caches could not answer, 0 to 1"),
    less("pushed_fetched_mb", "offered data that hosts fetched, in 10^6 bytes"),
    less("pushed_refused_mb", "offered data that hosts did not fetch: already cached, being written, no room, or no whole page"),
    more("pushed_used_mb", "fetched data that reads used"),
    less("pushed_wasted_mb", "fetched data that was evicted or overwritten before use"),
    less("pushed_left_mb", "fetched data that is cached and unused at the end of the run"),
    less("verify_written_mb", "written data to be verified, in 10^6 bytes"),
    more("verify_verified_mb", "data read again and found correct"),
    more("verify_verified_share", "share of the written data that was verified, 0 to 1"),
    less("verify_overwritten_mb", "data overwritten before verification"),
    less("verify_forgotten_mb", "data not verified because the list of extents was full"),
    less("verify_left_mb", "unverified data at the end of the run"),
    more("verify_found", "reads that found other data than written"),
    more("verify_mended_mb", "data written again after a failed verification, in 10^6 bytes"),
    less("verify_doubted_mb", "verified data read again, because a misdirected write may have hit it, in 10^6 bytes"),
    more("scrub_passes", "number of scrub passes over all members, including the part of the current pass"),
    less("scrub_pass_h", "mean time of a whole pass; only if a pass ended"),
    more("scrub_read_mb", "data that the scrub read of each member, in 10^6 bytes"),
    more("scrub_found", "scrub reads that found sectors without the data of their last write"),
    less("scrub_unread_mb", "data that no member could deliver, in 10^6 bytes"),
    less("scrub_met", "requests that arrived during a scrub read"),
    less("scrub_met_ms_mean", "mean remaining time of the scrub read when a request arrived during it"),
    more("quiet_ms_max", "longest time without an arriving request, counted from a moment when the array was empty"),
    more("track_hit_share_max", "largest share of recent reads with a hit in the drive's buffer, at the eviction of a track, 0 to 1"),
    more("track_hits_max", "largest number of hits of a track at its eviction"),
    less("stop_pulls", "idle times before a spin-down, in which hosts were asked for all dirty data"),
    more("stop_pulls_answered", "stop_pulls after which at least one host had dirty data"),
    less("stop_pulls_written_mb", "data written because of stop_pulls, in 10^6 bytes"),
    less("faults_lost", "lost writes: reported as done, but without effect"),
    less("faults_torn", "torn writes: only the first sectors were written"),
    less("faults_misdirected", "misdirected writes: written at another address"),
    less("faults_wrong_mb", "sectors without the data of their last write, at the end of the run"),
    less("shingled_cleaned_bands", "bands that a drive with shingled tracks cleaned"),
    less("shingled_host_mb", "data that the host wrote to a drive with shingled tracks, in 10^6 bytes"),
    less("shingled_cache_mb", "data written to the persistent cache, with records and padding, in 10^6 bytes"),
    less("shingled_band_mb", "data written to bands, by cleaning or directly, in 10^6 bytes"),
    less("shingled_moved_mb", "valid data that a full persistent cache moved to the end of its log, in 10^6 bytes"),
    less("shingled_stall_s", "time in which writes waited because the persistent cache was full, in seconds"),
    less("shingled_cache_share", "share of the persistent cache in use at the end of the run, 0 to 1"),
    less("flash_written_mb", "data that a flash device received, in 10^6 bytes"),
    less("flash_past_cache_mb", "data that a flash device received while its write cache was full, in 10^6 bytes"),
    less("flash_wear_share", "share of the endurance of a flash device that the run used, 0 to 1"),
    more("flash_life_years", "years until the endurance of a flash device is used, if the load of the run went on"),
    more("ssd_hit_share", "share of the requested data that reads found on the flash device in front of the array, 0 to 1"),
    less("ssd_written_mb", "data of the host's writes that went to the flash device in front, in 10^6 bytes"),
    less("ssd_filled_mb", "data that reads of the array brought to the flash device in front, in 10^6 bytes"),
    less("ssd_bypassed_mb", "data of requests that passed by the flash device in front, in 10^6 bytes"),
    less("ssd_written_back_mb", "data that the cache in front wrote back to the array, in 10^6 bytes"),
    less("ssd_map_mb", "map and journal that the cache in front wrote to its flash device, in 10^6 bytes"),
    less("ssd_dirty_mb", "data that only the flash device in front has, at the end of the run, in 10^6 bytes"),
    less("ssd_waited", "requests that waited for room in the cache in front"),
    less("ssd_lost_mb", "data that were lost with the flash device in front, in 10^6 bytes"),
    less("slow_s", "time in which a drive was slow, in seconds"),
    less("slow_stalls", "stalls of a drive"),
    less("slow_recovered", "reads of bad sectors that the drive recovered by retries"),
    less("slow_unreadable", "reads of bad sectors that the drive gave up after the time of its error recovery control"),
    less("late_io", "member I/Os later than the policy against slow members allows"),
    more("late_read_around", "reads of late or resting members that the other members answered first"),
    less("late_member_io", "member I/Os that these reads needed"),
    more("late_rewritten", "unreadable extents that were computed from the other members and written again"),
    less("late_failed", "members that the policy has failed because of a timeout"),
    less("late_sit_outs", "times that a slow member sat out of reads"),
    more("background_free_mb", "background requests served in rotational latency or idle time of the arm, in 10^6 bytes"),
    more("background_idle_mb", "background requests served while the drive was idle, in 10^6 bytes"),
    less("background_late_mb", "background requests served late or because there were too many, so that other requests waited, in 10^6 bytes"),
    more("freeblock_pulled_mb", "data written by hosts because a drive asked for dirty data on the arm's way, in 10^6 bytes"),
    more("freeblock_read_mb", "data read for the scan of a drive in the rotational latency of requests, in 10^6 bytes"),
    more("freeblock_mb_per_s", "scan rate in 10^6 bytes a second, until the end of the scan or of the run"),
    more("freeblock_potential_share", "this rate as a share of the sequential rate of the drive, 0 to 1"),
    more("freeblock_scanned_share", "share of the drive that the scan has read, 0 to 1"),
    less("freeblock_scan_s", "end of the scan, or of the run if the scan had not ended"),
    less("controller_reads", "reads of existing addresses"),
    more("controller_read_hits", "reads that memory answered at once"),
    more("controller_read_hit_share", "share of the reads that memory answered at once, 0 to 1"),
    more("controller_writes_absorbed", "writes that memory accepted"),
    less("controller_read_aheads", "I/Os that read ahead"),
    less("controller_destages", "I/Os that write dirty data"),
    less("controller_destaged_mb", "data of these I/Os, in 10^6 bytes"),
    less("xor_reads", "reads of smart disks, one per piece"),
    less("xor_writes", "plain writes of smart disks, one per piece"),
    less("xor_xdws", "XDWRITE commands"),
    less("xor_xpws", "XPWRITE commands"),
    less("xor_xdw_access_ms_mean", "mean seek and rotational latency of an XDWRITE"),
    less("xor_xpw_access_ms_mean", "mean seek and rotational latency of an XPWRITE"),
    less("xor_utilisation_mean", "share of the time in which a smart disk's arm was busy, on average"),
    less("xor_utilisation_max", "the same of the busiest disk"),
    less("xor_forced_idle_share_mean", "share of the time in which commands waited and none was allowed to begin, on average over disks"),
    less("xor_forced_idle_share_max", "the same of the disk with the largest value"),
    less("xor_without_choice", "commands begun because no other kind was allowed"),
    less("xor_segments_in_use_mean", "buffer segments in use, on average over time and disks"),
    less("xor_results_mean", "segments that keep an XOR result, on average over time and disks"),
    less("xor_xpw_queue_mean", "waiting XPWRITE commands, on average over time and disks"),
    less("volume_ios_per_read", "member I/Os for each read"),
    less("volume_dummy_kib_per_read", "parity in KiB per read that is read only to close gaps"),
    less("volume_ios_per_write", "member I/Os for each write"),
    less("volume_pre_reads_per_write", "reads before each write"),
    less("volume_row_wait_ms_mean", "mean time that a write waits for other writes of its row of chunks"),
    more("volume_full_stripe_share", "parts of rows whose data is written whole, among all parts that were written or recovered"),
    less("volume_read_modify_write_share", "parts of rows whose parity follows from old data and old parity"),
    less("volume_reconstruct_write_share", "parts of rows whose parity follows from the unchanged data"),
    less("volume_recover_share", "parts of rows that need lost data to be computed"),
    less("volume_unprotected_share", "parts of rows that have lost their parity"),
    less("volume_rewrite_share", "share of member writes to sectors that the same request has just read, among all writes that wait for reads"),
    less("volume_rewrite_rotation_ms_mean", "mean rotational latency of these writes"),
    less("volume_record_writes", "writes of superblocks and of the bitmap to members of an array like md"),
    less("volume_other_write_rotation_ms_mean", "mean rotational latency of the other writes that wait for reads"),
    less("volume_shifts_down", "shifts of an array with gears to the low gear, which stop members"),
    less("volume_shifts_up", "shifts to the high gear, which start members"),
    less("volume_high_gear_share", "share of the time in the high gear, in which all members work"),
    less("volume_falling_gear_share", "share in shifts down: all members work, until the soft state is up to date"),
    more("volume_low_gear_share", "share of the time in the low gear, in which members are in standby"),
    less("volume_rising_gear_share", "share of the time in shifts up: all members turn until the members that were in standby are up to date"),
    less("files_data_requests", "requests for the disk images of guests"),
    less("files_metadata_reads", "reads of file-system metadata"),
    less("files_metadata_writes", "writes of file-system metadata in place (not to the journal)"),
    less("files_log_writes", "writes to the journal of the file system"),
    less("files_flushes", "flushes of the device that the file system needed"),
    less("device_flushes", "flushes sent to a device without FUA, with the flushes after forced writes"),
    less("volume_shift_copied_mb", "data copied by shifts, in 10^6 bytes"),
    more("pool_hit_share", "share of the records of reads that were in memory (ARC or dirty), 0 to 1"),
    less("pool_read_ahead_mb", "records read ahead, in 10^6 bytes"),
    less("pool_reads_for_writes", "records read because a write changed a part of them"),
    less("pool_groups", "transaction groups written"),
    less("pool_group_written_mb", "records written by transaction groups, before compression, in 10^6 bytes"),
    less("pool_metadata_written_mb", "metadata written by transaction groups with all copies, in 10^6 bytes"),
    less("pool_delayed_ms", "total delay of writers because of dirty data, without waits for a full pool"),
    less("pool_log_commits", "commits of the intent log"),
    more("pool_l2arc_hit_share", "share of the records that were not in memory and came from the cache on flash (L2ARC), 0 to 1"),
    less("pool_l2arc_written_mb", "records written into the cache on flash, in 10^6 bytes"),
    less("pool_l2arc_headers_mb", "memory of the headers of records in the cache on flash, in 10^6 bytes"),
    less("pool_processor_ms", "time of the processor for records, all threads and callers together"),
    less("pool_drive_ios", "I/Os of all drives, after neighbours have joined"),
    more("pool_joined_ios", "I/Os that joined a neighbour"),
    less("pool_drive_read_mb", "data read from all drives, in 10^6 bytes, without gaps between joined reads"),
    less("pool_drive_written_mb", "data, parity and metadata written to all drives, in 10^6 bytes"),
    more("pool_free_run_mb_mean", "mean length of a run of free space, in 10^6 bytes"),
    less("pool_written_in_place", "records written over their old place because no free run was long enough"),
    more("pool_scrub_share", "share of the records that the scrub has read in the run"),
    more("pool_scrub_mb_per_s", "data read by the scrub, in 10^6 bytes a second, without parity and copies"),
    less("pool_scrub_hours", "hours of a scrub of all records at the pace of the run"),
];

/// The name of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadingName {
    /// Name in reports.
    pub name: &'static str,
    /// Meaning of the reading, for the reference page.
    pub meaning: &'static str,
    /// True if a larger value is better.
    pub more_is_better: bool,
}

/// One number that a layer has counted since the beginning of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterReading {
    /// A name from [`READINGS`].
    pub name: &'static str,
    /// Value in the unit of the name.
    pub value: f64,
}

/// The readings of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerReadings {
    /// Kind of the layer, such as `link fc-al`.
    pub layer: String,
    /// Readings in the order of display.
    pub readings: Vec<CounterReading>,
}

impl LayerReadings {
    /// Creates the readings of `layer`.
    ///
    /// # Panics
    /// If a name is not in [`READINGS`].
    pub fn new(layer: impl Into<String>, readings: &[(&'static str, f64)]) -> LayerReadings {
        let reading = |&(name, value): &(&'static str, f64)| {
            assert!(
                READINGS.iter().any(|known| known.name == name),
                "`{name}` is not among the readings"
            );
            CounterReading { name, value }
        };
        LayerReadings {
            layer: layer.into(),
            readings: readings.iter().map(reading).collect(),
        }
    }
}

const fn less(name: &'static str, meaning: &'static str) -> ReadingName {
    ReadingName {
        name,
        meaning,
        more_is_better: false,
    }
}

const fn more(name: &'static str, meaning: &'static str) -> ReadingName {
    ReadingName {
        name,
        meaning,
        more_is_better: true,
    }
}
