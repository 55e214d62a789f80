//! `fullstroke stream-test`: plays media streams from a real device until one stalls.

use crate::output::{CommandFailure, CommandOutput};
use clap::Args;
use fullstroke_contract::ConfigError;
use fullstroke_lab::{Recipe, Varied, run_all};
use fullstroke_measure::{StreamsReport, number, table};
use fullstroke_replay::stream_test::{RampOutcome, RampProgress, Target, run};
use fullstroke_stack::Overrides;
use fullstroke_units::{BitRate, Bytes, Duration, Seed, one_line};
use fullstroke_workload::StreamsConfig;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use serde_json::{Map, Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Play media streams from a real device, adding streams until a client lacks a byte. The result is
/// the number of streams that play at a time.
///
/// Each client is a leaky bucket on its own thread. The client plays at its bit rate from a buffer.
/// A server sends data over TCP on the loopback interface as soon as the buffer has room. The
/// options equal the keys of the simulator's workload `streams`; --stack simulates the same load
/// for comparison. A device or NBD server is only read. In a folder, files are created and removed
/// again. Ctrl-C ends the ramp with a report.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Block device, file, folder, unix socket of an NBD server, or NBD URI.
    #[arg(long, value_name = "TARGET")]
    on: String,

    /// Bit rate of each stream, such as 8Mbit/s.
    #[arg(long, value_name = "BITRATE")]
    rate: BitRate,

    /// Maximum number of streams.
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    streams: u32,

    /// Time between the starts of two streams.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    start_interval: Duration,

    /// Playing time after the start of the last stream.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    duration: Duration,

    /// Size of the server's reads.
    #[arg(long, value_name = "BYTES", default_value = "64KiB")]
    read_size: Bytes,

    /// Bytes in a client's buffer before the client starts to play. Default: one second of play at
    /// the highest bit rate, at least one read, and at most the client's buffer.
    #[arg(long, value_name = "BYTES")]
    start_up_buffer: Option<Bytes>,

    /// Size of a client's buffer. Default: five seconds of play at the highest bit rate, at least the
    /// start-up buffer and one read.
    #[arg(long, value_name = "BYTES")]
    client_buffer: Option<Bytes>,

    /// Number of files. Default: number of streams. On a device and in the simulator the files lie
    /// at equal distances.
    #[arg(long, value_name = "NUMBER")]
    files: Option<u32>,

    /// Size of each file. Default: 64MiB in a folder, else the available space.
    #[arg(long, value_name = "BYTES")]
    file_size: Option<Bytes>,

    /// Start all streams, even after an underrun.
    #[arg(long)]
    go_on: bool,

    /// Read through the page cache.
    #[arg(long)]
    cached: bool,

    /// Stack file for a simulation of the same streams.
    #[arg(long, value_name = "FILE")]
    stack: Option<PathBuf>,

    /// Set a key of the stack file (may be repeated).
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "stack")]
    set: Vec<String>,

    /// Seed of the assignment of files to streams.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

/// Result, in the terms of the simulator.
#[derive(Serialize)]
struct StreamTestOutput {
    target: String,
    bit_rate: String,
    elapsed_s: f64,
    /// True if a signal ended the ramp.
    stopped: bool,
    /// True if all requested streams were started.
    all_started: bool,
    /// Time of the first underrun, in seconds.
    first_underrun_s: Option<f64>,
    /// Maximum oversleep of a client thread, in milliseconds.
    host_late_ms_max: f64,
    /// Playing time of one read, in milliseconds. A host that is later than this stalls streams by
    /// itself.
    read_plays_ms: f64,
    measured: StreamsReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated: Option<StreamsReport>,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let keys = arguments.keys();
    let config: StreamsConfig =
        serde_json::from_value(Value::Object(keys.clone())).map_err(CommandFailure::input)?;
    config
        .check()
        .map_err(|error| CommandFailure::Input(arguments.said(&error)))?;
    let seed = Seed(arguments.seed);
    let target = Target::named(&arguments.on).map_err(CommandFailure::input)?;
    // The simulation comes first, so that an error of the stack is found before an hour of streams.
    let simulated = arguments.simulate(&keys)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(CommandFailure::input)?;
    }
    let bar = progress_bar(&config, output);
    bar.set_message(format!("preparing {}", one_line(&arguments.on.to_string())));
    let medium = target
        .open(&config, arguments.cached, seed)
        .map_err(CommandFailure::input)?;
    let outcome = run(&config, &medium, seed, &stop, &mut |progress| {
        show(&bar, &progress)
    });
    // Before an error is printed, because the message would otherwise stand behind the bar.
    bar.finish_and_clear();
    let answer = arguments.answer(&config, &outcome.map_err(CommandFailure::input)?, simulated);
    output.show(&answer, answer.text())
}

fn progress_bar(config: &StreamsConfig, output: &CommandOutput) -> ProgressBar {
    let target = if output.json() {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    };
    let bar = ProgressBar::with_draw_target(Some(u64::from(config.streams)), target);
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} streams {msg}");
    // The template is constant and valid; the default is never used.
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn show(bar: &ProgressBar, progress: &RampProgress) {
    bar.set_position(progress.started as u64);
    bar.set_message(match progress.with_underruns {
        0 => format!("{:.0} s", progress.elapsed.as_secs_f64()),
        stalled => format!(
            "{:.0} s, {stalled} have stalled",
            progress.elapsed.as_secs_f64()
        ),
    });
}

impl Arguments {
    /// Returns the keys of the workload.
    fn keys(&self) -> Map<String, Value> {
        let mut keys = Map::new();
        let mut put = |key: &str, value: Value| keys.insert(key.to_owned(), value);
        put("streams", json!(self.streams));
        put("bit_rate", json!(self.rate));
        put("start_interval", json!(self.start_interval));
        put("duration", json!(self.duration));
        put("read_size", json!(self.read_size));
        put("until_underrun", json!(!self.go_on));
        let optional = [
            (
                "start_up_buffer",
                self.start_up_buffer.map(|bytes| json!(bytes)),
            ),
            (
                "client_buffer",
                self.client_buffer.map(|bytes| json!(bytes)),
            ),
            ("files", self.files.map(|files| json!(files))),
            ("file_size", self.file_size.map(|bytes| json!(bytes))),
        ];
        for (key, value) in optional {
            if let Some(value) = value {
                put(key, value);
            }
        }
        keys
    }

    /// Returns the error of a key with the name of its option.
    fn said(&self, error: &ConfigError) -> String {
        let option = match error.key.as_str() {
            "bit_rate" => "--rate".to_owned(),
            key => format!("--{}", key.replace('_', "-")),
        };
        format!("{option}: {}", error.message)
    }

    fn simulate(&self, keys: &Map<String, Value>) -> Result<Option<StreamsReport>, CommandFailure> {
        let Some(file) = &self.stack else {
            return Ok(None);
        };
        let keys = keys.iter().map(|(key, value)| format!("{key} = {value}"));
        let workload: Vec<String> = std::iter::once("kind = \"streams\"".to_owned())
            .chain(keys)
            .collect();
        let mut set = vec![format!("workload={{ {} }}", workload.join(", "))];
        set.extend(self.set.iter().cloned());
        let overrides = Overrides {
            set,
            seed: Some(self.seed),
            ..Overrides::default()
        };
        let recipe = Recipe {
            name: "simulated".to_owned(),
            varied: Varied::default(),
            file: file.clone(),
            overrides,
        };
        let candidate = recipe.candidate().map_err(CommandFailure::input)?;
        let ran = run_all(&[candidate], 1, &|_| ()).map_err(CommandFailure::input)?;
        Ok(ran
            .into_iter()
            .next()
            .and_then(|ran| ran.measured.report.streams))
    }

    fn answer(
        &self,
        config: &StreamsConfig,
        outcome: &RampOutcome,
        simulated: Option<StreamsReport>,
    ) -> StreamTestOutput {
        let measured = StreamsReport::new(&outcome.results);
        let first = outcome
            .results
            .started()
            .filter_map(|tally| tally.first_underrun)
            .min();
        StreamTestOutput {
            target: self.on.clone(),
            bit_rate: self.rate.to_string(),
            elapsed_s: outcome.elapsed.as_secs_f64(),
            stopped: outcome.stopped,
            all_started: measured.started == config.streams as usize,
            first_underrun_s: first.map(|at| at.as_secs_f64()),
            host_late_ms_max: outcome.host_late_max.as_millis_f64(),
            // 8 bits per byte, 1000 ms per second.
            read_plays_ms: self.read_size.0 as f64 * 8e3 / self.rate.0 as f64,
            measured,
            simulated,
        }
    }
}

impl StreamTestOutput {
    fn text(&self) -> String {
        let streams = &self.measured;
        let mut lines = vec![format!(
            "{}: {} streams of {} played at a time without a pause ({:.1} Mbit/s)",
            self.target,
            streams.sustained,
            self.bit_rate,
            // If no stream plays, the rate is 0 and so is the quotient.
            streams.sustained as f64 * streams.nominal_mbit_per_s / streams.playing.max(1) as f64
        )];
        lines.push(match self.first_underrun_s {
            Some(at) => format!(
                "{} of {} stalled, the first {at:.1} s after the beginning",
                streams.with_underruns, streams.started
            ),
            None if self.all_started => "none stalled; --streams asks for more".to_owned(),
            None => format!("none of {} stalled", streams.started),
        });
        if self.stopped {
            lines.push(format!("stopped after {:.1} s", self.elapsed_s));
        }
        if self.host_late_ms_max > self.read_plays_ms {
            lines.push(format!(
                "this host woke a client {:.1} ms late, and a read plays {:.1} ms: the host may have caused stalls; repeat the \
                 test with larger buffers, or with fewer programs on the host",
                self.host_late_ms_max, self.read_plays_ms
            ));
        }
        lines.push(String::new());
        lines.push(self.side_by_side());
        lines.join("\n")
    }

    fn side_by_side(&self) -> String {
        let mut table = table(
            [
                "",
                "started",
                "sustained",
                "underruns",
                "longest stall ms",
                "start-up ms",
                "p99",
                "max",
            ],
            &[0],
        );
        let rows = [
            ("measured", Some(&self.measured)),
            ("simulated", self.simulated.as_ref()),
        ];
        for (name, streams) in rows
            .into_iter()
            .filter_map(|(name, streams)| Some((name, streams?)))
        {
            table.add_row([
                name.to_owned(),
                streams.started.to_string(),
                streams.sustained.to_string(),
                streams.underruns.to_string(),
                number(streams.longest_stall_ms),
                number(streams.start_up_ms.mean),
                number(streams.start_up_ms.p99),
                number(streams.start_up_ms.max),
            ]);
        }
        table.trim_fmt()
    }
}
