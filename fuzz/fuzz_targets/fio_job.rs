//! Parses a job file of arbitrary bytes. An accepted job must issue I/O within the volume.
#![no_main]

use fullstroke_contract::{Completion, Effect, Effects, Node, NodeContext, Port, RequestId};
use fullstroke_fio::{FioSource, JobSet};
use fullstroke_units::{Duration, Sectors, Seed, Time};
use libfuzzer_sys::fuzz_target;
use std::collections::{BTreeMap, VecDeque};

/// 1 GiB.
const VOLUME: Sectors = Sectors(1 << 21);
/// Limit of clones. More would only slow the target.
const WORKERS_MAX: usize = 16;

fuzz_target!(|text: &[u8]| {
    let environment: BTreeMap<String, String> = [("SIZE".to_owned(), "64m".to_owned())].into();
    let Ok(set) = JobSet::parse("a.fio", &String::from_utf8_lossy(text), &environment) else {
        return;
    };
    if set.workers() > WORKERS_MAX {
        return;
    }
    let Ok(mut source) = FioSource::new(&set, VOLUME, Seed(1), Some(1000)) else {
        return;
    };
    // Each request completes after a millisecond.
    let mut flights: VecDeque<(Time, RequestId)> = VecDeque::new();
    let mut out = Effects::new();
    loop {
        let landing = flights.front().map_or(Time::NEVER, |flight| flight.0);
        let now = landing.min(source.next_wake().at());
        if now == Time::NEVER {
            break;
        }
        let context = &mut NodeContext::alone(&mut out);
        if let Some((finished, id)) = flights.pop_front_if(|flight| flight.0 == now) {
            let completion = Completion {
                id,
                finished,
                ..Completion::default()
            };
            source.completed(now, Port::FIRST, completion, context);
        } else {
            source.wake(now, context);
        }
        for effect in out.drain() {
            if let Effect::Issue { request, .. } = effect {
                assert!(request.extent.within(VOLUME));
                flights.push_back((now + Duration::from_millis(1), request.id));
            }
        }
    }
});
