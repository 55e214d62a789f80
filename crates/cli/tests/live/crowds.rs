//! Tests with many clients, silent clients, and exhausted descriptors. The server still serves all
//! others, answers `ctl`, and ends on request.

use crate::server::{PATIENCE, Server, StackFolder};
use crate::stacks::RAID5;
use fullstroke_nbd::client::ExportClient;
use fullstroke_nbd::{CommandFlags, RequestCommand};
use rustix::process::{Resource, Rlimit, Signal, prlimit};
use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// Limit of requests in the server's layers, with some reserve.
const IN_FLIGHT_MAX: u64 = 2048 + 16;
/// Limit of requests in flight on one connection.
const DEPTH: u64 = 1024;

/// Sends reads without waiting for the answers.
fn ask_for(client: &mut ExportClient<UnixStream>, requests: u64, length: u32) {
    for number in 0..requests {
        let offset = number * 37 % 60 * MIB;
        client
            .submit(
                RequestCommand::Read,
                offset,
                length,
                CommandFlags::empty(),
                &[],
            )
            .unwrap();
    }
}

fn in_flight(server: &Server) -> u64 {
    server.status()["exports"][0]["in_flight"].as_u64().unwrap()
}

/// Returns the response time of a new client.
fn response(server: &Server) -> Duration {
    let mut client = server.client();
    let begun = Instant::now();
    client.read(MIB, &mut [0; 4096]).unwrap();
    begun.elapsed()
}

#[test]
fn what_clients_have_asked_for_that_are_gone_is_withdrawn() {
    let server = StackFolder::new(RAID5, 16).serve(&["--speed", "1"]);
    for _ in 0..24 {
        let mut client = server.client();
        ask_for(&mut client, DEPTH, 4096);
        drop(client);
    }
    let found = in_flight(&server);
    assert!(found <= IN_FLIGHT_MAX, "{found} in flight");
    // At a thousand reads per second, all requests would take half a minute.
    let response = response(&server);
    assert!(response < Duration::from_secs(12), "{response:?}");
    let begun = Instant::now();
    server.stop_well();
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn clients_in_line_are_served_in_turns() {
    // Slow drives, so that the crowd's requests last even if this process waits for a processor.
    let server = StackFolder::new(RAID5, 16).serve(&["--speed", "0.3"]);
    let mut crowd: Vec<_> = (0..8).map(|_| server.client()).collect();
    for client in &mut crowd {
        ask_for(client, DEPTH, 4096);
    }
    let mut late = server.client();
    late.read(0, &mut [0; 4096]).unwrap();
    assert!(
        in_flight(&server) > 0,
        "the last comer waited for all others"
    );
    for client in &mut crowd {
        (0..DEPTH).for_each(|_| assert!(client.receive().unwrap().result.is_ok()));
    }
    server.stop_well();
}

#[test]
fn a_server_whose_drives_are_slow_ends_soon_and_answers_what_it_had_begun() {
    let server = StackFolder::new(RAID5, 16).serve(&["--speed", "0.001"]);
    let mut client = server.client();
    ask_for(&mut client, 100, 4096);
    while in_flight(&server) < 100 {
        thread::sleep(Duration::from_millis(5));
    }
    server.signal(Signal::TERM);
    // A second signal skips the wait for the drives.
    thread::sleep(Duration::from_millis(100));
    server.signal(Signal::TERM);
    let begun = Instant::now();
    (0..100).for_each(|_| assert!(client.receive().unwrap().result.is_ok()));
    let end = server.wait();
    assert_eq!((end.status.code(), end.complaints.as_str()), (Some(0), ""));
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn however_many_never_read_their_answers_memory_is_bounded_and_others_are_served() {
    let server = StackFolder::new(RAID5, 16).serve(&["--no-delay"]);
    response(&server);
    let before = server.peak_bytes();
    let mut hogs: Vec<_> = (0..48).map(|_| server.client()).collect();
    for hog in &mut hogs {
        // The answers are 3 GiB in total.
        ask_for(hog, 64, MIB as u32);
    }
    for length in [4096, 4 * MIB as usize] {
        let mut found = vec![0; length];
        server.client().read(0, &mut found).unwrap();
    }
    let grown = server.peak_bytes() - before;
    assert!(grown < 1024 * MIB, "{} MiB", grown / MIB);
    drop(hogs);
    response(&server);
    server.stop_well();
}

#[test]
fn clients_that_say_nothing_shut_nobody_out() {
    let server = StackFolder::new(RAID5, 8).serve_with_descriptors(96, &["--no-delay"]);
    let mut silent: Vec<_> = (0..200).map(|_| server.connection()).collect();
    for _ in 0..3 {
        response(&server);
        server.status();
    }
    // The server gives the remaining connections some seconds.
    let begun = Instant::now();
    for stream in &mut silent {
        let end = stream.read_to_end(&mut Vec::new());
        assert!(
            end.is_ok() && begun.elapsed() < PATIENCE / 3,
            "{end:?} after {:?}",
            begun.elapsed()
        );
    }
    server.stop_well();
}

#[test]
fn clients_leave_descriptors_to_those_who_give_orders() {
    let place = StackFolder::new(RAID5, 8);
    let server = place.serve_with_descriptors(96, &["--no-delay", "--metrics", "127.0.0.1:0"]);
    let mut clients = Vec::new();
    // Connects until the server refuses.
    while let Ok(client) = ExportClient::connect(server.connection(), &Default::default()) {
        clients.push(client);
        assert!(clients.len() < 96);
    }
    assert!(clients.len() > 10, "{} clients", clients.len());
    assert_eq!(server.status()["clients"], clients.len());
    server.ctl(&["fail", "2"]);
    clients
        .iter_mut()
        .for_each(|client| client.read(0, &mut [0; 4096]).unwrap());
    clients.truncate(5);
    while server.status()["clients"] != 5 {
        thread::sleep(Duration::from_millis(10));
    }
    response(&server);
    server.stop_well();
}

#[test]
fn a_server_without_a_descriptor_to_spare_hears_again_when_there_is_one() {
    let server = StackFolder::new(RAID5, 8).serve(&["--no-delay"]);
    response(&server);
    let none = Rlimit {
        current: Some(3),
        maximum: Some(1024),
    };
    let before = prlimit(Some(server.id()), Resource::Nofile, none).unwrap();
    let waiting = server.connection();
    thread::sleep(Duration::from_millis(300));
    let again = Rlimit {
        current: before.current,
        maximum: Some(1024),
    };
    prlimit(
        Some(server.id()),
        Resource::Nofile,
        Rlimit {
            current: Some(512),
            ..again
        },
    )
    .unwrap();
    ExportClient::connect(waiting, &Default::default()).unwrap();
    response(&server);
    server.stop_well();
}

#[test]
fn a_rebuild_that_waits_for_nothing_leaves_clients_their_turn() {
    let server = StackFolder::new(RAID5, 64).serve(&["--no-delay"]);
    let mut client = server.client();
    let data = vec![7; MIB as usize];
    (0..200).for_each(|number| {
        client
            .write(number * MIB, &data, CommandFlags::empty())
            .unwrap()
    });
    server.ctl(&["fail", "1"]);
    server.ctl(&["restore", "1"]);
    let mut times = Vec::new();
    while server.states()[1] == "rebuilding" && times.len() < 200 {
        let begun = Instant::now();
        client.read(MIB, &mut [0; 4096]).unwrap();
        times.push(begun.elapsed());
    }
    times.sort();
    if let Some(median) = times.get(times.len() / 2) {
        assert!(*median < Duration::from_millis(50), "{median:?}");
    }
    server.wait_for_rebuild();
    server.scrub();
    server.stop_well();
}
