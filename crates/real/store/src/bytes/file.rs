//! A drive's bytes in sparse files.

use crate::bytes::lock::OWNER;
use crate::bytes::medium::{Durable, Medium, byte_of};
use crate::bytes::sealed::{BLOCK_BYTES, LABEL_BYTES, Label};
use fullstroke_contract::Extent;
use fullstroke_device::{Claim, OpenError};
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// No file is longer: ext4 has none of 16 TiB, and drives are larger.
const FILE_BYTES_MAX: u64 = 8 << 40;

/// Bytes in a file as long as the drive, of which only what was written takes
/// room. A drive of more than 8 TiB has several: `drive`, `drive.1`, and so on.
#[derive(Debug)]
pub struct FileMedium {
    path: PathBuf,
    /// Each of `file_bytes`, but for the last.
    files: Vec<Arc<File>>,
    file_bytes: u64,
    capacity: Sectors,
    /// One for each file: they keep out a second server, a replay and `array create`.
    _claims: Vec<Claim>,
}

/// A part of a run of bytes that lies in one file.
struct Part {
    file: usize,
    /// Where in that file.
    offset: u64,
    /// Which bytes of the run.
    of_run: Range<u64>,
}

impl FileMedium {
    /// Opens the files at `path`, or makes them, empty, with the length of the
    /// drive.
    ///
    /// # Errors
    /// The host's: the folder is missing, say.
    pub fn open(path: &Path, capacity: Sectors) -> io::Result<FileMedium> {
        FileMedium::open_in_files_of(FILE_BYTES_MAX, path, capacity)
    }

    /// Opens the files at `path`, which have their length, for reads alone.
    pub(crate) fn open_read_only(path: &Path, capacity: Sectors) -> io::Result<FileMedium> {
        let file_bytes = FILE_BYTES_MAX;
        let files = names_and_lengths(file_bytes, path, capacity).map(|(path, _)| {
            let file = File::open(&path)?;
            let claim = Claim::share(&file, &path).map_err(not_claimed)?;
            Ok((Arc::new(file), claim))
        });
        let (files, claims) = files.collect::<io::Result<_>>()?;
        Ok(FileMedium {
            path: path.to_owned(),
            files,
            file_bytes,
            capacity,
            _claims: claims,
        })
    }

    /// The same in files of another size.
    pub(crate) fn open_in_files_of(
        file_bytes: u64,
        path: &Path,
        capacity: Sectors,
    ) -> io::Result<FileMedium> {
        let files = names_and_lengths(file_bytes, path, capacity).map(|(path, length)| {
            let mut options = OpenOptions::new();
            let file = options
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(OWNER)
                .open(&path)?;
            let claim = Claim::take(&file, &path).map_err(not_claimed)?;
            if file.metadata()?.len() < length {
                file.set_len(length)?;
            }
            Ok((Arc::new(file), claim))
        });
        let (files, claims) = files.collect::<io::Result<_>>()?;
        Ok(FileMedium {
            path: path.to_owned(),
            files,
            file_bytes,
            capacity,
            _claims: claims,
        })
    }

    /// What is the matter with the files at `path`, if they are not as they
    /// should have been left.
    pub(crate) fn complaint(path: &Path, capacity: Sectors) -> Option<String> {
        names_and_lengths(FILE_BYTES_MAX, path, capacity).find_map(|(path, length)| {
            match fs::metadata(&path) {
                Ok(metadata) if metadata.len() >= length => None,
                Ok(metadata) => {
                    let found = metadata.len();
                    Some(format!(
                        "`{}` has {found} bytes instead of {length}",
                        path.display()
                    ))
                }
                Err(error) => Some(format!("`{}` cannot be used: {error}", path.display())),
            }
        })
    }

    /// The label behind the bytes at `path`, if there is a whole one.
    pub(crate) fn label(path: &Path, capacity: Sectors) -> Option<Label> {
        let (name, length) = names_and_lengths(FILE_BYTES_MAX, path, capacity).last()?;
        let mut block = [0; BLOCK_BYTES];
        File::open(name)
            .ok()?
            .read_exact_at(&mut block, length)
            .ok()?;
        Label::decode(&block)
    }

    /// A run of bytes, file by file.
    fn parts(&self, start: u64, bytes: u64) -> impl Iterator<Item = Part> + use<> {
        let (file_bytes, end) = (self.file_bytes, start + bytes);
        let mut at = start;
        std::iter::from_fn(move || {
            let (file, offset) = ((at / file_bytes) as usize, at % file_bytes);
            let next = end.min(at + (file_bytes - offset));
            let part = Part {
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

    /// Where the next data or hole of a file begins; `None` behind the last
    /// data.
    fn seek(&self, file: usize, to: SeekFrom) -> io::Result<Option<u64>> {
        match seek(&*self.files[file], to) {
            Ok(byte) => Ok(Some(byte)),
            Err(Errno::NXIO) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn zero_part(&self, part: &Part, hole: bool) -> io::Result<()> {
        let kind = if hole {
            FallocateFlags::PUNCH_HOLE
        } else {
            FallocateFlags::ZERO_RANGE
        };
        let bytes = part.of_run.end - part.of_run.start;
        let file = &*self.files[part.file];
        match fallocate(file, kind | FallocateFlags::KEEP_SIZE, part.offset, bytes) {
            // Not every file system can.
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

/// The files of a drive, and how long each is.
fn names_and_lengths(
    file_bytes: u64,
    path: &Path,
    capacity: Sectors,
) -> impl Iterator<Item = (PathBuf, u64)> {
    let bytes = capacity.bytes().0;
    (0..bytes.div_ceil(file_bytes).max(1)).map(move |index| {
        let mut name = path.as_os_str().to_owned();
        if index > 0 {
            name.push(format!(".{index}"));
        }
        (name.into(), file_bytes.min(bytes - index * file_bytes))
    })
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

impl Medium for FileMedium {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn read(&self, lbn: Lbn, into: &mut [u8]) -> io::Result<()> {
        for part in self.parts(byte_of(lbn), into.len() as u64) {
            self.files[part.file].read_exact_at(&mut into[indices(&part.of_run)], part.offset)?;
        }
        Ok(())
    }

    fn write(&mut self, lbn: Lbn, from: &[u8]) -> io::Result<()> {
        for part in self.parts(byte_of(lbn), from.len() as u64) {
            self.files[part.file].write_all_at(&from[indices(&part.of_run)], part.offset)?;
        }
        Ok(())
    }

    fn zero(&mut self, extent: Extent, hole: bool) -> io::Result<()> {
        let mut parts = self.parts(byte_of(extent.start), extent.sectors.bytes().0);
        parts.try_for_each(|part| self.zero_part(&part, hole))
    }

    fn next_data(&self, extent: Extent) -> io::Result<Option<Extent>> {
        for part in self.parts(byte_of(extent.start), extent.sectors.bytes().0) {
            let end = part.offset + (part.of_run.end - part.of_run.start);
            let data = self.seek(part.file, SeekFrom::Data(part.offset))?;
            let Some(data) = data.filter(|&data| data < end) else {
                continue;
            };
            let hole = self
                .seek(part.file, SeekFrom::Hole(data))?
                .unwrap_or(end)
                .min(end);
            let before = part.file as u64 * self.file_bytes;
            let (first, behind) = (
                (before + data) / SECTOR_BYTES,
                (before + hole).div_ceil(SECTOR_BYTES),
            );
            return Ok(Some(Extent::new(first, behind - first)));
        }
        Ok(None)
    }

    fn clear(&mut self) -> io::Result<()> {
        let lengths = names_and_lengths(self.file_bytes, &self.path, self.capacity);
        for (file, (_, length)) in self.files.iter().zip(lengths) {
            file.set_len(0)?;
            file.set_len(length)?;
        }
        Ok(())
    }

    fn write_label(&mut self, label: &[u8]) -> io::Result<()> {
        let lengths = names_and_lengths(self.file_bytes, &self.path, self.capacity);
        let Some((file, (_, length))) = self.files.iter().zip(lengths).last() else {
            return Ok(());
        };
        if file.metadata()?.len() < length + LABEL_BYTES {
            file.set_len(length + LABEL_BYTES)?;
        }
        file.write_all_at(label, length)?;
        file.sync_data()
    }

    fn files(&self) -> Vec<Arc<dyn Durable>> {
        self.files
            .iter()
            .map(|file| Arc::clone(file) as Arc<dyn Durable>)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A drive of 40 sectors in files of 16.
    fn split(folder: &Path) -> FileMedium {
        FileMedium::open_in_files_of(16 * SECTOR_BYTES, &folder.join("drive"), Sectors(40)).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_drive_in_several_files_is_one_run_of_sectors(
            steps in prop::collection::vec((0u64..40, 1u64..=40, 0u8..3), 1..20)
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut medium = split(folder.path());
            let mut model = vec![0u8; 40 * SECTOR_BYTES as usize];
            for (number, (start, sectors, what)) in steps.into_iter().enumerate() {
                let extent = Extent::new(start, sectors.min(40 - start));
                let bytes = indices(&(byte_of(extent.start)..byte_of(extent.end())));
                if what == 0 {
                    medium.zero(extent, number % 2 == 0).unwrap();
                    model[bytes].fill(0);
                } else {
                    model[bytes.clone()].fill(number as u8 + 1);
                    medium.write(extent.start, &model[bytes]).unwrap();
                }
            }
            let mut read = vec![0xEE; model.len()];
            medium.read(Lbn(0), &mut read).unwrap();
            prop_assert!(read == model);
            // What takes no room reads as zeros.
            let (mut at, mut covered) = (0, vec![false; 40]);
            while let Some(run) = medium.next_data(Extent::new(at, 40 - at)).unwrap() {
                covered[run.start.0 as usize..run.end().0 as usize].fill(true);
                at = run.end().0;
                if at >= 40 {
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
        let (path, capacity) = (
            folder.path().join("drive"),
            Sectors((24 << 40) / SECTOR_BYTES + 8),
        );
        let mut medium = FileMedium::open(&path, capacity).unwrap();
        medium
            .write(Lbn(capacity.0 - 1), &[7; SECTOR_BYTES as usize])
            .unwrap();
        assert_eq!(FileMedium::complaint(&path, capacity), None);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
        fs::remove_file(folder.path().join("drive.3")).unwrap();
        assert!(
            FileMedium::complaint(&path, capacity)
                .unwrap()
                .contains("drive.3")
        );
    }
}
