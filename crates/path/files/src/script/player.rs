//! Executes a script on a file system, as a machine with plenty of memory would: nothing is written
//! back before `fsync`, `sync` or the end.

use super::{Script, ScriptStep};
use crate::path;
use crate::runs::DisjointRuns;
use crate::{
    Caller, FileError, FileSystem, MetaAccess, MetaAccesses, PAGE_BYTES, PageMapping, SyncPlan,
};
use fullstroke_contract::Object;
use fullstroke_units::{Bytes, Time};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of one `write` call of a program (`cp` and `dd bs=128k`).
const WRITE_BYTES: u64 = 128 << 10;

/// Counters of an executed script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ScriptTally {
    /// Number of successful operations.
    pub operations: u64,
    /// Number of bytes written by the program.
    pub bytes_written: u64,
    /// Number of metadata pages required in memory.
    pub metadata_reads: u64,
    /// Number of metadata pages changed.
    pub metadata_changes: u64,
    /// Number of sectors written to the log.
    pub log_sectors: u64,
}

/// A failed operation of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedOperation {
    /// Line of the operation.
    pub line: u32,
    /// The operation.
    pub step: ScriptStep,
    /// Error of the operation.
    pub error: FileError,
}

impl std::fmt::Display for FailedOperation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {:?}: {}", self.line, self.step, self.error)
    }
}

impl std::error::Error for FailedOperation {}

/// Executes operations on a file system.
pub struct ScriptPlayer<'a> {
    system: &'a mut dyn FileSystem,
    caller: Caller,
    /// Dirty pages of each file, and the position of the file in `order`.
    dirty: BTreeMap<Object, (u64, DisjointRuns)>,
    /// Dirty files, in the order in which they became dirty.
    order: BTreeMap<u64, Object>,
    open: BTreeSet<Object>,
    touches: MetaAccesses,
    extents: Vec<PageMapping>,
    tally: ScriptTally,
}

impl<'a> ScriptPlayer<'a> {
    /// Makes a player for `system`. All operations happen from `now` on.
    pub fn new(system: &'a mut dyn FileSystem, now: Time) -> ScriptPlayer<'a> {
        ScriptPlayer {
            system,
            caller: Caller { now, process: 1 },
            dirty: BTreeMap::new(),
            order: BTreeMap::new(),
            open: BTreeSet::new(),
            touches: MetaAccesses::new(),
            extents: Vec::new(),
            tally: ScriptTally::default(),
        }
    }

    /// Executes the whole script, then a sync.
    pub fn play_all(&mut self, script: &Script) -> Result<ScriptTally, FailedOperation> {
        for (line, step) in script.steps() {
            self.play(step).map_err(|error| FailedOperation {
                line: *line,
                step: step.clone(),
                error,
            })?;
        }
        let last = script.steps().last().map_or(0, |(line, _)| *line);
        // With delayed allocation, data get their place when they are written back, so the script
        // ends with a sync.
        self.play(&ScriptStep::Sync)
            .map_err(|error| FailedOperation {
                line: last,
                step: ScriptStep::Sync,
                error,
            })?;
        Ok(self.tally)
    }

    /// Executes one operation.
    pub fn play(&mut self, step: &ScriptStep) -> Result<(), FileError> {
        self.touches.clear();
        let played = self.act(step);
        for touch in self.touches.list() {
            match touch {
                MetaAccess::Read(_) => self.tally.metadata_reads += 1,
                MetaAccess::Dirty(_) | MetaAccess::Fresh(_) => self.tally.metadata_changes += 1,
                MetaAccess::Forget(_) => {}
            }
        }
        self.tally.operations += u64::from(played.is_ok());
        played
    }

    fn act(&mut self, step: &ScriptStep) -> Result<(), FileError> {
        match step {
            ScriptStep::MakeDirectory(path) => {
                let (directory, name) = self.parent(path)?;
                self.system
                    .make_directory(self.caller, directory, name, &mut self.touches)
                    .map(|_| ())
            }
            ScriptStep::Create(path, bytes) => {
                let file = self.create(path)?;
                self.write(file, 0, *bytes)?;
                self.close(file)
            }
            ScriptStep::Append(path, bytes) => {
                let file = self.find(path)?;
                let end = self.system.attributes(file)?.bytes.0;
                self.write(file, end, *bytes)?;
                self.close_unless_open(file)
            }
            ScriptStep::Write(path, offset, bytes) => {
                let file = self.find(path)?;
                self.write(file, *offset, *bytes)?;
                self.close_unless_open(file)
            }
            ScriptStep::Read(path, offset, bytes) => self.read(path, *offset, *bytes),
            ScriptStep::Truncate(path, bytes) => {
                let file = self.find(path)?;
                self.system
                    .truncate(self.caller, file, Bytes(*bytes), &mut self.touches)?;
                self.clean(file, bytes.div_ceil(PAGE_BYTES));
                Ok(())
            }
            ScriptStep::Open(path) => self.open(path),
            ScriptStep::Close(path) => {
                let file = self.find(path)?;
                self.open.remove(&file);
                self.close(file)
            }
            ScriptStep::Delete(path) => {
                let (directory, name) = self.parent(path)?;
                let gone = self
                    .system
                    .remove(self.caller, directory, name, &mut self.touches)?;
                self.forget(gone);
                Ok(())
            }
            ScriptStep::Rename(from, to) => self.rename(from, to),
            ScriptStep::Fsync(path) => {
                let file = self.find(path)?;
                self.write_back(file)?;
                let mut plan = SyncPlan::default();
                self.system
                    .fsync(self.caller, file, &mut plan, &mut self.touches)?;
                self.carry_out(&plan)
            }
            ScriptStep::Sync => self.sync(),
            ScriptStep::Sleep(time) => {
                self.caller.now += *time;
                Ok(())
            }
        }
    }

    /// Asks for the places of the pages that a read covers. Nothing behind the end of the file is
    /// read.
    fn read(&mut self, path: &str, offset: u64, bytes: u64) -> Result<(), FileError> {
        let file = self.find(path)?;
        let length = self.system.attributes(file)?.bytes.0;
        let end = offset.saturating_add(bytes).min(length);
        let pages = offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES);
        self.extents.clear();
        self.system.read_map(
            self.caller,
            file,
            pages,
            &mut self.extents,
            &mut self.touches,
        )
    }

    fn open(&mut self, path: &str) -> Result<(), FileError> {
        let file = match self.find(path) {
            Err(FileError::NotFound(_)) => self.create(path)?,
            found => found?,
        };
        self.open.insert(file);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), FileError> {
        let (old, name) = self.parent(from)?;
        let (new, new_name) = self.parent(to)?;
        let replaced = self
            .system
            .look_up(self.caller, new, new_name, &mut self.touches)
            .ok();
        self.system
            .rename(self.caller, (old, name), (new, new_name), &mut self.touches)?;
        // A rename onto itself leaves the file in place.
        if let Some(gone) = replaced.filter(|&gone| self.system.attributes(gone).is_err()) {
            self.forget(gone);
        }
        Ok(())
    }

    /// Returns the directory of a path, and the last name.
    fn parent<'p>(&mut self, path: &'p str) -> Result<(Object, &'p str), FileError> {
        let (directories, name) = path::split(path);
        Ok((self.find(directories)?, name))
    }

    /// Returns the object at a path.
    fn find(&mut self, path: &str) -> Result<Object, FileError> {
        path::find(self.system, self.caller, path, &mut self.touches)
    }

    fn create(&mut self, path: &str) -> Result<Object, FileError> {
        let (directory, name) = self.parent(path)?;
        self.system
            .create(self.caller, directory, name, &mut self.touches)
    }

    fn write(&mut self, file: Object, mut offset: u64, bytes: u64) -> Result<(), FileError> {
        let mut left = bytes;
        while left > 0 {
            let length = left.min(WRITE_BYTES);
            self.system.write(
                self.caller,
                file,
                Bytes(offset),
                Bytes(length),
                &mut self.touches,
            )?;
            let end = offset.saturating_add(length);
            self.make_dirty(file, offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES));
            self.tally.bytes_written += length;
            offset = end;
            left -= length;
        }
        Ok(())
    }

    fn make_dirty(&mut self, file: Object, pages: std::ops::Range<u64>) {
        let turn = self.order.last_key_value().map_or(0, |(&last, _)| last + 1);
        let (_, runs) = self.dirty.entry(file).or_insert_with(|| {
            self.order.insert(turn, file);
            (turn, DisjointRuns::default())
        });
        runs.insert(pages);
    }

    /// Removes the pages from `page` on from the dirty pages.
    fn clean(&mut self, file: Object, page: u64) {
        if let Some((_, runs)) = self.dirty.get_mut(&file) {
            runs.remove(page..u64::MAX);
        }
    }

    /// Removes and returns the dirty pages of a file.
    fn take_dirty(&mut self, file: Object) -> Option<DisjointRuns> {
        let (turn, runs) = self.dirty.remove(&file)?;
        self.order.remove(&turn);
        Some(runs)
    }

    fn forget(&mut self, gone: Object) {
        self.take_dirty(gone);
        self.open.remove(&gone);
    }

    fn close(&mut self, file: Object) -> Result<(), FileError> {
        self.system.close(self.caller, file, &mut self.touches)
    }

    fn close_unless_open(&mut self, file: Object) -> Result<(), FileError> {
        // `close` gives preallocated blocks back (`ext2_release_file`), and a file that the script
        // holds open keeps them.
        if self.open.contains(&file) {
            Ok(())
        } else {
            self.close(file)
        }
    }

    fn write_back(&mut self, file: Object) -> Result<(), FileError> {
        let Some(runs) = self.take_dirty(file) else {
            return Ok(());
        };
        for run in runs.iter() {
            self.extents.clear();
            self.system.write_back(
                self.caller,
                file,
                run.clone(),
                &mut self.extents,
                &mut self.touches,
            )?;
            self.system
                .written_back(self.caller, file, run, &mut self.touches);
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), FileError> {
        while let Some((_, &file)) = self.order.first_key_value() {
            self.write_back(file)?;
        }
        let mut plan = SyncPlan::default();
        self.system.commit(self.caller.now, &mut plan);
        self.carry_out(&plan)
    }

    fn carry_out(&mut self, plan: &SyncPlan) -> Result<(), FileError> {
        for &file in &plan.data {
            self.write_back(file)?;
        }
        self.tally.log_sectors += plan.log.iter().map(|write| write.sectors.0).sum::<u64>();
        Ok(())
    }
}
