//! The kind of a dropped file.

use crate::error::CommandError;
use fullstroke_fio::JobSet;
use fullstroke_stack::{FileSource, MdArray, ObservedLoad, ZfsPool, drives, facts};
use fullstroke_trace::{TraceOptions, TraceReader, TraceSummary};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Largest number of bytes of a file that is tried as text other than a trace: job files, stacks
/// and outputs of mdadm are smaller.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Returns the kind of a file, with the facts that a page shows: `stack`, `wishes`, `drive`, `fio`,
/// `array` (text of mdadm), `pool` (text of zpool), `load` (text of iostat or sar) or `trace`.
pub(crate) fn recognise(files: &FileSource, path: &Path) -> Result<Value, CommandError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let bytes = files
        .read(path)
        .map_err(|error| CommandError::Other(format!("{name}: cannot be read: {error}")))?;
    if bytes.is_empty() {
        return Err(CommandError::Other(format!("{name}: the file is empty")));
    }
    if let Some(format) = missing_format(&bytes) {
        return Err(CommandError::Other(format!(
            "{name}: found {format}, which the page does not read; expected text or gzip. Convert the file on the command line: fullstroke trace convert {name} trace.csv.gz --to-format msr"
        )));
    }
    let text = std::str::from_utf8(&bytes).ok();
    if let Some(text) = text.filter(|text| text.len() <= TEXT_BYTES_MAX) {
        if let Some(refusal) = refusal(text) {
            return Err(CommandError::Other(format!("{name}: {refusal}")));
        }
        if let Ok(table) = toml::from_str::<Map<String, Value>>(text)
            && let Some(kind) = kind_of(&table)
        {
            if kind == "drive" {
                return drive_file(files, path);
            }
            return Ok(json!({ "kind": kind, "title": table.get("title") }));
        }
        if ObservedLoad::recognise(text) {
            return observed(&name, text);
        }
        if ZfsPool::recognise(text) {
            return zpool(&name, text);
        }
        if text.contains("Raid Level :") || text.contains(" : active ") {
            return mdadm(&name, text);
        }
        if is_job_file(text) {
            let jobs = JobSet::parse(&name, text, &files.variables());
            let jobs = jobs.map_err(CommandError::other)?;
            return Ok(json!({ "kind": "fio", "of_files": jobs.is_of_files() }));
        }
    }
    drop(bytes);
    let options = TraceOptions {
        files: files.clone(),
        needs_addresses: false,
        ..TraceOptions::default()
    };
    let mut reader = TraceReader::open(path, &options).map_err(CommandError::other)?;
    let summary = TraceSummary::of(&mut reader).map_err(CommandError::other)?;
    Ok(json!({ "kind": "trace", "trace": summary }))
}

/// Returns the name of a format that this module does not read, by the first bytes of a file: RFC 8878,
/// 3.1.1 (zstd), The .xz File Format, 2.1.1.1, and the Parquet format, "File format".
fn missing_format(bytes: &[u8]) -> Option<&'static str> {
    let begins = |magic: &[u8]| bytes.starts_with(magic);
    match () {
        () if cfg!(not(feature = "compression")) && begins(b"\x28\xb5\x2f\xfd") => Some("zstd"),
        () if cfg!(not(feature = "compression")) && begins(b"\xfd7zXZ\0") => Some("xz"),
        () if cfg!(not(feature = "parquet")) && begins(b"PAR1") => Some("Parquet"),
        () => None,
    }
}

fn kind_of(table: &Map<String, Value>) -> Option<&'static str> {
    let has = |key: &str| table.contains_key(key);
    match () {
        // Before stacks, because a wish file may have a load of its own.
        () if has("wishes") || has("stack") => Some("wishes"),
        () if ["workload", "workloads", "hosts", "volume"]
            .into_iter()
            .any(has) =>
        {
            Some("stack")
        }
        () if has("zones") => Some("drive"),
        () => None,
    }
}

/// Returns the reason why a known kind of text cannot be used here.
fn refusal(text: &str) -> Option<&'static str> {
    let is_result = text.contains("\"fio version\"") && text.contains("\"jobs\"");
    if is_result {
        return Some(
            "these are results of fio. Drop the job file for its load; for a drive file of your own disk use the command line: `fullstroke fit --fio FILE`, and drop the drive file",
        );
    }
    let is_smart = text.contains("smartctl ") && text.contains("SMART");
    is_smart.then_some(
        "this is the report of smartctl. For a drive file of your own disk use the command line: `fullstroke fit --smart FILE`, and drop the drive file",
    )
}

/// True if the text has a section and an option that only job files have.
fn is_job_file(text: &str) -> bool {
    let lines = || text.lines().map(str::trim);
    let has_section = lines().any(|line| line.starts_with('[') && line.ends_with(']'));
    let options = ["rw", "readwrite", "ioengine", "bs", "blocksize", "iodepth"];
    let has_option = lines().any(|line| {
        line.split_once('=')
            .is_some_and(|(key, _)| options.contains(&key.trim()))
    });
    // Both, because an INI file has sections, and shell scripts have assignments.
    has_section && has_option
}

fn mdadm(name: &str, text: &str) -> Result<Value, CommandError> {
    let arrays = MdArray::read(name, text)?;
    let found = arrays.iter().map(|array| {
        json!({
            "name": array.name, "layout": array.layout, "drives": array.members,
            "drive": array.member_bytes.map(|bytes| facts::nearest(Some(bytes), &array.devices)),
        })
    });
    Ok(json!({ "kind": "array", "arrays": found.collect::<Vec<_>>() }))
}

fn zpool(name: &str, text: &str) -> Result<Value, CommandError> {
    let pools = ZfsPool::read(name, text)?;
    let found = pools.iter().map(|pool| {
        // The notation of `zpool create`, as `Choices::layouts` takes it.
        let shape = match (pool.draid, pool.layout.as_str()) {
            (Some((data, spares)), layout) => format!("{layout}:{data}d:{spares}s"),
            (None, "raid0") => "raid0".to_owned(),
            (None, layout) => format!("{layout}:{}", pool.width),
        };
        json!({
            "name": pool.name, "layout": pool.layout, "drives": pool.width * pool.vdevs,
            "shape": shape, "drive": pool.member_bytes.map(|bytes| facts::nearest(Some(bytes), pool.data_devices())),
        })
    });
    Ok(json!({ "kind": "pool", "arrays": found.collect::<Vec<_>>() }))
}

fn observed(name: &str, text: &str) -> Result<Value, CommandError> {
    let loads = ObservedLoad::read(name, text)?;
    let load = ObservedLoad::busiest(&loads)
        .ok_or_else(|| CommandError::Other(format!("{name}: found no whole disk")))?;
    let stack = load.to_stack(name, &facts::nearest(None, &[]))?;
    Ok(json!({ "kind": "load", "load": load, "stack": stack }))
}

fn drive_file(files: &FileSource, path: &Path) -> Result<Value, CommandError> {
    let name = path.display().to_string();
    let model = drives::load_in(files, &name)?;
    Ok(json!({ "kind": "drive", "drive": facts::Facts::new(&name, &model) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;

    /// Returns the answer to a file, or the error.
    fn of(name: &str, bytes: &[u8]) -> Result<Value, String> {
        let session = Session::default();
        session.put(name, bytes);
        recognise(session.files(), Path::new(name)).map_err(|error| error.to_string())
    }

    #[test]
    fn each_kind_of_text_is_known() {
        let pool = "  pool: tank\n state: ONLINE\nconfig:\n\n\tNAME STATE READ WRITE CKSUM\n\
            \ttank ONLINE 0 0 0\n\t  raidz2-0 ONLINE 0 0 0\n\t    sda ONLINE 0 0 0\n\
            \t    sdb ONLINE 0 0 0\n\t    sdc ONLINE 0 0 0\n\t    sdd ONLINE 0 0 0\n";
        let found = of("pool.txt", pool.as_bytes()).unwrap();
        assert_eq!(
            (&found["kind"], &found["arrays"][0]["shape"]),
            (&json!("pool"), &json!("raidz2:4"))
        );
        assert_eq!(found["arrays"][0]["drives"], 4);
        let iostat = "Device r/s rkB/s w/s wkB/s\nsda 40.00 640.00 20.00 160.00\n";
        let found = of("iostat.txt", iostat.as_bytes()).unwrap();
        assert_eq!(
            (&found["kind"], &found["load"]["device"]),
            (&json!("load"), &json!("sda"))
        );
        let mdstat = "Personalities : [raid6]\nmd0 : active raid5 sda1[0] sdb1[1] sdc1[2]\n\
            \x20     7813770240 blocks super 1.2 level 5, 512k chunk, algorithm 2 [3/3] [UUU]\n";
        let found = of("mdstat.txt", mdstat.as_bytes()).unwrap();
        assert_eq!(
            (&found["kind"], &found["arrays"][0]["drives"]),
            (&json!("array"), &json!(3))
        );
        let drive = drives::names()[0];
        let text = drives::to_toml(drives::load(drive).unwrap().config(), &[]).unwrap();
        let found = of("own.toml", text.as_bytes()).unwrap();
        assert_eq!(found["kind"], "drive");
        assert_eq!(found["drive"]["name"], "own.toml");
    }

    #[test]
    fn a_file_that_cannot_be_used_is_refused_with_what_is_expected() {
        for (name, bytes, said) in [
            ("a.zst", &b"\x28\xb5\x2f\xfd\x04"[..], "zstd"),
            ("a.xz", &b"\xfd7zXZ\0\0"[..], "xz"),
            ("a.parquet", &b"PAR1PAR1"[..], "Parquet"),
            (
                "a.json",
                &b"{\"fio version\": \"fio-3.36\", \"jobs\": []}"[..],
                "fit --fio",
            ),
            ("a.smart", &b"smartctl 7.3\nSMART"[..], "fit --smart"),
            ("a.txt", &b"  pool: tank\n"[..], "zpool status"),
            ("a.empty", &b""[..], "empty"),
        ] {
            // With these features the module reads the formats.
            if cfg!(any(feature = "compression", feature = "parquet"))
                && ["zstd", "xz", "Parquet"].contains(&said)
            {
                continue;
            }
            let error = of(name, bytes).unwrap_err();
            assert!(error.starts_with(name) && error.contains(said), "{error}");
        }
    }
}
