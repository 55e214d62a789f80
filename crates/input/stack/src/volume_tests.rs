//! `write_cache` in a volume decides whether its drives acknowledge writes in their buffers.

use crate::spec::VolumeSpec;
use crate::{Overrides, Stack};

/// Returns the state of each drive's write cache; `None` for a drive without a buffer.
fn caches(volume: &str, set: &[&str]) -> Result<Vec<Option<bool>>, String> {
    let text = format!(
        "[workload]\nkind = \"synthetic\"\nrequests = 1\nsize = \"4KiB\"\narrivals = {{ process = \"closed\", outstanding = 1 }}\n{volume}"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stack.toml");
    std::fs::write(&file, text).unwrap();
    let set = set.iter().map(|&key| key.to_owned()).collect();
    let stack = Stack::load(
        &file,
        &Overrides {
            set,
            ..Overrides::default()
        },
    )
    .map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    collect(&stack.volume, &mut found);
    Ok(found)
}

fn collect(volume: &VolumeSpec, found: &mut Vec<Option<bool>>) {
    match volume {
        VolumeSpec::Drive(model, _) => found.push(
            model
                .config()
                .buffer
                .as_ref()
                .map(|buffer| buffer.write_back),
        ),
        VolumeSpec::Volume { members, .. } => {
            members.iter().for_each(|member| collect(member, found))
        }
    }
}

const TWO: &str = "[volume]\nlayout = \"raid0\"\ndrive = \"seagate-exos-x24-24tb\"\ndrives = 2\n";

#[test]
fn unless_said_a_drive_does_as_its_file_says() {
    assert_eq!(caches(TWO, &[]).unwrap(), [Some(true); 2]);
    let sas = TWO.replace("x24-24tb", "10e2400-2.4tb");
    assert_eq!(caches(&sas, &[]).unwrap(), [Some(false); 2]);
}

#[test]
fn the_key_turns_it_on_and_off_in_the_file_and_on_the_command_line() {
    assert_eq!(
        caches(&format!("{TWO}write_cache = false\n"), &[]).unwrap(),
        [Some(false); 2]
    );
    assert_eq!(
        caches(TWO, &["volume.write_cache=false"]).unwrap(),
        [Some(false); 2]
    );
    let sas = TWO.replace("x24-24tb", "10e2400-2.4tb");
    assert_eq!(
        caches(&sas, &["volume.write_cache=true"]).unwrap(),
        [Some(true); 2]
    );
}

#[test]
fn members_may_differ() {
    let members = "[volume]\nlayout = \"raid0\"\nwrite_cache = false\n\
        [[volume.members]]\ndrive = \"seagate-exos-x24-24tb\"\n\
        [[volume.members]]\ndrive = \"seagate-exos-x24-24tb\"\nwrite_cache = true\n";
    assert_eq!(caches(members, &[]).unwrap(), [Some(false), Some(true)]);
}

#[test]
fn other_settings_of_the_buffer_stay() {
    let set = [
        "volume.drive_settings.buffer.segments=7",
        "volume.drive_settings.buffer.write_segments=2",
    ];
    let set = [&set[..], &["volume.write_cache=false"]].concat();
    assert_eq!(caches(TWO, &set).unwrap(), [Some(false); 2]);
}

#[test]
fn a_drive_without_a_buffer_has_none_and_says_so() {
    let plain = TWO.replace("seagate-exos-x24-24tb", "seagate-cheetah-9lp");
    assert_eq!(
        caches(&plain, &["volume.write_cache=false"]).unwrap(),
        [None, None]
    );
    let refused = caches(&plain, &["volume.write_cache=true"]).unwrap_err();
    assert!(
        refused.contains("write_cache") && refused.contains("no buffer"),
        "{refused}"
    );
    let no_switch = caches(TWO, &["volume.write_cache=3"]).unwrap_err();
    assert!(
        no_switch.contains("volume.write_cache") && no_switch.contains("true or false"),
        "{no_switch}"
    );
}

/// Ten lines ask for 2^40 drives. The drives are counted before any drive is built.
#[test]
fn nested_counts_are_bounded_by_their_product() {
    let level = |depth: usize| format!("[[volume{}]]\ncount = 1024\n", ".members".repeat(depth));
    let nested = format!(
        "[volume]\nlayout = \"raid0\"\n{}layout = \"raid0\"\n{}layout = \"raid0\"\n{}layout = \"raid0\"\n\
         drive = \"seagate-exos-x24-24tb\"\ndrives = 1024\n",
        level(1),
        level(2),
        level(3)
    );
    let error = caches(&nested, &[]).unwrap_err();
    assert!(
        error.contains("count`: found 1024 times 1024, which is 1048576")
            && error.contains("16384 drives"),
        "{error}"
    );
    // Without layouts of their own, all drives are members of one layer.
    let flat = format!(
        "[volume]\nlayout = \"raid0\"\n{}drive = \"seagate-exos-x24-24tb\"\ndrives = 1024\n",
        level(1)
    );
    let error = caches(&flat, &[]).unwrap_err();
    assert!(error.contains("1024 members of one layer"), "{error}");
    // The limit holds for the sum of several tables.
    let one = "[[volume.members]]\ndrive = \"seagate-exos-x24-24tb\"\ncount = 600\n";
    let error = caches(&format!("[volume]\nlayout = \"raid0\"\n{one}{one}"), &[]).unwrap_err();
    assert!(error.contains("with 600 before 1200"), "{error}");
    assert_eq!(
        caches(&format!("[volume]\nlayout = \"raid0\"\n{one}"), &[])
            .unwrap()
            .len(),
        600
    );
}
