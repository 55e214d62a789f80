//! Limits below which fio ends a job: `rate_min`, `rate_iops_min` and `max_latency`.
//!
//! fio checks a rate once in each `ratecycle` (`check_min_rate` in fio's `backend.c`). Here a job goes
//! on, and the results say which limit the job missed over its whole time.

use crate::job::{FioJob, IoDirection};
use crate::tally::WorkerTally;
use fullstroke_units::Duration;

/// Returns a sentence for each limit that a clone of the job missed.
pub(crate) fn missed(job: &FioJob, tally: &WorkerTally) -> Vec<String> {
    let seconds = tally.elapsed.as_secs_f64();
    let mut notes = Vec::new();
    for direction in IoDirection::ALL {
        let (at, lane) = (direction as usize, &tally.lanes[direction as usize]);
        // A direction without I/O has no rate to miss.
        if lane.ios() == 0 || seconds <= 0.0 {
            continue;
        }
        let mut note = |found: String, limit: String| {
            notes.push(format!(
                "[{}]: {} {found}, and the limit is {limit}: fio ends such a job, here the job went on",
                job.name,
                direction.name()
            ));
        };
        let rate = lane.bytes as f64 / seconds;
        if let Some(least) = job.floors.bytes_per_s[at].filter(|least| rate < *least as f64) {
            note(
                format!("{:.3} MB/s on average", rate / 1e6),
                format!("rate_min={least} bytes/s"),
            );
        }
        let iops = lane.ios() as f64 / seconds;
        if let Some(least) = job.floors.iops[at].filter(|least| iops < *least as f64) {
            note(
                format!("{iops:.1} IOPS on average"),
                format!("rate_iops_min={least}"),
            );
        }
        let longest = Duration::from_nanos(lane.latency_ns.max());
        if let Some(most) = job.floors.latency[at].filter(|most| longest > *most) {
            note(
                format!("took {:.3} ms at most", longest.as_secs_f64() * 1e3),
                format!("max_latency={:.3} ms", most.as_secs_f64() * 1e3),
            );
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FioSource, JobSet, testing};
    use fullstroke_units::{Sectors, Seed};
    use std::collections::BTreeMap;

    /// Runs a job whose I/Os take 1 ms each, one after another: 1000 IOPS. Returns the notes.
    fn notes(options: &str) -> Vec<String> {
        let text = format!("[a]\nrw=read\nbs=4k\nsize=400k\n{options}");
        let set = JobSet::parse("a.fio", &text, &BTreeMap::new()).unwrap();
        let mut source = FioSource::new(&set, Sectors(1 << 21), Seed(1), None).unwrap();
        testing::run(&mut source, |_| {});
        source
            .results()
            .report(Vec::new(), Duration::from_secs(1))
            .notes()
            .to_vec()
    }

    #[test]
    fn a_job_below_a_limit_is_named_with_the_limit() {
        for (options, part) in [
            ("rate_min=8m\n", "rate_min=8388608 bytes/s"),
            ("ratemin=8m\n", "4.096 MB/s on average"),
            ("rate_iops_min=1001\n", "rate_iops_min=1001"),
            ("max_latency=500us\n", "max_latency=0.500 ms"),
        ] {
            let found = notes(options);
            assert!(
                found.len() == 1 && found[0].contains(part),
                "{options}: {found:?}"
            );
        }
        for options in [
            "rate_min=1m\n",
            "rate_iops_min=999\n",
            "max_latency=2ms\n",
            "rate_min=0\n",
            "rate_min=,8m\n",
        ] {
            assert_eq!(notes(options), [""; 0], "{options}");
        }
    }
}
