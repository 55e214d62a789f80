//! The server below. Each of a few threads carries out one job at a time, over a connection of its
//! own.

use crate::cache::cached::{NumberedWork, ServerWork};
use crate::cache::messages::{CacheError, LoopMessage};
use crate::cache::pages::SECTOR;
use fullstroke_nbd::client::{ClientError, ClientOptions, ExportClient};
use fullstroke_nbd::{CommandFlags, Features};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// Number of concurrent jobs, if the server permits several connections.
const CONNECTIONS: usize = 16;

/// Properties of the server below, and the sender of jobs.
pub(crate) struct ServerBelow {
    pub(crate) size: u64,
    pub(crate) read_only: bool,
    pub(crate) jobs: Sender<NumberedWork>,
}

impl ServerBelow {
    /// Connects to the server at `socket`. Completed jobs are reported to `told`.
    pub(crate) fn open(
        socket: &Path,
        export: &str,
        told: &Sender<LoopMessage>,
    ) -> Result<ServerBelow, CacheError> {
        let first = connect(socket, export)?;
        let properties = *first.properties();
        // The cache works in sectors; a rest at the end could be neither read nor written.
        if !properties.size_bytes.is_multiple_of(SECTOR) {
            return Err(CacheError::Size {
                socket: socket.to_owned(),
                found: properties.size_bytes,
            });
        }
        // Without this flag, a flush on one connection may leave the writes of others volatile (NBD
        // protocol, NBD_FLAG_CAN_MULTI_CONN).
        let several = properties.features.contains(Features::MULTIPLE_CONNECTIONS);
        let mut clients = vec![first];
        for _ in 1..if several { CONNECTIONS } else { 1 } {
            clients.push(connect(socket, export)?);
        }
        let (jobs, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for client in clients {
            let (waiting, told) = (Arc::clone(&waiting), told.clone());
            thread::Builder::new()
                .name("below".into())
                .spawn(move || work(client, &waiting, &told))
                .map_err(|source| CacheError::Host {
                    what: "a thread".into(),
                    source,
                })?;
        }
        let read_only = properties.features.contains(Features::READ_ONLY);
        Ok(ServerBelow {
            size: properties.size_bytes,
            read_only,
            jobs,
        })
    }
}

fn connect(socket: &Path, export: &str) -> Result<ExportClient<UnixStream>, CacheError> {
    let below = |source| CacheError::Below {
        socket: socket.to_owned(),
        source,
    };
    let stream = UnixStream::connect(socket).map_err(|error| below(error.into()))?;
    let options = ClientOptions {
        export: export.to_owned(),
        ..ClientOptions::default()
    };
    ExportClient::connect(stream, &options).map_err(below)
}

/// Carries out jobs until there are no more.
fn work(
    mut client: ExportClient<UnixStream>,
    waiting: &Mutex<Receiver<NumberedWork>>,
    told: &Sender<LoopMessage>,
) {
    loop {
        // The lock is held while a thread waits for a job; the other idle threads wait for the
        // lock. A thread with a job holds no lock.
        let job = waiting.lock().ok().and_then(|waiting| waiting.recv().ok());
        let Some(NumberedWork { id, work }) = job else {
            return;
        };
        let message = match carry_out(&mut client, work) {
            Ok(data) => LoopMessage::Ended {
                id,
                result: Ok(data),
            },
            Err(ClientError::Failed { .. }) => LoopMessage::Ended {
                id,
                result: Err(()),
            },
            // Data written and not flushed may be lost with the server.
            Err(error) => LoopMessage::Gone(error),
        };
        let over = matches!(message, LoopMessage::Gone(_));
        // A broken connection ends the thread after the report. The loop then ends the cache.
        if told.send(message).is_err() || over {
            return;
        }
    }
}

fn carry_out(
    client: &mut ExportClient<UnixStream>,
    work: ServerWork,
) -> Result<Vec<u8>, ClientError> {
    match work {
        ServerWork::Read { offset, bytes } => {
            let mut data = vec![0; bytes as usize];
            client.read(offset, &mut data)?;
            Ok(data)
        }
        ServerWork::Write { offset, data } => client
            .write(offset, &data, CommandFlags::empty())
            .map(|()| Vec::new()),
        ServerWork::Flush => client.flush().map(|()| Vec::new()),
    }
}
