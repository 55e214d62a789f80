//! Text files, packed according to their name, that appear whole or not at all.

use crate::TraceError;
use flate2::Compression;
use flate2::write::GzEncoder;
use fullstroke_table::AtomicFile;
#[cfg(feature = "compression")]
use liblzma::write::XzEncoder;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Default level of zstd.
#[cfg(feature = "compression")]
// 3 is the default of the `zstd` program; 6 below is that of `xz`.
const ZSTD_LEVEL: i32 = 3;
/// Default level of xz.
#[cfg(feature = "compression")]
const XZ_LEVEL: u32 = 6;

/// Extensions of packed files.
pub(crate) const PACKINGS: &[&str] = &[".gz", ".zst", ".xz"];

/// A text file under construction.
pub(super) struct TextFile {
    path: PathBuf,
    packer: Packer,
    line: Vec<u8>,
}

enum Packer {
    Plain(AtomicFile),
    Gzip(Box<GzEncoder<AtomicFile>>),
    #[cfg(feature = "compression")]
    Zstd(Box<zstd::stream::write::Encoder<'static, AtomicFile>>),
    #[cfg(feature = "compression")]
    Xz(Box<XzEncoder<AtomicFile>>),
}

impl TextFile {
    /// Begins the file for `path`.
    pub(super) fn create(path: &Path) -> Result<TextFile, TraceError> {
        let file = AtomicFile::create(path)?;
        let packer = Packer::new(path, file).map_err(|source| failed(path, source))?;
        Ok(TextFile {
            path: path.to_owned(),
            packer,
            // A usual line fits, so the buffer does not grow.
            line: Vec::with_capacity(128),
        })
    }

    /// Writes one line and its line end.
    pub(super) fn line(&mut self, text: fmt::Arguments<'_>) -> Result<(), TraceError> {
        self.line.clear();
        let TextFile { path, packer, line } = self;
        line.write_fmt(text)
            .and_then(|()| {
                line.push(b'\n');
                packer.writer().write_all(line)
            })
            .map_err(|source| failed(path, source))
    }

    /// Moves the complete file to its place.
    pub(super) fn finish(self) -> Result<(), TraceError> {
        let file = self
            .packer
            .into_file()
            .map_err(|source| failed(&self.path, source))?;
        Ok(file.commit()?)
    }
}

impl Packer {
    fn new(path: &Path, file: AtomicFile) -> io::Result<Packer> {
        let name = path.to_string_lossy().to_ascii_lowercase();
        Ok(
            match PACKINGS.iter().find(|ending| name.ends_with(**ending)) {
                Some(&".gz") => {
                    Packer::Gzip(Box::new(GzEncoder::new(file, Compression::default())))
                }
                #[cfg(feature = "compression")]
                Some(&".zst") => Packer::Zstd(Box::new(zstd::stream::write::Encoder::new(
                    file, ZSTD_LEVEL,
                )?)),
                #[cfg(feature = "compression")]
                Some(&".xz") => Packer::Xz(Box::new(XzEncoder::new(file, XZ_LEVEL))),
                #[cfg(not(feature = "compression"))]
                Some(_) => return Err(io::Error::other(crate::source::NO_COMPRESSION)),
                _ => Packer::Plain(file),
            },
        )
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Packer::Plain(file) => file,
            Packer::Gzip(encoder) => encoder,
            #[cfg(feature = "compression")]
            Packer::Zstd(encoder) => encoder,
            #[cfg(feature = "compression")]
            Packer::Xz(encoder) => encoder,
        }
    }

    fn into_file(self) -> io::Result<AtomicFile> {
        match self {
            Packer::Plain(file) => Ok(file),
            Packer::Gzip(encoder) => encoder.finish(),
            #[cfg(feature = "compression")]
            Packer::Zstd(encoder) => encoder.finish(),
            #[cfg(feature = "compression")]
            Packer::Xz(encoder) => encoder.finish(),
        }
    }
}

fn failed(path: &Path, source: io::Error) -> TraceError {
    TraceError::Write {
        file: path.display().to_string(),
        source,
    }
}
