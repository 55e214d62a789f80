//! Tests of the report of a whole run on a drive.

use fullstroke_contract::{
    Completion, Effects, Extent, Hints, LayerReadings, Node, NodeContext, Operation, Port,
    READINGS, Request, RequestId, Source, Wake,
};
use fullstroke_counters::Counter;
use fullstroke_drive::{DriveConfig, DriveModel, PowerConfig};
use fullstroke_engine::{Engine, Finished, Observer as _, RunOutcome};
use fullstroke_measure::{
    MeasuredRun, Measurement, Metric, RebuildPace, RebuildReport, RunIdentity, RunRecorder,
    ScrubReport, StreamsReport, WarmUp,
};
use fullstroke_units::{Duration, Random, Seed, Time};
use fullstroke_workload::Streams;

/// Keeps `outstanding` random requests of 8 sectors in flight, from three processes in turn.
struct Closed {
    left: u64,
    outstanding: u64,
    capacity: u64,
    random: Random,
    started: bool,
}

impl Closed {
    fn next(&mut self, out: &mut Effects) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let operation = if self.random.chance(0.3) {
            Operation::Write
        } else {
            Operation::Read
        };
        let request = Request {
            id: RequestId(self.left),
            operation,
            extent: Extent::new(self.random.below(self.capacity - 8), 8),
            hints: Hints {
                process: (self.left % 3) as u32 + 1,
                ..Hints::default()
            },
            ..Request::default()
        };
        out.issue(0, request);
    }
}

impl Node for Closed {
    fn wake(&mut self, _: Time, cx: &mut NodeContext<'_>) {
        self.started = true;
        (0..self.outstanding).for_each(|_| self.next(cx.out));
    }
    fn completed(&mut self, _: Time, _: Port, _: Completion, cx: &mut NodeContext<'_>) {
        self.next(cx.out);
    }
    fn next_wake(&self) -> Wake {
        if self.started {
            Wake::NEVER
        } else {
            Time::ZERO.into()
        }
    }
}

impl Source for Closed {}

fn drive() -> DriveModel {
    let file = r#"{
        "title": "a small drive", "capacity_sectors": 600000, "rpm": 10000, "surfaces": 2,
        "zones": [{ "first_cylinder": 0, "last_cylinder": 999, "sectors_per_track": 300,
                    "track_skew": 30, "cylinder_skew": 40 }],
        "seek": { "form": "points", "points": [[1, 0.8], [999, 8.0]] },
        "sources": {}
    }"#;
    let config: DriveConfig = serde_json::from_str(file).unwrap();
    let power = Some(PowerConfig::assumed_for(&config).0);
    DriveModel::new(DriveConfig { power, ..config }).unwrap()
}

fn measured(requests: u64, warm_up: WarmUp) -> MeasuredRun {
    let model = drive();
    let source = Closed {
        left: requests,
        outstanding: 4,
        capacity: 600_000,
        random: Seed(1).stream("workload"),
        started: false,
    };
    let processes = ["reader", "writer", "reader"].map(str::to_owned).into();
    let measurement = Measurement::new(warm_up).with_processes(processes);
    let mut recorder = RunRecorder::new(measurement, None, None);
    let disk = model.branch().unwrap();
    let mut engine = Engine::new(disk, Box::new(source));
    let names: Vec<String> = engine.graph().drive_names().map(str::to_owned).collect();
    let mut outcome = engine.run(&mut recorder).unwrap();
    // Adds two layers with every possible reading.
    let readings = |first: f64| {
        let values = (0..READINGS.len()).map(|index| (READINGS[index].name, first + index as f64));
        values.collect::<Vec<_>>()
    };
    outcome.counters.layers = vec![
        LayerReadings::new("one", &readings(10.0)),
        LayerReadings::new("other", &readings(20.0)),
    ];
    recorder
        .measurement
        .finish(&outcome, &names, RunIdentity::default())
}

#[test]
fn the_parts_add_up_to_the_response_time() {
    let report = measured(5_000, WarmUp::default()).report;
    let parts: f64 = report
        .times
        .time_ms
        .named()
        .iter()
        .map(|(_, value)| value)
        .sum();
    assert!(
        (parts - report.times.response_ms.mean).abs() < 1e-9,
        "{parts} {}",
        report.times.response_ms.mean
    );
    assert!((report.times.service_ms.mean + report.times.queue_ms.mean - parts).abs() < 1e-9);
}

#[test]
fn littles_law_ties_depth_rate_and_response_time() {
    let report = measured(5_000, WarmUp::default()).report;
    let in_flight = report.rates.iops * report.times.response_ms.mean / 1e3;
    assert!(
        (in_flight - report.array.members[0].value(Counter::QUEUE_LENGTH)).abs() < 1e-6,
        "{in_flight}"
    );
    assert!((in_flight - 4.0).abs() < 0.01, "{in_flight}");
    assert!((report.array.members[0].value(Counter::BUSY) - 1.0).abs() < 1e-3);
}

#[test]
fn reads_and_writes_make_up_the_whole() {
    let report = measured(5_000, WarmUp::default()).report;
    let (reads, writes) = (report.kinds.reads.unwrap(), report.kinds.writes.unwrap());
    assert_eq!(reads.requests + writes.requests, report.arrived.completed);
    assert!((reads.iops + writes.iops - report.rates.iops).abs() < 1e-9);
    assert!((reads.mb_per_s + writes.mb_per_s - report.rates.mb_per_s).abs() < 1e-9);
    assert!((report.rates.mb_per_s - report.rates.iops * 4096.0 / 1e6).abs() < 1e-9);
}

#[test]
fn a_warm_up_is_left_out_of_the_times_and_told() {
    let whole = measured(5_000, WarmUp::default()).report;
    let rest = measured(
        5_000,
        WarmUp {
            requests: 1_000,
            until: Time::ZERO,
        },
    )
    .report;
    assert_eq!(
        (rest.arrived.requests, rest.arrived.warm_up_requests),
        (5_000, 1_000)
    );
    let counted = rest.kinds.reads.unwrap().requests + rest.kinds.writes.unwrap().requests;
    assert_eq!(counted, 4_000);
    assert!(rest.rates.simulated_s < whole.rates.simulated_s);
    assert!(rest.times.response_ms.ci95_half_width.is_some());
}

#[test]
fn what_is_under_way_when_the_warm_up_ends_counts() {
    // 256 requests are outstanding all the time. Each is served for 1 ms in the order of arrival,
    // and the last arrives after two seconds.
    let (outstanding, service, last) = (256u64, Duration::from_millis(1), 2_000);
    let until = Time::ZERO + Duration::from_secs(1);
    let mut measurement = Measurement::new(WarmUp { requests: 0, until });
    for origin in 0..last + outstanding {
        let arrived = Time::ZERO + service * (origin + 1).saturating_sub(outstanding);
        let finished = Time::ZERO + service * (origin + 1);
        measurement.finished(&Finished {
            origin,
            operation: Operation::Read,
            extent: Extent::new(0, 8),
            process: 1,
            workload: 0,
            arrived,
            completion: Completion {
                finished,
                ..Completion::default()
            },
        });
    }
    let (requests, end) = (
        last + outstanding,
        Time::ZERO + service * (last + outstanding),
    );
    let outcome = RunOutcome {
        requests,
        completed: requests,
        end,
        ..RunOutcome::default()
    };
    let report = measurement
        .finish(&outcome, &[], RunIdentity::default())
        .report;
    // Requests that finish at or after the end of the warm-up count, over the time since then: one
    // per millisecond, for any number of outstanding requests.
    assert_eq!(report.arrived.warm_up_requests, 999);
    assert!(
        (report.rates.simulated_s - 1.256).abs() < 1e-9,
        "{}",
        report.rates.simulated_s
    );
    assert!(
        (report.rates.iops - 1_257.0 / 1.256).abs() < 1e-6,
        "{}",
        report.rates.iops
    );
    // Each request waited for the 255 before it, also a request that arrived early.
    assert!(
        (report.times.response_ms.mean - 256.0).abs() < 1e-6,
        "{}",
        report.times.response_ms.mean
    );
}

#[test]
fn the_json_of_a_report_has_the_promised_keys() {
    let json = serde_json::to_value(measured(2_000, WarmUp::default()).report).unwrap();
    for key in [
        "requests",
        "completed",
        "iops",
        "mb_per_s",
        "simulated_s",
        "wall_s",
        "requests_per_wall_s",
        "peak_rss_mb",
        "seed",
        "config_digest",
        "version",
        "lost",
        "out_of_range",
        "zero_seek_share",
    ] {
        assert!(json.get(key).is_some(), "{key}");
    }
    for time in ["response_ms", "service_ms", "queue_ms"] {
        for key in ["mean", "stddev", "p50", "p90", "p95", "p99", "p999", "max"] {
            assert!(json[time][key].is_number(), "{time}.{key}");
        }
    }
    for key in [
        "name",
        "requests",
        "utilisation",
        "seek_ms",
        "seek_cylinders",
        "rotation_ms",
        "transfer_ms",
        "queue_depth",
    ] {
        assert!(json["members"][0].get(key).is_some(), "members.{key}");
    }
}

/// Starts media streams on the same drive until one waits for more than half a second.
fn streams() -> StreamsReport {
    let config = serde_json::json!({
        "streams": 500, "bit_rate": "2Mbit/s", "duration": "2s", "start_interval": "20ms",
        "until_start_up_latency": "500ms", "file_size": "64KiB", "placement": "random",
    });
    let drive = drive();
    let capacity = drive.config().capacity_sectors;
    let source = Streams::new(&serde_json::from_value(config).unwrap(), capacity, Seed(3)).unwrap();
    let disk = drive.branch().unwrap();
    let mut engine = Engine::new(disk, Box::new(source));
    engine.run(&mut ()).unwrap();
    let results = engine.workload::<Streams>().unwrap().results();
    StreamsReport::new(&results)
}

#[test]
fn a_ramp_of_streams_says_how_many_started_in_time() {
    let streams = streams();
    let within = streams.within_latency.unwrap();
    assert!(
        within < streams.started && streams.started < 500,
        "{streams:?}"
    );
    let late = |stream: usize| {
        streams.each[stream]
            .start_up_ms
            .is_none_or(|latency| latency > 500.0)
    };
    assert!(late(within) && !(0..within).any(late));
    assert!(streams.underruns > 0 && streams.longest_stall_ms > 0.0);
    let stalled = streams
        .each
        .iter()
        .filter(|each| each.underruns > 0)
        .count();
    assert_eq!(streams.with_underruns, stalled);
    assert!(
        streams
            .each
            .iter()
            .all(|each| each.stalled_ms >= each.longest_stall_ms)
    );
}

#[test]
fn every_metric_has_its_value_in_the_json_under_its_name() {
    let mut report = measured(2_000, WarmUp::default()).report;
    report.array.layers.truncate(1);
    report.streams = Some(streams());
    let members = vec!["2".to_owned()];
    report.array.rebuild = Some(RebuildReport {
        members,
        share: 0.5,
        mb_per_s: 200.0,
        hours: 33.0,
        hours_ci95_half_width: Some(1.5),
        estimated: true,
        windows: 12,
        simulated_share: 0.5,
        slowness: 2.0,
        pace: RebuildPace::default(),
    });
    report.array.scrub = Some(ScrubReport {
        hours: 12.0,
        hours_ci95_half_width: 0.5,
        windows: 12,
        simulated_share: 0.01,
    });
    report.kinds.operations.flush = report.kinds.reads;
    report.kinds.operations.discard = report.kinds.writes;
    report.heads.apart_mb = 12.5;
    let json = serde_json::to_value(&report).unwrap();
    // The duration of the longest program is not a field of the JSON, but follows from the fields.
    let written = |metric: &Metric| *metric != Metric::PROGRAMS_ELAPSED;
    for metric in Metric::all().into_iter().filter(written) {
        let path = metric
            .name()
            .replace("members.", "members.0.")
            .replace("layers.", "layers.0.readings.");
        let pointer = format!("/{}", path.replace('.', "/"));
        let value = json
            .pointer(&pointer)
            .and_then(serde_json::Value::as_f64)
            .unwrap_or_else(|| panic!("{pointer}"));
        assert_eq!(value, metric.value(&report), "{pointer}");
    }
}

#[test]
fn flushes_and_discards_have_times_and_rates_of_their_own() {
    let mut measurement = Measurement::default();
    let requests = [
        (Operation::Write, 8, 10),
        (Operation::Flush, 0, 2),
        (Operation::Flush, 0, 4),
        (Operation::Discard, 4_000, 1),
    ];
    for (origin, (operation, sectors, response_ms)) in (0..).zip(requests) {
        let end = Time::ZERO + Duration::from_millis(response_ms);
        let completion = Completion {
            finished: end,
            ..Completion::default()
        };
        let extent = Extent::new(0, sectors);
        let arrived = Time::ZERO;
        measurement.finished(&Finished {
            origin,
            operation,
            extent,
            process: 0,
            workload: 0,
            arrived,
            completion,
        });
    }
    let outcome = RunOutcome {
        requests: 4,
        completed: 4,
        end: Time::ZERO + Duration::from_millis(10),
        ..RunOutcome::default()
    };
    let report = measurement
        .finish(&outcome, &[], RunIdentity::default())
        .report;
    let value = |name: &str| Metric::parse(name).unwrap().value(&report);
    assert_eq!(value("operations.flush.requests"), 2.0);
    assert_eq!(value("operations.flush.iops"), 200.0);
    assert_eq!(value("operations.flush.response_ms"), 3.0);
    assert_eq!(value("operations.flush.response_ms.max"), 4.0);
    assert_eq!(value("operations.discard.response_ms.mean"), 1.0);
    assert!((value("operations.discard.mb_per_s") - 204.8).abs() < 1e-9);
    assert_eq!(
        value("operations.write.response_ms.mean"),
        value("writes.response_ms.mean")
    );
    assert_eq!(value("operations.read.requests"), 0.0);
    assert!(value("operations.read.response_ms.p99").is_nan());
    assert_eq!(
        (value("response_ms.mean"), report.kinds.flushes_and_discards),
        (10.0, 3)
    );
    let text = report.to_string();
    assert!(
        text.lines().any(|line| line.starts_with("flushes")),
        "{text}"
    );
    assert!(
        text.lines().any(|line| line.starts_with("discards")),
        "{text}"
    );
}

#[test]
fn processes_and_groups_make_up_the_whole() {
    let report = measured(
        5_000,
        WarmUp {
            requests: 500,
            until: Time::ZERO,
        },
    )
    .report;
    let counted = report.arrived.completed - report.arrived.warm_up_requests;
    let each: u64 = report
        .shares
        .processes
        .iter()
        .map(|process| process.reads + process.writes)
        .sum();
    let groups: u64 = report
        .shares
        .groups
        .iter()
        .map(|group| group.reads + group.writes)
        .sum();
    assert_eq!((each, groups), (counted, counted));
    let bandwidth: f64 = report
        .shares
        .processes
        .iter()
        .map(|process| process.mb_per_s)
        .sum();
    assert!((bandwidth - report.rates.mb_per_s).abs() < 1e-9);
    let slowest = report
        .shares
        .processes
        .iter()
        .map(|process| process.response_ms.max)
        .fold(0.0, f64::max);
    assert_eq!(slowest, report.times.response_ms.max);
    assert_eq!(
        report
            .shares
            .groups
            .iter()
            .map(|group| group.processes)
            .collect::<Vec<_>>(),
        [2, 1]
    );
    assert!(report.shares.fairness > 0.99, "{}", report.shares.fairness);
}

#[test]
fn the_ratio_of_reads_to_writes_is_one_of_bytes_and_has_an_interval() {
    let measured = measured(5_000, WarmUp::default());
    let (reads, writes) = (
        measured.report.kinds.reads.unwrap(),
        measured.report.kinds.writes.unwrap(),
    );
    let ratio = measured.report.shares.read_write_ratio;
    assert!((ratio - reads.mb_per_s / writes.mb_per_s).abs() < 1e-9);
    // Each request is a write with probability 0.3, independent of earlier requests.
    let half_width = measured
        .half_width(Metric::parse("read_write_ratio").unwrap(), 0.95)
        .unwrap();
    assert!(
        (ratio - 7.0 / 3.0).abs() < 2.0 * half_width && half_width < 0.3,
        "{ratio} ± {half_width}"
    );
}

#[test]
fn a_report_for_people_shows_processes_and_their_groups() {
    let text = measured(2_000, WarmUp::default()).report.to_string();
    assert!(
        text.lines()
            .any(|line| line.starts_with("reader") && line.contains(" 2 ")),
        "{text}"
    );
    assert!(text.contains("fairness"), "{text}");
}

#[test]
fn a_reading_is_the_mean_over_the_layers_that_have_it() {
    let mut report = measured(2_000, WarmUp::default()).report;
    let second = Metric::parse(READINGS[1].name).unwrap();
    assert_eq!(
        second,
        Metric::parse(&format!("layers.{}", READINGS[1].name)).unwrap()
    );
    assert_eq!(second.value(&report), 16.0);
    report.array.layers[0].readings.clear();
    assert_eq!(second.value(&report), 21.0);
    report.array.layers.clear();
    assert!(second.value(&report).is_nan());
}

#[test]
fn a_report_for_people_shows_layers_by_name() {
    let text = measured(2_000, WarmUp::default()).report.to_string();
    let shown = |line: &str, name| line.contains(name) && line.contains(READINGS[0].name);
    assert!(text.lines().any(|line| shown(line, "one")), "{text}");
    assert!(text.lines().any(|line| shown(line, "other")), "{text}");
}

#[test]
fn a_report_for_people_shows_the_mean_with_its_interval() {
    let text = measured(2_000, WarmUp::default()).report.to_string();
    assert!(text.contains("2000 requests, 2000 completed"), "{text}");
    assert!(text.contains("where the time went"), "{text}");
    assert!(
        text.lines()
            .any(|line| line.trim_start().starts_with("response")),
        "{text}"
    );
}
