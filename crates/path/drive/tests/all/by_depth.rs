//! Drives whose response times were measured by queue depth: mean and 99th percentile of random
//! reads of 4 KiB, and random writes a second, against the model (VALIDATION.md, "Drives by queue
//! depth").

use fullstroke_contract::{
    Effect, Effects, Extent, Node, NodeContext, Operation, Port, Request, RequestId,
};
use fullstroke_drive::{Drive, DriveConfig, DriveModel};
use fullstroke_units::{Duration, Time};

/// Time from an answer to the host's next request.
const HOST: Duration = Duration::from_micros(20);

/// A measured drive.
struct MeasuredDrive {
    name: &'static str,
    file: &'static str,
    /// Depth, mean and 99th percentile in ms of random reads of 4 KiB; 0 where not published.
    reads: [(u64, f64, f64); 6],
    /// Random writes of 4 KiB a second.
    writes: f64,
}

macro_rules! drive {
    ($name:literal) => {
        include_str!(concat!("../../../../../drives/", $name, ".toml"))
    };
}

/// louwrentius/fio-plot, benchmark_data (libaio, direct, one job, 60 s a row); the ST2000DM006:
/// lumir-sliva/ublk-disksim, docs/VALIDATION.md, whose means are depth over requests a second.
const MEASURED: [MeasuredDrive; 4] = [
    MeasuredDrive {
        name: "Samsung F1",
        file: drive!("samsung-f1-1tb"),
        reads: [
            (1, 13.79, 22.4),
            (2, 27.45, 40.6),
            (4, 52.98, 69.7),
            (8, 92.40, 111.7),
            (16, 144.1, 400.6),
            (32, 244.2, 876.6),
        ],
        writes: 150.0,
    },
    MeasuredDrive {
        name: "500 GB disk",
        file: drive!("desktop-500gb"),
        reads: [
            (1, 14.30, 23.7),
            (2, 28.44, 42.7),
            (4, 48.72, 168.8),
            (8, 85.22, 325.1),
            (16, 152.6, 608.2),
            (32, 281.5, 1069.5),
        ],
        writes: 123.8,
    },
    MeasuredDrive {
        name: "Travelstar 7K100",
        file: drive!("hitachi-7k100-100gb"),
        reads: [
            (1, 16.98, 29.8),
            (2, 33.33, 51.1),
            (4, 61.69, 141.6),
            (8, 110.7, 375.4),
            (16, 206.6, 775.9),
            (32, 389.0, 1451.0),
        ],
        writes: 43.9,
    },
    MeasuredDrive {
        name: "ST2000DM006",
        file: drive!("seagate-barracuda-2tb"),
        reads: [
            (1, 17.36, 28.4),
            (2, 31.0, 0.0),
            (4, 56.2, 0.0),
            (8, 101.8, 0.0),
            (16, 185.4, 0.0),
            (32, 341.9, 0.0),
        ],
        writes: 124.0,
    },
];

fn model(file: &str) -> DriveModel {
    let config: DriveConfig = toml::from_str(file).expect("the library's drives are sound");
    DriveModel::new(config).expect("the library's drives are sound")
}

/// Returns the response times in ms of `requests` random requests of 4 KiB with `depth`
/// outstanding, in ascending order, and the requests a second. The first sixth does not count.
fn closed(
    model: &DriveModel,
    operation: Operation,
    depth: u64,
    requests: usize,
) -> (Vec<f64>, f64) {
    several(model, 1, 1.0, operation, depth, requests)
}

/// Returns the same of requests that each go to one of `disks` disks, within the first `share` of
/// the addresses.
fn several(
    model: &DriveModel,
    disks: usize,
    share: f64,
    operation: Operation,
    depth: u64,
    requests: usize,
) -> (Vec<f64>, f64) {
    let pages = (model.config().capacity_sectors.0 as f64 * share) as u64 / 8;
    let mut drives: Vec<Drive> = (0..disks)
        .map(|_| model.drive().expect("a checked drive"))
        .collect();
    let (mut out, mut state, mut submitted) = (Effects::new(), 7u64, 0);
    let mut below = move |most: u64| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((u128::from(state) * u128::from(most)) >> 64) as u64
    };
    let mut due = vec![Time::ZERO; depth as usize];
    let mut times: Vec<(Time, f64)> = Vec::new();
    while times.len() < requests {
        due.sort_unstable();
        let events = drives.iter().map(|drive| drive.next_wake().at());
        let (woken, event) = events
            .enumerate()
            .min_by_key(|&(_, at)| at)
            .expect("at least one disk");
        let comes = due.first().copied().filter(|&first| first <= event);
        if let Some(now) = comes {
            due.remove(0);
            let page = below(pages);
            // One disk draws addresses alone.
            let disk = if disks == 1 {
                0
            } else {
                below(disks as u64) as usize
            };
            let request = Request {
                id: RequestId(submitted),
                operation,
                extent: Extent::new(page * 8, 8),
                ..Request::default()
            };
            submitted += 1;
            drives[disk].submit(now, Port::FIRST, request, &mut NodeContext::alone(&mut out));
        } else {
            drives[woken].wake(event, &mut NodeContext::alone(&mut out));
        }
        for effect in out.drain() {
            if let Effect::Complete { completion, .. } = effect {
                let took = completion.finished.since(completion.submitted);
                times.push((completion.finished, took.as_millis_f64()));
                due.push(completion.finished + HOST);
            }
        }
    }
    let counted = times.split_off(requests / 6);
    let seconds = counted[counted.len() - 1]
        .0
        .since(counted[0].0)
        .as_millis_f64()
        / 1e3;
    let mut ms: Vec<f64> = counted.iter().map(|&(_, ms)| ms).collect();
    ms.sort_by(f64::total_cmp);
    let rate = ms.len() as f64 / seconds;
    (ms, rate)
}

#[test]
fn response_times_by_depth_are_as_measured() {
    for measured in &MEASURED {
        let model = model(measured.file);
        for (depth, mean, p99) in measured.reads {
            let (ms, _) = closed(&model, Operation::Read, depth, 9000);
            let found = ms.iter().sum::<f64>() / ms.len() as f64;
            let found_p99 = ms[ms.len() * 99 / 100];
            println!(
                "{} depth {depth}: mean {found:.1} of {mean} ms, p99 {found_p99:.1} of {p99}",
                measured.name
            );
            assert!(
                (found / mean - 1.0).abs() < 0.05,
                "{} at {depth}: {found}",
                measured.name
            );
            assert!(
                p99 == 0.0 || (found_p99 / p99 - 1.0).abs() < 0.11,
                "{} at {depth}: {found_p99} of {p99}",
                measured.name
            );
        }
    }
}

#[test]
fn cached_random_writes_do_not_depend_on_depth_and_are_as_measured() {
    for measured in &MEASURED {
        let model = model(measured.file);
        for depth in [1, 8, 32] {
            let (_, rate) = closed(&model, Operation::Write, depth, 4000);
            println!(
                "{} depth {depth}: {rate:.1} of {} writes a second",
                measured.name, measured.writes
            );
            assert!(
                (rate / measured.writes - 1.0).abs() < 0.1,
                "{} at {depth}: {rate}",
                measured.name
            );
        }
    }
}

/// Requests a second of a Linux md RAID 5 of eight disks of 2 TB, by outstanding requests, from a
/// file of 100 GB (louwrentius/fio-plot, benchmark_data): 0.7 % of the addresses of each disk. The
/// models of the disks are not named.
const ARRAY: [(u64, f64); 7] = [
    (1, 106.1),
    (2, 203.1),
    (4, 357.8),
    (8, 576.2),
    (16, 845.7),
    (32, 1140.0),
    (64, 1467.0),
];

#[test]
fn disks_that_read_from_few_tracks_gain_from_depth_as_a_measured_array() {
    // A disk of 2 TB whose response time at depth 1 is that of the array: 5,400 revolutions.
    let mut config: DriveConfig = toml::from_str(drive!("seagate-barracuda-2tb")).expect("sound");
    config.rpm = 5400.0;
    let two_tb = DriveModel::new(config).expect("sound");
    for (name, model) in [
        ("2 TB, 5,400 rpm", two_tb),
        ("500 GB", model(drive!("desktop-500gb"))),
    ] {
        let rate = |depth| several(&model, 8, 0.0072, Operation::Read, depth, 9000).1;
        let alone = rate(1);
        for (depth, measured) in ARRAY {
            let (found, measured) = (rate(depth) / alone, measured / ARRAY[0].1);
            println!("eight of {name} at {depth}: {found:.2} times, measured {measured:.2}");
            assert!(
                (found / measured - 1.0).abs() < 0.1,
                "{name} at {depth}: {found} of {measured}"
            );
        }
    }
}

#[test]
fn desktop_disks_gain_little_from_depth_and_no_request_starves() {
    let desktop = [
        ("toshiba-p300-3tb", drive!("toshiba-p300-3tb")),
        ("toshiba-x300-5tb", drive!("toshiba-x300-5tb")),
        ("wd-red-plus-4tb", drive!("wd-red-plus-4tb")),
        ("wd-red-plus-8tb", drive!("wd-red-plus-8tb")),
        ("seagate-ironwolf-8tb", drive!("seagate-ironwolf-8tb")),
        ("samsung-f3-1tb", drive!("samsung-f3-1tb")),
        ("toshiba-mk8034gsx-80gb", drive!("toshiba-mk8034gsx-80gb")),
    ];
    for (name, file) in desktop {
        let model = model(file);
        let rate = |depth| closed(&model, Operation::Read, depth, 6000).1;
        let gain = rate(32) / rate(1);
        println!("{name}: {gain:.2} times the reads at depth 32");
        // Six measured disks: 1.4 to 1.8 times.
        assert!((1.3..1.9).contains(&gain), "{name}: {gain}");
        let limit = model.config().queue.age_limit.expect("an age limit");
        let (ms, _) = closed(&model, Operation::Read, 32, 6000);
        // A command beyond the limit waits at most for the older ones, 31 of them, 40 ms each.
        let most = limit.as_millis_f64() + 32.0 * 40.0;
        assert!(ms[ms.len() - 1] < most, "{name}: {} ms", ms[ms.len() - 1]);
    }
}
