//! Members that are rebuilt while a stack runs.

use fullstroke_contract::{Notice, Signal};
use fullstroke_engine::{Observer, RunOutcome};
use fullstroke_stack::{Overrides, Stack};
use fullstroke_units::{Sectors, Time};
use std::fs;

/// Progress of a rebuild, from the notices of a run.
#[derive(Default)]
struct RebuildNotices {
    done: Vec<(Time, Vec<usize>, u32, Sectors)>,
    whole: Vec<u32>,
    background: u64,
}

impl Observer for RebuildNotices {
    fn noticed(&mut self, path: &[usize], notice: &Notice) {
        let now = notice.at;
        if let Signal::Rebuilt {
            member,
            done,
            whole,
            ..
        } = notice.signal
        {
            self.done.push((now, path.to_vec(), member, done));
            self.whole.extend(whole.then_some(member));
        }
    }
    fn drive_io(&mut self, _: Time, _: usize, request: &fullstroke_contract::Request) {
        self.background += u64::from(request.origin == fullstroke_contract::Request::BACKGROUND);
    }
}

fn stack(volume: &str, requests: u64) -> Result<Stack, String> {
    stack_at(20.0, volume, requests)
}

fn stack_at(rate_per_s: f64, volume: &str, requests: u64) -> Result<Stack, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.toml");
    let text = format!(
        "seed = 1\n[workload]\nkind = \"synthetic\"\nrequests = {requests}\nsize = \"4KiB\"\nread_share = 0.5\n\
         arrivals = {{ process = \"poisson\", rate_per_s = {rate_per_s} }}\n[volume]\n{volume}\n"
    );
    fs::write(&path, text).unwrap();
    Stack::load(&path, &Overrides::default()).map_err(|error| error.to_string())
}

fn run(volume: &str, requests: u64) -> (RunOutcome, RebuildNotices) {
    run_at(20.0, volume, requests)
}

fn run_at(rate_per_s: f64, volume: &str, requests: u64) -> (RunOutcome, RebuildNotices) {
    let run = stack_at(rate_per_s, volume, requests)
        .unwrap()
        .build()
        .unwrap();
    let mut seen = RebuildNotices::default();
    let outcome = run.engine().run(&mut seen).unwrap();
    (outcome, seen)
}

const RAID5: &str = "layout = \"raid5\"\ndrive = \"seagate-cheetah-9lp\"\ndrives = 4";

#[test]
fn a_rebuild_begins_with_the_run_and_ends_with_it() {
    let (outcome, seen) = run(&format!("{RAID5}\nrebuild = 2"), 200);
    assert_eq!((outcome.completed, outcome.lost), (200, 0));
    assert!(
        seen.done.len() > 20
            && seen
                .done
                .iter()
                .all(|(_, path, member, _)| path.is_empty() && *member == 2)
    );
    assert!(
        seen.done.windows(2).all(|pair| pair[0].3 < pair[1].3),
        "from front to back"
    );
    assert!(
        seen.whole.is_empty(),
        "nine gigabytes are not filled in ten seconds"
    );
    let (last, ..) = *seen.done.last().unwrap();
    let after = last.since(outcome.end).as_secs_f64();
    assert!(
        after < 1.0,
        "only what is under way ends {after} s after the workload"
    );
    let (_, none) = run(RAID5, 200);
    assert_eq!((none.done.len(), none.background), (0, 0));
}

#[test]
fn a_rebuild_is_as_fast_as_its_limit_says() {
    let (outcome, seen) = run(
        &format!("{RAID5}\nrebuild = [1]\nspeed_limit_max = \"1MiB\""),
        400,
    );
    let seconds = outcome.end.as_secs_f64();
    let mebibytes = seen.done.last().unwrap().3.0 as f64 / 2048.0;
    assert!(
        (mebibytes - seconds).abs() < 2.0,
        "{mebibytes} MiB in {seconds} s"
    );
}

#[test]
fn a_rebuild_beside_more_load_than_the_drives_carry_goes_on() {
    // md never makes way below `sync_speed_min` (`md_do_sync`, drivers/md/md.c), and its I/O has the
    // class of other I/O. With the idle class, mq-deadline would hold each I/O back for 10 s. But a
    // rebuild needs stripes, and requests that wait take stripes first, so that a rebuild beside an
    // overload stays below this speed.
    let volume = "layout = \"raid5\"\ndrive = \"wd-red-plus-4tb\"\ndrives = 4\nrebuild = 2";
    for rate in [150.0, 250.0] {
        let mut speeds = Vec::new();
        for elevator in ["mq-deadline", "bfq", "none"] {
            let host = format!("[host]\nlike = \"linux-6.x\"\nmembers.elevator = \"{elevator}\"");
            let (outcome, seen) = run_at(rate, &format!("{volume}\n{host}"), 10_000);
            let (_, _, _, done) = *seen.done.last().unwrap();
            let mb_per_s = done.bytes().0 as f64 / 1e6 / outcome.end.as_secs_f64();
            // An I/O of the idle class would wait for ten seconds: 0.01 MB/s.
            assert!(
                mb_per_s >= 0.1,
                "{elevator}, {rate} requests a second: {mb_per_s} MB/s"
            );
            speeds.push(mb_per_s);
        }
        println!("{rate} requests a second: {speeds:.2?} MB/s");
    }
}

#[test]
fn fewer_ios_in_flight_make_a_rebuild_beside_requests_slower() {
    let volume = "layout = \"raid5\"\ndrive = \"wd-red-plus-4tb\"\ndrives = 4\nchunk = \"64KiB\"\nrebuild = 2";
    let speeds = ["", "\nsync_io_depth = 128", "\nsync_io_depth = 32"].map(|depth| {
        let (outcome, seen) = run_at(60.0, &format!("{volume}{depth}"), 4_000);
        let (_, _, _, done) = *seen.done.last().unwrap();
        done.bytes().0 as f64 / 1e6 / outcome.end.as_secs_f64()
    });
    println!("{speeds:.2?} MB/s");
    assert!(
        speeds.windows(2).all(|pair| pair[0] > pair[1]) && speeds[0] > 1.15 * speeds[2],
        "{speeds:.2?}"
    );
    assert!(speeds[2] > 1.024, "not below the least speed: {speeds:.2?}");
}

#[test]
fn a_member_volume_is_rebuilt_like_a_drive() {
    let volume = "layout = \"raid5\"\nrebuild = 1\n[[volume.members]]\nlayout = \"raid1\"\n\
                  drive = \"seagate-cheetah-9lp\"\ndrives = 2\ncount = 3";
    let (outcome, seen) = run(volume, 100);
    assert_eq!(outcome.completed, 100);
    assert!(!seen.done.is_empty());
    let rebuilt = stack(volume, 100).unwrap().rebuilt_members().unwrap();
    assert_eq!(rebuilt.len(), 1);
    assert!(rebuilt[0].path == [1] && rebuilt[0].zones.is_empty());
}

#[test]
fn members_of_different_pairs_are_rebuilt_at_once() {
    let raid10 = RAID5.replace("raid5", "raid10");
    let (outcome, seen) = run(&format!("{raid10}\nrebuild = [0, 3]"), 100);
    assert_eq!(outcome.lost, 0);
    let of = |member| {
        seen.done
            .iter()
            .filter(move |done| done.2 == member)
            .map(|done| done.3)
            .max()
    };
    assert!(of(0).is_some() && of(0) == of(3), "{:?} {:?}", of(0), of(3));
    let error = stack(&format!("{raid10}\nrebuild = [0, 1]"), 1)
        .err()
        .unwrap();
    assert!(error.contains("2 members would be lost"), "{error}");
}

#[test]
fn two_members_are_rebuilt_in_the_time_of_one() {
    let filled = |volume: &str| {
        let (outcome, seen) = run(volume, 200);
        let of = |member| {
            seen.done
                .iter()
                .filter(|done| done.2 == member)
                .map(|done| done.3.0)
                .max()
        };
        (of(0), of(1), outcome.end)
    };
    let raid6 = RAID5
        .replace("raid5", "raid6")
        .replace("drives = 4", "drives = 6");
    let (alone, ..) = filled(&format!("{raid6}\nrebuild = 0"));
    let (first, second, _) = filled(&format!("{raid6}\nrebuild = [0, 1]"));
    assert_eq!(first, second);
    let (alone, both) = (alone.unwrap() as f64, first.unwrap() as f64);
    assert!(both > 0.8 * alone, "{both} of each, {alone} of one alone");
}

#[test]
fn while_nobody_asks_a_member_is_filled_at_the_rate_of_its_medium() {
    for volume in [
        "layout = \"raid1\"\ndrives = 2\nrebuild = 1",
        "layout = \"raid5\"\ndrives = 5\nrebuild = 2",
        "layout = \"raid5\"\ndrives = 5\nrebuild = 0\nchunk = \"1MiB\"",
        "layout = \"raid6\"\ndrives = 6\nrebuild = [0, 1]",
        "layout = \"raid10\"\ndrives = 4\nrebuild = [0, 3]",
    ] {
        // The default limit of md, 200000 KiB/s, is below the rate of this medium.
        let volume = format!("{volume}\nspeed_limit_max = \"1GB\"\ndrive = \"x24\"");
        let medium = stack(&volume, 1).unwrap().rebuilt_members().unwrap()[0].zones[0].bytes_per_s;
        let (_, seen) = run_at(0.02, &volume, 4);
        let member = seen.done[0].2;
        let marks: Vec<_> = seen.done.iter().filter(|done| done.2 == member).collect();
        // One request reduces the speed for a second. Some of the many spans have no request. A span
        // is long, because the write caches take tens of MiB at once.
        let (mut best, mut begin) = (0.0_f64, 0);
        for last in &marks {
            while last.0.since(marks[begin].0).as_secs_f64() > 15.0 {
                begin += 1;
            }
            let (first, seconds) = (marks[begin], last.0.since(marks[begin].0).as_secs_f64());
            if seconds > 14.0 {
                best = best.max((last.3.0 - first.3.0) as f64 * 512.0 / seconds);
            }
        }
        let share = best / medium as f64;
        // The densest surface of a zone is 4 % faster than the mean of the zone. In RAID 10, a request
        // takes the whole turn of the rebuild.
        assert!(
            (0.93..1.05).contains(&share),
            "{volume}: {share} of the medium's rate"
        );
    }
}

#[test]
fn what_cannot_be_rebuilt_is_refused_at_its_line() {
    for (volume, part) in [
        (
            format!("{RAID5}\nrebuild = 4"),
            "no member 4: the 4 are counted from 0 to 3",
        ),
        (
            format!("{RAID5}\nrebuild = [1, 2]"),
            "2 members would be lost, and raid5 survives 1",
        ),
        (
            format!("{RAID5}\nrebuild = 1\nfailed = [1]"),
            "member 1 has failed, by the key `failed`",
        ),
        (
            format!("{RAID5}\nrebuild = 1\nfailed = [2]"),
            "2 members would be lost",
        ),
        (format!("{RAID5}\nrebuild = \"x\""), "rebuild"),
        (
            format!("{RAID5}\nrebuild = 1\nspeed_limit_max = 0"),
            "no rebuild ends",
        ),
        (
            RAID5.replace("raid5", "raid0") + "\nrebuild = 1",
            "raid0 survives 0",
        ),
        (format!("{RAID5}\nsync_io_depth = 0"), "found 0; expected 1"),
        (
            format!("{RAID5}\nlike = \"ideal\"\nsync_io_depth = 32"),
            "only an array like md",
        ),
        (
            RAID5.replace("raid5", "xor") + "\nrebuild = 1",
            "do not support rebuilds",
        ),
    ] {
        let error = stack(&volume, 1)
            .err()
            .unwrap_or_else(|| panic!("{volume} is no error"));
        assert!(
            error.contains(part) && error.contains("stack.toml"),
            "{volume}: {error}"
        );
    }
}

#[test]
fn members_that_are_rebuilt_count_as_lost_for_further_failures() {
    let survives = |volume: &str| {
        stack(volume, 1)
            .unwrap()
            .summary()
            .unwrap()
            .failures_survived
    };
    assert_eq!(survives(RAID5), 1);
    assert_eq!(survives(&format!("{RAID5}\nrebuild = 0")), 0);
}
