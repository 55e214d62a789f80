//! The journal: changes are written here in advance.
//!
//! A change of a row of a parity layout writes several members. Power may fail in between, and one
//! member may be missing afterwards. Its data in the row is then computed from new and old bytes,
//! and is wrong even where nothing was written (the "write hole"). So all bytes of a row's change
//! go to the journals of the members with the row's parity, and are made durable, before the first
//! is written to its place. If such a member is lost, the row has its data. If another member is
//! lost, the journal is there, and the change is repeated.
//!
//! A journal is a ring of consecutive records:
//!
//! | bytes | content |
//! |---|---|
//! | 0..4 | `fsjr` |
//! | 4..8 | CRC-32 of the array's identifier and all that follows |
//! | 8..16 | the array's events when it was assembled |
//! | 16..24 | number in this journal, counted from 1 since then |
//! | 24..32 | number of the change, the same in all journals that have it |
//! | 32..40 | place of this record in the ring |
//! | 40..48 | length of the record |
//! | 48..52 | number of runs |
//! | 56.. | the runs: slot and kind (4), sectors (4), first sector of the member (8) |
//! | from the next 4 KiB | the bytes of the runs that have any, in order |
//!
//! The highest bit of a slot marks a run of zeros, the next bit a hole.
//!
//! Two markers precede the ring, and are written in turn. A marker names the last record whose
//! changes are durable on the members, and the place of the next record. A marker counts only after
//! a flush.

use crate::device::{ALIGNMENT_BYTES, Aligned};
use crate::uuid::Uuid;
use crate::{ArrayError, Device};
use fullstroke_units::SECTOR_BYTES;
use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

const MAGIC: [u8; 4] = *b"fsjr";
const MARKER_MAGIC: [u8; 4] = *b"fsjm";
const MARKER_BYTES: usize = 48;
const HEADER_BYTES: u64 = 56;
const RUN_BYTES: u64 = 16;
/// Size of the two markers, each in a block of its own.
const MARKERS_BYTES: u64 = 2 * ALIGNMENT_BYTES;

/// A run of sectors of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangeRun {
    pub(crate) slot: u32,
    pub(crate) sectors: u32,
    pub(crate) lbn: u64,
    pub(crate) kind: ChangedContent,
}

/// Content of a run after the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangedContent {
    /// The run holds the next bytes of the change.
    Written,
    /// The run holds zeros, and takes no room if `hole` is set.
    Zeros { hole: bool },
}

const ZEROS: u32 = 1 << 31;
const HOLE: u32 = 1 << 30;

impl ChangeRun {
    /// Returns the number of bytes of the run in the record.
    pub(crate) fn bytes(&self) -> u64 {
        match self.kind {
            ChangedContent::Written => u64::from(self.sectors) * SECTOR_BYTES,
            ChangedContent::Zeros { .. } => 0,
        }
    }

    fn slot_and_kind(&self) -> u32 {
        assert!(self.slot < HOLE, "slot {} reaches into the kind", self.slot);
        match self.kind {
            ChangedContent::Written => self.slot,
            ChangedContent::Zeros { hole } => self.slot | ZEROS | if hole { HOLE } else { 0 },
        }
    }

    fn kind_of(slot: u32) -> ChangedContent {
        if slot & ZEROS == 0 {
            ChangedContent::Written
        } else {
            ChangedContent::Zeros {
                hole: slot & HOLE != 0,
            }
        }
    }
}

/// A change in the form of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Number of the change; orders changes of one row.
    pub(crate) id: u64,
    pub(crate) runs: Vec<ChangeRun>,
    pub(crate) bytes: Vec<u8>,
}

/// The journal of one member.
#[derive(Debug)]
pub(crate) struct MemberJournal {
    array: Uuid,
    /// First byte of the journal on the member.
    at: u64,
    /// Length of the ring.
    ring: u64,
    state: Mutex<JournalState>,
}

#[derive(Debug, Default)]
struct JournalState {
    epoch: u64,
    /// Place of the next record, if there is room.
    head: u64,
    last: u64,
    /// Records whose room is not free yet, oldest first.
    live: VecDeque<Live>,
    /// Number in the latest marker.
    marked: u64,
    /// Index of the older marker.
    older: u64,
    /// Highest number whose marker is durable.
    durable: u64,
}

#[derive(Clone, Copy, Debug)]
struct Live {
    number: u64,
    start: u64,
    end: u64,
    row: u64,
    applied: bool,
}

/// State of a journal before a flush, for [`MemberJournal::after_flush`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BeforeFlush {
    /// Epoch of the journal. Numbers of another epoch say nothing about its records.
    epoch: u64,
    /// Number up to which all changes have been made.
    pub(crate) applied: u64,
    /// Number in the latest marker.
    pub(crate) marked: u64,
}

/// The journal has no room; a flush frees some.
#[derive(Debug)]
pub(crate) struct JournalFull;

impl MemberJournal {
    /// Returns the journal at the byte `at` of a member, of a length of `bytes`.
    pub(crate) fn new(array: Uuid, at: u64, bytes: u64) -> MemberJournal {
        MemberJournal {
            array,
            at,
            // An array without parity has a journal of length 0, and no ring.
            ring: bytes.saturating_sub(MARKERS_BYTES),
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, JournalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the length of a record.
    pub(crate) fn room(runs: usize, bytes: u64) -> u64 {
        header_bytes(runs as u64) + bytes.next_multiple_of(ALIGNMENT_BYTES)
    }

    /// True if a record of this length fits into the empty ring.
    pub(crate) fn fits(&self, room: u64) -> bool {
        room <= self.ring
    }

    /// Writes a change of `row` behind all other records. The record is durable after a flush of
    /// the device. Returns the number of the record.
    pub(crate) fn append(
        &self,
        device: &dyn Device,
        row: u64,
        change: &Change,
        buffer: &mut Aligned,
    ) -> Result<io::Result<u64>, JournalFull> {
        let room = MemberJournal::room(change.runs.len(), change.bytes.len() as u64);
        debug_assert_eq!(
            change.runs.iter().map(ChangeRun::bytes).sum::<u64>(),
            change.bytes.len() as u64,
            "the runs of change {} do not describe its bytes",
            change.id
        );
        let mut state = self.lock();
        assert!(
            state.epoch > 0,
            "a record is written before the journal begins"
        );
        let start = state.place(room, self.ring).ok_or(JournalFull)?;
        assert!(
            start + room <= self.ring && start.is_multiple_of(ALIGNMENT_BYTES),
            "a record of {room} bytes at {start} is no part of a ring of {} bytes",
            self.ring
        );
        let number = state.last + 1;
        let bytes = buffer.of(room as usize);
        encode(&self.array, state.epoch, number, start, change, bytes);
        // The lock is held during the write, so records reach the device in order. A reader stops
        // at the first missing record.
        if let Err(error) = device.write(self.at + MARKERS_BYTES + start, bytes) {
            return Ok(Err(error));
        }
        // Counted only after the write, so that a failed record leaves no gap in the numbers.
        state.last = number;
        state.head = start + room;
        debug_assert!(
            state
                .live
                .iter()
                .all(|live| live.end <= start || start + room <= live.start),
            "record {number} lies on a record whose room is not free"
        );
        state.live.push_back(Live {
            number,
            start,
            end: start + room,
            row,
            applied: false,
        });
        Ok(Ok(number))
    }

    /// Notes that a change has been made on all members.
    pub(crate) fn applied(&self, number: u64) {
        let mut state = self.lock();
        if let Some(live) = state.live.iter_mut().find(|live| live.number == number) {
            live.applied = true;
        }
    }

    /// Returns the present state. The caller calls this before a flush.
    pub(crate) fn before_flush(&self) -> BeforeFlush {
        let state = self.lock();
        let unapplied = state.live.iter().find(|live| !live.applied);
        let before = BeforeFlush {
            epoch: state.epoch,
            applied: unapplied.map_or(state.last, |live| live.number - 1),
            marked: state.marked,
        };
        assert!(
            before.marked <= before.applied,
            "{before:?}: a marker covers a change that was not made"
        );
        before
    }

    /// Notes a flush of all members since [`before_flush`](MemberJournal::before_flush) returned
    /// `before`. Returns the rows of the finally given-up records, and the result of writing the
    /// next marker. The rows are given up even if the marker fails. A journal that has begun anew
    /// since keeps all its records: the flush may not cover their changes.
    pub(crate) fn after_flush(
        &self,
        device: &dyn Device,
        before: BeforeFlush,
    ) -> (Vec<u64>, io::Result<()>) {
        let mut state = self.lock();
        let mut rows = Vec::new();
        if before.epoch != state.epoch {
            return (rows, Ok(()));
        }
        state.durable = state.durable.max(before.marked);
        let mut next = None;
        // Room is free only when the marker behind it is durable. Otherwise a loss of power could
        // bring back the older marker, and a reader would begin in overwritten records. jbd2 has
        // the same rule (`__jbd2_update_log_tail`).
        while let Some(live) = state
            .live
            .front()
            .copied()
            .filter(|live| live.number <= state.durable)
        {
            rows.push(live.row);
            state.live.pop_front();
        }
        for live in state
            .live
            .iter()
            .take_while(|live| live.number <= before.applied)
        {
            next = Some((live.number, live.end));
        }
        // A marker that says nothing new would only cost a write.
        let marked = match next.filter(|&(number, _)| number > state.marked) {
            Some((number, end)) => self.mark(&mut state, device, number, end),
            None => Ok(()),
        };
        (rows, marked)
    }

    /// True if the journal has no records, except finally given-up ones.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().live.is_empty()
    }

    /// Drops all records, because the member is gone. Returns their rows.
    pub(crate) fn abandon(&self) -> Vec<u64> {
        self.lock().live.drain(..).map(|live| live.row).collect()
    }

    /// Begins an empty journal, with a higher epoch than any before. The caller flushes the device
    /// before the first record.
    pub(crate) fn restart(&self, device: &dyn Device) -> io::Result<()> {
        let found = newest_marker(&self.markers(device)?);
        let epoch = found.map_or(0, |(_, marker)| marker.epoch);
        // Higher than any epoch on the device. Otherwise records of the former journal would
        // continue the new one.
        let epoch = self.lock().epoch.max(epoch) + 1;
        self.start(device, epoch)
    }

    /// True if the device has the journal of this array.
    pub(crate) fn has_begun(&self, device: &dyn Device) -> bool {
        let markers = self.markers(device).unwrap_or_default();
        newest_marker(&markers).is_some()
    }

    /// Begins an empty journal for an array with this count of events. The caller flushes the
    /// device before the first record.
    pub(crate) fn start(&self, device: &dyn Device, epoch: u64) -> io::Result<()> {
        let mut state = self.lock();
        *state = JournalState {
            epoch,
            ..JournalState::default()
        };
        let newest = newest_marker(&self.markers(device).unwrap_or_default());
        // The older marker is overwritten, so that the newer one stays if power fails during the
        // write.
        state.older = newest.map_or(0, |(index, _)| 1 - index);
        self.mark(&mut state, device, 0, 0)
    }

    fn mark(
        &self,
        state: &mut JournalState,
        device: &dyn Device,
        number: u64,
        position: u64,
    ) -> io::Result<()> {
        let mut buffer = Aligned::default();
        let bytes = buffer.of(ALIGNMENT_BYTES as usize);
        bytes.fill(0);
        let marker = Marker {
            epoch: state.epoch,
            number,
            position,
        };
        bytes[..MARKER_BYTES].copy_from_slice(&marker.encode(&self.array));
        assert!(
            number >= state.marked && number <= state.last && position <= self.ring,
            "a marker of record {number}, at {position}, does not follow the marker of record {}",
            state.marked
        );
        device.write(self.at + state.older * ALIGNMENT_BYTES, bytes)?;
        state.older = 1 - state.older;
        state.marked = number;
        Ok(())
    }

    fn markers(&self, device: &dyn Device) -> io::Result<[Option<Marker>; 2]> {
        let mut buffer = Aligned::default();
        let bytes = buffer.of(MARKERS_BYTES as usize);
        device.read(self.at, bytes)?;
        let marker = |at: usize| Marker::decode(&self.array, &bytes[at..at + MARKER_BYTES]);
        Ok([marker(0), marker(ALIGNMENT_BYTES as usize)])
    }

    /// Reads the changes that may not have been made, oldest first.
    ///
    /// # Errors
    /// The device's.
    pub(crate) fn read(&self, device: &dyn Device) -> Result<Vec<Change>, ArrayError> {
        let failed = |error| ArrayError::device(device.name(), "read the journal of", error);
        let markers = self.markers(device).map_err(failed)?;
        let Some((_, marker)) = newest_marker(&markers) else {
            return Ok(Vec::new());
        };
        let mut buffer = Aligned::default();
        let ring = buffer.of(self.ring as usize);
        device.read(self.at + MARKERS_BYTES, ring).map_err(failed)?;
        let mut changes = Vec::new();
        let (mut number, mut position) = (marker.number, marker.position);
        loop {
            let next = |at: u64| decode(&self.array, marker.epoch, number + 1, at, ring);
            // A record without room at the end of the ring is at its start (`JournalState::place`).
            let Some((change, end)) = next(position).or_else(|| next(0)) else {
                break;
            };
            changes.push(change);
            (number, position) = (number + 1, end);
        }
        Ok(changes)
    }
}

impl JournalState {
    /// Returns the place of a record of this length; `None` if there is no free room.
    fn place(&self, room: u64, ring: u64) -> Option<u64> {
        let Some(oldest) = self.live.front() else {
            // The latest marker points to `head`, and a reader continues from there. So the next
            // record goes to `head` or, if it is too long, to the start of the ring, where a reader
            // looks next.
            return if self.head + room <= ring {
                Some(self.head)
            } else {
                (room <= ring).then_some(0)
            };
        };
        // The free room is at the end of the ring, and before the oldest record.
        if self.head > oldest.start {
            let fits = self.head + room <= ring;
            return if fits {
                Some(self.head)
            } else {
                (room <= oldest.start).then_some(0)
            };
        }
        // A head at the oldest record means that the ring is full.
        (self.head + room <= oldest.start).then_some(self.head)
    }
}

/// The last record whose changes are durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Marker {
    epoch: u64,
    number: u64,
    position: u64,
}

impl Marker {
    fn encode(&self, array: &Uuid) -> [u8; MARKER_BYTES] {
        let mut bytes = [0; MARKER_BYTES];
        bytes[..4].copy_from_slice(&MARKER_MAGIC);
        for (at, number) in [(8, self.epoch), (16, self.number), (24, self.position)] {
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        let sum = check_sum(array, &bytes[8..]);
        bytes[4..8].copy_from_slice(&sum);
        bytes
    }

    fn decode(array: &Uuid, bytes: &[u8]) -> Option<Marker> {
        let marker = Marker {
            epoch: u64_at(bytes, 8)?,
            number: u64_at(bytes, 16)?,
            position: u64_at(bytes, 24)?,
        };
        (marker.encode(array)[..] == *bytes).then_some(marker)
    }
}

fn newest_marker(markers: &[Option<Marker>; 2]) -> Option<(u64, Marker)> {
    let marker = |index: usize| Some((index as u64, markers[index]?));
    let all = marker(0).into_iter().chain(marker(1));
    all.max_by_key(|(_, marker)| (marker.epoch, marker.number))
}

fn header_bytes(runs: u64) -> u64 {
    (HEADER_BYTES + runs * RUN_BYTES).next_multiple_of(ALIGNMENT_BYTES)
}

fn check_sum(array: &Uuid, bytes: &[u8]) -> [u8; 4] {
    // With the array's identifier in the sum, a record of another array in the same place is none.
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(array.bytes());
    hasher.update(bytes);
    hasher.finalize().to_le_bytes()
}

fn encode(array: &Uuid, epoch: u64, number: u64, position: u64, change: &Change, bytes: &mut [u8]) {
    let header = header_bytes(change.runs.len() as u64) as usize;
    let length = bytes.len() as u64;
    bytes[..header].fill(0);
    bytes[..4].copy_from_slice(&MAGIC);
    for (at, value) in [
        (8, epoch),
        (16, number),
        (24, change.id),
        (32, position),
        (40, length),
    ] {
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    bytes[48..52].copy_from_slice(&(change.runs.len() as u32).to_le_bytes());
    for (run, into) in change
        .runs
        .iter()
        .zip(bytes[HEADER_BYTES as usize..].chunks_exact_mut(16))
    {
        into[..4].copy_from_slice(&run.slot_and_kind().to_le_bytes());
        into[4..8].copy_from_slice(&run.sectors.to_le_bytes());
        into[8..].copy_from_slice(&run.lbn.to_le_bytes());
    }
    bytes[header..][..change.bytes.len()].copy_from_slice(&change.bytes);
    bytes[header + change.bytes.len()..].fill(0);
    let sum = check_sum(array, &bytes[8..]);
    bytes[4..8].copy_from_slice(&sum);
}

/// Decodes the record with this number at `at` of the ring. Returns the change and the end of the
/// record.
fn decode(array: &Uuid, epoch: u64, number: u64, at: u64, ring: &[u8]) -> Option<(Change, u64)> {
    let bytes = ring.get(at as usize..)?;
    // The place is part of the record, so a record of an earlier round of the ring does not count.
    let expected = [(8, epoch), (16, number), (32, at)];
    let is_expected = expected
        .iter()
        .all(|&(place, value)| u64_at(bytes, place) == Some(value));
    if bytes.get(..4)? != MAGIC || !is_expected {
        return None;
    }
    let bytes = bytes.get(..usize::try_from(u64_at(bytes, 40)?).ok()?)?;
    if bytes.len() < HEADER_BYTES as usize || check_sum(array, &bytes[8..]) != bytes[4..8] {
        return None;
    }
    let count = u64::from(u32::from_le_bytes(bytes[48..52].try_into().ok()?));
    let payload = bytes.get(header_bytes(count) as usize..)?;
    let run = |run: &[u8]| {
        let slot = u32::from_le_bytes(run[..4].try_into().ok()?);
        Some(ChangeRun {
            slot: slot & !(ZEROS | HOLE),
            kind: ChangeRun::kind_of(slot),
            sectors: u32::from_le_bytes(run[4..8].try_into().ok()?),
            lbn: u64_at(run, 8)?,
        })
    };
    let runs = bytes[HEADER_BYTES as usize..]
        .chunks_exact(16)
        .take(count as usize)
        .map(run);
    let runs = runs.collect::<Option<Vec<ChangeRun>>>()?;
    let length: u64 = runs.iter().map(ChangeRun::bytes).sum();
    let payload = payload.get(..usize::try_from(length).ok()?)?;
    Some((
        Change {
            id: u64_at(bytes, 24)?,
            runs,
            bytes: payload.to_vec(),
        },
        at + bytes.len() as u64,
    ))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power::{SplitMix, simulated};

    const ARRAY: Uuid = Uuid::from_bytes([3; 16]);

    fn change(id: u64, sectors: u32) -> Change {
        let runs = vec![
            ChangeRun {
                slot: 2,
                sectors,
                lbn: 17 * id,
                kind: ChangedContent::Written,
            },
            ChangeRun {
                slot: 3,
                sectors: 1 << 30,
                lbn: 5,
                kind: ChangedContent::Zeros {
                    hole: id.is_multiple_of(2),
                },
            },
            ChangeRun {
                slot: 0,
                sectors: 1,
                lbn: 1 << 40,
                kind: ChangedContent::Written,
            },
        ];
        let bytes = (0..(sectors as usize + 1) * 512)
            .map(|at| (at as u64 * id) as u8)
            .collect();
        Change { id, runs, bytes }
    }

    fn log() -> (MemberJournal, std::sync::Arc<crate::power::Simulated>) {
        let (devices, _) = simulated(1, 1 << 20);
        let log = MemberJournal::new(ARRAY, 4096, 64 << 10);
        log.start(&*devices[0], 5).unwrap();
        devices[0].flush().unwrap();
        (log, std::sync::Arc::clone(&devices[0]))
    }

    fn ids(log: &MemberJournal, device: &dyn Device) -> Vec<u64> {
        log.read(device)
            .unwrap()
            .iter()
            .map(|change| change.id)
            .collect()
    }

    #[test]
    fn records_are_read_as_they_were_written_and_given_up_behind_two_flushes() {
        let (log, device) = log();
        let mut buffer = Aligned::default();
        for id in 1..=3 {
            let number = log
                .append(&*device, id, &change(id, 3), &mut buffer)
                .unwrap()
                .unwrap();
            assert_eq!(number, id);
        }
        assert_eq!(
            log.read(&*device).unwrap(),
            [change(1, 3), change(2, 3), change(3, 3)]
        );
        log.applied(1);
        log.applied(3);
        for expected in [vec![], vec![1]] {
            let before = log.before_flush();
            assert_eq!(
                before.applied, 1,
                "the second is not made, so that the third is not given up either"
            );
            device.flush().unwrap();
            let (rows, marked) = log.after_flush(&*device, before);
            marked.unwrap();
            assert_eq!(rows, expected);
        }
        assert_eq!(ids(&log, &*device), [2, 3]);
    }

    #[test]
    fn a_ring_that_wraps_has_what_was_not_given_up_after_any_loss_of_power() {
        for seed in 0..40 {
            let (log, device) = log();
            let mut random = SplitMix(seed);
            let mut buffer = Aligned::default();
            let (mut durable, mut given_up, mut last) = (0, 0, 0);
            for id in 1..200u64 {
                let sectors = 1 + random.below(20) as u32;
                while let Err(JournalFull) = log
                    .append(&*device, id, &change(id, sectors), &mut buffer)
                    .map(Result::unwrap)
                {
                    let before = log.before_flush();
                    device.flush().unwrap();
                    given_up = before.applied;
                    log.after_flush(&*device, before).1.unwrap();
                    durable = last;
                }
                last = id;
                log.applied(id);
            }
            device.lose_power(&mut random, 50);
            let found = ids(&log, &*device);
            assert!(found.windows(2).all(|pair| pair[1] == pair[0] + 1));
            match (found.first(), found.last()) {
                (Some(&first), Some(&last)) => {
                    assert!(first <= given_up + 1 && last >= durable, "seed {seed}")
                }
                _ => assert!(
                    durable <= given_up,
                    "seed {seed}: {durable} is durable, and not given up"
                ),
            }
        }
    }

    #[test]
    fn a_journal_that_restarts_has_nothing_whatever_power_leaves_of_the_records_before() {
        for seed in 0..40 {
            let (log, device) = log();
            let mut random = SplitMix(seed);
            let mut buffer = Aligned::default();
            for round in 0..4 {
                for id in 0..3 {
                    log.append(&*device, id, &change(10 * round + id, 3), &mut buffer)
                        .unwrap()
                        .unwrap();
                }
                device.flush().unwrap();
                log.restart(&*device).unwrap();
                device.flush().unwrap();
                log.append(&*device, 9, &change(10 * round + 9, 3), &mut buffer)
                    .unwrap()
                    .unwrap();
                if random.below(2) == 0 {
                    device.flush().unwrap();
                    assert_eq!(ids(&log, &*device), [10 * round + 9]);
                }
                device.lose_power(&mut random, 50);
                let found = ids(&log, &*device);
                assert!(found.is_empty() || found == [10 * round + 9], "{found:?}");
                // Another process begins where the first ended.
                let log = MemberJournal::new(ARRAY, 4096, 64 << 10);
                assert!(log.has_begun(&*device));
                log.restart(&*device).unwrap();
                device.flush().unwrap();
                assert!(ids(&log, &*device).is_empty());
            }
        }
    }

    /// A member may be replaced, and a journal begin anew, while another thread flushes.
    #[test]
    fn a_flush_from_before_a_restart_gives_up_no_record_from_after_it() {
        let (log, device) = log();
        let mut buffer = Aligned::default();
        let mut append = |id| {
            let number = log.append(&*device, id, &change(id, 3), &mut buffer);
            number.unwrap().unwrap()
        };
        for id in 1..=3 {
            let number = append(id);
            log.applied(number);
        }
        let before = log.before_flush();
        log.after_flush(&*device, before).1.unwrap();
        let before = log.before_flush();
        log.restart(&*device).unwrap();
        append(11);
        append(12);
        device.flush().unwrap();
        let (rows, marked) = log.after_flush(&*device, before);
        marked.unwrap();
        assert!(rows.is_empty() && !log.is_empty());
        assert_eq!(ids(&log, &*device), [11, 12]);
    }

    #[test]
    fn what_an_earlier_assembly_wrote_is_not_taken_for_a_record() {
        let (log, device) = log();
        let mut buffer = Aligned::default();
        for id in 1..=3 {
            log.append(&*device, id, &change(id, 3), &mut buffer)
                .unwrap()
                .unwrap();
        }
        log.start(&*device, 6).unwrap();
        assert!(ids(&log, &*device).is_empty());
        log.append(&*device, 9, &change(9, 3), &mut buffer)
            .unwrap()
            .unwrap();
        assert_eq!(ids(&log, &*device), [9]);
        let mut byte = [0; 512];
        device.read(4096 + MARKERS_BYTES + 4096, &mut byte).unwrap();
        byte[100] ^= 1;
        device.write(4096 + MARKERS_BYTES + 4096, &byte).unwrap();
        assert!(
            ids(&log, &*device).is_empty(),
            "a record that is not whole is none"
        );
    }
}
