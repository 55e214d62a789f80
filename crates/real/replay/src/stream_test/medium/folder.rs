//! Files in a folder, made for the test and removed after the test.

use super::{FileSource, Medium, StreamReader};
use crate::stream_test::StreamTestError;
use fullstroke_device::{Aligned, CacheUse, DeviceAccess, open};
use fullstroke_units::{Bytes, Seed};
use fullstroke_workload::StreamsConfig;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

/// Default size of a file in a folder.
const FILE_BYTES: u64 = 64 << 20;
/// Number of bytes per write.
const PIECE_BYTES: usize = 1 << 20;
/// Share of the folder's free space that stays free.
const SPARED: f64 = 0.05;

/// The files.
struct FolderMedium {
    files: Vec<Arc<File>>,
    read_bytes: usize,
    // The folder is removed on drop.
    _folder: tempfile::TempDir,
}

pub(super) fn make(
    path: &Path,
    config: &StreamsConfig,
    cached: bool,
    seed: Seed,
) -> Result<Medium, StreamTestError> {
    let name = path.display().to_string();
    let refuse = |message: String| StreamTestError::Target {
        target: name.clone(),
        message,
    };
    let host = |error: io::Error| refuse(error.to_string());
    let count = config.files.unwrap_or(config.streams);
    let read = config.read_bytes().0;
    let reads = (config.file_size.map_or(FILE_BYTES, |size| size.0) / read).max(1);
    let wanted = u64::from(count).saturating_mul(reads.saturating_mul(read));
    let space = rustix::fs::statvfs(path).map_err(|error| host(error.into()))?;
    let free = (space.f_bavail as f64 * space.f_frsize as f64 * (1.0 - SPARED)) as u64;
    if wanted > free {
        return Err(refuse(format!(
            "{count} files of {} exceed the {} of free space; use fewer --files, or a smaller --file-size",
            Bytes(reads.saturating_mul(read)),
            Bytes(free)
        )));
    }
    let folder = tempfile::Builder::new()
        .prefix("fullstroke-streams-")
        .tempdir_in(path)
        .map_err(host)?;
    let cache = if cached {
        CacheUse::Through
    } else {
        CacheUse::Past
    };
    let mut files = Vec::with_capacity(count as usize);
    for number in 0..count {
        let path = folder.path().join(number.to_string());
        write(
            &path,
            reads * read,
            &mut seed.stream(&format!("bytes of {number}")),
        )
        .map_err(host)?;
        let opened = open(&path, DeviceAccess::Read, cache)
            .map_err(|error| refuse(format!("{error}; --cached reads through the page cache")))?;
        if !read.is_multiple_of(opened.block_bytes) {
            let block = opened.block_bytes;
            return Err(refuse(format!(
                "reads are multiples of {block} bytes; found {}",
                config.read_bytes()
            )));
        }
        files.push(Arc::new(opened.file));
    }
    let source = Box::new(FolderMedium {
        files,
        read_bytes: read as usize,
        _folder: folder,
    });
    Ok(Medium {
        name,
        files: count,
        reads,
        source,
    })
}

/// Writes bytes that no file system can compress or deduplicate.
fn write(path: &Path, length: u64, random: &mut fullstroke_units::Random) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    for word in piece.chunks_exact_mut(8) {
        word.copy_from_slice(&random.below(u64::MAX).to_le_bytes());
    }
    let mut file = File::create(path)?;
    let mut left = length;
    while left > 0 {
        // One word of each piece changes, so no two pieces are equal.
        piece[..8].copy_from_slice(&(left ^ random.below(u64::MAX)).to_le_bytes());
        let now = left.min(PIECE_BYTES as u64);
        file.write_all(&piece[..now as usize])?;
        left -= now;
    }
    file.sync_all()
}

impl FileSource for FolderMedium {
    fn reader(&self) -> io::Result<Box<dyn StreamReader>> {
        let memory = Aligned::default();
        Ok(Box::new(FolderReader {
            files: self.files.clone(),
            read_bytes: self.read_bytes,
            memory,
        }))
    }
}

struct FolderReader {
    files: Vec<Arc<File>>,
    read_bytes: usize,
    memory: Aligned,
}

impl StreamReader for FolderReader {
    fn read(&mut self, file: u32, read: u64) -> io::Result<&[u8]> {
        let into = self.memory.of(self.read_bytes);
        self.files[file as usize].read_exact_at(into, read * self.read_bytes as u64)?;
        Ok(into)
    }
}
