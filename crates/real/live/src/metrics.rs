//! The metrics of a running server: `GET /metrics` for Prometheus, and a live page at `/` for
//! people, updated by the events of `/events`.

#[cfg(test)]
mod parser;
mod stream;

use crate::control_queue::{ControlRequest, ControlResponse, ServerHandle};
use crate::status::{
    DriveState, DriveStatus, ExportStatus, OperationStatus, RESPONSE_BUCKETS_S, RebuildStatus,
    ServerStatus, VolumeState,
};
use fullstroke_contract::Gear;
use fullstroke_counters::Counter;
use fullstroke_transport::socket::exposition::{CONTENT_TYPE, FamilyKind, MetricsPage};
use fullstroke_transport::socket::{Admission, HttpPages, HttpServer, Peer, Response};
use std::io;
use std::net::SocketAddr;

/// Serves the metrics over HTTP until dropped.
pub struct MetricsServer(HttpServer);

struct Metrics {
    server: ServerHandle,
    latest: stream::Latest,
}

/// The live page and its parts.
const PAGES: [(&str, &str, &str); 3] = [
    (
        "/",
        "text/html; charset=utf-8",
        include_str!("metrics/live.html"),
    ),
    (
        "/live.css",
        "text/css; charset=utf-8",
        include_str!("metrics/live.css"),
    ),
    (
        "/live.js",
        "text/javascript; charset=utf-8",
        include_str!("metrics/live.js"),
    ),
];

impl MetricsServer {
    /// Listens at `at` for admitted clients; port 0 selects any free port.
    ///
    /// # Errors
    /// An error of the host, if the address cannot be used.
    pub fn open(
        at: SocketAddr,
        server: ServerHandle,
        admission: Admission,
    ) -> io::Result<MetricsServer> {
        HttpServer::open(at, "metrics", admission, Metrics::new(server)).map(MetricsServer)
    }

    /// Returns the address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Returns the address of the metrics.
    pub fn uri(&self) -> String {
        self.0.uri("/metrics")
    }
}

impl HttpPages for Metrics {
    fn page(&self, path: &str) -> Response {
        // `/events` never ends and is served by `takes`.
        if path == "/metrics" {
            self.numbers()
        } else {
            live_page(path)
        }
    }

    fn takes(&self, head: &[u8], peer: &Peer) -> bool {
        let watches = head.starts_with(b"GET /events ");
        if watches {
            stream::serve(peer, &self.latest, stream::PATIENCE);
        }
        watches
    }
}

impl Metrics {
    fn new(server: ServerHandle) -> Metrics {
        Metrics {
            latest: stream::Latest::new(server.clone(), stream::EVERY),
            server,
        }
    }

    fn numbers(&self) -> Response {
        match self.server.ask(ControlRequest::Status) {
            ControlResponse::Status(status) => Response {
                status: "200 OK",
                content_type: CONTENT_TYPE,
                body: render(&status),
            },
            ControlResponse::Done { message }
            | ControlResponse::Wrong { message }
            | ControlResponse::Refused { message } => {
                Response::text("503 Service Unavailable", format!("{message}\n"))
            }
            ControlResponse::Signals { .. } => {
                Response::text("503 Service Unavailable", "no status\n")
            }
        }
    }
}

/// Returns a part of the live page.
fn live_page(path: &str) -> Response {
    let known = PAGES.iter().find(|(known, ..)| *known == path);
    known.map_or_else(
        || {
            Response::text(
                "404 Not Found",
                "the numbers are at /metrics, a page at /\n",
            )
        },
        |&(_, content_type, body)| Response {
            status: "200 OK",
            content_type,
            body: body.to_owned(),
        },
    )
}

/// Returns the page of metrics.
fn render(status: &ServerStatus) -> String {
    let mut page = MetricsPage::default();
    page.family(
        "fullstroke_build_info",
        FamilyKind::Gauge,
        "1, with the version of the server.",
    )
    // By the convention for build information in Prometheus: the value is 1, and the labels say the
    // rest.
    .sample(&[("version", &status.version)], 1u64);
    page.family(
        "fullstroke_uptime_seconds",
        FamilyKind::Gauge,
        "Real time since the server began.",
    )
    .sample(&[], status.uptime_s);
    page.family(
        "fullstroke_clients",
        FamilyKind::Gauge,
        "Clients that are connected.",
    )
    .sample(&[], status.clients);
    if let Some(speed) = status.speed {
        page.family(
            "fullstroke_speed_ratio",
            FamilyKind::Gauge,
            "Seconds of simulated time for each real second.",
        )
        .sample(&[], speed);
    }
    exports(&mut page, status);
    health(&mut page, status);
    operations(&mut page, status);
    lateness(&mut page, status);
    drives(&mut page, status);
    page.into_text()
}

fn exports(page: &mut MetricsPage, status: &ServerStatus) {
    let mut gauge = |name, help, value: &dyn Fn(&ExportStatus) -> f64| {
        let mut family = page.family(name, FamilyKind::Gauge, help);
        for export in &status.exports {
            family.sample(&[("export", &export.name)], value(export));
        }
    };
    gauge("fullstroke_world_seconds", "Simulated time.", &|export| {
        export.world_ns as f64 / 1e9
    });
    gauge(
        "fullstroke_usable_bytes",
        "Bytes that clients can address.",
        &|export| export.usable_bytes as f64,
    );
    let help = "1 if data was given up with failed drives.";
    gauge("fullstroke_data_lost", help, &|export| {
        f64::from(u8::from(export.health.data_lost))
    });
    let help = "Bytes whose redundancy must still be compared after the kill of a server.";
    gauge("fullstroke_compare_left_bytes", help, &|export| {
        export
            .health
            .comparing
            .map_or(0.0, |comparing| comparing.left_bytes as f64)
    });
    gauge(
        "fullstroke_in_flight",
        "Requests that were not answered yet.",
        &|export| export.in_flight as f64,
    );
}

/// Adds the gears of volumes with gears.
fn gears(page: &mut MetricsPage, status: &ServerStatus) {
    let each = || {
        let exports = status.exports.iter();
        exports.flat_map(|export| {
            export
                .health
                .gears
                .iter()
                .map(move |geared| (export.name.as_str(), geared))
        })
    };
    let mut family = page.family(
        "fullstroke_volume_gear",
        FamilyKind::Gauge,
        "1 for the gear in which the volume is.",
    );
    for (export, geared) in each() {
        for gear in [Gear::High, Gear::Falling, Gear::Low, Gear::Rising] {
            let labels = [
                ("export", export),
                ("volume", geared.volume.as_str()),
                ("gear", gear.name()),
            ];
            // All states have a sample, so that a query finds the end of a state and not only its
            // beginning.
            family.sample(&labels, u64::from(geared.gear == gear.name()));
        }
    }
    let help = "How often the volume has begun to shift.";
    let mut family = page.family(
        "fullstroke_volume_gear_shifts_total",
        FamilyKind::Counter,
        help,
    );
    for (export, geared) in each() {
        family.sample(
            &[("export", export), ("volume", geared.volume.as_str())],
            geared.shifts,
        );
    }
}

/// Adds the time in each power state, for drives with known power.
fn drive_power_states(page: &mut MetricsPage, status: &ServerStatus) {
    let help = "Time that the drive has spent in a power state, in simulated time.";
    let mut family = page.family(
        "fullstroke_drive_power_state_seconds_total",
        FamilyKind::Counter,
        help,
    );
    for (export, drive) in each_drive(status) {
        for (state, seconds) in drive.totals.power_states() {
            let labels = [
                ("export", export),
                ("drive", drive.name.as_str()),
                ("state", state.name()),
            ];
            family.sample(&labels, seconds);
        }
    }
}

/// Adds one sample for each volume state, with 1 for the present state; and the rebuilds.
fn health(page: &mut MetricsPage, status: &ServerStatus) {
    let mut family = page.family(
        "fullstroke_volume_state",
        FamilyKind::Gauge,
        "1 for the state in which the volume is.",
    );
    for export in &status.exports {
        for state in VolumeState::ALL {
            let labels = [("export", export.name.as_str()), ("state", state.name())];
            family.sample(&labels, u64::from(export.health.state == state));
        }
    }
    if status
        .exports
        .iter()
        .any(|export| !export.health.gears.is_empty())
    {
        gears(page, status);
    }
    let mut gauge = |name, help, value: &dyn Fn(&RebuildStatus) -> Option<f64>| {
        let mut family = page.family(name, FamilyKind::Gauge, help);
        for export in &status.exports {
            for rebuild in &export.health.rebuilds {
                let labels = [
                    ("export", export.name.as_str()),
                    ("member", rebuild.member.as_str()),
                ];
                if let Some(value) = value(rebuild) {
                    family.sample(&labels, value);
                }
            }
        }
    };
    let help = "Filled share of a member during its rebuild.";
    gauge("fullstroke_rebuild_ratio", help, &|rebuild| {
        Some(rebuild.share)
    });
    let help = "Rate of the rebuild in bytes a second of simulated time.";
    gauge("fullstroke_rebuild_bytes_per_second", help, &|rebuild| {
        rebuild.mb_per_s.map(|speed| speed * 1e6)
    });
    let help = "Simulated time that the rest takes at this speed.";
    gauge("fullstroke_rebuild_left_seconds", help, &|rebuild| {
        rebuild.left_s
    });
}

fn operations(page: &mut MetricsPage, status: &ServerStatus) {
    let mut counter = |name, help, value: &dyn Fn(&OperationStatus) -> u64| {
        let mut family = page.family(name, FamilyKind::Counter, help);
        for (export, operation, numbers) in each_operation(status) {
            family.sample(
                &[("export", export), ("operation", operation)],
                value(numbers),
            );
        }
    };
    counter(
        "fullstroke_requests_total",
        "Answered requests, including failed requests.",
        &|numbers| numbers.requests,
    );
    counter(
        "fullstroke_request_bytes_total",
        "Bytes of requests that did not fail.",
        &|numbers| numbers.bytes,
    );
    counter(
        "fullstroke_request_errors_total",
        "Requests that failed.",
        &|numbers| numbers.errors,
    );
    let help = "Response times, in simulated time, of requests that did not fail.";
    let mut family = page.family("fullstroke_response_seconds", FamilyKind::Histogram, help);
    for (export, operation, numbers) in each_operation(status) {
        let labels = [("export", export), ("operation", operation)];
        family.histogram(
            &labels,
            &RESPONSE_BUCKETS_S,
            &numbers.buckets,
            numbers.response_s,
        );
    }
}

fn each_operation(
    status: &ServerStatus,
) -> impl Iterator<Item = (&str, &'static str, &OperationStatus)> {
    status.exports.iter().flat_map(|export| {
        export
            .operations
            .by_name()
            .map(move |(operation, numbers)| (export.name.as_str(), operation, numbers))
    })
}

fn lateness(page: &mut MetricsPage, status: &ServerStatus) {
    let help = "Real time by which the host answered later than the model.";
    let mut family = page.family("fullstroke_lateness_seconds", FamilyKind::Summary, help);
    for export in &status.exports {
        let late = &export.lateness;
        let quantiles = [
            (0.5, late.p50_us / 1e6),
            (0.99, late.p99_us / 1e6),
            (0.999, late.p999_us / 1e6),
        ];
        // Prometheus wants the sum in seconds; the status has the mean.
        let sum = late.mean_us * late.count as f64 / 1e6;
        family.summary(&[("export", &export.name)], &quantiles, sum, late.count);
    }
    let mut family = page.family(
        "fullstroke_lateness_max_seconds",
        FamilyKind::Gauge,
        "The latest answer.",
    );
    for export in &status.exports {
        family.sample(&[("export", &export.name)], export.lateness.max_us / 1e6);
    }
}

fn drives(page: &mut MetricsPage, status: &ServerStatus) {
    let mut gauge = |name, help, value: &dyn Fn(&DriveStatus) -> f64| {
        let mut family = page.family(name, FamilyKind::Gauge, help);
        for (export, drive) in each_drive(status) {
            family.sample(&[("export", export), ("drive", &drive.name)], value(drive));
        }
    };
    let help = "Requests in the drive.";
    gauge("fullstroke_drive_queue_length", help, &|drive| {
        f64::from(drive.queue_length)
    });
    let help = "Where the arm is, from the outside (0) to the inside (1).";
    gauge("fullstroke_drive_head_position_ratio", help, &|drive| {
        drive.head_share
    });
    let help = "Filled share of the drive: below 1 during a rebuild, 0 after a failure.";
    gauge("fullstroke_drive_rebuilt_ratio", help, &rebuilt_ratio);
    let help = "Mean time of an I/O as a multiple of the median of the other drives, for a slow drive; 1 for others.";
    gauge("fullstroke_drive_slowness_ratio", help, &|drive| {
        drive.slowness.unwrap_or(1.0)
    });
    drive_counters(page, status);
    drive_power_states(page, status);
    drive_states(page, status);
}

fn rebuilt_ratio(drive: &DriveStatus) -> f64 {
    drive
        .rebuilt_share
        .unwrap_or(if drive.state == DriveState::Failed {
            0.0
        } else {
            1.0
        })
}

fn drive_counters(page: &mut MetricsPage, status: &ServerStatus) {
    for served in Counter::all_served() {
        let name = format!("fullstroke_drive_{}_total", served.family);
        let mut family = page.family(&name, FamilyKind::Counter, served.help);
        for (export, drive) in each_drive(status) {
            let totals = drive
                .totals
                .all()
                .filter(|(total, _)| total.key == served.key);
            // A drive without power data has no energy, and NaN samples would break sums in
            // Prometheus.
            for (_, total) in totals.filter(|(_, total)| !total.value().is_nan()) {
                family.sample(&[("export", export), ("drive", &drive.name)], total);
            }
        }
    }
}

/// Adds one sample for each drive state, with 1 for the present state.
fn drive_states(page: &mut MetricsPage, status: &ServerStatus) {
    let mut family = page.family(
        "fullstroke_drive_state",
        FamilyKind::Gauge,
        "1 for the state in which the drive is.",
    );
    for (export, drive) in each_drive(status) {
        for state in DriveState::ALL {
            let labels = [
                ("export", export),
                ("drive", drive.name.as_str()),
                ("state", state.name()),
            ];
            family.sample(&labels, u64::from(drive.state == state));
        }
    }
}

fn each_drive(status: &ServerStatus) -> impl Iterator<Item = (&str, &DriveStatus)> {
    status.exports.iter().flat_map(|export| {
        export
            .drives
            .iter()
            .map(move |drive| (export.name.as_str(), drive))
    })
}

#[cfg(test)]
mod tests;
