//! The node of a host with files as disks of guests (*Pro-active storage systems*, 2012, section
//! 4.2.3). A request of a guest to its disk becomes requests of the host to its file system, with
//! reads and writes of the host's own metadata.

use crate::config::{DiskCache, DiskKeys, FilesConfig, Preallocation};
use crate::kernel::{PAGE_SECTORS, VfsKernel};
use crate::laying::lay_out;
use crate::places::FilePlaces;
use crate::task::{GuestRequest, Task, ThreadOwner};
use fullstroke_contract::{
    Completion, ConfigError, Counters, DatasetStart, Effects, Extent, Gauge, Hints, LayerReadings,
    Node, NodeContext, Notice, Object, Operation, Port, Request, RequestStatus, Signal, Wake,
};
use fullstroke_files::{
    Caller, FileError, FileSystemSite, InodeChange, MetaAccesses, PageMapping, path,
};
use fullstroke_memory::{FileAccess, FileId, PAGE_BYTES, PageCache, PageRun};
use fullstroke_programs::InitialFile;
use fullstroke_units::{Bytes, Lbn, SECTOR_BYTES, Sectors, Time};

/// A guest's disk, before its file exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestDisk {
    /// Name of the guest; the file has the same name.
    pub name: String,
    /// First address in the space of all disks.
    pub start: Lbn,
    /// Number of sectors.
    pub sectors: Sectors,
}

/// Parameters for the files of disks.
pub struct Backing<'a> {
    /// The file system.
    pub files: &'a FilesConfig,
    /// Keys for disks in files.
    pub keys: &'a DiskKeys,
    /// The page cache; must be empty.
    pub cache: PageCache,
    /// Place of the file system.
    pub site: FileSystemSite,
    /// True to age the file system by its keys and to allocate the pages of files. A file system
    /// for a mere check of the configuration needs neither.
    pub aged: bool,
}

/// Guests' disks that are files of a host. The upper port has the addresses of all disks one after
/// another; the lower port is the device of the file system.
///
/// - **Events in**: `submit`, `completed`, `noticed`, `wake`.
/// - **Effects out**: `issue` to the only member, `complete`, and notices to the owner of an
///   address.
///
/// A read or write bypasses the page cache or uses it, as the keys say. A write with FUA ends when
/// the file is durable. A flush is an fsync of the file. Discarded sectors stay allocated. The next
/// flush of a disk reports its failed write-backs.
pub struct FileBacked {
    kernel: VfsKernel,
    disks: Vec<OpenDisk>,
    buffered: bool,
    /// Places of the files on the device.
    places: FilePlaces,
    /// True if files may have new pages or new places since `places` was built.
    grown: bool,
    /// True if files can get new pages during the run.
    grows: bool,
    /// Number of requests in flight.
    held: u32,
    idle_since: Time,
}

#[derive(Clone, Copy, Debug)]
struct OpenDisk {
    start: Lbn,
    sectors: Sectors,
    object: Object,
    file: FileId,
    /// Number of write-back failures reported to the guest.
    told: u64,
}

impl FileBacked {
    /// Returns a new file system with a file for each of `disks`. `disks` must be in ascending
    /// order.
    ///
    /// # Errors
    /// A device without enough space for the file system, at the key, or for the disks, at ``.
    pub fn new(disks: Vec<GuestDisk>, backing: Backing<'_>) -> Result<FileBacked, ConfigError> {
        let Backing {
            files,
            keys,
            cache,
            site,
            aged,
        } = backing;
        let mut fs = files.build(&site, aged)?;
        let not_made =
            |error: FileError| ConfigError::new("", format!("disks that are files: {error}"));
        let full = keys.preallocation == Preallocation::Full;
        let pages: u64 = disks
            .iter()
            .map(|disk| disk.sectors.0.div_ceil(PAGE_SECTORS))
            .sum();
        let free = fs.usage().pages_free;
        // A build for a check does not allocate the pages, so that the space is checked separately.
        if full && pages > free {
            return Err(not_made(FileError::NoSpace {
                needed: pages,
                free,
            }));
        }
        let laid = |disk: &GuestDisk| {
            let bytes = if full && aged {
                disk.sectors.bytes()
            } else {
                Bytes(0)
            };
            InitialFile {
                path: file_of(&disk.name),
                bytes: Some(bytes),
                unwritten: false,
            }
        };
        lay_out(&mut *fs, &disks.iter().map(laid).collect::<Vec<_>>()).map_err(not_made)?;
        let mut kernel = VfsKernel::new(fs, cache, &site, files.settings());
        let mut open = Vec::new();
        for GuestDisk {
            name,
            start,
            sectors,
        } in disks
        {
            let mut touches = MetaAccesses::new();
            let caller = Caller::default();
            let fs = &mut *kernel.fs;
            let object = path::find(fs, caller, &file_of(&name), &mut touches).map_err(not_made)?;
            // A file without preallocation still has the length of its disk.
            if fs.attributes(object).map_err(not_made)?.bytes < sectors.bytes() {
                fs.truncate(caller, object, sectors.bytes(), &mut touches)
                    .map_err(not_made)?;
            }
            let file = kernel.cache.open(object);
            open.push(OpenDisk {
                start,
                sectors,
                object,
                file,
                told: 0,
            });
        }
        Ok(FileBacked {
            kernel,
            disks: open,
            // The pool below has the memory.
            buffered: keys.cache == DiskCache::Writeback && !files.lies_in_pool(),
            places: FilePlaces::default(),
            grown: true,
            grows: !full,
            held: 0,
            idle_since: Time::ZERO,
        })
    }

    /// Returns the objects, for a pool below.
    pub fn dataset(&self) -> DatasetStart {
        crate::dataset::at_start(&*self.kernel.fs, self.grows)
    }

    /// Returns the disk that contains an extent, and its number. A request for a whole disk begins
    /// at the start of the disk.
    fn disk_of(&self, extent: Extent) -> Option<(usize, OpenDisk)> {
        let behind = self
            .disks
            .partition_point(|disk| disk.start <= extent.start);
        let number = behind.checked_sub(1)?;
        let disk = self.disks[number];
        let within =
            Extent::new(extent.start.0 - disk.start.0, extent.sectors.0).within(disk.sectors);
        within.then_some((number, disk))
    }

    /// Begins the steps of a request.
    fn begin(&mut self, now: Time, thread: u32, disk: OpenDisk, request: &Request) {
        let Request {
            operation,
            extent,
            hints,
            ..
        } = *request;
        let object = disk.object;
        let offset = (extent.start.0 - disk.start.0) * SECTOR_BYTES;
        let bytes = extent.sectors.bytes().0;
        let durable = match self.kernel.above_pool {
            // The intent log commits the writes of this file (`zil_commit`).
            true => [Task::Settle, Task::FlushFile(object)],
            false => [
                Task::SyncObject(object),
                Task::Durable(object, InodeChange::Any),
            ],
        };
        match operation {
            Operation::Read => {
                let steps = self.transfer(disk, (offset, bytes), &request.hints, false);
                self.kernel.threads[thread].tasks.extend(steps);
            }
            Operation::Write => {
                let caller = self.kernel.caller(now, thread);
                let VfsKernel { fs, answers, .. } = &mut self.kernel;
                let placed = fs.write(
                    caller,
                    object,
                    Bytes(offset),
                    Bytes(bytes),
                    &mut answers.touches,
                );
                self.kernel.follow_touches(thread);
                if let Err(error) = placed {
                    self.kernel.threads[thread].result = Err(error.into());
                    return;
                }
                self.grown |= self.grows;
                self.kernel.writers.insert(object, hints.workload);
                let steps = self.transfer(disk, (offset, bytes), &request.hints, true);
                let tasks = &mut self.kernel.threads[thread].tasks;
                tasks.extend(steps);
                if hints.force_unit_access {
                    tasks.extend(durable);
                }
            }
            Operation::Flush => self.kernel.threads[thread].tasks.extend(durable),
            // A file keeps its allocation. A guest cannot stop platters. The operation `Answer`
            // concerns data that hosts share, and here each guest has its own disk.
            Operation::Discard | Operation::Standby | Operation::Start | Operation::Answer => {}
        }
    }

    /// Returns the steps of a transfer. All transfers of a file take the same path, because mixed
    /// paths could share pages. Data for a PULL is written down at once.
    fn transfer(
        &self,
        disk: OpenDisk,
        (offset, bytes): (u64, u64),
        hints: &Hints,
        write: bool,
    ) -> impl Iterator<Item = Task> + use<> {
        let OpenDisk {
            object,
            file,
            sectors,
            ..
        } = disk;
        let access = FileAccess::new(offset, bytes, sectors.bytes().0);
        let first = offset / PAGE_BYTES;
        let run = PageRun::new(object, first, (offset + bytes).div_ceil(PAGE_BYTES) - first);
        let steps = match (self.buffered, write) {
            (true, false) => [Some(Task::Read(file, access)), None],
            (true, true) => {
                // The storage below asked for these data, so that they must not wait for the next
                // write-back of this cache.
                let goes_on = hints.pulled.then_some(Task::PassCache { run, drop: false });
                [Some(Task::Write(file, access)), goes_on]
            }
            (false, _) => [
                Some(Task::Direct {
                    object,
                    offset,
                    bytes,
                    write,
                }),
                None,
            ],
        };
        steps.into_iter().flatten()
    }

    /// Carries out all possible steps. `last` is the completion from below that caused the call, if
    /// any.
    fn advance(&mut self, now: Time, last: Option<&Completion>, out: &mut Effects) {
        loop {
            self.kernel.carry_out(now, out);
            let Some(thread) = self.kernel.threads.next_ended() else {
                return;
            };
            self.end(now, thread, last, out);
        }
    }

    fn end(&mut self, now: Time, thread: u32, last: Option<&Completion>, out: &mut Effects) {
        let ThreadOwner::Guest(GuestRequest { request, submitted }) =
            self.kernel.threads[thread].owner
        else {
            return;
        };
        let result = std::mem::replace(&mut self.kernel.threads[thread].result, Ok(0));
        self.kernel.threads.remove(thread);
        let mut status = if result.is_ok() {
            RequestStatus::Done
        } else {
            RequestStatus::Lost
        };
        let flush = request.operation == Operation::Flush;
        let forced = request.operation == Operation::Write && request.hints.force_unit_access;
        if let Some((number, disk)) = self.disk_of(request.extent)
            && (flush || forced)
        {
            let (failures, _) = self.kernel.cache.failures(disk.object);
            if disk.told < failures {
                status = RequestStatus::Lost;
            }
            // A forced write does not report failures of other writes; the flush does.
            if flush {
                self.disks[number].told = failures;
            }
        }
        self.held -= 1;
        if self.held == 0 {
            self.idle_since = now;
        }
        let done = Completion {
            status,
            ..Completion::ready(submitted, now, last)
        };
        out.complete(done.held_since(submitted, request.id));
    }

    /// Updates the places of files, if they may have changed.
    fn note_places(&mut self) {
        if !std::mem::take(&mut self.grown) {
            return;
        }
        self.places.clear();
        let mut pieces: Vec<PageMapping> = Vec::new();
        for disk in &self.disks {
            pieces.clear();
            // Files are never removed.
            if self.kernel.fs.extents(disk.object, &mut pieces).is_ok() {
                self.places.add(disk.start.0, disk.sectors.0, &pieces);
            }
        }
        self.places.sort();
        // Delayed pages get their place later.
        self.grown = self.grows;
    }
}

/// Returns the path of a disk's file.
fn file_of(name: &str) -> String {
    format!("{name}.img")
}

impl Node for FileBacked {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        let empty = request.extent.sectors == Sectors::ZERO && !request.operation.is_of_all();
        let Some((_, disk)) = self.disk_of(request.extent).filter(|_| !empty) else {
            return cx.out.complete(Completion::at_once(
                request.id,
                now,
                RequestStatus::OutOfRange,
            ));
        };
        let thread = self.kernel.threads.add(ThreadOwner::Guest(GuestRequest {
            request,
            submitted: now,
        }));
        self.held += 1;
        self.begin(now, thread, disk, &request);
        self.kernel.threads.make_ready(thread);
        self.advance(now, None, cx.out);
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        self.kernel
            .completed(now, completion.id.0 as u32, completion.status);
        self.advance(now, Some(&completion), cx.out);
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.kernel.commit_if_due(now);
        self.kernel.cache.wake(now, self.kernel.todo.list());
        self.advance(now, None, cx.out);
    }

    /// Handles PULL first and then passes it on to the layer above. A PULL with addresses is passed
    /// on whole, because the layer above may have newer data. For a PULL without addresses, only
    /// the remaining number of sectors is passed on. All other notices are passed on.
    fn noticed(&mut self, now: Time, from: Port, notice: Notice, cx: &mut NodeContext<'_>) {
        let signal = match notice.signal {
            Signal::Pull { extent, sectors } => {
                let begun = self.kernel.pull(now, extent, sectors);
                self.advance(now, None, cx.out);
                // Any dirty pages serve a PULL without an extent, so the guests are asked only for
                // the rest. With an extent, the caches of guests may have newer data of these
                // sectors.
                match extent {
                    Some(_) => notice.signal,
                    None => Signal::Pull {
                        extent,
                        sectors: Sectors(sectors.0.saturating_sub(begun.0)),
                    },
                }
            }
            Signal::CleaningBegan | Signal::CleaningEnded => {
                let begun = notice.signal == Signal::CleaningBegan;
                self.kernel.cache.note_cleaning(begun);
                notice.signal
            }
            other => other,
        };
        if !matches!(
            signal,
            Signal::Pull {
                sectors: Sectors::ZERO,
                ..
            }
        ) {
            self.note_places();
            self.pass_on(from, Notice { signal, ..notice }, cx.out);
        }
    }

    fn owners(&self, _: Port, extent: Extent, owner: &mut dyn FnMut(Port, Extent)) {
        self.places.above(extent, |above| owner(Port::FIRST, above));
    }

    /// The regular work of write-back and the journal never ends, and must not keep a run alive. A
    /// waiting guest does.
    fn next_wake(&self) -> Wake {
        let at = self.kernel.cache.next_wake().min(self.kernel.next_commit());
        if self.held == 0 {
            Wake::Chore(at)
        } else {
            Wake::Work(at)
        }
    }

    fn gauge(&self) -> Gauge {
        let held = self.held;
        Gauge {
            queue_length: held,
            idle_since: (held == 0).then_some(self.idle_since),
            ..Gauge::default()
        }
    }

    fn count(&self, _: Time, counters: &mut Counters) {
        counters.layers.push(self.kernel.cache.readings());
        let traffic = self.kernel.accounts.traffic();
        let readings = [
            ("files_data_requests", traffic.data),
            ("files_metadata_reads", traffic.metadata_reads),
            ("files_metadata_writes", traffic.metadata_writes),
            ("files_log_writes", traffic.log_writes),
            ("files_flushes", traffic.flushes),
        ];
        let readings = readings.map(|(name, count)| (name, count as f64));
        counters
            .layers
            .push(LayerReadings::new("files of guests' disks", &readings));
    }
}
