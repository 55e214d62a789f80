//! Decides from the number of requests in flight whether the drives carry the load. The crate's
//! documentation describes the method.

use crate::student::student_point;
use fullstroke_units::{Duration, Time};
use serde::Serialize;
use std::fmt;

/// Largest number of spans of a run; at least half of the spans are in use.
const SPANS: usize = 512;

/// The first spans are `2^FIRST_SHIFT` ns long.
const FIRST_SHIFT: u32 = 10;

/// Least number of groups of spans whose growth is tested, if there are so many spans. With fewer
/// than `SPANS_FOR_TEST` spans nothing is tested.
const GROUPS: usize = 32;
const SPANS_FOR_TEST: usize = 8;

/// Least number of requests for a verdict, as for intervals: 20 batches of 16.
const REQUESTS_MIN: u64 = 320;

/// A queue grows if chance explains the growth with less than 0.5 %.
const CONFIDENCE: f64 = 0.995;

/// The requests in flight at the last arrival matter from this share of all requests on. A load
/// within the capacity leaves a few, however long the load is.
const MATTERS: f64 = 0.01;

/// The queue counts as empty below this share of its final length.
const EMPTY: f64 = 0.05;

/// Requests that arrived and finished in each span of a run. Memory does not grow with the run.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    shift: u32,
    spans: Vec<RequestSpan>,
    requests: u64,
    first_arrival: Time,
    last_arrival: Time,
    last_finish: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct RequestSpan {
    arrived: u64,
    finished: u64,
}

/// Pending requests of an open load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Backlog {
    /// Largest number of requests in flight, sampled at least 256 times a run.
    pub outstanding_max: u64,
    /// Number of requests in flight at the last arrival.
    pub outstanding_at_last_arrival: u64,
    /// Seconds from the last arrival to the last completion.
    pub behind_s: f64,
    /// True if so many requests piled up that bursts decide the response times, although the drives
    /// carry the load as a whole.
    pub bursts: bool,
}

/// A load above the capacity of the drives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overload {
    /// Share of the offered load that is carried, 0 to 1. The time in which the queue grew, divided
    /// by the sum of that time and the time to empty the queue.
    pub carried_share: f64,
    /// Number of requests in flight at the last arrival.
    pub outstanding_at_last_arrival: u64,
    /// Seconds from the last arrival to the last completion.
    pub behind_s: f64,
    /// Utilisation of the busiest drive over the whole run, 0 to 1.
    pub busiest_utilisation: f64,
    /// True if response times grow with the length of the load. Then no mean and no interval
    /// describes the response times.
    pub grows: bool,
    /// The verdict as a sentence.
    pub sentence: String,
}

impl Default for Flow {
    fn default() -> Flow {
        Flow {
            shift: FIRST_SHIFT,
            spans: vec![RequestSpan::default(); SPANS],
            requests: 0,
            first_arrival: Time::NEVER,
            last_arrival: Time::ZERO,
            last_finish: Time::ZERO,
        }
    }
}

impl Flow {
    /// Records a finished request.
    #[inline]
    pub(crate) fn record(&mut self, arrived: Time, finished: Time) {
        self.requests += 1;
        self.first_arrival = self.first_arrival.min(arrived);
        self.last_arrival = self.last_arrival.max(arrived);
        self.last_finish = self.last_finish.max(finished);
        while finished.as_nanos() >> self.shift >= SPANS as u64 {
            self.merge_neighbours();
        }
        // A request finishes no earlier than it arrives, so the array has room for both spans.
        let (arrived, finished) = (self.span_of(arrived), self.span_of(finished));
        self.spans[arrived].arrived += 1;
        self.spans[finished].finished += 1;
    }

    #[inline]
    fn span_of(&self, at: Time) -> usize {
        (at.as_nanos() >> self.shift) as usize
    }

    #[cold]
    fn merge_neighbours(&mut self) {
        for index in 0..SPANS / 2 {
            let (one, other) = (self.spans[2 * index], self.spans[2 * index + 1]);
            self.spans[index] = RequestSpan {
                arrived: one.arrived + other.arrived,
                finished: one.finished + other.finished,
            };
        }
        self.spans[SPANS / 2..].fill(RequestSpan::default());
        self.shift += 1;
    }

    /// Returns the number of requests in flight at the end of each span, from the span of the first
    /// arrival to that of the last.
    fn outstanding(&self) -> Vec<u64> {
        if self.requests == 0 {
            return Vec::new();
        }
        let mut under_way = 0;
        let spans = &self.spans[self.span_of(self.first_arrival)..=self.span_of(self.last_arrival)];
        spans
            .iter()
            .map(|span| {
                under_way = under_way + span.arrived - span.finished;
                under_way
            })
            .collect()
    }

    fn behind(&self) -> Duration {
        self.last_finish.saturating_since(self.last_arrival)
    }

    /// Returns the pending requests; `None` if nothing arrived.
    pub(crate) fn backlog(&self) -> Option<Backlog> {
        let outstanding = self.outstanding();
        let most = *outstanding.iter().max()?;
        let matters =
            most as f64 >= MATTERS * self.requests as f64 && self.requests >= REQUESTS_MIN;
        Some(Backlog {
            outstanding_max: most,
            outstanding_at_last_arrival: *outstanding.last()?,
            behind_s: self.behind().as_secs_f64(),
            bursts: matters && most >= REQUESTS_MIN / 4,
        })
    }

    /// Returns the verdict if the queue grew to the end. `utilisations` are those of the drives.
    pub(crate) fn overload(&self, utilisations: impl Iterator<Item = f64>) -> Option<Overload> {
        let outstanding = self.outstanding();
        let left = *outstanding.last()?;
        let matters = left as f64 >= MATTERS * self.requests as f64;
        if self.requests < REQUESTS_MIN || !matters || !self.grows(&outstanding) {
            return None;
        }
        let overload = Overload {
            carried_share: self.carried_share(&outstanding),
            outstanding_at_last_arrival: left,
            behind_s: self.behind().as_secs_f64(),
            busiest_utilisation: utilisations.fold(f64::NAN, f64::max),
            grows: true,
            sentence: String::new(),
        };
        Some(Overload {
            sentence: overload.in_words(),
            ..overload
        })
    }

    /// Returns true if the number of requests in flight rose from group to group of spans more
    /// steadily than chance explains. A burst at the end is one large step among many small ones,
    /// so a burst is not growth. A queue that rises and falls is not growth either, because the
    /// steps cancel.
    fn grows(&self, outstanding: &[u64]) -> bool {
        let Some((&last, whole)) = outstanding.split_last() else {
            return false;
        };
        if whole.len() < SPANS_FOR_TEST {
            // Too few spans for a test: nearly all of the run came after the last arrival. The
            // queue grew if half of all requests were still in flight.
            return 2 * last >= self.requests;
        }
        let group = (whole.len() / GROUPS).max(1);
        let reached = whole.iter().skip(group - 1).step_by(group);
        // The first group grows from an empty queue.
        let mut before = 0.0;
        let steps: Vec<f64> = reached
            .map(|&reached| {
                let step = reached as f64 - before;
                before = reached as f64;
                step
            })
            .collect();
        let count = steps.len() as f64;
        let mean = steps.iter().sum::<f64>() / count;
        let squares: f64 = steps.iter().map(|step| (step - mean).powi(2)).sum();
        // The standard error of the mean step; the mean was estimated from the same steps.
        let error = (squares / (count * (count - 1.0))).sqrt();
        // One-sided: a queue that shrinks is no overload.
        mean > 0.0 && mean > student_point(CONFIDENCE, count - 1.0) * error
    }

    /// Returns the time in which the queue grew since it was last empty, divided by the sum of that
    /// time and the time to empty the queue. If the load is too large from the beginning, this is
    /// the duration of the load divided by the time to serve the load.
    fn carried_share(&self, outstanding: &[u64]) -> f64 {
        let left = outstanding.last().copied().unwrap_or(0).max(1) as f64;
        let empty = outstanding
            .iter()
            .rposition(|&under_way| under_way as f64 <= EMPTY * left);
        let (from, under_way) = match empty {
            None => (self.first_arrival, 0.0),
            Some(index) => {
                let span = self.span_of(self.first_arrival) + index + 1;
                (
                    Time::from_nanos((span as u64) << self.shift),
                    outstanding[index] as f64,
                )
            }
        };
        let grew_s = self.last_arrival.saturating_since(from).as_secs_f64();
        // The queue had `under_way` requests when the growth began, so only the rest of the final
        // queue counts as time to catch up.
        let emptied_s = self.behind().as_secs_f64() * (1.0 - under_way / left);
        if grew_s + emptied_s > 0.0 {
            grew_s / (grew_s + emptied_s)
        } else {
            0.0
        }
    }
}

impl Overload {
    /// Returns the verdict for a job that falls behind its given rate. The response times of such a
    /// job do not grow, because the job waits.
    pub fn of_rate(
        job: &str,
        carried_share: f64,
        behind_s: f64,
        busiest_utilisation: f64,
    ) -> Overload {
        let sentence = format!(
            "The drives do not keep up with the rate of job {job}: the job gets {carried_share:.2} of its rate, and was {behind_s:.1} s late at the end"
        );
        Overload {
            carried_share,
            outstanding_at_last_arrival: 0,
            behind_s,
            busiest_utilisation,
            grows: false,
            sentence,
        }
    }

    fn in_words(&self) -> String {
        let Overload {
            carried_share,
            outstanding_at_last_arrival,
            behind_s,
            busiest_utilisation,
            ..
        } = self;
        let mut words = format!(
            "The drives do not keep up with the arrivals, so response times grow with the length of the load; the array serves {carried_share:.2} of the load ({outstanding_at_last_arrival} requests wait at the last arrival, {behind_s:.1} s of work)"
        );
        // Below nine tenths the bottleneck is not the arm of the busiest drive but, for example, a
        // queue depth, a barrier or a lock.
        if *busiest_utilisation < 0.9 {
            words.push_str(&format!(
                ", though the busiest drive is busy {:.0} % of the time: something above the drives holds requests back",
                100.0 * busiest_utilisation
            ));
        }
        words
    }
}

impl fmt::Display for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::{Random, Seed};

    /// Simulates one server, first come first served. Response times follow from the arrivals
    /// alone. `gap_ns` gives the time to the next arrival.
    fn served(
        requests: u64,
        service_ns: f64,
        mut gap_ns: impl FnMut(u64) -> f64,
        random: &mut Random,
    ) -> Flow {
        let mut flow = Flow::default();
        let (mut arrives, mut free) = (0.0, 0.0);
        for number in 0..requests {
            arrives += gap_ns(number);
            free = f64::max(free, arrives) + service_ns * (0.5 + random.unit());
            flow.record(
                Time::from_nanos(arrives as u64),
                Time::from_nanos(free as u64),
            );
        }
        flow
    }

    /// Simulates Poisson arrivals at `load` times the capacity of one server.
    fn poisson(requests: u64, load: f64, seed: u64) -> Flow {
        let mut random = Seed(seed).stream("arrivals");
        let mut service = Seed(seed).stream("service");
        let gap = Duration::from_nanos((10e6 / load) as u64);
        served(
            requests,
            10e6,
            |_| random.exponential(gap).as_nanos() as f64,
            &mut service,
        )
    }

    fn overload(flow: &Flow) -> Option<Overload> {
        flow.overload([0.99].into_iter())
    }

    #[test]
    fn a_load_that_is_carried_is_never_called_too_much() {
        for seed in 0..200 {
            for (requests, load) in [(1_000, 0.9), (5_000, 0.9), (20_000, 0.95)] {
                let flow = poisson(requests, load, seed);
                assert_eq!(
                    overload(&flow),
                    None,
                    "seed {seed}, {requests} requests at {load}"
                );
            }
        }
    }

    #[test]
    fn a_load_that_is_too_much_is_told_with_the_share_that_is_carried() {
        for seed in 0..50 {
            for load in [1.05, 1.2, 3.0, 40.0] {
                let flow = poisson(20_000, load, seed);
                let overload = overload(&flow).unwrap_or_else(|| panic!("seed {seed} at {load}"));
                let error = (overload.carried_share * load - 1.0).abs();
                assert!(
                    error < 0.04,
                    "seed {seed}: {} of {load}",
                    overload.carried_share
                );
            }
        }
    }

    #[test]
    fn a_burst_at_the_end_is_a_burst_and_no_overload() {
        let gap = |number| if number < 4_500 { 20e6 } else { 0.1e6 };
        let flow = served(5_000, 10e6, gap, &mut Seed(1).stream("service"));
        assert_eq!(overload(&flow), None);
        let backlog = flow.backlog().unwrap();
        assert!(
            backlog.bursts && backlog.outstanding_at_last_arrival > 450,
            "{backlog:?}"
        );
    }

    #[test]
    fn a_queue_that_grows_from_the_middle_on_counts_from_there() {
        let gap = |number| if number < 2_000 { 20e6 } else { 5e6 };
        let flow = served(10_000, 10e6, gap, &mut Seed(1).stream("service"));
        let overload = overload(&flow).unwrap();
        assert!((overload.carried_share - 0.5).abs() < 0.02, "{overload:?}");
    }

    #[test]
    fn bursts_that_are_worked_off_are_carried() {
        let gap = |number: u64| {
            if number.is_multiple_of(1_000) {
                15e9
            } else {
                0.01e6
            }
        };
        let flow = served(20_000, 10e6, gap, &mut Seed(1).stream("service"));
        assert_eq!(overload(&flow), None);
        assert!(flow.backlog().unwrap().bursts);
    }

    #[test]
    fn what_arrives_at_once_is_carried_not_at_all() {
        let flow = served(1_000, 10e6, |_| 0.0, &mut Seed(1).stream("service"));
        assert_eq!(overload(&flow).unwrap().carried_share, 0.0);
    }

    #[test]
    fn of_few_requests_nothing_is_claimed() {
        assert_eq!(overload(&poisson(300, 3.0, 1)), None);
        assert_eq!(
            (Flow::default().backlog(), overload(&Flow::default())),
            (None, None)
        );
    }
}
