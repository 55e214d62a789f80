//! Files and their compression.

use crate::input::{Input, InputFile};
use crate::{FileKind, FileSource, TraceError};
use std::io::{self, BufReader, Chain, Cursor, Read};
use std::path::Path;

/// Size of the buffer for packed bytes.
const PACKED_BYTES: usize = 64 * 1024;
/// Largest memory for the decompression of an xz file; `xz -9` needs 65 MiB.
#[cfg(feature = "compression")]
const XZ_MEMORY_BYTES_MAX: u64 = 128 << 20;
/// Largest window of zstd without `--ultra --long`: 128 MiB.
#[cfg(feature = "compression")]
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// Reason why a build without the feature refuses a file.
#[cfg(not(feature = "compression"))]
pub(crate) const NO_COMPRESSION: &str = "zstd and xz are not in this build of fullstroke; use gzip, or build with the feature `compression`";

/// Compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
    Zstd,
    Xz,
}

impl Packing {
    /// Returns the compression. The first bytes decide, never the name.
    fn of(bytes: &[u8]) -> Packing {
        match bytes {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Packing::Xz,
            _ => Packing::Plain,
        }
    }
}

/// Opens the file at `path` of the file system and decompresses it on the fly.
pub(crate) fn open(path: &Path, capacity: usize) -> Result<Input<'static>, TraceError> {
    open_in(&FileSource::default(), path, capacity)
}

/// Opens the file at `path` of `files` and decompresses it on the fly.
pub(crate) fn open_in(
    files: &FileSource,
    path: &Path,
    capacity: usize,
) -> Result<Input<'static>, TraceError> {
    let failed = |source| TraceError::Read {
        file: path.display().to_string(),
        source,
    };
    if files.kind(path) == FileKind::Folder {
        return Err(failed(io::Error::other("it is a folder; expected a file")));
    }
    let file = files.open(path).map_err(failed)?;
    let place = InputFile {
        path: path.to_owned(),
        files: files.clone(),
    };
    unpack(file, Some(place), capacity).map_err(failed)
}

/// Decompresses `source` on the fly.
pub(crate) fn unpack<'a>(
    mut source: impl Read + Send + 'a,
    file: Option<InputFile>,
    capacity: usize,
) -> io::Result<Input<'a>> {
    let mut magic = Vec::with_capacity(6);
    source.by_ref().take(6).read_to_end(&mut magic)?;
    let packing = Packing::of(&magic);
    let whole: Chain<Cursor<Vec<u8>>, _> = Cursor::new(magic).chain(source);
    let plain: Box<dyn Read + Send + 'a> = match packing {
        // No further buffer is needed, because the caller's buffer is larger.
        Packing::Plain => Box::new(whole),
        Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(
            BufReader::with_capacity(PACKED_BYTES, whole),
        )),
        #[cfg(feature = "compression")]
        Packing::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::new(whole)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
            Box::new(decoder)
        }
        #[cfg(feature = "compression")]
        Packing::Xz => Box::new(liblzma::read::XzDecoder::new_stream(whole, xz_stream()?)),
        #[cfg(not(feature = "compression"))]
        Packing::Zstd | Packing::Xz => return Err(io::Error::other(NO_COMPRESSION)),
    };
    let mut input = Input::new(plain, file, packing != Packing::Plain, capacity);
    input.skip_mark()?;
    Ok(input)
}

#[cfg(feature = "compression")]
fn xz_stream() -> io::Result<liblzma::stream::Stream> {
    liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_BYTES_MAX, liblzma::stream::CONCATENATED)
        .map_err(io::Error::other)
}
