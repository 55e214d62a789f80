//! Duration of a rebuild, extrapolated from the part within the run.

use fullstroke_contract::{Notice, ZoneRate};
use fullstroke_engine::{Rebuild, RebuildMark, Rebuilds};
use fullstroke_units::{Bytes, SECTOR_BYTES, Sectors, Time};
use serde::Serialize;
use std::collections::VecDeque;

/// A member whose rebuild begins with the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RebuildPlan {
    /// Indices of the member from the top of the tree.
    pub path: Vec<usize>,
    /// Number of sectors that are filled at the start.
    pub from: Sectors,
    /// End of the sectors to rebuild.
    pub used: Sectors,
    /// Transfer rate of each zone when written; empty if unknown.
    pub zones: Vec<ZoneRate>,
    /// Limit of the rebuild rate, in bytes per second; `None` means no limit.
    pub most: Option<Bytes>,
}

/// The rebuild of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RebuildReport {
    /// Names of the rebuilt members.
    pub members: Vec<String>,
    /// Share of the members that was rebuilt in the run.
    pub share: f64,
    /// Rate of the rebuild, in 10^6 bytes per second.
    pub mb_per_s: f64,
    /// Duration of the complete rebuild, in hours.
    pub hours: f64,
    /// Half the width of the 95 % confidence interval of `hours`: 0 if the rebuild ended in the
    /// run, `None` if the hours rest on the part of this run alone.
    pub hours_ci95_half_width: Option<f64>,
    /// True if `hours` is an estimate because the run ended before the rebuild. The estimate
    /// assumes that the rest is as slow, relative to the speed of its zones, as the rebuilt part.
    pub estimated: bool,
    /// Number of windows, at places all over the members, whose speeds give `hours`; 0 if this run
    /// gives them alone.
    pub windows: usize,
    /// Share of the members that was rebuilt in this run or in the windows.
    pub simulated_share: f64,
    /// Duration of the rebuild in this run since the settling time, as a multiple of the duration
    /// at the full speed of the zones.
    #[serde(skip)]
    pub slowness: f64,
}

/// The rebuilds of a run, as notices tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct RebuildWatch {
    plans: Vec<RebuildPlan>,
    rebuilds: Rebuilds,
    settling: RebuildSettling,
}

impl RebuildWatch {
    /// Begins the rebuild of the members in `plans`.
    pub(crate) fn begin(&mut self, plans: Vec<RebuildPlan>) {
        for plan in &plans {
            self.rebuilds
                .begin(Time::ZERO, &plan.path, plan.from, plan.used);
        }
        self.plans = plans;
    }

    /// Leaves out the time until `until` in the slowness.
    pub(crate) fn settle(&mut self, until: Time) {
        self.settling.until = until;
    }

    /// Notes a notice of the layer at `path`.
    pub(crate) fn note(&mut self, path: &[usize], notice: &Notice) {
        if !self.plans.is_empty() {
            self.rebuilds.note_notice(path, notice);
            self.settling.note(&self.plans, self.rebuilds.all());
        }
    }

    /// Returns the rebuild of the run that ended at `end`; `None` without plans.
    pub(crate) fn report(&self, end: Time) -> Option<RebuildReport> {
        RebuildReport::new(&self.plans, self.rebuilds.all(), &self.settling, end)
    }
}

/// Number of notices that are kept. I/O in flight ends after the end of the run, and is no progress
/// of the run.
const RECENT: usize = 512;

/// The part of a rebuild whose speed counts.
///
/// A rebuild moves in steps, and the steps of a rebuild that takes turns with requests come close
/// together. From one notice to another, the time between two groups of steps would be missing. The
/// part therefore begins and ends at times that do not depend on notices.
#[derive(Clone, Debug, Default)]
struct RebuildSettling {
    /// Time after which the speed counts. Before, caches and queues are as empty as at no place
    /// inside a rebuild.
    until: Time,
    /// State of each member at this time, in the order of the plans; `None` before the first notice
    /// after this time.
    marks: Vec<Option<RebuildMark>>,
    /// State of each member after its latest notice.
    latest: Vec<RebuildMark>,
    /// The latest notices with their members, the oldest first.
    recent: VecDeque<(usize, RebuildMark)>,
}

impl RebuildSettling {
    /// Notes the state of the members after a notice.
    fn note(&mut self, plans: &[RebuildPlan], seen: &[Rebuild]) {
        if self.latest.is_empty() {
            let mark = |plan: &RebuildPlan| RebuildMark {
                at: Time::ZERO,
                done: plan.from,
            };
            self.latest = plans.iter().map(mark).collect();
            self.marks = vec![None; plans.len()];
        }
        for (index, plan) in plans.iter().enumerate() {
            let Some(rebuild) = seen.iter().find(|rebuild| rebuild.path == plan.path) else {
                continue;
            };
            let before = std::mem::replace(&mut self.latest[index], rebuild.latest);
            if rebuild.latest == before {
                continue;
            }
            if rebuild.latest.at > self.until && self.marks[index].is_none() {
                self.marks[index] = Some(RebuildMark {
                    at: self.until,
                    done: before.done,
                });
            }
            if self.recent.len() == RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back((index, rebuild.latest));
        }
    }

    /// Returns the state of a member at `end`, as far as its notices are kept.
    fn at(&self, index: usize, end: Time) -> Option<RebuildMark> {
        let of_member = |&&(other, mark): &&(usize, RebuildMark)| other == index && mark.at <= end;
        let found = self.recent.iter().rev().find(of_member)?;
        Some(found.1)
    }
}

impl RebuildReport {
    /// Returns the report of the rebuild of the members in `plans`, as far as `seen`. The slowness
    /// counts from the marks of `settling` on, up to the end of the run or of the rebuild.
    fn new(
        plans: &[RebuildPlan],
        seen: &[Rebuild],
        settling: &RebuildSettling,
        end: Time,
    ) -> Option<RebuildReport> {
        if plans.is_empty() {
            return None;
        }
        let (mut done_sectors, mut all_sectors) = (0, 0);
        let (mut done_ideal_s, mut left_ideal_s, mut whole) = (0.0, 0.0, true);
        let mut latest = Time::ZERO;
        for plan in plans {
            // A resilver skips the labels of the pool at the very begin, which is no progress.
            let rebuild = seen
                .iter()
                .find(|rebuild| rebuild.path == plan.path && rebuild.latest.at > Time::ZERO);
            let done = rebuild.map_or(plan.from, |rebuild| rebuild.latest.done);
            latest = rebuild.map_or(latest, |rebuild| latest.max(rebuild.latest.at));
            done_sectors += done.0 - plan.from.0;
            all_sectors += plan.used.0;
            done_ideal_s += plan.ideal_s(plan.from.0, done.0);
            left_ideal_s += plan.ideal_s(done.0, plan.used.0);
            whole &= done >= plan.used;
        }
        let elapsed_s = latest.since(Time::ZERO).as_secs_f64();
        let slowness = elapsed_s / done_ideal_s;
        let share = done_sectors as f64 / all_sectors.max(1) as f64;
        let settled = settled_slowness(plans, settling, end);
        Some(RebuildReport {
            members: plans.iter().map(RebuildPlan::name).collect(),
            share,
            mb_per_s: match elapsed_s > 0.0 {
                true => (done_sectors * SECTOR_BYTES) as f64 / 1e6 / elapsed_s,
                false => 0.0,
            },
            // The rest is assumed to be slower than ideal by the same factor as the part that was
            // filled.
            hours: (elapsed_s + slowness * left_ideal_s) / 3600.0,
            hours_ci95_half_width: whole.then_some(0.0),
            estimated: !whole,
            windows: 0,
            simulated_share: share,
            slowness: settled.unwrap_or(slowness),
        })
    }
}

/// Returns the slowness of the rebuild since the marks of `settling`, up to `end`; `None` if a member
/// has no mark, or has not moved since.
fn settled_slowness(plans: &[RebuildPlan], settling: &RebuildSettling, end: Time) -> Option<f64> {
    let (mut began, mut ended, mut ideal_s) = (Time::NEVER, Time::ZERO, 0.0);
    for (index, plan) in plans.iter().enumerate() {
        let from = settling.marks.get(index).copied().flatten()?;
        let to = settling.at(index, end)?;
        began = began.min(from.at);
        ended = ended.max(if to.done >= plan.used { to.at } else { end });
        ideal_s += plan.ideal_s(from.done.0, to.done.0);
    }
    let elapsed_s = ended.saturating_since(began).as_secs_f64();
    (ideal_s > 0.0 && elapsed_s > 0.0).then(|| elapsed_s / ideal_s)
}

impl RebuildPlan {
    fn name(&self) -> String {
        self.path
            .iter()
            .map(usize::to_string)
            .collect::<Vec<_>>()
            .join(".")
    }

    /// Returns the seconds to write the sectors from `from` to `end` at the speed of their zones,
    /// or at the allowed rate if that is lower. If the zones are unknown, all sectors have the same
    /// speed.
    pub fn ideal_s(&self, from: u64, end: u64) -> f64 {
        let most = self.most.map_or(f64::INFINITY, |most| most.0 as f64);
        let whole = [ZoneRate {
            first: fullstroke_units::Lbn(0),
            sectors: self.used,
            // Any constant rate will do, because only the ratio of two ideal times counts.
            bytes_per_s: 1 << 20,
        }];
        let zones = if self.zones.is_empty() {
            &whole
        } else {
            &self.zones[..]
        };
        let time = zones.iter().map(|zone| {
            let first = zone.first.0.max(from);
            let behind = (zone.first + zone.sectors).0.min(end);
            // A zone may end before the part that is looked at.
            let bytes = behind.saturating_sub(first) as f64 * SECTOR_BYTES as f64;
            bytes / (zone.bytes_per_s as f64).min(most)
        });
        time.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::Signal;
    use fullstroke_units::Lbn;

    fn plan(member: usize, most: Option<Bytes>) -> RebuildPlan {
        let zone = |first, bytes_per_s| ZoneRate {
            first: Lbn(first),
            sectors: Sectors(1_000_000),
            bytes_per_s,
        };
        let zones = vec![zone(0, 200_000_000), zone(1_000_000, 100_000_000)];
        RebuildPlan {
            path: vec![member],
            from: Sectors::ZERO,
            used: Sectors(2_000_000),
            zones,
            most,
        }
    }

    fn seen(done: u64, seconds: u64) -> Rebuilds {
        let mut rebuilds = Rebuilds::default();
        rebuilds.begin(Time::ZERO, &[2], Sectors::ZERO, Sectors(2_000_000));
        let used = Sectors(2_000_000);
        let signal = Signal::Rebuilt {
            member: 2,
            done: Sectors(done),
            used,
            whole: done == used.0,
        };
        rebuilds.note_notice(
            &[],
            &Notice::of_instant(signal, Time::from_nanos(seconds * 1_000_000_000)),
        );
        rebuilds
    }

    #[test]
    fn what_is_left_is_as_slow_beside_its_zones_as_what_was_filled() {
        // 512 MB were rebuilt at half the speed of their zone, which is 200 MB/s.
        let seen = seen(1_000_000, 5);
        let report = RebuildReport::new(
            &[plan(2, None)],
            seen.all(),
            &RebuildSettling::default(),
            Time::NEVER,
        )
        .unwrap();
        assert_eq!((report.share, report.estimated), (0.5, true));
        assert!((report.mb_per_s - 102.4).abs() < 1e-9);
        // 2.56 s at full speed took 5 s, and 5.12 s at full speed are left.
        assert!((report.hours * 3600.0 - 15.0).abs() < 1e-6, "{report:?}");
        let second = RebuildReport::new(
            &[plan(2, None), plan(3, None)],
            seen.all(),
            &RebuildSettling::default(),
            Time::NEVER,
        )
        .unwrap();
        assert!(
            (second.hours * 3600.0 - 30.0).abs() < 1e-6,
            "the next takes as long: {second:?}"
        );
    }

    #[test]
    fn a_place_that_is_skipped_at_the_begin_is_no_progress() {
        let report = RebuildReport::new(
            &[plan(2, None)],
            seen(8192, 0).all(),
            &RebuildSettling::default(),
            Time::NEVER,
        )
        .unwrap();
        assert_eq!((report.mb_per_s, report.share), (0.0, 0.0), "{report:?}");
    }

    #[test]
    fn where_the_rate_is_bounded_zones_that_are_faster_are_not() {
        let most = Some(Bytes(100_000_000));
        let report = RebuildReport::new(
            &[plan(2, most)],
            seen(1_000_000, 6).all(),
            &RebuildSettling::default(),
            Time::NEVER,
        )
        .unwrap();
        assert!((report.hours * 3600.0 - 12.0).abs() < 1e-6, "{report:?}");
    }

    #[test]
    fn a_rebuild_that_ends_within_the_run_is_measured() {
        let report = RebuildReport::new(
            &[plan(2, None)],
            seen(2_000_000, 36).all(),
            &RebuildSettling::default(),
            Time::NEVER,
        )
        .unwrap();
        assert_eq!(
            (report.estimated, report.hours, report.share),
            (false, 0.01, 1.0)
        );
        assert_eq!(
            RebuildReport::new(&[], &[], &RebuildSettling::default(), Time::NEVER),
            None
        );
    }
}
