//! The load of a stack: one workload, several side by side, or clients.

use crate::StackError;
use crate::document::Document;
use crate::folder::Folder;
use crate::workload::{
    REGISTRY, StartedAs, Workload, WorkloadError, WorkloadKind, kind_of, names, no_workload,
    read_workload,
};
use fullstroke_contract::registry::{Keys, PolicyEntry, keys_of, known_keys, read, schema_of};
use fullstroke_contract::{ConfigError, Source};
use fullstroke_units::{Duration, Sectors, Seed};
use fullstroke_vfs::Started;
use fullstroke_workload::{MemberWorkload, SideBySide};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The tables `[workload]` or `[[workloads]]` of a stack.
pub(crate) enum Workloads {
    /// No workload in the file: a server's clients send the requests.
    Clients,
    /// One workload.
    One(Box<dyn Workload>),
    /// Several workloads, side by side.
    Several(Vec<NamedWorkload>),
}

/// Keys of one of several workloads, beside the keys of its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadKeys {
    /// Name of the workload in results: `workloads.NAME.response_ms.p99`.
    pub name: String,
    /// Start time of the workload.
    #[serde(default)]
    pub start: Duration,
    /// True if the run does not wait for the end of the workload.
    #[serde(default)]
    pub background: bool,
}

/// One of several workloads.
pub(crate) struct NamedWorkload {
    keys: WorkloadKeys,
    workload: Box<dyn Workload>,
}

/// Upper bound of process numbers in a trace: `PID_MAX_LIMIT` of Linux (`include/linux/threads.h`).
const PROCESSES_MAX: u32 = 1 << 22;

/// A table of the document, for errors.
pub(crate) struct TablePlace<'a> {
    pub(crate) document: &'a Document,
    /// Path of the table, such as `hosts[1]`; empty at the top.
    pub(crate) path: &'a str,
}

/// Returns the duration of a stack's workloads, if all of them have the key `duration`. Requests in
/// flight at this time are completed.
pub(crate) fn lasts(document: &Document) -> Option<Duration> {
    fn tables(of: &Map<String, Value>) -> impl Iterator<Item = &Value> {
        let several = of
            .get("workloads")
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        of.get("workload").into_iter().chain(several)
    }
    let values = document.values();
    let hosts = values
        .get("hosts")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let hosts = hosts.iter().filter_map(Value::as_object);
    let time = |table: &Value, key: &str| {
        table
            .get(key)
            .and_then(|value| serde_json::from_value::<Duration>(value.clone()).ok())
    };
    // A background workload has no bound, because it completes its last round, which may take long.
    let lasts = |table: &Value| {
        let bounded = table.get("kind").and_then(Value::as_str) != Some("background");
        let duration = time(table, "duration").filter(|_| bounded)?;
        // A workload's `duration` counts from its start.
        Some(duration + time(table, "start").unwrap_or(Duration::ZERO))
    };
    let each: Option<Vec<Duration>> = tables(values)
        .chain(hosts.flat_map(tables))
        .map(lasts)
        .collect();
    // One workload without a duration leaves the whole run without a bound, so `?` ends the search.
    each?.into_iter().max()
}

impl TablePlace<'_> {
    fn of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }
    /// Returns an error at a key of the table.
    pub(crate) fn error(&self, error: ConfigError) -> StackError {
        self.document.error(error.below(self.path))
    }
}

/// Numbers given so far to workloads and to named processes.
#[derive(Default)]
pub(crate) struct WorkloadNumbers {
    workloads: u16,
    processes: u32,
}

impl WorkloadNumbers {
    /// Returns the number before the first process of a further workload with `named` named
    /// processes. Named processes are numbered consecutively, as in the results. Processes of a
    /// trace get numbers above all named processes.
    fn take(&mut self, named: u32) -> u32 {
        self.workloads += 1;
        if named == 0 {
            return u32::from(self.workloads).saturating_mul(PROCESSES_MAX);
        }
        self.processes += named;
        self.processes - named
    }
}

/// Returns the program of a workload. A job file of fio works with or without files: on a host
/// without files it is not a program.
fn program_of(
    workload: &dyn Workload,
    seed: Seed,
    files: bool,
) -> Result<Option<StartedAs>, ConfigError> {
    if !files && workload.is_job_file() {
        Ok(None)
    } else {
        workload.program(seed)
    }
}

impl Workloads {
    /// Reads the workloads of a table at `place` in the document. Files that the keys name are
    /// relative to `folder`.
    ///
    /// # Errors
    /// Returns errors at the wrong key, also for a key that names a bad file.
    pub(crate) fn read(
        table: &Keys,
        place: &TablePlace<'_>,
        folder: &Folder,
    ) -> Result<Workloads, StackError> {
        let refuse = |message: String| Err(place.error(ConfigError::new("workloads", message)));
        match (table.get("workload"), table.get("workloads")) {
            (Some(_), Some(_)) => refuse("found beside [workload]; give one of the two".into()),
            (None, Some(Value::Array(items))) => read_several(items, place, folder),
            (None, Some(other)) => refuse(format!("found {other}; expected [[workloads]]")),
            (one, None) => {
                let keys = match one {
                    None => Keys::new(),
                    Some(Value::Object(keys)) => keys.clone(),
                    Some(other) => {
                        let message = format!("found {other}; expected a table, [workload]");
                        return Err(place.error(ConfigError::new("workload", message)));
                    }
                };
                read_one(&keys, folder)
                    .map_err(|error| error.at(&place.of("workload"), place.document))
            }
        }
    }

    /// Creates the source of the requests on a volume of `capacity`.
    ///
    /// # Errors
    /// Errors at the workload's key, or in its file.
    pub(crate) fn source(
        &self,
        capacity: Sectors,
        seed: Seed,
        document: &Document,
    ) -> Result<Box<dyn Source>, StackError> {
        let place = TablePlace { document, path: "" };
        match self {
            Workloads::Several(_) => {
                let start = Duration::ZERO;
                Ok(Box::new(self.of_host(
                    capacity,
                    seed,
                    start,
                    &mut WorkloadNumbers::default(),
                    &place,
                )?))
            }
            Workloads::Clients => Err(place.error(no_workload().below("workload"))),
            Workloads::One(one) => one
                .source(capacity, seed)
                .map_err(|error| error.at("workload", document)),
        }
    }

    /// Creates the source for one of several hosts. The workloads start `start` later. Their
    /// numbers follow the numbers of earlier hosts.
    ///
    /// # Errors
    /// Errors at the workload's key, or in its file.
    pub(crate) fn of_host(
        &self,
        capacity: Sectors,
        seed: Seed,
        start: Duration,
        numbers: &mut WorkloadNumbers,
        place: &TablePlace<'_>,
    ) -> Result<SideBySide, StackError> {
        let first = numbers.workloads;
        let parts = match self {
            Workloads::Clients => return Err(place.error(no_workload().below("workload"))),
            Workloads::One(one) => {
                let source = one.source(capacity, seed);
                let source =
                    source.map_err(|error| error.at(&place.of("workload"), place.document))?;
                let first_process = numbers.take(one.process_names().len() as u32);
                vec![MemberWorkload {
                    source,
                    start,
                    background: false,
                    first_process,
                }]
            }
            Workloads::Several(several) => {
                let parts = parts(several, capacity, seed, start, numbers);
                parts.map_err(|(index, error)| {
                    error.at(&place.of(&format!("workloads[{index}]")), place.document)
                })?
            }
        };
        Ok(SideBySide::new(parts).numbered_from(first))
    }

    /// Returns the programs; `None` if the workloads are no programs.
    ///
    /// # Errors
    /// If programs are mixed with other workloads.
    pub(crate) fn programs(
        &self,
        seed: Seed,
        start: Duration,
        files: bool,
        numbers: &mut WorkloadNumbers,
    ) -> Result<Option<Vec<Started>>, ConfigError> {
        let mut started = |name: Option<&WorkloadKeys>, one: StartedAs| Started {
            name: name.map_or(one.kind, |keys| &keys.name).to_owned(),
            file: one.file,
            start: start + name.map_or(Duration::ZERO, |keys| keys.start),
            background: name.is_some_and(|keys| keys.background),
            workload: numbers.workloads,
            first_process: numbers.take(one.program.processes()),
            program: one.program,
        };
        match self {
            Workloads::Clients => Ok(None),
            Workloads::One(one) => {
                Ok(program_of(&**one, seed, files)?.map(|program| vec![started(None, program)]))
            }
            Workloads::Several(several) => {
                let mut all = Vec::new();
                let mut other = None;
                for (index, named) in several.iter().enumerate() {
                    let seed = seed.of(&format!("workload {}", named.keys.name));
                    match program_of(&*named.workload, seed, files)? {
                        Some(program) => all.push(started(Some(&named.keys), program)),
                        // Only the first is kept, because an error names one workload.
                        None => other = other.or(Some(index)),
                    }
                }
                match other {
                    // Requests of programs go through the file system, and requests to the device
                    // would bypass its page cache.
                    Some(index) if !all.is_empty() => {
                        let message = beside_programs(&several[index].keys.name, &all[0].name);
                        Err(ConfigError::new(
                            format!("workloads[{index}].kind"),
                            message,
                        ))
                    }
                    _ => Ok(Some(all).filter(|all| !all.is_empty())),
                }
            }
        }
    }

    /// Returns the workload of a stack with one workload.
    pub(crate) fn one(&self) -> Option<&dyn Workload> {
        match self {
            Workloads::One(one) => Some(&**one),
            _ => None,
        }
    }

    /// Returns all workloads of the file.
    pub(crate) fn all(&self) -> Vec<&dyn Workload> {
        match self {
            Workloads::Clients => Vec::new(),
            Workloads::One(one) => vec![&**one],
            Workloads::Several(several) => several.iter().map(|named| &*named.workload).collect(),
        }
    }

    /// Returns the names of all processes, in order.
    pub(crate) fn process_names(&self) -> Vec<String> {
        match self {
            Workloads::Clients => Vec::new(),
            Workloads::One(one) => one.process_names(),
            Workloads::Several(several) => several
                .iter()
                .flat_map(|named| named.workload.process_names())
                .collect(),
        }
    }

    /// Returns the names of several workloads, by index.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Workloads::Several(several) => several
                .iter()
                .map(|named| named.keys.name.clone())
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Changes the workloads' tables in `values` for the digest of the stack.
    pub(crate) fn identify(&self, values: &mut Map<String, Value>) {
        match self {
            Workloads::Clients => {}
            Workloads::One(one) => values
                .get_mut("workload")
                .into_iter()
                .for_each(|keys| one.identify(keys)),
            Workloads::Several(several) => {
                let items = values
                    .get_mut("workloads")
                    .and_then(Value::as_array_mut)
                    .into_iter()
                    .flatten();
                several
                    .iter()
                    .zip(items)
                    .for_each(|(named, keys)| named.workload.identify(keys));
            }
        }
    }
}

/// Returns the error for a workload on the device beside programs. Each host has one block layer
/// above the device. A workload that bypasses the file system needs a block layer, and therefore a
/// host, of its own.
fn beside_programs(name: &str, program: &str) -> String {
    format!(
        "`{name}` issues requests to the device itself, but programs of this host work on files; move it to a host of its own (without [shared] each host has a part of the device):\n\
         [shared]\naddresses = \"whole\"\n\
         [[hosts]]\nname = \"{program}\"\n# as [host]\n[hosts.workload]\n# the program's\n\
         [[hosts]]\nname = \"{name}\"\n[hosts.workload]\n# its keys\n"
    )
}

fn read_one(keys: &Keys, folder: &Folder) -> Result<Workloads, WorkloadError> {
    if keys.is_empty() {
        return Ok(Workloads::Clients);
    }
    read_workload(kind_of(keys)?, keys, folder).map(Workloads::One)
}

fn read_several(
    items: &[Value],
    place: &TablePlace<'_>,
    folder: &Folder,
) -> Result<Workloads, StackError> {
    let mut several: Vec<NamedWorkload> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let named = read_named(item, &several, folder);
        let at = place.of(&format!("workloads[{index}]"));
        several.push(named.map_err(|error| error.at(&at, place.document))?);
    }
    // A run ends with its last workload outside the background.
    if several.iter().all(|named| named.keys.background) {
        let message = "every workload is in the background, so the run never ends; remove `background = true` from one workload";
        return Err(place.error(ConfigError::new("workloads", message)));
    }
    Ok(Workloads::Several(several))
}

/// Reads one of several workloads; `before` are the workloads in front of it.
fn read_named(
    item: &Value,
    before: &[NamedWorkload],
    folder: &Folder,
) -> Result<NamedWorkload, WorkloadError> {
    let Value::Object(keys) = item else {
        return Err(ConfigError::new("", format!("found {item}; expected a table")).into());
    };
    let mut of_kind = keys.clone();
    let own = known_keys(&schema_of::<WorkloadKeys>());
    let own = own
        .into_iter()
        .filter_map(|key| Some((of_kind.remove(&key)?, key)));
    let own: WorkloadKeys = read(&keys_of(own.map(|(value, key)| (key, value))))?;
    check_name(&own.name)?;
    let kind = kind_of(&of_kind)?;
    // Before the keys are read, because a kind that must run alone is the more useful error.
    check_beside_others(kind)?;
    let workload = read_workload(kind, &of_kind, folder)?;
    if before.iter().any(|other| other.keys.name == own.name) {
        let message = format!(
            "found `{}` twice; each workload needs its own name",
            own.name
        );
        return Err(ConfigError::new("name", message).into());
    }
    Ok(NamedWorkload {
        keys: own,
        workload,
    })
}

/// Checks a name, because it becomes a part of metrics' names and of paths.
pub(crate) fn check_name(name: &str) -> Result<(), ConfigError> {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
    if name.is_empty() || !name.chars().all(plain) {
        return Err(ConfigError::new(
            "name",
            format!("found `{name}`; expected letters, digits, - and _"),
        ));
    }
    Ok(())
}

pub(crate) fn check_beside_others(kind: &PolicyEntry<WorkloadKind>) -> Result<(), ConfigError> {
    if !kind.build.alone {
        return Ok(());
    }
    let message = format!(
        "found `{}`; workloads with separate results run alone ({}); expected one of {}",
        kind.name,
        names(REGISTRY.iter().filter(|kind| kind.build.alone)),
        names(REGISTRY.iter().filter(|kind| !kind.build.alone)),
    );
    Err(ConfigError::new("kind", message))
}

/// Creates the sources of several workloads. Each workload has its own seed, by its name. Therefore
/// a further workload does not change the others. An error contains the index of its workload.
fn parts(
    several: &[NamedWorkload],
    capacity: Sectors,
    seed: Seed,
    start: Duration,
    numbers: &mut WorkloadNumbers,
) -> Result<Vec<MemberWorkload>, (usize, WorkloadError)> {
    let mut part = |(index, NamedWorkload { keys, workload }): (usize, &NamedWorkload)| {
        // The seed follows from the name, so another workload in front changes no request of this
        // one.
        let seed = seed.of(&format!("workload {}", keys.name));
        let source = workload
            .source(capacity, seed)
            .map_err(|error| (index, error))?;
        let first_process = numbers.take(workload.process_names().len() as u32);
        Ok(MemberWorkload {
            source,
            start: start + keys.start,
            background: keys.background,
            first_process,
        })
    };
    several.iter().enumerate().map(&mut part).collect()
}
