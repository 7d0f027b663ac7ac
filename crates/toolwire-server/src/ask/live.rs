//! Asking live: a real request on the stream of the call.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::oneshot;
use toolwire_protocol::{
    Correlator, Method, Params, RawJson, RequestId, Response, RpcError,
    codec::adapt_question,
    envelope::{write_notification, write_request},
    wire::{CancelledNotificationParams, ElicitRequestParams, InputRequest},
};
use toolwire_transport::ledger::Account;

use super::AskError;
use crate::Context;

/// The questions to one client that wait for their answers. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Asks(Arc<Mutex<Waiting>>);

type Waiting = Correlator<oneshot::Sender<Result<Params, RpcError>>>;

impl Asks {
    pub(crate) fn new(limit: usize) -> Self {
        Self(Arc::new(Mutex::new(Correlator::new(limit))))
    }

    /// No more answers will come: whoever waits for one is told, and nothing more is asked.
    pub(crate) fn close(&self) {
        // A correlator without room refuses every question; dropping the old one tells those who wait.
        *self.lock() = Correlator::new(0);
    }

    /// Hands a response to whoever waits for it. Says whether somebody did.
    pub(crate) fn deliver(&self, response: Response) -> bool {
        let waiting = response.id.as_ref().and_then(|id| self.lock().take(id));
        waiting.is_some_and(|waiting| waiting.send(response.outcome).is_ok())
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends the question and waits for its answer.
pub(super) async fn ask(
    cx: &Context,
    asks: &Asks,
    request: &InputRequest,
    time: Duration,
) -> Result<RawJson, AskError> {
    let mut request = request.clone();
    if let InputRequest::Elicit(ElicitRequestParams::Url(url)) = &mut request
        && url.elicitation_id.is_none()
    {
        url.elicitation_id = Some(cx.idempotency_key(&url.url));
    }
    let request = adapt_question(cx.0.version, request)
        .ok_or(AskError::NoWay("the question has no form in the client's protocol version"))?;
    let (answer, answered) = oneshot::channel();
    let id = asks.lock().insert(answer).map_err(|_| {
        AskError::Limit("too many questions to this client are open; wait for some of them first".to_owned())
    })?;
    // From here on, leaving early tells the client that the answer is no longer wanted.
    let mut open = OpenQuestion { cx, asks, id: Some(id.clone()) };
    let message = write_question(&id, &request).map_err(|error| AskError::Invalid(error.to_string()))?;
    if !cx.outbox().send_message(message).await {
        return Err(AskError::Closed);
    }
    let _clock = cx.question_opened();
    let outcome = match tokio::time::timeout(time, answered).await {
        Ok(outcome) => outcome.map_err(|_| AskError::Closed)?,
        Err(_) => return Err(AskError::TimedOut),
    };
    open.id = None;
    cx.hold_answer(&outcome)?;
    let answer = outcome.map_err(AskError::Refused)?;
    RawJson::parse(answer.text()).map_err(|error| AskError::Invalid(error.to_string()))
}

impl Context {
    /// Charges an answer until the request is over: nobody knows for how long its handler keeps it.
    fn hold_answer(&self, outcome: &Result<Params, RpcError>) -> Result<(), AskError> {
        let weight = match outcome {
            Ok(answer) => answer.text().len(),
            Err(error) => error.message.len() + error.data.as_ref().map_or(0, |data| data.text().len()),
        };
        let mut held = self.0.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let held = held.get_or_insert_with(|| self.0.ledger.empty_charge(Account::RequestBytes));
        held.grow(weight).map_err(|reached| AskError::Limit(format!("the answer is too long: {reached}")))
    }
}

/// A question as a request with this id.
pub(crate) fn write_question(id: &RequestId, request: &InputRequest) -> serde_json::Result<bytes::Bytes> {
    let method = request.method().into();
    match request {
        InputRequest::Elicit(params) => write_request(id, &method, params),
        InputRequest::CreateMessage(params) => write_request(id, &method, params),
        InputRequest::ListRoots(Some(params)) => write_request(id, &method, params),
        _ => write_request(id, &method, &serde_json::Map::new()),
    }
}

struct OpenQuestion<'a> {
    cx: &'a Context,
    asks: &'a Asks,
    id: Option<RequestId>,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        self.asks.lock().take(&id);
        let params = CancelledNotificationParams::new().request_id(id);
        if let Ok(message) = write_notification(&Method::Cancelled.into(), &params) {
            self.cx.outbox().push_message(message);
        }
    }
}
