//! A server that can be logged in to.

use std::time::Duration;

use toolwire::{
    auth::{
        Endpoint, Origins,
        challenge::{self, Reading},
        client::store::Key,
    },
    http::client::{
        authorize::Refusal,
        fetch::{FetchError, Fetched, Fetcher},
    },
};
use url::Url;

use super::Settings;
use crate::{
    commands::doctor::web,
    failure::{Code, Failure, Result},
    redact,
    target::{Address, shell_word},
};

/// A server at a URL.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// As it is typed.
    pub(crate) typed: String,
    /// Where it is, as HTTP knows it.
    pub(crate) url: String,
    /// The headers that it is configured with and that say nothing about who is calling.
    headers: Vec<(String, String)>,
    /// Whether it is configured with others, too, which are used instead of a login.
    pub(crate) has_credentials: bool,
}

/// What a server says to somebody who does not say who they are.
#[derive(Clone, Debug)]
pub(crate) struct Knock {
    pub(crate) answer: Fetched,
    pub(crate) reading: Reading,
}

impl Site {
    /// The server at an address, if it is one of the network.
    pub(crate) fn of(name: &str, address: &Address) -> Option<Self> {
        let (Address::Http(remote) | Address::WebSocket(remote)) = address else { return None };
        // A socket is opened by a request, at the same place.
        let url = match remote.url.split_once("://")? {
            ("ws", rest) => format!("http://{rest}"),
            ("wss", rest) => format!("https://{rest}"),
            _ => remote.url.clone(),
        };
        let plain = |(name, _): &&(String, String)| !redact::is_secret(name);
        Some(Self {
            typed: shell_word(name),
            url,
            headers: remote.headers.iter().filter(plain).cloned().collect(),
            has_credentials: address.has_credentials(),
        })
    }

    /// What its login is stored under.
    pub(crate) fn key(&self, settings: &Settings) -> Result<Key> {
        self.endpoint(settings).map(|endpoint| Key::credential(endpoint.as_str(), ""))
    }

    /// Its address, if tokens may be sent there.
    pub(crate) fn endpoint(&self, settings: &Settings) -> Result<Endpoint> {
        let refused = |why: &dyn std::fmt::Display| {
            let text = format!("no token is sent to {}: the address {why}", self.shown());
            Failure::new(Code::Usage, text)
        };
        let trusted = settings.trust_origins.iter().map(String::as_str);
        let trusted = Origins::parse(trusted).map_err(|why| refused(&why))?;
        Endpoint::parse_trusting(&self.url, &trusted).map_err(|why| {
            refused(&why).hint(format!("if the network is trusted: --trust-origin {}", self.origin()))
        })
    }

    /// What a file about it is called.
    pub(crate) fn digest(&self) -> String {
        let url = Url::parse(&self.url).map_or_else(|_| self.url.clone(), String::from);
        Key::credential(&url, "").digest().to_owned()
    }

    /// The address without what may be secret in it.
    pub(crate) fn shown(&self) -> String {
        redact::address_of(&self.url)
    }

    pub(crate) fn origin(&self) -> String {
        Url::parse(&self.url).map_or_else(|_| "ORIGIN".to_owned(), |url| url.origin().ascii_serialization())
    }

    /// Asks without saying who is asking.
    pub(crate) async fn knock(&self, fetcher: &Fetcher, patience: Duration) -> Result<Knock, FetchError> {
        let answer = web::knock(fetcher, &self.url, &self.headers, patience).await?;
        let reading = challenge::read(&answer.headers);
        Ok(Knock { answer, reading })
    }
}

impl Knock {
    /// The refusal, if it is one.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        let answer = &self.answer;
        matches!(answer.status.as_u16(), 401 | 403)
            .then(|| Refusal::new(answer.status, answer.headers.clone(), answer.reached.clone()))
    }
}
