//! Batches, which exist in 2025-03-26 alone: an array of messages in, an array of answers out.

use std::sync::Arc;

use bytes::Bytes;
use tokio::task::JoinSet;
use toolwire_protocol::{
    Message,
    envelope::{parse_batch, write_error},
};

use super::{Connection, Entered};
use crate::dispatch::{Shielded, dispatch, encode};

/// Handles one batch. Its requests run side by side; their answers leave together.
pub(super) async fn handle(connection: &Arc<Connection>, bytes: &Bytes) {
    let messages = match parse_batch(bytes, connection.server.limits().batch_messages) {
        Ok(messages) => messages,
        Err(fault) => return connection.refuse_envelope(&fault),
    };
    let mut answers = Vec::new();
    let mut running = JoinSet::new();
    for message in messages {
        match message {
            Ok(Message::Request(request)) => match connection.admit(request) {
                Ok(Entered::Answered(bytes)) | Err(bytes) => answers.push(bytes),
                Ok(Entered::Context(cx)) => match connection.flights.admit(&cx) {
                    // A batch is bounded by itself, so its requests run even where others would wait.
                    Ok(_) => {
                        let connection = Arc::clone(connection);
                        running.spawn(async move {
                            let result = connection.outcome(&cx, Shielded(dispatch(cx.clone()))).await;
                            let answer = result.map(|result| encode(&cx, result));
                            cx.0.outbox.abandon();
                            if connection.flights.land(&cx).is_some() {
                                connection.start_waiting();
                            }
                            answer
                        });
                    }
                    Err(refusal) => answers.push(encode(&cx, Err(refusal.rpc_error()))),
                },
            },
            Ok(other) => connection.message(other).await,
            Err(fault) => answers.push(write_error(fault.id.as_ref(), &fault.rpc_error())),
        }
    }
    let queue = connection.queue.clone();
    let gathered = async move {
        while let Some(done) = running.join_next().await {
            answers.extend(done.ok().flatten());
        }
        if !answers.is_empty() {
            let _ = queue.post(join(&answers));
        }
    };
    tokio::spawn(gathered);
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
