//! A node that forwards everything.

use fullstroke_contract::{Completion, Node, NodeContext, Port, Request, Wake};
use fullstroke_units::Time;

/// Forwards requests downward, and completions and notices upward, unchanged.
pub struct Forward;

impl Node for Forward {
    fn submit(&mut self, _: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        cx.out.issue(0, request);
    }
    fn completed(&mut self, _: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        cx.out.complete(completion);
    }
    fn wake(&mut self, _: Time, _: &mut NodeContext<'_>) {}
    fn next_wake(&self) -> Wake {
        Wake::NEVER
    }
}
