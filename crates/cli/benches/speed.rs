//! Speed and memory of simulation and trace reading. The benchmark prints figures and asserts
//! nothing.
//!
//! Each measurement runs in a separate process, so that its peak memory is its own. Each is
//! repeated; the output is the median with the range.

use anyhow::{Context, Result};
use fullstroke_drive::SlipConfig;
use fullstroke_stack::drives;
use fullstroke_trace::{TraceOptions, TraceReader};
use fullstroke_units::Sectors;
use serde_json::Value;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const RUNS: usize = 5;
/// Number of requests per simulation.
const MILLION: u64 = 1_000_000;
const TRACE_ROWS: u64 = 5_000_000;

fn main() -> Result<()> {
    if let [_, command, file] = &std::env::args().collect::<Vec<_>>()[..]
        && command == "read"
    {
        return read(Path::new(file));
    }
    println!("one thread, median of {RUNS} runs (least - most)\n");
    println!("{:<58} {:>26} {:>12} {:>9}", "", "rate", "aim", "peak MB");
    let program = PathBuf::from(env!("CARGO_BIN_EXE_fullstroke"));
    simulations(&program)?;
    trace_and_prediction(&program)?;
    println!(
        "\nFor scale, not measured here: DiskSim 4.0 has been seen to do 162 k requests a second on (a) without\n\
         its cache, and on (c) 20 k, 7 k and 2.3 k at 10 k, 20 k and 40 k requests."
    );
    Ok(())
}

/// Runs the simulations (a) to (c), (e) to (i) and (k) to (q), and prints a line for each.
fn simulations(program: &Path) -> Result<()> {
    let simulate = |name: &str, stack: &str, drive: Option<&Path>, aim: &str| {
        simulate(program, name, stack, drive, MILLION, aim)
    };
    let one = "closed-random-8k.toml";
    drives_of_today(program)?;
    let plain = simulate(
        "(a) one Cheetah 9LP, closed random 8 KB reads",
        one,
        None,
        "2 M/s",
    )?;
    simulate(
        "(b) the same, 32 outstanding, SATF",
        "closed-random-8k-satf.toml",
        None,
        "1 M/s",
    )?;
    longer_and_shorter(program)?;
    let mechanics = Path::new("seagate-cheetah-9lp");
    simulate(
        "(e) as (a), mechanics only: no cache, no bus",
        one,
        Some(mechanics),
        "3 M/s",
    )?;
    simulate("(f) SATF, 768 queued", "satf-768.toml", None, "1 M/s")?;
    let (cfq, processes) = ("cfq-256.toml", "(h) RAID-5 of 8 below CFQ, 256 processes");
    simulate(processes, cfq, None, "300 k/s")?;
    let smart = "../../studies/chang-du-2001/stacks/base.toml";
    simulate(
        "(i) 8 smart disks, 768 updates queued, two commands each",
        smart,
        None,
        "500 k/s",
    )?;
    let slipped = drive_with_slips(20_000)?;
    let many = simulate(
        "(g) as (a), with 20,000 slips",
        one,
        Some(slipped.path()),
        "as (a)",
    )?;
    println!(
        "    cost a request with 20,000 slips over 594: {:.2}",
        plain / many
    );
    Ok(())
}

/// Runs (k) to (q): drives that people own, a page cache, and many hosts.
fn drives_of_today(program: &Path) -> Result<()> {
    let x24 = Some(Path::new("seagate-exos-x24-24tb"));
    let arms = Some(Path::new("seagate-exos-2x18-18tb"));
    let raid6 = "raid6-24tb.toml";
    let raid10 = ["--set", "volume.layout=raid10"];
    let half = ["--set", "workload.read_share=0.5"];
    let one = "closed-random-8k.toml";
    let cases: [(&str, &str, Option<&Path>, &[&str]); 5] = [
        ("(k) RAID 6 of eight 24 TB drives, open", raid6, None, &[]),
        (
            "(l) RAID 10 of eight 24 TB drives, open",
            raid6,
            None,
            &raid10,
        ),
        ("(m) one 24 TB drive, write cache, closed", one, x24, &half),
        ("(n) a drive with two arms, closed", one, arms, &[]),
        (
            "(o) page cache above a 24 TB drive",
            "page-cache.toml",
            None,
            &[],
        ),
    ];
    for (name, stack, drive, settings) in cases {
        let aim = if stack == raid6 && settings.is_empty() {
            "400 k/s"
        } else {
            ""
        };
        let arguments = arguments(stack, drive, Some(MILLION), settings);
        report(name, aim, program, &arguments, "requests_per_wall_s")?;
    }
    let hosts = |name, stack| {
        let arguments = arguments(stack, None, None, &[]);
        report(name, "", program, &arguments, "requests_per_wall_s")
    };
    let few = hosts("(p) RAID-5 of 8 below 8 hosts", "hosts-8.toml")?;
    let many = hosts("(q) RAID-5 of 8 below 256 hosts", "hosts-256.toml")?;
    println!(
        "    cost a request of 256 hosts over 8, aim 1.5: {:.2}",
        few / many
    );
    Ok(())
}

/// Runs (c) with fewer requests, too, because the cost of a request must not grow with the run.
fn longer_and_shorter(program: &Path) -> Result<()> {
    let array = "raid5-open.toml";
    let long = simulate(
        program,
        "(c) RAID-5 of 8, 66 % reads, open, 1 M requests",
        array,
        None,
        MILLION,
        "500 k/s",
    )?;
    let short = simulate(
        program,
        "    the same, 100 k requests",
        array,
        None,
        100_000,
        "",
    )?;
    let shorter = simulate(
        program,
        "    the same, 10 k requests",
        array,
        None,
        10_000,
        "",
    )?;
    println!(
        "    cost a request at 1 M over 100 k: {:.2}, over 10 k: {:.2}",
        short / long,
        shorter / long
    );
    Ok(())
}

/// Runs `requests` requests of a stack, on `drive` if given. Returns the number of simulated
/// requests per second.
fn simulate(
    program: &Path,
    name: &str,
    stack: &str,
    drive: Option<&Path>,
    requests: u64,
    aim: &str,
) -> Result<f64> {
    let arguments = arguments(stack, drive, Some(requests), &[]);
    report(name, aim, program, &arguments, "requests_per_wall_s")
}

/// Returns the arguments of a run of `stack`, with other settings than in the file.
fn arguments(
    stack: &str,
    drive: Option<&Path>,
    requests: Option<u64>,
    settings: &[&str],
) -> Vec<OsString> {
    let stacks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../stacks/bench");
    let mut arguments: Vec<OsString> =
        vec!["run".into(), stacks.join(stack).into(), "--json".into()];
    if let Some(requests) = requests {
        arguments.extend(["--requests".into(), requests.to_string().into()]);
    }
    let drive = drive.into_iter();
    arguments.extend(drive.flat_map(|drive| ["--drive".into(), drive.into()]));
    arguments.extend(settings.iter().map(OsString::from));
    arguments
}

/// Runs (d), reading a trace, and (j), a prediction from a trace.
fn trace_and_prediction(program: &Path) -> Result<()> {
    let trace = generated_trace()?;
    let arguments = ["read".into(), trace.path().as_os_str().to_owned()];
    report(
        "(d) MSR CSV, 5 M rows",
        "10 M rows/s",
        &std::env::current_exe()?,
        &arguments,
        "rows_per_s",
    )?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut arguments: Vec<OsString> = vec![
        "predict".into(),
        root.join("samples/pgbench.parquet").into(),
    ];
    arguments.extend(["--stack".into(), root.join("stacks/demo/raid5.toml").into()]);
    arguments.extend(["--no-simulation".into(), "--json".into()]);
    let answer = "(j) predict's answer behind fingerprint and tables, in us";
    report(answer, "1000", program, &arguments, "answered_us")?;
    Ok(())
}

/// Runs a command with JSON output several times. Prints and returns the median of `key`.
fn report(name: &str, aim: &str, program: &Path, arguments: &[OsString], key: &str) -> Result<f64> {
    let mut rates = Vec::new();
    let mut peak_mb: f64 = 0.0;
    for _ in 0..RUNS {
        let output = Command::new(program)
            .args(arguments)
            .output()
            .with_context(|| program.display().to_string())?;
        anyhow::ensure!(
            output.status.success(),
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let json: Value = serde_json::from_slice(&output.stdout)?;
        rates.push(
            json[key]
                .as_f64()
                .with_context(|| format!("{name}: no {key}"))?,
        );
        peak_mb = peak_mb.max(json["peak_rss_mb"].as_f64().unwrap_or(f64::NAN));
    }
    rates.sort_by(f64::total_cmp);
    let median = rates[RUNS / 2];
    let range = format!(
        "{} ({} - {})",
        compact(median),
        compact(rates[0]),
        compact(rates[RUNS - 1])
    );
    println!("{name:<58} {range:>26} {aim:>12} {peak_mb:>9.1}");
    Ok(median)
}

fn compact(rate: f64) -> String {
    if rate >= 1e6 {
        format!("{:.2} M", rate / 1e6)
    } else {
        format!("{:.0} k", rate / 1e3)
    }
}

/// Reads a whole trace and prints the rate as JSON.
fn read(path: &Path) -> Result<()> {
    let begun = Instant::now();
    let mut reader = TraceReader::open(path, &TraceOptions::default())?;
    let mut rows = 0u64;
    let mut sectors = 0u64;
    while let Some(record) = reader.next()? {
        rows += 1;
        sectors = sectors.wrapping_add(record.extent.sectors.0);
    }
    let rows_per_s = rows as f64 / begun.elapsed().as_secs_f64();
    println!(
        "{}",
        serde_json::json!({ "rows": rows, "sectors": sectors, "rows_per_s": rows_per_s, "peak_rss_mb": peak_rss_mb() })
    );
    Ok(())
}

/// Returns the peak resident memory of this process in 10^6 bytes, if the system reports it.
fn peak_rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(
        line.trim()
            .strip_suffix(" kB")?
            .trim()
            .parse::<f64>()
            .ok()?
            * 1024.0
            / 1e6,
    )
}

/// Writes a drive file of the Cheetah with `slips` slipped sectors at equal distances.
fn drive_with_slips(slips: u64) -> Result<tempfile::NamedTempFile> {
    let mut config = drives::load("seagate-cheetah-9lp-measured")?
        .config()
        .clone();
    let each = slips / config.zones.len() as u64;
    for zone in &mut config.zones {
        let tracks =
            u64::from(zone.last_cylinder - zone.first_cylinder + 1) * u64::from(config.surfaces);
        // The distance holds for all zones, because every track has more than 150 sectors.
        let apart = tracks * 150 / each;
        zone.slips = (0..each)
            .map(|slip| SlipConfig::One(slip * apart))
            .collect();
        zone.spares += each;
        config.capacity_sectors -= Sectors(each);
    }
    let mut file = tempfile::NamedTempFile::with_suffix(".toml")?;
    file.write_all(drives::to_toml(&config, &[])?.as_bytes())?;
    Ok(file)
}

/// Writes a trace in the format of the MSR Cambridge traces.
fn generated_trace() -> Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::with_suffix(".csv")?;
    let mut out = std::io::BufWriter::new(file.as_file_mut());
    let mut state = 1u64;
    for row in 0..TRACE_ROWS {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let operation = if state >> 63 == 0 { "Read" } else { "Write" };
        let timestamp = 128_166_372_003_061_629 + row * 10_000 + (state >> 40) % 10_000;
        let offset = (state >> 20) % (1 << 28) * 512;
        let size = ((state >> 50) % 16 + 1) * 4096;
        writeln!(
            out,
            "{timestamp},made,0,{operation},{offset},{size},{}",
            1000 + (state >> 45) % 100_000
        )?;
    }
    out.flush()?;
    drop(out);
    Ok(file)
}
