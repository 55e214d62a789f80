//! A device in sparse files of a folder.

use crate::Device;
use fullstroke_device::{Claim, OpenError};
use fullstroke_units::SECTOR_BYTES;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Mode of files: only the owner may read and write.
const OWNER: u32 = 0o600;
/// Largest length of a file. ext4 has no files of 16 TiB, and drives are larger.
const FILE_BYTES_MAX: u64 = 8 << 40;

/// A device in a sparse file as long as the device; only written parts take room. A device of more
/// than 8 TiB has several files: `drive`, `drive.1`, and so on.
///
/// Behind the bytes is a tail, whose room is in the last file.
#[derive(Debug)]
pub struct SparseFile {
    path: PathBuf,
    /// Files, each of `file_bytes`, except the last.
    files: Vec<File>,
    lengths: FileLengths,
    /// Claims, one for each file. The claims keep out a second server, a replay and `array create`.
    _claims: Vec<Claim>,
}

/// Lengths of the files of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileLengths {
    /// The bytes without the tail.
    pub(crate) bytes: u64,
    pub(crate) tail: u64,
    /// Largest length of a file, without the tail.
    file_bytes: u64,
}

/// Part of a run of bytes in one file.
struct FilePart {
    file: usize,
    /// First byte in the file.
    offset: u64,
    /// Bytes within the run.
    of_run: Range<u64>,
}

impl FileLengths {
    pub(crate) fn new(bytes: u64, tail: u64) -> FileLengths {
        FileLengths {
            bytes,
            tail,
            file_bytes: FILE_BYTES_MAX,
        }
    }

    fn files(self) -> u64 {
        // A device without bytes still needs a file for its tail.
        self.bytes.div_ceil(self.file_bytes).max(1)
    }

    /// Returns the files of a device, and the length of each, with the tail and without.
    fn of(self, path: &Path) -> impl Iterator<Item = (PathBuf, u64, u64)> {
        let path = path.to_owned();
        (0..self.files()).map(move |index| {
            let mut name = path.as_os_str().to_owned();
            if index > 0 {
                name.push(format!(".{index}"));
            }
            let length = self.file_bytes.min(self.bytes - index * self.file_bytes);
            let tail = if index + 1 == self.files() {
                self.tail
            } else {
                0
            };
            (name.into(), length + tail, length)
        })
    }
}

impl SparseFile {
    /// Opens the files at `path`, or makes empty ones, for so many bytes and a tail behind these.
    ///
    /// # Errors
    /// The host's, for example for a missing folder.
    pub fn open(path: &Path, bytes: u64, tail: u64) -> io::Result<SparseFile> {
        SparseFile::open_with(FileLengths::new(bytes, tail), path)
    }

    /// Opens the files at `path` read-only. The files must have their length.
    pub(crate) fn open_read_only(path: &Path, lengths: FileLengths) -> io::Result<SparseFile> {
        let files = lengths.of(path).map(|(path, ..)| {
            let file = File::open(&path)?;
            let claim = Claim::share(&file, &path).map_err(not_claimed)?;
            Ok((file, claim))
        });
        let (files, claims) = files.collect::<io::Result<_>>()?;
        Ok(SparseFile {
            path: path.to_owned(),
            files,
            lengths,
            _claims: claims,
        })
    }

    fn open_with(lengths: FileLengths, path: &Path) -> io::Result<SparseFile> {
        let files = lengths.of(path).map(|(path, length, _)| {
            let mut options = OpenOptions::new();
            let file = options
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(OWNER)
                .open(&path)?;
            let claim = Claim::take(&file, &path).map_err(not_claimed)?;
            // A shorter file was just made, or its making was interrupted. A longer file is left as
            // it is.
            if file.metadata()?.len() < length {
                file.set_len(length)?;
            }
            Ok((file, claim))
        });
        let (files, claims) = files.collect::<io::Result<_>>()?;
        Ok(SparseFile {
            path: path.to_owned(),
            files,
            lengths,
            _claims: claims,
        })
    }

    /// Describes the fault of missing or too short files at `path`. The tail may be missing.
    pub(crate) fn complaint(path: &Path, lengths: FileLengths) -> Option<String> {
        let mut files = lengths.of(path);
        files.find_map(|(path, _, length)| match fs::metadata(&path) {
            Ok(metadata) if metadata.len() >= length => None,
            Ok(metadata) => {
                let found = metadata.len();
                Some(format!(
                    "`{}` has {found} bytes instead of {length}",
                    path.display()
                ))
            }
            Err(error) => Some(format!("`{}` cannot be used: {error}", path.display())),
        })
    }

    /// Cuts a run of bytes at the borders of files.
    fn parts(&self, start: u64, bytes: u64) -> impl Iterator<Item = FilePart> + use<> {
        let (file_bytes, end) = (self.lengths.file_bytes, start + bytes);
        debug_assert!(
            end <= self.bytes(),
            "{bytes} bytes at {start} reach beyond the {} of the device",
            self.bytes()
        );
        let last = self.files.len() as u64 - 1;
        let mut at = start;
        std::iter::from_fn(move || {
            // The tail belongs to the last file and lies beyond `file_bytes`.
            let number = (at / file_bytes).min(last);
            let (file, offset) = (number as usize, at - number * file_bytes);
            let next = if number == last {
                end
            } else {
                end.min(at + (file_bytes - offset))
            };
            let part = FilePart {
                file,
                offset,
                of_run: at - start..next - start,
            };
            (at < end).then(|| {
                at = next;
                part
            })
        })
    }

    /// Returns the first byte of the next data or hole of a file; `None` behind the last data.
    fn seek(&self, file: usize, to: SeekFrom) -> io::Result<Option<u64>> {
        match seek(&self.files[file], to) {
            Ok(byte) => Ok(Some(byte)),
            // ENXIO: there is no data from here on (lseek(2)).
            Err(Errno::NXIO) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn zero_part(&self, part: &FilePart, hole: bool) -> io::Result<()> {
        let kind = if hole {
            FallocateFlags::PUNCH_HOLE
        } else {
            FallocateFlags::ZERO_RANGE
        };
        let bytes = part.of_run.end - part.of_run.start;
        let file = &self.files[part.file];
        // PUNCH_HOLE needs KEEP_SIZE (fallocate(2)).
        match fallocate(file, kind | FallocateFlags::KEEP_SIZE, part.offset, bytes) {
            // Some file systems have no fallocate.
            Err(Errno::OPNOTSUPP) => write_zeros(file, part.offset, bytes),
            result => Ok(result?),
        }
    }
}

fn not_claimed(error: OpenError) -> io::Error {
    match error {
        OpenError::Host(error) => error,
        error => io::Error::new(io::ErrorKind::ResourceBusy, error.to_string()),
    }
}

fn write_zeros(file: &File, mut at: u64, bytes: u64) -> io::Result<()> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let end = at + bytes;
    while at < end {
        let bytes = (end - at).min(ZEROS.len() as u64);
        file.write_all_at(&ZEROS[..bytes as usize], at)?;
        at += bytes;
    }
    Ok(())
}

fn indices(range: &Range<u64>) -> Range<usize> {
    range.start as usize..range.end as usize
}

impl Device for SparseFile {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn bytes(&self) -> u64 {
        self.lengths.bytes + self.lengths.tail
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        for part in self.parts(at, into.len() as u64) {
            self.files[part.file].read_exact_at(&mut into[indices(&part.of_run)], part.offset)?;
        }
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        for part in self.parts(at, from.len() as u64) {
            self.files[part.file].write_all_at(&from[indices(&part.of_run)], part.offset)?;
        }
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        self.files.iter().try_for_each(File::sync_data)
    }

    fn trims(&self) -> bool {
        true
    }

    fn trim(&self, at: u64, bytes: u64) -> io::Result<()> {
        self.zero(at, bytes, true)
    }

    fn zero(&self, at: u64, bytes: u64, hole: bool) -> io::Result<()> {
        let mut parts = self.parts(at, bytes);
        parts.try_for_each(|part| self.zero_part(&part, hole))
    }

    fn next_data(&self, at: u64, bytes: u64) -> io::Result<Option<Range<u64>>> {
        for part in self.parts(at, bytes) {
            let end = part.offset + (part.of_run.end - part.of_run.start);
            let data = self.seek(part.file, SeekFrom::Data(part.offset))?;
            let Some(data) = data.filter(|&data| data < end) else {
                continue;
            };
            let hole = self
                .seek(part.file, SeekFrom::Hole(data))?
                .unwrap_or(end)
                .min(end);
            let before = part.file as u64 * self.lengths.file_bytes;
            let first = (before + data) / SECTOR_BYTES * SECTOR_BYTES;
            return Ok(Some(first..(before + hole).next_multiple_of(SECTOR_BYTES)));
        }
        Ok(None)
    }

    fn clear(&self) -> io::Result<()> {
        for (file, (_, length, _)) in self.files.iter().zip(self.lengths.of(&self.path)) {
            // A length of 0 gives all blocks back at once; the second call makes one hole of the
            // file.
            file.set_len(0)?;
            file.set_len(length)?;
        }
        Ok(())
    }

    fn is_cached(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A drive of 40 sectors in files of 16.
    fn split(folder: &Path) -> SparseFile {
        let lengths = FileLengths {
            bytes: 40 * SECTOR_BYTES,
            tail: 4096,
            file_bytes: 16 * SECTOR_BYTES,
        };
        SparseFile::open_with(lengths, &folder.join("drive")).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_drive_in_several_files_is_one_run_of_sectors(
            steps in prop::collection::vec((0u64..40, 1u64..=40, 0u8..3), 1..20)
        ) {
            let folder = tempfile::tempdir().unwrap();
            let device = split(folder.path());
            let mut model = vec![0u8; 40 * SECTOR_BYTES as usize];
            for (number, (start, sectors, what)) in steps.into_iter().enumerate() {
                let (at, length) = (start * SECTOR_BYTES, sectors.min(40 - start) * SECTOR_BYTES);
                let bytes = indices(&(at..at + length));
                if what == 0 {
                    device.zero(at, length, number % 2 == 0).unwrap();
                    model[bytes].fill(0);
                } else {
                    model[bytes.clone()].fill(number as u8 + 1);
                    device.write(at, &model[bytes]).unwrap();
                }
            }
            let mut read = vec![0xEE; model.len()];
            device.read(0, &mut read).unwrap();
            prop_assert!(read == model);
            // Bytes that take no room read as zeros.
            let (mut at, mut covered) = (0, vec![false; 40]);
            let bytes = 40 * SECTOR_BYTES;
            while let Some(run) = device.next_data(at, bytes - at).unwrap() {
                covered[(run.start / SECTOR_BYTES) as usize..(run.end / SECTOR_BYTES) as usize].fill(true);
                at = run.end;
                if at >= bytes {
                    break;
                }
            }
            for (sector, taken) in covered.iter().enumerate() {
                let bytes = &model[sector * SECTOR_BYTES as usize..][..SECTOR_BYTES as usize];
                prop_assert!(*taken || bytes.iter().all(|&byte| byte == 0), "sector {}", sector);
            }
        }
    }

    #[test]
    fn a_large_drive_has_several_files_and_each_is_missed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive");
        let lengths = FileLengths::new((24 << 40) + 4096, 4096);
        let device = SparseFile::open_with(lengths, &path).unwrap();
        device
            .write(lengths.bytes - SECTOR_BYTES, &[7; SECTOR_BYTES as usize])
            .unwrap();
        assert_eq!(SparseFile::complaint(&path, lengths), None);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
        fs::remove_file(folder.path().join("drive.3")).unwrap();
        assert!(
            SparseFile::complaint(&path, lengths)
                .unwrap()
                .contains("drive.3")
        );
    }
}
