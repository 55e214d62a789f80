use super::{Rotation, RotationEvidence};
use crate::validate::own::span::ServiceSpan;
use crate::validate::paced::{Paced, simulate};
use fullstroke_contract::{Extent, Operation};
use fullstroke_drive::DriveModel;
use fullstroke_stack::drives;
use fullstroke_units::{Angle, Duration, Seed, Time};

/// Returns the library's drive `name` at `rpm`, at an unknown angle.
fn drive(name: &str, rpm: f64) -> DriveModel {
    let mut config = drives::load(name).unwrap().config().clone();
    config.rpm = rpm;
    DriveModel::new(config)
        .unwrap()
        .turned(Angle::from_revolutions(0.37))
}

/// Returns what `count` requests of 4 KiB on `model` take, one at a time. One request of `again`
/// goes to the sectors of an earlier one; 0 means none.
fn served(
    model: &DriveModel,
    operation: Operation,
    count: usize,
    again: usize,
) -> Vec<ServiceSpan> {
    let mut random = Seed(7).stream("requests");
    let pages = model.config().capacity_sectors.0 / 8;
    let mut requests: Vec<Paced> = Vec::with_capacity(count);
    for number in 0..count {
        let earlier = number
            .checked_sub(10)
            .filter(|_| again > 0 && number % again == 0);
        let extent = match earlier {
            Some(earlier) => requests[earlier].extent,
            None => Extent::new(random.below(pages) * 8, 8),
        };
        requests.push(Paced {
            operation,
            extent,
            awaited: number,
            gap: Duration::from_micros(random.below(9000)),
        });
    }
    let (_, times) = simulate(model, &requests.clone().into()).unwrap();
    let mut now = Time::ZERO;
    let span = |(request, ms): (&Paced, f64)| {
        let start = now + request.gap;
        now = start + Duration::from_millis_f64(ms);
        ServiceSpan {
            operation,
            extent: request.extent,
            start,
            end: now,
        }
    };
    requests.iter().zip(times).map(span).collect()
}

/// A drive that keeps no data: each request turns the platters.
fn uncached(name: &str, rpm: f64) -> DriveModel {
    let mut config = drive(name, rpm).config().clone();
    config.buffer = None;
    DriveModel::new(config)
        .unwrap()
        .turned(Angle::from_revolutions(0.37))
}

#[test]
fn the_spread_of_random_reads_tells_the_speed() {
    for (name, rpm) in [
        ("toshiba-mk8034gsx-80gb", 4200.0),
        ("wd-red-plus-8tb", 5400.0),
        ("seagate-archive-8tb", 5900.0),
        ("toshiba-x300-5tb", 7200.0),
        ("seagate-exos-x24-24tb", 7200.0),
        ("seagate-cheetah-9lp", 10_000.0),
        ("seagate-cheetah-15k7-450gb", 15_000.0),
    ] {
        let spans = served(&drive(name, rpm), Operation::Read, 1500, 0);
        let found = Rotation::of(&spans).unwrap_or_else(|| panic!("{name}: not told"));
        assert_eq!(found.by, RotationEvidence::Spread, "{name}");
        assert_eq!((found.rpm, found.usual), (rpm, true), "{name}: {found}");
    }
}

#[test]
fn a_speed_that_is_not_sold_stays_within_the_ends_of_the_spread() {
    for rpm in [5640.0, 6400.0, 8400.0, 12_000.0] {
        let spans = served(&drive("wd-red-plus-8tb", rpm), Operation::Read, 1500, 0);
        let found = Rotation::of(&spans).unwrap();
        assert!(!found.differs(rpm), "{rpm}: {found}");
    }
}

#[test]
fn requests_for_the_same_sectors_tell_the_speed_to_a_thousandth() {
    for (name, rpm) in [
        ("wd-red-plus-8tb", 5360.0),
        ("seagate-cheetah-9lp", 10_045.0),
        ("toshiba-mk8034gsx-80gb", 4213.0),
    ] {
        for operation in [Operation::Read, Operation::Write] {
            let spans = served(&uncached(name, rpm), operation, 1500, 7);
            let found = Rotation::of(&spans).unwrap_or_else(|| panic!("{name}: not told"));
            assert_eq!(found.by, RotationEvidence::Phase, "{name}");
            assert!((found.rpm / rpm - 1.0).abs() < 0.001, "{name}: {found}");
        }
    }
}

#[test]
fn queued_requests_tell_the_speed_by_their_ends() {
    let model = uncached("wd-red-plus-8tb", 5360.0);
    let mut random = Seed(7).stream("requests");
    let pages = model.config().capacity_sectors.0 / 8;
    let mut requests: Vec<Paced> = Vec::new();
    for number in 0..1500 {
        let extent = match number % 5 {
            4 => requests[number - 4].extent,
            _ => Extent::new(random.below(pages) * 8, 8),
        };
        requests.push(Paced {
            operation: Operation::Read,
            extent,
            awaited: number.saturating_sub(3),
            gap: Duration::ZERO,
        });
    }
    let (_, times) = simulate(&model, &requests.clone().into()).unwrap();
    // A request starts when as many have ended as it awaits.
    let mut ends: Vec<Time> = Vec::new();
    let mut spans = Vec::new();
    for (request, ms) in requests.iter().zip(times) {
        ends.sort_unstable();
        let start = match request.awaited.checked_sub(1) {
            Some(last) => ends[last],
            None => Time::ZERO,
        };
        let end = start + Duration::from_millis_f64(ms);
        ends.push(end);
        spans.push(ServiceSpan {
            operation: request.operation,
            extent: request.extent,
            start,
            end,
        });
    }
    let found = Rotation::of(&spans).unwrap();
    assert_eq!(found.by, RotationEvidence::Phase);
    assert!((found.rpm / 5360.0 - 1.0).abs() < 0.001, "{found}");
}

/// Returns reads all over 500 GB, with the times in ms that `ms` gives.
fn reads(count: u64, mut ms: impl FnMut(u64) -> f64) -> Vec<ServiceSpan> {
    let mut random = Seed(3).stream("reads");
    let mut now = Time::ZERO;
    (0..count)
        .map(|number| {
            let start = now + Duration::from_micros(random.below(5000));
            now = start + Duration::from_millis_f64(ms(number));
            ServiceSpan {
                operation: Operation::Read,
                extent: Extent::new(random.below(976_000_000 / 8) * 8, 8),
                start,
                end: now,
            }
        })
        .collect()
}

#[test]
fn a_log_that_is_not_of_one_arm_tells_no_speed() {
    let mut random = Seed(5).stream("times");
    let mut uniform = move || random.below(1_000_000) as f64 / 1e6;
    // Too few reads.
    let spans = served(&drive("toshiba-x300-5tb", 7200.0), Operation::Read, 90, 0);
    assert_eq!(Rotation::of(&spans), None);
    // A sum of twelve uniform times is nearly normal, as the times of a long queue are.
    let normal = reads(1500, |_| {
        4.0 + (0..12).map(|_| uniform()).sum::<f64>() * 2.0
    });
    assert_eq!(Rotation::of(&normal), None);
    // Exponential times, as of a server with a random service.
    let mut random = Seed(5).stream("times");
    let mut uniform = move || (1 + random.below(1_000_000)) as f64 / 1e6;
    let exponential = reads(1500, |_| 2.0 - 6.0 * uniform().ln());
    assert_eq!(Rotation::of(&exponential), None);
    assert_eq!(Rotation::of(&reads(1500, |_| 7.0)), None);
    assert_eq!(Rotation::of(&[]), None);
}
