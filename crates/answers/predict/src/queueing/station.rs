//! One arm and its queue: Poisson arrivals, and a general service time that depends on the number
//! of requests to choose from.
//!
//! The states are the queue lengths left behind by departures (the embedded Markov chain of M/G/1,
//! Kendall 1953; with service that depends on the queue, Harris 1967). Arrivals see the same
//! distribution of states. Poisson arrivals also see means over time. This gives the mean number,
//! and Little's law then gives the mean response. If the service does not depend on the queue, the
//! result is the formula of Pollaczek and Khinchine. The service time is modelled as a gamma
//! distribution with its two moments, so the number of arrivals during one service is negative
//! binomial.

use super::moments::Moments;

/// Largest number of states. A queue that needs more counts as unbounded.
const STATES: usize = 512;

/// Share of the last state at which the chain ends.
const RARE: f64 = 1e-9;

/// Result for an arm with a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StationResult {
    /// Mean number of requests, including the request in service.
    pub number: f64,
    /// Busy share of the arm's time.
    pub busy: f64,
    /// Service time.
    pub service: Moments,
}

impl StationResult {
    /// Returns the mean time before service, with `rate` arrivals per second.
    pub fn wait_s(&self, rate: f64) -> f64 {
        if rate > 0.0 {
            (self.number / rate - self.service.mean).max(0.0)
        } else {
            0.0
        }
    }
}

/// Computes the queue for `rate` arrivals per second. The first arrival after a pause takes
/// `first`. A request chosen from `n` takes `chosen(n)`. Returns `None` if the load exceeds the
/// capacity.
pub fn waiting(
    rate: f64,
    first: Moments,
    chosen: impl Fn(usize) -> Moments,
) -> Option<StationResult> {
    if rate <= 0.0 {
        return Some(StationResult {
            number: 0.0,
            busy: 0.0,
            service: first,
        });
    }
    // Tested at the longest queue, because the service becomes shorter with the choice: a load
    // above the rate of a single request may still be served.
    if rate * chosen(STATES).mean >= 1.0 {
        return None;
    }
    let mut chain = Chain::new(rate, first);
    let mut served = vec![(1.0, first)];
    while chain.probabilities.len() < STATES {
        let state = chain.probabilities.len();
        let service = chosen(state);
        let probability = chain.next(rate, service);
        served.push((probability, service));
        let total: f64 = chain.probabilities.iter().sum();
        // An arm that gains little from its queue may be overloaded in all states before the last.
        // The states then grow without bound until they exceed a float.
        if !total.is_finite() {
            return None;
        }
        // Weighted by the state, because the sum that must have converged is the mean number. A
        // state with more arrivals than services cannot be the last: later states are more
        // probable.
        if probability * (state as f64) < RARE * total && rate * service.mean < 1.0 {
            break;
        }
    }
    let total: f64 = chain.probabilities.iter().sum();
    let number = chain
        .probabilities
        .iter()
        .enumerate()
        .map(|(state, each)| state as f64 * each)
        .sum::<f64>();
    let service = Moments::mixed(served.into_iter());
    Some(StationResult {
        number: number / total,
        busy: (rate * service.mean).min(1.0),
        service,
    })
}

/// Probabilities of the states from 0 on, not normalised, with the data for the next state.
struct Chain {
    probabilities: Vec<f64>,
    /// For each state, the probability that more than a given number arrive in the service that
    /// begins in this state. The lists grow as needed.
    more: Vec<ArrivalCounts>,
}

impl Chain {
    fn new(rate: f64, first: Moments) -> Chain {
        Chain {
            probabilities: vec![1.0],
            more: vec![ArrivalCounts::new(rate, first)],
        }
    }

    /// Computes the next state, whose service is `service`. The chain falls to the state before as
    /// often as it rises above this state from below. This avoids differences of similar numbers
    /// (Ramaswami 1988).
    fn next(&mut self, rate: f64, service: Moments) -> f64 {
        let next = self.probabilities.len();
        let more = ArrivalCounts::new(rate, service);
        // In state 0 the service belongs to the arrival at the end of the pause.
        let mut up = self.probabilities[0] * self.more[0].than(next - 1);
        for state in 1..next {
            up += self.probabilities[state] * self.more[state].than(next - state);
        }
        let probability = up / more.none;
        self.probabilities.push(probability);
        self.more.push(more);
        probability
    }
}

/// Distribution of the number of arrivals in a service.
struct ArrivalCounts {
    /// Last probability, and its number of arrivals.
    last: (f64, f64),
    /// Parameters of the negative binomial distribution: `1 / c²`, and the probability of a
    /// success.
    shape: f64,
    part: f64,
    /// Probability of no arrival.
    none: f64,
    /// Item `n` is the probability of more than `n` arrivals.
    tails: Vec<f64>,
}

impl ArrivalCounts {
    fn new(rate: f64, service: Moments) -> ArrivalCounts {
        // A constant service has no variance and so no finite shape. With the smallest one here the
        // number of arrivals is Poisson to six digits.
        let shape = 1.0 / service.scv().max(1e-6);
        let load = rate * service.mean / shape;
        let none = (-shape * load.ln_1p()).exp();
        ArrivalCounts {
            last: (none, 0.0),
            shape,
            part: load / (1.0 + load),
            none,
            tails: vec![1.0 - none],
        }
    }

    /// Returns the probability of more than `count` arrivals.
    fn than(&mut self, count: usize) -> f64 {
        while self.tails.len() <= count {
            let (probability, number) = self.last;
            let next = probability * (number + self.shape) / (number + 1.0) * self.part;
            self.last = (next, number + 1.0);
            let tail = self.tails[self.tails.len() - 1] - next;
            self.tails.push(tail.max(0.0));
        }
        self.tails[count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::{Duration, Seed};

    /// Formula of Pollaczek and Khinchine.
    fn closed(rate: f64, service: Moments) -> f64 {
        let busy = rate * service.mean;
        service.mean + rate * service.square / (2.0 * (1.0 - busy))
    }

    #[test]
    fn service_that_does_not_depend_on_the_queue_waits_as_pollaczek_and_khinchine_say() {
        for scv in [0.0, 0.1, 0.5, 1.0, 2.0] {
            for busy in [0.05, 0.3, 0.6, 0.8, 0.9] {
                let service = Moments::varied(0.01, scv * 1e-4);
                let rate = busy / 0.01;
                let found = waiting(rate, service, |_| service).unwrap();
                let response = found.number / rate;
                let expected = closed(rate, service);
                assert!(
                    (response / expected - 1.0).abs() < 1e-4,
                    "{scv} {busy}: {response} {expected}"
                );
                assert!((found.busy - busy).abs() < 1e-9);
                assert!((found.wait_s(rate) - (expected - 0.01)).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn a_simulation_of_service_that_falls_with_the_queue_agrees() {
        let chosen = |waiting: usize| Moments::of(0.012 / (waiting as f64).powf(0.25));
        let (rate, first) = (70.0, Moments::of(0.013));
        let found = waiting(rate, first, chosen).unwrap();
        let mut random = Seed(5).stream("station");
        let (mut now, mut free, mut next) = (0.0, 0.0, 0.0);
        let (mut queue, mut area, mut last) = (0usize, 0.0, 0.0);
        let mut gap = || random.exponential(Duration::from_secs(1)).as_secs_f64() / rate;
        for _ in 0..400_000 {
            if queue == 0 || next < free {
                now = next;
                area += queue as f64 * (now - last);
                queue += 1;
                next = now + gap();
                if queue == 1 {
                    free = now + first.mean;
                }
            } else {
                now = free;
                area += queue as f64 * (now - last);
                queue -= 1;
                free = now + chosen(queue.max(1)).mean;
            }
            last = now;
        }
        assert!(
            (area / now / found.number - 1.0).abs() < 0.02,
            "{} {}",
            area / now,
            found.number
        );
    }

    #[test]
    fn more_than_can_be_served_has_no_answer_and_nothing_waits_for_nothing() {
        let service = Moments::of(0.01);
        assert_eq!(waiting(100.0, service, |_| service), None);
        assert_eq!(waiting(0.0, service, |_| service).unwrap().number, 0.0);
        // An arm that gains by its queue carries more load.
        assert!(
            waiting(105.0, service, |of| if of > 4 {
                Moments::of(0.007)
            } else {
                service
            })
            .is_some()
        );
    }
}
