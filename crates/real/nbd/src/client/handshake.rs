//! Opens and lists exports.

use super::{ClientError, Properties, stream};
use crate::export::Features;
use crate::input::MessageFields;
use crate::wire::{self, info, option, option_reply};
use std::io::{Read, Write};

/// Longest reply to an option: a name, a description and some numbers.
const REPLY_BYTES_MAX: u32 = 3 * wire::STRING_BYTES_MAX as u32;

/// Way to choose an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opening {
    /// `NBD_OPT_GO`, which reports errors and block sizes.
    #[default]
    Go,
    /// `NBD_OPT_EXPORT_NAME`, the way of old clients.
    ExportName,
}

/// Options of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientOptions {
    /// Name of the export; empty = the default export.
    pub export: String,
    /// Way to choose the export.
    pub opening: Opening,
    /// True to ask for replies in chunks.
    pub structured: bool,
    /// True to ask for `base:allocation`, which needs replies in chunks.
    pub status: bool,
}

/// Returns the names and descriptions of a server's exports. Ends the session.
///
/// # Errors
/// As [`ExportClient::connect`](super::ExportClient::connect).
pub fn list(mut stream: impl Read + Write) -> Result<Vec<(String, String)>, ClientError> {
    greet(&mut stream)?;
    send(&mut stream, option::LIST, &[])?;
    let mut exports = Vec::new();
    while let Some((kind, data)) = reply(&mut stream, option::LIST)? {
        let mut fields = MessageFields::new(&data);
        let name = fields.u32().and_then(|length| fields.take(length as usize));
        let (option_reply::SERVER, Some(name)) = (kind, name) else {
            return Err(ClientError::protocol(
                "reply to LIST",
                kind,
                "the name of an export",
            ));
        };
        exports.push((text(name), text(fields.rest())));
    }
    send(&mut stream, option::ABORT, &[])?;
    // The server answers ABORT before it closes. Without this read, the server would write to a
    // closed stream.
    reply(&mut stream, option::ABORT)?;
    Ok(exports)
}

/// Carries out the handshake and opens an export.
pub(super) fn open<S: Read + Write>(
    stream: &mut S,
    options: &ClientOptions,
) -> Result<Properties, ClientError> {
    greet(stream)?;
    // A status comes only in structured replies.
    let structured = options.structured || options.status;
    if structured {
        send(stream, option::STRUCTURED_REPLY, &[])?;
        none_but_end(stream, option::STRUCTURED_REPLY)?;
    }
    // The context belongs to the export name of this option, so the same name opens the export
    // afterwards.
    let status = options.status && select_allocation(stream, &options.export)?;
    let mut properties = Properties {
        size_bytes: 0,
        features: Features::empty(),
        structured,
        status,
        block_bytes: None,
    };
    match options.opening {
        Opening::Go => go(stream, &options.export, &mut properties)?,
        Opening::ExportName => export_name(stream, &options.export, &mut properties)?,
    }
    Ok(properties)
}

fn greet<S: Read + Write>(stream: &mut S) -> Result<(), ClientError> {
    let expected = "NBDMAGIC and IHAVEOPT, the greeting of a newstyle server";
    stream::expect("greeting", stream::u64(stream)?, wire::GREETING, expected)?;
    stream::expect("greeting", stream::u64(stream)?, wire::OPTION, expected)?;
    let flags = u32::from(stream::u16(stream)?);
    // Without both flags, option errors and the answer to an export name have another form.
    let wanted = wire::FIXED_NEWSTYLE | wire::NO_ZEROES;
    stream::expect(
        "handshake flags",
        (flags & wanted).into(),
        wanted.into(),
        "fixed newstyle, no zeroes",
    )?;
    stream.write_all(&wanted.to_be_bytes())?;
    Ok(())
}

fn send(stream: &mut impl Write, option: u32, data: &[u8]) -> Result<(), ClientError> {
    let mut message = Vec::with_capacity(wire::OPTION_HEADER_BYTES + data.len());
    message.extend(wire::OPTION.to_be_bytes());
    message.extend(option.to_be_bytes());
    message.extend((data.len() as u32).to_be_bytes());
    message.extend(data);
    stream.write_all(&message)?;
    stream.flush()?;
    Ok(())
}

/// Reads one reply and returns its type and data. Returns `None` for the final acknowledgement.
fn reply(stream: &mut impl Read, option: u32) -> Result<Option<(u32, Vec<u8>)>, ClientError> {
    stream::expect(
        "magic of a reply",
        stream::u64(stream)?,
        wire::OPTION_REPLY,
        "0x3e889045565a9",
    )?;
    stream::expect(
        "option of a reply",
        stream::u32(stream)?.into(),
        option.into(),
        "the option that was sent",
    )?;
    let kind = stream::u32(stream)?;
    let length = stream::u32(stream)?;
    let data = stream::bytes(stream, "reply to an option", length, REPLY_BYTES_MAX)?;
    if kind & option_reply::ERROR != 0 {
        return Err(ClientError::Refused {
            option,
            kind,
            message: text(&data),
        });
    }
    Ok((kind != option_reply::ACK).then_some((kind, data)))
}

fn none_but_end(stream: &mut impl Read, option: u32) -> Result<(), ClientError> {
    match reply(stream, option)? {
        None => Ok(()),
        Some((kind, _)) => Err(ClientError::protocol(
            "type of a reply",
            kind,
            "an acknowledgement",
        )),
    }
}

/// Returns true if the server supports the context.
fn select_allocation<S: Read + Write>(stream: &mut S, export: &str) -> Result<bool, ClientError> {
    let mut data = string(export);
    data.extend(1u32.to_be_bytes());
    data.extend(string(wire::ALLOCATION_CONTEXT));
    send(stream, option::SET_META_CONTEXT, &data)?;
    let mut selected = false;
    while let Some((kind, _)) = reply(stream, option::SET_META_CONTEXT)? {
        selected |= kind == option_reply::META_CONTEXT;
    }
    Ok(selected)
}

fn go<S: Read + Write>(
    stream: &mut S,
    export: &str,
    properties: &mut Properties,
) -> Result<(), ClientError> {
    let mut data = string(export);
    // One information request: the block sizes. The size and the flags come without a request.
    data.extend(1u16.to_be_bytes());
    data.extend(info::BLOCK_SIZE.to_be_bytes());
    send(stream, option::GO, &data)?;
    let mut told = false;
    while let Some((_, data)) = reply(stream, option::GO)? {
        let mut fields = MessageFields::new(&data);
        match fields.u16() {
            // The order of the information is the server's choice.
            Some(info::EXPORT) => told |= export_fields(&mut fields, properties).is_some(),
            Some(info::BLOCK_SIZE) => {
                let sizes = (fields.u32(), fields.u32(), fields.u32());
                properties.block_bytes = match sizes {
                    (Some(least), Some(preferred), Some(greatest)) => {
                        Some([least, preferred, greatest])
                    }
                    _ => None,
                };
            }
            _ => {}
        }
    }
    if told {
        Ok(())
    } else {
        Err(ClientError::protocol(
            "reply to GO",
            "no size",
            "size and flags",
        ))
    }
}

fn export_name<S: Read + Write>(
    stream: &mut S,
    export: &str,
    properties: &mut Properties,
) -> Result<(), ClientError> {
    send(stream, option::EXPORT_NAME, export.as_bytes())?;
    let told: [u8; 10] = stream::array(stream)?;
    // The ten bytes are enough for both fields.
    let _ = export_fields(&mut MessageFields::new(&told), properties);
    Ok(())
}

fn export_fields(fields: &mut MessageFields<'_>, properties: &mut Properties) -> Option<()> {
    properties.size_bytes = fields.u64()?;
    properties.features = Features::from_bits_truncate(fields.u16()?);
    Some(())
}

fn string(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
