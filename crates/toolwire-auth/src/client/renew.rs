//! One change of a credential at a time: everybody who needs one waits for the same.
//!
//! A renewal is carried to its end whoever goes away meanwhile, because a refresh token that was sent may be void
//! afterwards. A login ends with the last of those who wait for it. Nobody holds a lock of this process while a request
//! is under way; across processes the lock of the store decides who renews, and whoever comes second finds what the
//! first has stored.

use std::sync::Arc;

use tokio::{
    sync::watch,
    task::{AbortHandle, JoinHandle},
};

use super::{
    AuthError, AuthErrorKind, Step,
    credential::{CurrentCredential, Server, logged_out},
    driver::{self, Saving},
    flow::Cause,
};

type Outcome = Result<CurrentCredential, AuthError>;

/// What an attempt may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// Everything but asking a person.
    Renew,
    /// A person is asked.
    Ask,
}

/// An attempt to get another credential that is under way.
pub(super) struct LoginAttempt {
    goal: Goal,
    outcome: watch::Receiver<Option<Outcome>>,
    /// What ends with the last of those who wait.
    task: Option<AbortHandle>,
}

impl LoginAttempt {
    fn start(server: &Arc<Server>, goal: Goal, cause: Cause, seen: Option<CurrentCredential>) -> Arc<Self> {
        let (tell, outcome) = watch::channel(None);
        let server = Arc::clone(server);
        let task: JoinHandle<()> = tokio::spawn(async move {
            let done = match goal {
                Goal::Renew => renew(&server, cause, seen.as_ref()).await,
                Goal::Ask => ask(&server, cause, seen.as_ref()).await,
            };
            if let Err(error) = &done {
                server.failed(error);
            }
            let _ = tell.send(Some(done));
        });
        let task = (goal == Goal::Ask).then(|| task.abort_handle());
        Arc::new(Self { goal, outcome, task })
    }

    pub(super) fn is_over(&self) -> bool {
        self.outcome.borrow().is_some() || self.outcome.has_changed().is_err()
    }

    async fn outcome(&self) -> Outcome {
        let mut outcome = self.outcome.clone();
        let done = outcome.wait_for(Option::is_some).await;
        let done = done.ok().and_then(|done| done.clone());
        done.unwrap_or_else(|| {
            let detail = "the login ended without an outcome";
            Err(AuthError::new(AuthErrorKind::Unavailable, Step::Use, detail))
        })
    }
}

impl Drop for LoginAttempt {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Gets another credential than `seen`, without asking a person, or joins those who already do.
pub(super) async fn renewed(
    server: &Arc<Server>,
    cause: Cause,
    seen: Option<CurrentCredential>,
    may_ask: bool,
) -> Outcome {
    let attempt = server.attempt(|| LoginAttempt::start(server, Goal::Renew, cause, seen));
    if attempt.goal == Goal::Ask && !may_ask {
        return Err(login_needed("somebody else is logging in"));
    }
    attempt.outcome().await
}

/// Gets another credential than `seen` by asking a person, or joins those who already do.
pub(super) async fn asked(server: &Arc<Server>, cause: Cause, seen: Option<CurrentCredential>) -> Outcome {
    loop {
        let attempt = server.attempt(|| LoginAttempt::start(server, Goal::Ask, cause.clone(), seen.clone()));
        let outcome = attempt.outcome().await;
        match &outcome {
            // That was a renewal that had begun before.
            Err(error) if attempt.goal == Goal::Renew && !error.is_temporary() => {}
            _ => return outcome,
        }
    }
}

pub(super) fn login_needed(why: &str) -> AuthError {
    AuthError::new(AuthErrorKind::LoginNeeded, Step::Use, format!("a login is needed: {why}"))
}

/// Renews under the lock of the store.
async fn renew(server: &Arc<Server>, cause: Cause, seen: Option<&CurrentCredential>) -> Outcome {
    let lock = server.config.store.lock(&server.key).await;
    let _lock = lock.map_err(|error| {
        let detail = format!("the credential cannot be locked: {error}");
        AuthError::new(AuthErrorKind::Unavailable, Step::Store, detail)
    })?;
    let held = server.held();
    if let Some(held) = newer(held.as_ref(), seen) {
        return Ok(held);
    }
    if let Some(news) = server.news().await {
        return Ok(news);
    }
    let renewed = server.to_renew().await;
    if renewed.is_none() && held.is_some() && server.asks_a_person() {
        return Err(logged_out());
    }
    driver::run(server, cause, false, renewed, Saving::Locked).await
}

/// Asks a person. The store is locked only to write.
async fn ask(server: &Arc<Server>, cause: Cause, seen: Option<&CurrentCredential>) -> Outcome {
    let held = server.held();
    if let Some(held) = newer(held.as_ref(), seen) {
        return Ok(held);
    }
    let step_up = matches!(cause, Cause::Lack(..));
    if !step_up && let Some(news) = server.news().await {
        return Ok(news);
    }
    // It was tried, and a login begins where that has failed.
    let stored = server.to_renew().await.map(|mut before| {
        if !step_up {
            Arc::make_mut(&mut before.credential).refresh = None;
        }
        before
    });
    driver::run(server, cause, true, stored, Saving::Unlocked).await
}

/// What is in use, if it is not what was seen.
fn newer(held: Option<&CurrentCredential>, seen: Option<&CurrentCredential>) -> Option<CurrentCredential> {
    let seen = seen.map_or(0, |seen| seen.serial);
    held.filter(|held| held.serial > seen).cloned()
}
