//! TLS to a server: what is trusted, and what it means when an agreement fails.

use std::{io, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, Error,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use rustls_platform_verifier::Verifier;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsConnector, client::TlsStream};
use url::Host;

use super::error::{CertificateFault, Kind, NetError};

const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// Certificates that are trusted besides those of the system.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roots(Vec<CertificateDer<'static>>);

impl Roots {
    /// Adds the certificates in `pem`, and says whether there were any that can be read.
    pub(crate) fn add(&mut self, pem: &[u8]) -> bool {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        match read {
            Ok(certificates) if !certificates.is_empty() => {
                self.0.extend(certificates);
                true
            }
            _ => false,
        }
    }
}

/// How this client speaks TLS.
#[derive(Clone)]
pub(crate) struct TlsClient {
    both: TlsConnector,
    http1: TlsConnector,
}

impl TlsClient {
    /// Trusts what the system trusts, and `roots`.
    pub(crate) fn new(roots: &Roots) -> Result<Self, Error> {
        // What the program has chosen to encrypt with, or else what the server side of this crate uses.
        let provider =
            CryptoProvider::get_default().cloned().unwrap_or_else(|| Arc::new(ring::default_provider()));
        let verifier = verifier(roots, &provider)?;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![HTTP1.to_vec()];
        let http1 = TlsConnector::from(Arc::new(config.clone()));
        config.alpn_protocols.insert(0, HTTP2.to_vec());
        Ok(Self { both: TlsConnector::from(Arc::new(config)), http1 })
    }

    /// Shakes hands. HTTP/2 is offered only with `http2`.
    pub(super) async fn handshake<S>(
        &self,
        stream: S,
        host: &Host<String>,
        http2: bool,
    ) -> Result<TlsStream<S>, NetError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = server_name(host).ok_or_else(|| {
            NetError::unsent(Kind::Invalid, format!("{host} is not a name that a certificate can be for"))
        })?;
        let connector = if http2 { &self.both } else { &self.http1 };
        connector.connect(name, stream).await.map_err(|error| explain(&error, host))
    }
}

/// Whether the server has chosen HTTP/2.
pub(super) fn chose_http2<S>(stream: &TlsStream<S>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(HTTP2)
}

#[cfg(not(target_os = "android"))]
fn verifier(roots: &Roots, provider: &Arc<CryptoProvider>) -> Result<Verifier, Error> {
    Verifier::new_with_extra_roots(roots.0.iter().cloned(), Arc::clone(provider))
}

#[cfg(target_os = "android")]
fn verifier(roots: &Roots, provider: &Arc<CryptoProvider>) -> Result<Verifier, Error> {
    match roots.0.is_empty() {
        true => Verifier::new(Arc::clone(provider)),
        false => {
            Err(Error::General("Android does not take certificates beside those of the system".to_owned()))
        }
    }
}

fn server_name(host: &Host<String>) -> Option<ServerName<'static>> {
    match host {
        Host::Domain(name) => ServerName::try_from(name.clone()).ok(),
        Host::Ipv4(address) => Some(ServerName::from(std::net::IpAddr::from(*address))),
        Host::Ipv6(address) => Some(ServerName::from(std::net::IpAddr::from(*address))),
    }
}

/// What a handshake that failed means.
fn explain(error: &io::Error, host: &Host<String>) -> NetError {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let (kind, text) = match tls {
        Some(Error::InvalidCertificate(why)) => {
            let (fault, text) = certificate(why, host);
            (Kind::Certificate(fault), text)
        }
        Some(Error::NoCertificatesPresented) => {
            (Kind::Certificate(CertificateFault::Other), "the server presents no certificate".to_owned())
        }
        Some(Error::InvalidMessage(_)) => {
            (Kind::NotTls, "what answers does not speak TLS; is it http:// and not https://?".to_owned())
        }
        Some(Error::AlertReceived(alert)) => {
            (Kind::Tls, format!("the server ends the TLS handshake with the alert {alert:?}"))
        }
        Some(other) => (Kind::Tls, format!("no agreement on TLS was found: {other}")),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            (Kind::NotTls, "the server closed the connection during the TLS handshake".to_owned())
        }
        None => (Kind::Closed, format!("the TLS handshake broke off: {error}")),
    };
    NetError::unsent(kind, text)
}

/// What is wrong with a certificate, in words for a person.
fn certificate(why: &CertificateError, host: &Host<String>) -> (CertificateFault, String) {
    let (fault, text) = match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            (CertificateFault::Expired, "has expired")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            (CertificateFault::Expired, "is not valid yet; is the clock of this machine right?")
        }
        CertificateError::UnknownIssuer => {
            (CertificateFault::Untrusted, "is not trusted: its issuer is not known here")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            let text = format!("the certificate of the server is for another name than {host}");
            return (CertificateFault::OtherName, text);
        }
        CertificateError::Revoked => (CertificateFault::Other, "was revoked"),
        CertificateError::BadSignature => (CertificateFault::Untrusted, "has a signature that is not right"),
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => (
            CertificateFault::Untrusted,
            "is not trusted: its signature is of a kind that its issuer cannot make",
        ),
        other => {
            let text = format!("the certificate of the server cannot be used: {other}");
            return (CertificateFault::Other, text);
        }
    };
    (fault, format!("the certificate of the server {text}"))
}

impl std::fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsClient").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use rustls::{AlertDescription, InvalidMessage};

    use super::*;

    #[test]
    fn what_failed_is_told_by_its_type_and_in_plain_words() {
        let host = Host::parse("host.example").unwrap();
        let bad = Kind::Certificate;
        let cases = [
            (
                Error::InvalidCertificate(CertificateError::Expired),
                bad(CertificateFault::Expired),
                "has expired",
            ),
            (
                Error::InvalidCertificate(CertificateError::NotValidYet),
                bad(CertificateFault::Expired),
                "clock",
            ),
            (
                Error::InvalidCertificate(CertificateError::UnknownIssuer),
                bad(CertificateFault::Untrusted),
                "not trusted",
            ),
            (
                Error::InvalidCertificate(CertificateError::NotValidForName),
                bad(CertificateFault::OtherName),
                "another name than host.example",
            ),
            (Error::NoCertificatesPresented, bad(CertificateFault::Other), "presents no certificate"),
            (Error::InvalidMessage(InvalidMessage::InvalidContentType), Kind::NotTls, "does not speak TLS"),
            (Error::AlertReceived(AlertDescription::HandshakeFailure), Kind::Tls, "HandshakeFailure"),
        ];
        for (error, kind, words) in cases {
            let error = explain(&io::Error::new(io::ErrorKind::InvalidData, error), &host);
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(words) && !error.was_sent(), "{error}");
        }
        let cut = explain(&io::ErrorKind::UnexpectedEof.into(), &host);
        assert_eq!(cut.kind(), Kind::NotTls);
    }
}
