//! A digest of the sources that decide what a simulation gives, so that the
//! results of one build are not taken for those of another.

use sha2::{Digest as _, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Crates that no result depends on. A new crate counts until it is named here.
const WITHOUT_EFFECT: &[&str] = &["bench", "bytes", "cli", "live", "nbd", "predict", "study", "validate"];

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    // A packaged crate stands alone: then the version has to do.
    let digest = digest(&here).unwrap_or_else(|_| "packaged".to_owned());
    println!("cargo::rustc-env=FULLSTROKE_SOURCES={digest}");
    println!("cargo::rerun-if-changed=build.rs");
}

fn digest(here: &Path) -> io::Result<String> {
    let crates = here.join("..");
    let lock = crates.join("../Cargo.lock");
    let mut hash = Sha256::new();
    watch(&lock);
    hash.update(fs::read(&lock)?);
    // All must be there that the results are made of.
    fs::metadata(crates.join("engine"))?;
    for folder in sorted(&crates)? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !WITHOUT_EFFECT.contains(&name.as_str()) && folder.join("src").is_dir() {
            watch(&folder.join("src"));
            add(&folder.join("src"), &name, &mut hash)?;
        }
    }
    Ok(hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect())
}

/// Adds each file below `folder`, with its path.
fn add(folder: &Path, name: &str, hash: &mut Sha256) -> io::Result<()> {
    for path in sorted(folder)? {
        let name = format!("{name}/{}", path.file_name().unwrap_or_default().to_string_lossy());
        if path.is_dir() {
            add(&path, &name, hash)?;
        } else {
            let text = fs::read(&path)?;
            hash.update(format!("{name} {}\n", text.len()));
            hash.update(text);
        }
    }
    Ok(())
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
