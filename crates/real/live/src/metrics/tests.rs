//! The page against a strict reader, and over real connections.

#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story from its beginning to its end"
)]

use super::parser::{Families, parse};
use super::*;
use crate::answering::{Answering, status};
use fullstroke_transport::socket::PEERS_MAX;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

fn value(families: &Families, name: &str, labels: &[(&str, &str)]) -> f64 {
    let family = families.iter().find(|(family, _)| {
        name.starts_with(family.as_str()) && {
            families[*family]
                .samples
                .iter()
                .any(|sample| sample.name == name)
        }
    });
    let (_, family) = family.unwrap_or_else(|| panic!("no {name}"));
    let has = |sample: &&super::parser::MetricSample| {
        sample.name == name
            && labels.iter().all(|(label, value)| {
                sample
                    .labels
                    .get(*label)
                    .is_some_and(|found| found == value)
            })
    };
    let found: Vec<_> = family.samples.iter().filter(has).collect();
    assert_eq!(found.len(), 1, "{name} {labels:?}: {found:?}");
    found[0].value
}

/// A sample's name, labels and value.
type Expected<'a> = (&'a str, &'a [(&'a str, &'a str)], f64);

#[test]
fn the_page_says_what_the_status_says() {
    let status = status();
    let families = parse(&render(&status));
    let export = ("export", status.exports[0].name.as_str());
    let read = [export, ("operation", "read")];
    let second = [export, ("drive", "1.0")];
    let expected: &[Expected<'_>] = &[
        ("fullstroke_build_info", &[("version", "1.2.3")], 1.0),
        ("fullstroke_clients", &[], 2.0),
        ("fullstroke_world_seconds", &[export], 12.5),
        ("fullstroke_in_flight", &[export], 3.0),
        ("fullstroke_compare_left_bytes", &[export], 4096.0),
        ("fullstroke_requests_total", &read, 14.0),
        ("fullstroke_request_bytes_total", &read, 57344.0),
        ("fullstroke_request_errors_total", &read, 1.0),
        (
            "fullstroke_requests_total",
            &[export, ("operation", "discard")],
            0.0,
        ),
        ("fullstroke_response_seconds_sum", &read, 9.5),
        ("fullstroke_response_seconds_count", &read, 14.0),
        (
            "fullstroke_response_seconds_bucket",
            &[read[0], read[1], ("le", "0.0005")],
            5.0,
        ),
        (
            "fullstroke_response_seconds_bucket",
            &[read[0], read[1], ("le", "0.001")],
            12.0,
        ),
        (
            "fullstroke_response_seconds_bucket",
            &[read[0], read[1], ("le", "2.5")],
            12.0,
        ),
        (
            "fullstroke_response_seconds_bucket",
            &[read[0], read[1], ("le", "+Inf")],
            14.0,
        ),
        (
            "fullstroke_lateness_seconds",
            &[export, ("quantile", "0.99")],
            50e-6,
        ),
        ("fullstroke_lateness_seconds_count", &[export], 14.0),
        ("fullstroke_lateness_max_seconds", &[export], 100e-6),
        ("fullstroke_drive_queue_length", &second, 4.0),
        ("fullstroke_drive_busy_seconds_total", &second, 6.25),
        ("fullstroke_drive_head_position_ratio", &second, 0.5),
        ("fullstroke_drive_ios_total", &second, 30.0),
        ("fullstroke_drive_bytes_total", &second, 122880.0),
        ("fullstroke_drive_buffer_hits_total", &second, 9.0),
        ("fullstroke_drive_rebuilt_ratio", &second, 0.25),
        (
            "fullstroke_drive_state",
            &[second[0], second[1], ("state", "rebuilding")],
            1.0,
        ),
        (
            "fullstroke_drive_state",
            &[second[0], second[1], ("state", "alive")],
            0.0,
        ),
    ];
    for (name, labels, expected) in expected {
        let found = value(&families, name, labels);
        assert!(
            (found - expected).abs() < 1e-12,
            "{name} {labels:?}: {found}, expected {expected}"
        );
    }
}

#[test]
fn a_server_that_has_served_nothing_has_a_page() {
    let mut status = status();
    let families = parse(&render(&ServerStatus {
        exports: Vec::new(),
        speed: None,
        ..status.clone()
    }));
    assert!(!families.contains_key("fullstroke_speed_ratio"));
    status.exports[0].operations = crate::status::Operations::default();
    parse(&render(&status));
}

fn served() -> (MetricsServer, Answering) {
    let server = Answering::repeating();
    let metrics = MetricsServer::open(
        (Ipv4Addr::LOCALHOST, 0).into(),
        server.handle.clone(),
        Admission::default(),
    )
    .unwrap();
    (metrics, server)
}

fn get(metrics: &MetricsServer, request: &[u8]) -> (String, String) {
    let mut stream = TcpStream::connect(metrics.address()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.to_owned(), body.to_owned())
}

#[test]
fn who_asks_for_another_host_is_told_nothing() {
    let (metrics, _server) = served();
    for page in ["/metrics", "/", "/events", "/status"] {
        for host in [
            "evil.example",
            "evil.example:9100",
            "127.0.0.1\r\nHost: evil.example",
        ] {
            let request = format!("GET {page} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            let (head, body) = get(&metrics, request.as_bytes());
            assert!(head.starts_with("HTTP/1.1 421 "), "{page} {host}: {head}");
            assert!(body.contains("--metrics-host"), "{body}");
        }
    }
    // Too many headers must not bypass the host check.
    let many = "X: y\r\n".repeat(80);
    let request = format!("GET /events HTTP/1.1\r\nHost: evil.example\r\n{many}\r\n");
    assert!(
        get(&metrics, request.as_bytes())
            .0
            .starts_with("HTTP/1.1 431 ")
    );
    for host in ["127.0.0.1", "localhost:9100", "[::1]:80"] {
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert!(
            get(&metrics, request.as_bytes())
                .0
                .starts_with("HTTP/1.1 200 "),
            "{host}"
        );
    }
}

#[test]
fn the_page_is_served_over_http() {
    let (metrics, _server) = served();
    let (head, body) = get(
        &metrics,
        b"GET /metrics?x=1 HTTP/1.1\r\nHost: localhost:1\r\nAccept: */*\r\n\r\n",
    );
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains("Content-Type: text/plain; version=0.0.4"),
        "{head}"
    );
    assert!(
        head.contains(&format!("Content-Length: {}\r\n", body.len())),
        "{head}"
    );
    assert_eq!(body, render(&status()));
    let (head, body) = get(&metrics, b"HEAD /metrics HTTP/1.0\r\n\r\n");
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && body.is_empty(),
        "{head}"
    );
}

#[test]
fn other_requests_are_told_what_is_here() {
    let (metrics, _server) = served();
    let long = [
        b"GET /metrics HTTP/1.1\r\nX: ".as_slice(),
        &[b'x'; 9000],
        b"\r\n\r\n",
    ]
    .concat();
    let cases: [(&[u8], &str, &str); 5] = [
        (b"GET /metric HTTP/1.1\r\n\r\n", "404", "/metrics"),
        (b"GET /metricsx HTTP/1.1\r\n\r\n", "404", "/metrics"),
        (
            b"POST /metrics HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd",
            "405",
            "GET",
        ),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", "400", "HTTP"),
        (&long, "431", "too long"),
    ];
    for (request, status, says) in cases {
        let (head, body) = get(&metrics, request);
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status} ")) && body.contains(says),
            "{head}: {body}"
        );
    }
}

#[test]
fn a_server_that_refuses_is_unavailable() {
    let server = Answering::with(|_| ControlResponse::Refused {
        message: "the server has ended".into(),
    });
    let metrics = MetricsServer::open(
        (Ipv4Addr::LOCALHOST, 0).into(),
        server.handle.clone(),
        Admission::default(),
    )
    .unwrap();
    let (head, body) = get(&metrics, b"GET /metrics HTTP/1.1\r\n\r\n");
    assert!(
        head.starts_with("HTTP/1.1 503 ") && body.contains("has ended"),
        "{head}: {body}"
    );
}

#[test]
fn an_address_in_use_is_an_error() {
    let (metrics, server) = served();
    let error = MetricsServer::open(
        metrics.address(),
        server.handle.clone(),
        Admission::default(),
    )
    .err()
    .unwrap();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}

#[test]
fn silent_callers_keep_nobody_out_and_end_with_the_server() {
    let (metrics, _server) = served();
    let mut silent: Vec<TcpStream> = (0..PEERS_MAX)
        .map(|_| TcpStream::connect(metrics.address()).unwrap())
        .collect();
    silent
        .iter_mut()
        .for_each(|stream| stream.write_all(b"GET /met").unwrap());
    let (head, _) = get(&metrics, b"GET /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    drop(metrics);
    for stream in &mut silent {
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        // An end or a reset, but no time-out.
        match stream.read(&mut [0; 16]) {
            Ok(count) => assert_eq!(count, 0),
            Err(error) => assert_ne!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
        }
    }
}

/// Returns the text read by a watcher until it has `count` events.
fn events(address: SocketAddr, count: usize) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream
        .write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let (mut text, mut some) = (String::new(), [0; 4096]);
    while text.matches("\n\ndata: ").count() + text.matches("\r\n\r\ndata: ").count() < count {
        let read = stream.read(&mut some).unwrap();
        assert!(read > 0, "the stream ended: {text}");
        text.push_str(&String::from_utf8_lossy(&some[..read]));
    }
    text
}

#[test]
fn watchers_get_a_status_each_time_and_the_server_is_asked_once_for_all() {
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&asked);
    let server = Answering::with(move |_| {
        counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        ControlResponse::Status(Box::new(status()))
    });
    let metrics = MetricsServer::open(
        (Ipv4Addr::LOCALHOST, 0).into(),
        server.handle.clone(),
        Admission::default(),
    )
    .unwrap();
    let began = Instant::now();
    let watchers: Vec<_> = (0..8)
        .map(|_| {
            let address = metrics.address();
            std::thread::spawn(move || events(address, 4))
        })
        .collect();
    for watcher in watchers {
        let text = watcher.join().unwrap();
        assert!(text.contains("text/event-stream"), "{text}");
        let event = text
            .split("data: ")
            .nth(2)
            .unwrap()
            .split("\n\n")
            .next()
            .unwrap();
        assert_eq!(
            serde_json::from_str::<ServerStatus>(event).unwrap(),
            status()
        );
    }
    let most = began.elapsed().as_millis() as usize / stream::EVERY.as_millis() as usize + 2;
    let asked = asked.load(std::sync::atomic::Ordering::SeqCst);
    assert!(asked <= most, "asked {asked} times, {most} at most");
}

#[test]
fn a_watcher_that_takes_nothing_is_dropped() {
    let server = Answering::repeating();
    let (here, there) = std::os::unix::net::UnixStream::pair().unwrap();
    here.set_nonblocking(true).unwrap();
    let peer = Peer::new(fullstroke_transport::socket::ClientSocket::Unix(here));
    let latest = stream::Latest::new(server.handle.clone(), Duration::ZERO);
    // The watcher never reads, so the socket fills and the time runs out.
    stream::serve(&peer, &latest, Duration::from_millis(50));
    drop(there);
}

#[test]
fn the_live_page_is_made_of_what_the_server_itself_has() {
    let server = Answering::repeating();
    let metrics = Metrics::new(server.handle.clone());
    let get = |path: &str| metrics.page(path);
    let page = get("/");
    assert!(page.content_type.starts_with("text/html") && page.body.contains("default-src 'self'"));
    let sources = page
        .body
        .split("src=\"")
        .skip(1)
        .chain(page.body.split("stylesheet\" href=\"").skip(1));
    for source in sources.filter_map(|rest| rest.split('"').next()) {
        assert_eq!(get(source).status, "200 OK", "{source}");
    }
    assert!(
        !get("/live.js").body.contains("innerHTML"),
        "names are text"
    );
    assert_eq!(get("/other").status, "404 Not Found");
}

#[test]
fn the_dashboard_asks_for_families_and_labels_of_the_page() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../samples/grafana/fullstroke.json"
    );
    let dashboard: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let families = parse(&render(&status()));
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() >= 8, "{} panels", panels.len());
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap());
    for target in targets {
        let expression = target["expr"].as_str().unwrap();
        let names: Vec<&str> = expression
            .split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
            .filter(|word| word.starts_with("fullstroke_"))
            .collect();
        assert!(!names.is_empty(), "{expression}");
        let mut labels = Vec::new();
        for name in names {
            let samples = families
                .values()
                .flat_map(|family| &family.samples)
                .filter(|sample| sample.name == name);
            let known: Vec<_> = samples.collect();
            // The drives of this status have no energy, so that its family has no samples.
            assert!(
                !known.is_empty() || families.contains_key(name),
                "{name} is not on the page: {expression}"
            );
            labels.extend(
                known
                    .iter()
                    .flat_map(|sample| sample.labels.keys().cloned()),
            );
        }
        if labels.is_empty() {
            continue;
        }
        // `{{drive}}` in a legend is a label of the samples.
        let legend = target["legendFormat"].as_str().unwrap();
        for label in legend.split("{{").skip(1) {
            let label = label.split("}}").next().unwrap();
            assert!(
                labels.iter().any(|known| known == label),
                "{label}: {expression}"
            );
        }
        assert!(labels.iter().any(|known| known == "export"), "{expression}");
    }
}
