//! The observer above the layers of a served stack, for all events.

use crate::completed::CompletedRequest;
use crate::decisions::Decisions;
use crate::record::RequestRecorder;
use fullstroke_contract::{Notice, Request, Signal};
use fullstroke_engine::{Finished, Observer, Rebuilds};
use fullstroke_units::Time;
use std::collections::VecDeque;

/// A signal of a volume.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) path: Vec<usize>,
    pub(crate) signal: Signal,
}

/// Collects the machine's events until the server has handled them.
#[derive(Debug, Default)]
pub(crate) struct EventCollector {
    pub(crate) decisions: Decisions,
    pub(crate) recorder: Option<RequestRecorder>,
    pub(crate) ended: Vec<CompletedRequest>,
    pub(crate) sent: VecDeque<Sent>,
    pub(crate) rebuilds: Rebuilds,
}

impl Observer for EventCollector {
    #[inline]
    fn finished(&mut self, finished: &Finished) {
        let completion = self.decisions.finished_requests();
        self.decisions.finished(finished);
        self.ended.push(CompletedRequest {
            finished: *finished,
            completion,
            decisions: self.decisions.digest(),
        });
    }

    #[inline]
    fn drive_io(&mut self, now: Time, drive: usize, request: &Request) {
        self.decisions.drive_io(now, drive, request);
        if let Some(recorder) = &mut self.recorder {
            recorder.drive_io(now, drive, request);
        }
    }

    fn noticed(&mut self, path: &[usize], notice: &Notice) {
        self.decisions.noticed(path, notice);
        self.rebuilds.note_notice(path, notice);
        self.sent.push_back(Sent {
            path: path.to_vec(),
            signal: notice.signal,
        });
    }
}
