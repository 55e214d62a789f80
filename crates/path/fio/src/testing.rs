//! Runs a source to its end over a device that answers after a millisecond.

use fullstroke_contract::{Completion, Effects, Node, NodeContext, Port, Request};
use fullstroke_units::{Duration, Time};

/// Time of the device for the requests that wait.
const ANSWER: Duration = Duration::from_millis(1);

/// Runs `source` to its end, and calls `seen` with each request. The device takes the requests that
/// wait together, so that a job with one I/O at a time has 1000 IOPS.
pub(crate) fn run(source: &mut dyn Node, mut seen: impl FnMut(&Request)) {
    let (mut out, mut now) = (Effects::new(), Time::ZERO);
    while source.next_wake().is_work() {
        now = now.max(source.next_wake().at());
        source.wake(now, &mut NodeContext::alone(&mut out));
        while !out.is_empty() {
            let submitted = now;
            now += ANSWER;
            for request in out.requests().collect::<Vec<_>>() {
                seen(&request);
                let completion = Completion {
                    id: request.id,
                    submitted,
                    finished: now,
                    ..Completion::default()
                };
                let mut cx = NodeContext::alone(&mut out);
                source.completed(now, Port::FIRST, completion, &mut cx);
            }
        }
    }
}
