//! Notes on a recording, in addition to its figures.

use fullstroke_units::order_by;
use std::collections::BTreeMap;

/// Maximum number of names in a list.
const NAMES_MAX: usize = 24;

/// Counts for the notes, complete when the recording has been read.
#[derive(Debug, Default)]
pub(super) struct NoteCounts {
    /// Calls without a counterpart, by name.
    pub skipped: BTreeMap<String, u64>,
    /// Calls on objects other than files, or on files opened before the recording.
    pub elsewhere: u64,
    pub outside: u64,
    pub mapped: (u64, u64),
    pub opened_again: u64,
    pub nameless: u64,
    pub allocated: u64,
    /// Second names of files.
    pub linked: u64,
    pub unread_lines: u64,
    /// Calls without a duration.
    pub unmeasured: u64,
    /// True if times count from the line before (`-r`).
    pub relative_times: bool,
    /// True if times are whole seconds (`-t`).
    pub whole_seconds: bool,
    /// True if there are no times.
    pub untimed: bool,
}

/// Returns a sentence for each kind of missing or changed call.
pub(super) fn notes(counts: &NoteCounts, appeared: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(skipped) = skipped(counts) {
        notes.push(skipped);
    }
    let mut say = |count: u64, sentence: &str| {
        if count > 0 {
            notes.push(format!("{count} {sentence}"));
        }
    };
    say(
        counts.outside,
        "calls on paths outside, or under /proc, /sys and /dev, take their recorded time",
    );
    say(
        counts.elsewhere,
        "calls on pipes, sockets, devices, or files opened before the recording take their recorded time",
    );
    let (mappings, bytes) = counts.mapped;
    say(
        mappings,
        &format!(
            "mappings of {bytes} bytes of files: a recording does not contain the reads of page faults"
        ),
    );
    say(
        counts.opened_again,
        "opens more than recorded: descriptors that were inherited or belong to another thread",
    );
    say(
        counts.nameless,
        "calls on inherited descriptors of files that have no name any more are left out",
    );
    say(
        counts.linked,
        "hard links are not supported: each file keeps the first of its remaining names",
    );
    say(
        counts.allocated,
        "fallocate set the length, and allocated nothing",
    );
    say(
        appeared,
        "files were missing at first and existed later without a recorded creation: their first open creates them",
    );
    say(counts.unread_lines, "lines were not understood");
    say(
        counts.unmeasured,
        "calls have no duration (no -T): a call on files is taken to last until the next line of its process, other calls take no time",
    );
    if counts.relative_times {
        notes.push("times count from the line before (-r); they are added up".to_owned());
    }
    if counts.untimed {
        notes.push(
            "the lines have no times: calls follow each other without computing in between; record with strace -f -ttt -T".to_owned(),
        );
    }
    if counts.whole_seconds {
        notes.push(
            "times are whole seconds (-t): calls of one second follow each other without computing in between".to_owned(),
        );
    }
    notes
}

fn skipped(counts: &NoteCounts) -> Option<String> {
    let mut names: Vec<(u64, &str)> = counts
        .skipped
        .iter()
        .map(|(name, &count)| (count, name.as_str()))
        .collect();
    // Equal counts are in the order of names, so that the notes are the same in each run.
    order_by(&mut names, |a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let rest: u64 = names.iter().skip(NAMES_MAX).map(|(count, _)| count).sum();
    let mut list: Vec<String> = names
        .iter()
        .take(NAMES_MAX)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    if rest > 0 {
        list.push(format!("{rest} others"));
    }
    (!list.is_empty()).then(|| {
        format!(
            "calls without a counterpart take their recorded time: {}",
            list.join(", ")
        )
    })
}
