//! Reads traces back for tests. Reads any file in protobuf's encoding with Perfetto's field
//! numbers, not only files of this crate.

use std::collections::{BTreeMap, BTreeSet};

/// A slice after decoding.
#[derive(Clone, Debug)]
pub(crate) struct DecodedSlice {
    pub(crate) track: u64,
    pub(crate) name: String,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) notes: BTreeMap<String, String>,
}

/// A trace after decoding.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    pub(crate) processes: BTreeMap<u64, String>,
    /// Process and name of each track.
    pub(crate) tracks: BTreeMap<u64, (u64, String)>,
    pub(crate) slices: Vec<DecodedSlice>,
    /// Track, instant, value.
    pub(crate) counters: Vec<(u64, u64, u64)>,
    /// Number of slices of each flow.
    pub(crate) flows: BTreeMap<u64, usize>,
}

enum FieldValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a number goes on past the end");
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return number;
        }
    }
    panic!("a number of more than ten bytes");
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, FieldValue<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => FieldValue::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_first_chunk().expect("eight bytes");
                bytes = rest;
                FieldValue::Number(u64::from_le_bytes(*number))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                FieldValue::Bytes(content)
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

impl Trace {
    /// # Panics
    /// If the trace is invalid: events go back in time; slices end without a begin, begin without
    /// an end, or overlap on a track; a flow continues after its end or has none; a track has no
    /// description.
    pub(crate) fn read(file: &[u8]) -> Trace {
        let mut trace = Trace::default();
        let mut open: BTreeMap<u64, DecodedSlice> = BTreeMap::new();
        let mut ended = BTreeSet::new();
        let mut now = 0;
        for (field, packet) in fields(file) {
            let (1, FieldValue::Bytes(packet)) = (field, packet) else {
                panic!("field {field} of a trace")
            };
            let mut at = None;
            for (field, value) in fields(packet) {
                match (field, value) {
                    (8, FieldValue::Number(number)) => at = Some(number),
                    (10, FieldValue::Number(sequence)) => assert!(sequence > 0),
                    (60, FieldValue::Bytes(descriptor)) => trace.describe(descriptor),
                    (11, FieldValue::Bytes(event)) => {
                        let at = at.expect("an event without an instant");
                        assert!(at >= now, "events go back in time");
                        now = at;
                        trace.event(at, event, &mut open, &mut ended);
                    }
                    (field, _) => panic!("field {field} of a packet"),
                }
            }
        }
        assert!(open.is_empty(), "slices without an end: {open:?}");
        assert!(
            trace.flows.keys().all(|flow| ended.contains(flow)),
            "flows without an end"
        );
        trace
    }

    fn describe(&mut self, descriptor: &[u8]) {
        let (mut id, mut name, mut parent, mut process) = (0, String::new(), None, None);
        for (field, value) in fields(descriptor) {
            match (field, value) {
                (1, FieldValue::Number(number)) => id = number,
                (2, FieldValue::Bytes(bytes)) => name = text(bytes),
                (5, FieldValue::Number(number)) => parent = Some(number),
                (3, FieldValue::Bytes(bytes)) => {
                    let name =
                        fields(bytes)
                            .into_iter()
                            .find_map(|(field, value)| match (field, value) {
                                (6, FieldValue::Bytes(bytes)) => Some(text(bytes)),
                                _ => None,
                            });
                    process = Some(name.expect("a process has a name"));
                }
                (8, FieldValue::Bytes(_)) => {}
                (field, _) => panic!("field {field} of a track"),
            }
        }
        let new = match (process, parent) {
            (Some(process), None) => self.processes.insert(id, process).is_none(),
            (None, Some(parent)) => self.tracks.insert(id, (parent, name)).is_none(),
            _ => panic!("a track is a process or of one"),
        };
        assert!(new && id > 0, "two tracks have the number {id}");
    }

    fn event(
        &mut self,
        at: u64,
        event: &[u8],
        open: &mut BTreeMap<u64, DecodedSlice>,
        ended: &mut BTreeSet<u64>,
    ) {
        let (mut kind, mut track, mut count, mut name) = (0, 0, 0, String::new());
        let (mut notes, mut flows, mut ends) = (BTreeMap::new(), Vec::new(), Vec::new());
        for (field, value) in fields(event) {
            match (field, value) {
                (9, FieldValue::Number(number)) => kind = number,
                (11, FieldValue::Number(number)) => track = number,
                (23, FieldValue::Bytes(bytes)) => name = text(bytes),
                (30, FieldValue::Number(number)) => count = number,
                (47, FieldValue::Number(flow)) => flows.push(flow),
                (48, FieldValue::Number(flow)) => ends.push(flow),
                (4, FieldValue::Bytes(bytes)) => {
                    let (mut key, mut content) = (String::new(), String::new());
                    for (field, value) in fields(bytes) {
                        match (field, value) {
                            (10, FieldValue::Bytes(bytes)) => key = text(bytes),
                            (3, FieldValue::Number(number)) => content = number.to_string(),
                            (6, FieldValue::Bytes(bytes)) => content = text(bytes),
                            (field, _) => panic!("field {field} of an annotation"),
                        }
                    }
                    notes.insert(key, content);
                }
                (field, _) => panic!("field {field} of an event"),
            }
        }
        assert!(
            self.tracks.contains_key(&track),
            "track {track} is not described"
        );
        for flow in flows.iter().chain(&ends) {
            assert!(!ended.contains(flow), "flow {flow} goes on after its end");
            *self.flows.entry(*flow).or_default() += 1;
        }
        ended.extend(ends);
        match kind {
            1 => {
                let before = open.insert(
                    track,
                    DecodedSlice {
                        track,
                        name,
                        begin: at,
                        end: at,
                        notes,
                    },
                );
                assert!(
                    before.is_none(),
                    "slices overlap on track {track}: {before:?}"
                );
            }
            2 => {
                let slice = open
                    .remove(&track)
                    .expect("a slice ends that did not begin");
                self.slices.push(DecodedSlice { end: at, ..slice });
            }
            4 => self.counters.push((track, at, count)),
            other => panic!("an event of type {other}"),
        }
    }

    /// Returns the slices on tracks whose names `wanted` accepts.
    pub(crate) fn on(&self, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = &DecodedSlice> {
        self.slices
            .iter()
            .filter(move |slice| wanted(&self.tracks[&slice.track].1))
    }
}

impl DecodedSlice {
    /// Returns the value of a numeric annotation.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.notes[name].parse().unwrap()
    }
}
