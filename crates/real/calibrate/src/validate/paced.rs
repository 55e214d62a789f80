//! Requests issued after as many completions as in the measurement.

use fullstroke_contract::{
    Completion, ConfigError, Extent, Node, NodeContext, Operation, Port, Request, RequestId,
    Source, Wake,
};
use fullstroke_drive::DriveModel;
use fullstroke_engine::{Engine, Finished, Observer};
use fullstroke_units::{Duration, Time};
use std::sync::Arc;

/// A request with its time of issue: `gap` after the `awaited`th completion of all, or after the
/// beginning if `awaited` is 0. So a replay has the outstanding requests and the think times of the
/// measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paced {
    pub(crate) operation: Operation,
    pub(crate) extent: Extent,
    /// Number of completions to await: at most the request's own place in the order, and never less
    /// than the request before awaits.
    pub(crate) awaited: usize,
    pub(crate) gap: Duration,
}

/// Returns the number of `requests` completed by a drive of this model before the clock ends, and
/// the time of each request in ms.
pub(crate) fn simulate(
    model: &DriveModel,
    requests: &Arc<[Paced]>,
) -> Result<(u64, Vec<f64>), ConfigError> {
    let drive = model.branch()?;
    let mut times = ResponseTimes(vec![f64::NAN; requests.len()]);
    let outcome = Engine::new(drive, Box::new(Pacer::new(Arc::clone(requests))))
        .run(&mut times)
        .unwrap_or_else(|_| unreachable!("requests in memory cannot break off"));
    Ok((outcome.completed, times.0))
}

struct Pacer {
    requests: Arc<[Paced]>,
    next: usize,
    /// Times of completions, in order.
    completions: Vec<Time>,
    due: Time,
}

impl Pacer {
    fn new(requests: Arc<[Paced]>) -> Pacer {
        // A request that awaited itself or a later request would never be issued.
        assert!(
            requests
                .iter()
                .enumerate()
                .all(|(place, request)| request.awaited <= place),
            "a request awaits completions of requests before it"
        );
        let completions = Vec::with_capacity(requests.len());
        let mut pacer = Pacer {
            requests,
            next: 0,
            completions,
            due: Time::NEVER,
        };
        pacer.schedule(Time::ZERO);
        pacer
    }

    /// Sets the due time of the next request, if known; not before `earliest`.
    fn schedule(&mut self, earliest: Time) {
        let Some(next) = self.requests.get(self.next) else {
            return;
        };
        let since = match next.awaited.checked_sub(1) {
            None => Some(Time::ZERO),
            Some(last) => self.completions.get(last).copied(),
        };
        self.due = since.map_or(Time::NEVER, |since| {
            since.saturating_add(next.gap).max(earliest)
        });
    }
}

impl Node for Pacer {
    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        while self.due <= now {
            let Paced {
                operation, extent, ..
            } = self.requests[self.next];
            let id = RequestId(self.next as u64);
            cx.out.issue(
                0,
                Request {
                    id,
                    operation,
                    extent,
                    ..Request::default()
                },
            );
            self.next += 1;
            self.due = Time::NEVER;
            self.schedule(now);
        }
    }

    fn completed(&mut self, now: Time, _: Port, _: Completion, _: &mut NodeContext<'_>) {
        self.completions.push(now);
        assert!(
            self.completions.len() <= self.next,
            "{} of {} requests have completed",
            self.completions.len(),
            self.next
        );
        if self.due == Time::NEVER {
            self.schedule(now);
        }
    }

    fn next_wake(&self) -> Wake {
        self.due.into()
    }
}

impl Source for Pacer {
    fn expected_requests(&self) -> Option<u64> {
        Some(self.requests.len() as u64)
    }
}

/// Records the response time of each request.
struct ResponseTimes(Vec<f64>);

impl Observer for ResponseTimes {
    fn finished(&mut self, finished: &Finished) {
        if let Some(time) = self.0.get_mut(finished.origin as usize) {
            *time = finished
                .completion
                .finished
                .since(finished.arrived)
                .as_millis_f64();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::Effects;
    use fullstroke_stack::drives;

    fn paced(lbn: u64, awaited: usize, gap_us: u64) -> Paced {
        let gap = Duration::from_micros(gap_us);
        Paced {
            operation: Operation::Read,
            extent: Extent::new(lbn, 8),
            awaited,
            gap,
        }
    }

    #[test]
    fn the_next_request_is_issued_its_gap_after_the_completion_that_it_awaits() {
        let mut pacer = Pacer::new([paced(0, 0, 0), paced(800, 1, 700)].into());
        let mut out = Effects::new();
        pacer.wake(Time::ZERO, &mut NodeContext::alone(&mut out));
        assert_eq!((out.len(), pacer.next_wake()), (1, Wake::NEVER));
        let done = Time::from_nanos(4_000_000);
        pacer.completed(
            done,
            Port::FIRST,
            Completion::default(),
            &mut NodeContext::alone(&mut out),
        );
        let due = pacer.next_wake().at();
        assert_eq!(due, done + Duration::from_micros(700));
        pacer.wake(done, &mut NodeContext::alone(&mut out));
        assert_eq!(out.len(), 1, "waking early is harmless");
        pacer.wake(due, &mut NodeContext::alone(&mut out));
        assert_eq!((out.len(), pacer.next_wake()), (2, Wake::NEVER));
    }

    #[test]
    fn as_many_are_outstanding_as_were_measured() {
        let mut pacer = Pacer::new(
            [
                paced(0, 0, 0),
                paced(8, 0, 0),
                paced(16, 1, 0),
                paced(24, 1, 50),
            ]
            .into(),
        );
        let mut out = Effects::new();
        pacer.wake(Time::ZERO, &mut NodeContext::alone(&mut out));
        assert_eq!(out.len(), 2);
        let done = Time::from_nanos(1_000_000);
        pacer.completed(
            done,
            Port::FIRST,
            Completion::default(),
            &mut NodeContext::alone(&mut out),
        );
        pacer.wake(done, &mut NodeContext::alone(&mut out));
        assert_eq!(
            (out.len(), pacer.next_wake().at()),
            (3, done + Duration::from_micros(50))
        );
    }

    #[test]
    fn think_times_turn_the_platter() {
        let model = drives::load("ibm-ultrastar-xp-4.51gb").unwrap();
        let wait = |gap_us| {
            simulate(&model, &[paced(0, 0, 0), paced(64, 1, gap_us)].into())
                .unwrap()
                .1[1]
        };
        let (soon, later) = (wait(0), wait(100));
        assert!((soon - later - 0.1).abs() < 1e-5, "{soon} {later}");
    }

    #[test]
    fn a_clock_that_ends_is_noticed() {
        let model = drives::load("ibm-ultrastar-xp-4.51gb").unwrap();
        let endless = Paced {
            gap: Duration::MAX,
            ..paced(0, 1, 0)
        };
        assert_eq!(
            simulate(&model, &[paced(0, 0, 0), endless].into())
                .unwrap()
                .0,
            1
        );
    }
}
