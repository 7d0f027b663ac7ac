//! How a wire is described and opened.

use std::time::Duration;

use serde_json::{Value, json};
use toolwire_protocol::Version;

use super::{DEFAULT_PATIENCE, Identity, Wire};
use crate::{AnyDuplex, Target};

/// The description of a [`Wire`]. Made by [`Wire::builder`].
///
/// ```
/// use serde_json::json;
/// use toolwire_protocol::Version;
/// use toolwire_server::Server;
/// use toolwire_testkit::Wire;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = Server::builder("demo", "1.0").build().unwrap();
/// let wire = Wire::builder(Version::LATEST).capabilities(json!({ "elicitation": {} })).connect(&server).await;
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct WireBuilder {
    version: Version,
    identity: Identity,
    patience: Duration,
    handshake: bool,
}

impl WireBuilder {
    pub(super) fn new(version: Version) -> Self {
        let info = json!({ "name": "toolwire-testkit", "version": env!("CARGO_PKG_VERSION") });
        let identity = Identity { info, capabilities: json!({}), log_level: None };
        Self { version, identity, patience: DEFAULT_PATIENCE, handshake: true }
    }

    /// The capabilities the client declares; none otherwise.
    pub fn capabilities(mut self, capabilities: Value) -> Self {
        self.identity.capabilities = capabilities;
        self
    }

    /// The name and version the client gives.
    pub fn client_info(mut self, info: Value) -> Self {
        self.identity.info = info;
        self
    }

    /// The log messages the client wants: set once after a handshake, or in every request of the modern era.
    pub fn log_level(mut self, level: impl Into<String>) -> Self {
        self.identity.log_level = Some(level.into());
        self
    }

    /// How long to wait for a message before the test has failed; [`DEFAULT_PATIENCE`] otherwise.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Leaves the handshake to the test.
    pub fn without_handshake(mut self) -> Self {
        self.handshake = false;
        self
    }

    /// Connects to `target` over its usual link.
    ///
    /// # Panics
    /// When it cannot be reached or refuses the handshake.
    pub async fn connect(self, target: &impl Target) -> Wire {
        let link = target.usual_link();
        let duplex = target.open(link).unwrap_or_else(|error| panic!("no connection over {link}: {error}"));
        self.over(duplex).await
    }

    /// Speaks over a connection that is already open.
    ///
    /// # Panics
    /// When the server refuses the handshake.
    pub async fn over(self, duplex: AnyDuplex) -> Wire {
        let mut wire = Wire::new(duplex, self.version, self.identity, self.patience);
        if self.handshake && !self.version.is_modern() {
            wire.shake_hands().await;
        }
        wire
    }
}

impl Wire {
    /// Sends `initialize` and `notifications/initialized`, as every legacy conversation starts.
    pub(super) async fn shake_hands(&mut self) {
        let params = json!({
            "protocolVersion": self.version.as_str(),
            "capabilities": self.identity.capabilities,
            "clientInfo": self.identity.info,
        });
        let reply = self.request("initialize", params).await;
        let agreed = &reply.result()["protocolVersion"];
        if agreed != self.version.as_str() {
            self.fail(&format!("the server does not speak {}, it offers {agreed}", self.version));
        }
        self.notify("notifications/initialized", Value::Null).await;
        if let Some(level) = self.identity.log_level.clone() {
            self.request("logging/setLevel", json!({ "level": level })).await.result();
        }
    }
}
