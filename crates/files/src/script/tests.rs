use super::*;
use crate::{FileError, Site, make};
use fullstroke_contract::registry::Keys;
use fullstroke_units::{Sectors, Seed, Time};

#[test]
fn loops_are_written_out_with_their_counter() {
    let script = Script::parse("mkdir d # a comment\n\nrepeat 2\n  create d/f{n} 4KiB\nend\nsync").unwrap();
    let create = |name: &str| Step::Create(name.into(), 4096);
    let steps =
        [(1, Step::MakeDirectory("d".into())), (4, create("d/f0")), (4, create("d/f1")), (6, Step::Sync)];
    assert_eq!(script.steps(), steps);
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (text, line, found) in [
        ("mkdir a\ncraete a/b", 2, "there is no operation `craete` (did you mean `create`?)"),
        ("append a", 1, "found `append a`; expected `append PATH SIZE`"),
        ("append a many", 1, "`many` does not begin with a number"),
        ("repeat 3\nsync", 1, "`repeat` has no `end`"),
        ("sync\nend", 2, "`end` without a `repeat`"),
        ("repeat often\nend", 1, "`often` is no number of times"),
        ("repeat 99999999999\nsync\nend", 2, "more than 2000000 operations"),
    ] {
        let error = Script::parse(text).unwrap_err();
        assert_eq!(error.line, line, "{text}");
        assert!(error.message.contains(found), "{error}");
    }
    assert_eq!(Script::parse(&"repeat 9\n".repeat(9)).unwrap_err().line, 1);
    assert_eq!(Script::parse("repeat 99999999999\nend").unwrap().steps(), []);
}

#[test]
fn a_script_is_played_and_its_failure_has_the_line() {
    let site = Site { capacity: Sectors(1 << 20), seed: Seed(1), stripe: None };
    for kind in ["ext2", "ext4", "xfs"] {
        let mut system = make(kind, &Keys::new(), &site).unwrap();
        let script = Script::parse(
            "mkdir a\nopen a/x\nrepeat 20\nappend a/x 4KiB\ncreate a/f{n} 10KiB\nend\nclose a/x\nfsync a/x\n\
             rename a/f1 a/f2\ntruncate a/f2 1KiB\ndelete a/f3\nsync\nappend a/f3 1KiB",
        )
        .unwrap();
        let failed = Player::new(&mut *system, Time::ZERO).play_all(&script).unwrap_err();
        assert_eq!((failed.line, failed.error), (13, FileError::NotFound("f3".into())), "{kind}");
        assert_eq!(system.usage().pages_delayed, 0, "{kind}");
    }
}
