//! Tests of the aligner's plan on stacks: cost and gain of the moves.

use fullstroke_files::script::Script;
use fullstroke_lab::{AlignmentInput, GainReads};
use fullstroke_stack::{Overrides, Stack};
use fullstroke_units::Bytes;

/// Files of nearly a track in a file system that does not align files with tracks.
const STACK: &str = "seed = 2\n[workload]\nkind = \"script\"\nfile = \"list\"\n[host]\nelevator = \"noop\"\n\
    [host.memory]\nsize = \"16MiB\"\n[host.files]\nkind = \"ext2\"\nsize = \"1GiB\"\n";
const DISK: &str = "[volume]\ndrive = \"maxtor-atlas-10k-v-73gb-czk\"\n";
const PROGRAMME: GainReads = GainReads {
    readers: 2,
    files: 60,
    rounds: 6,
    request: Bytes(1 << 20),
};

fn load(text: &str) -> Result<Stack, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("stack.toml"), text).unwrap();
    std::fs::write(folder.path().join("list"), "create of-the-program 4KiB\n").unwrap();
    Stack::load(&folder.path().join("stack.toml"), &Overrides::default())
        .map_err(|error| error.to_string())
}

fn script(files: u32, size: &str) -> Script {
    Script::parse(&format!("repeat {files}\ncreate {{n}} {size}\nend\nsync\n")).unwrap()
}

#[test]
fn files_of_nearly_a_track_are_read_sooner_where_each_lies_on_one() {
    let stack = load(&format!("{STACK}{DISK}")).unwrap();
    let mut found = AlignmentInput::new(&stack, Some(&script(300, "440KiB"))).unwrap();
    let (was, is) = (found.moves().was, found.moves().is);
    assert_eq!((was.files, is.files), (300, 300));
    assert!(
        is.aligned > was.aligned && is.visits < was.visits,
        "{was:?} {is:?}"
    );
    let cost = found.cost(PROGRAMME.request).unwrap();
    assert_eq!(cost.files, found.moves().moves.len() as u64);
    let pages: u64 = found.moves().moves.iter().map(|one| one.pages()).sum();
    assert_eq!(cost.bytes, Bytes(pages * 4096));
    // The moves run at a speed that the medium allows, without pauses.
    let mb_per_s = 2.0 * cost.bytes.0 as f64 / 1e6 / cost.seconds;
    assert!((5.0..120.0).contains(&mb_per_s), "{cost:?}");
    // Each file changes an indirect block, an inode, a bitmap and a descriptor; there are few
    // groups.
    assert!(
        (4 * cost.files..8 * cost.files).contains(&cost.metadata_pages),
        "{cost:?}"
    );
    let gain = found.gain(PROGRAMME, &cost).unwrap();
    assert!(
        gain.saved_ms.value > gain.saved_ms.half_width.unwrap(),
        "{gain:?}"
    );
    assert!(gain.pays_after_files.unwrap() > 0);
    assert_eq!(
        found.gain(PROGRAMME, &cost).unwrap(),
        gain,
        "a seed repeats it"
    );
}

#[test]
fn where_nothing_can_be_won_nothing_is_moved() {
    // A file of one page lies on one track at any place.
    let stack = load(&format!("{STACK}{DISK}")).unwrap();
    let mut found = AlignmentInput::new(&stack, Some(&script(50, "4KiB"))).unwrap();
    let moves = found.moves().moves.len();
    let cost = found.cost(PROGRAMME.request).unwrap();
    // Only a page that lies across two tracks moves.
    assert!(moves <= 2 && cost.files == moves as u64);
    let gain = found.gain(PROGRAMME, &cost).unwrap();
    assert_eq!(
        gain.before_ms.to_bits() == gain.after_ms.to_bits(),
        moves == 0
    );
}

#[test]
fn stacks_without_files_or_tracks_are_refused_with_the_reason() {
    let refused = |text: &str, script: Option<&Script>| match AlignmentInput::new(
        &load(text).unwrap(),
        script,
    ) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    };
    let disk = format!("{STACK}{DISK}");
    let striped = format!("{disk}layout = \"raid0\"\ndrives = 2\n");
    assert!(refused(&striped, Some(&script(2, "4KiB"))).contains("raid0 of 2"));
    let open = "[workload]\nkind = \"synthetic\"\nrequests = 1\nsize = \"4KiB\"\n\
        arrivals = { process = \"closed\", outstanding = 1 }\n";
    assert!(refused(&format!("{open}{DISK}"), None).contains("host.files"));
    assert!(refused(&disk, None).contains("no file"));
    let full = Script::parse("create a 2GiB\n").unwrap();
    assert!(
        refused(&disk, Some(&full)).contains("line 1"),
        "{}",
        refused(&disk, Some(&full))
    );
}
