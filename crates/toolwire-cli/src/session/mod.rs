//! From the connection to its end: whatever happens in between, the client is closed and nothing is left behind.

use std::{
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::Notify;
use toolwire::{Client, client::ClientBuilder};

use crate::{
    ask,
    failure::{Code, Failure, Result},
    target::{self, Target},
};

/// A way to end a session from inside a handler, which has nobody to return a failure to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<Wish>);

#[derive(Debug, Default)]
struct Wish {
    why: Mutex<Option<Failure>>,
    made: Notify,
}

impl Stop {
    /// Ends the session with this failure; the first one counts.
    pub(crate) fn with(&self, why: Failure) {
        self.0.why.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.0.made.notify_one();
    }

    /// Waits for a wish to stop, or for Ctrl-C.
    async fn wanted(&self) -> Failure {
        tokio::select! {
            () = self.0.made.notified() => {
                let why = self.0.why.lock().unwrap_or_else(PoisonError::into_inner).take();
                why.unwrap_or_else(interrupted)
            }
            () = ctrl_c() => interrupted(),
        }
    }
}

/// What Ctrl-C ends with.
pub(crate) fn interrupted() -> Failure {
    Failure::new(Code::Interrupted, "interrupted; the server has been told to stop what it was doing")
}

async fn ctrl_c() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Without a handler the signal ends the program by itself.
        std::future::pending::<()>().await;
    }
}

/// Connects, does something with the client, and closes it. Ctrl-C ends it early.
pub(crate) async fn with_client<T>(
    target: &Target,
    builder: ClientBuilder,
    work: impl AsyncFnOnce(&Client) -> Result<T>,
) -> Result<T> {
    attended(target, builder, &Stop::default(), work).await
}

/// The same, for sessions that handlers may end as well.
pub(crate) async fn attended<T>(
    target: &Target,
    builder: ClientBuilder,
    stop: &Stop,
    work: impl AsyncFnOnce(&Client) -> Result<T>,
) -> Result<T> {
    let mut stopped = pin!(stop.wanted());
    let client = tokio::select! {
        biased;
        why = &mut stopped => return Err(why),
        client = target::connect(target, builder) => client?,
    };
    // The work is dropped when it is not finished, and with it every call: the server is told so.
    let outcome = tokio::select! {
        biased;
        why = &mut stopped => Err(why),
        outcome = work(&client) => outcome,
    };
    ask::release_terminal();
    tokio::select! {
        _ = client.close() => {}
        // Whoever presses Ctrl-C again does not want to wait for the server's end.
        () = ctrl_c() => {}
    }
    outcome
}
