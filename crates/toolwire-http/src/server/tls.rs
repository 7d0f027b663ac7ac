//! TLS, for an endpoint that clients reach directly.

use std::{error::Error, fmt, sync::Arc};

use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};

use super::Serve;

/// The certificate of an endpoint and how it is used.
///
/// ```no_run
/// use tokio::net::TcpListener;
/// use toolwire_http::server::{HttpService, Tls};
/// use toolwire_server::{Server, tool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder("clock", "1.0").tool(tool("now", || async { "noon" })).build()?;
/// let tls = Tls::from_pem(&std::fs::read("chain.pem")?, &std::fs::read("key.pem")?)?;
/// let mcp = HttpService::builder(server).path("/mcp").public_url("https://clock.example/mcp").build()?;
/// mcp.serve(TcpListener::bind("0.0.0.0:443").await?).tls(tls).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Tls(Arc<ServerConfig>);

impl Tls {
    /// A certificate chain and its private key, both in PEM.
    ///
    /// # Errors
    /// When one of them cannot be read, or the two do not belong together.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(|error| TlsError::new("the certificate chain cannot be read", error))?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| TlsError::new("the private key cannot be read", error))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::new("TLS cannot be set up", error))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| TlsError::new("the certificate and the key cannot be used", error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }
}

/// Everything that `rustls` can do, for those who need more than a certificate. HTTP/2 is used only if the
/// protocols of the configuration name `h2`.
impl From<Arc<ServerConfig>> for Tls {
    fn from(config: Arc<ServerConfig>) -> Self {
        Self(config)
    }
}

impl From<Tls> for tokio_rustls::TlsAcceptor {
    fn from(tls: Tls) -> Self {
        tls.0.into()
    }
}

impl Serve {
    /// Speaks TLS. A handshake has to be done within the limit `header_timeout`.
    pub fn tls(self, tls: impl Into<Tls>) -> Self {
        self.with_acceptor(tls.into().into())
    }
}

/// A certificate or a key that cannot be used.
#[derive(Debug)]
pub struct TlsError {
    what: &'static str,
    source: Box<dyn Error + Send + Sync>,
}

impl TlsError {
    fn new(what: &'static str, source: impl Error + Send + Sync + 'static) -> Self {
        Self { what, source: Box::new(source) }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
}

impl Error for TlsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}
