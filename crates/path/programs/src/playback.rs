//! Media streams, played from files: a reading server, and playing clients.
//!
//! The clients, their buffers and their start times are the same as in the workload `streams`
//! ([`fullstroke_workload`]). That workload reads a volume directly. Here each stream is a process
//! of the server. The process opens its file, seeks to its start and makes one read after another.
//! Read-ahead is left to the page cache.

use crate::call::{Call, CallAnswer, CallKind, Fd, OpenFlags};
use crate::program::{
    Events, InitialFile, Program, ProgramAction, ProgramError, ProgramKind, ProgramReport,
    ProgramTurn, Recipe,
};
use fullstroke_contract::ConfigError;
use fullstroke_contract::SourceError;
use fullstroke_contract::registry::{Keys, PolicyEntry, read, schema_of};
use fullstroke_units::{BitRate, Bytes, Duration, Seed, Time};
use fullstroke_workload::{
    AtEnd, Limit, Placement, PlayedStream, Rules, StartPosition, StartTimes, StreamTally,
    StreamsConfig, StreamsResults, VariationConfig, WeightedBitRate, dealt_out,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::sync::Arc;

/// Maximum number of streams. Each stream is a process.
const STREAMS_MAX: u32 = 10_000;
const FILES_MAX: u32 = 1_000_000;
const SIZE_MAX: u64 = 1 << 44;
/// Maximum number of rows in the table of start-up latencies.
const ROWS: usize = 16;

/// Keys of media streams, played from files. For each stream, a server reads a file, one read after
/// another, as soon as the client has room. The client begins to play when its start-up buffer is
/// full, and plays at its bit rate. If a byte is late, the client waits for the byte: an underrun.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of streams, up to 10,000.
    pub streams: u32,
    /// Bit rate of each stream; alternative to `bit_rates`.
    pub bit_rate: Option<BitRate>,
    /// Bit rates of which each stream draws one, a list of `{ bit_rate, weight }`; alternative to
    /// `bit_rate`.
    #[serde(default)]
    pub bit_rates: Vec<WeightedBitRate>,
    /// Variation of the rate within a stream, `{ distribution, share, segment }`. Default: constant
    /// rate.
    pub variation: Option<VariationConfig>,
    /// Playing time after the start of the last stream.
    pub duration: Duration,
    /// Time between the starts of two streams. Default 1s.
    #[serde(default = "one_second")]
    pub start_interval: Duration,
    /// Draws start intervals from an exponential distribution with the mean `start_interval`.
    /// Default false.
    #[serde(default)]
    pub exponential: bool,
    /// Start no further stream after a stream has needed longer than this time from its start until
    /// it plays.
    pub until_start_up_latency: Option<Duration>,
    /// Start no further stream after a client has had to wait for a byte. Default false.
    #[serde(default)]
    pub until_underrun: bool,
    /// Length of one read call. Default 64KiB.
    #[serde(default = "read_size")]
    pub read_size: Bytes,
    /// Amount of data in the client before it begins to play. Default: one read.
    pub start_up_buffer: Option<Bytes>,
    /// Size of the client's buffer. Default: the start-up buffer and one read.
    pub client_buffer: Option<Bytes>,
    /// Path of the file. If there are several files, each has its number after the path, as in
    /// `media/0`. Default `media`.
    #[serde(default = "path")]
    pub path: String,
    /// Number of files, up to 1,000,000. Default: the number of streams. The files are dealt to the
    /// streams in random order.
    pub files: Option<u32>,
    /// Size of each file, a multiple of the read size. The files are created before the run, one
    /// after another.
    pub file_size: Bytes,
    /// Start position of a stream in its file. Default `beginning`.
    #[serde(default)]
    pub start_position: StartPosition,
    /// Continuation of a stream after the end of its file. Default `repeat`.
    #[serde(default)]
    pub at_end: AtEnd,
}

fn one_second() -> Duration {
    Duration::from_secs(1)
}

fn read_size() -> Bytes {
    Bytes(64 << 10)
}

fn path() -> String {
    "media".into()
}

pub(crate) const ENTRY: PolicyEntry<ProgramKind> = PolicyEntry {
    name: "playback",
    summary: "media streams, each played from a file at its bit rate, with the underruns of their clients",
    schema: schema_of::<Config>,
    build: ProgramKind {
        file: None,
        read: read_recipe,
        example: "streams = 20\nbit_rate = \"2Mbit/s\"\nduration = \"10s\"\nfile_size = \"64MiB\"",
    },
};

impl Config {
    fn file_count(&self) -> u32 {
        self.files.unwrap_or(self.streams)
    }

    fn file(&self, number: u32) -> String {
        if self.file_count() == 1 {
            self.path.clone()
        } else {
            format!("{}/{number}", self.path)
        }
    }

    /// Returns the corresponding configuration of the workload `streams`, with one read at a time.
    fn streams_config(&self) -> StreamsConfig {
        // The page cache below reads ahead, so that this program's defaults are those of a client
        // that holds one read, and not seconds of play.
        let start_up = self.start_up_buffer.unwrap_or(self.read_size);
        let one_more = Bytes(start_up.0.saturating_add(self.read_size.0));
        StreamsConfig {
            streams: self.streams,
            bit_rate: self.bit_rate,
            bit_rates: self.bit_rates.clone(),
            variation: self.variation,
            duration: self.duration,
            requests: None,
            start_interval: self.start_interval,
            exponential: self.exponential,
            until_start_up_latency: self.until_start_up_latency,
            until_underrun: self.until_underrun,
            read_size: Some(self.read_size),
            read_ahead: 1,
            start_up_buffer: Some(start_up),
            client_buffer: Some(self.client_buffer.unwrap_or(one_more)),
            files: Some(self.file_count()),
            file_size: Some(self.file_size),
            placement: Placement::Even,
            alignment: self.read_size,
            region_start: Bytes(0),
            region_size: None,
            start_position: self.start_position,
            at_end: self.at_end,
            servers: None,
            recordings: 0,
            recording_rate: None,
            recording_buffer: None,
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key: &str, message: String| Err(ConfigError::new(key, message));
        let count = self.file_count();
        if self.streams > STREAMS_MAX {
            return refuse(
                "streams",
                format!("found {}; expected 1 to {STREAMS_MAX}", self.streams),
            );
        }
        self.streams_config().check()?;
        if !(1..=FILES_MAX).contains(&count) {
            return refuse("files", format!("found {count}; expected 1 to {FILES_MAX}"));
        }
        let (size, read) = (self.file_size.0, self.read_size.0);
        if !(read..=SIZE_MAX).contains(&size) || !size.is_multiple_of(read) {
            let (found, most) = (self.file_size, Bytes(SIZE_MAX));
            let message = format!(
                "found {found}; expected a multiple of read_size, {}, up to {most}",
                self.read_size
            );
            return refuse("file_size", message);
        }
        Ok(())
    }
}

fn read_recipe(keys: &Keys, _: Option<&str>) -> Result<Box<dyn Recipe>, ProgramError> {
    let config: Config = read(keys)?;
    config.check()?;
    Ok(Box::new(PlaybackProgram {
        config: Arc::new(config),
    }))
}

struct PlaybackProgram {
    config: Arc<Config>,
}

impl Recipe for PlaybackProgram {
    fn program(&self, seed: Seed) -> Box<dyn Program> {
        let config = self.config.clone();
        let streams_config = config.streams_config();
        let rules = Rules::new(
            &streams_config,
            config.file_count(),
            config.file_size.0 / config.read_size.0,
        );
        let mut starts = StartTimes::new(&streams_config, seed);
        let dealt = (1..).zip(dealt_out(config.file_count(), config.streams, seed));
        let (feeds, tallies): (Vec<Feed>, Vec<StreamTally>) = dealt
            .map(|(number, file)| {
                let (stream, tally) =
                    PlayedStream::new(&streams_config, number, file, &rules, seed);
                (Feed::new(stream, starts.take()), tally)
            })
            .unzip();
        Box::new(Playback {
            limit: Limit::new(&streams_config),
            rules,
            feeds,
            tallies,
            closed: false,
            end: Time::NEVER,
            path: String::new(),
            config,
        })
    }
}

/// The reading process of one stream.
struct Feed {
    stream: PlayedStream,
    starts: Time,
    /// Open file, and the number of its next sequential read.
    open: Option<(u32, u64)>,
    /// Next read, as file and number, if the client has room.
    wanted: Option<(u32, u64)>,
}

impl Feed {
    fn new(stream: PlayedStream, starts: Time) -> Feed {
        Feed {
            stream,
            starts,
            open: None,
            wanted: None,
        }
    }
}

struct Playback {
    config: Arc<Config>,
    rules: Rules,
    feeds: Vec<Feed>,
    /// Results of each client, in the order of the feeds.
    tallies: Vec<StreamTally>,
    limit: Limit,
    /// True if no further stream is started.
    closed: bool,
    /// Time after which no read begins.
    end: Time,
    /// Path of the latest open.
    path: String,
}

/// The only descriptor: each process has one file open at a time.
const FD: Fd = Fd(0);

/// Action of a process before its next call.
enum BeforeCall {
    Sleep(Duration),
    Nothing,
}

impl Playback {
    /// Handles the end of a process's call.
    fn take_answer(
        &mut self,
        now: Time,
        number: usize,
        answer: &CallAnswer,
        events: &mut Events,
    ) -> Result<(), SourceError> {
        let failed = |why: String| {
            let call = answer.kind.name();
            SourceError(format!("stream {}: {call}: {why}", number + 1))
        };
        let bytes = *answer
            .result
            .as_ref()
            .map_err(|error| failed(error.to_string()))?;
        if answer.kind != CallKind::Read {
            return Ok(());
        }
        if bytes != self.config.read_size.0 {
            return Err(failed(format!(
                "found {bytes} bytes; expected {}",
                self.config.read_size.0
            )));
        }
        let (stream, tally) = (&mut self.feeds[number].stream, &mut self.tallies[number]);
        let (played, stalled) = (tally.plays_from.is_some(), tally.stalled);
        stream.note_arrival(now, stream.latest(), self.end, &self.rules, tally);
        if let (false, Some(started), Some(_)) = (played, tally.started, tally.plays_from) {
            events.transaction("start-up", started);
        }
        if tally.stalled > stalled {
            assert!(
                tally.stalled - stalled <= now.since(Time::ZERO),
                "stream {} has stalled for longer than the run lasts",
                number + 1
            );
            // The stall has just ended, so that its begin follows from its length.
            let stall = tally.stalled - stalled;
            events.transaction("stall", Time::ZERO + (now.since(Time::ZERO) - stall));
        }
        self.limit.note_read(tally);
        Ok(())
    }

    /// Starts a stream at its start time, unless the limit has been reached.
    fn start(&mut self, now: Time, number: usize) {
        let last = number + 1 == self.feeds.len();
        let reached = self.limit.is_reached(now, &self.tallies);
        if reached || last {
            self.end = self.end.min(now + self.config.duration);
        }
        self.closed |= reached;
        if !reached {
            self.feeds[number]
                .stream
                .start(now, &mut self.tallies[number]);
        }
    }

    /// Returns the sleep of a process before its stream starts. If starts may end early, the sleep
    /// is at most `duration`. The process then notices the end of the load in time.
    fn sleeps(&self, now: Time, number: usize) -> Duration {
        let whole = self.feeds[number].starts.since(now);
        let ends_early = self.config.until_start_up_latency.is_some() || self.config.until_underrun;
        if ends_early {
            whole.min(self.config.duration)
        } else {
            whole
        }
    }

    /// Returns the action of a process before its next call, or `None` if nothing is left to do.
    fn before(&mut self, now: Time, number: usize) -> Option<BeforeCall> {
        if self.tallies[number].started.is_none() && !self.closed {
            if now < self.feeds[number].starts {
                return Some(BeforeCall::Sleep(self.sleeps(now, number)));
            }
            self.start(now, number);
        }
        if self.tallies[number].started.is_none() || now >= self.end {
            return None;
        }
        let feed = &mut self.feeds[number];
        if feed.wanted.is_none() {
            let room = feed.stream.has_room(&self.rules).min(self.end);
            if room > now {
                return Some(BeforeCall::Sleep(room.since(now)));
            }
            assert!(
                self.tallies[number]
                    .started
                    .is_some_and(|started| started <= now),
                "stream {} reads before it starts",
                number + 1
            );
            feed.wanted = Some(feed.stream.next_read(&self.rules));
        }
        Some(BeforeCall::Nothing)
    }

    /// Returns the next call towards the wanted read of a process.
    fn towards(&mut self, number: usize) -> Call<'_> {
        let feed = &mut self.feeds[number];
        let bytes = self.config.read_size.0;
        match (feed.open, feed.wanted) {
            // A read at the file's position needs no seek.
            (Some((open, at)), Some((file, read))) if open == file && at == read => {
                feed.open = Some((file, read + 1));
                feed.wanted = None;
                Call::Read {
                    fd: FD,
                    at: None,
                    bytes,
                }
            }
            (Some((open, _)), Some((file, read))) if open == file => {
                feed.open = feed.wanted;
                Call::Seek {
                    fd: FD,
                    to: read * bytes,
                }
            }
            (None, Some((file, _))) => {
                feed.open = Some((file, 0));
                self.path = self.config.file(file);
                Call::Open {
                    path: &self.path,
                    fd: FD,
                    how: OpenFlags::READ,
                }
            }
            _ => {
                feed.open = None;
                Call::Close { fd: FD }
            }
        }
    }

    fn results(&self) -> StreamsResults {
        StreamsResults::new(self.tallies.clone(), self.config.until_start_up_latency)
    }
}

impl Program for Playback {
    fn processes(&self) -> u32 {
        self.config.streams
    }

    fn laid_out(&self) -> Vec<InitialFile> {
        let laid = |number| InitialFile {
            path: self.config.file(number),
            bytes: Some(self.config.file_size),
            unwritten: false,
        };
        (0..self.config.file_count()).map(laid).collect()
    }

    fn next(&mut self, turn: ProgramTurn<'_>) -> ProgramAction<'_> {
        let (now, number) = (turn.now, turn.process as usize);
        if let Some(answer) = turn.answer
            && let Err(message) = self.take_answer(now, number, answer, turn.events)
        {
            return ProgramAction::Fail(message);
        }
        match self.before(now, number) {
            Some(BeforeCall::Sleep(time)) => ProgramAction::Compute(time),
            Some(BeforeCall::Nothing) => ProgramAction::Call(self.towards(number)),
            None if self.feeds[number].open.is_some() => {
                self.feeds[number].wanted = None;
                ProgramAction::Call(self.towards(number))
            }
            None => ProgramAction::End,
        }
    }

    fn report(&self) -> ProgramReport {
        let results = self.results();
        let mut figures = vec![
            ("started", results.started().count() as f64),
            ("playing", results.playing().count() as f64),
            ("sustained", results.sustained() as f64),
            ("nominal_mbit_per_s", results.nominal_mbit_per_s()),
            ("underruns", results.underruns() as f64),
            ("with_underruns", results.with_underruns() as f64),
            ("longest_stall_ms", results.longest_stall().as_millis_f64()),
        ];
        figures.extend(
            results
                .within_latency()
                .map(|streams| ("within_latency", streams as f64)),
        );
        let missed = Some(results.deadlines_missed_share()).filter(|share| share.is_finite());
        figures.extend(missed.map(|share| ("deadlines_missed_share", share)));
        let latencies: Vec<f64> = results
            .started()
            .filter_map(StreamTally::start_up_latency)
            .map(Duration::as_millis_f64)
            .collect();
        if !latencies.is_empty() {
            figures.push(("start_up_ms_mean", mean(&latencies)));
            // Streams that started last had the most competitors, so their latency is shown apart
            // from the mean.
            let last = &latencies[latencies.len() - latencies.len().div_ceil(10)..];
            figures.push(("start_up_ms_last_tenth", mean(last)));
            figures.push((
                "start_up_ms_max",
                latencies.iter().copied().fold(0.0, f64::max),
            ));
        }
        ProgramReport {
            figures,
            text: table(&results),
            notes: Vec::new(),
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns a table of start-up latencies by number of streams. Each row covers the same number of
/// streams.
fn table(results: &StreamsResults) -> String {
    let started: Vec<&StreamTally> = results.started().collect();
    let mut text =
        String::from("   streams   start-up ms, mean         max   not played   underruns\n");
    let step = started.len().div_ceil(ROWS).max(1);
    for (row, streams) in started.chunks(step).enumerate() {
        let latencies: Vec<f64> = streams
            .iter()
            .filter_map(|tally| Some(tally.start_up_latency()?.as_millis_f64()))
            .collect();
        let mean = latencies.iter().sum::<f64>() / latencies.len().max(1) as f64;
        let most = latencies.iter().copied().fold(0.0, f64::max);
        let (first, last) = (row * step + 1, row * step + streams.len());
        let underruns: u64 = streams.iter().map(|tally| tally.underruns).sum();
        let silent = streams.len() - latencies.len();
        let _ = writeln!(
            text,
            "{:>10} {mean:>19.1} {most:>11.1} {silent:>12} {underruns:>11}",
            format!("{first}-{last}")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{PlainHost, keys};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    /// Runs the program on a disk with serial reads. A read takes `takes`, and everything else
    /// takes no time. Returns the report, the reads as stream, file and place, and the events.
    fn on_disk(value: Value, takes: Duration) -> (ProgramReport, Vec<(u32, String, u64)>, Events) {
        let recipe = read_recipe(&keys(value), None).unwrap();
        let mut program = recipe.program(Seed(1));
        let processes = program.processes() as usize;
        let mut due: Vec<(Time, Option<CallAnswer>)> = vec![(Time::ZERO, None); processes];
        let mut places = vec![(String::new(), 0); processes];
        let (mut idle, mut reads, mut events) = (Time::ZERO, Vec::new(), Events::default());
        while let Some((at, number)) = (0..processes).map(|number| (due[number].0, number)).min()
            && at < Time::NEVER
        {
            let answer = due[number].1.take();
            let turn = ProgramTurn {
                now: at,
                process: number as u32,
                answer: answer.as_ref(),
                events: &mut events,
            };
            let mut answered = |kind, ended, bytes| {
                let answer = CallAnswer {
                    kind,
                    began: at,
                    ended,
                    result: Ok(bytes),
                };
                due[number] = (ended, Some(answer));
            };
            match program.next(turn) {
                ProgramAction::Compute(time) => due[number].0 = at + time,
                ProgramAction::End => due[number].0 = Time::NEVER,
                ProgramAction::Call(call) => match call {
                    Call::Read { bytes, .. } => {
                        idle = idle.max(at) + takes;
                        let (path, place) = &mut places[number];
                        reads.push((number as u32, path.clone(), *place));
                        *place += bytes;
                        answered(CallKind::Read, idle, bytes);
                    }
                    Call::Open { path, .. } => {
                        places[number] = (path.to_owned(), 0);
                        answered(CallKind::Open, at, 0);
                    }
                    Call::Seek { to, .. } => {
                        places[number].1 = to;
                        answered(CallKind::Seek, at, 0);
                    }
                    Call::Close { .. } => answered(CallKind::Close, at, 0),
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            }
        }
        (program.report(), reads, events)
    }

    fn figure(report: &ProgramReport, name: &str) -> f64 {
        report
            .figures
            .iter()
            .find(|(known, _)| *known == name)
            .unwrap_or_else(|| panic!("{name}"))
            .1
    }

    fn ramp(more: Value) -> Value {
        let mut all = json!({
            "streams": 100, "bit_rate": "4Mbit/s", "file_size": "1GiB", "duration": "5s", "start_position": "random",
            "files": 1,
        });
        all.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        all
    }

    #[test]
    fn streams_are_added_until_one_waits_for_a_byte() {
        // 64 KiB play for 131 ms. At 10 ms per read there is time for 13 streams.
        let (report, ..) = on_disk(
            ramp(json!({ "until_underrun": true })),
            Duration::from_millis(10),
        );
        assert!(
            (13.0..=15.0).contains(&figure(&report, "sustained")),
            "{}",
            report.text
        );
        assert!(
            (14.0..=20.0).contains(&figure(&report, "started")),
            "{}",
            report.text
        );
        assert!(figure(&report, "with_underruns") > 0.0);
    }

    #[test]
    fn streams_are_added_until_one_starts_too_late() {
        let limit = json!({ "until_start_up_latency": "50ms" });
        let (report, _, events) = on_disk(ramp(limit), Duration::from_millis(10));
        let within = figure(&report, "within_latency");
        assert!((13.0..25.0).contains(&within), "{}", report.text);
        assert!(figure(&report, "started") > within && figure(&report, "start_up_ms_max") > 50.0);
        let count = |kind| {
            events
                .transactions
                .iter()
                .filter(|one| one.kind == kind)
                .count() as f64
        };
        assert_eq!(count("start-up"), figure(&report, "playing"));
        assert_eq!(count("stall"), figure(&report, "underruns"));
    }

    #[test]
    fn a_disk_that_is_fast_enough_lets_all_play_to_the_end() {
        let (report, reads, _) = on_disk(
            json!({ "streams": 10, "bit_rate": "4Mbit/s", "file_size": "1MiB", "duration": "20s" }),
            Duration::from_millis(5),
        );
        assert_eq!(figure(&report, "sustained"), 10.0);
        assert_eq!(
            (figure(&report, "underruns"), figure(&report, "playing")),
            (0.0, 10.0)
        );
        for stream in 0..10u32 {
            let own: Vec<_> = reads.iter().filter(|read| read.0 == stream).collect();
            assert!(own.iter().all(|read| read.1 == own[0].1));
            let expected = (0..own.len() as u64).map(|read| read % 16 * 65536);
            assert!(own.iter().map(|read| read.2).eq(expected));
            // The stream plays for 20 s and one more second for each stream that starts after it.
            let seconds = 20.0 + f64::from(9 - stream);
            let played = own.len() as f64 * 65536.0 * 8.0 / 4e6;
            assert!(
                (seconds..seconds + 1.0).contains(&played),
                "{stream}: {played}"
            );
        }
        let files: std::collections::BTreeSet<&String> = reads.iter().map(|read| &read.1).collect();
        assert_eq!(files.len(), 10);
    }

    #[test]
    fn after_its_end_another_file_is_opened() {
        let keys = json!({
            "streams": 2, "files": 5, "bit_rate": "8Mbit/s", "file_size": "128KiB", "duration": "10s", "at_end": "another",
        });
        let (_, reads, _) = on_disk(keys, Duration::from_millis(1));
        let files: std::collections::BTreeSet<&String> = reads.iter().map(|read| &read.1).collect();
        assert_eq!(files.len(), 5);
        assert!(reads.iter().all(|read| read.2 < 128 << 10));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The clients of this program and of the workload `streams` see the same: the number of
        /// sustained streams follows from the speed of the disk alone.
        #[test]
        fn what_is_sustained_follows_from_the_speed(rate in 500_000u64..8_000_000, takes in 2u64..40) {
            let streams = json!({ "bit_rate": format!("{rate}bit/s"), "until_underrun": true, "duration": "2s" });
            let (report, reads, _) = on_disk(ramp(streams), Duration::from_millis(takes));
            let (plays, takes) = (65536.0 * 8.0 / rate as f64, takes as f64 / 1000.0);
            let fit = (plays / takes).floor();
            // One more stream per second takes `takes / plays` of the disk. A byte is late when the
            // deficit exceeds the read that each client has in reserve.
            let more = (2.0 * plays * plays / takes).sqrt();
            let sustained = figure(&report, "sustained");
            prop_assert!(sustained >= (fit - 1.0).min(100.0), "{} of {}", sustained, fit);
            prop_assert!(sustained <= fit + more + 2.0, "{} of {} and {}", sustained, fit, more);
            prop_assert!(reads.iter().all(|read| read.2 < 1 << 30 && read.2 % 65536 == 0));
        }
    }

    #[test]
    fn what_cannot_be_names_its_key() {
        for (value, key) in [
            (json!({ "streams": 0 }), "streams"),
            (json!({ "streams": 20_000 }), "streams"),
            (json!({ "bit_rate": null }), "bit_rate"),
            (json!({ "file_size": "100KiB" }), "file_size"),
            (json!({ "file_size": 0 }), "file_size"),
            (json!({ "files": 0 }), "files"),
            (
                json!({ "start_up_buffer": "1MiB", "client_buffer": "64KiB" }),
                "start_up_buffer",
            ),
            (
                json!({ "until_underrun": true, "start_interval": "0s" }),
                "start_interval",
            ),
            (
                json!({ "variation": { "distribution": "uniform", "share": 2 } }),
                "variation.share",
            ),
        ] {
            let error = PlainHost::default()
                .run("playback", &keys(ramp(value)), None, 1)
                .unwrap_err();
            assert!(error.contains(key), "{key}: {error}");
        }
    }
}
