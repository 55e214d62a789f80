//! Schemas and the reference pages are generated. The committed files must agree with the code.
//! `make generate` writes them.

use fullstroke_stack::{Stack, drive_schema, facts, reference};
use std::path::PathBuf;

fn check(file: &str, generated: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(file);
    if std::env::var_os("FULLSTROKE_GENERATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "{file} is not what the code says; run `make generate`"
    );
}

fn pretty(schema: &serde_json::Value) -> String {
    serde_json::to_string_pretty(schema).unwrap() + "\n"
}

#[test]
fn the_schema_of_stack_files_is_up_to_date() {
    check("schemas/stack.json", &pretty(&Stack::schema()));
}

#[test]
fn the_schema_of_drive_files_is_up_to_date() {
    check("schemas/drive.json", &pretty(&drive_schema()));
}

#[test]
fn the_reference_page_is_up_to_date() {
    check("docs/reference.md", &reference());
}

#[test]
fn the_page_of_fio_options_is_up_to_date() {
    check("docs/fio.md", &fullstroke_fio::reference());
}

#[test]
fn the_facts_of_the_drive_library_are_up_to_date() {
    check(
        "crates/input/stack/drive-facts.toml",
        &facts::computed().unwrap(),
    );
}
