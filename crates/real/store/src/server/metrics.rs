//! Metrics of a served array for Prometheus: `GET /metrics`. Common metrics of simulated and served
//! arrays have the same names.

use super::counts::{AnsweredCounts, Count, OPERATIONS};
use super::state::ServerState;
use crate::ArrayStatus;
use crate::status::{SLOT_STATES, STATES};
use fullstroke_contract::Gear;
use fullstroke_transport::socket::exposition::{CONTENT_TYPE, FamilyKind, MetricsPage};
use fullstroke_transport::socket::{HttpPages, Response};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// HTTP pages of a server.
pub(crate) struct Metrics(pub(crate) Arc<ServerState>);

impl HttpPages for Metrics {
    fn page(&self, path: &str) -> Response {
        if path != "/metrics" {
            return Response::text("404 Not Found", "the numbers are at /metrics\n");
        }
        let body = render(&self.0.array.status(), &self.0.counts);
        Response {
            status: "200 OK",
            content_type: CONTENT_TYPE,
            body,
        }
    }
}

fn render(status: &ArrayStatus, counts: &AnsweredCounts) -> String {
    let mut page = MetricsPage::default();
    page.family(
        "fullstroke_build_info",
        FamilyKind::Gauge,
        "1, with the version of the server.",
    )
    .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1u64);
    let export = ("export", status.name.as_str());
    let mut gauge = |name, help, value: u64| {
        page.family(name, FamilyKind::Gauge, help)
            .sample(&[export], value)
    };
    gauge(
        "fullstroke_usable_bytes",
        "Bytes that clients can address.",
        status.capacity_bytes,
    );
    gauge(
        "fullstroke_dirty_regions",
        "Regions that are, or were lately, written.",
        status.dirty_regions,
    );
    gauge(
        "fullstroke_region_bytes",
        "How large a region of a member is.",
        status.region_bytes,
    );
    gauge(
        "fullstroke_spares",
        "Devices that wait for a member to fail.",
        status.spares.len() as u64,
    );
    let mut family = page.family(
        "fullstroke_volume_state",
        FamilyKind::Gauge,
        "1 for the state in which the volume is.",
    );
    for state in STATES {
        family.sample(
            &[export, ("state", state)],
            u64::from(status.state == state),
        );
    }
    if let Some(now) = status.gear {
        let mut family = page.family(
            "fullstroke_volume_gear",
            FamilyKind::Gauge,
            "1 for the gear in which the volume is.",
        );
        for gear in [Gear::High, Gear::Falling, Gear::Low, Gear::Rising].map(Gear::name) {
            family.sample(&[export, ("gear", gear)], u64::from(now == gear));
        }
    }
    operations(&mut page, export, counts);
    late_reads(&mut page, export, status);
    members(&mut page, export, status);
    page.into_text()
}

fn operations(page: &mut MetricsPage, export: (&'static str, &str), counts: &AnsweredCounts) {
    let mut counter = |name, help, value: fn(&Count) -> &AtomicU64| {
        let mut family = page.family(name, FamilyKind::Counter, help);
        for (operation, count) in OPERATIONS.into_iter().zip(&counts.0) {
            family.sample(
                &[export, ("operation", operation)],
                value(count).load(Ordering::Relaxed),
            );
        }
    };
    counter(
        "fullstroke_requests_total",
        "Answered requests, including failed requests.",
        |count| &count.requests,
    );
    counter(
        "fullstroke_request_bytes_total",
        "Bytes of requests that did not fail.",
        |count| &count.bytes,
    );
    counter(
        "fullstroke_request_errors_total",
        "Requests that failed.",
        |count| &count.errors,
    );
}

/// Counters of the policy against slow members; nothing for an array that waits.
fn late_reads(page: &mut MetricsPage, export: (&'static str, &str), status: &ArrayStatus) {
    let Some(late) = &status.late else {
        return;
    };
    let mut counter = |name, help, value: u64| {
        page.family(name, FamilyKind::Counter, help)
            .sample(&[export], value)
    };
    counter(
        "fullstroke_late_read_around_total",
        "Reads around a slow member that ended before the member's own answer.",
        late.late_read_around,
    );
    counter(
        "fullstroke_late_member_io_total",
        "Reads of other members for reads around a slow member.",
        late.late_member_io,
    );
    counter(
        "fullstroke_late_sit_outs_total",
        "Times that a slow member sat out of reads.",
        late.late_sit_outs,
    );
    let help = "Reads around the slow member of a place.";
    let mut family = page.family("fullstroke_member_late_io_total", FamilyKind::Counter, help);
    for (place, slot) in status.slots.iter().enumerate() {
        let place = place.to_string();
        let labels = [export, ("place", &*place), ("device", &*slot.device)];
        family.sample(&labels, slot.late_io.unwrap_or(0));
    }
    let help = "1 for a member that gets no reads for a while, because it is slow.";
    let mut family = page.family("fullstroke_member_sits_out", FamilyKind::Gauge, help);
    for (place, slot) in status.slots.iter().enumerate() {
        let place = place.to_string();
        let labels = [export, ("place", &*place), ("device", &*slot.device)];
        family.sample(&labels, u64::from(slot.sits_out));
    }
}

fn members(page: &mut MetricsPage, export: (&'static str, &str), status: &ArrayStatus) {
    let places: Vec<String> = (0..status.slots.len())
        .map(|place| place.to_string())
        .collect();
    let slots = || places.iter().map(String::as_str).zip(&status.slots);
    let help = "1 for the state in which the member of a place is.";
    let mut family = page.family("fullstroke_member_state", FamilyKind::Gauge, help);
    for (place, slot) in slots() {
        for state in SLOT_STATES {
            let labels = [
                export,
                ("place", place),
                ("device", slot.device.as_str()),
                ("state", state),
            ];
            family.sample(&labels, u64::from(slot.state == state));
        }
    }
    let help = "How much of a member is filled, from 0 to 1.";
    let mut family = page.family("fullstroke_member_filled_ratio", FamilyKind::Gauge, help);
    for (place, slot) in slots() {
        family.sample(
            &[export, ("place", place), ("device", slot.device.as_str())],
            slot.filled,
        );
    }
    let help = "Time of a read as a multiple of the median of the other members, for a slow member; 1 for others.";
    let mut family = page.family("fullstroke_member_slowness_ratio", FamilyKind::Gauge, help);
    for (place, slot) in slots() {
        family.sample(
            &[export, ("place", place), ("device", slot.device.as_str())],
            slot.slowness.unwrap_or(1.0),
        );
    }
}
