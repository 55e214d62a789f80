//! `fullstroke run --replay-decisions`: repeats the decisions of a live run.

use crate::output::{CommandFailure, CommandOutput};
use fullstroke_live::{RecordVerdict, replay_decisions};
use fullstroke_stack::{Overrides, Stack};
use std::path::Path;

/// Feeds a record of `serve` to the virtual clock. The simulation must make the same decisions in
/// the same order.
pub(crate) fn execute(
    stack: &Path,
    overrides: &Overrides,
    record: &Path,
    output: &CommandOutput,
) -> Result<(), CommandFailure> {
    let stack = Stack::load_for_clients(stack, overrides).map_err(CommandFailure::input)?;
    let verdict = replay_decisions(&stack, record).map_err(CommandFailure::input)?;
    // The difference is printed before the status, because the status alone does not say which
    // request differs.
    output.show(&verdict, describe(&verdict))?;
    if verdict.alike == verdict.requests {
        Ok(())
    } else {
        Err(CommandFailure::Checks)
    }
}

fn describe(verdict: &RecordVerdict) -> String {
    let RecordVerdict {
        requests,
        orders,
        alike,
        ..
    } = verdict;
    let given = if *orders == 0 {
        String::new()
    } else {
        format!(" and {orders} orders to members")
    };
    match &verdict.first_difference {
        None => format!("the same decisions in the same order for all {requests} requests{given}"),
        Some(difference) => format!(
            "{alike} of {requests} requests{given} were decided alike; the first that was not is request {}: \
             recorded as number {} to finish, at {} ns; replayed as number {}, at {} ns",
            difference.request,
            difference.completion[0],
            difference.finished_ns[0],
            difference.completion[1],
            difference.finished_ns[1],
        ),
    }
}
