//! The track table of a drive: the drive's own, or a table from a file.

use crate::StackError;
use crate::document::Document;
use crate::folder::Folder;
use fullstroke_contract::ConfigError;
use fullstroke_drive::DriveModel;
use fullstroke_host::HostConfig;
use fullstroke_tracks::{Boundaries, MisfitError, UnknownTracks};
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// The key `tracks` of a volume.
#[derive(Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected the name of a file, or a table such as { file = \"...\", trust = true }"
)]
enum TracksKey {
    File(PathBuf),
    Said {
        file: PathBuf,
        #[serde(default)]
        trust: bool,
    },
}

/// A track table from a stack file, for the drives below the key.
#[derive(Clone)]
pub(crate) struct GivenTracks {
    table: Arc<Boundaries>,
    file: PathBuf,
    /// True to use the table even if it differs from the drive's tracks.
    trust: bool,
    /// Path of the key, for errors.
    key: String,
}

impl GivenTracks {
    /// Reads the file that the key names, relative to the stack file's folder.
    ///
    /// # Errors
    /// Returns errors at the key: the value names no file, or the file cannot be read or is not a
    /// table.
    pub(crate) fn read(
        value: Value,
        key: String,
        document: &Document,
        folder: &Folder,
    ) -> Result<GivenTracks, StackError> {
        let fail = |message: String| document.error(ConfigError::new(key.clone(), message));
        let expected = format!(
            "found {value}; expected \"FILE.tracks\", or {{ file = \"FILE.tracks\", trust = true }}"
        );
        let (file, trust) = match serde_json::from_value(value) {
            Ok(TracksKey::File(file)) => (file, false),
            Ok(TracksKey::Said { file, trust }) => (file, trust),
            Err(_) => return Err(fail(expected)),
        };
        let path = folder.join(&file);
        let text = folder
            .files()
            .read_text(&path)
            .map_err(|error| fail(format!("`{}`: {error}", path.display())))?;
        let table = Boundaries::parse(&text)
            .map_err(|error| fail(format!("`{}`: {error}", path.display())))?;
        Ok(GivenTracks {
            table: Arc::new(table),
            file,
            trust,
            key,
        })
    }

    /// Uses the table for a drive.
    ///
    /// # Errors
    /// Returns an error at the key with the first address at which the drive has a different track.
    /// For a trusted table, only a different capacity is an error.
    pub(crate) fn of(
        &self,
        model: &DriveModel,
        document: &Document,
    ) -> Result<DriveTracks, StackError> {
        let fail = |message: String| {
            let message = format!("`{}`: {message}", self.file.display());
            document.error(ConfigError::new(self.key.clone(), message))
        };
        // Also for a trusted table: a shorter table would have no track for the last addresses.
        let capacity = self.table.check_capacity(model.config().capacity_sectors);
        capacity.map_err(|error| fail(error.to_string()))?;
        if !self.trust {
            self.table
                .check_equal(&*own(model).map_err(|error| fail(error.to_string()))?)
                .map_err(|error| fail(advised(error)))?;
        }
        let known = OnceLock::from(Arc::clone(&self.table));
        Ok(DriveTracks {
            known: Arc::new(known),
            given: true,
            trusted: self.trust,
        })
    }
}

fn advised(error: MisfitError) -> String {
    format!(
        "{error}; extract the tracks of this drive, or set {{ file = \"...\", trust = true }} to use a wrong table"
    )
}

fn own(model: &DriveModel) -> Result<Arc<Boundaries>, UnknownTracks> {
    let table = Boundaries::of(&*model.tracks(), "the drive");
    table.map(Arc::new).map_err(UnknownTracks::OfDrive)
}

/// The track table of a drive. The table is built at the first use, and once for all equal drives.
#[derive(Clone, Default)]
pub(crate) struct DriveTracks {
    known: Arc<OnceLock<Arc<Boundaries>>>,
    /// True if the table comes from a file.
    pub(crate) given: bool,
    trusted: bool,
}

impl DriveTracks {
    /// Returns the table.
    ///
    /// # Errors
    /// If the tracks of the drive are unknown.
    pub(crate) fn table(&self, model: &DriveModel) -> Result<Arc<Boundaries>, UnknownTracks> {
        if let Some(known) = self.known.get() {
            return Ok(Arc::clone(known));
        }
        let own = own(model)?;
        // Another thread may have been first. Both tables are equal.
        Ok(Arc::clone(self.known.get_or_init(|| own)))
    }

    /// Returns the text of a table that is not the drive's own, because the digest of the stack
    /// must depend on it.
    pub(crate) fn identity(&self) -> Option<String> {
        self.known
            .get()
            .filter(|_| self.trusted)
            .map(|table| table.to_text())
    }
}

/// The use of the tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrackUse {
    /// To lay out files and to split requests: a request must not cross a track boundary.
    Tracks,
    /// To end read-ahead windows: above an array, a window is a track of each member.
    Windows,
}

/// Returns the tracks at whose boundaries requests of a host's layer end; `None` if the layer does
/// not align.
pub(crate) fn below_layer(
    layer: &HostConfig,
    tracks: impl FnOnce() -> Result<Arc<Boundaries>, UnknownTracks>,
) -> Result<Option<Arc<Boundaries>>, ConfigError> {
    if !layer.aligns_to_tracks() {
        return Ok(None);
    }
    let advised = |error: UnknownTracks| {
        ConfigError::new(
            "track_aligned",
            format!("{error}; move the key to [host.members], or remove the key"),
        )
    };
    tracks().map(Some).map_err(advised)
}
