//! The layers below a device: a partition's disk, a loop device's file, the members of a mapped
//! device.

use crate::identity::DeviceIdentity;
use rustix::ioctl::{Updater, ioctl};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// `LOOP_GET_STATUS64` of `linux/loop.h`.
const LOOP_GET_STATUS64: u32 = 0x4c05;
/// Largest number of layers. The kernel allows no deeper stack of loop devices.
const LAYERS_MAX: usize = 16;

/// The claimed file or device, or a layer below with some of the same bytes.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) identity: DeviceIdentity,
    pub(crate) path: PathBuf,
    /// True if this whole layer lies below the claimed device; false if only a part does.
    pub(crate) is_whole: bool,
    /// Number of the loop device on this layer; `None` if there is none.
    pub(crate) through: Option<u64>,
}

/// A configured loop device.
#[derive(Clone, Debug)]
pub(crate) struct LoopDevice {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    /// Backing file or device; `None` if unknown.
    pub(crate) backing: Option<DeviceIdentity>,
    backing_path: PathBuf,
    offset: u64,
    /// Length in bytes; 0 if the loop device reaches to the end.
    limit: u64,
}

impl LoopDevice {
    /// Returns true if both devices show some of the same bytes of one file.
    pub(crate) fn overlaps(&self, other: &LoopDevice) -> bool {
        let end = |of: &LoopDevice| match of.limit {
            0 => u64::MAX,
            // The two numbers come from the kernel and may reach beyond 64 bits together.
            limit => of.offset.saturating_add(limit),
        };
        self.offset < end(other) && other.offset < end(self)
    }

    fn is_whole(&self) -> bool {
        self.offset == 0 && self.limit == 0
    }
}

/// `struct loop_info64` of `linux/loop.h`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo {
    device: u64,
    inode: u64,
    block_device: u64,
    offset: u64,
    limit: u64,
    number: u32,
    encryption: u32,
    key_bytes: u32,
    flags: u32,
    names: [[u8; 64]; 2],
    key: [u8; 32],
    initial: [u64; 2],
}

/// Returns the layers of the target of `path`, the target itself first.
pub(crate) fn layers_of(identity: DeviceIdentity, path: &Path, loops: &[LoopDevice]) -> Vec<Layer> {
    let mut layers = vec![Layer {
        identity,
        path: path.to_owned(),
        is_whole: true,
        through: None,
    }];
    let mut next = 0;
    while let Some(layer) = layers.get(next).cloned() {
        next += 1;
        for below in below(&layer, loops) {
            let is_known = layers.iter().any(|layer| layer.identity == below.identity);
            // A device may be reached by two ways, for example two partitions of one disk. Each
            // layer is listed once.
            if !is_known && layers.len() < LAYERS_MAX {
                layers.push(below);
            }
        }
    }
    layers
}

/// Returns the layers directly below a layer. A file has none, because the file system protects the
/// bytes of the file.
fn below(layer: &Layer, loops: &[LoopDevice]) -> Vec<Layer> {
    let DeviceIdentity::BlockDevice { number } = layer.identity else {
        return Vec::new();
    };
    if let Some(device) = loops.iter().find(|device| device.number == number) {
        let below = device.backing.map(|identity| Layer {
            identity,
            path: device.backing_path.clone(),
            is_whole: layer.is_whole && device.is_whole(),
            through: Some(number),
        });
        return below.into_iter().collect();
    }
    let Ok(folder) = fs::canonicalize(format!(
        "/sys/dev/block/{}:{}",
        rustix::fs::major(number),
        rustix::fs::minor(number)
    )) else {
        return Vec::new();
    };
    let disk = folder
        .parent()
        .filter(|_| folder.join("partition").exists());
    // Device mapper and md list their members in this folder.
    let members = fs::read_dir(folder.join("slaves")).into_iter().flatten();
    members
        .filter_map(|member| Some(member.ok()?.path()))
        .chain(disk.map(Path::to_owned))
        .filter_map(|folder| part_of(&folder))
        .collect()
}

/// Returns a device of which a part is used.
fn part_of(folder: &Path) -> Option<Layer> {
    let name = fs::canonicalize(folder).ok()?.file_name()?.to_owned();
    Some(Layer {
        identity: DeviceIdentity::BlockDevice {
            number: number_in(&folder.join("dev"))?,
        },
        path: Path::new("/dev").join(name),
        is_whole: false,
        through: None,
    })
}

/// Parses a device number in the form of sysfs: `7:0`.
fn number_in(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(rustix::fs::makedev(
        major.parse().ok()?,
        minor.parse().ok()?,
    ))
}

/// Returns all configured loop devices.
pub(crate) fn loop_devices() -> Vec<LoopDevice> {
    let Ok(devices) = fs::read_dir("/sys/block") else {
        return Vec::new();
    };
    devices
        .filter_map(|device| loop_device(&device.ok()?.path()))
        .collect()
}

fn loop_device(folder: &Path) -> Option<LoopDevice> {
    let read = |name: &str| fs::read_to_string(folder.join("loop").join(name)).ok();
    // An unbound loop device has no `backing_file`. A deleted file has the suffix ` (deleted)`, and
    // the numbers below identify it.
    let backing_path = PathBuf::from(read("backing_file")?.trim_end_matches('\n'));
    let bytes = |name: &str| {
        read(name)
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(0)
    };
    let path = Path::new("/dev").join(folder.file_name()?);
    // The path in sysfs may be deleted, renamed or of another mount namespace. The numbers stay
    // valid.
    let asked = File::open(&path).ok().and_then(|file| ask(&file));
    let backing = asked.map(|info| match decoded(info.block_device) {
        0 => DeviceIdentity::Inode {
            device: decoded(info.device),
            inode: info.inode,
        },
        number => DeviceIdentity::BlockDevice { number },
    });
    Some(LoopDevice {
        number: number_in(&folder.join("dev"))?,
        backing: backing.or_else(|| DeviceIdentity::of(&backing_path).ok()),
        path,
        backing_path,
        offset: bytes("offset"),
        limit: bytes("sizelimit"),
    })
}

/// Asks a loop device for its backing file.
#[expect(unsafe_code, reason = "no crate in use carries LOOP_GET_STATUS64")]
fn ask(device: &File) -> Option<LoopInfo> {
    let mut info = LoopInfo {
        device: 0,
        inode: 0,
        block_device: 0,
        offset: 0,
        limit: 0,
        number: 0,
        encryption: 0,
        key_bytes: 0,
        flags: 0,
        names: [[0; 64]; 2],
        key: [0; 32],
        initial: [0; 2],
    };
    // SAFETY: `LOOP_GET_STATUS64` fills a `loop_info64`, and `LoopInfo` has its layout. The kernel
    // keeps no address of it.
    let asked = unsafe {
        ioctl(
            device,
            Updater::<{ LOOP_GET_STATUS64 as _ }, LoopInfo>::new(&mut info),
        )
    };
    asked.is_ok().then_some(info)
}

/// Converts a device number from the kernel's form (`huge_encode_dev` of `linux/kdev_t.h`) to the
/// form of `stat`.
fn decoded(number: u64) -> u64 {
    let major = (number >> 8) & 0xfff;
    let minor = (number & 0xff) | ((number >> 12) & 0xf_ff00);
    rustix::fs::makedev(major as u32, minor as u32)
}
