//! Asking live: a real request on the stream of the call.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::oneshot;
use toolwire_protocol::{
    Correlator, Method, RawJson, RequestId, Response, RpcError,
    codec::adapt_question,
    envelope::{write_notification, write_request},
    wire::{CancelledNotificationParams, ElicitRequestParams, InputRequest},
};
use toolwire_transport::ledger::{Account, Charge, LimitReached};

use super::AskError;
use crate::Context;

/// The questions to one client that wait for their answers. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Asks(Arc<Mutex<Waiting>>);

type Waiting = Correlator<oneshot::Sender<Result<Answer, LimitReached>>>;

/// The answer to a question, charged until the one who asked takes it.
#[derive(Debug)]
struct Answer {
    outcome: Result<RawJson, RpcError>,
    charge: Charge,
}

impl Asks {
    pub(crate) fn new(limit: usize) -> Self {
        Self(Arc::new(Mutex::new(Correlator::new(limit))))
    }

    /// No more answers will come: whoever waits for one is told, and nothing more is asked.
    pub(crate) fn close(&self) {
        // A correlator without room refuses every question; dropping the old one tells those who wait.
        *self.lock() = Correlator::new(0);
    }

    /// Hands a response to whoever waits for it, or the limit because of which it cannot be kept. Says whether somebody
    /// did.
    pub(crate) fn deliver(&self, response: Response, charge: Result<Charge, LimitReached>) -> bool {
        let Some(waiting) = response.id.as_ref().and_then(|id| self.lock().take(id)) else { return false };
        // A copy, so that only what is charged is kept, and not the whole message.
        let unreadable = |error: serde_json::Error| RpcError::internal(error.to_string());
        let answer = charge.map(|charge| Answer {
            outcome: response.outcome.and_then(|answer| answer.raw().map_err(unreadable)),
            charge,
        });
        waiting.send(answer).is_ok()
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
    let answer = match tokio::time::timeout(time, answered).await {
        Ok(answer) => answer.map_err(|_| AskError::Closed)?,
        Err(_) => return Err(AskError::TimedOut),
    };
    open.id = None;
    let Answer { outcome, charge } = answer.map_err(|reached| too_long(&reached))?;
    // From here on, the request is charged.
    drop(charge);
    cx.hold_answer(&outcome)?;
    outcome.map_err(AskError::Refused)
}

fn too_long(reached: &LimitReached) -> AskError {
    AskError::Limit(format!("the answer is too long: {reached}"))
}

impl Context {
    /// Charges an answer until the request is over: nobody knows for how long its handler keeps it.
    fn hold_answer(&self, outcome: &Result<RawJson, RpcError>) -> Result<(), AskError> {
        let weight = weight(outcome.as_ref().map(RawJson::text));
        let mut held = self.0.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let held = held.get_or_insert_with(|| self.0.ledger.empty_charge(Account::RequestBytes));
        held.grow(weight).map_err(|reached| too_long(&reached))
    }
}

/// The number of bytes that an answer takes, of which this is the text.
pub(crate) fn weight(answer: Result<&str, &RpcError>) -> usize {
    match answer {
        Ok(answer) => answer.len(),
        Err(error) => error.message.len() + error.data.as_ref().map_or(0, |data| data.text().len()),
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

#[cfg(test)]
mod tests {
    use toolwire_protocol::Message;
    use toolwire_transport::ledger::{Ceilings, Ledger};

    use super::*;

    #[test]
    fn an_answer_is_charged_until_it_is_taken_and_does_not_keep_its_message() {
        let ledger = Ledger::root(Ceilings::NONE);
        let asks = Asks::new(1);
        let (answer, mut answered) = oneshot::channel();
        let id = asks.lock().insert(answer).unwrap();
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}},"other":"{}"}}"#, "x".repeat(1000));
        let message = bytes::Bytes::from(text);
        let Ok(Message::Response(response)) = Message::parse(&message) else { panic!("not a response") };
        assert!(asks.deliver(response, ledger.charge(Account::RequestBytes, 7)));
        assert!(message.is_unique(), "nothing else holds on to the message");
        assert_eq!(ledger.used_bytes(), 7);
        let answer = answered.try_recv().unwrap().unwrap();
        assert_eq!(answer.outcome.unwrap().text(), "{}");
        drop(answer.charge);
        assert_eq!(ledger.used_bytes(), 0);
    }
}
