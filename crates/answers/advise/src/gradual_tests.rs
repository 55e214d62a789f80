use super::*;
use crate::{Assumptions, Choices, Wishes};
use fullstroke_lab::Varied;
use fullstroke_stack::{FileSource, MemoryFiles, Overrides};
use std::path::Path;
use std::sync::Arc;

const MIX: &str = "seed = 1\n\
    [[workloads]]\nname = \"small\"\nkind = \"synthetic\"\nrequests = 3000\n\
    arrivals = { process = \"poisson\", rate_per_s = 150 }\nsize = \"8KiB\"\nread_share = 0.9\n\
    [[workloads]]\nname = \"large\"\nkind = \"synthetic\"\nrequests = 1000\n\
    arrivals = { process = \"poisson\", rate_per_s = 50 }\nsize = \"256KiB\"\n\
    [volume]\nlayout = \"raid0\"\ndrive = \"seagate-ironwolf-8tb\"\ndrives = 4\n";

fn request(load: &str) -> AdviceRequest {
    let files = MemoryFiles::default();
    files.put(Path::new("load.toml"), load.as_bytes().to_vec());
    AdviceRequest {
        stack: "load.toml".into(),
        overrides: Overrides {
            files: FileSource::new(Arc::new(files)),
            ..Overrides::default()
        },
        drive: "seagate-ironwolf-8tb".to_owned(),
        counts: vec![4],
        drive_price: None,
        controller_price: None,
        flash_price: None,
        wishes: Wishes {
            failures: Some(1),
            ..Wishes::default()
        },
        choices: Choices::default(),
        assumptions: Assumptions::default(),
        jobs: 1,
        timeline: false,
        costs: crate::Costs::default(),
        budget: None,
    }
}

const PLAN: RoundPlan = RoundPlan {
    // Not a multiple of the four parts of the mix.
    first: 402,
    most: 100_000,
    load: 1.0,
};

#[test]
fn rounds_grow_until_the_ranking_is_settled_and_conditions_follow() {
    let mut advice = GradualAdvice::new(request(MIX), PLAN).unwrap();
    let (possible, left_out) = advice.layouts();
    let names: Vec<&str> = possible.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["raid10 of 4", "raid5 of 4", "raid6 of 4"]);
    assert_eq!(left_out[0].layout, "raid0");
    assert!(advice.advice().is_none());
    let mut sizes = Vec::new();
    loop {
        let progress = advice.step(&Stop::default(), &|_, _| {}).unwrap();
        if progress.renewed {
            sizes.push(progress.requests);
        }
        if progress.over {
            assert!(progress.settled || progress.whole_load, "{progress:?}");
            break;
        }
    }
    assert_eq!(sizes[0], 402);
    assert!(sizes.len() > 3, "a first round is not precise: {sizes:?}");
    assert!(sizes.is_sorted(), "{sizes:?}");
    let found = advice.advice().unwrap();
    assert_eq!(found.finalists.len(), 3);
    assert!(
        found
            .finalists
            .iter()
            .all(|one| one.degraded.is_some() && one.rebuilding.is_some() && one.slow.is_some())
    );
    // Both workloads keep their proportions.
    let report = &found.ranking.candidates[0].report;
    let each: Vec<u64> = report
        .sources
        .workloads
        .iter()
        .map(|one| one.requests)
        .collect();
    assert_eq!(each[0] / each[1], 3);
    let text = advice.stack_file("raid6 of 4").unwrap();
    let raid6 = text.contains("layout = \"raid6\"") && text.contains("requests = 3000");
    assert!(raid6, "{text}");
    let error = advice.stack_file("raid7").unwrap_err().to_string();
    assert!(error.contains("raid10 of 4"), "{error}");
}

#[test]
fn a_whole_load_ends_the_rounds_even_if_nothing_is_settled() {
    // Two layouts that behave alike on a load of a few requests.
    let load = MIX.replace("= 3000", "= 30").replace("= 1000", "= 10");
    let mut advice = GradualAdvice::new(request(&load), PLAN).unwrap();
    let mut steps = 0;
    let last = loop {
        steps += 1;
        let progress = advice.step(&Stop::default(), &|_, _| {}).unwrap();
        if progress.over {
            break progress;
        }
    };
    assert!(last.whole_load, "{last:?}");
    // Three layouts, each healthy, degraded, rebuilding and with a slow drive.
    assert_eq!((steps, last.requests), (12, 40));
}

#[test]
fn a_trace_is_limited_by_its_requests_and_an_impossible_wish_is_refused() {
    let load = "[workload]\nkind = \"trace\"\npath = \"a.csv\"\n[volume]\ndrive = \"x\"\n";
    let found = Load::of(&request(load)).unwrap();
    let recipe = Recipe {
        name: String::new(),
        varied: Varied::default(),
        file: "load.toml".into(),
        overrides: Overrides::default(),
    };
    let limited = found.first_requests(recipe, 500);
    assert_eq!(limited.overrides.requests, Some(500));
    let mut request = request(MIX);
    request.wishes.failures = Some(3);
    let error = GradualAdvice::new(request, PLAN).err().unwrap().to_string();
    assert!(error.contains("at most 2 failed drives"), "{error}");
}

#[test]
fn a_multiple_of_the_load_is_slower_and_a_closed_load_has_none() {
    let mean = |load: f64| {
        let plan = RoundPlan { load, ..PLAN };
        let mut advice = GradualAdvice::new(request(MIX), plan).unwrap();
        while advice.advice().is_none() {
            advice.step(&Stop::default(), &|_, _| {}).unwrap();
        }
        advice.advice().unwrap().ranking.candidates[0].value
    };
    assert!(mean(2.0) > mean(1.0));
    let closed = "[workload]\nkind = \"synthetic\"\nrequests = 100\n\
        arrivals = { process = \"closed\" }\n[volume]\ndrive = \"seagate-ironwolf-8tb\"\n";
    for (load, word) in [
        (2.0, "only 1 is possible"),
        (0.0, "above 0"),
        (f64::NAN, "above 0"),
    ] {
        let plan = RoundPlan { load, ..PLAN };
        let error = GradualAdvice::new(request(closed), plan).err().unwrap();
        assert!(error.to_string().contains(word), "{error}");
    }
    assert!(GradualAdvice::new(request(closed), PLAN).is_ok());
}

#[test]
fn outcomes_from_elsewhere_give_the_same_advice_at_any_time() {
    let whole = |advice: &GradualAdvice| {
        let mut text = serde_json::to_value(advice.advice().unwrap()).unwrap();
        for one in text["candidates"].as_array_mut().unwrap() {
            for clock in ["wall_s", "requests_per_wall_s", "peak_rss_mb"] {
                one["report"][clock] = serde_json::Value::Null;
            }
        }
        text
    };
    let mut alone = GradualAdvice::new(request(MIX), PLAN).unwrap();
    while !alone.step(&Stop::default(), &|_, _| {}).unwrap().over {}
    let elsewhere = GradualAdvice::new(request(MIX), PLAN).unwrap();
    let mut advice = GradualAdvice::new(request(MIX), PLAN).unwrap();
    let conditions = advice.conditions();
    assert_eq!(conditions.len(), 9);
    let mut last = None;
    for (index, (name, condition)) in conditions.iter().enumerate() {
        // Some arrive before the first round ends, and some after the last.
        while index >= 3
            && last
                .as_ref()
                .is_none_or(|one: &GradualProgress| !one.rounds_over)
        {
            last = Some(advice.step(&Stop::default(), &|_, _| {}).unwrap());
        }
        let outcome = elsewhere.outcome(name, *condition, &Stop::default(), &|_, _| {});
        let progress = advice.take_outcome(name, *condition, outcome.unwrap());
        last = Some(progress.unwrap());
    }
    let last = last.unwrap();
    assert!(last.over && last.renewed, "{last:?}");
    assert_eq!(whole(&advice), whole(&alone));
    let healthy = advice.take_outcome("raid5 of 4", Condition::Healthy, None);
    assert!(
        healthy
            .unwrap_err()
            .to_string()
            .contains("degraded, rebuilding or slow")
    );
    let unknown = advice.take_outcome("raid7", Condition::Degraded, None);
    assert!(unknown.unwrap_err().to_string().contains("raid10 of 4"));
}

#[test]
fn an_outcome_without_a_measurement_survives_json() {
    let outcome = ArrayOutcome {
        mean_ms: f64::NAN,
        p99_ms: 12.5,
        rebuild_hours: Some(3.25),
        ..ArrayOutcome::default()
    };
    let text = serde_json::to_string(&outcome).unwrap();
    let read: ArrayOutcome = serde_json::from_str(&text).unwrap();
    assert!(read.mean_ms.is_nan());
    assert_eq!((read.p99_ms, read.rebuild_hours), (12.5, Some(3.25)));
}
