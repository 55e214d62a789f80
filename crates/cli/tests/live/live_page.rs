//! The live page in a real headless browser.

use crate::common::browser::{Browser, LOOKS};
use crate::server::Place;
use crate::stacks::RAID5;
use fullstroke_nbd::CommandFlags;
use std::time::Duration;

/// What the file of a drive has to say for watts to be known.
const POWER: &str = "power = \"chosen\"\n[power]\nspin_up_ms = 8000.0\nspin_down_ms = 4000.0\nspin_up_j = 100.0\nspin_down_j = 10.0\n\
                     rotate_w = 5.0\nstandby_w = 1.0\nidle_a_w = 5.0\nread_w = 8.0\nwrite_w = 8.0\nseek_w = 10.0\n";

#[test]
fn the_live_page_is_sound_in_a_browser_and_moves() {
    let Some(mut browser) = Browser::open() else { return };
    let place = Place::new(RAID5, 8);
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
            client.write((number * 37 % 1024) << 12, &[1; 4096], CommandFlags::empty()).unwrap();
        }
        if browser.evaluate(cells).as_u64() > Some(20) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(browser.evaluate(cells).as_u64() > Some(20), "the map does not fill");
    let faults = browser.faults("live", &LOOKS);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    let words = browser.evaluate("document.body.textContent");
    let words = words.as_str().unwrap();
    for part in ["time before the latest event (s)", "response (ms)", "power (W)", "outer edge", "raid5"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    server.stop_well();
}
