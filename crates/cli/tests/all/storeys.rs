//! Tests of the crate layers: allowed dependencies between crates, and folders under the rule of
//! crates without I/O. ARCHITECTURE.md draws the layers.

use crate::common::project;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders of `crates/` with their floor, from the ground up. A crate may depend on crates of its
/// own folder and of lower floors. `answers` and `real` share a floor, so that neither depends on
/// the other; the same holds for `cli` and `web`.
const STOREYS: &[(&str, u32)] = &[
    ("ground", 0),
    ("path", 1),
    ("input", 2),
    ("answers", 3),
    ("real", 3),
    ("cli", 4),
    ("web", 4),
];

/// Folders under the rule of the root's clippy.toml: no clock, thread or file.
const POLICY: &[&str] = &["ground", "path"];

/// Further crates under the same rule. Each has a symbolic link to the root's clippy.toml.
const ALSO_UNDER_THE_RULE: &[&str] = &["input/disksim", "answers/report", "real/nbd"];

/// Manifest tables with edges that a build follows. `[dev-dependencies]` may point upward, because
/// a test of the engine runs a real drive.
const TABLES: &[&str] = &["dependencies", "build-dependencies"];

struct Crate {
    /// Folder below `crates/`, such as "path/drive" or "cli".
    place: String,
    manifest: toml::Table,
}

impl Crate {
    fn storey(&self) -> &str {
        self.place.split('/').next().unwrap()
    }

    fn name(&self) -> &str {
        self.manifest["package"]["name"].as_str().unwrap()
    }

    /// Returns the dependencies that a build needs: the manifest's table and the package's name.
    fn dependencies(&self) -> Vec<(String, String)> {
        let mut found = edges(&self.manifest, "");
        let targets = self.manifest.get("target").and_then(toml::Value::as_table);
        for (target, tables) in targets.into_iter().flatten() {
            found.extend(edges(
                tables.as_table().unwrap(),
                &format!("target.{target}."),
            ));
        }
        found
    }
}

fn edges(tables: &toml::Table, before: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for table in TABLES {
        let Some(entries) = tables.get(*table).and_then(toml::Value::as_table) else {
            continue;
        };
        for (key, entry) in entries {
            let renamed = entry.get("package").and_then(toml::Value::as_str);
            found.push((
                format!("{before}{table}"),
                renamed.unwrap_or(key).to_owned(),
            ));
        }
    }
    found
}

fn crates() -> PathBuf {
    project().join("crates")
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

/// Reads the Cargo.toml of every crate of the workspace.
fn house() -> Vec<Crate> {
    let mut found = Vec::new();
    for storey in folders(&crates()) {
        // `cli` and `web` are single crates; other storeys are folders of crates.
        let rooms = if storey.join("Cargo.toml").exists() {
            vec![storey]
        } else {
            folders(&storey)
        };
        for room in rooms {
            let text = fs::read_to_string(room.join("Cargo.toml"))
                .unwrap_or_else(|error| panic!("{}/Cargo.toml: {error}", room.display()));
            let place = room.strip_prefix(crates()).unwrap();
            found.push(Crate {
                place: place.to_str().unwrap().to_owned(),
                manifest: text.parse().unwrap(),
            });
        }
    }
    found
}

/// Returns a sentence for each edge that runs upward or sideways.
fn broken_edges(house: &[Crate]) -> Vec<String> {
    let floor_of: BTreeMap<&str, u32> = STOREYS.iter().copied().collect();
    let storey_of: BTreeMap<&str, &str> = house
        .iter()
        .map(|room| (room.name(), room.storey()))
        .collect();
    let mut broken = Vec::new();
    for room in house {
        let here = room.storey();
        for (table, name) in room.dependencies() {
            let Some(there) = storey_of.get(name.as_str()) else {
                continue;
            };
            let way = match floor_of[there].cmp(&floor_of[here]) {
                std::cmp::Ordering::Less => continue,
                std::cmp::Ordering::Equal if *there == here => continue,
                std::cmp::Ordering::Equal => "sideways",
                std::cmp::Ordering::Greater => "upward",
            };
            broken.push(format!(
                "crates/{}/Cargo.toml, [{table}]: {} ({here}) depends on {name} ({there}), {way}",
                room.place,
                room.name()
            ));
        }
    }
    broken
}

#[test]
fn no_dependency_runs_upward_or_sideways() {
    let broken = broken_edges(&house());
    assert!(
        broken.is_empty(),
        "dependencies run from a storey to a lower one: {STOREYS:?}\n{}",
        broken.join("\n")
    );
}

#[test]
fn an_edge_upward_or_sideways_is_named() {
    let room = |place: &str, manifest: &str| Crate {
        place: place.to_owned(),
        manifest: manifest.parse().unwrap(),
    };
    let house = [
        room(
            "path/drive",
            "[package]\nname = 'drive'\n[target.'cfg(unix)'.build-dependencies]\nreading = { package = 'stack' }",
        ),
        room(
            "input/stack",
            "[package]\nname = 'stack'\n[dependencies]\ndrive = '1'\nserde = '1'\n[dev-dependencies]\nlive = '1'",
        ),
        room(
            "real/live",
            "[package]\nname = 'live'\n[dependencies]\nlab.workspace = true\nstack = '1'",
        ),
        room("answers/lab", "[package]\nname = 'lab'"),
    ];
    assert_eq!(
        broken_edges(&house),
        [
            "crates/path/drive/Cargo.toml, [target.cfg(unix).build-dependencies]: \
             drive (path) depends on stack (input), upward",
            "crates/real/live/Cargo.toml, [dependencies]: live (real) depends on lab (answers), sideways",
        ]
    );
}

#[test]
fn each_crate_stands_in_a_storey() {
    let house = house();
    let strangers: Vec<&str> = house
        .iter()
        .filter(|room| STOREYS.iter().all(|(name, _)| *name != room.storey()))
        .map(|room| room.place.as_str())
        .collect();
    assert!(
        strangers.is_empty(),
        "crates/ has the folders {STOREYS:?}; found beside them: {strangers:?}"
    );

    // The root manifest names all internal dependencies with their folders.
    let root: toml::Table = fs::read_to_string(project().join("Cargo.toml"))
        .unwrap()
        .parse()
        .unwrap();
    let named = root["workspace"]["dependencies"].as_table().unwrap();
    for (name, entry) in named {
        let Some(path) = entry.get("path").and_then(toml::Value::as_str) else {
            continue;
        };
        let room = house.iter().find(|room| room.name() == name);
        let place = room.map(|room| format!("crates/{}", room.place));
        assert_eq!(
            place.as_deref(),
            Some(path),
            "Cargo.toml, [workspace.dependencies], {name}"
        );
    }
}

#[test]
fn one_list_of_folders_says_which_crates_are_policy_crates() {
    let house = house();
    let rule = project().join("clippy.toml").canonicalize().unwrap();
    for room in &house {
        let lints = room
            .manifest
            .get("lints")
            .and_then(|lints| lints.get("workspace"))
            .and_then(toml::Value::as_bool);
        assert_eq!(
            lints,
            Some(true),
            "crates/{}/Cargo.toml takes the lints of the workspace: [lints] workspace = true",
            room.place
        );
        for key in ["edition", "license", "publish", "rust-version"] {
            let inherited = &room.manifest["package"][key];
            assert_eq!(
                inherited.get("workspace").and_then(toml::Value::as_bool),
                Some(true),
                "crates/{}/Cargo.toml: {key} is that of the workspace: {key}.workspace = true",
                room.place
            );
        }
        let also = ALSO_UNDER_THE_RULE.contains(&room.place.as_str());
        let wanted = also || POLICY.contains(&room.storey());
        // clippy reads the nearest clippy.toml from the crate's folder up.
        let folder = crates().join(&room.place);
        let nearest = folder
            .ancestors()
            .flat_map(|folder| [".clippy.toml", "clippy.toml"].map(|name| folder.join(name)))
            .find(|file| file.exists())
            .unwrap();
        assert_eq!(
            nearest.canonicalize().unwrap() == rule,
            wanted,
            "crates/{}: clippy reads {}; the rule of the root's clippy.toml holds in the folders {POLICY:?} \
             and in {ALSO_UNDER_THE_RULE:?}, and nowhere else",
            room.place,
            nearest.display()
        );
        // A copied rule would diverge, so only a link is allowed.
        if nearest.starts_with(&folder) && also {
            assert!(
                nearest.is_symlink(),
                "{} is a copy of the root's clippy.toml; expected a symbolic link",
                nearest.display()
            );
        }
    }
    for place in ALSO_UNDER_THE_RULE {
        assert!(
            house.iter().any(|room| room.place == *place),
            "crates/{place} is in ALSO_UNDER_THE_RULE, and is no crate"
        );
    }
}

#[test]
fn the_picture_of_the_storeys_names_every_crate() {
    let picture = fs::read_to_string(project().join("docs/storeys.svg")).unwrap();
    for room in house() {
        let name = match room.place.split_once('/') {
            Some((_, name)) => format!(">{name}<"),
            None => format!(">crates/{}<", room.place),
        };
        assert_eq!(
            picture.matches(&name).count(),
            1,
            "docs/storeys.svg and crates/{}: give the crate a place in tools/draw-storeys.py, and run the script",
            room.place
        );
    }
}
