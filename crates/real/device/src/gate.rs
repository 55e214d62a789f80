//! The gate: whoever writes to a file or device of the user passes here first.
//!
//! Three questions are answered, always by inode or device number and never by path, because one
//! file has many paths (symbolic and hard links, bind mounts, `/dev/fd`, loop devices):
//!
//! 1. **Which thing is it?** [`Identity`].
//! 2. **Do two paths share bytes?** [`share_bytes`]: a file and the loop device above the file, a disk and
//!    its partition.
//! 3. **Does somebody use it?** [`Claim`] locks the file or device, and everything below that holds its
//!    bytes. The lock lies on the inode, so that nobody can remove it, and ends with the process.

use crate::layers::{Layer, LoopDevice, layers_of, loop_devices};
use crate::{OpenError, mounts};
use rustix::fs::{AtFlags, FlockOperation, OFlags, StatxFlags};
use rustix::io::Errno;
use rustix::process::{Flock, FlockOffsetType, FlockType, fcntl_getlk};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a lock is waited for: a process that was killed holds its locks until the kernel has ended its
/// requests under way, and udev holds a shared lock on a disk while udev reads its signatures.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the lock is tried meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// Which file or device a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// A file, folder, pipe or character device.
    Inode {
        /// The number of the file system's device.
        device: u64,
        /// The number of the inode in the file system.
        inode: u64,
    },
    /// A block device, whichever node stands for it.
    BlockDevice {
        /// The device's number.
        number: u64,
    },
}

impl Identity {
    /// Of what `path` leads to at last.
    ///
    /// # Errors
    /// The host's: nothing stands there, say.
    pub fn of(path: &Path) -> io::Result<Identity> {
        Ok(Identity::from(&fs::metadata(path)?))
    }
}

impl From<&Metadata> for Identity {
    fn from(metadata: &Metadata) -> Identity {
        if metadata.file_type().is_block_device() {
            Identity::BlockDevice {
                number: metadata.rdev(),
            }
        } else {
            Identity::Inode {
                device: metadata.dev(),
                inode: metadata.ino(),
            }
        }
    }
}

/// True if a write to one of two paths can change what the other holds: both are one file or device, or one
/// lies below the other. Two partitions of one disk share nothing. False where nothing stands.
pub fn share_bytes(one: &Path, other: &Path) -> bool {
    let (Ok(one_identity), Ok(other_identity)) = (Identity::of(one), Identity::of(other)) else {
        return false;
    };
    let loops = loop_devices();
    let one = layers_of(one_identity, one, &loops);
    let other = layers_of(other_identity, other, &loops);
    one.iter().any(|layer| {
        other
            .iter()
            .any(|found| found.identity == layer.identity && (found.is_whole || layer.is_whole))
    })
}

/// True if the host lets nobody replace the file at `path`, whoever asks: an attribute of the file
/// (`chattr +i`, or `+a`) forbids it.
pub fn is_fixed(path: &Path) -> bool {
    // `STATX_ATTR_IMMUTABLE` and `STATX_ATTR_APPEND` of `linux/stat.h`.
    const FIXED: u64 = 0x10 | 0x20;
    let asked = rustix::fs::statx(
        rustix::fs::CWD,
        path,
        AtFlags::empty(),
        StatxFlags::BASIC_STATS,
    );
    asked.is_ok_and(|found| found.stx_attributes.bits() & FIXED != 0)
}

/// A sentence that says who uses what stands at `path`, if somebody does.
/// Nothing is held afterwards.
pub fn user_of(path: &Path) -> Option<String> {
    let opened = open_quietly(path, OFlags::empty()).ok()?;
    match Claim::take(&opened, path) {
        Err(OpenError::InUse(user)) => Some(user),
        _ => None,
    }
}

/// Keeps other users out of a file or device, and out of what holds its bytes, for as long as the claim
/// and the claimed file live. Everything of fullstroke that writes takes one.
#[derive(Debug)]
pub struct Claim {
    /// Locked files and devices below the claimed one.
    _below: Vec<File>,
}

/// Whether others may use the same thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    /// Nobody may.
    Exclusive,
    /// Others that claim it in the same way may.
    Shared,
}

impl Claim {
    /// Claims what `file`, opened at `path`, stands for, to write to it. Folders can be claimed as well.
    ///
    /// # Errors
    /// [`OpenError::InUse`] if somebody uses it or what lies below; the host's if it knows no locks.
    pub fn take(file: &File, path: &Path) -> Result<Claim, OpenError> {
        Claim::of(file, path, Sharing::Exclusive)
    }

    /// Claims it so that it can be read while nobody writes.
    ///
    /// # Errors
    /// As for [`Claim::take`].
    pub fn share(file: &File, path: &Path) -> Result<Claim, OpenError> {
        Claim::of(file, path, Sharing::Shared)
    }

    fn of(file: &File, path: &Path, sharing: Sharing) -> Result<Claim, OpenError> {
        let identity = Identity::from(&file.metadata()?);
        let loops = loop_devices();
        let mut below = Vec::new();
        for (index, layer) in layers_of(identity, path, &loops).iter().enumerate() {
            refuse_other_loops(layer, &loops)?;
            if index == 0 {
                if let Identity::BlockDevice { number } = identity
                    && let Some(place) = mounts::mount_of(number)
                {
                    return Err(OpenError::InUse(place));
                }
                lock(file, sharing)?;
                refuse_foreign_lock(file)?;
            } else if let Some(held) = claim_below(layer, sharing)? {
                below.push(held);
            }
        }
        Ok(Claim { _below: below })
    }
}

/// Another loop device on the same bytes has users of its own: a mounted file system, say.
fn refuse_other_loops(layer: &Layer, loops: &[LoopDevice]) -> Result<(), OpenError> {
    let through = layer
        .through
        .and_then(|number| loops.iter().find(|one| one.number == number));
    let other = loops.iter().find(|other| {
        other.backing == Some(layer.identity)
            && through
                .is_none_or(|through| through.number != other.number && through.overlaps(other))
    });
    match other {
        Some(other) if layer.through.is_none() => Err(OpenError::InUse(format!(
            "it is what the loop device `{}` stands on",
            other.path.display()
        ))),
        Some(other) => Err(OpenError::InUse(format!(
            "it stands on `{}`, and so does the loop device `{}`",
            layer.path.display(),
            other.path.display()
        ))),
        None => Ok(()),
    }
}

/// Locks a layer below the claimed one; the lock lives as long as the file that is returned.
fn claim_below(layer: &Layer, sharing: Sharing) -> Result<Option<File>, OpenError> {
    let is_device = matches!(layer.identity, Identity::BlockDevice { .. });
    // The disk of a partition: the kernel's own claim (O_EXCL) on the partition guards it.
    if is_device && layer.through.is_none() {
        return Ok(None);
    }
    let mut flags = OFlags::empty();
    flags.set(
        OFlags::EXCL,
        is_device && layer.is_whole && sharing == Sharing::Exclusive,
    );
    let file = match open_quietly(&layer.path, flags) {
        Ok(file) => file,
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            return Err(OpenError::InUse(format!(
                "it stands on `{}`: {error}",
                layer.path.display()
            )));
        }
        // The file was deleted, or lies where this process sees nothing: nobody else reaches it by name.
        Err(_) => return Ok(None),
    };
    if Identity::from(&file.metadata()?) != layer.identity {
        return Ok(None);
    }
    // Two partitions of one loop device are two members: both stand on the file.
    let how = if layer.is_whole {
        sharing
    } else {
        Sharing::Shared
    };
    lock(&file, how)
        .and_then(|()| refuse_foreign_lock(&file))
        .map_err(|error| match error {
            OpenError::InUse(user) => {
                OpenError::InUse(format!("it stands on `{}`: {user}", layer.path.display()))
            }
            error => error,
        })?;
    Ok(Some(file))
}

/// Locks the inode. The lock belongs to the open file, and ends when the last descriptor of it is closed.
fn lock(file: &File, sharing: Sharing) -> Result<(), OpenError> {
    let operation = match sharing {
        Sharing::Exclusive => FlockOperation::NonBlockingLockExclusive,
        Sharing::Shared => FlockOperation::NonBlockingLockShared,
    };
    let began = Instant::now();
    loop {
        match rustix::fs::flock(file, operation) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) if began.elapsed() < PATIENCE => sleep(LOOK),
            Err(Errno::WOULDBLOCK) => {
                let user = "it is in use by another process: an array that is assembled, a server with its \
                            store, or a replay, perhaps";
                return Err(OpenError::InUse(user.to_owned()));
            }
            Err(error) => {
                let message = format!("it cannot be locked: {error}");
                return Err(OpenError::Host(io::Error::new(
                    io::Error::from(error).kind(),
                    message,
                )));
            }
        }
    }
}

/// Locks of the other kind (`fcntl`), by which QEMU keeps its images and databases keep their files.
fn refuse_foreign_lock(file: &File) -> Result<(), OpenError> {
    if !file.metadata()?.is_file() {
        return Ok(());
    }
    let whole = Flock {
        start: 0,
        length: 0,
        pid: None,
        typ: FlockType::WriteLock,
        offset_type: FlockOffsetType::Set,
    };
    // A file system without such locks has none that could conflict.
    let Ok(Some(found)) = fcntl_getlk(file, &whole) else {
        return Ok(());
    };
    let owner = found.pid.map_or_else(
        || "another process".to_owned(),
        |pid| format!("process {}", pid.as_raw_nonzero()),
    );
    Err(OpenError::InUse(format!(
        "{owner} has locked it or a part of it (fcntl)"
    )))
}

/// Opens without waiting for the other end of a pipe, and without a terminal becoming this process's.
fn open_quietly(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)
}

#[cfg(test)]
mod tests;
