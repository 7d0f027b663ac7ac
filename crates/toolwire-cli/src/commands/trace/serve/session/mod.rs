//! A client being answered from a trace: raw messages, one script for each request.
//!
//! It keeps no time: what took a minute in the trace is answered at once. Cancellations are not followed, because
//! nothing runs that could be stopped.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{sync::oneshot, task::JoinSet};
use toolwire::{
    RpcError,
    protocol::{
        Message, Request, RequestId,
        envelope::{write_error, write_notification, write_request, write_response},
    },
    transport::{Duplex, FairQueue, Source, write_loop},
};

use super::recording::{Recording, Step};

/// How many requests are answered at the same time.
const MAX_SCRIPTS: usize = 256;

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// What the scripts of a connection share.
struct Session {
    queue: FairQueue,
    recording: Mutex<Recording>,
    /// The questions to the client that are not answered yet; what it answers does not matter.
    asked: Mutex<HashMap<RequestId, oneshot::Sender<()>>>,
    ids: AtomicI64,
}

/// Answers a client until it has said everything.
pub(super) async fn serve(duplex: impl Duplex, recording: Recording) {
    let (mut source, sink) = duplex.split();
    let queue = FairQueue::new();
    let mut writer = tokio::spawn(write_loop(queue.clone(), sink));
    let session = Arc::new(Session {
        queue,
        recording: Mutex::new(recording),
        asked: Mutex::default(),
        ids: AtomicI64::new(1),
    });
    let mut scripts = JoinSet::new();
    loop {
        while scripts.len() >= MAX_SCRIPTS {
            scripts.join_next().await;
        }
        let received = tokio::select! {
            biased;
            // Nobody reads what is written, so nobody waits for it.
            _ = &mut writer => return,
            Some(_) = scripts.join_next() => continue,
            received = async { session.queue.room().await; source.receive().await } => received,
        };
        match received {
            Ok(Some(bytes)) => {
                if let Some(script) = session.accept(&bytes) {
                    scripts.spawn(script.run(Arc::clone(&session)));
                }
            }
            Err(error) if !error.is_fatal() => {
                session.post(write_error(None, &RpcError::invalid_request(error.to_string())));
            }
            Ok(None) | Err(_) => break,
        }
    }
    // No answer will come any more, so whoever waits for one goes on.
    session.asked().clear();
    while scripts.join_next().await.is_some() {}
    session.queue.close();
    let _ = writer.await;
}

impl Session {
    /// Takes a message in, and says what is to be done if it is a request.
    fn accept(&self, bytes: &Bytes) -> Option<Script> {
        match Message::parse(bytes) {
            Ok(Message::Request(request)) => return Some(self.script(request)),
            Ok(Message::Response(response)) => {
                let asked = response.id.and_then(|id| self.asked().remove(&id));
                if let Some(asked) = asked {
                    let _ = asked.send(());
                }
            }
            Ok(Message::Notification(_)) => {}
            Err(fault) => self.post(write_error(fault.id.as_ref(), &fault.rpc_error())),
        }
        None
    }

    /// Looked up in the order in which requests come, because that of the trace counts.
    fn script(&self, request: Request) -> Script {
        let (params, steps) = match request.params.decode::<Value>() {
            Ok(params) => {
                let mut recording = self.recording.lock().unwrap_or_else(PoisonError::into_inner);
                let steps = recording.steps(request.method.as_str(), &params);
                (params, steps)
            }
            Err(error) => (Value::Null, vec![Step::Refuse(RpcError::invalid_params(error.to_string()))]),
        };
        Script { id: request.id, params, steps }
    }

    fn post(&self, message: Bytes) {
        // A client that is gone needs no message.
        let _ = self.queue.post(message);
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<RequestId, oneshot::Sender<()>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, method: &str, params: &Value) {
        let id = RequestId::Num(self.ids.fetch_add(1, Ordering::Relaxed));
        let (sender, answered) = oneshot::channel();
        self.asked().insert(id.clone(), sender);
        if let Ok(message) = write_request(&id, &method.into(), params) {
            self.post(message);
            let _ = answered.await;
        }
    }
}

/// What was done for a request in the trace, to be done again.
struct Script {
    id: RequestId,
    params: Value,
    steps: Vec<Step>,
}

impl Script {
    async fn run(self, session: Arc<Session>) {
        let Self { id, params, steps } = self;
        for step in steps {
            match step {
                Step::Tell(method, told) => {
                    if let Some(told) = adapted(told, &method, &id, &params)
                        && let Ok(message) = write_notification(&method.as_str().into(), &told)
                    {
                        session.post(message);
                    }
                }
                Step::Ask(method, asked) => session.ask(&method, &asked).await,
                Step::Answer(result) => {
                    let written = write_response(&id, |out| serde_json::to_writer(out, &result));
                    session.post(written.unwrap_or_else(|error: serde_json::Error| {
                        write_error(Some(&id), &RpcError::internal(error.to_string()))
                    }));
                }
                Step::Refuse(error) => session.post(write_error(Some(&id), &error)),
            }
        }
    }
}

/// The parameters of a notification with the marks of this request; nothing if nobody asked for it.
fn adapted(mut told: Value, method: &str, id: &RequestId, params: &Value) -> Option<Value> {
    if method == "notifications/progress" {
        let token = params.get("_meta")?.get("progressToken")?.clone();
        told.as_object_mut()?.insert("progressToken".to_owned(), token);
    }
    if let Some(subscription) = told.get_mut("_meta").and_then(|meta| meta.get_mut(SUBSCRIPTION_ID)) {
        *subscription = json!(id);
    }
    Some(told)
}

#[cfg(test)]
mod tests;
