//! One arm and what waits for it: Poisson arrivals, general service that depends on how many there
//! are to choose from.
//!
//! The states are those that a departure leaves behind (the embedded Markov chain of M/G/1, Kendall
//! 1953; with service that depends on the queue, Harris 1967). Arrivals see what departures leave,
//! and Poisson arrivals see means over time, so that the mean number follows, and with Little's
//! law the mean response. Where service does not depend on the queue this is Pollaczek's and
//! Khinchine's formula. A service is taken to be gamma distributed with its two moments, which
//! makes the arrivals during one negative binomial.

use super::moments::Moments;

/// States beyond which the queue is taken to have no end.
const STATES: usize = 512;

/// The chain ends where a state is this rare.
const RARE: f64 = 1e-9;

/// What an arm with a queue comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waiting {
    /// Mean number of requests, the one in service included.
    pub number: f64,
    /// The share of the time in which the arm is busy.
    pub busy: f64,
    /// Mean service.
    pub service: Moments,
}

impl Waiting {
    /// Mean time before service, at arrivals of `rate` a second.
    pub fn wait_s(&self, rate: f64) -> f64 {
        if rate > 0.0 {
            (self.number / rate - self.service.mean).max(0.0)
        } else {
            0.0
        }
    }
}

/// Arrivals at `rate` a second, of which the first after a pause takes `first`, and one that is
/// chosen of `n` takes `chosen(n)`. `None` if more arrive than can be served.
pub fn waiting(rate: f64, first: Moments, chosen: impl Fn(usize) -> Moments) -> Option<Waiting> {
    if rate <= 0.0 {
        return Some(Waiting {
            number: 0.0,
            busy: 0.0,
            service: first,
        });
    }
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
        if !total.is_finite() {
            return None;
        }
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
    Some(Waiting {
        number: number / total,
        busy: (rate * service.mean).min(1.0),
        service,
    })
}

/// The states from 0 on, not normalised, and what is needed for the next.
struct Chain {
    probabilities: Vec<f64>,
    /// For each state, the probability that more than so many arrive in the service that begins
    /// there; grown as far as is needed.
    more: Vec<More>,
}

impl Chain {
    fn new(rate: f64, first: Moments) -> Chain {
        Chain {
            probabilities: vec![1.0],
            more: vec![More::new(rate, first)],
        }
    }

    /// The next state, whose service is `service`. As often as the chain falls to the state before
    /// it, it rises over that from below (no difference of near numbers: Ramaswami 1988).
    fn next(&mut self, rate: f64, service: Moments) -> f64 {
        let next = self.probabilities.len();
        let more = More::new(rate, service);
        // From 0 the service is that of the arrival that ends the pause.
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

/// The distribution of the number of arrivals in a service.
struct More {
    /// The last probability, and of how many.
    last: (f64, f64),
    /// `1 / c²`, and the part of a success.
    shape: f64,
    part: f64,
    /// The probability of none.
    none: f64,
    /// Item `n`: the probability of more than `n`.
    tails: Vec<f64>,
}

impl More {
    fn new(rate: f64, service: Moments) -> More {
        let shape = 1.0 / service.scv().max(1e-6);
        let load = rate * service.mean / shape;
        let none = (-shape * load.ln_1p()).exp();
        More {
            last: (none, 0.0),
            shape,
            part: load / (1.0 + load),
            none,
            tails: vec![1.0 - none],
        }
    }

    /// The probability of more than `count`.
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

    /// Pollaczek and Khinchine.
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
        // What gains by its queue carries more.
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
