//! Outputs of tools that are no traces, so that an error can say where fullstroke reads them.

/// Returns the tool whose output begins with `bytes`, and the command that reads the output.
pub(crate) fn other_output(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().take(64).map(str::trim).collect();
    let begins = |word: &str| lines.iter().any(|line| line.starts_with(word));
    let words = |line: &&str, needed: &[&str]| {
        needed.iter().all(|word| {
            line.split_whitespace()
                .any(|found| found.trim_end_matches(':') == *word)
        })
    };
    let has = |needed: &[&str]| lines.iter().any(|line| words(line, needed));
    const LIKE: &str = "`fullstroke like FILE` makes a stack file of it";
    const STRACE: &str = "a workload of kind = \"strace\" plays it (docs/programs.md)";
    if begins("avg-cpu:") || has(&["Device", "tps"]) || has(&["Device", "r/s", "w/s"]) {
        return Some(("iostat", LIKE));
    }
    if has(&["DEV", "tps"]) {
        return Some(("sar -d", LIKE));
    }
    if (begins("pool:") && begins("config:")) || has(&["NAME", "ALLOC", "FREE"]) {
        return Some(("zpool", LIKE));
    }
    if begins("Personalities :") || begins("Raid Level :") {
        return Some(("mdadm", LIKE));
    }
    if begins("smartctl ") {
        return Some((
            "smartctl",
            "`fullstroke fit --smart FILE` describes the drive",
        ));
    }
    let is_call = |line: &&str| {
        let call = line.split_once('(').is_some_and(|(name, _)| {
            name.rsplit([' ', ']']).next().is_some_and(|name| {
                !name.is_empty()
                    && name.bytes().all(|byte| {
                        byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit()
                    })
            })
        });
        call && line.contains(") = ")
    };
    if lines.iter().filter(|line| is_call(line)).count() * 2 > lines.len() {
        return Some(("strace", STRACE));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_of_tools_are_told_apart_from_traces() {
        for (text, tool) in [
            ("avg-cpu:  %user\n", Some("iostat")),
            ("12:00:01 AM DEV tps rkB/s\n", Some("sar -d")),
            ("  pool: tank\n state: ONLINE\nconfig:\n", Some("zpool")),
            ("smartctl 7.3 2022-02-28 r5338\n", Some("smartctl")),
            ("7 10.0 read(3, \"\", 4096) = 4096 <0.5>\n", Some("strace")),
            ("0.100004 app 1950 sda W 13092560 4096 0.74\n", None),
            ("128166372003061629,hm,1,Read,1.5e9,4096,113736\n", None),
        ] {
            assert_eq!(
                other_output(text.as_bytes()).map(|(tool, _)| tool),
                tool,
                "{text}"
            );
        }
    }
}
