use super::*;
use crate::playout::PlayingTimes;
use fullstroke_units::{BitRate, Bytes, Lbn};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const CAPACITY: Sectors = Sectors(1 << 24);

fn config(keys: &Value) -> StreamsConfig {
    let mut all = json!({ "streams": 1, "bit_rate": "1Mbit/s", "duration": "20s" });
    // Clients that hold two reads show every rule within few reads.
    let buffers = ["read_size", "start_up_buffer", "client_buffer"];
    if buffers.iter().all(|key| keys.get(key).is_none()) {
        let small =
            json!({ "read_size": "64KiB", "start_up_buffer": "64KiB", "client_buffer": "128KiB" });
        all.as_object_mut()
            .unwrap()
            .extend(small.as_object().unwrap().clone());
    }
    all.as_object_mut()
        .unwrap()
        .extend(keys.as_object().unwrap().clone());
    if all.get("bit_rates").is_some() {
        all.as_object_mut().unwrap().remove("bit_rate");
    }
    serde_json::from_value(all).unwrap()
}

/// A read as the volume receives it; times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct StreamRead {
    request: Request,
    issued: u64,
    came: u64,
}

/// The reads of each stream and the counters, on a volume that completes a read at the instant
/// given by `done`.
fn play(
    keys: &Value,
    seed: u64,
    mut done: impl FnMut(u64, &Request) -> u64,
) -> (BTreeMap<u32, Vec<StreamRead>>, Vec<StreamTally>) {
    let mut source = Streams::new(&config(keys), CAPACITY, Seed(seed)).unwrap();
    let room = source.room.capacity();
    let mut reads: BTreeMap<u32, Vec<StreamRead>> = BTreeMap::new();
    let mut in_flight: BTreeMap<(u64, u64), Request> = BTreeMap::new();
    let mut out = Effects::new();
    for number in 0.. {
        let due = source.next_wake().at().as_nanos();
        let next = in_flight
            .first_key_value()
            .map_or(u64::MAX, |(&(at, _), _)| at);
        let now = next.min(due);
        if now == u64::MAX {
            break;
        }
        if next <= due {
            let (_, request) = in_flight.pop_first().unwrap();
            let completion = Completion {
                id: request.id,
                ..Completion::default()
            };
            source.completed(
                Time::from_nanos(now),
                Port::FIRST,
                completion,
                &mut NodeContext::alone(&mut out),
            );
        } else {
            source.wake(Time::from_nanos(now), &mut NodeContext::alone(&mut out));
        }
        for (place, request) in out.requests().enumerate() {
            let came = done(now, &request);
            reads
                .entry(request.hints.stream)
                .or_default()
                .push(StreamRead {
                    request,
                    issued: now,
                    came,
                });
            in_flight.insert((came, number << 20 | place as u64), request);
        }
    }
    assert_eq!(
        source.room.capacity(),
        room,
        "alarms have no more room than they began with"
    );
    (reads, source.tallies)
}

/// A model of a client that plays read by read, given the arrival times.
struct ClientModel {
    playout: PlayingTimes,
    read: u64,
    /// Playing time of each read's first byte; empty until playback starts.
    played: Vec<u64>,
    first_played: u64,
    stalls: Vec<u64>,
    until_then: u64,
}

impl ClientModel {
    fn new(keys: &Value, rate: BitRate, reads: &[StreamRead]) -> ClientModel {
        let config = config(keys);
        let read = config.read_bytes().0;
        let playout =
            PlayingTimes::new(rate, config.variation, Seed(7).stream("stream 1 variation"));
        let mut times = playout.clone();
        let mut there = 0;
        let mut played: Vec<u64> = Vec::new();
        let mut stalls = Vec::new();
        let mut first_played = u64::MAX;
        for (number, each) in (0u64..).zip(reads) {
            there = each.came.max(there);
            if first_played == u64::MAX && (number + 1) * read >= config.start_up_bytes().0 {
                first_played = there;
                // Data that are present are played in turn.
                let mut again = playout.clone();
                played = (0..=number)
                    .map(|k| there + again.at(k * read).as_nanos())
                    .collect();
            } else if first_played != u64::MAX {
                let lost: u64 = stalls.iter().sum();
                let needed = first_played + times.at(number * read).as_nanos() + lost;
                stalls.extend((there > needed).then(|| there - needed));
                played.push(needed.max(there));
            }
        }
        let until_then = played.last().copied().unwrap_or(0);
        ClientModel {
            playout,
            read,
            played,
            first_played,
            stalls,
            until_then,
        }
    }

    /// Bytes needed before `at`.
    fn bytes_before(&self, at: u64) -> u64 {
        let Some(number) = self
            .played
            .partition_point(|&first| first < at)
            .checked_sub(1)
        else {
            return 0;
        };
        let begin = self
            .playout
            .clone()
            .at(number as u64 * self.read)
            .as_nanos();
        let within = |bytes: u64| {
            let byte = number as u64 * self.read + bytes;
            self.playout.clone().at(byte).as_nanos() - begin + self.played[number] < at
        };
        let (mut low, mut high) = (0, self.read);
        while low < high {
            let middle = (low + high) / 2;
            if within(middle) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        number as u64 * self.read + low
    }
}

fn keys() -> impl Strategy<Value = Value> {
    let variation = prop_oneof![
        Just(Value::Null),
        Just(json!({ "distribution": "uniform", "share": 0.9, "segment": "300ms" })),
        Just(json!({ "distribution": "log-normal", "share": 0.6 })),
    ];
    (1u64..40, 1u32..9, 1u64..200_000, 0u64..300_000, 64_000u64..4_000_000, variation).prop_map(
        |(pages, read_ahead, start_up, more, rate, variation)| {
            json!({
                "read_size": pages * 4096, "read_ahead": read_ahead, "bit_rate": format!("{rate}bit/s"),
                "start_up_buffer": start_up, "client_buffer": start_up + more, "variation": variation,
            })
        },
    )
}

proptest! {
    #[test]
    fn an_infinitely_fast_volume_never_lets_a_client_wait(keys in keys()) {
        let (reads, tallies) = play(&keys, 7, |now, _| now);
        let tally = tallies[0];
        prop_assert_eq!((tally.underruns, tally.stalled), (0, Duration::ZERO));
        prop_assert_eq!(tally.start_up_latency(), Some(Duration::ZERO));
        prop_assert_eq!(tally.reads, reads[&1].len() as u64);
    }

    #[test]
    fn a_volume_slower_than_the_rate_always_does(keys in keys(), percent in 101u64..150) {
        let mut keys = keys;
        keys.as_object_mut().unwrap().remove("variation");
        keys["duration"] = json!("1h");
        let StreamsConfig { bit_rate, .. } = config(&keys);
        let read_size = config(&keys).read_bytes();
        let plays = bit_rate.unwrap().span(read_size).as_nanos();
        let mut idle = 0;
        let (_, tallies) = play(&keys, 7, |now, _| {
            idle = now.max(idle) + plays * percent / 100 + 1;
            idle
        });
        prop_assert!(tallies[0].underruns > 0, "{:?}", tallies[0]);
    }

    /// For every order of arrivals the client plays every byte once and in time, and server and
    /// client never hold more than their buffers.
    #[test]
    fn what_is_delivered_is_what_is_played(keys in keys(), services in prop::collection::vec(0u64..900_000_000, 1..50)) {
        let mut service = services.iter().cycle();
        let (reads, tallies) = play(&keys, 7, |now, _| now + service.next().unwrap());
        let (reads, tally) = (&reads[&1], tallies[0]);
        let client = ClientModel::new(&keys, tally.bit_rate, reads);
        prop_assert_eq!(tally.plays_from.map_or(u64::MAX, Time::as_nanos), client.first_played);
        let ends = 20_000_000_000;
        if client.until_then < ends {
            let stalled: u64 = client.stalls.iter().sum();
            prop_assert_eq!(tally.underruns, client.stalls.len() as u64);
            prop_assert_eq!(tally.stalled.as_nanos(), stalled);
            prop_assert_eq!(tally.longest_stall.as_nanos(), client.stalls.iter().copied().max().unwrap_or(0));
        }
        prop_assert_eq!(tally.reads, reads.len() as u64);
        let config = config(&keys);
        let (read, ahead) = (config.read_bytes().0, u64::from(config.read_ahead));
        for (number, each) in (1u64..).zip(reads) {
            let behind = number as usize - 1;
            let there = reads[..behind].iter().take_while(|other| other.came <= each.issued).count() as u64;
            let taken = (client.bytes_before(each.issued) + config.client_bytes().0).min(there * read);
            prop_assert!(number * read <= taken + ahead * read, "read {}: {} taken", number, taken);
        }
    }

    #[test]
    fn a_load_repeats_and_another_seed_differs(seed: u64) {
        let keys = json!({
            "streams": 20, "start_interval": "100ms", "exponential": true, "start_position": "random",
            "bit_rates": [{ "bit_rate": "1Mbit/s", "weight": 3 }, { "bit_rate": "4Mbit/s", "weight": 1 }],
        });
        let played = |seed| play(&keys, seed, |now, _| now + 1_000_000);
        prop_assert_eq!(played(seed), played(seed));
        prop_assert_ne!(played(seed), played(seed ^ 1));
    }
}

#[test]
fn no_stream_starts_behind_an_underrun() {
    let keys =
        json!({ "streams": 100, "bit_rate": "4Mbit/s", "duration": "2s", "until_underrun": true });
    let mut idle = 0;
    let (_, tallies) = play(&keys, 7, |now, _| {
        idle = now.max(idle) + 10_000_000;
        idle
    });
    // A read plays for 131 ms and takes 10 ms: 13 reads fit.
    let results = StreamsResults::new(tallies, None);
    assert!(
        (13..=15).contains(&results.sustained()),
        "{}",
        results.sustained()
    );
    assert!(
        (14..20).contains(&results.started().count()),
        "{}",
        results.started().count()
    );
}

#[test]
fn one_stream_more_leaves_the_rates_and_starts_of_the_others() {
    let keys = |streams: u32| {
        json!({ "streams": streams, "exponential": true,
            "bit_rates": [{ "bit_rate": "1Mbit/s", "weight": 1 }, { "bit_rate": "2Mbit/s", "weight": 1 }] })
    };
    let told = |streams| play(&keys(streams), 3, |now, _| now).1;
    let first = |tally: &StreamTally| (tally.bit_rate, tally.started);
    let (few, more) = (told(30), told(31));
    assert!(few.iter().map(first).eq(more[..30].iter().map(first)));
    assert!(few.iter().any(|tally| tally.bit_rate != few[0].bit_rate));
}

#[test]
fn a_read_needs_its_first_byte_and_the_client_plays_on_when_it_is_there() {
    // 64 KiB play for 524.288 ms. The fourth read is 400 ms late.
    let mut number = 0;
    let (_, tallies) = play(&json!({ "read_ahead": 1 }), 1, |now, _| {
        number += 1;
        now + if number == 4 {
            924_288_000 + 524_288_000
        } else {
            1_000_000
        }
    });
    let tally = tallies[0];
    assert_eq!(tally.start_up_latency(), Some(Duration::from_millis(1)));
    // The read is requested when playback of the second starts, because the client holds two.
    assert_eq!(
        (tally.underruns, tally.stalled),
        (1, Duration::from_millis(400))
    );
    assert_eq!(tally.longest_stall, tally.stalled);
}

#[test]
fn a_ramp_ends_when_a_stream_waits_too_long() {
    // The first read of stream n takes n half seconds.
    let keys = json!({ "streams": 100, "until_start_up_latency": "3s", "duration": "10s" });
    let (reads, tallies) = play(&keys, 1, |now, request| {
        let first = request.id.0 as u32 == 1;
        now + if first {
            500_000_000 * u64::from(request.hints.stream)
        } else {
            1_000_000
        }
    });
    // The seventh stream waits 3.5 s from second 6 on; the limit is seen at the start of the
    // eleventh.
    assert_eq!(
        tallies
            .iter()
            .filter(|tally| tally.started.is_some())
            .count(),
        10
    );
    assert_eq!(
        tallies[6].start_up_latency(),
        Some(Duration::from_millis(3500))
    );
    let last = reads
        .values()
        .flatten()
        .map(|read| read.issued)
        .max()
        .unwrap();
    assert!((19_000_000_000..20_000_000_000).contains(&last), "{last}");
}

#[test]
fn a_stream_goes_through_its_file_and_on() {
    let keys =
        json!({ "streams": 2, "files": 2, "file_size": "192KiB", "start_position": "random" });
    let (reads, _) = play(&keys, 5, |now, _| now);
    for reads in reads.values() {
        let places: Vec<Lbn> = reads.iter().map(|read| read.request.extent.start).collect();
        let (first, last) = (*places.iter().min().unwrap(), *places.iter().max().unwrap());
        assert_eq!(last.since(first), Sectors(256));
        for pair in places.windows(2) {
            assert_eq!(
                pair[1],
                if pair[0] == last {
                    first
                } else {
                    pair[0] + Sectors(128)
                }
            );
        }
    }
    let keys = json!({ "files": 50, "file_size": "64KiB", "at_end": "another" });
    let (reads, _) = play(&keys, 5, |now, _| now);
    let places: std::collections::BTreeSet<u64> = reads[&1]
        .iter()
        .map(|read| read.request.extent.start.0)
        .collect();
    assert!(places.len() > 10, "{places:?}");
}

#[test]
fn files_and_servers_are_dealt_out_evenly() {
    let keys = json!({ "streams": 12, "files": 4, "file_size": "64MiB", "servers": 3 });
    let (reads, _) = play(&keys, 5, |now, _| now);
    let mut plays: BTreeMap<u64, u32> = BTreeMap::new();
    for (stream, reads) in &reads {
        *plays.entry(reads[0].request.extent.start.0).or_default() += 1;
        assert!(
            reads
                .iter()
                .all(|read| read.request.hints.process == (stream - 1) % 3 + 1)
        );
    }
    assert_eq!(plays.values().copied().collect::<Vec<u32>>(), [3, 3, 3, 3]);
}

#[test]
fn a_load_ends_after_its_requests_or_its_duration() {
    let (reads, tallies) = play(&json!({ "requests": 7 }), 1, |now, _| now);
    assert_eq!((reads[&1].len(), tallies[0].underruns), (7, 0));
    let (reads, tallies) = play(&json!({ "streams": 4, "duration": "5s" }), 1, |now, _| {
        now + 60_000_000_000
    });
    assert_eq!(reads.values().map(Vec::len).sum::<usize>(), 4);
    assert!(
        tallies
            .iter()
            .all(|tally| (tally.underruns, tally.deadlines) == (0, 0))
    );
    assert!(
        reads
            .values()
            .flatten()
            .all(|read| read.issued < 8_000_000_000)
    );
}

#[test]
fn what_cannot_be_is_refused_at_its_key() {
    for (keys, key) in [
        (json!({ "streams": 0 }), "streams"),
        (json!({ "streams": 2_000_000 }), "streams"),
        (json!({ "bit_rate": "0bit/s" }), "bit_rate"),
        (json!({ "bit_rate": "1000Gbit/s" }), "bit_rate"),
        (json!({ "bit_rate": null }), "bit_rate"),
        (
            json!({ "bit_rates": [{ "bit_rate": "0bit/s", "weight": 1 }] }),
            "bit_rates",
        ),
        (
            json!({ "bit_rates": [{ "bit_rate": "1bit/s", "weight": 0 }] }),
            "bit_rates",
        ),
        (
            json!({ "variation": { "distribution": "uniform", "share": 1.5 } }),
            "variation.share",
        ),
        (
            json!({ "variation": { "distribution": "log-normal", "share": 0.5, "segment": "1us" } }),
            "variation.segment",
        ),
        (json!({ "duration": "0s" }), "duration"),
        (json!({ "requests": 0 }), "requests"),
        (json!({ "read_size": 0 }), "read_size"),
        (json!({ "read_size": 1000 }), "read_size"),
        (json!({ "read_ahead": 0 }), "read_ahead"),
        (json!({ "read_ahead": 65 }), "read_ahead"),
        (
            json!({ "start_up_buffer": "1MiB", "client_buffer": "512KiB" }),
            "start_up_buffer",
        ),
        (
            json!({ "start_up_buffer": 0, "client_buffer": 0 }),
            "client_buffer",
        ),
        (
            json!({ "until_start_up_latency": "0s" }),
            "until_start_up_latency",
        ),
        (
            json!({ "until_start_up_latency": "3s", "start_interval": "0s" }),
            "start_interval",
        ),
        (json!({ "file_size": "1TiB" }), "file_size"),
        (json!({ "servers": 0 }), "servers"),
    ] {
        let error = Streams::new(&config(&keys), CAPACITY, Seed(1))
            .err()
            .unwrap();
        assert_eq!(error.key, key, "{keys}: {error}");
    }
    assert_eq!(config(&json!({})).client_bytes(), Bytes(128 << 10));
}

#[test]
fn buffers_are_seconds_of_play_unless_they_are_given() {
    let sizes = |keys: Value| {
        let mut all = json!({ "streams": 1, "duration": "20s" });
        all.as_object_mut()
            .unwrap()
            .extend(keys.as_object().unwrap().clone());
        let config: StreamsConfig = serde_json::from_value(all).unwrap();
        config.check().unwrap();
        [
            config.read_bytes(),
            config.start_up_bytes(),
            config.client_bytes(),
        ]
        .map(|bytes| bytes.0)
    };
    let (kib, mib) = (1u64 << 10, 1u64 << 20);
    assert_eq!(
        sizes(json!({ "bit_rate": "25Mbit/s" })),
        [mib, 3_125_000, 15_625_000]
    );
    assert_eq!(
        sizes(json!({ "bit_rate": "2Mbit/s" })),
        [64 * kib, 250_000, 1_250_000]
    );
    // The highest of several rates counts. A read is at most 4 MiB.
    let rates =
        json!([{ "bit_rate": "1Mbit/s", "weight": 9 }, { "bit_rate": "800Mbit/s", "weight": 1 }]);
    assert_eq!(
        sizes(json!({ "bit_rates": rates })),
        [4 * mib, 100_000_000, 500_000_000]
    );
    // A slow stream holds at least two reads, and given sizes stay.
    assert_eq!(
        sizes(json!({ "bit_rate": "64kbit/s" })),
        [64 * kib, 64 * kib, 128 * kib]
    );
    let small = json!({ "bit_rate": "25Mbit/s", "read_size": "64KiB", "client_buffer": "128KiB" });
    assert_eq!(sizes(small), [64 * kib, 128 * kib, 128 * kib]);
}

/// Plays and records, on a volume that takes `took` ns for each request. Returns the requests of each
/// stream and the results.
fn record(keys: &Value, took: u64) -> (BTreeMap<u32, Vec<StreamRead>>, StreamsResults) {
    let mut source = Streams::new(&config(keys), CAPACITY, Seed(1)).unwrap();
    let mut requests: BTreeMap<u32, Vec<StreamRead>> = BTreeMap::new();
    let mut in_flight: BTreeMap<(u64, u64), Request> = BTreeMap::new();
    let mut out = Effects::new();
    for number in 0.. {
        let due = source.next_wake().at().as_nanos();
        let next = in_flight
            .first_key_value()
            .map_or(u64::MAX, |(&(at, _), _)| at);
        let now = next.min(due);
        if now == u64::MAX {
            break;
        }
        let mut cx = NodeContext::alone(&mut out);
        if next <= due {
            let (_, request) = in_flight.pop_first().unwrap();
            let completion = Completion {
                id: request.id,
                ..Completion::default()
            };
            source.completed(Time::from_nanos(now), Port::FIRST, completion, &mut cx);
        } else {
            source.wake(Time::from_nanos(now), &mut cx);
        }
        for (place, request) in out.requests().enumerate() {
            let came = now + took;
            requests
                .entry(request.hints.stream)
                .or_default()
                .push(StreamRead {
                    request,
                    issued: now,
                    came,
                });
            in_flight.insert((came, number << 20 | place as u64), request);
        }
    }
    (requests, source.results())
}

/// A camera at 1 Mbit/s: a write of 64 KiB takes 524.288 ms to be made.
const CAMERA: &str = "64KiB";
const MADE_NS: u64 = 524_288_000;

#[test]
fn a_recording_writes_its_data_as_they_are_made() {
    let keys = json!({ "recordings": 2, "read_size": CAMERA, "duration": "20s", "recording_buffer": "128KiB" });
    let (requests, results) = record(&keys, 1_000_000);
    assert_eq!(results.recordings().len(), 2);
    assert_eq!((results.overruns(), results.lost()), (0, Duration::ZERO));
    // The streams have the numbers before the recordings.
    for number in [2, 3] {
        let writes = &requests[&number];
        assert!(
            (37..=38).contains(&writes.len()),
            "20 s hold 38 writes: {}",
            writes.len()
        );
        for pair in writes.windows(2) {
            assert_eq!(pair[1].issued - pair[0].issued, MADE_NS);
            assert_eq!(pair[1].request.operation, Operation::Write);
            let end = pair[0].request.extent.start.0 + pair[0].request.extent.sectors.0;
            assert_eq!(pair[1].request.extent.start.0, end);
        }
    }
    let phases: Vec<u64> = [2, 3].map(|number| requests[&number][0].issued).to_vec();
    assert_ne!(phases[0], phases[1], "cameras are not in step");
    assert!(
        requests[&1]
            .iter()
            .all(|read| read.request.operation == Operation::Read)
    );
}

#[test]
fn a_recording_whose_buffer_is_full_loses_the_time_until_its_write_is_done() {
    // A buffer of two writes is full 524.288 ms after a write begins. A volume that needs 600 ms
    // makes each write 75.712 ms late.
    let keys = json!({ "recordings": 1, "read_size": CAMERA, "duration": "20s", "recording_buffer": "128KiB" });
    let (_, results) = record(&keys, 600_000_000);
    let [camera] = results.recordings() else {
        panic!("one recording")
    };
    assert!(camera.underruns > 10, "{camera:?}");
    assert_eq!(camera.longest_stall, Duration::from_nanos(75_712_000));
    assert_eq!(results.lost(), camera.stalled);
    // With more room the camera is late for ever longer, and loses data later.
    let keys = json!({ "recordings": 1, "read_size": CAMERA, "duration": "20s", "recording_buffer": "256KiB" });
    let (_, roomy) = record(&keys, 600_000_000);
    assert!(roomy.recordings()[0].first_underrun > camera.first_underrun);
    // Two writes in flight keep up.
    let keys = json!({ "recordings": 1, "read_size": CAMERA, "duration": "20s", "recording_buffer": "256KiB", "read_ahead": 2 });
    assert_eq!(record(&keys, 600_000_000).1.overruns(), 0);
}

#[test]
fn recordings_leave_the_streams_as_they_are() {
    let keys = |recordings: u32| json!({ "streams": 3, "recordings": recordings, "file_size": "1MiB", "files": 3, "variation": { "distribution": "uniform", "share": 0.3 } });
    let times = |keys: &Value| -> Vec<Vec<u64>> {
        let (requests, _) = record(keys, 1_000_000);
        (1..=3)
            .map(|stream| requests[&stream].iter().map(|read| read.issued).collect())
            .collect()
    };
    assert_eq!(times(&keys(0)), times(&keys(2)));
}

#[test]
fn impossible_recordings_are_refused_at_their_key() {
    for (keys, key) in [
        (json!({ "recording_rate": "1Mbit/s" }), "recording_rate"),
        (json!({ "recording_buffer": "1MiB" }), "recording_buffer"),
        (
            json!({ "recordings": 1, "recording_rate": "0bit/s" }),
            "recording_rate",
        ),
        (
            json!({ "recordings": 1, "recording_buffer": "1KiB" }),
            "recording_buffer",
        ),
        (json!({ "recordings": 1 << 20 }), "recordings"),
    ] {
        assert_eq!(config(&keys).check().unwrap_err().key, key, "{keys}");
    }
}
