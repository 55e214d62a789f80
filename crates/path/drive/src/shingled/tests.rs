use super::map::{CachedExtent, ShingledMap};
use super::{Cleaning, ShingledConfig};
use crate::config::tests::small_drive;
use crate::config::{BufferConfig, DriveConfig};
use crate::drive::DriveModel;
use crate::drive::tests::{request, serve_work};
use fullstroke_contract::{Completion, Counters, Effects, Node, NodeContext, Operation};
use fullstroke_units::{Bytes, Duration, Time};
use proptest::prelude::*;
use serde_json::json;

const CAPACITY: u64 = 400;
const BAND: u64 = 30;
const CACHE: u64 = 100;

/// A medium on which each sector holds the version of its data.
struct Medium {
    map: ShingledMap,
    home: Vec<u64>,
    cache: Vec<u64>,
    newest: Vec<u64>,
    version: u64,
    /// A move under way: the extents, the first new place, and the data read.
    moving: Option<(Vec<CachedExtent>, u64, Vec<u64>)>,
    /// A band under cleaning: its number, the snapshot, and the data that will be written.
    cleaning: Option<(u64, Vec<CachedExtent>, Vec<u64>)>,
}

impl Medium {
    fn new() -> Medium {
        let size = CAPACITY as usize;
        Medium {
            map: ShingledMap::new(CAPACITY, BAND, CACHE),
            home: vec![0; size],
            cache: vec![0; CACHE as usize],
            newest: vec![0; size],
            version: 0,
            moving: None,
            cleaning: None,
        }
    }

    fn write(&mut self, start: u64, sectors: u64) {
        self.map.release();
        let (place, room) = self.map.at_head();
        let sectors = sectors.min(room).min(self.map.free());
        if sectors == 0 {
            return;
        }
        self.version += 1;
        self.map.append(start, sectors);
        for at in 0..sectors {
            self.cache[(place + at) as usize] = self.version;
            self.newest[(start + at) as usize] = self.version;
        }
    }

    /// Writes a whole band in place.
    fn write_band(&mut self, band: u64) {
        let (start, sectors) = self.map.extent_of(band);
        self.write_in_place(start, sectors);
    }

    /// Writes a part of a band in place, as the writer does: not while the band is cleaned.
    fn write_in_place(&mut self, start: u64, sectors: u64) {
        let band = start / BAND;
        if self
            .cleaning
            .as_ref()
            .is_some_and(|cleaning| cleaning.0 == band)
        {
            return;
        }
        self.version += 1;
        for at in start..start + sectors {
            self.home[at as usize] = self.version;
            self.newest[at as usize] = self.version;
        }
        self.map.unmap(start, sectors);
        self.map.release();
    }

    /// Begins to clean the oldest band, or ends the cleaning under way.
    fn clean(&mut self) {
        if let Some((band, cached, data)) = self.cleaning.take() {
            let (start, sectors) = self.map.extent_of(band);
            self.home[start as usize..(start + sectors) as usize].copy_from_slice(&data);
            self.map.came_home(&cached);
            return;
        }
        let Some(band) = self.map.oldest_band() else {
            return;
        };
        let (start, sectors) = self.map.extent_of(band);
        let cached = self.map.cached_of(band);
        assert!(!cached.is_empty(), "the oldest band has cached data");
        let mut data = self.home[start as usize..(start + sectors) as usize].to_vec();
        for extent in &cached {
            for at in 0..extent.sectors {
                let place = self.map.on_medium(extent.place + at);
                data[(extent.start + at - start) as usize] = self.cache[place as usize];
            }
        }
        self.cleaning = Some((band, cached, data));
    }

    /// Begins to move the oldest part of the log, or ends the move under way.
    fn move_on(&mut self) {
        if let Some((valid, place, data)) = self.moving.take() {
            for (at, version) in (place..).zip(data) {
                let at = self.map.on_medium(at) as usize;
                self.cache[at] = version;
            }
            self.map.moved(&valid, place);
            return;
        }
        let Some((from, to, valid)) = self.map.oldest_part(BAND) else {
            return;
        };
        let sectors: u64 = valid.iter().map(|extent| extent.sectors).sum();
        assert!(sectors <= to - from);
        if self.map.free() < sectors {
            return;
        }
        let places = valid
            .iter()
            .flat_map(|extent| extent.place..extent.place + extent.sectors);
        let data = places
            .map(|place| self.cache[self.map.on_medium(place) as usize])
            .collect();
        let place = self.map.reserve(sectors);
        self.moving = Some((valid, place, data));
    }

    fn read(&self, start: u64, sectors: u64) -> Vec<u64> {
        let mut read = Vec::new();
        self.map.places(start, sectors, &mut |place| {
            for at in 0..place.sectors {
                read.push(match place.cached {
                    Some(cached) => self.cache[self.map.on_medium(cached + at) as usize],
                    None => self.home[(place.start + at) as usize],
                });
            }
        });
        read
    }
}

proptest! {
    /// No write is lost, and none is served older, in any order of writes, direct writes of bands and
    /// of parts of bands, and the two ends of cleaning and of moves.
    #[test]
    fn the_newest_data_are_served(steps in prop::collection::vec((0u8..9, 0u64..CAPACITY, 1u64..45), 1..300)) {
        let mut medium = Medium::new();
        for (step, start, sectors) in steps {
            let sectors = sectors.min(CAPACITY - start);
            match step {
                6 if medium.cleaning.is_none() => medium.move_on(),
                0..=3 => medium.write(start, sectors),
                4 => medium.write_band(start / BAND),
                5 => medium.map.pad(sectors / 8),
                8 => {
                    let end = (start / BAND + 1) * BAND;
                    medium.write_in_place(start, sectors.min(end - start));
                }
                _ if medium.moving.is_none() => medium.clean(),
                _ => {}
            }
            medium.map.check();
            prop_assert_eq!(&medium.read(0, CAPACITY), &medium.newest);
        }
        // Cleaning alone empties the cache.
        if medium.moving.is_some() {
            medium.move_on();
        }
        for _ in 0..2000 {
            medium.clean();
        }
        prop_assert_eq!(medium.map.free(), CACHE);
        prop_assert_eq!(&medium.read(0, CAPACITY), &medium.newest);
        prop_assert_eq!(&medium.home, &medium.newest);
    }
}

fn shingled() -> ShingledConfig {
    serde_json::from_value(
        json!({ "band": 40960, "cache": 163840, "piece": 8192, "flush_record": 4096 }),
    )
    .unwrap()
}

fn buffer(write_back: bool) -> BufferConfig {
    let keys = json!({ "segments": 8, "segment_sectors": 64, "write_back": write_back, "write_segments": 4 });
    serde_json::from_value(keys).unwrap()
}

fn node(shingled: ShingledConfig, write_back: bool) -> Box<dyn Node> {
    let drive = DriveConfig {
        shingled: Some(shingled),
        buffer: Some(buffer(write_back)),
        ..small_drive()
    };
    DriveModel::new(drive).unwrap().branch().unwrap().node
}

type Arrival = (u64, u64, u64, u8);

fn run(node: &mut dyn Node, arrivals: &[Arrival], late: u64) -> Vec<Completion> {
    let requests = (0..).zip(arrivals).map(|(id, &(at, lbn, sectors, kind))| {
        let mut request = match kind {
            0 => request(id, lbn, sectors, Operation::Read),
            1 | 2 => request(id, lbn, sectors, Operation::Write),
            3 => request(id, 0, 0, Operation::Flush),
            _ => request(id, lbn, sectors, Operation::Discard),
        };
        request.hints.force_unit_access = kind == 2;
        (Time::from_nanos(at), request)
    });
    serve_work(node, requests, late)
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let one = (0u64..30_000_000, 0u64..1300, 1u64..100, 0u8..5);
    prop::collection::vec(one, 1..120).prop_map(|gaps| {
        let mut now = 0;
        let at = |(gap, lbn, sectors, kind): Arrival| {
            now += gap;
            (now, lbn, sectors.min(1400 - lbn), kind)
        };
        gaps.into_iter().map(at).collect()
    })
}

fn configs() -> impl Strategy<Value = ShingledConfig> {
    let cleaning = prop_oneof![
        Just(Cleaning::Aggressive),
        Just(Cleaning::Lazy),
        Just(Cleaning::Full)
    ];
    (
        cleaning,
        0u64..50,
        prop::option::of(2u32..9),
        1u32..5,
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(cleaning, idle, extents, forced_bands, trim, moves)| ShingledConfig {
                moves,
                cleaning,
                idle: Duration::from_millis(idle),
                extents,
                forced_bands,
                trim,
                ..shingled()
            },
        )
}

proptest! {
    #[test]
    fn each_request_ends_once_with_parts_that_add_up(arrivals in arrivals(), config in configs(), write_back in any::<bool>()) {
        let mut node = node(config, write_back);
        let done = run(&mut *node, &arrivals, 0);
        for completion in &done {
            prop_assert_eq!(completion.finished.since(completion.submitted), completion.breakdown.response());
        }
        prop_assert!(done.is_sorted_by_key(|completion| completion.finished));
    }

    #[test]
    fn late_wake_ups_do_not_move_the_timeline(arrivals in arrivals(), config in configs(), late in 0u64..30_000_000) {
        let on_time = run(&mut *node(config.clone(), true), &arrivals, 0);
        prop_assert_eq!(on_time, run(&mut *node(config, true), &arrivals, late));
    }
}

fn readings(node: &dyn Node, now: Time) -> Vec<(&'static str, f64)> {
    let mut counters = Counters::default();
    node.count(now, &mut counters);
    let layers = counters.layers.iter().flat_map(|layer| &layer.readings);
    layers
        .map(|reading| (reading.name, reading.value))
        .collect()
}

fn of(readings: &[(&'static str, f64)], name: &str) -> f64 {
    readings.iter().find(|reading| reading.0 == name).unwrap().1
}

#[test]
fn scattered_synchronous_writes_fill_the_cache_and_then_wait_for_cleaning() {
    let config = ShingledConfig {
        cleaning: Cleaning::Full,
        ..shingled()
    };
    // A cache of 320 sectors; each write takes 8 sectors and a record of 8.
    let writes: Vec<Arrival> = (0..60)
        .map(|at| (at * 1_000_000_000, at * 811 % 1300 / 8 * 8, 8, 2))
        .collect();
    let mut node = node(config, true);
    let done = run(&mut *node, &writes, 0);
    let readings = readings(&*node, done.last().unwrap().finished);
    let ms = |at: usize| done[at].breakdown.response().as_millis_f64();
    let early: f64 = (0..15).map(ms).sum::<f64>() / 15.0;
    let late: f64 = (30..60).map(ms).sum::<f64>() / 30.0;
    assert!(late > 1.5 * early, "{early} {late}");
    assert!(
        of(&readings, "shingled_cleaned_bands") > 20.0,
        "{readings:?}"
    );
    assert!(of(&readings, "shingled_stall_s") > 0.1);
    assert_eq!(of(&readings, "shingled_host_mb"), 60.0 * 4096.0 / 1e6);
    assert_eq!(
        of(&readings, "shingled_cache_mb"),
        2.0 * 60.0 * 4096.0 / 1e6
    );
}

/// Each write of 8 sectors takes a record of 8, so that half of the log is of no use.
#[test]
fn a_full_cache_moves_data_together_before_bands_are_cleaned() {
    let writes: Vec<Arrival> = (0..28)
        .map(|at| (at * 1_000_000_000, at * 811 % 1300 / 8 * 8, 8, 2))
        .collect();
    let [moving, cleaning] = [true, false].map(|moves| {
        let config = ShingledConfig {
            cleaning: Cleaning::Full,
            moves,
            ..shingled()
        };
        let mut node = node(config, true);
        let done = run(&mut *node, &writes, 0);
        readings(&*node, done.last().unwrap().finished)
    });
    assert!(of(&moving, "shingled_moved_mb") > 0.0, "{moving:?}");
    assert_eq!(of(&cleaning, "shingled_moved_mb"), 0.0);
    // The reserve of a move is a quarter of this small cache.
    assert!(
        of(&moving, "shingled_cleaned_bands") < of(&cleaning, "shingled_cleaned_bands"),
        "{moving:?} {cleaning:?}"
    );
}

#[test]
fn idle_time_empties_the_cache_of_an_aggressive_drive_only() {
    for (cleaning, left) in [(Cleaning::Aggressive, 0.0), (Cleaning::Full, 0.5)] {
        let config = ShingledConfig {
            cleaning,
            ..shingled()
        };
        let mut arrivals: Vec<Arrival> =
            (0..10).map(|at| (at * 1_000_000, at * 120, 8, 2)).collect();
        arrivals.push((60_000_000_000, 0, 8, 0));
        let mut node = node(config, true);
        let done = run(&mut *node, &arrivals, 0);
        let readings = readings(&*node, done.last().unwrap().finished);
        assert_eq!(of(&readings, "shingled_cache_share"), left, "{cleaning:?}");
        let bands = if left > 0.0 { 0.0 } else { 10.0 };
        assert_eq!(of(&readings, "shingled_cleaned_bands"), bands);
    }
}

#[test]
fn a_stream_of_whole_bands_passes_the_cache() {
    let stream: Vec<Arrival> = (0..100).map(|at| (at * 100_000, at * 8, 8, 1)).collect();
    let mut node = node(shingled(), true);
    let done = run(&mut *node, &stream, 0);
    let mut out = Effects::new();
    let end = done.last().unwrap().finished + Duration::from_millis(900);
    while node.next_wake().at() <= end {
        let at = node.next_wake().at();
        node.wake(at, &mut NodeContext::alone(&mut out));
    }
    let readings = readings(&*node, end);
    assert_eq!(of(&readings, "shingled_cache_mb"), 0.0, "{readings:?}");
    assert_eq!(of(&readings, "shingled_band_mb"), 800.0 * 512.0 / 1e6);
    assert_eq!(of(&readings, "shingled_cleaned_bands"), 0.0);
}

#[test]
fn impossible_keys_are_refused_by_name() {
    let one = |change: fn(&mut ShingledConfig)| {
        let mut config = shingled();
        change(&mut config);
        let drive = DriveConfig {
            shingled: Some(config),
            buffer: Some(buffer(true)),
            ..small_drive()
        };
        DriveModel::new(drive).err().map(|error| error.key)
    };
    assert_eq!(one(|_| {}), None);
    let key = |key: &str| Some(format!("shingled.{key}"));
    assert_eq!(one(|config| config.band = Bytes(5000)), key("band"));
    assert_eq!(one(|config| config.band = Bytes(1 << 30)), key("band"));
    assert_eq!(one(|config| config.cache = Bytes(8192)), key("cache"));
    assert_eq!(one(|config| config.cache = Bytes(716_800)), key("cache"));
    assert_eq!(one(|config| config.piece = Bytes(0)), key("piece"));
    assert_eq!(one(|config| config.extents = Some(1)), key("extents"));
    assert_eq!(one(|config| config.forced_bands = 0), key("forced_bands"));
    let narrow = |config: &mut ShingledConfig| {
        config.moves = true;
        config.cache = Bytes(81_920);
    };
    assert_eq!(one(narrow), key("cache"));
    assert_eq!(
        one(|config| (config.cleaning, config.lazy_above) = (Cleaning::Lazy, 1.0)),
        key("lazy_above")
    );
}
