//! Results in the format of `fio --output-format=json`.
//!
//! Names and units are those of fio 3.33. Values that a simulation does not have are 0: submission
//! takes no time, and no processors are simulated.

use crate::FioGroupResults;
use crate::job::{FioJob, IoDirection};
use crate::results::JobResult;
use crate::tally::{BINS_MS, BINS_NS, DirectionTally, IntegerMoments, WorkerTally};
use fullstroke_contract::MemberStatistics;
use fullstroke_units::Duration;
use serde_json::{Map, Value, json};

impl FioGroupResults {
    /// Returns the whole document. `version` is the version of fullstroke. Times of day are 0, so
    /// that two runs with the same seed give the same bytes.
    pub fn json(&self, version: &str) -> Value {
        let mut whole = json!({
            "fio version": format!("fullstroke-{version}"),
            "timestamp": 0,
            "timestamp_ms": 0,
            "time": "",
            "jobs": self.jobs.iter().map(|result| self.job(result)).collect::<Vec<Value>>(),
            "disk_util": self.drives.iter().map(|(name, counts)| disk_util(name, counts, self.span)).collect::<Vec<Value>>(),
        });
        if !self.global.is_empty() {
            whole["global options"] = options(&self.global);
        }
        whole
    }

    fn job(&self, result: &JobResult) -> Value {
        let JobResult { job, tally, .. } = result;
        let mut value = json!({
            "jobname": job.name,
            "groupid": job.group,
            // 5 is EIO, the error of a device that lost data.
            "error": if tally.failed > 0 { 5 } else { 0 },
            "eta": 0,
            "elapsed": tally.elapsed.as_secs_f64().ceil() as u64,
            "job options": options(&job.options),
            "sync": {
                "total_ios": tally.flush_ns.count,
                "lat_ns": moments(&tally.flush_ns),
            },
            "job_runtime": tally.elapsed.as_nanos() / 1_000_000,
            "usr_cpu": 0.0,
            "sys_cpu": 0.0,
            "ctx": 0,
            "majf": 0,
            "minf": 0,
            "latency_depth": job.effective_depth(),
            "latency_target": 0,
            "latency_percentile": 100.0,
            "latency_window": 0,
        });
        for direction in IoDirection::ALL {
            value[direction.name()] = self.lane(result, direction);
        }
        for (name, shares) in distributions(tally) {
            value[name] = shares;
        }
        value
    }

    fn lane(&self, result: &JobResult, direction: IoDirection) -> Value {
        let JobResult { job, tally, .. } = result;
        let lane = &tally.lanes[direction as usize];
        let seconds = tally.elapsed.as_secs_f64();
        let went = lane.ios() > 0;
        let per_s = |amount: u64| {
            if went && seconds > 0.0 {
                amount as f64 / seconds
            } else {
                0.0
            }
        };
        let (rate, sample) = (per_s(lane.bytes), &lane.windows);
        let of_group = self.group_rate(job.group, direction);
        let share = if of_group > 0.0 {
            // Means over windows of different lengths may add up to more than the whole.
            (100.0 * sample.kib_per_s.mean() / of_group).min(100.0)
        } else {
            0.0
        };
        let mut value = json!({
            "io_bytes": lane.bytes,
            "io_kbytes": lane.bytes / 1024,
            "bw_bytes": rate as u64,
            "bw": rate as u64 / 1024,
            "iops": per_s(lane.ios()),
            // fio rounds up too.
            "runtime": if went { tally.elapsed.as_nanos().div_ceil(1_000_000) } else { 0 },
            "total_ios": lane.ios(),
            "short_ios": 0,
            "drop_ios": 0,
            "slat_ns": moments(&IntegerMoments::default()),
            "clat_ns": moments(&lane.latency_ns),
            "lat_ns": moments(&lane.latency_ns),
            "bw_min": sample.kib_per_s.min(),
            "bw_max": sample.kib_per_s.max(),
            "bw_agg": share,
            "bw_mean": sample.kib_per_s.mean(),
            "bw_dev": sample.kib_per_s.deviation(),
            "bw_samples": sample.kib_per_s.count,
            "iops_min": sample.iops.min(),
            "iops_max": sample.iops.max(),
            "iops_mean": sample.iops.mean(),
            "iops_stddev": sample.iops.deviation(),
            "iops_samples": sample.iops.count,
        });
        for (name, wanted) in [
            ("clat_ns", job.clat_percentiles),
            ("lat_ns", job.lat_percentiles),
        ] {
            if wanted && went {
                value[name]["percentile"] = percentiles(job, lane);
            }
        }
        value
    }

    /// Returns the rate of all jobs of a group in KiB/s.
    fn group_rate(&self, group: u32, direction: IoDirection) -> f64 {
        let members = self.jobs.iter().filter(|result| result.job.group == group);
        members
            .map(|result| {
                result.tally.lanes[direction as usize]
                    .windows
                    .kib_per_s
                    .mean()
            })
            .sum()
    }
}

fn moments(moments: &IntegerMoments) -> Value {
    json!({
        "min": moments.min(),
        "max": moments.max(),
        "mean": moments.mean(),
        "stddev": moments.deviation(),
        "N": moments.count,
    })
}

fn percentiles(job: &FioJob, lane: &DirectionTally) -> Value {
    let each = job
        .percentiles
        .iter()
        .map(|percent| (format!("{percent:.6}"), json!(lane.percentile_ns(*percent))));
    Value::Object(each.collect())
}

/// Returns the shares of all I/Os in percent, by depth and by latency.
fn distributions(tally: &WorkerTally) -> [(&'static str, Value); 6] {
    let depths = ["1", "2", "4", "8", "16", "32", ">=64"].map(str::to_owned);
    let counts = ["0", "4", "8", "16", "32", "64", ">=64"].map(str::to_owned);
    let below = |bounds: &[u64]| bounds.iter().map(u64::to_string).collect::<Vec<String>>();
    let ios: u64 = tally.lanes.iter().map(DirectionTally::ios).sum();
    // I/Os are submitted and reaped one at a time, so all belong to fio's class of 1 to 4.
    let singly = [0, ios, 0, 0, 0, 0, 0];
    let mut bounds_ms = below(&BINS_MS);
    bounds_ms.push(">=2000".to_owned());
    [
        (
            "iodepth_level",
            shares(&depths, &tally.depths, tally.depths.iter().sum()),
        ),
        ("iodepth_submit", shares(&counts, &singly, ios)),
        ("iodepth_complete", shares(&counts, &singly, ios)),
        ("latency_ns", shares(&below(&BINS_NS), &tally.bins_ns, ios)),
        ("latency_us", shares(&below(&BINS_NS), &tally.bins_us, ios)),
        ("latency_ms", shares(&bounds_ms, &tally.bins_ms, ios)),
    ]
}

/// Returns each count as a percentage of `total`, by name.
fn shares(names: &[String], counts: &[u64], total: u64) -> Value {
    let share = |(name, count): (&String, &u64)| {
        (
            name.clone(),
            json!(100.0 * *count as f64 / total.max(1) as f64),
        )
    };
    Value::Object(names.iter().zip(counts).map(share).collect())
}

fn options(settings: &[(String, String)]) -> Value {
    let each = settings
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)));
    Value::Object(each.collect::<Map<String, Value>>())
}

/// Returns the statistics of a drive, in fio's format for a block device.
fn disk_util(name: &str, counts: &MemberStatistics, span: Duration) -> Value {
    let utilisation = counts.busy.as_secs_f64() / span.as_secs_f64().max(f64::MIN_POSITIVE);
    json!({
        "name": name,
        "read_ios": counts.reads,
        "write_ios": counts.writes,
        "read_sectors": counts.sectors_read.0,
        "write_sectors": counts.sectors_written.0,
        "read_merges": 0,
        "write_merges": 0,
        "in_queue": (counts.queue_length_ns / 1_000_000) as u64,
        "util": (100.0 * utilisation).min(100.0),
    })
}
