//! What a stack serves: one workload, several side by side, or clients.

use crate::StackError;
use crate::document::Document;
use crate::workload::{
    Kind, REGISTRY, StartedAs, Workload, WorkloadError, kind_of, names, no_workload, read_workload,
};
use fullstroke_contract::registry::{Entry, Keys, known_keys, read, schema_of};
use fullstroke_contract::{ConfigError, Source};
use fullstroke_units::{Duration, Sectors, Seed};
use fullstroke_vfs::Started;
use fullstroke_workload::{Part, SideBySide};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;

/// The tables `[workload]` or `[[workloads]]` of a stack.
pub(crate) enum Workloads {
    /// None in the file: whoever serves the stack has clients.
    Clients,
    /// One.
    One(Box<dyn Workload>),
    /// Several, side by side.
    Several(Vec<NamedWorkload>),
}

/// One of several workloads: keys that each has beside those of its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadKeys {
    /// What it is called in results: `workloads.NAME.response_ms.p99`.
    pub name: String,
    /// When it begins.
    #[serde(default)]
    pub start: Duration,
    /// Whether the run ends without waiting for it.
    #[serde(default)]
    pub background: bool,
}

/// One of several workloads.
pub(crate) struct NamedWorkload {
    keys: WorkloadKeys,
    workload: Box<dyn Workload>,
}

/// A process number of a trace is below this: `PID_MAX_LIMIT` of Linux
/// (`include/linux/threads.h`).
const PROCESSES_MAX: u32 = 1 << 22;

/// A table of the document, for errors.
pub(crate) struct Place<'a> {
    pub(crate) document: &'a Document,
    /// Where it stands, such as `hosts[1]`; empty at the top.
    pub(crate) path: &'a str,
}

/// How long the workloads of a stack go on, if all say how long they do; what is on its way then
/// is brought to its end.
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
    // The rounds of a background workload are brought to their ends, which may take long.
    let lasts = |table: &Value| {
        let bounded = table.get("kind").and_then(Value::as_str) != Some("background");
        let duration = time(table, "duration").filter(|_| bounded)?;
        Some(duration + time(table, "start").unwrap_or(Duration::ZERO))
    };
    let each: Option<Vec<Duration>> = tables(values)
        .chain(hosts.flat_map(tables))
        .map(lasts)
        .collect();
    each?.into_iter().max()
}

impl Place<'_> {
    fn of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }
    /// An error at a key of the table.
    pub(crate) fn error(&self, error: ConfigError) -> StackError {
        self.document.error(error.below(self.path))
    }
}

/// Workloads and named processes that have numbers so far.
#[derive(Default)]
pub(crate) struct Numbers {
    workloads: u16,
    processes: u32,
}

impl Numbers {
    /// The number before the first process of one more workload. Processes with
    /// names are numbered through, as results count them; those of a trace lie
    /// above all of them.
    fn take(&mut self, named: u32) -> u32 {
        self.workloads += 1;
        if named == 0 {
            return u32::from(self.workloads).saturating_mul(PROCESSES_MAX);
        }
        self.processes += named;
        self.processes - named
    }
}

/// The program that a workload is. One that can do without files is none where the
/// host has none.
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
    /// Reads what a table of the document, at `place` in it, says of them; files
    /// that they name lie in `folder`.
    ///
    /// # Errors
    /// At the key of what cannot be, or of a file that says so.
    pub(crate) fn read(
        table: &Keys,
        place: &Place<'_>,
        folder: &Path,
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

    /// What issues the requests on a volume of `capacity`.
    ///
    /// # Errors
    /// At the workload's key, or its file's.
    pub(crate) fn source(
        &self,
        capacity: Sectors,
        seed: Seed,
        document: &Document,
    ) -> Result<Box<dyn Source>, StackError> {
        let place = Place { document, path: "" };
        match self {
            Workloads::Several(_) => {
                let start = Duration::ZERO;
                Ok(Box::new(self.of_host(
                    capacity,
                    seed,
                    start,
                    &mut Numbers::default(),
                    &place,
                )?))
            }
            Workloads::Clients => Err(place.error(no_workload().below("workload"))),
            Workloads::One(one) => one
                .source(capacity, seed)
                .map_err(|error| error.at("workload", document)),
        }
    }

    /// The same for one of several hosts, whose workloads begin `start` later, and
    /// are numbered behind those of hosts before it.
    ///
    /// # Errors
    /// At the workload's key, or its file's.
    pub(crate) fn of_host(
        &self,
        capacity: Sectors,
        seed: Seed,
        start: Duration,
        numbers: &mut Numbers,
        place: &Place<'_>,
    ) -> Result<SideBySide, StackError> {
        let first = numbers.workloads;
        let parts = match self {
            Workloads::Clients => return Err(place.error(no_workload().below("workload"))),
            Workloads::One(one) => {
                let source = one.source(capacity, seed);
                let source =
                    source.map_err(|error| error.at(&place.of("workload"), place.document))?;
                let first_process = numbers.take(one.process_names().len() as u32);
                vec![Part {
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

    /// The programs that they are; `None` if they are none.
    ///
    /// # Errors
    /// Programs beside workloads that are none.
    pub(crate) fn programs(
        &self,
        seed: Seed,
        start: Duration,
        files: bool,
        numbers: &mut Numbers,
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
                        None => other = other.or(Some(index)),
                    }
                }
                match other {
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

    /// The workload, where there is one alone.
    pub(crate) fn one(&self) -> Option<&dyn Workload> {
        match self {
            Workloads::One(one) => Some(&**one),
            _ => None,
        }
    }

    /// All of them that stand in the file itself.
    pub(crate) fn all(&self) -> Vec<&dyn Workload> {
        match self {
            Workloads::Clients => Vec::new(),
            Workloads::One(one) => vec![&**one],
            Workloads::Several(several) => several.iter().map(|named| &*named.workload).collect(),
        }
    }

    /// The names of the processes of all, in order.
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

    /// The names of several, by their index.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Workloads::Several(several) => several
                .iter()
                .map(|named| named.keys.name.clone())
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Changes their tables in `values` for the digest of the stack.
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

/// Above the device there is a block layer for each host: whoever passes the file system by
/// has one of its own.
fn beside_programs(name: &str, program: &str) -> String {
    format!(
        "`{name}` issues requests to the device itself, and stands beside programs, which work on files; give it \
         a host of its own (without [shared] each host has a part of the device):\n\
         [shared]\naddresses = \"whole\"\n\
         [[hosts]]\nname = \"{program}\"\n# as [host]\n[hosts.workload]\n# the program's\n\
         [[hosts]]\nname = \"{name}\"\n[hosts.workload]\n# its keys\n"
    )
}

fn read_one(keys: &Keys, folder: &Path) -> Result<Workloads, WorkloadError> {
    if keys.is_empty() {
        return Ok(Workloads::Clients);
    }
    read_workload(kind_of(keys)?, keys, folder).map(Workloads::One)
}

fn read_several(
    items: &[Value],
    place: &Place<'_>,
    folder: &Path,
) -> Result<Workloads, StackError> {
    let mut several: Vec<NamedWorkload> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let named = read_named(item, &several, folder);
        let at = place.of(&format!("workloads[{index}]"));
        several.push(named.map_err(|error| error.at(&at, place.document))?);
    }
    if several.iter().all(|named| named.keys.background) {
        let message = "every workload is in the background, so that nothing ends the run; \
                       leave out `background = true` in one";
        return Err(place.error(ConfigError::new("workloads", message)));
    }
    Ok(Workloads::Several(several))
}

/// Reads one of several, behind these.
fn read_named(
    item: &Value,
    before: &[NamedWorkload],
    folder: &Path,
) -> Result<NamedWorkload, WorkloadError> {
    let Value::Object(keys) = item else {
        return Err(ConfigError::new("", format!("found {item}; expected a table")).into());
    };
    let mut of_kind = keys.clone();
    let own = known_keys(&schema_of::<WorkloadKeys>());
    let own = own
        .into_iter()
        .filter_map(|key| Some((of_kind.remove(&key)?, key)));
    let own: WorkloadKeys = read(&own.map(|(value, key)| (key, value)).collect())?;
    check_name(&own.name)?;
    let kind = kind_of(&of_kind)?;
    check_beside_others(kind)?;
    let workload = read_workload(kind, &of_kind, folder)?;
    if before.iter().any(|other| other.keys.name == own.name) {
        let message = format!(
            "found `{}` twice; workloads are told apart by name",
            own.name
        );
        return Err(ConfigError::new("name", message).into());
    }
    Ok(NamedWorkload {
        keys: own,
        workload,
    })
}

/// It is a part of metrics' names, and of paths.
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

pub(crate) fn check_beside_others(kind: &Entry<Kind>) -> Result<(), ConfigError> {
    if !kind.build.alone {
        return Ok(());
    }
    let message = format!(
        "found `{}`; workloads that have results of their own run alone ({}); expected one of {}",
        kind.name,
        names(REGISTRY.iter().filter(|kind| kind.build.alone)),
        names(REGISTRY.iter().filter(|kind| !kind.build.alone)),
    );
    Err(ConfigError::new("kind", message))
}

/// The sources of several workloads. Each has a seed of its own by its name, so
/// that one more does not change what the others do. An error names the index
/// of its workload.
fn parts(
    several: &[NamedWorkload],
    capacity: Sectors,
    seed: Seed,
    start: Duration,
    numbers: &mut Numbers,
) -> Result<Vec<Part>, (usize, WorkloadError)> {
    let mut part = |(index, NamedWorkload { keys, workload }): (usize, &NamedWorkload)| {
        let seed = seed.of(&format!("workload {}", keys.name));
        let source = workload
            .source(capacity, seed)
            .map_err(|error| (index, error))?;
        let first_process = numbers.take(workload.process_names().len() as u32);
        Ok(Part {
            source,
            start: start + keys.start,
            background: keys.background,
            first_process,
        })
    };
    several.iter().enumerate().map(&mut part).collect()
}
