//! Batches, which exist in 2025-03-26 alone: an array of messages in, an array of answers out.

use std::sync::Arc;

use bytes::Bytes;
use tokio::task::JoinSet;
use toolwire_protocol::{
    Message, RpcError,
    envelope::{parse_batch, write_error},
    peek::Peek,
};

use super::{Admitted, Connection};
use crate::{
    Context,
    engine::{Answered, Call},
};

/// Handles one batch. Its requests run side by side; their answers leave together.
pub(super) fn handle(connection: &Arc<Connection>, bytes: &Bytes) {
    let messages = match parse_batch(bytes, connection.server.limits().batch_messages) {
        Ok(messages) => messages,
        Err(fault) => return connection.refuse_envelope(&fault),
    };
    let mut answers = Vec::new();
    let mut running = JoinSet::new();
    for message in messages {
        let admitted = message.map(|message| {
            let peek = match &message {
                Message::Request(request) => Peek::of(&request.params),
                _ => Peek::default(),
            };
            connection.admit(message, peek.into())
        });
        match admitted {
            // Batches and stateless requests belong to different eras, and a subscription would hold the rest up.
            Ok(Admitted::Call(call)) if call.context().0.version.is_modern() => {
                let error = RpcError::invalid_request("a stateless request cannot be part of a batch");
                answers.push(Answered::of(call.context(), Err(error)).body);
            }
            Ok(Admitted::Call(call)) => match connection.flights.admit_now(call.context()) {
                Ok(()) => {
                    running.spawn(fly(Arc::clone(connection), call));
                }
                Err(refusal) => answers.push(Answered::of(call.context(), Err(refusal.rpc_error())).body),
            },
            Ok(Admitted::Answered(bytes)) => answers.push(bytes),
            Ok(Admitted::Done) => {}
            Err(fault) => answers.push(write_error(fault.id.as_ref(), &fault.rpc_error())),
        }
    }
    let connection = Arc::clone(connection);
    tokio::spawn(async move {
        let mut done = Vec::new();
        while let Some(joined) = running.join_next().await {
            let Ok((cx, answer)) = joined else { continue };
            answers.extend(answer);
            done.push(cx);
        }
        if !answers.is_empty() {
            connection.post(join(&answers));
        }
        // Only now, so that a connection that drains waits for the answers to be on their way.
        for cx in &done {
            connection.land(cx);
        }
    });
}

/// Runs one request of a batch. It has no answer when it was cancelled.
async fn fly(connection: Arc<Connection>, call: Call) -> (Context, Option<Bytes>) {
    let cx = call.context().clone();
    let answer = connection.outcome(call).await;
    cx.0.outbox.abandon();
    (cx, answer)
}

fn join(answers: &[Bytes]) -> Bytes {
    let mut out = Vec::with_capacity(2 + answers.iter().map(|answer| answer.len() + 1).sum::<usize>());
    out.push(b'[');
    for (position, answer) in answers.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        out.extend_from_slice(answer);
    }
    out.push(b']');
    out.into()
}
