//! The loop: one thread owns the cache and receives all events as messages.

use crate::SignalExtent;
use crate::cache::below::ServerBelow;
use crate::cache::cached::{Cached, ClientOutcome, ClientRequest};
use crate::cache::messages::{CacheError, LoopMessage};
use crate::cache::signals::{self, BelowMessage, NoReceivers};
use fullstroke_memory::{MemoryKeys, PAGE_BYTES};
use fullstroke_nbd::client::ClientError;
use fullstroke_nbd::{
    CommandFlags, Connection, ErrorCode, Export, Exports, Features, NbdRequest, RequestCommand,
};
use fullstroke_transport::socket::{
    Admission, AdmissionOptions, Listen, Listener, NbdClient, NbdServer, OWNER, Serves,
};
use fullstroke_units::{SECTOR_BYTES, Time};
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Longest sleep of the loop.
const IDLE: Duration = Duration::from_secs(1);

/// Addresses and memory of a cache.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// Socket of the server below.
    pub server: PathBuf,
    /// Export of the server below; `None` for the default export.
    pub export: Option<String>,
    /// Control socket of the server below; `None` to receive no signals.
    pub control: Option<PathBuf>,
    /// Name of this host for the server below. Of several hosts with names, the server asks one at
    /// a time.
    pub name: Option<String>,
    /// Addresses for clients.
    pub listen: Vec<Listen>,
    /// Admission over TCP, and encryption of connections.
    pub admission: AdmissionOptions,
    /// Settings of the memory.
    pub memory: MemoryKeys,
}

/// Description of a cache ready for clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CacheReady {
    /// Addresses for clients, as URIs.
    pub uri: String,
    /// Warnings for a server reachable from outside.
    pub notes: Vec<String>,
    /// Size of the device in bytes.
    pub size_bytes: u64,
    /// Control socket of the server below.
    pub control: Option<PathBuf>,
}

/// Counters of a cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CacheCounters {
    /// Time since the start, in s.
    pub uptime_s: f64,
    /// Number of requests.
    pub requests: u64,
    /// Share of the read data found in memory.
    pub hit_share: Option<f64>,
    /// Data read below, by reads and ahead of reads, in 10^6 bytes.
    pub fetched_mb: f64,
    /// Data written below, in 10^6 bytes.
    pub written_mb: f64,
    /// Part of the written data requested by the server below, in 10^6 bytes.
    pub written_pulled_mb: f64,
    /// Number of PULLs.
    pub pulls: u64,
    /// Number of PUSHes.
    pub pushes: u64,
    /// Data fetched after an offer of the server below, in 10^6 bytes.
    pub pushed_mb: f64,
    /// Part of the offered data read by clients, in 10^6 bytes.
    pub pushed_used_mb: f64,
    /// Number of signals dropped by the server below before this host asked for them.
    pub missed_signals: u64,
}

/// Serves clients until SIGTERM or SIGINT. Then all dirty pages are written below and made durable.
/// `ready` is called when clients may connect.
///
/// # Errors
/// An unusable option is reported before the service starts. Later errors are a server below that
/// disconnects, or that cannot take the dirty pages at the end.
pub fn serve(
    options: &CacheOptions,
    ready: &mut dyn FnMut(&CacheReady),
) -> Result<CacheCounters, CacheError> {
    let host = |what: &str| {
        let what = what.to_owned();
        move |source| CacheError::Host { what, source }
    };
    let admission = Admission::new(&options.admission)?;
    let (told, messages) = channel();
    let below = ServerBelow::open(
        &options.server,
        options.export.as_deref().unwrap_or_default(),
        &told,
    )?;
    let cached = Cached::new(&options.memory, below.size)?;
    let exports = Arc::new(Exports::new(vec![export(&below)])?);
    // Signals are handled before the socket exists, because a user who sees the socket may end the
    // server.
    let stopped = told.clone();
    stop_at_signals(move || drop(stopped.send(LoopMessage::Stop))).map_err(host("signals"))?;
    let mut listeners = Vec::new();
    for place in &options.listen {
        let opened = Listener::open(place, OWNER);
        listeners.extend(opened.map_err(host(&format!("listen at {place}")))?);
    }
    let notes = listeners
        .iter()
        .filter_map(|at| admission.warning(at, false))
        .collect();
    if let Some(control) = &options.control {
        let heard = told.clone();
        let tell = move |word| {
            // The cache works without signals. Failed requests report a server that has
            // disconnected.
            let BelowMessage::Signals { signals, missed } = word else {
                return Ok(None);
            };
            let (wrote, answer) = channel();
            heard
                .send(LoopMessage::Signals {
                    signals,
                    missed,
                    wrote,
                })
                .map_err(|_| NoReceivers)?;
            answer.recv().map(Some).map_err(|_| NoReceivers)
        };
        signals::listen(
            control.clone(),
            options.export.clone(),
            options.name.clone(),
            tell,
        )
        .map_err(host("a thread"))?;
    }
    let server = NbdServer::open(listeners, exports, Arc::new(MessageSender(told)), admission)
        .map_err(host("a thread"))?;
    ready(&CacheReady {
        uri: server.uris().join(" "),
        notes,
        size_bytes: below.size,
        control: options.control.clone(),
    });
    CacheLoop::new(cached, below, &options.server).run(&messages)
}

/// Converts clients' requests to messages.
struct MessageSender(Sender<LoopMessage>);

impl Serves for MessageSender {
    fn asked(&self, client: &Arc<NbdClient>, request: NbdRequest, payload: Vec<u8>) -> bool {
        self.0
            .send(LoopMessage::Asked {
                client: Arc::clone(client),
                request,
                payload,
            })
            .is_ok()
    }
}

/// Returns the export for clients. All connections see the same data.
fn export(below: &ServerBelow) -> Export {
    let mut export = Export::new("", below.size);
    export.features = Features::FLUSH
        | Features::FORCE_UNIT_ACCESS
        | Features::ROTATIONAL
        | Features::CACHE
        | Features::MULTIPLE_CONNECTIONS;
    export.features.set(Features::READ_ONLY, below.read_only);
    export
}

/// Calls `stop` at SIGTERM or SIGINT.
pub(crate) fn stop_at_signals(stop: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let wait = move || {
        if signals.forever().next().is_some() {
            stop();
        }
    };
    thread::Builder::new()
        .name("stop".into())
        .spawn(wait)
        .map(drop)
}

/// Answers a request with its data, with success, or with an error message.
fn answer(client: &Arc<NbdClient>, request: &NbdRequest, outcome: Result<Option<&[u8]>, &str>) {
    client.answer(|connection: &mut Connection| match outcome {
        Ok(Some(data)) => connection.reply_read(request, |into| {
            into.copy_from_slice(data);
            Ok(())
        }),
        Ok(None) => connection.reply_done(request),
        Err(message) => connection.reply_error(request, ErrorCode::InputOutput, message),
    });
}

/// Tag of the flush at the end.
const LAST: u64 = 0;

/// The cache and the waiting requests.
struct CacheLoop<'a> {
    cached: Cached,
    below: ServerBelow,
    socket: &'a Path,
    began: Instant,
    clients: BTreeMap<u64, (Arc<NbdClient>, NbdRequest)>,
    next_tag: u64,
    summary: CacheCounters,
    /// Outcome of the last flush.
    end: Option<ClientOutcome>,
}

impl CacheLoop<'_> {
    fn new(cached: Cached, below: ServerBelow, socket: &Path) -> CacheLoop<'_> {
        CacheLoop {
            cached,
            below,
            socket,
            began: Instant::now(),
            clients: BTreeMap::new(),
            next_tag: LAST + 1,
            summary: CacheCounters::default(),
            end: None,
        }
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    fn run(mut self, messages: &Receiver<LoopMessage>) -> Result<CacheCounters, CacheError> {
        while self.end.is_none() {
            let now = self.now();
            let due = self.cached.next_wake();
            let patience = match due {
                Time::NEVER => IDLE,
                due => {
                    Duration::from_nanos(due.as_nanos().saturating_sub(now.as_nanos())).min(IDLE)
                }
            };
            match messages.recv_timeout(patience) {
                Ok(message) => self.hear(message)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = self.now();
            if self.cached.next_wake() <= now {
                self.cached.wake(now);
            }
            self.go_on();
        }
        match self.end {
            Some(ClientOutcome::Done) => Ok(self.summed_up()),
            _ => Err(CacheError::Lost),
        }
    }

    fn hear(&mut self, message: LoopMessage) -> Result<(), CacheError> {
        let now = self.now();
        match message {
            LoopMessage::Asked {
                client,
                request,
                payload,
            } => self.asked(now, client, request, payload),
            LoopMessage::Ended { id, result } => self.cached.ended(now, id, result),
            LoopMessage::Gone(source) => return Err(self.gone(source)),
            LoopMessage::Signals {
                signals,
                missed,
                wrote,
            } => {
                self.summary.missed_signals += missed;
                let pages: u64 = signals.into_iter().map(|said| self.said(now, said)).sum();
                // The listener may have ended.
                let _ = wrote.send(pages * PAGE_BYTES / SECTOR_BYTES);
            }
            LoopMessage::Stop => self.cached.ask(now, LAST, ClientRequest::Flush),
        }
        Ok(())
    }

    fn gone(&self, source: ClientError) -> CacheError {
        match self.cached.gauges() {
            gauges if gauges.dirty + gauges.writing > 0 => CacheError::Gone {
                source,
                dirty_bytes: (gauges.dirty + gauges.writing) * PAGE_BYTES,
            },
            _ => CacheError::Below {
                socket: self.socket.to_owned(),
                source,
            },
        }
    }

    fn asked(&mut self, now: Time, client: Arc<NbdClient>, request: NbdRequest, payload: Vec<u8>) {
        self.summary.requests += 1;
        let (offset, bytes) = (request.offset_bytes, request.length_bytes);
        let asked = match request.command {
            RequestCommand::Read => ClientRequest::Read { offset, bytes },
            RequestCommand::Write => {
                let durable = request.flags.contains(CommandFlags::FORCE_UNIT_ACCESS);
                ClientRequest::Write {
                    offset,
                    data: payload,
                    durable,
                }
            }
            RequestCommand::Flush => ClientRequest::Flush,
            RequestCommand::Cache => {
                self.cached.push(now, offset, bytes.into());
                // The announcement of a read needs no answer from below; the data come when they
                // come.
                return answer(&client, &request, Ok(None));
            }
            // The cache does not know the allocation.
            // No extents mean that all holds data, which is never wrong.
            RequestCommand::BlockStatus => {
                return client.answer(|connection| connection.reply_status(&request, []));
            }
            RequestCommand::Trim | RequestCommand::WriteZeroes => {
                return answer(&client, &request, Err("the server below does not offer it"));
            }
        };
        let tag = self.next_tag;
        self.next_tag += 1;
        self.clients.insert(tag, (client, request));
        self.cached.ask(now, tag, asked);
    }

    /// Carries out a signal. Returns the number of pages written for a PULL without an address.
    fn said(&mut self, now: Time, said: SignalExtent) -> u64 {
        let bytes = |sectors: u64| sectors.saturating_mul(SECTOR_BYTES);
        match said {
            SignalExtent::Pull { start, sectors } => {
                self.summary.pulls += 1;
                match start {
                    None => return self.cached.pull_any(now, bytes(sectors)),
                    Some(start) => self.cached.pull(now, bytes(start), bytes(sectors)),
                };
            }
            SignalExtent::Push { start, sectors } => {
                self.summary.pushes += 1;
                self.cached.push(now, bytes(start), bytes(sectors));
            }
        }
        0
    }

    /// Passes jobs down and answers up.
    fn go_on(&mut self) {
        for job in self.cached.jobs() {
            // If all threads below have ended, one of them has reported the reason.
            let _ = self.below.jobs.send(job);
        }
        for (tag, outcome) in self.cached.answers() {
            // The last flush belongs to no client.
            if tag == LAST {
                self.end = Some(outcome);
                continue;
            }
            let Some((client, request)) = self.clients.remove(&tag) else {
                continue;
            };
            match &outcome {
                ClientOutcome::Done => answer(&client, &request, Ok(None)),
                ClientOutcome::Data(data) => answer(&client, &request, Ok(Some(data))),
                ClientOutcome::Failed => {
                    answer(&client, &request, Err("the server below could not do it"))
                }
            }
        }
    }

    fn summed_up(self) -> CacheCounters {
        let counted = self.cached.counters();
        let mb = |pages: u64| (pages * PAGE_BYTES) as f64 / 1e6;
        let written = counted.back_background
            + counted.back_periodic
            + counted.back_throttled
            + counted.back_sync
            + counted.back_reclaim
            + counted.back_pull;
        CacheCounters {
            uptime_s: self.began.elapsed().as_secs_f64(),
            hit_share: (counted.read > 0).then(|| counted.hits as f64 / counted.read as f64),
            fetched_mb: mb(counted.misses + counted.ahead + counted.filled + counted.pushed),
            written_mb: mb(written),
            written_pulled_mb: mb(counted.back_pull),
            pushed_mb: mb(counted.pushed),
            pushed_used_mb: mb(counted.pushed_used),
            ..self.summary
        }
    }
}
