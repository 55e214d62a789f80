//! A run counts each request by its result.

use fullstroke_contract::{
    Completion, Extent, Node, NodeContext, Port, Request, RequestId, RequestStatus, Source, Wake,
};
use fullstroke_engine::{Branch, Engine, Finished, Observer};
use fullstroke_units::Time;

/// A node that answers at once, each request with the next status of a list.
struct ScriptedNode(Vec<RequestStatus>);

impl Node for ScriptedNode {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        cx.out.complete(Completion {
            id: request.id,
            submitted: now,
            finished: now,
            status: self.0.remove(0),
            ..Completion::default()
        });
    }
    fn completed(&mut self, _: Time, _: Port, _: Completion, _: &mut NodeContext<'_>) {}
    fn wake(&mut self, _: Time, _: &mut NodeContext<'_>) {}
    fn next_wake(&self) -> Wake {
        Wake::NEVER
    }
}

/// A workload that issues this number of requests at time 0.
struct Requests(u64);

impl Node for Requests {
    fn wake(&mut self, _: Time, cx: &mut NodeContext<'_>) {
        while self.0 > 0 {
            self.0 -= 1;
            cx.out.issue(
                0,
                Request {
                    id: RequestId(self.0),
                    extent: Extent::new(self.0, 1),
                    ..Request::default()
                },
            );
        }
    }
    fn completed(&mut self, _: Time, _: Port, _: Completion, _: &mut NodeContext<'_>) {}
    fn next_wake(&self) -> Wake {
        if self.0 > 0 {
            Time::ZERO.into()
        } else {
            Wake::NEVER
        }
    }
}

impl Source for Requests {}

struct Nobody;

impl Observer for Nobody {
    fn finished(&mut self, _: &Finished) {}
}

#[test]
fn each_request_is_counted_once_by_what_became_of_it() {
    use RequestStatus::{Done, Lost, OutOfRange};
    let statuses = vec![Done, Lost, Done, OutOfRange, Lost, Done, Lost, Done];
    let root = Branch::volume(Box::new(ScriptedNode(statuses)), Vec::new());
    let outcome = Engine::new(root, Box::new(Requests(8)))
        .run(&mut Nobody)
        .unwrap();
    assert_eq!(
        (
            outcome.requests,
            outcome.completed,
            outcome.lost,
            outcome.out_of_range
        ),
        (8, 4, 3, 1)
    );
}
