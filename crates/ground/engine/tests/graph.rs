//! Rules of a graph: the order of wake-ups, the paths of completions, notices and orders, the
//! visible gauges, and the end of a run.

use fullstroke_contract::{
    Breakdown, Completion, Counters, Extent, Gauge, LayerOrder, Node, NodeContext, Notice, Object,
    Operation, Port, Refusal, Request, RequestId, RequestStatus, Signal, Source, SourceError,
    TrackExtent, TrackTable, Wake,
};
use fullstroke_engine::{Branch, Engine, Finished, Graph, Machine, Observer};
use fullstroke_units::{Cylinder, Duration, Lbn, Sectors, Time};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

#[path = "../../../../docs/examples/node.rs"]
mod node;
use node::Forward;

/// A log of events with their times in nanoseconds, written by nodes.
type Diary = Arc<Mutex<Vec<(String, u64)>>>;

fn note(diary: &Diary, what: impl Into<String>, now: Time) {
    diary.lock().unwrap().push((what.into(), now.as_nanos()));
}

fn written(diary: &Diary) -> Vec<(String, u64)> {
    std::mem::take(&mut diary.lock().unwrap())
}

/// A link: connects upper port `n` with lower port `n`.
struct Joint;

impl Node for Joint {
    fn submit(&mut self, _: Time, from: Port, request: Request, cx: &mut NodeContext<'_>) {
        cx.out.issue(from.index(), request);
    }
    fn completed(&mut self, _: Time, from: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        cx.out.complete_to(from, completion);
    }
    fn wake(&mut self, _: Time, _: &mut NodeContext<'_>) {}
    fn owners(&self, from: Port, extent: Extent, owner: &mut dyn FnMut(Port, Extent)) {
        owner(from, extent);
    }
    fn next_wake(&self) -> Wake {
        Wake::NEVER
    }
}

/// A volume that sends a request to the member `address % members`. Address `a` of a member is
/// address `a + 5000` of the volume. Addresses of a member from 900 on have no owner.
struct SpreadVolume {
    members: u64,
    diary: Diary,
}

impl Node for SpreadVolume {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        let member = (request.extent.start.0 % self.members) as usize;
        let Gauge {
            queue_length, head, ..
        } = cx.below.gauge(member);
        note(
            &self.diary,
            format!("member {member}: {queue_length} queued, head at {}", head.0),
            now,
        );
        assert!(cx.below.tracks(member).is_some());
        cx.out.issue(member, request);
    }
    fn completed(&mut self, _: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        cx.out.complete(completion);
    }
    fn wake(&mut self, _: Time, _: &mut NodeContext<'_>) {}
    fn owners(&self, _: Port, extent: Extent, owner: &mut dyn FnMut(Port, Extent)) {
        if extent.end().0 <= 900 {
            owner(
                Port::FIRST,
                Extent {
                    start: extent.start + Sectors(5000),
                    ..extent
                },
            );
        }
    }
    fn ordered(
        &mut self,
        now: Time,
        order: LayerOrder,
        cx: &mut NodeContext<'_>,
    ) -> Result<(), Refusal> {
        match order {
            LayerOrder::Fail { member } => {
                note(&self.diary, format!("member {member} has failed"), now);
                cx.out.signal(Signal::Failed);
                Ok(())
            }
            _ => Err(Refusal("only failures".into())),
        }
    }
    fn next_wake(&self) -> Wake {
        Wake::NEVER
    }
}

/// A disk that serves requests one by one, at one microsecond per sector. Sends the notice `says`
/// after each request.
#[derive(Default)]
struct SimpleDisk {
    waiting: VecDeque<(Time, Request)>,
    busy_until: Time,
    says: Option<Signal>,
    loses: bool,
    diary: Diary,
}

impl Node for SimpleDisk {
    fn submit(&mut self, now: Time, _: Port, request: Request, _: &mut NodeContext<'_>) {
        note(
            &self.diary,
            format!("disk: {} at {}", request.origin, request.extent.start.0),
            now,
        );
        if self.loses {
            return;
        }
        self.busy_until =
            self.busy_until.max(now) + Duration::from_micros(request.extent.sectors.0);
        self.waiting.push_back((
            self.busy_until,
            Request {
                origin: now.as_nanos(),
                ..request
            },
        ));
    }
    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        while let Some(&(finished, request)) = self.waiting.front()
            && finished <= now
        {
            self.waiting.pop_front();
            let submitted = Time::from_nanos(request.origin);
            cx.out.complete(Completion {
                id: request.id,
                submitted,
                finished,
                breakdown: Breakdown {
                    transfer: finished.since(submitted),
                    ..Breakdown::default()
                },
                ..Completion::default()
            });
            self.says
                .into_iter()
                .for_each(|signal| cx.out.signal(signal));
        }
    }
    fn next_wake(&self) -> Wake {
        self.waiting
            .front()
            .map_or(Wake::NEVER, |&(due, _)| due.into())
    }
    fn gauge(&self) -> Gauge {
        let head = Cylinder(40 + self.waiting.len() as u32);
        Gauge {
            queue_length: self.waiting.len() as u32,
            head,
            ..Gauge::default()
        }
    }
    fn count(&self, _: Time, counters: &mut Counters) {
        counters.drives.push(Default::default());
    }
}

/// A node with a chore every 5 s, for ever.
struct Flusher {
    next: Time,
    rounds: Diary,
}

impl Node for Flusher {
    fn submit(&mut self, _: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        cx.out.issue(0, request);
    }
    fn completed(&mut self, _: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        cx.out.complete(completion);
    }
    fn wake(&mut self, now: Time, _: &mut NodeContext<'_>) {
        if now >= self.next {
            note(&self.rounds, "round", self.next);
            self.next += Duration::from_millis(5_000);
        }
    }
    fn next_wake(&self) -> Wake {
        Wake::Chore(self.next)
    }
}

/// A workload that issues listed requests at the listed times and logs the completions.
struct Script {
    requests: VecDeque<(u64, Request)>,
    fails_after: Option<usize>,
    diary: Diary,
}

impl Node for Script {
    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        while let Some(&(at, request)) = self.requests.front()
            && at <= now.as_nanos()
        {
            self.requests.pop_front();
            cx.out.issue(0, request);
            if let Some(left) = &mut self.fails_after {
                *left -= 1;
                if *left == 0 {
                    cx.out.stop(SourceError("line 7 is torn".into()));
                }
            }
        }
    }
    fn completed(&mut self, now: Time, _: Port, completion: Completion, _: &mut NodeContext<'_>) {
        note(
            &self.diary,
            format!("request {} is done", completion.id.0),
            now,
        );
    }
    fn noticed(&mut self, now: Time, _: Port, notice: Notice, _: &mut NodeContext<'_>) {
        note(&self.diary, format!("{:?}", notice.signal), now);
    }
    fn next_wake(&self) -> Wake {
        self.requests
            .front()
            .map_or(Wake::NEVER, |&(at, _)| Time::from_nanos(at).into())
    }
    fn count(&self, _: Time, counters: &mut Counters) {
        counters.skipped_rows += 3;
    }
}

impl Source for Script {}

struct Flat;

impl TrackTable for Flat {
    fn capacity(&self) -> Sectors {
        Sectors(1000)
    }
    fn track_at(&self, _: Lbn) -> TrackExtent {
        TrackExtent {
            first: Lbn(0),
            sectors: Sectors(1000),
            cylinder: Cylinder(0),
            surface: 0,
        }
    }
    fn cylinder_of(&self, _: Lbn) -> Cylinder {
        Cylinder(0)
    }
}

fn disk(disk: SimpleDisk) -> Branch {
    Branch::drive(Box::new(disk), Arc::new(Flat))
}

fn request(id: u64, start: u64, sectors: u64) -> Request {
    Request {
        id: RequestId(id),
        extent: Extent::new(start, sectors),
        ..Request::default()
    }
}

fn script(requests: &[(u64, Request)], diary: &Diary) -> Box<Script> {
    Box::new(Script {
        requests: requests.to_vec().into(),
        fails_after: None,
        diary: Arc::clone(diary),
    })
}

/// An observer that records all events.
#[derive(Default)]
struct Books {
    finished: Vec<Finished>,
    ios: Vec<(u64, usize, u64)>,
    noticed: Vec<(Vec<usize>, Notice)>,
}

impl Observer for Books {
    fn finished(&mut self, finished: &Finished) {
        self.finished.push(*finished);
    }
    fn drive_io(&mut self, now: Time, drive: usize, request: &Request) {
        self.ios.push((now.as_nanos(), drive, request.origin));
    }
    fn noticed(&mut self, path: &[usize], notice: &Notice) {
        self.noticed.push((path.to_vec(), *notice));
    }
}

#[test]
fn requests_are_numbered_as_they_are_issued_and_come_back_under_their_own_names() {
    let diary = Diary::default();
    let source = script(
        &[
            (0, request(70, 0, 8)),
            (0, request(71, 8, 8)),
            (9_000, request(72, 0, 1)),
        ],
        &diary,
    );
    let mut books = Books::default();
    let top = Branch::over(Box::new(Forward), disk(SimpleDisk::default()));
    let outcome = Engine::new(top, source).run(&mut books).unwrap();
    assert_eq!(
        (outcome.requests, outcome.completed, outcome.end.as_nanos()),
        (3, 3, 17_000)
    );
    assert_eq!(outcome.counters.skipped_rows, 3);
    let ends: Vec<_> = books
        .finished
        .iter()
        .map(|one| (one.origin, one.completion.id.0))
        .collect();
    assert_eq!(ends, [(0, 70), (1, 71), (2, 72)]);
    assert_eq!(books.ios, [(0, 0, 0), (0, 0, 1), (9_000, 0, 2)]);
    let done = |id, at| (format!("request {id} is done"), at);
    assert_eq!(
        written(&diary),
        [done(70, 8_000), done(71, 16_000), done(72, 17_000)]
    );
}

#[test]
fn a_node_that_wakes_for_ever_does_not_keep_a_run_alive() {
    let rounds = Diary::default();
    let second = 1_000_000_000;
    let source = script(
        &[(0, request(0, 0, 8)), (12 * second, request(1, 0, 8))],
        &Diary::default(),
    );
    let flusher = Flusher {
        next: Time::ZERO,
        rounds: Arc::clone(&rounds),
    };
    let outcome = Engine::new(
        Branch::over(Box::new(flusher), disk(SimpleDisk::default())),
        source,
    )
    .run(&mut ())
    .unwrap();
    assert_eq!(outcome.completed, 2);
    let at: Vec<u64> = written(&rounds)
        .into_iter()
        .map(|(_, at)| at / second)
        .collect();
    assert_eq!(
        at,
        [0, 5, 10],
        "its rounds are made while there is anything else to do"
    );
}

#[test]
#[should_panic(expected = "a node has lost 1 requests")]
fn a_request_that_is_lost_is_found_out() {
    let loses = SimpleDisk {
        loses: true,
        ..SimpleDisk::default()
    };
    let _ = Engine::new(
        disk(loses),
        script(&[(0, request(0, 0, 8))], &Diary::default()),
    )
    .run(&mut ());
}

#[test]
fn a_workload_that_cannot_go_on_ends_the_run_with_its_error() {
    let mut source = script(
        &[(0, request(0, 0, 8)), (5, request(1, 0, 8))],
        &Diary::default(),
    );
    source.fails_after = Some(2);
    let error = Engine::new(disk(SimpleDisk::default()), source)
        .run(&mut ())
        .unwrap_err();
    assert_eq!(error.to_string(), "line 7 is torn");
}

#[test]
fn a_run_past_the_end_of_simulated_time_is_an_error_and_not_a_wrap() {
    let run = |at: u64| {
        let source = script(
            &[(0, request(0, 0, 8)), (at, request(1, 0, 8))],
            &Diary::default(),
        );
        Engine::new(disk(SimpleDisk::default()), source).run(&mut ())
    };
    let last = Time::HORIZON.as_nanos();
    assert_eq!(run(last - 1_000_000).unwrap().completed, 2);
    for at in [last + 1, u64::MAX - 1] {
        let error = run(at).unwrap_err().to_string();
        assert!(
            error.contains("more than 292 years") && error.contains("after 1 requests"),
            "{error}"
        );
    }
}

#[test]
fn an_observer_ends_the_run_where_it_is() {
    #[derive(Default)]
    struct Enough(u64);
    impl Observer for Enough {
        fn finished(&mut self, _: &Finished) {
            self.0 += 1;
        }
        fn is_stopped(&self) -> bool {
            self.0 == 2
        }
    }
    let source = script(
        &[0, 9_000, 99_000].map(|at| (at, request(at, 0, 8))),
        &Diary::default(),
    );
    let mut enough = Enough::default();
    let error = Engine::new(disk(SimpleDisk::default()), source)
        .run(&mut enough)
        .unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), enough.0),
        ("the run was stopped", 2)
    );
}

/// A volume of two disks behind a joint and below a cover.
fn array(diary: &Diary, says: [Option<Signal>; 2]) -> Branch {
    let members = says.map(|says| {
        disk(SimpleDisk {
            says,
            diary: Arc::clone(diary),
            ..SimpleDisk::default()
        })
    });
    let volume = SpreadVolume {
        members: 2,
        diary: Arc::clone(diary),
    };
    let volume = Branch::volume(Box::new(volume), members.into()).behind(Box::new(Joint));
    Branch::over(Box::new(Forward), volume)
}

#[test]
fn a_volume_sees_its_members_through_what_joins_them() {
    let diary = Diary::default();
    let mut machine = Machine::new(Graph::new(array(&diary, [None; 2])));
    assert_eq!(
        machine.graph().drive_names().collect::<Vec<_>>(),
        ["0", "1"]
    );
    for (id, start) in [(0, 1), (1, 1), (2, 0)] {
        machine.submit(Time::ZERO, request(id, start, 8), &mut ());
    }
    let seen = |member, queued, head| {
        (
            format!("member {member}: {queued} queued, head at {head}"),
            0,
        )
    };
    let gave = |origin, start| (format!("disk: {origin} at {start}"), 0);
    assert_eq!(
        written(&diary),
        [
            seen(1, 0, 40),
            gave(0, 1),
            seen(1, 1, 41),
            gave(1, 1),
            seen(0, 0, 40),
            gave(2, 0)
        ]
    );
    assert_eq!(
        machine
            .graph()
            .drive_gauges()
            .map(|gauge| gauge.queue_length)
            .collect::<Vec<_>>(),
        [1, 2]
    );
}

#[test]
fn notice_crosses_a_volume_in_its_addresses_and_ends_where_nobody_owns_them() {
    let diary = Diary::default();
    let heard = Diary::default();
    let push = Signal::Push(Extent::new(100, 8));
    let nobodys = Signal::Push(Extent::new(950, 8));
    let source = script(&[(0, request(0, 0, 8)), (0, request(1, 1, 4))], &heard);
    let mut books = Books::default();
    let top = array(&diary, [Some(push), Some(nobodys)]);
    Engine::new(top, source).run(&mut books).unwrap();
    // Each notice is observed once, at its sender, regardless of how far it goes.
    let observed: Vec<_> = books
        .noticed
        .iter()
        .map(|(path, notice)| (path[0], notice.signal, notice.at.as_nanos()))
        .collect();
    assert_eq!(observed, [(1, nobodys, 4_000), (0, push, 8_000)]);
    let heard = written(&heard);
    assert_eq!(
        heard
            .iter()
            .filter(|(what, _)| what.starts_with("Push"))
            .count(),
        1
    );
    assert!(
        heard.contains(&(format!("{:?}", Signal::Push(Extent::new(5100, 8))), 8_000)),
        "{heard:?}"
    );
}

#[test]
fn two_that_say_the_same_are_two() {
    let pull = Signal::Pull {
        extent: None,
        sectors: Sectors(8),
    };
    let source = script(
        &[(0, request(0, 0, 8)), (0, request(1, 1, 8))],
        &Diary::default(),
    );
    let mut books = Books::default();
    Engine::new(array(&Diary::default(), [Some(pull); 2]), source)
        .run(&mut books)
        .unwrap();
    let senders: Vec<_> = books
        .noticed
        .iter()
        .map(|(path, notice)| (path.clone(), notice.sender))
        .collect();
    assert_eq!(senders.len(), 2);
    assert_eq!((senders[0].0[0], senders[1].0[0]), (0, 1));
    assert_ne!(senders[0].1, senders[1].1);
}

#[test]
fn orders_reach_the_volume_at_their_path_and_no_other() {
    let diary = Diary::default();
    let mut machine = Machine::new(Graph::new(array(&diary, [None; 2])));
    let mut books = Books::default();
    machine
        .order(
            Time::from_nanos(7),
            &[],
            LayerOrder::Fail { member: 1 },
            &mut books,
        )
        .unwrap();
    assert_eq!(written(&diary), [("member 1 has failed".to_owned(), 7)]);
    assert_eq!(books.noticed.len(), 1);
    assert_eq!(books.noticed[0].1.at.as_nanos(), 7);
    let refused = machine
        .order(Time::from_nanos(8), &[], LayerOrder::Rest, &mut books)
        .unwrap_err();
    assert_eq!(refused.to_string(), "only failures");
    assert!(
        machine
            .order(Time::from_nanos(8), &[0], LayerOrder::Rest, &mut books)
            .is_err(),
        "a disk is no volume"
    );
}

#[test]
fn a_clock_that_is_late_changes_nothing() {
    let run = |step: u64| {
        let mut machine = Machine::new(Graph::new(array(&Diary::default(), [None; 2])));
        let mut books = Books::default();
        let arrivals = [(0, 0), (0, 1), (3_000, 2), (5_000, 4), (30_000, 1)];
        for (id, &(at, start)) in arrivals.iter().enumerate() {
            machine.advance(Time::from_nanos(at), &mut books);
            machine.submit(
                Time::from_nanos(at),
                request(id as u64, start, 7),
                &mut books,
            );
            // A driver that looks at its clock every `step` nanoseconds.
            let until = arrivals.get(id + 1).map_or(100_000, |next| next.0);
            let mut now = at;
            while now < until {
                now = (now + step).min(until);
                machine.advance(Time::from_nanos(now), &mut books);
            }
        }
        assert_eq!(machine.in_flight(), 0);
        let ends: Vec<_> = books
            .finished
            .iter()
            .map(|one| (one.origin, one.completion.finished.as_nanos()))
            .collect();
        (ends, books.ios)
    };
    assert_eq!(run(1_000), run(100_000));
}

#[test]
fn at_one_instant_those_above_are_woken_first() {
    // The second request arrives at the instant when the first ends. The workload is above the
    // disk, so the second request is issued first.
    let diary = Diary::default();
    let source = script(&[(0, request(0, 0, 8)), (8_000, request(1, 0, 8))], &diary);
    let top = disk(SimpleDisk {
        diary: Arc::clone(&diary),
        ..SimpleDisk::default()
    });
    Engine::new(top, source).run(&mut ()).unwrap();
    let order: Vec<String> = written(&diary).into_iter().map(|(what, _)| what).collect();
    assert_eq!(
        order,
        [
            "disk: 0 at 0",
            "disk: 1 at 0",
            "request 0 is done",
            "request 1 is done"
        ]
    );
}

#[test]
fn what_is_refused_is_told_as_it_ended() {
    struct Refuses;
    impl Node for Refuses {
        fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
            let (id, status) = (request.id, RequestStatus::OutOfRange);
            cx.out.complete(Completion {
                id,
                submitted: now,
                finished: now,
                status,
                ..Completion::default()
            });
        }
        fn wake(&mut self, _: Time, _: &mut NodeContext<'_>) {}
        fn next_wake(&self) -> Wake {
            Wake::NEVER
        }
    }
    let flush = Request {
        operation: Operation::Flush,
        ..request(4, 0, 0)
    };
    let source = script(&[(0, flush)], &Diary::default());
    let mut books = Books::default();
    let outcome = Engine::new(Branch::volume(Box::new(Refuses), Vec::new()), source)
        .run(&mut books)
        .unwrap();
    assert_eq!((outcome.completed, outcome.out_of_range), (0, 1));
    assert_eq!(books.finished[0].operation, Operation::Flush);
}

/// A disk shared by two hosts. Each host has 500 sectors, divided into files of 100.
struct SharedDisk {
    diary: Diary,
    /// By id below: the host's port, and the id from the host.
    owners: Vec<(Port, RequestId)>,
}

impl Node for SharedDisk {
    fn submit(&mut self, now: Time, from: Port, request: Request, cx: &mut NodeContext<'_>) {
        let base = 500 * from.index() as u64 + 100 * u64::from(request.object.0);
        let extent = Extent::new(base + request.extent.start.0, request.extent.sectors.0);
        note(
            &self.diary,
            format!("host {} asks for {}", from.index(), extent.start.0),
            now,
        );
        let id = RequestId(self.owners.len() as u64);
        self.owners.push((from, request.id));
        cx.out.issue(
            0,
            Request {
                id,
                extent,
                object: Object::DEVICE,
                ..request
            },
        );
    }
    fn completed(&mut self, _: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        let (host, id) = self.owners[completion.id.0 as usize];
        cx.out.complete_to(host, Completion { id, ..completion });
    }
    fn wake(&mut self, _: Time, _: &mut NodeContext<'_>) {}
    fn owners(&self, _: Port, extent: Extent, owner: &mut dyn FnMut(Port, Extent)) {
        let host = extent.start.0 / 500;
        owner(
            Port::of(host as usize),
            Extent::new(extent.start.0 - 500 * host, extent.sectors.0),
        );
    }
    fn next_wake(&self) -> Wake {
        Wake::NEVER
    }
}

#[test]
fn several_hosts_share_what_is_below_them() {
    let (first, second, shared) = (Diary::default(), Diary::default(), Diary::default());
    let of_file = |object: u32, request: Request| Request {
        object: Object(object),
        ..request
    };
    let hosts: Vec<Vec<Box<dyn Node>>> = vec![
        vec![
            script(&[(1, request(9, 10, 2)), (5_000, request(8, 0, 2))], &first),
            Box::new(Forward),
        ],
        vec![script(&[(1, of_file(2, request(9, 10, 2)))], &second)],
    ];
    let says = Some(Signal::Push(Extent::new(710, 2)));
    let below = disk(SimpleDisk {
        says,
        ..SimpleDisk::default()
    });
    let node = SharedDisk {
        diary: Arc::clone(&shared),
        owners: Vec::new(),
    };
    let graph = Graph::below_all(hosts, Branch::over(Box::new(node), below));
    let mut books = Books::default();
    let outcome = Engine::of(graph).run(&mut books).unwrap();
    assert_eq!(
        (outcome.requests, outcome.completed, outcome.end.as_nanos()),
        (3, 3, 7_000)
    );
    let asked = [
        ("host 0 asks for 10", 1),
        ("host 1 asks for 710", 1),
        ("host 0 asks for 0", 5_000),
    ];
    assert_eq!(
        written(&shared),
        asked.map(|(what, at)| (what.to_owned(), at))
    );
    // Each host gets its own completions under its own ids. The push concerns only the second host.
    let of_first = [("request 9 is done", 2_001), ("request 8 is done", 7_000)];
    assert_eq!(
        written(&first),
        of_first.map(|(what, at)| (what.to_owned(), at))
    );
    let push = "Push(Extent { start: Lbn(210), sectors: Sectors(2) })";
    let of_second = [
        (push, 2_001),
        ("request 9 is done", 4_001),
        (push, 4_001),
        (push, 7_000),
    ];
    assert_eq!(
        written(&second),
        of_second.map(|(what, at)| (what.to_owned(), at))
    );
    assert_eq!(
        books
            .ios
            .iter()
            .map(|&(.., origin)| origin)
            .collect::<Vec<_>>(),
        [0, 1, 2]
    );
}
