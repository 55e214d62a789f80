//! The schema of study files and the page of metrics are generated. The committed files must equal
//! the output of the code. `make generate` writes the files.

use std::path::PathBuf;

fn check(file: &str, generated: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(file);
    if std::env::var_os("FULLSTROKE_GENERATE").is_some() {
        std::fs::write(&path, generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "{file} is not what the code says; run `make generate`"
    );
}

#[test]
fn the_schema_of_study_files_is_up_to_date() {
    let schema = serde_json::to_string_pretty(&fullstroke_study::schema()).unwrap() + "\n";
    check("schemas/study.json", &schema);
}

#[test]
fn the_page_of_metrics_is_up_to_date() {
    check("docs/metrics.md", &fullstroke_measure::reference());
}
