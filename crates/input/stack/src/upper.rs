//! The upper half of a host: programs on files, through memory.

use crate::StackError;
use crate::tracks::Wanted;
use crate::workloads::{Numbers, Place, Workloads};
use fullstroke_contract::ConfigError;
use fullstroke_files::{REGISTRY, Site};
use fullstroke_host::HostConfig;
use fullstroke_tracks::{Boundaries, UnknownTracks};
use fullstroke_units::{Duration, Sectors, Seed, Time};
use fullstroke_vfs::{Equipment, FilesConfig, Vfs};
use std::sync::Arc;

/// A host above its block layer: what its table says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UpperConfig {
    files: Option<FilesConfig>,
}

/// What a host's programs find.
pub(crate) struct Ground<'a> {
    /// Addresses of the device.
    pub capacity: Sectors,
    /// How they are striped, if the host can know it.
    pub stripe: Option<fullstroke_files::Stripe>,
    /// Finds its tracks, or says why there are none.
    pub tracks: &'a dyn Fn(Wanted) -> Result<Arc<Boundaries>, UnknownTracks>,
    pub seed: Seed,
    /// When its programs begin, at the earliest.
    pub start: Duration,
    pub terms: Terms,
}

/// What goes for all hosts of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Calls that ended before are not counted.
    pub counted_from: Time,
    /// Whether file systems are aged: only what runs need be.
    pub aged: bool,
}

impl UpperConfig {
    /// Of the host's table.
    ///
    /// # Errors
    /// At a key below `files`.
    pub(crate) fn read(host: &HostConfig) -> Result<UpperConfig, ConfigError> {
        let files = host.files().map(FilesConfig::read).transpose();
        Ok(UpperConfig {
            files: files.map_err(|error| error.below("files"))?,
        })
    }

    /// Whether there is a file system.
    pub(crate) fn has_files(&self) -> bool {
        self.files.is_some()
    }

    /// The programs of a host above its file system; `None` if its workloads are none.
    /// `at` is the path of the host's table.
    ///
    /// # Errors
    /// Programs without files or memory, files without programs, a device that is too
    /// small.
    pub(crate) fn programs(
        &self,
        workloads: &Workloads,
        host: (&HostConfig, &str),
        ground: &Ground<'_>,
        numbers: &mut Numbers,
        place: &Place<'_>,
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
            let cache = host.cache().map_err(|error| error.below(at))?;
            let cache = cache.ok_or_else(|| no_memory(&name).below(at))?;
            let seed = ground.seed.of("files");
            let site = Site {
                capacity: ground.capacity,
                seed,
                stripe: ground.stripe,
                tracks: None,
            };
            let Terms { counted_from, aged } = ground.terms;
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
                "no workload is a program: they issue requests to the device itself; leave it out",
            )),
        }
    }
}

/// The site with the tracks that files keep to, and those with which windows of
/// read-ahead end.
fn aligned(
    files: &FilesConfig,
    site: Site,
    tracks: &dyn Fn(Wanted) -> Result<Arc<Boundaries>, UnknownTracks>,
) -> Result<(Site, Option<Arc<Boundaries>>), ConfigError> {
    let find = |key: &'static str, wanted, advice| {
        tracks(wanted)
            .map(Some)
            .map_err(|message| ConfigError::new(key, format!("{message}; {advice}")))
    };
    let of_files = match files.aligns() {
        true => find(
            "align",
            Wanted::Tracks,
            "say align_read_ahead = true alone, or leave it out",
        )?,
        false => None,
    };
    let windows = match (files.aligns_read_ahead(), &of_files) {
        (false, _) => None,
        (true, Some(tracks)) => Some(Arc::clone(tracks)),
        (true, None) => find("align_read_ahead", Wanted::Windows, "leave it out")?,
    };
    Ok((
        Site {
            tracks: of_files,
            ..site
        },
        windows,
    ))
}

fn no_files(program: &str) -> ConfigError {
    let kinds: Vec<&str> = REGISTRY.iter().map(|entry| entry.name).collect();
    let message = format!(
        "`{program}` is a program and works on files; say kind = one of {}",
        kinds.join(", ")
    );
    ConfigError::new("files", message)
}

fn no_memory(program: &str) -> ConfigError {
    let message = format!(
        "`{program}` is a program and reads and writes through memory; say size = \"1GiB\" or another"
    );
    ConfigError::new("memory", message)
}

/// The stripes that a file system is made for.
pub(crate) fn stripe_of(stripe: fullstroke_volume::Stripe) -> Option<fullstroke_files::Stripe> {
    let width = stripe.row?.0 / stripe.unit.0;
    Some(fullstroke_files::Stripe {
        unit: stripe.unit,
        width: width as u32,
    })
}
