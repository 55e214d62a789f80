//! Measurement, log, timeline, windows, trace and progress side by side.

use crate::{
    Measurement, PerfettoTrace, RequestLog, ResponseWindows, Stop, Timeline, WattsOverTime,
};
use fullstroke_contract::{Completion, Counters, Notice, Request};
use fullstroke_engine::{Finished, Observer};
use fullstroke_units::Time;

/// Callback that receives the number of finished requests now and then.
pub type Progress<'a> = dyn Fn(u64) + 'a;

/// Number of requests between two reports of progress; a power of two.
const PROGRESS_EVERY: u64 = 4096;

/// The observer of a whole run. Measures, and if requested writes the log, keeps records for
/// pictures and reports progress.
pub struct RunRecorder<'a> {
    /// The measurement.
    pub measurement: Measurement,
    /// Log of every request, if requested.
    pub log: Option<RequestLog>,
    /// Timeline, if requested.
    pub timeline: Option<Timeline>,
    /// Response times by windows of the arrivals, if requested.
    pub windows: Option<ResponseWindows>,
    /// Power of the drives over time, if requested.
    pub watts: Option<WattsOverTime>,
    /// Trace of a window of the run, if requested.
    pub perfetto: Option<Box<PerfettoTrace>>,
    /// Signal that ends the run.
    pub stop: Stop,
    progress: Option<&'a Progress<'a>>,
    finished: u64,
}

impl<'a> RunRecorder<'a> {
    /// Creates a recorder at the beginning of a run.
    pub fn new(
        measurement: Measurement,
        log: Option<RequestLog>,
        progress: Option<&'a Progress<'a>>,
    ) -> RunRecorder<'a> {
        RunRecorder {
            measurement,
            log,
            timeline: None,
            windows: None,
            watts: None,
            perfetto: None,
            stop: Stop::default(),
            progress,
            finished: 0,
        }
    }
}

impl Observer for RunRecorder<'_> {
    #[inline]
    fn finished(&mut self, finished: &Finished) {
        self.measurement.finished(finished);
        if let Some(log) = &mut self.log {
            log.write(finished, self.measurement.includes(finished));
        }
        if let Some(timeline) = &mut self.timeline
            && self.measurement.includes(finished)
        {
            timeline.finished(finished);
        }
        if let Some(windows) = &mut self.windows
            && finished.operation.transfers()
        {
            windows.finished(finished);
        }
        if let Some(perfetto) = &mut self.perfetto {
            perfetto.finished(finished);
        }
        self.finished += 1;
        if self.finished.is_multiple_of(PROGRESS_EVERY)
            && let Some(progress) = self.progress
        {
            progress(self.finished);
        }
    }

    #[inline]
    fn drive_ahead(&mut self, now: Time, drive: usize, request: &Request, ahead: u32) {
        if let Some(timeline) = &mut self.timeline
            && request.operation.transfers()
        {
            timeline.drive_io(now, drive, request, ahead);
        }
    }

    fn noticed(&mut self, path: &[usize], notice: &Notice) {
        self.measurement.noticed(path, notice);
    }

    #[inline]
    fn next_sample(&self) -> Time {
        self.watts.as_ref().map_or(Time::NEVER, WattsOverTime::next)
    }

    fn sampled(&mut self, at: Time, counters: &Counters) {
        if let Some(watts) = &mut self.watts {
            watts.sample(at, &counters.drives);
        }
    }

    #[inline]
    fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }

    #[inline]
    fn drive_io(&mut self, now: Time, drive: usize, request: &Request) {
        self.measurement.drive_io(now, drive, request);
        if let Some(log) = &mut self.log {
            log.drive_io(now, drive, request);
        }
        if let Some(perfetto) = &mut self.perfetto {
            perfetto.drive_io(now, drive, request);
        }
    }

    #[inline]
    fn drive_done(&mut self, drive: usize, completion: &Completion) {
        if let Some(perfetto) = &mut self.perfetto {
            perfetto.drive_done(drive, completion);
        }
    }

    #[inline]
    fn arm_io(&mut self, now: Time, drive: usize, arm: usize, request: &Request) {
        if let Some(perfetto) = &mut self.perfetto {
            perfetto.arm_io(now, drive, arm, request);
        }
    }

    #[inline]
    fn arm_done(&mut self, drive: usize, arm: usize, completion: &Completion) {
        if let Some(perfetto) = &mut self.perfetto {
            perfetto.arm_done(drive, arm, completion);
        }
    }
}
