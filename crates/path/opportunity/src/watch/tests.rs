use super::*;
use fullstroke_contract::{Breakdown, Effects, Operation, RequestStatus};

/// An opportunity that always returns another request: more than any drives can serve.
struct Greedy(u64);

impl Opportunity for Greedy {
    fn arrived(&mut self, _: OpportunityView, _: &Request) -> bool {
        false
    }
    fn left(&mut self, _: OpportunityView, _: &Request, _: RequestStatus) {}
    fn next_look(&self) -> Time {
        Time::ZERO
    }
    fn look(&mut self, _: OpportunityView, _: &mut dyn FnMut(Signal)) {}
    fn next_request(&mut self, _: OpportunityView) -> Option<OwnRequest> {
        self.0 += 1;
        assert!(self.0 < 1 << 20, "asked without end");
        Some(OwnRequest {
            operation: Operation::Read,
            extent: fullstroke_contract::Extent::new(self.0, 1),
            verify: false,
            members: false,
        })
    }
}

/// Returns the requests sent to the array.
fn issued(out: &mut Effects) -> Vec<Request> {
    out.requests().collect()
}

#[test]
fn what_an_opportunity_has_outstanding_is_bounded_and_ends_with_the_run() {
    let mut watch = OpportunityLayer::new(vec![Box::new(Greedy(0))]);
    let mut out = Effects::new();
    let now = Time::ZERO;
    watch.wake(now, &mut NodeContext::alone(&mut out));
    let first = issued(&mut out);
    assert_eq!(first.len(), OWN_MAX as usize);
    // Further looks add nothing while nothing is done.
    watch.wake(now, &mut NodeContext::alone(&mut out));
    assert_eq!(issued(&mut out).len(), 0);
    let done = |request: &Request| Completion {
        id: request.id,
        submitted: now,
        finished: now,
        status: RequestStatus::Done,
        breakdown: Breakdown::default(),
    };
    watch.completed(
        now,
        Port::FIRST,
        done(&first[0]),
        &mut NodeContext::alone(&mut out),
    );
    assert_eq!(issued(&mut out).len(), 1);
    // After the end of the workloads, no new request replaces a finished one.
    watch
        .ordered(now, LayerOrder::Rest, &mut NodeContext::alone(&mut out))
        .unwrap();
    for request in &first[1..] {
        watch.completed(
            now,
            Port::FIRST,
            done(request),
            &mut NodeContext::alone(&mut out),
        );
        assert_eq!(issued(&mut out).len(), 0);
    }
}
