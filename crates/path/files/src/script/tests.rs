use super::*;
use crate::{FileError, FileSystemSite, make};
use fullstroke_contract::registry::Keys;
use fullstroke_units::{Sectors, Seed, Time};

#[test]
fn loops_are_written_out_with_their_counter() {
    let script =
        Script::parse("mkdir d # a comment\n\nrepeat 2\n  create d/f{n} 4KiB\nend\nsync").unwrap();
    let create = |name: &str| ScriptStep::Create(name.into(), 4096);
    let steps = [
        (1, ScriptStep::MakeDirectory("d".into())),
        (4, create("d/f0")),
        (4, create("d/f1")),
        (6, ScriptStep::Sync),
    ];
    assert_eq!(script.steps(), steps);
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (text, line, found) in [
        (
            "mkdir a\ncraete a/b",
            2,
            "there is no operation `craete` (did you mean `create`?)",
        ),
        (
            "append a",
            1,
            "found `append a`; expected `append PATH SIZE`",
        ),
        ("append a many", 1, "found `many`; expected a number"),
        ("repeat 3\nsync", 1, "`repeat` has no `end`"),
        ("sync\nend", 2, "`end` without a `repeat`"),
        (
            "repeat often\nend",
            1,
            "found `often`; expected a whole number of iterations",
        ),
        (
            "repeat 99999999999\nsync\nend",
            2,
            "more than 2000000 operations",
        ),
    ] {
        let error = Script::parse(text).unwrap_err();
        assert_eq!(error.line, line, "{text}");
        assert!(error.message.contains(found), "{error}");
    }
    assert_eq!(Script::parse(&"repeat 9\n".repeat(9)).unwrap_err().line, 1);
    assert_eq!(
        Script::parse("repeat 99999999999\nend").unwrap().steps(),
        []
    );
}

#[test]
fn a_script_is_played_and_its_failure_has_the_line() {
    let site = FileSystemSite {
        capacity: Sectors(1 << 20),
        seed: Seed(1),
        stripe: None,
        tracks: None,
    };
    for kind in ["ext2", "ext4", "xfs"] {
        let mut system = make(kind, &Keys::new(), &site).unwrap();
        let script = Script::parse(
            "mkdir a\nopen a/x\nrepeat 20\nappend a/x 4KiB\ncreate a/f{n} 10KiB\nend\nclose a/x\nfsync a/x\n\
             rename a/f1 a/f2\ntruncate a/f2 1KiB\ndelete a/f3\nsync\nappend a/f3 1KiB",
        )
        .unwrap();
        let failed = ScriptPlayer::new(&mut *system, Time::ZERO)
            .play_all(&script)
            .unwrap_err();
        assert_eq!(
            (failed.line, failed.error),
            (13, FileError::NotFound("f3".into())),
            "{kind}"
        );
        assert_eq!(system.usage().pages_delayed, 0, "{kind}");
    }
}

/// Two files that grow in turns get windows of 8, 16, 32 and 64 blocks, one behind the other. The
/// indirect block (2068) lies inside a window.
#[test]
fn reservation_windows_double_and_keep_clear_of_each_other() {
    let keys = Keys::from_iter([("allocation".to_owned(), "reservation".into())]);
    let site = FileSystemSite {
        capacity: Sectors(1 << 21),
        seed: Seed(1),
        stripe: None,
        tracks: None,
    };
    let mut system = make("ext2", &keys, &site).unwrap();
    let script =
        Script::parse("open a\nopen b\nrepeat 119\nappend a 4KiB\nappend b 4KiB\nend\nclose a")
            .unwrap();
    ScriptPlayer::new(&mut *system, Time::ZERO)
        .play_all(&script)
        .unwrap();
    let files = crate::fragmentation::laid_out(&*system).unwrap();
    let runs: Vec<_> = files[0]
        .fragments
        .iter()
        .map(|run| (run.block, run.pages))
        .collect();
    assert_eq!(
        runs,
        [(2048, 8), (2064, 4), (2069, 11), (2096, 32), (2160, 64)]
    );
}

/// Generates a line that is an operation more often than not.
fn line() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let path = || prop_oneof!["[ab]", "d/[a-c]", "d", "d/\\{n\\}", "[a/.{}#]{0,4}"];
    let size = || {
        prop_oneof![
            "[0-9]{1,3}KiB",
            "[0-9]MiB",
            "[0-9]{1,20}",
            "9TiB",
            "[a-z0-9.]{0,3}"
        ]
    };
    prop_oneof![
        path().prop_map(|path| format!("mkdir {path}")),
        (path(), size()).prop_map(|(path, size)| format!("create {path} {size}")),
        (path(), size()).prop_map(|(path, size)| format!("append {path} {size}")),
        (path(), size(), size()).prop_map(|(path, at, size)| format!("write {path} {at} {size}")),
        (path(), size()).prop_map(|(path, size)| format!("truncate {path} {size}")),
        path().prop_map(|path| format!("open {path}")),
        path().prop_map(|path| format!("close {path}")),
        path().prop_map(|path| format!("delete {path}")),
        (path(), path()).prop_map(|(from, to)| format!("rename {from} {to}")),
        path().prop_map(|path| format!("fsync {path}")),
        Just("sync".to_owned()),
        Just("repeat 3".to_owned()),
        Just("end".to_owned()),
    ]
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// Parses each line separately, so that a refused line does not end the others.
    #[test]
    fn whatever_is_read_is_played_or_refused(lines in proptest::collection::vec(line(), 1..40)) {
        let _ = Script::parse(&lines.join("\n"));
        let site = FileSystemSite { capacity: Sectors(1 << 16), seed: Seed(1), stripe: None, tracks: None };
        for kind in ["raw", "ext2", "ext4", "xfs"] {
            let mut system = make(kind, &Keys::new(), &site).unwrap();
            let mut player = ScriptPlayer::new(&mut *system, Time::ZERO);
            for line in &lines {
                if let Ok(script) = Script::parse(line) {
                    let _ = player.play_all(&script);
                }
            }
            if kind != "raw" {
                let laid = crate::fragmentation::laid_out(&*system).unwrap();
                let files: u64 = laid.iter().map(|file| file.pages()).sum();
                let usage = system.usage();
                proptest::prop_assert!(files + usage.pages_free + system.set_aside() <= usage.pages);
            }
        }
    }
}
