//! What happened on the way to a credential, hop by hop, without secrets.

use std::fmt;

use super::error::AuthError;
use crate::{Endpoint, fetch::Request};

/// A step of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Step {
    /// Reading the challenge of the server.
    Challenge,
    /// Finding out which issuers the server trusts.
    Resource,
    /// Finding out what the issuer offers.
    Issuer,
    /// Choosing the client that asks.
    Identity,
    /// Registering a client.
    Registration,
    /// Asking a person in a browser.
    Authorization,
    /// Asking a person with another device.
    Device,
    /// Exchanging a token at the identity provider.
    Exchange,
    /// Asking for a token.
    Token,
    /// Renewing a token.
    Renewal,
    /// Deciding which scopes to ask for.
    Scopes,
    /// Using a token.
    Use,
    /// Keeping a credential.
    Store,
    /// Revoking a token.
    Revocation,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Challenge => "reading the challenge",
            Self::Resource => "reading the metadata of the server",
            Self::Issuer => "reading the metadata of the issuer",
            Self::Identity => "choosing a client",
            Self::Registration => "registering a client",
            Self::Authorization => "asking for authorization",
            Self::Device => "asking with another device",
            Self::Exchange => "exchanging a token at the identity provider",
            Self::Token => "asking for a token",
            Self::Renewal => "renewing the token",
            Self::Scopes => "choosing scopes",
            Self::Use => "using the token",
            Self::Store => "keeping the credential",
            Self::Revocation => "revoking the token",
        })
    }
}

/// How something was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It is as it should be.
    Fine,
    /// It is not there, or does not fit, and the next possibility is tried.
    Next,
    /// It is accepted, though it should not be so, or only because the application says so.
    Warning,
    /// It is refused.
    Refused,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fine => "fine",
            Self::Next => "next",
            Self::Warning => "warning",
            Self::Refused => "refused",
        })
    }
}

/// What is wrong with what is accepted all the same, where that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Notice {
    /// The issuer is spelled with a final slash more, or less, than its metadata have.
    IssuerSlash,
    /// The clock of the issuer, or of the server, and ours differ.
    ClockWrong,
}

/// One hop, the rule that applies, and the verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The step it belongs to.
    pub step: Step,
    /// Method and address of the request, without query.
    pub request: Option<String>,
    /// The status of its answer.
    pub status: Option<u16>,
    /// Where the rule is written down.
    pub rule: &'static str,
    /// How it was judged.
    pub verdict: Verdict,
    /// What was found.
    pub detail: String,
    /// What a program can tell it by.
    pub notice: Option<Notice>,
}

impl Event {
    /// An event without a request.
    pub fn new(step: Step, verdict: Verdict, rule: &'static str, detail: impl Into<String>) -> Self {
        Self { step, request: None, status: None, rule, verdict, detail: detail.into(), notice: None }
    }

    /// The same, with a name for what is wrong.
    #[must_use]
    pub fn notice(mut self, notice: Notice) -> Self {
        self.notice = Some(notice);
        self
    }

    /// The same, about a request.
    #[must_use]
    pub fn about(mut self, request: &Request) -> Self {
        self.request = Some(format!("{} {}", request.method, request.url));
        self
    }

    /// The same, about an address that is not asked by a request of ours.
    #[must_use]
    pub fn at(mut self, url: &Endpoint) -> Self {
        self.request = Some(url.shown());
        self
    }

    /// The same, with the status of the answer.
    #[must_use]
    pub fn answered(mut self, status: http::StatusCode) -> Self {
        self.status = Some(status.as_u16());
        self
    }

    /// The refusal that ends a flow.
    pub fn refused(error: &AuthError, rule: &'static str) -> Self {
        let event = Self::new(error.step, Verdict::Refused, rule, error.detail.clone());
        Self { request: error.url.clone(), ..event }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.step, self.verdict, self.detail)?;
        if let Some(request) = &self.request {
            write!(f, " ({request}")?;
            match self.status {
                Some(status) => write!(f, " → {status})")?,
                None => f.write_str(")")?,
            }
        }
        if self.rule.is_empty() { Ok(()) } else { write!(f, " [{}]", self.rule) }
    }
}
