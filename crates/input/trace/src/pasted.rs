//! Outputs of tools that are no traces, so that an error can say where fullstroke reads them.

/// Returns the form of a text that may hold requests and has to be converted first, and the command
/// that converts the text.
pub(crate) fn other_form(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Some((
            "text in UTF-16",
            "make UTF-8 of it with `iconv -f UTF-16 -t UTF-8 FILE`",
        ));
    }
    let text = String::from_utf8_lossy(bytes);
    let first = text.trim_start();
    let object = first.strip_prefix('[').unwrap_or(first).trim_start();
    let inside = object.strip_prefix('{')?.trim_start();
    inside.starts_with(['"', '}']).then_some((
        "JSON",
        "make a table of its fields, as in `jq -r '[.time,.op,.offset,.size]|@csv' FILE`, and name the columns with --columns time=1:s,op=2,offset=3:bytes,size=4:bytes",
    ))
}

const LIKE: &str = "`fullstroke like FILE` makes a stack file of it";
const FIT: &str = "`fullstroke fit --smart FILE` describes the drive, and `fullstroke like FILE` names the nearest drive of the library";

/// Returns the tool that wrote a text in JSON.
fn json_of_tool(text: &str) -> Option<(&'static str, &'static str)> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let tools = [
        ("\"sysstat\"", "iostat or sadf in JSON", LIKE),
        ("\"smartctl\"", "smartctl in JSON", FIT),
    ];
    let found = tools.into_iter().find(|(key, ..)| text.contains(key));
    found.map(|(_, tool, remedy)| (tool, remedy))
}

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
    const COUNTERS: &str = "it counts since the start of the system; `fullstroke like FILE` reads the output of `iostat -x 10`";
    const NO_REQUESTS: &str = "record the requests with biosnoop, blktrace, or perf record -e block:block_rq_issue -e block:block_rq_complete";
    if let Some(found) = json_of_tool(&text) {
        return Some(found);
    }
    if begins("Total DISK READ") || has(&["TID", "PRIO", "USER"]) {
        return Some(("iotop", NO_REQUESTS));
    }
    if has(&["PID", "kB_rd/s", "kB_wr/s"]) {
        return Some(("pidstat -d", NO_REQUESTS));
    }
    let histogram = |line: &&str| {
        let bar = line.ends_with('|') && line.matches('|').count() == 2;
        bar && (line.contains("->") || line.starts_with(['[', '(']))
    };
    if lines.iter().any(histogram) {
        return Some(("a tool that draws a histogram", NO_REQUESTS));
    }
    if has(&["PID", "COMM", "I/O", "Kbytes"]) {
        return Some(("biotop", NO_REQUESTS));
    }
    const STRACE: &str = "a workload of kind = \"strace\" plays it (docs/programs.md)";
    let extended = begins("extended device statistics") || has(&["device", "r/s", "w/s"]);
    if extended || begins("avg-cpu:") || has(&["Device", "tps"]) || has(&["Device", "r/s", "w/s"]) {
        return Some(("iostat", LIKE));
    }
    if has(&["DEV", "tps"]) || begins("# hostname;interval;timestamp;DEV;") {
        return Some(("sar -d", LIKE));
    }
    if (begins("pool:") && begins("config:"))
        || has(&["NAME", "ALLOC", "FREE"])
        || has(&["pool", "alloc", "free"])
    {
        return Some(("zpool", LIKE));
    }
    if has(&["NAME", "PROPERTY", "VALUE", "SOURCE"]) {
        return Some((
            "zfs get or zpool get",
            "give it to `fullstroke like` behind the output of zpool status",
        ));
    }
    if has(&["swpd", "free", "buff"]) || begins("disk- ---") {
        return Some(("vmstat", COUNTERS));
    }
    if begins("% time     seconds") {
        return Some(("strace -c", "record the calls with strace -f -ttt -T"));
    }
    if begins("Personalities :") || begins("Raid Level :") || begins("ARRAY /dev/") {
        return Some(("mdadm", LIKE));
    }
    if begins("smartctl ") {
        return Some(("smartctl", FIT));
    }
    if is_strace(&lines) {
        return Some(("strace", STRACE));
    }
    None
}

/// Returns true if most of the lines are calls of a process, as strace writes them.
fn is_strace(lines: &[&str]) -> bool {
    let is_call = |line: &&str| {
        let call = line.split_once('(').is_some_and(|(name, _)| {
            name.rsplit([' ', ']']).next().is_some_and(|name| {
                !name.is_empty()
                    && name.bytes().all(|byte| {
                        byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit()
                    })
            })
        });
        let of_part = line.contains("<unfinished ...>")
            || line.contains(" resumed>")
            || line.contains("+++ exited with ");
        (call && line.contains(") = ")) || of_part
    };
    lines.iter().filter(|line| is_call(line)).count() * 2 > lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_in_other_forms_are_named() {
        for (bytes, form) in [
            (&b"\xff\xfet\0i\0m\0e\0"[..], Some("text in UTF-16")),
            (b"{\"time\":0.1}\n", Some("JSON")),
            (b" [ {\"time\":0.1} ]\n", Some("JSON")),
            (b"{1, 2}\n", None),
            (b"time,op\n", None),
        ] {
            assert_eq!(other_form(bytes).map(|(form, _)| form), form);
        }
    }

    #[test]
    fn outputs_of_tools_are_told_apart_from_traces() {
        for (text, tool) in [
            ("avg-cpu:  %user\n", Some("iostat")),
            ("12:00:01 AM DEV tps rkB/s\n", Some("sar -d")),
            ("  pool: tank\n state: ONLINE\nconfig:\n", Some("zpool")),
            (
                "{\"sysstat\": {\"hosts\": []}}\n",
                Some("iostat or sadf in JSON"),
            ),
            (
                "[256, 512)    2 |@@   |\n",
                Some("a tool that draws a histogram"),
            ),
            ("# hostname;interval;timestamp;DEV;tps\n", Some("sar -d")),
            ("pool alloc free read write read write\n", Some("zpool")),
            ("ARRAY /dev/md/0 level=raid6 num-devices=6\n", Some("mdadm")),
            (" r b swpd free buff cache\n", Some("vmstat")),
            (
                "% time     seconds  usecs/call     calls\n",
                Some("strace -c"),
            ),
            (
                "100 12:00:00.1 read(3, <unfinished ...>\n100 12:00:00.2 <... read resumed>\"x\", 1) = 1\n",
                Some("strace"),
            ),
            ("smartctl 7.3 2022-02-28 r5338\n", Some("smartctl")),
            (
                "{\"json_format_version\": [1, 0], \"smartctl\": {}}\n",
                Some("smartctl in JSON"),
            ),
            (
                "Total DISK READ :       0.00 B/s | Total DISK WRITE :       3.92 K/s\n",
                Some("iotop"),
            ),
            (
                "12:00:01 AM UID PID kB_rd/s kB_wr/s kB_ccwr/s iodelay Command\n",
                Some("pidstat -d"),
            ),
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
