//! A client: one thread reads what it asks for, one writes what it is answered.

use crate::serve::Message;
use fullstroke_nbd::{Connection, ErrorCode, Event, Exports, Request};
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// Bytes that are read or written at a time.
const PIECE: usize = 256 << 10;
/// A client that takes no answers for so long is cut off.
const STALLED: Duration = Duration::from_secs(30);

/// A client, as those see it who answer it.
pub(crate) struct Client {
    side: Mutex<Side>,
    changed: Condvar,
    told: Sender<Message>,
}

struct Side {
    connection: Connection,
    /// Nothing more is to be had from it, or it takes nothing more.
    gone: bool,
}

impl Client {
    /// Serves whoever is at the other end of `stream`.
    pub(crate) fn begin(
        stream: UnixStream,
        exports: Arc<Exports>,
        told: Sender<Message>,
    ) -> std::io::Result<()> {
        let side = Mutex::new(Side { connection: Connection::new(exports), gone: false });
        let client = Arc::new(Client { side, changed: Condvar::new(), told });
        stream.set_write_timeout(Some(STALLED))?;
        let (reading, writing) = (stream.try_clone()?, stream);
        let (reader, writer) = (Arc::clone(&client), client);
        thread::Builder::new().name("client".into()).spawn(move || reader.read(reading))?;
        thread::Builder::new().name("answers".into()).spawn(move || writer.write(writing))?;
        Ok(())
    }

    /// Answers one of its requests.
    pub(crate) fn answer(self: &Arc<Client>, request: &Request, outcome: Result<Option<&[u8]>, &str>) {
        self.give(|connection| match outcome {
            Ok(Some(data)) => connection.reply_read(request, |into| {
                into.copy_from_slice(data);
                Ok(())
            }),
            Ok(None) => connection.reply_done(request),
            Err(message) => connection.reply_error(request, ErrorCode::InputOutput, message),
        });
    }

    /// Answers a question for status: which of it is allocated is not known here.
    pub(crate) fn answer_all_data(self: &Arc<Client>, request: &Request) {
        self.give(|connection| connection.reply_status(request, []));
    }

    fn give(self: &Arc<Client>, answer: impl FnOnce(&mut Connection)) {
        let Some(mut side) = self.side() else { return };
        answer(&mut side.connection);
        self.take_events(&mut side);
        self.changed.notify_all();
    }

    fn side(&self) -> Option<MutexGuard<'_, Side>> {
        self.side.lock().ok()
    }

    fn read(self: Arc<Client>, mut stream: UnixStream) {
        let mut buffer = vec![0; PIECE];
        loop {
            let count = stream.read(&mut buffer).unwrap_or(0);
            if !self.take_in(&buffer[..count]) {
                break;
            }
        }
        if let Some(mut side) = self.side() {
            // Who has said goodbye still takes the answers to what it asked for.
            side.gone |= !side.connection.has_ended();
        }
        self.changed.notify_all();
    }

    /// Gives bytes to the connection, waiting while it is paused; says whether it
    /// takes more.
    fn take_in(self: &Arc<Client>, mut bytes: &[u8]) -> bool {
        let Some(mut side) = self.side() else { return false };
        if bytes.is_empty() {
            return false;
        }
        while !bytes.is_empty() {
            while side.connection.is_paused() && !side.gone {
                match self.changed.wait(side) {
                    Ok(again) => side = again,
                    Err(_) => return false,
                }
            }
            if side.gone {
                return false;
            }
            let space = side.connection.space();
            let count = space.len().min(bytes.len());
            if count == 0 {
                return false;
            }
            space[..count].copy_from_slice(&bytes[..count]);
            side.connection.filled(count);
            bytes = &bytes[count..];
            self.take_events(&mut side);
        }
        self.changed.notify_all();
        !side.connection.has_ended()
    }

    /// Passes on what the client asks for.
    fn take_events(self: &Arc<Client>, side: &mut Side) {
        loop {
            match side.connection.next_event() {
                Ok(Some(Event::Request { request, payload })) => {
                    let message = Message::Asked { client: Arc::clone(self), request, payload };
                    side.gone |= self.told.send(message).is_err();
                }
                Ok(Some(Event::Opened { .. } | Event::Disconnect)) => {}
                // Nobody was offered TLS.
                Ok(Some(Event::StartTls)) | Err(_) => side.gone = true,
                Ok(None) => return,
            }
            if side.gone {
                return;
            }
        }
    }

    /// Writes answers until the client has them all and wants no more.
    fn write(self: Arc<Client>, mut stream: UnixStream) {
        while let Some(piece) = self.next_piece() {
            let sent = stream.write_all(&piece);
            let Some(mut side) = self.side() else { break };
            if sent.is_err() {
                side.gone = true;
                break;
            }
            side.connection.consumed(piece.len());
            self.take_events(&mut side);
            drop(side);
            self.changed.notify_all();
        }
        self.changed.notify_all();
        let _ = stream.shutdown(Shutdown::Both);
    }

    /// The next bytes to be sent; nothing when all is over.
    fn next_piece(&self) -> Option<Vec<u8>> {
        let mut side = self.side()?;
        loop {
            let output = side.connection.output();
            if !output.is_empty() {
                return Some(output[..output.len().min(PIECE)].to_vec());
            }
            if side.gone || side.connection.has_ended() && side.connection.in_flight() == 0 {
                return None;
            }
            side = self.changed.wait(side).ok()?;
        }
    }
}
