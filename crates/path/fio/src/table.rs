//! Table of all options of fio with their treatment. Parser, errors, reports and the reference page
//! use this table.

use crate::option::{OptionEntry, Read, Treatment};
use crate::readers as read;

const fn simulated(names: &'static [&'static str], read: Read, note: &'static str) -> OptionEntry {
    OptionEntry {
        names,
        treatment: Treatment::Simulated(read),
        note,
        files: None,
    }
}

const fn on_files(
    names: &'static [&'static str],
    read: Read,
    volume: &'static [&'static str],
    note: &'static str,
) -> OptionEntry {
    OptionEntry {
        names,
        treatment: Treatment::OnFiles(read, volume),
        note,
        files: None,
    }
}

const fn ignored(names: &'static [&'static str], note: &'static str) -> OptionEntry {
    OptionEntry {
        names,
        treatment: Treatment::Ignored,
        note,
        files: None,
    }
}

const fn refused(
    names: &'static [&'static str],
    off: &'static [&'static str],
    note: &'static str,
) -> OptionEntry {
    OptionEntry {
        names,
        treatment: Treatment::Refused(off),
        note,
        files: None,
    }
}

const ZERO: &[&str] = &["0"];
/// Engines that a job on files may name. All are simulated in the same way, with one call at a
/// time.
const FILE_ENGINES: &[&str] = &[
    "sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "io_uring", "posixaio",
];
const NEVER: &[&str] = &[];

/// All options.
pub(crate) const OPTIONS: &[OptionEntry] = &[
    simulated(&["name"], read::name, "the job's name in reports, in place of its section's"),
    simulated(
        &["rw", "readwrite"],
        read::rw,
        "read, write, trim, rw, readwrite, trimwrite and the same behind rand; `:n` as in fio",
    ),
    simulated(
        &["rw_sequencer"],
        read::rw_sequencer,
        "what the I/O between two random offsets of `rw=rand...:n` does: sequential or identical",
    ),
    simulated(&["rwmixread"], read::rwmixread, "percent of a mix that are reads; each I/O is drawn"),
    simulated(&["rwmixwrite"], read::rwmixwrite, "percent of a mix that are writes"),
    simulated(&["bs", "blocksize"], read::bs, "block size by direction, a multiple of 512"),
    simulated(
        &["bsrange", "blocksize_range"],
        read::bsrange,
        "sizes from the first to the second, in multiples of the first",
    ),
    simulated(&["bssplit"], read::bssplit, "sizes with their percentages"),
    simulated(
        &["ba", "blockalign"],
        read::blockalign,
        "random offsets are multiples of it; switches the random map off",
    ),
    simulated(
        &["size"],
        read::size,
        "bytes of the volume that the job works on, or a percentage; all behind the offset unless said",
    ),
    simulated(&["io_size", "io_limit"], read::io_size, "bytes to do, within `size`"),
    simulated(&["filesize"], read::filesize, "where the region ends; `size` is then only how much is done"),
    simulated(&["offset"], read::offset, "where the region begins: bytes or a percentage of the volume"),
    simulated(&["offset_increment"], read::offset_increment, "added for each further clone")
        .on_files(ZERO, "clones have files of their own"),
    simulated(
        &["offset_align"],
        read::offset_align,
        "percentages are rounded up to this; the smallest block unless said",
    ),
    simulated(&["number_ios"], read::number_ios, "end after so many I/Os"),
    simulated(&["loops"], read::loops, "repeat the job; with randrepeat the same offsets again"),
    simulated(
        &["random_distribution"],
        read::random_distribution,
        "random, zipf:theta[:center], pareto:h[:center], normal:percent[:center], zoned:..., zoned_abs:...; popular places are scattered, as in fio",
    ),
    simulated(
        &["percentage_random"],
        read::percentage_random,
        "percent of random I/O; the rest goes on where the last ended",
    ),
    simulated(&["norandommap"], read::norandommap, "offsets are drawn without regard to which were used"),
    simulated(&["softrandommap"], read::softrandommap, "do without a random map that would be too large"),
    simulated(
        &["randrepeat", "allrandrepeat"],
        read::randrepeat,
        "whether each loop draws the same offsets again; the seed is the stack's in both cases",
    ),
    simulated(&["randseed"], read::randseed, "a seed in place of the stack's; the numbers are not fio's own"),
    simulated(
        &["ioengine"],
        read::ioengine,
        "sync, psync, vsync, pvsync, pvsync2, mmap, splice, libpmem, dev-dax: one I/O at a time; libaio, io_uring, io_uring_cmd, posixaio, solarisaio, windowsaio, sg, null, nbd, rbd: iodepth at a time",
    )
    .on_files(FILE_ENGINES, "one call at a time is simulated"),
    simulated(&["iodepth"], read::iodepth, "I/Os in flight; 1 with synchronous engines"),
    simulated(&["iodepth_low"], read::iodepth_low, "a full queue drains to this before it is filled again"),
    simulated(
        &["iodepth_batch_complete_min", "iodepth_batch_complete"],
        read::reap_least,
        "completions that a full queue waits for at least",
    ),
    simulated(
        &["io_submit_mode"],
        read::io_submit_mode,
        "inline: a job ahead of its rate waits for its I/O first; offload: it does not",
    ),
    simulated(&["fsync", "fdatasync"], read::fsync, "a flush after so many writes"),
    simulated(&["end_fsync", "fsync_on_close"], read::end_fsync, "a flush when a job that wrote has ended"),
    simulated(&["sync"], read::sync, "writes are on the medium when they complete (force unit access)"),
    simulated(&["prio"], read::prio, "level of the I/O priority, 0 to 7")
        .on_files(NEVER, "calls have no I/O priority here"),
    simulated(&["prioclass"], read::prioclass, "1 real-time, 2 best-effort, 3 idle")
        .on_files(NEVER, "calls have no I/O priority here"),
    simulated(
        &["thinktime"],
        read::thinktime,
        "pause after `thinktime_blocks`, once everything in flight is done",
    ),
    simulated(&["thinktime_blocks"], read::thinktime_blocks, "blocks between two pauses; 1 unless said"),
    simulated(
        &["thinktime_blocks_type"],
        read::thinktime_blocks_type,
        "whether completed or issued blocks count: complete, issue",
    ),
    simulated(&["thinktime_iotime"], read::thinktime_iotime, "pause after so long, too"),
    simulated(
        &["direct"],
        read::direct,
        "I/O passes the page cache of `[host.memory]` by; without one all does",
    ),
    simulated(&["buffered"], read::buffered, "the opposite of `direct`"),
    simulated(&["rate"], read::rate, "bytes a second, by direction"),
    simulated(&["rate_iops"], read::rate_iops, "blocks of the smallest size a second, by direction"),
    simulated(&["rate_process"], read::rate_process, "linear or poisson"),
    simulated(&["rate_ignore_thinktime"], read::rate_ignore_thinktime, "a pause is not made up for"),
    simulated(&["runtime", "timeout"], read::runtime, "no I/O is issued after so long"),
    simulated(
        &["time_based"],
        read::time_based,
        "go on to the end of `runtime`; `number_ios` then does not count, as in fio",
    ),
    simulated(
        &["ramp_time"],
        read::ramp_time,
        "simulated before `runtime` begins and left out of the results",
    ),
    simulated(
        &["startdelay"],
        read::startdelay,
        "from the beginning of the run, as in fio; a range is drawn from",
    ),
    simulated(&["numjobs"], read::numjobs, "clones of the job"),
    simulated(&["stonewall", "wait_for_previous"], read::stonewall, "wait for all jobs before this one"),
    simulated(&["wait_for"], read::wait_for, "wait for all clones of the job of that name"),
    simulated(&["exitall"], read::exitall, "when one job ends, so do the others"),
    simulated(&["exit_what"], read::exit_what, "which: group, stonewall or all"),
    simulated(&["group_reporting"], read::group_reporting, "one result for a group"),
    simulated(&["new_group"], read::new_group, "a group begins here"),
    simulated(&["percentile_list"], read::percentile_list, "percentiles that are reported"),
    simulated(&["clat_percentiles"], read::clat_percentiles, "whether clat_ns has percentiles"),
    simulated(&["lat_percentiles"], read::lat_percentiles, "whether lat_ns has percentiles"),
    simulated(&["kb_base"], read::kb_base, "1000 or 1024: what k, m, g multiply by"),
    on_files(&["directory"], read::directory, NEVER, "where the job's files are"),
    on_files(
        &["filename"],
        read::filename,
        NEVER,
        "the job's files, with `:` between them, which its clones share; without it each clone has its own, called JOB.CLONE.FILE",
    ),
    on_files(
        &["nrfiles"],
        read::nrfiles,
        &["0", "1"],
        "how many files each clone has; `size` is split over them",
    ),
    on_files(
        &["file_service_type"],
        read::file_service_type,
        &["0", "1"],
        "roundrobin, sequential or random: which file is next; `:n` for n I/Os to each",
    ),
    on_files(
        &["overwrite"],
        read::overwrite,
        NEVER,
        "files that are written are laid out before the run; without it they grow as they are written",
    ),
    on_files(
        &["create_on_open"],
        read::create_on_open,
        NEVER,
        "files are made when they are opened: for jobs that only write",
    ),
    ignored(&["description"], "text for people"),
    ignored(&["filename_format"], "every job works on the volume")
        .on_files(NEVER, "files are called JOB.CLONE.FILE, or what filename= says"),
    ignored(&["unique_filename"], "every job works on the volume")
        .on_files(&["1"], "clones share what filename= names"),
    ignored(&["invalidate"], "there is no page cache")
        .on_files(ZERO, "what an earlier job left in memory stays there"),
    ignored(&["fadvise_hint"], "there is no page cache")
        .on_files(&["0", "none"], "read-ahead is that of [host.memory]"),
    ignored(&["pre_read"], "there is no page cache")
        .on_files(ZERO, "read the files in a job of their own, and go on behind a stonewall"),
    ignored(
        &[
            "thread",
            "nice",
            "cpumask",
            "cpus_allowed",
            "cpus_allowed_policy",
            "numa_cpu_nodes",
            "numa_mem_policy",
            "uid",
            "gid",
            "cgroup",
            "cgroup_nodelete",
            "cgroup_weight",
            "lockmem",
            "mem",
            "iomem",
            "hugepage-size",
            "iomem_align",
        ],
        "the host's processors and memory take no time here",
    ),
    ignored(&["create_serialize", "allow_mounted_write"], "no files are made")
        .on_files(&["0", "1"], "it changes nothing"),
    ignored(&["create_fsync"], "no files are made").on_files(ZERO, "laying files out is not part of the run"),
    ignored(&["allow_file_create"], "no files are made").on_files(&["1"], "files are made"),
    ignored(&["fallocate"], "no files are made").on_files(&["none", "0"], "files grow as they are written"),
    ignored(&["unlink", "unlink_each_loop"], "no files are made").on_files(ZERO, "files stay"),
    ignored(&["openfiles"], "no files are made").on_files(NEVER, "all files of a job are open"),
    ignored(&["lockfile"], "no files are made").on_files(&["none"], "files are not locked"),
    ignored(
        &["iodepth_batch", "iodepth_batch_submit", "iodepth_batch_complete_max"],
        "submitting takes no time, and all is submitted before a job waits",
    ),
    ignored(&["thinktime_spin"], "part of thinktime, whatever the processor does"),
    ignored(
        &["random_generator"],
        "offsets come from one generator of good quality, and a map needs no memory for one block size",
    ),
    ignored(&["rate_cycle"], "rates are kept by the I/O"),
    ignored(
        &[
            "zero_buffers",
            "refill_buffers",
            "scramble_buffers",
            "buffer_pattern",
            "buffer_compress_percentage",
            "buffer_compress_chunk",
            "dedupe_percentage",
            "dedupe_mode",
            "dedupe_working_set_percentage",
            "dedupe_global",
            "write_hint",
        ],
        "contents of blocks are not simulated",
    ),
    ignored(
        &[
            "verify_interval",
            "verify_offset",
            "verify_pattern",
            "verify_fatal",
            "verify_dump",
            "verify_async",
            "verify_async_cpus",
            "do_verify",
            "verify_state_load",
            "verify_state_save",
        ],
        "only with verify, which is refused",
    ),
    ignored(
        &[
            "write_bw_log",
            "write_lat_log",
            "write_iops_log",
            "write_hist_log",
            "write_iolog",
            "per_job_logs",
            "bwavgtime",
            "iopsavgtime",
            "log_entries",
            "log_avg_msec",
            "log_hist_msec",
            "log_hist_coarseness",
            "log_max_value",
            "log_offset",
            "log_prio",
            "log_compression",
            "log_compression_cpus",
            "log_store_compressed",
            "log_unix_epoch",
            "log_alternate_epoch",
            "log_alternate_epoch_clock_id",
        ],
        "`fullstroke run --log` writes every request",
    ),
    ignored(
        &[
            "slat_percentiles",
            "block_error_percentiles",
            "significant_figures",
            "disk_util",
            "unified_rw_reporting",
            "unit_base",
            "stats",
            "gtod_reduce",
            "gtod_cpu",
            "clocksource",
            "disable_lat",
            "disable_clat",
            "disable_slat",
            "disable_bw_measurement",
        ],
        "all results are reported",
    ),
    ignored(&["continue_on_error", "ignore_error", "error_dump", "exitall_on_error"], "no I/O fails"),
    ignored(&["ioscheduler"], "the stack's host decides"),
    ignored(
        &[
            "userspace_reap",
            "hipri",
            "hipri_percentage",
            "fixedbufs",
            "registerfiles",
            "sqthread_poll",
            "sqthread_poll_cpu",
            "nonvectored",
            "uncached",
            "nowait",
            "force_async",
            "cmd_type",
            "cmdprio_class",
            "cmdprio",
        ],
        "ways of submitting take no time here",
    ),
    refused(
        &["verify", "verify_only", "verify_backlog", "verify_backlog_batch", "experimental_verify"],
        &["0", "none"],
        "verification reads back what was written; describe those reads as a job of their own",
    ),
    refused(&["opendir", "file_append"], &["0", "1"], "every job works on one volume"),
    refused(&["fill_device", "fill_fs"], ZERO, "give size= instead"),
    refused(&["create_only"], ZERO, "there would be no I/O"),
    refused(
        &["bs_unaligned", "blocksize_unaligned", "bs_is_seq_rand"],
        ZERO,
        "give the sizes with bs=, bsrange= or bssplit=",
    ),
    refused(&["write_barrier", "sync_file_range", "atomic"], ZERO, "fsync= and sync= are simulated"),
    refused(&["serialize_overlap"], ZERO, "I/Os that overlap are not held back"),
    refused(
        &["trim_percentage", "trim_verify_zero", "trim_backlog", "trim_backlog_batch"],
        ZERO,
        "use rw=trim, randtrim or trimwrite",
    ),
    refused(
        &[
            "read_iolog",
            "read_iolog_chunked",
            "replay_no_stall",
            "replay_redirect",
            "replay_scale",
            "replay_align",
            "replay_time_scale",
            "replay_skip",
            "merge_blktrace_file",
            "merge_blktrace_scalars",
            "merge_blktrace_iters",
        ],
        NEVER,
        "replay the log with `fullstroke run --trace`",
    ),
    refused(&["exec_prerun", "exec_postrun"], NEVER, "no programs are run"),
    refused(
        &[
            "zonemode",
            "zonesize",
            "zonecapacity",
            "zonerange",
            "zoneskip",
            "read_beyond_wp",
            "max_open_zones",
            "job_max_open_zones",
            "ignore_zone_limits",
            "zone_reset_threshold",
            "zone_reset_frequency",
        ],
        &["0", "none"],
        "zones are not simulated",
    ),
    refused(&["rate_min", "rate_iops_min", "max_latency"], ZERO, "a job does not end for being slow"),
    refused(
        &["latency_target", "latency_window", "latency_percentile", "latency_run"],
        ZERO,
        "compare several depths with `fullstroke compare`",
    ),
    refused(
        &["flow", "flow_id", "flow_sleep", "flow_watermark"],
        ZERO,
        "jobs do not regulate each other; use rate= or rate_iops=",
    ),
    refused(
        &["steadystate", "steadystate_duration", "steadystate_ramp_time", "ss", "ss_dur", "ss_ramp"],
        ZERO,
        "say how long with runtime=",
    ),
    refused(
        &["cmdprio_percentage", "cmdprio_bssplit"],
        ZERO,
        "use prio= and prioclass= in jobs of their own",
    ),
    refused(&["profile"], NEVER, "write the jobs out"),
];
