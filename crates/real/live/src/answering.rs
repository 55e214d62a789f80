//! For tests: a thread that answers from a script, in place of an event loop.

use crate::control_queue::{ControlQueue, ControlRequest, ControlResponse, ServerHandle};
use crate::lateness::LatenessSummary;
use crate::poll::{Interest, Poll};
use crate::status::{
    ComparingStatus, DriveState, DriveStatus, ExportStatus, Health, OperationStatus, Operations,
    RESPONSE_BUCKETS_S, ServerStatus,
};
use crate::totals::DriveTotals;
use fullstroke_contract::MemberStatistics;
use fullstroke_transport::socket::Waker;
use fullstroke_units::{self as units, Sectors};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Answers questions until dropped.
pub(crate) struct Answering {
    pub(crate) handle: ServerHandle,
    waker: Arc<Waker>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Answering {
    pub(crate) fn with(
        answer: impl Fn(ControlRequest) -> ControlResponse + Send + 'static,
    ) -> Answering {
        let control = ControlQueue::new().unwrap();
        let (handle, waker) = (control.handle(), Arc::clone(&control.waker));
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let thread = thread::spawn(move || {
            let mut poll = Poll::new().unwrap();
            poll.add(&*control.waker, 0, Interest::READ).unwrap();
            while !seen.load(Ordering::SeqCst) {
                poll.wait(Duration::from_secs(1), &mut Vec::new()).unwrap();
                control.waker.clear();
                while let Some((question, reply)) = control.take() {
                    let _ = reply.send(answer(question));
                }
            }
        });
        Answering {
            handle,
            waker,
            over,
            thread: Some(thread),
        }
    }

    /// Answers every question with the question itself.
    pub(crate) fn repeating() -> Answering {
        Answering::with(|question| match question {
            ControlRequest::Status => ControlResponse::Status(Box::new(status())),
            other => ControlResponse::Done {
                message: format!("{other:?}"),
            },
        })
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        self.waker.wake();
        self.thread.take().map(JoinHandle::join);
    }
}

/// A server with one export of two drives, the second being rebuilt.
pub(crate) fn status() -> ServerStatus {
    let mut buckets = vec![0; RESPONSE_BUCKETS_S.len() + 1];
    (buckets[0], buckets[3], buckets[16]) = (5, 7, 2);
    let read = OperationStatus {
        requests: 14,
        bytes: 14 * 4096,
        errors: 1,
        response_s: 9.5,
        buckets,
    };
    let late = LatenessSummary {
        count: 14,
        mean_us: 20.0,
        p50_us: 10.0,
        p99_us: 50.0,
        p999_us: 90.0,
        max_us: 100.0,
    };
    let rebuilding = DriveStatus {
        state: DriveState::Rebuilding,
        rebuilt_share: Some(0.25),
        ..drive("1.0")
    };
    let export = ExportStatus {
        name: "a \"quoted\\name\"\nof two lines".into(),
        layout: "raid1 of 2".into(),
        usable_bytes: 1 << 40,
        world_ns: 12_500_000_000,
        requests: 17,
        in_flight: 3,
        operations: Operations {
            read,
            ..Operations::default()
        },
        lateness: late,
        health: Health {
            comparing: Some(ComparingStatus {
                left_bytes: 4096,
                of_bytes: 8192,
            }),
            ..Health::default()
        },
        scrubbed_share: None,
        drives: vec![drive("0"), rebuilding],
    };
    ServerStatus {
        version: "1.2.3".into(),
        uptime_s: 12.75,
        speed: Some(1.0),
        clients: 2,
        exports: vec![export],
    }
}

fn drive(name: &str) -> DriveStatus {
    DriveStatus {
        name: name.into(),
        state: DriveState::Alive,
        rebuilt_share: None,
        slowness: None,
        queue_length: 4,
        head_share: 0.5,
        head_cylinder: 5000,
        busy: true,
        totals: DriveTotals::of(&MemberStatistics {
            reads: 20,
            writes: 10,
            sectors_read: Sectors(30 * 8),
            busy: units::Duration::from_millis(6250),
            buffer_hits: 9,
            ..MemberStatistics::default()
        }),
    }
}
