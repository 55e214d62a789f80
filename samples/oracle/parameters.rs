//! Writes the parameters of a disk in the grammar of DiskSim's parameter files. The oracle has the
//! parameters as numbers.

use crate::oracle::path;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Writes the parameter file of `disk`, and its seek curve, into `folder`.
pub fn write_parameters(disk: &str, folder: &Path) -> PathBuf {
    let text = std::fs::read_to_string(path(&format!("parameters/{disk}.toml"))).unwrap();
    let facts: Table = text.parse().unwrap();
    let mut seek = String::new();
    let mut parts = String::new();
    for (name, kind) in [("BUS", "bus"), ("DISK", "disk")] {
        let mut keys = facts[kind].as_table().unwrap().clone();
        keys.insert("kind".into(), format!("disksim_{kind} {name}").into());
        if kind == "disk" {
            keys.insert("Print stats".into(), 1.into());
        }
        parts += &text_of("", &keys.into(), disk, &mut seek);
        parts += "\n";
    }
    // A driver and a controller without times of their own, and one bus.
    parts += "disksim_iodriver DRIVER { type = 1 }\ndisksim_ctlr CTLR { type = 1 }\n\
        instantiate [ driver0 ] as DRIVER\ninstantiate [ ctlr0 ] as CTLR\n\
        instantiate [ bus0 ] as BUS\ninstantiate [ disk0 ] as DISK\n\
        topology disksim_iodriver driver0 [ disksim_ctlr ctlr0 [ disksim_bus bus0 [ disksim_disk disk0 [] ] ] ]\n";
    if !seek.is_empty() {
        std::fs::write(folder.join(format!("{disk}.seek")), seek).unwrap();
    }
    let file = folder.join(format!("{disk}.parv"));
    std::fs::write(&file, parts).unwrap();
    file
}

/// A value in the grammar; the points of a seek curve go to a file of their own.
fn text_of(key: &str, value: &Value, disk: &str, seek: &mut String) -> String {
    match value {
        Value::Table(keys) => {
            let mut text = format!("{} {{\n", keys["kind"].as_str().unwrap());
            let keys = keys.iter().filter(|(key, _)| *key != "kind");
            let keys: Vec<String> = keys
                .map(|(key, value)| format!("{key} = {}", text_of(key, value, disk, seek)))
                .collect();
            text += &keys.join(",\n");
            text + "\n}"
        }
        Value::Array(points) if key == "Full seek curve" => {
            writeln!(seek, "Seek distances measured: {}", points.len()).unwrap();
            for point in points {
                writeln!(seek, "{}, {}", point[0], point[1]).unwrap();
            }
            format!("{disk}.seek")
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| text_of("", item, disk, seek));
            format!("[ {} ]", items.collect::<Vec<_>>().join(", "))
        }
        Value::String(word) => word.clone(),
        other => other.to_string(),
    }
}
