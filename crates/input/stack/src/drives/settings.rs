//! Keys of a drive file that follow from other keys, when the settings of a volume replace the
//! other keys.

use serde_json::{Map, Value, json};

/// Keys of the queue that stay when a volume names another discipline. All other keys belong to the
/// firmware that the discipline describes.
const OF_EVERY_QUEUE: [&str; 4] = ["depth", "concatenate", "background", "flush"];

/// Exponent of the power that turns the platters, by speed: the drag of the air grows with the
/// speed to 2.8 (Gurumurthi, Sivasubramaniam, Kandemir & Franke, DRPM, ISCA 2003).
const DRAG: f64 = 2.8;

/// Watts of a drive whose platters turn.
const TURNING: [&str; 6] = [
    "seek_w",
    "write_seek_w",
    "rotate_w",
    "read_w",
    "write_w",
    "idle_a_w",
];

/// Prepares the keys of a drive file for other `settings`.
pub(super) fn prepare(values: &mut Map<String, Value>, settings: &Map<String, Value>) {
    forget_firmware(values, settings);
    forget_destage(values, settings);
    scale_power(values, settings);
}

fn table<'a>(values: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    values.get_mut(key).and_then(Value::as_object_mut)
}

/// Drops the keys of the firmware if the settings name another discipline.
fn forget_firmware(values: &mut Map<String, Value>, settings: &Map<String, Value>) {
    let wanted = settings
        .get("queue")
        .and_then(|queue| queue.get("discipline"));
    let Some(queue) = table(values, "queue").filter(|_| wanted.is_some()) else {
        return;
    };
    if queue.get("discipline") != wanted {
        queue.retain(|key, _| OF_EVERY_QUEUE.contains(&key.as_str()));
    }
}

/// Drops the keys of the order of destaging if the settings name another order.
fn forget_destage(values: &mut Map<String, Value>, settings: &Map<String, Value>) {
    let wanted = settings
        .get("buffer")
        .and_then(|buffer| buffer.get("destage_discipline"));
    let Some(buffer) = table(values, "buffer").filter(|_| wanted.is_some()) else {
        return;
    };
    if buffer.get("destage_discipline") != wanted {
        buffer.remove("destage");
    }
}

/// Lets the power follow the speed if the settings change the speed and not the power. The share
/// above standby that turns the platters grows with the speed to [`DRAG`], and the energy of a
/// start with the square of the speed. Reading, writing and seeking add to idle the same watts.
fn scale_power(values: &mut Map<String, Value>, settings: &Map<String, Value>) {
    let speed = |values: &Map<String, Value>| values.get("rpm").and_then(Value::as_f64);
    let (Some(old), Some(new)) = (speed(values), speed(settings)) else {
        return;
    };
    let ratio = new / old;
    // Given watts are those of the new speed already.
    if settings.contains_key("power") || !ratio.is_finite() || ratio <= 0.0 {
        return;
    }
    let Some(power) = table(values, "power") else {
        return;
    };
    let watts = |key: &str| power.get(key).and_then(Value::as_f64);
    let (Some(idle), Some(standby)) = (watts("idle_a_w"), watts("standby_w")) else {
        return;
    };
    let more = (idle - standby) * (ratio.powf(DRAG) - 1.0);
    for key in TURNING {
        if let Some(watts) = power.get(key).and_then(Value::as_f64) {
            power.insert(key.to_owned(), json!(watts + more));
        }
    }
    for key in ["spin_up_j", "spin_down_j"] {
        if let Some(joules) = power.get(key).and_then(Value::as_f64) {
            // Kinetic energy grows with the square of the speed.
            power.insert(key.to_owned(), json!(joules * ratio * ratio));
        }
    }
    // The deeper idle states unload the heads or turn slower by firmware of the described speed; at
    // another speed nothing is known of them.
    for key in ["idle_b", "idle_c"] {
        power.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Map<String, Value> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn another_discipline_drops_the_keys_of_the_firmware() {
        let drive = r#"{"queue": {"depth": 32, "discipline": "firmware", "margin_ms": 2.0, "age_limit": "2s", "flush": "alone"}}"#;
        let mut values = of(drive);
        prepare(&mut values, &of(r#"{"queue": {"discipline": "satf"}}"#));
        assert_eq!(values, of(r#"{"queue": {"depth": 32, "flush": "alone"}}"#));
        let mut values = of(drive);
        prepare(&mut values, &of(r#"{"queue": {"margin_ms": 1.0}}"#));
        assert_eq!(values, of(drive));
    }

    #[test]
    fn power_follows_the_speed_unless_the_settings_give_the_power() {
        let drive = r#"{"rpm": 7200, "power": {"idle_a_w": 5.0, "standby_w": 1.0, "read_w": 6.0, "spin_up_j": 100.0}}"#;
        let mut values = of(drive);
        prepare(&mut values, &of(r#"{"rpm": 5400}"#));
        let power = values["power"].as_object().unwrap();
        let idle = power["idle_a_w"].as_f64().unwrap();
        assert!(
            (idle - (1.0 + 4.0 * 0.75f64.powf(DRAG))).abs() < 1e-9,
            "{idle}"
        );
        assert!((power["read_w"].as_f64().unwrap() - idle - 1.0).abs() < 1e-9);
        assert!((power["spin_up_j"].as_f64().unwrap() - 56.25).abs() < 1e-9);
        let mut given = of(drive);
        prepare(
            &mut given,
            &of(r#"{"rpm": 5400, "power": {"idle_a_w": 3.0}}"#),
        );
        assert_eq!(given, of(drive));
    }
}
