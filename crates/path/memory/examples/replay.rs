//! Replays the calls of a program in a cache. `tools/memory-check.py` compares the result with the
//! kernel's.
//!
//! `cargo run --release -p fullstroke-memory --example replay KEYS.json CALLS SERVICE_US BEGIN_S`
//!
//! - KEYS.json has the keys of a `[memory]` table.
//! - CALLS has one call a line: its time in seconds, `read`, `write`, `fsync` or `mark`, and for
//!   `read` and `write` the offset and the number of bytes. A call begins after the end of the call
//!   before.
//! - SERVICE_US is the service time of a request in microseconds. The device serves one request
//!   after the other.
//! - BEGIN_S is the time of the cache's clock when the clock of the calls is 0. Periodic work of
//!   the cache follows its clock.
//!
//! The program prints JSON: the counters at each mark and at the end, and the end and the pages of
//! each write-back. Four times a second it also prints the number of dirty pages, of pages under
//! write-back, and of calls made.

// A program reads files and prints.
#![allow(clippy::disallowed_methods)]

use fullstroke_contract::{Object, RequestStatus};
use fullstroke_memory::{
    CacheOut, Counters, FileAccess, FileId, MemoryKeys, OperationAnswer, PageCache, PageIo,
    QueueLimits, Ticket,
};
use fullstroke_units::{Duration, Time};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::error::Error;

/// Interval of the samples of dirty pages.
const SAMPLE: Duration = Duration::from_millis(250);
/// Larger than any file of a device.
const SIZE: u64 = 1 << 50;
const OBJECT: Object = Object(1);

#[derive(Clone, Copy)]
enum Call {
    Read { offset: u64, bytes: u64 },
    Write { offset: u64, bytes: u64 },
    Fsync,
    Mark,
}

/// Parses a line of CALLS.
fn parse(line: &str) -> Result<(Time, Call), Box<dyn Error>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = |seconds: &str| -> Result<Time, Box<dyn Error>> {
        Ok(Time::from_nanos((seconds.parse::<f64>()? * 1e9) as u64))
    };
    Ok(match words[..] {
        [time, "read", offset, bytes] => (
            at(time)?,
            Call::Read {
                offset: offset.parse()?,
                bytes: bytes.parse()?,
            },
        ),
        [time, "write", offset, bytes] => (
            at(time)?,
            Call::Write {
                offset: offset.parse()?,
                bytes: bytes.parse()?,
            },
        ),
        [time, "fsync"] => (at(time)?, Call::Fsync),
        [time, "mark"] => (at(time)?, Call::Mark),
        _ => {
            return Err(
                "expected SECONDS read|write OFFSET BYTES, SECONDS fsync or SECONDS mark".into(),
            );
        }
    })
}

/// The device: one request after the other.
struct SerialDevice {
    service: Duration,
    /// End of each request, and true for a write.
    queue: VecDeque<(Time, PageIo, bool)>,
    free: Time,
}

impl SerialDevice {
    fn take(&mut self, now: Time, out: &mut CacheOut) {
        let reads = out.reads.drain(..).map(|io| (io, false));
        for (io, write) in reads.chain(out.writes.drain(..).map(|io| (io, true))) {
            self.free = self.free.max(now) + self.service;
            self.queue.push_back((self.free, io, write));
        }
    }

    fn next(&self) -> Time {
        self.queue.front().map_or(Time::NEVER, |&(end, ..)| end)
    }
}

struct CacheReplay {
    cache: PageCache,
    file: FileId,
    device: SerialDevice,
    out: CacheOut,
    now: Time,
    marks: Vec<Value>,
    written: Vec<(f64, u64)>,
    begin: Time,
    made: u64,
    samples: Vec<(f64, u64, u64)>,
    next_sample: Time,
}

impl CacheReplay {
    fn run(&mut self, calls: &[(Time, Call)]) {
        for &(at, call) in calls {
            while self.next() <= at {
                self.step();
            }
            self.now = self.now.max(at);
            if self.make(call) == OperationAnswer::Waits {
                while self.out.woken.is_empty() {
                    self.step();
                }
            }
            self.made += 1;
            self.out.woken.clear();
            self.device.take(self.now, &mut self.out);
        }
        // At the end the program waits for the I/O in flight, but not for pages that are still
        // dirty.
        while self.device.next() != Time::NEVER {
            self.step();
        }
    }

    fn make(&mut self, call: Call) -> OperationAnswer {
        let access = |offset, bytes| FileAccess::new(offset, bytes, SIZE);
        let (now, ticket) = (self.now, Ticket(0));
        let answer = match call {
            Call::Read { offset, bytes } => {
                self.cache
                    .read(now, self.file, access(offset, bytes), ticket, &mut self.out)
            }
            Call::Write { offset, bytes } => self.cache.write(
                now,
                self.file,
                access(offset, bytes),
                false,
                ticket,
                &mut self.out,
            ),
            Call::Fsync => self.cache.fsync(now, OBJECT, ticket, &mut self.out),
            Call::Mark => {
                self.mark();
                OperationAnswer::Done
            }
        };
        self.device.take(now, &mut self.out);
        answer
    }

    fn next(&self) -> Time {
        self.device.next().min(self.cache.next_wake())
    }

    /// Handles the next event.
    fn step(&mut self) {
        self.now = self.now.max(self.next());
        self.sample();
        if self.device.next() > self.now {
            self.cache.wake(self.now, &mut self.out);
        } else if let Some((_, io, write)) = self.device.queue.pop_front() {
            if write {
                self.written.push((self.seconds(self.now), io.run.pages));
                self.cache
                    .written(self.now, io.id, io.run, RequestStatus::Done, &mut self.out);
            } else {
                self.cache
                    .read_done(self.now, io.id, io.run, RequestStatus::Done, &mut self.out);
            }
        }
        self.device.take(self.now, &mut self.out);
    }

    /// Returns the seconds since the first call.
    fn seconds(&self, at: Time) -> f64 {
        at.since(self.begin).as_nanos() as f64 / 1e9
    }

    /// Takes the samples due now, before the events of the same time.
    fn sample(&mut self) {
        while self.next_sample <= self.now {
            let gauges = self.cache.gauges();
            self.samples.push((
                self.seconds(self.next_sample),
                gauges.dirty + gauges.writing,
                self.made,
            ));
            self.next_sample += SAMPLE;
        }
    }

    fn mark(&mut self) {
        let Counters {
            read,
            hits,
            misses,
            late,
            ahead,
            dirtied,
            ..
        } = self.cache.counters();
        let gauges = self.cache.gauges();
        self.marks.push(json!({
            "read": read, "hits": hits, "misses": misses, "late": late, "ahead": ahead,
            "dirtied": dirtied, "dirty": gauges.dirty, "cached": gauges.cached,
        }));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [keys, calls, service_us, begin_s] = &arguments[..] else {
        return Err("expected KEYS.json CALLS SERVICE_US BEGIN_S".into());
    };
    let begin = Duration::from_nanos((begin_s.parse::<f64>()? * 1e9) as u64);
    let service = Duration::from_nanos((service_us.parse::<f64>()? * 1e3) as u64);
    let keys: MemoryKeys = serde_json::from_str(&std::fs::read_to_string(keys)?)?;
    let mut cache = PageCache::new(&keys, QueueLimits::default())?;
    let file = cache.open(OBJECT);
    let text = std::fs::read_to_string(calls)?;
    let lines = text.lines().enumerate();
    let calls = lines
        .map(|(number, line)| {
            parse(line)
                .map(|(at, call)| (at + begin, call))
                .map_err(|error| format!("{calls}:{}: {error}", number + 1))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let device = SerialDevice {
        service,
        queue: VecDeque::new(),
        free: Time::ZERO,
    };
    let begin = Time::ZERO + begin;
    let mut replay = CacheReplay {
        cache,
        file,
        device,
        out: CacheOut::default(),
        now: begin,
        marks: Vec::new(),
        written: Vec::new(),
        begin,
        made: 0,
        samples: Vec::new(),
        next_sample: begin,
    };
    replay.run(&calls);
    replay.mark();
    println!(
        "{}",
        json!({ "marks": replay.marks, "written": replay.written, "samples": replay.samples })
    );
    Ok(())
}
