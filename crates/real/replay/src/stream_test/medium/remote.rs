//! Files as parts of an NBD server's export, with one connection for each stream.

use super::{FileSource, Medium, NbdAddress, StreamReader};
use crate::stream_test::StreamTestError;
use fullstroke_nbd::client::{ClientError, ClientOptions, ExportClient};
use fullstroke_units::{Sectors, Seed};
use fullstroke_workload::{MediaFiles, StreamsConfig};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// A server with the places of its files.
struct Remote {
    address: NbdAddress,
    files: Arc<MediaFiles>,
    read_bytes: usize,
}

pub(super) fn open(
    address: &NbdAddress,
    config: &StreamsConfig,
    seed: Seed,
) -> Result<Medium, StreamTestError> {
    let name = address.to_string();
    let failed = |error: ClientError| StreamTestError::Target {
        target: name.clone(),
        message: error.to_string(),
    };
    let size_bytes = connect(address).map_err(failed)?.properties().size_bytes;
    let files = MediaFiles::new(
        config,
        Sectors(size_bytes / 512),
        &mut seed.stream("media files"),
    )?;
    let (count, reads) = (files.count(), files.reads());
    let read_bytes = config.read_bytes().0 as usize;
    let source = Box::new(Remote {
        address: address.clone(),
        files: Arc::new(files),
        read_bytes,
    });
    Ok(Medium {
        name,
        files: count,
        reads,
        source,
    })
}

impl std::fmt::Display for NbdAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NbdAddress::Unix(path, export) => {
                write!(f, "nbd+unix:///{export}?socket={}", path.display())
            }
            NbdAddress::Tcp(host, export) => write!(f, "nbd://{host}/{export}"),
        }
    }
}

/// A socket of either kind.
trait RemoteSocket: Read + Write + Send {}
impl<S: Read + Write + Send> RemoteSocket for S {}

fn connect(address: &NbdAddress) -> Result<ExportClient<Box<dyn RemoteSocket>>, ClientError> {
    let (stream, export): (Box<dyn RemoteSocket>, &String) = match address {
        NbdAddress::Unix(path, export) => (Box::new(UnixStream::connect(path)?), export),
        NbdAddress::Tcp(host, export) => {
            let stream = TcpStream::connect(host)?;
            stream.set_nodelay(true)?;
            (Box::new(stream), export)
        }
    };
    ExportClient::connect(
        stream,
        &ClientOptions {
            export: export.clone(),
            ..ClientOptions::default()
        },
    )
}

impl FileSource for Remote {
    fn reader(&self) -> io::Result<Box<dyn StreamReader>> {
        let client = connect(&self.address).map_err(io::Error::other)?;
        let memory = vec![0; self.read_bytes];
        Ok(Box::new(RemoteReader {
            client,
            files: Arc::clone(&self.files),
            memory,
        }))
    }
}

struct RemoteReader {
    client: ExportClient<Box<dyn RemoteSocket>>,
    files: Arc<MediaFiles>,
    memory: Vec<u8>,
}

impl StreamReader for RemoteReader {
    fn read(&mut self, file: u32, read: u64) -> io::Result<&[u8]> {
        let offset_bytes = self.files.place(file, read).0 * 512;
        self.client
            .read(offset_bytes, &mut self.memory)
            .map_err(io::Error::other)?;
        Ok(&self.memory)
    }
}
