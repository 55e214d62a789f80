//! Measures the cost of an elevator alone. The load has 256 processes and 512 requests. Each
//! process reads or writes 4 KiB, at random or sequentially. The device completes in order, with 32
//! requests in flight.
//!
//! `cargo run --release -p fullstroke-host --example elevator_speed [NAME..]`

// The example measures real time, which the layers must not know.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use fullstroke_contract::registry::Keys;
use fullstroke_contract::{Extent, Gauge, Operation};
use fullstroke_host::block::{Queued, Requests};
use fullstroke_host::elevator::{Context, Elevator, ElevatorSite, REGISTRY};
use fullstroke_units::{Duration, Random, Sectors, Seed, Time};
use std::collections::VecDeque;
use std::time::Instant;

const REQUESTS: u32 = 2_000_000;
const PROCESSES: u32 = 256;
const WAITING: u32 = 512;
const QUEUE_DEPTH: u32 = 32;
const CAPACITY: u64 = 1 << 30;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let site = ElevatorSite {
        queue_depth: QUEUE_DEPTH,
        nr_requests: WAITING,
        capacity: Sectors(CAPACITY),
        drive: false,
        clock: fullstroke_host::TickClock::EXACT,
    };
    for entry in REGISTRY
        .iter()
        .filter(|entry| wanted.is_empty() || wanted.iter().any(|name| name == entry.name))
    {
        for sequential in [false, true] {
            let Ok(elevator) = (entry.build.build)(&Keys::new(), &site) else {
                println!("{}: not over a volume", entry.name);
                break;
            };
            let begin = Instant::now();
            let simulated = Loops::new(sequential).run(elevator);
            let nanoseconds = begin.elapsed().as_nanos() as f64 / f64::from(REQUESTS);
            let kind = if sequential { "sequential" } else { "random" };
            println!(
                "{:14} {kind:10} {nanoseconds:5.0} ns a request, {simulated:?} simulated",
                entry.name
            );
        }
    }
}

/// Closed loops and their device.
struct Loops {
    sequential: bool,
    random: Random,
    requests: Requests,
    positions: Vec<u64>,
    device: VecDeque<u32>,
    now: Time,
}

impl Loops {
    fn new(sequential: bool) -> Loops {
        Loops {
            sequential,
            random: Seed(1).stream("addresses"),
            requests: Requests::default(),
            positions: (0..PROCESSES)
                .map(|process| u64::from(process) << 22)
                .collect(),
            device: VecDeque::new(),
            now: Time::ZERO,
        }
    }

    /// Runs to the end and returns the simulated time.
    fn run(mut self, mut elevator: Box<dyn Elevator>) -> Duration {
        let mut waiting = WAITING;
        (0..WAITING).for_each(|number| self.ask(number % PROCESSES, elevator.as_mut()));
        for _ in 0..REQUESTS {
            while (self.device.len() as u32) < QUEUE_DEPTH && waiting > 0 {
                if self.send(waiting, elevator.as_mut()) {
                    waiting -= 1;
                } else if self.device.is_empty() {
                    self.now = elevator.next_wake();
                } else {
                    break;
                }
            }
            self.now += Duration::from_micros(50);
            let done = self
                .device
                .pop_front()
                .expect("an idle device is sent something");
            elevator.completed(self.now, done, &self.requests);
            let process = self.requests.take(done).process;
            self.ask(process, elevator.as_mut());
            waiting += 1;
        }
        self.now.since(Time::ZERO)
    }

    fn ask(&mut self, process: u32, elevator: &mut dyn Elevator) {
        let position = &mut self.positions[process as usize];
        let start = if self.sequential {
            *position
        } else {
            self.random.below(CAPACITY / 8) * 8
        };
        *position = (start + 8) % CAPACITY;
        let mut request = Queued::default();
        request.extent = Extent::new(start, 8);
        request.process = process;
        request.queued = self.now;
        // Every fourth process sends asynchronous writes.
        if process.is_multiple_of(4) {
            request.operation = Operation::Write;
            request.synchronous = false;
        }
        let slot = self.requests.keep(request);
        elevator.add(self.now, slot, &self.requests);
    }

    fn send(&mut self, waiting: u32, elevator: &mut dyn Elevator) -> bool {
        let context = Context {
            requests: &self.requests,
            waiting,
            issued: self.device.len() as u32,
            queue_depth: QUEUE_DEPTH,
            device: Gauge::default(),
            tracks: None,
            stripes: None,
        };
        let Some(slot) = elevator.dispatch(self.now, &context) else {
            return false;
        };
        self.requests[slot].dispatched = self.now;
        self.device.push_back(slot);
        true
    }
}
