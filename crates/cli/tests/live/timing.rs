//! No answer comes early.

use crate::pattern;
use crate::record::{RecordRow, rows};
use crate::server::StackFolder;
use crate::stacks::DISK;
use fullstroke_nbd::{CommandFlags, RequestCommand};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Runs `requests` random requests, `depth` at a time. Returns the client's response times in order
/// of arrival, and the rows of the record.
fn timed(requests: u64, depth: usize, speed: &str) -> (Vec<Duration>, Vec<RecordRow>) {
    let place = StackFolder::new(DISK, 16);
    let record = place.path("record.parquet");
    let server = place.serve(&["--speed", speed, "--record", record.to_str().unwrap()]);
    let mut client = server.client();
    let mut random = pattern::random("timing");
    let (mut begun, mut taken) = (HashMap::new(), HashMap::new());
    for number in 0..requests {
        let offset = random.below(16 << 8) << 12;
        let (command, payload) = if random.chance(0.5) {
            (RequestCommand::Read, vec![])
        } else {
            (RequestCommand::Write, vec![7; 4096])
        };
        let now = Instant::now();
        let cookie = client
            .submit(command, offset, 4096, CommandFlags::empty(), &payload)
            .unwrap();
        begun.insert(cookie, (number, now));
        while client.in_flight() >= if number + 1 == requests { 1 } else { depth } {
            let answer = client.receive().unwrap();
            let (number, at) = begun[&answer.cookie];
            taken.insert(number, at.elapsed());
        }
    }
    drop(client);
    server.stop_well();
    (
        (0..requests).map(|number| taken[&number]).collect(),
        rows(&record),
    )
}

fn comes_no_earlier_than_its_time(requests: u64, depth: usize, speed: &str) {
    let factor: f64 = speed.parse().unwrap();
    let (taken, rows) = timed(requests, depth, speed);
    assert_eq!(taken.len(), rows.len());
    for (number, (taken, row)) in taken.iter().zip(&rows).enumerate() {
        let response_ns = (row.completed_ns - row.arrival_ns) as f64 / factor;
        // Two clocks measure the time, so they may differ by a nanosecond.
        assert!(
            taken.as_nanos() as f64 + 1.0 >= response_ns,
            "request {number} took {taken:?}, but {response_ns} ns in the world"
        );
    }
    // The responses have a disk's latency: a revolution takes 6 ms.
    let mean_ns = rows
        .iter()
        .map(|row| row.completed_ns - row.arrival_ns)
        .sum::<u64>()
        / requests;
    assert!(mean_ns > 1_000_000, "{mean_ns}");
}

#[test]
fn one_request_at_a_time_is_never_answered_early() {
    comes_no_earlier_than_its_time(100, 1, "1");
}

#[test]
fn many_requests_at_a_time_are_never_answered_early() {
    comes_no_earlier_than_its_time(200, 16, "1");
}

#[test]
fn a_faster_world_is_never_early_either() {
    comes_no_earlier_than_its_time(400, 4, "8");
}
