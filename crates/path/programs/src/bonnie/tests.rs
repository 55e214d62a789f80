use crate::conformance::{PlainHost, keys};
use serde_json::{Value, json};

fn run(value: Value) -> Result<PlainHost, String> {
    let mut plain = PlainHost::default();
    plain.run("bonnie", &keys(value), None, 1)?;
    Ok(plain)
}

fn count(plain: &PlainHost, what: &str) -> usize {
    plain
        .calls
        .iter()
        .filter(|(_, call)| call.starts_with(what))
        .count()
}

fn figure(plain: &PlainHost, name: &str) -> f64 {
    let found = plain
        .report
        .figures
        .iter()
        .find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("{name}")).1
}

#[test]
fn brays_bonnie_writes_three_times_and_reads_three_times_and_seeks() {
    let plain = run(json!({ "size": "2MiB", "seeks": 300 })).unwrap();
    // 128 chunks. At most the first seek and every tenth of each of three processes write.
    let seeks_written = plain.written - 3 * (2 << 20);
    assert_eq!(seeks_written % (16 << 10), 0);
    assert!(
        (30..=33).contains(&(seeks_written / (16 << 10))),
        "{seeks_written}"
    );
    assert_eq!(plain.read, 3 * (2 << 20) + 300 * (16 << 10));
    // 512 buffers of characters in each direction. 128 chunks, and the end of the file in two
    // phases.
    assert_eq!(count(&plain, "Read"), 512 + 2 * 129 + 300);
    assert_eq!(count(&plain, "Fsync"), 0);
    assert_eq!(
        plain.computed.as_nanos(),
        2 * (2 << 20) * 20 + 5_000_000_000
    );
    assert!(plain.files.is_empty());
    assert_eq!(plain.report.figures.len(), 6);
    let names: Vec<&str> = plain.report.figures.iter().map(|figure| figure.0).collect();
    assert_eq!(
        names[..3],
        ["putc_mb_per_s", "rewrite_mb_per_s", "write_mb_per_s"]
    );
    // 16 KiB per microsecond, except for open and close.
    assert!((figure(&plain, "write_mb_per_s") / 16_384.0 - 1.0).abs() < 0.02);
}

#[test]
fn bonnie_plus_plus_ends_each_phase_with_an_fsync_and_counts_its_chunks() {
    let plain =
        run(json!({ "flavour": "bonnie++", "size": "2MiB", "phases": ["write", "rewrite", "read", "seek"] }))
            .unwrap();
    // Same as under strace: 256 chunks per phase, three phases and five seekers.
    assert_eq!(count(&plain, "Fsync"), 3 + 5);
    assert_eq!(count(&plain, "Read"), 2 * 256 + 8192);
    let processes: std::collections::BTreeSet<u32> =
        plain.calls.iter().map(|call| call.0).collect();
    assert_eq!(processes.len(), 6);
}

#[test]
fn a_file_that_no_phase_writes_is_there_before() {
    let plain = run(json!({ "size": "1MiB", "phases": ["read"] })).unwrap();
    assert_eq!((plain.read, plain.written), (1 << 20, 0));
    let line = plain.report.text.lines().last().unwrap();
    assert_eq!(line.split_whitespace().count(), 3, "{line}");
}

#[test]
fn computing_slows_characters_down_to_its_pace() {
    let plain = run(json!({ "size": "1MiB", "phases": ["putc"], "cpu_character": "1us" })).unwrap();
    assert!((figure(&plain, "putc_mb_per_s") - 1.0).abs() < 0.01);
}

#[test]
fn keys_that_cannot_be_are_named() {
    for (value, key) in [
        (json!({ "size": "4KiB" }), "size"),
        (json!({ "chunk": 0 }), "chunk"),
        (json!({ "phases": [] }), "phases"),
        (json!({ "seekers": 0 }), "seekers"),
        (json!({ "seeks": 0 }), "seeks"),
        (json!({ "stdio": 0 }), "stdio"),
        (json!({ "flavour": "zcav" }), "flavour"),
    ] {
        let error = run(value).err().expect(key);
        assert!(error.contains(&format!("`{key}`")), "{key}: {error}");
    }
}
