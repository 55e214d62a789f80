//! The rules of zones, and the answers of the drive.

use super::config::{AtOpenLimit, ZoneWrites, ZonedConfig, ZonedModel};
use super::pointers::{ZonePointers, ZoneRefusal};
use crate::config::tests::small_drive;
use crate::drive::tests::{request as of, serve_work};
use crate::{DriveConfig, DriveModel};
use fullstroke_contract::{
    Counters, Effects, Extent, NodeContext, Operation, Port, Request, RequestId, RequestStatus,
};
use fullstroke_units::{Bytes, Sectors, Time};
use proptest::prelude::*;
use serde_json::json;

/// A drive of 1,400 sectors in zones of 100, two of them conventional.
fn drive(change: impl FnOnce(&mut ZonedConfig)) -> DriveConfig {
    let mut config = small_drive();
    let mut zoned = ZonedConfig {
        model: ZonedModel::HostManaged,
        zone: Bytes(100 * 512),
        conventional: 2,
        open_zones: 2,
        at_open_limit: AtOpenLimit::Close,
        host_writes: ZoneWrites::AsSent,
        unrestricted_reads: true,
        full: 0.0,
    };
    change(&mut zoned);
    config.zoned = Some(zoned);
    config
}

fn pointers(change: impl FnOnce(&mut ZonedConfig)) -> ZonePointers {
    let model = DriveModel::new(drive(change)).unwrap();
    ZonePointers::new(model.zones().unwrap())
}

#[test]
fn a_write_begins_at_the_write_pointer_and_stays_in_its_zone() {
    let mut zones = pointers(|_| ());
    assert_eq!(
        zones.write(Extent::new(150, 100)),
        Err(ZoneRefusal::Boundary)
    );
    assert_eq!(zones.write(Extent::new(50, 100)), Ok(false), "conventional");
    assert_eq!(
        zones.write(Extent::new(208, 8)),
        Err(ZoneRefusal::Unaligned)
    );
    assert_eq!(zones.write(Extent::new(200, 8)), Ok(true));
    assert_eq!(
        zones.write(Extent::new(200, 8)),
        Err(ZoneRefusal::Unaligned)
    );
    assert_eq!(
        zones.write(Extent::new(208, 100)),
        Err(ZoneRefusal::Boundary)
    );
    assert_eq!(zones.write(Extent::new(208, 92)), Ok(true));
    assert_eq!(zones.open(), 0, "the zone is full");
    assert_eq!(
        zones.write(Extent::new(299, 1)),
        Err(ZoneRefusal::Unaligned)
    );
    assert!(!zones.reset(Extent::new(200, 99)), "part of a zone");
    assert!(zones.reset(Extent::new(199, 101)));
    assert_eq!(zones.write(Extent::new(200, 8)), Ok(true));
    assert_eq!((zones.counts.unaligned, zones.counts.boundary), (3, 2));
}

#[test]
fn one_zone_too_many_closes_the_oldest_or_is_refused() {
    let mut zones = pointers(|_| ());
    for zone in [2, 3, 2, 4] {
        let start = zone * 100 + zones.written(zone);
        assert_eq!(zones.write(Extent::new(start, 8)), Ok(true));
    }
    assert_eq!((zones.open(), zones.counts.closed), (2, 1));
    // Zone 3 was written before zone 2 was, so zone 3 is closed, and opens again.
    assert_eq!(zones.write(Extent::new(216, 8)), Ok(true));
    assert_eq!(zones.counts.closed, 1);
    assert_eq!(zones.write(Extent::new(308, 8)), Ok(true));
    assert_eq!(zones.counts.closed, 2);

    let mut zones = pointers(|zoned| zoned.at_open_limit = AtOpenLimit::Refuse);
    assert_eq!(zones.write(Extent::new(200, 8)), Ok(true));
    assert_eq!(zones.write(Extent::new(300, 8)), Ok(true));
    assert_eq!(
        zones.write(Extent::new(400, 8)),
        Err(ZoneRefusal::NoResources)
    );
    assert_eq!(zones.write(Extent::new(208, 92)), Ok(true));
    assert_eq!(
        zones.write(Extent::new(400, 8)),
        Ok(true),
        "a full zone is not open"
    );
}

#[test]
fn restricted_reads_stay_before_the_write_pointer() {
    let mut zones = pointers(|zoned| zoned.unrestricted_reads = false);
    assert_eq!(zones.write(Extent::new(200, 50)), Ok(true));
    assert_eq!(zones.read(Extent::new(210, 40)), Ok(()));
    assert_eq!(
        zones.read(Extent::new(210, 41)),
        Err(ZoneRefusal::InvalidRead)
    );
    assert_eq!(zones.read(Extent::new(190, 20)), Err(ZoneRefusal::Boundary));
    assert_eq!(zones.read(Extent::new(0, 200)), Ok(()), "conventional");
    let mut zones = pointers(|zoned| zoned.full = 0.5);
    assert_eq!(
        zones.write(Extent::new(200, 8)),
        Err(ZoneRefusal::Unaligned)
    );
    assert_eq!(zones.write(Extent::new(800, 8)), Ok(true));
    assert_eq!(zones.read(Extent::new(210, 500)), Ok(()), "unrestricted");
}

#[test]
fn a_refused_write_is_answered_without_the_platters() {
    let model = DriveModel::new(drive(|_| ())).unwrap();
    let mut node = model.branch().unwrap().node;
    let mut out = Effects::new();
    let request = |id, start| Request {
        id: RequestId(id),
        operation: Operation::Write,
        extent: Extent::new(start, 8),
        ..Request::default()
    };
    node.submit(
        Time::ZERO,
        Port::FIRST,
        request(1, 208),
        &mut NodeContext::alone(&mut out),
    );
    node.submit(
        Time::ZERO,
        Port::FIRST,
        request(2, 200),
        &mut NodeContext::alone(&mut out),
    );
    let mut ended = Vec::new();
    while node.next_wake().at() < Time::NEVER {
        let at = node.next_wake().at();
        node.wake(at, &mut NodeContext::alone(&mut out));
        for effect in out.drain() {
            if let fullstroke_contract::Effect::Complete { completion, .. } = effect {
                ended.push((completion.id.0, completion.status));
            }
        }
    }
    assert_eq!(
        ended,
        [(1, RequestStatus::Refused), (2, RequestStatus::Done)]
    );
}

#[test]
fn keys_that_cannot_hold_are_refused_by_name() {
    let error = |config: DriveConfig| DriveModel::new(config).unwrap_err();
    let wrong = error(drive(|zoned| zoned.zone = Bytes(300 * 512)));
    assert_eq!(wrong.key, "zoned.zone");
    assert!(
        wrong.message.contains("4 zones and 102400 bytes more"),
        "{wrong}"
    );
    assert_eq!(
        error(drive(|zoned| zoned.conventional = 14)).key,
        "zoned.conventional"
    );
    assert_eq!(
        error(drive(|zoned| zoned.open_zones = 0)).key,
        "zoned.open_zones"
    );
    assert_eq!(error(drive(|zoned| zoned.full = 1.5)).key, "zoned.full");
    let aware = error(drive(|zoned| zoned.model = ZonedModel::HostAware));
    assert_eq!(aware.key, "zoned.model");
    assert!(aware.message.contains("[shingled]"), "{aware}");
    let mut two_arms = drive(|_| ());
    two_arms.faults = Some(crate::FaultsConfig::default());
    assert_eq!(error(two_arms).key, "faults");
}

/// A host-aware drive of three zones of 448 sectors in bands of 64 sectors.
fn aware() -> DriveConfig {
    let mut config = drive(|zoned| {
        zoned.model = ZonedModel::HostAware;
        zoned.host_writes = ZoneWrites::Plugged;
        zoned.zone = Bytes(56 * 4096);
        zoned.conventional = 0;
    });
    config.capacity_sectors = Sectors(56 * 8 * 3);
    config.zones[1].spares = 1400 - 56 * 8 * 3;
    let shingled = json!({ "band": 4096 * 8, "cache": 4096 * 20, "piece": 4096 });
    config.shingled = serde_json::from_value(shingled).unwrap();
    config
}

#[test]
fn a_host_aware_drive_takes_writes_out_of_order_and_counts_them() {
    let model = DriveModel::new(aware()).unwrap();
    let mut zones = ZonePointers::new(model.zones().unwrap());
    // The second write leaves a gap, and crosses the border of the zone.
    assert_eq!(zones.write(Extent::new(0, 8)), Ok(true));
    assert_eq!(zones.write(Extent::new(400, 100)), Ok(false));
    assert_eq!(zones.counts.random_writes, 1);
    assert_eq!(zones.open(), 1, "the first zone is full");
    assert_eq!(zones.write(Extent::new(500, 8)), Ok(true));
    assert_eq!(zones.write(Extent::new(0, 8)), Ok(false));
    assert_eq!(zones.counts.random_writes, 2);
    assert_eq!(zones.read(Extent::new(440, 100)), Ok(()));
}

/// Runs writes of a start and a length, each at its time in ns. Returns the status of each request in
/// its order, and the readings.
fn written(config: DriveConfig, writes: &[(u64, u64, u64)]) -> (Vec<RequestStatus>, Counters) {
    let mut node = DriveModel::new(config).unwrap().branch().unwrap().node;
    let requests = (0..).zip(writes).map(|(id, &(at, start, sectors))| {
        let mut write = of(id, start, sectors, Operation::Write);
        write.hints.force_unit_access = true;
        (Time::from_nanos(at), write)
    });
    let mut done = serve_work(&mut *node, requests, 0);
    let end = done.last().unwrap().finished;
    for ended in &done {
        assert_eq!(
            ended.finished.since(ended.submitted),
            ended.breakdown.response()
        );
    }
    done.sort_by_key(|ended| ended.id.0);
    let ids: Vec<u64> = done.iter().map(|ended| ended.id.0).collect();
    let all: Vec<u64> = (0..writes.len() as u64).collect();
    assert_eq!(ids, all, "each write ends once");
    let mut counters = Counters::default();
    node.count(end, &mut counters);
    (done.iter().map(|ended| ended.status).collect(), counters)
}

fn reading(counters: &Counters, name: &str) -> f64 {
    let mut readings = counters.layers.iter().flat_map(|layer| &layer.readings);
    readings.find(|reading| reading.name == name).unwrap().value
}

#[test]
fn writes_at_the_write_pointer_of_a_host_aware_drive_pass_the_cache_and_updates_do_not() {
    // A forced write ends a stream, so that a drive-managed drive would take each of them into the
    // cache.
    let in_order: Vec<(u64, u64, u64)> = (0..20).map(|at| (at * 1_000_000, at * 8, 8)).collect();
    let (_, counters) = written(aware(), &in_order);
    assert_eq!(reading(&counters, "shingled_cache_mb"), 0.0);
    assert_eq!(reading(&counters, "shingled_band_mb"), 160.0 * 512.0 / 1e6);
    assert_eq!(reading(&counters, "zoned_random_writes"), 0.0);
    let mut updated = in_order;
    updated.push((30_000_000, 40, 8));
    let (_, counters) = written(aware(), &updated);
    assert!(reading(&counters, "shingled_cache_mb") > 0.0);
    assert_eq!(reading(&counters, "zoned_random_writes"), 1.0);
}

#[test]
fn writes_of_a_zone_wait_for_each_other_and_go_on_joined() {
    let plugged = |host_writes| drive(|zoned| zoned.host_writes = host_writes);
    // All at once, in three zones.
    let writes: Vec<(u64, u64, u64)> = (0..10)
        .flat_map(|at| [200, 300, 400].map(|zone| (0, zone + at * 8, 8)))
        .collect();
    let done = |status: &[RequestStatus]| {
        let done = status
            .iter()
            .filter(|status| **status == RequestStatus::Done);
        done.count()
    };
    let (status, counters) = written(plugged(ZoneWrites::Plugged), &writes);
    assert_eq!(done(&status), 30);
    // Nine writes of each zone wait, and go as one write when the first has ended.
    assert_eq!(reading(&counters, "zoned_plugged_writes"), 27.0);
    assert_eq!(reading(&counters, "zoned_joined_writes"), 24.0);
    let (status, counters) = written(plugged(ZoneWrites::Append), &writes);
    assert_eq!(done(&status), 30);
    assert_eq!(reading(&counters, "zoned_joined_writes"), 0.0);
    // In any other order only an append goes on.
    let backwards: Vec<(u64, u64, u64)> = (0..10).map(|at| (0, 272 - at * 8, 8)).collect();
    let (status, _) = written(plugged(ZoneWrites::Append), &backwards);
    assert_eq!(done(&status), 10);
    let (status, counters) = written(plugged(ZoneWrites::Plugged), &backwards);
    assert_eq!(done(&status), 1);
    assert_eq!(reading(&counters, "zoned_unaligned_writes"), 9.0);
}

proptest! {
    /// Appends fill each zone exactly: the drive takes an append as long as the append fits behind
    /// the earlier ones, and refuses no other.
    #[test]
    fn appends_fill_their_zones(appends in prop::collection::vec((0u64..3_000_000, 2u64..14, 0u64..90, 1u64..20), 1..120)) {
        let (mut now, mut filled) = (0, [0u64; 14]);
        let (mut writes, mut fits) = (Vec::new(), Vec::new());
        for (gap, zone, offset, sectors) in appends {
            now += gap;
            writes.push((now, zone * 100 + offset, sectors));
            let room = filled[zone as usize] + sectors <= 100;
            filled[zone as usize] += if room { sectors } else { 0 };
            fits.push(if room { RequestStatus::Done } else { RequestStatus::Refused });
        }
        let config = drive(|zoned| zoned.host_writes = ZoneWrites::Append);
        let (status, counters) = written(config, &writes);
        prop_assert_eq!(status, fits);
        prop_assert_eq!(reading(&counters, "zoned_unaligned_writes"), 0.0);
    }
}
