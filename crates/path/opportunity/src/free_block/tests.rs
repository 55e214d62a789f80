use super::*;
use crate::OpportunityLayer;
use crate::testing::{REVOLUTION_NS, SECTORS_PER_TRACK, site};
use fullstroke_contract::{
    Completion, Effect, Effects, LayersBelow, Node, NodeContext, Port, RequestId,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn keys(value: &Value) -> Keys {
    value.as_object().unwrap().clone()
}

fn refused(value: Value, site: &OpportunitySite) -> String {
    build(&keys(&value), site)
        .err()
        .map(|error| error.to_string())
        .unwrap()
}

#[test]
fn what_cannot_be_is_refused_at_its_key() {
    assert!(refused(json!({ "margin": "17ms" }), &site()).contains("margin"));
    assert!(refused(json!({ "overhead": "1s" }), &site()).contains("overhead"));
    assert!(refused(json!({ "margn": "1ms" }), &site()).contains("margn"));
    let volume = OpportunitySite {
        drive: Err(crate::UnknownArm::Several),
        ..site()
    };
    assert!(refused(json!({}), &volume).contains("several drives"));
}

/// Returns the extents sent down for a read of `lbn` at `now_ns`, in order.
fn goes_down(watch: &mut OpportunityLayer, now_ns: u64, lbn: u64) -> Vec<Extent> {
    let mut out = Effects::new();
    let gauges = [Gauge::default()];
    let mut cx = NodeContext {
        below: LayersBelow::new(&gauges, &[None]),
        out: &mut out,
    };
    let now = Time::from_nanos(now_ns);
    let request = Request {
        id: RequestId(lbn),
        extent: Extent::new(lbn, 1),
        ..Request::default()
    };
    watch.submit(now, Port::FIRST, request, &mut cx);
    let mut issued = Vec::new();
    let effects: Vec<Effect> = out.drain().collect();
    for effect in effects {
        let Effect::Issue { request, .. } = effect else {
            continue;
        };
        issued.push(request.extent);
        let done = Completion {
            id: request.id,
            submitted: now,
            finished: now,
            status: RequestStatus::Done,
            breakdown: Default::default(),
        };
        let mut cx = NodeContext {
            below: LayersBelow::new(&gauges, &[None]),
            out: &mut out,
        };
        watch.completed(now, Port::FIRST, done, &mut cx);
        out.drain().for_each(drop);
    }
    issued
}

const SECTOR_NS: u64 = REVOLUTION_NS / SECTORS_PER_TRACK;

proptest! {
    /// The scan reads each sector once. The sectors pass after `overhead` and `margin`, and end as
    /// long before the request's own sector. The request goes down directly after the read of the
    /// scan.
    #[test]
    fn what_is_read_passes_in_time(
        requests in prop::collection::vec((0u64..8000, 0u64..100_000_000), 1..50), overhead_us in 0u64..400, margin_us in 0u64..900,
    ) {
        let table = json!({ "overhead": format!("{overhead_us}us"), "margin": format!("{margin_us}us") });
        let mut watch = OpportunityLayer::new(vec![build(&keys(&table), &site()).unwrap()]);
        let mut read = SectorSet::default();
        let mut now = 0;
        let clear = (overhead_us + margin_us) * 1000;
        for (lbn, pause) in requests {
            now += pause;
            let down = goes_down(&mut watch, now, lbn);
            prop_assert_eq!(down.last(), Some(&Extent::new(lbn, 1)));
            let Some(own) = down.first().filter(|_| down.len() == 2) else { continue };
            let mut any = false;
            read.missing(own.start.0, own.end().0, |_, _| any = true);
            prop_assert!(any, "{:?} was read already", own);
            read.add(*own);
            prop_assert!(own.end().0 <= lbn && own.start.0 / SECTORS_PER_TRACK == lbn / SECTORS_PER_TRACK);
            let angle_ns = |lbn: u64| lbn % SECTORS_PER_TRACK * SECTOR_NS;
            let after = |ns: u64, from: u64| (ns + REVOLUTION_NS - from % REVOLUTION_NS) % REVOLUTION_NS;
            let leaves = now + clear;
            prop_assert!(after(angle_ns(own.start.0), leaves) < after(angle_ns(lbn), leaves), "it is ahead");
            prop_assert!(angle_ns(lbn) - angle_ns(own.end().0 - 1) >= SECTOR_NS + clear, "and clear of the request");
        }
    }
}

#[test]
fn a_request_that_is_not_alone_is_left_alone() {
    let mut free = build(&Keys::new(), &site()).unwrap();
    let request = Request {
        extent: Extent::new(70, 1),
        ..Request::default()
    };
    let seen = |inside, queue_length| {
        let arm = Gauge {
            queue_length,
            ..Gauge::default()
        };
        OpportunityView {
            now: Time::ZERO,
            inside,
            arm,
            standing: 0,
            cleaning: 0,
        }
    };
    assert!(!free.arrived(seen(2, 0), &request) && !free.arrived(seen(1, 1), &request));
    assert!(
        free.arrived(seen(1, 0), &request),
        "70 sectors pass before it"
    );
}
