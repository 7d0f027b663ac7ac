//! What the answer to a client's first message says about the era of the server.
//!
//! A client that speaks both eras opens with `server/discover`. The tables here turn whatever comes back into
//! the next step. They keep no state and count no attempts: the caller sends at most one corrected probe, one
//! restart and one `initialize`, and remembers the outcome for the server.

use serde::Deserialize;

use crate::{ErrorCode, RpcError, Version};

/// What carries the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are two families of transports by design")]
pub enum ProbeLink {
    /// A duplex stream of lines: a child process or a socket.
    Duplex,
    /// HTTP requests.
    Http,
}

/// What came back from the probe.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProbeAnswer {
    /// A discover result with these versions, as they stand on the wire.
    Discovered(Vec<String>),
    /// A result that is not a discover result.
    OtherResult,
    /// A JSON-RPC error; on HTTP, one that came with a status of success.
    Error(ProbeError),
    /// An HTTP status that is not a success, or a success without a JSON-RPC message.
    Status(u16, Option<ProbeError>),
    /// No answer in time.
    Timeout,
    /// The process exited, or the peer closed the stream, without an answer.
    Closed,
    /// The peer could not be reached at all.
    Unreachable,
}

/// The parts of a JSON-RPC error that tell the eras apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeError {
    /// The error code.
    pub code: ErrorCode,
    /// The versions in `data.supported`, as they stand on the wire; empty if there are none.
    pub supported: Vec<String>,
}

impl From<&RpcError> for ProbeError {
    /// Takes the code and, if the data has the right shape, the versions.
    fn from(error: &RpcError) -> Self {
        #[derive(Deserialize)]
        struct Data {
            supported: Vec<String>,
        }

        let data = error.data.as_ref().and_then(|data| data.decode::<Data>().ok());
        Self { code: error.code, supported: data.map(|data| data.supported).unwrap_or_default() }
    }
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProbeVerdict {
    /// The server is modern: go on with this version.
    Modern(Version),
    /// The server is modern but refused the probe: correct it and send it once more, with this version.
    RetryModern(Version),
    /// The server is legacy: send `initialize`, asking for this version.
    Initialize(Version),
    /// The server may be one of the first revision: open the event stream with GET.
    TryHttpSse,
    /// The process did not survive the probe or what followed it: start it once more and send `initialize` for this version.
    RestartThenInitialize(Version),
    /// Client and server have no version in common: tell the user.
    NoCommonVersion,
    /// The answer says nothing about the era: surface it as the failure that it is.
    NotEvidence,
}

/// A probe that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    /// What carried it.
    pub link: ProbeLink,
    /// The versions the client is ready to speak, in any order.
    pub offered: &'a [Version],
    /// The modern version the probe was sent with.
    pub sent: Version,
}

impl Probe<'_> {
    /// The verdict on the answer to `server/discover`.
    ///
    /// ```
    /// use toolwire_protocol::{Version, probe::{Probe, ProbeAnswer, ProbeLink, ProbeVerdict}};
    ///
    /// let probe = Probe { link: ProbeLink::Duplex, offered: &Version::ALL, sent: Version::LATEST };
    /// let verdict = probe.on_discover(&ProbeAnswer::Timeout);
    /// assert_eq!(verdict, ProbeVerdict::Initialize(Version::LATEST_LEGACY));
    /// ```
    pub fn on_discover(&self, answer: &ProbeAnswer) -> ProbeVerdict {
        if let Some(verdict) = self.modern_answer(answer, Some(self.sent)) {
            return verdict;
        }
        match (self.link, answer) {
            (_, ProbeAnswer::Status(status, _)) if !is_evidence(*status) => ProbeVerdict::NotEvidence,
            (_, ProbeAnswer::Unreachable) | (ProbeLink::Http, ProbeAnswer::Timeout | ProbeAnswer::Closed) => {
                ProbeVerdict::NotEvidence
            }
            (ProbeLink::Duplex, ProbeAnswer::Closed) => self.legacy(ProbeVerdict::RestartThenInitialize),
            _ => self.legacy(ProbeVerdict::Initialize),
        }
    }

    /// The verdict on the answer to the `initialize` that followed the probe, when it is not a success.
    ///
    /// A server that knows neither message may still speak the transport of the first revision. A process that dies of
    /// the second message may be one that the first has upset: servers on early versions of the SDK for Python leave
    /// the probe unanswered and end with whatever follows it. Every other failure is one to be surfaced.
    pub fn on_failed_initialize(&self, answer: &ProbeAnswer) -> ProbeVerdict {
        if let Some(verdict) = self.modern_answer(answer, None) {
            return verdict;
        }
        match answer {
            ProbeAnswer::Status(400 | 404 | 405, _) if self.link == ProbeLink::Http => {
                ProbeVerdict::TryHttpSse
            }
            ProbeAnswer::Closed if self.link == ProbeLink::Duplex => {
                self.legacy(ProbeVerdict::RestartThenInitialize)
            }
            _ => ProbeVerdict::NotEvidence,
        }
    }

    /// The verdict on an answer that only a modern server gives.
    ///
    /// A version that was just refused is the last choice, even if the server lists it.
    fn modern_answer(&self, answer: &ProbeAnswer, refused: Option<Version>) -> Option<ProbeVerdict> {
        match answer {
            ProbeAnswer::Discovered(supported) => Some(self.choose(supported, None, ProbeVerdict::Modern)),
            ProbeAnswer::Error(error) | ProbeAnswer::Status(_, Some(error)) => match error.code {
                ErrorCode::HEADER_MISMATCH | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY => {
                    Some(ProbeVerdict::RetryModern(self.sent))
                }
                ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => {
                    Some(self.choose(&error.supported, refused, ProbeVerdict::RetryModern))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The newest version that both sides know: a modern one if there is any.
    fn choose(
        &self,
        supported: &[String],
        refused: Option<Version>,
        modern: impl Fn(Version) -> ProbeVerdict,
    ) -> ProbeVerdict {
        let known = supported.iter().filter_map(|text| text.parse().ok());
        let common: Vec<Version> = known.filter(|version| self.offered.contains(version)).collect();
        let others = common.iter().copied().filter(|version| Some(*version) != refused);
        let common = others.max().or_else(|| refused.filter(|version| common.contains(version)));
        match common {
            Some(version) if version.is_modern() => modern(version),
            Some(version) => ProbeVerdict::Initialize(version),
            None => ProbeVerdict::NoCommonVersion,
        }
    }

    /// A fallback to the newest legacy version, if the client speaks any.
    fn legacy(&self, verdict: impl Fn(Version) -> ProbeVerdict) -> ProbeVerdict {
        let newest = self.offered.iter().copied().filter(|version| !version.is_modern()).max();
        newest.map_or(ProbeVerdict::NoCommonVersion, verdict)
    }
}

/// Whether a status without a modern error tells of a legacy server.
///
/// Redirects, missing or refused credentials, overload and server faults can come from anything in between.
const fn is_evidence(status: u16) -> bool {
    match status {
        401 | 403 | 407 | 408 | 425 | 429 => false,
        200..=299 | 400..=499 => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
