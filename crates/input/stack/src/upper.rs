//! The upper half of a host: programs on files, through memory.

use crate::StackError;
use crate::drive_tracks::TrackUse;
use crate::workloads::{TablePlace, WorkloadNumbers, Workloads};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::keys_of;
use fullstroke_files::{FileSystemSite, REGISTRY};
use fullstroke_host::HostConfig;
use fullstroke_memory::{MemoryKeys, PageCache, QueueLimits};
use fullstroke_tracks::{Boundaries, UnknownTracks};
use fullstroke_units::{Duration, Sectors, Seed, Time};
use fullstroke_vfs::{Equipment, FilesConfig, Vfs};
use std::sync::Arc;

/// The description of a host above its block layer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UpperConfig {
    files: Option<FilesConfig>,
}

/// The surroundings of a host's programs.
pub(crate) struct ProgramSite<'a> {
    /// Number of addresses of the device.
    pub capacity: Sectors,
    /// Stripes of the device; `None` if the host cannot know them.
    pub stripe: Option<fullstroke_files::Stripe>,
    /// Returns the tracks of the device, or the reason why there are none.
    pub tracks: &'a dyn Fn(TrackUse) -> Result<Arc<Boundaries>, UnknownTracks>,
    pub seed: Seed,
    /// Earliest start time of the programs.
    pub start: Duration,
    pub terms: HostTerms,
}

/// The terms for all hosts of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostTerms {
    /// Time from which ended calls are counted.
    pub counted_from: Time,
    /// True to age the file systems, which only a real run needs.
    pub aged: bool,
}

impl UpperConfig {
    /// Reads the configuration from the host's table.
    ///
    /// # Errors
    /// Returns errors at a key below `files`.
    pub(crate) fn read(host: &HostConfig) -> Result<UpperConfig, ConfigError> {
        let files = host.files().map(FilesConfig::read).transpose();
        Ok(UpperConfig {
            files: files.map_err(|error| error.below("files"))?,
        })
    }

    /// Returns true if there is a file system.
    pub(crate) fn has_files(&self) -> bool {
        self.files.is_some()
    }

    /// Returns true if the file system lies in a pool like ZFS.
    pub(crate) fn lies_in_pool(&self) -> bool {
        self.files.as_ref().is_some_and(FilesConfig::lies_in_pool)
    }

    /// Returns an empty page cache. The pool below a file system of its own has the memory, and the
    /// page cache stays empty.
    ///
    /// # Errors
    /// Names the table `memory` if it has no effect.
    fn cache(&self, host: &HostConfig) -> Result<Option<PageCache>, ConfigError> {
        match self.lies_in_pool() {
            true => cache_above_pool(host).map(Some),
            false => host.cache(),
        }
    }

    /// Builds the programs of a host above its file system. Returns `None` if the workloads are no
    /// programs. `at` is the path of the host's table.
    ///
    /// # Errors
    /// If there are programs without files or memory, files without programs, or if the device is
    /// too small.
    pub(crate) fn programs(
        &self,
        workloads: &Workloads,
        host: (&HostConfig, &str),
        ground: &ProgramSite<'_>,
        numbers: &mut WorkloadNumbers,
        place: &TablePlace<'_>,
    ) -> Result<Option<Vfs>, StackError> {
        let (host, at) = host;
        let mut build = || {
            let started =
                workloads.programs(ground.seed, ground.start, self.has_files(), numbers)?;
            let Some(started) = started else {
                return self
                    .check_unused()
                    .map(|()| None)
                    .map_err(|error| error.below(at));
            };
            let name = started.first().map_or("", |first| &first.name).to_owned();
            let files = self
                .files
                .as_ref()
                .ok_or_else(|| no_files(&name).below(at))?;
            let cache = self.cache(host).map_err(|error| error.below(at))?;
            let cache = cache.ok_or_else(|| no_memory(&name).below(at))?;
            let seed = ground.seed.of("files");
            let site = FileSystemSite {
                capacity: ground.capacity,
                seed,
                stripe: ground.stripe,
                tracks: None,
            };
            let HostTerms { counted_from, aged } = ground.terms;
            let (site, windows) = aligned(files, site, ground.tracks)
                .map_err(|error| error.below("files").below(at))?;
            let equipment = Equipment {
                files,
                cache,
                site,
                windows,
                aged,
                counted_from,
            };
            Vfs::new(started, equipment)
                .map(Some)
                .map_err(|error| error.below("files").below(at))
        };
        build().map_err(|error| place.error(error))
    }

    fn check_unused(&self) -> Result<(), ConfigError> {
        match self.files {
            None => Ok(()),
            Some(_) => Err(ConfigError::new(
                "files",
                "no workload is a program, so all requests go to the device itself; remove this key",
            )),
        }
    }
}

/// Returns the empty page cache of a host whose file system lies in a pool.
///
/// # Errors
/// Names the table `memory`, which has no effect.
pub(crate) fn cache_above_pool(host: &HostConfig) -> Result<PageCache, ConfigError> {
    if host.has_memory() {
        let message = "ZFS keeps files in the memory of the pool, not in the page cache: remove this table, and give arc in [volume]";
        return Err(ConfigError::new("memory", message));
    }
    let keys = keys_of([("size".to_owned(), "1MiB".into())]);
    let keys = MemoryKeys::read(&keys)?;
    PageCache::new(&keys, QueueLimits::default())
}

/// Returns the site with the tracks for the layout of files, and the tracks at which read-ahead
/// windows end.
fn aligned(
    files: &FilesConfig,
    site: FileSystemSite,
    tracks: &dyn Fn(TrackUse) -> Result<Arc<Boundaries>, UnknownTracks>,
) -> Result<(FileSystemSite, Option<Arc<Boundaries>>), ConfigError> {
    let find = |key: &'static str, wanted, advice| {
        tracks(wanted)
            .map(Some)
            .map_err(|message| ConfigError::new(key, format!("{message}; {advice}")))
    };
    let of_files = match files.aligns() {
        true => find(
            "align",
            TrackUse::Tracks,
            "set align_read_ahead = true alone, or remove this key",
        )?,
        false => None,
    };
    let windows = match (files.aligns_read_ahead(), &of_files) {
        (false, _) => None,
        (true, Some(tracks)) => Some(Arc::clone(tracks)),
        (true, None) => find("align_read_ahead", TrackUse::Windows, "remove this key")?,
    };
    Ok((
        FileSystemSite {
            tracks: of_files,
            ..site
        },
        windows,
    ))
}

fn no_files(program: &str) -> ConfigError {
    let kinds: Vec<&str> = REGISTRY.iter().map(|entry| entry.name).collect();
    let message = format!(
        "`{program}` is a program and works on files; set kind to one of {}",
        kinds.join(", ")
    );
    ConfigError::new("files", message)
}

fn no_memory(program: &str) -> ConfigError {
    let message = format!(
        "`{program}` is a program and reads and writes through memory; set its size, such as size = \"1GiB\""
    );
    ConfigError::new("memory", message)
}

/// Returns the stripes for which a file system is made.
pub(crate) fn stripe_of(stripe: fullstroke_volume::Stripe) -> Option<fullstroke_files::Stripe> {
    let width = stripe.row?.0 / stripe.unit.0;
    Some(fullstroke_files::Stripe {
        unit: stripe.unit,
        width: width as u32,
    })
}
