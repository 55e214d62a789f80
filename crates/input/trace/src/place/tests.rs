//! Tests of places in a volume.

use super::*;

const GIB: u64 = (1 << 30) / SECTOR_BYTES;

fn placement(capacity: u64, change: impl Fn(&mut TraceOptions)) -> Placement {
    let mut options = TraceOptions {
        capacity: Some(Sectors(capacity)),
        ..TraceOptions::default()
    };
    change(&mut options);
    Placement::of(&options).unwrap()
}

fn start(placement: &mut Placement, device: u32, sector: u64) -> Result<u64, PlaceFault> {
    placement
        .place(device, Extent::new(sector, 8))
        .map(|extent| extent.start.0)
}

#[test]
fn one_device_keeps_its_addresses_and_needs_no_spans() {
    let mut placement = placement(GIB, |_| {});
    assert_eq!(start(&mut placement, 7, 100), Ok(100));
    assert_eq!(start(&mut placement, 7, GIB), Err(PlaceFault::Beyond));
    assert_eq!(start(&mut placement, 8, 100), Err(PlaceFault::NeedsSpans));
}

#[test]
fn several_devices_lie_side_by_side_behind_the_first() {
    let mut placement = placement(GIB, |_| {});
    assert_eq!(start(&mut placement, 7, 100), Ok(100));
    placement.set_spans(Arc::new(DeviceSpans::of(&[(3, 3000), (7, 5000), (9, 10)])));
    assert_eq!(start(&mut placement, 7, 100), Ok(100));
    assert_eq!(start(&mut placement, 3, 100), Ok(6144 + 100));
    assert_eq!(start(&mut placement, 9, 0), Ok(6144 + 4096));
    let notes = placement.notes();
    assert!(
        notes[0].starts_with("3 devices of the trace lie side by side: device 7 from sector 0 on"),
        "{notes:?}"
    );
}

#[test]
fn devices_that_do_not_fit_are_an_error_with_the_numbers() {
    let mut placement = placement(10_000, |_| {});
    placement.set_spans(Arc::new(DeviceSpans::of(&[(0, 8000), (1, 8000)])));
    assert_eq!(
        start(&mut placement, 0, 100),
        Err(PlaceFault::DevicesTooLarge)
    );
    let error = placement.devices_error("t").to_string();
    assert!(
        error.contains("device 1 from sector 8192 on") && error.contains("--device"),
        "{error}"
    );
}

#[test]
fn a_share_of_the_volume_is_filled_from_end_to_end() {
    let mut placement = placement(1000 * GIB, |options| {
        options.footprint = FootprintPolicy::Share(0.5)
    });
    assert_eq!(start(&mut placement, 0, 0), Err(PlaceFault::NeedsSpans));
    placement.set_spans(Arc::new(DeviceSpans::of(&[(0, GIB)])));
    assert_eq!(start(&mut placement, 0, 0), Ok(0));
    // Sectors of one extent of 128 MiB stay together.
    assert_eq!(start(&mut placement, 0, 5000), Ok(5000));
    let last = start(&mut placement, 0, GIB - 8).unwrap();
    assert!((430 * GIB..500 * GIB).contains(&last), "{last}");
    assert!(placement.notes().is_empty());
}

#[test]
fn extents_lie_at_random_places_and_none_meet() {
    let extent = Sectors(EXTENT_SECTORS);
    let mut placement = placement(1000 * GIB, |options| {
        options.footprint = FootprintPolicy::Spread { extent };
        options.seed = 3;
    });
    let _ = start(&mut placement, 0, 0);
    placement.set_spans(Arc::new(DeviceSpans::of(&[(0, 50 * GIB)])));
    let places: Vec<u64> = (0..400)
        .map(|number| start(&mut placement, 0, number * EXTENT_SECTORS + 8).unwrap())
        .collect();
    let mut sorted = places.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), 400);
    assert!(
        sorted
            .windows(2)
            .all(|pair| pair[1] - pair[0] >= EXTENT_SECTORS)
    );
    assert!(*sorted.last().unwrap() > 900 * GIB && sorted[0] < 100 * GIB);
    assert!(!places.is_sorted());
}

#[test]
fn a_small_span_gets_a_note_with_the_numbers() {
    let mut placement = placement(1000 * GIB, |_| {});
    start(&mut placement, 0, 0).unwrap();
    start(&mut placement, 0, GIB).unwrap();
    let notes = placement.notes();
    assert!(
        notes[0].contains("span 1.00 GiB, 0.1 % of the volume of 1000 GiB"),
        "{notes:?}"
    );
    start(&mut placement, 0, 60 * GIB).unwrap();
    assert!(placement.notes().is_empty());
}

#[test]
fn extents_without_a_free_place_are_an_error_with_the_numbers() {
    let extent = Sectors(EXTENT_SECTORS);
    let mut placement = placement(10 * GIB, |options| {
        options.footprint = FootprintPolicy::Spread { extent }
    });
    placement.set_spans(Arc::new(DeviceSpans::of(&[(0, 50 * GIB)])));
    assert_eq!(start(&mut placement, 0, 49 * GIB), Err(PlaceFault::Beyond));
    let error = placement.spread_error("t").unwrap().to_string();
    assert!(
        error.contains("needs 400 extents") && error.contains("has 80"),
        "{error}"
    );
}
