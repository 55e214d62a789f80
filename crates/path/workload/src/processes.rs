//! Many processes as one source.

use crate::process::{LoopProcess, ProcessIdentity, number_of};
use crate::process_config::ProcessesConfig;
use fullstroke_contract::{
    Completion, ConfigError, Effects, Node, NodeContext, Port, Source, Wake,
};
use fullstroke_units::{Duration, Sectors, Seed, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A source that runs many processes.
///
/// Processes are numbered from 1 in the order of the file. The number is the `process` of their
/// requests' hints. Each process draws from random streams named after its name and its number
/// within this name, so another entry or an additional process does not change other processes'
/// requests.
pub struct ProcessSource {
    processes: Vec<LoopProcess>,
    /// Issue time of a thinking process's next request, and the process's index.
    thinking: BinaryHeap<Reverse<(Time, u32)>>,
    left: u64,
    end: Time,
    expected: Option<u64>,
}

impl ProcessSource {
    /// The processes on a volume of `capacity`.
    ///
    /// # Errors
    /// Names the impossible key.
    pub fn new(
        config: &ProcessesConfig,
        capacity: Sectors,
        seed: Seed,
    ) -> Result<ProcessSource, ConfigError> {
        config.check()?;
        let mut processes = Vec::new();
        let mut thinking = BinaryHeap::new();
        let mut of_name: BTreeMap<&str, u32> = BTreeMap::new();
        let mut first_stream = 1;
        for (entry, kind) in config.processes.iter().enumerate() {
            for within_entry in 0..kind.count {
                let within_name = of_name.entry(&kind.name).or_default();
                *within_name += 1;
                let index = processes.len() as u32;
                let identity = ProcessIdentity {
                    number: index + 1,
                    within_entry,
                    within_name: *within_name,
                    first_stream,
                };
                let process = LoopProcess::new(kind, &identity, capacity, seed)
                    .map_err(|error| error.below(&format!("processes[{entry}]")))?;
                first_stream += process.streams();
                processes.push(process);
                // One entry for each request that a process may have outstanding.
                thinking.extend((0..kind.depth).map(|_| Reverse((Time::ZERO, index))));
            }
        }
        Ok(ProcessSource {
            processes,
            thinking,
            left: config.requests.unwrap_or(u64::MAX),
            end: config
                .duration
                .map_or(Time::NEVER, |duration| Time::ZERO + duration),
            // With a duration, the end may come before the last request, so the number is unknown.
            expected: config.requests.filter(|_| config.duration.is_none()),
        })
    }

    fn issue(&mut self, index: u32, out: &mut Effects) {
        self.left -= 1;
        out.issue(0, self.processes[index as usize].next());
    }
}

impl Node for ProcessSource {
    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        while let Some(&Reverse((due, index))) = self.thinking.peek()
            && due <= now
            && due < self.end
            && self.left > 0
        {
            self.thinking.pop();
            self.issue(index, cx.out);
        }
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        if self.left == 0 || now >= self.end {
            return;
        }
        let index = number_of(completion.id) - 1;
        match self.processes[index as usize].think() {
            Duration::ZERO => self.issue(index, cx.out),
            pause => self.thinking.push(Reverse((now + pause, index))),
        }
    }

    fn next_wake(&self) -> Wake {
        match self.thinking.peek() {
            Some(&Reverse((due, _))) if self.left > 0 && due < self.end => due.into(),
            _ => Wake::NEVER,
        }
    }
}

impl Source for ProcessSource {
    fn expected_requests(&self) -> Option<u64> {
        self.expected
    }
}

#[cfg(test)]
#[path = "processes_tests.rs"]
mod tests;
