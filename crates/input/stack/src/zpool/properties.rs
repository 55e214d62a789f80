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

/// Returns the keys of a scrub that is in progress, from the lines of `zpool status`:
/// `scan: scrub in progress since ...`, and `..., 51.37% done, ...` below.
pub(super) fn scrub(pool: &str, lines: &[&str]) -> Vec<(String, String)> {
    let ours = lines
        .iter()
        .skip_while(|line| line.trim().strip_prefix("pool:").map(str::trim) != Some(pool));
    let mut scan = ours
        .skip_while(|line| !line.trim_start().starts_with("scan:"))
        .take_while(|line| !line.trim_start().starts_with("config:"));
    let begins = scan
        .next()
        .is_some_and(|line| line.contains("scrub in progress"));
    if !begins {
        return Vec::new();
    }
    let share = scan.find_map(|line| {
        let (before, _) = line.split_once("% done")?;
        let number = before.rsplit(' ').next()?;
        number.parse::<f64>().ok().map(|percent| percent / 100.0)
    });
    let mut keys = vec![("scrub".to_owned(), "true".to_owned())];
    if let Some(share) = share.filter(|share| *share > 0.0 && *share < 1.0) {
        keys.push(("scrub_from".to_owned(), format!("{share:.4}")));
    }
    keys
}
