//! The way to a login, gone up to where somebody would be asked. Nothing is registered or written.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use toolwire::{
    auth::challenge::Challenge,
    auth::client::{AuthError, AuthErrorKind, Event, Notice, Prospect, Verdict},
    http::client::fetch::Fetcher,
};

use super::{Keeper, Knock, Settings, Site, failure, store_of_user};
use crate::failure::Result;

/// One step of the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) step: String,
    pub(crate) request: Option<String>,
    pub(crate) status: Option<u16>,
    pub(crate) rule: String,
    pub(crate) verdict: &'static str,
    pub(crate) detail: String,
    pub(crate) notice: Option<Notice>,
}

/// The way, and where it led.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    pub(crate) hops: Vec<Hop>,
    pub(crate) outcome: Result<Prospect, AuthError>,
    /// How many lines of the challenge could not be read.
    pub(crate) unreadable: usize,
    /// Whether the server wants a token of OAuth, for all it says.
    pub(crate) challenged: bool,
    /// Whether the server has answered somebody who did not say who they are.
    answers_nobody: bool,
}

impl Walk {
    /// Whether there is nothing to log in to.
    pub(crate) fn is_open(&self) -> bool {
        let missing = |error: &AuthError| {
            matches!(error.kind, AuthErrorKind::NoResourceMetadata | AuthErrorKind::NoIssuers)
        };
        self.answers_nobody && self.outcome.as_ref().is_err_and(missing)
    }
}

impl Hop {
    /// What an event tells.
    pub(crate) fn of(event: &Event) -> Self {
        Self {
            step: event.step.to_string(),
            request: event.request.clone(),
            status: event.status,
            rule: event.rule.to_owned(),
            verdict: match event.verdict {
                Verdict::Fine => "fine",
                Verdict::Next => "next",
                Verdict::Warning => "warning",
                Verdict::Refused => "refused",
            },
            detail: event.detail.clone(),
            notice: event.notice,
        }
    }

    /// What the server said to somebody who did not say who they are.
    fn knocked(site: &Site, knock: &Knock) -> Self {
        let status = knock.answer.status.as_u16();
        let schemes: Vec<&str> = knock.reading.challenges.iter().map(Challenge::scheme).collect();
        let (verdict, mut detail) = match status {
            401 if schemes.is_empty() => {
                ("warning", "the server asks for a login, and does not say how".to_owned())
            }
            401 | 403 => ("fine", format!("the server asks for a login: {}", schemes.join(", "))),
            200..=299 => ("next", "the server answers without a login".to_owned()),
            _ => ("warning", "the server neither answers nor asks for a login".to_owned()),
        };
        if knock.reading.unreadable > 0 {
            detail.push_str("; a part of its challenge cannot be read");
        }
        Self {
            step: "asking the server".to_owned(),
            request: Some(format!("POST {}", site.shown())),
            status: Some(status),
            rule: "RFC 6750, 3".to_owned(),
            verdict,
            detail,
            notice: None,
        }
    }

    /// For scripts.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "step": self.step, "request": self.request, "status": self.status,
            "rule": self.rule, "verdict": self.verdict, "detail": self.detail,
        })
    }
}

/// Goes the way.
pub(crate) async fn walk(site: &Site, settings: &Settings, fetcher: &Fetcher, knock: &Knock) -> Result<Walk> {
    site.endpoint(settings)?;
    let hops = Arc::new(Mutex::new(vec![Hop::knocked(site, knock)]));
    let noted = Arc::clone(&hops);
    let oauth = settings
        .oauth()
        .store(Keeper::new(store_of_user()?))
        .on_event(move |event| noted.lock().unwrap_or_else(PoisonError::into_inner).push(Hop::of(event)))
        .build()
        .map_err(|error| failure(&error, site))?;
    let outcome = oauth.explain(&site.url, fetcher.clone(), knock.refusal()).await;
    let hops = hops.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let oauth_like = |challenge: &Challenge| challenge.is("Bearer") || challenge.is("DPoP");
    let challenged = knock.reading.challenges.iter().any(oauth_like);
    let (unreadable, answers_nobody) = (knock.reading.unreadable, knock.answer.status.is_success());
    Ok(Walk { hops, outcome, unreadable, challenged, answers_nobody })
}
