//! The queue, fitted to mean and 99th percentile of random reads by depth.
//!
//! The search has two parts. Starts are far apart: every kind of queue with a few margins. Then a
//! descent changes one key after the other, in smaller and smaller steps. A key that makes the
//! queue another kind (window, look-ahead, age limit, answers together) changes only if the distance
//! falls clearly, because a few rows hardly tell the kinds apart.

use super::Fit;
use crate::depths::DepthsError;
use crate::depths::closed::random;
use crate::depths::grid::USUAL_BYTES;
use fullstroke_drive::{DriveConfig, DriveModel};
use fullstroke_units::Duration;
use serde_json::json;

/// Number of simulated reads at one depth for a start.
const START_REQUESTS: usize = super::REQUESTS;
/// Number of simulated reads at one depth in the descent. The 99th percentile repeats to 4 %.
const DESCENT_REQUESTS: usize = 7000;
/// Relative error of a mean that counts 1 in the distance between two grids of rows.
const MEAN_MARK: f64 = 0.05;
/// Relative error of a 99th percentile that counts 1.
const P99_MARK: f64 = 0.1;
/// Relative error of a 10th or 90th percentile that counts 1. Both tell how many commands are
/// answered together, and whether young commands overtake old ones.
const MIDDLE_MARK: f64 = 0.2;
/// Constant margins in ms of the starts.
const MARGINS_MS: [f64; 5] = [0.5, 1.3, 2.2, 3.5, 5.0];
/// Margin in ms of a short seek, where the margin grows with the distance. An array that reads from
/// few tracks gains from depth as if there were no margin (VALIDATION.md, "Drives by queue depth").
const SHORT_MARGIN_MS: f64 = 0.0;
/// Step in ms of the margin of a short seek in the descent.
const SHORT_STEP_MS: f64 = 0.5;
/// Additional margins in ms at a seek over the whole stroke of the starts.
const FAR_MS: [f64; 6] = [1.5, 3.0, 5.0, 7.5, 10.0, 14.0];
/// Largest additional margin in ms: more than a revolution of a drive of 4,200 rpm distrusts each
/// far command.
const FAR_MAX_MS: f64 = 30.0;
/// Steps of the descent, as shares of the margin.
const STEPS: [f64; 4] = [0.4, 0.2, 0.1, 0.05];
/// Step from which only the margin is changed.
const FINE_STEP: f64 = 0.1;
/// Distance from which a constant margin is tried, too: a mean that is 9 % off at one depth.
const NEAR_ENOUGH: f64 = 10.0;
/// Ratio of the distances below which a constant margin is taken. Requests over the whole disk
/// hardly tell the two kinds of margin apart. Requests over a small part of the disk tell that the
/// margin of short seeks is small (VALIDATION.md, "Drives by queue depth").
const CONSTANT_RATIO_MAX: f64 = 0.25;
/// Ratio of the distances below which another kind of queue is taken. Distances of equal queues
/// with other random numbers differ by a fifth.
const KIND_RATIO_MAX: f64 = 0.8;
/// Numbers of commands answered together. Tried only if the 99th percentile at a depth of 4 to 8 is
/// near the mean, as on no drive that answers each command alone.
const TOGETHER: [u32; 4] = [6, 8, 11, 16];
/// Ratio of the 99th percentile to the mean below which answers go out together.
const TOGETHER_RATIO: f64 = 1.45;
/// Windows in commands, in the order of the descent. 0 means all commands. A window of 1 is a drive
/// without a queue.
const WINDOWS: [u32; 10] = [1, 2, 3, 4, 6, 8, 11, 16, 22, 0];
/// Largest look-ahead of the descent.
const LOOK_AHEAD_MAX: u32 = 4;
/// Factor of the age limit in the descent.
const AGE_FACTOR: f64 = 0.75;
/// Age limit in ms of a class without one: the longest wait of a 500 GB disk and of a Travelstar
/// 7K100 at a depth of 32 is 2.0 and 2.9 s.
const AGE_USUAL_MS: f64 = 2000.0;
/// Least depth whose longest wait tells the age limit.
const AGE_DEPTH_MIN: u32 = 24;
/// Wait in ms from which a command met an error of the disk or of the host. 30 s is the default
/// timeout of a command in Linux.
const AGE_MAX_MS: f64 = 30_000.0;
/// Smallest age limit in ms of the descent.
const AGE_MIN_MS: f64 = 50.0;

/// The order of measured SATA disks, with all keys of the search.
const FIRMWARE: &str = "firmware";
/// Orders of other firmware, tried if no queue of [`FIRMWARE`] comes near. They have no key of the
/// search but the age limit and the number of commands answered together.
const OTHER_ORDERS: [&str; 5] = ["sstf", "look", "c-look", "batched-satf", "aged-satf"];

/// A queue that is tried.
#[derive(Clone, Copy, Debug, PartialEq)]
struct QueueChoice {
    discipline: &'static str,
    look_ahead: u32,
    decides_late: bool,
    margin_ms: f64,
    /// Additional margin in ms at a seek over the whole stroke. 0 means a constant margin.
    far_ms: f64,
    together: u32,
    /// Number of commands that the drive orders. 0 means all.
    window: u32,
    /// Age limit in ms.
    age_ms: f64,
}

impl QueueChoice {
    /// Returns the queue with a margin that is longer or shorter by the share `step`.
    fn stepped(self, step: f64) -> QueueChoice {
        if self.far_ms > 0.0 {
            // Not 0, which means a constant margin.
            let far_ms = (self.far_ms * (1.0 + step)).clamp(0.1, FAR_MAX_MS);
            QueueChoice { far_ms, ..self }
        } else {
            // At least half a millisecond as the base: shares of 0 would never leave 0.
            let margin_ms = (self.margin_ms + step * self.margin_ms.max(0.5)).max(0.0);
            QueueChoice { margin_ms, ..self }
        }
    }

    fn rounded(self) -> QueueChoice {
        let rounded = |ms: f64| (ms * 100.0).round() / 100.0;
        QueueChoice {
            margin_ms: rounded(self.margin_ms),
            far_ms: rounded(self.far_ms),
            age_ms: (self.age_ms / 10.0).round() * 10.0,
            ..self
        }
    }

    /// Returns the queues of a neighbouring kind. `age_max_ms` is the longest age limit.
    fn other_kinds(self, age_max_ms: f64) -> Vec<QueueChoice> {
        let is_firmware = self.discipline == FIRMWARE;
        let mut others = Vec::new();
        let at = WINDOWS.iter().position(|&window| window == self.window);
        for next in [at.and_then(|at| at.checked_sub(1)), at.map(|at| at + 1)] {
            let window = next.and_then(|next| WINDOWS.get(next));
            if let Some(&window) = window.filter(|_| is_firmware) {
                others.push(QueueChoice { window, ..self });
            }
        }
        for factor in [AGE_FACTOR, 1.0 / AGE_FACTOR] {
            let age_ms = self.age_ms * factor;
            if (AGE_MIN_MS..=age_max_ms).contains(&age_ms) {
                others.push(QueueChoice { age_ms, ..self });
            }
        }
        if is_firmware {
            others.extend(self.other_choices());
        }
        if self.together > 1 {
            for together in [self.together - 2, self.together - 1, self.together + 1] {
                others.push(QueueChoice { together, ..self });
            }
            others.push(QueueChoice {
                together: 0,
                ..self
            });
        }
        others
    }

    /// Returns the neighbours with another margin of short seeks or another look-ahead.
    fn other_choices(self) -> Vec<QueueChoice> {
        let mut others = Vec::new();
        if self.far_ms > 0.0 {
            for step_ms in [SHORT_STEP_MS, -SHORT_STEP_MS] {
                let margin_ms = self.margin_ms + step_ms;
                if margin_ms >= 0.0 {
                    others.push(QueueChoice { margin_ms, ..self });
                }
            }
        }
        for look_ahead in [self.look_ahead.saturating_sub(1), self.look_ahead + 1] {
            if look_ahead != self.look_ahead && look_ahead <= LOOK_AHEAD_MAX {
                others.push(QueueChoice {
                    look_ahead,
                    // A drive that fixes commands ahead has decided already, so the two exclude
                    // each other.
                    decides_late: self.decides_late && look_ahead == 0,
                    ..self
                });
            }
        }
        if self.look_ahead == 0 {
            let decides_late = !self.decides_late;
            others.push(QueueChoice {
                decides_late,
                ..self
            });
        }
        others
    }
}

/// The nearest queue so far.
struct QueueSearch<'a> {
    fit: &'a Fit,
    best: QueueChoice,
    least: f64,
    /// Number of simulated reads at one depth.
    requests: usize,
}

impl QueueSearch<'_> {
    /// Takes `choice` if its distance is below `ratio` times the least. Returns true if the search
    /// took `choice`.
    fn tries(&mut self, choice: QueueChoice, ratio: f64) -> Result<bool, DepthsError> {
        let limit = self.least * ratio;
        let distance = self
            .fit
            .distance(&self.fit.with(choice), limit, self.requests)?;
        let nearer = distance < limit;
        if nearer {
            (self.best, self.least) = (choice, distance);
        }
        Ok(nearer)
    }

    /// Changes one key after the other while the distance falls.
    fn descends(&mut self, age_max_ms: f64) -> Result<(), DepthsError> {
        self.requests = DESCENT_REQUESTS;
        let start = self.fit.with(self.best);
        // Measured again with more requests: distances of different lengths are not comparable.
        self.least = self.fit.distance(&start, f64::INFINITY, self.requests)?;
        for step in STEPS {
            // Kinds only while steps are large: at small distances the random numbers decide
            // between kinds.
            if step > FINE_STEP {
                for other in self.best.other_kinds(age_max_ms) {
                    self.tries(other, KIND_RATIO_MAX)?;
                }
            }
            // Other orders have no margin.
            if self.best.discipline != FIRMWARE {
                continue;
            }
            for sign in [1.0, -1.0] {
                let mut taken = self.tries(self.best.stepped(sign * step), 1.0)?;
                // A step to one side that helped makes the other side needless.
                let goes_on = taken;
                while taken && step > FINE_STEP {
                    taken = self.tries(self.best.stepped(sign * step), 1.0)?;
                }
                if goes_on {
                    break;
                }
            }
        }
        Ok(())
    }
}

impl Fit {
    /// Returns the distance of the reads from depth 2 on: the sum of the fourth powers of relative
    /// errors, because the largest error counts and not the mean error. The sum ends where it
    /// exceeds `limit`.
    fn distance(
        &self,
        config: &DriveConfig,
        limit: f64,
        requests: usize,
    ) -> Result<f64, DepthsError> {
        // One model for all depths, because the tables of a model take as long as a run.
        let model: DriveModel = self.model(config)?;
        let bytes = self
            .reads
            .values()
            .next()
            .map_or(USUAL_BYTES, |row| row.bytes);
        let mut sum = 0.0;
        // Deep rows differ most, so they end the sum of a wrong queue soon.
        for row in self.reads.values().rev().filter(|row| row.depth > 1) {
            let found = random(&model, false, bytes, row.depth, requests);
            let apart = |mark: f64, found: f64, measured: f64| {
                // A percentile of 0 is a cache's, and the ratio tells nothing.
                if measured > 0.0 {
                    // The logarithm: half and twice are equally wrong.
                    ((found / measured).ln() / mark).powi(4)
                } else {
                    0.0
                }
            };
            sum += apart(MEAN_MARK, found.mean_ms, row.mean_ms);
            if let Some(p99) = row.p99_ms {
                sum += apart(P99_MARK, found.p99_ms, p99);
            }
            if let Some((p10, p90)) = row.middle_ms {
                sum += apart(MIDDLE_MARK, found.middle_ms.0, p10);
                sum += apart(MIDDLE_MARK, found.middle_ms.1, p90);
            }
            if sum > limit {
                break;
            }
        }
        Ok(sum)
    }

    fn with(&self, choice: QueueChoice) -> DriveConfig {
        let mut config = self.config.clone();
        let queue = &mut config.queue;
        queue.discipline = choice.discipline.into();
        // The keys of the former discipline would be unknown to another one.
        queue.keys.clear();
        if choice.discipline == FIRMWARE {
            let mut set = |key: &str, value| queue.keys.insert(key.into(), value);
            set("look_ahead", json!(choice.look_ahead));
            set("margin_ms", json!(choice.margin_ms));
            if choice.far_ms > 0.0 {
                set("margin_far_ms", json!(choice.far_ms));
            }
            if choice.window > 0 {
                set("window", json!(choice.window));
            }
        }
        queue.answer_together = choice.together;
        queue.decide_ms = if choice.decides_late { 0.1 } else { 0.0 };
        queue.age_limit = Some(Duration::from_micros((choice.age_ms * 1000.0) as u64));
        config
    }

    /// Fits look-ahead, margin, window, age limit and the number of commands answered together.
    pub(super) fn queue(&mut self) -> Result<(), DepthsError> {
        if self.reads.len() < 2 {
            let source = format!(
                "{} (no response times by depth were given)",
                self.config.sources["queue"]
            );
            self.note("queue", false, source);
            return Ok(());
        }
        let age_max_ms = self.age_max_ms();
        let plain = QueueChoice {
            discipline: FIRMWARE,
            look_ahead: 0,
            decides_late: false,
            margin_ms: SHORT_MARGIN_MS,
            far_ms: FAR_MS[2],
            together: 0,
            window: 0,
            age_ms: age_max_ms,
        };
        let mut search = QueueSearch {
            fit: self,
            best: plain,
            least: f64::INFINITY,
            requests: START_REQUESTS,
        };
        for start in self.starts(plain) {
            search.tries(start, 1.0)?;
        }
        search.descends(age_max_ms)?;
        // Another kind counts if it is much nearer, because whole disks hardly tell kinds apart.
        for other in [Fit::with_constant_margin, Fit::with_other_order] {
            if search.least > NEAR_ENOUGH {
                let (best, least) = other(self, &search, age_max_ms)?;
                if least < search.least * CONSTANT_RATIO_MAX {
                    (search.best, search.least) = (best, least);
                }
            }
        }
        let choice = search.best.rounded();
        self.config = self.with(choice);
        self.notes_queue(choice, age_max_ms);
        Ok(())
    }

    /// Returns the nearest queue with a constant margin, and its distance.
    fn with_constant_margin(
        &self,
        search: &QueueSearch<'_>,
        age_max_ms: f64,
    ) -> Result<(QueueChoice, f64), DepthsError> {
        let starts = MARGINS_MS.into_iter().flat_map(|margin_ms| {
            kinds(QueueChoice {
                margin_ms,
                far_ms: 0.0,
                ..search.best
            })
        });
        self.nearest(starts, search.best, age_max_ms)
    }

    /// Returns the nearest queue of another order, and its distance.
    fn with_other_order(
        &self,
        search: &QueueSearch<'_>,
        age_max_ms: f64,
    ) -> Result<(QueueChoice, f64), DepthsError> {
        let best = search.best;
        let starts = OTHER_ORDERS.into_iter().flat_map(|discipline| {
            [1.0, 2.0, 4.0].map(|part| QueueChoice {
                discipline,
                age_ms: age_max_ms / part,
                look_ahead: 0,
                decides_late: false,
                margin_ms: 0.0,
                far_ms: 0.0,
                window: 0,
                ..best
            })
        });
        self.nearest(starts, best, age_max_ms)
    }

    /// Returns the nearest queue that a descent reaches from the nearest of `starts`, and its
    /// distance.
    fn nearest(
        &self,
        starts: impl Iterator<Item = QueueChoice>,
        best: QueueChoice,
        age_max_ms: f64,
    ) -> Result<(QueueChoice, f64), DepthsError> {
        let mut search = QueueSearch {
            fit: self,
            best,
            least: f64::INFINITY,
            requests: START_REQUESTS,
        };
        for start in starts {
            search.tries(start, 1.0)?;
        }
        search.descends(age_max_ms)?;
        Ok((search.best, search.least))
    }

    /// Returns queues that are far apart.
    fn starts(&self, plain: QueueChoice) -> Vec<QueueChoice> {
        let mut starts = Vec::new();
        for far_ms in FAR_MS {
            starts.extend(kinds(QueueChoice { far_ms, ..plain }));
        }
        // The descent reaches the windows between.
        for window in WINDOWS.into_iter().step_by(2) {
            starts.push(QueueChoice { window, ..plain });
        }
        for age_ms in [plain.age_ms / 2.0, plain.age_ms / 4.0] {
            starts.push(QueueChoice { age_ms, ..plain });
        }
        if self.reads.values().any(|row| row.is_narrow()) {
            for far_ms in [FAR_MS[1], FAR_MS[2], FAR_MS[3]] {
                starts.extend(TOGETHER.map(|together| QueueChoice {
                    together,
                    far_ms,
                    ..plain
                }));
            }
        }
        starts
    }

    /// Returns the longest age limit in ms: the longest wait that was measured in a deep queue, or
    /// the limit of the class.
    fn age_max_ms(&self) -> f64 {
        let class = self.config.queue.age_limit;
        match self.longest() {
            // Rounded up to tenths of a second: the longest wait is a little above the limit that
            // caused it.
            Some(longest) => (longest / 100.0).ceil() * 100.0,
            None => class.map_or(AGE_USUAL_MS, Duration::as_millis_f64),
        }
    }

    /// Longest response time in ms of the deep rows. In a shallow queue no command becomes old, so
    /// the longest wait there does not tell the age limit.
    fn longest(&self) -> Option<f64> {
        let deep = self.reads.values().filter(|row| row.depth >= AGE_DEPTH_MIN);
        deep.filter_map(|row| row.longest_ms)
            .reduce(f64::max)
            .filter(|&ms| ms < AGE_MAX_MS)
    }

    fn notes_queue(&mut self, choice: QueueChoice, age_max_ms: f64) {
        let depths: Vec<String> = self.reads.keys().map(u32::to_string).collect();
        let age = if choice.age_ms + 10.0 < age_max_ms {
            "fitted"
        } else if self.longest().is_some() {
            "near the longest wait that was measured"
        } else {
            "not told, as drives of the class"
        };
        let keys = match choice.discipline {
            FIRMWARE => "look_ahead, margins, window, decide_ms",
            _ => "discipline",
        };
        let source = format!(
            "fitted: {keys}, answer_together, to random reads at depths {}; age_limit: {age}. assumed: depth, flush{}",
            depths.join(", "),
            if choice.far_ms > 0.0 && choice.margin_ms == SHORT_MARGIN_MS {
                ", margin of short seeks"
            } else {
                ""
            }
        );
        self.note("queue", true, source);
    }
}

/// Returns `plain`, `plain` with late decisions, and `plain` with commands fixed ahead.
fn kinds(plain: QueueChoice) -> [QueueChoice; 3] {
    let plain = QueueChoice {
        look_ahead: 0,
        decides_late: false,
        ..plain
    };
    // A drive that decides late sees the command that the host sends at once.
    let late = QueueChoice {
        decides_late: true,
        ..plain
    };
    let ahead = QueueChoice {
        look_ahead: 2,
        ..plain
    };
    [plain, late, ahead]
}

impl crate::depths::DepthRow {
    /// True if the 99th percentile is near the mean at a depth of 4 to 8.
    fn is_narrow(&self) -> bool {
        let narrow = |p99: f64| p99 < TOGETHER_RATIO * self.mean_ms;
        (4..=8).contains(&self.depth) && self.p99_ms.is_some_and(narrow)
    }
}

#[cfg(test)]
mod tests;
