//! Batches, which exist in 2025-03-26 alone: an array of messages in, an array of answers out.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use toolwire_transport::ledger::{Account, Charge, Ledger};

use super::{Connection, ReplyTo};
use crate::engine::{Incoming, join_answers};

/// The answers to one batch, until they are all there and leave together.
#[derive(Debug)]
pub(crate) struct BatchAnswers(Mutex<State>);

#[derive(Debug)]
struct State {
    answers: Vec<Bytes>,
    /// How many are still to come.
    open: usize,
    charge: Charge,
}

impl BatchAnswers {
    fn new(open: usize, ledger: &Ledger) -> Self {
        Self(Mutex::new(State {
            answers: Vec::new(),
            open,
            charge: ledger.empty_charge(Account::AnswerBytes),
        }))
    }

    /// Takes one answer, or none for a request that was cancelled. Gives all of them once they are there.
    pub(crate) fn take(&self, answer: Option<Bytes>) -> Option<Bytes> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = answer {
            state.charge.grow_unchecked(answer.len());
            state.answers.push(answer);
        }
        state.open -= 1;
        (state.open == 0 && !state.answers.is_empty()).then(|| join_answers(&state.answers))
    }
}

impl Connection {
    /// Handles one batch. Its requests run side by side, each let in like any other; their answers leave together.
    pub(super) async fn batch(self: &Arc<Self>, bytes: &Bytes) {
        let session = self.session();
        let view = session.map_or_else(|| self.server.without_session(), |session| session.view());
        let messages = match self.server.receive_batch(bytes, None, view, session) {
            Ok(messages) => messages,
            Err(fault) => return self.refuse_envelope(&fault),
        };
        let answers = messages
            .iter()
            .filter(|(incoming, _)| matches!(incoming, Incoming::Request(..) | Incoming::Answered(_)))
            .count();
        let all = Arc::new(BatchAnswers::new(answers, self.ledger()));
        // Each holds on to the bytes of the whole batch, and none of them weighs more than its share.
        let weight = bytes.len().div_ceil(messages.len().max(1));
        for (incoming, peek) in messages {
            self.take_in(incoming, peek, weight, ReplyTo::Batch(Arc::clone(&all))).await;
        }
    }
}
