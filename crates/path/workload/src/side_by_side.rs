//! Several workloads at the same time: a database, and tonight's backup beside it.

use fullstroke_contract::{
    Completion, Counters, Effects, Node, NodeContext, Port, RequestId, Slots, Source, Wake,
};
use fullstroke_units::{Duration, Time};

/// One of several workloads.
pub struct MemberWorkload {
    /// Issues the requests, on a timeline that starts at 0.
    pub source: Box<dyn Source>,
    /// Start of the timeline.
    pub start: Duration,
    /// True if the run ends without waiting for this workload.
    pub background: bool,
    /// Added to the workload's process numbers (0, unknown, stays 0), so that processes of
    /// different workloads have different numbers.
    pub first_process: u32,
}

/// Several workloads as one source. A request names its workload
/// ([`fullstroke_contract::Hints::workload`], by index). The run ends when every foreground
/// workload has ended. Requests of background workloads in flight then still finish, and nothing
/// follows them.
///
/// The parts are contained in this source instead of being nodes of the graph. Each part has its
/// own timeline, while a graph has only one. Besides, only this source knows when the run ends.
pub struct SideBySide {
    parts: Vec<Running>,
    /// Number of the first part among the stack's workloads.
    first: u16,
    /// Requests in flight: the part, and the part's own id.
    in_flight: Slots<(u16, RequestId)>,
    /// Reused for the effects of a part.
    issued: Effects,
}

struct Running {
    part: MemberWorkload,
    in_flight: u64,
}

impl SideBySide {
    /// The source of all `parts`.
    ///
    /// # Panics
    /// If all parts are in the background, so that nothing ends the run, or if there are more parts
    /// than a request can number.
    pub fn new(parts: Vec<MemberWorkload>) -> SideBySide {
        assert!(
            parts.iter().any(|part| !part.background),
            "a workload in the foreground ends the run"
        );
        assert!(
            parts.len() <= usize::from(u16::MAX),
            "a request knows its workload as 16 bits"
        );
        let parts = parts
            .into_iter()
            .map(|part| Running { part, in_flight: 0 })
            .collect();
        SideBySide {
            parts,
            first: 0,
            in_flight: Slots::default(),
            issued: Effects::new(),
        }
    }

    /// The same source, with `first` workloads of other hosts numbered before its parts.
    #[must_use]
    pub fn numbered_from(self, first: u16) -> SideBySide {
        SideBySide { first, ..self }
    }

    /// True if every foreground workload has ended.
    fn is_over(&self) -> bool {
        self.parts
            .iter()
            .filter(|running| !running.part.background)
            .all(Running::has_ended)
    }

    /// Passes on the effects of part `index`.
    fn pass_on(&mut self, index: usize, out: &mut Effects) {
        let running = &mut self.parts[index];
        if let Some(error) = self.issued.take_stop() {
            out.stop(error);
        }
        for mut request in self.issued.requests() {
            running.in_flight += 1;
            // Parts number their requests independently, so two parts may use one id.
            request.id = RequestId(u64::from(self.in_flight.keep((index as u16, request.id))));
            request.hints.workload = self.first + index as u16;
            // 0 means unknown, and must not become the number of a process.
            if request.hints.process != 0 {
                request.hints.process = request
                    .hints
                    .process
                    .wrapping_add(running.part.first_process);
            }
            out.issue(0, request);
        }
    }
}

impl Running {
    fn has_ended(&self) -> bool {
        self.in_flight == 0 && self.part.source.next_wake() == Wake::NEVER
    }

    /// The part's own time at `now`; 0 before the part starts.
    fn own(&self, now: Time) -> Time {
        let began = Time::ZERO + self.part.start;
        // The first question may come before the start, and a part knows no negative time.
        if now <= began {
            Time::ZERO
        } else {
            Time::ZERO + now.since(began)
        }
    }

    fn next_wake(&self) -> Time {
        match self.part.source.next_wake().at() {
            Time::NEVER => Time::NEVER,
            own => own.capped_add(self.part.start),
        }
    }
}

impl Node for SideBySide {
    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        if self.is_over() {
            return;
        }
        for index in 0..self.parts.len() {
            let running = &mut self.parts[index];
            if running.next_wake() <= now {
                let own = running.own(now);
                running
                    .part
                    .source
                    .wake(own, &mut NodeContext::alone(&mut self.issued));
                self.pass_on(index, cx.out);
            }
        }
    }

    fn completed(
        &mut self,
        now: Time,
        from: Port,
        completion: Completion,
        cx: &mut NodeContext<'_>,
    ) {
        let (index, id) = self.in_flight.take(completion.id.0 as u32);
        let index = usize::from(index);
        let running = &mut self.parts[index];
        assert!(
            running.in_flight > 0,
            "a request of part {index} ends at {now:?}, and it has none in flight"
        );
        running.in_flight -= 1;
        let own = Completion {
            id,
            submitted: running.own(completion.submitted),
            finished: running.own(completion.finished),
            ..completion
        };
        let own_now = running.own(now);
        running.part.source.completed(
            own_now,
            from,
            own,
            &mut NodeContext::alone(&mut self.issued),
        );
        // The run no longer waits for a background workload.
        if running.part.background && self.is_over() {
            self.issued.clear();
        }
        self.pass_on(index, cx.out);
    }

    fn next_wake(&self) -> Wake {
        if self.is_over() {
            return Wake::NEVER;
        }
        self.parts
            .iter()
            .map(Running::next_wake)
            .min()
            .unwrap_or(Time::NEVER)
            .into()
    }

    fn count(&self, now: Time, counters: &mut Counters) {
        self.parts
            .iter()
            .for_each(|running| running.part.source.count(running.own(now), counters));
    }
}

impl Source for SideBySide {
    fn depends_on_completions(&self) -> bool {
        // The end of the foreground ends the background.
        let heeds = |running: &Running| {
            running.part.background || running.part.source.depends_on_completions()
        };
        self.parts.iter().any(heeds)
    }

    fn arrivals_are_open(&self) -> bool {
        self.parts
            .iter()
            .any(|running| running.part.source.arrivals_are_open())
    }

    fn expected_requests(&self) -> Option<u64> {
        // The progress of background workloads is unknown.
        let foreground = self.parts.iter().all(|running| !running.part.background);
        let each = || {
            self.parts
                .iter()
                .map(|running| running.part.source.expected_requests())
        };
        foreground.then(|| each().sum()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::{Extent, Operation, Request};

    /// Closed: `left` requests, each 1 ms after the completion of the previous one.
    struct ClosedLoop {
        left: u32,
        next: Time,
        number: u64,
        seen: Vec<(u64, Time)>,
    }

    impl Node for ClosedLoop {
        fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
            if self.next <= now && self.left > 0 {
                self.left -= 1;
                self.number += 1;
                self.next = Time::NEVER;
                let mut request = Request {
                    id: RequestId(self.number),
                    ..Request::default()
                };
                request.extent = Extent::new(self.number, 1);
                request.hints.process = 1;
                cx.out.issue(0, request);
            }
        }
        fn completed(
            &mut self,
            now: Time,
            _: Port,
            completion: Completion,
            _: &mut NodeContext<'_>,
        ) {
            self.seen.push((completion.id.0, completion.finished));
            if self.left > 0 {
                self.next = now + Duration::from_millis(1);
            }
        }
        fn next_wake(&self) -> Wake {
            self.next.into()
        }
    }

    impl Source for ClosedLoop {
        fn expected_requests(&self) -> Option<u64> {
            Some(u64::from(self.left))
        }
    }

    fn part(left: u32, start_ms: u64, background: bool, first_process: u32) -> MemberWorkload {
        let source = Box::new(ClosedLoop {
            left,
            next: Time::ZERO,
            number: 0,
            seen: Vec::new(),
        });
        MemberWorkload {
            source,
            start: Duration::from_millis(start_ms),
            background,
            first_process,
        }
    }

    /// Runs with 2 ms per request; returns (workload, process, arrival in ms).
    fn run(mut source: SideBySide) -> Vec<(u16, u32, u64)> {
        let mut log = Vec::new();
        let mut flying: Vec<(Time, Request)> = Vec::new();
        let mut out = Effects::new();
        for _ in 0..10_000 {
            let due = source.next_wake().at();
            let landing = flying
                .iter()
                .map(|(at, _)| *at)
                .min()
                .unwrap_or(Time::NEVER);
            let now = due.min(landing);
            if now == Time::NEVER {
                return log;
            }
            if due <= landing {
                source.wake(now, &mut NodeContext::alone(&mut out));
            } else {
                let index = flying.iter().position(|(at, _)| *at == landing).unwrap();
                let (finished, request) = flying.swap_remove(index);
                let completion = Completion {
                    id: request.id,
                    submitted: finished,
                    finished,
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
                assert_eq!(request.operation, Operation::Read);
                log.push((
                    request.hints.workload,
                    request.hints.process,
                    now.since(Time::ZERO).as_nanos() / 1_000_000,
                ));
                flying.push((now + Duration::from_millis(2), request));
            }
        }
        panic!("the run does not end");
    }

    #[test]
    fn each_workload_runs_on_a_timeline_of_its_own() {
        let log = run(SideBySide::new(vec![
            part(3, 0, false, 0),
            part(2, 10, false, 100),
        ]));
        assert_eq!(
            log,
            [(0, 1, 0), (0, 1, 3), (0, 1, 6), (1, 101, 10), (1, 101, 13)]
        );
    }

    #[test]
    fn a_run_ends_with_its_foreground() {
        let log = run(SideBySide::new(vec![
            part(3, 0, false, 0),
            part(u32::MAX, 1, true, 8),
        ]));
        // The foreground ends at 8 ms; the background issues nothing afterwards.
        assert_eq!(log.iter().filter(|entry| entry.0 == 0).count(), 3);
        assert!(log.iter().all(|entry| entry.2 <= 8), "{log:?}");
        assert!(log.contains(&(1, 9, 4)), "{log:?}");
    }

    #[test]
    fn the_length_of_a_run_is_known_if_nothing_is_in_the_background() {
        assert_eq!(
            SideBySide::new(vec![part(3, 0, false, 0), part(2, 0, false, 0)]).expected_requests(),
            Some(5)
        );
        assert_eq!(
            SideBySide::new(vec![part(3, 0, false, 0), part(2, 0, true, 0)]).expected_requests(),
            None
        );
    }

    #[test]
    #[should_panic(expected = "ends the run")]
    fn a_run_of_background_alone_is_a_mistake() {
        SideBySide::new(vec![part(1, 0, true, 0)]);
    }
}
