//! From the greeting to an open export: flags and options.
//!
//! An option is answered when it is complete; `options.rs` has the answers. An option too long to
//! keep is skipped, and answered at its end.

use crate::error::ProtocolError;
use crate::export::Exports;
use crate::input::{INPUT_BYTES, Input, MessageFields};
use crate::options;
use crate::output::OutputBytes;
use crate::terms::{AgreedTerms, HandshakeProgress, OPTION_BYTES_MAX};
use crate::wire;

/// Largest number of options of one client, and their largest size in bytes. The limits are enough
/// to ask about a thousand exports one by one.
const OPTIONS_MAX: u32 = 1024;
const HANDSHAKE_BYTES_MAX: u64 = 1 << 20;

// After `Input::space` has moved the pending bytes to the front, a whole option always fits.
const _: () = assert!(OPTION_BYTES_MAX + wire::OPTION_HEADER_BYTES < INPUT_BYTES / 2);

/// State of a handshake.
#[derive(Debug)]
pub(crate) struct Handshake {
    state: HandshakeState,
    options: u32,
    bytes: u64,
    pub(crate) terms: AgreedTerms,
}

#[derive(Clone, Copy, Debug)]
enum HandshakeState {
    ClientFlags,
    Header,
    Data(OptionHeader),
    Skip { option: u32, left: usize },
}

#[derive(Clone, Copy, Debug)]
struct OptionHeader {
    option: u32,
    length: usize,
}

impl Handshake {
    /// Writes the greeting to the output.
    pub(crate) fn begin(output: &mut OutputBytes) -> Handshake {
        output.put_u64(wire::GREETING);
        output.put_u64(wire::OPTION);
        output.put_u16((wire::FIXED_NEWSTYLE | wire::NO_ZEROES) as u16);
        Handshake {
            state: HandshakeState::ClientFlags,
            options: 0,
            bytes: 0,
            terms: AgreedTerms::default(),
        }
    }

    /// Carries out one step: the flags, a header or an option.
    pub(crate) fn step(
        &mut self,
        exports: &Exports,
        input: &mut Input,
        output: &mut OutputBytes,
    ) -> Result<HandshakeProgress, ProtocolError> {
        match self.state {
            HandshakeState::ClientFlags => self.client_flags(input),
            HandshakeState::Header => self.header(input),
            HandshakeState::Data(header) => self.data(header, exports, input, output),
            HandshakeState::Skip { option, left } => self.skip(option, left, input, output),
        }
    }

    fn client_flags(&mut self, input: &mut Input) -> Result<HandshakeProgress, ProtocolError> {
        let Some(&flags) = input.peek::<{ wire::CLIENT_FLAGS_BYTES }>() else {
            return Ok(HandshakeProgress::Waiting);
        };
        let (found, offered) = (
            u32::from_be_bytes(flags),
            wire::FIXED_NEWSTYLE | wire::NO_ZEROES,
        );
        // Unknown client flags must end the session (protocol, "Client flags"): the client may go
        // on in another form.
        if found & !offered != 0 {
            return Err(ProtocolError::ClientFlags { found, offered });
        }
        input.take(flags.len());
        self.terms.no_zeroes = found & wire::NO_ZEROES != 0;
        self.state = HandshakeState::Header;
        Ok(HandshakeProgress::Going)
    }

    fn header(&mut self, input: &mut Input) -> Result<HandshakeProgress, ProtocolError> {
        let Some(bytes) = input.peek::<{ wire::OPTION_HEADER_BYTES }>() else {
            return Ok(HandshakeProgress::Waiting);
        };
        let mut fields = MessageFields::new(bytes);
        let (Some(found), Some(option), Some(length)) = (fields.u64(), fields.u32(), fields.u32())
        else {
            return Ok(HandshakeProgress::Waiting);
        };
        if found != wire::OPTION {
            return Err(ProtocolError::OptionMagic {
                position: input.position(),
                found,
            });
        }
        // Limits are checked before the data are taken. A client that announces gigabytes is
        // refused at once.
        self.count(length)?;
        input.take(wire::OPTION_HEADER_BYTES);
        let length = length as usize;
        // Data beyond the examined length are dropped as they arrive, so that they need no memory.
        self.state = if length > OPTION_BYTES_MAX {
            HandshakeState::Skip {
                option,
                left: length,
            }
        } else {
            HandshakeState::Data(OptionHeader { option, length })
        };
        Ok(HandshakeProgress::Going)
    }

    /// Counts an option against the limits, before any of its data are taken.
    fn count(&mut self, length: u32) -> Result<(), ProtocolError> {
        self.options += 1;
        self.bytes += u64::from(length) + wire::OPTION_HEADER_BYTES as u64;
        if self.options > OPTIONS_MAX {
            return Err(ProtocolError::TooManyOptions { limit: OPTIONS_MAX });
        }
        if self.bytes > HANDSHAKE_BYTES_MAX {
            return Err(ProtocolError::HandshakeTooLong {
                found: self.bytes,
                limit: HANDSHAKE_BYTES_MAX,
            });
        }
        Ok(())
    }

    fn data(
        &mut self,
        header: OptionHeader,
        exports: &Exports,
        input: &mut Input,
        output: &mut OutputBytes,
    ) -> Result<HandshakeProgress, ProtocolError> {
        let Some(data) = input.bytes().get(..header.length) else {
            return Ok(HandshakeProgress::Waiting);
        };
        // The state is set first, because an answer may end the handshake.
        self.state = HandshakeState::Header;
        let progress = options::answer(header.option, data, &mut self.terms, exports, output)?;
        // The data lie in the input, so they are taken after the answer was formed.
        input.take(header.length);
        // The client must wait for the answer before it sends more. An attacker on the way may have
        // added these bytes, to have them taken for encrypted ones.
        if matches!(progress, HandshakeProgress::Encrypts) && !input.bytes().is_empty() {
            return Err(ProtocolError::AheadOfTls {
                position: input.position(),
            });
        }
        Ok(progress)
    }

    fn skip(
        &mut self,
        option: u32,
        left: usize,
        input: &mut Input,
        output: &mut OutputBytes,
    ) -> Result<HandshakeProgress, ProtocolError> {
        let skipped = input.skip(left);
        if skipped < left {
            self.state = HandshakeState::Skip {
                option,
                left: left - skipped,
            };
            return Ok(HandshakeProgress::Waiting);
        }
        self.state = HandshakeState::Header;
        options::answer_too_big(option, &mut self.terms, output)
    }
}
