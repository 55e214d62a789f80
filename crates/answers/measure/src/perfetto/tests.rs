use super::*;
use fullstroke_contract::Breakdown;
use fullstroke_units::Duration;
use proptest::prelude::*;
use read_back::Trace;

#[path = "read_back.rs"]
mod read_back;

/// A request to one drive: time since the previous request, pause of the drive before the request,
/// and duration of each part.
type Asked = (u64, u64, [u64; 4]);

fn trace(window: PerfettoWindow, drives: &[Vec<Asked>]) -> (PerfettoFile, Vec<Finished>) {
    let (run, all) = run_of(window, drives);
    (PerfettoFile::of(&run), all)
}

fn run(window: PerfettoWindow, drives: &[Vec<Asked>]) -> PerfettoRun {
    run_of(window, drives).0
}

/// Simulates drives that serve one request at a time, in order of arrival.
fn run_of(window: PerfettoWindow, drives: &[Vec<Asked>]) -> (PerfettoRun, Vec<Finished>) {
    let ns = Duration::from_nanos;
    let mut events = Vec::new();
    for (drive, asked) in drives.iter().enumerate() {
        let (mut submitted, mut free) = (Time::ZERO, Time::ZERO);
        for (number, &(gap, pause, parts)) in asked.iter().enumerate() {
            submitted += ns(gap);
            let begun = submitted.max(free) + ns(pause);
            free = begun + ns(parts.iter().sum());
            let [overhead, seek, rotation, transfer] = parts.map(ns);
            let breakdown = Breakdown {
                queue: begun.since(submitted),
                overhead,
                seek,
                rotation,
                transfer,
                seek_cylinders: u32::from(number % 2 == 0),
                ..Breakdown::default()
            };
            let id = RequestId(number as u64);
            let completion = Completion {
                id,
                submitted,
                finished: free,
                breakdown,
                ..Completion::default()
            };
            events.push((submitted, 1, drive, completion));
            events.push((free, 0, drive, completion));
        }
    }
    events.sort_by_key(|(at, begins, drive, completion)| (*at, *begins, *drive, completion.id));
    let mut trace = PerfettoTrace::new(window);
    let mut all = Vec::new();
    for (at, begins, drive, completion) in events {
        let origin = completion.id.0 * drives.len() as u64 + drive as u64;
        let extent = Extent::new(origin, 8);
        if begins == 1 {
            trace.drive_io(
                at,
                drive,
                &Request {
                    id: completion.id,
                    origin,
                    extent,
                    ..Request::default()
                },
            );
            continue;
        }
        trace.drive_done(drive, &completion);
        let finished = Finished {
            origin,
            operation: Operation::Read,
            extent,
            process: 0,
            workload: 0,
            arrived: completion.submitted,
            completion,
        };
        trace.finished(&finished);
        all.push(finished);
    }
    let names: Vec<String> = (0..drives.len()).map(|drive| drive.to_string()).collect();
    (trace.finish(Vec::new(), names), all)
}

fn asked() -> impl Strategy<Value = Vec<Vec<Asked>>> {
    let one = (0..50u64, 0..3u64, prop::array::uniform4(0..20u64));
    prop::collection::vec(prop::collection::vec(one, 0..40), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // `Trace::read` checks that slices end and do not overlap on a track, and that flows begin and
    // end.
    #[test]
    fn what_is_read_back_is_what_happened_in_the_window(
        drives in asked(), from in 0..600u64, length in 1..2000u64, requests in 1..200usize,
    ) {
        let window = PerfettoWindow { from: Time::from_nanos(from), to: Time::from_nanos(from + length), requests };
        let (file, all) = trace(window, &drives);
        let read = Trace::read(&file.bytes);
        let to = file.cut.unwrap_or(window.to).as_nanos();
        let inside = |at: u64| (from..=to).contains(&at);
        prop_assert!(read.slices.iter().all(|slice| inside(slice.begin) && inside(slice.end)));
        prop_assert!(read.counters.iter().all(|(_, at, _)| inside(*at)));
        prop_assert!(read.flows.values().all(|slices| *slices >= 2));

        let shown: Vec<_> = read.on(|name| name.starts_with("requests")).collect();
        prop_assert!(file.requests <= requests);
        for finished in &all {
            let whole = inside(finished.arrived.as_nanos()) && inside(finished.completion.finished.as_nanos());
            let slice = shown.iter().find(|slice| slice.number("request") == finished.origin);
            // If the trace was cut, a request that ends at the cut itself may be left out.
            if file.cut.is_none() || finished.completion.finished.as_nanos() < to {
                prop_assert_eq!(slice.is_some(), whole);
            }
        }
        for slice in shown {
            let origin = slice.number("request");
            let parts = &all.iter().find(|finished| finished.origin == origin).unwrap().completion.breakdown;
            let of = |names: &[&str]| -> u64 {
                let of_request = read.on(|name| ["arm", "buffer"].contains(&name)).filter(|part| part.number("request") == origin);
                of_request.filter(|part| names.contains(&&*part.name)).map(|part| part.end - part.begin).sum()
            };
            if read.on(|name| name.starts_with("slot")).any(|slot| slot.number("request") == origin) {
                prop_assert_eq!(of(&["overhead"]), parts.overhead.as_nanos());
                prop_assert_eq!(of(&["seek", "head switch"]), parts.seek.as_nanos());
                prop_assert_eq!(of(&["rotation"]), parts.rotation.as_nanos());
                prop_assert_eq!(of(&["transfer"]), parts.transfer.as_nanos());
            }
        }
    }
}

#[test]
fn a_trace_is_cut_where_it_would_become_too_long() {
    let window = PerfettoWindow {
        requests: 4,
        ..PerfettoWindow::default()
    };
    let (file, all) = trace(window, &[vec![(10, 0, [1, 2, 3, 4]); 10]]);
    assert_eq!(
        (file.requests, file.cut),
        (4, Some(all[1].completion.finished))
    );
    let whole = trace(
        PerfettoWindow::default(),
        &[vec![(10, 0, [1, 2, 3, 4]); 10]],
    )
    .0;
    assert_eq!((whole.requests, whole.cut), (20, None));
    assert_eq!(Trace::read(&whole.bytes).flows.len(), 10);
}

#[test]
fn requests_that_overlap_in_a_drive_take_slots_of_their_own() {
    let (file, _) = trace(PerfettoWindow::default(), &[vec![(0, 0, [0, 5, 5, 5]); 3]]);
    let read = Trace::read(&file.bytes);
    let names: Vec<&str> = read
        .tracks
        .values()
        .map(|(_, name)| name.as_str())
        .collect();
    for name in ["slot 0", "slot 1", "slot 2", "arm", "queue", "under way"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let depths: Vec<u64> = read
        .counters
        .iter()
        .map(|(_, _, value)| *value)
        .filter(|depth| *depth > 2)
        .collect();
    assert_eq!(depths, [3, 3]);
}

#[test]
fn of_several_runs_none_shows_more_than_the_one_that_was_cut_first() {
    let whole = PerfettoWindow::default();
    let asked = |count: usize| vec![vec![(10, 0, [1, 2, 3, 4]); count]];
    let (long, short) = (
        run(whole.shared_by(1000), &asked(40)),
        run(whole.shared_by(2), &asked(40)),
    );
    let (long_alone, short_alone) = (PerfettoFile::of(&long), PerfettoFile::of(&short));
    assert_eq!((long_alone.requests, short_alone.requests), (20, 80));
    let both = PerfettoFile::of_all(&[(Some("a"), &long), (Some("b"), &short)]);
    assert_eq!((both.cut, both.requests), (long_alone.cut, 40));
    let read = Trace::read(&both.bytes);
    let names: Vec<&str> = read.processes.values().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "a: workload",
            "a: requests",
            "a: drive 0",
            "b: workload",
            "b: requests",
            "b: drive 0"
        ]
    );
    let cut = both.cut.unwrap().as_nanos();
    assert!(
        read.slices.iter().all(|slice| slice.end <= cut)
            && read.counters.iter().all(|(_, at, _)| *at <= cut)
    );
}
