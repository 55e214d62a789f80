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
fn the_reference_pages_are_up_to_date() {
    for page in reference() {
        check(&format!("docs/{}", page.file), &page.text);
    }
}

#[test]
fn the_book_has_every_reference_page() {
    let summary = include_str!("../../../../docs/SUMMARY.md");
    for page in reference() {
        assert!(
            summary.contains(&format!("({})", page.file)),
            "{}",
            page.file
        );
    }
}

#[test]
fn no_reference_page_shows_the_name_of_a_type() {
    for page in reference() {
        for row in page.text.lines().filter(|row| row.starts_with("| `")) {
            let value = row.split(" | ").nth(1).unwrap_or_default();
            assert!(
                !value.contains("keys") && !value.contains("config"),
                "{}: {row}",
                page.file
            );
        }
    }
}

#[test]
fn each_table_of_a_drive_file_has_its_keys_on_the_page() {
    let pages = reference();
    let drives = pages.iter().find(|page| page.file.ends_with("drive.md"));
    let text = &drives.unwrap().text;
    let (first, _) = text.split_once("\n## [").unwrap();
    let tables: Vec<&str> = first
        .lines()
        .filter(|row| row.contains(" | table | ") || row.contains(" | list of: table | "))
        .filter_map(|row| row.split('`').nth(1))
        .filter(|key| *key != "sources")
        .collect();
    assert!(tables.contains(&"buffer") && tables.contains(&"zones"));
    for key in tables {
        assert!(text.contains(&format!("## [{key}]")) || text.contains(&format!("## [[{key}]]")));
    }
}

#[test]
fn a_value_that_the_key_does_not_quote_is_explained() {
    let pages = reference();
    let row = |key: &str| {
        let mut rows = pages.iter().flat_map(|page| page.text.lines());
        rows.find(|row| row.starts_with(&format!("| `{key}` |")))
            .unwrap()
    };
    assert!(row("band_start").contains("`outward`: Towards the outer edge."));
    // The description of this key quotes both values, so the page does not repeat them.
    assert!(!row("when_full").contains("`forget`: "));
}

#[test]
fn a_page_cache_takes_the_name_of_a_policy() {
    let schema = Stack::schema();
    let definitions = &schema["$defs"];
    let policy = &definitions["PushedKeys"]["properties"]["replacement"]["$ref"];
    let name = policy.as_str().unwrap().rsplit('/').next().unwrap();
    let kinds = definitions[name]["anyOf"].as_array().unwrap();
    let free_text = |kind: &serde_json::Value| kind["type"] == "string" && kind["const"].is_null();
    assert!(kinds.iter().any(free_text), "{kinds:?}");
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
