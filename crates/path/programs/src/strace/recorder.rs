//! State of a recording while it is read: processes, their time, their descriptors, and their
//! steps.

use super::argument::has;
use super::files::{FileId, NamedFiles, joined, within};
use super::line::CompletedCall;
use super::notes::{NoteCounts, notes};
use super::order::{CallOrder, NameEffect};
use super::recording::{Flags, Lane, LanePlace, PathId, RecordedCall, RecordedStep, Recording};
use crate::call::OpenFlags;
use std::collections::{BTreeMap, BTreeSet};

/// Index of a process or thread of the recording.
pub(super) type ProcessId = usize;

#[derive(Debug)]
pub(super) struct TracedProcess {
    pub pid: Option<u32>,
    lane: u32,
    table: usize,
    /// Time when the latest call ended.
    pub last_end: u64,
    /// Beginning of the latest call, if its duration is unknown.
    pub unmeasured: Option<u64>,
    /// Own time since the latest record.
    pub own: u64,
    pending: Option<UnfinishedCall>,
    /// Duration of the latest call, if a signal interrupted it; otherwise 0.
    pub interrupted: u64,
    /// Lanes of ended children for which this process has waited. A new child may use such a lane.
    free: Vec<u32>,
    parent: Option<ProcessId>,
    born_line: u32,
}

/// A call that has begun and has not ended.
#[derive(Debug)]
pub(super) struct UnfinishedCall {
    pub name: String,
    pub arguments: String,
    pub begin: Begin,
}

/// Time and line of the beginning of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begin {
    pub at: u64,
    pub line: u32,
}

/// Descriptors and the working directory; threads share a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub entries: BTreeMap<i32, DescriptorEntry>,
    pub directory: PathId,
    users: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct DescriptorEntry {
    pub open: u32,
    pub closes_on_exec: bool,
}

/// An open file. Its index plus 1 is its descriptor in the player.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub file: FileId,
    pub position: u64,
    pub how: OpenFlags,
    /// Number of table entries for the open file.
    entries: u32,
    /// Lanes in which the file is open.
    lanes: Vec<u32>,
}

/// Turns calls into records.
#[derive(Debug)]
pub(super) struct CallRecorder {
    /// Only files under this directory are carried out.
    under: String,
    /// Directory that is the root in the player.
    mount: String,
    pub files: NamedFiles,
    order: CallOrder,
    lanes: Vec<Lane>,
    /// For each lane, the progress of other lanes that its earlier waits guarantee.
    known: Vec<BTreeMap<u32, u32>>,
    pub processes: Vec<TracedProcess>,
    pub by_pid: BTreeMap<u32, ProcessId>,
    /// Ended processes for which no process has waited yet.
    ended: BTreeMap<u32, ProcessId>,
    /// Processes that have not ended.
    alive: BTreeSet<ProcessId>,
    /// Process with a still unknown pid.
    pub unnamed: Option<ProcessId>,
    /// Processes that have begun to fork, with no line of the child so far; by line.
    forking: BTreeSet<(u32, ProcessId)>,
    pub tables: Vec<Table>,
    pub opens: Vec<Open>,
    free_opens: Vec<u32>,
    pub counts: NoteCounts,
    /// Present line, from 1.
    pub line: u32,
    pub first_at: Option<u64>,
    pub last_at: u64,
    pub calls: u64,
    pub calls_took: u64,
}

/// Treatment of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallTreatment {
    /// The call is carried out. The model decides its duration.
    Played,
    /// The call only asks for information about files. The model takes the recorded duration.
    Noted,
    /// The model has no such call. The model takes the recorded duration and counts the call.
    Skipped,
    /// The call waited for another process.
    Waited,
}

/// True for `fork(2)` and similar calls.
pub(super) fn forks(name: &str) -> bool {
    matches!(name, "fork" | "vfork" | "clone" | "clone3" | "clone2")
}

impl CallRecorder {
    /// Returns a recorder. `directory` is the program's first directory; only calls on files under
    /// `under` and under `mount` are carried out. `mount` is the root of the file system.
    pub fn new(directory: &str, under: &str, mount: &str) -> CallRecorder {
        let mut files = NamedFiles::new();
        let text = joined("", directory).unwrap_or_default();
        let directory = files.path(&text);
        let file = files.there(directory);
        // Without pids in the lines, only one living process can be meant.
        files.is_directory(file);
        CallRecorder {
            under: joined("", under).unwrap_or_default(),
            mount: joined("", mount).unwrap_or_default(),
            files,
            order: CallOrder::default(),
            lanes: Vec::new(),
            known: Vec::new(),
            processes: Vec::new(),
            by_pid: BTreeMap::new(),
            ended: BTreeMap::new(),
            alive: BTreeSet::new(),
            unnamed: None,
            forking: BTreeSet::new(),
            tables: vec![Table {
                directory,
                ..Table::default()
            }],
            opens: Vec::new(),
            free_opens: Vec::new(),
            counts: NoteCounts::default(),
            line: 0,
            first_at: None,
            last_at: 0,
            calls: 0,
            calls_took: 0,
        }
    }

    /// Returns the only process that has not ended.
    pub fn alone(&self) -> Option<ProcessId> {
        self.alive
            .first()
            .copied()
            .filter(|_| self.alive.len() == 1)
    }

    /// Returns the latest process that has begun to fork, with no line of the child so far.
    pub fn expecting(&self) -> Option<ProcessId> {
        self.forking.last().map(|&(_, process)| process)
    }

    /// Records the beginning of a call. Its end follows later.
    pub fn begin_call(&mut self, process: ProcessId, name: &str, arguments: &str, begin: Begin) {
        self.forget_call(process);
        // The own time of the parent before the fork must pass before the child begins.
        if forks(name) {
            self.flush(process);
            self.forking.insert((begin.line, process));
        }
        let (name, arguments) = (name.to_owned(), arguments.to_owned());
        self.processes[process].pending = Some(UnfinishedCall {
            name,
            arguments,
            begin,
        });
    }

    /// Returns the begun call of a process.
    pub fn pending(&self, process: ProcessId) -> Option<&UnfinishedCall> {
        self.processes[process].pending.as_ref()
    }

    /// Forgets the begun call: it has ended, or its end will never be known.
    pub fn forget_call(&mut self, process: ProcessId) {
        self.settles_fork(process);
        self.processes[process].pending = None;
    }

    /// If the process forks, records the appearance of its child.
    fn settles_fork(&mut self, process: ProcessId) {
        if let Some(pending) = &self.processes[process].pending {
            self.forking.remove(&(pending.begin.line, process));
        }
    }

    pub fn born(&mut self, parent: Option<ProcessId>, pid: Option<u32>, at: u64) -> ProcessId {
        let process = self.processes.len();
        let (lane, table, since) = match parent {
            Some(parent) => self.inherited(parent),
            None => (
                self.new_lane(None),
                self.new_table(self.tables[0].clone()),
                // A process without a known parent counts its own time from the beginning of the
                // recording.
                self.first_at.unwrap_or(at),
            ),
        };
        if let Some(parent) = parent {
            self.settles_fork(parent);
        }
        self.processes.push(TracedProcess {
            pid,
            lane,
            table,
            last_end: since,
            unmeasured: None,
            own: 0,
            pending: None,
            interrupted: 0,
            free: Vec::new(),
            parent,
            born_line: self.line,
        });
        assert!(
            (lane as usize) < self.lanes.len() && table < self.tables.len(),
            "process {process} is born in lane {lane} with table {table}, which are not there"
        );
        self.alive.insert(process);
        match pid {
            Some(pid) => _ = self.by_pid.insert(pid, process),
            None => self.unnamed = Some(process),
        }
        process
    }

    /// Returns a child's lane, its descriptor table, and the time of the fork. If the parent has
    /// waited for an earlier child, the new child takes the lane of the earlier child.
    fn inherited(&mut self, parent: ProcessId) -> (u32, usize, u64) {
        let place = self.place(self.processes[parent].lane);
        let pending = self.processes[parent].pending.as_ref();
        let shares = pending.is_some_and(|pending| has(&pending.arguments, "CLONE_FILES"));
        let since = pending.map_or(self.last_at, |pending| pending.begin.at);
        let lane = match self.processes[parent].free.pop() {
            // A lane per child would need a process of the model per compiler call of a build.
            // Children that follow each other share a lane.
            Some(lane) => {
                self.append(
                    lane,
                    RecordedCall {
                        own: 0,
                        line: self.line,
                        fails: false,
                        step: RecordedStep::After(place),
                    },
                );
                lane
            }
            None => self.new_lane(Some(place)),
        };
        let table = self.processes[parent].table;
        if shares {
            // With CLONE_FILES the child has the parent's descriptors, not a copy of them.
            self.tables[table].users += 1;
            return (lane, table, since);
        }
        let copy = self.tables[table].clone();
        // A descriptor of the copy keeps the open file open, as after fork(2).
        copy.entries
            .values()
            .for_each(|entry| self.opens[entry.open as usize].entries += 1);
        (lane, self.new_table(copy), since)
    }

    fn new_lane(&mut self, after: Option<LanePlace>) -> u32 {
        self.lanes.push(Lane {
            after,
            records: Vec::new(),
        });
        self.known.push(BTreeMap::new());
        (self.lanes.len() - 1) as u32
    }

    fn new_table(&mut self, table: Table) -> usize {
        self.tables.push(Table { users: 1, ..table });
        self.tables.len() - 1
    }

    pub fn table(&mut self, process: ProcessId) -> &mut Table {
        let table = self.processes[process].table;
        &mut self.tables[table]
    }

    /// Returns the present end of a lane.
    fn place(&self, lane: u32) -> LanePlace {
        LanePlace {
            lane,
            records: self.lanes[lane as usize].records.len() as u32,
        }
    }

    fn append(&mut self, lane: u32, record: RecordedCall) {
        self.lanes[lane as usize].records.push(record);
    }

    /// Records the beginning of a call. The time since the latest call is own time.
    pub fn begin(&mut self, process: ProcessId, at: u64) {
        let process = &mut self.processes[process];
        process.own = process
            // Times of a damaged recording may go back; the own time is then 0.
            .own
            .saturating_add(at.saturating_sub(process.last_end));
        process.last_end = process.last_end.max(at);
        process.interrupted = 0;
    }

    /// Links a child to its parent, if the child appeared first. The child begins after the fork.
    fn adopt(&mut self, parent: ProcessId, child: ProcessId, begin: Begin) {
        let place = self.place(self.processes[parent].lane);
        let one = &mut self.processes[child];
        let lane = &mut self.lanes[one.lane as usize];
        if one.parent.is_some()
            || lane.after.is_some()
            || one.born_line < begin.line
            || child == parent
        // A child that was seen before its parent's fork ended is linked once. A lane that already
        // waits, or that is older than the fork, belongs to another parent.
        {
            return;
        }
        one.parent = Some(parent);
        lane.after = Some(place);
        // The own time of the child was counted from the beginning of the recording.
        let waited = begin.at.saturating_sub(self.first_at.unwrap_or(begin.at));
        let own = lane
            .records
            .first_mut()
            .map_or(&mut one.own, |record| &mut record.own);
        *own = own.saturating_sub(waited);
    }

    /// Records the end of a child, as reported by a wait. Returns false if the child is unknown.
    pub fn waited_for(&mut self, process: ProcessId, pid: u32) -> bool {
        if let Some(&child) = self.by_pid.get(&pid).filter(|&&child| child != process) {
            let place = self.place(self.processes[child].lane);
            self.after(process, place);
            return true;
        }
        let Some(child) = self.ended.remove(&pid).filter(|&child| child != process) else {
            return false;
        };
        let lane = self.processes[child].lane;
        self.after(process, self.place(lane));
        // Lanes freed by the child's own children become free for the parent's next children.
        let free = std::mem::take(&mut self.processes[child].free);
        self.processes[process].free.extend(free);
        self.processes[process].free.push(lane);
        true
    }

    /// Appends a record for own time alone.
    fn flush(&mut self, process: ProcessId) {
        if self.processes[process].own > 0 {
            self.push(process, RecordedStep::Nothing, false);
        }
    }

    /// Appends a wait until another lane has reached `place`.
    fn after(&mut self, process: ProcessId, place: LanePlace) {
        let lane = self.processes[process].lane;
        let known = self.known[lane as usize].entry(place.lane).or_default();
        // A wait for a place that an earlier wait guarantees would only cost a record.
        if lane == place.lane || *known >= place.records {
            return self.flush(process);
        }
        debug_assert!(
            place.records as usize <= self.lanes[place.lane as usize].records.len(),
            "lane {lane} waits for record {} of lane {}, which is not there",
            place.records,
            place.lane
        );
        *known = place.records;
        self.push(process, RecordedStep::After(place), false);
    }

    fn push(&mut self, process: ProcessId, step: RecordedStep, fails: bool) {
        let own = std::mem::take(&mut self.processes[process].own);
        let lane = self.processes[process].lane;
        self.append(
            lane,
            RecordedCall {
                own,
                line: self.line,
                fails,
                step,
            },
        );
    }

    /// Appends a call after its necessary waits.
    pub fn play(
        &mut self,
        process: ProcessId,
        begin: Begin,
        step: RecordedStep,
        fails: bool,
        touches: &[NameEffect],
    ) -> CallTreatment {
        let lane = self.processes[process].lane;
        // Waits come before the call, because they were over when the call began in the recording.
        for place in self.order.before(&self.files, touches, lane, begin.line) {
            self.after(process, place);
        }
        self.push(process, step, fails);
        // Noted after the record was appended: later calls wait until this call has ended.
        let place = self.place(lane);
        self.order.note(&self.files, touches, place, self.line);
        CallTreatment::Played
    }

    /// True if files at this path are carried out.
    pub fn inside(&self, text: &str) -> bool {
        let first = text.split('/').next().unwrap_or_default();
        // These are no files of a disk.
        !matches!(first, "proc" | "sys" | "dev")
            && within(text, &self.under).is_some()
            && within(text, &self.mount).is_some()
    }

    /// Returns a new open file in the lane of the process, under a free number.
    pub fn open(&mut self, process: ProcessId, file: FileId, how: OpenFlags) -> u32 {
        let open = Open {
            file,
            position: 0,
            how,
            entries: 0,
            lanes: vec![self.processes[process].lane],
        };
        match self.free_opens.pop() {
            Some(number) => {
                self.opens[number as usize] = open;
                number
            }
            None => {
                self.opens.push(open);
                self.opens.len() as u32 - 1
            }
        }
    }

    /// Makes `number` refer to an open file.
    pub fn enter(&mut self, process: ProcessId, number: i32, open: u32, closes_on_exec: bool) {
        // Before the close: `number` may be the last descriptor of the same open file (dup2 onto
        // itself by another number).
        self.opens[open as usize].entries += 1;
        self.close(process, number);
        self.table(process).entries.insert(
            number,
            DescriptorEntry {
                open,
                closes_on_exec,
            },
        );
    }

    /// Returns the open file behind `number`. With `-y`, a path also names files opened before the
    /// recording.
    pub fn descriptor(
        &mut self,
        process: ProcessId,
        (number, path): (i32, Option<&str>),
    ) -> Option<u32> {
        if let Some(entry) = self.table(process).entries.get(&number) {
            return Some(entry.open);
        }
        let text = path
            .filter(|path| path.starts_with('/'))
            .and_then(|path| joined("", path));
        let Some(text) = text.filter(|text| self.inside(text)) else {
            self.counts.elsewhere += 1;
            return None;
        };
        let path = self.files.path(&text);
        let file = self.files.there(path);
        let open = self.open(process, file, OpenFlags::WRITE);
        // No lane has opened the file yet: the first use opens the file.
        self.opens[open as usize].lanes.clear();
        self.enter(process, number, open, false);
        Some(open)
    }

    /// Opens a file in the lane of its next use, if the file was opened in another lane. Returns
    /// false if the file has no name.
    pub fn at_hand(&mut self, process: ProcessId, begin: Begin, open: u32) -> bool {
        let lane = self.processes[process].lane;
        let one = &self.opens[open as usize];
        if one.lanes.contains(&lane) {
            return true;
        }
        // The file exists already. A second `O_TRUNC` would destroy the data, and `O_EXCL` would
        // fail.
        let how = OpenFlags {
            create: false,
            exclusive: false,
            truncate: false,
            ..one.how
        };
        let Some(path) = self.files.name(one.file) else {
            self.counts.nameless += 1;
            return false;
        };
        self.opens[open as usize].lanes.push(lane);
        self.counts.opened_again += 1;
        let step = RecordedStep::Open {
            path,
            fd: open + 1,
            flags: Flags::new(how),
        };
        self.play(process, begin, step, false, &[NameEffect::Uses(path)]);
        true
    }

    /// Closes `number`. Returns false if the number was not a file.
    pub fn close(&mut self, process: ProcessId, number: i32) -> bool {
        let table = self.processes[process].table;
        let Some(DescriptorEntry { open, .. }) = self.tables[table].entries.remove(&number) else {
            return false;
        };
        self.opens[open as usize].entries -= 1;
        let elsewhere = self.tables[table]
            .entries
            .values()
            .any(|entry| entry.open == open);
        // Another descriptor of the table still uses the file in this lane.
        if !elsewhere {
            self.close_lanes(process, open);
        }
        if self.opens[open as usize].entries == 0 {
            let left = std::mem::take(&mut self.opens[open as usize].lanes);
            for lane in left {
                self.append(
                    lane,
                    RecordedCall {
                        own: 0,
                        line: self.line,
                        fails: false,
                        step: RecordedStep::Close { fd: open + 1 },
                    },
                );
            }
            self.free_opens.push(open);
        }
        true
    }

    /// Closes the file in the lane of the closing process.
    fn close_lanes(&mut self, process: ProcessId, open: u32) {
        let lane = self.processes[process].lane;
        let lanes = &mut self.opens[open as usize].lanes;
        if let Some(at) = lanes.iter().position(|&one| one == lane) {
            lanes.swap_remove(at);
            self.push(process, RecordedStep::Close { fd: open + 1 }, false);
        }
    }

    pub fn exit(&mut self, process: ProcessId, at: u64) {
        // A second exit line of a process has no effect.
        if !self.alive.contains(&process) {
            return;
        }
        self.begin(process, at);
        self.flush(process);
        let table = self.processes[process].table;
        self.tables[table].users = self.tables[table].users.saturating_sub(1);
        if self.tables[table].users == 0 {
            let numbers: Vec<i32> = self.tables[table].entries.keys().copied().collect();
            numbers
                .into_iter()
                .for_each(|number| _ = self.close(process, number));
        }
        self.forget_call(process);
        self.alive.remove(&process);
        let one = &mut self.processes[process];
        match one.pid {
            Some(pid) => {
                self.by_pid.remove(&pid);
                self.ended.insert(pid, process);
            }
            None => self.unnamed = None,
        }
    }

    /// Handles the end of a child. If it interrupted a call, the call was a wait for the child.
    pub fn child_ended(&mut self, process: ProcessId, pid: u32) {
        let one = &mut self.processes[process];
        if let Some(&child) = self.ended.get(&pid)
            && one.interrupted > 0
            && child != process
        {
            // The interrupted call was counted as own time, and the wait replaces this time.
            one.own = one.own.saturating_sub(std::mem::take(&mut one.interrupted));
            let place = self.place(self.processes[child].lane);
            self.after(process, place);
        }
    }

    /// Handles the end of a fork. After `vfork`, the parent waits until the child has executed
    /// another program or has ended.
    pub fn forked(&mut self, parent: ProcessId, call: &CompletedCall<'_>) -> CallTreatment {
        let child = call
            .value
            .and_then(|value| u32::try_from(value).ok())
            .filter(|&pid| pid > 0);
        let (Some(pid), Some(pending)) = (child, &self.processes[parent].pending) else {
            return CallTreatment::Skipped;
        };
        let waits = call.name == "vfork" || has(&pending.arguments, "CLONE_VFORK");
        let begin = pending.begin;
        let child = match self.by_pid.get(&pid).copied() {
            Some(child) => child,
            None => self.born(Some(parent), Some(pid), begin.at),
        };
        self.adopt(parent, child, begin);
        if !waits {
            return CallTreatment::Noted;
        }
        // The place is the present end of the child's lane: its records until the exec or the end.
        let place = self.place(self.processes[child].lane);
        self.after(parent, place);
        CallTreatment::Waited
    }

    pub fn finish(mut self) -> Recording {
        // The own time after the last call counts too.
        for process in 0..self.processes.len() {
            self.flush(process);
        }
        Recording {
            paths: self.files.paths(&self.mount),
            laid: self.files.laid(&self.mount),
            notes: notes(&self.counts, self.files.appeared),
            processes: self.processes.len() as u64,
            recorded: self.last_at.saturating_sub(self.first_at.unwrap_or(0)),
            calls: self.calls,
            calls_took: self.calls_took,
            lanes: self.lanes,
        }
    }
}
