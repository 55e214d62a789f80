//! Writing and reading of whole tables.

// The tests read the files back.
#![allow(clippy::disallowed_methods)]

use fullstroke_table::{ColumnType, ROWS_PER_GROUP, Schema, TableError, TableReader, TableWriter};
use proptest::prelude::*;
use std::io::Read as _;
use std::path::Path;

fn schema() -> Schema {
    Schema::new()
        .column("arrival_ns", ColumnType::U64)
        .column("shift", ColumnType::I64)
        .column("device", ColumnType::U32)
        .column("operation", ColumnType::Text)
        .column("hit", ColumnType::Bool)
        .optional("response_ms", ColumnType::F64)
        .optional("completed_ns", ColumnType::U64)
        .metadata("schema", "test 1")
}

#[derive(Clone, Debug, PartialEq)]
struct TableRow(u64, i64, u32, String, bool, Option<f64>, Option<u64>);

fn write(path: &Path, rows: &[TableRow]) -> Result<u64, TableError> {
    let mut table = TableWriter::create(path, &schema())?;
    for row in rows {
        table.u64(0, row.0);
        table.i64(1, row.1);
        table.u32(2, row.2);
        table.text(3, &row.3);
        table.bool(4, row.4);
        table.optional_f64(5, row.5);
        table.optional_u64(6, row.6);
        table.end_row()?;
    }
    table.finish()
}

fn read(path: &Path, batch_rows: usize) -> Result<Vec<TableRow>, TableError> {
    let mut reader = TableReader::open(path, &schema())?;
    assert_eq!(reader.metadata("schema"), Some("test 1"));
    let mut rows = Vec::new();
    while let Some(batch) = reader.next_batch(batch_rows)? {
        for row in 0..batch.rows() {
            rows.push(TableRow(
                batch.u64(0, row),
                batch.i64(1, row),
                batch.u32(2, row),
                batch.text(3, row).to_owned(),
                batch.bool(4, row),
                batch.optional_f64(5, row),
                batch.optional_u64(6, row),
            ));
        }
    }
    Ok(rows)
}

fn row() -> impl Strategy<Value = TableRow> {
    (
        any::<u64>(),
        any::<i64>(),
        any::<u32>(),
        "[a-c,\"\n]{0,4}",
        any::<bool>(),
        proptest::option::of(-1e9f64..1e9),
        proptest::option::of(any::<u64>()),
    )
        .prop_map(|(a, b, c, d, e, f, g)| TableRow(a, b, c, d, e, f, g))
}

fn plain(arrival: u64) -> TableRow {
    let response = arrival.is_multiple_of(3).then_some(arrival as f64 / 7.0);
    TableRow(arrival, -5, 1, "read".to_owned(), true, response, None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn rows_come_back_as_they_were_written(rows in prop::collection::vec(row(), 0..60), batch in 1usize..70) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.parquet");
        prop_assert_eq!(write(&path, &rows).unwrap(), rows.len() as u64);
        prop_assert_eq!(read(&path, batch).unwrap(), rows);
    }

    #[test]
    fn a_damaged_file_is_an_error_or_rows_and_never_a_panic(
        place in 0.0f64..1.0, value: u8, cut in 0.0f64..1.0,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.parquet");
        write(&path, &(0..300).map(plain).collect::<Vec<_>>()).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let place = (place * bytes.len() as f64) as usize;
        bytes[place] = value;
        if value % 4 == 0 {
            bytes.truncate((cut * bytes.len() as f64) as usize);
        }
        if let Ok(mut reader) = TableReader::from_bytes(Path::new("x"), bytes, &schema()) {
            while let Ok(Some(batch)) = reader.next_batch(64) {
                prop_assert!(batch.rows() <= 64);
            }
        }
    }
}

#[test]
fn several_row_groups_are_read_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.parquet");
    let rows: Vec<TableRow> = (0..ROWS_PER_GROUP as u64 * 2 + 17).map(plain).collect();
    write(&path, &rows).unwrap();
    assert!(read(&path, 10_000).unwrap() == rows);
}

#[test]
fn csv_quotes_what_it_must_and_leaves_empty_cells_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.csv");
    let row = TableRow(1, -2, 3, "a,\"b\"".to_owned(), false, Some(0.1), None);
    write(&path, &[row]).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let header = "arrival_ns,shift,device,operation,hit,response_ms,completed_ns";
    assert_eq!(
        text,
        format!("{header}\n1,-2,3,\"a,\"\"b\"\"\",false,0.1,\n")
    );
}

#[test]
fn compressed_csv_holds_the_same_text() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<TableRow> = (0..1000).map(plain).collect();
    write(&folder.path().join("log.csv"), &rows).unwrap();
    write(&folder.path().join("log.csv.gz"), &rows).unwrap();
    let mut text = String::new();
    let packed = std::fs::File::open(folder.path().join("log.csv.gz")).unwrap();
    flate2::read::GzDecoder::new(packed)
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(
        text,
        std::fs::read_to_string(folder.path().join("log.csv")).unwrap()
    );
}

#[test]
fn a_table_that_is_not_finished_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["log.parquet", "log.csv", "log.csv.gz"] {
        let mut table = TableWriter::create(&folder.path().join(name), &schema()).unwrap();
        table.u64(0, 1);
        drop(table);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    let rows: Vec<TableRow> = (0..200_000).map(plain).collect();
    let error = write(Path::new("/dev/full"), &rows)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("/dev/full") && error.contains("No space left"),
        "{error}"
    );
}

#[test]
fn missing_and_mistyped_columns_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.parquet");
    write(&path, &[plain(0)]).unwrap();
    let missing = Schema::new().column("latency_ns", ColumnType::U64);
    let error = TableReader::open(&path, &missing).unwrap_err().to_string();
    assert!(
        error.contains("log.parquet") && error.contains("`latency_ns`"),
        "{error}"
    );
    let mistyped = Schema::new().column("operation", ColumnType::U64);
    let error = TableReader::open(&path, &mistyped).unwrap_err().to_string();
    assert!(
        error.contains("`operation`") && error.contains("BYTE_ARRAY"),
        "{error}"
    );
    let absent = Schema::new().optional("latency_ns", ColumnType::U64);
    let mut reader = TableReader::open(&path, &absent).unwrap();
    assert!(reader.next_batch(10).unwrap().unwrap().is_null(0, 0));
}

#[test]
fn values_out_of_range_and_empty_cells_name_their_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.parquet");
    write(&path, &[plain(0), plain(1)]).unwrap();
    let negative = Schema::new().column("shift", ColumnType::U64);
    let error = TableReader::open(&path, &negative)
        .unwrap()
        .next_batch(10)
        .unwrap_err()
        .to_string();
    assert!(error.contains("row 0") && error.contains("-5"), "{error}");
    let needed = Schema::new().column("response_ms", ColumnType::F64);
    let error = TableReader::open(&path, &needed)
        .unwrap()
        .next_batch(10)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("row 1") && error.contains("empty"),
        "{error}"
    );
}

#[test]
fn other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.parquet");
    for bytes in [&b""[..], b"hello", b"PAR1PAR1PAR1"] {
        std::fs::write(&path, bytes).unwrap();
        let error = TableReader::open(&path, &schema()).unwrap_err();
        assert!(matches!(error, TableError::Damaged { .. }), "{error}");
    }
}
