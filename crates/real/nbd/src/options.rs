//! The answer to each option ("Option types" in the protocol).

use crate::error::ProtocolError;
use crate::export::{Export, Exports};
use crate::input::MessageFields;
use crate::output::OutputBytes;
use crate::session::{Encryption, Session};
use crate::terms::{AgreedTerms, HandshakeProgress, OPTION_BYTES_MAX};
use crate::wire::{self, info, option, option_reply};
use std::fmt;

/// Number of bytes of an unknown export's name that an error repeats.
const QUOTED_BYTES: usize = 256;

/// Refusal of an option: type of the reply, and text.
type Refusal = (u32, &'static str);

/// Answers a complete option.
///
/// # Errors
/// If `NBD_OPT_EXPORT_NAME` names an unknown export, because its answer has no room for an error.
pub(crate) fn answer(
    option: u32,
    data: &[u8],
    terms: &mut AgreedTerms,
    exports: &Exports,
    output: &mut OutputBytes,
) -> Result<HandshakeProgress, ProtocolError> {
    let answered = match option {
        option::ABORT => {
            acknowledge(output, option);
            return Ok(HandshakeProgress::Aborted);
        }
        option::STARTTLS => match start_tls(data, terms) {
            Ok(()) => {
                acknowledge(output, option);
                return Ok(HandshakeProgress::Encrypts);
            }
            refused => refused,
        },
        // An export name in the clear has no error answer, so the session ends.
        option::EXPORT_NAME if terms.awaits_encryption() => return Err(ProtocolError::TlsRequired),
        _ if terms.awaits_encryption() => Err(TLS_REQUIRED),
        option::EXPORT_NAME => return export_name(data, terms, exports, output),
        option::GO | option::INFO => match information(option, data, terms, exports, output) {
            // INFO answers like GO, but leaves the handshake open.
            Ok(export) if option == option::GO => {
                return Ok(HandshakeProgress::Opened(session(terms, export)));
            }
            answered => answered.map(|_| ()),
        },
        option::LIST => list(data, exports, output),
        option::STRUCTURED_REPLY => structured_reply(data, terms, output),
        option::LIST_META_CONTEXT => list_contexts(data, terms, exports, output),
        option::SET_META_CONTEXT => set_contexts(data, terms, exports, output),
        _ => Err((option_reply::UNSUPPORTED, NOT_KNOWN)),
    };
    if let Err((kind, message)) = answered {
        refuse(output, option, kind, message);
    }
    Ok(HandshakeProgress::Going)
}

/// Answers an option whose data were too long to be examined.
///
/// # Errors
/// If the option was `NBD_OPT_EXPORT_NAME`, because its answer has no room for an error.
pub(crate) fn answer_too_big(
    option: u32,
    terms: &mut AgreedTerms,
    output: &mut OutputBytes,
) -> Result<HandshakeProgress, ProtocolError> {
    let message = format_args!("found an option of more than {OPTION_BYTES_MAX} bytes; shorten it");
    match option {
        option::ABORT => {
            acknowledge(output, option);
            return Ok(HandshakeProgress::Aborted);
        }
        option::STARTTLS if terms.encryption == Encryption::Off => {
            refuse(output, option, option_reply::UNSUPPORTED, NO_ENCRYPTION)
        }
        option::STARTTLS => refuse(output, option, option_reply::INVALID, message),
        option::EXPORT_NAME if terms.awaits_encryption() => return Err(ProtocolError::TlsRequired),
        _ if terms.awaits_encryption() => refuse(output, option, TLS_REQUIRED.0, TLS_REQUIRED.1),
        option::EXPORT_NAME => {
            return Err(ProtocolError::UnknownExport {
                name: "(a name beyond all limits)".into(),
            });
        }
        option::SET_META_CONTEXT => {
            // After a failed selection, no context is selected.
            terms.status_of = None;
            refuse(output, option, option_reply::TOO_BIG, message);
        }
        option::LIST
        | option::GO
        | option::INFO
        | option::STRUCTURED_REPLY
        | option::LIST_META_CONTEXT => {
            refuse(output, option, option_reply::TOO_BIG, message);
        }
        _ => refuse(output, option, option_reply::UNSUPPORTED, NOT_KNOWN),
    }
    Ok(HandshakeProgress::Going)
}

/// Starts TLS, or returns the reason of the refusal.
fn start_tls(data: &[u8], terms: &mut AgreedTerms) -> Result<(), Refusal> {
    if terms.encryption == Encryption::Off {
        return Err((option_reply::UNSUPPORTED, NO_ENCRYPTION));
    }
    if terms.encrypted {
        return Err((
            option_reply::INVALID,
            "found a second beginning of TLS; expected one",
        ));
    }
    no_data(data)?;
    terms.encrypt();
    Ok(())
}

fn session(terms: &AgreedTerms, export: usize) -> Session {
    let status = terms.structured && terms.status_of == Some(export);
    Session {
        export,
        structured: terms.structured,
        status,
    }
}

fn export_name(
    data: &[u8],
    terms: &AgreedTerms,
    exports: &Exports,
    output: &mut OutputBytes,
) -> Result<HandshakeProgress, ProtocolError> {
    let found = std::str::from_utf8(data)
        .ok()
        .and_then(|name| exports.find(name));
    let Some(export) = found else {
        // The name is the client's text of up to 16 KiB, and goes into logs.
        let quoted = &data[..data.len().min(QUOTED_BYTES)];
        return Err(ProtocolError::UnknownExport {
            name: String::from_utf8_lossy(quoted).into_owned(),
        });
    };
    output.put_u64(exports.all()[export].size_bytes);
    output.put_u16(exports.all()[export].transmission_flags(terms.structured));
    // The padding belongs to the old handshake. Clients with NO_ZEROES do not expect it.
    if !terms.no_zeroes {
        output.put_zeroes(wire::EXPORT_NAME_PADDING_BYTES);
    }
    Ok(HandshakeProgress::Opened(session(terms, export)))
}

fn list(data: &[u8], exports: &Exports, output: &mut OutputBytes) -> Result<(), Refusal> {
    no_data(data)?;
    for export in exports.all() {
        let length = 4 + export.name.len() + export.description.len();
        reply(output, option::LIST, option_reply::SERVER, length);
        output.put_u32(export.name.len() as u32);
        output.put(export.name.as_bytes());
        output.put(export.description.as_bytes());
    }
    acknowledge(output, option::LIST);
    Ok(())
}

fn structured_reply(
    data: &[u8],
    terms: &mut AgreedTerms,
    output: &mut OutputBytes,
) -> Result<(), Refusal> {
    no_data(data)?;
    terms.structured = true;
    acknowledge(output, option::STRUCTURED_REPLY);
    Ok(())
}

/// Answers INFO or GO, and returns the number of the export.
fn information(
    option: u32,
    data: &[u8],
    terms: &AgreedTerms,
    exports: &Exports,
    output: &mut OutputBytes,
) -> Result<usize, Refusal> {
    let mut fields = MessageFields::new(data);
    let name = string(&mut fields)?;
    let count = fields.u16().ok_or(SHORT)?;
    // The length is checked before anything is answered. A half-read option would otherwise get two
    // answers.
    if fields.rest().len() != 2 * usize::from(count) {
        return Err((
            option_reply::INVALID,
            "found a length that does not fit the number of information requests",
        ));
    }
    // After the form of the option: a malformed option is INVALID even with an unknown name.
    let number = exports.find(name).ok_or(UNKNOWN)?;
    let export = &exports.all()[number];
    reply_info(output, option, info::EXPORT, 10);
    output.put_u64(export.size_bytes);
    output.put_u16(export.transmission_flags(terms.structured));
    // Each kind is sent at most once, however often the client asked.
    let mut asked = [false; 4];
    while let Some(kind) = fields.u16() {
        if let Some(asked) = asked.get_mut(usize::from(kind)) {
            *asked = true;
        }
    }
    for kind in [info::NAME, info::DESCRIPTION, info::BLOCK_SIZE] {
        if asked[usize::from(kind)] {
            put_info(output, option, kind, export);
        }
    }
    acknowledge(output, option);
    Ok(number)
}

fn put_info(output: &mut OutputBytes, option: u32, kind: u16, export: &Export) {
    match kind {
        info::BLOCK_SIZE => {
            reply_info(output, option, kind, 12);
            output.put_u32(export.block_bytes_min);
            output.put_u32(export.block_bytes_preferred);
            output.put_u32(export.payload_bytes_max);
        }
        _ => {
            let text = if kind == info::NAME {
                &export.name
            } else {
                &export.description
            };
            reply_info(output, option, kind, text.len());
            output.put(text.as_bytes());
        }
    }
}

fn list_contexts(
    data: &[u8],
    terms: &AgreedTerms,
    exports: &Exports,
    output: &mut OutputBytes,
) -> Result<(), Refusal> {
    let queries = context_queries(data, terms, exports)?;
    let everything = queries.count == 0;
    if everything
        || queries.any(|query| query == wire::BASE_NAMESPACE || query == wire::ALLOCATION_CONTEXT)
    {
        put_context(output, option::LIST_META_CONTEXT, 0);
    }
    acknowledge(output, option::LIST_META_CONTEXT);
    Ok(())
}

fn set_contexts(
    data: &[u8],
    terms: &mut AgreedTerms,
    exports: &Exports,
    output: &mut OutputBytes,
) -> Result<(), Refusal> {
    // A new selection replaces the old one, even if the new one fails ("NBD_OPT_SET_META_CONTEXT").
    terms.status_of = None;
    let queries = context_queries(data, terms, exports)?;
    if queries.any(|query| query == wire::ALLOCATION_CONTEXT) {
        terms.status_of = Some(queries.export);
        put_context(
            output,
            option::SET_META_CONTEXT,
            wire::ALLOCATION_CONTEXT_ID,
        );
    }
    acknowledge(output, option::SET_META_CONTEXT);
    Ok(())
}

fn put_context(output: &mut OutputBytes, option: u32, id: u32) {
    reply(
        output,
        option,
        option_reply::META_CONTEXT,
        4 + wire::ALLOCATION_CONTEXT.len(),
    );
    output.put_u32(id);
    output.put(wire::ALLOCATION_CONTEXT.as_bytes());
}

/// The queries for metadata contexts, all well-formed.
struct ContextQueries<'a> {
    export: usize,
    count: u32,
    fields: MessageFields<'a>,
}

fn context_queries<'a>(
    data: &'a [u8],
    terms: &AgreedTerms,
    exports: &Exports,
) -> Result<ContextQueries<'a>, Refusal> {
    // Contexts need structured replies to carry them.
    if !terms.structured {
        return Err((
            option_reply::INVALID,
            "expected structured replies to be negotiated first",
        ));
    }
    let mut fields = MessageFields::new(data);
    let name = string(&mut fields)?;
    let count = fields.u32().ok_or(SHORT)?;
    // All queries are checked on a copy first, so that a bad query leaves no half-finished answer
    // in the output.
    let mut checked = fields.clone();
    for _ in 0..count {
        if !string(&mut checked)?.contains(':') {
            return Err((
                option_reply::INVALID,
                "found a query without a colon; expected `namespace:leaf`",
            ));
        }
    }
    no_data(checked.rest())?;
    let export = exports.find(name).ok_or(UNKNOWN)?;
    Ok(ContextQueries {
        export,
        count,
        fields,
    })
}

impl ContextQueries<'_> {
    fn any(&self, wanted: impl Fn(&str) -> bool) -> bool {
        let mut fields = self.fields.clone();
        (0..self.count).any(|_| string(&mut fields).is_ok_and(&wanted))
    }
}

const NO_ENCRYPTION: &str = "this server has no encryption; go on without encryption";
const TLS_REQUIRED: Refusal = (
    option_reply::TLS_REQUIRED,
    "found an option in the clear; expected TLS first",
);
const NOT_KNOWN: &str = "this server does not know the option; go on without the option";
const SHORT: Refusal = (
    option_reply::INVALID,
    "found a field that reaches beyond the end of the option",
);
const UNKNOWN: Refusal = (
    option_reply::UNKNOWN,
    "no such export; expected a name from the list of exports",
);

fn no_data(data: &[u8]) -> Result<(), Refusal> {
    if data.is_empty() {
        Ok(())
    } else {
        Err((
            option_reply::INVALID,
            "found data behind the last field; expected none",
        ))
    }
}

/// Reads a string with its length in front.
fn string<'a>(fields: &mut MessageFields<'a>) -> Result<&'a str, Refusal> {
    let length = fields.u32().ok_or(SHORT)? as usize;
    let bytes = fields.take(length).ok_or(SHORT)?;
    if length > wire::STRING_BYTES_MAX {
        return Err((
            option_reply::INVALID,
            "found a string of more than 4096 bytes; shorten it",
        ));
    }
    std::str::from_utf8(bytes)
        .map_err(|_| (option_reply::INVALID, "found a string that is not UTF-8"))
}

/// Writes the header of a reply with `length` bytes of data.
fn reply(output: &mut OutputBytes, option: u32, kind: u32, length: usize) {
    output.put_u64(wire::OPTION_REPLY);
    output.put_u32(option);
    output.put_u32(kind);
    output.put_u32(length as u32);
}

fn reply_info(output: &mut OutputBytes, option: u32, kind: u16, length: usize) {
    reply(output, option, option_reply::INFO, 2 + length);
    output.put_u16(kind);
}

fn acknowledge(output: &mut OutputBytes, option: u32) {
    reply(output, option, option_reply::ACK, 0);
}

fn refuse(output: &mut OutputBytes, option: u32, kind: u32, message: impl fmt::Display) {
    let header = output.mark();
    reply(output, option, kind, 0);
    let length = output.put_text(message);
    output.patch(
        header + wire::OPTION_REPLY_BYTES - 4,
        &(length as u32).to_be_bytes(),
    );
}
