//! Compilation of a program: bursts of processor time, many small reads, and a link.
//!
//! `jobs` processes, as in `make -j`, take sources from one list. Each process searches the headers
//! of its source in directories without the headers, reads the headers and the source, computes,
//! and writes an object. When all objects exist, one process reads them and writes the program. The
//! headers of a source depend on the seed and on the number of the source, but not on the process.

use crate::call::{Call, CallKind, Fd, OpenFlags};
use crate::program::{
    InitialFile, Program, ProgramAction, ProgramError, ProgramKind, ProgramReport, ProgramTurn,
    Recipe,
};
use fullstroke_contract::ConfigError;
use fullstroke_contract::SourceError;
use fullstroke_contract::registry::{Keys, PolicyEntry, read, schema_of};
use fullstroke_units::{Bytes, Duration, Random, Seed, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Keys of a compilation. The defaults are assumptions: a C program of 200 sources.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of parallel compiling processes, up to 1024. Default 2.
    #[serde(default = "jobs")]
    pub jobs: u32,
    /// Number of compiled files, up to 1,000,000. Default 200.
    #[serde(default = "sources")]
    pub sources: u32,
    /// Median size of a source, with a log-normal distribution. Default 8KiB (assumed).
    #[serde(default = "source_size")]
    pub source_size: Bytes,
    /// Number of headers, up to 1,000,000. Default 1000.
    #[serde(default = "headers")]
    pub headers: u32,
    /// Median size of a header. Default 4KiB (assumed).
    #[serde(default = "header_size")]
    pub header_size: Bytes,
    /// Number of inclusions of a source, each drawn from all headers. A repeated header is not read
    /// again. Default 100 (assumed).
    #[serde(default = "includes")]
    pub includes: u32,
    /// Exponent of the popularity of headers, 0 to 4. The header of rank k is included with a
    /// probability proportional to k^-theta. Default 1 (Zipf's law, assumed).
    #[serde(default = "theta")]
    pub theta: f64,
    /// Number of directories in the search for a header before the right one, up to 64. Default 2
    /// (assumed).
    #[serde(default = "lookups")]
    pub lookups: u32,
    /// Median processor time of a source, with a log-normal distribution. Default 250ms (assumed).
    #[serde(default = "processor")]
    pub processor: Duration,
    /// Median size of an object. Default 16KiB (assumed).
    #[serde(default = "object_size")]
    pub object_size: Bytes,
    /// Standard deviation of the logarithm of sizes and of processor times, 0 to 4. Default 0.8
    /// (assumed).
    #[serde(default = "spread")]
    pub spread: f64,
    /// Processor time of the link. Default 1s (assumed).
    #[serde(default = "link_processor")]
    pub link_processor: Duration,
    /// Directory of sources, headers and objects. Default `build`.
    #[serde(default = "directory")]
    pub directory: String,
}

fn jobs() -> u32 {
    2
}

fn sources() -> u32 {
    200
}

fn source_size() -> Bytes {
    Bytes(8 << 10)
}

fn headers() -> u32 {
    1000
}

fn header_size() -> Bytes {
    Bytes(4 << 10)
}

fn includes() -> u32 {
    100
}

fn theta() -> f64 {
    1.0
}

fn lookups() -> u32 {
    2
}

fn processor() -> Duration {
    Duration::from_millis(250)
}

fn object_size() -> Bytes {
    Bytes(16 << 10)
}

fn spread() -> f64 {
    0.8
}

fn link_processor() -> Duration {
    Duration::from_secs(1)
}

fn directory() -> String {
    "build".into()
}

pub(crate) const ENTRY: PolicyEntry<ProgramKind> = PolicyEntry {
    name: "compile",
    summary: "a program is compiled: bursts of processor time, small reads, a link",
    schema: schema_of::<Config>,
    build: ProgramKind {
        file: None,
        read: read_recipe,
        example: "jobs = 4\nsources = 500",
    },
};

/// Maximum median size. Hardly any drawn size exceeds a thousand times the median.
const SIZE_MAX: u64 = 1 << 30;
/// Maximum median processor time.
const PROCESSOR_MAX: Duration = Duration::from_secs(3600);
/// Maximum distance of a drawn value from its median, in standard deviations.
const DEVIATIONS_MAX: f64 = 4.0;

impl Config {
    fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key: &str, found: String, wanted: String| {
            Err(ConfigError::new(
                key,
                format!("found {found}; expected {wanted}"),
            ))
        };
        for (key, found, least, most) in [
            ("jobs", self.jobs, 1, 1024),
            ("sources", self.sources, 1, 1_000_000),
            ("headers", self.headers, 1, 1_000_000),
            ("includes", self.includes, 0, 10_000),
            ("lookups", self.lookups, 0, 64),
        ] {
            if !(least..=most).contains(&found) {
                return refuse(key, found.to_string(), format!("{least} to {most}"));
            }
        }
        for (key, found) in [("theta", self.theta), ("spread", self.spread)] {
            // Beyond 4, one header gets nearly all inclusions, and a spread of 4 deviations spans
            // seven orders of magnitude.
            if !(0.0..=4.0).contains(&found) {
                return refuse(key, found.to_string(), "0 to 4".into());
            }
        }
        let sizes = [
            ("source_size", self.source_size),
            ("header_size", self.header_size),
            ("object_size", self.object_size),
        ];
        for (key, found) in sizes {
            if !(1..=SIZE_MAX).contains(&found.0) {
                return refuse(key, found.to_string(), format!("1B to {}", Bytes(SIZE_MAX)));
            }
        }
        for (key, found) in [
            ("processor", self.processor),
            ("link_processor", self.link_processor),
        ] {
            if found > PROCESSOR_MAX {
                return refuse(key, found.to_string(), format!("{PROCESSOR_MAX} at most"));
            }
        }
        Ok(())
    }
}

fn read_recipe(keys: &Keys, _: Option<&str>) -> Result<Box<dyn Recipe>, ProgramError> {
    let config: Config = read(keys)?;
    config.check()?;
    Ok(Box::new(Project {
        config: Arc::new(config),
    }))
}

struct Project {
    config: Arc<Config>,
}

impl Recipe for Project {
    fn program(&self, seed: Seed) -> Box<dyn Program> {
        let config = self.config.clone();
        let job = || CompileProcess {
            moves: VecDeque::new(),
            path: String::new(),
            began: Time::ZERO,
        };
        Box::new(Compilation {
            sizes: DrawnLengths::draw(&config, seed),
            popularity: popularity(config.headers, config.theta),
            jobs: (0..config.jobs).map(|_| job()).collect(),
            config,
            seed,
            next: 0,
            compiled: 0,
            linked: false,
            processor: Duration::ZERO,
            opened: 0,
            looked_for: 0,
            compiled_at: Time::ZERO,
            now: Time::ZERO,
        })
    }
}

/// Returns for each rank the probability of this rank or a lower one.
fn popularity(headers: u32, theta: f64) -> Vec<f64> {
    let mut sum = 0.0;
    // Sums in the order of ranks, so that a draw becomes a rank by one binary search.
    let sums = (1..=headers).map(|rank| {
        sum += f64::from(rank).powf(-theta);
        sum
    });
    let mut sums: Vec<f64> = sums.collect();
    sums.iter_mut().for_each(|one| *one /= sum);
    sums
}

/// Returns a draw from a log-normal distribution with the median 1.
fn log_normal(random: &mut Random, spread: f64) -> f64 {
    (spread * random.normal().clamp(-DEVIATIONS_MAX, DEVIATIONS_MAX)).exp()
}

fn size(random: &mut Random, median: Bytes, spread: f64) -> u64 {
    ((median.0 as f64 * log_normal(random, spread)).round() as u64).max(1)
}

/// A file of the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum File {
    Source(u32),
    Header(u32),
    /// A failed search for a header: the directory and the header.
    Missing(u32, u32),
    Object(u32),
    Program,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompileAction {
    Stat(File),
    Open(File, OpenFlags),
    Read(u64),
    Write(u64),
    Close,
    Compute(Duration),
    Compiled,
    Linked,
}

/// One process.
struct CompileProcess {
    moves: VecDeque<CompileAction>,
    /// Path of the present call.
    path: String,
    began: Time,
}

/// Lengths of the files by number. Each length is drawn once.
struct DrawnLengths {
    sources: Vec<u64>,
    headers: Vec<u64>,
    objects: Vec<u64>,
}

impl DrawnLengths {
    fn draw(config: &Config, seed: Seed) -> DrawnLengths {
        let all = |of: &str, count: u32, median: Bytes| -> Vec<u64> {
            (0..count)
                .map(|number| size(&mut random(seed, of, number), median, config.spread))
                .collect()
        };
        DrawnLengths {
            sources: all("source", config.sources, config.source_size),
            headers: all("header", config.headers, config.header_size),
            objects: all("object", config.sources, config.object_size),
        }
    }
}

struct Compilation {
    config: Arc<Config>,
    seed: Seed,
    sizes: DrawnLengths,
    popularity: Vec<f64>,
    jobs: Vec<CompileProcess>,
    /// Next source of the list.
    next: u32,
    compiled: u32,
    /// True if a process has taken the link.
    linked: bool,
    processor: Duration,
    opened: u64,
    looked_for: u64,
    compiled_at: Time,
    now: Time,
}

/// The only descriptor: each process has one file open at a time.
const FD: Fd = Fd(0);
/// Length of one write call: a buffer of the C library. `BUFSIZ` is 8 KiB; the buffers of assembler
/// and linker are larger.
const WRITE: u64 = 64 << 10;

/// Returns the random numbers of a file. They do not depend on the process or on the number of
/// calls.
fn random(seed: Seed, of: &str, number: u32) -> Random {
    seed.stream(&format!("compile {of} {number}"))
}

impl Compilation {
    fn bytes(&self, file: File) -> u64 {
        match file {
            File::Source(number) => self.sizes.sources[number as usize],
            File::Header(number) => self.sizes.headers[number as usize],
            File::Object(number) => self.sizes.objects[number as usize],
            File::Program => self.sizes.objects.iter().sum(),
            File::Missing(..) => 0,
        }
    }

    fn path(&self, file: File) -> String {
        let directory = &self.config.directory;
        match file {
            File::Source(number) => format!("{directory}/src/{number}.c"),
            File::Header(number) => format!("{directory}/include/{number}.h"),
            File::Missing(place, number) => format!("{directory}/include-{place}/{number}.h"),
            File::Object(number) => format!("{directory}/src/{number}.o"),
            File::Program => format!("{directory}/program"),
        }
    }

    /// Reads a whole file with one call. Compilers do the same, because `fstat` gives the length.
    fn reads(&self, file: File) -> [CompileAction; 3] {
        [
            CompileAction::Open(file, OpenFlags::READ),
            CompileAction::Read(self.bytes(file)),
            CompileAction::Close,
        ]
    }

    fn writes(&self, file: File, moves: &mut VecDeque<CompileAction>) {
        moves.push_back(CompileAction::Open(file, OpenFlags::CREATE));
        debug_assert!(
            matches!(file, File::Object(_) | File::Program),
            "a compilation writes {file:?}"
        );
        let bytes = self.bytes(file);
        moves.extend((0..bytes / WRITE).map(|_| CompileAction::Write(WRITE)));
        moves.extend(
            Some(bytes % WRITE)
                .filter(|&rest| rest > 0)
                .map(CompileAction::Write),
        );
        moves.push_back(CompileAction::Close);
    }

    /// Returns all moves of a compilation of a source.
    fn compile(&self, number: u32) -> VecDeque<CompileAction> {
        let mut random = random(self.seed, "inclusions", number);
        let last = self.popularity.len() - 1;
        let headers: BTreeSet<u32> = (0..self.config.includes)
            .map(|_| {
                let draw = random.unit();
                self.popularity
                    .partition_point(|&sum| sum <= draw)
                    // Rounding may leave the last sum slightly below 1.
                    .min(last) as u32
            })
            .collect();
        let factor = log_normal(&mut random, self.config.spread);
        let processor = self.config.processor.as_nanos() as f64 * factor;
        let mut moves = VecDeque::from([CompileAction::Stat(File::Source(number))]);
        moves.extend(self.reads(File::Source(number)));
        for header in headers {
            for place in 0..self.config.lookups {
                moves.push_back(CompileAction::Open(
                    File::Missing(place, header),
                    OpenFlags::READ,
                ));
            }
            moves.extend(self.reads(File::Header(header)));
        }
        moves.push_back(CompileAction::Compute(Duration::from_nanos(
            processor.round() as u64,
        )));
        self.writes(File::Object(number), &mut moves);
        moves.push_back(CompileAction::Compiled);
        moves
    }

    fn link(&self) -> VecDeque<CompileAction> {
        let mut moves = VecDeque::new();
        for number in 0..self.config.sources {
            moves.extend(self.reads(File::Object(number)));
        }
        moves.push_back(CompileAction::Compute(self.config.link_processor));
        self.writes(File::Program, &mut moves);
        moves.push_back(CompileAction::Linked);
        moves
    }

    /// Returns the next work of an idle process: a source, the link, or `None`.
    fn take(&mut self) -> Option<VecDeque<CompileAction>> {
        if self.next < self.config.sources {
            self.next += 1;
            return Some(self.compile(self.next - 1));
        }
        let links = self.compiled == self.config.sources && !self.linked;
        self.linked |= links;
        links.then(|| self.link())
    }

    fn ended(&mut self, turn: &mut ProgramTurn<'_>, part: CompileAction) {
        let began = self.jobs[turn.process as usize].began;
        if part == CompileAction::Linked {
            assert_eq!(
                self.compiled, self.config.sources,
                "the program is linked before all is compiled"
            );
            return turn.events.transaction("link", began);
        }
        turn.events.transaction("compile", began);
        assert!(
            self.compiled < self.next && began <= turn.now,
            "{} sources are compiled, of {} begun; the last from {began:?} to {:?}",
            self.compiled,
            self.next,
            turn.now
        );
        self.compiled += 1;
        self.compiled_at = turn.now;
    }
}

/// Returns an error if a call failed. A search in a directory without the header is expected to
/// fail.
fn check_answer(turn: &ProgramTurn<'_>, path: &str) -> Result<(), SourceError> {
    let Some(answer) = turn.answer else {
        return Ok(());
    };
    match &answer.result {
        Err(error) if answer.kind != CallKind::Open || !path.contains("/include-") => {
            Err(SourceError(format!(
                "{path}: {} did not succeed: {error}",
                answer.kind.name()
            )))
        }
        _ => Ok(()),
    }
}

impl Program for Compilation {
    fn processes(&self) -> u32 {
        self.config.jobs
    }

    fn laid_out(&self) -> Vec<InitialFile> {
        let sources = (0..self.config.sources).map(File::Source);
        let headers = (0..self.config.headers).map(File::Header);
        let file = |file| InitialFile {
            path: self.path(file),
            bytes: Some(Bytes(self.bytes(file))),
            unwritten: false,
        };
        // The directories of failed searches exist, and are empty.
        let missing = (0..self.config.lookups).map(|place| InitialFile {
            path: format!("{}/include-{place}", self.config.directory),
            bytes: None,
            unwritten: false,
        });
        sources.chain(headers).map(file).chain(missing).collect()
    }

    fn next(&mut self, mut turn: ProgramTurn<'_>) -> ProgramAction<'_> {
        let number = turn.process as usize;
        self.now = self.now.max(turn.now);
        if let Err(message) = check_answer(&turn, &self.jobs[number].path) {
            return ProgramAction::Fail(message);
        }
        let part = loop {
            match self.jobs[number].moves.pop_front() {
                Some(part @ (CompileAction::Compiled | CompileAction::Linked)) => {
                    self.ended(&mut turn, part)
                }
                Some(part) => break part,
                None => match self.take() {
                    Some(moves) => {
                        (self.jobs[number].moves, self.jobs[number].began) = (moves, turn.now)
                    }
                    // The process that has compiled the last source links.
                    None => return ProgramAction::End,
                },
            }
        };
        if let CompileAction::Stat(file) | CompileAction::Open(file, _) = part {
            self.jobs[number].path = self.path(file);
        }
        let path = &self.jobs[number].path;
        match part {
            CompileAction::Stat(_) => ProgramAction::Call(Call::Stat { path }),
            CompileAction::Open(file, how) => {
                let looked_for = matches!(file, File::Missing(..));
                *(if looked_for {
                    &mut self.looked_for
                } else {
                    &mut self.opened
                }) += 1;
                ProgramAction::Call(Call::Open { path, fd: FD, how })
            }
            CompileAction::Read(bytes) => ProgramAction::Call(Call::Read {
                fd: FD,
                at: None,
                bytes,
            }),
            CompileAction::Write(bytes) => ProgramAction::Call(Call::Write {
                fd: FD,
                at: None,
                bytes,
            }),
            CompileAction::Close | CompileAction::Compiled | CompileAction::Linked => {
                ProgramAction::Call(Call::Close { fd: FD })
            }
            CompileAction::Compute(time) => {
                // Many jobs run at the same time, so that the sum may overflow.
                self.processor = self.processor.saturating_add(time);
                ProgramAction::Compute(time)
            }
        }
    }

    fn report(&self) -> ProgramReport {
        let seconds = |at: Time| at.since(Time::ZERO).as_secs_f64();
        let figures = vec![
            ("compiled", f64::from(self.compiled)),
            ("elapsed_s", seconds(self.now)),
            ("compile_s", seconds(self.compiled_at)),
            ("processor_s", self.processor.as_secs_f64()),
            ("opened", self.opened as f64),
            ("looked_for", self.looked_for as f64),
        ];
        ProgramReport {
            figures,
            ..ProgramReport::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{PlainHost, keys};
    use serde_json::json;

    fn compiled(more: serde_json::Value, seed: u64) -> PlainHost {
        let mut plain = PlainHost::default();
        plain.run("compile", &keys(more), None, seed).unwrap();
        plain
    }

    #[test]
    fn every_source_has_its_object_and_the_program_has_all_of_them() {
        for jobs in [1, 3, 50] {
            let plain = compiled(
                json!({ "jobs": jobs, "sources": 20, "includes": 10, "headers": 30 }),
                1,
            );
            let objects: Vec<u64> = plain
                .files
                .iter()
                .filter(|(path, _)| path.ends_with(".o"))
                .map(|(_, &bytes)| bytes)
                .collect();
            assert_eq!(objects.len(), 20);
            assert_eq!(plain.files["build/program"], objects.iter().sum::<u64>());
            assert_eq!(plain.transactions, 21);
            // The result of a source does not depend on the process that compiles it.
            assert_eq!(
                plain.read,
                compiled(json!({ "sources": 20, "includes": 10, "headers": 30 }), 1).read
            );
        }
    }

    #[test]
    fn a_file_has_one_length_however_often_it_is_read() {
        let plain = compiled(
            json!({ "jobs": 3, "sources": 30, "includes": 20, "headers": 40 }),
            5,
        );
        let mut open = [""; 3];
        let mut reads = 0;
        for (process, call) in &plain.calls {
            match call.split_once("path: \"") {
                Some((_, path)) => open[*process as usize] = path.split('"').next().unwrap(),
                None if call.starts_with("Read") => {
                    let bytes = call.split_once("bytes: ").unwrap().1.trim_end_matches(" }");
                    assert_eq!(
                        bytes,
                        plain.files[open[*process as usize]].to_string(),
                        "{call}"
                    );
                    reads += usize::from(open[*process as usize].ends_with(".h"));
                }
                None => {}
            }
        }
        assert!(reads > 300, "{reads}");
    }

    #[test]
    fn headers_are_read_by_their_popularity() {
        let plain = compiled(json!({ "sources": 100, "includes": 20, "theta": 1.2 }), 3);
        let opens = |header: u32| {
            let path = format!("\"build/include/{header}.h\"");
            plain
                .calls
                .iter()
                .filter(|(_, call)| call.starts_with("Open") && call.contains(&path))
                .count()
        };
        assert!(opens(0) > 90 && opens(0) <= 100, "{}", opens(0));
        assert!((500..510).map(opens).sum::<usize>() < 30);
        let looked_for = plain
            .report
            .figures
            .iter()
            .find(|(name, _)| *name == "looked_for")
            .unwrap()
            .1;
        let read = plain
            .calls
            .iter()
            .filter(|(_, call)| call.contains("include/") && call.starts_with("Open"));
        assert_eq!(looked_for as usize, 2 * read.count());
    }

    #[test]
    fn processor_times_have_their_median() {
        let plain = compiled(
            json!({ "sources": 2000, "includes": 0, "spread": 0, "link_processor": "0s" }),
            1,
        );
        assert_eq!(plain.computed, Duration::from_millis(250) * 2000);
        // The mean of a log-normal distribution is exp(spread^2 / 2) times its median.
        let plain = compiled(
            json!({ "sources": 2000, "includes": 0, "spread": 0.5, "link_processor": "0s" }),
            1,
        );
        let mean = plain.computed.as_secs_f64() / 2000.0;
        assert!((mean / 0.25 - 0.125f64.exp()).abs() < 0.05, "{mean}");
    }

    #[test]
    fn what_cannot_be_names_its_key() {
        for (value, key) in [
            (json!({ "jobs": 0 }), "jobs"),
            (json!({ "theta": 9 }), "theta"),
            (json!({ "source_size": 0 }), "source_size"),
            (json!({ "processor": "2h" }), "processor"),
        ] {
            let error = PlainHost::default()
                .run("compile", &keys(value), None, 1)
                .unwrap_err();
            assert!(error.contains(key), "{error}");
        }
    }
}
