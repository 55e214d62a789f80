//! The command line of fullstroke.
//!
//! Each subcommand is one file. Shared code is in these files:
//!
//! - `arguments.rs`: the command line, and errors of numbers.
//! - `options.rs`: options.
//! - `output.rs`: printing, and the exit status of an error.
//! - `outputs.rs`: checks of the files that a command writes.
//! - `bars.rs`: progress bars.
//! - `paint.rs`: colours.
//! - `report.rs`: pages and figures.
//! - `interrupt.rs`: Ctrl-C.
//! - `memory.rs`: the peak memory of the process.
//!
//! A build without some features leaves commands out (`left_out.rs`). The manifest lists the
//! features.
//!
//! Exit status: 0 on success; 1 if a check fails: `--fail-unless`, an `advise` whose wishes no
//! layout meets, a faulty description in `drive check`, a claim without support in `study check`;
//! 2 for unusable input; 3 if a run is too short to tell whether `--fail-unless` holds.

mod advise;
mod arguments;
#[cfg(feature = "real")]
mod array;
mod ask;
mod bars;
#[cfg(feature = "real")]
mod cache;
mod compare;
mod completions;
#[cfg(feature = "real")]
mod ctl;
mod drive;
mod energy;
mod explain;
#[cfg(feature = "real")]
mod extract;
mod fail_unless;
#[cfg(feature = "real")]
mod fit;
mod fold;
mod fs;
#[cfg(feature = "real")]
mod heed;
mod interrupt;
#[cfg(not(all(feature = "real", feature = "top")))]
mod left_out;
mod like;
mod lzvs;
mod man;
mod memory;
mod metrics;
#[cfg(feature = "real")]
mod network;
#[cfg(feature = "real")]
mod notify;
mod options;
mod output;
mod outputs;
mod paint;
mod perfetto;
mod power;
mod predict;
#[cfg(feature = "real")]
mod record;
#[cfg(feature = "real")]
mod replay;
#[cfg(feature = "real")]
mod replay_decisions;
mod report;
mod run;
#[cfg(feature = "real")]
mod serve;
mod slow;
mod stack;
mod standard_input;
#[cfg(feature = "real")]
mod stream_test;
mod study;
#[cfg(feature = "top")]
mod top;
mod trace;
mod tune;
#[cfg(feature = "real")]
mod validate;
mod whole_load;

#[cfg(not(feature = "real"))]
left_out::left_out! {
    array: "array" needs "real";
    cache: "cache" needs "real";
    ctl: "ctl" needs "real";
    extract: "extract" needs "real";
    fit: "fit" needs "real";
    heed: "heed" needs "real";
    record: "record" needs "real";
    replay: "replay" needs "real";
    serve: "serve" needs "real";
    stream_test: "stream-test" needs "real";
    validate: "validate" needs "real";
}
#[cfg(not(feature = "top"))]
left_out::left_out! {
    top: "top" needs "top";
}

use clap::{Parser, Subcommand};
use output::{CommandFailure, CommandOutput};
use std::process::ExitCode;

// The allocator of musl has a single lock for all threads and returns large blocks to the kernel at
// once.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Simulates arrays of spinning disks under real block traces.
///
/// A stack file describes workload, volume layout and drives. `run` measures
/// one stack, `compare` ranks several and says how sure the order is.
#[derive(Debug, Parser)]
#[command(
    name = "fullstroke",
    version,
    propagate_version = true,
    max_term_width = 100
)]
#[command(after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Print JSON on standard output, and no progress.
    #[arg(long, global = true)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  fullstroke compare stacks/demo/*.toml
  fullstroke compare stacks/demo/raid5.toml --vary volume.chunk=16KiB,64KiB,256KiB --by response_ms.p99
  fullstroke run stacks/demo/raid5.toml --trace web.load.gz --set volume.chunk=256KiB --json
  fullstroke trace info web.load.gz";

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Arguments),
    Compare(compare::Arguments),
    Tune(tune::Arguments),
    Advise(advise::Arguments),
    Energy(energy::Arguments),
    Predict(predict::Arguments),
    Serve(serve::Arguments),
    /// Create, assemble, repair and serve durable arrays on real devices and files.
    #[cfg(feature = "real")]
    #[command(subcommand)]
    Array(array::Command),
    #[cfg(not(feature = "real"))]
    Array(array::Arguments),
    Cache(cache::Arguments),
    Heed(heed::Arguments),
    Replay(replay::Arguments),
    Record(record::Arguments),
    Like(like::Arguments),
    StreamTest(stream_test::Arguments),
    Ctl(ctl::Arguments),
    Top(top::Arguments),
    /// Describe, convert or show block traces.
    #[command(subcommand)]
    Trace(trace::Command),
    /// List, show or check descriptions of drives.
    #[command(subcommand)]
    Drive(drive::Command),
    /// Check stack files, or print their schema.
    #[command(subcommand)]
    Stack(stack::Command),
    /// Run published studies and check their claims.
    #[command(subcommand)]
    Study(study::Command),
    /// Plan, measure and draw volumes of constant transfer rate.
    #[command(subcommand)]
    Lzvs(lzvs::Command),
    /// Show and align the files of a simulated file system.
    #[command(subcommand)]
    Fs(fs::Command),
    /// Calculate probabilities without a simulation.
    #[command(subcommand)]
    Explain(explain::Command),
    Extract(extract::Arguments),
    Fit(fit::Arguments),
    Validate(validate::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

fn main() -> ExitCode {
    // Before clap, which would print the help for a program without arguments.
    if ask::wanted() {
        interrupt::clean_up_at_signals();
        return match ask::execute(&CommandOutput::new(false)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.report(),
        };
    }
    let cli: Cli = arguments::parse();
    let output = CommandOutput::new(cli.json);
    // These end by their own signal handlers, with a report or with durable data.
    let ends_itself = matches!(
        cli.command,
        Command::Serve(_)
            | Command::Array(_)
            | Command::Cache(_)
            | Command::Heed(_)
            | Command::Replay(_)
            | Command::Record(_)
            | Command::StreamTest(_)
            | Command::Top(_)
    );
    if !ends_itself {
        interrupt::clean_up_at_signals();
    }
    match execute(&cli.command, &output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn execute(command: &Command, output: &CommandOutput) -> Result<(), CommandFailure> {
    match command {
        Command::Run(arguments) => run::execute(arguments, output),
        Command::Compare(arguments) => compare::execute(arguments, output),
        Command::Tune(arguments) => tune::execute(arguments, output),
        Command::Advise(arguments) => advise::execute(arguments, output),
        Command::Energy(arguments) => energy::execute(arguments, output),
        Command::Predict(arguments) => predict::execute(arguments, output),
        Command::Serve(arguments) => serve::execute(arguments, output),
        Command::Array(command) => array::execute(command, output),
        Command::Cache(arguments) => cache::execute(arguments, output),
        Command::Heed(arguments) => heed::execute(arguments, output),
        Command::Record(arguments) => record::execute(arguments, output),
        Command::Replay(arguments) => replay::execute(arguments, output),
        Command::StreamTest(arguments) => stream_test::execute(arguments, output),
        Command::Ctl(arguments) => ctl::execute(arguments, output),
        Command::Like(arguments) => like::execute(arguments, output),
        Command::Top(arguments) => top::execute(arguments, output),
        Command::Trace(command) => trace::execute(command, output),
        Command::Drive(command) => drive::execute(command, output),
        Command::Stack(command) => stack::execute(command, output),
        Command::Study(command) => study::execute(command, output),
        Command::Lzvs(command) => lzvs::execute(command, output),
        Command::Fs(command) => fs::execute(command, output),
        Command::Explain(command) => explain::execute(command, output),
        Command::Extract(arguments) => extract::execute(arguments, output),
        Command::Fit(arguments) => fit::execute(arguments, output),
        Command::Validate(arguments) => validate::execute(arguments, output),
        Command::Completions(arguments) => completions::execute(arguments, output),
        Command::Man(arguments) => man::execute(arguments, output),
    }
}
