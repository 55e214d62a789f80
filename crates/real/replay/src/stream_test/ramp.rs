//! One stream after the other, until a byte is late.

use crate::stream_test::StreamTestError;
use crate::stream_test::client::StreamClient;
use crate::stream_test::medium::Medium;
use crate::stream_test::ramp_state::{RampState, time_since};
use crate::stream_test::server::FileServer;
use fullstroke_contract::ConfigError;
use fullstroke_units::{Duration, Seed, Time};
use fullstroke_workload::{
    PlayedStream, Rules, Starts, StreamTally, StreamsConfig, StreamsResults, dealt_out,
};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Scope;
use std::time::Instant;

/// Largest number of streams. Each stream takes two threads.
const STREAMS_MAX: u32 = 1000;
/// Interval of the ramp's checks of its clients.
const LOOK: std::time::Duration = std::time::Duration::from_millis(10);

/// Progress of a ramp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RampProgress {
    /// Time since the beginning.
    pub elapsed: Duration,
    /// Number of started streams.
    pub started: usize,
    /// Number of clients with a missed byte.
    pub with_underruns: usize,
}

/// Result of a ramp.
pub struct RampOutcome {
    /// Results of the clients, in the form of a simulation.
    pub results: StreamsResults,
    /// Duration of the ramp.
    pub elapsed: Duration,
    /// True if the ramp was stopped before its end.
    pub stopped: bool,
    /// Longest delay of a client's wake-up. The host caused this delay, not the medium.
    pub host_late_max: Duration,
}

/// Starts streams by `config`, served from `medium`, until the end or until `stop` is set. `tell`
/// receives the progress about every 10 ms.
///
/// # Errors
/// If the settings are invalid, if sockets or threads cannot be created, or if a read failed.
pub fn run(
    config: &StreamsConfig,
    medium: &Medium,
    seed: Seed,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(RampProgress),
) -> Result<RampOutcome, StreamTestError> {
    check(config)?;
    let rules = Rules::new(config, medium.files, medium.reads);
    let dealt = (1..).zip(dealt_out(medium.files, config.streams, seed));
    let (streams, tallies): (Vec<PlayedStream>, Vec<StreamTally>) = dealt
        .map(|(number, file)| PlayedStream::new(config, number, file, &rules, seed))
        .unzip();
    let shared = RampState {
        tallies: tallies.into_iter().map(Mutex::new).collect(),
        end_ns: AtomicU64::new(Time::NEVER.as_nanos()),
        late_ns_max: AtomicU64::new(0),
        broken: AtomicBool::new(false),
    };
    let host = |what| move |source| StreamTestError::Host { what, source };
    let server = FileServer::open(medium).map_err(host("a socket on the loopback interface"))?;
    let address = server
        .address()
        .map_err(host("a socket on the loopback interface"))?;
    let began = Instant::now();
    let now = || time_since(began);
    let read_bytes = config.read_bytes().0 as usize;
    std::thread::scope(|scope| {
        let mut ramp = Ramp::new(config, seed, streams);
        let over = || {
            stop.load(Ordering::SeqCst)
                || shared.broken.load(Ordering::SeqCst)
                || now() >= shared.end()
        };
        let mut begun = Ok(());
        while begun.is_ok() && !over() {
            if let Some((index, stream)) = ramp.due(now(), &shared) {
                let client = StreamClient {
                    index,
                    stream,
                    rules: &rules,
                    shared: &shared,
                    read_bytes,
                };
                begun = begin(scope, &server, address, client, began);
                continue;
            }
            tell(progress(&shared, now()));
            std::thread::sleep(LOOK);
        }
        // Clients that still play end with their next byte.
        shared.end_at(now().min(shared.end()));
        begun.map_err(host("another stream"))
    })?;
    let failed = server.failed.lock().ok();
    if let Some(failed) = failed.and_then(|mut failed| failed.take()) {
        let crate::stream_test::server::FailedRead { file, read, source } = failed;
        return Err(StreamTestError::Read {
            target: medium.name.clone(),
            file,
            read,
            source,
        });
    }
    Ok(RampOutcome {
        results: StreamsResults::new(shared.seen(), config.until_start_up_latency),
        elapsed: now().since(Time::ZERO),
        // Read after the scope, in which all clients have ended.
        stopped: stop.load(Ordering::SeqCst),
        host_late_max: Duration::from_nanos(shared.late_ns_max.load(Ordering::Relaxed)),
    })
}

/// Connects a client, and lets it play on a thread of its own.
fn begin<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    server: &'scope FileServer<'_>,
    address: SocketAddr,
    client: StreamClient<'scope>,
    began: Instant,
) -> std::io::Result<()> {
    assert!(
        client.index < client.shared.tallies.len(),
        "client {} has no tally",
        client.index
    );
    let socket = StreamClient::connect(address)?;
    server.accept(scope)?;
    let thread = std::thread::Builder::new().name("client".into());
    thread
        .spawn_scoped(scope, move || client.play(socket, began))
        .map(drop)
}

fn check(config: &StreamsConfig) -> Result<(), ConfigError> {
    config.check()?;
    if config.streams > STREAMS_MAX {
        let message = format!(
            "found {}; expected up to {STREAMS_MAX}: each is two threads",
            config.streams
        );
        return Err(ConfigError::new("streams", message));
    }
    if config.recordings > 0 {
        let message = format!(
            "found {}; expected 0: nothing is written on a real device",
            config.recordings
        );
        return Err(ConfigError::new("recordings", message));
    }
    if config.read_ahead != 1 {
        let message = format!(
            "found {}; expected 1: each stream has one read under way",
            config.read_ahead
        );
        return Err(ConfigError::new("read_ahead", message));
    }
    Ok(())
}

fn progress(shared: &RampState, now: Time) -> RampProgress {
    let seen = shared.seen();
    RampProgress {
        elapsed: now.since(Time::ZERO),
        started: seen.iter().filter(|tally| tally.started.is_some()).count(),
        with_underruns: seen.iter().filter(|tally| tally.underruns > 0).count(),
    }
}

/// Streams not yet started, with their start times.
struct Ramp {
    waiting: std::vec::IntoIter<PlayedStream>,
    starts: Starts,
}

impl Ramp {
    fn new(config: &StreamsConfig, seed: Seed, streams: Vec<PlayedStream>) -> Ramp {
        Ramp {
            starts: Starts::new(config, streams.len(), seed),
            waiting: streams.into_iter(),
        }
    }

    /// Returns the stream whose start time has come. Sets the end once no further stream starts.
    fn due(&mut self, now: Time, shared: &RampState) -> Option<(usize, PlayedStream)> {
        if now < self.starts.next() {
            return None;
        }
        let seen = shared.seen();
        seen.iter().for_each(|tally| self.starts.note_read(tally));
        let (started, end) = self.starts.take(now, &seen);
        if let Some(end) = end {
            shared.end_at(end);
        }
        Some((started? as usize, self.waiting.next()?))
    }
}

#[cfg(test)]
mod tests;
