//! A drive with several arms in a graph: the arms work at the same time, and the drive counts the
//! work of both.

use fullstroke_contract::{Extent, MemberStatistics, Request, RequestId, RequestStatus};
use fullstroke_drive::{DriveConfig, DriveModel};
use fullstroke_engine::{Finished, Graph, Machine, Observer};
use fullstroke_units::{Duration, Time};

/// A drive with two arms and without buffers.
fn two_arms() -> DriveModel {
    let file = include_str!("../../../../drives/seagate-exos-2x18-18tb.toml");
    let config: DriveConfig = toml::from_str(file).unwrap();
    assert_eq!(config.actuators, 2);
    DriveModel::new(DriveConfig {
        buffer: None,
        ..config
    })
    .unwrap()
}

/// First address of the second arm.
fn share(model: &DriveModel) -> u64 {
    model.config().capacity_sectors.0 / 2
}

#[derive(Default)]
struct Books {
    finished: Vec<(Duration, RequestStatus)>,
    drives: Vec<usize>,
}

impl Observer for Books {
    fn finished(&mut self, finished: &Finished) {
        let completion = finished.completion;
        let took = completion.finished.since(finished.arrived);
        assert_eq!(
            completion.breakdown.response(),
            completion.finished.since(completion.submitted)
        );
        self.finished.push((took, completion.status));
    }
    fn drive_io(&mut self, _: Time, drive: usize, _: &Request) {
        self.drives.push(drive);
    }
}

/// Submits all requests at time 0. Returns the results and the counters of the drive.
fn run(model: &DriveModel, requests: &[(u64, u64)]) -> (Books, MemberStatistics) {
    let mut machine = Machine::new(Graph::new(model.branch().unwrap()));
    let mut books = Books::default();
    for (id, &(start, sectors)) in requests.iter().enumerate() {
        let extent = Extent::new(start, sectors);
        let request = Request {
            id: RequestId(id as u64),
            extent,
            ..Request::default()
        };
        machine.submit(Time::ZERO, request, &mut books);
    }
    while machine.has_work() {
        machine.wake(&mut books);
    }
    assert_eq!(machine.graph().drive_names().collect::<Vec<_>>(), ["0"]);
    let counters = machine.counters();
    assert_eq!(counters.drives.len(), 1);
    (books, counters.drives[0])
}

#[test]
fn arms_serve_their_shares_at_the_same_time() {
    let model = two_arms();
    let one = run(&model, &[(1000, 8)]).0.finished[0];
    let (both, counted) = run(&model, &[(1000, 8), (share(&model) + 1000, 8)]);
    assert_eq!(both.finished, [one, one]);
    assert_eq!(both.drives, [0, 0], "one drive is asked, not its arms");
    assert_eq!(counted.reads, 2);
}

#[test]
fn a_drive_of_which_one_arm_works_is_half_busy() {
    let model = two_arms();
    let one = run(&model, &[(1000, 8)]).1.busy;
    let both = run(&model, &[(1000, 8), (share(&model) + 1000, 8)]).1.busy;
    assert!(one > Duration::ZERO);
    assert_eq!(one, both / 2);
}

#[test]
fn a_request_over_the_border_is_complete_when_both_parts_are() {
    let model = two_arms();
    let border = share(&model);
    let whole = run(&model, &[(border - 10, 20)]).0.finished;
    let parts = run(&model, &[(border - 10, 10), (border, 10)]).0.finished;
    assert_eq!(whole.len(), 1);
    assert_eq!(whole.first(), parts.iter().max());
}

#[test]
fn what_lies_beyond_is_refused() {
    let model = two_arms();
    let end = share(&model) * 2;
    for (start, sectors) in [(end - 1, 2), (u64::MAX, 1), (end, 1), (0, 0)] {
        assert_eq!(
            run(&model, &[(start, sectors)]).0.finished[0].1,
            RequestStatus::OutOfRange
        );
    }
}

#[test]
fn the_gauge_of_the_drive_has_its_first_arm_and_all_its_requests() {
    let model = two_arms();
    let mut machine = Machine::new(Graph::new(model.branch().unwrap()));
    let middle = share(&model) / 2;
    for (id, start) in [share(&model) + middle, middle, middle + 8]
        .into_iter()
        .enumerate()
    {
        let extent = Extent::new(start, 8);
        machine.submit(
            Time::ZERO,
            Request {
                id: RequestId(id as u64),
                extent,
                ..Request::default()
            },
            &mut (),
        );
    }
    let gauge = machine.graph().drive_gauges().next().unwrap();
    assert_eq!(gauge.queue_length, 3);
    assert_eq!(gauge.idle_since, None);
    assert_eq!(
        gauge.head,
        model.tracks().cylinder_of(fullstroke_units::Lbn(middle))
    );
}
