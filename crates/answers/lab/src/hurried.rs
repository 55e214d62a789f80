//! Open arrivals at a multiple of their rate.

use fullstroke_contract::{Completion, Counters, Node, NodeContext, Port, Source, Wake};
use fullstroke_units::Time;

/// A source of open arrivals at `load` times its rate. The requests and their order stay the same.
/// The wrapper owns the source because the source needs a clock of its own: the nodes of a graph
/// share one clock.
pub(crate) struct AcceleratedSource {
    source: Box<dyn Source>,
    load: f64,
}

impl AcceleratedSource {
    /// # Panics
    /// If `load` is not above 0, or if the source's requests wait for completions. The drives
    /// determine the times of completions, so such a source cannot be hurried.
    pub(crate) fn new(source: Box<dyn Source>, load: f64) -> AcceleratedSource {
        assert!(load > 0.0 && load.is_finite(), "a load of {load} times");
        assert!(
            !source.depends_on_completions(),
            "only open arrivals can be hurried"
        );
        AcceleratedSource { source, load }
    }

    /// Converts a time of the source to the hurried clock.
    fn hurried(&self, at: Time) -> Time {
        match at {
            Time::NEVER => Time::NEVER,
            at => Time::from_nanos((at.as_nanos() as f64 / self.load).round() as u64),
        }
    }
}

impl Node for AcceleratedSource {
    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        // Several times of the source may round to one hurried time, so the loop wakes the source
        // for all due times.
        loop {
            let due = self.source.next_wake().at();
            if due == Time::NEVER || self.hurried(due) > now {
                return;
            }
            self.source.wake(due, cx);
        }
    }

    fn completed(
        &mut self,
        now: Time,
        from: Port,
        completion: Completion,
        cx: &mut NodeContext<'_>,
    ) {
        self.source.completed(now, from, completion, cx);
    }

    fn next_wake(&self) -> Wake {
        self.hurried(self.source.next_wake().at()).into()
    }

    fn count(&self, now: Time, counters: &mut Counters) {
        self.source.count(now, counters);
    }
}

impl Source for AcceleratedSource {
    fn depends_on_completions(&self) -> bool {
        false
    }

    fn expected_requests(&self) -> Option<u64> {
        self.source.expected_requests()
    }
}

/// Returns the source of a candidate's run at `load`.
pub(crate) fn at_load(source: Box<dyn Source>, load: f64) -> Box<dyn Source> {
    if load == 1.0 {
        source
    } else {
        Box::new(AcceleratedSource::new(source, load))
    }
}
