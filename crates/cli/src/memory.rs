//! Memory use of this process.

/// Returns the peak resident memory of this process in 10^6 bytes, from `VmHWM` of Linux. Returns
/// `None` on other systems.
pub(crate) fn peak_rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    // `kB` in /proc/self/status means 1024 bytes; the result is in 10^6 bytes.
    Some(kibibytes * 1024.0 / 1e6)
}
