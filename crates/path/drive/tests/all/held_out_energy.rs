//! Power under load from a manual, predicted from another model of the same manual. Seek and
//! transfer energies are fitted on Seagate's Constellation ES.3 SAS of 2 TB (table 4, 6 Gb/s). The
//! prediction is compared with the 4 TB model (table 2), of which only the idle watts are used.

use fullstroke_contract::{
    Effect, Effects, Extent, Node, NodeContext, Operation, Port, PowerState, PowerStatistics,
    Request, RequestId,
};
use fullstroke_drive::{DataSheet, DriveConfig, DriveModel, PowerConfig, sectors_of};
use fullstroke_units::{Bytes, Time};

/// Watts of a model, from the currents at 5 and 12 V.
struct Manual {
    terabytes: u64,
    idle: f64,
    random_read: f64,
    random_write: f64,
    sequential_read: f64,
    sequential_write: f64,
}

fn watts(amps_5v: f64, amps_12v: f64) -> f64 {
    5.0 * amps_5v + 12.0 * amps_12v
}

fn two_terabytes() -> Manual {
    Manual {
        terabytes: 2,
        idle: watts(0.33, 0.34),
        random_read: watts(0.43, 0.62),
        random_write: watts(0.42, 0.53),
        sequential_read: watts(0.70, 0.39),
        sequential_write: watts(0.56, 0.42),
    }
}

fn four_terabytes() -> Manual {
    Manual {
        terabytes: 4,
        idle: watts(0.37, 0.51),
        random_read: watts(0.50, 0.78),
        random_write: watts(0.52, 0.68),
        sequential_read: watts(0.82, 0.55),
        sequential_write: watts(0.67, 0.59),
    }
}

/// The data sheet of the series: 7,200 rpm, 175 MB/s, 8.5 ms, 128 MB.
fn config(terabytes: u64, power: PowerConfig) -> DriveConfig {
    let sheet = DataSheet {
        title: format!("Constellation ES.3 {terabytes} TB"),
        capacity: sectors_of(Bytes(terabytes * 1_000_000_000_000)),
        rpm: 7200.0,
        outer_mb_per_s: 175.0,
        inner_mb_per_s: None,
        average_seek_ms: Some(8.5),
        surfaces: None,
        buffer: Some(Bytes(128 << 20)),
        class: Some(fullstroke_drive::presets::DriveClass::Nearline),
    };
    DriveConfig {
        power: Some(power),
        ..sheet.drive().expect("such a drive can be")
    }
}

/// Returns the power draw of an arm with these additions to the idle watts.
fn power(idle: f64, [seek, read, write, write_seek]: [f64; 4]) -> PowerConfig {
    PowerConfig {
        seek_w: Some(idle + seek),
        write_seek_w: Some(idle + write_seek),
        rotate_w: Some(idle),
        read_w: Some(idle + read),
        write_w: Some(idle + write),
        idle_a_w: Some(idle),
        ..PowerConfig::assumed_for(&config(2, PowerConfig::default())).0
    }
}

/// Runs requests one after the other and returns the energy. Random requests have 8 sectors,
/// sequential requests 128.
fn load(config: &DriveConfig, operation: Operation, random: bool) -> PowerStatistics {
    const REQUESTS: u64 = 6000;
    let sectors = if random { 8 } else { 128 };
    let places = config.capacity_sectors.0 / sectors;
    let mut drive = DriveModel::new(config.clone())
        .and_then(|model| model.drive())
        .expect("it can be built");
    let mut out = Effects::new();
    let (mut state, mut now, mut done) = (7u64, Time::ZERO, 0);
    for id in 0..REQUESTS {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let place = if random {
            ((u128::from(state) * u128::from(places)) >> 64) as u64
        } else {
            id
        };
        let extent = Extent::new(place * sectors, sectors);
        let request = Request {
            id: RequestId(id),
            operation,
            extent,
            ..Request::default()
        };
        drive.submit(now, Port::FIRST, request, &mut NodeContext::alone(&mut out));
        while done == id {
            done += out
                .drain()
                .filter(|effect| matches!(effect, Effect::Complete { .. }))
                .count() as u64;
            if done == id {
                now = drive.next_wake().at();
                drive.wake(now, &mut NodeContext::alone(&mut out));
            }
        }
    }
    drive.power(now).expect("it says what it draws")
}

fn share(power: &PowerStatistics, state: PowerState) -> f64 {
    power.residency().of(state).as_secs_f64() / power.residency().total().as_secs_f64()
}

/// Returns the watts that seeks and transfers add to idle, from the sequential and the random
/// loads. One request is in flight, and the write cache is on, as delivered. (Without the cache,
/// sequential writes that wait for each other would spend only a few hundredths of the time on
/// transfers. A transfer would then have to draw 45 W.)
fn additions(manual: &Manual) -> [f64; 4] {
    let drive = config(manual.terabytes, power(manual.idle, [1.0; 4]));
    let in_order = |operation, state, found: f64| {
        (found - manual.idle) / share(&load(&drive, operation, false), state)
    };
    let read = in_order(Operation::Read, PowerState::Read, manual.sequential_read);
    let write = in_order(Operation::Write, PowerState::Write, manual.sequential_write);
    let seek = |operation, [seeks, passes]: [PowerState; 2], transfer: f64, found: f64| {
        let random = load(&drive, operation, true);
        (found - manual.idle - transfer * share(&random, passes)) / share(&random, seeks)
    };
    let to_read = seek(
        Operation::Read,
        [PowerState::Seek, PowerState::Read],
        read,
        manual.random_read,
    );
    let to_write = seek(
        Operation::Write,
        [PowerState::WriteSeek, PowerState::Write],
        write,
        manual.random_write,
    );
    [to_read, read, write, to_write]
}

#[test]
fn the_watts_of_another_model_of_a_manual_come_out_within_five_per_cent() {
    let (known, held_out) = (two_terabytes(), four_terabytes());
    let additions = additions(&known);
    let [seek, read, write, write_seek] = additions;
    println!(
        "a seek adds {seek:.2} W to idle, one to write {write_seek:.2}, reading {read:.2}, writing {write:.2}"
    );
    let drive = config(held_out.terabytes, power(held_out.idle, additions));
    for (name, operation, random, expected) in [
        ("random reads", Operation::Read, true, held_out.random_read),
        (
            "random writes",
            Operation::Write,
            true,
            held_out.random_write,
        ),
        (
            "reads in order",
            Operation::Read,
            false,
            held_out.sequential_read,
        ),
        (
            "writes in order",
            Operation::Write,
            false,
            held_out.sequential_write,
        ),
    ] {
        let found = load(&drive, operation, random).mean_power().0;
        let off = found / expected - 1.0;
        println!(
            "{name}: {found:.2} W, published {expected:.2} W, {:+.1} %",
            100.0 * off
        );
        assert!(
            off.abs() < 0.05,
            "{name}: {found:.2} W, published {expected:.2} W"
        );
    }
}

#[test]
fn a_seek_costs_less_to_write_than_to_read_on_both_models() {
    for manual in [two_terabytes(), four_terabytes()] {
        let [seek, .., write_seek] = additions(&manual);
        println!(
            "{} TB: {seek:.2} W to read, {write_seek:.2} W to write",
            manual.terabytes
        );
        assert!(write_seek < 0.8 * seek, "{seek} {write_seek}");
    }
}
