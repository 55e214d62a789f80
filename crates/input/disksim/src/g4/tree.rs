//! The tree as written in the file.

use crate::error::{ErrorKind, ImportError};
use crate::fields::{BlockFields, FoundValue};
use crate::grammar::{Content, FilePlace};
use crate::layout::{LayoutDisk, misfit};

/// Largest depth of nested nodes.
const MAX_DEPTH: usize = 32;
/// Largest number of addresses of a disk.
const MAX_LBNS: i64 = 1 << 53;

/// A whole layout.
#[derive(Clone, Debug, Default)]
pub(super) struct LayoutTree {
    pub(super) patterns: Vec<Pattern>,
    /// Nodes; the last one is the root.
    pub(super) nodes: Vec<Vec<ChildInstances>>,
    /// First sector and length of each slip, in the tree's addresses.
    pub(super) slips: Vec<(u64, u64)>,
    pub(super) remaps: Vec<Remap>,
}

/// The sectors of a track that carry addresses. The angle of a track is the angle of its first such
/// sector, regardless of the sector's number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pattern {
    /// Number of sectors with addresses.
    pub(super) carrying: u32,
    pub(super) sectors: u32,
}

/// Instances of a child, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChildInstances {
    pub(super) lbn: u64,
    pub(super) cylinder: i64,
    /// Angle of the first instance, in revolutions.
    pub(super) offset: f64,
    pub(super) lbns_each: u64,
    pub(super) cylinders_each: i64,
    /// Angle from one instance to the next, in revolutions.
    pub(super) advance: f64,
    pub(super) lbns: u64,
    pub(super) outward: bool,
    pub(super) child: Child,
    pub(super) at: FilePlace,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Child {
    Track { pattern: usize, head: u32 },
    Node(usize),
}

/// Addresses on replacement sectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remap {
    pub(super) lbn: u64,
    pub(super) sectors: u64,
    pub(super) cylinder: u32,
    pub(super) head: u32,
    pub(super) sector: u64,
}

impl LayoutTree {
    pub(super) fn read(
        fields: &BlockFields<'_>,
        disk: LayoutDisk,
    ) -> Result<LayoutTree, ImportError> {
        let mut tree = LayoutTree {
            patterns: patterns(&fields.required("TP")?)?,
            ..LayoutTree::default()
        };
        let index = fields.required("IDX")?;
        let nodes: Vec<FoundValue<'_>> = index.elements()?.collect();
        for node in &nodes {
            tree.nodes
                .push(entries(node, disk, tree.patterns.len(), nodes.len())?);
        }
        if tree.nodes.is_empty() {
            return Err(index.error(ErrorKind::WrongValue, "no node", "at least the root"));
        }
        let mut lengths = vec![None; tree.nodes.len()];
        tree.check(fields, tree.nodes.len() - 1, &mut lengths, &mut Vec::new())?;
        tree.slips = slips(&fields.required("Slips")?)?;
        tree.remaps = remaps(&fields.required("Remaps")?)?;
        Ok(tree)
    }

    pub(super) fn root(&self) -> &[ChildInstances] {
        self.nodes.last().map_or(&[], Vec::as_slice)
    }

    /// Returns the number of addresses of a node.
    pub(super) fn lbns(&self, node: usize) -> u64 {
        self.nodes[node]
            .last()
            .map_or(0, |last| last.lbn + last.lbns)
    }

    /// Returns the tree's address of `lbn`: `lbn` plus all slips before.
    pub(super) fn slipped(&self, lbn: u64) -> u64 {
        let mut address = lbn;
        // The slips ascend, and each slip in front moves the address on, so later slips are
        // compared with the moved address.
        for slip in &self.slips {
            if slip.0 > address {
                break;
            }
            address += slip.1;
        }
        address
    }

    /// Checks that each entry's child has as many addresses as the entry uses, and that no node
    /// contains itself. Returns the number of addresses.
    fn check(
        &self,
        fields: &BlockFields<'_>,
        node: usize,
        lengths: &mut [Option<u64>],
        path: &mut Vec<usize>,
    ) -> Result<u64, ImportError> {
        // A child that many nodes share is checked once. Otherwise a chain of pairs would take
        // exponential time.
        if let Some(length) = lengths[node] {
            return Ok(length);
        }
        let at = self.nodes[node]
            .first()
            .map_or(fields.block.at, |entry| entry.at);
        if path.contains(&node) || path.len() >= MAX_DEPTH {
            let found =
                format!("node {node}, which contains itself or lies deeper than {MAX_DEPTH}");
            return Err(misfit(
                fields.document,
                at,
                &fields.path("IDX"),
                found,
                "a tree",
            ));
        }
        path.push(node);
        for (number, entry) in self.nodes[node].iter().enumerate() {
            let held = match entry.child {
                Child::Track { pattern, .. } => u64::from(self.patterns[pattern].carrying),
                Child::Node(child) => self.check(fields, child, lengths, path)?,
            };
            if held < entry.lbns_each {
                let key = fields.path(&format!("IDX[{node}].len of entry {number}"));
                let found = format!(
                    "{}, but the child has {held} addresses: a hole",
                    entry.lbns_each
                );
                return Err(misfit(
                    fields.document,
                    entry.at,
                    &key,
                    found,
                    "no more than the child has",
                ));
            }
        }
        assert_eq!(
            path.pop(),
            Some(node),
            "a path is left in the order in which it was taken"
        );
        let length = self.lbns(node);
        lengths[node] = Some(length);
        Ok(length)
    }
}

fn patterns(list: &FoundValue<'_>) -> Result<Vec<Pattern>, ImportError> {
    let numbers: Vec<FoundValue<'_>> = list.elements()?.collect();
    if numbers.is_empty() || !numbers.len().is_multiple_of(3) {
        let found = format!("{} numbers", numbers.len());
        return Err(list.error(
            ErrorKind::WrongValue,
            found,
            "low, high, sectors per track of each pattern",
        ));
    }
    let pattern = |three: &[FoundValue<'_>]| {
        let sectors = three[2].within(1, 1 << 24)?;
        let low = three[0].within(0, sectors - 1)?;
        let high = three[1].within(low, sectors - 1)?;
        Ok(Pattern {
            carrying: (high - low + 1) as u32,
            sectors: sectors as u32,
        })
    };
    numbers.chunks_exact(3).map(pattern).collect()
}

/// Reads the entries of a node. They must follow each other without holes.
fn entries(
    node: &FoundValue<'_>,
    disk: LayoutDisk,
    patterns: usize,
    nodes: usize,
) -> Result<Vec<ChildInstances>, ImportError> {
    let mut fields = node.elements()?.peekable();
    let mut entries: Vec<ChildInstances> = Vec::new();
    let mut free = 0;
    while fields.peek().is_some() {
        let entry = entry(node, &mut fields, disk, patterns, nodes)?;
        if entry.lbn != free {
            let problem = if entry.lbn < free {
                "overlaps"
            } else {
                "leaves a hole behind"
            };
            let found = format!(
                "lbn {} of entry {}, which {problem} the entry before",
                entry.lbn,
                entries.len()
            );
            return Err(misfit(
                node.document,
                entry.at,
                &node.key,
                found,
                format!("lbn {free}"),
            ));
        }
        free = entry.lbn + entry.lbns;
        if free > MAX_LBNS as u64 {
            let found = format!("{free} addresses");
            return Err(misfit(
                node.document,
                entry.at,
                &node.key,
                found,
                format!("at most {MAX_LBNS}"),
            ));
        }
        entries.push(entry);
    }
    if entries.is_empty() {
        return Err(node.error(ErrorKind::WrongValue, "an empty node", "entries"));
    }
    Ok(entries)
}

fn entry<'a>(
    node: &FoundValue<'a>,
    fields: &mut impl Iterator<Item = FoundValue<'a>>,
    disk: LayoutDisk,
    patterns: usize,
    nodes: usize,
) -> Result<ChildInstances, ImportError> {
    let mut at = None;
    let mut next = |name: &str| {
        let mut found = fields.next().ok_or_else(|| {
            node.error(
                ErrorKind::WrongValue,
                format!("an entry without `{name}`"),
                "ten fields, or eleven with a head",
            )
        })?;
        at.get_or_insert(found.value.at);
        found.key = format!("{} ({name})", found.key);
        Ok::<FoundValue<'a>, ImportError>(found)
    };
    let cylinders = i64::from(disk.cylinders);
    let lbn = next("lbn")?.within(0, MAX_LBNS)? as u64;
    let cylinder = next("cyl")?.within(0, cylinders - 1)?;
    let offset = revolutions(&next("off")?)?;
    let lbns_each = next("len")?.within(1, MAX_LBNS)? as u64;
    let cylinders_each = next("cyllen")?.within(1, cylinders)?;
    let advance = revolutions(&next("alen")?)?;
    let lbns = next("runlen")?.within(1, MAX_LBNS)? as u64;
    // Only the sign counts: the length of the run follows from the instances.
    let outward = next("cylrunlen")?.within(-(1 << 40), 1 << 40)? < 0;
    let kind = next("childtype")?;
    let child = next("child")?;
    let child = match &kind.value.content {
        Content::Word(word) if word == "TRACK" => Child::Track {
            pattern: child.within(0, patterns as i64 - 1)? as usize,
            head: next("head")?.within(0, i64::from(disk.surfaces) - 1)? as u32,
        },
        Content::Word(word) if word == "IDX" => {
            Child::Node(child.within(0, nodes as i64 - 1)? as usize)
        }
        _ => return Err(kind.error(ErrorKind::WrongValue, kind.value.describe(), "TRACK or IDX")),
    };
    let at = at.unwrap_or(node.value.at);
    // The last instance may be a part of one, and takes its cylinders all the same.
    let instances = (lbns.div_ceil(lbns_each) - 1) as i64;
    let reach = instances.checked_mul(cylinders_each).map(|reach| {
        if outward {
            cylinder - reach
        } else {
            cylinder + reach
        }
    });
    if !reach.is_some_and(|reach| (0..cylinders).contains(&reach)) {
        let found = format!(
            "{} instances of {cylinders_each} cylinders from {cylinder} on",
            instances + 1
        );
        let expected = format!("instances that stay on the {cylinders} cylinders of the disk");
        return Err(misfit(node.document, at, &node.key, found, expected));
    }
    Ok(ChildInstances {
        lbn,
        cylinder,
        offset,
        lbns_each,
        cylinders_each,
        advance,
        lbns,
        outward,
        child,
        at,
    })
}

fn revolutions(found: &FoundValue<'_>) -> Result<f64, ImportError> {
    let number = found.number()?;
    if number.abs() <= 1e6 {
        return Ok(number);
    }
    Err(found.error(ErrorKind::WrongValue, number.to_string(), "revolutions"))
}

/// Reads runs of slipped sectors. A run that starts inside the previous run continues behind it, as
/// in DiskSim.
fn slips(list: &FoundValue<'_>) -> Result<Vec<(u64, u64)>, ImportError> {
    let numbers: Vec<FoundValue<'_>> = list.elements()?.collect();
    if numbers.len() % 2 == 1 {
        let found = format!("{} numbers", numbers.len());
        return Err(list.error(
            ErrorKind::WrongValue,
            found,
            "pairs of a sector and a count",
        ));
    }
    let mut runs: Vec<(u64, u64)> = Vec::with_capacity(numbers.len() / 2);
    let mut last = 0;
    for pair in numbers.chunks_exact(2) {
        let (start, sectors) = (pair[0].amount()?, pair[1].amount()?);
        if start < last {
            let found = format!("{start} behind {last}");
            return Err(pair[0].error(ErrorKind::Layout, found, "slips that ascend"));
        }
        last = start;
        // Overlapping slips count each sector once.
        let free = runs.last().map_or(0, |run| run.0 + run.1);
        if start.max(free) + sectors > MAX_LBNS as u64 {
            let found = format!("{sectors} slips from {start} on");
            return Err(pair[1].error(
                ErrorKind::WrongValue,
                found,
                format!("sectors below {MAX_LBNS}"),
            ));
        }
        if sectors > 0 {
            runs.push((start.max(free), sectors));
        }
    }
    Ok(runs)
}

fn remaps(list: &FoundValue<'_>) -> Result<Vec<Remap>, ImportError> {
    let numbers: Vec<FoundValue<'_>> = list.elements()?.collect();
    if !numbers.len().is_multiple_of(6) {
        let found = format!("{} numbers", numbers.len());
        let expected = "lbn, count, cylinder, head, sector and sectors per track of each remap";
        return Err(list.error(ErrorKind::WrongValue, found, expected));
    }
    let remap = |six: &[FoundValue<'_>]| {
        Ok(Remap {
            lbn: six[0].amount()?,
            sectors: six[1].within(0, 1 << 24)? as u64,
            cylinder: six[2].unsigned()?,
            head: six[3].unsigned()?,
            sector: six[4].amount()?,
        })
    };
    numbers.chunks_exact(6).map(remap).collect()
}
