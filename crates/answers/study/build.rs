//! Computes a digest of the code that determines the results of a simulation. The digest keeps the
//! results of different builds apart.

#[path = "build/code.rs"]
mod code;

use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Layers of the project that determine results. No crate in these layers depends on real devices
/// or on the command line.
const STOREYS: &[&str] = &["ground", "path", "input", "answers"];
/// Crates of these layers that no result depends on. A new crate counts until its name is added
/// here.
const WITHOUT_EFFECT: &[&str] = &["advise", "report", "study"];

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    // A packaged crate has no sources of the other crates around it, so only the version remains.
    let digest = digest(&here).unwrap_or_else(|_| "packaged".to_owned());
    println!("cargo::rustc-env=FULLSTROKE_SOURCES={digest}");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
}

fn digest(here: &Path) -> io::Result<String> {
    let crates = here.join("../..");
    let lock = crates.join("../Cargo.lock");
    let mut hash = Sha256::new();
    watch(&lock);
    hash.update(fs::read(&lock)?);
    let mut folders = Vec::new();
    for storey in STOREYS {
        folders.extend(sorted(&crates.join(storey))?);
    }
    for folder in folders {
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !WITHOUT_EFFECT.contains(&name.as_str()) && folder.join("src").is_dir() {
            watch(&folder.join("src"));
            let mut files = BTreeMap::new();
            read(&folder.join("src"), &mut files)?;
            add(&folder, &name, &files, &mut hash);
        }
    }
    Ok(hash
        .finalize()
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Reads each Rust file below `folder`.
fn read(folder: &Path, files: &mut BTreeMap<PathBuf, String>) -> io::Result<()> {
    for path in sorted(folder)? {
        if path.is_dir() {
            read(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            files.insert(path, text);
        }
    }
    Ok(())
}

/// Adds the code of a crate's files to `hash`, each with its path. Files of tests are left out.
fn add(folder: &Path, name: &str, files: &BTreeMap<PathBuf, String>, hash: &mut Sha256) {
    let of_tests: BTreeSet<PathBuf> = files
        .iter()
        .flat_map(|(path, text)| code::files_of_tests(path, text))
        .collect();
    for (path, text) in files {
        // The path itself or a folder around it may be declared as tests.
        if path.ancestors().any(|around| of_tests.contains(around)) {
            continue;
        }
        let code = code::code(text);
        let path = path.strip_prefix(folder).unwrap_or(path).display();
        hash.update(format!("{name}/{path} {}\n", code.len()));
        hash.update(code);
    }
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}
