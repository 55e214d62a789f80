//! What is wished, as a file.

use crate::{Assumptions, Choices, Counts};
use fullstroke_contract::{Reason, reason};
use fullstroke_units::{Bytes, Duration};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What an array has to do. What is not said is not wished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wishes {
    /// What can be stored, at least.
    pub usable: Option<Bytes>,
    /// The 99th percentile of response times, at most.
    pub p99: Option<Duration>,
    /// Media streams that play without an underrun.
    pub streams: Option<u32>,
    /// Read and written, in 10^6 bytes a second, at least.
    pub mb_per_s: Option<f64>,
    /// Drives that may fail, whichever they are.
    pub failures: Option<u32>,
    /// Mean power of all drives, at most.
    pub watts: Option<f64>,
    /// The price of all drives, at most.
    pub price: Option<f64>,
}

impl Wishes {
    /// Whether some of them are of speed.
    pub(crate) fn of_speed(&self) -> bool {
        self.p99.is_some() || self.streams.is_some() || self.mb_per_s.is_some()
    }
}

/// The drives of a wish file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drives {
    /// A name of the library, or a drive file, relative to the wish file.
    pub model: Option<String>,
    /// How many: a number, or a range such as "4..8".
    pub count: Option<Counts>,
    /// What one costs, in any currency.
    pub price: Option<f64>,
    /// What a controller costs, where some are tried.
    pub controller_price: Option<f64>,
}

/// A wish file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WishFile {
    /// For people.
    #[serde(default)]
    pub title: String,
    /// The stack file whose workload and hosts are the load, relative to this file. Its volume is left out.
    pub stack: PathBuf,
    /// A mix in place of the stack's workload: as `[[workloads]]` of a stack, a trace unless `kind` says otherwise, named
    /// as its file unless `name` does; `path` is relative to this file.
    #[serde(default)]
    pub load: Vec<Map<String, Value>>,
    /// What there is to build of.
    #[serde(default)]
    pub drives: Drives,
    /// What is wished.
    #[serde(default)]
    pub wishes: Wishes,
    /// What is tried.
    #[serde(default)]
    pub choices: Choices,
    /// What is assumed of failures.
    #[serde(default)]
    pub assumptions: Assumptions,
}

/// A wish file that cannot be used.
#[derive(Debug, Error)]
pub enum WishError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is no TOML, or has other keys or values than those that are known.
    #[error("{}: {}", path.display(), source.to_string().trim_end())]
    Toml {
        /// The file.
        path: PathBuf,
        /// What was found, with its line.
        source: toml::de::Error,
    },
    /// A load cannot be used.
    #[error("{}: [[load]]: {reason}", path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// What was found, what was expected.
        reason: Reason,
    },
}

impl WishFile {
    /// Reads a wish file; `None` if `path` is another one, as a stack file, which has no key `stack`.
    ///
    /// # Errors
    /// What is wrong with it, with its line.
    pub fn read(path: &Path) -> Result<Option<WishFile>, WishError> {
        let text = std::fs::read_to_string(path).map_err(|source| WishError::Read {
            path: path.to_owned(),
            source,
        })?;
        let wrong = |source| WishError::Toml {
            path: path.to_owned(),
            source,
        };
        let table: toml::Table = toml::from_str(&text).map_err(wrong)?;
        if !["stack", "wishes", "drives"]
            .iter()
            .any(|key| table.contains_key(*key))
        {
            return Ok(None);
        }
        let mut file: WishFile = toml::from_str(&text).map_err(wrong)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        file.stack = folder.join(&file.stack);
        file.load
            .iter_mut()
            .try_for_each(|one| complete(one, folder))
            .map_err(|reason| WishError::Load {
                path: path.to_owned(),
                reason,
            })?;
        let drive = file.drives.model.as_ref().map(|model| folder.join(model));
        if let Some(drive) = drive.filter(|drive| drive.is_file()) {
            file.drives.model = Some(drive.display().to_string());
        }
        Ok(Some(file))
    }
}

/// One of a mix with its kind, its name, and its file as seen from the current folder.
fn complete(one: &mut Map<String, Value>, folder: &Path) -> Result<(), Reason> {
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
    let path =
        std::path::absolute(folder.join(path)).map_err(|error| reason!("`path`: {error}"))?;
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
            ("stack = \"a\"\n[wishes]\nuseable = \"1TB\"\n", "useable"),
            ("stack = \"a\"\n[drives]\ncount = \"8..4\"\n", "8..4"),
            ("stack = \"a\"\n[drives]\ncount = 0\n", "at least 1"),
            ("[wishes]\nusable = \"1TB\"\n", "stack"),
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
