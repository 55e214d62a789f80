//! IOzone: kinds of access to one file, record by record.
//!
//! W. Norcott and D. Capps, IOzone 3 (`iozone.org`): documentation and source code.

mod report;

use crate::call::{Call, Fd, OpenFlags};
use crate::program::{
    InitialFile, Program, ProgramAction, ProgramError, ProgramKind, ProgramReport, ProgramTurn,
    Recipe,
};
use fullstroke_contract::ConfigError;
use fullstroke_contract::SourceError;
use fullstroke_contract::registry::{Keys, PolicyEntry, read, schema_of};
use fullstroke_units::{Bytes, Random, Seed, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const SIZE_MAX: u64 = 1 << 44;
const RECORD_MAX: u64 = 1 << 30;
/// Maximum number of records of all processes. Random kinds keep an order of the records, 4 bytes
/// each.
const RECORDS_MAX: u64 = 100_000_000;
const PROCESSES_MAX: u32 = 256;
const KINDS_MAX: usize = 100;
const FD: Fd = Fd(0);

/// Keys of IOzone. The letter after each key is IOzone's option.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `-f`: path of the file. With several processes, each has its own file, with `.DUMMY.0` and
    /// so on after the path. Default `iozone.tmp`.
    #[serde(default = "path")]
    pub path: String,
    /// `-s`: length of each file, rounded down to whole records. Default 512KiB.
    #[serde(default = "size")]
    pub size: Bytes,
    /// `-r`: length of a record. Default 4KiB.
    #[serde(default = "record")]
    pub record: Bytes,
    /// `-i`: kinds of access, in the order of execution. Default: all kinds. If the first kind is
    /// not `write`, the file exists before the run.
    #[serde(default = "kinds")]
    pub kinds: Vec<AccessKind>,
    /// `-j`: distance between two records of a strided read, in records. Default 17.
    #[serde(default = "stride")]
    pub stride: u64,
    /// `-e`: the time of the `fsync` counts. Default false: an `fsync` follows after the measured
    /// time.
    #[serde(default)]
    pub fsync: bool,
    /// `-c`: the time of the close counts. Default false.
    #[serde(default)]
    pub close: bool,
    /// `-o`: `O_SYNC`. Default false.
    #[serde(default)]
    pub sync: bool,
    /// `-I`: `O_DIRECT`. Default false.
    #[serde(default)]
    pub direct: bool,
    /// `-t`: number of processes. They begin each kind together. Default 1.
    #[serde(default = "one")]
    pub processes: u32,
}

/// Kind of access to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Kind")]
pub enum AccessKind {
    /// Writes a new file.
    Write,
    /// Writes the file again.
    Rewrite,
    /// Reads the file.
    Read,
    /// Reads the file again.
    Reread,
    /// Reads each record once, in random order.
    RandomRead,
    /// Writes each record once, in random order.
    RandomWrite,
    /// Reads from the end to the beginning: before each read, seeks back by two records.
    BackwardRead,
    /// Writes one record again and again, as often as the file has records.
    RecordRewrite,
    /// Reads every `stride`th record, then the next ones, until all records are read.
    StridedRead,
}

impl AccessKind {
    const ALL: [AccessKind; 9] = [
        AccessKind::Write,
        AccessKind::Rewrite,
        AccessKind::Read,
        AccessKind::Reread,
        AccessKind::RandomRead,
        AccessKind::RandomWrite,
        AccessKind::BackwardRead,
        AccessKind::RecordRewrite,
        AccessKind::StridedRead,
    ];

    fn writes(self) -> bool {
        matches!(
            self,
            AccessKind::Write
                | AccessKind::Rewrite
                | AccessKind::RandomWrite
                | AccessKind::RecordRewrite
        )
    }

    /// True if the kind seeks before each record.
    fn seeks(self) -> bool {
        !matches!(
            self,
            AccessKind::Write | AccessKind::Rewrite | AccessKind::Read | AccessKind::Reread
        )
    }
}

fn path() -> String {
    "iozone.tmp".into()
}

fn size() -> Bytes {
    // 512 KiB is IOzone's default (`KILOBYTES` in iozone.c).
    Bytes(512 << 10)
}

fn record() -> Bytes {
    Bytes(4096)
}

fn kinds() -> Vec<AccessKind> {
    AccessKind::ALL.to_vec()
}

fn stride() -> u64 {
    // IOzone's default stride: 17 records.
    17
}

fn one() -> u32 {
    1
}

pub(crate) const ENTRY: PolicyEntry<ProgramKind> = PolicyEntry {
    name: "iozone",
    summary: "IOzone: writes and reads of a file: sequential, random, backward, strided",
    schema: schema_of::<Config>,
    build: ProgramKind {
        file: None,
        read: read_recipe,
        example: "size = \"512MiB\"\nrecord = \"4KiB\"",
    },
};

fn read_recipe(keys: &Keys, _: Option<&str>) -> Result<Box<dyn Recipe>, ProgramError> {
    let mut config: Config = read(keys)?;
    let within = |key: &str, found: u64, low: u64, high: u64| {
        if (low..=high).contains(&found) {
            return Ok(());
        }
        Err(ConfigError::new(
            key,
            format!("found {found}; expected {low} to {high}"),
        ))
    };
    within("record", config.record.0, 1, RECORD_MAX)?;
    within("size", config.size.0, config.record.0, SIZE_MAX)?;
    within(
        "processes",
        config.processes.into(),
        1,
        PROCESSES_MAX.into(),
    )?;
    let records = config.size.0 / config.record.0;
    // The product of two user values may exceed the range before it is compared.
    if records.saturating_mul(config.processes.into()) > RECORDS_MAX {
        let found = format!(
            "found {records} records in each of {} files",
            config.processes
        );
        return Err(
            ConfigError::new("size", format!("{found}; expected {RECORDS_MAX} in all")).into(),
        );
    }
    within("stride", config.stride, 1, u32::MAX.into())?;
    if config.kinds.is_empty() || config.kinds.len() > KINDS_MAX {
        let found = config.kinds.len();
        return Err(
            ConfigError::new("kinds", format!("found {found}; expected 1 to {KINDS_MAX}")).into(),
        );
    }
    config.size = Bytes(records * config.record.0);
    Ok(Box::new(config))
}

impl Config {
    fn records(&self) -> u64 {
        self.size.0 / self.record.0
    }

    fn path_of(&self, process: u32) -> String {
        match self.processes {
            1 => self.path.clone(),
            _ => format!("{}.DUMMY.{process}", self.path),
        }
    }
}

impl Recipe for Config {
    fn program(&self, seed: Seed) -> Box<dyn Program> {
        let workers = (0..self.processes).map(|process| IozoneProcess {
            path: self.path_of(process),
            draws: seed.stream(&format!("iozone {process}")),
            kind: 0,
            stage: ProcessStage::Meet,
            there: self.kinds[0] != AccessKind::Write,
            record: 0,
            sought: false,
            order: Vec::new(),
            stride: Stride::default(),
            began: Time::ZERO,
            ended: None,
            spans: Vec::new(),
        });
        Box::new(Iozone {
            workers: workers.collect(),
            config: self.clone(),
            met: vec![0; self.kinds.len()],
        })
    }
}

struct Iozone {
    config: Config,
    workers: Vec<IozoneProcess>,
    /// Number of processes at each kind or beyond.
    met: Vec<u32>,
}

/// One process.
struct IozoneProcess {
    path: String,
    draws: Random,
    /// Index of the present kind, and its stage.
    kind: usize,
    stage: ProcessStage,
    /// True if the file of the process exists.
    there: bool,
    record: u64,
    /// True if the process has sought the next record.
    sought: bool,
    /// Order of the records for random kinds.
    order: Vec<u32>,
    stride: Stride,
    began: Time,
    ended: Option<Time>,
    /// Begin and end of each kind.
    spans: Vec<(Time, Time)>,
}

/// Next stage of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessStage {
    Meet,
    Wait,
    Remove,
    Open,
    Begin,
    Records,
    Fsync,
    Close,
    Over,
    Clear,
    End,
}

/// Position of a strided read: `read_stride`.
#[derive(Clone, Copy, Debug, Default)]
struct Stride {
    record: u64,
    wrapped: u64,
}

impl Stride {
    /// Returns the next record, and moves on.
    fn next(&mut self, stride: u64, records: u64) -> u64 {
        let record = self.record;
        debug_assert!(
            record < records && stride > 0,
            "record {record} of {records} is read, by {stride}"
        );
        self.record += stride;
        if self.record >= records {
            self.wrapped += 1;
            self.record = self.wrapped % stride.min(records);
        }
        record
    }
}

impl Program for Iozone {
    fn processes(&self) -> u32 {
        self.config.processes
    }

    fn laid_out(&self) -> Vec<InitialFile> {
        let workers = self.workers.iter().filter(|worker| worker.there);
        workers
            .map(|worker| InitialFile {
                path: worker.path.clone(),
                bytes: Some(self.config.size),
                unwritten: false,
            })
            .collect()
    }

    fn next(&mut self, turn: ProgramTurn<'_>) -> ProgramAction<'_> {
        let worker = &mut self.workers[turn.process as usize];
        if let Some(Err(error)) = turn.answer.map(|answer| &answer.result) {
            let kind = self.config.kinds.get(worker.kind);
            return ProgramAction::Fail(SourceError(format!(
                "process {}, {kind:?} of `{}`: {error}",
                turn.process, worker.path
            )));
        }
        let next = loop {
            if let Some(next) = worker.go_on(&self.config, &mut self.met, turn.now) {
                break next;
            }
        };
        let path = &worker.path;
        match next {
            ProcessAction::Open(how) => ProgramAction::Call(Call::Open { path, fd: FD, how }),
            ProcessAction::Remove => ProgramAction::Call(Call::Remove { path }),
            ProcessAction::Call(call) => ProgramAction::Call(call),
            ProcessAction::Wait => ProgramAction::Wait,
            ProcessAction::End => ProgramAction::End,
        }
    }

    fn report(&self) -> ProgramReport {
        let spans: Vec<&[(Time, Time)]> = self
            .workers
            .iter()
            .map(|worker| &worker.spans[..])
            .collect();
        report::of(&self.config, &spans)
    }
}

/// Next action of a process, without the path.
enum ProcessAction {
    Open(OpenFlags),
    Remove,
    Call(Call<'static>),
    Wait,
    End,
}

impl Config {
    /// Returns the mode for the open of a kind's file.
    fn how(&self, kind: Option<AccessKind>) -> OpenFlags {
        let write = kind.is_some_and(AccessKind::writes);
        OpenFlags {
            write,
            create: kind == Some(AccessKind::Write),
            direct: self.direct,
            durable: self.sync && write,
            ..OpenFlags::READ
        }
    }
}

impl IozoneProcess {
    /// Returns the next move, or `None` between stages.
    fn go_on(&mut self, config: &Config, met: &mut [u32], now: Time) -> Option<ProcessAction> {
        let kind = config.kinds.get(self.kind).copied();
        let writes = kind.is_some_and(AccessKind::writes);
        let (stage, next) = match self.stage {
            ProcessStage::Meet if kind.is_none() => (ProcessStage::Clear, None),
            ProcessStage::Meet => {
                assert!(
                    met[self.kind] < config.processes,
                    "more processes meet for kind {} than there are",
                    self.kind
                );
                met[self.kind] += 1;
                (ProcessStage::Wait, None)
            }
            ProcessStage::Wait if met[self.kind] < config.processes => {
                (ProcessStage::Wait, Some(ProcessAction::Wait))
            }
            ProcessStage::Wait => (ProcessStage::Remove, None),
            ProcessStage::Remove => {
                // IOzone removes the file before its write test, so that the test allocates blocks.
                let removes = kind == Some(AccessKind::Write) && std::mem::take(&mut self.there);
                (ProcessStage::Open, removes.then_some(ProcessAction::Remove))
            }
            ProcessStage::Open => (
                ProcessStage::Begin,
                Some(ProcessAction::Open(config.how(kind))),
            ),
            ProcessStage::Begin => {
                self.prepare(kind, config.records());
                (self.there, self.began, self.ended) = (true, now, None);
                (ProcessStage::Records, None)
            }
            ProcessStage::Records if self.record < config.records() => {
                let next = kind.map(|kind| self.access(kind, config));
                (ProcessStage::Records, next)
            }
            ProcessStage::Records => {
                // The measured time ends here unless `-e` or `-c` adds the fsync or the close.
                if !(writes && config.fsync || config.close) {
                    self.ended = Some(now);
                }
                (
                    ProcessStage::Fsync,
                    writes.then_some(ProcessAction::Call(Call::Fsync { fd: FD })),
                )
            }
            ProcessStage::Fsync => {
                if !config.close {
                    self.ended.get_or_insert(now);
                }
                (
                    ProcessStage::Close,
                    Some(ProcessAction::Call(Call::Close { fd: FD })),
                )
            }
            ProcessStage::Close => {
                self.spans.push((self.began, self.ended.unwrap_or(now)));
                (ProcessStage::Over, None)
            }
            ProcessStage::Over => {
                self.kind += 1;
                (ProcessStage::Meet, None)
            }
            ProcessStage::Clear => (
                ProcessStage::End,
                std::mem::take(&mut self.there).then_some(ProcessAction::Remove),
            ),
            ProcessStage::End => (ProcessStage::End, Some(ProcessAction::End)),
        };
        self.stage = stage;
        next
    }

    fn prepare(&mut self, kind: Option<AccessKind>, records: u64) {
        (self.record, self.sought, self.stride) = (0, false, Stride::default());
        self.order.clear();
        if matches!(kind, Some(AccessKind::RandomRead | AccessKind::RandomWrite)) {
            self.order.extend(0..records as u32);
            // The shuffle of Fisher and Yates.
            for last in (1..self.order.len()).rev() {
                let other = self.draws.below(last as u64 + 1) as usize;
                self.order.swap(last, other);
            }
        }
    }

    /// Returns the next call on a record.
    fn access(&mut self, kind: AccessKind, config: &Config) -> ProcessAction {
        let bytes = config.record.0;
        if kind.seeks() && !std::mem::replace(&mut self.sought, true) {
            let record = match kind {
                AccessKind::BackwardRead => config.records() - 1 - self.record,
                AccessKind::StridedRead => self.stride.next(config.stride, config.records()),
                AccessKind::RecordRewrite => 0,
                _ => u64::from(self.order[self.record as usize]),
            };
            return ProcessAction::Call(Call::Seek {
                fd: FD,
                to: record * bytes,
            });
        }
        self.sought = false;
        self.record += 1;
        ProcessAction::Call(match kind.writes() {
            true => Call::Write {
                fd: FD,
                at: None,
                bytes,
            },
            false => Call::Read {
                fd: FD,
                at: None,
                bytes,
            },
        })
    }
}

#[cfg(test)]
mod tests;
