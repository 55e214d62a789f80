//! Times of the last access to files: when a read changes the inode.

use fullstroke_contract::Object;
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Rule for the change of a file's access time by a read (mount options of the same names).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "AccessTime")]
pub enum AccessTimeRule {
    /// A read changes no access time.
    #[default]
    Noatime,
    /// A read changes the access time after a change of the file, and once in 24 hours.
    Relatime,
    /// Each read changes the access time.
    Strictatime,
}

/// Age at which a read changes the access time even of an unchanged file (`relatime_need_update` of
/// `fs/inode.c`).
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Ticks a second of the kernel. The access time has no finer steps (`current_time`).
const HZ: u64 = 250;

/// Access times that are later than the last changes of their files. The access time of any other
/// file is older than its last change, as after the extraction of an archive.
#[derive(Debug, Default)]
pub(crate) struct AccessTimes {
    rule: AccessTimeRule,
    later: BTreeMap<Object, Time>,
}

impl AccessTimes {
    /// Returns the access times of a file system that nobody has read yet.
    pub fn new(rule: AccessTimeRule) -> AccessTimes {
        AccessTimes {
            rule,
            later: BTreeMap::new(),
        }
    }

    /// Notes a change of the content, the names or the inode.
    pub fn changed(&mut self, object: Object) {
        self.later.remove(&object);
    }

    /// Notes a read. Returns true if the read changes the access time.
    pub fn read(&mut self, now: Time, object: Object) -> bool {
        let last = self.later.get(&object).copied();
        let tick = |time: Time| time.as_nanos() / (1_000_000_000 / HZ);
        let due = match self.rule {
            AccessTimeRule::Noatime => false,
            // No entry: the file changed after its last read, and `relatime_need_update` compares
            // the two times.
            AccessTimeRule::Relatime => last.is_none_or(|last| now.since(last) >= DAY),
            AccessTimeRule::Strictatime => last.is_none_or(|last| tick(last) != tick(now)),
        };
        if due {
            self.later.insert(object, now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_changes_the_access_time_by_the_rule() {
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let (file, day) = (Object(3), 24 * 3_600_000);
        let reads = |rule| {
            let mut times = AccessTimes::new(rule);
            let mut found: Vec<bool> = [0, 1, 10, day, day + 1]
                .map(|ms| times.read(at(ms), file))
                .to_vec();
            times.changed(file);
            found.push(times.read(at(day + 2), file));
            found
        };
        assert_eq!(reads(AccessTimeRule::Noatime), [false; 6]);
        let relatime = [true, false, false, true, false, true];
        assert_eq!(reads(AccessTimeRule::Relatime), relatime);
        let strict = [true, false, true, true, false, true];
        assert_eq!(reads(AccessTimeRule::Strictatime), strict);
    }
}
