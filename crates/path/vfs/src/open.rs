//! Open files: their processes, and files that lose their names while open.

use fullstroke_contract::{Object, Slots};
use fullstroke_memory::FileId;
use fullstroke_programs::{CallError, Fd, OpenFlags};
use std::collections::BTreeMap;

/// An open file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenFile {
    pub object: Object,
    /// Handle of the file in the cache.
    pub file: FileId,
    /// Position of the next transfer without a place.
    pub position: u64,
    pub how: OpenFlags,
    /// Number of write-back failures reported to the opener.
    pub told: u64,
}

/// State of an object with open files.
#[derive(Clone, Debug, Default)]
struct OpenObject {
    opens: u32,
    writers: u32,
    /// Hidden name of the object, if its removal waits for the last close.
    orphan: Option<(Object, String)>,
}

/// Result of a close.
#[derive(Clone, Debug)]
pub(crate) struct ClosedFile {
    pub file: OpenFile,
    /// True if the file is no longer open for writing.
    pub last_writer: bool,
    /// Hidden name to remove now.
    pub orphan: Option<(Object, String)>,
}

/// All open files.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles {
    files: Slots<OpenFile>,
    by_fd: BTreeMap<(u32, Fd), u32>,
    held: BTreeMap<Object, OpenObject>,
    orphans: u64,
}

impl OpenFiles {
    pub fn open(&mut self, process: u32, fd: Fd, file: OpenFile) {
        let slot = self.files.keep(file);
        let other = self.by_fd.insert((process, fd), slot);
        debug_assert!(
            other.is_none(),
            "process {process} opens {fd:?}, which is open"
        );
        let held = self.held.entry(file.object).or_default();
        held.opens += 1;
        held.writers += u32::from(file.how.write);
    }

    pub fn get(&mut self, process: u32, fd: Fd) -> Result<&mut OpenFile, CallError> {
        let slot = self.by_fd.get(&(process, fd)).ok_or(CallError::BadFd(fd))?;
        Ok(&mut self.files[*slot])
    }

    /// Same as `get`, but returns an error if the file is not open for writing.
    pub fn writable(&mut self, process: u32, fd: Fd) -> Result<&mut OpenFile, CallError> {
        let file = self.get(process, fd)?;
        if file.how.write {
            Ok(file)
        } else {
            Err(CallError::BadFd(fd))
        }
    }

    /// Returns the first open descriptor of a process.
    pub fn first_of(&self, process: u32) -> Option<Fd> {
        let mut own = self.by_fd.range((process, Fd(0))..=(process, Fd(u32::MAX)));
        own.next().map(|(&(_, fd), _)| fd)
    }

    pub fn close(&mut self, process: u32, fd: Fd) -> Result<ClosedFile, CallError> {
        let slot = self
            .by_fd
            .remove(&(process, fd))
            .ok_or(CallError::BadFd(fd))?;
        let file = self.files.take(slot);
        let mut closed = ClosedFile {
            file,
            last_writer: false,
            orphan: None,
        };
        if let Some(held) = self.held.get_mut(&file.object) {
            assert!(
                held.opens > 0 && held.writers >= u32::from(file.how.write),
                "{:?} is closed: {} have it open, {} of them to write",
                file.object,
                held.opens,
                held.writers
            );
            held.opens -= 1;
            held.writers -= u32::from(file.how.write);
            closed.last_writer = file.how.write && held.writers == 0;
            if held.opens == 0 {
                closed.orphan = held.orphan.take();
                self.held.remove(&file.object);
            }
        }
        Ok(closed)
    }

    pub fn is_open(&self, object: Object) -> bool {
        self.held.contains_key(&object)
    }

    /// Returns a hidden name for an open file in place of its own.
    pub fn hidden_name(&mut self) -> String {
        self.orphans += 1;
        format!(".orphan{}", self.orphans)
    }

    /// Records the hidden name of an open file in `directory` until its last close.
    pub fn orphaned(&mut self, object: Object, directory: Object, name: String) {
        if let Some(held) = self.held.get_mut(&object) {
            held.orphan = Some((directory, name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_close_of_the_last_writer_ends_the_writing() {
        let mut files = OpenFiles::default();
        let mut cache = fullstroke_memory::PageCache::new(
            &fullstroke_memory::MemoryKeys::of(fullstroke_units::Bytes(1 << 20)),
            fullstroke_memory::QueueLimits::default(),
        )
        .unwrap();
        let object = Object(9);
        let mut open = |files: &mut OpenFiles, process, how| {
            let file = OpenFile {
                object,
                file: cache.open(object),
                position: 0,
                how,
                told: 0,
            };
            files.open(process, Fd(3), file);
        };
        for (process, how) in [
            (0, OpenFlags::CREATE),
            (1, OpenFlags::READ),
            (2, OpenFlags::CREATE),
        ] {
            open(&mut files, process, how);
        }
        let mut last = |process| files.close(process, Fd(3)).unwrap().last_writer;
        assert!(!last(0), "process 2 still writes");
        assert!(last(2), "process 1 only reads");
        assert!(!last(1), "a reader is no writer");
        assert!(!files.is_open(object));
    }
}
