//! All layers that align to tracks use one source: the drive, or a table from a file. A table that
//! does not fit is refused with the first different address.

use fullstroke_engine::{Finished, Observer};
use fullstroke_stack::{Overrides, Stack, drives};
use fullstroke_tracks::{Boundaries, Builder};
use fullstroke_units::{Lbn, Sectors};

const DRIVE: &str = "quantum-atlas-10k-9.1gb";
const OTHER: &str = "seagate-cheetah-9lp";

#[derive(Default)]
struct FinishedRequests(Vec<Finished>);

impl Observer for FinishedRequests {
    fn finished(&mut self, finished: &Finished) {
        self.0.push(*finished);
    }
}

fn table(drive: &str) -> Boundaries {
    Boundaries::of(&*drives::load(drive).unwrap().tracks(), "a test").unwrap()
}

/// Returns the table with one more sector on track `number` and one less on the next.
fn off_by_one(table: &Boundaries, number: u64) -> Boundaries {
    let mut builder = Builder::default();
    for (at, track) in table.tracks_from(Lbn(0)).enumerate() {
        let change = i64::from(at as u64 == number) - i64::from(at as u64 == number + 1);
        builder
            .push(Sectors(track.sectors.0.checked_add_signed(change).unwrap()))
            .unwrap();
    }
    builder.finish("wrong").unwrap()
}

const LOAD: &str = "seed = 5\n[workload]\nkind = \"synthetic\"\nrequests = 300\nsize = \"256KiB\"\n\
    arrivals = { process = \"closed\", outstanding = 4 }\n";
const SCRIPT: &str = "seed = 5\n[workload]\nkind = \"script\"\nfile = \"list\"\n[host]\nelevator = \"noop\"\n\
    [host.memory]\nsize = \"64MiB\"\n[host.files]\nkind = \"ext2\"\nsize = \"200MiB\"\n";

fn volume(keys: &str) -> String {
    format!("[volume]\ndrive = \"{DRIVE}\"\n{keys}\n")
}

fn load(text: &str, tables: &[(&str, &Boundaries)]) -> Result<Stack, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("stack.toml"), text).unwrap();
    std::fs::write(
        folder.path().join("list"),
        "create a\nwrite a 0 2MiB\nfsync a\n",
    )
    .unwrap();
    for (name, table) in tables {
        std::fs::write(folder.path().join(name), table.to_text()).unwrap();
    }
    Stack::load(&folder.path().join("stack.toml"), &Overrides::default())
        .map_err(|error| error.to_string())
}

fn refused(text: &str, tables: &[(&str, &Boundaries)]) -> String {
    match load(text, tables) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error,
    }
}

fn run(stack: &Stack) -> Vec<Finished> {
    let mut seen = FinishedRequests::default();
    stack.build().unwrap().engine().run(&mut seen).unwrap();
    seen.0
}

fn aligned(keys: &str) -> String {
    format!(
        "{LOAD}[host]\nelevator = \"noop\"\ntrack_aligned = true\n{}",
        volume(keys)
    )
}

#[test]
fn a_table_from_a_file_is_the_drives_own() {
    let own = table(DRIVE);
    let from_file = load(&aligned("tracks = \"x.tracks\""), &[("x.tracks", &own)]).unwrap();
    let from_drive = load(&aligned(""), &[]).unwrap();
    assert_eq!(run(&from_file), run(&from_drive));
}

#[test]
fn a_table_of_another_drive_is_refused_with_the_first_address_that_differs() {
    let own = table(DRIVE);
    let wrong = off_by_one(&own, 7);
    let first = own.nth(7).unwrap().end();
    let error = refused(&aligned("tracks = \"x.tracks\""), &[("x.tracks", &wrong)]);
    assert!(
        error.contains("volume.tracks") && error.contains("x.tracks"),
        "{error}"
    );
    assert!(error.contains(&first.to_string()), "{first}: {error}");
    // The table is refused even if no layer uses it.
    refused(
        &format!("{LOAD}{}", volume("tracks = \"x.tracks\"")),
        &[("x.tracks", &wrong)],
    );

    let last = own.nth(own.len() - 1).unwrap();
    let short = own
        .part(fullstroke_contract::Extent::new(0, own.capacity().0 - 1))
        .unwrap();
    let error = refused(&aligned("tracks = \"x.tracks\""), &[("x.tracks", &short)]);
    assert!(
        error.contains(&Lbn(last.end().0 - 1).to_string()),
        "{error}"
    );
    let trusted = aligned("tracks = { file = \"x.tracks\", trust = true }");
    assert!(
        refused(&trusted, &[("x.tracks", &short)]).contains("volume.tracks"),
        "a capacity is no opinion"
    );
}

#[test]
fn a_wrong_table_can_be_trusted_and_then_cuts_elsewhere() {
    let own = table(DRIVE);
    let wrong = off_by_one(&own, 7);
    let text = "seed = 5\n[workload]\nkind = \"synthetic\"\nrequests = 40\nsize = \"256KiB\"\n\
        addresses = { pattern = \"sequential\" }\narrivals = { process = \"closed\", outstanding = 1 }\n\
        [host]\nelevator = \"noop\"\ntrack_aligned = true\n";
    let right = load(&format!("{text}{}", volume("")), &[]).unwrap();
    let trusted = format!(
        "{text}{}",
        volume("tracks = { file = \"x.tracks\", trust = true }")
    );
    let trusted = load(&trusted, &[("x.tracks", &wrong)]).unwrap();
    assert_ne!(run(&right), run(&trusted));
    assert_ne!(right.digest(), trusted.digest());
}

#[test]
fn what_is_no_table_is_refused_at_its_key() {
    for (keys, says) in [
        ("tracks = 7", "found 7"),
        ("tracks = { trust = true }", "expected"),
        (
            "tracks = { file = \"x.tracks\", trusted = true }",
            "expected",
        ),
        ("tracks = \"missing.tracks\"", "missing.tracks"),
        ("tracks = \"list\"", "line 1"),
    ] {
        let error = refused(&format!("{LOAD}{}", volume(keys)), &[]);
        assert!(
            error.contains("volume.tracks") && error.contains(says),
            "{keys}: {error}"
        );
    }
}

#[test]
fn each_member_has_its_own_table() {
    let (own, other) = (table(DRIVE), table(OTHER));
    let text = |second: &str| {
        format!(
            "{LOAD}[host.members]\nelevator = \"noop\"\ntrack_aligned = true\n[volume]\nlayout = \"raid0\"\n\
             [[volume.members]]\ndrive = \"{DRIVE}\"\ntracks = \"one\"\n\
             [[volume.members]]\ndrive = \"{OTHER}\"\ntracks = \"{second}\"\n"
        )
    };
    load(&text("other"), &[("one", &own), ("other", &other)]).unwrap();
    let error = refused(&text("one"), &[("one", &own), ("other", &other)]);
    assert!(error.contains("volume.members[1]"), "{error}");
}

#[test]
fn stripes_have_no_tracks_but_rows_in_which_they_end() {
    let on = |keys: &str, layout: &str| {
        format!(
            "{SCRIPT}{keys}\n{}",
            volume(&format!("layout = \"{layout}\"\ndrives = 4"))
        )
    };
    for layout in ["raid0", "raid5", "raid10"] {
        let error = refused(&on("align = \"tracks\"", layout), &[]);
        assert!(
            error.contains("host.files.align") && error.contains(layout),
            "{error}"
        );
        load(&on("align_read_ahead = true", layout), &[]).unwrap();
        let block = aligned(&format!("layout = \"{layout}\"\ndrives = 4"));
        let error = refused(&block, &[]);
        assert!(
            error.contains("track_aligned") && error.contains("[host.members]"),
            "{error}"
        );
    }
    for layout in ["jbod", "raid1"] {
        load(&on("align = \"tracks\"", layout), &[]).unwrap();
        load(&aligned(&format!("layout = \"{layout}\"\ndrives = 2")), &[]).unwrap();
    }
}

#[test]
fn copies_on_different_drives_have_no_tracks_and_drives_in_a_row_have() {
    let two = |layout: &str| {
        format!(
            "{LOAD}[host]\nelevator = \"noop\"\ntrack_aligned = true\n[volume]\nlayout = \"{layout}\"\n\
             [[volume.members]]\ndrive = \"{DRIVE}\"\n[[volume.members]]\ndrive = \"{OTHER}\"\n"
        )
    };
    let (own, other) = (table(DRIVE), table(OTHER));
    let first = own
        .tracks_from(Lbn(0))
        .zip(other.tracks_from(Lbn(0)))
        .find(|(a, b)| a != b)
        .unwrap();
    let error = refused(&two("raid1"), &[]);
    assert!(
        error.contains(&first.0.end().min(first.1.end()).to_string()),
        "{error}"
    );
    load(&two("jbod"), &[]).unwrap();
}

#[test]
fn behind_a_controller_only_a_file_tells_tracks() {
    let own = table(DRIVE);
    let text = |keys: &str| format!("{}[controller]\n", aligned(keys));
    let error = refused(&text(""), &[]);
    assert!(
        error.contains("controller") && error.contains("tracks = "),
        "{error}"
    );
    load(&text("tracks = \"x\""), &[("x", &own)]).unwrap();
}

#[test]
fn one_of_several_hosts_has_the_tracks_of_its_part() {
    let host = |name: &str, keys: &str| {
        format!(
            "[[hosts]]\nname = \"{name}\"\nelevator = \"noop\"\n{keys}\nsize = \"1000004KiB\"\n[hosts.workload]\n\
             kind = \"synthetic\"\nrequests = 1\nsize = \"1MiB\"\naddresses = {{ pattern = \"sequential\" }}\n\
             arrivals = {{ process = \"closed\", outstanding = 1 }}\n"
        )
    };
    let text = format!(
        "seed = 5\n{}{}{}",
        host("a", ""),
        host("b", "track_aligned = true\nmax_sectors_kb = 2048"),
        volume("")
    );
    load(&text, &[]).unwrap();
    let striped = text.replace(&volume(""), &volume("layout = \"raid0\"\ndrives = 2"));
    assert!(refused(&striped, &[]).contains("track_aligned"));
}
