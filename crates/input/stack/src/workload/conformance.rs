//! Tests for every kind of workload: the example is valid, wrong keys and files are refused by
//! name, a seed repeats the requests, and all requests lie on the volume.

use super::{REGISTRY, Workload, WorkloadError, WorkloadKind, read_workload, worked_example};
use crate::folder::Folder;
use fullstroke_contract::registry::{Keys, PolicyEntry};
use fullstroke_contract::{Completion, Effects, NodeContext, Port, Request, Source};
use fullstroke_trace::FileSource;
use fullstroke_units::{Duration, Sectors, Seed, Time};
use std::collections::VecDeque;
use std::path::Path;

const CAPACITY: Sectors = Sectors(1 << 30);

fn every() -> impl Iterator<Item = &'static PolicyEntry<WorkloadKind>> {
    REGISTRY.iter().chain(&[worked_example::ENTRY])
}

fn example(kind: &PolicyEntry<WorkloadKind>) -> Keys {
    toml::from_str(kind.build.example).unwrap()
}

fn read(kind: &PolicyEntry<WorkloadKind>, keys: &Keys) -> Result<Box<dyn Workload>, WorkloadError> {
    read_workload(
        kind,
        keys,
        &Folder::of(
            Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../stack.toml")),
            &FileSource::default(),
        ),
    )
}

/// Returns the first requests and their times, for a device that takes a millisecond per request.
fn requests(mut source: Box<dyn Source>, count: usize) -> Vec<(Time, Request)> {
    let (mut issued, mut flying, mut out) = (Vec::new(), VecDeque::new(), Effects::new());
    while issued.len() < count {
        let due = source.next_wake().at();
        let landing = flying.front().map_or(Time::NEVER, |&(at, _)| at);
        let now = due.min(landing);
        if now == Time::NEVER {
            break;
        }
        if due <= landing {
            source.wake(now, &mut NodeContext::alone(&mut out));
        } else if let Some((_, id)) = flying.pop_front() {
            let completion = Completion {
                id,
                submitted: now,
                finished: now,
                ..Completion::default()
            };
            source.completed(
                now,
                Port::FIRST,
                completion,
                &mut NodeContext::alone(&mut out),
            );
        }
        for request in out.requests() {
            flying.push_back((now + Duration::from_millis(1), request.id));
            issued.push((now, request));
        }
    }
    issued
}

#[test]
fn a_seed_repeats_the_requests_and_all_lie_on_the_volume() {
    for kind in every() {
        let workload = read(kind, &example(kind)).unwrap();
        if workload.program(Seed(3)).unwrap().is_some() {
            // The conformance tests of programs check the same.
            continue;
        }
        let first = || requests(workload.source(CAPACITY, Seed(3)).unwrap(), 500);
        assert!(first() == first() && first().len() >= 100, "{}", kind.name);
        for (_, request) in first() {
            assert!(
                request.extent.end().0 <= CAPACITY.0,
                "{}: {request:?}",
                kind.name
            );
        }
    }
}

#[test]
fn an_unknown_key_is_refused_in_the_keys_and_in_the_tables_within_them() {
    let refused = |kind: &PolicyEntry<WorkloadKind>, keys: &Keys| match read(kind, keys) {
        Err(WorkloadError::Key(error)) => error.to_string(),
        _ => panic!("{}: {keys:?}", kind.name),
    };
    for kind in every() {
        let mut keys = example(kind);
        keys.insert("unheard_of".into(), 1.into());
        assert!(
            refused(kind, &keys).starts_with("`unheard_of`: unknown key"),
            "{}",
            kind.name
        );
        for (table, _) in kind.build.tables {
            for (value, at) in [
                (
                    serde_json::json!({ "unheard_of": 1 }),
                    format!("`{table}.unheard_of`: unknown key"),
                ),
                (
                    serde_json::json!([{ "unheard_of": 1 }]),
                    format!("`{table}[0].unheard_of`: unknown key"),
                ),
            ] {
                let mut keys = example(kind);
                keys.insert((*table).into(), value);
                assert!(refused(kind, &keys).starts_with(&at), "{}", kind.name);
            }
        }
    }
}

#[test]
fn what_a_workload_is_identified_by_does_not_depend_on_where_its_file_lies() {
    for kind in every().filter(|kind| example(kind).contains_key("path")) {
        let identity = |path: &str| {
            let mut keys = example(kind);
            let path = Path::new(path).join(keys["path"].as_str().unwrap());
            keys.insert("path".into(), path.display().to_string().into());
            let workload = read(kind, &keys);
            let mut keys = keys.into();
            workload.unwrap().identify(&mut keys);
            keys
        };
        assert_eq!(identity("."), identity("crates/.."), "{}", kind.name);
    }
}
