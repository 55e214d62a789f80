//! A disk in memory behind a connection, and messages as bytes.

// Needed because each test file uses only a part of this module.
#![allow(dead_code)]

use fullstroke_nbd::{
    Allocation, Connection, ConnectionEvent, Export, Exports, Features, NbdRequest, ProtocolError,
    ReplyPiece, RequestCommand, StatusExtent,
};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::Arc;

pub const SECTOR_BYTES: usize = 512;
pub const DISK_BYTES: u64 = 1 << 20;

/// Returns a disk with every feature of the protocol.
pub fn disk() -> Export {
    let mut export = Export::new("disk", DISK_BYTES);
    export.description = "a disk in memory".into();
    export.features |= Features::FAST_ZERO;
    export
}

/// Returns `disk`, and the read-only `archive`.
pub fn exports() -> Arc<Exports> {
    let mut archive = Export::new("archive", DISK_BYTES / 2);
    archive.features = Features::READ_ONLY;
    Arc::new(Exports::new(vec![disk(), archive]).unwrap())
}

/// A server without a socket.
#[derive(Debug)]
pub struct LocalServer {
    pub connection: Connection,
    pub bytes: Vec<u8>,
    /// Events with their payloads.
    pub events: Vec<ConnectionEvent>,
    pub error: Option<ProtocolError>,
}

impl LocalServer {
    pub fn new() -> LocalServer {
        LocalServer::over(Connection::new(exports()))
    }

    pub fn over(connection: Connection) -> LocalServer {
        LocalServer {
            connection,
            bytes: vec![0; DISK_BYTES as usize],
            events: Vec::new(),
            error: None,
        }
    }

    /// Passes bytes in as they fit, and carries out the requests.
    pub fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = self.connection.space();
            let count = space.len().min(bytes.len());
            if count == 0 {
                return;
            }
            space[..count].copy_from_slice(&bytes[..count]);
            self.connection.filled(count);
            bytes = &bytes[count..];
            self.poll();
        }
    }

    /// Passes bytes in, and returns the output since the last call.
    pub fn talk(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.take(bytes);
        self.sent()
    }

    pub fn sent(&mut self) -> Vec<u8> {
        let sent = self.connection.output().to_vec();
        self.connection.consumed(sent.len());
        sent
    }

    pub fn poll(&mut self) {
        loop {
            match self.connection.next_event() {
                Ok(Some(event)) => {
                    if let ConnectionEvent::Request { request, payload } = &event {
                        self.carry_out(request, payload);
                    }
                    self.events.push(event);
                }
                Ok(None) => return,
                Err(error) => {
                    self.error = Some(error);
                    return;
                }
            }
        }
    }

    fn carry_out(&mut self, request: &NbdRequest, payload: &[u8]) {
        let from = request.offset_bytes as usize;
        let range = from..from + request.length_bytes as usize;
        match request.command {
            RequestCommand::Read => {
                let pieces =
                    self.bytes[range]
                        .chunks(SECTOR_BYTES)
                        .map(|sector| match is_zero(sector) {
                            true => ReplyPiece::Hole {
                                length_bytes: sector.len() as u32,
                            },
                            false => ReplyPiece::Data(sector),
                        });
                return self.connection.reply_read_pieces(request, pieces);
            }
            RequestCommand::BlockStatus => {
                let extents = self.bytes[range]
                    .chunks(SECTOR_BYTES)
                    .map(|sector| StatusExtent {
                        length_bytes: sector.len() as u32,
                        state: if is_zero(sector) {
                            Allocation::all()
                        } else {
                            Allocation::empty()
                        },
                    });
                return self.connection.reply_status(request, extents);
            }
            RequestCommand::Write => self.bytes[range].copy_from_slice(payload),
            RequestCommand::Trim | RequestCommand::WriteZeroes => self.bytes[range].fill(0),
            RequestCommand::Flush | RequestCommand::Cache => {}
        }
        self.connection.reply_done(request);
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}

/// A stream that ends in a server in the same thread.
#[derive(Debug)]
pub struct Loopback {
    pub server: LocalServer,
    sent: VecDeque<u8>,
}

impl Loopback {
    pub fn new(server: LocalServer) -> Loopback {
        Loopback {
            server,
            sent: VecDeque::new(),
        }
    }
}

impl Write for Loopback {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.server.take(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Loopback {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.sent.extend(self.server.sent());
        self.sent.read(buffer)
    }
}

/// Client flags: fixed newstyle, no zeroes.
pub const CLIENT_FLAGS: [u8; 4] = [0, 0, 0, 3];

pub const GREETING: &[u8] = b"NBDMAGICIHAVEOPT\x00\x03";

pub fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// Returns a string with its length in front.
pub fn string(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

/// Returns the data of INFO and GO.
pub fn information(name: &str, kinds: &[u16]) -> Vec<u8> {
    let mut bytes = string(name);
    bytes.extend((kinds.len() as u16).to_be_bytes());
    bytes.extend(kinds.iter().flat_map(|kind| kind.to_be_bytes()));
    bytes
}

/// Returns the data of LIST_META_CONTEXT and SET_META_CONTEXT.
pub fn contexts(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut bytes = string(name);
    bytes.extend((queries.len() as u32).to_be_bytes());
    bytes.extend(queries.iter().flat_map(|query| string(query)));
    bytes
}

/// Returns a reply to an option.
pub fn option_reply(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x00, 0x03, 0xe8, 0x89, 0x04, 0x55, 0x65, 0xa9];
    bytes.extend(option.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

pub fn request(flags: u16, command: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = vec![0x25, 0x60, 0x95, 0x13];
    bytes.extend(flags.to_be_bytes());
    bytes.extend(command.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

pub fn write(cookie: u64, offset: u64, data: &[u8]) -> Vec<u8> {
    let mut bytes = request(0, 1, cookie, offset, data.len() as u32);
    bytes.extend(data);
    bytes
}

pub fn simple(error: u32, cookie: u64) -> Vec<u8> {
    let mut bytes = vec![0x67, 0x44, 0x66, 0x98];
    bytes.extend(error.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes
}

pub fn chunk(flags: u16, kind: u16, cookie: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x66, 0x8e, 0x33, 0xef];
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend((payload.len() as u32).to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Returns a server whose client opened an export.
pub fn opened(name: &str, structured: bool) -> LocalServer {
    let mut server = LocalServer::new();
    let mut bytes = CLIENT_FLAGS.to_vec();
    if structured {
        bytes.extend(option(8, &[]));
        bytes.extend(option(10, &contexts(name, &["base:allocation"])));
    }
    bytes.extend(option(7, &information(name, &[])));
    server.talk(&bytes);
    assert!(
        matches!(server.events[..], [ConnectionEvent::Opened { .. }]),
        "{:?} {:?}",
        server.events,
        server.error
    );
    server.events.clear();
    server
}
