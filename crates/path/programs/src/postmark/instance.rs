//! One process of PostMark: `cli_run` of 1.51, call by call.

use super::settings::PostmarkSettings;
use super::table::{File, Table};
use crate::call::{Call, Fd, OpenFlags};
use crate::mersenne::Mersenne;
use crate::program::{InitialFile, ProgramAction, ProgramTurn};
use crate::stdio::Blocks;
use fullstroke_contract::SourceError;
use fullstroke_units::{Seed, Time, order_by};
use std::fmt::Write as _;
use std::sync::Arc;

/// The only descriptor: at most one file is open at a time.
const FD: Fd = Fd(0);

/// Parameters of an instance.
pub(super) struct InstanceSite {
    pub runs: Arc<[PostmarkSettings]>,
    /// Seed of the run; `None` to use only PostMark's own seed.
    pub seed: Option<Seed>,
    /// Size of a stream's buffer, in bytes.
    pub stdio: u64,
    pub number: u32,
    /// Top-level directory with a `/` at the end, or empty.
    pub top: String,
}

/// Results of a run so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InstanceCounts {
    pub began: Time,
    /// Times of the begin of the transactions, the end of the transactions, and the deletion of all
    /// files.
    pub pool_made: Option<Time>,
    pub transactions_ended: Option<Time>,
    pub ended: Option<Time>,
    /// Latest known time.
    pub now: Time,
    pub transactions: u32,
    pub created: u32,
    pub created_alone: u32,
    pub read: u32,
    pub appended: u32,
    pub deleted: u32,
    pub deleted_alone: u32,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Number of creations without a free entry, and of appends to files of maximum length.
    pub no_room: u32,
    pub full: u32,
    pub out_of_files: bool,
}

/// Phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunPhase {
    /// Before a run.
    Ready,
    /// Creates directories; the field is the number so far.
    Directories(u32),
    /// Creates the pool; the field is the number of files so far, including creations without a
    /// free entry.
    Pool(u32),
    Transactions(TransactionPart),
    /// Deletes files; the field is the next entry.
    Deleting(u32),
    /// Removes directories; the field is the number so far.
    Removing(u32),
}

/// Next part of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransactionPart {
    ReadOrAppend,
    CreateOrDelete,
    Nothing,
}

/// Remaining work of an operation on the file or directory `path`.
#[derive(Clone, Debug)]
enum RemainingWork {
    Nothing,
    Alone(FileCall),
    Open(OpenFlags, bool, Blocks),
    Move(bool, Blocks),
}

/// One call.
#[derive(Clone, Copy, Debug)]
enum FileCall {
    MakeDirectory,
    Remove,
    Open(OpenFlags),
    Read(u64),
    Write(u64),
    Close,
}

/// One process.
pub(super) struct Instance {
    site: InstanceSite,
    /// Index of the present run.
    run: usize,
    phase: RunPhase,
    table: Table,
    draws: Mersenne,
    work: RemainingWork,
    path: String,
    /// Begin of the present transaction.
    began: Time,
    outcomes: Vec<InstanceCounts>,
}

impl Instance {
    pub fn new(site: InstanceSite) -> Instance {
        Instance {
            site,
            run: 0,
            phase: RunPhase::Ready,
            table: Table::new(0),
            draws: Mersenne::new(0),
            work: RemainingWork::Nothing,
            path: String::new(),
            began: Time::ZERO,
            outcomes: Vec::new(),
        }
    }

    pub fn number(&self) -> u32 {
        self.site.number
    }

    /// Returns the results of each run so far.
    pub fn outcomes(&self) -> &[InstanceCounts] {
        &self.outcomes
    }

    /// Returns the directories that must exist before the run.
    pub fn laid_out(&self) -> Vec<InitialFile> {
        let places = self.site.runs.iter().flat_map(|run| &run.locations);
        let tops = std::iter::once(self.site.top.clone());
        let mut paths: Vec<String> = tops
            .chain(places.map(|place| format!("{}{}", self.site.top, place.path)))
            .collect();
        // A location with `/` at the end and one without are the same directory.
        paths
            .iter_mut()
            .for_each(|path| path.truncate(path.trim_end_matches('/').len()));
        paths.retain(|path| !path.is_empty());
        // Sorted, so that a directory is made before the directories in it.
        order_by(&mut paths, Ord::cmp);
        paths.dedup();
        paths
            .into_iter()
            .map(|path| InitialFile {
                path,
                bytes: None,
                unwritten: false,
            })
            .collect()
    }

    pub fn next(&mut self, turn: ProgramTurn<'_>) -> ProgramAction<'_> {
        if let Some(Err(error)) = turn.answer.map(|answer| &answer.result) {
            let (number, run) = (self.site.number, self.run + 1);
            return ProgramAction::Fail(SourceError(format!(
                "instance {number}, run {run}, at `{}`: {error}",
                self.path
            )));
        }
        if let Some(outcome) = self.outcomes.last_mut() {
            outcome.now = turn.now;
        }
        loop {
            if let Some(part) = self.part() {
                return ProgramAction::Call(self.call(part));
            }
            if self.phase == RunPhase::Ready && self.run == self.site.runs.len() {
                return ProgramAction::End;
            }
            if self.phase == RunPhase::Transactions(TransactionPart::Nothing) {
                turn.events.transaction("transaction", self.began);
            }
            self.go_on(turn.now);
        }
    }

    fn settings(&self) -> &PostmarkSettings {
        &self.site.runs[self.run]
    }

    fn outcome(&mut self) -> &mut InstanceCounts {
        self.outcomes.last_mut().expect("a run has begun")
    }

    /// Returns the next call of the present operation.
    fn part(&mut self) -> Option<FileCall> {
        match &mut self.work {
            RemainingWork::Nothing => None,
            &mut RemainingWork::Alone(part) => {
                self.work = RemainingWork::Nothing;
                Some(part)
            }
            RemainingWork::Open(how, writes, blocks) => {
                let part = FileCall::Open(*how);
                self.work = RemainingWork::Move(*writes, blocks.clone());
                Some(part)
            }
            RemainingWork::Move(writes, blocks) => match (blocks.next(), *writes) {
                (Some(bytes), true) => Some(FileCall::Write(bytes)),
                (Some(bytes), false) => Some(FileCall::Read(bytes)),
                (None, _) => {
                    self.work = RemainingWork::Nothing;
                    Some(FileCall::Close)
                }
            },
        }
    }

    fn call(&self, part: FileCall) -> Call<'_> {
        let path = &self.path;
        match part {
            FileCall::MakeDirectory => Call::MakeDirectory { path },
            FileCall::Remove => Call::Remove { path },
            FileCall::Open(how) => Call::Open { path, fd: FD, how },
            FileCall::Read(bytes) => Call::Read {
                fd: FD,
                at: None,
                bytes,
            },
            FileCall::Write(bytes) => Call::Write {
                fd: FD,
                at: None,
                bytes,
            },
            FileCall::Close => Call::Close { fd: FD },
        }
    }

    /// Begins the next operation or the next phase.
    fn go_on(&mut self, now: Time) {
        self.phase = match self.phase {
            RunPhase::Ready => self.ready(),
            RunPhase::Directories(made) if made < self.directories() => {
                self.directory(made, FileCall::MakeDirectory);
                RunPhase::Directories(made + 1)
            }
            RunPhase::Directories(_) => {
                *self.outcome() = InstanceCounts {
                    began: now,
                    now,
                    ..InstanceCounts::default()
                };
                RunPhase::Pool(0)
            }
            RunPhase::Pool(tried) if tried < self.settings().number => {
                self.create();
                RunPhase::Pool(tried + 1)
            }
            RunPhase::Pool(_) => {
                self.outcome().pool_made = Some(now);
                self.outcome().created_alone = self.outcome().created;
                RunPhase::Transactions(TransactionPart::ReadOrAppend)
            }
            RunPhase::Transactions(half) => self.transact(half, now),
            RunPhase::Deleting(entry) if entry < self.table.entries() => {
                if self.table.get(entry).size > 0 {
                    self.delete(entry);
                    self.outcome().deleted_alone += 1;
                }
                RunPhase::Deleting(entry + 1)
            }
            RunPhase::Deleting(_) => {
                self.outcome().ended = Some(now);
                RunPhase::Removing(0)
            }
            RunPhase::Removing(gone) if gone < self.directories() => {
                self.directory(gone, FileCall::Remove);
                RunPhase::Removing(gone + 1)
            }
            RunPhase::Removing(_) => {
                self.run += 1;
                RunPhase::Ready
            }
        };
    }

    fn ready(&mut self) -> RunPhase {
        let settings = self.settings();
        let (number, longest) = (settings.number, settings.size_high);
        let own = settings.seed;
        self.draws = Mersenne::new(match self.site.seed {
            Some(seed) => seed.of(&own.to_string()).0 as u32,
            None => own,
        });
        if self.site.seed.is_none() {
            // PostMark first creates random text of twice the length of the longest file
            // (`initialize_file_source`). The draws keep the random sequence the same.
            (0..2 * longest).for_each(|_| _ = self.draws.draw());
        }
        self.table = Table::new(number);
        self.outcomes.push(InstanceCounts::default());
        RunPhase::Directories(0)
    }

    fn transact(&mut self, half: TransactionPart, now: Time) -> RunPhase {
        let settings = self.settings();
        let (all, bias_read, bias_create) = (
            settings.transactions,
            settings.bias_read,
            settings.bias_create,
        );
        match half {
            TransactionPart::ReadOrAppend => {
                let outcome = self.outcome();
                outcome.out_of_files =
                    outcome.transactions < all && outcome.created == outcome.deleted;
                if outcome.transactions == all || outcome.out_of_files {
                    outcome.transactions_ended = Some(now);
                    return RunPhase::Deleting(0);
                }
                self.began = now;
                if let Some(bias) = bias_read {
                    // The order of the two draws is the order in PostMark.
                    let reads = self.draws.below(10) < bias;
                    let entry = self.table.any(&mut self.draws);
                    if reads {
                        self.read(entry)
                    } else {
                        self.append(entry)
                    }
                }
                RunPhase::Transactions(TransactionPart::CreateOrDelete)
            }
            TransactionPart::CreateOrDelete => {
                if let Some(bias) = bias_create {
                    if self.draws.below(10) < bias {
                        self.create();
                    } else {
                        let entry = self.table.any(&mut self.draws);
                        self.delete(entry);
                    }
                }
                RunPhase::Transactions(TransactionPart::Nothing)
            }
            TransactionPart::Nothing => {
                self.outcome().transactions += 1;
                RunPhase::Transactions(TransactionPart::ReadOrAppend)
            }
        }
    }

    fn create(&mut self) {
        let Some(entry) = self.table.take() else {
            self.outcome().no_room += 1;
            return;
        };
        let number = self.outcome().created + 1;
        self.outcome().created = number;
        let directory = self.draw_directory();
        let settings = &self.site.runs[self.run];
        // As in PostMark, the upper bound itself is never drawn.
        let size = settings.size_low + self.draws.below(settings.size_high - settings.size_low);
        let how = match settings.buffering {
            // PostMark opens a stream with `fopen(3)`, which truncates the file.
            true => OpenFlags::CREATE,
            false => OpenFlags {
                create: true,
                ..OpenFlags::WRITE
            },
        };
        let file = File {
            number,
            directory,
            size,
        };
        *self.table.get_mut(entry) = file;
        self.set_path(file);
        self.write(how, size);
    }

    fn append(&mut self, entry: u32) {
        let (file, longest) = (self.table.get(entry), self.settings().size_high);
        if file.size >= longest {
            self.outcome().full += 1;
            return;
        }
        let bytes = self.draws.below(longest - file.size) + 1;
        let how = match self.settings().buffering {
            true => OpenFlags::APPEND,
            false => OpenFlags {
                append: true,
                ..OpenFlags::WRITE
            },
        };
        self.table.get_mut(entry).size += bytes;
        self.outcome().appended += 1;
        self.set_path(file);
        self.write(how, bytes);
    }

    fn write(&mut self, how: OpenFlags, bytes: u32) {
        self.outcome().bytes_written += u64::from(bytes);
        let (bytes, block) = (u64::from(bytes), u64::from(self.settings().write));
        let blocks = match self.settings().buffering {
            true => Blocks::written(bytes, block, self.site.stdio),
            false => Blocks::plain(bytes, block),
        };
        self.work = RemainingWork::Open(how, true, blocks);
    }

    fn read(&mut self, entry: u32) {
        let file = self.table.get(entry);
        self.outcome().read += 1;
        self.outcome().bytes_read += u64::from(file.size);
        let (bytes, block) = (u64::from(file.size), u64::from(self.settings().read));
        let blocks = match self.settings().buffering {
            true => Blocks::read(bytes, block, self.site.stdio),
            false => Blocks::plain(bytes, block),
        };
        self.set_path(file);
        self.work = RemainingWork::Open(OpenFlags::READ, false, blocks);
    }

    fn delete(&mut self, entry: u32) {
        let file = self.table.get(entry);
        assert!(
            self.outcomes
                .last()
                .is_some_and(|outcome| outcome.deleted < outcome.created),
            "entry {entry} is deleted, and every file is gone"
        );
        self.table.free(entry);
        self.outcome().deleted += 1;
        self.set_path(file);
        self.work = RemainingWork::Alone(FileCall::Remove);
    }

    /// Returns the number of subdirectories of each location. A single subdirectory is not used.
    fn subdirectories(&self) -> u32 {
        self.settings().subdirectories.max(1)
    }

    /// Returns the number of subdirectories of all locations.
    fn directories(&self) -> u32 {
        match self.subdirectories() {
            1 => 0,
            several => several * self.settings().locations.len().max(1) as u32,
        }
    }

    /// Draws a location by weight, and a subdirectory.
    fn draw_directory(&mut self) -> u32 {
        let locations = &self.site.runs[self.run].locations;
        let mut place = 0;
        if locations.len() > 1 {
            let mut drawn = self
                .draws
                .below(locations.iter().map(|location| location.weight).sum());
            while drawn >= locations[place].weight {
                drawn -= locations[place].weight;
                place += 1;
            }
        }
        let subdirectories = self.subdirectories();
        let within = if subdirectories > 1 {
            self.draws.below(subdirectories)
        } else {
            0
        };
        place as u32 * subdirectories + within
    }

    fn set_path(&mut self, file: File) {
        self.set_directory(file.directory);
        if self.subdirectories() > 1 {
            self.path.push('/');
        }
        write!(self.path, "{}", file.number).expect("a string takes it");
    }

    /// Sets the path of a subdirectory, or of a location with a `/` at the end.
    fn set_directory(&mut self, directory: u32) {
        let Instance {
            site, path, run, ..
        } = self;
        let settings = &site.runs[*run];
        let subdirectories = settings.subdirectories.max(1);
        path.clear();
        path.push_str(&site.top);
        let location = settings
            .locations
            .get((directory / subdirectories) as usize);
        if let Some(location) = location.filter(|location| !location.path.is_empty()) {
            path.push_str(&location.path);
            path.push('/');
        }
        if subdirectories > 1 {
            write!(path, "s{}", directory % subdirectories).expect("a string takes it");
        }
    }

    fn directory(&mut self, directory: u32, part: FileCall) {
        self.set_directory(directory);
        self.work = RemainingWork::Alone(part);
    }
}
