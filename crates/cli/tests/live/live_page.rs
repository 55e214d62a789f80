//! The live page in a real headless browser.

use crate::common::browser::{Browser, LOOKS};
use crate::server::StackFolder;
use crate::stacks::RAID5;
use fullstroke_nbd::CommandFlags;
use serde_json::{Value, json};
use std::time::Duration;

/// Power figures for the drive file, so that the page shows watts.
const POWER: &str = "power = \"chosen\"\n[power]\nspin_up_ms = 8000.0\nspin_down_ms = 4000.0\nspin_up_j = 100.0\nspin_down_j = 10.0\n\
                     rotate_w = 5.0\nstandby_w = 1.0\nidle_a_w = 5.0\nread_w = 8.0\nwrite_w = 8.0\nseek_w = 10.0\n";

#[test]
fn the_live_page_is_sound_in_a_browser_and_moves() {
    let Some(mut browser) = Browser::open() else {
        return;
    };
    let place = StackFolder::new(RAID5, 8);
    let disk = std::fs::read_to_string(place.path("disk.toml")).unwrap();
    std::fs::write(place.path("disk.toml"), disk + POWER).unwrap();
    let server = place.serve(&["--metrics", "127.0.0.1:0"]);
    let address = server.announcement["metrics"].as_str().unwrap().to_owned();
    browser.show(address.strip_suffix("metrics").unwrap());
    let mut client = server.client();
    let cells = "document.querySelectorAll('.cell').length";
    let mut number = 0;
    for _ in 0..200 {
        for _ in 0..20 {
            number += 1;
            client
                .write(
                    (number * 37 % 1024) << 12,
                    &[1; 4096],
                    CommandFlags::empty(),
                )
                .unwrap();
        }
        if browser.evaluate(cells).as_u64() > Some(20) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(
        browser.evaluate(cells).as_u64() > Some(20),
        "the map does not fill"
    );
    let faults = browser.faults("live", &LOOKS);
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
    let words = browser.evaluate("document.body.textContent");
    let words = words.as_str().unwrap();
    for part in [
        "time before the latest event (s)",
        "response (ms)",
        "power (W)",
        "outer edge",
        "raid5",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    server.stop_well();
}

/// Sends the page a status that no server sent.
fn tell(browser: &mut Browser, status: &Value) {
    browser.evaluate(&format!(
        "source.onmessage({{ data: {:?} }})",
        status.to_string()
    ));
}

/// Returns a status `seconds` of the world's time later, with `reads` more reads and `errors` more
/// errors.
fn later(status: &Value, seconds: u64, reads: u64, errors: u64) -> Value {
    let mut later = status.clone();
    let export = &mut later["exports"][0];
    export["world_ns"] = json!(export["world_ns"].as_u64().unwrap() + seconds * 1_000_000_000);
    export["requests"] = json!(export["requests"].as_u64().unwrap() + reads);
    let read = &mut export["operations"]["read"];
    let (served, of) = ((reads - errors) as f64, |key: &str| {
        read[key].as_u64().unwrap()
    });
    *read = json!({
        "requests": of("requests") + reads, "errors": of("errors") + errors,
        "bytes": of("bytes") + (reads - errors) * 1_000_000,
        "response_s": read["response_s"].as_f64().unwrap() + served * 0.008, "buckets": [],
    });
    later
}

#[test]
fn the_live_page_shows_what_fails_what_is_rebuilt_and_what_is_no_more() {
    let Some(mut browser) = Browser::open() else {
        return;
    };
    let server = StackFolder::new(RAID5, 8).serve(&["--metrics", "127.0.0.1:0"]);
    let address = server.announcement["metrics"].as_str().unwrap().to_owned();
    browser.show(address.strip_suffix("metrics").unwrap());
    // From now on the page receives only the test's events.
    browser.evaluate("source.close()");
    let status = later(&server.status(), 100, 0, 0);
    let words = |browser: &mut Browser| {
        browser
            .evaluate("document.body.innerText")
            .as_str()
            .unwrap()
            .replace('\n', " ")
    };

    // A quarter of the requests within two seconds succeeds, with 8 ms each.
    tell(&mut browser, &status);
    let failing = later(&status, 2, 400, 300);
    tell(&mut browser, &failing);
    let shown = words(&mut browser);
    for part in [
        "IOPS 50.00",
        "MB/s 50.00",
        "mean response (ms) 8.00",
        "errors/s 150",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let warnings = "document.querySelectorAll('.warning').length";
    assert_eq!(browser.evaluate(warnings), 1);
    let faults = browser.faults("live-failing", &LOOKS);
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );

    let mut rebuilding = later(&failing, 1, 10, 0);
    let export = &mut rebuilding["exports"][0];
    export["drives"][2]["state"] = json!("rebuilding");
    export["drives"][2]["rebuilt_share"] = json!(0.4137);
    export["drives"][2]["queue_length"] = json!(1234);
    export["health"]["rebuilds"] =
        json!([{ "member": "2", "share": 0.4137, "mb_per_s": 204.1, "left_s": 69_120.0 }]);
    tell(&mut browser, &rebuilding);
    let shown = words(&mut browser);
    assert!(
        shown.contains("Rebuilding 2: 41.3 %, 204.1 MB/s, 19.2 h left."),
        "{shown}"
    );
    let right = "[...document.querySelectorAll('svg text')].find((text) => text.textContent.endsWith('rebuilding 41.3 %')).getBBox()";
    assert!(
        browser
            .evaluate(&format!("(({right}).x + ({right}).width) <= WIDTH"))
            .as_bool()
            .unwrap()
    );
    assert_eq!(browser.evaluate(warnings), 0);
    let faults = browser.faults("live-rebuilding", &LOOKS);
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );

    browser.evaluate("source.onerror()");
    assert_eq!(
        browser.evaluate("document.getElementById('exports').className"),
        "old"
    );
    assert!(words(&mut browser).contains("has not answered since "));

    // The first status is of a restarted server of the same stack. The later one is of another
    // stack.
    tell(&mut browser, &server.status());
    tell(&mut browser, &later(&server.status(), 1, 10, 0));
    assert_eq!(
        browser.evaluate("document.getElementById('exports').className"),
        ""
    );
    let times = browser.evaluate("[...views.values()][0].times");
    let times: Vec<f64> = times
        .as_array()
        .unwrap()
        .iter()
        .map(|time| time.as_f64().unwrap())
        .collect();
    assert!(times.len() == 2 && times.is_sorted(), "{times:?}");
    let mut other = server.status();
    other["exports"][0]["name"] = json!("other");
    tell(&mut browser, &other);
    tell(&mut browser, &later(&other, 1, 0, 0));
    let titles = "[...document.querySelectorAll('h2')].map((title) => title.textContent)";
    assert_eq!(browser.evaluate(titles), json!(["other: raid5 of 5"]));
    server.stop_well();
}
