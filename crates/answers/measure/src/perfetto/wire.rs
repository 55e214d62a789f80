//! Perfetto's messages in protobuf's encoding. Field numbers are those of
//! `protos/perfetto/trace/` in Perfetto's sources: `trace_packet.proto`, and in
//! `track_event/` `track_event.proto`, `track_descriptor.proto`,
//! `process_descriptor.proto`, `debug_annotation.proto`.

use fullstroke_units::Time;

/// Contents of the file.
#[derive(Debug, Default)]
pub(super) struct TraceContents {
    pub(super) processes: Vec<PerfettoProcess>,
    pub(super) tracks: Vec<PerfettoTrack>,
    pub(super) slices: Vec<Slice>,
    pub(super) counters: Vec<Counter>,
}

#[derive(Debug)]
pub(super) struct PerfettoProcess {
    pub(super) id: u64,
    pub(super) name: String,
}

#[derive(Debug)]
pub(super) struct PerfettoTrack {
    pub(super) id: u64,
    pub(super) process: u64,
    pub(super) name: String,
    pub(super) counter: bool,
}

#[derive(Debug, Default)]
pub(super) struct Slice {
    pub(super) track: u64,
    pub(super) name: &'static str,
    pub(super) begin: Time,
    pub(super) end: Time,
    /// Depth of the slice. If slices begin at the same time, the slice with the smaller depth comes
    /// first.
    pub(super) level: u8,
    pub(super) notes: Vec<(&'static str, Note)>,
    /// Flows that begin in the slice or pass through it.
    pub(super) flows: Vec<u64>,
    /// Flow that ends in the slice.
    pub(super) flow_ends: Option<u64>,
}

/// The value of an annotation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Note {
    Number(u64),
    Word(&'static str),
}

#[derive(Debug)]
pub(super) struct Counter {
    pub(super) track: u64,
    pub(super) at: Time,
    pub(super) value: i64,
}

/// Field numbers of `Trace`.
// Numbers of perfetto_trace.proto.
const PACKET: u32 = 1;

mod packet {
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
}

mod descriptor {
    pub(super) const UUID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const PROCESS: u32 = 3;
    pub(super) const PARENT: u32 = 5;
    pub(super) const COUNTER: u32 = 8;
}

mod process {
    pub(super) const PID: u32 = 1;
    pub(super) const NAME: u32 = 6;
}

mod event {
    pub(super) const ANNOTATION: u32 = 4;
    pub(super) const TYPE: u32 = 9;
    pub(super) const TRACK: u32 = 11;
    pub(super) const NAME: u32 = 23;
    pub(super) const COUNTER_VALUE: u32 = 30;
    pub(super) const FLOW: u32 = 47;
    pub(super) const FLOW_ENDS: u32 = 48;
    // Values of `TrackEvent.Type`.
    pub(super) const SLICE_BEGIN: u64 = 1;
    pub(super) const SLICE_END: u64 = 2;
    pub(super) const COUNTER: u64 = 4;
}

mod annotation {
    pub(super) const UNSIGNED: u32 = 3;
    pub(super) const STRING: u32 = 6;
    pub(super) const NAME: u32 = 10;
}

/// Identifier of the packet sequence. All packets share one; any number except 0 is valid.
const SEQUENCE: u64 = 1;

/// Returns the contents of the file.
pub(super) fn write(shown: &TraceContents) -> Vec<u8> {
    let mut file = ProtobufMessage::default();
    for PerfettoProcess { id, name } in &shown.processes {
        let mut process = ProtobufMessage::default();
        process.number(process::PID, *id).text(process::NAME, name);
        let mut track = ProtobufMessage::default();
        track
            .number(descriptor::UUID, *id)
            .message(descriptor::PROCESS, &process);
        file.packet(None, packet::TRACK_DESCRIPTOR, &track);
    }
    for PerfettoTrack {
        id,
        process,
        name,
        counter,
    } in &shown.tracks
    {
        let mut track = ProtobufMessage::default();
        track
            .number(descriptor::UUID, *id)
            .number(descriptor::PARENT, *process)
            .text(descriptor::NAME, name);
        if *counter {
            track.message(descriptor::COUNTER, &ProtobufMessage::default());
        }
        file.packet(None, packet::TRACK_DESCRIPTOR, &track);
    }
    for (at, what) in in_order(shown) {
        file.packet(Some(at), packet::TRACK_EVENT, &what.message());
    }
    file.0
}

/// An event of the trace.
#[derive(Clone, Copy)]
enum PerfettoEvent<'a> {
    Begins(&'a Slice),
    Ends(&'a Slice),
    Counts(&'a Counter),
}

/// Returns the events by time. At the same time, slices end before others begin on their tracks.
/// Slices without duration begin and end in between.
fn in_order(shown: &TraceContents) -> Vec<(Time, PerfettoEvent<'_>)> {
    let mut events = Vec::with_capacity(2 * shown.slices.len() + shown.counters.len());
    for (index, slice) in shown.slices.iter().enumerate() {
        let lasts = slice.begin < slice.end;
        let (begins, ends) = if lasts {
            ((2, slice.level, 0, 0), (0, 0, 0, 0))
        } else {
            ((1, 0, index, 0), (1, 0, index, 1))
        };
        events.push((slice.begin, begins, PerfettoEvent::Begins(slice)));
        events.push((slice.end, ends, PerfettoEvent::Ends(slice)));
    }
    let counts = shown
        .counters
        .iter()
        .map(|counter| (counter.at, (3, 0, 0, 0), PerfettoEvent::Counts(counter)));
    events.extend(counts);
    events.sort_by_key(|(at, rank, _)| (*at, *rank));
    events.into_iter().map(|(at, _, what)| (at, what)).collect()
}

impl PerfettoEvent<'_> {
    fn message(self) -> ProtobufMessage {
        let mut message = ProtobufMessage::default();
        match self {
            PerfettoEvent::Begins(slice) => {
                message
                    .number(event::TYPE, event::SLICE_BEGIN)
                    .number(event::TRACK, slice.track);
                message.text(event::NAME, slice.name);
                for (name, note) in &slice.notes {
                    let mut annotation = ProtobufMessage::default();
                    annotation.text(annotation::NAME, name);
                    match note {
                        Note::Number(number) => annotation.number(annotation::UNSIGNED, *number),
                        Note::Word(word) => annotation.text(annotation::STRING, word),
                    };
                    message.message(event::ANNOTATION, &annotation);
                }
                slice
                    .flows
                    .iter()
                    .for_each(|flow| _ = message.fixed(event::FLOW, *flow));
                slice
                    .flow_ends
                    .iter()
                    .for_each(|flow| _ = message.fixed(event::FLOW_ENDS, *flow));
            }
            PerfettoEvent::Ends(slice) => {
                message
                    .number(event::TYPE, event::SLICE_END)
                    .number(event::TRACK, slice.track);
            }
            PerfettoEvent::Counts(counter) => {
                message
                    .number(event::TYPE, event::COUNTER)
                    .number(event::TRACK, counter.track);
                // A negative number is written as its 64 bits.
                message.number(event::COUNTER_VALUE, counter.value as u64);
            }
        }
        message
    }
}

/// A protobuf message: fields, each after its number and wire type.
#[derive(Default)]
struct ProtobufMessage(Vec<u8>);

impl ProtobufMessage {
    fn packet(&mut self, at: Option<Time>, field: u32, content: &ProtobufMessage) {
        let mut packet = ProtobufMessage::default();
        if let Some(at) = at {
            packet.number(packet::TIMESTAMP, at.as_nanos());
        }
        packet
            .number(packet::SEQUENCE, SEQUENCE)
            .message(field, content);
        self.message(PACKET, &packet);
    }

    fn number(&mut self, field: u32, number: u64) -> &mut ProtobufMessage {
        self.key(field, 0).varint(number)
    }

    // `flow_ids` and `terminating_flow_ids` are fixed64 fields in `track_event.proto`, not varints.
    fn fixed(&mut self, field: u32, number: u64) -> &mut ProtobufMessage {
        self.key(field, 1).0.extend(number.to_le_bytes());
        self
    }

    fn text(&mut self, field: u32, text: &str) -> &mut ProtobufMessage {
        self.bytes(field, text.as_bytes())
    }

    fn message(&mut self, field: u32, message: &ProtobufMessage) -> &mut ProtobufMessage {
        self.bytes(field, &message.0)
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) -> &mut ProtobufMessage {
        self.key(field, 2)
            .varint(bytes.len() as u64)
            .0
            .extend(bytes);
        self
    }

    fn key(&mut self, field: u32, wire_type: u32) -> &mut ProtobufMessage {
        self.varint(u64::from(field << 3 | wire_type))
    }

    /// Writes seven bits per byte, the lowest first. The eighth bit is set if more bytes follow.
    fn varint(&mut self, mut number: u64) -> &mut ProtobufMessage {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
        self
    }
}
