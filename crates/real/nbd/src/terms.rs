//! Terms of a handshake, and the results of its steps.

use crate::session::{Encryption, Session};

/// Longest data of an option that are examined: three strings of the greatest length, with the
/// fields between them.
pub(crate) const OPTION_BYTES_MAX: usize = 16 << 10;

/// Agreed terms.
#[derive(Debug, Default)]
pub(crate) struct AgreedTerms {
    /// True if the answer to an export name has no padding.
    pub(crate) no_zeroes: bool,
    /// True if replies may come in chunks.
    pub(crate) structured: bool,
    /// Export for which the client selected the allocation context.
    pub(crate) status_of: Option<usize>,
    /// Use of TLS by the server.
    pub(crate) encryption: Encryption,
    /// True if the connection is encrypted.
    pub(crate) encrypted: bool,
}

impl AgreedTerms {
    /// Returns true if encryption must come before everything else.
    pub(crate) fn awaits_encryption(&self) -> bool {
        self.encryption == Encryption::Required && !self.encrypted
    }

    /// Starts encryption. Options in the clear may come from an attacker on the way
    /// (CVE-2021-3716), so they no longer count.
    pub(crate) fn encrypt(&mut self) {
        *self = AgreedTerms {
            no_zeroes: self.no_zeroes,
            encryption: self.encryption,
            encrypted: true,
            ..AgreedTerms::default()
        };
    }
}

/// Result of a step.
#[derive(Debug)]
pub(crate) enum HandshakeProgress {
    /// More bytes are needed.
    Waiting,
    /// The next step can follow.
    Going,
    /// An export is open.
    Opened(Session),
    /// The client ended the session.
    Aborted,
    /// The following bytes are encrypted.
    Encrypts,
}
