//! Files as parts of a block device, or of a file in place of one.

use super::{FileSource, Medium, StreamReader};
use crate::stream_test::StreamTestError;
use fullstroke_device::{Aligned, CacheUse, DeviceAccess};
use fullstroke_units::{Sectors, Seed};
use fullstroke_workload::{MediaFiles, StreamsConfig};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

/// A device with the places of its files.
struct FileDevice {
    file: Arc<File>,
    files: Arc<MediaFiles>,
    read_bytes: usize,
}

pub(super) fn open(
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
    let cache = if cached {
        CacheUse::Through
    } else {
        CacheUse::Past
    };
    let opened = fullstroke_device::open(path, DeviceAccess::Read, cache)
        .map_err(|error| refuse(error.to_string()))?;
    let aligned = |bytes: u64| bytes.is_multiple_of(opened.block_bytes);
    if !aligned(config.read_bytes().0) || !aligned(config.alignment.0) {
        return Err(refuse(format!(
            "requests begin and end at multiples of {} bytes; found reads of {} at multiples of {}",
            opened.block_bytes,
            config.read_bytes(),
            config.alignment
        )));
    }
    let files = MediaFiles::new(
        config,
        Sectors(opened.bytes / 512),
        &mut seed.stream("media files"),
    )?;
    let (count, reads) = (files.count(), files.reads());
    let read_bytes = config.read_bytes().0 as usize;
    let source = Box::new(FileDevice {
        file: Arc::new(opened.file),
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

impl FileSource for FileDevice {
    fn reader(&self) -> io::Result<Box<dyn StreamReader>> {
        Ok(Box::new(DeviceReader {
            file: Arc::clone(&self.file),
            files: Arc::clone(&self.files),
            read_bytes: self.read_bytes,
            memory: Aligned::default(),
        }))
    }
}

struct DeviceReader {
    file: Arc<File>,
    files: Arc<MediaFiles>,
    read_bytes: usize,
    memory: Aligned,
}

impl StreamReader for DeviceReader {
    fn read(&mut self, file: u32, read: u64) -> io::Result<&[u8]> {
        let into = self.memory.of(self.read_bytes);
        self.file
            .read_exact_at(into, self.files.place(file, read).0 * 512)?;
        Ok(into)
    }
}
