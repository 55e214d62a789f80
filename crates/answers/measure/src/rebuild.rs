//! Duration of a rebuild, extrapolated from the part within the run.

use fullstroke_contract::{Notice, ZoneRate};
use fullstroke_engine::{Rebuild, RebuildMark, Rebuilds};
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors, Time};
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
    /// Progress since the settling time, which may be none.
    #[serde(skip)]
    pub pace: RebuildPace,
}

/// Progress of a rebuild in a part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RebuildPace {
    /// Length of the part of the run, in seconds.
    pub seconds: f64,
    /// Seconds for the same progress at the full speed of the zones.
    pub ideal_s: f64,
}

impl RebuildPace {
    /// Returns the seconds for each second at full speed; infinite without progress.
    pub fn slowness(self) -> f64 {
        self.seconds / self.ideal_s
    }
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

    /// Returns the rebuild of the run whose last request arrived at `last_arrival`; `None` without
    /// plans.
    pub(crate) fn report(&self, last_arrival: Time) -> Option<RebuildReport> {
        RebuildReport::new(
            &self.plans,
            self.rebuilds.all(),
            &self.settling,
            last_arrival,
        )
    }
}

/// Length of the steps of time at which progress counts.
const STEP: Duration = Duration::from_nanos(1_000_000_000);

/// Number of steps that are kept: the time from the last arrival to the end of a run is shorter.
const STEPS: usize = 600;

/// The part of a rebuild whose speed counts.
///
/// A rebuild moves in jumps, and the jumps of a rebuild that takes turns with requests come close
/// together. From one notice to another, the time between two groups of jumps would be missing. The
/// last request of a run ends behind such a group, so that a part up to the end of the run would have
/// a group too many. The part therefore begins and ends at times that depend neither on notices nor
/// on completions: it ends with the last whole second before the last arrival.
#[derive(Clone, Debug, Default)]
struct RebuildSettling {
    /// Time after which the speed counts. Before, caches and queues are as empty as at no place
    /// inside a rebuild.
    until: Time,
    /// Progress of each member, in the order of the plans.
    members: Vec<MemberProgress>,
}

/// Progress of a member.
#[derive(Clone, Debug)]
struct MemberProgress {
    /// State at the settling time; `None` before the first notice after this time.
    settled: Option<RebuildMark>,
    /// State after the latest notice.
    latest: RebuildMark,
    /// States at whole seconds, the oldest first. A second without a mark has the state of the next
    /// mark.
    steps: VecDeque<RebuildMark>,
}

impl MemberProgress {
    fn new(plan: &RebuildPlan) -> MemberProgress {
        MemberProgress {
            settled: None,
            latest: RebuildMark {
                at: Time::ZERO,
                done: plan.from,
            },
            steps: VecDeque::new(),
        }
    }

    /// Notes a newer state. Nothing has moved between the state before and this one.
    fn note(&mut self, latest: RebuildMark, until: Time) {
        let before = std::mem::replace(&mut self.latest, latest);
        let at = |at: Time| RebuildMark {
            at,
            done: before.done,
        };
        if latest.at > until && self.settled.is_none() {
            self.settled = Some(at(until));
        }
        let step = whole_steps(latest.at);
        if step > whole_steps(before.at) {
            if self.steps.len() == STEPS {
                self.steps.pop_front();
            }
            self.steps.push_back(at(step));
        }
    }

    /// Returns the filled sectors at the time `step`, as far as the steps are kept.
    fn done_at(&self, step: Time) -> Sectors {
        let later = self.steps.partition_point(|mark| mark.at < step);
        (self.steps.get(later)).map_or(self.latest.done, |mark| mark.done)
    }
}

/// Returns the last whole second up to `at`.
fn whole_steps(at: Time) -> Time {
    let steps = at.since(Time::ZERO).as_nanos() / STEP.as_nanos();
    Time::ZERO + STEP * steps
}

impl RebuildSettling {
    /// Notes the state of the members after a notice.
    fn note(&mut self, plans: &[RebuildPlan], seen: &[Rebuild]) {
        if self.members.is_empty() {
            self.members = plans.iter().map(MemberProgress::new).collect();
        }
        for (plan, member) in plans.iter().zip(&mut self.members) {
            let rebuild = seen.iter().find(|rebuild| rebuild.path == plan.path);
            if let Some(rebuild) = rebuild
                && rebuild.latest != member.latest
            {
                member.note(rebuild.latest, self.until);
            }
        }
    }

    /// Returns the progress from the settling time to the last whole second up to `last_arrival`, or
    /// to the end of the rebuild; `None` if this time has no length.
    fn pace(&self, plans: &[RebuildPlan], last_arrival: Time) -> Option<RebuildPace> {
        let end = whole_steps(last_arrival);
        let (mut began, mut ended, mut ideal_s) = (Time::NEVER, Time::ZERO, 0.0);
        for (index, plan) in plans.iter().enumerate() {
            let member = self.members.get(index)?;
            // Without a notice after the settling time, the member has not moved since.
            let from = member.settled.unwrap_or(RebuildMark {
                at: self.until,
                done: member.latest.done,
            });
            let done = member.done_at(end).max(from.done);
            began = began.min(from.at);
            let is_whole = done >= plan.used;
            ended = ended.max(if is_whole { member.latest.at } else { end });
            ideal_s += plan.ideal_s(from.done.0, done.0);
        }
        let seconds = ended.saturating_since(began).as_secs_f64();
        (seconds > 0.0).then_some(RebuildPace { seconds, ideal_s })
    }

    /// Returns the slowness in the same time; `None` if a member did not move.
    fn slowness(&self, plans: &[RebuildPlan], last_arrival: Time) -> Option<f64> {
        let end = whole_steps(last_arrival);
        let moved = |member: &MemberProgress| {
            member
                .settled
                .is_some_and(|from| member.done_at(end) > from.done)
        };
        let all_moved = self.members.len() >= plans.len() && self.members.iter().all(moved);
        let pace = self.pace(plans, last_arrival).filter(|_| all_moved)?;
        (pace.ideal_s > 0.0).then(|| pace.slowness())
    }
}

impl RebuildReport {
    /// Returns the report of the rebuild of the members in `plans`, as far as `seen`. The slowness
    /// counts as `settling` says.
    fn new(
        plans: &[RebuildPlan],
        seen: &[Rebuild],
        settling: &RebuildSettling,
        last_arrival: Time,
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
        let settled = settling.slowness(plans, last_arrival);
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
            pace: settling.pace(plans, last_arrival).unwrap_or_default(),
        })
    }
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

    /// Records a rebuild that fills 10,000 sectors at each of the times `at_ms`.
    fn jumps(
        until_ms: u64,
        at_ms: impl IntoIterator<Item = u64>,
    ) -> (RebuildPlan, RebuildSettling) {
        let plan = plan(2, None);
        let mut settling = RebuildSettling {
            until: Time::from_nanos(until_ms * 1_000_000),
            ..RebuildSettling::default()
        };
        let mut rebuilds = Rebuilds::default();
        rebuilds.begin(Time::ZERO, &plan.path, Sectors::ZERO, plan.used);
        for (index, at_ms) in at_ms.into_iter().enumerate() {
            let signal = Signal::Rebuilt {
                member: 2,
                done: Sectors(10_000 * (index as u64 + 1)),
                used: plan.used,
                whole: false,
            };
            let at = Time::from_nanos(at_ms * 1_000_000);
            rebuilds.note_notice(&[], &Notice::of_instant(signal, at));
            settling.note(std::slice::from_ref(&plan), rebuilds.all());
        }
        (plan, settling)
    }

    #[test]
    fn jumps_in_groups_count_between_whole_seconds() {
        // Three jumps at once, twice a second; the run ends right behind a group.
        let at_ms = (1..=21).flat_map(|group| [500 * group + 100; 3]);
        let (plan, settling) = jumps(1_000, at_ms);
        let plans = [plan];
        for last_ms in [10_000, 10_100, 10_600, 10_999] {
            let last = Time::from_nanos(last_ms * 1_000_000);
            // Nine seconds with six jumps each, of 10,000 sectors at 200 MB/s.
            let expected = 1.0 / (6.0 * 10_000.0 * 512.0 / 200e6);
            let slowness = settling.slowness(&plans, last).unwrap();
            assert!(
                (slowness / expected - 1.0).abs() < 1e-9,
                "{last_ms}: {slowness}"
            );
        }
        let early = Time::from_nanos(1_999_000_000);
        assert_eq!(
            (
                settling.slowness(&plans, early),
                settling.pace(&plans, early)
            ),
            (None, None),
            "nothing moves between the first second and itself"
        );
    }

    #[test]
    fn a_pause_over_several_seconds_counts_as_time() {
        let (plan, settling) = jumps(0, [500, 1_200, 1_500, 5_300, 5_400]);
        let slowness = settling
            .slowness(&[plan], Time::from_nanos(4_900_000_000))
            .unwrap();
        let expected = 4.0 / (3.0 * 10_000.0 * 512.0 / 200e6);
        assert!((slowness / expected - 1.0).abs() < 1e-9, "{slowness}");
    }

    #[test]
    fn a_member_that_stands_still_has_a_pace_without_progress() {
        let (plan, settling) = jumps(2_000, [500, 1_200, 1_500]);
        let last = Time::from_nanos(9_900_000_000);
        let plans = [plan];
        assert_eq!(settling.slowness(&plans, last), None);
        let pace = settling.pace(&plans, last).unwrap();
        assert_eq!((pace.seconds, pace.ideal_s), (7.0, 0.0));
        assert_eq!(pace.slowness(), f64::INFINITY);
    }
}
