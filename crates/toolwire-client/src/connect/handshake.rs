//! The first messages: finding out what the server speaks.
//!
//! The verdicts are those of [`toolwire_protocol::probe`]; here they are carried out.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};
use toolwire_protocol::{
    Method, MethodName, Params, Version,
    caching::CacheKey,
    codec::{RequestEnvelope, RequestMeta},
    envelope::write_notification,
    probe::{Probe, ProbeAnswer, ProbeError, ProbeLink, ProbeVerdict},
    wire::{
        DiscoverResult, Implementation, InitializeRequestParams, InitializeResult, NotificationParams,
        RequestParams, meta::SERVER_INFO,
    },
};

use crate::{
    client::{CONTEXT, Failure, Operation, Pace, Session, Wire},
    error::{Delivery, Error, ErrorKind},
    link::{ExchangeError, LinkErrorKind},
    settings::{EraChoice, Settings},
};

/// How to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// With `server/discover` in this version.
    Discover(Version),
    /// With `initialize` in this version.
    Initialize(Version),
    /// With `initialize` in a version that was right the last time; if it is not, as if nothing were known.
    Remembered(Version),
}

impl Opening {
    pub(super) fn first(choice: EraChoice, remembered: Option<Version>) -> Self {
        match (choice, remembered) {
            (EraChoice::Auto, Some(version)) if !version.is_modern() => Self::Remembered(version),
            (EraChoice::Legacy, _) => Self::Initialize(Version::LATEST_LEGACY),
            (EraChoice::Version(version), _) if !version.is_modern() => Self::Initialize(version),
            (EraChoice::Version(version), _) => Self::Discover(version),
            (EraChoice::Auto | EraChoice::Modern, _) => Self::Discover(Version::LATEST),
        }
    }
}

/// Why there is no session.
pub(super) enum Trouble {
    Failed(Error),
    /// The server has to be started again, to begin like this. The error counts if it cannot be.
    Restart(Opening, Error),
    /// The server has to be reached by other means, to begin like this. The error counts if it cannot be.
    Elsewhere(Opening, Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A conversation that is about to begin.
pub(super) struct Handshake<'a> {
    pub(super) wire: &'a Wire,
    pub(super) settings: &'a Settings,
    pub(super) info: &'a Implementation,
}

impl Handshake<'_> {
    pub(super) async fn open(&self, opening: Opening) -> Result<Session, Trouble> {
        match opening {
            Opening::Discover(version) => self.probe(version).await,
            Opening::Initialize(version) => self.fall_back(version, Version::LATEST).await,
            Opening::Remembered(version) => match self.initialize(version).await {
                Ok(session) => Ok(session),
                Err(Failed::Answer(ProbeAnswer::Closed, error)) => {
                    Err(Trouble::Restart(Opening::first(self.settings.era, None), error))
                }
                Err(_) => self.probe(Version::LATEST).await,
            },
        }
    }

    /// Asks a server of unknown era, at most twice.
    async fn probe(&self, version: Version) -> Result<Session, Trouble> {
        let offered = self.settings.era.offered();
        let mut sent = version;
        for last in [false, true] {
            let (answer, found) = self.discover(sent, self.patience()).await;
            let probe = Probe { link: self.wire.link.family(), offered: &offered, sent };
            match (probe.on_discover(&answer), found) {
                (ProbeVerdict::Modern(version), Ok(found)) => return Ok(self.modern(version, found)?),
                (ProbeVerdict::RetryModern(version), _) if !last => sent = version,
                (ProbeVerdict::Initialize(version), _) => return self.fall_back(version, sent).await,
                (ProbeVerdict::RestartThenInitialize(version), Err(error)) => {
                    return Err(Trouble::Restart(Opening::Initialize(version), error));
                }
                // Silence and a broken connection say nothing about versions.
                (ProbeVerdict::NoCommonVersion, Err(error)) if error.rpc().is_none() => {
                    return Err(error.into());
                }
                (ProbeVerdict::NoCommonVersion, found) => {
                    return Err(self.nothing_in_common(found.err()).into());
                }
                (_, Err(error)) => return Err(error.into()),
                (_, Ok(_)) => break,
            }
        }
        let text = "the server answers, and does not settle for a protocol version";
        Err(Error::new(ErrorKind::NoCommonVersion, Delivery::Rejected, text).into())
    }

    /// How long the first answer may take. Only on a pipe, and only with both eras to speak, is silence an answer.
    fn patience(&self) -> Duration {
        match (self.settings.era, self.wire.link.family()) {
            (EraChoice::Auto, ProbeLink::Duplex) => self.settings.probe_timeout,
            _ => self.settings.request_timeout,
        }
    }

    /// Speaks the old way, because the new one was not wanted or not understood when it was tried as `sent`.
    async fn fall_back(&self, version: Version, sent: Version) -> Result<Session, Trouble> {
        let (answer, error) = match self.initialize(version).await {
            Ok(session) => return Ok(session),
            Err(Failed::Version(error)) => return Err(error.into()),
            Err(Failed::Answer(answer, error)) => (answer, error),
        };
        let offered = self.settings.era.offered();
        let probe = Probe { link: self.wire.link.family(), offered: &offered, sent };
        match probe.on_failed_initialize(&answer) {
            // A modern server that was slow to start did not answer in time, and says so now.
            ProbeVerdict::RetryModern(version) => {
                match self.discover(version, self.settings.request_timeout).await {
                    (_, Ok(found)) => Ok(self.modern(version, found)?),
                    _ => Err(error.into()),
                }
            }
            ProbeVerdict::TryHttpSse => {
                Err(Trouble::Elsewhere(Opening::Initialize(Version::V2024_11_05), error))
            }
            _ => Err(error.into()),
        }
    }

    async fn discover(
        &self,
        version: Version,
        patience: Duration,
    ) -> (ProbeAnswer, Result<DiscoverResult, Error>) {
        let asked = match self.envelope(version) {
            Ok(envelope) => self.ask(&envelope, Method::Discover, &RequestParams::new(), patience).await,
            Err(error) => Err(Failure::Unwritable(error)),
        };
        let (answer, found) = self.read::<DiscoverResult>(Method::Discover, asked).await;
        match found {
            Ok(found) => (ProbeAnswer::Discovered(found.supported_versions.clone()), Ok(found)),
            Err(error) => (answer, Err(error)),
        }
    }

    fn modern(&self, version: Version, found: DiscoverResult) -> Result<Session, Error> {
        let envelope =
            self.envelope(version).map_err(|error| Error::invalid_params(&Method::Discover.into(), error))?;
        let server_info = found.meta.as_ref().and_then(|meta| meta.decode(SERVER_INFO)).and_then(Result::ok);
        self.negotiated(version);
        self.keep(&found);
        Ok(Session {
            envelope,
            server_info,
            capabilities: found.capabilities,
            instructions: found.instructions,
        })
    }

    /// Stores the result, so that asking for it again costs nothing as long as the server says so.
    fn keep(&self, found: &DiscoverResult) {
        let key: Option<CacheKey> = DiscoverResult::cache_key(&RequestParams::new());
        if let (Some(key), Ok(raw)) = (key, toolwire_protocol::RawJson::of(found)) {
            self.wire.host.with_cache(|cache, now| {
                let ticket = cache.ticket(&key);
                cache.insert(&key, CONTEXT, found.hint(), raw.into(), ticket, now)
            });
        }
    }

    async fn initialize(&self, version: Version) -> Result<Session, Failed> {
        let capabilities = self.wire.host.capabilities(version.era());
        let params = InitializeRequestParams::new(version.as_str(), capabilities, self.info.clone());
        let envelope = RequestEnvelope::legacy(version);
        let asked = self.ask(&envelope, Method::Initialize, &params, self.settings.request_timeout).await;
        let (answer, result) = self.read::<InitializeResult>(Method::Initialize, asked).await;
        let result = result.map_err(|error| Failed::Answer(answer, error))?;
        let chosen = self.accept(&result).map_err(Failed::Version)?;
        self.negotiated(chosen);
        self.confirm().await.map_err(Failed::Version)?;
        Ok(Session {
            envelope: RequestEnvelope::legacy(chosen),
            server_info: Some(result.server_info),
            capabilities: result.capabilities,
            instructions: result.instructions,
        })
    }

    /// The version that the server has chosen, if it is one that we speak with a handshake.
    fn accept(&self, result: &InitializeResult) -> Result<Version, Error> {
        let chosen = result.protocol_version.parse::<Version>().ok();
        let offered = self.settings.era.offered();
        chosen.filter(|version| !version.is_modern() && offered.contains(version)).ok_or_else(|| {
            let text = format!(
                "the server wants to speak protocol version {:?}; this client speaks {}",
                result.protocol_version,
                names(&offered),
            );
            Error::new(ErrorKind::NoCommonVersion, Delivery::Rejected, text)
        })
    }

    async fn confirm(&self) -> Result<(), Error> {
        let method = MethodName::from(Method::Initialized);
        let message = write_notification(&method, &NotificationParams::new())
            .map_err(|error| Error::invalid_params(&method, error))?;
        self.wire.notify(&method, message).await
    }

    fn negotiated(&self, version: Version) {
        self.wire.host.negotiated(version);
        self.wire.link.negotiated(version);
    }

    fn envelope(&self, version: Version) -> serde_json::Result<RequestEnvelope> {
        RequestEnvelope::modern(version, self.info, &self.wire.host.capabilities(version.era()))
    }

    /// Sends one of the first messages. Neither of them may be cancelled.
    async fn ask<P: Serialize + Sync>(
        &self,
        envelope: &RequestEnvelope,
        method: Method,
        params: &P,
        patience: Duration,
    ) -> Result<Params, Failure> {
        let request = self.wire.request(envelope, &method.into(), params, RequestMeta::default(), false);
        let request = request.map_err(Failure::Unwritable)?;
        self.wire.carry(request, false, None, &mut Pace { idle: patience, total: patience }).await
    }

    /// What came back: as evidence, and as what it should be.
    async fn read<T: DeserializeOwned>(
        &self,
        method: Method,
        asked: Result<Params, Failure>,
    ) -> (ProbeAnswer, Result<T, Error>) {
        let method = MethodName::from(method);
        match asked {
            Ok(result) => {
                let result = result.decode().map_err(|error| Error::invalid_response(&method, error));
                (ProbeAnswer::OtherResult, result)
            }
            Err(failure) => (evidence(&failure), Err(self.wire.explain(&method, failure).await)),
        }
    }

    fn nothing_in_common(&self, cause: Option<Error>) -> Error {
        let text = format!("the server does not speak {}", names(&self.settings.era.offered()));
        let error = Error::new(ErrorKind::NoCommonVersion, Delivery::Rejected, text);
        match cause {
            Some(cause) => error.with_source(cause),
            None => error,
        }
    }
}

/// Why `initialize` did not lead to a session.
enum Failed {
    /// The server did not agree to it.
    Answer(ProbeAnswer, Error),
    /// The server agreed, and we do not.
    Version(Error),
}

fn evidence(failure: &Failure) -> ProbeAnswer {
    match failure {
        Failure::Timeout(_) => ProbeAnswer::Timeout,
        Failure::Exchange(ExchangeError::Rpc(error)) => ProbeAnswer::Error(ProbeError::from(error)),
        Failure::Exchange(ExchangeError::Link(error)) => match &error.kind {
            LinkErrorKind::Closed => ProbeAnswer::Closed,
            LinkErrorKind::Malformed => ProbeAnswer::OtherResult,
            LinkErrorKind::Status(status, error) => {
                ProbeAnswer::Status(*status, error.as_ref().map(ProbeError::from))
            }
            LinkErrorKind::Cancelled
            | LinkErrorKind::Busy
            | LinkErrorKind::Refused
            | LinkErrorKind::Unreachable => ProbeAnswer::Unreachable,
        },
        Failure::NotTaken(_) | Failure::Unwritable(_) => ProbeAnswer::Unreachable,
    }
}

fn names(versions: &[Version]) -> String {
    versions.iter().map(|version| version.as_str()).collect::<Vec<_>>().join(", ")
}
