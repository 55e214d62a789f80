//! Parsers of the simulated options: each function reads a value into the job. Values with their
//! own grammar are in `grammar.rs`.

mod files;
mod zones;

use crate::grammar;
use crate::job::{
    Blocks, Engine, ExitWhat, FioJob, IoDirection, JobDirections, Sequencer, ThinkAfter,
};
use crate::option::OptionValue;
use crate::units::{TimeUnit, amount, each_direction, integer, range, whole_time};
use fullstroke_contract::PriorityClass;
use fullstroke_contract::{Reason, reason};
use fullstroke_units::Duration;

pub(crate) use files::*;
pub(crate) use zones::*;

type Done = Result<(), Reason>;

impl<'a> OptionValue<'a> {
    pub(crate) fn required(&self) -> Result<&'a str, Reason> {
        self.text
            .filter(|text| !text.is_empty())
            .ok_or_else(|| Reason::new("there is no value; write option=value"))
    }

    fn integer(&self) -> Result<u64, Reason> {
        integer(self.required()?, self.kb_base)
    }

    fn within(&self, low: u64, high: u64) -> Result<u64, Reason> {
        let number = self.integer()?;
        if (low..=high).contains(&number) {
            Ok(number)
        } else {
            Err(reason!("found {number}; expected {low} to {high}"))
        }
    }

    /// Parses a switch. An option without a value is on.
    fn switch(&self) -> Result<bool, Reason> {
        match self.text {
            None | Some("1") => Ok(true),
            Some("0") => Ok(false),
            Some(other) => Err(reason!("found `{other}`; expected 0 or 1")),
        }
    }

    fn choice<T: Copy>(&self, known: &[(&str, T)]) -> Result<T, Reason> {
        let text = self.required()?;
        known
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, value)| *value)
            .ok_or_else(|| {
                let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                reason!("found `{text}`; expected one of {}", names.join(", "))
            })
    }

    /// Parses a time, and notes a fraction that is cut off.
    fn time(&self, job: &mut FioJob, bare: TimeUnit) -> Result<Duration, Reason> {
        let (span, cut) = whole_time(self.required()?, bare)?;
        if cut {
            note_cut(job, span);
        }
        Ok(span)
    }

    /// Parses rates by direction. A rate of 0 is no limit.
    fn rates(&self) -> Result<[Option<u64>; 3], Reason> {
        let rates = each_direction(self.required()?, |part| integer(part, self.kb_base))?;
        Ok(rates.map(|rate| rate.filter(|number| *number > 0)))
    }

    fn sizes(&self) -> Result<[Option<u64>; 3], Reason> {
        each_direction(self.required()?, |part| {
            match integer(part, self.kb_base)? {
                0 => Err("found 0; expected at least 1".into()),
                number => Ok(number),
            }
        })
    }
}

/// Notes that fio cuts a fraction off.
fn note_cut(job: &mut FioJob, span: Duration) {
    job.notes.push(format!(
        "fio cuts the fraction off, so this is {} s",
        span.as_secs_f64()
    ));
}

/// Replaces the old values for which a new value is given.
fn replace<T: Clone>(old: &mut [T; 3], new: [Option<T>; 3]) {
    old.iter_mut().zip(new).for_each(|(old, new)| {
        if let Some(new) = new {
            *old = new;
        }
    });
}

pub(crate) fn name(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    value.required()?.clone_into(&mut job.name);
    Ok(())
}

pub(crate) fn rw(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    let text = value.required()?;
    let (kind, modifier) = text
        .split_once(':')
        .map_or((text, None), |(kind, modifier)| (kind, Some(modifier)));
    let kinds = [
        ("read", JobDirections::Only(IoDirection::Read)),
        ("write", JobDirections::Only(IoDirection::Write)),
        ("trim", JobDirections::Only(IoDirection::Trim)),
        ("rw", JobDirections::Mixed),
        ("readwrite", JobDirections::Mixed),
        ("trimwrite", JobDirections::TrimThenWrite),
    ];
    let (plain, random) = kind
        .strip_prefix("rand")
        .map_or((kind, false), |plain| (plain, true));
    // Not every name has a random form: `randrw` exists, `randreadwrite` does not.
    let known =
        |(name, _): &&(&str, JobDirections)| *name == plain && !(random && *name == "readwrite");
    let Some((_, work)) = kinds.iter().find(known) else {
        return Err(reason!(
            "found `{kind}`; expected read, write, trim, rw, readwrite, trimwrite, or randread, randwrite, randtrim, \
             randrw, randtrimwrite"
        ));
    };
    (job.work, job.random) = (*work, random);
    job.modifier = modifier.map_or(Ok(0), |text| grammar::signed(text, value.kb_base))?;
    if random && job.modifier < 0 {
        return Err(reason!(
            "found `{text}`; with random I/O the number behind the colon is a count"
        ));
    }
    Ok(())
}

pub(crate) fn rw_sequencer(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    let known = [
        ("sequential", Sequencer::Sequential),
        ("identical", Sequencer::Identical),
    ];
    job.sequencer = value.choice(&known)?;
    Ok(())
}

pub(crate) fn rwmixread(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.read_percent = value.within(0, 100)?;
    Ok(())
}

pub(crate) fn rwmixwrite(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.read_percent = 100 - value.within(0, 100)?;
    Ok(())
}

pub(crate) fn bs(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    let sizes = value
        .sizes()?
        .map(|size| size.map(|bytes| Blocks::Range(bytes, bytes)));
    replace(&mut job.blocks, sizes);
    Ok(())
}

pub(crate) fn bsrange(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    let read = |part: &str| match range(part, |end| integer(end, value.kb_base))? {
        (0, _) => Err("found 0; expected at least 1".into()),
        // `range` also reads a single number, which `bsrange` does not take.
        (low, high) if part.contains(['-', ':']) => Ok(Blocks::Range(low, high)),
        _ => Err(reason!("found `{part}`; expected a range such as 4k-64k")),
    };
    // fio accepts both `,` and `/` between directions.
    let ranges = each_direction(&value.required()?.replace('/', ","), read)?;
    replace(&mut job.blocks, ranges);
    Ok(())
}

pub(crate) fn bssplit(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    let splits = each_direction(value.required()?, |part| {
        grammar::split(part, value.kb_base)
    })?;
    replace(
        &mut job.blocks,
        splits.map(|split| split.map(Blocks::Split)),
    );
    Ok(())
}

pub(crate) fn blockalign(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    let mut alignment = [4096; 3];
    replace(&mut alignment, value.sizes()?);
    job.alignment = Some(alignment);
    Ok(())
}

pub(crate) fn size(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.size = Some(amount(value.required()?, value.kb_base)?);
    Ok(())
}

pub(crate) fn io_size(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.io_size = Some(amount(value.required()?, value.kb_base)?);
    Ok(())
}

pub(crate) fn filesize(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    let (low, high) = range(value.required()?, |end| integer(end, value.kb_base))?;
    if low != high {
        return Err("found a range; the volume has one size, so set one size".into());
    }
    job.file_size = Some(low);
    Ok(())
}

pub(crate) fn offset(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.offset = amount(value.required()?, value.kb_base)?;
    Ok(())
}

pub(crate) fn offset_increment(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.offset_increment = amount(value.required()?, value.kb_base)?;
    Ok(())
}

pub(crate) fn offset_align(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.offset_align = value.integer()?;
    Ok(())
}

pub(crate) fn fill_device(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.fills = value.switch()?;
    Ok(())
}

pub(crate) fn number_ios(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.number_ios = Some(value.integer()?).filter(|number| *number > 0);
    Ok(())
}

pub(crate) fn loops(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    // 0 loops are one: the job runs at least once.
    job.loops = value.within(0, u64::MAX)?.max(1);
    Ok(())
}

pub(crate) fn random_distribution(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.distribution = grammar::distribution(value.required()?, value.kb_base)?;
    Ok(())
}

pub(crate) fn percentage_random(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    let read = |part: &str| match integer(part, value.kb_base)? {
        percent @ 0..=100 => Ok(percent),
        percent => Err(reason!("found {percent}; expected 0 to 100")),
    };
    replace(
        &mut job.percentage_random,
        each_direction(value.required()?, read)?,
    );
    Ok(())
}

pub(crate) fn norandommap(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.random_map = !value.switch()?;
    Ok(())
}

pub(crate) fn direct(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.direct = value.switch()?;
    Ok(())
}

pub(crate) fn buffered(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.direct = !value.switch()?;
    Ok(())
}

pub(crate) fn softrandommap(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.soft_random_map = value.switch()?;
    Ok(())
}

pub(crate) fn randrepeat(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.repeat = value.switch()?;
    Ok(())
}

pub(crate) fn randseed(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.seed = Some(value.integer()?);
    Ok(())
}

/// Engines that do something else than reads and writes of one target, with the reason why there is
/// nothing to simulate.
const OTHER_ENGINES: &[(&[&str], &str)] = &[
    (
        &["cpuio"],
        "burns processor time and does no I/O; remove the job",
    ),
    (
        &[
            "net",
            "netsplice",
            "rdmaio",
            "rdma",
            "librpma_apm_client",
            "librpma_apm_server",
            "librpma_gpspm_client",
            "librpma_gpspm_server",
        ],
        "sends data over a network and does no I/O to a disk",
    ),
    (
        &[
            "falloc",
            "ftruncate",
            "e4defrag",
            "filecreate",
            "filestat",
            "filedelete",
            "dircreate",
            "dirstat",
            "dirdelete",
            "fileoperations",
            "filexattr",
        ],
        "calls a file system without reads and writes; use a program of `fullstroke`, such as filebench",
    ),
    (
        &["rados", "http", "libhdfs", "dfs", "daos"],
        "stores objects in a service whose layout is not simulated",
    ),
    (&["page_fault"], "touches memory and does no I/O to a disk"),
    (&["exec"], "runs a program, and no programs are run"),
    (
        &["mtd", "libcufile", "libhipfile", "libzbc", "fusion-aw-sync"],
        "works on a device that is no disk of an array",
    ),
    (
        &["ime_psync", "ime_psyncv", "ime_aio", "sheepdog"],
        "works on a cluster whose layout is not simulated; name the engine of a block device",
    ),
    (
        &["cpp_null", "external"],
        "is an engine of its own, loaded from a file; null does the same I/O as cpp_null",
    ),
];

pub(crate) fn ioengine(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    let text = value.required()?;
    job.engine = match text {
        "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" | "mmap" | "splice" | "libpmem"
        | "dev-dax" | "pmemblk" | "gfapi" => Engine::Synchronous,
        "libaio" | "posixaio" | "solarisaio" | "windowsaio" | "sg" | "null" | "nbd" | "rbd"
        | "libiscsi" | "nfs" | "gfapi_async" | "guasi" | "xnvme" | "libblkio" | "sgunmap" => {
            Engine::Queued
        }
        "io_uring" | "io_uring_cmd" => Engine::QueuedFlush,
        _ => {
            // `external:FILE` loads an engine.
            let kind = text.split(':').next().unwrap_or(text);
            let other = OTHER_ENGINES
                .iter()
                .find(|(names, _)| names.contains(&kind))
                .map(|(_, why)| *why);
            return Err(match other {
                Some(why) => reason!("found `{text}`, which {why}"),
                None => reason!(
                    "found `{text}`, which does not work on a block device here; expected psync (one I/O at a time), or \
                     libaio or io_uring (iodepth at a time)"
                ),
            });
        }
    };
    text.clone_into(&mut job.engine_name);
    Ok(())
}

/// Largest queue depth. A larger number is probably a typing error.
const DEPTH_MAX: u64 = 1 << 16;
const CLONES_MAX: u64 = 4096;

pub(crate) fn iodepth(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.depth = value.within(1, DEPTH_MAX)? as u32;
    Ok(())
}

pub(crate) fn iodepth_low(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.depth_low = Some(value.within(0, DEPTH_MAX)? as u32).filter(|low| *low > 0);
    Ok(())
}

pub(crate) fn reap_least(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.reap_least = value.within(0, DEPTH_MAX)? as u32;
    Ok(())
}

pub(crate) fn io_submit_mode(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.offload = value.choice(&[("inline", false), ("offload", true)])?;
    Ok(())
}

pub(crate) fn fsync(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.flush_every = value.integer()?;
    job.flush_data_only = false;
    Ok(())
}

pub(crate) fn fdatasync(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.flush_every = value.integer()?;
    job.flush_data_only = true;
    Ok(())
}

pub(crate) fn end_fsync(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    // Two options lead here, and either is enough.
    job.flush_at_end |= value.switch()?;
    Ok(())
}

pub(crate) fn sync(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    let known = [
        ("0", (false, false)),
        ("none", (false, false)),
        ("1", (true, false)),
        ("sync", (true, false)),
        ("dsync", (true, true)),
    ];
    (job.durable_writes, job.durable_data_only) = value.choice(&known)?;
    Ok(())
}

pub(crate) fn write_fua(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    // `sync` may have set it before, and `writefua=0` does not undo that.
    job.durable_writes |= value.switch()?;
    Ok(())
}

pub(crate) fn prio(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.level = value.within(0, 7)? as u8;
    Ok(())
}

pub(crate) fn prioclass(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.class = match value.within(0, 3)? {
        1 => PriorityClass::RealTime,
        3 => PriorityClass::Idle,
        // Class 0 is no class. The kernel then takes best-effort for a normal process
        // (ioprio_set(2)).
        _ => PriorityClass::BestEffort,
    };
    Ok(())
}

pub(crate) fn thinktime(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.think = value.time(job, TimeUnit::Microseconds)?;
    Ok(())
}

pub(crate) fn thinktime_blocks(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.think_blocks = Some(value.within(1, u64::MAX)?);
    Ok(())
}

pub(crate) fn thinktime_blocks_type(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.think_after = value.choice(&[
        ("complete", ThinkAfter::Completed),
        ("issue", ThinkAfter::Issued),
    ])?;
    Ok(())
}

pub(crate) fn thinktime_iotime(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.think_io_time = value.time(job, TimeUnit::Seconds)?;
    Ok(())
}

pub(crate) fn rate(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.rate_bytes_per_s = value.rates()?;
    Ok(())
}

pub(crate) fn rate_iops(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.rate_iops = value.rates()?;
    Ok(())
}

pub(crate) fn rate_min(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.floors.bytes_per_s = value.rates()?;
    Ok(())
}

pub(crate) fn rate_iops_min(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.floors.iops = value.rates()?;
    Ok(())
}

pub(crate) fn max_latency(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    let limits = each_direction(value.required()?, |part| {
        whole_time(part, TimeUnit::Microseconds)
    })?;
    let limits = limits.map(|limit| limit.map(|(span, _)| span));
    // 0 is no limit, as for rates.
    job.floors.latency = limits.map(|limit| limit.filter(|span| span.as_nanos() > 0));
    Ok(())
}

pub(crate) fn rate_process(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.poisson = value.choice(&[("linear", false), ("poisson", true)])?;
    Ok(())
}

pub(crate) fn rate_ignore_thinktime(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.rate_ignores_think = value.switch()?;
    Ok(())
}

pub(crate) fn runtime(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    let span = value.time(job, TimeUnit::Seconds)?;
    job.runtime = Some(span).filter(|span| span.as_nanos() > 0);
    Ok(())
}

pub(crate) fn time_based(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.time_based = value.switch()?;
    Ok(())
}

pub(crate) fn ramp_time(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.ramp = value.time(job, TimeUnit::Seconds)?;
    Ok(())
}

pub(crate) fn startdelay(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    let text = value.required()?;
    // A term in parentheses may contain a minus sign, which would be taken for a range.
    if text.starts_with('(') {
        let span = value.time(job, TimeUnit::Seconds)?;
        job.start_delay = (span, span);
        return Ok(());
    }
    let (low, high) = range(text, |end| whole_time(end, TimeUnit::Seconds))?;
    for (span, cut) in [low, high] {
        if cut {
            note_cut(job, span);
        }
    }
    job.start_delay = (low.0, high.0);
    Ok(())
}

pub(crate) fn numjobs(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.clones = value.within(1, CLONES_MAX)? as u32;
    Ok(())
}

pub(crate) fn stonewall(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.stonewall = value.switch()?;
    Ok(())
}

pub(crate) fn wait_for(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.wait_for = Some(value.required()?.to_owned());
    Ok(())
}

pub(crate) fn exitall(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.exit_all = value.switch()?;
    Ok(())
}

pub(crate) fn exit_what(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    let known = [
        ("group", ExitWhat::Group),
        ("stonewall", ExitWhat::Stonewall),
        ("all", ExitWhat::All),
    ];
    job.exit_what = value.choice(&known)?;
    Ok(())
}

pub(crate) fn group_reporting(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.group_reporting = value.switch()?;
    Ok(())
}

pub(crate) fn new_group(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.new_group = value.switch()?;
    Ok(())
}

pub(crate) fn percentile_list(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.percentiles = grammar::percentiles(value.required()?)?;
    Ok(())
}

pub(crate) fn clat_percentiles(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.clat_percentiles = value.switch()?;
    Ok(())
}

pub(crate) fn lat_percentiles(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.lat_percentiles = value.switch()?;
    Ok(())
}

/// Only checks the value. `kb_base` is read before all other options, because their values depend
/// on it.
pub(crate) fn kb_base(_: &mut FioJob, value: OptionValue<'_>) -> Done {
    grammar::kb_base(value.required()?).map(|_| ())
}
