//! The counters of a layer by name, for reports.

/// All names of readings, one per line. Reports and metrics derive from this list. A name ends with
/// the unit.
#[rustfmt::skip]
pub const READINGS: &[ReadingName] = &[
    less("replay_duration_ratio", "from the first request of a replayed trace to the last, over the same in the trace"),
    less("replay_outstanding_trace_mean", "requests that the trace had outstanding when one came, on average"),
    less("replay_outstanding_mean", "the same in the replay"),
    less("replay_outstanding_trace_p90", "nine requests in ten found no more than this outstanding in the trace"),
    less("replay_outstanding_p90", "the same in the replay"),
    less("replay_outstanding_error_mean", "mean difference between the two at a request, without its sign"),
    less("replay_outstanding_bias", "mean difference with its sign: above 0 if the replay has more"),
    less("replay_outstanding_error_max", "the largest difference at a request"),
    less("replay_outstanding_distance", "area between the two distributions: how far a request is moved on average to make one of the other"),
    less("link_utilisation", "share of the time in which a lane was busy, on average over lanes"),
    less("link_wait_ms_mean", "mean time between a transfer's offer and its begin"),
    less("link_wait_ms_max", "the longest of these times"),
    less("link_transfers", "commands, readinesses, data and statuses"),
    less("link_tenancies", "how often a port won the link"),
    less("link_payload_mb", "data, in 10^6 bytes"),
    less("link_overhead_mb", "everything else that was sent"),
    less("link_to_members_mb", "data from the host to members"),
    less("link_to_host_mb", "data from members to the host"),
    less("link_between_members_mb", "data from member to member"),
    more("memory_hit_share", "pages that reads found in the page cache, of all that they asked for, 0 to 1"),
    less("memory_read_ahead_mb", "what was read beside what was asked for, in 10^6 bytes"),
    more("memory_read_ahead_used_share", "the share of that which was used, 0 to 1"),
    less("memory_read_ahead_wasted_mb", "what went without having been used"),
    less("memory_dirtied_mb", "what writes made dirty that was clean"),
    less("memory_written_background_mb", "what was written back because too much was dirty"),
    less("memory_written_periodic_mb", "what was written back because it had been dirty for long"),
    less("memory_written_throttled_mb", "what those wrote back who made pages dirty"),
    less("memory_written_sync_mb", "what fsync, O_SYNC and O_DIRECT wrote back"),
    less("memory_written_reclaim_mb", "what was written back because memory was short"),
    less("memory_written_pulled_mb", "what was written back because storage asked for it"),
    less("memory_pull_asked_mb", "what PULL of any has asked this cache for, in 10^6 bytes"),
    less("memory_pull_refused_mb", "the part of that for which nothing was dirty that was not being written already; shared memory asks hosts for it"),
    less("memory_dirty_mb", "what is dirty when the run ends"),
    less("memory_throttled_ms", "how long those were made to wait, in all, who made pages dirty"),
    less("stage_requests", "requests of all hosts that went down through what they share"),
    less("stage_wait_ms_mean", "mean time until its processor took a request"),
    less("stage_wait_ms_max", "the longest of these times"),
    less("stage_utilisation", "share of the time in which its processor worked"),
    more("stage_mhz_mean", "its frequency, on average over requests, where cost is a model of cycles"),
    less("stage_busy_share", "the same model: share of the time in which the processor worked and did not wait"),
    less("cooperation_asked", "reads that were asked of another host"),
    more("cooperation_served", "reads that another host has sent"),
    more("cooperation_served_mb", "what these brought, in 10^6 bytes"),
    more("cooperation_served_share", "their share of the reads that no host's own cache could answer, 0 to 1"),
    less("cooperation_refused", "reads that were asked of a host that had not all of it, or changed it"),
    less("cooperation_silent", "reads to which no answer came"),
    less("signals_pulls", "how often storage asked hosts for what is dirty"),
    less("signals_pulled_mb", "what it asked for, in 10^6 bytes"),
    less("signals_pushes", "how often storage offered hosts what it holds"),
    less("signals_pushed_mb", "what it offered"),
    less("signals_held_ms", "how long storage held requests, in all, until hosts had fetched what it offered"),
    more("pushed_hits", "reads that hosts answered with what storage had pushed"),
    more("pushed_hit_share", "their share of the reads that page caches could not answer, 0 to 1"),
    less("pushed_fetched_mb", "what hosts fetched because storage had offered it, in 10^6 bytes"),
    less("pushed_refused_mb", "what was offered and not fetched: it was there, was being written, found no room, or is no whole page"),
    more("pushed_used_mb", "what was fetched and used"),
    less("pushed_wasted_mb", "what was fetched and went unused: evicted, or overwritten"),
    less("pushed_left_mb", "what was fetched, and is there unused when the run ends"),
    less("verify_written_mb", "what was written and is to be verified, in 10^6 bytes"),
    more("verify_verified_mb", "what was read again, and found to be what was written"),
    more("verify_verified_share", "its share of what was written, 0 to 1"),
    less("verify_overwritten_mb", "what was written anew before it was verified"),
    less("verify_forgotten_mb", "what was not verified as no more could be kept"),
    less("verify_left_mb", "what is unverified when the run ends"),
    more("verify_found", "reads that have found something else than was written"),
    more("verify_mended_mb", "what was written again for that"),
    less("verify_doubted_mb", "what had been verified and was read once more, since a write may have gone there that belongs elsewhere"),
    more("scrub_passes", "how often all members were read from end to end while the array was idle, with the part of the pass under way"),
    less("scrub_pass_h", "how long a whole pass took, on average; only if one ended"),
    more("scrub_read_mb", "what was read of each member for that, in 10^6 bytes"),
    more("scrub_found", "reads for that which found sectors that do not hold what was written to them last"),
    less("scrub_unread_mb", "what no member has answered for"),
    less("scrub_met", "requests that came while the scrub was reading"),
    less("scrub_met_ms_mean", "how long that read went on then, on average"),
    more("quiet_ms_max", "the longest time for which no request came to the array, of those behind which none was inside"),
    more("track_hit_share_max", "the greatest share of reads that had found their track in the drive's buffer of late, when a track was about to leave it, 0 to 1"),
    more("track_hits_max", "the most reads that had found a track that was about to leave"),
    less("stop_pulls", "idle times about which hosts were asked for all that is dirty, before platters stop"),
    more("stop_pulls_answered", "those about which somebody had something"),
    less("stop_pulls_written_mb", "what came of it, in 10^6 bytes"),
    less("faults_lost", "writes of a drive that changed nothing, and were reported as done"),
    less("faults_torn", "those of which only the first sectors were written"),
    less("faults_misdirected", "those that went elsewhere"),
    less("faults_wrong_mb", "what does not hold what was written to it last, when the run ends"),
    more("background_free_mb", "what a drive has served of requests for which nobody waits in what its arm would else have waited, in 10^6 bytes"),
    more("background_idle_mb", "the same where nothing else had come for a time"),
    less("background_late_mb", "the same of those that had waited too long, or were too many: others waited for them"),
    more("freeblock_pulled_mb", "what hosts have written that were asked for what they have dirty where the arm will be, in 10^6 bytes"),
    more("freeblock_read_mb", "what a drive has read for its scan in the rotational latency of requests, in 10^6 bytes"),
    more("freeblock_mb_per_s", "the same in a second, until the scan or the run ends"),
    more("freeblock_potential_share", "its share of what the drive delivers where it is read in order, 0 to 1"),
    more("freeblock_scanned_share", "the share of the drive that the scan has read, 0 to 1"),
    less("freeblock_scan_s", "when the scan ended; when the run does, if it has not"),
    less("controller_reads", "reads of addresses that there are"),
    more("controller_read_hits", "those that memory answered at once"),
    more("controller_read_hit_share", "their share, 0 to 1"),
    more("controller_writes_absorbed", "writes that memory took"),
    less("controller_read_aheads", "I/Os that read ahead"),
    less("controller_destages", "I/Os that write what is dirty"),
    less("controller_destaged_mb", "what they write, in 10^6 bytes"),
    less("xor_reads", "reads of smart disks, one a piece"),
    less("xor_writes", "plain writes of smart disks, one a piece"),
    less("xor_xdws", "XDWRITE commands"),
    less("xor_xpws", "XPWRITE commands"),
    less("xor_xdw_access_ms_mean", "mean seek and rotational latency of an XDWRITE"),
    less("xor_xpw_access_ms_mean", "mean seek and rotational latency of an XPWRITE"),
    less("xor_utilisation_mean", "share of the time in which a smart disk's arm was busy, on average"),
    less("xor_utilisation_max", "the same of the busiest disk"),
    less("xor_forced_idle_share_mean", "share of the time in which commands waited and none might begin, on average over disks"),
    less("xor_forced_idle_share_max", "the same of the disk where it was largest"),
    less("xor_without_choice", "commands that were begun because no other kind might"),
    less("xor_segments_in_use_mean", "buffer segments in use, on average over time and disks"),
    less("xor_results_mean", "segments that keep an XOR result, on average over time and disks"),
    less("xor_xpw_queue_mean", "XPWRITE commands that wait, on average over time and disks"),
    less("volume_ios_per_read", "member I/Os for each read"),
    less("volume_dummy_kib_per_read", "parity in KiB that each read reads for nobody, to close gaps"),
    less("volume_ios_per_write", "member I/Os for each write"),
    less("volume_pre_reads_per_write", "reads for each write that come before what it writes"),
    less("volume_row_wait_ms_mean", "mean time that a write waits for others of its row of chunks"),
    more("volume_full_stripe_share", "parts of rows whose data is written whole, of all that were written or recovered"),
    less("volume_read_modify_write_share", "those whose parity follows from old data and old parity"),
    less("volume_reconstruct_write_share", "those whose parity follows from the data that stays"),
    less("volume_recover_share", "those that need lost data to be computed"),
    less("volume_unprotected_share", "those that have lost their parity"),
    less("volume_rewrite_share", "writes of members where the same write has just read, of all that wait for reads"),
    less("volume_rewrite_rotation_ms_mean", "mean rotational latency of these"),
    less("volume_other_write_rotation_ms_mean", "mean rotational latency of the other writes that wait for reads"),
    less("volume_shifts_down", "shifts of an array with gears to its low one, which stop members"),
    less("volume_shifts_up", "shifts to its high one, which start them"),
    less("volume_high_gear_share", "share of the time in the high gear, in which all members work"),
    less("volume_falling_gear_share", "share in shifts down: all members work, until the soft state is up to date"),
    more("volume_low_gear_share", "share of the time in the low gear, in which members stand"),
    less("volume_rising_gear_share", "share in shifts up: all members turn, until those that stood are up to date"),
    less("files_data_requests", "requests for the data of files that are disks of guests"),
    less("files_metadata_reads", "reads of the metadata of their file system"),
    less("files_metadata_writes", "writes of these in their places"),
    less("files_log_writes", "writes to its journal"),
    less("files_flushes", "flushes of the device that it needed"),
    less("volume_shift_copied_mb", "what shifts copied, in 10^6 bytes"),
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
pub struct Reading {
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
    pub readings: Vec<Reading>,
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
            Reading { name, value }
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
