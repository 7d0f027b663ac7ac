//! Requests in a session: sent, resumed when their stream breaks, and sent again when the session was lost.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use tokio::time::{sleep, timeout};
use toolwire_client::{
    Delivery,
    link::{Exchange, ExchangeError, ExchangeEvent, LinkError, LinkErrorKind, Outgoing},
};
use toolwire_protocol::{Method, MethodName, Params, RequestId, headers::LAST_EVENT_ID};

use super::{
    core::Core,
    session::{Handshake, SessionView, session_id},
    standalone,
};
use crate::client::{
    answer::{Answer, nothing},
    authorize::Purpose,
    events::{Bookmark, EventStream, StreamFault},
    fault,
    net::Shown,
    settings::{MAX_GARBAGE, MAX_RESUMES, pause},
};

/// A request that the server did not answer.
enum Trouble {
    /// The server does not know the session, and so has not looked at the request.
    SessionLost,
    Failed(LinkError),
}

impl From<LinkError> for Trouble {
    fn from(error: LinkError) -> Self {
        Self::Failed(error)
    }
}

/// Sends a request from a task of its own.
pub(super) fn start(core: &Arc<Core>, request: Outgoing) -> Exchange {
    let (feed, exchange) = Exchange::channel();
    if let Err(error) = core.register(&request.id, feed) {
        return Exchange::failed(error);
    }
    let id = request.id.clone();
    let task = core.runtime.spawn(carry(Arc::clone(core), request));
    core.carried_by(&id, task.abort_handle());
    exchange
}

async fn carry(core: Arc<Core>, request: Outgoing) {
    let id = request.id.clone();
    // The semaphore is never closed.
    let _permit = core.streams.acquire().await.ok();
    let carried = tokio::select! {
        biased;
        carried = deliver(&core, &request) => carried,
        () = core.closing() => Err(fault::cancelled()),
    };
    if let Err(error) = carried {
        core.finish(&id, Err(error.into()));
    }
}

/// Sends a request, once more if its session was lost, and sees to it that it is answered.
async fn deliver(core: &Arc<Core>, request: &Outgoing) -> Result<(), LinkError> {
    if request.method.known() == Some(Method::Initialize) {
        return Box::pin(initialize(core, request)).await;
    }
    let mut renewed = false;
    loop {
        let view = core.session.view(core.version());
        match open(core, request, &view).await {
            Ok((answer, _)) => return follow(core, answer, &request.id, &view).await,
            Err(Trouble::SessionLost) if !renewed => {
                renewed = true;
                Box::pin(renew(core, view.generation)).await?;
            }
            Err(trouble) => return Err(trouble.error()),
        }
    }
}

/// Sends the request that begins a session.
async fn initialize(core: &Arc<Core>, request: &Outgoing) -> Result<(), LinkError> {
    core.session.begin(request);
    let (answer, id) = open(core, request, &SessionView::NONE).await.map_err(Trouble::error)?;
    core.session.adopt(id);
    follow(core, answer, &request.id, &core.session.view(None)).await
}

/// Posts a notification, once more if its session was lost.
pub(super) async fn notify(
    core: &Arc<Core>,
    message: Bytes,
    method: Option<&MethodName>,
) -> Result<(), LinkError> {
    let view = core.session.view(core.version());
    let sent = core.endpoint.tell(message.clone(), || view.headers()).await;
    let lost = matches!(&sent, Err(error) if view.id.is_some() && is_status(error, 404));
    let known = method.and_then(MethodName::known);
    // What a cancellation was about has gone with the session.
    if lost && known != Some(Method::Cancelled) && known != Some(Method::Initialized) {
        renew(core, view.generation).await?;
        let view = core.session.view(core.version());
        return core.endpoint.tell(message, || view.headers()).await;
    }
    sent?;
    if known == Some(Method::Initialized) && core.session.confirm(&message) {
        let (opened, settled) = tokio::sync::oneshot::channel();
        core.runtime.spawn(standalone::listen(Arc::clone(core), opened));
        // What the server says unasked would be lost before the stream is there, or be taken for something else.
        let _ = timeout(STANDALONE_WAIT, settled).await;
    }
    Ok(())
}

/// Posts a request and reads as much as is needed to know what kind of answer it has.
async fn open(
    core: &Core,
    request: &Outgoing,
    view: &SessionView,
) -> Result<(Answer, Option<HeaderValue>), Trouble> {
    let response = core.endpoint.ask(request.message.clone(), || view.headers()).await?;
    if response.status() == http::StatusCode::NOT_FOUND && view.id.is_some() {
        response.into_body().discard();
        return Err(Trouble::SessionLost);
    }
    core.note_answer();
    let id = session_id(response.headers());
    let answer = Answer::of(response, &core.endpoint.settings().limits).await?;
    Ok((answer, id))
}

/// Reads until the request is answered, or until nobody waits for that any more.
async fn follow(
    core: &Arc<Core>,
    answer: Answer,
    id: &RequestId,
    view: &SessionView,
) -> Result<(), LinkError> {
    match answer {
        Answer::Nothing(status) => Err(nothing(status)),
        Answer::Message(bytes) => {
            core.accept(&bytes, Some(id));
            if core.waits_for(id) {
                return Err(fault::malformed("the response is not the answer to the request"));
            }
            Ok(())
        }
        Answer::Events(stream) => Box::pin(follow_stream(core, stream, id, view)).await,
    }
}

async fn follow_stream(
    core: &Arc<Core>,
    stream: Box<EventStream>,
    id: &RequestId,
    view: &SessionView,
) -> Result<(), LinkError> {
    let mut bookmark = Bookmark::default();
    let mut stream = Some(stream);
    let mut in_vain = 0;
    loop {
        let why = match stream.take() {
            Some(open) => match read(core, open, id, &mut bookmark).await? {
                Read::Answered => return Ok(()),
                Read::Ended { any, why } => {
                    in_vain = if any { 0 } else { in_vain + 1 };
                    why
                }
            },
            None => "the stream could not be resumed".to_owned(),
        };
        let Some(last) = bookmark.id.as_deref().and_then(|last| HeaderValue::try_from(last).ok()) else {
            let text = format!("{why}, and the server has given no event id to resume from");
            return Err(fault::cut_off(text));
        };
        if in_vain >= MAX_RESUMES {
            return Err(fault::cut_off(format!("{why}, and resuming it did not help")));
        }
        sleep(pause(in_vain, bookmark.retry)).await;
        let headers = || {
            let mut headers = view.headers();
            headers.insert(HeaderName::from_static(LAST_EVENT_ID), last.clone());
            headers
        };
        match core.endpoint.listen(Purpose::Background, headers).await {
            Ok(resumed) => stream = Some(resumed),
            Err(error) if is_passing(&error) => {
                tracing::debug!(%error, %id, "a stream could not be resumed yet");
                in_vain += 1;
            }
            Err(error) => return Err(fault::cut_off(format!("{why}, and cannot be resumed: {error}"))),
        }
    }
}

/// How reading a stream ended.
enum Read {
    /// The request is answered, or nobody waits for it any more.
    Answered,
    /// The stream is over, and whether it had any events before.
    Ended { any: bool, why: String },
}

async fn read(
    core: &Arc<Core>,
    mut stream: Box<EventStream>,
    id: &RequestId,
    bookmark: &mut Bookmark,
) -> Result<Read, LinkError> {
    let (mut any, mut garbage) = (false, 0);
    loop {
        let event = stream.next().await;
        stream.mark(bookmark);
        let event = match event {
            Ok(Some(event)) => event,
            Ok(None) => return Ok(Read::Ended { any, why: "the stream ended before the answer".to_owned() }),
            Err(error @ StreamFault::TooLarge(_)) => return Err(fault::too_large("event_bytes", error)),
            Err(error @ StreamFault::Broken(_)) => return Ok(Read::Ended { any, why: error.to_string() }),
        };
        any = true;
        if event.data.is_empty() || event.event.as_deref().is_some_and(|kind| kind != "message") {
            continue;
        }
        let good = core.accept(&event.data.into(), Some(id));
        if !core.waits_for(id) {
            stream.release();
            return Ok(Read::Answered);
        }
        garbage = if good { 0 } else { garbage + 1 };
        if garbage >= MAX_GARBAGE {
            return Err(fault::malformed(format!(
                "the server sent {garbage} events in a row that are not messages"
            )));
        }
    }
}

/// Whether trying again may help.
pub(super) fn is_passing(error: &LinkError) -> bool {
    match error.kind {
        LinkErrorKind::Unreachable | LinkErrorKind::Closed => true,
        LinkErrorKind::Status(status, _) => matches!(status, 408 | 409 | 425 | 429 | 500 | 502..=599),
        _ => false,
    }
}

pub(super) fn is_status(error: &LinkError, code: u16) -> bool {
    matches!(error.kind, LinkErrorKind::Status(status, _) if status == code)
}

/// Makes a new session in place of the one with this generation, unless somebody has already.
///
/// It runs in a task of its own, because a handshake must not be left half done.
pub(super) async fn renew(core: &Arc<Core>, generation: u64) -> Result<(), LinkError> {
    let done = core.runtime.spawn(replace_session(Arc::clone(core), generation)).await;
    done.unwrap_or_else(|_| Err(fault::cut_off("the session could not be renewed")))
}

/// Waits for its turn, and makes a new session within the time that the server has for that: whoever comes next would
/// wait behind it.
async fn replace_session(core: Arc<Core>, generation: u64) -> Result<(), LinkError> {
    let _turn = core.session.renewing.lock().await;
    if core.session.view(None).generation != generation {
        return Ok(());
    }
    let shake = core.session.handshake().ok_or_else(|| lost("there is no handshake to repeat"))?;
    let patience = core.endpoint.settings().send_timeout;
    let renewed = timeout(patience, shake_hands_again(&core, &shake)).await;
    renewed.unwrap_or_else(|_| {
        core.forget(&shake.initialize.id, true);
        Err(lost(&format!("has made no new one within {}", Shown(patience))))
    })
}

async fn shake_hands_again(core: &Arc<Core>, shake: &Handshake) -> Result<(), LinkError> {
    let request = &shake.initialize;
    let (feed, mut exchange) = Exchange::channel();
    core.register_renewal(&request.id, feed);
    let opened = open(core, request, &SessionView::NONE).await;
    let (answer, id) = opened.map_err(|trouble| {
        core.forget(&request.id, true);
        trouble.error()
    })?;
    let view = core.session.view(core.version()).with_id(id);
    if let Err(error) = follow(core, answer, &request.id, &view).await {
        core.finish(&request.id, Err(error.into()));
    }
    let result = loop {
        if let ExchangeEvent::Finished(reply) = exchange.next().await {
            break reply;
        }
    };
    check_version(core, result)?;
    core.endpoint.tell(shake.initialized.clone(), || view.headers()).await?;
    core.session.renew(view.id);
    tracing::info!(url = core.endpoint.shown(), "the server had lost the session; there is a new one");
    core.session_renewed();
    Ok(())
}

/// A server that now speaks another version cannot be talked to on this link.
fn check_version(core: &Core, result: Result<Params, ExchangeError>) -> Result<(), LinkError> {
    #[derive(Deserialize)]
    struct Initialized {
        #[serde(rename = "protocolVersion")]
        version: String,
    }

    let result = match result {
        Ok(result) => result,
        Err(ExchangeError::Link(error)) => return Err(error),
        Err(ExchangeError::Rpc(error)) => return Err(lost(&format!("it refuses a new one: {error}"))),
    };
    let Ok(Initialized { version }) = result.decode() else {
        return Err(lost("its answer to a new one cannot be read"));
    };
    match core.version() {
        Some(ours) if ours.as_str() == version => Ok(()),
        _ => Err(lost(&format!("it wants to speak version {version:?} in a new one"))),
    }
}

fn lost(why: &str) -> LinkError {
    let text = format!("the server has lost the session, and {why}");
    LinkError::new(LinkErrorKind::Closed, Delivery::Rejected, text)
}

impl Trouble {
    fn error(self) -> LinkError {
        match self {
            Self::Failed(error) => error,
            Self::SessionLost => fault::status(http::StatusCode::NOT_FOUND, &HeaderMap::new(), None),
        }
    }
}

/// How long connecting waits for the standalone stream to be answered. A server that holds its headers back until it
/// has something to say costs no more than this.
const STANDALONE_WAIT: std::time::Duration = std::time::Duration::from_millis(500);
