//! Random requests on a model, with a constant number outstanding.

use fullstroke_contract::{
    Effect, Effects, Extent, Node, NodeContext, Operation, Port, Request, RequestId,
};
use fullstroke_drive::DriveModel;
use fullstroke_units::{Duration, Time};

/// Time from an answer to the host's next request.
const HOST: Duration = Duration::from_micros(20);

/// Response times of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ClosedTimes {
    pub(super) mean_ms: f64,
    pub(super) deviation_ms: f64,
    /// 10th and 90th percentile.
    pub(super) middle_ms: (f64, f64),
    pub(super) p99_ms: f64,
    pub(super) longest_ms: f64,
    pub(super) per_s: f64,
}

/// Runs `requests` random requests of `bytes` with `depth` outstanding. The first sixth does not
/// count.
pub(super) fn random(
    model: &DriveModel,
    write: bool,
    bytes: u64,
    depth: u32,
    requests: usize,
) -> ClosedTimes {
    let unit = (bytes / 512).max(1);
    let places = (model.config().capacity_sectors.0 / unit).max(1);
    let Ok(mut drive) = model.drive() else {
        unreachable!("a model that was checked makes drives")
    };
    let (mut out, mut state, mut submitted) = (Effects::new(), 7u64, 0);
    let mut due = vec![Time::ZERO; depth as usize];
    let mut ends: Vec<(Time, f64)> = Vec::with_capacity(requests);
    while ends.len() < requests {
        let event = drive.next_wake().at();
        let first = due.iter().copied().min().filter(|&first| first <= event);
        if let Some(now) = first {
            if let Some(at) = due.iter().position(|&other| other == now) {
                due.swap_remove(at);
            }
            // Constants of Knuth's MMIX.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // The upper bits choose the place, because the lower bits of such a generator repeat
            // soon.
            let place = ((u128::from(state) * u128::from(places)) >> 64) as u64;
            let request = Request {
                id: RequestId(submitted),
                operation: if write {
                    Operation::Write
                } else {
                    Operation::Read
                },
                extent: Extent::new(place * unit, unit),
                ..Request::default()
            };
            submitted += 1;
            drive.submit(now, Port::FIRST, request, &mut NodeContext::alone(&mut out));
        } else {
            drive.wake(event, &mut NodeContext::alone(&mut out));
        }
        for effect in out.drain() {
            if let Effect::Complete { completion, .. } = effect {
                let took = completion.finished.since(completion.submitted);
                ends.push((completion.finished, took.as_millis_f64()));
                due.push(completion.finished + HOST);
            }
        }
    }
    times(&ends[requests / 6..])
}

fn times(ends: &[(Time, f64)]) -> ClosedTimes {
    let count = ends.len() as f64;
    let mut ms: Vec<f64> = ends.iter().map(|&(_, ms)| ms).collect();
    ms.sort_by(f64::total_cmp);
    let mean_ms = ms.iter().sum::<f64>() / count;
    let square = ms.iter().map(|ms| (ms - mean_ms).powi(2)).sum::<f64>() / count;
    let seconds = ends[ends.len() - 1].0.since(ends[0].0).as_millis_f64() / 1e3;
    ClosedTimes {
        mean_ms,
        deviation_ms: square.sqrt(),
        middle_ms: (ms[ms.len() / 10], ms[ms.len() * 9 / 10]),
        p99_ms: ms[ms.len() * 99 / 100],
        longest_ms: ms[ms.len() - 1],
        per_s: count / seconds,
    }
}
