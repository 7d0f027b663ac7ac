//! One legacy client, from its `initialize` on. This is the only place in the server that knows sessions.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use tokio::sync::Semaphore;
use toolwire_protocol::{
    Message, Method, Params, Request, RequestId, Response, RpcError, Version,
    classify::LegacyView,
    envelope::{write_error, write_response},
    wire::{
        InitializeRequestParams, InitializeResult, JsonObject, SetLevelRequestParams, SubscribeRequestParams,
        UnsubscribeRequestParams,
    },
};
use toolwire_store::Owner;
use toolwire_transport::{
    BoxFuture, FairQueue,
    ledger::{Account, Charge, Ledger, LimitReached},
};

use super::{EncodedResponse, RequestOrigin, call::check_client_facts};
use crate::{
    Caller, Context, Extensions, Principal, Reply, Server,
    admission::busy,
    ask::{Asks, answer_weight},
    notify::{Change, Filter, Reader, Subscriber},
    observe::Presence,
    tasks::{SessionTasks, owner_of},
};

/// What the handshake with a legacy client fixed, and what the client has asked for since. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Session(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    version: Version,
    caller: Caller,
    initialized: AtomicBool,
    subscriber: Arc<Subscriber>,
    subscriptions: usize,
    asks: Asks,
    /// The tasks that are made in it, where it is told of them.
    tasks: Option<SessionTasks>,
    ledger: Ledger,
    _session: Charge,
    _presence: Presence,
    _facts: Charge,
    /// The URIs that are subscribed to.
    uris: Mutex<Charge>,
    /// Permits for errors that are stored in place of answers while there is no room to charge them.
    uncharged_errors: Arc<Semaphore>,
}

/// What became of a response.
#[non_exhaustive]
#[expect(missing_debug_implementations, reason = "a future has nothing to show")]
pub enum Delivery {
    /// Somebody waited for it.
    Taken,
    /// It answers a question of a task, and is not to be acknowledged before it is stored.
    Storing(BoxFuture<'static, Result<(), RpcError>>),
    /// Nobody waits for it.
    Unknown,
}

/// What a session takes besides what its client says of itself, about.
const SESSION_BYTES: usize = 1024;

/// The approximate size of an answer besides its text, while it is stored or on its way to the handler.
const ANSWER_BYTES: usize = 1024;

/// Maximum number of errors of one session that are being stored without being charged.
const UNCHARGED_ERRORS: usize = 64;

/// How many bytes a fact takes once it is decoded, for each byte of its text, about.
const DECODED_FACTOR: usize = 8;

impl Session {
    /// Answers `initialize`, and starts a session if all is well. What it holds is charged below `caller`, and its tasks
    /// belong to whom the transport has found out about.
    ///
    /// # Errors
    /// The answer, when there can be no session.
    pub fn initialize(
        server: &Server,
        request: &Request,
        caller: &Ledger,
        extensions: &Extensions,
    ) -> Result<(Self, EncodedResponse), EncodedResponse> {
        let refuse = |error: &RpcError| EncodedResponse::new(200, write_error(Some(&request.id), error));
        let facts = request.params.text().len();
        check_client_facts(facts, server.limits()).map_err(|error| refuse(&error))?;
        let ledger = server.connection_ledger(caller);
        let charge = |account, amount| {
            ledger
                .charge(account, amount)
                .map_err(|reached| EncodedResponse { status: 429, ..refuse(&busy(&reached)) })
        };
        let session = charge(Account::Sessions, 1)?;
        let facts = charge(Account::SessionBytes, SESSION_BYTES + facts * DECODED_FACTOR)?;
        let params: InitializeRequestParams = request
            .params
            .decode()
            .map_err(|error| refuse(&RpcError::invalid_params(format!("initialize: {error}"))))?;
        let catalog = server.catalog();
        let version =
            catalog.served(server.has_legacy()).negotiate(&params.protocol_version).ok_or_else(|| {
                refuse(&RpcError::invalid_params("no version with an initialize handshake is served here"))
            })?;
        let owner = owner_of(extensions);
        let mut capabilities = catalog.capabilities.clone();
        if let Some(tasks) = capabilities.tasks.as_mut().filter(|_| owner != Owner::Anonymous) {
            // Those who cannot be told apart would see each other's.
            tasks.list = Some(JsonObject::new());
        }
        let mut result = InitializeResult::new(version.as_str(), capabilities, server.info().clone());
        result.instructions = server.instructions().map(Into::into);
        let body =
            write_response(&request.id, |out| server.codec().write(version, result, out)).map_err(|_| {
                refuse(&RpcError::internal("the description of the server could not be serialised"))
            })?;
        let caller = Caller::from_handshake(version, params.capabilities, params.client_info);
        let tasks = SessionTasks::new(server, &caller, version, owner);
        let mut filter = Filter::default();
        filter.tasks.session = tasks.as_ref().map(SessionTasks::key);
        let session = Self(Arc::new(Inner {
            _presence: server.observers().session(&caller),
            _session: session,
            _facts: facts,
            uris: Mutex::new(ledger.empty_charge(Account::SubscriptionBytes)),
            ledger,
            version,
            caller,
            initialized: AtomicBool::new(false),
            subscriber: server.notify().subscribe(filter),
            tasks,
            subscriptions: server.limits().subscriptions,
            asks: Asks::new(server.limits().pending_asks),
            uncharged_errors: Arc::new(Semaphore::new(UNCHARGED_ERRORS)),
        }));
        session.read_by(server, extensions.get());
        Ok((session, EncodedResponse::new(200, body)))
    }

    /// The version that was agreed on.
    pub fn version(&self) -> Version {
        self.0.version
    }

    /// What is held for the session.
    pub fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// No more answers will come: whoever waits for one is told.
    pub(crate) fn close_questions(&self) {
        self.0.asks.close();
    }

    pub(crate) fn caller(&self) -> Caller {
        self.0.caller.clone()
    }

    pub(crate) fn asks(&self) -> Asks {
        self.0.asks.clone()
    }

    /// Hands in the client's answer to a question. It is charged to the session until it is stored, or the one who asked
    /// has taken it. A question of a task whose answer has no room is asked again.
    pub fn deliver(&self, response: Response) -> Delivery {
        let charge = self.charge_answer(&response);
        match self.answer_task(response) {
            Ok(storing) => Delivery::Storing(Box::pin(stored(storing, charge))),
            Err(response) => self.answer_call(response, charge),
        }
    }

    /// Like [`deliver`](Self::deliver), for a client that cannot be told to send its answer again: if there is no room for
    /// one, the task is given an error in its place.
    pub(crate) fn deliver_once(&self, response: Response) -> Delivery {
        let charge = self.charge_answer(&response);
        // Before the answer itself is handed in: one that is handed in and not stored is asked for again.
        if let (Err(reached), Some(id)) = (&charge, &response.id)
            && let Ok(delivery) = self.error_to_task(id, &busy(reached))
        {
            return delivery;
        }
        match self.answer_task(response) {
            Ok(storing) => Delivery::Storing(Box::pin(stored(storing, charge))),
            Err(response) => self.answer_call(response, charge),
        }
    }

    /// Hands in an error in place of an answer that cannot be taken, so that the handler that asked does not wait for it.
    pub(crate) fn deliver_error(&self, id: &RequestId, error: &RpcError) -> Delivery {
        match self.error_to_task(id, error) {
            Ok(delivery) => delivery,
            Err(None) => Delivery::Unknown,
            Err(Some(response)) => {
                let charge = self.charge_answer(&response);
                self.answer_call(response, charge)
            }
        }
    }

    /// Begins to store an error in place of the answer to a question of a task. Gives the error back as a response if it
    /// answers something else.
    fn error_to_task(&self, id: &RequestId, error: &RpcError) -> Result<Delivery, Option<Response>> {
        let Ok(Message::Response(response)) = Message::parse(&write_error(Some(id), error)) else {
            return Err(None);
        };
        let charge = self.charge_answer(&response);
        let storing = self.answer_task(response)?;
        if charge.is_ok() {
            return Ok(Delivery::Storing(Box::pin(stored(storing, charge))));
        }
        let Ok(permit) = Arc::clone(&self.0.uncharged_errors).try_acquire_owned() else {
            tracing::warn!(%id, "a question of a task is asked again: too many of its answers are refused at once");
            return Ok(Delivery::Unknown);
        };
        Ok(Delivery::Storing(Box::pin(async move {
            let _permit = permit;
            storing.await
        })))
    }

    fn charge_answer(&self, response: &Response) -> Result<Charge, LimitReached> {
        let bytes = ANSWER_BYTES + answer_weight(response.outcome.as_ref().map(Params::text));
        self.0.ledger.charge(Account::RequestBytes, bytes)
    }

    /// Begins to store the answer to a question of a task. Gives other responses back.
    fn answer_task(&self, response: Response) -> Result<BoxFuture<'static, Result<(), RpcError>>, Response> {
        match &self.0.tasks {
            Some(tasks) => tasks.answer(response),
            None => Err(response),
        }
    }

    fn answer_call(&self, response: Response, charge: Result<Charge, LimitReached>) -> Delivery {
        if self.0.asks.deliver(response, charge) { Delivery::Taken } else { Delivery::Unknown }
    }

    /// What `classify` has to know.
    pub fn view(&self) -> LegacyView {
        LegacyView::Peer { version: self.0.version, initialized: self.0.initialized.load(Ordering::Acquire) }
    }

    /// Takes `notifications/initialized`. Says whether it was the first.
    pub fn set_initialized(&self) -> bool {
        let unsolicited = Filter::unsolicited();
        self.0.subscriber.update(|filter| {
            let (uris, tasks) = (std::mem::take(&mut filter.uris), std::mem::take(&mut filter.tasks));
            *filter = Filter { uris, tasks, ..unsolicited };
        });
        !self.0.initialized.swap(true, Ordering::AcqRel)
    }

    /// Answers what concerns the session itself; `None` for everything that has a handler.
    fn answer(&self, cx: &Context) -> Option<Result<Reply, RpcError>> {
        let params = cx.params();
        let outcome = match cx.method().known()? {
            Method::Ping => Ok(()),
            Method::SetLevel => self.set_level(params),
            Method::Subscribe => self.subscribe(cx),
            Method::Unsubscribe => self.unsubscribe(params),
            _ => return None,
        };
        Some(outcome.map(|()| Reply::Empty))
    }

    fn set_level(&self, params: &Params) -> Result<(), RpcError> {
        let params: SetLevelRequestParams = decode(Method::SetLevel, params)?;
        self.0.caller.set_log_level(params.level);
        Ok(())
    }

    fn subscribe(&self, cx: &Context) -> Result<(), RpcError> {
        let params: SubscribeRequestParams = decode(Method::Subscribe, cx.params())?;
        self.0.subscriber.read_by(Reader::of(cx));
        let limit = self.0.subscriptions;
        self.0.subscriber.update(|filter| {
            if filter.uris.len() >= limit && !filter.uris.contains(&params.uri) {
                return Err(RpcError::invalid_params(format!(
                    "at most {limit} resources can be subscribed to"
                )));
            }
            let bytes = params.uri.len();
            if !filter.uris.contains(&params.uri) {
                self.uris().grow(bytes).map_err(|reached| busy(&reached))?;
                filter.uris.insert(params.uri);
            }
            Ok(())
        })
    }

    fn unsubscribe(&self, params: &Params) -> Result<(), RpcError> {
        let params: UnsubscribeRequestParams = decode(Method::Unsubscribe, params)?;
        self.0.subscriber.update(|filter| {
            if filter.uris.remove(&params.uri) {
                self.uris().shrink(params.uri.len());
            }
        });
        Ok(())
    }

    fn uris(&self) -> MutexGuard<'_, Charge> {
        self.0.uris.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends changes without being asked, until the connection ends or the server shuts down.
    pub fn forward_changes(&self, queue: &FairQueue) -> impl Future<Output = ()> + Send + use<> {
        let (session, lane) = (self.clone(), queue.lane());
        async move {
            while let Some(message) = session.next_change().await {
                if lane.send(message).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Waits for the next change, and gives the message that tells the client of it; `None` when the server shuts down.
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready has taken no change.
    pub async fn next_change(&self) -> Option<Bytes> {
        loop {
            if let Some(tasks) = &self.0.tasks
                && let Some(message) = tasks.next(self.0.subscriber.principal()).await
            {
                return Some(message);
            }
            match (self.0.subscriber.next().await?, &self.0.tasks) {
                (Change::Task(id), Some(tasks)) => tasks.changed(id),
                (change, _) => {
                    // Parameters of our own can always be written.
                    if let Ok(message) = change.message(None) {
                        return Some(message);
                    }
                }
            }
        }
    }

    /// Says who reads the changes from now on, and so what the client may be told of.
    pub fn read_by(&self, server: &Server, principal: Option<&Principal>) {
        self.0.subscriber.read_by(Reader::new(server, principal));
    }
}

/// Waits until an answer is stored, if there is room for it.
async fn stored(
    storing: BoxFuture<'static, Result<(), RpcError>>,
    charge: Result<Charge, LimitReached>,
) -> Result<(), RpcError> {
    let _charge = charge.map_err(|reached| busy(&reached))?;
    storing.await
}

/// Answers what concerns the session itself, also where there is none: then nothing is remembered, and nobody is told
/// off for a level that no message will have. `None` for everything that has a handler.
pub(super) fn answer(origin: &RequestOrigin, cx: &Context) -> Option<Result<Reply, RpcError>> {
    match origin {
        RequestOrigin::Modern(_) => None,
        RequestOrigin::Session(session) => session.answer(cx),
        RequestOrigin::Sessionless(_) => {
            matches!(cx.method().known(), Some(Method::Ping | Method::SetLevel)).then_some(Ok(Reply::Empty))
        }
    }
}

fn decode<T: serde::de::DeserializeOwned>(method: Method, params: &Params) -> Result<T, RpcError> {
    params.decode().map_err(|error| RpcError::invalid_params(format!("{method}: {error}")))
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use toolwire_transport::ledger::Ceilings;

    use super::*;

    #[tokio::test]
    async fn an_answer_that_is_being_stored_is_charged_and_one_without_room_is_not_stored() {
        let ledger = Ledger::root(Ceilings { bytes: ("held_bytes", 100), ..Ceilings::NONE });
        let charge = |bytes| ledger.charge(Account::RequestBytes, bytes);
        let storing = stored(Box::pin(std::future::pending()), charge(60));
        assert_eq!(ledger.used_bytes(), 60);
        let refused = stored(Box::pin(ready(Ok(()))), charge(60)).await.unwrap_err();
        assert!(refused.message.contains("held_bytes"), "{refused:?}");
        drop(storing);
        assert_eq!(stored(Box::pin(ready(Ok(()))), charge(60)).await, Ok(()));
        assert_eq!(ledger.used_bytes(), 0);
    }
}
