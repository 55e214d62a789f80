//! Which of what several processes do came after which: by the names and files that
//! they share, as Weiss, Harter, Arpaci-Dusseau and Arpaci-Dusseau order replays
//! ("ROOT: Replaying Multithreaded Traces with Resource-Oriented Ordering", SOSP 2013).

use super::files::{FileId, Files};
use super::recording::{PathId, Place};
use std::collections::BTreeMap;

/// What a call does to what others may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    /// It goes by a name.
    Uses(PathId),
    /// It makes, removes or replaces what the name stands for.
    Changes(PathId),
    /// It reads what was written.
    Reads(FileId),
    /// It writes, or changes the length.
    Writes(FileId),
}

/// Where a call stands in its lane, and the line at which it had ended.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    place: Place,
    line: u32,
}

#[derive(Debug, Default)]
struct Name {
    changed: Option<Stamp>,
    /// Since then, by lane.
    used: BTreeMap<u32, Stamp>,
}

/// The last calls on each name and file.
#[derive(Debug, Default)]
pub(super) struct Order {
    names: BTreeMap<PathId, Name>,
    written: BTreeMap<FileId, Stamp>,
}

impl Order {
    /// What a call of `lane` comes after that began at `line`: calls of other lanes that
    /// had ended by then.
    pub fn before(&self, files: &Files, touches: &[Touch], lane: u32, line: u32) -> Vec<Place> {
        let mut found: Vec<Stamp> = Vec::new();
        for touch in touches {
            match *touch {
                Touch::Uses(path) => self.changes(files, path, &mut found),
                Touch::Changes(path) => {
                    self.changes(files, path, &mut found);
                    found.extend(
                        self.names
                            .get(&path)
                            .into_iter()
                            .flat_map(|name| name.used.values()),
                    );
                }
                Touch::Reads(file) => found.extend(self.written.get(&file)),
                Touch::Writes(_) => {}
            }
        }
        let others = found
            .into_iter()
            .filter(|stamp| stamp.place.lane != lane && stamp.line < line);
        others.map(|stamp| stamp.place).collect()
    }

    /// Changes of the name and of its directory's.
    fn changes(&self, files: &Files, path: PathId, found: &mut Vec<Stamp>) {
        for path in [path, files.parent(path)] {
            found.extend(self.names.get(&path).and_then(|name| name.changed));
        }
    }

    /// A call stands at `place` and had ended at `line`.
    pub fn note(&mut self, files: &Files, touches: &[Touch], place: Place, line: u32) {
        let stamp = Stamp { place, line };
        for touch in touches {
            match *touch {
                Touch::Uses(path) => self.used(path, stamp),
                Touch::Changes(path) => {
                    self.used(files.parent(path), stamp);
                    self.names.insert(
                        path,
                        Name {
                            changed: Some(stamp),
                            used: BTreeMap::new(),
                        },
                    );
                }
                Touch::Reads(_) => {}
                Touch::Writes(file) => _ = self.written.insert(file, stamp),
            }
        }
    }

    fn used(&mut self, path: PathId, stamp: Stamp) {
        self.names
            .entry(path)
            .or_default()
            .used
            .insert(stamp.place.lane, stamp);
    }
}
