//! Compares jobs in simulated time with runs of fio 3.33. Each test names the options of the fio
//! run.

use fullstroke_contract::{
    Completion, Effects, Node as _, NodeContext, Operation, Port, Request, RequestStatus,
};
use fullstroke_fio::{FioResults, FioSource, JobSet};
use fullstroke_units::{Duration, Sectors, Seed, Time};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A request and its issue time in microseconds.
type Issued = (u64, Request);

struct TimedRun {
    issued: Vec<Issued>,
    results: FioResults,
}

/// Runs a job file on a volume of 1 GiB that answers each request after `latency_us`, whatever the
/// number of requests in flight.
fn run(text: &str, latency_us: u64) -> TimedRun {
    run_with(text, latency_us, None)
}

fn run_with(text: &str, latency_us: u64, requests: Option<u64>) -> TimedRun {
    let set = JobSet::parse("a.fio", text, &BTreeMap::new()).unwrap();
    let mut source = FioSource::new(&set, Sectors(1 << 21), Seed(1), requests).unwrap();
    let (mut issued, mut flights, mut out) = (Vec::new(), BinaryHeap::new(), Effects::new());
    let mut number = 0u64;
    loop {
        let landing: Option<Time> = flights.peek().map(|Reverse((at, _, _, _))| *at);
        let now = source.next_wake().at().min(landing.unwrap_or(Time::NEVER));
        if now == Time::NEVER {
            return TimedRun {
                issued,
                results: source.results(),
            };
        }
        if landing == Some(now) {
            let Some(Reverse((_, _, id, submitted))) = flights.pop() else {
                unreachable!()
            };
            let completion = Completion {
                id,
                submitted,
                finished: now,
                status: RequestStatus::Done,
                ..Completion::default()
            };
            source.completed(
                now,
                Port::FIRST,
                completion,
                &mut NodeContext::alone(&mut out),
            );
        } else {
            source.wake(now, &mut NodeContext::alone(&mut out));
        }
        for request in out.requests() {
            number += 1;
            flights.push(Reverse((
                now + Duration::from_micros(latency_us),
                number,
                request.id,
                now,
            )));
            issued.push((now.as_nanos() / 1000, request));
        }
    }
}

impl TimedRun {
    fn times_ms(&self) -> Vec<u64> {
        self.issued.iter().map(|(at, _)| at / 1000).collect()
    }

    /// Returns the requests as text. `w0` is a write of 4 KiB block 0.
    fn letters(&self) -> String {
        let letter = |(_, request): &Issued| match request.operation {
            Operation::Read => format!("r{}", request.extent.start.0 / 8),
            Operation::Write => format!("w{}", request.extent.start.0 / 8),
            Operation::Flush => "f".to_owned(),
            Operation::Discard => format!("t{}", request.extent.start.0 / 8),
            Operation::Standby | Operation::Start | Operation::Answer => {
                unreachable!("fio has no such operations")
            }
        };
        self.issued
            .iter()
            .map(letter)
            .collect::<Vec<String>>()
            .join(" ")
    }

    fn of(&self, process: u32) -> Vec<u64> {
        self.issued
            .iter()
            .filter(|(_, it)| it.hints.process == process)
            .map(|(at, _)| at / 1000)
            .collect()
    }

    fn json(&self) -> Value {
        self.results
            .report(Vec::new(), Duration::from_secs(1))
            .json("0")
    }
}

#[test]
fn a_synchronous_engine_issues_one_at_a_time() {
    let ran = run("[a]\niodepth=32\nsize=16k\n", 1000);
    assert_eq!(ran.times_ms(), [0, 1, 2, 3]);
}

#[test]
fn a_queued_engine_keeps_its_depth() {
    let ran = run("[a]\nioengine=libaio\niodepth=4\nsize=40k\n", 1000);
    assert_eq!(ran.times_ms(), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
    let levels = &ran.json()["jobs"][0]["iodepth_level"];
    assert_eq!((&levels["4"], &levels["1"]), (&70.0.into(), &10.0.into()));
}

#[test]
fn a_queue_drains_to_its_low_mark() {
    // All requests complete 1 ms after their issue, so the low mark is reached at that time.
    let ran = run(
        "[a]\nioengine=libaio\niodepth=4\niodepth_low=1\nsize=28k\nthinktime=0\n",
        1000,
    );
    assert_eq!(ran.times_ms(), [0, 0, 0, 0, 1, 1, 1]);
    let ran = run(
        "[a]\nioengine=libaio\niodepth=4\niodepth_batch_complete_min=4\nsize=32k\n",
        1000,
    );
    assert_eq!(ran.times_ms(), [0, 0, 0, 0, 1, 1, 1, 1]);
}

#[test]
fn think_time_follows_completed_blocks() {
    // iodepth=4 thinktime=20ms: the queue fills once, then one block follows each pause.
    let options = "[a]\nioengine=libaio\niodepth=4\nthinktime=20ms\nsize=1m\n";
    let ran = run(&format!("{options}number_ios=8\n"), 100);
    assert_eq!(ran.times_ms(), [0, 0, 0, 0, 20, 40, 60, 80]);
    // thinktime_blocks=6: nine blocks at first, then six.
    let ran = run(
        &format!("{options}number_ios=24\nthinktime_blocks=6\n"),
        100,
    );
    let per_pause = |at: u64| ran.times_ms().iter().filter(|ms| **ms / 20 == at).count();
    assert_eq!([per_pause(0), per_pause(1), per_pause(2)], [9, 6, 6]);
}

#[test]
fn think_time_can_follow_issued_blocks() {
    let options =
        "[a]\nioengine=libaio\niodepth=4\nthinktime=20ms\nthinktime_blocks_type=issue\nsize=1m\n";
    assert_eq!(
        run(&format!("{options}number_ios=4\n"), 100).times_ms(),
        [0, 20, 40, 60]
    );
    let ran = run(
        &format!("{options}number_ios=18\nthinktime_blocks=6\n"),
        100,
    );
    assert_eq!(
        ran.times_ms()[..13],
        [0, 0, 0, 0, 0, 0, 20, 20, 20, 20, 20, 20, 40]
    );
}

#[test]
fn a_rate_spaces_the_blocks_from_the_beginning_on() {
    let ran = run("[a]\nsize=40k\nrate_iops=100\n", 100);
    assert_eq!(ran.times_ms(), [0, 10, 20, 30, 40, 50, 60, 70, 80, 90]);
    let ran = run("[a]\nsize=40k\nrate=400k\n", 100);
    assert_eq!(ran.times_ms()[9], 90);
    let mixed = run(
        "[a]\nrw=randrw\nsize=4m\nnumber_ios=150\nrate_iops=100,50\n",
        100,
    );
    let reads = mixed
        .issued
        .iter()
        .filter(|(_, it)| it.operation == Operation::Read)
        .count();
    assert!((99..=101).contains(&reads), "{reads}");
    assert!((980..=1000).contains(mixed.times_ms().last().unwrap()));
}

#[test]
fn a_pause_is_made_up_for_unless_the_rate_ignores_it() {
    let options =
        "[a]\nsize=1m\nnumber_ios=12\nrate_iops=100\nthinktime=50ms\nthinktime_blocks=4\n";
    let ran = run(options, 10);
    assert_eq!(
        ran.times_ms(),
        [0, 10, 20, 30, 80, 80, 80, 80, 130, 130, 130, 130]
    );
    let ran = run(&format!("{options}rate_ignore_thinktime=1\n"), 10);
    assert_eq!(
        ran.times_ms(),
        [0, 10, 20, 30, 80, 90, 100, 110, 160, 170, 180, 190]
    );
}

#[test]
fn a_poisson_rate_has_its_mean_and_its_spread() {
    let ran = run("[a]\nsize=40m\nrate_iops=1000\nrate_process=poisson\n", 1);
    let times: Vec<u64> = ran.issued.iter().map(|(at, _)| *at).collect();
    let gaps: Vec<f64> = times
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as f64)
        .collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((970.0..1030.0).contains(&mean), "{mean}");
    assert!(
        (0.95..1.05).contains(&(variance.sqrt() / mean)),
        "{}",
        variance.sqrt() / mean
    );
}

#[test]
fn an_inline_job_ahead_of_its_rate_waits_for_its_io_and_an_offloading_one_does_not() {
    let options = "[a]\nioengine=libaio\niodepth=8\nsize=24k\nrate_iops=100\n";
    assert_eq!(run(options, 25_000).times_ms(), [0, 25, 25, 50, 50, 50]);
    let offload = format!("{options}io_submit_mode=offload\n");
    assert_eq!(run(&offload, 25_000).times_ms(), [0, 10, 20, 30, 40, 50]);
}

#[test]
fn runtime_ends_a_job_and_time_based_fills_it() {
    let ran = run("[a]\nsize=1m\nruntime=10ms\n", 1000);
    assert_eq!(ran.times_ms(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let ran = run(
        "[a]\nsize=8k\nruntime=5ms\ntime_based\nnumber_ios=1\n",
        1000,
    );
    assert_eq!(ran.letters(), "r0 r1 r0 r1 r0");
}

#[test]
fn a_ramp_comes_before_the_runtime_and_does_not_count() {
    // fio --rate_iops=100 --ramp_time=1 --runtime=1: 100 I/Os in 1.001 s.
    let ran = run(
        "[a]\nsize=1m\nsize=100m\nrate_iops=100\nramp_time=1\nruntime=1\n",
        100,
    );
    assert_eq!(ran.issued.len(), 200);
    let read = &ran.json()["jobs"][0]["read"];
    assert_eq!(
        (&read["total_ios"], &read["runtime"]),
        (&100.into(), &1000.into())
    );
    // --number_ios=150 counts from the end of the ramp, --size=600k does not.
    let counted = |options: &str| {
        let ran = run(
            &format!("[a]\nrate_iops=100\nramp_time=1\n{options}\n"),
            100,
        );
        ran.json()["jobs"][0]["read"]["total_ios"].as_u64().unwrap()
    };
    assert_eq!(counted("number_ios=150\nsize=100m"), 150);
    assert_eq!(counted("size=600k"), 50);
}

#[test]
fn a_job_that_ends_within_its_ramp_has_no_results() {
    let ran = run("[a]\nsize=16k\nramp_time=1\n", 100);
    assert_eq!(ran.json()["jobs"][0]["read"]["total_ios"], 0);
}

#[test]
fn a_stonewall_waits_for_all_jobs_before_it() {
    let ran = run(
        "[a]\nsize=8k\n[b]\nsize=16k\n[c]\nstonewall\nsize=4k\n[d]\nsize=4k\n",
        1000,
    );
    assert_eq!((ran.of(1), ran.of(2)), (vec![0, 1], vec![0, 1, 2, 3]));
    assert_eq!((ran.of(3), ran.of(4)), (vec![4], vec![4]));
}

#[test]
fn wait_for_waits_for_all_clones_of_one_job() {
    let ran = run(
        "[a]\nsize=8k\nnumjobs=2\n[b]\nsize=40k\n[c]\nwait_for=a\nsize=4k\n",
        1000,
    );
    assert_eq!(ran.of(4), [2]);
}

#[test]
fn a_start_delay_counts_from_the_beginning_of_the_run() {
    let ran = run(
        "[a]\nsize=16k\n[b]\nstonewall\nstartdelay=2ms\nsize=4k\n[c]\nstartdelay=9ms\nsize=4k\n",
        1000,
    );
    assert_eq!((ran.of(2), ran.of(3)), (vec![4], vec![9]));
    let ranged = run("[a]\nsize=4k\nstartdelay=5ms-9ms\nnumjobs=20\n", 1000).times_ms();
    assert!(
        ranged.iter().all(|at| (5..=9).contains(at)) && ranged.first() != ranged.last(),
        "{ranged:?}"
    );
}

#[test]
fn exitall_ends_the_group_with_its_first_job() {
    let ran = run(
        "[global]\nsize=1m\n[a]\nruntime=3ms\n[b]\nexitall\nruntime=30ms\n[c]\nnew_group\nruntime=9ms\n",
        1000,
    );
    assert_eq!((ran.of(2).len(), ran.of(3).len()), (3, 9));
}

#[test]
fn flushes_follow_every_nth_write() {
    // rw=write size=64k bs=4k fsync=4: no flush after the last block.
    let ran = run("[a]\nrw=write\nsize=40k\nfsync=4\n", 10);
    assert_eq!(ran.letters(), "w0 w1 w2 w3 f w4 w5 w6 w7 f w8 w9");
    let ran = run("[a]\nrw=write\nsize=16k\nend_fsync=1\n", 10);
    assert_eq!(ran.letters(), "w0 w1 w2 w3 f");
    assert_eq!(ran.json()["jobs"][0]["sync"]["total_ios"], 1);
}

#[test]
fn a_flush_holds_a_thread_but_not_a_ring() {
    let options = "iodepth=4\nrw=write\nsize=12k\nfsync=2\n";
    assert_eq!(
        run(&format!("[a]\nioengine=libaio\n{options}"), 1000).times_ms(),
        [0, 0, 0, 1]
    );
    assert_eq!(
        run(&format!("[a]\nioengine=io_uring\n{options}"), 1000).times_ms(),
        [0, 0, 0, 0]
    );
}

#[test]
fn trims_are_followed_by_writes_of_the_same_blocks() {
    assert_eq!(
        run("[a]\nrw=trimwrite\nsize=12k\n", 10).letters(),
        "t0 w0 t1 w1 t2 w2"
    );
    assert_eq!(
        run("[a]\nrw=trimwrite\nsize=64k\nio_size=8k\n", 10).letters(),
        "t0 w0 t1 w1"
    );
}

#[test]
fn reads_and_writes_of_a_sequential_mix_each_go_their_own_way() {
    let ran = run("[a]\nrw=rw\nsize=64k\n", 10);
    assert_eq!(ran.issued.len(), 16);
    for operation in [Operation::Read, Operation::Write] {
        let mut blocks = ran
            .issued
            .iter()
            .filter(|(_, it)| it.operation == operation);
        assert!(
            (0..)
                .zip(&mut blocks)
                .all(|(at, (_, it))| it.extent.start.0 == at * 8)
        );
    }
}

#[test]
fn amounts_are_those_that_fio_does() {
    // Options with bs=4k, and the number of I/Os of fio 3.33.
    for (options, ios) in [
        ("size=1m\nio_size=64k", 16),
        ("size=1m\nloops=3", 768),
        ("size=64k\nio_size=128k\nloops=3", 48),
        ("size=64k\nio_size=32k\nloops=3", 24),
        ("filesize=1m\nsize=64k", 16),
        ("size=64k\nnumber_ios=40\nio_size=1m", 40),
        ("size=64k\nnumber_ios=5\nloops=3", 15),
        ("size=64k\nnumber_ios=40\nloops=3", 48),
        ("rw=randread\nsize=64k\nio_size=100k", 25),
        ("rw=randread\nnorandommap\nsize=64k\nio_size=100k", 25),
        ("rw=randread:4\nsize=256k", 64),
    ] {
        assert_eq!(
            run(&format!("[a]\n{options}\n"), 10).issued.len(),
            ios,
            "{options}"
        );
    }
}

#[test]
fn loops_repeat_the_offsets_unless_randrepeat_is_off() {
    let halves = |options: &str| {
        let letters = run(
            &format!("[a]\nrw=randread\nsize=256k\nloops=2\n{options}\n"),
            10,
        )
        .letters();
        let all: Vec<String> = letters.split(' ').map(str::to_owned).collect();
        (all[..64].to_vec(), all[64..].to_vec())
    };
    let (first, second) = halves("");
    assert_eq!(first, second);
    let (first, second) = halves("randrepeat=0");
    assert_ne!(first, second);
}

#[test]
fn clones_draw_their_own_offsets_and_move_by_the_increment() {
    let ran = run(
        "[a]\nrw=randread\nsize=1m\nnumjobs=2\noffset_increment=1m\nprio=2\nprioclass=1\nsync=1\n",
        10,
    );
    let offsets = |process: u32| -> Vec<u64> {
        let of = ran
            .issued
            .iter()
            .filter(|(_, it)| it.hints.process == process);
        of.map(|(_, it)| it.extent.start.0).collect()
    };
    assert!(
        offsets(1).iter().all(|start| *start < 2048)
            && offsets(2).iter().all(|start| *start >= 2048)
    );
    let moved: Vec<u64> = offsets(2).iter().map(|start| start - 2048).collect();
    assert_ne!(offsets(1), moved);
    assert!(ran.issued.iter().all(|(_, it)| it.hints.level == 2));
}

#[test]
fn a_mix_has_its_share_of_reads() {
    let ran = run("[a]\nrw=randrw\nrwmixread=70\nsize=40m\n", 10);
    let reads = ran
        .issued
        .iter()
        .filter(|(_, it)| it.operation == Operation::Read)
        .count();
    let share = reads as f64 / ran.issued.len() as f64;
    assert!((share - 0.7).abs() < 0.02, "{share}");
}

#[test]
fn a_limit_of_requests_ends_all_jobs() {
    let ran = run_with(
        "[a]\nsize=1m\nnumjobs=3\n[b]\nstonewall\nsize=1m\n",
        10,
        Some(50),
    );
    assert_eq!(ran.issued.len(), 50);
    let jobs = ran.json()["jobs"].as_array().unwrap().len();
    assert_eq!(jobs, 4);
}

#[test]
fn a_run_repeats_to_the_bit() {
    let text = "[global]\nsize=4m\n[a]\nrw=randrw\nbsrange=4k-16k\nioengine=libaio\niodepth=8\n\
                [b]\nrw=randread\nrandom_distribution=zipf:1.2\nnumjobs=2\nrate_iops=500\nrate_process=poisson\n";
    let (one, other) = (run(text, 300), run(text, 300));
    assert_eq!(one.issued, other.issued);
    assert_eq!(one.json(), other.json());
}

/// `fio --rw=randwrite --verify=crc32c --verify_backlog=4 --verify_backlog_batch=2`, and the same
/// without a backlog.
#[test]
fn verify_reads_the_writes_back_at_the_end_or_after_a_backlog() {
    let job = "[a]\nrw=write\nbs=4k\nsize=32k\nverify=crc32c\n";
    let end = run(job, 1000);
    assert_eq!(
        end.letters(),
        "w0 w1 w2 w3 w4 w5 w6 w7 r0 r1 r2 r3 r4 r5 r6 r7"
    );
    let backlog = run(
        &format!("{job}verify_backlog=4\nverify_backlog_batch=2\n"),
        1000,
    );
    assert_eq!(
        backlog.letters(),
        "w0 w1 w2 w3 r0 r1 w4 w5 r2 r3 w6 w7 r4 r5 r6 r7"
    );
    for without in ["do_verify=0\n", "time_based\nruntime=8ms\n", "verify=0\n"] {
        let letters = run(&format!("{job}{without}"), 1000).letters();
        assert!(!letters.contains('r'), "{without}: {letters}");
    }
    // Verification has the queue depth of the job, and loops verify each time.
    let deep = run(
        "[a]\nrw=write\nbs=4k\nsize=32k\nverify=md5\nioengine=libaio\niodepth=4\nloops=2\n",
        1000,
    );
    assert_eq!(deep.issued.len(), 32);
    assert_eq!(deep.times_ms().last(), Some(&7));
}
