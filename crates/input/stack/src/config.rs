//! The stack file: one file with workload, host, volume and drives.

use crate::cache::CacheSpec;
use crate::document::{Document, is_standard_input};
use crate::folder::Folder;
use crate::homes;
use crate::hosts::Hosts;
use crate::link::LinkSpec;
use crate::measurement::MeasurementConfig;
use crate::opportunities::Opportunities;
use crate::spec::VolumeSpec;
use crate::upper::UpperConfig;
use crate::volume::{Inherited, Spindles, read_volume};
use crate::workload::{Workload, parts_of};
use crate::workloads::{TablePlace, Workloads};
use crate::{Overrides, StackError};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{self, Keys, check_known, read};
use fullstroke_controller::{ControllerConfig, DestageConfig};
use fullstroke_host::HostConfig;
use fullstroke_trace::FileSource;
use fullstroke_units::{Duration, Seed};
use fullstroke_volume::Like;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::path::{Path, PathBuf};

/// A checked stack: all settings of its file and the command line can be built.
pub struct Stack {
    pub(crate) document: Document,
    pub(crate) workloads: Workloads,
    pub(crate) host: HostConfig,
    pub(crate) upper: UpperConfig,
    /// Several hosts, in place of `host` and `upper`; `None` for one host.
    pub(crate) hosts: Option<Hosts>,
    /// Opportunities that the array watches.
    pub(crate) opportunities: Opportunities,
    pub(crate) controller: Option<ControllerConfig>,
    pub(crate) link: Option<LinkSpec>,
    /// Cache on a flash device in front of the volume.
    pub(crate) cache: Option<CacheSpec>,
    pub(crate) volume: VolumeSpec,
    files: FileSource,
    names: StackNames,
    seed: Seed,
    measurement: MeasurementConfig,
    pub(crate) digest: String,
}

/// Names of a stack for people.
struct StackNames {
    /// Name of the file without folder and extension.
    name: String,
    /// Title in the file, or the name.
    title: String,
}

const KEYS: &[&str] = &[
    "title",
    "seed",
    "workload",
    "workloads",
    "host",
    "hosts",
    "shared",
    "opportunities",
    "cache",
    "controller",
    "link",
    "volume",
    "measurement",
];

impl Stack {
    /// Reads a stack file. `default` is the implementation of arrays without the key `like`, if no
    /// controller runs the arrays.
    pub(crate) fn read(
        path: &Path,
        overrides: &Overrides,
        default: Like,
    ) -> Result<Stack, StackError> {
        let mut document = Document::read_in(&overrides.files, path)?;
        let folder = Folder::of(path, &overrides.files);
        overrides.apply(&mut document)?;
        let known: Vec<String> = KEYS.iter().map(|&key| key.to_owned()).collect();
        homes::check(document.values(), &known).map_err(|error| document.error(error))?;
        let hosts = Hosts::read(&document, &folder)?;
        let workloads = Workloads::read(
            document.values(),
            &TablePlace {
                document: &document,
                path: "",
            },
            &folder,
        )?;
        let tables = Tables::read(&document).map_err(|error| document.error(error))?;
        let upper =
            UpperConfig::read(&tables.host).map_err(|error| document.error(error.below("host")))?;
        let Tables {
            title,
            seed,
            host,
            opportunities,
            controller,
            link,
            mut volume,
            measurement,
        } = tables;
        // The key belongs to the uppermost volume alone, so it is taken out before the members are
        // read. An error in it waits until the volume is read, because an unknown layout is the
        // better first error.
        let spindles = Spindles::take(&mut volume);
        // A hardware controller has firmware of its own, and not Linux's md.
        let default = match controller {
            Some(_) => Like::Ideal,
            None => default,
        };
        let inherited = Inherited::of(default);
        let mut volume = read_volume(&document, &folder, &volume, "volume", &inherited)?;
        let spindles = spindles.map_err(|error| document.error(error))?;
        if spindles == Spindles::Apart {
            volume
                .turn_apart(seed, &mut 0)
                .map_err(|error| document.error(error.below("volume")))?;
        }
        let name = name_of(path);
        // A controller and a link hide the drives from the host.
        let sees_drives = !volume.is_drive() && controller.is_none() && link.is_none();
        let host = if sees_drives {
            host.above_members()
        } else {
            host
        };
        let mut stack = Stack {
            cache: CacheSpec::read(&document, &folder)?,
            digest: String::new(),
            document,
            workloads,
            host,
            upper,
            opportunities,
            hosts,
            controller,
            link,
            volume,
            files: overrides.files.clone(),
            names: StackNames {
                title: title.unwrap_or_else(|| name.clone()),
                name,
            },
            seed,
            measurement,
        };
        stack.digest = stack.compute_digest();
        // Checks the layouts with their members: a stack that loads can be built.
        stack.summary()?;
        Ok(stack)
    }

    /// Returns the file's name without folder and extension.
    pub fn name(&self) -> &str {
        &self.names.name
    }

    /// Returns the title in the file, or the name.
    pub fn title(&self) -> &str {
        &self.names.title
    }

    /// Returns the seed of all random numbers.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// Returns the settings of the measurement.
    pub fn measurement(&self) -> MeasurementConfig {
        self.measurement
    }

    /// Returns the names of the workload's processes. Process `n` has index `n - 1` here. Empty for
    /// a workload without process names.
    pub fn process_names(&self) -> Vec<String> {
        self.hosts
            .as_ref()
            .map_or_else(|| self.workloads.process_names(), Hosts::process_names)
    }

    /// Returns the names of the workloads by index, for a stack with several workloads.
    pub fn workload_names(&self) -> Vec<String> {
        self.hosts
            .as_ref()
            .map_or_else(|| self.workloads.names(), Hosts::workload_names)
    }

    /// Returns sixteen hexadecimal digits that differ between different stacks: workload, host,
    /// controller, link, volume, every number of every drive. Title and seed do not count.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the replayed trace, if the workload is a trace.
    pub fn trace_file(&self) -> Option<PathBuf> {
        self.workloads.one()?.trace_file()
    }

    /// Returns true if each workload is a trace.
    pub fn has_only_traces(&self) -> bool {
        let workloads = self.workloads.all();
        workloads.iter().all(|one| one.trace_file().is_some())
    }

    /// Returns every file of the replayed trace. A blktrace has one file per processor.
    pub fn trace_files(&self) -> Vec<PathBuf> {
        let named = self.trace_file();
        // If the files cannot be found, opening the trace reports the error.
        named.map_or(Vec::new(), |path| {
            fullstroke_trace::files_in(&self.files, &path).unwrap_or(vec![path])
        })
    }

    /// Divides the replayed trace into `parts` parts with equal numbers of requests. Returns the
    /// values of `workload.from` and `workload.to` for each part. With several traces, the requests
    /// of all traces together are divided, and only parts with requests of every trace are
    /// returned. `None` if a workload is not a trace.
    ///
    /// # Errors
    /// If a trace cannot be read.
    pub fn trace_parts(&self, parts: usize) -> Result<Option<Vec<[Duration; 2]>>, StackError> {
        let each: Option<Vec<_>> = self
            .workloads
            .all()
            .into_iter()
            .map(|one| one.arrival_times())
            .collect();
        let Some(each) = each else { return Ok(None) };
        let each = each
            .into_iter()
            .collect::<Result<Vec<Vec<Duration>>, _>>()?;
        let mut all: Vec<Duration> = each.iter().flatten().copied().collect();
        // Traces are joined one after the other, and the parts need one order of time.
        all.sort_unstable();
        let in_all = |[from, to]: &[Duration; 2]| {
            each.iter()
                .all(|own| own.iter().any(|arrival| (from..to).contains(&arrival)))
        };
        let windows: Vec<[Duration; 2]> =
            parts_of(&all, parts).into_iter().filter(in_all).collect();
        Ok((!windows.is_empty()).then_some(windows))
    }

    /// Returns the seconds that a second of the replayed trace takes in a run. Several traces have
    /// the factor of the first.
    pub fn trace_time_scale(&self) -> f64 {
        let workloads = self.workloads.all();
        workloads.first().map_or(1.0, |one| one.time_scale())
    }

    /// Returns true if the seed changes nothing but the angles of the platters, and the stack does
    /// not choose the angles: all workloads are traces, and `volume.spindles` is absent.
    pub fn only_angles_are_random(&self) -> bool {
        let workloads = self.workloads.all();
        let traces =
            !workloads.is_empty() && workloads.iter().all(|one| one.trace_file().is_some());
        let volume = self.document.values().get("volume");
        let chosen = volume.is_some_and(|volume| volume.get("spindles").is_some());
        traces && self.hosts.is_none() && !chosen && !self.volume.has_xor()
    }

    /// Returns true if the workload is a job file of fio, on the volume or on files.
    pub fn has_job_file(&self) -> bool {
        self.workloads.one().is_some_and(Workload::is_job_file)
    }

    /// Returns the number of media streams; `None` if the workload is not a workload of streams.
    pub fn streams(&self) -> Option<u32> {
        self.workloads.one()?.streams()
    }

    /// Returns the path of the uppermost volume with redundancy, if none of its members has failed
    /// yet. Its failed members are set by the key `{path}.failed`. Equal volumes (`count`) share a
    /// path.
    pub fn redundant_volume(&self) -> Option<&str> {
        self.volume.redundant()
    }

    fn compute_digest(&self) -> String {
        let mut values = self.document.values().clone();
        // The digest identifies the system. Title and seed may differ between equal systems.
        values.remove("title");
        values.remove("seed");
        self.workloads.identify(&mut values);
        self.hosts
            .iter()
            .for_each(|hosts| hosts.identify(&mut values));
        let mut described = json!({ "stack": values, "drives": self.volume.drive_configs() });
        if let Some(cache) = &self.cache {
            // The stack file names the drive only; two library versions may describe it
            // differently.
            described["cache"] = json!(cache.drive().config());
        }
        digest(&described)
    }
}

/// Returns the name of the stack in a file: the file's name without its ending.
fn name_of(path: &Path) -> String {
    match path.file_stem() {
        _ if is_standard_input(path) => "stdin".to_owned(),
        Some(stem) => stem.to_string_lossy().into(),
        None => path.display().to_string(),
    }
}

/// The tables of the document itself, without the workloads.
struct Tables {
    title: Option<String>,
    seed: Seed,
    host: HostConfig,
    opportunities: Opportunities,
    controller: Option<ControllerConfig>,
    link: Option<LinkSpec>,
    /// Raw keys; they are read later together with the drive files.
    volume: Keys,
    measurement: MeasurementConfig,
}

impl Tables {
    fn read(document: &Document) -> Result<Tables, ConfigError> {
        let at = |section: &'static str| move |error: ConfigError| error.below(section);
        let host = HostConfig::read(&document.section("host")?).map_err(at("host"))?;
        let opportunities = Opportunities::read(document)?;
        let controller = read_controller(document)?;
        let link = match document.values().contains_key("link") {
            true => Some(LinkSpec::read(document.section("link")?).map_err(at("link"))?),
            false => None,
        };
        let measurement = read(&document.section("measurement")?).map_err(at("measurement"))?;
        let title = scalar(document, "title", Value::as_str)?.map(str::to_owned);
        let seed = Seed(scalar(document, "seed", Value::as_u64)?.unwrap_or(0));
        let volume = document.section("volume")?;
        Ok(Tables {
            title,
            seed,
            host,
            opportunities,
            controller,
            link,
            volume,
            measurement,
        })
    }
}

/// Returns sixteen hexadecimal digits: the start of the SHA-256 hash of `described`.
pub(crate) fn digest(described: &Value) -> String {
    // 64 bits are enough to tell the stacks of a comparison apart, and short enough for a report.
    let hash = Sha256::digest(described.to_string());
    hash.iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn scalar<'a, T>(
    document: &'a Document,
    key: &str,
    convert: impl Fn(&'a Value) -> Option<T>,
) -> Result<Option<T>, ConfigError> {
    match document.values().get(key) {
        None => Ok(None),
        Some(value) => convert(value).map(Some).ok_or_else(|| {
            let expected = if key == "seed" {
                "a whole number, 0 or more"
            } else {
                "a text"
            };
            ConfigError::new(key, format!("found {value}; expected {expected}"))
        }),
    }
}

/// Reads the controller, if the file has one.
fn read_controller(document: &Document) -> Result<Option<ControllerConfig>, ConfigError> {
    if !document.values().contains_key("controller") {
        return Ok(None);
    }
    let keys = document.section("controller")?;
    // `read` checks the keys of the outer table only; a wrong key of the inner table would be an
    // error of serde without a suggestion.
    if let Some(Value::Object(destage)) = keys.get("destage") {
        let known = registry::known_keys(&registry::schema_of::<DestageConfig>());
        check_known(destage, &known).map_err(|error| error.below("controller.destage"))?;
    }
    read(&keys)
        .map(Some)
        .map_err(|error: ConfigError| error.below("controller"))
}
