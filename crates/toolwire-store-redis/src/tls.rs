//! Encrypted connections, with what the rest of Toolwire encrypts with.

use std::{fs, io, sync::Arc};

use rustls::{
    ClientConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use rustls_platform_verifier::Verifier;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::settings::Trust;

/// Trusts what the system trusts, and the certificates of a file.
pub(crate) fn connector(trust: &Trust) -> Result<TlsConnector, String> {
    let roots = trust.file.as_deref().map_or(Ok(Vec::new()), certificates)?;
    // What the program has chosen to encrypt with, or else what the rest of Toolwire uses.
    let provider =
        CryptoProvider::get_default().cloned().unwrap_or_else(|| Arc::new(ring::default_provider()));
    let verifier =
        verifier(roots, &provider).map_err(|error| format!("the certificates that are trusted: {error}"))?;
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| format!("TLS is not possible: {error}"))?;
    let config =
        config.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Shakes hands with the server of this name.
pub(crate) async fn handshake(
    connector: &TlsConnector,
    name: &str,
    stream: TcpStream,
) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(name.to_owned());
    let name =
        name.map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "no certificate can be for this host"))?;
    connector.connect(name, stream).await
}

fn certificates(file: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = fs::read(file).map_err(|error| format!("{file}: {error}"))?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(format!("{file} has no certificate in PEM form that can be read")),
    }
}

#[cfg(not(target_os = "android"))]
fn verifier(
    roots: Vec<CertificateDer<'static>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Verifier, rustls::Error> {
    Verifier::new_with_extra_roots(roots, Arc::clone(provider))
}

#[cfg(target_os = "android")]
fn verifier(
    roots: Vec<CertificateDer<'static>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Verifier, rustls::Error> {
    match roots.is_empty() {
        true => Verifier::new(Arc::clone(provider)),
        false => {
            Err(rustls::Error::General("Android takes no certificates beside those of the system".to_owned()))
        }
    }
}
