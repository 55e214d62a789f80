//! Measurements of one property each, on simulated drives with known truth.

use fullstroke_calibrate::extract::{
    Angles, ExtractError, ExtractedDevice as _, Extraction, ExtractionPace, SimulatedDrive,
    SplittingHost, arms, cache, depth, first_tracks, run, seek_error, seeks, skew_error, skews,
    tracks, zero_latency, zone_error, zones,
};
use fullstroke_drive::{DriveModel, ReadAhead};
use fullstroke_stack::drives;
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Duration, Lbn, Seed};

fn library(name: &str) -> DriveModel {
    drives::load(name).unwrap()
}

/// Returns the result of an algorithm on a drive.
fn found<T, F>(
    model: &DriveModel,
    algorithm: impl FnOnce(fullstroke_calibrate::extract::ExtractionAlgorithm) -> F,
) -> Result<T, ExtractError>
where
    F: Future<Output = Result<T, ExtractError>> + 'static,
{
    let mut drive = SimulatedDrive::new(model).unwrap();
    let extraction = Extraction::new(drive.capacity(), algorithm);
    run(&mut drive, extraction, &mut |_, _| {}).map(|(found, _)| found)
}

#[test]
fn a_queue_is_as_deep_as_reads_overtake() {
    for (name, seed) in [
        ("maxtor-atlas-10k-v-73gb-czk", 1),
        ("seagate-exos-10e2400-2.4tb", 2),
    ] {
        let model = library(name);
        let told = found(&model, move |probe| depth(probe, None, Seed(seed))).unwrap();
        assert_eq!(
            (told.commands, told.orders),
            (model.config().queue.depth.into(), true),
            "{name}"
        );
        assert!(told.together_per_s > 2.0 * told.alone_per_s, "{told:?}");
    }
    let in_order = found(&library("hp-c2247a"), |probe| depth(probe, None, Seed(3))).unwrap();
    assert!(!in_order.orders && in_order.commands == 1, "{in_order:?}");
}

#[test]
fn a_host_that_waits_for_each_completion_cannot_tell_depth() {
    /// A device that takes only one command at a time.
    struct OneByOne(SplittingHost<SimulatedDrive>);
    impl fullstroke_calibrate::extract::ExtractedDevice for OneByOne {
        fn capacity(&self) -> fullstroke_units::Sectors {
            self.0.capacity()
        }
        fn read(
            &mut self,
            extent: fullstroke_contract::Extent,
        ) -> Result<fullstroke_calibrate::extract::RequestAnswer, ExtractError> {
            self.0.read(extent)
        }
        fn idle(&mut self, span: Duration) -> fullstroke_calibrate::extract::RequestAnswer {
            self.0.idle(span)
        }
    }
    let drive = SimulatedDrive::new(&library("hp-c2247a")).unwrap();
    let mut device = OneByOne(SplittingHost::new(drive, 512));
    let extraction = Extraction::new(device.capacity(), |probe| depth(probe, None, Seed(1)));
    let error = run(&mut device, extraction, &mut |_, _| {})
        .unwrap_err()
        .to_string();
    assert!(error.contains("one at a time"), "{error}");
}

#[test]
fn segments_and_read_ahead_are_as_the_drive_has_them() {
    for name in [
        "maxtor-atlas-10k-v-73gb-czk",
        "quantum-atlas-10k",
        "hp-c2247a",
        "ibm-ultrastar-18es",
    ] {
        let model = library(name);
        let truth = model.config().buffer.clone().unwrap();
        let told = found(&model, async |probe| {
            cache(&mut Angles::measure(probe, Seed(4)).await?, None, true).await
        });
        let told = told.unwrap();
        assert!(told.answers, "{name}");
        assert_eq!(told.segments, u64::from(truth.segments), "{name}: {told:?}");
        assert_eq!(
            told.whole_tracks,
            truth.read_ahead == ReadAhead::WholeTrack,
            "{name}: {told:?}"
        );
        assert_eq!(told.write_back, Some(truth.write_back), "{name}: {told:?}");
        if let Some(sectors) = told.segment_sectors {
            assert_eq!(
                sectors,
                u64::from(truth.segment_sectors),
                "{name}: {told:?}"
            );
        }
        if truth.read_ahead == ReadAhead::Segment {
            let expected = truth.read_ahead_sectors.unwrap_or(truth.segment_sectors);
            let [_, median, _] = told.read_ahead.unwrap();
            assert!(median.abs_diff(expected.into()) <= 1, "{name}: {told:?}");
        }
    }
}

#[test]
fn nothing_is_written_unless_it_is_said() {
    let model = library("quantum-atlas-10k");
    let mut drive = SimulatedDrive::new(&model).unwrap();
    let told = async |probe| cache(&mut Angles::measure(probe, Seed(4)).await?, None, false).await;
    let (told, effort) = run(
        &mut drive,
        Extraction::new(model.config().capacity_sectors, told),
        &mut |_, _| {},
    )
    .unwrap();
    assert_eq!((told.write_back, effort.writes), (None, 0));
}

#[test]
fn zero_latency_is_told_or_left_open_where_a_slow_bus_hides_it() {
    let expected = [
        ("maxtor-atlas-10k-v-73gb-czk", Some(true)),
        ("ibm-deskstar-40gv", Some(false)),
        ("ibm-ultrastar-xp-4.51gb", Some(false)),
        ("quantum-atlas-10k", None),
        ("hp-c2247a", None),
    ];
    for (name, expected) in expected {
        let told = found(&library(name), async |probe| {
            let (timed, mut angles) =
                first_tracks(Angles::measure(probe, Seed(5)).await?, 450).await?;
            zero_latency(&mut angles, &timed.table).await
        });
        match told {
            Ok(told) => assert_eq!(told.zero_latency, expected, "{name}: {told:?}"),
            // A bus that is a little slower than the platter leaves angles that neither agree nor
            // differ.
            Err(error) => assert!(
                expected.is_none() && matches!(error, ExtractError::CannotTell { .. }),
                "{name}: {error}"
            ),
        }
    }
}

#[test]
fn skews_are_those_of_the_drive() {
    for name in ["hp-c2247a", "hp-dg072a4951"] {
        let model = library(name);
        let (timed, angles) = found(&model, async |probe| {
            tracks(
                Angles::measure(probe, Seed(6)).await?,
                ExtractionPace::Jumping,
            )
            .await
        })
        .unwrap();
        let (rms, held) = skew_error(&timed, &model);
        assert!(rms < 0.002 && held >= 8, "{name}: {rms} of {held}");
        let zones = skews(&timed, angles.rotation().revolution_ns);
        assert_eq!(zones.len(), model.config().zones.len(), "{name}");
        for zone in &zones {
            let all: f64 = zone.skews.iter().map(|skew| skew.part).sum();
            assert!(all > 0.98, "{name}: {zone:?}");
        }
    }
}

#[test]
fn the_map_of_zones_has_each_beginning_and_each_length() {
    for name in ["hp-c2247a", "quantum-atlas-10k", "toshiba-p300-3tb"] {
        let model = library(name);
        let map = found(&model, async |probe| zones(probe, Seed(7)).await).unwrap();
        let (_, most, truth) = zone_error(&map.zones, &model);
        assert_eq!((map.zones.len() as u64, most), (truth, 0), "{name}");
        let table = Boundaries::of(&*model.tracks(), name).unwrap();
        for (zone, next) in map.zones.iter().zip(map.zones.iter().skip(1)) {
            let longest = table
                .tracks_from(Lbn(zone.first))
                .take_while(|track| track.end().0 <= next.first);
            let longest = longest.map(|track| track.sectors.0).max().unwrap();
            assert_eq!(zone.lengths.last(), Some(&longest), "{name}: {zone:?}");
        }
        assert!(map.places > 500, "{name}: {}", map.places);
    }
}

#[test]
fn a_host_that_is_a_little_late_is_told_its_zones_by_all_tracks() {
    let model = library("hp-c2247a");
    let mut drive = SimulatedDrive::new(&model)
        .unwrap()
        .noticed_late(Duration::from_micros(10), Seed(3));
    let extraction = Extraction::new(drive.capacity(), |probe| zones(probe, Seed(8)));
    let (map, _) = run(&mut drive, extraction, &mut |_, _| {}).unwrap();
    let (_, most, truth) = zone_error(&map.zones, &model);
    assert_eq!((map.places, map.zones.len() as u64), (0, truth));
    assert!(most < 200, "{most}");
}

#[test]
fn every_library_drives_arms_are_counted() {
    for name in drives::names() {
        let model = drives::load_unchecked(name).unwrap();
        let told = counted(SimulatedDrive::new(&model).unwrap());
        assert_eq!(told, Some(model.config().actuators), "{name}");
    }
}

#[test]
fn arms_are_counted_up_to_eight_also_if_noticed_late() {
    for arms in [2, 3, 5, 8] {
        let mut config = library("hp-c2247a").config().clone();
        config.actuators = arms;
        config.capacity_sectors.0 *= u64::from(arms);
        let model = DriveModel::new(config).unwrap();
        for seed in 1..4 {
            let drive = SimulatedDrive::new(&model).unwrap();
            let late = drive.noticed_late(Duration::from_nanos(40_000), Seed(seed));
            assert_eq!(counted(late), Some(arms));
        }
    }
}

fn counted(mut drive: SimulatedDrive) -> Option<u32> {
    let told = async |probe| arms(&Angles::measure(probe, Seed(1)).await?, Seed(1)).await;
    let extraction = Extraction::new(drive.capacity(), told);
    run(&mut drive, extraction, &mut |_, _| {}).unwrap().0
}

#[test]
fn seeks_beside_a_large_buffer_are_told_by_the_shortest_of_many() {
    for name in [
        "seagate-exos-2x18-18tb",
        "seagate-cheetah-15k7-450gb",
        "toshiba-mk8034gsx-80gb",
    ] {
        let model = drives::load_unchecked(name).unwrap();
        let table = Boundaries::of(&*model.tracks(), "the drive").unwrap();
        let known = table.clone();
        let told = async move |probe| {
            let mut angles = Angles::measure(probe, Seed(1)).await?;
            let arms = arms(&angles, Seed(1)).await?;
            seeks(&mut angles, &known, arms).await
        };
        let (rms_ms, mean_ms) = seek_error(&found(&model, told).unwrap(), &table, &model);
        assert!(rms_ms < 0.05 * mean_ms, "{name}: {rms_ms} of {mean_ms}");
    }
}
