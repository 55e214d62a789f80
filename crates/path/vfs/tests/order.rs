//! Order of writes to the device: data, log, barrier, metadata in place.

mod common;

use common::{CAPACITY, CompletedRequest, host, host_at, host_on, run, run_within, site};
use fullstroke_contract::{Counters, Extent, Operation, Request, RequestStatus, Signal};
use fullstroke_files::{Caller, FileSystem, FileSystemSite, MetaAccesses, SyncPlan};
use fullstroke_programs::{
    Call, CallError, Fd, InitialFile, OpenFlags, Program, ProgramAction, ProgramTurn,
};
use fullstroke_tracks::Builder;
use fullstroke_units::{Bytes, Duration, Lbn, Sectors, Time};
use fullstroke_vfs::Vfs;
use serde_json::{Value, json};
use std::ops::Range;
use std::sync::Arc;

/// A program with a list of calls for each process.
struct Calls {
    each: Vec<Vec<Call<'static>>>,
    at: Vec<usize>,
    /// Results of calls, by process.
    given: std::sync::Arc<std::sync::Mutex<Vec<Result<u64, CallError>>>>,
}

impl Calls {
    fn new(each: Vec<Vec<Call<'static>>>) -> Calls {
        Calls {
            at: vec![0; each.len()],
            each,
            given: Default::default(),
        }
    }
}

impl Program for Calls {
    fn laid_out(&self) -> Vec<InitialFile> {
        let file = |path: &str, bytes| InitialFile {
            path: path.into(),
            bytes,
            unwritten: false,
        };
        vec![
            file("there/deep/one", Some(Bytes(100_000))),
            file("there/two", Some(Bytes(5000))),
            file("there/two", Some(Bytes(50_000))),
            file("empty", None),
        ]
    }

    fn processes(&self) -> u32 {
        self.each.len() as u32
    }

    fn next(&mut self, turn: ProgramTurn<'_>) -> ProgramAction<'_> {
        if let Some(answer) = turn.answer {
            self.given.lock().unwrap().push(answer.result.clone());
        }
        let process = turn.process as usize;
        self.at[process] += 1;
        match self.each[process].get(self.at[process] - 1) {
            Some(call) => ProgramAction::Call(*call),
            None => ProgramAction::End,
        }
    }
}

/// The same program on a device as the only file.
struct OnDevice(Calls);

impl Program for OnDevice {
    fn laid_out(&self) -> Vec<InitialFile> {
        vec![InitialFile {
            path: "device".into(),
            bytes: Some(Bytes(4 << 20)),
            unwritten: false,
        }]
    }
    fn processes(&self) -> u32 {
        self.0.processes()
    }
    fn next(&mut self, turn: ProgramTurn<'_>) -> ProgramAction<'_> {
        self.0.next(turn)
    }
}

const FD: Fd = Fd(3);

fn create(path: &'static str, bytes: u64) -> [Call<'static>; 2] {
    [
        Call::Open {
            path,
            fd: FD,
            how: OpenFlags::CREATE,
        },
        Call::Write {
            fd: FD,
            at: None,
            bytes,
        },
    ]
}

/// Runs on a device without signals.
fn quiet(
    vfs: Vfs,
    serve: impl FnMut(&Request) -> (Duration, RequestStatus),
) -> (Counters, Vec<CompletedRequest>) {
    run(vfs, serve, || None)
}

/// Runs on a device with one millisecond for each request.
fn on(files: Value, each: Vec<Vec<Call<'static>>>) -> (Counters, Vec<CompletedRequest>) {
    let vfs = host(files, 1000, 1, Box::new(Calls::new(each)));
    quiet(vfs, |_| (Duration::from_millis(1), RequestStatus::Done))
}

/// Returns the metadata pages after the creation of `path`, according to the file system itself.
fn metadata(kind: &str, path: &str) -> Vec<Range<u64>> {
    let keys = json!({}).as_object().cloned().unwrap();
    let mut fs: Box<dyn FileSystem> = fullstroke_files::make(kind, &keys, &site(1)).unwrap();
    let mut touches = MetaAccesses::new();
    let root = fs.root();
    let file = fs
        .create(Caller::default(), root, path, &mut touches)
        .unwrap();
    fs.write(Caller::default(), file, Bytes(0), Bytes(9000), &mut touches)
        .unwrap();
    let mut plan = SyncPlan::default();
    fs.fsync(Caller::default(), file, &mut plan, &mut touches)
        .unwrap();
    fs.metadata()
}

fn writes_to<'a>(
    all: &'a [CompletedRequest],
    pages: &'a [Range<u64>],
) -> impl Iterator<Item = &'a CompletedRequest> {
    let within = |served: &CompletedRequest| {
        pages
            .iter()
            .any(|range| range.contains(&(served.request.extent.start.0 / 8)))
    };
    all.iter()
        .filter(move |served| served.request.operation == Operation::Write && within(served))
}

/// True for a commit record, or a log write of XFS.
fn is_commit(served: &CompletedRequest) -> bool {
    served.request.hints.force_unit_access
}

#[test]
fn an_fsync_with_a_journal_writes_data_then_the_log_then_its_end_behind_a_flush() {
    let calls = [&create("a", 9000)[..], &[Call::Fsync { fd: FD }]].concat();
    let (_, all) = on(json!({ "kind": "ext4" }), vec![calls]);
    let commit = *all.iter().find(|served| is_commit(served)).unwrap();
    let flush = *all
        .iter()
        .find(|served| served.request.operation == Operation::Flush)
        .unwrap();
    assert!(flush.ended <= commit.issued);
    let writes = || {
        all.iter()
            .filter(|served| served.request.operation == Operation::Write && !is_commit(served))
    };
    // First the pages of the file in one request, then the log.
    let (data, log) = (writes().next().unwrap(), writes().nth(1).unwrap());
    assert_eq!(data.request.extent.sectors.0, 24);
    assert!(data.ended <= log.issued && log.ended <= flush.issued);
    assert_eq!(
        commit.request.extent.start,
        log.request.extent.end(),
        "the log goes on"
    );
}

#[test]
fn metadata_reach_their_place_only_behind_the_transaction_that_they_are_in() {
    for kind in ["ext4", "xfs"] {
        let calls = [
            &create("a", 9000)[..],
            &[Call::Fsync { fd: FD }, Call::Sync],
        ]
        .concat();
        let (_, all) = on(json!({ "kind": kind }), vec![calls]);
        let first = *all.iter().find(|served| is_commit(served)).unwrap();
        let metadata = metadata(kind, "a");
        for served in writes_to(&all, &metadata).filter(|served| !is_commit(served)) {
            let of_log = served.request.extent.end() == first.request.extent.start;
            assert!(of_log || served.issued >= first.ended, "{kind}: {served:?}");
        }
    }
}

#[test]
fn a_sync_writes_metadata_in_place_if_they_are_in_the_page_cache() {
    for (kind, in_place) in [("ext2", true), ("ext4", true), ("xfs", false)] {
        let calls = [&create("a", 9000)[..], &[Call::Sync]].concat();
        let (_, all) = on(json!({ "kind": kind }), vec![calls]);
        let metadata = metadata(kind, "a");
        let logged = all.iter().find(|served| is_commit(served));
        let ended = logged.map_or(Time::ZERO, |commit| commit.ended);
        let found = writes_to(&all, &metadata)
            .filter(|served| served.issued >= ended)
            .count();
        assert_eq!(found > 0, in_place, "{kind}: {found}");
    }
}

#[test]
fn a_long_checkpoint_of_xfs_begins_and_ends_with_a_flush() {
    let directory = |number: usize| Call::MakeDirectory {
        path: Box::leak(format!("d{number}").into_boxed_str()),
    };
    for (directories, flushes) in [(3, 1), (2000, 2)] {
        let mut calls: Vec<Call<'static>> = (0..directories).map(directory).collect();
        calls.push(Call::Sync);
        // Today's XFS needs 300 MiB.
        let capacity = Sectors(1 << 20);
        let site = FileSystemSite {
            capacity,
            ..site(1)
        };
        let files = json!({ "kind": "xfs", "kernel": "today" });
        let vfs = host_at(files, 1000, Box::new(Calls::new(vec![calls])), None, site);
        let serve = |_: &Request| (Duration::from_millis(1), RequestStatus::Done);
        let (_, all) = run_within(capacity, vfs, serve, || None);
        let flushed = all
            .iter()
            .filter(|served| served.request.operation == Operation::Flush)
            .count();
        assert_eq!(flushed, flushes, "{directories} directories");
    }
}

#[test]
fn xfs_of_today_reads_inodes_in_clusters_of_16_kib() {
    for (kernel, sectors) in [("2.6.24", 8), ("today", 32)] {
        let keys = json!({ "kernel": kernel }).as_object().cloned().unwrap();
        let site = FileSystemSite {
            capacity: Sectors(1 << 20),
            ..site(1)
        };
        let mut fs = fullstroke_files::make("xfs", &keys, &site).unwrap();
        let (root, mut touches) = (fs.root(), MetaAccesses::new());
        fs.create(Caller::default(), root, "a", &mut touches)
            .unwrap();
        let units: Vec<u64> = touches
            .list()
            .iter()
            .map(|touch| {
                let (page, unit) = (touch.page(), fs.read_unit(touch.page()));
                assert!(unit.contains(&page), "{unit:?} is read for {page}");
                8 * (unit.end - unit.start)
            })
            .collect();
        assert_eq!(units.iter().max(), Some(&sectors), "{kernel}: {units:?}");
        assert!(units.contains(&8), "{kernel}: headers are read alone");
    }
}

/// Runs with a PULL for these addresses after each event.
fn pulling(files: Value, calls: Vec<Call<'static>>, extent: Extent) -> Vec<CompletedRequest> {
    let vfs = host(files, 1000, 1, Box::new(Calls::new(vec![calls])));
    let pull = Signal::Pull {
        extent: Some(extent),
        sectors: extent.sectors,
    };
    run(
        vfs,
        |_| (Duration::from_millis(1), RequestStatus::Done),
        || Some(pull),
    )
    .1
}

#[test]
fn a_write_for_a_pull_carries_the_hint_and_no_other_write_does() {
    let calls = create("a", 400_000).to_vec();
    let hints = |all: &[CompletedRequest]| -> Vec<bool> {
        all.iter()
            .filter(|served| served.request.operation == Operation::Write)
            .map(|served| served.request.hints.pulled)
            .collect()
    };
    // Pages of ext4 get their places late, so only a PULL without addresses writes them.
    for (kind, extent) in [
        ("ext2", Some(Extent::new(0, CAPACITY.0))),
        ("ext2", None),
        ("ext4", None),
    ] {
        let vfs = host(
            json!({ "kind": kind }),
            1000,
            1,
            Box::new(Calls::new(vec![calls.clone()])),
        );
        let pull = Signal::Pull {
            extent,
            sectors: CAPACITY,
        };
        let serve = |_: &Request| (Duration::from_millis(1), RequestStatus::Done);
        let pulled = hints(&run(vfs, serve, || Some(pull)).1);
        assert!(pulled.contains(&true), "{kind}, {extent:?}: {pulled:?}");
        let synced = [&calls[..], &[Call::Sync]].concat();
        let (_, all) = on(json!({ "kind": kind }), vec![synced]);
        let usual = hints(&all);
        assert!(
            !usual.is_empty() && !usual.contains(&true),
            "{kind}: {usual:?}"
        );
    }
}

#[test]
fn metadata_that_the_journal_holds_back_are_not_read() {
    // A new directory has a page that was never on the device. ext4 keeps this page in its
    // journal until the page is in the log.
    let made = vec![Call::MakeDirectory { path: "new" }];
    let looked = [
        &made[..],
        &[Call::Open {
            path: "new/none",
            fd: FD,
            how: OpenFlags::READ,
        }],
    ]
    .concat();
    for kind in ["ext4", "xfs"] {
        let reads = |calls: &[Call<'static>]| -> Vec<Extent> {
            let (_, all) = on(json!({ "kind": kind }), vec![calls.to_vec()]);
            all.iter()
                .filter(|served| served.request.operation == Operation::Read)
                .map(|served| served.request.extent)
                .collect()
        };
        let (before, after) = (reads(&made), reads(&looked));
        assert!(!before.is_empty(), "{kind}: the root is read");
        assert_eq!(before, after, "{kind}: the new directory is in memory");
    }
}

#[test]
fn a_pull_of_everything_leaves_the_order_of_log_and_metadata_as_it_is() {
    for kind in ["ext4", "xfs"] {
        let calls = [
            &create("a", 9000)[..],
            &[Call::Fsync { fd: FD }, Call::Sync],
        ]
        .concat();
        let all = pulling(
            json!({ "kind": kind }),
            calls,
            Extent {
                start: Lbn(0),
                sectors: CAPACITY,
            },
        );
        let first = *all.iter().find(|served| is_commit(served)).unwrap();
        for served in writes_to(&all, &metadata(kind, "a")).filter(|served| !is_commit(served)) {
            let of_log = served.request.extent.end() == first.request.extent.start;
            assert!(of_log || served.issued >= first.ended, "{kind}: {served:?}");
        }
    }
}

#[test]
fn a_pull_of_addresses_writes_the_dirty_pages_that_belong_there_and_no_others() {
    const OTHER: Fd = Fd(4);
    let calls = |sync: &[Call<'static>]| {
        let open = Call::Open {
            path: "there/deep/one",
            fd: OTHER,
            how: OpenFlags::READ,
        };
        let reads = (0..20).map(|at| Call::Read {
            fd: OTHER,
            at: Some(at * 4096),
            bytes: 4096,
        });
        let made = [
            &create("a", 9000)[..],
            sync,
            &create("b", 9000)[..],
            sync,
            &[open],
        ]
        .concat();
        made.into_iter().chain(reads).collect::<Vec<_>>()
    };
    // The places of the files: the writes of two fsyncs.
    let (_, all) = on(
        json!({ "kind": "ext2" }),
        vec![calls(&[Call::Fsync { fd: FD }])],
    );
    let of_files: Vec<Extent> = all
        .iter()
        .filter(|served| {
            served.request.operation == Operation::Write && served.request.extent.sectors.0 > 8
        })
        .map(|served| served.request.extent)
        .collect();
    assert_eq!(of_files.len(), 2, "{of_files:?}");
    for (wanted, part) in [
        (of_files[0], 24),
        (of_files[1], 24),
        (Extent::new(of_files[0].start.0 + 9, 2), 8),
    ] {
        let writes: Vec<Extent> = pulling(json!({ "kind": "ext2" }), calls(&[]), wanted)
            .iter()
            .filter(|served| served.request.operation == Operation::Write)
            .map(|served| served.request.extent)
            .collect();
        assert!(
            writes
                .iter()
                .all(|extent| extent.start < wanted.end() && wanted.start < extent.end())
        );
        assert_eq!(
            writes.iter().map(|extent| extent.sectors.0).sum::<u64>(),
            part,
            "{writes:?}"
        );
    }
}

#[test]
fn windows_end_where_tracks_end_and_a_page_of_two_tracks_goes_with_the_second() {
    // A track is 25 pages and three sectors.
    let mut tracks = Builder::default();
    tracks.push_run(Sectors(203), CAPACITY.0 / 203).unwrap();
    tracks.push(Sectors(CAPACITY.0 % 203)).unwrap();
    let tracks = Arc::new(tracks.finish("a test").unwrap());
    let open = Call::Open {
        path: "device",
        fd: FD,
        how: OpenFlags::READ,
    };
    let reads = (0..1000).map(|at| Call::Read {
        fd: FD,
        at: Some(at * 4096),
        bytes: 4096,
    });
    let program = OnDevice(Calls::new(vec![
        std::iter::once(open).chain(reads).collect(),
    ]));
    let vfs = host_on(
        json!({ "kind": "raw" }),
        2000,
        1,
        Box::new(program),
        Some(tracks.clone()),
    );
    let (_, all) = quiet(vfs, |_| (Duration::from_millis(1), RequestStatus::Done));
    for CompletedRequest { request, .. } in &all {
        let behind = Lbn(request.extent.start.0 + 8);
        let rest = Extent {
            start: behind,
            sectors: request.extent.end().since(behind),
        };
        assert!(
            rest.sectors == Sectors(0) || !tracks.straddles(rest),
            "{request:?}"
        );
    }
    let alone = all.iter().filter(|served| {
        tracks.straddles(served.request.extent) && served.request.extent.sectors.0 == 8
    });
    // A window may end there because of its own length. In an earlier fault, each track ended with
    // such a page.
    assert!(
        alone.count() < 4,
        "a page of two tracks is no window of its own"
    );
}

#[test]
fn without_barriers_nothing_is_flushed_or_forced() {
    for kind in ["ext2", "ext4", "xfs"] {
        let calls = || [&create("a", 9000)[..], &[Call::Fsync { fd: FD }]].concat();
        let (_, all) = on(json!({ "kind": kind, "barrier": false }), vec![calls()]);
        assert!(
            all.iter()
                .all(|served| served.request.operation != Operation::Flush && !is_commit(served))
        );
        let (_, all) = on(json!({ "kind": kind }), vec![calls()]);
        assert!(
            all.iter()
                .any(|served| served.request.operation == Operation::Flush),
            "{kind}"
        );
    }
}

#[test]
fn those_who_fsync_at_once_share_transactions() {
    let calls = |path| [&create(path, 4000)[..], &[Call::Fsync { fd: FD }]].concat();
    let paths = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let (counters, all) = on(json!({ "kind": "ext4" }), paths.map(calls).to_vec());
    let commits = all.iter().filter(|served| is_commit(served)).count();
    assert!((1..=3).contains(&commits), "{commits}");
    let fsync = counters.hosts[0]
        .operations
        .iter()
        .find(|operation| operation.kind == "fsync")
        .unwrap();
    assert_eq!(fsync.calls, 8);
    // The log is charged to the calls with changes, not to the call that caused the write.
    let create = counters.hosts[0]
        .operations
        .iter()
        .find(|operation| operation.kind == "create")
        .unwrap();
    assert!(create.device_writes > 0.0);
}

/// Returns the requests of four processes that append 50 pages each, with an fsync after each page.
fn appends_with_fsync(files: Value) -> Vec<CompletedRequest> {
    let calls = |path| {
        let write = Call::Write {
            fd: FD,
            at: None,
            bytes: 4096,
        };
        let again = std::iter::repeat_n([write, Call::Fsync { fd: FD }], 50);
        let open = create(path, 4096)[0];
        std::iter::once(open).chain(again.flatten()).collect()
    };
    on(files, ["a", "b", "c", "d"].map(calls).to_vec()).1
}

/// Linux 6.18 on a Deskstar 34GXP, the same load with 100 pages each: 202 commits on ext4 for 400
/// fsyncs, and 220 log writes and 179 further flushes on XFS.
#[test]
fn an_fsync_waits_for_its_own_transaction_and_does_not_write_that_of_others() {
    let count = |all: &[CompletedRequest], which: fn(&CompletedRequest) -> bool| {
        all.iter().filter(|served| which(served)).count()
    };
    let flushes =
        |all: &[CompletedRequest]| count(all, |one| one.request.operation == Operation::Flush);
    let ext4 = appends_with_fsync(json!({ "kind": "ext4" }));
    let commits = count(&ext4, is_commit);
    assert!(
        (95..=125).contains(&commits),
        "{commits} commits of 200 fsyncs"
    );
    // Each commit has one flush before its record. No fsync adds a flush of its own.
    assert_eq!(flushes(&ext4), commits);
    let xfs = appends_with_fsync(json!({ "kind": "xfs" }));
    let log_writes = count(&xfs, is_commit);
    assert!((95..=125).contains(&log_writes), "{log_writes} log writes");
    // Each fsync flushes the device: by its own log write, or after that of another process.
    assert!(flushes(&xfs) >= 195, "{}", flushes(&xfs));
}

/// Runs `calls` on ext4 or today's XFS, on a device that needs 1 to 7 ms for a request, by address.
fn unevenly(kind: &str, keys: &Value, each: Vec<Vec<Call<'static>>>) -> Vec<CompletedRequest> {
    let capacity = Sectors(1 << 20);
    let site = FileSystemSite {
        capacity,
        ..site(1)
    };
    let mut files = json!({ "kind": kind });
    if kind == "xfs" {
        files["kernel"] = "today".into();
    }
    for (key, value) in keys.as_object().unwrap() {
        files[key] = value.clone();
    }
    let vfs = host_at(files, 1000, Box::new(Calls::new(each)), None, site);
    let serve = |request: &Request| {
        let place = request.extent.start.0 / 8 % 7;
        (Duration::from_millis(1 + place), RequestStatus::Done)
    };
    run_within(capacity, vfs, serve, || None).1
}

/// Returns the log writes (of ext4: of commit records), and all flushes.
fn logged(all: &[CompletedRequest]) -> (usize, usize) {
    let flushes = all
        .iter()
        .filter(|one| one.request.operation == Operation::Flush);
    (
        all.iter().filter(|one| is_commit(one)).count(),
        flushes.count(),
    )
}

/// Returns calls that write `pages` pages in turn and make each durable.
fn durable_pages(path: &'static str, pages: u64, durable: Call<'static>) -> Vec<Call<'static>> {
    let mut calls = create(path, 4096)[..1].to_vec();
    for page in 0..pages {
        let at = Some(page * 4096);
        let bytes = 4096;
        calls.extend([Call::Write { fd: FD, at, bytes }, durable]);
    }
    calls
}

/// Linux 6.18 on a Deskstar 34GXP: 202 commits for 400 fsyncs of 4 processes with own files. The
/// end of each data write is a change of its own, which is in the next transaction if the log is
/// busy. Without this change all processes share every transaction.
#[test]
fn the_end_of_a_data_write_is_a_change_of_its_own() {
    let fsync = Call::Fsync { fd: FD };
    let each = || {
        ["a", "b", "c", "d"]
            .map(|path| durable_pages(path, 25, fsync))
            .to_vec()
    };
    for kind in ["ext4", "xfs"] {
        let (commits, _) = logged(&unevenly(kind, &json!({}), each()));
        assert!(
            (45..=75).contains(&commits),
            "{kind}: {commits} of 100 fsyncs"
        );
    }
    let shared = unevenly("ext4", &json!({ "dioread_nolock": false }), each());
    let (commits, _) = logged(&shared);
    assert!((25..=30).contains(&commits), "{commits} of 100 fsyncs");
}

/// Linux 6.18: 100 overwritten pages with `fdatasync` or O_DSYNC are 100 writes and 100 flushes on
/// ext4 and on XFS. An appended page needs the log with `fdatasync` too.
#[test]
fn an_fdatasync_of_an_overwrite_writes_no_transaction() {
    let fdatasync = Call::Fdatasync { fd: FD };
    for kind in ["ext4", "xfs"] {
        let (appended, _) = logged(&unevenly(
            kind,
            &json!({}),
            vec![durable_pages("a", 10, fdatasync)],
        ));
        assert_eq!(appended, 10, "{kind}");
        for (durable, log_writes) in [(fdatasync, 10), (Call::Fsync { fd: FD }, 20)] {
            let mut calls = durable_pages("a", 10, fdatasync);
            calls.extend_from_slice(&durable_pages("a", 10, durable)[1..]);
            let found = logged(&unevenly(kind, &json!({}), vec![calls]));
            assert_eq!(found, (log_writes, 20), "{kind}, {durable:?}");
        }
        let synchronous = |data_only| OpenFlags {
            durable: true,
            data_only,
            ..OpenFlags::WRITE
        };
        for (data_only, log_writes) in [(true, 10), (false, 20)] {
            let mut calls = durable_pages("a", 10, fdatasync);
            calls.extend([
                Call::Close { fd: FD },
                Call::Open {
                    path: "a",
                    fd: FD,
                    how: synchronous(data_only),
                },
            ]);
            calls.extend((0..10).map(|page| Call::Write {
                fd: FD,
                at: Some(4096 * page),
                bytes: 4096,
            }));
            let found = logged(&unevenly(kind, &json!({}), vec![calls]));
            assert_eq!(found, (log_writes, 20), "{kind}, {data_only}");
        }
    }
}

/// `relatime_need_update` of `fs/inode.c`: the first read of a file after a change dirties the inode.
#[test]
fn a_read_changes_the_inode_by_the_rule_of_access_times() {
    let read = [
        Call::Read {
            fd: FD,
            at: Some(0),
            bytes: 4096,
        },
        Call::Sync,
    ];
    let mut calls = vec![Call::Open {
        path: "there/two",
        fd: FD,
        how: OpenFlags::READ,
    }];
    (0..3).for_each(|_| calls.extend(read));
    calls.extend([Call::List { path: "there" }, Call::Sync]);
    for kind in ["ext4", "xfs"] {
        for (rule, changes) in [("noatime", 0), ("relatime", 2), ("strictatime", 4)] {
            let keys = json!({ "atime": rule });
            let (commits, _) = logged(&unevenly(kind, &keys, vec![calls.clone()]));
            // The files laid out before the program are in the first transaction.
            let laid = logged(&unevenly(kind, &keys, vec![vec![Call::Sync]])).0;
            assert_eq!(commits, changes.max(laid), "{kind}, {rule}");
        }
    }
}

/// `do_get_write_access` waits while the page is on its way into the log (`BH_Shadow`).
#[test]
fn a_write_waits_while_its_inode_is_written_to_the_log_of_ext4() {
    // Both inodes lie on one page. The second process writes while the first one's transaction is
    // written, which takes long.
    let slow = |request: &Request| {
        let log = request.operation == Operation::Write && request.extent.sectors.0 > 8;
        let time = Duration::from_millis(if log { 50 } else { 1 });
        (time, RequestStatus::Done)
    };
    let first = durable_pages("a", 1, Call::Fsync { fd: FD });
    let mut second = durable_pages("b", 1, Call::Stat { path: "b" });
    second.extend(std::iter::repeat_n(
        Call::Stat {
            path: "there/deep/one",
        },
        5000,
    ));
    second.extend([
        Call::Write {
            fd: FD,
            at: None,
            bytes: 4096,
        },
        Call::Stat { path: "b" },
    ]);
    for (kind, waits) in [("ext4", true), ("xfs", false)] {
        let program = Calls::new(vec![first.clone(), second.clone()]);
        let (counters, _) = quiet(
            host(json!({ "kind": kind }), 1000, 1, Box::new(program)),
            slow,
        );
        let write = counters.hosts[0]
            .operations
            .iter()
            .find(|operation| operation.kind == "write")
            .unwrap();
        let longest = write.times.latency_ms.max;
        assert_eq!(longest > 10.0, waits, "{kind}: {longest} ms");
    }
}

#[test]
fn ext2_writes_the_inode_in_place() {
    let calls = [&create("a", 9000)[..], &[Call::Fsync { fd: FD }]].concat();
    let (_, all) = on(json!({ "kind": "ext2" }), vec![calls]);
    let flush = *all
        .iter()
        .find(|served| served.request.operation == Operation::Flush)
        .unwrap();
    let metadata = metadata("ext2", "a");
    let before = writes_to(&all, &metadata)
        .filter(|served| served.ended <= flush.issued)
        .count();
    assert!(before >= 1, "{all:?}");
}

#[test]
fn a_file_without_a_name_lives_until_it_is_closed() {
    for kind in ["ext2", "ext4", "xfs"] {
        let calls = [
            &create("a", 9000)[..],
            &[
                Call::Remove { path: "a" },
                Call::Stat { path: "a" },
                Call::Write {
                    fd: FD,
                    at: Some(9000),
                    bytes: 1000,
                },
                Call::Read {
                    fd: FD,
                    at: Some(0),
                    bytes: 20_000,
                },
                Call::List { path: "" },
                Call::Close { fd: FD },
                Call::List { path: "" },
            ],
        ];
        let program = Calls::new(vec![calls.concat()]);
        let given = program.given.clone();
        quiet(
            host(json!({ "kind": kind }), 1000, 1, Box::new(program)),
            |_| (Duration::from_millis(1), RequestStatus::Done),
        );
        let given = given.lock().unwrap();
        assert!(given[3].is_err(), "{kind}: {:?}", given[3]);
        assert_eq!((&given[4], &given[5]), (&Ok(1000), &Ok(10_000)), "{kind}");
        let (with, without) = (given[6].clone().unwrap(), given[8].clone().unwrap());
        assert_eq!(with, without + 1, "{kind}");
    }
}

#[test]
fn what_passes_memory_by_is_transferred_as_it_lies() {
    let direct = OpenFlags {
        direct: true,
        ..OpenFlags::CREATE
    };
    let calls = vec![
        Call::Open {
            path: "a",
            fd: FD,
            how: direct,
        },
        Call::Write {
            fd: FD,
            at: None,
            bytes: 32 << 10,
        },
        Call::Read {
            fd: FD,
            at: Some(4096 + 512),
            bytes: 1024,
        },
        Call::Read {
            fd: FD,
            at: Some(4096 + 512),
            bytes: 1024,
        },
    ];
    for kind in ["ext2", "ext4", "xfs"] {
        let (_, all) = on(json!({ "kind": kind }), vec![calls.clone()]);
        let write = all
            .iter()
            .find(|served| served.request.extent.sectors.0 == 64)
            .unwrap();
        let start = write.request.extent.start.0;
        let reads = all.iter().filter(|served| {
            let extent = served.request.extent;
            served.request.operation == Operation::Read
                && (extent.start.0, extent.sectors.0) == (start + 9, 2)
        });
        assert_eq!(reads.count(), 2, "{kind}");
    }
}

#[test]
fn a_descriptor_that_is_not_open_or_not_for_this_is_refused() {
    let program = Calls::new(vec![vec![
        Call::Read {
            fd: Fd(9),
            at: None,
            bytes: 1,
        },
        Call::Open {
            path: "a",
            fd: FD,
            how: OpenFlags::CREATE,
        },
        Call::Close { fd: FD },
        Call::Open {
            path: "a",
            fd: FD,
            how: OpenFlags::READ,
        },
        Call::Write {
            fd: FD,
            at: None,
            bytes: 1,
        },
        Call::Open {
            path: "b",
            fd: FD,
            how: OpenFlags::READ,
        },
        Call::Open {
            path: "a",
            fd: FD,
            how: OpenFlags {
                exclusive: true,
                ..OpenFlags::CREATE
            },
        },
        Call::Open {
            path: "",
            fd: FD,
            how: OpenFlags::WRITE,
        },
    ]]);
    let given = program.given.clone();
    quiet(
        host(json!({ "kind": "ext4" }), 1000, 1, Box::new(program)),
        |_| (Duration::from_millis(1), RequestStatus::Done),
    );
    let failed: Vec<bool> = given.lock().unwrap().iter().map(Result::is_err).collect();
    assert_eq!(failed, [true, false, false, false, true, true, true, true]);
}

/// A failed write-back of a sync is reported once by the next fsync of each opener. A later opener
/// gets no report.
#[test]
fn write_back_that_failed_is_told_by_the_next_fsync_once() {
    for kind in ["ext2", "ext4", "xfs"] {
        let fsync = Call::Fsync { fd: FD };
        let again = [
            Call::Close { fd: FD },
            Call::Open {
                path: "a",
                fd: FD,
                how: OpenFlags::WRITE,
            },
            fsync,
        ];
        let calls = [
            &create("a", 100_000)[..],
            &[Call::Sync, fsync, fsync],
            &again,
        ]
        .concat();
        let program = Calls::new(vec![calls]);
        let given = program.given.clone();
        let mut failed = 0;
        quiet(
            host(json!({ "kind": kind }), 1000, 1, Box::new(program)),
            |request| {
                let data = request.operation == Operation::Write && request.extent.sectors.0 > 64;
                let fails = data && failed == 0;
                failed += u32::from(fails);
                (
                    Duration::from_millis(1),
                    if fails {
                        RequestStatus::Lost
                    } else {
                        RequestStatus::Done
                    },
                )
            },
        );
        assert_eq!(failed, 1, "{kind}");
        let given = given.lock().unwrap();
        assert_eq!(given[3], Err(CallError::Device), "{kind}: {given:?}");
        assert!(given[4..].iter().all(Result::is_ok), "{kind}: {given:?}");
    }
}

#[test]
fn what_is_laid_out_lies_on_the_device_and_not_in_memory() {
    for kind in ["ext2", "ext4", "xfs"] {
        let open = |path| Call::Open {
            path,
            fd: FD,
            how: OpenFlags::READ,
        };
        let read = Call::Read {
            fd: FD,
            at: None,
            bytes: 1 << 20,
        };
        let calls = vec![
            open("there/deep/one"),
            read,
            open("there/two"),
            read,
            Call::List { path: "empty" },
        ];
        let program = Calls::new(vec![calls]);
        let given = program.given.clone();
        let vfs = host(json!({ "kind": kind }), 1000, 1, Box::new(program));
        let (counters, _) = quiet(vfs, |_| (Duration::from_millis(1), RequestStatus::Done));
        let given: Vec<u64> = given
            .lock()
            .unwrap()
            .iter()
            .map(|result| result.clone().unwrap())
            .collect();
        assert_eq!(
            (given[1], given[3], given[4]),
            (100_000, 50_000, 0),
            "{kind}"
        );
        let reads = counters.hosts[0]
            .operations
            .iter()
            .find(|operation| operation.kind == "read")
            .unwrap();
        assert!(
            reads.device_reads >= 2.0 && reads.times.latency_ms.max >= 1.0,
            "{kind}: {reads:?}"
        );
        assert!(
            counters.layers[0]
                .readings
                .iter()
                .all(|one| one.name != "memory_dirty_mb" || one.value == 0.0)
        );
    }
}

/// Process 0 opens a door after its call, and then waits for the other processes.
struct Door {
    open: bool,
    left: u32,
    /// True if process 0 opens the door.
    opens: bool,
}

impl Program for Door {
    fn processes(&self) -> u32 {
        3
    }

    fn next(&mut self, turn: ProgramTurn<'_>) -> ProgramAction<'_> {
        match (turn.process, turn.answer) {
            (0, None) if !self.open && self.opens => ProgramAction::Call(Call::Sync),
            (0, Some(_)) => {
                self.open = true;
                ProgramAction::Wait
            }
            (0, None) if self.left > 0 => ProgramAction::Wait,
            (_, _) if self.open => {
                self.left -= u32::from(turn.process > 0);
                ProgramAction::End
            }
            _ => ProgramAction::Wait,
        }
    }
}

#[test]
fn who_waits_is_asked_again_when_another_has_gone_on_even_if_that_waits_then_too() {
    let door = Door {
        open: false,
        left: 2,
        opens: true,
    };
    let (counters, _) = quiet(
        host(json!({ "kind": "ext2" }), 1000, 1, Box::new(door)),
        |_| (Duration::from_millis(1), RequestStatus::Done),
    );
    assert_eq!(counters.hosts[0].operations[0].calls, 1);
}

#[test]
#[should_panic(expected = "wait for each other")]
fn processes_that_all_wait_end_the_run_with_an_error() {
    let door = Door {
        open: false,
        left: 2,
        opens: false,
    };
    quiet(
        host(json!({ "kind": "ext2" }), 1000, 1, Box::new(door)),
        |_| (Duration::from_millis(1), RequestStatus::Done),
    );
}
