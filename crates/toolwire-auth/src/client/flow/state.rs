//! What a flow knows while it waits.

use std::time::SystemTime;

use super::{Effect, steps::Flow};
use crate::{
    Endpoint, Issuer, Resource, Secret,
    challenge::Challenge,
    client::{
        AuthError, Step,
        authorize::Pending,
        device::Waiting,
        discover::{
            issuer::{Search, ServerMetadata},
            resource::{Place, ResourceMetadata},
        },
        register::Client,
        scopes::Scopes,
        skew::Skew,
        token::{Credential, DpopKey, Grant, GrantKind, TokenType},
    },
    fetch::{FetchError, NamedBy, Response},
};

/// What outlives a single state.
#[derive(Debug)]
pub(super) struct Course {
    pub(super) why: Why,
    /// The challenge that counts, and whether it wants proofs.
    pub(super) challenge: Option<Challenge>,
    pub(super) dpop_challenged: bool,
    /// What a step-up asks for.
    pub(super) ask: Option<Scopes>,
    /// Whether a renewal has been tried, and a client registered anew.
    pub(super) renewed: bool,
    pub(super) started_over: bool,
    /// How far the clock of the issuer is ahead of ours, or behind it.
    pub(super) skew: Skew,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Start,
    Refused,
    Lack,
    Expired,
}

/// What is to be logged in to.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) resource: Resource,
    pub(super) issuers: Vec<Issuer>,
    pub(super) metadata: Option<ResourceMetadata>,
    /// Whether the server itself may be the issuer, without any metadata.
    pub(super) early: bool,
}

/// Everything that is settled before anybody is asked.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) resource: Option<Resource>,
    pub(super) metadata: ServerMetadata,
    pub(super) client: Client,
    pub(super) scopes: Scopes,
    pub(super) dpop: Option<DpopKey>,
    /// The last nonce of the issuer.
    pub(super) nonce: Option<String>,
}

/// A token request that is under way.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) grant: Grant,
    pub(super) kind: GrantKind,
    pub(super) issuer: Issuer,
    pub(super) client: Client,
    pub(super) resource: Option<Resource>,
    pub(super) scopes: Option<Scopes>,
    pub(super) requested: Scopes,
    pub(super) dpop: Option<DpopKey>,
    pub(super) nonce: Option<String>,
    pub(super) nonces: u8,
    pub(super) endpoint: Endpoint,
    pub(super) revocation: Option<Endpoint>,
    pub(super) found: SystemTime,
    pub(super) named_by: NamedBy,
}

impl Call {
    pub(super) fn is_renewal(&self) -> bool {
        matches!(self.grant, Grant::Refresh(_))
    }

    pub(super) fn wanted(&self) -> TokenType {
        if self.dpop.is_some() { TokenType::Dpop } else { TokenType::Bearer }
    }

    pub(super) fn step(&self) -> Step {
        if self.is_renewal() { Step::Renewal } else { Step::Token }
    }
}

#[derive(Debug)]
pub(super) enum State {
    FindResource {
        asked: Place,
        left: Vec<Place>,
        mismatch: Option<AuthError>,
    },
    FindIssuer {
        search: Search,
        target: Target,
        left: Vec<Issuer>,
    },
    Register {
        target: Target,
        metadata: Box<ServerMetadata>,
        scopes: Scopes,
        dpop: Option<DpopKey>,
        by_name: bool,
    },
    Ask {
        pending: Pending,
        ready: Box<Ready>,
    },
    DeviceAsk {
        ready: Box<Ready>,
    },
    DeviceShow {
        waiting: Waiting,
        ready: Box<Ready>,
    },
    DeviceWait {
        waiting: Waiting,
        ready: Box<Ready>,
    },
    DevicePoll {
        waiting: Waiting,
        call: Box<Call>,
        ready: Box<Ready>,
    },
    Assertion {
        ready: Box<Ready>,
    },
    FindIdp {
        search: Search,
        subject: Secret,
        ready: Box<Ready>,
    },
    IdpExchange {
        endpoint: Endpoint,
        ready: Box<Ready>,
    },
    Token {
        call: Box<Call>,
        target: Option<Target>,
    },
    SaveClient {
        ready: Box<Ready>,
    },
    SaveForgotten,
    SaveRejected {
        target: Option<Target>,
    },
    SaveCredential {
        credential: Box<Credential>,
    },
    Done,
}

/// An answer, or that none came.
pub(super) type Answer<'a> = Result<&'a Response, &'a FetchError>;
/// What a transition ends with.
pub(super) type Turned = Result<(Flow, Effect), AuthError>;
