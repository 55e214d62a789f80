//! The schema of study files is generated; what is committed must be what the
//! code says. `make generate` writes it.

use std::path::PathBuf;

#[test]
fn the_schema_of_study_files_is_up_to_date() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schemas/study.json");
    let generated = serde_json::to_string_pretty(&fullstroke_study::schema()).unwrap() + "\n";
    if std::env::var_os("FULLSTROKE_GENERATE").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == generated, "schemas/study.json is not what the code says; run `make generate`");
}
