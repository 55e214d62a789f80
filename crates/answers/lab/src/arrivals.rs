//! Requests of a stack's workload, without the layers below the workload.

use crate::LabError;
use fullstroke_contract::{Effects, NodeContext, Operation, Request};
use fullstroke_stack::Stack;
use fullstroke_units::Time;

/// Operations with data transfer.
const MOVING: [Operation; 2] = [Operation::Read, Operation::Write];

/// Calls `each` with the reads and writes of the stack's workload and their times of arrival.
///
/// # Errors
/// Errors of the stack or of the workload. Also an error if arrival times depend on completions, or
/// if several hosts send requests.
pub fn arrivals(stack: &Stack, each: &mut dyn FnMut(Time, &Request)) -> Result<(), LabError> {
    let mut run = stack.build()?;
    let [host] = &mut run.hosts[..] else {
        return Err(LabError::NoTimes(
            "the stack has several hosts; expected one, or none",
        ));
    };
    if host.source.depends_on_completions() {
        return Err(LabError::NoTimes(
            "the workload waits for completions, which the formulas do not model; expected open arrivals, such as a trace with pace = \"timing\"",
        ));
    }
    let mut out = Effects::new();
    loop {
        let now = host.source.next_wake().at();
        if now == Time::NEVER {
            return Ok(());
        }
        host.source.wake(now, &mut NodeContext::alone(&mut out));
        if let Some(source) = out.take_stop() {
            return Err(LabError::Workload {
                candidate: stack.name().to_owned(),
                source,
            });
        }
        for request in out
            .requests()
            .filter(|request| MOVING.contains(&request.operation))
        {
            each(now, &request);
        }
    }
}
