//! From stacks and options to a server, and to its summary.

use crate::clock::WorldPace;
use crate::control::ControlSocket;
use crate::listening::Listening;
use crate::metrics::MetricsServer;
use crate::record::{RecordError, RequestRecorder, StackIdentity};
use crate::served_stack::ServedStack;
use crate::server::{ConfiguredServer, ask_for_punctuality};
use crate::status::ExportStatus;
use fullstroke_engine::Machine;
use fullstroke_nbd::{Export, ExportError, Exports, Features};
use fullstroke_stack::{Stack, StackError};
use fullstroke_store::bytes::{
    JournalScope, OpenReport, Opening, Store, StoreError, StoreLocation,
};
use fullstroke_table::TableError;
use fullstroke_transport::socket::{Admission, AdmissionOptions, Listen, Listener, TlsError};
use fullstroke_units::Bytes;
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of the service.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Addresses for clients.
    pub listen: Vec<Listen>,
    /// Folder for the data; default: in memory. With several stacks, each has a folder of its name
    /// within.
    pub store: Option<PathBuf>,
    /// Pace of the world's time.
    pub pace: WorldPace,
    /// File for the record of the run.
    pub record: Option<PathBuf>,
    /// Address for Prometheus.
    pub metrics: Option<SocketAddr>,
    /// Control socket.
    pub control: Option<PathBuf>,
    /// Permissions of unix sockets for clients.
    pub socket_mode: u32,
    /// Admission over TCP, and encryption of connections.
    pub admission: AdmissionOptions,
    /// True to run the thread of the model's time before all others of this host (niceness -20), if
    /// permitted.
    pub raises_priority: bool,
    /// True to refuse all changes of the data.
    pub read_only: bool,
    /// True to open a store with missing member files, if the layout permits.
    pub allow_degraded: bool,
    /// Changes of a store with parity that go to the journal first.
    pub journal: JournalScope,
}

/// Description of a server ready for clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Serving {
    /// Addresses for clients, as NBD URIs without an export's name.
    pub uris: Vec<String>,
    /// Names of the exports.
    pub exports: Vec<String>,
    /// Control socket.
    pub control: Option<PathBuf>,
    /// Address for Prometheus.
    pub metrics: Option<String>,
    /// Findings while the data were opened, for people.
    pub notes: Vec<String>,
    /// Niceness of the server's thread; `None` if not requested or not permitted.
    pub niceness: Option<i32>,
}

/// Summary of a server at its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerSummary {
    /// Real time since the server began, in s.
    pub uptime_s: f64,
    /// Exports at the end.
    pub exports: Vec<ExportStatus>,
    /// Number of rows of the record.
    pub recorded_requests: Option<u64>,
}

/// Reason why stacks cannot be served, or why a server ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// An error of a stack.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// An error of a store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An error of the record.
    #[error(transparent)]
    Record(#[from] TableError),
    /// An error at the end of the record.
    #[error(transparent)]
    RecordEnd(#[from] RecordError),
    /// Several errors at once.
    #[error("{0}; {1}")]
    Both(Box<ServeError>, Box<ServeError>),
    /// An error of a certificate or key.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// An error of an export.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// An address to listen at, or any other refusal of the host.
    #[error("{what}: {source}")]
    Host {
        /// Name of the failed step.
        what: String,
        /// Error of the host.
        source: io::Error,
    },
    /// The options contradict each other, or the host cannot carry out an option.
    #[error("{0}")]
    Options(String),
}

impl ServeError {
    /// Adds an error behind an earlier one.
    fn also(first: Option<ServeError>, next: ServeError) -> Option<ServeError> {
        Some(match first {
            None => next,
            Some(first) => ServeError::Both(Box::new(first), Box::new(next)),
        })
    }

    fn host(what: impl Into<String>) -> impl FnOnce(io::Error) -> ServeError {
        let what = what.into();
        move |source| ServeError::Host { what, source }
    }
}

/// Serves `stacks` until SIGTERM or SIGINT. Then no request is begun, requests in flight are
/// finished and answered, the data are made durable, and the record is moved to its place. `ready`
/// is called when clients may connect.
///
/// # Errors
/// A file or address that cannot be opened is reported before the service starts. A running server
/// ends with an error only if the host takes away a resource.
pub fn serve(
    stacks: &[Stack],
    options: &ServeOptions,
    ready: &mut dyn FnMut(&Serving),
) -> Result<ServerSummary, ServeError> {
    check(stacks, options)?;
    let (signals, write_end) = UnixStream::pair().map_err(ServeError::host("signals"))?;
    for signal in [SIGTERM, SIGINT] {
        let write_end = write_end.try_clone().map_err(ServeError::host("signals"))?;
        signal_hook::low_level::pipe::register(signal, write_end)
            .map_err(ServeError::host("signals"))?;
    }
    let admission = Admission::new(&options.admission)?;
    let mut notes = Vec::new();
    let worlds = stacks
        .iter()
        .map(|stack| world(stack, stacks.len(), options, &mut notes))
        .collect::<Result<Vec<_>, _>>()?;
    let exports = stacks
        .iter()
        .zip(&worlds)
        .map(|(stack, world)| export(stack, world, options))
        .collect();
    let exports = Arc::new(Exports::new(exports)?);
    let listeners = listeners(options)?;
    let warnings = listeners
        .iter()
        .filter_map(|at| admission.warning(at, options.read_only));
    notes.extend(warnings);
    notes.extend(
        options
            .metrics
            .and_then(|at| admission.warning_of_pages(at)),
    );
    let uris = listeners.iter().map(|at| admission.uri(at)).collect();
    let listening = Listening::new(listeners, admission.clone());
    let mut server = ConfiguredServer::new(worlds, exports, listening, signals, options.pace)
        .map_err(ServeError::host("event loop"))?;
    let handle = server.control.handle();
    let control = options.control.as_deref().map(|path| {
        ControlSocket::open(path, handle.clone()).map_err(ServeError::host(format!(
            "control socket {}",
            path.display()
        )))
    });
    let control = control.transpose()?;
    let metrics = options.metrics.map(|at| {
        MetricsServer::open(at, handle.clone(), admission)
            .map_err(ServeError::host(format!("metrics at {at}")))
    });
    let metrics = metrics.transpose()?;
    let niceness = ask_for_punctuality(options.pace, options.raises_priority);
    ready(&Serving {
        uris,
        exports: server
            .worlds
            .iter()
            .map(|world| world.name.clone())
            .collect(),
        control: options.control.clone(),
        metrics: metrics.as_ref().map(MetricsServer::uri),
        notes,
        niceness,
    });
    let ran = server.run();
    // Ended before the sockets are dropped: a drop joins threads, which could wait up to 30 s for
    // an answer.
    server.control.close();
    server
        .worlds
        .iter_mut()
        .for_each(|world| world.signals.end());
    drop((control, metrics));
    let finished = finish(server);
    ran.map_err(ServeError::host("event loop"))?;
    finished
}

/// Makes all data durable and moves the record to its place. Each step is tried even if others
/// fail.
fn finish(server: ConfiguredServer) -> Result<ServerSummary, ServeError> {
    let exports = server.status().exports;
    let uptime_s = server.upkeep.elapsed().as_secs_f64();
    let mut recorded_requests = None;
    let mut failed = None;
    for mut world in server.worlds {
        let closed = world.store.close().map_err(ServeError::from);
        let recorded = world
            .watch
            .recorder
            .take()
            .map(RequestRecorder::finish)
            .transpose();
        match recorded {
            Ok(rows) => recorded_requests = recorded_requests.or(rows),
            Err(error) => failed = ServeError::also(failed, error.into()),
        }
        if let Err(error) = closed {
            failed = ServeError::also(failed, error);
        }
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(ServerSummary {
            uptime_s,
            exports,
            recorded_requests,
        }),
    }
}

fn check(stacks: &[Stack], options: &ServeOptions) -> Result<(), ServeError> {
    if stacks.is_empty() || options.listen.is_empty() {
        return Err(ServeError::Options(
            "no export, or no address to listen on".into(),
        ));
    }
    if options.record.is_some() && stacks.len() > 1 {
        return Err(ServeError::Options(
            "--record needs exactly one stack; serve one stack, or remove --record".into(),
        ));
    }
    match options.pace {
        WorldPace::Times(speed) if !(speed.is_finite() && speed > 0.0) => Err(ServeError::Options(
            format!("--speed: found {speed}; expected a number above 0"),
        )),
        _ => Ok(()),
    }
}

fn listeners(options: &ServeOptions) -> Result<Vec<Listener>, ServeError> {
    let mut listeners = Vec::new();
    for place in &options.listen {
        let what = match place {
            Listen::Unix(path) => {
                check_folder(path)?;
                format!("socket {}", path.display())
            }
            Listen::Tcp(address) => format!("address {address}"),
            Listen::Inherited => "inherited sockets".to_owned(),
        };
        listeners
            .extend(Listener::open(place, options.socket_mode).map_err(ServeError::host(what))?);
    }
    Ok(listeners)
}

/// Refuses a socket in a folder that does not exist.
fn check_folder(socket: &Path) -> Result<(), ServeError> {
    // A name alone has an empty parent: the working directory.
    let folder = socket
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|folder| !folder.is_dir()) {
        None => Ok(()),
        Some(folder) => Err(ServeError::Options(format!(
            "socket {}: found no folder `{}`; expected one that exists",
            socket.display(),
            folder.display()
        ))),
    }
}

/// Opens the layers and data of one stack.
fn world(
    stack: &Stack,
    stacks: usize,
    options: &ServeOptions,
    notes: &mut Vec<String>,
) -> Result<ServedStack, ServeError> {
    let service = stack.serve()?;
    let location = match &options.store {
        None => StoreLocation::Memory,
        Some(folder) if stacks == 1 => StoreLocation::Folder(folder.clone()),
        Some(folder) => StoreLocation::Folder(folder.join(stack.name())),
    };
    let opening = |read_only| Opening {
        allow_degraded: options.allow_degraded,
        compare_behind: true,
        journal: options.journal,
        read_only,
        ..Opening::default()
    };
    let digest = stack.volume_digest();
    let opened = Store::open(
        service.shape,
        &location,
        &digest,
        opening(options.read_only),
    );
    let (store, report) = match opened {
        Err(full) if full.is_out_of_space() && !options.read_only => {
            let shape = stack.serve()?.shape;
            // Where nothing can be read either, the want of room is the reason.
            let Ok(opened) = Store::open(shape, &location, &digest, opening(true)) else {
                return Err(full.into());
            };
            notes.push(format!(
                "{}: served read-only, since the file system of the store has no room ({full}); make room, and start the \
                 server again",
                stack.name()
            ));
            opened
        }
        opened => opened?,
    };
    notes.extend(describe(&report).map(|note| format!("{}: {note}", stack.name())));
    if store.is_read_only() && !report.clean {
        let note = "served read-only: the repairs after a kill stay in memory and do not change the folder";
        notes.push(format!("{}: {note}", stack.name()));
    }
    let machine = Machine::new(service.graph);
    let names: Vec<String> = machine.graph().drive_names().map(str::to_owned).collect();
    let recorder = options
        .record
        .as_deref()
        .map(|path| recorder(stack, path, &names))
        .transpose()?;
    let mut world = ServedStack::new(
        stack.name().to_owned(),
        service.summary.layout,
        machine,
        store,
        recorder,
    );
    world.resume();
    Ok(world)
}

fn recorder(stack: &Stack, path: &Path, names: &[String]) -> Result<RequestRecorder, TableError> {
    let identity = StackIdentity {
        name: stack.name().to_owned(),
        digest: stack.digest().to_owned(),
        seed: stack.seed().0,
    };
    RequestRecorder::create(path, names, &identity)
}

fn export(stack: &Stack, world: &ServedStack, options: &ServeOptions) -> Export {
    let mut export = Export::new(stack.name(), world.store.capacity().bytes().0);
    export.description = format!("{} ({})", stack.title(), world.layout);
    export.features |= Features::FAST_ZERO;
    export.takes_unaligned = true;
    let read_only = options.read_only || world.store.is_read_only();
    export.features.set(Features::READ_ONLY, read_only);
    export
}

/// Returns the findings while the data were opened.
fn describe(report: &OpenReport) -> impl Iterator<Item = String> {
    let mended = (!report.clean).then(|| {
        format!(
            "the last server was killed, or ended before it had compared all regions: {} changes were repeated from the journal, {} regions ({} MiB) are compared in the background",
            report.replayed_changes,
            report.regions,
            report.region_bytes >> 20,
        )
    });
    let missing = (!report.newly_failed.is_empty()).then(|| {
        format!(
            "opened degraded without members {}",
            report.newly_failed.join(", ")
        )
    });
    let risk = (report.regions_at_risk > 0).then(|| {
        format!(
            "{} regions were being written when members went missing: the data of these members may be wrong there",
            report.regions_at_risk
        )
    });
    let home = (report.copied_home > Bytes(0)).then(|| {
        let home = report.copied_home.0 >> 20;
        format!("the array was left in the low gear: {home} MiB of the soft state were copied back")
    });
    [mended, missing, risk, home].into_iter().flatten()
}
