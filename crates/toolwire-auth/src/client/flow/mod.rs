//! The chain as a state machine without input and output.
//!
//! [`begin`] says what to do first; the answer is given to [`Flow::next`], which says what to do then. Every transition
//! consumes the flow, so that no step can be skipped or repeated, and time and randomness come in from outside.
//!
//! ```text
//! FindResource → FindIssuer → Identify → (Register) → Ask → (Validate) → Exchange → Save → Done
//!       └─────────────────────────────── Renew ──────────────────────────────────┘
//! ```

mod ask;
mod find;
mod identify;
mod plan;
mod state;
mod steps;
#[cfg(test)]
mod tests;
mod token;

use std::{
    fmt,
    time::{Duration, SystemTime},
};

pub use self::{
    plan::{Dangerous, Dpop, FixedEndpoints, Idp, Plan, Redirects, Settings, Stored, Way},
    steps::Flow,
};
use super::{
    authorize::{AuthorizationUrl, Callback},
    device::DeviceCode,
    error::AuthError,
    event::Event,
    register::Registration,
    scopes::Scopes,
    token::Credential,
};
use crate::{
    Endpoint, Issuer, Secret,
    challenge::Challenge,
    fetch::{FetchError, NamedBy, Request, Response},
};

/// Why a flow begins.
#[derive(Clone, Debug)]
pub enum Cause {
    /// A login was asked for; nothing was refused.
    Start,
    /// The server refused a request: it had no token, or not a good one. With these challenges.
    Refused(Vec<Challenge>),
    /// The token lacks scopes: these challenges, and what is to be asked for, which
    /// [`StepUps::more`](super::scopes::StepUps::more) says.
    Lack(Vec<Challenge>, Scopes),
    /// The stored credential is about to end.
    Expired,
}

/// Time and randomness for one step. Each step needs new randomness.
#[derive(Clone)]
pub struct Env {
    /// The time of day.
    pub now: SystemTime,
    /// Bytes that nobody can guess.
    pub entropy: [u8; 64],
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env").field("now", &self.now).finish_non_exhaustive()
    }
}

/// What to do next.
#[derive(Debug)]
pub enum Effect {
    /// Send a request. Goes on with [`Input::Response`] or [`Input::Unreachable`].
    Send(Request),
    /// Show a person this page, if it may be opened from here. Goes on with [`Input::Callback`] or [`Input::Declined`].
    Browse(AuthorizationUrl),
    /// Show a person this code, if its pages, which were named by this peer or by the application, may be opened from here.
    /// Goes on with [`Input::Elapsed`] as soon as it is shown, or with [`Input::Declined`].
    ShowCode(DeviceCode, NamedBy),
    /// Wait. Goes on with [`Input::Elapsed`], or with [`Input::Declined`] if the person gave up.
    Wait(Duration),
    /// Ask the application for a token of its platform. Goes on with [`Input::Assertion`] or [`Input::Declined`].
    Assert(Audience),
    /// Ask the application for a token of the login at this identity provider. Goes on with [`Input::Assertion`] or
    /// [`Input::Declined`].
    Identify(Issuer),
    /// Keep something. Goes on with [`Input::Saved`].
    Save(Change),
    /// The flow is done.
    Done(Box<Credential>),
}

/// The audience of an assertion: most issuers expect their identifier, some their token endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Audience {
    /// The issuer that the assertion is sent to.
    pub issuer: Issuer,
    /// The token endpoint of that issuer, as its metadata name it.
    pub token_endpoint: Endpoint,
}

/// A change of what is stored.
#[derive(Clone, Debug)]
pub enum Change {
    /// A client was registered at its issuer.
    Registered(Registration),
    /// The issuer does not know this client any more.
    Forgotten(Registration),
    /// The configured public client without an issuer belongs to this one from now on, for this server.
    Bound {
        /// The client.
        client_id: String,
        /// Its issuer.
        issuer: Issuer,
    },
    /// A new credential for the server. Written before it is used.
    Granted(Box<Credential>),
    /// This refresh token is not valid any more: to be deleted if it is still the stored one.
    RefreshRejected(Secret),
}

/// What came of the last effect.
#[derive(Debug)]
pub enum Input {
    /// The answer to a request, whatever its status.
    Response(Response),
    /// No answer came.
    Unreachable(FetchError),
    /// What the browser brought back.
    Callback(Callback),
    /// The person, or the application, does not go on.
    Declined,
    /// The time is over.
    Elapsed,
    /// The assertion that was asked for.
    Assertion(Secret),
    /// It is kept, or could not be and the application goes on nevertheless.
    Saved,
}

/// Begins a flow. What is found on the way is appended to `events`.
pub fn begin(
    plan: Plan,
    cause: Cause,
    env: &Env,
    events: &mut Vec<Event>,
) -> Result<(Flow, Effect), AuthError> {
    Flow::begin(plan, cause, env, events)
}
