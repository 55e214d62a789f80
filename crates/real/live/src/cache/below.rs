//! The server below. Each of a few threads carries out one job at a time, over a connection of its
//! own.

use crate::cache::cached::{Job, Work};
use crate::cache::pages::SECTOR;
use crate::cache::serve::{CacheError, Message};
use fullstroke_nbd::client::{Client, ClientError, Options};
use fullstroke_nbd::{CommandFlags, Features};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// Number of concurrent jobs, if the server permits several connections.
const CONNECTIONS: usize = 16;

/// Properties of the server below, and the sender of jobs.
pub(crate) struct Below {
    pub(crate) size: u64,
    pub(crate) read_only: bool,
    pub(crate) jobs: Sender<Job>,
}

impl Below {
    /// Connects to the server at `socket`. Completed jobs are reported to `told`.
    pub(crate) fn open(
        socket: &Path,
        export: &str,
        told: &Sender<Message>,
    ) -> Result<Below, CacheError> {
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
        Ok(Below {
            size: properties.size_bytes,
            read_only,
            jobs,
        })
    }
}

fn connect(socket: &Path, export: &str) -> Result<Client<UnixStream>, CacheError> {
    let below = |source| CacheError::Below {
        socket: socket.to_owned(),
        source,
    };
    let stream = UnixStream::connect(socket).map_err(|error| below(error.into()))?;
    let options = Options {
        export: export.to_owned(),
        ..Options::default()
    };
    Client::connect(stream, &options).map_err(below)
}

/// Carries out jobs until there are no more.
fn work(mut client: Client<UnixStream>, waiting: &Mutex<Receiver<Job>>, told: &Sender<Message>) {
    loop {
        // The lock is held while a thread waits for a job; the other idle threads wait for the
        // lock. A thread with a job holds no lock.
        let job = waiting.lock().ok().and_then(|waiting| waiting.recv().ok());
        let Some(Job { id, work }) = job else { return };
        let message = match carry_out(&mut client, work) {
            Ok(data) => Message::Ended {
                id,
                result: Ok(data),
            },
            Err(ClientError::Failed { .. }) => Message::Ended {
                id,
                result: Err(()),
            },
            // Data written and not flushed may be lost with the server.
            Err(error) => Message::Gone(error),
        };
        let over = matches!(message, Message::Gone(_));
        // A broken connection ends the thread after the report. The loop then ends the cache.
        if told.send(message).is_err() || over {
            return;
        }
    }
}

fn carry_out(client: &mut Client<UnixStream>, work: Work) -> Result<Vec<u8>, ClientError> {
    match work {
        Work::Read { offset, bytes } => {
            let mut data = vec![0; bytes as usize];
            client.read(offset, &mut data)?;
            Ok(data)
        }
        Work::Write { offset, data } => client
            .write(offset, &data, CommandFlags::empty())
            .map(|()| Vec::new()),
        Work::Flush => client.flush().map(|()| Vec::new()),
    }
}
