//! Whole replays on small files, in real time. The tests make no claim on the duration of a replay.

use fullstroke_contract::{Extent, Operation};
use fullstroke_replay::{
    IoMethod, ReplayError, ReplayOptions, ReplayReport, WriteTreatment, replay,
};
use fullstroke_trace::{
    BeyondPolicy, OUTPUTS, TraceOptions, TraceReader, TraceRecord, TraceWriter,
};
use fullstroke_units::{Duration, Time};
use fullstroke_workload::pace::{ReplayPace, Rules};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

const FILE_SECTORS: u64 = 8192;

/// A folder with a file to replay on. The folder lies in the build's folder, which is on a disk.
struct ReplayFolder(tempfile::TempDir);

impl ReplayFolder {
    /// Returns `None` if files cannot be read past the page cache.
    fn new() -> Option<ReplayFolder> {
        let place = ReplayFolder(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
        fs::write(place.file(), vec![0xa5; FILE_SECTORS as usize * 512]).unwrap();
        let trace = place.trace("probe", &[read(0, 0, 8)]);
        match replay(&place.options(trace), &AtomicBool::new(false)) {
            Ok(_) => Some(place),
            Err(error @ ReplayError::Target { .. }) => {
                eprintln!("skipped: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("device")
    }

    fn trace(&self, name: &str, records: &[TraceRecord]) -> PathBuf {
        let path = self.0.path().join(format!("{name}.parquet"));
        let native = OUTPUTS
            .iter()
            .find(|output| output.name == "native")
            .unwrap();
        let mut writer = TraceWriter::create(native, &path).unwrap();
        records
            .iter()
            .for_each(|record| assert!(writer.write(record).unwrap()));
        writer.finish().unwrap();
        path
    }

    fn options(&self, trace: PathBuf) -> ReplayOptions {
        ReplayOptions {
            trace,
            selection: TraceOptions::default(),
            requests: None,
            target: self.file(),
            beyond: BeyondPolicy::Reject,
            writes: WriteTreatment::Refuse,
            rules: Rules::default(),
            batch: false,
            io: None,
            threads: None,
            buffered: false,
            tolerated_errors: 0,
            log: Some(self.0.path().join("log.parquet")),
            issue_error_max: Duration::from_micros(100),
            error_share_max: 0.04,
        }
    }

    /// Returns the replayed requests according to the log.
    fn log(&self) -> Vec<TraceRecord> {
        let mut reader =
            TraceReader::open(&self.0.path().join("log.parquet"), &TraceOptions::default())
                .unwrap();
        std::iter::from_fn(|| reader.next().unwrap()).collect()
    }
}

fn record(operation: Operation, arrival_us: u64, start: u64, sectors: u64) -> TraceRecord {
    let arrival = Time::ZERO + Duration::from_micros(arrival_us);
    let completed = Some(arrival + Duration::from_micros(300));
    let extent = Extent::new(start, sectors);
    TraceRecord {
        arrival,
        operation,
        extent,
        device: 0,
        process: 0,
        issued: None,
        completed,
    }
}

fn read(arrival_us: u64, start: u64, sectors: u64) -> TraceRecord {
    record(Operation::Read, arrival_us, start, sectors)
}

/// Returns reads all over the file: pairs, 200 us apart.
fn scattered(count: u64) -> Vec<TraceRecord> {
    (0..count)
        .map(|i| read(i / 2 * 200, i * 1032 % (FILE_SECTORS - 8), 8))
        .collect()
}

fn run(options: &ReplayOptions) -> ReplayReport {
    replay(options, &AtomicBool::new(false)).unwrap()
}

fn refused(options: &ReplayOptions) -> String {
    replay(options, &AtomicBool::new(false))
        .unwrap_err()
        .to_string()
}

#[test]
fn every_request_is_issued_once_and_in_order_at_each_pace() {
    let Some(place) = ReplayFolder::new() else {
        return;
    };
    let records = scattered(3000);
    let trace = place.trace("trace", &records);
    for pace in ReplayPace::ALL {
        let outstanding = (pace == ReplayPace::Closed).then_some(4);
        let rules = Rules {
            pace,
            outstanding,
            ..Rules::default()
        };
        let report = run(&ReplayOptions {
            rules,
            ..place.options(trace.clone())
        });
        assert_eq!(
            (report.requests, report.errors, report.interrupted),
            (3000, 0, false),
            "{pace:?}"
        );
        let log = place.log();
        let extents = |records: &[TraceRecord]| {
            records
                .iter()
                .map(|record| record.extent)
                .collect::<Vec<_>>()
        };
        assert_eq!(extents(&log), extents(&records), "{pace:?}");
        assert!(
            log.iter()
                .all(|record| record.completed.unwrap() >= record.arrival)
        );
        if pace == ReplayPace::Timing {
            // The log begins with its first request, which may be late. So only the earliest
            // difference is exact.
            let pairs = log.iter().zip(&records);
            let earliest = pairs.map(|(log, record)| {
                log.arrival.as_nanos() as i64 - record.arrival.as_nanos() as i64
            });
            assert!(earliest.min().unwrap() <= 0, "none is on time");
            assert!(report.drift_us_per_s.abs() < 1e6);
        }
    }
}

/// Returns true if the kernel provides a ring. Prints a note if not.
fn gives_a_ring(place: &ReplayFolder) -> bool {
    let trace = place.trace("probe", &[read(0, 0, 8)]);
    match replay(
        &ReplayOptions {
            io: Some(IoMethod::IoUring),
            ..place.options(trace)
        },
        &AtomicBool::new(false),
    ) {
        Ok(_) => true,
        Err(error @ ReplayError::Ring { .. }) => {
            eprintln!("skipped in part: {error}");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_ring_and_threads_issue_the_same_requests_in_the_same_order() {
    let Some(place) = ReplayFolder::new() else {
        return;
    };
    // The third request is issued in pieces. No request that changes the file overlaps another. 200
    // reads come at once, more than there are threads.
    let mut records = vec![
        read(0, 0, 8),
        record(Operation::Write, 100, 16, 8),
        record(Operation::Write, 200, 24, 5000),
        record(Operation::Flush, 300, 0, 0),
        record(Operation::Discard, 400, 6144, 1024),
    ];
    records
        .extend((0..600).map(|i| read(50_000 + i / 200 * 3000, i * 1032 % (FILE_SECTORS - 8), 8)));
    let trace = place.trace("trace", &records);
    let asked = |records: &[TraceRecord]| {
        records
            .iter()
            .map(|r| (r.operation, r.extent))
            .collect::<Vec<_>>()
    };
    let ways = if gives_a_ring(&place) {
        vec![IoMethod::Threads, IoMethod::IoUring]
    } else {
        vec![IoMethod::Threads]
    };
    for pace in ReplayPace::ALL {
        let rules = Rules {
            pace,
            outstanding: (pace == ReplayPace::Closed).then_some(100),
            ..Rules::default()
        };
        let replayed = |io: &IoMethod| {
            fs::write(place.file(), vec![0xa5; FILE_SECTORS as usize * 512]).unwrap();
            let options = place.options(trace.clone());
            let report = run(&ReplayOptions {
                rules,
                io: Some(*io),
                writes: WriteTreatment::Overwrite,
                ..options
            });
            assert_eq!(
                (report.io, report.requests, report.errors),
                (*io, 605, 0),
                "{pace:?}"
            );
            let held = report
                .notes
                .iter()
                .any(|note| note.contains("64 were outstanding"));
            assert!(
                held == (*io == IoMethod::Threads) || pace == ReplayPace::Load,
                "{pace:?}: {:?}",
                report.notes
            );
            let log = place.log();
            assert_eq!(asked(&log), asked(&records), "{pace:?}, {io:?}");
            fs::read(place.file()).unwrap()
        };
        let left: Vec<Vec<u8>> = ways.iter().map(replayed).collect();
        assert!(
            left[0][6144 * 512..7168 * 512]
                .iter()
                .all(|byte| *byte == 0)
        );
        assert!(left.iter().all(|bytes| *bytes == left[0]), "{pace:?}");
    }
}

/// Forbids `io_uring_setup` to this thread and to the threads that it starts, as containers do.
#[expect(
    unsafe_code,
    reason = "neither the standard library nor rustix sets filters"
)]
fn forbid_rings() {
    let statement = |code: u32, k: u32, jt, jf| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let returns = libc::BPF_RET | libc::BPF_K;
    let mut filter = [
        // The number of the system call is the first field of `seccomp_data`.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            libc::SYS_io_uring_setup as u32,
            0,
            1,
        ),
        statement(returns, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0),
        statement(returns, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the filter, which outlives both calls.
    let result = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            )
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn where_rings_are_forbidden_threads_replay_and_that_is_said() {
    let Some(place) = ReplayFolder::new() else {
        return;
    };
    let options = place.options(place.trace("trace", &scattered(600)));
    let (report, error) = std::thread::scope(|scope| {
        let forbidden = scope.spawn(|| {
            forbid_rings();
            (
                run(&options),
                refused(&ReplayOptions {
                    io: Some(IoMethod::IoUring),
                    ..options.clone()
                }),
            )
        });
        forbidden.join().unwrap()
    });
    assert_eq!((report.io, report.requests), (IoMethod::Threads, 600));
    let way = &report.conditions[0];
    assert!(
        way.starts_with(
            "64 threads with pread and pwrite (io_uring cannot be used here: Operation not permitted"
        ) && way.contains("counts as issue error")
            && report.hand_over_us > 0.0,
        "{way}"
    );
    assert!(
        error.contains("io_uring cannot be used here") && error.contains("--io threads"),
        "{error}"
    );
}

#[test]
fn by_load_never_more_are_outstanding_than_in_the_trace() {
    let Some(place) = ReplayFolder::new() else {
        return;
    };
    let rules = Rules {
        pace: ReplayPace::Load,
        ..Rules::default()
    };
    let report = run(&ReplayOptions {
        rules,
        ..place.options(place.trace("trace", &scattered(3000)))
    });
    let found = report.outstanding.unwrap();
    // All errors have one sign.
    assert!((found.bias + found.error_mean).abs() < 1e-9, "{found:?}");
    assert!(found.mean <= found.trace_mean, "{found:?}");
}

#[test]
fn nothing_is_written_without_the_word_and_all_of_it_with_it() {
    let Some(place) = ReplayFolder::new() else {
        return;
    };
    let records = [
        read(0, 0, 8),
        record(Operation::Write, 100, 16, 8),
        record(Operation::Flush, 200, 0, 0),
        record(Operation::Discard, 300, 4096, 1024),
    ];
    let options = place.options(place.trace("trace", &records));
    let error = refused(&options);
    assert!(
        error.contains("request 2 is a write") && error.contains("overwrite"),
        "{error}"
    );
    for (writes, issued) in [(WriteTreatment::Skip, 1), (WriteTreatment::AsReads, 3)] {
        let report = run(&ReplayOptions {
            writes,
            ..options.clone()
        });
        assert_eq!((report.requests, report.left_out), (issued, 4 - issued));
        assert!(
            fs::read(place.file())
                .unwrap()
                .iter()
                .all(|byte| *byte == 0xa5),
            "{writes:?}"
        );
    }
    let report = run(&ReplayOptions {
        writes: WriteTreatment::Overwrite,
        ..options
    });
    assert_eq!(report.requests, 4);
    let bytes = fs::read(place.file()).unwrap();
    let changed = |sector: usize| {
        bytes[sector * 512..][..512]
            .iter()
            .any(|byte| *byte != 0xa5)
    };
    let sectors: Vec<usize> = (0..FILE_SECTORS as usize)
        .filter(|sector| changed(*sector))
        .collect();
    assert_eq!(sectors, (16..24).chain(4096..5120).collect::<Vec<_>>());
}

#[test]
fn a_device_that_is_too_small_is_told_before_anything_is_issued_or_mapped() {
    let Some(place) = ReplayFolder::new() else {
        return;
    };
    let records = [read(0, 0, 8), read(100, FILE_SECTORS + 16, 8)];
    let options = place.options(place.trace("trace", &records));
    let error = refused(&options);
    assert!(
        error.contains("trace.parquet") && error.contains("8192"),
        "{error}"
    );
    run(&ReplayOptions {
        beyond: BeyondPolicy::Wrap,
        ..options
    });
    assert_eq!(place.log()[1].extent, Extent::new(16, 8));
}

#[test]
fn writes_that_are_left_out_need_not_fit() {
    let Some(place) = ReplayFolder::new() else {
        return;
    };
    let beyond = record(Operation::Write, 10, 10 * FILE_SECTORS, 8);
    let trace = place.trace("beyond", &[read(0, 64, 8), beyond, read(20, 128, 8)]);
    let options = ReplayOptions {
        writes: WriteTreatment::Skip,
        ..place.options(trace)
    };
    let report = run(&options);
    assert_eq!((report.requests, report.left_out), (2, 1));
    let reads = place.trace("reads", &[read(0, 64, 8), read(20, 128, 8)]);
    let report = run(&ReplayOptions {
        trace: reads,
        ..options.clone()
    });
    assert_eq!(
        (report.requests, report.left_out),
        (2, 0),
        "where there is nothing to leave out"
    );
    // The requests left out do not change the addresses of the others.
    for beyond in [BeyondPolicy::Wrap, BeyondPolicy::Scale] {
        run(&ReplayOptions {
            beyond,
            ..options.clone()
        });
        let starts: Vec<u64> = place
            .log()
            .iter()
            .map(|record| record.extent.start.0)
            .collect();
        assert_eq!(starts, [64, 128], "{beyond:?}");
    }
}

#[test]
fn a_device_that_shrinks_under_the_replay_ends_it_with_the_request() {
    let Some(place) = ReplayFolder::new() else {
        return;
    };
    // Only the shrinking file ends this replay, which would otherwise take an hour.
    let records: Vec<TraceRecord> = (0..200_000).map(|i| read(i * 18_000, 4096, 8)).collect();
    let options = place.options(place.trace("trace", &records));
    for (io, threads) in [
        (None, None),
        (Some(IoMethod::Threads), None),
        (None, Some(1)),
        (None, Some(3)),
    ] {
        let file = fs::OpenOptions::new()
            .write(true)
            .open(place.file())
            .unwrap();
        file.set_len(FILE_SECTORS * 512).unwrap();
        let shrink = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(500));
            file.set_len(512).unwrap();
        });
        let error = refused(&ReplayOptions {
            io,
            threads,
            ..options.clone()
        });
        shrink.join().unwrap();
        assert!(
            error.contains("(read, sector 4096, 4096 bytes) failed after"),
            "{error}"
        );
        assert!(
            error.contains("ends before the end of the request"),
            "{error}"
        );
    }
}

#[test]
fn the_word_to_stop_leaves_what_there_is() {
    let Some(place) = ReplayFolder::new() else {
        return;
    };
    let records: Vec<TraceRecord> = (0..100_000).map(|i| read(i * 36_000, 0, 8)).collect();
    for threads in [None, Some(3)] {
        let options = ReplayOptions {
            threads,
            ..place.options(place.trace("trace", &records))
        };
        let stop = AtomicBool::new(false);
        let report = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(300));
                stop.store(true, Ordering::Relaxed);
            });
            replay(&options, &stop).unwrap()
        });
        assert!(
            report.interrupted && report.requests < 100_000,
            "{threads:?}"
        );
        assert_eq!(report.requests as usize, place.log().len(), "{threads:?}");
        assert_eq!(report.verdict.faithful, Some(false));
        assert!(
            report
                .verdict
                .says
                .contains("ended before the end of the trace"),
            "{}",
            report.verdict.says
        );
    }
}

/// Returns the largest number of outstanding requests at an issue, including the issued request.
fn most_outstanding(log: &[TraceRecord]) -> usize {
    let at = |one: &TraceRecord| {
        log.iter()
            .filter(|it| it.arrival <= one.arrival && it.completed.unwrap() > one.arrival)
            .count()
    };
    log.iter().map(at).max().unwrap()
}

#[test]
fn threads_that_wait_issue_each_request_once_in_order_and_have_no_more_outstanding_than_they_are() {
    let Some(place) = ReplayFolder::new() else {
        return;
    };
    // All requests are due at once. Each but the first finds that its instant has passed, or that
    // the request before is still in its call.
    let records: Vec<TraceRecord> = (0..600)
        .map(|i| read(0, i * 1032 % (FILE_SECTORS - 8), 8))
        .collect();
    let trace = place.trace("trace", &records);
    for threads in [1, 3] {
        let report = run(&ReplayOptions {
            threads: Some(threads),
            ..place.options(trace.clone())
        });
        assert_eq!(
            (report.threads, report.requests, report.errors),
            (Some(threads), 600, 0)
        );
        let log = place.log();
        let extents = |records: &[TraceRecord]| {
            records
                .iter()
                .map(|record| record.extent)
                .collect::<Vec<_>>()
        };
        assert_eq!(extents(&log), extents(&records));
        assert!(most_outstanding(&log) <= threads as usize, "{threads}");
        assert!(report.outstanding.unwrap().mean < f64::from(threads));
        let note = report
            .notes
            .iter()
            .find(|note| note.contains("had passed before they were taken"));
        assert!(
            note.is_some_and(
                |note| note.contains(" 599 requests (99.8 %)") || note.contains(" 600 ")
            ),
            "{:?}",
            report.notes
        );
        assert!(
            report.conditions[0].contains("completes a call before"),
            "{:?}",
            report.conditions
        );
        // The requests run one after the other with growing delay. The last waits for the 599
        // before.
        assert!(
            report.issue_error_us.max > report.issue_error_us.p50
                && report.issue_error_us.p50 > 0.0
        );
    }
}

#[test]
fn threads_that_wait_carry_out_the_same_requests_as_a_ring_in_calls_of_one_or_of_several() {
    let Some(place) = ReplayFolder::new() else {
        return;
    };
    // The second request is issued in pieces, and each four reads with one arrival time are issued
    // together. No request overlaps another.
    let mut records = vec![
        record(Operation::Write, 0, 16, 8),
        record(Operation::Write, 20_000, 24, 5000),
        record(Operation::Flush, 40_000, 0, 0),
        record(Operation::Discard, 60_000, 6144, 1024),
    ];
    records
        .extend((0..160).map(|i| read(100_000 + i / 4 * 20_000, i * 1032 % (FILE_SECTORS - 8), 8)));
    let trace = place.trace("trace", &records);
    let asked = |records: &[TraceRecord]| {
        records
            .iter()
            .map(|r| (r.operation, r.extent))
            .collect::<Vec<_>>()
    };
    let ways = if gives_a_ring(&place) {
        vec![false, true]
    } else {
        vec![false]
    };
    for (batch, threads) in ways.into_iter().flat_map(|batch| [(batch, 1), (batch, 4)]) {
        fs::write(place.file(), vec![0xa5; FILE_SECTORS as usize * 512]).unwrap();
        let options = ReplayOptions {
            writes: WriteTreatment::Overwrite,
            batch,
            ..place.options(trace.clone())
        };
        let report = run(&ReplayOptions {
            threads: Some(threads),
            ..options
        });
        assert_eq!(
            (report.requests, report.errors, report.io),
            (164, 0, IoMethod::Threads),
            "{batch} {threads}"
        );
        let log = place.log();
        assert_eq!(asked(&log), asked(&records), "{batch} {threads}");
        let together = log[4..]
            .chunks(4)
            .filter(|four| four.iter().all(|it| it.arrival == four[0].arrival))
            .count();
        assert_eq!(together, if batch { 40 } else { 0 }, "{threads}");
        assert_eq!(
            report
                .notes
                .iter()
                .any(|note| note.contains("120 requests went in one call")),
            batch
        );
        let bytes = fs::read(place.file()).unwrap();
        let changed = |sector: usize| {
            bytes[sector * 512..][..512]
                .iter()
                .any(|byte| *byte != 0xa5)
        };
        let sectors: Vec<usize> = (0..FILE_SECTORS as usize)
            .filter(|sector| changed(*sector))
            .collect();
        assert_eq!(sectors, (16..5024).chain(6144..7168).collect::<Vec<_>>());
    }
}

#[test]
fn errors_are_tolerated_and_counted_by_threads_that_wait_and_by_those_that_do_not() {
    let Some(place) = ReplayFolder::new() else {
        return;
    };
    let records: Vec<TraceRecord> = (0..200).map(|i| read(i * 1000, i % 2 * 4096, 8)).collect();
    let trace = place.trace("trace", &records);
    for threads in [None, Some(1), Some(3)] {
        let file = fs::OpenOptions::new()
            .write(true)
            .open(place.file())
            .unwrap();
        file.set_len(FILE_SECTORS * 512).unwrap();
        // After 60 ms the file is so small that every other request reaches beyond its end.
        let shrink = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(60));
            file.set_len(4096).unwrap();
        });
        let options = ReplayOptions {
            threads,
            tolerated_errors: 200,
            ..place.options(trace.clone())
        };
        let report = run(&options);
        shrink.join().unwrap();
        let log = place.log();
        assert_eq!(report.requests, 200, "{threads:?}");
        assert!(
            (1..=100).contains(&report.errors),
            "{threads:?}: {}",
            report.errors
        );
        assert_eq!(log.len() as u64, 200 - report.errors, "{threads:?}");
        assert!(
            report
                .verdict
                .says
                .contains(&format!("{} requests failed", report.errors)),
            "{threads:?}"
        );
    }
}

#[test]
fn a_load_without_completions_and_a_trace_without_requests_are_refused() {
    let Some(place) = ReplayFolder::new() else {
        return;
    };
    let unknown = TraceRecord {
        completed: None,
        ..read(0, 0, 8)
    };
    let rules = Rules {
        pace: ReplayPace::Load,
        ..Rules::default()
    };
    let trace = place.trace("trace", &[read(0, 0, 8), unknown]);
    let error = refused(&ReplayOptions {
        rules,
        ..place.options(trace)
    });
    assert!(
        error.contains("trace.parquet") && error.contains("request 2 has no known completion"),
        "{error}"
    );
    let trace = place.trace("writes", &[record(Operation::Write, 0, 0, 8)]);
    let error = refused(&ReplayOptions {
        writes: WriteTreatment::Skip,
        ..place.options(trace)
    });
    assert!(
        error.contains("no request is left") && error.contains("all 1"),
        "{error}"
    );
}
