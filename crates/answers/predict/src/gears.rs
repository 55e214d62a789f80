//! Arrays that work with fewer disks under low load: equations 8 to 10 of the thesis's chapter 7.3,
//! for PARAID (Weddle et al. 2007) and for the thesis's e-PARAID.
//!
//! In the low gear, the data of the sleeping disks are read from copies on the other disks. The
//! copies are in a reserve far from the data (PARAID), or in buckets next to the data (e-PARAID). A
//! shift copies the data written to the sleeping disks since the shift before. Their amount is
//! taken as the sleeping disks' share of all written data.
//!
//! The text says in one place that a *high* utilisation shifts down, and in two places that a low
//! one does. The latter is meant. The text gives neither thresholds nor the length of the moving
//! average.

use crate::fingerprint::{Fingerprint, Totals, TraceWindow};
use crate::windowed::{ArrayWork, DiskParameters, Powers, Predicted, Sum, elapsed_in_all_s};
use std::collections::VecDeque;
use thiserror::Error;

/// An array with two gears.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gears {
    /// Number of disks.
    pub disks: u32,
    /// Number of disks asleep in the low gear; fewer than all.
    pub sleeping: u32,
    /// Stripe unit in sectors.
    pub unit: u64,
    /// Place of the copies.
    pub reserve: Reserve,
    /// Number of windows over which utilisation is averaged; at least one.
    pub averaged: u32,
    /// Mean utilisation below which the array shifts down.
    pub down: f64,
    /// Mean utilisation above which the array shifts up.
    pub up: f64,
}

/// Unusable thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum ThresholdError {
    /// A threshold is not a share of the time.
    #[error("found {found}; expected a utilisation, a share of the time from 0 to 1")]
    NoShare {
        /// The threshold found.
        found: f64,
    },
    /// The array would shift up again at once, because fewer disks would do the same work.
    #[error(
        "after a shift down below {down}, {active} of {disks} disks have a utilisation of {after:.3}, which shifts up again (above {up}); expected a shift down below {down_max:.3}"
    )]
    ToAndFro {
        /// Utilisation below which gears are shifted down.
        down: f64,
        /// Utilisation above which gears are shifted up.
        up: f64,
        /// Number of disks at work in the low gear.
        active: u32,
        /// Number of all disks.
        disks: u32,
        /// Utilisation of the working disks after a shift down.
        after: f64,
        /// Largest threshold `down` at which a shift down lasts.
        down_max: f64,
    },
}

impl Gears {
    /// Checks the thresholds: both must be shares of the time. `down` must be below `up` even after
    /// fewer disks have taken over the same work.
    ///
    /// # Errors
    /// The error tells the found and the expected values.
    pub fn thresholds(&self) -> Result<(), ThresholdError> {
        let Gears {
            disks,
            sleeping,
            down,
            up,
            ..
        } = *self;
        for share in [down, up] {
            if !(0.0..=1.0).contains(&share) {
                return Err(ThresholdError::NoShare { found: share });
            }
        }
        // At least one disk works in the low gear.
        let active = disks.saturating_sub(sleeping).max(1);
        let after = down * f64::from(disks.max(active)) / f64::from(active);
        // The tolerance treats a share that equals `up` except for rounding as equal.
        if after < up * (1.0 - 1e-9) {
            return Ok(());
        }
        Err(ThresholdError::ToAndFro {
            down,
            up,
            active,
            disks,
            after,
            down_max: up * f64::from(active) / f64::from(disks.max(active)),
        })
    }
}

/// Place where an active disk holds the copies of the sleeping disks' data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserve {
    /// Half of the longest seek away (PARAID).
    Far,
    /// Among the disk's own data (e-PARAID).
    Beside,
}

/// Prediction for an array with gears.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shifted {
    /// Latency, utilisation, bandwidth and energy.
    pub predicted: Predicted,
    /// Times of the shifts, in seconds since the beginning of the trace.
    pub shifts_s: Vec<f64>,
    /// Share of the windows in the low gear.
    pub low_share: f64,
}

/// Predicts `array` under the trace of a fingerprint, beginning in the high gear. Returns `None`
/// for impossible gears: no disk stays awake, the stripe unit or the number of averaged windows is
/// 0, or [`Gears::thresholds`] refuses the thresholds. `seeks` are the mean seek times for all
/// disks of the array.
pub fn geared(
    fingerprint: &Fingerprint,
    seeks: &[f64],
    array: &Gears,
    disk: &DiskParameters,
    powers: Option<&Powers>,
) -> Option<Shifted> {
    let usable = array.sleeping < array.disks && array.unit > 0 && array.averaged > 0;
    (usable && array.thresholds().is_ok()).then(|| {
        let mut run = WindowPass::new(fingerprint, array, disk, powers);
        for ((window, totals), &seek) in fingerprint.busy.iter().zip(&fingerprint.totals).zip(seeks)
        {
            run.idle(totals.index - run.next);
            run.window(Some((window, totals, seek)));
        }
        run.shifted()
    })
}

/// A pass over the windows. A window is visited if it has arrivals or may change the mean. A busy
/// window changes the mean twice: when it comes, and when it leaves the averaged windows. All other
/// windows are processed in bulk.
struct WindowPass<'a> {
    fingerprint: &'a Fingerprint,
    array: &'a Gears,
    disk: &'a DiskParameters,
    powers: Option<&'a Powers>,
    /// Time of a seek to the reserve.
    far_s: f64,
    low: bool,
    /// Busy windows among the averaged windows, with number and utilisation; and the sum of the
    /// utilisations.
    recent: VecDeque<(u64, f64)>,
    recent_sum: f64,
    /// Sectors written to the sleeping disks since the last shift.
    written: f64,
    /// True if the gear is shifted in the next window.
    marked: bool,
    sum: Sum,
    shifts_s: Vec<f64>,
    /// Number of the next window.
    next: u64,
    low_windows: u64,
}

impl<'a> WindowPass<'a> {
    fn new(
        fingerprint: &'a Fingerprint,
        array: &'a Gears,
        disk: &'a DiskParameters,
        powers: Option<&'a Powers>,
    ) -> WindowPass<'a> {
        WindowPass {
            fingerprint,
            array,
            disk,
            powers,
            far_s: disk.seek_s(0.5, 1.0),
            low: false,
            recent: VecDeque::with_capacity(array.averaged as usize),
            recent_sum: 0.0,
            written: 0.0,
            marked: false,
            sum: Sum::of(fingerprint),
            shifts_s: Vec::new(),
            next: 0,
            low_windows: 0,
        }
    }

    fn active(&self) -> f64 {
        f64::from(self.array.disks - if self.low { self.array.sleeping } else { 0 })
    }

    /// Processes `windows` windows without arrivals.
    fn idle(&mut self, windows: u64) {
        let end = self.next + windows;
        while self.next < end {
            match self.until_mean_changes() {
                0 => self.window(None),
                alike => self.still(alike.min(end - self.next)),
            }
        }
    }

    /// Returns the number of windows, from the next on, that have the same mean as the last window
    /// if nothing arrives.
    fn until_mean_changes(&self) -> u64 {
        let averaged = u64::from(self.array.averaged);
        // The window of a shift copies data, so it is processed alone.
        if self.marked {
            return 0;
        }
        // There is no mean before the first `averaged` windows are complete.
        if self.next + 1 < averaged {
            return averaged - 1 - self.next;
        }
        if self.next + 1 == averaged {
            return 0;
        }
        self.recent.front().map_or(u64::MAX, |(first, _)| {
            // A window that lies further back than the average has left it already.
            (first + averaged).saturating_sub(self.next)
        })
    }

    /// Processes `windows` windows without work or shift.
    fn still(&mut self, windows: u64) {
        self.next += windows;
        let time = windows as f64 * self.fingerprint.window_s;
        let asleep = f64::from(self.array.disks) - self.active();
        let watts = |powers: &Powers| self.active() * powers.rotating + asleep * powers.standby;
        self.sum.energy_j += self.powers.map_or(0.0, |powers| time * watts(powers));
        self.low_windows += if self.low { windows } else { 0 };
    }

    /// Processes one window, with the shift at its beginning if one is due.
    fn window(&mut self, window: Option<(&TraceWindow, &Totals, f64)>) {
        // A shift that was due takes place once.
        let updates = if std::mem::take(&mut self.marked) {
            self.shift()
        } else {
            0.0
        };
        let (elapsed, seeking) = match window {
            Some((window, totals, near)) => self.work(window, totals, near, updates),
            None if updates > 0.0 => {
                self.work(&TraceWindow::default(), &Totals::default(), 0.0, updates)
            }
            None => (0.0, 0.0),
        };
        let (window_s, active) = (self.fingerprint.window_s, self.active());
        if let Some((_, totals, _)) = window {
            self.sum.add(
                totals,
                ArrayWork {
                    elapsed,
                    seeking,
                    active,
                },
                window_s,
                self.powers,
            );
            let part = f64::from(self.array.sleeping) / f64::from(self.array.disks);
            self.written += totals.written * part;
        } else {
            let each =
                |powers| active * crate::windowed::energy_j(window_s, elapsed, seeking, powers);
            self.sum.energy_j += self.powers.map_or(0.0, each);
        }
        let asleep = f64::from(self.array.disks) - active;
        self.sum.energy_j += self
            .powers
            .map_or(0.0, |powers| window_s * asleep * powers.standby);
        self.low_windows += u64::from(self.low);
        self.mark(elapsed / window_s);
        self.next += 1;
    }

    /// Changes the gear. Returns the number of sectors to copy.
    fn shift(&mut self) -> f64 {
        self.low = !self.low;
        self.shifts_s
            .push(self.next as f64 * self.fingerprint.window_s);
        std::mem::take(&mut self.written)
    }

    /// Returns the time of a window's runs and copies, and the part spent on seeks. Uses equation
    /// 8, or equation 10 if the reserve is next to the data.
    fn work(&self, window: &TraceWindow, totals: &Totals, near: f64, updates: f64) -> (f64, f64) {
        let array = self.array;
        // A stripe of the low gear, in sectors.
        let stripe = u64::from(array.disks - array.sleeping) * array.unit;
        let cut = self.low && totals.longest_run.max(totals.longest) > stripe;
        if updates == 0.0 && !cut {
            let elapsed = elapsed_in_all_s(
                totals.runs,
                totals.run_sectors,
                self.active(),
                near,
                self.disk,
            );
            return (elapsed, totals.runs * near);
        }
        let copies = (updates / stripe as f64).ceil();
        let seek = match array.reserve {
            Reserve::Beside => near,
            Reserve::Far => {
                let far = self.far_share(window, totals, copies, stripe);
                far * self.far_s + (1.0 - far) * near
            }
        };
        // In the low gear a run ends at each stripe, because the next unit of a sleeping disk is in
        // the reserve.
        let runs = match cut {
            true => window
                .runs
                .iter()
                .map(|&(length, count)| (length.div_ceil(stripe) * count) as f64)
                .sum(),
            false => totals.runs,
        };
        let (count, sectors) = (runs + copies, totals.run_sectors + updates);
        (
            elapsed_in_all_s(count, sectors, self.active(), seek, self.disk),
            count * seek,
        )
    }

    /// Returns the share of requests that go to the reserve, at most 1. These are requests longer
    /// than a stripe of the active disks in the low gear, and the copies of a shift.
    fn far_share(&self, window: &TraceWindow, totals: &Totals, copies: f64, stripe: u64) -> f64 {
        let may_be = (self.low || copies > 0.0) && totals.longest > stripe;
        let remapped = if may_be { window.longer(stripe) } else { 0.0 };
        let foreground = totals.requests;
        let copied = match copies > 0.0 {
            true if foreground > 0.0 => copies / foreground,
            true => 1.0,
            false => 0.0,
        };
        // Copies and remapped requests may be the same ones, and no more than all are far.
        (remapped + copied).min(1.0)
    }

    /// Adds the last window's utilisation to the mean, and marks the next window for a shift if the
    /// mean passes a threshold.
    fn mark(&mut self, utilisation: f64) {
        let averaged = u64::from(self.array.averaged);
        while self
            .recent
            .front()
            .is_some_and(|(first, _)| first + averaged <= self.next)
        {
            // The sum is kept up to date, because adding up all windows of the average at each
            // window would be quadratic.
            self.recent_sum -= self.recent.pop_front().map_or(0.0, |(_, left)| left);
        }
        if utilisation > 0.0 {
            self.recent.push_back((self.next, utilisation));
            self.recent_sum += utilisation;
        }
        if self.next + 1 >= averaged {
            let mean = self.recent_sum / averaged as f64;
            self.marked = if self.low {
                mean > self.array.up
            } else {
                mean < self.array.down
            };
        }
    }

    /// Returns the prediction. It includes equation 9's energy of the starts: one shift in two is a
    /// shift up.
    fn shifted(mut self) -> Shifted {
        // The sum counts shifts of both directions.
        let starts = self.shifts_s.len() as f64 / 2.0 * f64::from(self.array.sleeping);
        self.sum.energy_j += self.powers.map_or(0.0, |powers| starts * powers.spin_up_j);
        let windows = self.fingerprint.windows.max(1) as f64;
        Shifted {
            predicted: self
                .sum
                .predicted(self.fingerprint, f64::INFINITY, self.powers.is_some()),
            shifts_s: self.shifts_s,
            low_share: self.low_windows as f64 / windows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::windowed::seek_delays;
    use crate::windowed::tests::{DISK, POWERS, alone, fingerprint};

    const ARRAY: Gears = Gears {
        disks: 8,
        sleeping: 2,
        unit: 128,
        reserve: Reserve::Far,
        averaged: 3,
        down: 0.2,
        up: 0.6,
    };

    fn of_gears(trace: &Fingerprint, array: &Gears, powers: Option<&Powers>) -> Option<Shifted> {
        geared(
            trace,
            &seek_delays(trace, array.disks, &DISK),
            array,
            &DISK,
            powers,
        )
    }

    /// Makes a trace with one request of `sectors` sectors in each of `windows` windows.
    fn steady(windows: u64, sectors: u64, write: bool) -> Fingerprint {
        let request = |index: u64| {
            (
                0.1 * index as f64 + 0.05,
                index * 7_919_000 % 700_000_000,
                sectors,
                write,
            )
        };
        fingerprint(&(0..windows).map(request).collect::<Vec<_>>())
    }

    fn never_down(reserve: Reserve) -> Gears {
        Gears {
            reserve,
            down: 0.0,
            ..ARRAY
        }
    }

    #[test]
    fn p_53_in_the_high_gear_without_a_shift_equation_eight_is_equation_five() {
        let trace = steady(50, 4000, true);
        let expected = alone(&trace, 8, Some(&POWERS), f64::INFINITY);
        for reserve in [Reserve::Far, Reserve::Beside] {
            let found = of_gears(&trace, &never_down(reserve), Some(&POWERS)).unwrap();
            assert_eq!((&found.shifts_s[..], found.low_share), (&[][..], 0.0));
            assert!((found.predicted.latency_s - expected.latency_s).abs() < 1e-12);
            assert!((found.predicted.energy_j.unwrap() - expected.energy_j.unwrap()).abs() < 1e-9);
        }
    }

    #[test]
    fn p_53_with_nothing_in_the_reserve_equation_ten_is_equation_eight() {
        // All requests are reads shorter than a stripe, so Δ is 0 in every window, in both gears.
        let short = steady(50, 64, false);
        let [far, beside] = [Reserve::Far, Reserve::Beside]
            .map(|reserve| of_gears(&short, &Gears { reserve, ..ARRAY }, Some(&POWERS)).unwrap());
        assert!(far.low_share > 0.5 && far.low_share < 1.0);
        assert_eq!(far, beside);
        // With longer requests, the way to a far reserve takes longer.
        let long = steady(50, 1000, false);
        let [far, beside] = [Reserve::Far, Reserve::Beside].map(|reserve| {
            of_gears(&long, &Gears { reserve, ..ARRAY }, None)
                .unwrap()
                .predicted
        });
        assert!(
            far.window_latencies_s
                .iter()
                .zip(&beside.window_latencies_s)
                .all(|(far, beside)| far >= beside)
        );
        assert_ne!(far, beside);
    }

    #[test]
    fn where_nothing_goes_to_the_reserve_both_are_alike_and_else_far_takes_longer() {
        let latency = |trace: &Fingerprint, reserve| {
            let found = of_gears(trace, &Gears { reserve, ..ARRAY }, None).unwrap();
            assert_eq!(found.shifts_s.len(), 1);
            found.predicted.latency_s
        };
        // All requests are reads shorter than a stripe, so Δ is 0, and (10) equals (8).
        let short = steady(50, 64, false);
        assert_eq!(
            latency(&short, Reserve::Far),
            latency(&short, Reserve::Beside)
        );
        let long = steady(50, 1000, false);
        assert!(latency(&long, Reserve::Far) > latency(&long, Reserve::Beside));
    }

    #[test]
    fn thresholds_that_are_no_shares_or_shift_to_and_fro_are_refused() {
        let trace = steady(5, 64, false);
        for (down, up) in [
            (0.6, 0.3),
            (0.3, 0.3),
            (0.5, 0.6),
            (f64::NAN, 0.5),
            (0.1, f64::NAN),
            (-0.1, 0.5),
            (0.1, 1.5),
        ] {
            let gears = Gears { down, up, ..ARRAY };
            assert!(
                gears
                    .thresholds()
                    .unwrap_err()
                    .to_string()
                    .contains("; expected "),
                "{down} {up}"
            );
            assert!(of_gears(&trace, &gears, None).is_none());
        }
        // Six of eight disks are busier by a third.
        assert!(
            Gears {
                down: 0.44,
                up: 0.6,
                ..ARRAY
            }
            .thresholds()
            .is_ok()
        );
    }

    #[test]
    fn low_gear_cuts_runs_at_a_stripe_of_the_active_disks() {
        let gears = Gears {
            averaged: 1,
            down: 0.6,
            up: 1.0,
            reserve: Reserve::Beside,
            ..ARRAY
        };
        // 1600 sectors are two stripes of 6 x 128 and a rest; 768 sectors are one stripe. The shift
        // comes before the second window.
        for (sectors, pieces) in [(1600, 3.0), (768, 1.0), (769, 2.0)] {
            let trace = fingerprint(&[(0.0, 0, 8, false), (0.15, 1 << 20, sectors, false)]);
            let found = of_gears(&trace, &gears, None)
                .unwrap()
                .predicted
                .window_latencies_s[1];
            let seek = seek_delays(&trace, 8, &DISK)[1];
            let expected =
                sectors as f64 / 6.0 / DISK.sequential + pieces * (seek + DISK.rotation_s);
            assert!(
                (found - expected).abs() < 1e-12,
                "{sectors}: {found} {expected}"
            );
        }
    }

    #[test]
    fn a_quiet_hour_sleeps_and_costs_what_equation_nine_says() {
        let trace = fingerprint(&[(0.0, 0, 8, false), (3600.0 - 0.05, 0, 8, false)]);
        let found = of_gears(&trace, &ARRAY, Some(&POWERS)).unwrap();
        // The mean of the first three windows causes a shift in the fourth.
        let high = 3.0;
        let low = 36_000.0 - high;
        assert!((found.shifts_s[0] - 0.3).abs() < 1e-12 && found.shifts_s.len() == 1);
        assert_eq!(found.low_share, low / 36_000.0);
        let idle = 0.1 * (high * 8.0 * 5.0 + low * (6.0 * 5.0 + 2.0 * 1.0));
        let start = 0.5 * 2.0 * 100.0;
        let first = 8.0 * (8.0 / 8.0 / 200_000.0 + 0.003) * 3.0;
        // The last request is at the place of the first, 8 sectors back, so the seek is only
        // settling.
        let last = 6.0 * ((8.0 / 6.0 / 200_000.0 + 0.004) * 3.0 + 0.001 * 3.0);
        let energy = found.predicted.energy_j.unwrap();
        assert!(
            (energy - (idle + start + first + last)).abs() < 1e-6,
            "{energy}"
        );
    }

    #[test]
    fn a_shift_copies_what_was_written_to_the_disks_that_go_to_sleep() {
        let of = |write| {
            of_gears(&steady(50, 2000, write), &ARRAY, None)
                .unwrap()
                .predicted
        };
        let (read, written) = (of(false), of(true));
        // Three windows wrote 2000 sectors each. A quarter of these went to two disks of eight.
        assert!(written.latency_s > read.latency_s);
        let more = (written.utilisation - read.utilisation) * 5.0;
        assert!(more > 1500.0 / 6.0 / DISK.sequential, "{more}");
    }

    #[test]
    fn load_that_rises_shifts_up_again() {
        let mut requests: Vec<_> = (0..50u64).map(|at| (at as f64, 0, 8, false)).collect();
        let burst = (0..2000u64).map(|at| {
            (
                50.0 + 0.004 * at as f64,
                at * 7_919_000 % 700_000_000,
                8,
                false,
            )
        });
        requests.extend(burst);
        let found = of_gears(&fingerprint(&requests), &ARRAY, None).unwrap();
        assert!(
            found.shifts_s.len() == 2 && (50.0..51.0).contains(&found.shifts_s[1]),
            "{:?}",
            found.shifts_s
        );
        assert!((0.8..0.9).contains(&found.low_share), "{}", found.low_share);
    }

    #[test]
    fn gears_that_cannot_be_are_refused() {
        let trace = steady(1, 8, false);
        for gears in [
            Gears {
                sleeping: 8,
                ..ARRAY
            },
            Gears { unit: 0, ..ARRAY },
            Gears {
                averaged: 0,
                ..ARRAY
            },
        ] {
            assert_eq!(of_gears(&trace, &gears, None), None);
        }
    }
}
