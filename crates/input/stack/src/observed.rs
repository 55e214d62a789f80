//! Reads summaries of a load: the output of `iostat` (Linux, FreeBSD, Solaris), of `sar -d` and
//! `sar -b`, and of `zpool iostat`.
//!
//! A summary has rates and sizes, and neither addresses nor arrival times. A stack file that is made of
//! a summary says its assumptions.

mod reports;

use crate::StackError;
use reports::{ALL_DISKS, Report, Row, WHOLE_POOL, reports};
use serde::Serialize;
use std::fmt::Write as _;

/// Load of one device, as a tool sums it up.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ObservedLoad {
    /// Name of the device.
    pub device: String,
    /// Tool whose output was read: `iostat`, `sar -d` or `zpool iostat`.
    pub tool: &'static str,
    /// Number of reports that the figures average.
    pub reports: u32,
    /// Reads per second.
    pub reads_per_s: f64,
    /// Writes per second.
    pub writes_per_s: f64,
    /// Mean size of a read in KiB.
    pub read_kib: f64,
    /// Mean size of a write in KiB.
    pub write_kib: f64,
    /// True if the output has one number of transfers, which was divided by the bytes.
    pub divided: bool,
    /// Mean number of requests in queue and device.
    pub queue_depth: Option<f64>,
    /// Mean response time of all requests, or of the reads.
    pub read_response_ms: Option<f64>,
    /// Mean response time of the writes.
    pub write_response_ms: Option<f64>,
    /// Share of the time with a request in the device, in percent.
    pub utilisation_percent: Option<f64>,
    /// Flushes per second. The load of a stack file has none.
    pub flushes_per_s: f64,
    /// Discards per second. The load of a stack file has none.
    pub discards_per_s: f64,
    /// True if the device may consist of several drives: an array, a pool, or all disks together.
    pub several_drives: bool,
    /// True if the figures may cover the whole time since the start of the system.
    pub since_start: bool,
}

impl ObservedLoad {
    /// Returns true if the text is output of one of the tools.
    pub fn recognise(text: &str) -> bool {
        reports::recognise(text)
    }

    /// Reads the loads of all devices. `file` is the name of the text in errors.
    ///
    /// # Errors
    /// If the text has no report, or no columns of rates and sizes.
    pub fn read(file: &str, text: &str) -> Result<Vec<ObservedLoad>, StackError> {
        let reports = reports(file, text)?;
        let any_average = reports.iter().any(|report| report.average);
        let count = reports.len();
        // The first report of iostat covers the time since the start of the system, and the first of
        // zpool iostat the time since the import.
        let counts = |index: usize, report: &Report| {
            let whole = report.covers_start();
            // The averages of sar cover all reports, which would count twice beside them. A single
            // report of iostat is all there is.
            report.average || (!any_average && (!whole || index > 0 || count == 1))
        };
        let mut devices: Vec<(String, &'static str, Vec<&Row>)> = Vec::new();
        let counted = reports
            .iter()
            .enumerate()
            .filter(|&(index, report)| counts(index, report));
        for (_, report) in counted {
            for (device, row) in &report.rows {
                match devices.iter_mut().find(|(name, ..)| name == device) {
                    Some((.., rows)) => rows.push(row),
                    None => devices.push((device.clone(), report.tool, vec![row])),
                }
            }
        }
        let loads: Result<Vec<ObservedLoad>, StackError> = devices
            .iter()
            .map(|(device, tool, rows)| load(file, device, tool, rows))
            .collect();
        let mut loads = loads?;
        let since_start = count == 1 && reports.iter().all(|report| report.covers_start());
        for load in &mut loads {
            load.since_start = since_start;
        }
        if loads.is_empty() {
            return Err(StackError::whole(file, "the report has no row of a device"));
        }
        Ok(loads)
    }

    /// Returns the load with the most requests among whole disks. Partitions, md arrays and the
    /// volumes of dm have the same requests again; an array is chosen only if the text has no disk.
    pub fn busiest(loads: &[ObservedLoad]) -> Option<&ObservedLoad> {
        let rate = |load: &&ObservedLoad| load.reads_per_s + load.writes_per_s;
        let busiest = |is: &dyn Fn(&str) -> bool| {
            let some = loads.iter().filter(|load| is(&load.device));
            some.max_by(|a, b| rate(a).total_cmp(&rate(b)))
        };
        // A request to a partition or to a device above disks counts at the disk, too, so these
        // rows would count twice.
        let above = |device: &str| UPPER_DEVICES.iter().any(|name| device.starts_with(name));
        let part = |device: &str| loads.iter().any(|load| is_partition(device, &load.device));
        busiest(&|device| !above(device) && !part(device)).or_else(|| busiest(&|_| true))
    }

    /// Returns a stack file with this load on one drive.
    ///
    /// # Errors
    /// If the device had no requests.
    pub fn to_stack(&self, file: &str, drive: &str) -> Result<String, StackError> {
        let rate = self.reads_per_s + self.writes_per_s;
        if rate <= 0.0 {
            let message = format!("the device {} had no requests in the report", self.device);
            return Err(StackError::whole(file, message));
        }
        let mut text = String::new();
        let _ = writeln!(
            text,
            "title = \"{}: {:.1} reads/s of {:.1} KiB, {:.1} writes/s of {:.1} KiB\"\nseed = 1\n",
            self.device, self.reads_per_s, self.read_kib, self.writes_per_s, self.write_kib
        );
        let _ = writeln!(
            text,
            "# From {} ({} report{}). A summary has no addresses and no arrival times: this load arrives at\n\
             # random times (poisson) and at random places. For large sequential requests write\n\
             # addresses = {{ pattern = \"sequential\" }}, for a part of the volume region_size = \"100GiB\".",
            self.tool,
            self.reports,
            if self.reports == 1 { "" } else { "s" }
        );
        if self.divided {
            text.push_str("# The report has one number of transfers, which is divided by the bytes read and written.\n");
        }
        self.write_notes(&mut text);
        // Enough requests for a 99th percentile, and not longer than an hour.
        let seconds = (20_000.0 / rate).clamp(60.0, 3600.0).ceil();
        for (name, share, per_s, kib) in [
            ("reads", 1, self.reads_per_s, self.read_kib),
            ("writes", 0, self.writes_per_s, self.write_kib),
        ] {
            if per_s <= 0.0 {
                continue;
            }
            let _ = writeln!(
                text,
                "[[workloads]]\nname = \"{name}\"\nkind = \"synthetic\"\nduration = \"{seconds}s\"\nread_share = {share}\n\
                 size = {}\nalignment = {:?}\narrivals = {{ process = \"poisson\", rate_per_s = {per_s:.3} }}\n",
                sizes(kib),
                if kib < PAGE_KIB { "512B" } else { "4KiB" }
            );
        }
        let _ = writeln!(
            text,
            "[volume]\nlayout = \"jbod\"\n# Name the model of the drive. See: fullstroke drive list\ndrive = {drive:?}\ndrives = 1\n"
        );
        let measured = [
            ("response of reads", self.read_response_ms, "ms"),
            ("response of writes", self.write_response_ms, "ms"),
            ("requests in queue and device", self.queue_depth, ""),
            ("utilisation", self.utilisation_percent, "%"),
        ];
        for (what, value, unit) in measured {
            if let Some(value) = value {
                let _ = writeln!(text, "# measured: {what} {value:.2} {unit}");
            }
        }
        Ok(text)
    }
}

impl ObservedLoad {
    /// Writes comments on I/O that the load leaves out, and on the limits of the measured figures.
    fn write_notes(&self, text: &mut String) {
        for (what, per_s) in [
            ("flushes", self.flushes_per_s),
            ("discards", self.discards_per_s),
        ] {
            if per_s > 0.0 {
                let _ = writeln!(text, "# left out: {per_s:.1} {what} a second");
            }
        }
        if self.several_drives {
            let _ = writeln!(
                text,
                "# {} may consist of several drives, and one drive may not carry the load. Give [volume] the layout:\n\
                 # `fullstroke like` prints the layout from mdadm --detail or zpool status.",
                self.device
            );
        }
        if self.since_start {
            let _ = writeln!(
                text,
                "# The only report of {} usually covers the time since the start of the system, with idle hours.\n\
                 # With an interval (iostat -x 10, zpool iostat -v 10) the tool reports the load of the busy time.",
                self.tool
            );
        }
    }
}

/// Beginnings of the names of devices that lie above disks: volumes of dm, md arrays, files, DRBD,
/// ZFS volumes.
const UPPER_DEVICES: [&str; 5] = ["dm-", "md", "loop", "drbd", "zd"];

/// Returns true for a partition of a disk: `sda1` of `sda`, `nvme0n1p2` of `nvme0n1`.
fn is_partition(device: &str, disk: &str) -> bool {
    let Some(rest) = device.strip_prefix(disk) else {
        return false;
    };
    // The kernel puts a p between a disk's name that ends in a digit and the number, as in
    // nvme0n1p1.
    let number = match disk.ends_with(|letter: char| letter.is_ascii_digit()) {
        true => rest.strip_prefix('p').unwrap_or(""),
        false => rest,
    };
    !number.is_empty() && number.bytes().all(|letter| letter.is_ascii_digit())
}

/// KiB of a page. Requests of this mean and above are whole pages, and smaller ones whole sectors.
const PAGE_KIB: f64 = 4.0;

/// KiB of a sector.
const SECTOR_KIB: f64 = 0.5;

/// Returns the size of requests with this mean: the two multiples of a page (below a page: of a sector)
/// beside the mean, with weights.
fn sizes(mean_kib: f64) -> String {
    let step_kib = if mean_kib < PAGE_KIB {
        SECTOR_KIB
    } else {
        PAGE_KIB
    };
    // Two neighbouring sizes in whole pages give the measured mean exactly, and each request is
    // possible.
    let below = (mean_kib / step_kib).floor().max(1.0) * step_kib;
    let above = below + step_kib;
    let upper = ((mean_kib - below) / step_kib).clamp(0.0, 1.0);
    let written = |kib: f64| match kib.fract() > 0.0 {
        true => format!("\"{:.0}B\"", kib * 1024.0),
        false => format!("\"{kib:.0}KiB\""),
    };
    // The weight would be printed as 0.00.
    if upper < 0.005 {
        return written(below);
    }
    format!(
        "[{{ size = {}, weight = {:.2} }}, {{ size = {}, weight = {upper:.2} }}]",
        written(below),
        1.0 - upper,
        written(above)
    )
}

/// Returns the mean of a column over the rows; `None` if no row has the column.
fn mean(rows: &[&Row], name: &str) -> Option<f64> {
    let values: Vec<f64> = rows
        .iter()
        .filter_map(|row| row.get(name).copied())
        .collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the mean response time of all requests: the mean of the first of several columns, weighted by
/// the requests of each row. A report without requests says 0 ms, which is no response time. Returns
/// `None` without requests.
fn response(rows: &[&Row], names: &[&str], rates: &[&str]) -> Option<f64> {
    let name = names
        .iter()
        .find(|name| rows.iter().any(|row| row.contains_key(**name)))?;
    let (mut sum, mut requests) = (0.0, 0.0);
    for row in rows {
        let rate: f64 = rates.iter().filter_map(|rate| row.get(*rate)).sum();
        sum += row.get(*name).copied().unwrap_or(0.0) * rate;
        requests += rate;
    }
    (requests > 0.0).then(|| sum / requests)
}

/// Returns the mean of the first of several columns, each with a factor.
fn first(rows: &[&Row], names: &[(&str, f64)]) -> Option<f64> {
    names
        .iter()
        .find_map(|&(name, factor)| mean(rows, name).map(|value| value * factor))
}

/// Returns the error of a report that does not divide reads from writes.
fn undivided(file: &str, rows: &[&Row]) -> StackError {
    let names: Vec<&str> = rows
        .iter()
        .flat_map(|row| row.keys())
        .map(String::as_str)
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    let message = format!(
        "found the columns {}, which do not divide reads from writes; expected rkB/s and wkB/s (or rMB/s, rsec/s, rd_sec/s, kB_read/s, kr/s), as `iostat -x 10` prints them",
        names.join(", ")
    );
    StackError::whole(file, message)
}

fn load(
    file: &str,
    device: &str,
    tool: &'static str,
    rows: &[&Row],
) -> Result<ObservedLoad, StackError> {
    // Sectors have 512 bytes in both tools (sysstat, man pages of iostat and sar).
    let read_kib_s = first(
        rows,
        &[
            ("rkB/s", 1.0),
            ("rMB/s", 1024.0),
            // Sectors of 512 bytes.
            ("rsec/s", 0.5),
            ("rd_sec/s", 0.5),
            ("kB_read/s", 1.0),
            ("MB_read/s", 1024.0),
            ("Blk_read/s", 0.5),
            ("kr/s", 1.0),
            ("rkB", 1.0),
            ("rd_sec", 0.5),
        ],
    );
    let write_kib_s = first(
        rows,
        &[
            ("wkB/s", 1.0),
            ("wMB/s", 1024.0),
            ("wsec/s", 0.5),
            ("wr_sec/s", 0.5),
            ("kB_wrtn/s", 1.0),
            ("MB_wrtn/s", 1024.0),
            ("Blk_wrtn/s", 0.5),
            ("kw/s", 1.0),
            ("wkB", 1.0),
            ("wr_sec", 0.5),
        ],
    );
    let (Some(read_kib_s), Some(write_kib_s)) = (read_kib_s, write_kib_s) else {
        return Err(undivided(file, rows));
    };
    let own = mean(rows, "r/s").zip(mean(rows, "w/s"));
    let tps = mean(rows, "tps").unwrap_or(0.0);
    let bytes = read_kib_s + write_kib_s;
    let (reads, writes) = match own {
        Some(both) => both,
        // Without rates by direction, the bytes divide the transfers.
        None if bytes > 0.0 => (tps * read_kib_s / bytes, tps * write_kib_s / bytes),
        None => (0.0, 0.0),
    };
    let size = |kib_s: f64, per_s: f64| if per_s > 0.0 { kib_s / per_s } else { 0.0 };
    // Older versions of sysstat have one time for both directions. Solaris (`iostat -x`): the active
    // service time is the response time of the device.
    let both = ["await", "asvc_t", "svc_t", "ms/t"];
    let both = response(rows, &both, &["r/s", "w/s", "tps"]);
    let of = |per_s: f64, names: &[&str], rate: &str| {
        let own = response(rows, names, &[rate]).or(both);
        own.filter(|_| per_s > 0.0)
    };
    Ok(ObservedLoad {
        device: device.to_owned(),
        tool,
        reports: rows.len() as u32,
        reads_per_s: reads,
        writes_per_s: writes,
        read_kib: size(read_kib_s, reads),
        write_kib: size(write_kib_s, writes),
        divided: own.is_none(),
        queue_depth: first(rows, &[("aqu-sz", 1.0), ("avgqu-sz", 1.0), ("actv", 1.0)]),
        read_response_ms: of(reads, &["r_await", "ms/r"], "r/s"),
        write_response_ms: of(writes, &["w_await", "ms/w"], "w/s"),
        utilisation_percent: first(rows, &[("%util", 1.0), ("%b", 1.0), ("util", 1.0)]),
        flushes_per_s: mean(rows, "f/s").unwrap_or(0.0),
        discards_per_s: mean(rows, "d/s").unwrap_or(0.0),
        several_drives: UPPER_DEVICES.iter().any(|name| device.starts_with(name))
            || device == ALL_DISKS
            || rows.iter().any(|row| row.contains_key(WHOLE_POOL)),
        since_start: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENDED: &str = "Linux 6.6.0 (nas) \t05/01/2024 \t_x86_64_\t(8 CPU)\n\n\
        avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n           2.31    0.00    1.02    5.17    0.00   91.50\n\n\
        Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util\n\
        sda              1.00      4.00     0.00   0.00    1.00     4.00    1.00      4.00     0.00   0.00    1.00     4.00    0.00   1.00\n\n\
        Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util\n\
        sda             10.00    460.00     0.00   0.00    5.00    46.00   40.00   1080.00     9.00  18.00   12.00    27.00    0.50  20.00\n\
        dm-0            99.00    460.00     0.00   0.00    5.00    46.00   40.00   1080.00     9.00  18.00   12.00    27.00    0.50  20.00\n\n\
        Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util\n\
        sda             20.00    920.00     0.00   0.00    7.00    46.00   60.00   1620.00     9.00  18.00   14.00    27.00    0.70  40.00\n";

    #[test]
    fn the_reports_behind_the_first_are_averaged() {
        let loads = ObservedLoad::read("io.txt", EXTENDED).unwrap();
        let load = ObservedLoad::busiest(&loads).unwrap();
        assert_eq!((load.device.as_str(), load.reports), ("sda", 2));
        assert_eq!((load.reads_per_s, load.writes_per_s), (15.0, 50.0));
        assert_eq!((load.read_kib, load.write_kib), (46.0, 27.0));
        assert_eq!(
            (load.read_response_ms, load.utilisation_percent),
            // Ten reads a second of 5 ms, and twenty of 7 ms.
            (Some(190.0 / 30.0), Some(30.0))
        );
    }

    #[test]
    fn response_times_count_the_requests_of_each_report() {
        let report = |reads: f64, ms: f64, writes: f64, flushes: f64| {
            format!(
                "Device r/s rkB/s r_await w/s wkB/s w_await d/s f/s aqu-sz %util\n\
                 sda {reads} {} {ms} {writes} {} 2.0 0.0 {flushes} 0.5 9.0\n\n",
                reads * 2.0,
                writes * 0.5
            )
        };
        let read = |text: &str| ObservedLoad::read("io", text).unwrap().remove(0);
        // The first report covers the time since the start. No request of the last one is a read.
        let load = read(
            &(report(1.0, 9.0, 1.0, 0.0)
                + &report(50.0, 4.0, 0.0, 40.0)
                + &report(0.0, 0.0, 0.0, 0.0)),
        );
        assert_eq!((load.reads_per_s, load.read_response_ms), (25.0, Some(4.0)));
        assert_eq!((load.write_response_ms, load.flushes_per_s), (None, 20.0));
        let stack = load.to_stack("io", "wd-red-plus-4tb").unwrap();
        assert!(
            stack.contains("# left out: 20.0 flushes a second\n"),
            "{stack}"
        );
        assert!(
            !stack.contains("discards") && !stack.contains("since the start"),
            "{stack}"
        );
        // The load of an array or a pool on one drive.
        let says = |text: &str| {
            read(text)
                .to_stack("io", "wd-red-plus-4tb")
                .unwrap()
                .contains("several drives")
        };
        assert!(!says(&report(50.0, 4.0, 20.0, 0.0)));
        assert!(says(&report(50.0, 4.0, 20.0, 0.0).replace("sda", "md0")));
        let pool = |alloc: &str| {
            format!(
                "              capacity     operations     bandwidth \npool        alloc   free   read  write   read  write\n\
                 ----------  -----  -----  -----  -----  -----  -----\nx           {alloc}  15.5T    120    340  7.50M  21.2M\n"
            )
        };
        assert!(says(&pool("28.1T")));
        assert!(!says(&pool("-")));
        // Requests smaller than a page keep their size.
        let load = read(&report(50.0, 4.0, 20.0, 0.0));
        let stack = load.to_stack("io", "wd-red-plus-4tb").unwrap();
        assert!(
            stack.contains("size = \"2KiB\"\nalignment = \"512B\"\n"),
            "{stack}"
        );
        assert!(stack.contains("size = \"512B\"\n"), "{stack}");
        assert!(
            stack.contains("covers the time since the start of the system"),
            "{stack}"
        );
    }

    #[test]
    fn the_busiest_disk_is_no_array_and_no_partition() {
        let row = |name: &str, per_s: u32| format!("{name} {per_s}.0 40.0 0.0 0.0\n");
        let text = |rows: &[(&str, u32)]| {
            let rows: String = rows.iter().map(|&(name, rate)| row(name, rate)).collect();
            format!("Device tps kB_read/s kB_wrtn/s kB_read\n{rows}")
        };
        let busiest = |rows: &[(&str, u32)]| {
            let loads = ObservedLoad::read("io", &text(rows)).unwrap();
            ObservedLoad::busiest(&loads).unwrap().device.clone()
        };
        assert_eq!(busiest(&[("md0", 90), ("sda", 20), ("sda1", 20)]), "sda");
        let nvme = [("nvme0n1", 9), ("nvme0n1p1", 9), ("sdb", 3)];
        assert_eq!(busiest(&nvme), "nvme0n1");
        assert_eq!(busiest(&[("md0", 90), ("md1", 95)]), "md1");
    }

    #[test]
    fn transfers_of_all_disks_are_read() {
        let header =
            "12:00:01 AM       tps      rtps      wtps      dtps   bread/s   bwrtn/s   bdscd/s\n";
        let rows = "12:10:01 AM     42.30     20.00     10.00      0.00   1280.00    640.00      0.00\n\
            12:20:01 AM     52.30     30.00     20.00      0.00   1920.00   1280.00      0.00\n";
        let average =
            "Average:        47.30     25.00     15.00      0.00   1600.00    960.00      0.00\n";
        for text in [
            format!("{header}{rows}"),
            format!("{header}{rows}{average}"),
        ] {
            let load = ObservedLoad::read("sar.txt", &text).unwrap().remove(0);
            assert_eq!((load.device.as_str(), load.tool), ("all disks", "sar -b"));
            assert_eq!((load.reads_per_s, load.writes_per_s), (25.0, 15.0));
            assert_eq!((load.read_kib, load.write_kib), (32.0, 32.0));
            assert!(!load.divided);
        }
    }

    #[test]
    fn older_columns_plain_reports_and_sar_are_read() {
        let old = "Device:         rrqm/s   wrqm/s     r/s     w/s    rMB/s    wMB/s avgrq-sz avgqu-sz   await  svctm  %util\n\
            sdb               0,00     1,00    8,00    2,00     1,00     0,25   256,00     0,10   10,00   5,00   5,00\n";
        let load = ObservedLoad::read("old", old).unwrap().remove(0);
        assert_eq!(
            (load.reads_per_s, load.read_kib, load.write_response_ms),
            (8.0, 128.0, Some(10.0))
        );
        let plain = "Device             tps    kB_read/s    kB_wrtn/s    kB_read    kB_wrtn\nsdc              10.00        30.00        10.00          1          2\n";
        let load = ObservedLoad::read("plain", plain).unwrap().remove(0);
        assert_eq!(
            (
                load.reads_per_s,
                load.writes_per_s,
                load.read_kib,
                load.divided
            ),
            (7.5, 2.5, 4.0, true)
        );
        let sar = "12:00:01 AM       DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util\n\
            12:10:01 AM       sda     99.00    396.00      0.00      0.00      4.00      0.10      1.00      9.00\n\n\
            Average:          DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util\n\
            Average:          sda     10.00     20.00     60.00      0.00      8.00      0.10      1.00      9.00\n";
        let load = ObservedLoad::read("sar", sar).unwrap().remove(0);
        assert_eq!(
            (
                load.tool,
                load.reads_per_s,
                load.writes_per_s,
                load.read_kib
            ),
            ("sar -d", 2.5, 7.5, 8.0)
        );
    }

    #[test]
    fn averages_of_sar_are_known_in_other_languages_and_without_a_heading() {
        let rows = "00:00:01          DEV       tps     rkB/s     wkB/s   await\n\
            00:10:01          sda     90,00     90,00     90,00    9,00\n";
        for average in ["Durchschn.:", "Moyenne :", "Media:"] {
            let sda = format!("{average} sda 10,00 20,00 60,00 1,00\n");
            let heading = format!("{average} DEV tps rkB/s wkB/s await\n");
            for text in [format!("{rows}\n{heading}{sda}"), format!("{rows}{sda}")] {
                let load = ObservedLoad::read("sar", &text).unwrap().remove(0);
                let is_average = load.reads_per_s == 2.5 && load.writes_per_s == 7.5;
                // A word more in front of the device is another table.
                let other_table = average.contains(' ') && !text.contains(&heading);
                assert!(is_average || other_table, "{text} {load:?}");
            }
        }
    }

    /// Returns rates and sizes of the busiest device: reads a second, writes a second, KiB of a read.
    fn figures(text: &str) -> (f64, f64, f64) {
        assert!(ObservedLoad::recognise(text), "{text}");
        let loads = ObservedLoad::read("x", text).unwrap();
        let load = ObservedLoad::busiest(&loads).unwrap();
        let round = |value: f64| (value * 10.0).round() / 10.0;
        (load.reads_per_s, load.writes_per_s, round(load.read_kib))
    }

    #[test]
    fn units_of_people_and_tables_apart_are_read() {
        // `iostat -xh`: a table of reads and a table of writes, with the device at the end.
        let reads = "     r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz Device\n";
        let writes = "     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz Device\n";
        let report = |rate: &str| {
            format!(
                "{reads}   {rate}    920.0k     0.00   0.0%    7.00    46.0k sda\n\n\
                 {writes}   60.00      1.6M     9.00  18.0%   14.00    27.0k sda\n\n"
            )
        };
        assert_eq!(
            figures(&(report("1.00") + &report("20.00"))),
            (20.0, 60.0, 46.0)
        );
    }

    #[test]
    fn json_of_iostat_and_sadf_is_read() {
        let disk = |reads: f64| {
            format!(
                "{{\"disk\": [{{\"disk_device\": \"sda\", \"r/s\": {reads}, \"w/s\": 60.0, \"rkB/s\": 920.0, \"wkB/s\": 1620.0, \"r_await\": 7.0, \"util\": 40.0}}]}}"
            )
        };
        let text = format!(
            "{{\"sysstat\": {{\"hosts\": [{{\"nodename\": \"nas\", \"statistics\": [{}, {}]}}]}}}}",
            disk(1.0),
            disk(20.0)
        );
        assert_eq!(figures(&text), (20.0, 60.0, 46.0));
        let sadf = "{\"sysstat\": {\"hosts\": [{\"statistics\": [{\"timestamp\": {\"interval\": 600}, \"disk\": [{\"disk-device\": \"sda\", \"tps\": 40.0, \"rkB\": 30.0, \"wkB\": 10.0, \"await\": 5.0}]}]}]}}";
        assert_eq!(figures(sadf), (30.0, 10.0, 1.0));
        let table = "# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;await\n\
            nas;600;2024-05-01 10:10:01 UTC;sda;40.00;30.00;10.00;5.00\n\
            nas;600;2024-05-01 10:20:01 UTC;sda;40.00;30.00;10.00;5.00\n";
        assert_eq!(figures(table), (30.0, 10.0, 1.0));
    }

    #[test]
    fn iostat_of_bsd_and_solaris_and_of_a_pool_is_read() {
        let bsd = "                        extended device statistics  \n\
            device       r/s     w/s     kr/s     kw/s  ms/r  ms/w  ms/o  ms/t qlen  %b  \n\
            ada0          20      60    920.0   1620.0     7    14     0    12    1  40 \n";
        assert_eq!(figures(bsd), (20.0, 60.0, 46.0));
        let solaris = "                    extended device statistics              \n    \
            r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b device\n   \
            20.0   60.0  920.0 1620.0  0.0  0.7    0.0   12.2   0  40 c0t0d0\n";
        assert_eq!(figures(solaris), (20.0, 60.0, 46.0));
        let pool = "              capacity     operations     bandwidth \n\
            pool        alloc   free   read  write   read  write\n\
            ----------  -----  -----  -----  -----  -----  -----\n\
            tank        3.62T  18.2T     40    120  1.80M  3.24M\n  \
            mirror-0    3.62T  18.2T     40    120  1.80M  3.24M\n    \
            sda             -      -     20    120   920K  3.24M\n    \
            sdb             -      -     10    110   920K  3.24M\n\
            ----------  -----  -----  -----  -----  -----  -----\n";
        // The disks count, and not the pool that consists of them.
        assert_eq!(figures(pool), (20.0, 120.0, 46.0));
        let plain = "      tty             ada0             cpu\n tin  tout KB/t tps  MB/s  us ni sy in id\n   0     1 24.5  15  0.36   5  0  3  0 92\n";
        assert!(!ObservedLoad::recognise(plain));
    }

    #[test]
    fn a_report_without_reads_and_writes_is_refused_with_its_columns() {
        let short = "Device             tps      kB/s    rqm/s   await  areq-sz  aqu-sz  %util\nsda 80.00 2540.00 9.00 12.00 31.75 0.70 40.00\n";
        let error = ObservedLoad::read("x", short).unwrap_err().to_string();
        assert!(
            error.contains("kB/s") && error.contains("iostat -x 10"),
            "{error}"
        );
    }

    #[test]
    fn the_stack_file_has_the_mean_size_and_loads() {
        let loads = ObservedLoad::read("io.txt", EXTENDED).unwrap();
        let text = loads[0].to_stack("io.txt", "seagate-ironwolf-8tb").unwrap();
        assert!(
            text.contains(
                "{ size = \"44KiB\", weight = 0.50 }, { size = \"48KiB\", weight = 0.50 }"
            ),
            "{text}"
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.toml");
        std::fs::write(&path, &text).unwrap();
        let stack = crate::Stack::load(&path, &crate::Overrides::default())
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        stack.build().unwrap();
    }

    #[test]
    fn a_damaged_number_is_named_by_its_line() {
        let text = EXTENDED.replace("920.00", "x");
        let error = ObservedLoad::read("io.txt", &text).unwrap_err().to_string();
        assert!(error.contains("`x`") && error.contains("rkB/s"), "{error}");
        assert!(!ObservedLoad::recognise("version,time,op,size,lbn\n"));
    }
}
