//! The wish file.

use crate::{Assumptions, Choices, DriveCounts};
use fullstroke_contract::registry::read_unlisted;
use fullstroke_contract::{Reason, reason};
use fullstroke_stack::{Document, FileKind, FileSource, StackError, is_ready};
use fullstroke_units::{Bytes, Duration};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Requirements of an array. An absent key is no requirement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wishes {
    /// Least usable capacity.
    #[serde(default, deserialize_with = "with_unit")]
    pub usable: Option<Bytes>,
    /// Largest 99th percentile of response times.
    pub p99: Option<Duration>,
    /// Number of media streams that play without an underrun.
    pub streams: Option<u32>,
    /// Largest share of the streams that may pause with a failed or slow drive and during a rebuild.
    /// Default 0.01.
    pub paused_share: Option<f64>,
    /// Least throughput of reads and writes, in 10^6 bytes per second.
    pub mb_per_s: Option<f64>,
    /// Number of drive failures without loss in the worst case.
    pub failures: Option<u32>,
    /// Largest mean power of all drives, in watts.
    pub watts: Option<f64>,
    /// Largest price of all drives.
    pub price: Option<f64>,
}

impl Wishes {
    /// Returns true if a wish concerns speed.
    pub(crate) fn of_speed(&self) -> bool {
        self.p99.is_some() || self.streams.is_some() || self.mb_per_s.is_some()
    }
}

/// The drives of a wish file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drives {
    /// Name of the library, or a drive file, relative to the wish file.
    pub model: Option<String>,
    /// Number of drives: a number, or a range such as "4..8".
    pub count: Option<DriveCounts>,
    /// Price of a drive, in the currency of [costs].
    pub price: Option<f64>,
    /// Price of a controller, if controllers are tried.
    pub controller_price: Option<f64>,
    /// Price of a flash device beside the disks: of a cache, a special vdev or a log.
    pub flash_price: Option<f64>,
}

/// Currency without a key.
pub const DEFAULT_CURRENCY: &str = "EUR";

/// Prices of a wish file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Costs {
    /// Currency of all prices. Default `EUR`.
    pub currency: String,
    /// Price of a kilowatt-hour. Default none: the answer has no price of the energy.
    pub energy_per_kwh: Option<f64>,
}

impl Default for Costs {
    fn default() -> Costs {
        Costs {
            currency: DEFAULT_CURRENCY.to_owned(),
            energy_per_kwh: None,
        }
    }
}

/// A wish file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WishFile {
    /// Title of the file.
    #[serde(default)]
    pub title: String,
    /// Stack file with the workload and the hosts of the load, relative to this file. The volume of
    /// the stack is ignored.
    pub stack: PathBuf,
    /// A mix that replaces the stack's workload, in the format of `[[workloads]]` of a stack.
    /// Default of `kind`: a trace. Default of `name`: the name of the file. `path` is relative to
    /// this file.
    #[serde(default)]
    pub load: Vec<Map<String, Value>>,
    /// Available drives.
    #[serde(default)]
    pub drives: Drives,
    /// Requirements of the array.
    #[serde(default)]
    pub wishes: Wishes,
    /// Layouts and settings to try.
    #[serde(default)]
    pub choices: Choices,
    /// Assumptions about failures.
    #[serde(default)]
    pub assumptions: Assumptions,
    /// Prices.
    #[serde(default)]
    pub costs: Costs,
    /// Largest number of requests that the extension of runs simulates. Default 1,000,000.
    pub budget: Option<u64>,
}

/// Reads a capacity, and refuses a number without a unit: `usable = 20` means 20 TB rather than 20
/// bytes.
fn with_unit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
    match Option::<Value>::deserialize(deserializer)? {
        None => Ok(None),
        Some(Value::String(text)) => text.parse().map(Some).map_err(D::Error::custom),
        Some(other) => Err(D::Error::custom(format_args!(
            "found {other}; expected a capacity with its unit, such as \"20TB\""
        ))),
    }
}

/// Error of a wish file.
#[derive(Debug, Error)]
pub enum WishError {
    /// The file cannot be read, is no TOML, or has unknown keys or values.
    #[error(transparent)]
    File(#[from] StackError),
    /// A load cannot be used.
    #[error("{}: [[load]]: {reason}", path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// Message with the found and the expected value.
        reason: Reason,
    },
}

impl WishFile {
    /// Reads a wish file; `None` if `path` is a file of another kind, such as a stack file, which
    /// has no key `stack`.
    ///
    /// # Errors
    /// The mistake with its line.
    pub fn read(path: &Path) -> Result<Option<WishFile>, WishError> {
        WishFile::read_in(&FileSource::default(), path)
    }

    /// Reads a wish file of `files`; see [`read`](WishFile::read).
    ///
    /// # Errors
    /// The mistake with its line.
    pub fn read_in(files: &FileSource, path: &Path) -> Result<Option<WishFile>, WishError> {
        if is_ready(path) {
            return Ok(None);
        }
        let document = Document::read_in(files, path)?;
        // A file of another kind would fail with unknown keys.
        if !["stack", "wishes", "drives"]
            .iter()
            .any(|key| document.values().contains_key(*key))
        {
            return Ok(None);
        }
        let mut file: WishFile =
            read_unlisted(document.values()).map_err(|error| document.error(error))?;
        // Only a root or an empty path has no parent, and neither is a file.
        let folder = path.parent().unwrap_or(Path::new(""));
        if !is_ready(&file.stack) {
            file.stack = folder.join(&file.stack);
        }
        file.load
            .iter_mut()
            .try_for_each(|one| complete(one, files, folder))
            .map_err(|reason| WishError::Load {
                path: path.to_owned(),
                reason,
            })?;
        let drive = file.drives.model.as_ref().map(|model| folder.join(model));
        // Otherwise the name is one of the library.
        if let Some(drive) = drive.filter(|drive| files.kind(drive) == FileKind::Plain) {
            file.drives.model = Some(drive.display().to_string());
        }
        Ok(Some(file))
    }
}

/// Completes a workload of a mix with its kind, its name, and its path relative to the current
/// folder.
fn complete(one: &mut Map<String, Value>, files: &FileSource, folder: &Path) -> Result<(), Reason> {
    one.entry("kind").or_insert_with(|| json!("trace"));
    let Some(path) = one.get("path") else {
        let named = one.contains_key("name");
        return if named {
            Ok(())
        } else {
            Err("expected `path`, or `kind` and `name`".into())
        };
    };
    let path = path
        .as_str()
        .ok_or_else(|| reason!("`path`: found {path}; expected a file"))?;
    let path = files
        .absolute(&folder.join(path))
        .map_err(|error| reason!("`path`: {error}"))?;
    let name = path
        .file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    one.entry("name").or_insert_with(|| json!(name));
    one.insert("path".to_owned(), json!(path));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_file_is_read_and_what_is_wrong_with_it_is_said() {
        let folder = std::env::temp_dir().join(format!("wishes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("nas.toml");
        let put = |text: &str| std::fs::write(&path, text).unwrap();
        put(
            "stack = \"a.toml\"\n[drives]\nmodel = \"x\"\ncount = \"4..6\"\n[wishes]\nusable = \"20TB\"\np99 = \"50ms\"\n",
        );
        let file = WishFile::read(&path).unwrap().unwrap();
        assert_eq!(
            (file.stack, file.wishes.usable),
            (folder.join("a.toml"), Some(Bytes(20_000_000_000_000)))
        );
        assert_eq!(file.drives.count.unwrap().each(), [4, 5, 6]);
        for (text, word) in [
            (
                "stack = \"a\"\n[wishes]\nuseable = \"1TB\"\n",
                "nas.toml:3: `wishes.useable`: unknown field",
            ),
            ("stack = \"a\"\n[drives]\ncount = \"8..4\"\n", "8..4"),
            ("stack = \"a\"\n[drives]\ncount = 0\n", "from 1 to 64"),
            ("[wishes]\nusable = \"1TB\"\n", "stack"),
            ("stack = \"a\"\n[wishes]\nusable = 20\n", "\"20TB\""),
            ("stack = \"a\"\n[wishes]\nusable = \"20\"\n", "`20TB`"),
        ] {
            put(text);
            let error = WishFile::read(&path).unwrap_err().to_string();
            assert!(
                error.contains(word) && error.contains("nas.toml"),
                "{error}"
            );
        }
        put(
            "stack = \"a\"\n[[load]]\npath = \"b/mail.parquet\"\n[[load]]\nkind = \"synthetic\"\nname = \"scan\"\n",
        );
        let load = WishFile::read(&path).unwrap().unwrap().load;
        let of = |one: usize, key: &str| load[one][key].as_str().unwrap().to_owned();
        assert_eq!(
            [of(0, "kind"), of(0, "name"), of(1, "kind")],
            ["trace", "mail", "synthetic"]
        );
        assert_eq!(Path::new(&of(0, "path")), folder.join("b/mail.parquet"));
        put("stack = \"a\"\n[[load]]\nbeyond = \"wrap\"\n");
        assert!(
            WishFile::read(&path)
                .unwrap_err()
                .to_string()
                .contains("[[load]]: expected `path`")
        );
        put("seed = 1\n[volume]\nlayout = \"raid0\"\n");
        assert_eq!(WishFile::read(&path).unwrap(), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
