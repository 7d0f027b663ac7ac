//! From the connection to its end: whatever happens in between, the client is closed and nothing is left behind.

mod signal;

use std::{
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;
use toolwire::{Client, client::ClientBuilder};

use crate::{
    ask,
    failure::{Code, Failure, Result},
    target::{self, Target},
    waits,
};

pub(crate) use signal::{Signal, signalled};

/// How long a server may take to end after Ctrl-C before it is made to.
const PARTING: Duration = Duration::from_millis(500);

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
                why.unwrap_or_else(|| interrupted(Signal::INTERRUPT))
            }
            signal = signalled() => interrupted(signal),
        }
    }
}

/// What Ctrl-C and other signals end with.
pub(crate) fn interrupted(signal: Signal) -> Failure {
    let text = "interrupted; the server has been told to stop what it was doing";
    Failure::new(Code::Interrupted, text).signal(signal)
}

/// Does something that can be left at any time: Ctrl-C drops it, and what it has started with it.
pub(crate) async fn interruptible<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        biased;
        signal = signalled() => {
            Err(Failure::new(Code::Interrupted, "interrupted; what was started is ended").signal(signal))
        }
        outcome = work => outcome,
    }
}

/// Adds what to type next to a failure to connect that does not say it.
fn advised(failure: Failure, target: &Target) -> Failure {
    match failure.code() {
        _ if failure.advice().is_some() => failure,
        Code::Usage => failure,
        Code::AuthNeeded if target.address.has_credentials() => {
            failure.hint("the token that was sent was refused: is it expired, or for another server?")
        }
        _ => failure.hint(format!("why? toolwire doctor {}", target.typed())),
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
        client = target::connect(target, builder) => client.map_err(|why| advised(why, target))?,
    };
    let settled = async {
        target::settle(target, &client).await;
        work(&client).await
    };
    // The work is dropped when it is not finished, and with it every call: the server is told so.
    let outcome = tokio::select! {
        biased;
        why = &mut stopped => Err(why),
        outcome = target.within_limit(Box::pin(settled)) => outcome.map_err(|why| target.explained(why)),
    };
    ask::release_terminal();
    let patience = if outcome.as_ref().is_err_and(|why| why.code() == Code::Interrupted) {
        waits::stretched(PARTING)
    } else {
        Duration::MAX
    };
    tokio::select! {
        _ = tokio::time::timeout(patience, client.close()) => {}
        // Whoever presses Ctrl-C now does not want to wait for the server's end.
        _ = signalled() => {}
    }
    outcome
}
