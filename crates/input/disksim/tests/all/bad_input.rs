//! An error names the file, the line and the key.

use crate::common::{SEEK, disk, files, model, one};
use fullstroke_disksim::{ErrorKind, ImportError, ImportOptions, import_from, seek_file};
use proptest::prelude::*;
use std::path::Path;

const ZONE: &str = "dm_layout_g1 { LBN-to-PBN mapping scheme = 0, Sparing scheme used = 9,\n\
    Rangesize for sparing = 1, Zones = [ dm_layout_g1_zone { First cylinder number = 0,\n\
    Last cylinder number = 9, Blocks per track = 10, Offset of first block = 0.0,\n\
    Empty space at zone front = 0, Skew for track switch = 1.0, Skew for cylinder switch = 2.0,\n\
    Number of spares = 4, slips = [ 3, 5 ], defects = [] } ] }";

fn good() -> String {
    disk(&model(2, 10, 196, ZONE, SEEK))
}

fn fails(text: &str, strict: bool) -> ImportError {
    match one(&[("d.diskspecs", text)], strict) {
        Ok(_) => panic!("accepted"),
        Err(error) => error,
    }
}

/// Returns the line, counted from 1, in which `what` begins.
fn line_of(text: &str, what: &str) -> u32 {
    text[..text.find(what).unwrap()].lines().count().max(1) as u32
}

#[test]
fn the_small_disk_is_accepted_in_strict_mode() {
    let imported = one(&[("d.diskspecs", &good())], true).unwrap();
    assert_eq!(imported.config.capacity_sectors.0, 196);
    let lost: Vec<&str> = imported
        .losses
        .iter()
        .map(|loss| loss.what.as_str())
        .collect();
    assert!(
        matches!(lost[..], [bus] if bus.contains("on no bus")),
        "{lost:?}"
    );
}

#[test]
fn every_missing_key_is_named() {
    let text = good();
    let keys = [
        "Block count = 196,\n",
        "Rotation speed (in rpms) = 10000,\n",
        "Blocks per track = 10, ",
        "Print stats = 1,\n",
    ];
    for key in keys {
        let error = fails(&text.replace(key, ""), false);
        assert_eq!(error.kind, ErrorKind::MissingKey, "{error}");
        assert!(
            error.key.ends_with(key.split(" =").next().unwrap()),
            "{error}"
        );
        assert!(error.line > 0 && error.file == Path::new("d.diskspecs"));
    }
}

#[test]
fn an_unknown_key_is_an_error_or_a_loss() {
    let text = good().replace("Block count = 196", "Block count = 196,\nBlok count = 3");
    let error = fails(&text, true);
    assert_eq!(
        (error.kind, error.key.as_str()),
        (ErrorKind::UnknownKey, "Model.Blok count")
    );
    assert_eq!(error.line, line_of(&text, "Blok") + 1);
    assert!(
        error.to_string().contains("`Block count` perhaps"),
        "{error}"
    );
    let losses = one(&[("d.diskspecs", &text)], false).unwrap().losses;
    assert!(losses.iter().any(|loss| loss.key == "Model.Blok count"));
}

#[test]
fn wrong_types_and_values_are_named() {
    for (from, to, kind) in [
        (
            "Block count = 196",
            "Block count = many",
            ErrorKind::WrongType,
        ),
        (
            "Zones = [ dm",
            "Zones = 3, Nones = [ dm",
            ErrorKind::WrongType,
        ),
        ("slips = [ 3, 5 ]", "slips = [ 3, x ]", ErrorKind::WrongType),
        (
            "slips = [ 3, 5 ]",
            "slips = [ 3, -5 ]",
            ErrorKind::WrongValue,
        ),
        ("defects = []", "defects = [ 1 ]", ErrorKind::WrongValue),
        ("= 10000", "= 0", ErrorKind::WrongValue),
        ("scheme used = 9", "scheme used = 11", ErrorKind::WrongValue),
        (
            "Seek type = constant",
            "Seek type = swift",
            ErrorKind::WrongValue,
        ),
        (
            "Last cylinder number = 9",
            "Last cylinder number = 11",
            ErrorKind::Layout,
        ),
        (
            "Number of spares = 4, slips = [ 3, 5 ]",
            "Number of spares = 0, slips = [ 1, 2, 3, 4, 5, 6 ]",
            ErrorKind::Layout,
        ),
        (
            "Number of spares = 4",
            "Number of spares = 400",
            ErrorKind::Layout,
        ),
    ] {
        let error = fails(&good().replace(from, to), false);
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.line > 0 && !error.key.is_empty(), "{error}");
    }
}

#[test]
fn broken_syntax_is_placed() {
    for (from, to) in [
        ("Block count = 196,", "Block count = 196"),
        ("slips = [ 3, 5 ]", "slips = [ 3, 5 "),
        ("slips = [ 3, 5 ]", "slips = [ s1 .. t9 ]"),
        ("disksim_disk D {", "disksim_disk {"),
        ("disksim_disk D {", "disc D {"),
    ] {
        let error = fails(&good().replace(from, to), false);
        assert_eq!(error.kind, ErrorKind::Syntax, "{error}");
        assert!(error.line > 0, "{error}");
    }
    assert_eq!(fails("a b { c = [", false).kind, ErrorKind::Syntax);
    let deep = format!("disksim_x y {{ c = {}", "[".repeat(100_000));
    assert_eq!(fails(&deep, false).kind, ErrorKind::TooLarge);
}

#[test]
fn a_file_that_includes_itself_is_refused_with_its_line() {
    let list = [
        ("d.diskspecs", "\nsource e.model\n"),
        ("e.model", "\n\n# comment\nsource d.diskspecs"),
    ];
    let error = one(&list, false).unwrap_err();
    assert_eq!(
        (error.kind, error.file.as_path(), error.line),
        (ErrorKind::SourceCycle, Path::new("e.model"), 4)
    );
    let error = one(&[("d.diskspecs", "source absent.model")], false).unwrap_err();
    assert_eq!((error.kind, error.line), (ErrorKind::Unreadable, 1));
}

#[test]
fn sources_inheritance_and_ranges_are_followed() {
    let derived = "disksim_disk D { Model = source m/x.model, source keys.txt }\n\
        D E { Print stats = 0, Max queue length = 7 }\n\
        instantiate [ other, disk1 .. disk3 ] as E\n\
        topology disksim_bus b0 [ disksim_disk disk1 [] ]\n";
    let model = model(2, 10, 196, "source layout", SEEK);
    let keys = crate::common::DISK_KEYS;
    let list = [
        ("d.diskspecs", derived),
        ("m/x.model", &model),
        ("m/layout", ZONE),
        ("keys.txt", keys),
    ];
    let imported = one(&list, true).unwrap();
    assert_eq!(imported.name, "E");
    assert_eq!(imported.electronics.disk.queue_length, 7);
    assert_eq!(imported.electronics.disk.print_statistics, 0);
    assert_eq!(imported.electronics.disk.segments, 1);
    assert_eq!(imported.config.queue.depth, 7);
    for name in ["D", "E", "disk2"] {
        let found = import_from(
            &files(&list),
            Path::new("d.diskspecs"),
            &ImportOptions {
                name: Some(name.to_string()),
                strict: true,
                ..ImportOptions::default()
            },
        )
        .unwrap();
        assert_eq!(found.len(), 1);
    }
    let error = import_from(
        &files(&list),
        Path::new("d.diskspecs"),
        &ImportOptions {
            name: Some("disk4".into()),
            strict: true,
            ..ImportOptions::default()
        },
    )
    .unwrap_err();
    assert_eq!(error.kind, ErrorKind::NoDisk);
}

fn g4(rows: &str, slips: &str) -> String {
    let layout = format!(
        "dm_layout_g4 {{ TP = [ 0, 9, 10 ], IDX = [\n{rows}\n], Slips = [ {slips} ], Remaps = [] }}"
    );
    disk(&model(2, 10, 1, &layout, SEEK))
}

#[test]
fn a_tree_with_overlaps_or_holes_is_refused_with_its_line() {
    for (rows, line) in [
        (
            "[ 0, 0, 0.0, 10, 1, 0.1, 50, 5, TRACK, 0, 0,\n40, 0, 0.0, 10, 1, 0.1, 50, 5, TRACK, 0, 1 ]",
            2,
        ),
        (
            "[ 0, 0, 0.0, 10, 1, 0.1, 50, 5, TRACK, 0, 0,\n60, 0, 0.0, 10, 1, 0.1, 50, 5, TRACK, 0, 1 ]",
            2,
        ),
        (
            "[ 0, 0, 0.0, 10, 1, 0.1, 50, 5, TRACK, 0, 0,\n50, 4, 0.0, 10, 1, 0.1, 50, 5, TRACK, 0, 0 ]",
            2,
        ),
        ("[ 0, 0, 0.0, 11, 1, 0.1, 50, 5, TRACK, 0, 0 ]", 1),
        ("[ 0, 0, 0.0, 10, 1, 0.1, 500, 50, TRACK, 0, 0 ]", 1),
        ("[ 0, 0, 0.0, 10, 1, 0.1, 10, 1, IDX, 0 ]", 1),
    ] {
        let text = g4(rows, "");
        let error = fails(&text, false);
        assert_eq!(error.kind, ErrorKind::Layout, "{error}");
        assert_eq!(error.line, line_of(&text, "[ 0, 0, 0.0") + line, "{error}");
    }
    let rows = "[ 0, 0, 0.0, 10, 1, 0.1, 50, 5, TRACK, 0, 0, 50, 0, 0.0, 10 ]";
    assert_eq!(fails(&g4(rows, ""), false).kind, ErrorKind::WrongValue);
    let rows = "[ 0, 0, 0.0, 10, 1, 0.1, 50, 5, TRACK, 0, 0 ]";
    assert_eq!(
        fails(&g4(rows, "9, 1, 3, 1"), false).kind,
        ErrorKind::Layout
    );
}

#[test]
fn a_short_seek_file_is_refused_with_its_line() {
    let read = |text: &str| seek_file(Path::new("x.seek"), text);
    let header = "Seek distances measured: 3\n";
    assert_eq!(
        read(&format!("{header}1, 1.0\n2,\t1.5, 0.1\n9, 3.0\n")).unwrap(),
        [(1, 1.0), (2, 1.5), (9, 3.0)]
    );
    for (text, line) in [
        (format!("{header}1, 1.0\n2, 1.5\n"), 1),
        (format!("{header}1, 1.0\n2, 1.5\n3, 2\n4, 3\n"), 1),
        (format!("{header}1, 1.0\n2 1.5\n3, 2.0\n"), 3),
        (format!("{header}2, 1.0\n2, 1.5\n3, 2.0\n"), 3),
        ("Seek distances measured: x\n".into(), 1),
        (String::new(), 1),
    ] {
        let error = read(&text).unwrap_err();
        assert_eq!(
            (error.kind, error.line),
            (ErrorKind::SeekFile, line),
            "{error}"
        );
        assert_eq!(error.file, Path::new("x.seek"));
    }
}

#[test]
fn a_seek_file_may_have_further_columns() {
    let four = "Seek distances measured: 2\n1, 0.9, 0.02, 1.1\n2, 1.5, 0.1, 1.9\n";
    assert_eq!(
        seek_file(Path::new("x.seek"), four).unwrap(),
        [(1, 0.9), (2, 1.5)]
    );
    let words = "Seek distances measured: 1\n1, 0.9, 0.02, swift\n";
    assert_eq!(seek_file(Path::new("x.seek"), words).unwrap_err().line, 2);
}

#[test]
fn a_layout_may_use_the_cylinder_behind_the_last() {
    let g1 = good().replace("Last cylinder number = 9", "Last cylinder number = 10");
    let rows = "[ 0, 0, 0.0, 10, 1, 0.1, 110, 11, TRACK, 0, 0, 110, 0, 0.0, 10, 1, 0.1, 110, 11, TRACK, 0, 1 ]";
    for text in [g1, g4(rows, "")] {
        let imported =
            one(&[("d.diskspecs", &text)], true).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(imported.config.zones.last().unwrap().last_cylinder, 10);
        fullstroke_drive::DriveModel::new(imported.config).unwrap();
        let loss = imported
            .losses
            .iter()
            .find(|loss| loss.key == "Number of cylinders")
            .unwrap();
        assert!(loss.what.contains("10 announced"), "{}", loss.what);
    }
}

/// A system with two disks on one bus and a third disk on another bus.
const SYSTEM: &str = "\
    disksim_bus B { type = 1, Arbitration type = 1, Arbitration time = 0.0,\n\
    Read block transfer time = 0.02, Write block transfer time = 0.0256, Print stats = 0 }\n\
    disksim_ctlr C { type = 1, Scale for delays = 0.0, Bulk sector transfer time = 3.0 }\n\
    instantiate [ bus0, bus1, bus2 ] as B\n\
    instantiate [ ctlr0 ] as C\n\
    instantiate [ disk1 .. disk3 ] as D\n\
    topology disksim_bus bus0 [ disksim_ctlr ctlr0 [\n\
    disksim_bus bus1 [ disksim_disk disk1 [], disksim_disk disk2 [] ],\n\
    disksim_bus bus2 [ disksim_disk disk3 [] ] ] ]\n";

#[test]
fn the_slowest_of_disk_bus_and_controller_sets_the_pace_and_a_shared_bus_is_told() {
    let text = format!("{}{SYSTEM}", good());
    let imported = one(&[("d.diskspecs", &text)], true).unwrap();
    assert_eq!(imported.config.electronics.bus_read_ms_per_sector, 3.0);
    let bus = imported.electronics.bus.unwrap();
    assert_eq!(
        (bus.disks, bus.write_sector_ms, bus.controller_sector_ms),
        (2, 0.0256, 3.0)
    );
    let loss = imported
        .losses
        .iter()
        .find(|loss| loss.key == "bus1")
        .unwrap();
    assert!(
        loss.what.starts_with("2 disks share the bus") && loss.what.contains("[link]"),
        "{}",
        loss.what
    );
    let quick = fullstroke_disksim::BusTimes {
        controller_sector_ms: 0.0,
        ..bus
    };
    assert!(
        quick
            .link_table()
            .contains("kind = \"scsi\"\nrate_mb_per_s = 20.000"),
        "{}",
        quick.link_table()
    );
    let alone = text.replace(
        "disksim_disk disk1 [], disksim_disk disk2 []",
        "disksim_disk disk1 []",
    );
    let alone = one(&[("d.diskspecs", &alone)], true).unwrap();
    assert_eq!(alone.losses, []);
}

#[test]
fn seek_formulas_become_curves() {
    use fullstroke_drive::SeekConfig;
    let seek = |keys: &str| {
        one(
            &[("d.diskspecs", &disk(&model(2, 10, 196, ZONE, keys)))],
            true,
        )
        .unwrap()
        .config
        .seek
    };
    let numbers =
        "Single cylinder seek time = 1, Average seek time = 2, Full strobe seek time = 3.5";
    assert_eq!(
        seek(&format!("Seek type = curve, {numbers}")),
        SeekConfig::Datasheet {
            track_to_track_ms: 1.0,
            average_ms: 2.0,
            full_stroke_ms: 3.5
        }
    );
    let values =
        |last: &str| format!("HPL seek equation values = [ 4, 1.0, 0.5, 1.5, 0.25, {last} ]");
    assert!(matches!(
        seek(&format!("Seek type = hpl, {}", values("-1.0"))),
        SeekConfig::TwoPiece { crossover: 4, .. }
    ));
    let form = format!(
        "{:?}",
        seek(&format!("Seek type = hpl, {}", values("0.75")))
    );
    assert!(
        form.contains("(1, 0.75)") && form.contains("(9, 3.75)"),
        "{form}"
    );
    let form = format!("{:?}", seek(&format!("Seek type = linear, {numbers}")));
    assert!(form.contains("(1, 1.0), (4, 2.0), (10, 3.5)"), "{form}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let list: std::collections::BTreeMap<_, _> = [(std::path::PathBuf::from("d.diskspecs"), bytes.clone())].into();
        let _ = import_from(&list, Path::new("d.diskspecs"), &ImportOptions { strict: true, ..ImportOptions::default() });
        let _ = seek_file(Path::new("x"), &String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn a_changed_file_never_panics(at in 0usize..4000, with in "[\\[\\]{}=,0-9a-z #.\\-]{0,6}", length in 0usize..8) {
        for mut text in [good(), g4("[ 0, 0, 0.0, 10, 1, 0.1, 50, 5, TRACK, 0, 0 ], [0, 0, 0.0, 50, 5, 0.1, 100, 10, IDX, 0]", "3, 2")] {
            let at = at % text.len();
            let end = (at + length).min(text.len());
            text.replace_range(at..end, &with);
            let _ = one(&[("d.diskspecs", &text)], false);
        }
    }
}

#[test]
fn a_file_of_mechanics_alone_passes_the_check_of_drive_files() {
    let model = model(2, 10, 196, "source layout", SEEK);
    let imported = one(&[("d.diskspecs", &model), ("layout", ZONE)], false).unwrap();
    let model = fullstroke_drive::DriveModel::new(imported.config).unwrap();
    let checks = fullstroke_drive::checks(&model);
    let failed: Vec<&str> = checks
        .iter()
        .filter(|check| !check.passed)
        .map(|check| check.key.as_str())
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
}
