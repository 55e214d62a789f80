//! Open files: whose they are, and what becomes of those whose names go first.

use fullstroke_contract::{Object, Slots};
use fullstroke_memory::FileId;
use fullstroke_programs::{CallError, Fd, How};
use std::collections::BTreeMap;

/// An open file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenFile {
    pub object: Object,
    /// As the cache knows it.
    pub file: FileId,
    /// Where the next byte without a place is.
    pub position: u64,
    pub how: How,
    /// How many failures of its write-back whoever opened it knows of.
    pub told: u64,
}

/// What is open of an object.
#[derive(Clone, Debug, Default)]
struct Held {
    opens: u32,
    writers: u32,
    /// Where its name stands that was to be removed.
    orphan: Option<(Object, String)>,
}

/// Who has closed a file, and what follows.
#[derive(Clone, Debug)]
pub(crate) struct Closed {
    pub file: OpenFile,
    /// Nobody has it open for writing any more, as this one had.
    pub last_writer: bool,
    /// Its name goes now.
    pub orphan: Option<(Object, String)>,
}

/// All open files.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles {
    files: Slots<OpenFile>,
    by_fd: BTreeMap<(u32, Fd), u32>,
    held: BTreeMap<Object, Held>,
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

    /// The same, if it may be written.
    pub fn writable(&mut self, process: u32, fd: Fd) -> Result<&mut OpenFile, CallError> {
        let file = self.get(process, fd)?;
        if file.how.write {
            Ok(file)
        } else {
            Err(CallError::BadFd(fd))
        }
    }

    /// The first descriptor of a process that is open.
    pub fn first_of(&self, process: u32) -> Option<Fd> {
        let mut own = self.by_fd.range((process, Fd(0))..=(process, Fd(u32::MAX)));
        own.next().map(|(&(_, fd), _)| fd)
    }

    pub fn close(&mut self, process: u32, fd: Fd) -> Result<Closed, CallError> {
        let slot = self
            .by_fd
            .remove(&(process, fd))
            .ok_or(CallError::BadFd(fd))?;
        let file = self.files.take(slot);
        let mut closed = Closed {
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

    /// A name that a file takes which is open and loses its own.
    pub fn hidden_name(&mut self) -> String {
        self.orphans += 1;
        format!(".orphan{}", self.orphans)
    }

    /// A file that is open has a hidden name in `directory` until its last close.
    pub fn orphaned(&mut self, object: Object, directory: Object, name: String) {
        if let Some(held) = self.held.get_mut(&object) {
            held.orphan = Some((directory, name));
        }
    }
}
