//! The stack file: one file that describes workload, host, volume and drives.

use crate::build::{Run, VolumeSpec};
use crate::document::Document;
use crate::layouts::LAYOUTS;
use crate::link::LinkSpec;
use crate::streams::read_streams;
use crate::{FioConfig, StackError, drives, schema};
use fullstroke_contract::registry::{self, Keys, check_known, find, read};
use fullstroke_contract::{ConfigError, Operation};
use fullstroke_controller::{ControllerConfig, DestageConfig};
use fullstroke_drive::Model;
use fullstroke_fio::JobSet;
use fullstroke_host::HostConfig;
use fullstroke_trace::{Beyond, Options};
use fullstroke_units::{Duration, Seed};
use fullstroke_volume::MemberZone;
use fullstroke_workload::{ProcessConfig, ProcessesConfig, StreamsConfig, SyntheticConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::path::{Path, PathBuf};

/// What the command line changes in a stack file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// `key=value`, in order.
    pub set: Vec<String>,
    /// A trace in place of the file's workload; relative to the current folder.
    pub trace: Option<PathBuf>,
    /// A job file of fio's in place of the file's workload; relative to the
    /// current folder.
    pub fio: Option<PathBuf>,
    /// More keys of the trace, such as `beyond` or `time_scale`.
    pub trace_keys: Map<String, Value>,
    /// A drive in place of the file's: a name of the library, or a file,
    /// relative to the current folder.
    pub drive: Option<String>,
    /// Another seed.
    pub seed: Option<u64>,
    /// End the workload after so many requests.
    pub requests: Option<u64>,
}

/// A trace as a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceConfig {
    /// The file; relative to the stack file.
    pub path: PathBuf,
    /// Its format; recognised unless said.
    pub format: Option<String>,
    /// Only these devices; all unless said.
    #[serde(default)]
    pub devices: Vec<u32>,
    /// Only these operations; all unless said.
    #[serde(default)]
    pub operations: Vec<Operation>,
    /// Only requests from this time after the first on.
    #[serde(default)]
    pub from: Duration,
    /// Only requests before this time after the first.
    pub to: Option<Duration>,
    /// Arrivals are multiplied by this: 0.5 is twice the load.
    #[serde(default = "unscaled")]
    pub time_scale: f64,
    /// What to do with addresses beyond the volume.
    #[serde(default)]
    pub beyond: BeyondConfig,
    /// Tolerate, and count, this many damaged rows.
    #[serde(default)]
    pub skip_bad: u64,
    /// End after this many requests.
    pub requests: Option<u64>,
    /// Replay closed, with so many requests outstanding, in place of the
    /// trace's own times.
    pub outstanding: Option<u32>,
}

/// What to do with addresses beyond the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BeyondConfig {
    /// It is an error.
    #[default]
    Reject,
    /// Modulo the capacity.
    Wrap,
    /// In proportion.
    Scale,
}

fn unscaled() -> f64 {
    1.0
}

/// What is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasurementConfig {
    /// Requests that arrive before this time are served but not counted.
    #[serde(default)]
    pub warm_up: Duration,
}

/// The workload of a stack.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WorkloadConfig {
    Trace(TraceConfig),
    Synthetic(SyntheticConfig),
    Processes(ProcessesConfig),
    Streams(StreamsConfig),
    Fio(FioConfig),
    /// None in the file: whoever serves the stack has clients.
    Clients,
}

/// A checked stack: everything that its file and the command line say can be
/// built.
pub struct Stack {
    pub(crate) document: Document,
    pub(crate) folder: PathBuf,
    pub(crate) workload: WorkloadConfig,
    /// The jobs of a workload of fio's.
    pub(crate) jobs: Option<JobSet>,
    pub(crate) host: HostConfig,
    pub(crate) controller: Option<ControllerConfig>,
    pub(crate) link: Option<LinkSpec>,
    pub(crate) volume: VolumeSpec,
    name: String,
    title: String,
    seed: Seed,
    measurement: MeasurementConfig,
    digest: String,
}

const KEYS: &[&str] = &["title", "seed", "workload", "host", "controller", "link", "volume", "measurement"];

impl Stack {
    /// Reads and checks a stack file.
    ///
    /// # Errors
    /// Names file, line and key of what cannot be, and the nearest known name.
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Stack, StackError> {
        let stack = Stack::read(path, overrides)?;
        match stack.workload {
            WorkloadConfig::Synthetic(_)
            | WorkloadConfig::Processes(_)
            | WorkloadConfig::Streams(_)
            | WorkloadConfig::Fio(_) => {
                stack.build().map(|_| ())?;
            }
            WorkloadConfig::Clients => return Err(stack.document.error(no_workload().below("workload"))),
            WorkloadConfig::Trace(_) => {}
        }
        Ok(stack)
    }

    /// Reads and checks a stack file whose requests come from clients: it needs
    /// no workload.
    ///
    /// # Errors
    /// As [`load`](Stack::load).
    pub fn load_for_clients(path: &Path, overrides: &Overrides) -> Result<Stack, StackError> {
        Stack::read(path, overrides)
    }

    fn read(path: &Path, overrides: &Overrides) -> Result<Stack, StackError> {
        let mut document = Document::read(path)?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        apply(&mut document, overrides)?;
        let known: Vec<String> = KEYS.iter().map(|&key| key.to_owned()).collect();
        check_known(document.values(), &known).map_err(|error| document.error(error))?;
        let at = |section: &'static str| move |error: ConfigError| error.below(section);
        let read_all = || -> Result<_, ConfigError> {
            let workload = read_workload(&section(&document, "workload")?).map_err(at("workload"))?;
            let host = HostConfig::read(&section(&document, "host")?).map_err(at("host"))?;
            let controller = read_controller(&document)?;
            let link = match document.values().contains_key("link") {
                true => Some(LinkSpec::read(section(&document, "link")?).map_err(at("link"))?),
                false => None,
            };
            let measurement = read(&section(&document, "measurement")?).map_err(at("measurement"))?;
            let title = scalar(&document, "title", Value::as_str)?.map(str::to_owned);
            let seed = scalar(&document, "seed", Value::as_u64)?.unwrap_or(0);
            Ok((workload, host, controller, link, measurement, title, Seed(seed)))
        };
        let (workload, host, controller, link, measurement, title, seed) =
            read_all().map_err(|error| document.error(error))?;
        let jobs = match &workload {
            WorkloadConfig::Fio(config) => Some(config.read(&folder)?),
            _ => None,
        };
        let volume = section(&document, "volume").map_err(|error| document.error(error))?;
        let volume = read_volume(&document, &folder, &volume, "volume", &Inherited::default())?;
        let name =
            path.file_stem().map_or_else(|| path.display().to_string(), |stem| stem.to_string_lossy().into());
        let mut stack = Stack {
            title: title.unwrap_or_else(|| name.clone()),
            digest: String::new(),
            document,
            folder,
            workload,
            jobs,
            host,
            controller,
            link,
            volume,
            name,
            seed,
            measurement,
        };
        stack.digest = stack.compute_digest();
        stack.summary()?;
        stack.layers()?;
        Ok(stack)
    }

    /// The file's name without folder and ending.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The title in the file, or the name.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The seed of all randomness.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// What is measured.
    pub fn measurement(&self) -> MeasurementConfig {
        self.measurement
    }

    /// The names of the workload's processes by their number, which is one more
    /// than the index here; empty where the workload names none.
    pub fn process_names(&self) -> Vec<String> {
        match &self.workload {
            WorkloadConfig::Processes(processes) => processes.names().map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }

    /// Sixteen hexadecimal digits that differ where two stacks do: workload,
    /// host, controller, link, volume, every number of every drive. Title and seed do not count.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The trace that is replayed, where the workload is one.
    pub fn trace_file(&self) -> Option<PathBuf> {
        match &self.workload {
            WorkloadConfig::Trace(trace) => Some(self.folder.join(&trace.path)),
            _ => None,
        }
    }

    /// Whether the workload is a job file of fio's.
    pub fn has_job_file(&self) -> bool {
        self.jobs.is_some()
    }

    /// How many media streams the workload starts, if it is one of streams.
    pub fn streams(&self) -> Option<u32> {
        match &self.workload {
            WorkloadConfig::Streams(config) => Some(config.streams),
            _ => None,
        }
    }

    /// The JSON schema of stack files, for editors.
    pub fn schema() -> Value {
        schema::stack()
    }

    /// Layers and source, fresh, at time 0.
    ///
    /// # Errors
    /// A trace that cannot be opened.
    pub fn build(&self) -> Result<Run, StackError> {
        Run::new(self)
    }

    fn compute_digest(&self) -> String {
        let mut values = self.document.values().clone();
        values.remove("title");
        values.remove("seed");
        // A trace is the same wherever it lies.
        if let (WorkloadConfig::Trace(trace), Some(path)) = (&self.workload, values.get_mut("workload")) {
            path["path"] = json!(trace.path.file_name().map(|name| name.to_string_lossy()));
        }
        // So is a job file, and what counts is what it says.
        if let (Some(jobs), Some(workload)) = (&self.jobs, values.get_mut("workload")) {
            workload["path"] = json!(jobs.description());
        }
        let described = json!({ "stack": values, "drives": self.volume.drive_configs() });
        digest(&described)
    }
}

/// Sixteen hexadecimal digits of what is described.
pub(crate) fn digest(described: &Value) -> String {
    let hash = Sha256::digest(described.to_string());
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Writes what the command line says into the document.
fn apply(document: &mut Document, overrides: &Overrides) -> Result<(), StackError> {
    let put = |document: &mut Document, key: &str, value: Value| {
        document.put(key, value).map_err(|message| StackError::whole(document.file(), message))
    };
    if let Some(trace) = &overrides.trace {
        let absolute = std::path::absolute(trace)
            .map_err(|error| StackError::whole(trace.display().to_string(), error.to_string()))?;
        let of_trace = document.values().get("workload").and_then(|workload| workload.get("kind"))
            == Some(&json!("trace"));
        if !of_trace {
            put(document, "workload", json!({ "kind": "trace" }))?;
        }
        put(document, "workload.path", json!(absolute))?;
        if let Some(Value::Object(workload)) = document.values().get("workload").cloned().as_mut() {
            workload.remove("format");
            put(document, "workload", Value::Object(std::mem::take(workload)))?;
        }
    }
    if let Some(fio) = &overrides.fio {
        let absolute = std::path::absolute(fio)
            .map_err(|error| StackError::whole(fio.display().to_string(), error.to_string()))?;
        put(document, "workload", json!({ "kind": "fio", "path": absolute }))?;
    }
    if let Some(drive) = &overrides.drive {
        // A file is named from the current folder, not from the stack's.
        let file = drive.split('#').next().is_some_and(|file| Path::new(file).exists());
        let path = std::path::absolute(drive).ok().filter(|_| file);
        let named = path.map_or_else(|| drive.clone(), |path| path.display().to_string());
        put(document, "volume.drive", json!(named))?;
    }
    for (key, value) in &overrides.trace_keys {
        put(document, &format!("workload.{key}"), value.clone())?;
    }
    if let Some(requests) = overrides.requests {
        put(document, "workload.requests", json!(requests))?;
    }
    if let Some(seed) = overrides.seed {
        put(document, "seed", json!(seed))?;
    }
    overrides.set.iter().try_for_each(|assignment| document.set(assignment))
}

/// The table called `name`; empty if there is none.
fn section(document: &Document, name: &str) -> Result<Keys, ConfigError> {
    match document.values().get(name) {
        None => Ok(Keys::new()),
        Some(Value::Object(table)) => Ok(table.clone()),
        Some(other) => Err(ConfigError::new(name, format!("found {other}; expected a table, [{name}]"))),
    }
}

fn scalar<'a, T>(
    document: &'a Document,
    key: &str,
    convert: impl Fn(&'a Value) -> Option<T>,
) -> Result<Option<T>, ConfigError> {
    match document.values().get(key) {
        None => Ok(None),
        Some(value) => convert(value).map(Some).ok_or_else(|| {
            let expected = if key == "seed" { "a whole number, 0 or more" } else { "a text" };
            ConfigError::new(key, format!("found {value}; expected {expected}"))
        }),
    }
}

/// The kinds of workload.
const WORKLOADS: &[&str] = &["trace", "synthetic", "processes", "streams", "fio"];

fn read_workload(keys: &Keys) -> Result<WorkloadConfig, ConfigError> {
    let mut keys = keys.clone();
    match keys.remove("kind").as_ref().and_then(Value::as_str) {
        Some("trace") => match read::<TraceConfig>(&keys)? {
            TraceConfig { outstanding: Some(0), .. } => {
                Err(ConfigError::new("outstanding", "found 0; expected at least 1, or leave it out"))
            }
            trace => Ok(WorkloadConfig::Trace(trace)),
        },
        Some("synthetic") => read(&keys).map(WorkloadConfig::Synthetic),
        Some("processes") => read_processes(&keys).map(WorkloadConfig::Processes),
        Some("streams") => read_streams(&keys).map(WorkloadConfig::Streams),
        Some("fio") => read(&keys).map(WorkloadConfig::Fio),
        Some(other) => Err(ConfigError::new(
            "kind",
            format!(
                "there is no workload `{other}`{}; known: {}",
                registry::nearest(other, WORKLOADS),
                WORKLOADS.join(", ")
            ),
        )),
        None if keys.is_empty() => Ok(WorkloadConfig::Clients),
        None => Err(no_workload()),
    }
}

fn no_workload() -> ConfigError {
    let kinds = WORKLOADS.join(", ");
    let message = format!("the stack has no workload; say kind = one of {kinds}, or give --trace or --fio");
    ConfigError::new("kind", message)
}

/// The controller, if the file describes one.
fn read_controller(document: &Document) -> Result<Option<ControllerConfig>, ConfigError> {
    if !document.values().contains_key("controller") {
        return Ok(None);
    }
    let keys = section(document, "controller")?;
    if let Some(Value::Object(destage)) = keys.get("destage") {
        let known = registry::known_keys(&registry::schema_of::<DestageConfig>());
        check_known(destage, &known).map_err(|error| error.below("controller.destage"))?;
    }
    read(&keys).map(Some).map_err(|error: ConfigError| error.below("controller"))
}

/// Reads a load of processes entry by entry, so that an unknown key names the
/// nearest one.
fn read_processes(keys: &Keys) -> Result<ProcessesConfig, ConfigError> {
    if let Some(Value::Array(entries)) = keys.get("processes") {
        for (index, entry) in entries.iter().enumerate() {
            if let Value::Object(entry) = entry {
                read::<ProcessConfig>(entry).map_err(|error| error.below(&format!("processes[{index}]")))?;
            }
        }
    }
    read(keys)
}

/// Drive keys that a volume hands down to the volumes within it.
#[derive(Clone, Default)]
struct Inherited {
    drive: Option<String>,
    settings: Map<String, Value>,
}

/// Keys of a volume that are not its layout's.
pub(crate) const VOLUME_KEYS: &[&str] = &["layout", "drive", "drives", "drive_settings", "members", "count"];

/// Reads a volume and, below it, its members.
fn read_volume(
    document: &Document,
    folder: &Path,
    keys: &Keys,
    path: &str,
    inherited: &Inherited,
) -> Result<VolumeSpec, StackError> {
    let fail = |key: &str, message: String| document.error(ConfigError::new(key, message).below(path));
    let mut own = keys.clone();
    let layout = match own.remove("layout") {
        None => "jbod".to_owned(),
        Some(Value::String(name)) => name,
        Some(other) => return Err(fail("layout", format!("found {other}; expected the name of a layout"))),
    };
    let entry =
        find("layout", LAYOUTS, "layout", &layout).map_err(|error| document.error(error.below(path)))?;
    let known: Vec<String> = registry::known_keys(&(entry.schema)())
        .into_iter()
        .chain(VOLUME_KEYS.iter().map(|&key| key.to_owned()))
        .collect();
    check_known(&own, &known).map_err(|error| document.error(error.below(path)))?;

    let mut inherited = inherited.clone();
    match own.remove("drive") {
        None => {}
        Some(Value::String(name)) => inherited.drive = Some(name),
        Some(other) => return Err(fail("drive", format!("found {other}; expected the name of a drive"))),
    }
    match own.remove("drive_settings") {
        None => {}
        Some(Value::Object(settings)) => inherited.settings.extend(settings),
        Some(other) => {
            return Err(fail("drive_settings", format!("found {other}; expected a table of drive keys")));
        }
    }
    let drives =
        count(own.remove("drives"), "drives", 1).map_err(|error| document.error(error.below(path)))?;
    own.remove("count");
    let members = match own.remove("members") {
        None => {
            let Some(name) = &inherited.drive else {
                return Err(fail(
                    "drive",
                    "the volume has no drives; give drive = \"...\", or [[volume.members]]".into(),
                ));
            };
            let model = drives::load_with(name, folder, &inherited.settings)
                .map_err(|error| named_here(error, &fail("drive", String::new())))?;
            vec![VolumeSpec::Drive(model); drives]
        }
        Some(Value::Array(items)) => {
            if keys.contains_key("drives") {
                return Err(fail("drives", "give either drives or members, not both".into()));
            }
            read_members(document, folder, &items, path, &inherited)?
        }
        Some(other) => return Err(fail("members", format!("found {other}; expected [[volume.members]]"))),
    };
    if known.iter().any(|key| key == MEMBER_ZONES) && !own.contains_key(MEMBER_ZONES) {
        own.extend(member_zones(&members).map(|zones| (MEMBER_ZONES.to_owned(), zones)));
    }
    Ok(VolumeSpec::Volume { layout: entry, keys: own, members, path: path.to_owned() })
}

/// The key of layouts that want to know the zones of their members.
const MEMBER_ZONES: &str = "member_zones";

/// The zones of all members, as such layouts read them; `None` if a member is
/// no drive.
fn member_zones(members: &[VolumeSpec]) -> Option<Value> {
    let of_drive = |model: &Model| -> Vec<MemberZone> {
        let zones = model.tracks().zone_rates().into_iter();
        zones.map(|zone| MemberZone { sectors: zone.sectors, bytes_per_s: zone.bytes_per_s }).collect()
    };
    let all = members.iter().map(|member| member.as_drive().map(of_drive));
    all.collect::<Option<Vec<_>>>().map(|all| json!(all))
}

/// Members that are described one by one: each a drive or a volume, `count`
/// times.
fn read_members(
    document: &Document,
    folder: &Path,
    items: &[Value],
    path: &str,
    inherited: &Inherited,
) -> Result<Vec<VolumeSpec>, StackError> {
    let mut members = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let path = format!("{path}.members[{index}]");
        let fail = |key: &str, message: String| document.error(ConfigError::new(key, message).below(&path));
        let Value::Object(keys) = item else {
            return Err(fail("", format!("found {item}; expected a table")));
        };
        let times = count(keys.get("count").cloned(), "count", 1)
            .map_err(|error| document.error(error.below(&path)))?;
        let described = read_volume(document, folder, keys, &path, inherited)?;
        for _ in 0..times {
            match &described {
                // Drives without a layout of their own are members themselves.
                VolumeSpec::Volume { members: drives, .. } if !keys.contains_key("layout") => {
                    members.extend(drives.iter().cloned());
                }
                _ => members.push(described.clone()),
            }
        }
    }
    Ok(members)
}

/// The most drives below one layer that a stack may have.
const MEMBERS_MAX: u64 = 1024;

fn count(value: Option<Value>, key: &str, unless_said: usize) -> Result<usize, ConfigError> {
    match value.as_ref().map(Value::as_u64) {
        None => Ok(unless_said),
        Some(Some(number @ 1..=MEMBERS_MAX)) => Ok(number as usize),
        Some(_) => Err(ConfigError::new(
            key,
            format!("found {}; expected 1 to {MEMBERS_MAX}", value.unwrap_or_default()),
        )),
    }
}

/// An error about a drive's own file stays as it is; one about a name belongs
/// to the place where the name stands.
fn named_here(error: StackError, here: &StackError) -> StackError {
    if error.line.is_some() || error.file.ends_with(".toml") {
        return error;
    }
    StackError { message: format!("`{}`: {}", error.file, error.message), ..here.clone() }
}

impl TraceConfig {
    /// The reader's options, but for the volume's capacity.
    pub(crate) fn options(&self) -> Options {
        Options {
            format: self.format.clone(),
            devices: self.devices.clone(),
            operations: self.operations.clone(),
            from: self.from,
            to: self.to,
            time_scale: self.time_scale,
            beyond: match self.beyond {
                BeyondConfig::Reject => Beyond::Reject,
                BeyondConfig::Wrap => Beyond::Wrap,
                BeyondConfig::Scale => Beyond::Scale,
            },
            skip_bad: self.skip_bad,
            ..Options::default()
        }
    }
}
