//! Keys of a stack from the properties of a pool and from the state of its scrub.

use super::size_of;
use fullstroke_units::Bytes;

/// Returns the keys that `zpool get` and `zfs get` tell: lines of name, property, value and source.
/// The pool's own properties count, and those of the dataset with the pool's name.
pub(super) fn properties(pool: &str, lines: &[&str]) -> Vec<(String, String)> {
    let mut keys: Vec<(String, String)> = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[name, property, value, ..] = &words[..] else {
            continue;
        };
        let is_of_pool = name == pool || name.starts_with(&format!("{pool}/"));
        let found = match property {
            _ if !is_of_pool => None,
            // With 0, ZFS asks the drives (zpoolprops.7).
            "ashift" if value != "0" => {
                value.parse::<u32>().ok().map(|n| ("ashift", n.to_string()))
            }
            "recordsize" | "volblocksize" => {
                // `zfs get -p` prints bytes without a unit.
                let bytes = size_of(value).or_else(|| value.parse().ok());
                bytes.map(|bytes| ("recordsize", format!("\"{}\"", Bytes(bytes))))
            }
            "compressratio" => {
                let ratio = value.trim_end_matches('x').parse::<f64>().ok();
                ratio.map(|ratio| ("compression", format!("{:?}", ratio.max(1.0))))
            }
            "sync" if matches!(value, "standard" | "always" | "disabled") => {
                Some(("sync", format!("{value:?}")))
            }
            "primarycache" if matches!(value, "all" | "metadata" | "none") => {
                Some(("primarycache", format!("{value:?}")))
            }
            "logbias" if matches!(value, "latency" | "throughput") => {
                Some(("logbias", format!("{value:?}")))
            }
            _ => None,
        };
        // `zfs get` lists the pool before its datasets, so the value of the pool counts.
        if let Some((key, value)) = found
            && keys.iter().all(|(known, _)| known != key)
        {
            keys.push((key.to_owned(), value));
        }
    }
    keys
}

/// Properties of the pool that change its I/O and have no key, with the value that changes nothing,
/// and the words behind the value in the note.
const LEFT_OUT: [(&str, &[&str], &str); 6] = [
    ("copies", &["1"], "each block has one copy here"),
    (
        "dedup",
        &["off"],
        "blocks are written without a look at the table of blocks",
    ),
    (
        "encryption",
        &["off"],
        "the processor takes no time here; volume.processor gives the time",
    ),
    (
        "secondarycache",
        &["all"],
        "cache devices take data and metadata here",
    ),
    (
        "special_small_blocks",
        &["0", "0B"],
        "only [host.files] with kind = \"zfs\" has small blocks; set volume.special_small_blocks there",
    ),
    (
        "autotrim",
        &["off"],
        "only flash devices and shingled drives take TRIM; volume.autotrim = true",
    ),
];

/// Returns a note for each property of the pool's own dataset that has no key in a stack file.
pub(super) fn left_out(pool: &str, lines: &[&str]) -> Vec<String> {
    let mut notes = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[name, property, value, ..] = &words[..] else {
            continue;
        };
        let found = LEFT_OUT.iter().find(|(key, ..)| *key == property);
        if let Some((_, usual, words)) = found
            && name == pool
            && !usual.contains(&value)
        {
            notes.push(format!("left out, {property} = {value}: {words}"));
        }
    }
    notes.dedup();
    notes
}

/// Returns the lines of `zpool status` from the line `pool:` of a pool to the line `config:`, each with
/// its index.
pub(super) fn of_pool<'a>(
    pool: &str,
    lines: &'a [&'a str],
) -> impl Iterator<Item = (usize, &'a str)> {
    lines
        .iter()
        .copied()
        .enumerate()
        .skip_while(move |(_, line)| line.trim().strip_prefix("pool:").map(str::trim) != Some(pool))
        .take_while(|(_, line)| !line.trim_start().starts_with("config:"))
}

/// Returns the lines from `scan:` on.
fn scan<'a>(pool: &str, lines: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    of_pool(pool, lines)
        .map(|(_, line)| line)
        .skip_while(|line| !line.trim_start().starts_with("scan:"))
}

/// Returns the share in a line such as `0B repaired, 51.37% done, 05:02:33 to go`, in percent.
fn percent_done(line: &str) -> Option<f64> {
    let (before, _) = line.split_once("% done")?;
    before.rsplit(' ').next()?.parse().ok()
}

/// Returns the finished share of a resilver in progress, such as `22.88 %`.
pub(super) fn resilvered(pool: &str, lines: &[&str]) -> Option<String> {
    let mut scan = scan(pool, lines);
    let first = scan.next()?;
    let runs = first.contains("resilver") && first.contains("in progress");
    let percent = scan.find_map(percent_done).filter(|_| runs);
    percent.map(|percent| format!("{percent} %"))
}

/// Returns the keys of a scrub that is in progress, from the lines of `zpool status`:
/// `scan: scrub in progress since ...`, and `..., 51.37% done, ...` below.
pub(super) fn scrub(pool: &str, lines: &[&str]) -> Vec<(String, String)> {
    let mut scan = scan(pool, lines);
    let begins = scan
        .next()
        .is_some_and(|line| line.contains("scrub in progress"));
    if !begins {
        return Vec::new();
    }
    let share = scan.find_map(percent_done).map(|percent| percent / 100.0);
    let mut keys = vec![("scrub".to_owned(), "true".to_owned())];
    if let Some(share) = share.filter(|share| *share > 0.0 && *share < 1.0) {
        keys.push(("scrub_from".to_owned(), format!("{share:.4}")));
    }
    keys
}
