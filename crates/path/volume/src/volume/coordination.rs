//! The queue length in the hints of all parts of a request (Qian & Wang, section 6).

use fullstroke_contract::LayersBelow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rule for the selection of one queue length for all parts of a request. All members count, not
/// only the members of the request: "the maximum of all disk queue lengths" (section 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Coordination {
    /// The longest queue. Early service of one part is useless while another part waits.
    Longest,
    /// The shortest queue. Each part is served as early as the fastest part can be.
    Shortest,
}

impl Coordination {
    /// Returns the queue length of the selected member.
    #[inline]
    pub(super) fn queue(self, below: LayersBelow<'_>, members: usize) -> u32 {
        let queues = (0..members)
            .map(|member| below.gauge(member))
            .filter(|gauge| gauge.alive);
        let queues = queues.map(|gauge| gauge.queue_length);
        match self {
            Coordination::Longest => queues.max(),
            Coordination::Shortest => queues.min(),
        }
        .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Volume;
    use crate::bytes::build;
    use fullstroke_contract::{Effect, Effects, Extent, Gauge, Node, NodeContext, Port, Request};
    use fullstroke_units::Time;
    use serde_json::json;

    /// Returns the hints in the parts of a read of a row, with these queues at the members.
    fn read_hints(coordination: Option<Coordination>, queues: [u32; 5]) -> Vec<u32> {
        let layout = build("raid5", &json!({ "chunk": 4096 }), &[12_800; 5]).unwrap();
        let mut volume = Volume::new(layout).coordinating(coordination);
        let gauges = queues.map(|queue_length| Gauge {
            queue_length,
            alive: queue_length < 90,
            ..Gauge::default()
        });
        let tables = [const { None }; 5];
        let mut out = Effects::new();
        let read = Request {
            extent: Extent::new(0, 32),
            ..Request::default()
        };
        let below = LayersBelow::new(&gauges, &tables);
        volume.submit(
            Time::ZERO,
            Port::FIRST,
            read,
            &mut NodeContext {
                below,
                out: &mut out,
            },
        );
        let queue = |effect: Effect| match effect {
            Effect::Issue { request, .. } => request.hints.stripe_queue,
            other => panic!("{other:?}"),
        };
        out.drain().map(queue).collect()
    }

    #[test]
    fn all_parts_are_told_the_same_queue_of_all_members_that_live() {
        assert_eq!(
            read_hints(Some(Coordination::Longest), [3, 0, 7, 1, 9]),
            [9; 4]
        );
        assert_eq!(
            read_hints(Some(Coordination::Shortest), [3, 2, 7, 1, 9]),
            [1; 4]
        );
        assert_eq!(
            read_hints(Some(Coordination::Longest), [3, 2, 7, 1, 90]),
            [7; 4]
        );
        assert_eq!(read_hints(None, [3, 0, 7, 1, 9]), [0; 4]);
    }
}
