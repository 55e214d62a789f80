//! Tests that metrics agree with the clients' requests.

use crate::server::{PATIENCE, Server, StackFolder};
use crate::stacks::RAID5;
use fullstroke_nbd::client::ExportClient;
use fullstroke_nbd::{CommandFlags, RequestCommand};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Requests a path of the server. Returns head and body.
fn get(server: &Server, method: &str, path: &str) -> (String, String) {
    fetch(
        server.announcement["metrics"].as_str().unwrap(),
        method,
        path,
    )
}

/// Requests a path of the metrics server at `address`. Returns head and body.
fn fetch(address: &str, method: &str, path: &str) -> (String, String) {
    let address = address
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/metrics")
        .unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// Returns all samples of the server by name with labels.
fn samples(server: &Server) -> BTreeMap<String, f64> {
    samples_at(server.announcement["metrics"].as_str().unwrap())
}

/// Returns all samples of the metrics server at `address`.
pub fn samples_at(address: &str) -> BTreeMap<String, f64> {
    let (head, body) = fetch(address, "GET", "/metrics");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let lines = body
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        (
            name.to_owned(),
            value.parse().unwrap_or_else(|_| panic!("{line}")),
        )
    };
    lines.map(sample).collect()
}

fn operation<'a>(of: &'a BTreeMap<String, f64>) -> impl Fn(&str, &str) -> f64 + 'a {
    move |family, operation| {
        let name = format!("{family}{{export=\"raid5\",operation=\"{operation}\"}}");
        *of.get(&name)
            .unwrap_or_else(|| panic!("no {name} in {of:#?}"))
    }
}

fn work(client: &mut ExportClient<UnixStream>) {
    for number in 0..30 {
        client
            .write(number << 16, &[1; 8192], CommandFlags::empty())
            .unwrap();
    }
    for number in 0..50 {
        client.read(number << 14, &mut [0; 4096]).unwrap();
    }
    client.write_zeroes(0, 1024, CommandFlags::NO_HOLE).unwrap();
    (0..3).for_each(|_| client.flush().unwrap());
    (0..2).for_each(|_| client.trim(0, 1 << 16).unwrap());
}

#[test]
fn counts_are_those_of_what_clients_did() {
    let server = StackFolder::new(RAID5, 8).serve(&["--no-delay", "--metrics", "127.0.0.1:0"]);
    let mut client = server.client();
    work(&mut client);
    let found = samples(&server);
    let of = operation(&found);
    let expected = [
        ("read", 50.0, 50.0 * 4096.0),
        ("write", 31.0, 30.0 * 8192.0 + 1024.0),
        ("flush", 3.0, 0.0),
    ];
    for (name, requests, bytes) in expected {
        assert_eq!(of("fullstroke_requests_total", name), requests, "{name}");
        assert_eq!(of("fullstroke_request_bytes_total", name), bytes, "{name}");
        assert_eq!(of("fullstroke_request_errors_total", name), 0.0, "{name}");
        assert_eq!(
            of("fullstroke_response_seconds_count", name),
            requests,
            "{name}"
        );
    }
    assert_eq!(of("fullstroke_requests_total", "discard"), 2.0);
    assert_eq!(found["fullstroke_clients"], 1.0);
    assert_eq!(found["fullstroke_in_flight{export=\"raid5\"}"], 0.0);
    assert_eq!(
        found["fullstroke_usable_bytes{export=\"raid5\"}"],
        f64::from(32 << 20)
    );
    assert!(!found.contains_key("fullstroke_speed_ratio"));
    for drive in 0..5 {
        let ios =
            found[&format!("fullstroke_drive_ios_total{{export=\"raid5\",drive=\"{drive}\"}}")];
        let busy = found
            [&format!("fullstroke_drive_busy_seconds_total{{export=\"raid5\",drive=\"{drive}\"}}")];
        assert!(ios > 0.0 && busy > 0.0, "drive {drive}");
    }
    server.stop_well();
}

#[test]
fn failures_and_lost_data_are_counted() {
    let server = StackFolder::new(RAID5, 8).serve(&["--no-delay", "--metrics", "127.0.0.1:0"]);
    let mut client = server.client();
    let state = |drive: &str, state: &str| {
        let name = format!(
            "fullstroke_drive_state{{export=\"raid5\",drive=\"{drive}\",state=\"{state}\"}}"
        );
        samples(&server)[&name]
    };
    assert_eq!((state("1", "alive"), state("1", "failed")), (1.0, 0.0));
    server.ctl(&["fail", "1"]);
    assert_eq!((state("1", "alive"), state("1", "failed")), (0.0, 1.0));
    server.ctl(&["fail", "2"]);
    let mut failed = 0.0;
    for number in 0..100 {
        client
            .submit(
                RequestCommand::Read,
                number << 14,
                4096,
                CommandFlags::empty(),
                &[],
            )
            .unwrap();
        failed += f64::from(client.receive().unwrap().result.is_err());
    }
    let found = samples(&server);
    assert!(failed > 0.0);
    let of = operation(&found);
    assert_eq!(of("fullstroke_request_errors_total", "read"), failed);
    assert_eq!(of("fullstroke_requests_total", "read"), 100.0);
    assert_eq!(
        of("fullstroke_request_bytes_total", "read"),
        (100.0 - failed) * 4096.0
    );
    assert_eq!(
        of("fullstroke_response_seconds_count", "read"),
        100.0 - failed
    );
    server.stop_well();
}

#[test]
fn clients_are_counted_while_they_are_there() {
    let server = StackFolder::new(RAID5, 8).serve(&["--speed", "3", "--metrics", "127.0.0.1:0"]);
    let clients: Vec<_> = (0..7).map(|_| server.client()).collect();
    let found = samples(&server);
    assert_eq!(
        (found["fullstroke_clients"], found["fullstroke_speed_ratio"]),
        (7.0, 3.0)
    );
    drop(clients);
    let begun = Instant::now();
    while samples(&server)["fullstroke_clients"] > 0.0 {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(10));
    }
    server.stop_well();
}

#[test]
fn other_paths_and_methods_are_told_where_the_numbers_are() {
    let server = StackFolder::new(RAID5, 8).serve(&["--no-delay", "--metrics", "127.0.0.1:0"]);
    assert!(get(&server, "GET", "/other").0.starts_with("HTTP/1.1 404"));
    assert!(get(&server, "GET", "/").1.contains("live.js"));
    assert!(
        get(&server, "POST", "/metrics")
            .0
            .starts_with("HTTP/1.1 405")
    );
    assert_eq!(get(&server, "HEAD", "/metrics").1, "");
    server.stop_well();
}
