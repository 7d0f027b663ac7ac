//! The stream on which a legacy server sends what belongs to no request.

use std::{sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue};
use tokio::time::{Instant, sleep};
use toolwire_protocol::headers::LAST_EVENT_ID;

use super::{
    core::Core,
    legacy::{is_passing, is_status, renew},
};
use crate::client::{
    authorize::Purpose,
    events::{Bookmark, EventStream, StreamFault},
    settings::{MAX_GARBAGE, MAX_RESUMES, pause},
};

/// A stream that lasted so long was a good one, whether or not anything came.
const GOOD_STREAM: Duration = Duration::from_secs(5);

/// Keeps the stream open as long as the link is, for one session after the other.
///
/// When it cannot be opened again and again, listeners are told and it is given up, until the server turns out to be
/// there after all.
pub(super) async fn listen(core: Arc<Core>, opened: tokio::sync::oneshot::Sender<()>) {
    let mut first = Some(opened);
    let mut renewals = core.session.renewals();
    loop {
        renewals.mark_unchanged();
        let outcome = tokio::select! {
            biased;
            () = core.closing() => return,
            outcome = keep(&core, &mut first) => outcome,
            // The new session has a stream of its own.
            _ = renewals.changed() => continue,
        };
        tokio::select! {
            biased;
            () = core.closing() => return,
            _ = renewals.changed() => {}
            () = core.next_answer(), if outcome == Outcome::GaveUp => {}
        }
    }
}

/// Why a stream is not opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The server has none, or another session has one of its own.
    None,
    /// The server was not there for too long.
    GaveUp,
}

/// Opens the stream of one session again and again, until the server says that there is none, or nothing for so long
/// that it must be gone.
async fn keep(core: &Arc<Core>, first: &mut Option<tokio::sync::oneshot::Sender<()>>) -> Outcome {
    let view = core.session.view(core.version());
    let mut bookmark = Bookmark::default();
    let (mut attempt, mut worked) = (0, false);
    let mut why = "the server ends its own stream again and again".to_owned();
    while attempt <= MAX_RESUMES {
        let last = bookmark.id.as_deref().and_then(|last| HeaderValue::try_from(last).ok());
        let headers = || {
            let mut headers = view.headers();
            if let Some(last) = &last {
                headers.insert(HeaderName::from_static(LAST_EVENT_ID), last.clone());
            }
            headers
        };
        let listening = core.endpoint.listen(Purpose::Background, headers).await;
        // Dropping it tells that the server has answered, one way or the other.
        drop(first.take());
        match listening {
            Ok(stream) => {
                worked = true;
                core.heard();
                let opened = Instant::now();
                let any = read(core, stream, &mut bookmark).await;
                attempt = if any || opened.elapsed() >= GOOD_STREAM { 0 } else { attempt + 1 };
            }
            Err(error) if worked && view.id.is_some() && is_status(&error, 404) => {
                // Without a session nothing would ever come again.
                if let Err(error) = renew(core, view.generation).await {
                    tracing::debug!(%error, "the session could not be renewed");
                }
                return Outcome::None;
            }
            Err(error) if is_passing(&error) => {
                tracing::debug!(%error, "the server's own stream could not be opened yet");
                attempt += 1;
                why = error.to_string();
            }
            Err(error) if core.endpoint.asks_for_credentials() && is_status(&error, 401) => {
                tracing::debug!(%error, "the server's own stream waits until a request has found credentials");
                return Outcome::GaveUp;
            }
            Err(error) => {
                tracing::debug!(%error, "the server has no stream of its own");
                return Outcome::None;
            }
        }
        sleep(pause(attempt, bookmark.retry)).await;
    }
    tracing::warn!(why, "the server's own stream is given up until the server answers something");
    core.unheard(&why);
    Outcome::GaveUp
}

/// Reads one stream to its end, and says whether there was anything in it.
async fn read(core: &Arc<Core>, mut stream: Box<EventStream>, bookmark: &mut Bookmark) -> bool {
    let (mut any, mut garbage) = (false, 0);
    while garbage < MAX_GARBAGE {
        let event = stream.next().await;
        stream.mark(bookmark);
        let good = match event {
            Ok(Some(event)) if event.data.is_empty() => true,
            Ok(Some(event)) => core.accept(&event.data.into(), None),
            Ok(None) => break,
            Err(error @ StreamFault::TooLarge(_)) => {
                core.lost(&error);
                false
            }
            Err(error @ StreamFault::Broken(_)) => {
                tracing::debug!(%error, "the server's own stream");
                break;
            }
        };
        any = true;
        garbage = if good { 0 } else { garbage + 1 };
    }
    any
}
