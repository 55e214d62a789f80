//! The node above a device with times from the test.

use fullstroke_contract::registry::Keys;
use fullstroke_contract::{
    Completion, Counters, Effects, Node, NodeContext, Notice, Port, Request, RequestStatus, Signal,
};
use fullstroke_files::FileSystemSite;
use fullstroke_memory::{MemoryKeys, PageCache, QueueLimits};
use fullstroke_programs::Program;
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors, Seed, Time};
use fullstroke_vfs::{Equipment, FilesConfig, Started, Vfs};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

pub const CAPACITY: Sectors = Sectors((128 << 20) / SECTOR_BYTES);

/// Returns the site of file systems in these tests.
pub fn site(seed: u64) -> FileSystemSite {
    FileSystemSite {
        capacity: CAPACITY,
        seed: Seed(seed),
        stripe: None,
        tracks: None,
    }
}

/// Returns a node with a program. The program begins 3 ms after the host.
pub fn host(files: Value, pages: u64, seed: u64, program: Box<dyn Program>) -> Vfs {
    host_on(files, pages, seed, program, None)
}

/// Same as `host`, with read-ahead windows up to the ends of tracks.
pub fn host_on(
    files: Value,
    pages: u64,
    seed: u64,
    program: Box<dyn Program>,
    windows: Option<Arc<Boundaries>>,
) -> Vfs {
    host_at(files, pages, program, windows, site(seed))
}

/// Same as `host_on`, at this site.
pub fn host_at(
    files: Value,
    pages: u64,
    program: Box<dyn Program>,
    windows: Option<Arc<Boundaries>>,
    site: FileSystemSite,
) -> Vfs {
    let keys: Keys = files.as_object().cloned().unwrap();
    let files = FilesConfig::read(&keys).unwrap();
    let cache =
        PageCache::new(&MemoryKeys::of(Bytes(pages * 4096)), QueueLimits::default()).unwrap();
    let started = Started {
        name: "chance".into(),
        file: None,
        program,
        start: Duration::from_millis(3),
        background: false,
        workload: 0,
        first_process: 0,
    };
    let equipment = Equipment {
        files: &files,
        cache,
        site,
        windows,
        aged: true,
        counted_from: Time::ZERO,
    };
    Vfs::new(vec![started], equipment).unwrap()
}

/// A request, with the times of its issue and its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedRequest {
    pub request: Request,
    pub issued: Time,
    pub ended: Time,
}

/// Runs the node to its end. `serve` returns the duration and the status of each request, and `say`
/// returns the signal of the device after each event. Returns the counters, and the requests in the
/// order of issue.
pub fn run(
    vfs: Vfs,
    serve: impl FnMut(&Request) -> (Duration, RequestStatus),
    say: impl FnMut() -> Option<Signal>,
) -> (Counters, Vec<CompletedRequest>) {
    run_within(CAPACITY, vfs, serve, say)
}

/// Same as `run`, on a device of this capacity.
pub fn run_within(
    capacity: Sectors,
    mut vfs: Vfs,
    mut serve: impl FnMut(&Request) -> (Duration, RequestStatus),
    mut say: impl FnMut() -> Option<Signal>,
) -> (Counters, Vec<CompletedRequest>) {
    let (mut now, mut out) = (Time::ZERO, Effects::new());
    let mut flying: BTreeMap<(Time, usize), RequestStatus> = BTreeMap::new();
    let (mut all, mut events): (Vec<CompletedRequest>, u64) = (Vec::new(), 0);
    loop {
        events += 1;
        assert!(events < 2_000_000, "it goes on for ever");
        let wake = vfs.next_wake();
        let landing = flying.keys().next().map_or(Time::NEVER, |&(at, _)| at);
        if landing == Time::NEVER && !wake.is_work() {
            break;
        }
        now = now.max(wake.at().min(landing));
        if landing <= wake.at() {
            let ((_, index), status) = flying.pop_first().unwrap();
            let CompletedRequest {
                request, issued, ..
            } = all[index];
            let completion = Completion {
                id: request.id,
                submitted: issued,
                finished: now,
                status,
                ..Completion::default()
            };
            vfs.completed(
                now,
                Port::FIRST,
                completion,
                &mut NodeContext::alone(&mut out),
            );
        } else {
            vfs.wake(now, &mut NodeContext::alone(&mut out));
        }
        if let Some(signal) = say() {
            vfs.noticed(
                now,
                Port::FIRST,
                Notice::new(signal),
                &mut NodeContext::alone(&mut out),
            );
        }
        if let Some(error) = out.take_stop() {
            panic!("{error}");
        }
        for request in out.requests() {
            assert!(request.extent.within(capacity), "{request:?}");
            let (took, status) = serve(&request);
            flying.insert((now + took, all.len()), status);
            all.push(CompletedRequest {
                request,
                issued: now,
                ended: now + took,
            });
        }
    }
    let mut counters = Counters::default();
    vfs.count(now, &mut counters);
    (counters, all)
}
