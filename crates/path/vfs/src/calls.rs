//! Calls: the immediate answer of the file system, and the later steps.
//!
//! Names and lengths change at once when a call is made. The waits of the call follow.

use crate::kernel::{PAGE_SECTORS, VfsKernel};
use crate::open::OpenFile;
use crate::task::Task;
use fullstroke_contract::{Extent, Object, Operation};
use fullstroke_files::{Caller, FileError, InodeChange, ObjectKind, PagePlace, path};
use fullstroke_memory::{FileAccess, PageRun};
use fullstroke_programs::{Call, CallError, CallKind, Fd, OpenFlags};
use fullstroke_units::{Bytes, SECTOR_BYTES, Time};

const PAGE_BYTES: u64 = PAGE_SECTORS * SECTOR_BYTES;

impl VfsKernel {
    /// Begins a call of a process. The thread of the process carries out the steps, and joins the
    /// list `ended` after the last step. Returns the kind of the call.
    pub fn begin(&mut self, now: Time, process: u32, call: &Call<'_>) -> CallKind {
        let mut kind = call.kind();
        let thread = process;
        self.threads[thread].copied = 0;
        self.threads[thread].kind = kind;
        self.answers.touches.clear();
        let result = self.call(now, process, call, &mut kind);
        self.threads[thread].result = result;
        self.accounts.call(kind);
        self.threads.make_ready(thread);
        kind
    }

    fn call(
        &mut self,
        now: Time,
        process: u32,
        call: &Call<'_>,
        kind: &mut CallKind,
    ) -> Result<u64, CallError> {
        let caller = self.caller(now, process);
        match *call {
            Call::Open { path, fd, how } => self.open(caller, process, (path, fd, how), kind),
            Call::Close { fd } => self.close(caller, process, fd),
            Call::Read { fd, at, bytes } => self.read(caller, process, (fd, at, bytes)),
            Call::Write { fd, at, bytes } => self.write(caller, process, (fd, at, bytes)),
            Call::Seek { fd, to } => {
                self.files.get(process, fd)?.position = to;
                Ok(to)
            }
            Call::Fsync { fd } => self.fsync(process, fd, InodeChange::Any),
            Call::Fdatasync { fd } => self.fsync(process, fd, InodeChange::Data),
            Call::Sync => {
                // Data, then metadata, then the pages of the device, as `ksys_sync` of `fs/sync.c`
                // does.
                self.push(process, [Task::SyncAll, Task::Commit]);
                if self.above_pool {
                    // `zfs_sync` commits the intent log of all files.
                    let flush = Task::Issue(Operation::Flush, Extent::default(), false);
                    self.push(process, [flush]);
                } else if self.fs.syncs_in_place() {
                    self.push(process, [Task::SyncObject(Object::DEVICE)]);
                }
                Ok(0)
            }
            Call::Truncate { path, bytes } => {
                let object = self.find(caller, process, path)?;
                self.resize(caller, process, object, bytes)
            }
            Call::Resize { fd, bytes } => {
                let object = self.files.writable(process, fd)?.object;
                self.resize(caller, process, object, bytes)
            }
            Call::MakeDirectory { path } => {
                self.named(caller, process, path, |kernel, directory, name| {
                    kernel
                        .fs
                        .make_directory(caller, directory, name, &mut kernel.answers.touches)
                        .map(|_| 0)
                })
            }
            Call::Remove { path } => self.remove(caller, process, path),
            Call::Rename { from, to } => self.rename(caller, process, from, to),
            Call::Stat { path } => {
                let object = self.find(caller, process, path)?;
                Ok(self.fs.attributes(object)?.bytes.0)
            }
            Call::List { path } => self.list(caller, process, path),
        }
    }

    fn push<const N: usize>(&mut self, thread: u32, tasks: [Task; N]) {
        self.threads[thread].tasks.extend(tasks);
    }

    /// True if the device is the only file and has no names.
    fn has_no_names(&self) -> bool {
        self.fs.root() == Object::DEVICE
    }

    /// Returns the object of a path.
    fn find(&mut self, caller: Caller, thread: u32, path: &str) -> Result<Object, CallError> {
        if self.has_no_names() {
            return self.find_only(path);
        }
        let found = self.walk(caller, path);
        self.follow_touches(thread);
        Ok(found?)
    }

    fn walk(&mut self, caller: Caller, path: &str) -> Result<Object, FileError> {
        path::find(&mut *self.fs, caller, path, &mut self.answers.touches)
    }

    /// On a device without names, the first name in use stands for the device.
    fn find_only(&mut self, path: &str) -> Result<Object, CallError> {
        let name = self.only_name.get_or_insert_with(|| path.to_owned());
        if name == path {
            Ok(Object::DEVICE)
        } else {
            Err(FileError::OneFile("a second name").into())
        }
    }

    /// Carries out an action on a name in the directory of a path.
    fn named(
        &mut self,
        caller: Caller,
        thread: u32,
        path: &str,
        act: impl FnOnce(&mut VfsKernel, Object, &str) -> Result<u64, FileError>,
    ) -> Result<u64, CallError> {
        let (directories, name) = path::split(path);
        let done = self.walk(caller, directories).and_then(|directory| {
            self.access_times.changed(directory);
            act(self, directory, name)
        });
        self.follow_touches(thread);
        Ok(done?)
    }

    fn open(
        &mut self,
        caller: Caller,
        process: u32,
        (path, fd, how): (&str, Fd, OpenFlags),
        kind: &mut CallKind,
    ) -> Result<u64, CallError> {
        // A recording may lack the close of a descriptor, as after `close_range`.
        if self.files.get(process, fd).is_ok() {
            self.close(caller, process, fd)?;
        }
        let object = match self.find(caller, process, path) {
            Err(CallError::File(FileError::NotFound(_))) if how.create => {
                *kind = CallKind::Create;
                self.threads[process].kind = *kind;
                self.create(caller, process, path)?
            }
            Ok(_) if how.create && how.exclusive => {
                return Err(FileError::Exists(path.to_owned()).into());
            }
            found => found?,
        };
        let attributes = self.fs.attributes(object)?;
        if attributes.kind == ObjectKind::Directory && how.write {
            return Err(FileError::IsADirectory(path.to_owned()).into());
        }
        // The length of a device is fixed.
        if how.truncate && attributes.bytes.0 > 0 && !self.has_no_names() {
            self.resize(caller, process, object, 0)?;
        }
        let file = self.cache.open(object);
        // The opener learns only of failures after its open.
        let (told, _) = self.cache.failures(object);
        self.files.open(
            process,
            fd,
            OpenFile {
                object,
                file,
                position: 0,
                how,
                told,
            },
        );
        Ok(0)
    }

    fn create(&mut self, caller: Caller, thread: u32, path: &str) -> Result<Object, CallError> {
        let mut made = Object::DEVICE;
        self.named(caller, thread, path, |kernel, directory, name| {
            made = kernel
                .fs
                .create(caller, directory, name, &mut kernel.answers.touches)?;
            Ok(0)
        })?;
        Ok(made)
    }

    fn close(&mut self, caller: Caller, process: u32, fd: Fd) -> Result<u64, CallError> {
        let closed = self.files.close(process, fd)?;
        self.cache.close(closed.file.file);
        if closed.last_writer {
            let done = self
                .fs
                .close(caller, closed.file.object, &mut self.answers.touches);
            self.follow_touches(process);
            done?;
        }
        if let Some((directory, name)) = closed.orphan {
            self.remove_name(caller, process, directory, &name)?;
        }
        Ok(0)
    }

    /// Closes all open files of a process at its end.
    pub fn close_all(&mut self, now: Time, process: u32) {
        let caller = self.caller(now, process);
        while let Some(fd) = self.files.first_of(process) {
            // On a full file system, a reservation that cannot be returned stays.
            let _ = self.close(caller, process, fd);
        }
    }

    fn read(
        &mut self,
        caller: Caller,
        process: u32,
        (fd, at, bytes): (Fd, Option<u64>, u64),
    ) -> Result<u64, CallError> {
        let file = *self.files.get(process, fd)?;
        let size = self.fs.attributes(file.object)?.bytes.0;
        let offset = at.unwrap_or(file.position);
        let bytes = bytes.min(size.saturating_sub(offset));
        if at.is_none() {
            self.files.get(process, fd)?.position = offset + bytes;
        }
        if bytes == 0 {
            return Ok(0);
        }
        if self.above_pool {
            self.copied(process, bytes);
            let direct = Task::Direct {
                object: file.object,
                offset,
                bytes,
                write: false,
            };
            self.push(process, [direct]);
            self.accessed(caller, process, file.object);
            return Ok(bytes);
        }
        if file.how.direct {
            let run = pages_of(file.object, offset, bytes);
            let direct = Task::Direct {
                object: file.object,
                offset,
                bytes,
                write: false,
            };
            // Dirty pages are written first, so that the direct read finds their data on the device
            // (`kiocb_write_and_wait` of `mm/filemap.c`).
            self.push(process, [Task::PassCache { run, drop: false }, direct]);
            self.accessed(caller, process, file.object);
            return Ok(bytes);
        }
        self.threads[process].copied = bytes;
        let cuts = self.cuts(file.object, offset / PAGE_BYTES);
        self.push(
            process,
            [Task::Read(
                file.file,
                FileAccess {
                    offset,
                    bytes,
                    size,
                    cuts,
                },
            )],
        );
        self.accessed(caller, process, file.object);
        Ok(bytes)
    }

    /// Changes the access time of an object that was read, if the rule wants so (`touch_atime`).
    fn accessed(&mut self, caller: Caller, thread: u32, object: Object) {
        if self.has_no_names() || !self.access_times.read(caller.now, object) {
            return;
        }
        self.fs.accessed(caller, object, &mut self.answers.touches);
        self.follow_touches(thread);
    }

    fn write(
        &mut self,
        caller: Caller,
        process: u32,
        (fd, at, bytes): (Fd, Option<u64>, u64),
    ) -> Result<u64, CallError> {
        let file = *self.files.writable(process, fd)?;
        let size = self.fs.attributes(file.object)?.bytes.0;
        // With O_APPEND, Linux appends even if the call names an offset (`pwrite(2)`, section
        // "Bugs").
        let offset = if file.how.append {
            size
        } else {
            at.unwrap_or(file.position)
        };
        let placed = self.fs.write(
            caller,
            file.object,
            Bytes(offset),
            Bytes(bytes),
            &mut self.answers.touches,
        );
        self.follow_touches(process);
        placed?;
        if at.is_none() {
            self.files.get(process, fd)?.position = offset + bytes;
        }
        if bytes == 0 {
            return Ok(0);
        }
        let workload = self.hints(process).workload;
        self.writers.insert(file.object, workload);
        self.access_times.changed(file.object);
        if self.above_pool {
            self.copied(process, bytes);
            let direct = Task::Direct {
                object: file.object,
                offset,
                bytes,
                write: true,
            };
            self.push(process, [direct]);
        } else if file.how.direct {
            let run = pages_of(file.object, offset, bytes);
            let direct = Task::Direct {
                object: file.object,
                offset,
                bytes,
                write: true,
            };
            // Cached dirty pages are written first and dropped. Otherwise their later write-back
            // would overwrite the newer data of the direct write.
            self.push(
                process,
                [
                    Task::PassCache { run, drop: true },
                    direct,
                    Task::Invalidate(run),
                ],
            );
        } else {
            self.threads[process].copied = bytes;
            self.push(
                process,
                [Task::Write(file.file, FileAccess::new(offset, bytes, size))],
            );
        }
        if file.how.durable {
            let kind = if file.how.data_only {
                InodeChange::Data
            } else {
                InodeChange::Any
            };
            self.fsync(process, fd, kind)?;
        }
        Ok(bytes)
    }

    fn fsync(&mut self, process: u32, fd: Fd, kind: InodeChange) -> Result<u64, CallError> {
        let object = self.files.get(process, fd)?.object;
        if self.above_pool {
            self.push(process, [Task::Settle, Task::FlushFile(object)]);
            return Ok(0);
        }
        // Data before the journal (`file_write_and_wait_range` at the begin of `ext4_sync_file` and
        // `xfs_file_fsync`). Failures of earlier write-back are reported last.
        self.push(
            process,
            [
                Task::SyncObject(object),
                Task::Durable(object, kind),
                Task::Tell(fd),
            ],
        );
        Ok(0)
    }

    fn resize(
        &mut self,
        caller: Caller,
        thread: u32,
        object: Object,
        bytes: u64,
    ) -> Result<u64, CallError> {
        let cut = self
            .fs
            .truncate(caller, object, Bytes(bytes), &mut self.answers.touches);
        self.follow_touches(thread);
        cut?;
        self.access_times.changed(object);
        self.push(thread, [Task::Discard(object, bytes.div_ceil(PAGE_BYTES))]);
        self.free(thread, object, bytes);
        Ok(bytes)
    }

    fn remove(&mut self, caller: Caller, thread: u32, path: &str) -> Result<u64, CallError> {
        let object = self.find(caller, thread, path)?;
        let (directories, name) = path::split(path);
        let directory = self.walk(caller, directories)?;
        self.access_times.changed(directory);
        self.answers.touches.clear();
        if !self.files.is_open(object) {
            return self.remove_name(caller, thread, directory, name);
        }
        // The file keeps its pages until its last close, so that it needs a name until then.
        let hidden = self.files.hidden_name();
        let moved = self.fs.rename(
            caller,
            (directory, name),
            (directory, &hidden),
            &mut self.answers.touches,
        );
        self.follow_touches(thread);
        moved?;
        self.files.orphaned(object, directory, hidden);
        Ok(0)
    }

    fn remove_name(
        &mut self,
        caller: Caller,
        thread: u32,
        directory: Object,
        name: &str,
    ) -> Result<u64, CallError> {
        let gone = self
            .fs
            .remove(caller, directory, name, &mut self.answers.touches);
        self.follow_touches(thread);
        self.forget(thread, gone?);
        Ok(0)
    }

    /// Removes an object: its dirty pages are not written.
    fn forget(&mut self, thread: u32, gone: Object) {
        self.writers.remove(&gone);
        self.access_times.changed(gone);
        self.push(thread, [Task::Discard(gone, 0)]);
        self.free(thread, gone, 0);
    }

    /// Frees the records of an object from a byte on, if the object lies in a pool
    /// (`dmu_free_long_range`).
    fn free(&mut self, thread: u32, object: Object, from: u64) {
        if let Some(object) = self.fs.in_dataset(object) {
            let extent = object.from(from.div_ceil(SECTOR_BYTES));
            self.push(thread, [Task::Issue(Operation::Discard, extent, false)]);
        }
    }

    /// Counts bytes copied between the memory of the pool and a program that asks for no direct
    /// transfer. Before OpenZFS 2.3 files have no direct transfers, and O_DIRECT has no effect.
    fn copied(&mut self, process: u32, bytes: u64) {
        self.threads[process].copied = bytes;
    }

    fn rename(
        &mut self,
        caller: Caller,
        thread: u32,
        from: &str,
        to: &str,
    ) -> Result<u64, CallError> {
        let replaced = self.find(caller, thread, to).ok();
        let source = self.find(caller, thread, from)?;
        // An open target continues under a hidden name.
        if let Some(open) =
            replaced.filter(|&object| self.files.is_open(object) && object != source)
        {
            debug_assert!(self.fs.attributes(open).is_ok());
            self.remove(caller, thread, to)?;
        }
        let (old, name) = path::split(from);
        let (new, new_name) = path::split(to);
        let (old, new) = (self.walk(caller, old)?, self.walk(caller, new)?);
        let moved = self.fs.rename(
            caller,
            (old, name),
            (new, new_name),
            &mut self.answers.touches,
        );
        self.follow_touches(thread);
        moved?;
        for changed in [old, new, source] {
            self.access_times.changed(changed);
        }
        if let Some(gone) = replaced.filter(|&object| self.fs.attributes(object).is_err()) {
            self.forget(thread, gone);
        }
        Ok(0)
    }

    /// Lists a directory and reads all its pages.
    fn list(&mut self, caller: Caller, thread: u32, path: &str) -> Result<u64, CallError> {
        let object = self.find(caller, thread, path)?;
        let entries = self.fs.entries(object)?.len() as u64;
        let mut extents = std::mem::take(&mut self.answers.mapped);
        extents.clear();
        self.fs.extents(object, &mut extents)?;
        for extent in &extents {
            if let PagePlace::Device(start) = extent.place {
                let first = start.0 / PAGE_SECTORS;
                let pages = (first..first + extent.pages).map(Task::ReadPage);
                self.threads[thread].tasks.extend(pages);
            }
        }
        self.answers.mapped = extents;
        self.answers.touches.clear();
        self.accessed(caller, thread, object);
        Ok(entries)
    }
}

/// Returns the pages that hold the bytes.
fn pages_of(object: Object, offset: u64, bytes: u64) -> PageRun {
    let first = offset / PAGE_BYTES;
    PageRun::new(object, first, (offset + bytes).div_ceil(PAGE_BYTES) - first)
}
