//! Files behind the names in the course of a recording, and files from before the recording.

use super::recording::{PathId, RecordedStep};
use crate::program::InitialFile;
use fullstroke_units::Bytes;
use std::collections::HashMap;
use std::sync::Arc;

/// Index of a file or directory.
pub(super) type FileId = u32;

/// State of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameState {
    Unknown,
    Gone,
    There(FileId),
}

#[derive(Debug)]
struct Name {
    text: Arc<str>,
    parent: PathId,
    children: Vec<PathId>,
    state: NameState,
}

#[derive(Debug)]
struct File {
    /// Names of the file. The player has no hard links; the file has only the first name there. A
    /// file without names exists until its last close.
    names: Vec<PathId>,
    /// Name before the recording, if the file existed then.
    origin: Option<PathId>,
    /// True if the file was opened with `O_CREAT` and no read has yet shown an earlier existence.
    perhaps_new: bool,
    directory: bool,
    /// Length before the recording, as far as known.
    initial: u64,
    /// Present length.
    length: u64,
    /// True if the recording has set the length. The length then shows nothing about the time
    /// before.
    fresh: bool,
}

/// Longer paths are invalid (`PATH_MAX`).
const PATH_MAX: usize = 4096;
/// The root.
pub(super) const ROOT: PathId = 0;

#[derive(Debug)]
pub(super) struct NamedFiles {
    ids: HashMap<Arc<str>, PathId>,
    names: Vec<Name>,
    files: Vec<File>,
    /// Number of opens of a missing name without a recorded creation.
    pub appeared: u64,
}

/// Returns `path`, relative to `base`, without `.`, `..` and redundant `/`.
pub(super) fn joined(base: &str, path: &str) -> Option<String> {
    let base = if path.starts_with('/') { "" } else { base };
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            // `..` of the root is the root.
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    Some(parts.join("/")).filter(|path| path.len() <= PATH_MAX)
}

/// Returns the rest of `path` behind `directory`; `None` if the path lies elsewhere. Both have the
/// form of [`joined`].
pub(super) fn within<'t>(path: &'t str, directory: &str) -> Option<&'t str> {
    match path.strip_prefix(directory)? {
        rest if directory.is_empty() || rest.is_empty() => Some(rest),
        rest => rest.strip_prefix('/'),
    }
}

impl NamedFiles {
    pub fn new() -> NamedFiles {
        let root: Arc<str> = Arc::from("");
        let mut files = NamedFiles {
            ids: HashMap::new(),
            names: Vec::new(),
            files: Vec::new(),
            appeared: 0,
        };
        files.ids.insert(root.clone(), ROOT);
        files.names.push(Name {
            text: root,
            parent: ROOT,
            children: Vec::new(),
            state: NameState::Unknown,
        });
        // The root exists, and is a directory.
        files.insert(ROOT, None, true);
        files
    }

    /// Returns the id of a path in the form of [`joined`].
    pub fn path(&mut self, text: &str) -> PathId {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        // Begins at the root, because each name needs its parent.
        let (mut parent, mut end) = (ROOT, 0);
        loop {
            end = text[end..]
                .find('/')
                .map_or(text.len(), |length| end + length);
            let known = self.ids.get(&text[..end]).copied();
            debug_assert!(
                known.is_none_or(|id| id == ROOT || self.names[id as usize].parent != id),
                "only the root is its own parent: `{}`",
                &text[..end]
            );
            parent = known.unwrap_or_else(|| {
                let (id, text): (_, Arc<str>) =
                    (self.names.len() as PathId, Arc::from(&text[..end]));
                self.ids.insert(text.clone(), id);
                self.names.push(Name {
                    text,
                    parent,
                    children: Vec::new(),
                    state: NameState::Unknown,
                });
                self.names[parent as usize].children.push(id);
                id
            });
            if end == text.len() {
                return parent;
            }
            end += 1;
        }
    }

    pub fn text(&self, path: PathId) -> &str {
        &self.names[path as usize].text
    }

    pub fn parent(&self, path: PathId) -> PathId {
        self.names[path as usize].parent
    }

    /// Returns all names, as seen from the directory `mount`. No step has a name outside.
    pub fn paths(&self, mount: &str) -> Vec<Arc<str>> {
        let seen = |name: &Name| match within(&name.text, mount) {
            Some(rest) if rest.len() < name.text.len() => Arc::from(rest),
            _ => name.text.clone(),
        };
        self.names.iter().map(seen).collect()
    }

    /// Returns the name of a file in the player; `None` if the file has lost its names.
    pub fn name(&self, file: FileId) -> Option<PathId> {
        self.files[file as usize].names.first().copied()
    }

    /// Returns the name in the player of the file at a path.
    pub fn played(&self, path: PathId) -> PathId {
        match self.names[path as usize].state {
            NameState::There(file) => self.name(file).unwrap_or(path),
            NameState::Unknown | NameState::Gone => path,
        }
    }

    pub fn length(&self, file: FileId) -> u64 {
        self.files[file as usize].length
    }

    fn insert(&mut self, path: PathId, origin: Option<PathId>, directory: bool) -> FileId {
        let id = self.files.len() as FileId;
        self.files.push(File {
            names: vec![path],
            origin,
            perhaps_new: false,
            directory,
            initial: 0,
            length: 0,
            fresh: origin.is_none(),
        });
        self.names[path as usize].state = NameState::There(id);
        id
    }

    /// Records the existence of the directories on the path.
    fn needs_parents(&mut self, path: PathId) {
        let mut missing = Vec::new();
        let mut parent = self.parent(path);
        while self.names[parent as usize].state == NameState::Unknown {
            missing.push(parent);
            parent = self.parent(parent);
        }
        // The outermost directory comes first, because each origin needs the origin of its parent.
        while let Some(directory) = missing.pop() {
            let origin = self.origin(directory);
            self.insert(directory, origin, true);
        }
    }

    /// Returns the name before the recording. It differs if a directory has been renamed.
    fn origin(&mut self, path: PathId) -> Option<PathId> {
        let parent = self.parent(path);
        let NameState::There(directory) = self.names[parent as usize].state else {
            return None;
        };
        if parent == ROOT {
            return Some(path);
        }
        // The directory was renamed during the recording, so the file had another path before.
        let origin = self.files[directory as usize].origin?;
        if origin == parent {
            return Some(path);
        }
        let text = self.text(path);
        let name = text.rsplit_once('/').map_or(text, |(_, name)| name);
        let text = joined(self.text(origin), name)?;
        Some(self.path(&text))
    }

    /// Records a successful call on the path.
    pub fn there(&mut self, path: PathId) -> FileId {
        if let NameState::There(file) = self.names[path as usize].state {
            return file;
        }
        self.needs_parents(path);
        // A name that is gone was made again by a call that the recording lacks. Such a file did
        // not exist before.
        let gone = self.names[path as usize].state == NameState::Gone;
        let origin = if gone { None } else { self.origin(path) };
        self.insert(path, origin, false)
    }

    /// Records a failed call on the path (ENOENT).
    pub fn missing(&mut self, path: PathId) {
        let state = &mut self.names[path as usize].state;
        // A known state stays: a failed call on a known file has another reason, such as a race.
        if *state == NameState::Unknown {
            *state = NameState::Gone;
        }
    }

    /// Records the creation of the path.
    pub fn made(&mut self, path: PathId, directory: bool) -> FileId {
        self.needs_parents(path);
        self.insert(path, None, directory)
    }

    /// Records an open of the path. The second result is true if the open may have created the
    /// file.
    pub fn opened(&mut self, path: PathId, creates: bool, empties: bool) -> (FileId, bool) {
        let (file, made) = match self.names[path as usize].state {
            NameState::There(file) => (file, false),
            // The file may have existed before; later reads may show that.
            NameState::Unknown if creates => {
                self.needs_parents(path);
                let origin = self.origin(path);
                let file = self.insert(path, origin, false);
                self.files[file as usize].perhaps_new = true;
                (file, true)
            }
            NameState::Gone if creates => (self.made(path, false), true),
            NameState::Gone => {
                self.appeared += 1;
                (self.made(path, false), true)
            }
            NameState::Unknown => (self.there(path), false),
        };
        if empties {
            self.resized(file, 0);
        }
        (file, made)
    }

    /// Records the loss of this name. Returns the step for the player.
    pub fn removed(&mut self, path: PathId) -> Option<RecordedStep> {
        let file = self.there(path);
        self.names[path as usize].state = NameState::Gone;
        self.drop_name(file, path)
    }

    /// Removes a name. If the first name is lost, the player removes the file or renames it to the
    /// next name.
    fn drop_name(&mut self, file: FileId, path: PathId) -> Option<RecordedStep> {
        let file = &mut self.files[file as usize];
        // The file existed before, or it could not have been removed.
        file.perhaps_new &= !file.fresh && file.length > 0;
        let at = file.names.iter().position(|&name| name == path)?;
        file.names.remove(at);
        let next = file
            .names
            .first()
            .map_or(RecordedStep::Remove { path }, |&to| RecordedStep::Rename {
                from: path,
                to,
            });
        (at == 0).then_some(next)
    }

    /// Records a new name. Returns the steps for the player.
    pub fn renamed(&mut self, from: PathId, to: PathId) -> Vec<RecordedStep> {
        let file = self.there(from);
        self.needs_parents(to);
        let replaced = match self.names[to as usize].state {
            // rename(2) of two names of one file does nothing.
            NameState::There(other) if other == file => return Vec::new(),
            NameState::There(other) => self.drop_name(other, to),
            NameState::Unknown | NameState::Gone => None,
        };
        self.names[from as usize].state = NameState::Gone;
        self.names[to as usize].state = NameState::There(file);
        let one = &mut self.files[file as usize];
        let first = one.names.first() == Some(&from);
        one.names
            .iter_mut()
            .filter(|name| **name == from)
            .for_each(|name| *name = to);
        if one.directory {
            self.moved(from, to);
        }
        // The target must be removed only if no file takes its place.
        let makes_room =
            replaced.filter(|step| !first || matches!(step, RecordedStep::Rename { .. }));
        makes_room
            .into_iter()
            .chain(first.then_some(RecordedStep::Rename { from, to }))
            .collect()
    }

    /// Moves the names in a directory to another directory.
    fn moved(&mut self, from: PathId, to: PathId) {
        let mut directories = vec![(from, self.text(to).to_owned())];
        while let Some((from, to)) = directories.pop() {
            // A clone of the list, because new names are entered during the walk.
            for path in self.names[from as usize].children.clone() {
                let text = self.text(path);
                let name = text.rsplit_once('/').map_or(text, |(_, name)| name);
                let Some(text) = joined(&to, name) else {
                    continue;
                };
                if let NameState::There(file) = self.names[path as usize].state {
                    let new = self.path(&text);
                    self.names[path as usize].state = NameState::Gone;
                    self.names[new as usize].state = NameState::There(file);
                    let names = &mut self.files[file as usize].names;
                    names
                        .iter_mut()
                        .filter(|name| **name == path)
                        .for_each(|name| *name = new);
                }
                directories.push((path, text));
            }
        }
    }

    /// Records one more name. In the player, the file has only the first name.
    pub fn linked(&mut self, from: PathId, to: PathId) {
        let file = self.there(from);
        self.needs_parents(to);
        if let NameState::There(other) = self.names[to as usize].state {
            self.drop_name(other, to);
        }
        self.names[to as usize].state = NameState::There(file);
        self.files[file as usize].names.push(to);
    }

    pub fn is_directory(&mut self, file: FileId) {
        self.files[file as usize].directory = true;
    }

    /// Records a length of at least `bytes`.
    pub fn reaches(&mut self, file: FileId, bytes: u64) {
        let file = &mut self.files[file as usize];
        debug_assert!(
            file.fresh || file.initial <= file.length.max(bytes),
            "a file that was {} bytes long has {}",
            file.initial,
            file.length
        );
        // Data beyond the known length were there before, unless the recording itself has set the
        // length.
        if bytes > file.length && !file.fresh {
            (file.initial, file.perhaps_new) = (bytes, false);
        }
        file.length = file.length.max(bytes);
    }

    pub fn written(&mut self, file: FileId, to: u64) {
        let file = &mut self.files[file as usize];
        file.length = file.length.max(to);
    }

    pub fn resized(&mut self, file: FileId, bytes: u64) {
        let file = &mut self.files[file as usize];
        (file.length, file.fresh) = (bytes, true);
    }

    /// Returns the files from before the recording, as seen from the directory `mount`.
    pub fn laid(&self, mount: &str) -> Vec<InitialFile> {
        let mut parents = vec![false; self.names.len()];
        // A path with paths below is a directory, even if no call has shown that.
        self.names
            .iter()
            .for_each(|name| parents[name.parent as usize] = true);
        let laid = |file: &File| {
            let origin = file.origin.filter(|_| !file.perhaps_new)?;
            let path = within(self.text(origin), mount).filter(|path| !path.is_empty())?;
            let directory = file.directory || parents[origin as usize];
            let bytes = (!directory).then_some(Bytes(file.initial));
            Some(InitialFile {
                path: path.to_owned(),
                bytes,
                unwritten: false,
            })
        };
        self.files.iter().filter_map(laid).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_before_is_told_from_what_was_made() {
        let mut files = NamedFiles::new();
        let [old, new, log, gone] =
            ["home/old", "home/new", "home/log", "home/gone"].map(|text| files.path(text));
        let (file, made) = files.opened(old, false, false);
        assert!(!made);
        files.reaches(file, 832);
        files.reaches(file, 100);
        assert!(files.opened(new, true, true).1);
        // Opened for appending, and not empty.
        let (file, _) = files.opened(log, true, false);
        files.reaches(file, 10);
        files.written(file, 4096);
        files.missing(gone);
        let laid: Vec<_> = files
            .laid("")
            .into_iter()
            .map(|laid| (laid.path, laid.bytes.map(|bytes| bytes.0)))
            .collect();
        let expected = [
            ("home", None),
            ("home/old", Some(832)),
            ("home/log", Some(10)),
        ];
        assert_eq!(laid, expected.map(|(path, bytes)| (path.to_owned(), bytes)));
    }

    #[test]
    fn what_is_in_a_renamed_directory_is_laid_out_under_its_first_name() {
        let mut files = NamedFiles::new();
        let [a, b, within] = ["a", "b", "b/x"].map(|text| files.path(text));
        let file = files.there(a);
        files.is_directory(file);
        assert_eq!(
            files.renamed(a, b),
            [RecordedStep::Rename { from: a, to: b }]
        );
        files.there(within);
        assert!(files.laid("").iter().any(|laid| laid.path == "a/x"));
        assert!(
            files
                .laid("")
                .iter()
                .all(|laid| !laid.path.starts_with('b'))
        );
    }

    #[test]
    fn a_file_under_two_names_goes_with_the_last() {
        let mut files = NamedFiles::new();
        let [temporary, name] = ["tmp", "name"].map(|text| files.path(text));
        files.opened(temporary, true, true);
        files.linked(temporary, name);
        assert_eq!(files.played(name), temporary);
        assert_eq!(
            files.removed(temporary),
            Some(RecordedStep::Rename {
                from: temporary,
                to: name
            })
        );
        assert_eq!(files.played(name), name);
        assert_eq!(
            files.removed(name),
            Some(RecordedStep::Remove { path: name })
        );
    }

    #[test]
    fn a_second_name_comes_and_goes_without_a_call() {
        let mut files = NamedFiles::new();
        let [first, second, third, other] = ["a", "b", "c", "d"].map(|text| files.path(text));
        files.opened(first, true, true);
        files.linked(first, second);
        assert_eq!(files.renamed(second, third), []);
        assert_eq!(files.played(third), first);
        // Two names of one file: `rename(2)` does nothing.
        assert_eq!(files.renamed(first, third), []);
        files.opened(other, true, true);
        assert_eq!(
            files.renamed(third, other),
            [RecordedStep::Remove { path: other }]
        );
        let to = second;
        files.opened(to, true, true);
        let moves = [
            RecordedStep::Rename {
                from: first,
                to: other,
            },
            RecordedStep::Rename {
                from: to,
                to: first,
            },
        ];
        assert_eq!(files.renamed(to, first), moves);
        assert_eq!(
            files.removed(other),
            Some(RecordedStep::Remove { path: other })
        );
    }

    #[test]
    fn paths_lose_their_dots() {
        assert_eq!(joined("home/x", "../y/./z").unwrap(), "home/y/z");
        assert_eq!(joined("home", "/a//b/").unwrap(), "a/b");
        assert_eq!(joined("", "../..").unwrap(), "");
        assert_eq!(joined("", &"x".repeat(5000)), None);
    }
}
