//! The gate: every writer to a file or device of the user passes here first.
//!
//! The gate answers three questions. The answers rest on the inode or the device number and never
//! on the path. The reason is that one file has many paths (symbolic and hard links, bind mounts,
//! `/dev/fd`, loop devices):
//!
//! 1. **Which file or device does a path name?** [`DeviceIdentity`].
//! 2. **Do two paths share bytes?** [`share_bytes`]: a file and the loop device above the file, a
//!    disk and its partition.
//! 3. **Is it in use?** [`Claim`] locks the file or device, and everything below that holds its
//!    bytes. The lock lies on the inode, so nobody can remove it. The lock ends with the process.

pub use crate::identity::DeviceIdentity;

use crate::layers::{Layer, LoopDevice, layers_of, loop_devices};
use crate::{OpenError, mounts};
use rustix::fs::{AtFlags, FlockOperation, OFlags, StatxFlags};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longest wait for a lock. A killed process keeps its locks until the kernel has ended its
/// requests in flight. udev holds a shared lock on a disk while reading the disk's signatures.
const PATIENCE: Duration = Duration::from_millis(500);
/// Interval between attempts to take the lock.
const LOOK: Duration = Duration::from_millis(20);

/// Returns true if a write to one path can change the content of the other: both are one file or
/// device, or one lies below the other. Two partitions of one disk share nothing. Returns false if
/// a path does not exist.
pub fn share_bytes(one: &Path, other: &Path) -> bool {
    // A path that leads nowhere has no bytes to share. The later open reports the missing file.
    let (Ok(one_identity), Ok(other_identity)) =
        (DeviceIdentity::of(one), DeviceIdentity::of(other))
    else {
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

/// Returns true if no user at all can replace the file at `path`, because of an attribute of the
/// file (`chattr +i`, or `+a`).
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

/// Returns a sentence about the user of the file or device at `path`; `None` if there is no user.
/// Nothing stays locked.
pub fn user_of(path: &Path) -> Option<String> {
    let opened = open_quietly(path, OFlags::empty()).ok()?;
    match Claim::take(&opened, path) {
        Err(OpenError::InUse(user)) => Some(user),
        _ => None,
    }
}

/// Keeps other users out of a file or device, and out of the layers that hold its bytes. The
/// protection lasts as long as both the claim and the claimed file. All writing code of fullstroke
/// takes a claim.
#[derive(Debug)]
pub struct Claim {
    /// Locked files and devices below the claimed one.
    _below: Vec<File>,
}

/// Kind of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    /// No other claim is possible.
    Exclusive,
    /// Other shared claims are possible.
    Shared,
}

impl Claim {
    /// Claims the file or device of `file`, opened at `path`, for writing. Folders can be claimed
    /// as well.
    ///
    /// # Errors
    /// [`OpenError::InUse`] if the target or a layer below is in use; an error of the host if there
    /// is no support for locks.
    pub fn take(file: &File, path: &Path) -> Result<Claim, OpenError> {
        Claim::of(file, path, Sharing::Exclusive)
    }

    /// Claims the target for reading, so that nobody writes meanwhile.
    ///
    /// # Errors
    /// As for [`Claim::take`].
    pub fn share(file: &File, path: &Path) -> Result<Claim, OpenError> {
        Claim::of(file, path, Sharing::Shared)
    }

    fn of(file: &File, path: &Path, sharing: Sharing) -> Result<Claim, OpenError> {
        let identity = DeviceIdentity::from(&file.metadata()?);
        let loops = loop_devices();
        let mut below = Vec::new();
        for (index, layer) in layers_of(identity, path, &loops).iter().enumerate() {
            // The check comes before the lock of each layer, because a loop device on the same
            // bytes takes no lock.
            refuse_other_loops(layer, &loops)?;
            if index == 0 {
                // The mount point gives a better message than the kernel's EBUSY.
                if let DeviceIdentity::BlockDevice { number } = identity
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

/// Refuses if another loop device has the same bytes, because that device may have its own users,
/// such as a mounted file system.
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
            "the loop device `{}` uses it",
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

/// Locks a layer below the claimed one. The lock lasts as long as the returned file.
fn claim_below(layer: &Layer, sharing: Sharing) -> Result<Option<File>, OpenError> {
    let is_device = matches!(layer.identity, DeviceIdentity::BlockDevice { .. });
    // For the disk of a partition no lock is needed: the kernel's own claim (O_EXCL) on the
    // partition guards it.
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
        // The file was deleted, or is invisible to this process. Nobody else can reach it by name.
        Err(_) => return Ok(None),
    };
    // Another file has taken the path of the backing file. The bytes of the old file cannot be
    // reached by this name.
    if DeviceIdentity::from(&file.metadata()?) != layer.identity {
        return Ok(None);
    }
    // Two partitions of one loop device are two members on the same file, so the lock must be
    // shared.
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

/// Locks the inode. The lock belongs to the open file, and ends when the last descriptor of the
/// file is closed.
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
                let user = "it is in use by another process, such as an assembled array, a server with its store, or a replay";
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

/// Refuses a file with locks of the other kind (`fcntl`), as used by QEMU for images and by
/// databases for files.
// Only regular files have `fcntl` locks that programs use for images.
fn refuse_foreign_lock(file: &File) -> Result<(), OpenError> {
    if !file.metadata()?.is_file() {
        return Ok(());
    }
    let Some(pid) = owner_of_foreign_lock(file) else {
        return Ok(());
    };
    // A lock of an open file description, as QEMU's, has no process: its number is -1 (fcntl(2)).
    let owner = if pid > 0 {
        format!("process {pid}")
    } else {
        "another process".to_owned()
    };
    Err(OpenError::InUse(format!(
        "{owner} has locked it or a part of it (fcntl)"
    )))
}

/// Returns the process number of a `fcntl` lock that prevents writing; `None` without such a lock,
/// and on a file system without `fcntl` locks.
#[expect(
    unsafe_code,
    reason = "rustix takes the -1 of a lock of an open file description for an invalid process number"
)]
fn owner_of_foreign_lock(file: &File) -> Option<i32> {
    let mut lock = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        // Length 0 means up to the end of the file.
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, and `F_GETLK` reads and writes the one `flock` behind the
    // pointer, which lives until the call returns.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &mut lock) };
    let free = lock.l_type == libc::F_UNLCK as libc::c_short;
    (answer == 0 && !free).then_some(lock.l_pid)
}

/// Opens a file without waiting for the other end of a pipe, and without making a terminal the
/// controlling one.
fn open_quietly(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)
}

#[cfg(test)]
mod tests;
