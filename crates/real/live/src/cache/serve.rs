//! The loop: one thread has the cache, and hears of everything by messages.

use crate::Said;
use crate::cache::below::Below;
use crate::cache::cached::{Asked, Cached, Outcome};
use crate::cache::signals::{self, Gone, Word};
use fullstroke_contract::ConfigError;
use fullstroke_memory::{MemoryKeys, PAGE_BYTES};
use fullstroke_nbd::client::ClientError;
use fullstroke_nbd::{
    Command, CommandFlags, Connection, ErrorCode, Export, ExportError, Exports, Features, Request,
};
use fullstroke_transport::socket::{
    Admission, AdmissionOptions, Listen, Listener, NbdClient, NbdServer, OWNER, Serves, TlsError,
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

/// How long the loop sleeps if nothing happens.
const IDLE: Duration = Duration::from_secs(1);

/// Where, and with how much memory.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// The socket of the server below.
    pub server: PathBuf,
    /// Its export; the default one without.
    pub export: Option<String>,
    /// The socket on which it takes questions; it is not listened to without.
    pub control: Option<PathBuf>,
    /// The name by which the server below knows this host: of several with names one is asked
    /// at a time.
    pub name: Option<String>,
    /// Where clients connect.
    pub listen: Vec<Listen>,
    /// Who may come in over TCP, and how connections are encrypted.
    pub admission: AdmissionOptions,
    /// Memory and its policies.
    pub memory: MemoryKeys,
}

/// A cache that is ready for clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ready {
    /// Where they connect.
    pub uri: String,
    /// What who listens to the world should know.
    pub notes: Vec<String>,
    /// Size of the device.
    pub size_bytes: u64,
    /// Where signals are listened for.
    pub control: Option<PathBuf>,
}

/// What a cache has done.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Since it began.
    pub uptime_s: f64,
    /// Requests of clients.
    pub requests: u64,
    /// Of what reads asked for, found in memory.
    pub hit_share: Option<f64>,
    /// Read below, for reads and beside them.
    pub fetched_mb: f64,
    /// Written below.
    pub written_mb: f64,
    /// Of this, because the server below asked for it.
    pub written_pulled_mb: f64,
    /// PULLs that were heard.
    pub pulls: u64,
    /// PUSHes that were heard.
    pub pushes: u64,
    /// Fetched because the server below offered it.
    pub pushed_mb: f64,
    /// Of this, read by clients.
    pub pushed_used_mb: f64,
    /// Signals that were forgotten below before they were heard.
    pub missed_signals: u64,
}

/// Why there is no cache, or none any more.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The keys of memory.
    #[error("memory: {0}")]
    Memory(#[from] ConfigError),
    /// The server below cannot be used, or has gone.
    #[error("{}: {source}; expected the socket of an NBD server that is running, and an export of it", socket.display())]
    Below {
        /// Its socket.
        socket: PathBuf,
        /// What happened.
        source: ClientError,
    },
    /// It went away while something was dirty.
    #[error(
        "the server below has gone ({source}): {dirty_bytes} bytes that were written and not flushed are lost"
    )]
    Gone {
        /// What happened.
        source: ClientError,
        /// What was not written.
        dirty_bytes: u64,
    },
    /// It cannot be kept in pages.
    #[error("{}: found an export of {found} bytes; expected whole sectors of {SECTOR_BYTES}", socket.display())]
    Size {
        /// Its socket.
        socket: PathBuf,
        /// Its size.
        found: u64,
    },
    /// A certificate's or a key's.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The server that is heeded has gone.
    #[error("{}: the server has gone: {why}", control.display())]
    Silent {
        /// The socket on which it took questions.
        control: PathBuf,
        /// What happened instead of an answer.
        why: String,
    },
    /// What clients are offered.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// At the end something could not be written below.
    #[error("something that was written could not be written below: see its errors")]
    Lost,
    /// Anything else that the host refuses.
    #[error("{what}: {source}")]
    Host {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
}

/// What the loop hears.
pub(crate) enum Message {
    Asked {
        client: Arc<NbdClient>,
        request: Request,
        payload: Vec<u8>,
    },
    Ended {
        id: u64,
        result: Result<Vec<u8>, ()>,
    },
    Gone(ClientError),
    /// What was said, and whom to tell what has been written for it.
    Signals {
        signals: Vec<Said>,
        missed: u64,
        wrote: Sender<u64>,
    },
    Stop,
}

/// Serves clients until SIGTERM or SIGINT; then all that is dirty is written below and
/// made durable. `ready` is told when they may come.
///
/// # Errors
/// What cannot be used is told before anything is served. Then only a server below
/// that goes away, or cannot take what is dirty at the end.
pub fn serve(options: &CacheOptions, ready: &mut dyn FnMut(&Ready)) -> Result<Summary, CacheError> {
    let host = |what: &str| {
        let what = what.to_owned();
        move |source| CacheError::Host { what, source }
    };
    let admission = Admission::new(&options.admission)?;
    let (told, messages) = channel();
    let below = Below::open(
        &options.server,
        options.export.as_deref().unwrap_or_default(),
        &told,
    )?;
    let cached = Cached::new(&options.memory, below.size)?;
    let exports = Arc::new(Exports::new(vec![export(&below)])?);
    // Whoever sees the socket may end it.
    let stopped = told.clone();
    stop_at_signals(move || drop(stopped.send(Message::Stop))).map_err(host("signals"))?;
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
            // The cache works without signals; that its server has gone, its requests say.
            let Word::Signals { signals, missed } = word else {
                return Ok(None);
            };
            let (wrote, answer) = channel();
            heard
                .send(Message::Signals {
                    signals,
                    missed,
                    wrote,
                })
                .map_err(|_| Gone)?;
            answer.recv().map(Some).map_err(|_| Gone)
        };
        signals::listen(
            control.clone(),
            options.export.clone(),
            options.name.clone(),
            tell,
        )
        .map_err(host("a thread"))?;
    }
    let server = NbdServer::open(listeners, exports, Arc::new(Told(told)), admission)
        .map_err(host("a thread"))?;
    ready(&Ready {
        uri: server.uris().join(" "),
        notes,
        size_bytes: below.size,
        control: options.control.clone(),
    });
    Loop::new(cached, below, &options.server).run(&messages)
}

/// Clients' requests become messages.
struct Told(Sender<Message>);

impl Serves for Told {
    fn asked(&self, client: &Arc<NbdClient>, request: Request, payload: Vec<u8>) -> bool {
        self.0
            .send(Message::Asked {
                client: Arc::clone(client),
                request,
                payload,
            })
            .is_ok()
    }
}

/// What clients are offered: whatever all of them do is seen by all.
fn export(below: &Below) -> Export {
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

/// Answers a request with its data, with nothing, or with what is wrong.
fn answer(client: &Arc<NbdClient>, request: &Request, outcome: Result<Option<&[u8]>, &str>) {
    client.answer(|connection: &mut Connection| match outcome {
        Ok(Some(data)) => connection.reply_read(request, |into| {
            into.copy_from_slice(data);
            Ok(())
        }),
        Ok(None) => connection.reply_done(request),
        Err(message) => connection.reply_error(request, ErrorCode::InputOutput, message),
    });
}

/// The tag of the flush at the end.
const LAST: u64 = 0;

/// The cache and who waits for it.
struct Loop<'a> {
    cached: Cached,
    below: Below,
    socket: &'a Path,
    began: Instant,
    clients: BTreeMap<u64, (Arc<NbdClient>, Request)>,
    next_tag: u64,
    summary: Summary,
    /// How it ended.
    end: Option<Outcome>,
}

impl Loop<'_> {
    fn new(cached: Cached, below: Below, socket: &Path) -> Loop<'_> {
        Loop {
            cached,
            below,
            socket,
            began: Instant::now(),
            clients: BTreeMap::new(),
            next_tag: LAST + 1,
            summary: Summary::default(),
            end: None,
        }
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    fn run(mut self, messages: &Receiver<Message>) -> Result<Summary, CacheError> {
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
            Some(Outcome::Done) => Ok(self.summed_up()),
            _ => Err(CacheError::Lost),
        }
    }

    fn hear(&mut self, message: Message) -> Result<(), CacheError> {
        let now = self.now();
        match message {
            Message::Asked {
                client,
                request,
                payload,
            } => self.asked(now, client, request, payload),
            Message::Ended { id, result } => self.cached.ended(now, id, result),
            Message::Gone(source) => return Err(self.gone(source)),
            Message::Signals {
                signals,
                missed,
                wrote,
            } => {
                self.summary.missed_signals += missed;
                let pages: u64 = signals.into_iter().map(|said| self.said(now, said)).sum();
                // Whoever listens may have gone.
                let _ = wrote.send(pages * PAGE_BYTES / SECTOR_BYTES);
            }
            Message::Stop => self.cached.ask(now, LAST, Asked::Flush),
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

    fn asked(&mut self, now: Time, client: Arc<NbdClient>, request: Request, payload: Vec<u8>) {
        self.summary.requests += 1;
        let (offset, bytes) = (request.offset_bytes, request.length_bytes);
        let asked = match request.command {
            Command::Read => Asked::Read { offset, bytes },
            Command::Write => {
                let durable = request.flags.contains(CommandFlags::FORCE_UNIT_ACCESS);
                Asked::Write {
                    offset,
                    data: payload,
                    durable,
                }
            }
            Command::Flush => Asked::Flush,
            Command::Cache => {
                self.cached.push(now, offset, bytes.into());
                return answer(&client, &request, Ok(None));
            }
            // Which of it is allocated is not known here.
            Command::BlockStatus => {
                return client.answer(|connection| connection.reply_status(&request, []));
            }
            Command::Trim | Command::WriteZeroes => {
                return answer(&client, &request, Err("it was not offered"));
            }
        };
        let tag = self.next_tag;
        self.next_tag += 1;
        self.clients.insert(tag, (client, request));
        self.cached.ask(now, tag, asked);
    }

    /// Does what was said; answers the pages that are written for a PULL without an address.
    fn said(&mut self, now: Time, said: Said) -> u64 {
        let bytes = |sectors: u64| sectors.saturating_mul(SECTOR_BYTES);
        match said {
            Said::Pull { start, sectors } => {
                self.summary.pulls += 1;
                match start {
                    None => return self.cached.pull_any(now, bytes(sectors)),
                    Some(start) => self.cached.pull(now, bytes(start), bytes(sectors)),
                };
            }
            Said::Push { start, sectors } => {
                self.summary.pushes += 1;
                self.cached.push(now, bytes(start), bytes(sectors));
            }
        }
        0
    }

    /// Passes jobs down and answers up.
    fn go_on(&mut self) {
        for job in self.cached.jobs() {
            // All threads below have ended: one of them has said why.
            let _ = self.below.jobs.send(job);
        }
        for (tag, outcome) in self.cached.answers() {
            if tag == LAST {
                self.end = Some(outcome);
                continue;
            }
            let Some((client, request)) = self.clients.remove(&tag) else {
                continue;
            };
            match &outcome {
                Outcome::Done => answer(&client, &request, Ok(None)),
                Outcome::Data(data) => answer(&client, &request, Ok(Some(data))),
                Outcome::Failed => {
                    answer(&client, &request, Err("the server below could not do it"))
                }
            }
        }
    }

    fn summed_up(self) -> Summary {
        let counted = self.cached.counters();
        let mb = |pages: u64| (pages * PAGE_BYTES) as f64 / 1e6;
        let written = counted.back_background
            + counted.back_periodic
            + counted.back_throttled
            + counted.back_sync
            + counted.back_reclaim
            + counted.back_pull;
        Summary {
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
