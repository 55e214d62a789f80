//! The rules of zones, and the answers of the drive.

use super::config::{AtOpenLimit, ZonedConfig, ZonedModel};
use super::pointers::{ZonePointers, ZoneRefusal};
use crate::config::tests::small_drive;
use crate::{DriveConfig, DriveModel};
use fullstroke_contract::{
    Effects, Extent, NodeContext, Operation, Port, Request, RequestId, RequestStatus,
};
use fullstroke_units::{Bytes, Sectors, Time};
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
    assert_eq!(zones.write(Extent::new(50, 100)), Ok(()), "conventional");
    assert_eq!(
        zones.write(Extent::new(208, 8)),
        Err(ZoneRefusal::Unaligned)
    );
    assert_eq!(zones.write(Extent::new(200, 8)), Ok(()));
    assert_eq!(
        zones.write(Extent::new(200, 8)),
        Err(ZoneRefusal::Unaligned)
    );
    assert_eq!(
        zones.write(Extent::new(208, 100)),
        Err(ZoneRefusal::Boundary)
    );
    assert_eq!(zones.write(Extent::new(208, 92)), Ok(()));
    assert_eq!(zones.open(), 0, "the zone is full");
    assert_eq!(
        zones.write(Extent::new(299, 1)),
        Err(ZoneRefusal::Unaligned)
    );
    assert!(!zones.reset(Extent::new(200, 99)), "part of a zone");
    assert!(zones.reset(Extent::new(199, 101)));
    assert_eq!(zones.write(Extent::new(200, 8)), Ok(()));
    assert_eq!((zones.counts.unaligned, zones.counts.boundary), (3, 2));
}

#[test]
fn one_zone_too_many_closes_the_oldest_or_is_refused() {
    let mut zones = pointers(|_| ());
    for zone in [2, 3, 2, 4] {
        let start = zone * 100 + zones.written(zone);
        assert_eq!(zones.write(Extent::new(start, 8)), Ok(()));
    }
    assert_eq!((zones.open(), zones.counts.closed), (2, 1));
    // Zone 3 was written before zone 2 was, so zone 3 is closed, and opens again.
    assert_eq!(zones.write(Extent::new(216, 8)), Ok(()));
    assert_eq!(zones.counts.closed, 1);
    assert_eq!(zones.write(Extent::new(308, 8)), Ok(()));
    assert_eq!(zones.counts.closed, 2);

    let mut zones = pointers(|zoned| zoned.at_open_limit = AtOpenLimit::Refuse);
    assert_eq!(zones.write(Extent::new(200, 8)), Ok(()));
    assert_eq!(zones.write(Extent::new(300, 8)), Ok(()));
    assert_eq!(
        zones.write(Extent::new(400, 8)),
        Err(ZoneRefusal::NoResources)
    );
    assert_eq!(zones.write(Extent::new(208, 92)), Ok(()));
    assert_eq!(
        zones.write(Extent::new(400, 8)),
        Ok(()),
        "a full zone is not open"
    );
}

#[test]
fn restricted_reads_stay_before_the_write_pointer() {
    let mut zones = pointers(|zoned| zoned.unrestricted_reads = false);
    assert_eq!(zones.write(Extent::new(200, 50)), Ok(()));
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
    assert_eq!(zones.write(Extent::new(800, 8)), Ok(()));
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

#[test]
fn a_host_aware_drive_takes_writes_out_of_order_and_counts_them() {
    let mut config = drive(|zoned| {
        zoned.model = ZonedModel::HostAware;
        zoned.zone = Bytes(56 * 4096);
        zoned.conventional = 0;
    });
    config.capacity_sectors = Sectors(56 * 8 * 3);
    config.zones[1].spares = 1400 - 56 * 8 * 3;
    let shingled = json!({ "band": 4096 * 8, "cache": 4096 * 20, "piece": 4096 });
    config.shingled = serde_json::from_value(shingled).unwrap();
    let model = DriveModel::new(config).unwrap();
    let mut zones = ZonePointers::new(model.zones().unwrap());
    // The second write leaves a gap, and crosses the border of the zone.
    assert_eq!(zones.write(Extent::new(0, 8)), Ok(()));
    assert_eq!(zones.write(Extent::new(400, 100)), Ok(()));
    assert_eq!(zones.counts.random_writes, 1);
    assert_eq!(zones.open(), 1, "the first zone is full");
    assert_eq!(zones.write(Extent::new(500, 8)), Ok(()));
    assert_eq!(zones.write(Extent::new(0, 8)), Ok(()));
    assert_eq!(zones.counts.random_writes, 2);
    assert_eq!(zones.read(Extent::new(440, 100)), Ok(()));
}
