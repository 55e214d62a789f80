//! Effect of each system call.

use super::argument::{AT_FDCWD, Arguments, field, has, number};
use super::files::{FileId, joined};
use super::line::CompletedCall;
use super::order::NameEffect;
use super::recorder::{Begin, CallRecorder, CallTreatment, ProcessId};
use super::recording::{FAILED, Flags, PathId, RecordedStep};
use crate::call::OpenFlags;

/// Maximum number of bytes in one read or write call of the kernel (`MAX_RW_COUNT`).
const ONCE_MAX: u64 = 0x7fff_f000;

/// Result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallEnd {
    /// Success with a number of 0 or more.
    Good(u64),
    /// The name does not exist (ENOENT, ENOTDIR).
    Missing,
    /// The name exists already (EEXIST).
    Taken,
    Failed,
}

impl CallEnd {
    fn of(call: &CompletedCall<'_>) -> CallEnd {
        match (call.error, call.value) {
            (Some("ENOENT" | "ENOTDIR"), _) => CallEnd::Missing,
            (Some("EEXIST"), _) => CallEnd::Taken,
            (None, Some(value)) => u64::try_from(value).map_or(CallEnd::Failed, CallEnd::Good),
            _ => CallEnd::Failed,
        }
    }
}

/// A parsed line of strace: process, time, arguments and result of a call.
#[derive(Clone, Copy)]
struct CallLine<'t> {
    process: ProcessId,
    begin: Begin,
    arguments: Arguments<'t>,
    end: CallEnd,
}

impl CallRecorder {
    /// Carries out a call other than a fork.
    pub fn carry_out(
        &mut self,
        process: ProcessId,
        begin: Begin,
        call: &CompletedCall<'_>,
    ) -> CallTreatment {
        let at = CallLine {
            process,
            begin,
            arguments: Arguments(call.arguments),
            end: CallEnd::of(call),
        };
        let done = match call.name {
            "open" => self.open_call(at, None, 0, Some(1)),
            "creat" => self.open_call(at, None, 0, None),
            "openat" | "openat2" => self.open_call(at, Some(0), 1, Some(2)),
            "close" => self.close_call(at),
            "read" | "readv" => self.read(at, 0, None),
            "pread64" | "pread" | "preadv" | "preadv2" => self.read(at, 0, Some(3)),
            "write" | "writev" => self.write(at, 0, None),
            "pwrite64" | "pwrite" | "pwritev" | "pwritev2" => self.write(at, 0, Some(3)),
            "sendfile" | "sendfile64" => self.copy(at, (1, 2), (0, usize::MAX)),
            "copy_file_range" => self.copy(at, (0, 1), (2, 3)),
            "lseek" => self.seek(at),
            "fsync" => self.fsync(at, |fd| RecordedStep::Fsync { fd }),
            "fdatasync" => self.fsync(at, |fd| RecordedStep::Fdatasync { fd }),
            "sync" | "syncfs" => Some(self.play(process, begin, RecordedStep::Sync, false, &[])),
            "truncate" | "truncate64" => self.truncate(at),
            "ftruncate" | "ftruncate64" => self.resize(at),
            "fallocate" => self.allocate(at),
            "mkdir" => self.make_directory(at, None, 0),
            "mkdirat" => self.make_directory(at, Some(0), 1),
            "rmdir" | "unlink" => self.remove(at, None, 0),
            "unlinkat" => self.remove(at, Some(0), 1),
            "rename" => self.rename(at, (None, 0), (None, 1)),
            "renameat" | "renameat2" => self.rename(at, (Some(0), 1), (Some(2), 3)),
            "link" => self.link(at, (None, 0), (None, 1)),
            "linkat" => self.link(at, (Some(0), 1), (Some(2), 3)),
            "stat" | "stat64" | "lstat" | "lstat64" | "access" | "readlink" | "execve" => {
                self.stat(at, call.name, None, 0)
            }
            "newfstatat" | "fstatat64" | "statx" | "faccessat" | "faccessat2" | "readlinkat"
            | "execveat" => self.stat(at, call.name, Some(0), 1),
            "fstat" | "fstat64" => self.known_length(at),
            "getdents" | "getdents64" => self.list(at),
            "mmap" | "mmap2" => self.map(at),
            "chdir" => self.change_directory(at),
            "fchdir" => self.change_to_open(at),
            "dup" => self.duplicate(at, false),
            "dup2" | "dup3" => self.duplicate(at, has(at.arguments.get(2), "O_CLOEXEC")),
            "fcntl" | "fcntl64" => self.control(at),
            "wait4" | "waitpid" | "waitid" => self.wait(at, call.value),
            "exit" | "exit_group" => Some(CallTreatment::Noted),
            _ => None,
        };
        done.unwrap_or(CallTreatment::Skipped)
    }

    /// Returns the path of an argument, relative to the descriptor of another argument. Returns
    /// `Err` with the outcome if the path is not carried out.
    fn path(
        &mut self,
        at: CallLine<'_>,
        directory: Option<usize>,
        place: usize,
    ) -> Result<PathId, Option<CallTreatment>> {
        let text = at.arguments.string(place).ok_or(None)?;
        let base = if text.starts_with('/') {
            String::new()
        } else {
            self.base(at, directory)?
        };
        // Paths outside `under` cost only their recorded time.
        match joined(&base, &text).filter(|path| self.inside(path)) {
            Some(path) => Ok(self.files.path(&path)),
            None => {
                self.counts.outside += 1;
                Err(Some(CallTreatment::Noted))
            }
        }
    }

    /// Returns both paths of a call with two paths.
    fn paths(
        &mut self,
        at: CallLine<'_>,
        from: (Option<usize>, usize),
        to: (Option<usize>, usize),
    ) -> Result<(PathId, PathId), Option<CallTreatment>> {
        // Both paths are read before an error of the first one returns, so that the second path
        // gets its number in any case.
        let (from, to) = (self.path(at, from.0, from.1), self.path(at, to.0, to.1));
        Ok((from?, to?))
    }

    fn base(
        &mut self,
        at: CallLine<'_>,
        directory: Option<usize>,
    ) -> Result<String, Option<CallTreatment>> {
        let descriptor = directory.and_then(|place| at.arguments.descriptor(place));
        match descriptor {
            Some((AT_FDCWD, Some(path))) => Ok(path.to_owned()),
            None | Some((AT_FDCWD, None)) => {
                let directory = self.table(at.process).directory;
                Ok(self.files.text(directory).to_owned())
            }
            Some(descriptor) => {
                let open = self
                    .descriptor(at.process, descriptor)
                    .ok_or(Some(CallTreatment::Noted))?;
                let name = self
                    .files
                    .name(self.opens[open as usize].file)
                    .ok_or(None)?;
                Ok(self.files.text(name).to_owned())
            }
        }
    }

    /// Returns the open file of an argument; `None` if the descriptor is not a known file.
    fn opened(&mut self, at: CallLine<'_>, place: usize) -> Option<u32> {
        let descriptor = at
            .arguments
            .descriptor(place)
            .filter(|(number, _)| *number != AT_FDCWD)?;
        self.descriptor(at.process, descriptor)
    }

    fn file(&self, open: u32) -> FileId {
        self.opens[open as usize].file
    }

    /// Repeats a call with a missing name. The name is missing here too.
    fn missed(&mut self, at: CallLine<'_>, path: PathId, step: RecordedStep) -> CallTreatment {
        if at.end == CallEnd::Missing {
            self.files.missing(path);
        }
        self.play(at.process, at.begin, step, true, &[NameEffect::Uses(path)])
    }

    fn open_call(
        &mut self,
        at: CallLine<'_>,
        directory: Option<usize>,
        place: usize,
        flags: Option<usize>,
    ) -> Option<CallTreatment> {
        let path = match self.path(at, directory, place) {
            Ok(path) => path,
            Err(outcome) => return outcome,
        };
        let flags = flags.map(|place| at.arguments.get(place));
        let how = flags.map_or(OpenFlags::CREATE, how);
        let CallEnd::Good(number) = at.end else {
            // An exclusive open of an existing file is repeated, because it fails here too.
            let exclusive = at.end == CallEnd::Taken && how.exclusive;
            return (at.end == CallEnd::Missing || exclusive).then(|| {
                let how = OpenFlags {
                    create: exclusive,
                    exclusive,
                    ..OpenFlags::READ
                };
                if exclusive {
                    self.files.there(path);
                }
                self.missed(
                    at,
                    path,
                    RecordedStep::Open {
                        path,
                        fd: FAILED,
                        flags: Flags::new(how),
                    },
                )
            });
        };
        let number = i32::try_from(number).ok()?;
        let flags = flags.unwrap_or_default();
        if has(flags, "O_TMPFILE") {
            return Some(self.open_nameless(at, path, number, how));
        }
        let (file, made) = self.files.opened(path, how.create, how.truncate);
        if has(flags, "O_DIRECTORY") {
            self.files.is_directory(file);
        }
        let touches: &[NameEffect] = match (made, how.truncate) {
            // A created name orders later calls by this name; a truncation orders writes of the
            // file.
            (true, _) => &[NameEffect::Changes(path), NameEffect::Writes(file)],
            (false, true) => &[NameEffect::Uses(path), NameEffect::Writes(file)],
            (false, false) => &[NameEffect::Uses(path)],
        };
        // Before `enter`, because `enter` may close the old file of this number.
        let open = self.open(at.process, file, how);
        let (played, how) = (
            self.files.played(path),
            OpenFlags {
                create: how.create || made,
                ..how
            },
        );
        let step = RecordedStep::Open {
            path: played,
            fd: open + 1,
            flags: Flags::new(how),
        };
        let outcome = self.play(at.process, at.begin, step, false, touches);
        self.enter(at.process, number, open, has(flags, "O_CLOEXEC"));
        Some(outcome)
    }

    /// Handles `O_TMPFILE`: a file in a directory, without a name. The player creates the file with
    /// a name and removes the name.
    fn open_nameless(
        &mut self,
        at: CallLine<'_>,
        directory: PathId,
        number: i32,
        how: OpenFlags,
    ) -> CallTreatment {
        let text = format!("{}/#tmpfile-{}", self.files.text(directory), at.begin.line);
        let path = self.files.path(text.trim_start_matches('/'));
        let file = self.files.made(path, false);
        let open = self.open(at.process, file, how);
        let step = RecordedStep::Open {
            path,
            fd: open + 1,
            flags: Flags::new(OpenFlags::CREATE),
        };
        self.play(
            at.process,
            at.begin,
            step,
            false,
            &[NameEffect::Uses(directory)],
        );
        self.enter(at.process, number, open, true);
        self.files.removed(path);
        self.play(
            at.process,
            at.begin,
            RecordedStep::Remove { path },
            false,
            &[],
        )
    }

    fn close_call(&mut self, at: CallLine<'_>) -> Option<CallTreatment> {
        let (number, _) = at.arguments.descriptor(0)?;
        // Descriptors that are not files are closed as well.
        Some(if self.close(at.process, number) {
            CallTreatment::Played
        } else {
            CallTreatment::Noted
        })
    }

    /// Returns the place of a transfer of `done` bytes: the argument `offset`, or the position. The
    /// position then advances.
    fn transferred(
        &mut self,
        at: CallLine<'_>,
        open: u32,
        offset: Option<usize>,
        done: u64,
    ) -> u64 {
        let said = offset
            .and_then(|place| at.arguments.number(place))
            .and_then(|from| u64::try_from(from).ok());
        let one = &mut self.opens[open as usize];
        match said {
            Some(from) => from,
            None => {
                let from = one.position;
                one.position = from.saturating_add(done);
                from
            }
        }
    }

    fn read(
        &mut self,
        at: CallLine<'_>,
        place: usize,
        offset: Option<usize>,
    ) -> Option<CallTreatment> {
        let CallEnd::Good(done) = at.end else {
            return None;
        };
        let Some(open) = self.opened(at, place) else {
            return Some(CallTreatment::Noted);
        };
        let from = self.transferred(at, open, offset, done);
        let file = self.file(open);
        if done > 0 {
            // A read proves that the file had at least this length.
            self.files.reaches(file, from.saturating_add(done));
        }
        if !self.at_hand(at.process, at.begin, open) {
            return None;
        }
        // The length of a vector is unknown. For a plain read, the requested length is played,
        // which the end of the file may cut short.
        let asked = at
            .arguments
            .number(2)
            .and_then(|asked| u64::try_from(asked).ok());
        let vector = at.arguments.get(1).starts_with('[');
        let bytes = if vector {
            done
        } else {
            // A call that returned more than it asked for is a misread line; the returned length
            // then counts.
            asked.unwrap_or(done).max(done).min(ONCE_MAX)
        };
        let step = RecordedStep::Read {
            fd: open + 1,
            at: from,
            bytes,
        };
        Some(self.play(
            at.process,
            at.begin,
            step,
            false,
            &[NameEffect::Reads(file)],
        ))
    }

    fn write(
        &mut self,
        at: CallLine<'_>,
        place: usize,
        offset: Option<usize>,
    ) -> Option<CallTreatment> {
        let CallEnd::Good(done) = at.end else {
            return None;
        };
        let Some(open) = self.opened(at, place) else {
            return Some(CallTreatment::Noted);
        };
        Some(self.written(at, open, offset, done))
    }

    fn written(
        &mut self,
        at: CallLine<'_>,
        open: u32,
        offset: Option<usize>,
        done: u64,
    ) -> CallTreatment {
        let from = self.transferred(at, open, offset, done);
        let (file, fd) = (self.file(open), open + 1);
        if !self.at_hand(at.process, at.begin, open) {
            return CallTreatment::Skipped;
        }
        // O_APPEND ignores the position: the end of the file decides.
        let (step, end) = if self.opens[open as usize].how.append {
            (
                RecordedStep::Append { fd, bytes: done },
                self.files.length(file).saturating_add(done),
            )
        } else {
            (
                RecordedStep::Write {
                    fd,
                    at: from,
                    bytes: done,
                },
                from.saturating_add(done),
            )
        };
        self.files.written(file, end);
        // After an append the position is the new end (write(2)).
        if self.opens[open as usize].how.append {
            self.opens[open as usize].position = end;
        }
        self.play(
            at.process,
            at.begin,
            step,
            false,
            &[NameEffect::Writes(file)],
        )
    }

    /// Handles a copy from one file to another within the kernel as a read and a write.
    fn copy(
        &mut self,
        at: CallLine<'_>,
        from: (usize, usize),
        to: (usize, usize),
    ) -> Option<CallTreatment> {
        let CallEnd::Good(done) = at.end else {
            return None;
        };
        let (source, target) = (self.opened(at, from.0), self.opened(at, to.0));
        if source.is_none() && target.is_none() {
            return Some(CallTreatment::Noted);
        }
        if let Some(open) = source {
            let first = self.transferred(at, open, Some(from.1), done);
            let file = self.file(open);
            if done > 0 {
                self.files.reaches(file, first.saturating_add(done));
            }
            if self.at_hand(at.process, at.begin, open) {
                let step = RecordedStep::Read {
                    fd: open + 1,
                    at: first,
                    bytes: done,
                };
                self.play(
                    at.process,
                    at.begin,
                    step,
                    false,
                    &[NameEffect::Reads(file)],
                );
            }
        }
        // A copy of no bytes would be a write of length 0.
        if let Some(open) = target.filter(|_| done > 0) {
            self.written(at, open, Some(to.1), done);
        }
        Some(CallTreatment::Played)
    }

    fn seek(&mut self, at: CallLine<'_>) -> Option<CallTreatment> {
        let CallEnd::Good(to) = at.end else {
            return None;
        };
        let Some(open) = self.opened(at, 0) else {
            return Some(CallTreatment::Noted);
        };
        self.opens[open as usize].position = to;
        // SEEK_END returns the length plus the offset, so the length is known.
        if at.arguments.get(2) == "SEEK_END" {
            let beyond = at.arguments.number(1).unwrap_or(0);
            let length = i64::try_from(to).ok().and_then(|to| to.checked_sub(beyond));
            let length = length.and_then(|length| u64::try_from(length).ok());
            let file = self.file(open);
            self.files.reaches(file, length.unwrap_or(0));
        }
        Some(CallTreatment::Noted)
    }

    fn fsync(&mut self, at: CallLine<'_>, step: fn(u32) -> RecordedStep) -> Option<CallTreatment> {
        let CallEnd::Good(_) = at.end else {
            return None;
        };
        let Some(open) = self.opened(at, 0) else {
            return Some(CallTreatment::Noted);
        };
        self.at_hand(at.process, at.begin, open)
            .then(|| self.play(at.process, at.begin, step(open + 1), false, &[]))
    }

    fn truncate(&mut self, at: CallLine<'_>) -> Option<CallTreatment> {
        let bytes = u64::try_from(at.arguments.number(1)?).ok()?;
        let path = match self.path(at, None, 0) {
            Ok(path) => path,
            Err(outcome) => return outcome,
        };
        match at.end {
            CallEnd::Good(_) => {
                let file = self.files.there(path);
                self.files.resized(file, bytes);
                let step = RecordedStep::Truncate {
                    path: self.files.played(path),
                    bytes,
                };
                let touches = [NameEffect::Uses(path), NameEffect::Writes(file)];
                Some(self.play(at.process, at.begin, step, false, &touches))
            }
            CallEnd::Missing => Some(self.missed(at, path, RecordedStep::Truncate { path, bytes })),
            CallEnd::Taken | CallEnd::Failed => None,
        }
    }

    fn resize(&mut self, at: CallLine<'_>) -> Option<CallTreatment> {
        let CallEnd::Good(_) = at.end else {
            return None;
        };
        let bytes = u64::try_from(at.arguments.number(1)?).ok()?;
        let Some(open) = self.opened(at, 0) else {
            return Some(CallTreatment::Noted);
        };
        self.resized(at, open, bytes)
    }

    fn resized(&mut self, at: CallLine<'_>, open: u32, bytes: u64) -> Option<CallTreatment> {
        let file = self.file(open);
        self.files.resized(file, bytes);
        let step = RecordedStep::Resize {
            fd: open + 1,
            bytes,
        };
        self.at_hand(at.process, at.begin, open).then(|| {
            self.play(
                at.process,
                at.begin,
                step,
                false,
                &[NameEffect::Writes(file)],
            )
        })
    }

    /// Handles an allocation. An extension of the file changes the length here.
    fn allocate(&mut self, at: CallLine<'_>) -> Option<CallTreatment> {
        // Only mode 0 is an ordinary allocation.
        let (CallEnd::Good(_), "0") = (at.end, at.arguments.get(1)) else {
            return None;
        };
        let part = |place| {
            at.arguments
                .number(place)
                .and_then(|bytes| u64::try_from(bytes).ok())
        };
        let end = part(2)?.checked_add(part(3)?)?;
        let Some(open) = self.opened(at, 0) else {
            return Some(CallTreatment::Noted);
        };
        self.counts.allocated += 1;
        // An allocation within the length changes no length, and the player has no preallocation.
        if end <= self.files.length(self.file(open)) {
            return Some(CallTreatment::Noted);
        }
        self.resized(at, open, end)
    }

    fn make_directory(
        &mut self,
        at: CallLine<'_>,
        directory: Option<usize>,
        place: usize,
    ) -> Option<CallTreatment> {
        let path = match self.path(at, directory, place) {
            Ok(path) => path,
            Err(outcome) => return outcome,
        };
        let step = RecordedStep::MakeDirectory { path };
        match at.end {
            CallEnd::Good(_) => {
                self.files.made(path, true);
                Some(self.play(
                    at.process,
                    at.begin,
                    step,
                    false,
                    &[NameEffect::Changes(path)],
                ))
            }
            // A directory that could not be made because it exists was there before the recording.
            CallEnd::Taken => {
                let file = self.files.there(path);
                self.files.is_directory(file);
                Some(self.missed(at, path, step))
            }
            CallEnd::Missing => Some(self.missed(at, path, step)),
            CallEnd::Failed => None,
        }
    }

    fn remove(
        &mut self,
        at: CallLine<'_>,
        directory: Option<usize>,
        place: usize,
    ) -> Option<CallTreatment> {
        let path = match self.path(at, directory, place) {
            Ok(path) => path,
            Err(outcome) => return outcome,
        };
        match at.end {
            CallEnd::Good(_) => {
                let Some(step) = self.files.removed(path) else {
                    return Some(CallTreatment::Noted);
                };
                Some(self.play(at.process, at.begin, step, false, &changes(step)))
            }
            CallEnd::Missing => Some(self.missed(at, path, RecordedStep::Remove { path })),
            CallEnd::Taken | CallEnd::Failed => None,
        }
    }

    fn rename(
        &mut self,
        at: CallLine<'_>,
        from: (Option<usize>, usize),
        to: (Option<usize>, usize),
    ) -> Option<CallTreatment> {
        // No step exchanges two names.
        if has(at.arguments.get(4), "RENAME_EXCHANGE") {
            return None;
        }
        let (from, to) = match self.paths(at, from, to) {
            Ok(paths) => paths,
            Err(outcome) => return outcome,
        };
        match at.end {
            CallEnd::Good(_) => {
                let mut outcome = CallTreatment::Noted;
                for step in self.files.renamed(from, to) {
                    outcome = self.play(at.process, at.begin, step, false, &changes(step));
                }
                Some(outcome)
            }
            CallEnd::Missing => Some(self.missed(at, from, RecordedStep::Rename { from, to })),
            CallEnd::Taken | CallEnd::Failed => None,
        }
    }

    /// Records a second name. The player has no hard links; only the order of later calls by this
    /// name matters.
    fn link(
        &mut self,
        at: CallLine<'_>,
        from: (Option<usize>, usize),
        to: (Option<usize>, usize),
    ) -> Option<CallTreatment> {
        let CallEnd::Good(_) = at.end else {
            return None;
        };
        let (from, to) = match self.paths(at, from, to) {
            Ok(paths) => paths,
            Err(outcome) => return outcome,
        };
        self.files.linked(from, to);
        self.counts.linked += 1;
        self.play(
            at.process,
            at.begin,
            RecordedStep::Nothing,
            false,
            &[NameEffect::Uses(from), NameEffect::Changes(to)],
        );
        // The outcome is "skipped", so that the notes count hard links.
        None
    }

    fn stat(
        &mut self,
        at: CallLine<'_>,
        name: &str,
        directory: Option<usize>,
        place: usize,
    ) -> Option<CallTreatment> {
        // An empty path means the descriptor itself (`AT_EMPTY_PATH`).
        if at.arguments.get(place) == "\"\"" {
            return self.known_length(at);
        }
        let path = match self.path(at, directory, place) {
            Ok(path) => path,
            Err(outcome) => return outcome,
        };
        let executes = name.starts_with("exec");
        match at.end {
            CallEnd::Good(_) => {
                let file = self.files.there(path);
                // The argument of `exec` has no `struct stat`.
                if !executes {
                    self.learn(file, at.arguments);
                }
            }
            CallEnd::Missing => return Some(self.missed(at, path, RecordedStep::Stat { path })),
            // `readlink` fails for a file that exists and is not a symbolic link.
            CallEnd::Failed if name.starts_with("readlink") => _ = self.files.there(path),
            CallEnd::Taken | CallEnd::Failed => return None,
        }
        let step = RecordedStep::Stat {
            path: self.files.played(path),
        };
        let outcome = self.play(at.process, at.begin, step, false, &[NameEffect::Uses(path)]);
        if executes {
            self.executed(at.process);
        }
        Some(outcome)
    }

    /// Records the contents of `struct stat`.
    fn learn(&mut self, file: FileId, arguments: Arguments<'_>) {
        let Some(from) = arguments
            .0
            .find("{st")
            .filter(|_| arguments.0.contains("_mode=S_IF"))
        else {
            return;
        };
        let text = &arguments.0[from..];
        if text.contains("S_IFDIR") {
            return self.files.is_directory(file);
        }
        let size = field(text, "st_size").or_else(|| field(text, "stx_size"));
        let size = size.and_then(|size| u64::try_from(size).ok());
        if let Some(size) = size.filter(|_| text.contains("S_IFREG")) {
            self.files.reaches(file, size);
        }
    }

    /// An execution of another program closes the descriptors with close-on-exec.
    fn executed(&mut self, process: ProcessId) {
        let entries = &self.table(process).entries;
        let numbers: Vec<i32> = entries
            .iter()
            .filter(|(_, entry)| entry.closes_on_exec)
            .map(|(&number, _)| number)
            .collect();
        numbers
            .into_iter()
            .for_each(|number| _ = self.close(process, number));
    }

    /// Handles `fstat(2)`. The call needs no disk access.
    fn known_length(&mut self, at: CallLine<'_>) -> Option<CallTreatment> {
        let CallEnd::Good(_) = at.end else {
            return None;
        };
        let (number, _) = at.arguments.descriptor(0)?;
        let open = self
            .table(at.process)
            .entries
            .get(&number)
            .map(|entry| entry.open);
        if let Some(open) = open {
            let file = self.file(open);
            self.learn(file, at.arguments);
        }
        Some(CallTreatment::Noted)
    }

    /// The first of several calls lists all entries.
    fn list(&mut self, at: CallLine<'_>) -> Option<CallTreatment> {
        let CallEnd::Good(_) = at.end else {
            return None;
        };
        let Some(open) = self.opened(at, 0) else {
            return Some(CallTreatment::Noted);
        };
        let file = self.file(open);
        self.files.is_directory(file);
        // The second call finds the end of the directory.
        let again = std::mem::replace(&mut self.opens[open as usize].position, 1) > 0;
        let path = self.files.name(file).filter(|_| !again);
        Some(path.map_or(CallTreatment::Noted, |path| {
            self.play(
                at.process,
                at.begin,
                RecordedStep::List { path },
                false,
                &[NameEffect::Uses(path)],
            )
        }))
    }

    fn map(&mut self, at: CallLine<'_>) -> Option<CallTreatment> {
        let (number, _) = at.arguments.descriptor(4)?;
        self.table(at.process).entries.get(&number)?;
        self.counts.mapped.0 += 1;
        let bytes = at
            .arguments
            .number(1)
            .and_then(|bytes| u64::try_from(bytes).ok())
            .unwrap_or(0);
        self.counts.mapped.1 = self.counts.mapped.1.saturating_add(bytes);
        Some(CallTreatment::Noted)
    }

    fn change_directory(&mut self, at: CallLine<'_>) -> Option<CallTreatment> {
        let path = match self.path(at, None, 0) {
            Ok(path) => path,
            Err(outcome) => return outcome,
        };
        match at.end {
            CallEnd::Good(_) => {
                let file = self.files.there(path);
                self.files.is_directory(file);
                self.table(at.process).directory = path;
                let step = RecordedStep::Stat {
                    path: self.files.played(path),
                };
                Some(self.play(at.process, at.begin, step, false, &[NameEffect::Uses(path)]))
            }
            CallEnd::Missing => Some(self.missed(at, path, RecordedStep::Stat { path })),
            CallEnd::Taken | CallEnd::Failed => None,
        }
    }

    fn change_to_open(&mut self, at: CallLine<'_>) -> Option<CallTreatment> {
        let CallEnd::Good(_) = at.end else {
            return None;
        };
        if let Some(path) = self
            .opened(at, 0)
            .and_then(|open| self.files.name(self.file(open)))
        {
            self.table(at.process).directory = path;
        }
        Some(CallTreatment::Noted)
    }

    fn duplicate(&mut self, at: CallLine<'_>, closes_on_exec: bool) -> Option<CallTreatment> {
        let CallEnd::Good(new) = at.end else {
            return None;
        };
        let new = i32::try_from(new).ok()?;
        let (old, _) = at.arguments.descriptor(0)?;
        let open = self
            .table(at.process)
            .entries
            .get(&old)
            .map(|entry| entry.open);
        match open {
            _ if old == new => {}
            Some(open) => self.enter(at.process, new, open, closes_on_exec),
            // A descriptor that is not a file has taken the number.
            None => _ = self.close(at.process, new),
        }
        Some(CallTreatment::Noted)
    }

    fn control(&mut self, at: CallLine<'_>) -> Option<CallTreatment> {
        match at.arguments.get(1) {
            "F_DUPFD" => self.duplicate(at, false),
            "F_DUPFD_CLOEXEC" => self.duplicate(at, true),
            "F_SETFD" => {
                let (number, _) = at.arguments.descriptor(0)?;
                let closes = has(at.arguments.get(2), "FD_CLOEXEC");
                let entry = self.table(at.process).entries.get_mut(&number);
                entry
                    .into_iter()
                    .for_each(|entry| entry.closes_on_exec = closes);
                Some(CallTreatment::Noted)
            }
            _ => None,
        }
    }

    fn wait(&mut self, at: CallLine<'_>, value: Option<i64>) -> Option<CallTreatment> {
        let told = || {
            let (_, digits) = at.arguments.0.split_once("si_pid=")?;
            number(digits.split([',', '}']).next()?)
        };
        // `waitid` returns 0 and names the child in `si_pid`.
        let pid = value.filter(|&pid| pid > 0).or_else(told)?;
        self.waited_for(at.process, u32::try_from(pid).ok()?)
            .then_some(CallTreatment::Waited)
    }
}

/// Returns the created and removed names of a step.
fn changes(step: RecordedStep) -> Vec<NameEffect> {
    match step {
        RecordedStep::Rename { from, to } => {
            vec![NameEffect::Changes(from), NameEffect::Changes(to)]
        }
        RecordedStep::Remove { path } => vec![NameEffect::Changes(path)],
        _ => Vec::new(),
    }
}

fn how(flags: &str) -> OpenFlags {
    let create = has(flags, "O_CREAT");
    OpenFlags {
        write: has(flags, "O_WRONLY") || has(flags, "O_RDWR"),
        create,
        exclusive: create && has(flags, "O_EXCL"),
        truncate: has(flags, "O_TRUNC"),
        append: has(flags, "O_APPEND"),
        direct: has(flags, "O_DIRECT"),
        durable: has(flags, "O_SYNC") || has(flags, "O_DSYNC"),
        data_only: has(flags, "O_DSYNC") && !has(flags, "O_SYNC"),
    }
}
