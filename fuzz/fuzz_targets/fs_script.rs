//! Parses a list of file operations from arbitrary bytes. Each file system must carry out or refuse
//! an accepted list, with all space accounted for.
#![no_main]

use fullstroke_contract::registry::Keys;
use fullstroke_files::fragmentation::laid_out;
use fullstroke_files::script::{Script, ScriptPlayer};
use fullstroke_files::{FileSystemSite, make};
use fullstroke_units::{Sectors, Seed, Time};
use libfuzzer_sys::fuzz_target;

/// Limit of operations. More would only slow the target.
const STEPS_MAX: usize = 200;

fuzz_target!(|text: &[u8]| {
    let Ok(script) = Script::parse(&String::from_utf8_lossy(text)) else {
        return;
    };
    if script.steps().len() > STEPS_MAX {
        return;
    }
    // 32 MiB, so that the file system is soon full.
    let site = FileSystemSite {
        capacity: Sectors(1 << 16),
        seed: Seed(1),
        stripe: None,
        tracks: None,
    };
    for kind in ["raw", "ext2", "ext4", "xfs"] {
        let mut system = make(kind, &Keys::new(), &site).expect("32 MiB are enough for each");
        let _ = ScriptPlayer::new(&mut *system, Time::ZERO).play_all(&script);
        if kind == "raw" {
            continue;
        }
        let files: u64 = laid_out(&*system)
            .expect("what is listed is there")
            .iter()
            .map(|file| file.pages())
            .sum();
        let usage = system.usage();
        assert!(files + usage.pages_free + system.set_aside() <= usage.pages);
    }
});
