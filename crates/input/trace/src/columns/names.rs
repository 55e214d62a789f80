//! Meaning of a column by its name.

/// Content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Time,
    EndTime,
    Operation,
    /// 1 or true for a write.
    IsWrite,
    /// 1 or true for a read.
    IsRead,
    Start,
    Size,
    /// Size of a block, in which other columns count.
    BlockSize,
    Latency,
    Queue,
    Device,
    Host,
    Process,
    /// Text that may have spaces inside, such as the name of a program.
    Text,
    Other,
}

/// Names of a role in `--columns`, with the names of columns that mean the role. The names have no
/// separators and no unit.
pub(crate) struct RoleNames {
    pub(crate) role: Role,
    /// Name in `--columns`; empty for roles that no option names.
    pub(crate) option: &'static str,
    names: &'static [&'static str],
}

/// All roles. A name belongs to one role only.
pub(crate) const ROLES: &[RoleNames] = &[
    RoleNames {
        role: Role::Time,
        option: "time",
        names: &[
            "time",
            "timestamp",
            "timestamps",
            "ts",
            "arrival",
            "arrivaltime",
            "arrive",
            "arrivets",
            "start",
            "starttime",
            "startts",
            "begin",
            "begintime",
            "issue",
            "issuetime",
            "issuets",
            "submit",
            "submittime",
            "submission",
            "reqtime",
            "requesttime",
            "elapsed",
            "elapsedtime",
            "relativetime",
            "reltime",
            "clock",
            "epoch",
            "datetime",
            "date",
            "when",
            "iotime",
            "inittime",
            "timeofday",
            "optime",
            "eventtime",
            "tstamp",
        ],
    },
    RoleNames {
        role: Role::EndTime,
        option: "end",
        names: &[
            "end",
            "endtime",
            "endts",
            "finish",
            "finishtime",
            "finished",
            "complete",
            "completed",
            "completion",
            "completiontime",
            "completetime",
            "completionts",
            "donetime",
        ],
    },
    RoleNames {
        role: Role::Operation,
        option: "op",
        names: &[
            "op",
            "ops",
            "operation",
            "type",
            "iotype",
            "optype",
            "opcode",
            "operationtype",
            "cmd",
            "command",
            "reqtype",
            "requesttype",
            "kind",
            "action",
            "rw",
            "rwbs",
            "rwflag",
            "rwtype",
            "direction",
            "dir",
            "readwrite",
            "request",
            "operationname",
            "opname",
            "readorwrite",
            "access",
            "accesstype",
            "t",
            "ioop",
            "iodir",
            "ddir",
            "flags",
            "event",
        ],
    },
    RoleNames {
        role: Role::IsWrite,
        option: "",
        names: &["iswrite", "write"],
    },
    RoleNames {
        role: Role::IsRead,
        option: "",
        names: &["isread", "read"],
    },
    RoleNames {
        role: Role::Start,
        option: "offset",
        names: &[
            "offset",
            "off",
            "byteoffset",
            "diskoffset",
            "addr",
            "address",
            "pos",
            "position",
            "lbn",
            "lba",
            "sector",
            "startsector",
            "startlba",
            "startlbn",
            "firstsector",
            "sectornumber",
            "sectornum",
            "startblock",
            "block",
            "blk",
            "blockno",
            "blkno",
            "blocknumber",
            "blocknum",
            "blockaddress",
            "blockaddr",
            "sectoraddress",
            "logicalblock",
            "logicalblockaddress",
            "startaddress",
            "startaddr",
            "startoffset",
            "startingoffset",
            "minoffset",
            "objid",
            "fileoffset",
            "iooffset",
            "page",
            "pageno",
            "pagenumber",
            "startpage",
            "startpos",
        ],
    },
    RoleNames {
        role: Role::Size,
        option: "size",
        names: &[
            "size",
            "len",
            "length",
            "iosize",
            "reqsize",
            "requestsize",
            "transfersize",
            "transferlength",
            "transferlen",
            "datasize",
            "datalength",
            "datalen",
            "amount",
            "bytes",
            "nbytes",
            "numbytes",
            "bytecount",
            "sectors",
            "nsectors",
            "nrsectors",
            "numsectors",
            "sectorcount",
            "sectorscount",
            "nrsector",
            "nsector",
            "count",
            "blocks",
            "nblocks",
            "nblks",
            "nblk",
            "blks",
            "nrblocks",
            "numblocks",
            "blockcount",
            "pages",
            "npages",
            "numpages",
            "nrbytes",
            "numberofbytes",
            "numberofsectors",
            "lengthbytes",
            "requestiosize",
            "diskiosize",
            "objsize",
            "iolength",
            "iobytes",
            "requestlength",
        ],
    },
    RoleNames {
        role: Role::BlockSize,
        option: "block_size",
        names: &[
            "blocksize",
            "bs",
            "blksize",
            "blksz",
            "blockbytes",
            "logicalblocksize",
            "lbasize",
            "sectorsize",
        ],
    },
    RoleNames {
        role: Role::Latency,
        option: "latency",
        names: &[
            "latency",
            "lat",
            "response",
            "responsetime",
            "resptime",
            "rt",
            "duration",
            "servicetime",
            "svctm",
            "iolatency",
            "responselatency",
            "completionlatency",
            "clat",
            "d2c",
            "q2c",
            "disktime",
            "timetaken",
            "took",
            "totallatency",
        ],
    },
    RoleNames {
        role: Role::Queue,
        option: "queue",
        names: &[
            "que",
            "queue",
            "queuetime",
            "queuelatency",
            "qlat",
            "waittime",
            "queuewait",
        ],
    },
    RoleNames {
        role: Role::Device,
        option: "device",
        names: &[
            "device",
            "dev",
            "deviceid",
            "devid",
            "devname",
            "devicename",
            "disk",
            "disknumber",
            "disknum",
            "diskid",
            "diskname",
            "diskno",
            "devno",
            "devicenumber",
            "drive",
            "volume",
            "volumeid",
            "vol",
            "lun",
            "lunid",
            "vdisk",
            "vmdisk",
            "majmin",
            "file",
            "filename",
            "nsid",
            "namespace",
        ],
    },
    RoleNames {
        role: Role::Host,
        option: "",
        names: &[
            "host", "hostname", "server", "machine", "node", "vm", "vmid", "vmname", "client",
        ],
    },
    RoleNames {
        role: Role::Process,
        option: "process",
        names: &[
            "pid",
            "process",
            "processid",
            "tid",
            "tgid",
            "procid",
            "threadid",
        ],
    },
    RoleNames {
        role: Role::Text,
        option: "",
        names: &[
            "comm",
            "cmdline",
            "processname",
            "procname",
            "program",
            "proc",
            "task",
        ],
    },
];

/// Names of addresses and sizes that count 512-byte sectors.
const OF_SECTORS: [&str; 28] = [
    "nblk",
    "nrblocks",
    "numberofsectors",
    "lbn",
    "lba",
    "sector",
    "startsector",
    "startlba",
    "startlbn",
    "firstsector",
    "sectornumber",
    "sectornum",
    "sectoraddress",
    "logicalblock",
    "logicalblockaddress",
    "sectors",
    "nsectors",
    "nrsectors",
    "numsectors",
    "sectorcount",
    "sectorscount",
    "nrsector",
    "nsector",
    "nblks",
    "blkno",
    "blockno",
    "nblocks",
    "numblocks",
];
/// Names of sizes that count bytes.
const OF_BYTES: [&str; 10] = [
    "nrbytes",
    "numberofbytes",
    "lengthbytes",
    "bytes",
    "nbytes",
    "numbytes",
    "bytecount",
    "byteoffset",
    "iobytes",
    "objsize",
];

/// Names of addresses and sizes that count pages of 4096 bytes.
const OF_PAGES: [&str; 7] = [
    "page",
    "pageno",
    "pagenumber",
    "startpage",
    "pages",
    "npages",
    "numpages",
];

/// Unit of times in ns. The names are lower case.
const TIME_UNITS: [(&str, u64); 26] = [
    ("s", 1_000_000_000),
    ("sec", 1_000_000_000),
    ("secs", 1_000_000_000),
    ("second", 1_000_000_000),
    ("seconds", 1_000_000_000),
    ("ms", 1_000_000),
    ("msec", 1_000_000),
    ("msecs", 1_000_000),
    ("millis", 1_000_000),
    ("millisecond", 1_000_000),
    ("milliseconds", 1_000_000),
    ("us", 1000),
    ("usec", 1000),
    ("usecs", 1000),
    ("micros", 1000),
    ("microsecond", 1000),
    ("microseconds", 1000),
    // The micro sign, and the Greek letter that many programs write in its place.
    ("\u{b5}s", 1000),
    ("\u{3bc}s", 1000),
    ("ns", 1),
    ("nsec", 1),
    ("nsecs", 1),
    ("nanos", 1),
    ("nanosecond", 1),
    ("nanoseconds", 1),
    ("100ns", 100),
];

/// Unit of addresses and sizes in bytes. The names are lower case.
const BYTE_UNITS: [(&str, u64); 17] = [
    ("g", 1 << 30),
    ("b", 1),
    ("byte", 1),
    ("bytes", 1),
    ("k", 1024),
    // Traces mean 1024 by a k, with and without an `i` behind it.
    ("kb", 1024),
    ("kib", 1024),
    ("m", 1 << 20),
    ("mb", 1 << 20),
    ("mib", 1 << 20),
    ("gb", 1 << 30),
    ("gib", 1 << 30),
    ("sector", 512),
    ("sectors", 512),
    ("blocks", 512),
    ("4k", 4096),
    ("page", 4096),
];

/// Returns the number of ns, or of bytes, in the unit called `name`.
pub(crate) fn unit_of(role: Role, name: &str) -> Option<u64> {
    let lower = name.to_lowercase();
    let units: &[(&str, u64)] = match role {
        Role::Time | Role::EndTime | Role::Latency | Role::Queue => &TIME_UNITS,
        Role::Start | Role::Size | Role::BlockSize => &BYTE_UNITS,
        _ => return None,
    };
    if matches!(role, Role::Start | Role::Size | Role::BlockSize)
        && let Ok(bytes) = lower.parse::<u64>()
    {
        // The unit may be a number of bytes, such as the size of a block.
        return (1..=1 << 30).contains(&bytes).then_some(bytes);
    }
    units
        .iter()
        .find(|(unit, _)| *unit == lower)
        .map(|&(_, value)| value)
}

/// Returns the role and the unit of the column called `name`. The unit is `None` if the name has no
/// unit.
pub(crate) fn meaning(name: &str) -> (Role, Option<u64>) {
    // `LATms`, `STARTs` and `ENDs` of iosnoop (perf-tools).
    if let Some(at) = name.find(|letter: char| letter.is_ascii_lowercase())
        && at >= 2
        && name[..at].bytes().all(|letter| letter.is_ascii_uppercase())
        && let Some(role) = role_of(&name[..at].to_ascii_lowercase())
        && let Some(value) = unit_of(role, &name[at..])
    {
        return (role, Some(value));
    }
    let words = words_of(name);
    let found = meaning_of(&words);
    // `Request Start Time`, `IO Latency (us)`: the first word says of what.
    match words.first() {
        Some(first) if found.0 == Role::Other && OF_REQUESTS.contains(&&first[..]) => {
            meaning_of(&words[1..])
        }
        _ => found,
    }
}

/// Words that say of a column only that the column is about requests.
const OF_REQUESTS: [&str; 3] = ["request", "req", "io"];

fn meaning_of(words: &[String]) -> (Role, Option<u64>) {
    // The whole name first: `sector_count` is a size, and no `sector` with a unit `count`.
    let joined = words.concat();
    if let Some(role) = role_of(&joined) {
        return (role, own_unit(role, &joined));
    }
    // The last word may be a unit: `latency_us`, `LAT(ms)`; `KiB` counts as two words.
    for of_unit in 1..=2 {
        let Some(rest) = words.len().checked_sub(of_unit) else {
            break;
        };
        let unit = words[rest..].concat();
        // `T` alone is biosnoop's operation; `t_us` is a time.
        if words[..rest].concat() == "t"
            && let Some(value) = unit_of(Role::Time, &unit)
        {
            return (Role::Time, Some(value));
        }
        if let Some(role) = role_of(&words[..rest].concat())
            && let Some(value) = unit_of(role, &unit)
        {
            return (role, Some(value));
        }
    }
    (Role::Other, None)
}

/// Returns the unit that a name says without a word of its own.
fn own_unit(role: Role, joined: &str) -> Option<u64> {
    if !matches!(role, Role::Start | Role::Size) {
        return None;
    }
    if OF_SECTORS.contains(&joined) {
        return Some(512);
    }
    if OF_PAGES.contains(&joined) {
        return Some(4096);
    }
    OF_BYTES.contains(&joined).then_some(1)
}

fn role_of(joined: &str) -> Option<Role> {
    ROLES
        .iter()
        .find(|roles| roles.names.contains(&joined))
        .map(|roles| roles.role)
}

/// Returns true if a joined name is the name of a role, without a unit.
pub(crate) fn is_role(joined: &str) -> bool {
    role_of(joined).is_some()
}

/// Returns a name in lower case without separators.
pub(crate) fn joined(name: &str) -> String {
    words_of(name).concat()
}

/// Returns the words of a name in lower case: `ResponseTime (ms)` has `response`, `time`, `ms`.
fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let characters: Vec<char> = name.chars().collect();
    for (index, &character) in characters.iter().enumerate() {
        if !character.is_alphanumeric() {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            continue;
        }
        let before = index.checked_sub(1).map(|before| characters[before]);
        let after = characters.get(index + 1);
        // A new word begins at `tM` of `ResponseTimeMs`, and at `T` of `IOType`.
        let begins = character.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || (before.is_uppercase() && after.is_some_and(|after| after.is_lowercase()))
            });
        if begins {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        }
        word.extend(character.to_lowercase());
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_names_have_a_meaning_and_a_unit() {
        for (name, role, unit) in [
            ("Timestamp", Role::Time, None),
            ("time_us", Role::Time, Some(1000)),
            ("TIME(s)", Role::Time, Some(1_000_000_000)),
            ("arrivalTimeMs", Role::Time, Some(1_000_000)),
            ("IOType", Role::Operation, None),
            ("T", Role::Operation, None),
            ("t_us", Role::Time, Some(1000)),
            ("lbn", Role::Start, Some(512)),
            ("Offset [bytes]", Role::Start, Some(1)),
            ("offset", Role::Start, None),
            ("SizeKiB", Role::Size, Some(1024)),
            ("len_sectors", Role::Size, Some(512)),
            ("BYTES", Role::Size, Some(1)),
            ("LAT(ms)", Role::Latency, Some(1_000_000)),
            ("Response Time", Role::Latency, None),
            ("DiskNumber", Role::Device, None),
            ("hostname", Role::Host, None),
            ("PID", Role::Process, None),
            ("is_write", Role::IsWrite, None),
            ("LATms", Role::Latency, Some(1_000_000)),
            ("STARTs", Role::Time, Some(1_000_000_000)),
            ("ENDs", Role::EndTime, Some(1_000_000_000)),
            ("nr_bytes", Role::Size, Some(1)),
            ("nblk", Role::Size, Some(512)),
            ("Min Offset", Role::Start, None),
            ("npages", Role::Size, Some(4096)),
            ("IO Time (\u{3bc}s)", Role::Time, Some(1000)),
            ("request_io_size_bytes", Role::Size, Some(1)),
            ("version", Role::Other, None),
            ("", Role::Other, None),
        ] {
            assert_eq!(meaning(name), (role, unit), "{name}");
        }
    }

    #[test]
    fn a_name_belongs_to_one_role() {
        let mut seen = std::collections::BTreeSet::new();
        for name in ROLES.iter().flat_map(|roles| roles.names) {
            assert!(seen.insert(name), "{name}");
        }
    }
}
