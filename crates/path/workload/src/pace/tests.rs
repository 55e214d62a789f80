use super::*;
use proptest::prelude::*;

fn us(microseconds: u64) -> Time {
    Time::ZERO + Duration::from_micros(microseconds)
}

/// A trace of (gap to the previous request, response time), in µs.
fn trace(rows: &[(u64, u64)]) -> Vec<Traced> {
    let mut arrival = 0;
    let row = |&(gap, response): &(u64, u64)| {
        arrival += gap;
        Traced {
            arrival: us(arrival),
            completed: Some(us(arrival + response)),
        }
    };
    rows.iter().map(row).collect()
}

/// One replayed request.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Replayed {
    number: u64,
    at: Time,
    /// Outstanding requests at its issue.
    found: u64,
    done: Time,
}

/// Replays `rows` on a device where request `i` takes `takes[i % n]` µs.
fn replay(rules: Rules, rows: &[(u64, u64)], takes: &[u64]) -> Vec<Replayed> {
    let mut dispatcher = Dispatcher::new(rules).counting();
    let mut flying: BTreeSet<(Time, u64)> = BTreeSet::new();
    let (mut now, mut log) = (Time::ZERO, Vec::new());
    for (index, traced) in trace(rows).into_iter().enumerate() {
        dispatcher.offer(now, traced).unwrap();
        loop {
            let landing = flying.first().copied();
            match dispatcher.turn() {
                IssueTurn::At(due) if landing.is_none_or(|(at, _)| due <= at) => {
                    now = now.max(due);
                    break;
                }
                turn => {
                    let (at, number) =
                        landing.unwrap_or_else(|| panic!("{turn:?}, and nothing is outstanding"));
                    flying.remove(&(at, number));
                    now = at;
                    let took = takes[(number as usize - 1) % takes.len()];
                    dispatcher.completed(now, number, Duration::from_micros(took));
                }
            }
        }
        let found = dispatcher.outstanding();
        let number = dispatcher.issued();
        let done = now + Duration::from_micros(takes[index % takes.len()]);
        flying.insert((done, number));
        log.push(Replayed {
            number,
            at: now,
            found,
            done,
        });
    }
    log
}

/// Outstanding requests of the trace at each arrival, counted directly.
fn required(rows: &[(u64, u64)]) -> Vec<u64> {
    let trace = trace(rows);
    let earlier = |i: usize| {
        trace[..i]
            .iter()
            .filter(|one| one.completed.unwrap() > trace[i].arrival)
            .count()
    };
    (0..trace.len()).map(|i| earlier(i) as u64).collect()
}

fn rules(pace: ReplayPace) -> Rules {
    let outstanding = (pace == ReplayPace::Closed).then_some(3);
    Rules {
        pace,
        outstanding,
        ..Rules::default()
    }
}

fn rows() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0u64..300, 1u64..900), 1..80)
}

fn takes() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(1u64..3000, 1..20)
}

proptest! {
    #[test]
    fn every_request_goes_once_and_in_order(rows in rows(), takes in takes(), batch in 0u64..100) {
        for pace in ReplayPace::ALL {
            let rules = Rules { batch: Duration::from_micros(batch), ..rules(pace) };
            let log = replay(rules, &rows, &takes);
            let numbers: Vec<u64> = log.iter().map(|one| one.number).collect();
            prop_assert_eq!(numbers, (1..=rows.len() as u64).collect::<Vec<_>>(), "{:?}", pace);
            prop_assert!(log.is_sorted_by_key(|one| one.at), "{:?}", pace);
        }
    }

    #[test]
    fn a_replay_by_load_never_has_more_outstanding_than_the_trace(
        rows in rows(), takes in takes(), batch in 0u64..100,
    ) {
        let rules = Rules { batch: Duration::from_micros(batch), ..rules(ReplayPace::Load) };
        let log = replay(rules, &rows, &takes);
        for (one, required) in log.iter().zip(required(&rows)) {
            prop_assert!(one.found <= required, "{one:?}, {required} in the trace");
        }
    }

    #[test]
    fn as_fast_as_can_be_still_waits_for_what_was_complete_in_the_trace(rows in rows(), takes in takes()) {
        let (trace, log) = (trace(&rows), replay(rules(ReplayPace::AsFast), &rows, &takes));
        let mut latest = Time::ZERO;
        for i in 0..rows.len() {
            let before = (0..i).filter(|&j| trace[j].completed.unwrap() <= trace[i].arrival);
            let done = before.map(|j| log[j].done).max().unwrap_or(Time::ZERO);
            // The request waits for these requests and for its turn, and for nothing else.
            latest = latest.max(done);
            prop_assert_eq!(log[i].at, latest, "request {}", i + 1);
        }
    }

    #[test]
    fn timing_is_the_traces_whatever_the_device(rows in rows(), takes in takes()) {
        let times: Vec<Time> = replay(rules(ReplayPace::Timing), &rows, &takes).iter().map(|one| one.at).collect();
        prop_assert_eq!(times, trace(&rows).iter().map(|one| one.arrival).collect::<Vec<_>>());
    }

    #[test]
    fn a_closed_replay_keeps_its_number_outstanding(rows in rows(), takes in takes()) {
        for (index, one) in replay(rules(ReplayPace::Closed), &rows, &takes).iter().enumerate() {
            prop_assert_eq!(one.found, index.min(2) as u64);
        }
    }

    #[test]
    fn what_is_batched_goes_with_the_one_before_it(rows in rows(), takes in takes(), batch in 1u64..200) {
        let rules = Rules { batch: Duration::from_micros(batch), ..rules(ReplayPace::Timing) };
        let log = replay(rules, &rows, &takes);
        let trace = trace(&rows);
        for i in 0..rows.len() {
            let together = i > 0 && rows[i].0 < batch;
            let expected = if together { log[i - 1].at } else { trace[i].arrival };
            prop_assert_eq!(log[i].at, expected.max(log[i.saturating_sub(1)].at));
        }
    }
}

/// The cases of section 6.6.2, one by one.
#[test]
fn a_replay_by_load_follows_the_published_rules() {
    let load = |rows: &[(u64, u64)], takes: &[u64]| -> Vec<Time> {
        replay(rules(ReplayPace::Load), rows, takes)
            .iter()
            .map(|one| one.at)
            .collect()
    };
    // More outstanding requests than in the trace: the request waits until the numbers are equal,
    // and is issued at once.
    assert_eq!(
        load(&[(0, 10), (100, 10), (100, 10)], &[700]),
        [us(0), us(700), us(1400)]
    );
    // Equal numbers and no known response time: the trace's gap after the previous request.
    assert_eq!(
        load(&[(0, 500), (100, 500), (100, 500)], &[5000]),
        [us(0), us(100), us(200)]
    );
    // Equal numbers and responses faster than the gap: at once. Request 2 has completed at 150 µs
    // while 1 is outstanding, as in the trace; 4 would have been due at 1120 µs.
    let quick = [(0, 2000), (100, 20), (20, 900), (900, 5)];
    assert_eq!(
        load(&quick, &[1500, 50, 60, 10]),
        [us(0), us(100), us(150), us(210)]
    );
    // Fewer than in the trace: at once. Request 1 has completed when 2 is issued at its time; 3
    // finds 2 alone.
    assert_eq!(
        load(&[(0, 900), (100, 900), (300, 900)], &[10, 500]),
        [us(0), us(100), us(100)]
    );
}

#[test]
fn a_request_without_a_completion_is_refused_where_it_is_needed() {
    let unknown = Traced {
        arrival: us(0),
        completed: None,
    };
    for pace in [ReplayPace::Timing, ReplayPace::AsFast, ReplayPace::Closed] {
        assert_eq!(Dispatcher::new(rules(pace)).offer(us(0), unknown), Ok(()));
    }
    let mut dispatcher = Dispatcher::new(rules(ReplayPace::Load));
    dispatcher
        .offer(
            us(0),
            Traced {
                arrival: us(0),
                completed: Some(us(9)),
            },
        )
        .unwrap();
    dispatcher.issued();
    let error = dispatcher.offer(us(1), unknown).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("request 2 has no known completion"),
        "{error}"
    );
}
