use crate::choices::{Choices, NextCommand};
use crate::discipline::XorDiscipline;
use crate::testing::{array, completions, link, link_of, model, obeying, request, run};
use fullstroke_contract::{
    CounterReading, Counters, Effects, LayerOrder, Node, NodeContext, Port, RequestStatus,
};
use fullstroke_units::{Duration, Time};
use serde_json::json;

/// A discipline that carries an XDWRITE EXTENDED out to the end before another command begins, as
/// SCSI executes commands one at a time.
struct SingleThreaded;

impl XorDiscipline for SingleThreaded {
    fn choose(&mut self, choices: &Choices<'_>) -> Option<NextCommand> {
        if choices.results() > 0 {
            None
        } else {
            choices.preferring_xpw(Duration::ZERO)
        }
    }
}

/// Chunks of 8 sectors on 4 disks, left-symmetric: row 0 is 0 1 2 P, row 3 is P 9 10 11. The
/// updates of chunks 0 and 11 therefore need each other's disk.
const CROSSED: [(u64, u64, u64, bool); 2] = [(0, 0, 8, true), (0, 11 * 8, 8, true)];

#[test]
fn one_command_at_a_time_is_a_deadlock_and_several_are_none() {
    let keys = json!({ "segments": 16 });
    let mut blocked = obeying(&keys, || Box::new(SingleThreaded));
    assert_eq!(run(&mut blocked, &CROSSED, 0).len(), 0);
    assert_eq!(
        (blocked.next_wake().at(), blocked.gauge().queue_length),
        (Time::NEVER, 2)
    );
    assert_eq!(run(&mut array(&keys), &CROSSED, 0).len(), 2);
    let apart = [CROSSED[0], (100_000_000, 11 * 8, 8, true)];
    assert_eq!(
        run(&mut obeying(&keys, || Box::new(SingleThreaded)), &apart, 0).len(),
        2
    );
}

#[test]
fn an_update_costs_an_access_a_turn_and_a_transfer_on_each_disk() {
    let done = run(&mut array(&json!({})), &[(0, 0, 8, true)], 0);
    let parts = done[0].breakdown;
    // Sectors 0 to 7 of the first track, with 40 sectors. Heads on the track 0.2 ms after the index
    // have missed sector 0. A revolution is 6 ms.
    assert!(
        (parts.transfer.as_millis_f64() - 2.0 * 1.2).abs() < 1e-5,
        "{parts:?}"
    );
    assert!(
        (parts.rotation.as_millis_f64() - (5.8 + 4.8)).abs() < 1e-5,
        "{parts:?}"
    );
    assert_eq!((parts.seek, parts.queue), (Duration::ZERO, Duration::ZERO));
    // The parity disk begins 13.2 ms after the index, has an overhead of 0.2 ms,
    // waits for the index at 18 ms, reads, and has written after another turn.
    let xpw = 18.0 + 6.0 + 1.2 - 13.2;
    assert!(
        (parts.parity.as_millis_f64() - xpw).abs() < 1e-4,
        "{parts:?}"
    );
    assert!(
        (parts.overhead.as_millis_f64() - 0.2).abs() < 1e-5,
        "{parts:?}"
    );
}

#[test]
fn data_that_come_too_late_cost_whole_turns() {
    let slow = |microseconds: u64| {
        let link = link_of(Duration::from_micros(microseconds) / 4096);
        let keys = json!({ "chunk": "4KiB", "segment": "4KiB", "segments": 2 });
        let keys = serde_json::from_value(keys).unwrap();
        let mut array = crate::SmartArray::new(&keys, &vec![model(); 4], link).unwrap();
        run(&mut array, &[(0, 0, 8, true)], 0)[0].breakdown
    };
    // The heads have read after 7.2 ms. Data after 10 ms are in time for the index at 12 ms. Data
    // after 13 ms are in time for the index at 18 ms.
    let (early, late) = (slow(10_000), slow(13_000));
    assert!((late.rotation.as_millis_f64() - early.rotation.as_millis_f64() - 6.0).abs() < 1e-5);
}

#[test]
fn a_whole_row_is_written_without_reading_and_a_part_of_one_is_updated() {
    let mut array = array(&json!({}));
    run(&mut array, &[(0, 24, 24 + 8, true)], 0);
    let counts = (0..4).map(|disk| array.disk_statistics(disk));
    let sum = counts.fold([0; 4], |sum, disk| {
        let each = [disk.reads, disk.writes, disk.xdws, disk.xpws];
        std::array::from_fn(|index| sum[index] + each[index])
    });
    assert_eq!(sum, [0, 4, 1, 1]);
}

#[test]
fn a_request_over_segments_and_tracks_is_cut_at_segments_only() {
    let keys = json!({ "chunk": "32KiB", "segment": "32KiB", "segments": 4 });
    let mut large = array(&keys);
    // 64 sectors from a track of 40 on: one command over two or three tracks.
    run(&mut large, &[(0, 64, 64, false)], 0);
    assert_eq!(large.disk_statistics(1).reads, 1);
    let keys = json!({ "chunk": "32KiB", "segment": "8KiB", "segments": 4 });
    let mut small = array(&keys);
    run(&mut small, &[(0, 64, 64, false)], 0);
    assert_eq!(small.disk_statistics(1).reads, 4);
}

#[test]
fn an_xdw_waits_for_two_free_segments() {
    let keys = json!({ "segments": 2 });
    let mut array = array(&keys);
    // Two updates of one data disk: the second begins after the end of the first.
    let done = run(&mut array, &[(0, 0, 8, true), (0, 0, 8, true)], 0);
    assert!(done[1].breakdown.queue > done[0].breakdown.response() - Duration::from_millis(1));
    assert!(array.disk_statistics(0).forced_idle > Duration::ZERO);
}

#[test]
fn what_cannot_be_served_is_refused() {
    let (mut array, mut out) = (array(&json!({})), Effects::new());
    let beyond = [
        request(0, 4199, 2, true),
        request(1, u64::MAX, 1, false),
        request(2, 7, 0, true),
    ];
    for request in beyond {
        array.submit(
            Time::ZERO,
            Port::FIRST,
            request,
            &mut NodeContext::alone(&mut out),
        );
        assert_eq!(completions(&mut out)[0].status, RequestStatus::OutOfRange);
    }
    let order = LayerOrder::Fail { member: 0 };
    let refusal = array
        .ordered(Time::ZERO, order, &mut NodeContext::alone(&mut out))
        .unwrap_err();
    assert!(
        refusal.0.contains("neither failed nor restored disks"),
        "{refusal}"
    );
}

#[test]
fn disks_of_several_arms_are_refused() {
    let config = model().config().clone();
    let capacity_sectors = fullstroke_units::Sectors(2 * config.capacity_sectors.0);
    let arms = fullstroke_drive::DriveConfig {
        actuators: 2,
        capacity_sectors,
        ..config
    };
    let models = [
        model(),
        model(),
        fullstroke_drive::DriveModel::new(arms).unwrap(),
    ];
    let error = crate::SmartArray::new(&Default::default(), &models, link())
        .err()
        .unwrap();
    assert_eq!(error.key, "members");
    assert!(error.message.contains("disk 2 has several arms"), "{error}");
}

#[test]
fn readings_count_what_went_over_the_link() {
    let entry = fullstroke_link::REGISTRY[0];
    let link = (entry.name, (entry.build)(&Default::default(), 4).unwrap());
    let mut array = crate::SmartArray::new(&Default::default(), &vec![model(); 4], link).unwrap();
    let finished = run(&mut array, &[(0, 0, 8, true)], 0)[0].finished;
    let mut counters = Counters::default();
    array.count(finished, &mut counters);
    let readings: Vec<CounterReading> = counters
        .layers
        .into_iter()
        .flat_map(|layer| layer.readings)
        .collect();
    let value = |name: &str| {
        readings
            .iter()
            .find(|reading| reading.name == name)
            .unwrap()
            .value
    };
    // The new data go to one disk, and the result goes to the other. With parity computed by the
    // host, twice as many bytes would go over the link.
    assert!((value("link_payload_mb") - 2.0 * 4096.0 / 1e6).abs() < 1e-12);
    assert_eq!(
        (
            value("xor_xdws"),
            value("xor_xpws"),
            value("link_transfers")
        ),
        (1.0, 1.0, 8.0)
    );
    assert!(readings.iter().all(|reading| reading.value.is_finite()));
}
