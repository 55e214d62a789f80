//! Determines the wrong sectors among contradicting sectors.
//!
//! | redundancy | decided by |
//! |---|---|
//! | three and more copies | more than half of those that can be read |
//! | two copies | nothing |
//! | one parity | nothing |
//! | P and Q | the one member whose error explains both, if all bytes of the sector point at the same one |
//!
//! With P and Q (H. P. Anvin, "The mathematics of RAID-6"): let `s` be the sum of P on the member
//! and P computed from the data, and `t` the same sum of Q, byte by byte. If only `s` is not zero,
//! P is wrong; if only `t` is, Q is. If data chunk `k` is wrong by `e`, `s = e` and `t = g(k) e`,
//! where `g(k)` is the factor of that chunk in Q. So `t / s` identifies the chunk. Two wrong
//! members point, in each byte, at one of the data chunks by chance or at none. So a sector is
//! decided only if all bytes with a difference point at the same member.

use crate::buffers::Buffers;
use fullstroke_contract::Operation;
use fullstroke_parity::field::divide;
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};
use fullstroke_volume::{Band, BufferPlace, Content, MemoryPiece, Plan};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

const SECTOR: usize = SECTOR_BYTES as usize;

/// Permission of a scrub to change sectors. On the wire `false`, `true` and `"data"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repair {
    /// None.
    #[default]
    Nothing,
    /// Proven wrong sectors.
    Proven,
    /// Also undecided sectors: parity is made to follow from the data, and all copies from the
    /// first readable one.
    Data,
}

impl Repair {
    /// True if the scrub may change sectors.
    #[must_use]
    pub fn changes(self) -> bool {
        self != Repair::Nothing
    }

    /// True if a mismatch is written again.
    pub(crate) fn writes(self, is_proven: bool) -> bool {
        match self {
            Repair::Nothing => false,
            Repair::Proven => is_proven,
            Repair::Data => true,
        }
    }
}

impl Serialize for Repair {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Repair::Nothing => serializer.serialize_bool(false),
            Repair::Proven => serializer.serialize_bool(true),
            Repair::Data => serializer.serialize_str("data"),
        }
    }
}

impl<'de> Deserialize<'de> for Repair {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Repair, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Ruling {
            Whether(bool),
            How(String),
        }
        match Ruling::deserialize(deserializer)? {
            Ruling::Whether(false) => Ok(Repair::Nothing),
            Ruling::Whether(true) => Ok(Repair::Proven),
            Ruling::How(how) if how == "data" => Ok(Repair::Data),
            Ruling::How(how) => Err(serde::de::Error::custom(format!(
                "repair: found \"{how}\"; expected false, true or \"data\""
            ))),
        }
    }
}

/// Sectors that differ from the wanted ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DifferingSectors {
    /// Index of the first.
    pub(crate) first: u64,
    /// Number of sectors that differ.
    pub(crate) sectors: u64,
}

/// Compares sectors; `None` if all are as wanted.
pub(crate) fn differing(present: &[u8], wanted: &[u8]) -> Option<DifferingSectors> {
    if present == wanted {
        return None;
    }
    let sectors = present.chunks(SECTOR).zip(wanted.chunks(SECTOR));
    let mut differ = sectors
        .zip(0..)
        .filter(|((present, wanted), _)| present != wanted);
    let (_, first) = differ.next()?;
    Some(DifferingSectors {
        first,
        sectors: 1 + differ.count() as u64,
    })
}

/// A run of sectors of a member in contradiction to the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) member: usize,
    /// First sector on the member, counted from its data.
    pub(crate) lbn: Lbn,
    /// Address in the volume. For parity: the address of the row's first data in the same column.
    pub(crate) address: Lbn,
    pub(crate) row: Option<u64>,
    /// True if the other members prove this run wrong.
    pub(crate) is_proven: bool,
    /// Right bytes of the run. Unless proven: the bytes computed from the data, or those of the
    /// first copy.
    pub(crate) right: Vec<u8>,
}

impl Finding {
    pub(crate) fn sectors(&self) -> u64 {
        (self.right.len() / SECTOR) as u64
    }

    /// Appends a continuation of this run. Returns true then.
    fn continues(&mut self, next: &Finding) -> bool {
        debug_assert!(
            self.member < next.member || self.lbn <= next.lbn,
            "findings of member {} are not in order",
            self.member
        );
        let same = self.member == next.member
            && self.is_proven == next.is_proven
            && self.lbn + Sectors(self.sectors()) == next.lbn;
        if same {
            self.right.extend_from_slice(&next.right);
        }
        same
    }
}

/// Reads sectors of a member. Returns fewer sectors than requested if the member is not filled
/// further, and `None` if the sectors cannot be read.
pub(crate) type Reads<'a, E> = dyn FnMut(usize, Lbn, Sectors) -> Result<Option<Vec<u8>>, E> + 'a;

/// A piece of the planned write, with the present bytes.
struct PresentPiece<'a> {
    piece: &'a MemoryPiece,
    member: usize,
    row: Option<u64>,
    /// Bytes computed from the data.
    wanted: &'a [u8],
    present: Option<Vec<u8>>,
}

impl PresentPiece<'_> {
    fn wanted(&self, sector: usize) -> &[u8] {
        &self.wanted[sector * SECTOR..][..SECTOR]
    }
    fn present(&self, sector: usize) -> Option<&[u8]> {
        self.present.as_ref()?.get(sector * SECTOR..)?.get(..SECTOR)
    }
    /// True if the member is filled up to this sector, as far as is known.
    fn is_there(&self, sector: usize) -> bool {
        self.present
            .as_ref()
            .is_none_or(|bytes| bytes.len() >= (sector + 1) * SECTOR)
    }
    fn finding(&self, sector: usize, address: Lbn, is_proven: bool, right: &[u8]) -> Finding {
        Finding {
            member: self.member,
            lbn: self.piece.lbn + Sectors(sector as u64),
            address,
            row: self.row,
            is_proven,
            right: right.to_vec(),
        }
    }
}

/// Judges the pieces of a planned write. The steps of the plan must have been carried out on the
/// data from address `start` on. `is_whole` is true if all members hold the right data, so P and Q
/// can be trusted.
pub(crate) fn judge<E>(
    plan: &Plan,
    buffers: &Buffers<'_>,
    start: Lbn,
    is_whole: bool,
    read: &mut Reads<'_, E>,
) -> Result<Vec<Finding>, E> {
    let has_parity = plan
        .pieces()
        .iter()
        .any(|piece| matches!(piece.content, Content::Parity | Content::SecondParity));
    let mut held = Vec::new();
    for piece in plan.pieces() {
        let io = &plan.ios()[piece.io as usize];
        if io.operation != Operation::Write {
            continue;
        }
        let member = io.member as usize;
        // With parity, the data in the buffer was just read from this very piece.
        let present = if has_parity && piece.content == Content::Data {
            None
        } else {
            read(member, piece.lbn, piece.sectors)?
        };
        held.push(PresentPiece {
            piece,
            member,
            row: io.row,
            wanted: buffers.at(piece.place, piece.sectors),
            present,
        });
    }
    let mut found = Vec::new();
    if has_parity {
        for band in plan.bands() {
            RowColumn::of(plan, band, &held, buffers, start).judge(is_whole, &mut found);
        }
    } else {
        vote(&held, start, &mut found);
    }
    Ok(merged(found))
}

/// Joins neighbouring findings, and sorts by address.
fn merged(mut found: Vec<Finding>) -> Vec<Finding> {
    // In the order of each member's sectors, because only neighbours are joined.
    found.sort_by_key(|one| (one.member, one.lbn));
    let mut merged: Vec<Finding> = Vec::new();
    for one in found {
        if !merged.last_mut().is_some_and(|last| last.continues(&one)) {
            merged.push(one);
        }
    }
    // By address for the reader; the member makes the list the same in each run.
    merged.sort_by_key(|one| (one.address, one.member));
    merged
}

fn request_sector(place: BufferPlace) -> Option<u64> {
    match place {
        BufferPlace::Request(sector) => Some(sector.0),
        BufferPlace::Scratch(_) => None,
    }
}

/// Lets copies vote, sector by sector.
fn vote(held: &[PresentPiece<'_>], start: Lbn, found: &mut Vec<Finding>) {
    let mut copies: BTreeMap<u64, Vec<(&PresentPiece<'_>, usize)>> = BTreeMap::new();
    for one in held {
        let Some(first) = request_sector(one.piece.place) else {
            continue;
        };
        for sector in 0..one.piece.sectors.0 as usize {
            if one.is_there(sector) {
                copies
                    .entry(first + sector as u64)
                    .or_default()
                    .push((one, sector));
            }
        }
    }
    for (at, copies) in copies {
        let address = start + Sectors(at);
        let read: Vec<&[u8]> = copies
            .iter()
            .filter_map(|(one, sector)| one.present(*sector))
            .collect();
        let most = majority(&read);
        // Reads go to all copies in turn; the operator trusts the first one.
        let first = most.or(read.first().copied());
        for (one, sector) in copies {
            let right = first.unwrap_or_else(|| one.wanted(sector));
            if one.present(sector) != Some(right) {
                found.push(one.finding(sector, address, most.is_some(), right));
            }
        }
    }
}

/// Returns the bytes that more than half of the copies have.
fn majority<'a>(copies: &[&'a [u8]]) -> Option<&'a [u8]> {
    let count = |one: &[u8]| copies.iter().filter(|copy| **copy == one).count();
    copies
        .iter()
        .copied()
        // More than half: of two different copies, neither is proven wrong.
        .find(|one| 2 * count(one) > copies.len())
}

/// Sectors of a row at the same offsets of the chunks.
struct RowColumn<'a> {
    sectors: usize,
    parity: Option<&'a PresentPiece<'a>>,
    second: Option<&'a PresentPiece<'a>>,
    /// Data chunks: the factor in Q, the first sector in the request, and the bytes.
    data: Vec<(u8, u64, &'a [u8])>,
    held: &'a [PresentPiece<'a>],
    start: Lbn,
}

impl<'a> RowColumn<'a> {
    fn of(
        plan: &Plan,
        band: &Band,
        held: &'a [PresentPiece<'a>],
        buffers: &'a Buffers<'_>,
        start: Lbn,
    ) -> RowColumn<'a> {
        let steps = plan.steps(band);
        let of = |content: Content| {
            let is_summed = |one: &&PresentPiece<'_>| {
                one.piece.content == content
                    && one.piece.sectors == band.sectors
                    && steps.iter().any(|step| step.into == one.piece.place)
            };
            held.iter().find(is_summed)
        };
        let (parity, second) = (of(Content::Parity), of(Content::SecondParity));
        // Q comes first, because its steps name the factor of each chunk; P has the factor 1 for
        // all.
        let summed = second.or(parity).map(|one| one.piece.place);
        let data = steps
            .iter()
            .filter(|step| Some(step.into) == summed)
            .filter_map(|step| {
                let bytes = buffers.at(step.from, step.sectors);
                Some((step.coefficient, request_sector(step.from)?, bytes))
            });
        RowColumn {
            sectors: band.sectors.0 as usize,
            parity,
            second,
            data: data.collect(),
            held,
            start,
        }
    }

    fn judge(&self, is_whole: bool, found: &mut Vec<Finding>) {
        for sector in 0..self.sectors {
            let first = self.data.first().map_or(0, |(_, at, _)| *at);
            let address = self.start + Sectors(first + sector as u64);
            let parities: Vec<&PresentPiece<'_>> = [self.parity, self.second]
                .into_iter()
                .flatten()
                .filter(|one| one.is_there(sector))
                .collect();
            let wrong: Vec<&PresentPiece<'_>> = parities
                .iter()
                .copied()
                .filter(|one| one.present(sector) != Some(one.wanted(sector)))
                .collect();
            if wrong.is_empty() {
                continue;
            }
            let unread = |one: &&&PresentPiece<'_>| one.present(sector).is_none();
            // Unreadable parity is no evidence against the data.
            let only_unread = wrong.iter().all(|one| unread(&one));
            let one_of_two = parities.len() == 2 && wrong.len() == 1;
            if let (true, [p, q]) = (is_whole, &wrong[..])
                && let (Some(p), Some(q)) = (p.present(sector), q.present(sector))
                && let Some(finding) = self.lying_data(sector, p, q)
            {
                found.push(finding);
                continue;
            }
            let is_proven = only_unread || is_whole && one_of_two;
            for one in wrong {
                found.push(one.finding(sector, address, is_proven, one.wanted(sector)));
            }
        }
    }

    /// Returns the data chunk whose error explains both P and Q, with its right bytes.
    fn lying_data(&self, sector: usize, p: &[u8], q: &[u8]) -> Option<Finding> {
        let (wanted_p, wanted_q) = (self.parity?.wanted(sector), self.second?.wanted(sector));
        let mut factor = None;
        for at in 0..SECTOR {
            let (s, t) = (p[at] ^ wanted_p[at], q[at] ^ wanted_q[at]);
            match (s, t) {
                (0, 0) => {}
                // A wrong data chunk changes P and Q in the same bytes. A change in one alone has
                // another cause.
                (0, _) | (_, 0) => return None,
                _ if factor.is_some_and(|factor| factor != divide(t, s)) => return None,
                _ => factor = Some(divide(t, s)),
            }
        }
        let mut pointed = self.data.iter().filter(|(own, ..)| Some(*own) == factor);
        // No chunk, or more than one, with this factor: the error is not in a single data chunk.
        let (Some((_, at, bytes)), None) = (pointed.next(), pointed.next()) else {
            return None;
        };
        let at = at + sector as u64;
        let mut right = bytes[sector * SECTOR..][..SECTOR].to_vec();
        for (byte, (p, wanted)) in right.iter_mut().zip(p.iter().zip(wanted_p)) {
            *byte ^= p ^ wanted;
        }
        self.held.iter().find_map(|one| {
            let first = request_sector(one.piece.place)?;
            let within = one.piece.content == Content::Data
                && (first..first + one.piece.sectors.0).contains(&at);
            within.then(|| {
                one.finding(
                    (at - first) as usize,
                    self.start + Sectors(at),
                    true,
                    &right,
                )
            })
        })
    }
}
