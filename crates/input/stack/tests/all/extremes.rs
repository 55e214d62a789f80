//! Input at the limits of numbers leads to an answer, or to an error at the key. No stack file may
//! cause a panic or wrap a number.

use fullstroke_stack::{Overrides, Stack};

const DRIVE: &str = "[volume]\ndrive = \"seagate-cheetah-9lp\"\n";
const RAID5: &str = "[volume]\nlayout = \"raid5\"\ndrives = 5\ndrive = \"seagate-cheetah-9lp\"\n";

/// Runs 50 requests of this workload on the stack and returns the result.
fn answer(workload: &str, rest: &str) -> Result<u64, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.toml");
    let text =
        format!("seed = 1\n[workload]\nkind = \"synthetic\"\nrequests = 50\n{workload}\n{rest}");
    std::fs::write(&path, text).unwrap();
    let stack = Stack::load(&path, &Overrides::default()).map_err(|error| error.to_string())?;
    let run = stack.build().map_err(|error| error.to_string())?;
    let outcome = run
        .engine()
        .run(&mut ())
        .map_err(|error| error.to_string())?;
    Ok(outcome.completed)
}

fn closed(think_time: &str) -> String {
    format!(
        "size = \"8KiB\"\narrivals = {{ process = \"closed\", outstanding = 4, think_time = \"{think_time}\" }}"
    )
}

fn open(process: &str, rate_per_s: &str) -> String {
    format!("size = \"8KiB\"\narrivals = {{ process = \"{process}\", rate_per_s = {rate_per_s} }}")
}

/// Checks for an answer, or for an error that contains the text.
#[track_caller]
fn check(workload: &str, rest: &str, expected: Result<u64, &str>) {
    let found = answer(workload, rest);
    match (&found, expected) {
        (Ok(completed), Ok(wanted)) => assert_eq!(*completed, wanted, "{workload}\n{rest}"),
        (Err(error), Err(part)) => assert!(error.contains(part), "{error}\nexpected {part}"),
        _ => panic!("found {found:?}, expected {expected:?}, of\n{workload}\n{rest}"),
    }
}

#[test]
fn pauses_of_centuries_end_in_an_answer_or_at_the_end_of_time() {
    check(&closed("1ns"), DRIVE, Ok(50));
    check(&closed("1000h"), DRIVE, Ok(50));
    check(&closed("876000h"), DRIVE, Err("292 years"));
    for longer in ["876001h", "5000000h", "18446744073709551615ns"] {
        check(&closed(longer), DRIVE, Err("think_time"));
    }
}

#[test]
fn rates_at_the_edge_are_answered_or_refused_at_their_key() {
    for process in ["constant", "poisson"] {
        check(&open(process, "1e9"), DRIVE, Ok(50));
        check(&open(process, "1e-9"), DRIVE, Err("292 years"));
        for rate in ["5e-324", "1e-10", "3e9", "1e300"] {
            check(&open(process, rate), DRIVE, Err("rate_per_s"));
        }
    }
}

#[test]
fn sizes_near_the_largest_number_are_refused_at_their_key() {
    for size in ["16777215TiB", "16777216TiB", "18446744073709551104"] {
        let of = |key: &str| format!("{key} = \"{size}\"");
        let arrivals = "arrivals = { process = \"closed\", outstanding = 4 }";
        check(&format!("{}\n{arrivals}", of("size")), DRIVE, Err("size"));
        let region = format!("{}\n{}", closed("0s"), of("region_size"));
        check(&region, DRIVE, Err("region_size"));
        let chunk = format!("{RAID5}{}", of("chunk"));
        check(&closed("0s"), &chunk, Err("chunk"));
    }
}

/// Earlier, time wrapped behind the link, and the engine reported lost requests.
#[test]
fn a_controller_of_a_byte_a_year_ends_at_the_end_of_time() {
    for keys in ["link_mb_per_s = 1e-300", "command_overhead = \"876000h\""] {
        let stack = format!("[controller]\n{keys}\n{RAID5}");
        check(&closed("0s"), &stack, Err("292 years"));
    }
}

#[test]
fn expiries_of_a_century_are_as_good_as_none() {
    for (elevator, keys) in [
        (
            "deadline",
            "read_expire = \"876000h\"\nwrite_expire = \"876000h\"",
        ),
        (
            "mq-deadline",
            "read_expire = \"876000h\"\nprio_aging_expire = \"876000h\"",
        ),
        (
            "anticipatory",
            "antic_expire = \"1s\"\nread_batch_expire = \"876000h\"",
        ),
        (
            "cfq",
            "slice_sync = \"876000h\"\nfifo_expire_sync = \"876000h\"",
        ),
        (
            "bfq",
            "timeout_sync = \"876000h\"\nslice_idle = \"876000h\"",
        ),
    ] {
        let host = format!("[host]\nelevator = \"{elevator}\"\nqueue_depth = 4\n{keys}\n{DRIVE}");
        check(&closed("0s"), &host, Ok(50));
    }
}
