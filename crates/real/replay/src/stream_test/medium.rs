//! The place of a media server's files.

mod device;
mod folder;
mod remote;

use crate::stream_test::StreamTestError;
use fullstroke_units::Seed;
use fullstroke_workload::StreamsConfig;
use std::io;
use std::path::{Path, PathBuf};

/// Readable files of equal size.
pub struct Medium {
    /// Name as given by the user.
    pub(crate) name: String,
    /// Number of files.
    pub(crate) files: u32,
    /// Number of reads in each file.
    pub(crate) reads: u64,
    /// Reader of the files.
    pub(crate) source: Box<dyn FileSource>,
}

/// The place of files.
pub(crate) trait FileSource: Sync {
    /// Creates a reader for one stream.
    fn reader(&self) -> io::Result<Box<dyn StreamReader>>;
}

/// Reads files for one stream.
pub(crate) trait StreamReader: Send {
    /// Returns the bytes of read number `read` of file number `file`, both from 0. The bytes are
    /// valid until the next call.
    fn read(&mut self, file: u32, read: u64) -> io::Result<&[u8]>;
}

/// Place from which streams are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A block device, or a file in place of one. Only read.
    Device(PathBuf),
    /// A folder. Files are made there and removed afterwards.
    Folder(PathBuf),
    /// An NBD server. Only read.
    Nbd(NbdAddress),
}

/// Address of an NBD server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NbdAddress {
    /// Unix socket and export.
    Unix(PathBuf, String),
    /// Host with port, and export.
    Tcp(String, String),
}

impl Target {
    /// Parses `text`: `nbd://HOST[:PORT][/EXPORT]`, `nbd+unix:///[EXPORT]?socket=PATH`, a unix
    /// socket, a folder, or a device or file.
    ///
    /// # Errors
    /// If nothing exists under this name, or if it has another kind.
    pub fn named(text: &str) -> Result<Target, StreamTestError> {
        let refuse = |message: String| {
            Err(StreamTestError::Target {
                target: text.to_owned(),
                message,
            })
        };
        if let Some(rest) = text.strip_prefix("nbd+unix://") {
            let Some((export, socket)) = rest.split_once("?socket=") else {
                return refuse("expected nbd+unix:///EXPORT?socket=PATH".to_owned());
            };
            let export = export.trim_start_matches('/').to_owned();
            return Ok(Target::Nbd(NbdAddress::Unix(PathBuf::from(socket), export)));
        }
        if let Some(rest) = text.strip_prefix("nbd://") {
            let (host, export) = rest.split_once('/').unwrap_or((rest, ""));
            let host = if host.contains(':') {
                host.to_owned()
            } else {
                format!("{host}:{NBD_PORT}")
            };
            return Ok(Target::Nbd(NbdAddress::Tcp(host, export.to_owned())));
        }
        let path = Path::new(text);
        let kind = match std::fs::metadata(path) {
            Ok(found) => found.file_type(),
            Err(error) => return refuse(error.to_string()),
        };
        if kind.is_dir() {
            return Ok(Target::Folder(path.to_owned()));
        }
        if std::os::unix::fs::FileTypeExt::is_socket(&kind) {
            return Ok(Target::Nbd(NbdAddress::Unix(
                path.to_owned(),
                String::new(),
            )));
        }
        Ok(Target::Device(path.to_owned()))
    }

    /// Prepares the target for the streams of `config`: opens it, and in a folder writes the files.
    /// With `cached` reads go through the page cache.
    ///
    /// # Errors
    /// If the target cannot be opened or is too small, or if the files do not fit.
    pub fn open(
        &self,
        config: &StreamsConfig,
        cached: bool,
        seed: Seed,
    ) -> Result<Medium, StreamTestError> {
        match self {
            Target::Device(path) => device::open(path, config, cached, seed),
            Target::Folder(path) => folder::make(path, config, cached, seed),
            Target::Nbd(address) => remote::open(address, config, seed),
        }
    }
}

/// Port of NBD assigned by IANA.
const NBD_PORT: u16 = 10809;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_told_by_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("disk");
        std::fs::write(&file, [0; 512]).unwrap();
        let socket = folder.path().join("s");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let named = |text: &str| Target::named(text).unwrap();
        assert_eq!(
            named(folder.path().to_str().unwrap()),
            Target::Folder(folder.path().to_owned())
        );
        assert_eq!(named(file.to_str().unwrap()), Target::Device(file.clone()));
        let unix = |path: &Path, export: &str| {
            Target::Nbd(NbdAddress::Unix(path.to_owned(), export.to_owned()))
        };
        assert_eq!(named(socket.to_str().unwrap()), unix(&socket, ""));
        assert_eq!(
            named("nbd+unix:///a?socket=/run/s"),
            unix(Path::new("/run/s"), "a")
        );
        let tcp = |host: &str, export: &str| {
            Target::Nbd(NbdAddress::Tcp(host.to_owned(), export.to_owned()))
        };
        assert_eq!(named("nbd://nas/video"), tcp("nas:10809", "video"));
        assert_eq!(named("nbd://10.0.0.1:7"), tcp("10.0.0.1:7", ""));
        let refused = Target::named("/nowhere/at/all").unwrap_err().to_string();
        assert!(refused.contains("No such file"), "{refused}");
        assert!(Target::named("nbd+unix:///a").is_err());
    }
}
