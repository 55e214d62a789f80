//! Order between processes, by their shared names and files. Follows the rules of Weiss, Harter,
//! Arpaci-Dusseau and Arpaci-Dusseau ("ROOT: Replaying Multithreaded Traces with Resource-Oriented
//! Ordering", SOSP 2013).

use super::files::{FileId, NamedFiles};
use super::recording::{LanePlace, PathId};
use std::collections::BTreeMap;

/// Effect of a call on other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameEffect {
    /// The call uses a name.
    Uses(PathId),
    /// The call creates, removes or replaces the file behind the name.
    Changes(PathId),
    /// The call reads data of the file.
    Reads(FileId),
    /// The call writes data or changes the length.
    Writes(FileId),
}

/// Place of a call in its lane, and the line of its end.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    place: LanePlace,
    line: u32,
}

#[derive(Debug, Default)]
struct Name {
    changed: Option<Stamp>,
    /// Latest uses since the change, by lane.
    used: BTreeMap<u32, Stamp>,
}

/// The latest calls on each name and file.
#[derive(Debug, Default)]
pub(super) struct CallOrder {
    names: BTreeMap<PathId, Name>,
    written: BTreeMap<FileId, Stamp>,
}

impl CallOrder {
    /// Returns the places that a call of `lane` must follow. The call began at `line`; the places
    /// are calls of other lanes that had ended by then.
    pub fn before(
        &self,
        files: &NamedFiles,
        touches: &[NameEffect],
        lane: u32,
        line: u32,
    ) -> Vec<LanePlace> {
        let mut found: Vec<Stamp> = Vec::new();
        for touch in touches {
            match *touch {
                NameEffect::Uses(path) => self.changes(files, path, &mut found),
                NameEffect::Changes(path) => {
                    self.changes(files, path, &mut found);
                    found.extend(
                        self.names
                            .get(&path)
                            .into_iter()
                            .flat_map(|name| name.used.values()),
                    );
                }
                NameEffect::Reads(file) => found.extend(self.written.get(&file)),
                NameEffect::Writes(_) => {}
            }
        }
        let others = found
            .into_iter()
            .filter(|stamp| stamp.place.lane != lane && stamp.line < line);
        others.map(|stamp| stamp.place).collect()
    }

    /// Adds the changes of the name and of its directory's name.
    fn changes(&self, files: &NamedFiles, path: PathId, found: &mut Vec<Stamp>) {
        for path in [path, files.parent(path)] {
            found.extend(self.names.get(&path).and_then(|name| name.changed));
        }
    }

    /// Records a call at `place` with its end at `line`.
    pub fn note(
        &mut self,
        files: &NamedFiles,
        touches: &[NameEffect],
        place: LanePlace,
        line: u32,
    ) {
        let stamp = Stamp { place, line };
        for touch in touches {
            match *touch {
                NameEffect::Uses(path) => self.used(path, stamp),
                NameEffect::Changes(path) => {
                    self.used(files.parent(path), stamp);
                    self.names.insert(
                        path,
                        Name {
                            changed: Some(stamp),
                            used: BTreeMap::new(),
                        },
                    );
                }
                NameEffect::Reads(_) => {}
                NameEffect::Writes(file) => _ = self.written.insert(file, stamp),
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
