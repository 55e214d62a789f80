//! The peak rate of the device, estimated from the dispatches of about a second. The size of a full
//! budget and the time for which a starting application is favoured follow from this rate.

use fullstroke_units::{Duration, Time};

/// Number of fraction bits of a rate in sectors a microsecond: `BFQ_RATE_SHIFT`.
const SHIFT: u32 = 16;
/// Reference rate of a rotating device, about 109 MB/s. The estimate starts at two thirds of it. On
/// a device of this rate, the largest application that BFQ's authors tried takes
/// `REFERENCE_RAISING` to start (`ref_rate` and `ref_wr_duration` of rotating devices).
const REFERENCE: u64 = 14_000;
const REFERENCE_RAISING: Duration = Duration::from_secs(7);
/// Limits of the raising time that follows from the estimate (`bfq_wr_duration`), because a wrong
/// estimate must do no lasting harm.
const RAISING_MIN: Duration = Duration::from_secs(3);
const RAISING_MAX: Duration = Duration::from_secs(25);

// `BFQ_RATE_MIN_SAMPLES`, `BFQ_RATE_MIN_INTERVAL`, `BFQ_RATE_REF_INTERVAL`.
const SAMPLES_MIN: u32 = 32;
const SPAN_MIN: Duration = Duration::from_millis(300);
const SPAN: Duration = Duration::from_secs(1);
/// Idle time after which the observation ends, because the device was not at its peak
/// (`bfq_update_peak_rate`).
const PAUSE: Duration = Duration::from_millis(100);
/// Largest rate that is believed, 20 sectors a microsecond. A higher rate comes from a cache
/// (`bfq_update_rate_reset`).
const RATE_MAX: u64 = 20 << SHIFT;
/// Rate below which a request was certainly slow: 1/1024 of a sector a microsecond
/// (`bfq_completed_request`).
const RATE_SLOW: u64 = 1 << (SHIFT - 10);

/// Largest time between two requests of one stream: `BFQ_MIN_TT`.
pub(super) const IMMEDIATE: Duration = Duration::from_millis(2);

/// The estimate, and the dispatches for the next estimate.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeakRate {
    rate: u64,
    samples: u32,
    /// Number of samples that began near the end of the one before, without a pause.
    sequential: u32,
    sectors: u64,
    largest: u64,
    first: Time,
    last: Time,
    span: Duration,
}

/// A dispatched request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dispatch {
    pub(super) sectors: u64,
    /// True if the request is far from the last one.
    pub(super) far: bool,
    /// Number of other requests in flight.
    pub(super) in_driver: u32,
    /// Time of the device's last completion.
    pub(super) last_completion: Time,
}

impl Default for PeakRate {
    fn default() -> PeakRate {
        PeakRate {
            rate: REFERENCE * 2 / 3,
            samples: 0,
            sequential: 0,
            sectors: 0,
            largest: 0,
            first: Time::ZERO,
            last: Time::ZERO,
            span: Duration::ZERO,
        }
    }
}

impl PeakRate {
    /// Returns the sectors of `time` at the peak rate.
    pub(super) fn sectors_in(&self, time: Duration) -> u64 {
        (self.rate * (time.as_nanos() / 1000)) >> SHIFT
    }

    /// Returns the duration of an interactive favour.
    pub(super) fn raising(&self) -> Duration {
        // A slower device needs longer for the same start of an application.
        let duration = REFERENCE_RAISING * REFERENCE / self.rate;
        duration.clamp(RAISING_MIN, RAISING_MAX)
    }

    /// Records a dispatch. Returns true if there is a new estimate.
    pub(super) fn dispatched(&mut self, now: Time, dispatch: &Dispatch) -> bool {
        let mut complete = false;
        if self.samples == 0 {
            self.begin(now, dispatch.sectors);
        } else if now.since(self.last) > PAUSE && dispatch.in_driver == 0 {
            complete = self.conclude(dispatch.last_completion);
            self.begin(now, dispatch.sectors);
        } else {
            self.sample(now, dispatch);
            if self.span >= SPAN {
                complete = self.conclude(dispatch.last_completion);
                self.begin(now, dispatch.sectors);
            }
        }
        self.last = now;
        complete
    }

    /// Records a completion; `since_last` is the time since the completion before. A slow request
    /// ends the observation. Returns true if there is a new estimate.
    pub(super) fn completed(&mut self, since_last: Duration, last_completion: Time) -> bool {
        let micros = since_last.as_nanos() / 1000;
        let slow = since_last > IMMEDIATE && (self.largest << SHIFT) / micros < RATE_SLOW;
        if !slow {
            return false;
        }
        let concluded = self.conclude(last_completion);
        self.samples = 0;
        concluded
    }

    fn begin(&mut self, now: Time, sectors: u64) {
        let PeakRate { rate, last, .. } = *self;
        *self = PeakRate {
            rate,
            last,
            samples: 1,
            sequential: 0,
            sectors,
            largest: sectors,
            first: now,
            span: Duration::ZERO,
        };
    }

    fn sample(&mut self, now: Time, dispatch: &Dispatch) {
        let Dispatch {
            sectors,
            far,
            in_driver,
            last_completion,
        } = *dispatch;
        self.samples += 1;
        let immediate = in_driver > 0 || now.since(last_completion) < IMMEDIATE;
        self.sequential += u32::from(immediate && !far);
        self.sectors += sectors;
        // The largest request is forgotten after a while, because an old one says nothing of the
        // present.
        let forgets = self.samples.is_multiple_of(32);
        self.largest = if forgets {
            sectors
        } else {
            self.largest.max(sectors)
        };
        self.span = now.since(self.first);
    }

    /// Makes a new estimate from the observation, if it was long enough and is credible. Longer and
    /// more sequential observations have a larger weight (`bfq_update_rate_reset`, a low-pass
    /// filter).
    fn conclude(&mut self, last_completion: Time) -> bool {
        if self.samples < SAMPLES_MIN || self.span < SPAN_MIN {
            return false;
        }
        let span = self.span.max(last_completion.since(self.first));
        let rate = (self.sectors << SHIFT) / (span.as_nanos() / 1000);
        let mostly_sequential = self.sequential >= 3 * self.samples / 4;
        if (!mostly_sequential && rate <= self.rate) || rate > RATE_MAX {
            return false;
        }
        let sequential = u64::from(9 * self.sequential / self.samples);
        // `bfq_update_rate_reset`: long and sequential observations move the rate most.
        let weight = (sequential * span.as_nanos() / SPAN.as_nanos()).min(8);
        let divisor = 10 - weight;
        self.rate = (self.rate * (divisor - 1) / divisor + rate / divisor).max(1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measures ten seconds of requests: one of `sectors` in every `micros`.
    fn measured(sectors: u64, micros: u64, far: bool) -> PeakRate {
        let mut rate = PeakRate::default();
        let mut now = Time::ZERO;
        while now < Time::from_nanos(10_000_000_000) {
            rate.dispatched(
                now,
                &Dispatch {
                    sectors,
                    far,
                    in_driver: 1,
                    last_completion: now,
                },
            );
            now += Duration::from_micros(micros);
            rate.completed(Duration::from_micros(micros), now);
        }
        rate
    }

    #[test]
    fn a_stream_is_measured_and_scattered_requests_are_not_mistaken_for_the_peak() {
        // 256 sectors in 1.28 ms are 0.2 sectors a microsecond, or 25 000 sectors in 125 ms.
        let stream = measured(256, 1280, false).sectors_in(Duration::from_millis(125));
        assert!((24_500..25_200).contains(&stream), "{stream}");
        let before = PeakRate::default().sectors_in(Duration::from_millis(125));
        let scattered = measured(8, 5000, true).sectors_in(Duration::from_millis(125));
        assert_eq!(scattered, before);
        assert_eq!(before, 9333 * 125_000 / 65_536);
    }

    #[test]
    fn the_slower_the_device_the_longer_applications_start() {
        assert_eq!(
            PeakRate::default().raising(),
            Duration::from_nanos(7_000_000_000 * 14_000 / 9333)
        );
        assert_eq!(measured(256, 160, false).raising(), RAISING_MIN);
        assert_eq!(measured(64, 1280, false).raising(), RAISING_MAX);
    }
}
