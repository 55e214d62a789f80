//! Certificates and keys, from files to a TLS configuration.

use fullstroke_nbd::Encryption;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, ServerConfig, WebPkiClientVerifier};
use rustls::{RootCertStore, crypto};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names of the files, as in libnbd, nbdkit and QEMU.
const CERTIFICATE: &str = "server-cert.pem";
const KEY: &str = "server-key.pem";
const AUTHORITY: &str = "ca-cert.pem";

/// Loaded certificates and keys.
pub type TlsConfig = Arc<ServerConfig>;

/// Options of the encryption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// True to refuse clients without TLS.
    pub required: bool,
    /// Folder with `server-cert.pem` and `server-key.pem`.
    pub certificates: PathBuf,
    /// True if clients must present a certificate of the authority in `ca-cert.pem` of the same
    /// folder.
    pub verify_peer: bool,
}

/// Reason why TLS is impossible with these files.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is missing or unreadable.
    #[error("{}: {source}; expected a PEM file with {expected}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
        /// Expected content.
        expected: &'static str,
    },
    /// A file has the wrong content.
    #[error("{}: found {found}; expected {expected}", path.display())]
    Content {
        /// Path of the file.
        path: PathBuf,
        /// Content of the file.
        found: String,
        /// Expected content.
        expected: &'static str,
    },
}

impl TlsOptions {
    /// Returns the TLS mode announced by the NBD protocol.
    pub fn encryption(&self) -> Encryption {
        if self.required {
            Encryption::Required
        } else {
            Encryption::Offered
        }
    }

    /// Reads the files.
    ///
    /// # Errors
    /// If a file is missing or has the wrong content.
    pub fn load(&self) -> Result<TlsConfig, TlsError> {
        let (certificate, key) = (
            self.certificates.join(CERTIFICATE),
            self.certificates.join(KEY),
        );
        let provider = Arc::new(crypto::ring::default_provider());
        let versions = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| content(&certificate, error.to_string(), CERTIFICATES))?;
        let clients = if self.verify_peer {
            let (path, roots) = self.authorities()?;
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|error| content(&path, error.to_string(), AUTHORITIES))?;
            versions.with_client_cert_verifier(verifier)
        } else {
            versions.with_no_client_auth()
        };
        let chain = certificates(&certificate, CERTIFICATES)?;
        let secret =
            PrivateKeyDer::from_pem_file(&key).map_err(|error| unread(&key, error, KEYS))?;
        let mut config = clients
            .with_single_cert(chain, secret)
            .map_err(|error| match error {
                rustls::Error::InconsistentKeys(_) => content(
                    &key,
                    "the key of another certificate".into(),
                    "the key of server-cert.pem",
                ),
                rustls::Error::InvalidCertificate(_) => {
                    content(&certificate, error.to_string(), CERTIFICATES)
                }
                error => content(&key, error.to_string(), KEYS),
            })?;
        // NBD clients connect once and stay, so there are no sessions to resume.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    fn authorities(&self) -> Result<(PathBuf, RootCertStore), TlsError> {
        let path = self.certificates.join(AUTHORITY);
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&path, AUTHORITIES)? {
            roots
                .add(certificate)
                .map_err(|error| content(&path, error.to_string(), AUTHORITIES))?;
        }
        Ok((path, roots))
    }
}

const CERTIFICATES: &str = "the server's certificate, and those between it and its authority's";
const KEYS: &str = "the key of server-cert.pem, unencrypted (PKCS #8, PKCS #1 or SEC 1)";
const AUTHORITIES: &str = "the certificates of who certifies clients";

/// Returns all certificates of a file, at least one.
fn certificates(
    path: &Path,
    expected: &'static str,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unread(path, error, expected))?;
    if found.is_empty() {
        return Err(unread(path, pem::Error::NoItemsFound, expected));
    }
    Ok(found)
}

fn unread(path: &Path, error: pem::Error, expected: &'static str) -> TlsError {
    let found = match error {
        pem::Error::Io(source) => {
            return TlsError::Read {
                path: path.to_owned(),
                source,
                expected,
            };
        }
        pem::Error::NoItemsFound => "nothing of the kind".to_owned(),
        other => format!("no PEM ({other})"),
    };
    content(path, found, expected)
}

fn content(path: &Path, found: String, expected: &'static str) -> TlsError {
    TlsError::Content {
        path: path.to_owned(),
        found,
        expected,
    }
}
