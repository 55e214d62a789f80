//! From stacks and options to a server, and what it leaves behind.

use crate::clock::Pace;
use crate::control::ControlSocket;
use crate::metrics::MetricsServer;
use crate::record::{Identity, RecordError, Recorder};
use crate::server::{Server, ask_for_punctuality};
use crate::status::ExportStatus;
use crate::world::World;
use fullstroke_engine::Machine;
use fullstroke_nbd::{Export, ExportError, Exports, Features};
use fullstroke_stack::{Stack, StackError};
use fullstroke_store::bytes::{Location, OpenReport, Opening, Store, StoreError};
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

/// How stacks are served.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Where clients connect.
    pub listen: Vec<Listen>,
    /// The folder in which the bytes are kept; in memory unless given. With
    /// several stacks, each has a folder of its name within.
    pub store: Option<PathBuf>,
    /// How the world's time passes.
    pub pace: Pace,
    /// Where the run is recorded.
    pub record: Option<PathBuf>,
    /// Where Prometheus finds its numbers.
    pub metrics: Option<SocketAddr>,
    /// Where questions and orders are taken.
    pub control: Option<PathBuf>,
    /// The permissions of unix sockets on which clients connect.
    pub socket_mode: u32,
    /// Who may come in over TCP, and how connections are encrypted.
    pub admission: AdmissionOptions,
    /// Let the thread that keeps the model's time run before all others of this host
    /// (niceness -20), where that is permitted.
    pub raises_priority: bool,
    /// Refuse whatever would change the bytes.
    pub read_only: bool,
    /// Open a store of which member files are missing, if the layout survives
    /// it.
    pub allow_degraded: bool,
}

/// A server that is ready for clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Serving {
    /// Where clients connect, as NBD URIs without an export's name.
    pub uris: Vec<String>,
    /// The exports' names.
    pub exports: Vec<String>,
    /// Where questions and orders are taken.
    pub control: Option<PathBuf>,
    /// Where Prometheus finds its numbers.
    pub metrics: Option<String>,
    /// What opening the bytes brought to light, for people.
    pub notes: Vec<String>,
    /// The niceness that the server has given to its thread; nothing if it was not
    /// asked to, or may not.
    pub niceness: Option<i32>,
}

/// What a server leaves behind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Since the server began, outside of the world.
    pub uptime_s: f64,
    /// The exports at the end.
    pub exports: Vec<ExportStatus>,
    /// Rows of the record.
    pub recorded_requests: Option<u64>,
}

/// Why stacks cannot be served, or a server ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A stack's.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// A store's.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The record's.
    #[error(transparent)]
    Record(#[from] TableError),
    /// The record's, at the end.
    #[error(transparent)]
    RecordEnd(#[from] RecordError),
    /// Several at once.
    #[error("{0}; {1}")]
    Both(Box<ServeError>, Box<ServeError>),
    /// A certificate's or a key's.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// An export's.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// A place to listen on, or anything else that the host refuses.
    #[error("{what}: {source}")]
    Host {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// Options that exclude each other.
    #[error("{0}")]
    Options(String),
}

impl ServeError {
    /// An error that comes behind others.
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

/// Serves `stacks` until SIGTERM or SIGINT: then no request is begun any more,
/// those under way are finished and answered, the bytes are made durable, and
/// the record is put in its place. `ready` is told when clients may come.
///
/// # Errors
/// What cannot be opened is told before anything is served. A server that is
/// running ends with an error only if the host takes away what it stands on.
pub fn serve(
    stacks: &[Stack],
    options: &ServeOptions,
    ready: &mut dyn FnMut(&Serving),
) -> Result<Summary, ServeError> {
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
    let mut server = Server::new(worlds, exports, listeners, signals, options.pace)
        .map_err(ServeError::host("event loop"))?;
    server.admission = admission.clone();
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

/// Makes all bytes durable and puts the record in its place. Each is tried
/// whatever becomes of the others.
fn finish(server: Server) -> Result<Summary, ServeError> {
    let exports = server.status().exports;
    let uptime_s = server.began.elapsed().as_secs_f64();
    let mut recorded_requests = None;
    let mut failed = None;
    for mut world in server.worlds {
        let closed = world.store.close().map_err(ServeError::from);
        let recorded = world
            .watch
            .recorder
            .take()
            .map(Recorder::finish)
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
        None => Ok(Summary {
            uptime_s,
            exports,
            recorded_requests,
        }),
    }
}

fn check(stacks: &[Stack], options: &ServeOptions) -> Result<(), ServeError> {
    if stacks.is_empty() || options.listen.is_empty() {
        return Err(ServeError::Options("nothing to serve, or nowhere".into()));
    }
    if options.record.is_some() && stacks.len() > 1 {
        return Err(ServeError::Options(
            "a record is of one stack; serve one, or leave --record out".into(),
        ));
    }
    match options.pace {
        Pace::Times(speed) if !(speed.is_finite() && speed > 0.0) => Err(ServeError::Options(
            format!("--speed: found {speed}; expected a number above 0"),
        )),
        _ => Ok(()),
    }
}

fn listeners(options: &ServeOptions) -> Result<Vec<Listener>, ServeError> {
    let mut listeners = Vec::new();
    for place in &options.listen {
        let what = match place {
            Listen::Unix(path) => format!("socket {}", path.display()),
            Listen::Tcp(address) => format!("address {address}"),
            Listen::Inherited => "inherited sockets".to_owned(),
        };
        listeners
            .extend(Listener::open(place, options.socket_mode).map_err(ServeError::host(what))?);
    }
    Ok(listeners)
}

/// The layers and bytes of one stack.
fn world(
    stack: &Stack,
    stacks: usize,
    options: &ServeOptions,
    notes: &mut Vec<String>,
) -> Result<World, ServeError> {
    let service = stack.serve()?;
    let location = match &options.store {
        None => Location::Memory,
        Some(folder) if stacks == 1 => Location::Folder(folder.clone()),
        Some(folder) => Location::Folder(folder.join(stack.name())),
    };
    let opening = |read_only| Opening {
        allow_degraded: options.allow_degraded,
        compare_behind: true,
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
        let note =
            "served read-only: what a kill has left is mended in memory, and not in the folder";
        notes.push(format!("{}: {note}", stack.name()));
    }
    let machine = Machine::new(service.graph);
    let names: Vec<String> = machine.graph().drive_names().map(str::to_owned).collect();
    let recorder = options
        .record
        .as_deref()
        .map(|path| recorder(stack, path, &names))
        .transpose()?;
    let mut world = World::new(
        stack.name().to_owned(),
        service.summary.layout,
        machine,
        store,
        recorder,
    );
    world.resume();
    Ok(world)
}

fn recorder(stack: &Stack, path: &Path, names: &[String]) -> Result<Recorder, TableError> {
    let identity = Identity {
        name: stack.name().to_owned(),
        digest: stack.digest().to_owned(),
        seed: stack.seed().0,
    };
    Recorder::create(path, names, &identity)
}

fn export(stack: &Stack, world: &World, options: &ServeOptions) -> Export {
    let mut export = Export::new(stack.name(), world.store.capacity().bytes().0);
    export.description = format!("{} ({})", stack.title(), world.layout);
    export.features |= Features::FAST_ZERO;
    export.takes_unaligned = true;
    let read_only = options.read_only || world.store.is_read_only();
    export.features.set(Features::READ_ONLY, read_only);
    export
}

/// What opening the bytes brought to light.
fn describe(report: &OpenReport) -> impl Iterator<Item = String> {
    let mended = (!report.clean).then(|| {
        format!(
            "the last server was killed, or ended before it had compared all: {} changes were made again from the \
             journal, {} regions ({} MiB) are compared meanwhile",
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
            "{} regions were being written when members went missing: what these held there may be wrong",
            report.regions_at_risk
        )
    });
    let home = (report.copied_home > Bytes(0)).then(|| {
        let home = report.copied_home.0 >> 20;
        format!("it was left in the low gear: {home} MiB of what stood in the soft state were copied home")
    });
    [mended, missing, risk, home].into_iter().flatten()
}
