//! Tests of `energy` and `predict`.

use crate::common::{fullstroke, refused, success};
use serde_json::Value;

/// Writes a stack with a drive without power figures and `rate_per_s` random reads per second. The
/// drives take turns; md would leave one of them idle, because it prefers the first idle drive.
fn stack(folder: &tempfile::TempDir, rate_per_s: f64, requests: u32) -> String {
    let path = folder.path().join("stack.toml");
    let text = format!(
        "seed = 1\n[workload]\nkind = \"synthetic\"\nrequests = {requests}\nread_share = 1.0\nsize = \"4KiB\"\n\
         arrivals = {{ process = \"poisson\", rate_per_s = {rate_per_s} }}\n\
         [volume]\nlayout = \"raid1\"\nlike = \"ideal\"\ndrives = 2\ndrive = \"seagate-cheetah-9lp\"\n"
    );
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&success(&[arguments, &["--json"]].concat())).unwrap()
}

fn policy<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let policies = answer["policies"].as_array().unwrap();
    policies
        .iter()
        .find(|policy| policy["name"] == name)
        .unwrap_or_else(|| panic!("no {name}: {answer:#}"))
}

#[test]
fn stopping_pays_for_a_load_of_long_pauses_and_costs_its_slowest_answers() {
    let folder = tempfile::tempdir().unwrap();
    let stack = stack(&folder, 0.002, 60);
    let arguments = [
        "energy",
        "--stack",
        &stack,
        "--assume-power",
        "--after",
        "60s,10min",
    ];
    let answer = json(&arguments);
    assert!(
        answer["assumed"].as_str().unwrap().starts_with("assumed:"),
        "{answer:#}"
    );
    let value = |name: &str, key: &str| policy(&answer, name)[key].as_f64().unwrap();
    assert_eq!(
        (
            value("always turning", "saved_share"),
            value("always turning", "stops_a_year")
        ),
        (0.0, 0.0)
    );
    let saved = |name| value(name, "saved_share");
    assert!(
        saved("60 s") > saved("600 s") && saved("600 s") > 0.0,
        "{answer:#}"
    );
    assert!(
        value("always turning", "response_ms_max") < 1000.0
            && value("60 s", "response_ms_max") > 5000.0
    );
    // The reported energy equals power times time.
    for name in ["always turning", "60 s", "adaptive"] {
        let joules = value(name, "mean_w") * value(name, "elapsed_s");
        assert!(
            (joules / value(name, "total_j") - 1.0).abs() < 1e-6,
            "{name}"
        );
    }
    let cycles = answer["rated_cycles"].as_f64().unwrap();
    assert!((value("60 s", "years") - cycles / value("60 s", "stops_a_year")).abs() < 1e-9);
    let text = success(&arguments);
    for part in [
        "Stopping pays",
        "rated starts and stops (not the load cycles of the heads)",
        "A spin-down saves energy if the standby lasts",
        "Source of the power figures: assumed",
        "always turning",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn stopping_does_not_pay_for_a_load_without_pauses() {
    let folder = tempfile::tempdir().unwrap();
    let stack = stack(&folder, 2.0, 500);
    let text = success(&[
        "energy",
        "--stack",
        &stack,
        "--assume-power",
        "--after",
        "60s",
    ]);
    assert!(text.contains("does not pay"), "{text}");
}

#[test]
fn a_drive_that_does_not_say_what_it_draws_is_named_with_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let stack = stack(&folder, 1.0, 10);
    let error = refused(&["energy", "--stack", &stack]);
    for part in [
        "Cheetah 9LP",
        "seek_w",
        "spin_up_j",
        "--assume-power",
        "assumed: ",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let sets = ["spin_up_ms=15000", "spin_down_ms=15000", "seek_w=-4"];
    let sets = sets.map(|set| format!("--set=volume.drive_settings.power.{set}"));
    let error = refused(&[
        "energy",
        "--stack",
        &stack,
        "--assume-power",
        &sets[0],
        &sets[1],
        &sets[2],
    ]);
    assert!(
        error.contains("seek_w") && error.contains("watts"),
        "{error}"
    );
    // A time that is too short for the drive gives a single error row.
    let answer = json(&[
        "energy",
        "--stack",
        &stack,
        "--assume-power",
        "--after",
        "1s,60s",
    ]);
    let refusals = &answer["refused"];
    assert!(
        refusals[0]["name"] == "1 s" && refusals.as_array().unwrap().len() == 1,
        "{answer:#}"
    );
    assert!(
        refusals[0]["why"]
            .as_str()
            .unwrap()
            .contains("spin down and up"),
        "{answer:#}"
    );
    assert_eq!(policy(&answer, "60 s")["stops_a_year"], 0.0);
}

#[test]
fn comparisons_and_predictions_name_what_is_missing_for_watts_and_offer_to_assume_it() {
    let folder = tempfile::tempdir().unwrap();
    let stack = stack(&folder, 20.0, 200);
    let compare = ["compare", &stack, "--by", "energy.j_per_io"];
    let error = refused(&compare);
    assert!(
        error.contains("`[power]` lacks seek_w") && error.contains("--assume-power"),
        "{error}"
    );
    let assumed = json(&[&compare[..], &["--assume-power"]].concat());
    assert!(
        assumed["assumed"]
            .as_str()
            .unwrap()
            .starts_with("assumed: "),
        "{assumed:#}"
    );
    assert!(
        success(&["compare", &stack, "--assume-power"])
            .contains("Source of the power figures: assumed: ")
    );
    let predict = ["predict", "--stack", &stack, "--no-simulation"];
    let without = json(&predict);
    assert!(
        without["no_watts"]
            .as_str()
            .unwrap()
            .contains("lacks seek_w"),
        "{without:#}"
    );
    assert!(without["predicted"][0]["mean_w"].is_null());
    let with = json(&[&predict[..], &["--assume-power"]].concat());
    assert!(
        with["predicted"][0]["mean_w"].as_f64().unwrap() > 5.0 && with["no_watts"].is_null(),
        "{with:#}"
    );
    // Assumed figures do not replace the drive's own figures.
    let other = folder.path().join("other.toml");
    let text = std::fs::read_to_string(&stack)
        .unwrap()
        .replace("seagate-cheetah-9lp", "seagate-cheetah-15k7-450gb");
    std::fs::write(&other, text).unwrap();
    let error = refused(&[
        "compare",
        &stack,
        other.to_str().unwrap(),
        "--by",
        "energy.mean_w",
        "--assume-power",
    ]);
    assert!(
        error.contains("which an assumption would replace"),
        "{error}"
    );
}

#[test]
fn thresholds_that_no_gear_can_be_shifted_by_are_refused() {
    let stack = shipped("energy/raid5.toml");
    for (down, up) in [
        ("0.6", "0.3"),
        ("NaN", "0.5"),
        ("0.1", "NaN"),
        ("-0.1", "0.5"),
        ("0.1", "1.5"),
        ("0.4", "0.5"),
    ] {
        let thresholds = [format!("--down={down}"), format!("--up={up}")];
        let error = refused(&[
            "predict",
            "--stack",
            &stack,
            "--no-simulation",
            &thresholds[0],
            &thresholds[1],
        ]);
        assert!(
            error.contains("--down, --up: ") && error.contains("; expected "),
            "{down} {up}: {error}"
        );
    }
    let paraid = shipped("energy/paraid.toml");
    for set in ["volume.shift_down=0.15", "volume.shift_up=1.5"] {
        let error = refused(&["run", &paraid, "--set", set]);
        assert!(error.contains("found "), "{error}");
    }
}

/// Returns the path of a stack of the repository.
fn shipped(name: &str) -> String {
    format!("{}/../../stacks/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_stack_that_stops_its_platters_is_a_row_of_its_own_beside_those_that_turn() {
    for (stack, own, after) in [
        (
            "background/mirror.toml",
            "the stack's: fixed 20min",
            "1200 s",
        ),
        ("energy/nas.toml", "the stack's: fixed 10min", "600 s"),
        ("energy/nas-pull.toml", "the stack's: fixed 10min", "600 s"),
    ] {
        let answer = json(&[
            "energy",
            "--stack",
            &shipped(stack),
            "--after",
            &after.replace(' ', ""),
        ]);
        let row = |name: &str| {
            let mut row = policy(&answer, name).clone();
            row.as_object_mut().unwrap().remove("name");
            row
        };
        assert_eq!(row("always turning")["stops_a_year"], 0.0, "{stack}");
        assert_eq!(row(own), row(after), "{stack}: one timer, said twice");
        assert!(
            row(own)["stops_a_year"].as_f64().unwrap() > 100.0,
            "{answer:#}"
        );
    }
    let own = [
        "--set",
        "volume.drive_settings.spin_down={ policy = \"break-even\" }",
    ];
    let stack = shipped("background/mirror.toml");
    let answer = json(&[&["energy", "--stack", &stack, "--after", "1h"], &own[..]].concat());
    assert_eq!(policy(&answer, "always turning")["stops_a_year"], 0.0);
    assert_eq!(
        policy(&answer, "the stack's: break-even")["mean_w"],
        policy(&answer, "break-even")["mean_w"]
    );
}

#[test]
fn gears_are_a_row_of_their_own_and_turn_where_all_shall() {
    let (stack, short) = (
        shipped("energy/paraid.toml"),
        ["workloads[0].duration=4min", "workloads[1].duration=1s"],
    );
    let arguments = [
        "energy", "--stack", &stack, "--set", short[0], "--set", short[1], "--after", "5min",
    ];
    let answer = json(&arguments);
    let stops = |name: &str| policy(&answer, name)["stops_a_year"].as_f64().unwrap();
    assert_eq!(stops("always turning, high gear"), 0.0);
    assert!(stops("the stack's: gears alone") > 1000.0, "{answer:#}");
    assert!(
        stops("gears and 300 s") >= stops("the stack's: gears alone"),
        "{answer:#}"
    );
}

#[test]
fn a_monitor_goes_on_beside_a_trace() {
    let trace = shipped("../samples/compile.parquet");
    let stack = shipped("background/mirror.toml");
    let turning = |sets: &[&str]| {
        let answer = json(
            &[
                &["energy", &trace, "--stack", &stack, "--after", "1h"],
                sets,
            ]
            .concat(),
        );
        policy(&answer, "always turning")["mean_w"]
            .as_f64()
            .unwrap()
    };
    let every = "workloads[1].every=1s";
    let (often, seldom) = (turning(&["--set", every]), turning(&[]));
    assert!(often > seldom, "{often} {seldom}");
}

#[test]
fn p_66_one_fingerprint_answers_for_all_layouts() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let (trace, stack) = (
        format!("{root}/samples/compile.parquet"),
        format!("{root}/stacks/demo/raid5.toml"),
    );
    let arguments = [
        "predict",
        &trace,
        "--stack",
        &stack,
        "--drive",
        "seagate-ironwolf-8tb",
        "--no-simulation",
    ];
    let answer = json(&arguments);
    let rows = answer["predicted"].as_array().unwrap();
    let value = |row: usize, key: &str| rows[row][key].as_f64().unwrap();
    assert_eq!(rows.len(), 4, "{answer:#}");
    assert_eq!(
        (&rows[0]["layout"], &rows[1]["layout"]),
        (&"one disk".into(), &"raid0 of 5".into())
    );
    assert!(
        value(0, "utilisation") > value(1, "utilisation")
            && value(0, "latency_ms") > value(1, "latency_ms")
    );
    assert!(
        value(1, "mean_w") > 4.0 * value(0, "mean_w"),
        "five drives turn"
    );
    assert!(
        value(3, "latency_ms") <= value(2, "latency_ms"),
        "a reserve beside the data is no slower"
    );
    assert!(answer["runs"].as_u64().unwrap() <= answer["requests"].as_u64().unwrap());
    // Half the time between requests doubles the load.
    let faster = json(&[&arguments[..], &["--set", "workload.time_scale=0.5"]].concat());
    let ratio = faster["predicted"][0]["utilisation"].as_f64().unwrap() / value(0, "utilisation");
    assert!((1.8..2.2).contains(&ratio), "{ratio}");
    // The simulation of gears reports the number of shifts.
    let geared = [
        "predict",
        "--stack",
        &format!("{root}/stacks/energy/paraid.toml"),
        "--set",
        "workloads[0].duration=3min",
        "--set",
        "workloads[1].duration=1s",
    ];
    let simulated = json(&geared)["simulated"].clone();
    assert_eq!(
        simulated["gear_shifts"].as_f64(),
        Some(1.0),
        "{simulated:#}"
    );
    assert!(
        simulated["low_gear_share"].as_f64().unwrap() > 0.3,
        "{simulated:#}"
    );
    let error = refused(&[&arguments[..], &["--sleeping", "5"]].concat());
    assert!(error.contains("--sleeping"), "{error}");
}

#[test]
fn the_queueing_model_agrees_with_a_simulation_of_what_it_holds_for_and_says_of_the_rest_that_it_may_not()
 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.toml");
    let stack = "seed = 3\n[workload]\nkind = \"synthetic\"\nrequests = 6000\nread_share = 0.7\nsize = \"8KiB\"\n\
                 arrivals = { process = \"poisson\", rate_per_s = 60 }\n\
                 [volume]\nlayout = \"raid5\"\nchunk = \"64KiB\"\ndrives = 5\ndrive = \"wd-red-plus-8tb\"\nbitmap = \"none\"\n";
    std::fs::write(&path, stack).unwrap();
    let arguments = ["predict", "--stack", path.to_str().unwrap()];
    let answer = json(&arguments);
    let (model, simulated) = (&answer["model"], &answer["simulated"]);
    let ratio =
        |one: &str, other: &str| model[one].as_f64().unwrap() / simulated[other].as_f64().unwrap();
    assert!(
        (0.9..1.1).contains(&ratio("response_ms", "response_ms_mean")),
        "{answer:#}"
    );
    // Claim of *Pro-active storage systems* (2012): models are much faster than simulation.
    let (predicted_us, simulated_ms) = (
        answer["answered_us"].as_f64().unwrap(),
        answer["simulated"]["took_ms"].as_f64().unwrap(),
    );
    assert!(
        predicted_us / 1000.0 < simulated_ms / 3.0,
        "{predicted_us} us, {simulated_ms} ms"
    );
    // The energy agrees only if a drive that has read for a read-modify-write reads ahead until the
    // other read ends, and no longer.
    assert!(
        (0.985..1.015).contains(&ratio("mean_w", "mean_w")),
        "{answer:#}"
    );
    assert_eq!(model["outside"].as_array().unwrap().len(), 0, "{answer:#}");
    assert!(success(&arguments).contains("within 10 % of simulations"));

    let with = |set: &str| {
        json(&[&arguments[..], &["--no-simulation", "--set", set]].concat())["model"].clone()
    };
    let why = |set: &str| with(set)["outside"].to_string();
    assert!(why("workload.size=128KiB").contains("mean size in KiB"));
    assert!(why("volume.failed=[1]").contains("members have failed"));
    assert!(why("volume.bitmap=internal").contains("bitmap"));
    assert!(why("host.queue_depth=4").contains("[host]"));
    let bursts = "workload.arrivals={ process = \"bursts\", interval = \"1s\", requests = 30, spacing = \"1us\" }";
    assert!(why(bursts).contains("arrivals"), "{}", why(bursts));
    let overloaded = with("workload.arrivals.rate_per_s=5000");
    assert!(
        overloaded["response_ms"].is_null()
            && overloaded["outside"].to_string().contains("more arrives")
    );
    let closed = "workload.arrivals={ process = \"closed\", outstanding = 4 }";
    let error = refused(&[&arguments[..], &["--set", closed]].concat());
    assert!(error.contains("waits for completions"), "{error}");
}

#[test]
fn the_picture_of_the_power_has_a_line_a_drive_and_adds_up_to_the_energy() {
    let folder = tempfile::tempdir().unwrap();
    let silent = stack(&folder, 20.0, 200);
    let svg = folder.path().join("power.svg");
    let plot = ["--plot-power", svg.to_str().unwrap()];
    let drive = ["--drive", "seagate-ironwolf-8tb"];
    let answer = json(&[&["run", &silent], &plot[..], &drive[..]].concat());
    let watts = &answer["watts"];
    let numbers = |value: &Value| -> Vec<f64> {
        value
            .as_array()
            .unwrap()
            .iter()
            .map(|each| each.as_f64().unwrap())
            .collect()
    };
    let all = numbers(&watts["all_w"]);
    let (span, end) = (
        watts["span_s"].as_f64().unwrap(),
        watts["end_s"].as_f64().unwrap(),
    );
    let last = end - span * (all.len() - 1) as f64;
    let joules = |each: &[f64]| {
        each[..each.len() - 1].iter().sum::<f64>() * span + each[each.len() - 1] * last
    };
    let energy = answer["energy"]["total_j"].as_f64().unwrap();
    assert!(
        (joules(&all) / energy - 1.0).abs() < 1e-6,
        "{} {energy}",
        joules(&all)
    );
    let drives = watts["drives"].as_array().unwrap();
    let sum: f64 = drives
        .iter()
        .map(|drive| joules(&numbers(&drive["mean_w"])))
        .sum();
    assert!(
        drives.len() == 2 && (sum / energy - 1.0).abs() < 1e-6,
        "{sum} {energy}"
    );
    let picture = std::fs::read_to_string(&svg).unwrap();
    assert!(
        picture.starts_with("<svg") && picture.contains("power (W)"),
        "{picture}"
    );
    assert!(
        picture.matches("<polyline").count() >= 3,
        "a line of all drives and one of each: {picture}"
    );
    let error = refused(&[&["run", &silent], &plot[..]].concat());
    assert!(
        error.contains("`[power]` lacks seek_w") && error.contains("--assume-power"),
        "{error}"
    );
    let assumed = fullstroke(&[&["run", &silent, "--assume-power", "--json"], &plot[..]].concat());
    assert!(
        String::from_utf8_lossy(&assumed.stderr).contains("source of the power figures: assumed: ")
    );
    let assumed: Value = serde_json::from_slice(&assumed.stdout).unwrap();
    assert!(
        assumed["energy"]["mean_w"].as_f64().unwrap() > 5.0,
        "{assumed:#}"
    );
}

#[test]
fn a_monitor_in_the_background_keeps_platters_turning() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../stacks/background/mirror.toml"
    );
    let energy = |sets: &[&str]| {
        let answer = json(&[&["run", path], sets].concat());
        let number = |key: &str| {
            answer["energy"][key]
                .as_f64()
                .unwrap_or_else(|| panic!("{answer:#}"))
        };
        (number("spin_downs"), number("mean_w"))
    };
    let half_hourly = energy(&[]);
    let never = energy(&["--set", "workloads[1].duration=1s"]);
    let often = energy(&["--set", "workloads[1].every=15min"]);
    // A monitor that comes more often than the timeout leaves no time to stop; a monitor that comes
    // less often starts the platters again and again.
    assert!(
        3.0 * often.0 < half_hourly.0 && never.0 < half_hourly.0,
        "{often:?} {half_hourly:?} {never:?}"
    );
    assert!(
        never.1 < half_hourly.1 && half_hourly.1 < often.1,
        "{often:?} {half_hourly:?} {never:?}"
    );
}

#[test]
fn a_load_that_is_too_short_for_an_idle_time_says_by_which_factor() {
    let folder = tempfile::tempdir().unwrap();
    // 421 s at two requests a second.
    let stack = stack(&folder, 2.0, 842);
    let ask = ["energy", "--stack", &stack, "--assume-power"];
    let answer = json(&ask);
    let length = answer["load_s"].as_f64().unwrap();
    assert!((380.0..460.0).contains(&length), "{length}");
    let names: Vec<&str> = answer["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|policy| policy["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"60 s") && !names.contains(&"3600 s"),
        "{names:?}"
    );
    let hour = answer["refused"]
        .as_array()
        .unwrap()
        .iter()
        .find(|refused| refused["name"] == "3600 s")
        .unwrap();
    let factor = hour["too_short_by"].as_f64().unwrap();
    assert!((factor * length / 3600.0 - 4.0).abs() < 0.01, "{hour}");
    let text = success(&ask);
    for part in [
        "Idle time 3600 s was not tried: the load lasts",
        "does not pay for this load at idle times up to",
        "says nothing about longer ones: 3600 s would need a load",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // An idle time that the user asks for is tried, and proves nothing.
    let ask = [&ask[..], &["--after", "30s,1h"]].concat();
    let asked = json(&ask);
    let hour = policy(&asked, "3600 s");
    assert!(hour["too_short_by"].as_f64().unwrap() > 30.0, "{hour:#}");
    assert!(hour["saved_share_ci95_half_width"].is_null(), "{hour:#}");
    assert!(success(&ask).contains("says nothing about longer ones"));
}

#[test]
fn a_saving_has_an_interval_kilowatt_hours_and_a_price() {
    let folder = tempfile::tempdir().unwrap();
    let stack = stack(&folder, 0.002, 200);
    let ask = [
        "energy",
        "--stack",
        &stack,
        "--assume-power",
        "--after",
        "60s",
        "--energy-price",
        "0.3",
        "--currency",
        "CHF",
    ];
    let answer = json(&ask);
    let policy = policy(&answer, "60 s");
    let of = |key: &str| policy[key].as_f64().unwrap();
    let half_width = of("saved_share_ci95_half_width");
    assert!(
        0.0 < half_width && half_width < of("saved_share"),
        "{policy:#}"
    );
    assert!(
        (of("kwh_a_year") - of("mean_w") * 8.766).abs() < 0.01,
        "{policy:#}"
    );
    assert!(
        (of("cost_a_year") - 0.3 * of("kwh_a_year")).abs() < 1e-9,
        "{policy:#}"
    );
    let kwh = of("kwh_a_year_ci95_half_width");
    assert!(0.0 < kwh && kwh < of("kwh_a_year"), "{policy:#}");
    assert!(
        (of("cost_a_year_ci95_half_width") - 0.3 * kwh).abs() < 1e-9,
        "{policy:#}"
    );
    assert!(of("stops") > 0.0, "{policy:#}");
    let text = success(&ask);
    for part in ["Stopping pays: ", " ± ", "kWh or", "CHF a year"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // 200 requests have no p99: two requests lie beyond.
    assert!(!text.contains("p99"), "{text}");
}
