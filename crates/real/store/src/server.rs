//! Serves an array over NBD, and as a block device of ublk.
//!
//! Threads shared by all clients carry out their requests and answer them: 16 threads, as in
//! nbdkit. Another thread fills members and clears marks. One more reports events and runs the
//! command of `on_failure`.

mod carrying;
mod control;
mod counts;
mod disk;
mod jobs;
mod metrics;
mod state;

pub use control::{ControlAnswer, Question, ask};
pub use disk::check_ublk;
pub use fullstroke_transport::socket::Listen;

use crate::array::Array;
use crate::standby::StandbyWatch;
use crate::{ArrayError, ArrayEvent, RequestScratch, SlowMembers};
use carrying::answer_client;
use counts::AnsweredCounts;
use fullstroke_contract::Gear;
use fullstroke_nbd::{Export, Exports, Features, NbdRequest};
use fullstroke_transport::print_error;
use fullstroke_transport::socket::{
    Admission, HttpServer, Listener, NbdClient, NbdServer, OWNER, Questions, Serves,
};
use fullstroke_transport::ublk::UblkDisk;
use fullstroke_units::Time;
use jobs::{Jobs, ServerJob};
use metrics::Metrics;
use state::ServerState;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// Number of concurrent requests.
const WORKERS: usize = 16;
/// Interval between checks for signals and events.
const LOOK: Duration = Duration::from_millis(50);
/// Interval between calls of [`Array::tidy`].
const TIDY: Duration = Duration::from_secs(1);
/// Longest time to wait for requests in progress at the end.
const ENDING: Duration = Duration::from_secs(10);

/// Kinds of events reported to the operator by `on_failure`: members fail or were missing when the
/// array was assembled, the array halts, redundancy does not follow from the data, a spare is used,
/// a member is filled, a member is slow or no longer slow.
pub const TOLD: [&str; 8] = [
    "failed", "degraded", "halted", "mismatch", "spare", "filled", "slow", "usual",
];

/// Options of serving.
#[derive(Clone, Debug)]
pub struct Serve {
    /// Sockets for clients.
    pub listen: Vec<Listen>,
    /// True if the array is also a block device of this host; see [`check_ublk`].
    pub ublk: bool,
    /// Path of the control socket.
    pub control: PathBuf,
    /// Address of the page for Prometheus.
    pub metrics: Option<SocketAddr>,
    /// Admission of clients over TCP, and encryption of connections.
    pub admission: Admission,
    /// Idle time before members are put to standby; see [`check_standby`](crate::check_standby).
    pub standby_after: Option<fullstroke_units::Duration>,
    /// Time limit of requests to an added device; zero for no limit.
    pub member_timeout: Duration,
    /// Watch over slow members; `None` for none.
    pub slow_members: Option<SlowMembers>,
    /// Shell command for events of the kinds in [`TOLD`].
    pub on_failure: Option<String>,
}

/// Addresses of the served array.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Serving {
    /// URIs of NBD.
    pub uris: Vec<String>,
    /// Path of the block device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_device: Option<PathBuf>,
    /// Path of the control socket.
    pub control: PathBuf,
    /// Address of the page for Prometheus.
    pub metrics: Option<String>,
    /// True if transfers are carried out at the same time, by io_uring.
    pub parallel: bool,
    /// Warnings about sockets open to other hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Serves the array until `stop` is set or a client of the control socket asks to stop; then stops
/// the array. Calls `ready` when clients may connect, and `tell` for each event.
///
/// # Errors
/// A socket cannot be opened, or the array could not be stopped properly.
pub fn serve(
    array: Array,
    options: &Serve,
    stop: &AtomicBool,
    ready: &mut dyn FnMut(&Serving),
    tell: &mut dyn FnMut(&ArrayEvent),
) -> Result<(), ArrayError> {
    let exports = exports(&array)?;
    let admission = &options.admission;
    let watch = options.standby_after.map(StandbyWatch::new).transpose()?;
    let server = Arc::new(ServerState {
        array,
        jobs: Jobs::default(),
        counts: AnsweredCounts::default(),
        watch: Mutex::new(watch),
        member_timeout: options.member_timeout,
        slow_members: options.slow_members,
        ends: AtomicBool::new(false),
    });
    let listeners = open_listeners(&options.listen)?;
    let warnings = warnings(options, &listeners);
    let control = &options.control;
    let refused = |error| cannot_listen(&control.display().to_string(), error);
    let orders =
        Questions::open(control, control::ControlServer(Arc::clone(&server))).map_err(refused)?;
    let metrics = options.metrics.map(|at| {
        let pages = Metrics(Arc::clone(&server));
        HttpServer::open(at, "metrics", admission.clone(), pages)
            .map_err(|error| cannot_listen(&at.to_string(), error))
    });
    let metrics = metrics.transpose()?;
    if options.ublk {
        fullstroke_transport::ublk::carry_out_for_others();
    }
    let workers: Vec<JoinHandle<()>> = (0..WORKERS)
        .map(|_| on_thread(&server, ServerState::work))
        .collect();
    let keeper = on_thread(&server, ServerState::keep);
    let serves: Arc<dyn Serves> = Arc::clone(&server) as _;
    let clients =
        NbdServer::open(listeners, exports, serves, admission.clone()).map_err(refused)?;
    let disk = options.ublk.then(|| disk::open(&server)).transpose()?;
    let parallel = RequestScratch::new().is_parallel();
    ready(&Serving {
        uris: clients.uris().to_vec(),
        block_device: disk.as_ref().map(|disk| disk.path().to_owned()),
        control: control.clone(),
        metrics: metrics.as_ref().map(|metrics| metrics.uri("/metrics")),
        parallel,
        warnings,
    });
    server.say_what_is_missing();
    let is_over = || disk.as_ref().is_some_and(UblkDisk::is_over);
    while !stop.load(Ordering::SeqCst) && !server.ends.load(Ordering::SeqCst) && !is_over() {
        server.tell_all(options, tell);
        sleep(LOOK);
    }
    // The file system on the block device may still write. These requests are carried out.
    drop(disk);
    // No request is accepted from here on; those in progress end.
    server.ends.store(true, Ordering::SeqCst);
    clients.end_input();
    server.jobs.close(ENDING);
    drop((clients, metrics));
    for thread in workers.into_iter().chain([keeper]) {
        let _ = thread.join();
    }
    let stopped = server.array.stop();
    server.tell_all(options, tell);
    server.array.wait_for_late_reads(ENDING);
    // The devices must be free before the control socket disappears, because clients take that for
    // the end of the server.
    server.array.release();
    drop(orders);
    stopped
}

/// Returns the warnings about addresses that anyone can reach.
fn warnings(options: &Serve, listeners: &[Listener]) -> Vec<String> {
    let admission = &options.admission;
    let pages = options
        .metrics
        .and_then(|at| admission.warning_of_pages(at));
    listeners
        .iter()
        .filter_map(|at| admission.warning(at, false))
        .chain(pages)
        .collect()
}

fn open_listeners(listen: &[Listen]) -> Result<Vec<Listener>, ArrayError> {
    let mut listeners = Vec::new();
    for listen in listen {
        let opened = Listener::open(listen, OWNER);
        listeners.extend(opened.map_err(|error| cannot_listen(&listen.to_string(), error))?);
    }
    Ok(listeners)
}

fn cannot_listen(at: &str, error: io::Error) -> ArrayError {
    ArrayError::device(at.to_owned(), "listen at", error)
}

fn exports(array: &Array) -> Result<Arc<Exports>, ArrayError> {
    let status = array.status();
    let block = array.block_bytes() as u32;
    let mut features = Features::FLUSH
        | Features::FORCE_UNIT_ACCESS
        | Features::ROTATIONAL
        | Features::WRITE_ZEROES
        | Features::MULTIPLE_CONNECTIONS;
    features.set(Features::TRIM, array.trims());
    features.set(Features::READ_ONLY, array.is_read_only());
    let export = Export {
        description: status.layout,
        features,
        block_bytes_min: block,
        takes_unaligned: true,
        block_bytes_preferred: block.max(4096),
        size_bytes: status.capacity_bytes / u64::from(block) * u64::from(block),
        ..Export::new(status.name, 0)
    };
    let exports =
        Exports::new(vec![export]).map_err(|error| ArrayError::Refused(error.to_string()))?;
    Ok(Arc::new(exports))
}

fn on_thread(server: &Arc<ServerState>, act: fn(&ServerState)) -> JoinHandle<()> {
    let server = Arc::clone(server);
    spawn(move || act(&server))
}

impl Serves for ServerState {
    fn asked(&self, client: &Arc<NbdClient>, request: NbdRequest, payload: Vec<u8>) -> bool {
        self.jobs.add(ServerJob::OfClient {
            client: Arc::clone(client),
            request,
            payload,
        });
        true
    }
}

impl ServerState {
    /// Carries out requests until the queue is closed and empty.
    fn work(&self) {
        let mut worker = RequestScratch::new();
        let mut data = Vec::new();
        while let Some(job) = self.jobs.next() {
            match job {
                ServerJob::OfClient {
                    client,
                    request,
                    payload,
                } => {
                    let asked = (request, payload);
                    answer_client(self, &mut worker, &client, asked, &mut data);
                }
                ServerJob::OfDisk(request) => {
                    disk::carry_out(self, &mut worker, request, &mut data);
                }
            }
            self.jobs.ended();
        }
    }

    /// Shifts gears, fills members, clears marks, puts members to standby, finds slow members, and
    /// mends sectors that were unreadable too late. While there are requests, rebuilds and shifts
    /// take half of the time.
    fn keep(&self) {
        let mut worker = RequestScratch::new();
        let start = Instant::now();
        let mut tidied = Instant::now();
        let mut next_copy = start;
        let mut is_low = false;
        let since_start = || Time::from_nanos(start.elapsed().as_nanos() as u64);
        let settings = self.slow_members;
        let mut peers = settings.map(|settings| self.array.peer_watch(settings, since_start()));
        while !self.ends.load(Ordering::SeqCst) {
            let began = Instant::now();
            let is_shifted = self.array.is_to_be_shifted();
            // The rate of copying of a shift may be limited.
            let is_due = !is_shifted || began >= next_copy;
            let is_tended = is_due && self.array.is_to_be_tended();
            let tended = if is_tended {
                self.array.advance_maintenance(&mut worker)
            } else {
                Ok(false)
            };
            match tended {
                Ok(true) if self.jobs.are_under_way() => sleep(began.elapsed()),
                Ok(true) => {}
                Ok(false) => sleep(LOOK),
                // The error is reported as an event, or shown in the status. The cause may pass.
                Err(_) => sleep(TIDY),
            }
            if let Some(least) = self.array.copy_time().filter(|_| is_shifted && is_due) {
                next_copy = began + least;
            }
            if tidied.elapsed() >= TIDY {
                tidied = Instant::now();
                // The error is reported as an event, and by the next request.
                let _ = self.array.tidy();
                if let Some(peers) = &mut peers {
                    self.array.look_for_slow_members(peers, since_start());
                }
                // As above. The policy goes on with the other members.
                let _ = self.array.tend_late_reads(&mut worker);
            }
            let was_low = std::mem::replace(&mut is_low, self.array.gear() == Some(Gear::Low));
            if let Some(watch) = &mut *self.watch.lock().unwrap_or_else(PoisonError::into_inner) {
                if is_low && !was_low {
                    self.array.stop_standing();
                }
                let _ = self.array.rest(watch, since_start());
            }
        }
    }

    /// Reports the members missing since the assembly.
    fn say_what_is_missing(&self) {
        for (slot, status) in self.array.status().slots.into_iter().enumerate() {
            if status.state == "failed" {
                let why = "the array was assembled without this member";
                self.array.happened("degraded", slot, status.device, why);
            }
        }
    }

    fn tell_all(&self, options: &Serve, tell: &mut dyn FnMut(&ArrayEvent)) {
        for happening in self.array.take_happenings() {
            tell(&happening);
            let serious = TOLD.contains(&happening.kind);
            if let Some(command) = options.on_failure.as_ref().filter(|_| serious) {
                self.run(command, &happening);
            }
        }
    }

    /// Runs a command, and does not wait for its end.
    fn run(&self, command: &str, happening: &ArrayEvent) {
        let status = self.array.status();
        let begun = Command::new("sh")
            .args(["-c", command])
            .env("FULLSTROKE_ARRAY", status.name)
            .env("FULLSTROKE_STATE", status.state)
            .env("FULLSTROKE_EVENT", happening.kind)
            .env("FULLSTROKE_SLOT", happening.slot.to_string())
            .env("FULLSTROKE_DEVICE", &happening.device)
            .env("FULLSTROKE_WHY", &happening.why)
            .spawn();
        match begun {
            Ok(mut child) => {
                spawn(move || child.wait());
            }
            Err(error) => print_error(&format!("cannot run `{command}`: {error}")),
        }
    }
}
