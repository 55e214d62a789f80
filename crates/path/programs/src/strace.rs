//! A recorded program: the output of `strace -f -ttt -T`.
//!
//! The player repeats the calls on files, each in the process of the recording, after the process's
//! own time. The model decides the duration of a call.
//!
//! **Own time** is the time between the end of a call and the beginning of the next. Calls without
//! files also count as own time: sleeps, futexes, polls, reads of pipes and sockets, `mmap`. Own
//! time is multiplied by `think`.
//!
//! **Order.** A child begins after its parent's fork. `vfork` returns when the child has executed
//! another program. A wait ends when the child has ended; a call interrupted by `SIGCHLD` ends then
//! too. Between processes with common names or files, the order of the recording is kept
//! (`order.rs`). The time of such waits is not own time. A recording does not show wake-ups through
//! futexes and pipes. The time of those waits passes as recorded.
//!
//! **Files.** Files found by the recording exist before the run. Their length follows from reads,
//! seeks to the end and `struct stat`. Files created by the recording do not exist before. Calls
//! with missing names are repeated, and fail again. The recording gives all positions: reads and
//! writes name their place. Symbolic links are not followed: a file exists under each of its names
//! in the recording.
//!
//! | part | content |
//! |---|---|
//! | `line.rs`, `argument.rs` | the format of strace |
//! | `reader.rs` | line by line: process and time |
//! | `recorder.rs` | processes, their time, their descriptors, and their steps |
//! | `calls.rs` | effect of each system call |
//! | `files.rs` | names, and files that existed before |
//! | `order.rs` | order between processes |
//! | `recording.rs`, `player.rs` | the recording and its player |
//! | `notes.rs` | parts that are left out |

mod argument;
mod calls;
mod files;
mod line;
mod notes;
mod order;
mod player;
mod reader;
mod recorder;
mod recording;

use crate::program::{Program, ProgramError, ProgramKind, Recipe};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, PolicyEntry, read, schema_of};
use fullstroke_units::Seed;
use player::RecordingPlayer;
use reader::RecordingOptions;
use recording::Recording;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Maximum factor for own time.
const THINK_MAX: f64 = 1000.0;

/// A recorded program.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Output of `strace -f -ttt -T -o FILE PROGRAM`; `-tt`, `-t` or `-r` instead of `-ttt`, output
    /// without `-T`, and `-y` are accepted too. Notes say what is assumed.
    pub file: String,
    /// Factor for the processes' own time, 0 to 1000. Default 1, as recorded.
    #[serde(default = "as_recorded")]
    pub think: f64,
    /// Working directory of the program at its beginning, for paths without a leading `/`. Default
    /// `/`.
    #[serde(default = "root")]
    pub directory: String,
    /// Only calls on files under this directory are carried out; other calls take their recorded
    /// time. Default: all files except under `/proc`, `/sys` and `/dev`.
    #[serde(default = "root")]
    pub under: String,
    /// Directory at which the file system was mounted in the recording. Names of the recording lose
    /// this prefix. Calls on files outside take their recorded time. Default `/`. A file system
    /// puts directories near their parents or far from them, so a wrong directory moves the files.
    #[serde(default = "root")]
    pub mount: String,
    /// True to count unknown lines and leave them out; false to report an error (default).
    #[serde(default)]
    pub skip_unknown_lines: bool,
}

fn as_recorded() -> f64 {
    1.0
}

fn root() -> String {
    "/".into()
}

pub(crate) const ENTRY: PolicyEntry<ProgramKind> = PolicyEntry {
    name: "strace",
    summary: "a recorded program: the output of strace",
    schema: schema_of::<Config>,
    build: ProgramKind {
        file: Some("file"),
        read: read_recipe,
        example: "file = \"samples/programs/sqlite.strace\"\ndirectory = \"/srv/demo\"",
    },
};

fn read_recipe(keys: &Keys, text: Option<&str>) -> Result<Box<dyn Recipe>, ProgramError> {
    let config: Config = read(keys)?;
    if !(0.0..=THINK_MAX).contains(&config.think) {
        let message = format!("found {}; expected 0 to {THINK_MAX}", config.think);
        return Err(ConfigError::new("think", message).into());
    }
    if !config.mount.starts_with('/') {
        let message = format!(
            "found `{}`; expected a path from `/` on, as \"/srv\"",
            config.mount
        );
        return Err(ConfigError::new("mount", message).into());
    }
    if !meet(&config.under, &config.mount) {
        let message = format!(
            "found `{}`, which lies neither in nor above `mount = \"{}\"`; expected a directory in `mount`, or a directory above `mount`",
            config.under, config.mount
        );
        return Err(ConfigError::new("under", message).into());
    }
    let options = RecordingOptions {
        directory: config.directory,
        under: config.under,
        mount: config.mount,
        skip_unknown_lines: config.skip_unknown_lines,
    };
    let recording = reader::read(text.unwrap_or_default(), options)?;
    if recording.lanes.is_empty() {
        return Err(ProgramError::Line(
            1,
            "found no call; expected the output of `strace -f -ttt -T`".into(),
        ));
    }
    Ok(Box::new(RecordedProgram {
        recording: Arc::new(recording),
        think: config.think,
    }))
}

/// True if one of two directories holds the other, or if the two are one.
fn meet(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|path| files::joined("", path).unwrap_or_default());
    files::within(&one, &other).is_some() || files::within(&other, &one).is_some()
}

struct RecordedProgram {
    recording: Arc<Recording>,
    think: f64,
}

impl Recipe for RecordedProgram {
    fn program(&self, _: Seed) -> Box<dyn Program> {
        Box::new(RecordingPlayer::new(self.recording.clone(), self.think))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{PlainHost, keys};
    use fullstroke_units::Duration;
    use proptest::prelude::*;
    use serde_json::json;

    const SQLITE: &str = include_str!("../../../../samples/programs/sqlite.strace");
    const MAKE: &str = include_str!("../../../../samples/programs/make.strace");
    const SHELL: &str = include_str!("../../../../samples/programs/shell.strace");

    fn play(text: &str, more: serde_json::Value) -> PlainHost {
        let mut all = keys(json!({ "file": "recording", "directory": "/srv/demo" }));
        all.extend(keys(more));
        let mut plain = PlainHost::default();
        plain.run("strace", &all, Some(text), 1).unwrap();
        plain
    }

    fn figure(plain: &PlainHost, name: &str) -> f64 {
        plain
            .report
            .figures
            .iter()
            .find(|(known, _)| *known == name)
            .unwrap()
            .1
    }

    /// Returns a recording. Each line begins `PID SECONDS`; the seconds count from any time.
    fn recording(lines: &[&str]) -> String {
        let line = |line: &&str| {
            let (pid, rest) = line.split_once(' ').unwrap();
            format!("{pid} 17953636{rest}\n")
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn what_was_recorded_of_sqlite_is_what_is_played() {
        let plain = play(SQLITE, json!({}));
        assert_eq!(plain.files.get("srv/demo/t.db"), Some(&8192));
        assert!(!plain.files.contains_key("srv/demo/t.db-journal"));
        let lines = |call: &str| SQLITE.lines().filter(|line| line.contains(call)).count();
        let played = |call: &str| {
            plain
                .calls
                .iter()
                .filter(|(_, text)| text.starts_with(call))
                .count()
        };
        assert_eq!(played("Fdatasync"), lines(" fdatasync("));
        assert_eq!(played("Remove"), lines(" unlink("));
        assert_eq!(
            played("Open") + lines("\"/dev/urandom\""),
            lines(" openat(")
        );
        assert!(
            plain
                .files
                .get("lib/x86_64-linux-gnu/libc.so.6")
                .is_some_and(|bytes| *bytes > 1_000_000)
        );
        let notes = plain.report.notes.join("\n");
        assert!(!notes.contains("here"), "{notes}");
        assert!(
            notes.contains("`fcntl`") && notes.contains("page faults"),
            "{notes}"
        );
    }

    #[test]
    fn processes_of_make_run_side_by_side_and_what_they_make_is_there() {
        for (text, made) in [(MAKE, "srv/demo/all"), (SHELL, "srv/demo/copy/b")] {
            let plain = play(text, json!({}));
            let notes = plain.report.notes.join("\n");
            assert!(!notes.contains("here"), "{notes}");
            assert!(
                plain.files.get(made).is_some_and(|bytes| *bytes >= 5000),
                "{made}"
            );
            assert!(figure(&plain, "recorded_processes") > 2.0);
        }
        assert!(!play(SHELL, json!({})).files.contains_key("srv/demo/b.gz"));
    }

    #[test]
    fn a_recording_without_durations_or_with_other_times_is_read_with_a_note() {
        let without = "7 17:00:10.000 openat(AT_FDCWD, \"a\", O_RDONLY) = 3\n\
            7 17:00:11.000 read(3, \"\"..., 4096) = 4096\n\
            7 17:00:12.000 clock_nanosleep(CLOCK_REALTIME, 0, {}, NULL) = 0\n\
            7 17:00:14.000 close(3) = 0\n\
            7 17:00:14.100 +++ exited with 0 +++\n";
        let plain = play(without, json!({}));
        // Open and read last until the next line; the sleep is the process's own time.
        assert_eq!(plain.computed, Duration::from_millis(2000));
        assert_eq!(figure(&plain, "recorded_calls_s"), 2.1);
        let notes = plain.report.notes.join("\n");
        assert!(
            notes.contains("4 calls have no duration (no -T)"),
            "{notes}"
        );
        let whole = without.replace(".000", "").replace(".100", "");
        let plain = play(&whole, json!({}));
        assert_eq!(plain.computed, Duration::from_millis(2000));
        assert!(
            plain
                .report
                .notes
                .iter()
                .any(|note| note.contains("whole seconds"))
        );
        let relative = "     0.000000 openat(AT_FDCWD, \"a\", O_RDONLY) = 3 <0.5>\n\
            \x20    1.000000 read(3, \"\"..., 4096) = 4096 <0.5>\n\
            \x20    1.000000 close(3) = 0 <0.1>\n\
            \x20    0.100000 +++ exited with 0 +++\n";
        let plain = play(relative, json!({}));
        assert_eq!(plain.computed, Duration::from_millis(1000));
        assert!(plain.report.notes.iter().any(|note| note.contains("(-r)")));
    }

    #[test]
    fn own_time_is_what_lies_between_calls_and_in_calls_that_are_none_on_files() {
        let text = recording(&[
            "7 10.000 openat(AT_FDCWD, \"a\", O_RDONLY) = 3 <0.5>",
            "7 11.000 read(3, \"\"..., 4096) = 4096 <0.5>",
            "7 12.000 clock_nanosleep(CLOCK_REALTIME, 0, {}, NULL) = 0 <2.0>",
            "7 14.000 close(3) = 0 <0.1>",
            "7 14.100 +++ exited with 0 +++",
        ]);
        // 0.5 s before the read, then 0.5 s and the sleep before the close.
        let plain = play(&text, json!({}));
        assert_eq!(plain.computed, Duration::from_millis(3000));
        assert_eq!(plain.files.get("srv/demo/a"), Some(&4096));
        assert_eq!(
            play(&text, json!({ "think": 0.5 })).computed,
            Duration::from_millis(1500)
        );
        assert_eq!(play(&text, json!({ "think": 0 })).computed, Duration::ZERO);
        assert!(
            plain
                .report
                .notes
                .iter()
                .any(|note| note.contains("1 `clock_nanosleep`"))
        );
    }

    #[test]
    fn a_wait_takes_as_long_as_the_child_here() {
        let text = recording(&[
            "7 10.000 clone(child_stack=NULL, flags=SIGCHLD) = 8 <0.001>",
            "7 10.001 wait4(-1,  <unfinished ...>",
            "8 10.002 openat(AT_FDCWD, \"/x\", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3 <5.0>",
            "8 15.002 write(3, \"\"..., 100) = 100 <0.1>",
            "8 15.102 +++ exited with 0 +++",
            "7 15.103 <... wait4 resumed>[{WIFEXITED(s)}], 0, NULL) = 8 <5.102>",
            "7 15.103 --- SIGCHLD {si_signo=SIGCHLD, si_pid=8} ---",
            "7 15.103 unlink(\"/x\") = 0 <0.1>",
        ]);
        let plain = play(&text, json!({}));
        let calls: Vec<_> = plain
            .calls
            .iter()
            .map(|(lane, call)| (*lane, &call[..4]))
            .collect();
        assert_eq!(calls, [(1, "Open"), (1, "Writ"), (1, "Clos"), (0, "Remo")]);
        // The fork, and the time from the fork to the child's first call.
        assert_eq!(plain.computed, Duration::from_millis(3));
    }

    #[test]
    fn a_second_end_of_a_thread_closes_no_file_of_the_others() {
        let text = recording(&[
            "7 10.000 openat(AT_FDCWD, \"/x\", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3 <0.1>",
            "7 10.200 clone(child_stack=0x7f0000000000, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 8 <0.001>",
            "8 10.300 +++ exited with 0 +++",
            "8 10.400 +++ exited with 0 +++",
            "7 10.500 write(3, \"\"..., 100) = 100 <0.1>",
            "7 10.600 +++ exited with 0 +++",
        ]);
        let plain = play(&text, json!({}));
        let calls: Vec<_> = plain.calls.iter().map(|(_, call)| &call[..4]).collect();
        assert_eq!(calls, ["Open", "Writ", "Clos"]);
    }

    #[test]
    fn what_one_process_finds_another_has_made_before() {
        let text = recording(&[
            "7 10.000 clone(child_stack=NULL, flags=SIGCHLD) = 8 <0.001>",
            "8 10.002 access(\"/x\", F_OK) = -1 ENOENT (No such file) <0.001>",
            "7 12.000 openat(AT_FDCWD, \"/x\", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3 <0.1>",
            "7 12.200 write(3, \"\"..., 50) = 50 <0.1>",
            "8 12.302 openat(AT_FDCWD, \"/x\", O_RDONLY) = 3 <0.1>",
            "8 12.402 read(3, \"\"..., 4096) = 50 <0.1>",
            "8 12.502 unlink(\"/x\") = 0 <0.1>",
            "7 12.700 access(\"/x\", F_OK) = -1 ENOENT (No such file) <0.1>",
        ]);
        for think in [0.0, 1.0, 10.0] {
            let plain = play(&text, json!({ "think": think }));
            assert_eq!(plain.read, 50, "{think}");
            assert!(
                !plain.report.notes.iter().any(|note| note.contains("here")),
                "{:?}",
                plain.report.notes
            );
        }
    }

    #[test]
    fn threads_share_descriptors_and_children_inherit_them() {
        let text = recording(&[
            "7 10.0 openat(AT_FDCWD, \"/x\", O_RDONLY) = 3 <0.1>",
            "7 10.2 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD}, 88) = 8 <0.1>",
            "8 10.5 read(3, \"\"..., 10) = 10 <0.1>",
            "8 10.7 dup2(3, 9) = 9 <0.1>",
            "7 10.9 read(9, \"\"..., 10) = 10 <0.1>",
            "7 11.1 lseek(3, -5, SEEK_END) = 95 <0.1>",
            "7 11.3 close(3) = 0 <0.1>",
            "7 11.5 close(9) = 0 <0.1>",
        ]);
        let plain = play(&text, json!({}));
        assert_eq!(plain.files.get("x"), Some(&100));
        let calls: Vec<_> = plain
            .calls
            .iter()
            .map(|(lane, call)| format!("{lane} {call}"))
            .collect();
        let text = calls.join("\n");
        assert!(
            text.contains("1 Read { fd: Fd(1), at: Some(0), bytes: 10 }"),
            "{text}"
        );
        assert!(
            text.contains("0 Read { fd: Fd(1), at: Some(10), bytes: 10 }"),
            "{text}"
        );
        assert_eq!(text.matches("Close").count(), 2, "{text}");
        assert!(
            plain
                .report
                .notes
                .iter()
                .any(|note| note.starts_with("1 opens more"))
        );
    }

    #[test]
    fn a_file_that_is_linked_and_unlinked_has_its_new_name() {
        let text = recording(&[
            "7 10.0 openat(AT_FDCWD, \"/d/tmp\", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3 <0.1>",
            "7 10.2 write(3, \"\"..., 50) = 50 <0.1>",
            "7 10.4 link(\"/d/tmp\", \"/d/object\") = 0 <0.1>",
            "7 10.6 openat(AT_FDCWD, \"/d/object\", O_RDONLY) = 4 <0.1>",
            "7 10.8 read(4, \"\"..., 50) = 50 <0.1>",
            "7 11.0 unlink(\"/d/tmp\") = 0 <0.1>",
            "7 11.2 stat(\"/d/object\", {st_mode=S_IFREG|0644, st_size=50, ...}) = 0 <0.1>",
        ]);
        let plain = play(&text, json!({}));
        let played = |call: &str| {
            plain
                .calls
                .iter()
                .filter(|(_, text)| text.starts_with(call))
                .count()
        };
        assert_eq!((played("Rename"), played("Remove"), plain.read), (1, 0, 50));
        assert_eq!(plain.files.get("d/object"), Some(&50));
        assert!(!plain.files.contains_key("d/tmp"));
        let notes = plain.report.notes.join("\n");
        assert!(
            notes.contains("1 `link`") && notes.contains("1 hard links"),
            "{notes}"
        );
        assert!(!notes.contains("failed here"), "{notes}");
    }

    #[test]
    fn what_cannot_be_read_names_its_line() {
        let text = recording(&["7 10.0 sync() = 0 <0.1>", "7 10.2 sync() gives 0"]);
        let all = keys(json!({ "file": "recording" }));
        let error = PlainHost::default()
            .run("strace", &all, Some(&text), 1)
            .unwrap_err();
        assert!(
            error.starts_with("line 2: ") && error.contains("= RESULT"),
            "{error}"
        );
        let plain = play(&text, json!({ "skip_unknown_lines": true }));
        assert!(
            plain
                .report
                .notes
                .iter()
                .any(|note| note == "1 lines were not understood")
        );
        for text in ["", "strace: Process 7 attached\n"] {
            let error = PlainHost::default()
                .run("strace", &all, Some(text), 1)
                .unwrap_err();
            assert!(error.contains("found no call"), "{error}");
        }
        let all = keys(json!({ "file": "recording", "think": -1 }));
        assert!(
            PlainHost::default()
                .run("strace", &all, Some(&text), 1)
                .unwrap_err()
                .contains("think")
        );
    }

    #[test]
    fn only_what_is_asked_for_is_carried_out() {
        let plain = play(SQLITE, json!({ "under": "/srv" }));
        assert!(
            plain.files.keys().all(|path| path.starts_with("srv/")),
            "{:?}",
            plain.files
        );
        assert!(
            plain
                .report
                .notes
                .iter()
                .any(|note| note.contains("paths outside"))
        );
    }

    #[test]
    fn names_begin_at_the_mount_point_of_the_recording() {
        let plain = play(SQLITE, json!({ "mount": "/srv" }));
        assert!(
            plain.files.keys().all(|path| path.starts_with("demo")),
            "{:?}",
            plain.files
        );
        assert_eq!(plain.files.get("demo/t.db"), Some(&8192));
        let notes = plain.report.notes.join("\n");
        assert!(
            notes.contains("paths outside") && !notes.contains("here"),
            "{notes}"
        );
        // The mount point itself is the root.
        let text = recording(&[
            "7 10.0 stat(\"/srv\", {st_mode=S_IFDIR|0755, st_size=4096, ...}) = 0 <0.1>",
            "7 10.2 openat(AT_FDCWD, \"/srvice\", O_RDONLY) = 3 <0.1>",
            "7 10.4 openat(AT_FDCWD, \"/srv/a\", O_RDONLY) = 4 <0.1>",
        ]);
        let plain = play(&text, json!({ "mount": "/srv/" }));
        let calls: Vec<&str> = plain.calls.iter().map(|(_, call)| &call[..4]).collect();
        assert_eq!(calls, ["Stat", "Open"]);
        assert!(plain.files.contains_key("a"), "{:?}", plain.files);
    }

    #[test]
    fn a_mount_point_that_cannot_be_is_refused() {
        for (more, key) in [
            (json!({ "mount": "srv" }), "mount"),
            (json!({ "mount": "/srv", "under": "/home" }), "under"),
            (json!({ "mount": "/srv", "under": "/srvice" }), "under"),
        ] {
            let mut all = keys(json!({ "file": "recording" }));
            all.extend(keys(more));
            let error = PlainHost::default()
                .run("strace", &all, Some(SQLITE), 1)
                .unwrap_err();
            assert!(error.contains(key) && error.contains("found"), "{error}");
        }
        let inside = json!({ "mount": "/srv", "under": "/srv/demo" });
        assert_eq!(play(SQLITE, inside).files.get("demo/t.db"), Some(&8192));
    }

    /// Lines of real recordings, in any order and cut anywhere.
    fn shuffled() -> impl Strategy<Value = String> {
        let line = (
            0..3usize,
            any::<prop::sample::Index>(),
            prop::option::weighted(0.1, any::<prop::sample::Index>()),
        );
        prop::collection::vec(line, 0..200).prop_map(|lines| {
            let mut text = String::new();
            for (recording, index, cut) in lines {
                let all: Vec<&str> = [SQLITE, MAKE, SHELL][recording].lines().collect();
                let line = all[index.index(all.len())];
                let end = cut.map_or(line.len(), |cut| cut.index(line.len() + 1));
                text.push_str(line.get(..end).unwrap_or(line));
                text.push('\n');
            }
            text
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_text_is_a_program_that_ends_or_an_error(text in shuffled()) {
            let all = keys(json!({ "file": "recording", "skip_unknown_lines": true }));
            // A run may end in an error. A program that waits for ever makes `PlainHost` panic.
            let _ = PlainHost::default().run("strace", &all, Some(&text), 1);
            let _ = read_recipe(&keys(json!({ "file": "recording" })), Some(&text));
        }

        #[test]
        fn any_characters_are_read_or_refused(text in "\\PC{0,400}") {
            let _ = read_recipe(&keys(json!({ "file": "recording" })), Some(&text));
            let _ = read_recipe(&keys(json!({ "file": "recording" })), Some(&format!("7 1795363600.1 {text}")));
        }
    }
}
