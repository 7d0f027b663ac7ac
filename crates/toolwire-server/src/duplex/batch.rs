//! Batches, which exist in 2025-03-26 alone: an array of messages in, an array of answers out.

use std::{
    sync::{Arc, Mutex, PoisonError},
    task::Context as Task,
};

use bytes::Bytes;
use toolwire_protocol::{Request, Version, peek::Peek};
use toolwire_transport::{
    Lane,
    ledger::{Account, Charge, LimitReached},
};

use super::{Connection, ReplyTo};
use crate::{
    Lack,
    admission::{LIGHT_BYTES, no_room},
    engine::{EncodedResponse, Incoming, Session, join_answers},
};

/// The answers to one batch, until they are all there and leave together.
#[derive(Debug)]
pub(crate) struct BatchAnswers {
    state: Mutex<State>,
    /// What the requests say before their answers, and then all of those: so they come last.
    lane: Lane,
    /// The bytes of the whole batch, which each of its requests holds on to until the last of them is over.
    _bytes: Charge,
}

#[derive(Debug)]
struct State {
    answers: Vec<Bytes>,
    /// How many are still to come.
    open: usize,
    charge: Charge,
}

impl BatchAnswers {
    fn new(open: usize, lane: Lane, bytes: Charge) -> Self {
        let charge = bytes.ledger().empty_charge(Account::AnswerBytes);
        Self { state: Mutex::new(State { answers: Vec::new(), open, charge }), lane, _bytes: bytes }
    }

    /// The lane for what the requests say before their answers.
    pub(super) fn lane(&self) -> Lane {
        self.lane.clone()
    }

    /// Takes one answer, or none for a request that was cancelled. All of them leave once they are there.
    pub(super) fn take(&self, answer: Option<Bytes>) {
        if let Some((all, charge)) = self.collect(answer) {
            // A closed queue means that the client is gone, which the writer reports.
            let _ = self.lane.finish_charged(all, charge);
        }
    }

    fn collect(&self, answer: Option<Bytes>) -> Option<(Bytes, Charge)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = answer {
            state.keep(answer);
        }
        state.open -= 1;
        if state.open > 0 || state.answers.is_empty() {
            return None;
        }
        let none = state.charge.ledger().empty_charge(Account::AnswerBytes);
        let charge = std::mem::replace(&mut state.charge, none);
        Some((join_answers(&std::mem::take(&mut state.answers)), charge))
    }
}

impl State {
    /// Keeps an answer until the others are there. If there is no room for it, an error takes its place.
    fn keep(&mut self, mut answer: Bytes) {
        if answer.len() > LIGHT_BYTES {
            match self.charge.grow(answer.len()) {
                Ok(()) => return self.answers.push(answer),
                Err(reached) => answer = no_room(&answer, &reached),
            }
        }
        self.charge.grow_unchecked(answer.len());
        self.answers.push(answer);
    }
}

impl Connection {
    /// Handles one batch. Its requests run side by side, each let in like any other; their answers leave together.
    pub(super) fn batch(self: &Arc<Self>, bytes: &Bytes, task: &mut Task<'_>) {
        let session = self.session();
        let view = session.map_or_else(|| self.server.without_session(), Session::view);
        let messages = match self.server.receive_batch(bytes, None, view, session) {
            Ok(messages) => messages,
            Err(fault) => return self.refuse_envelope(&fault),
        };
        // Either all of its requests may start, or none of them.
        let (weight, messages) = match self.server.admit_batch(&messages, self.principal()) {
            Ok(()) => match self.ledger().charge(Account::RequestBytes, bytes.len()) {
                Ok(weight) => (weight, messages),
                Err(reached) => {
                    (self.weightless(), refused(messages, |request| too_heavy(request, &reached)))
                }
            },
            Err(lack) => (self.weightless(), refused(messages, |request| lacking(request, &lack))),
        };
        let answers = messages
            .iter()
            .filter(|(incoming, _)| matches!(incoming, Incoming::Request(..) | Incoming::Answered(_)))
            .count();
        let all = Arc::new(BatchAnswers::new(answers, self.queue.lane(), weight));
        for (incoming, peek) in messages {
            self.take_in(incoming, peek, 0, ReplyTo::Batch(Arc::clone(&all)), task);
        }
    }

    /// What is refused holds on to nothing.
    fn weightless(&self) -> Charge {
        self.ledger().empty_charge(Account::RequestBytes)
    }
}

fn lacking(request: &Request, lack: &Lack) -> EncodedResponse {
    EncodedResponse::lacking(request, Version::V2025_03_26, lack.clone())
}

fn too_heavy(request: &Request, reached: &LimitReached) -> EncodedResponse {
    EncodedResponse::busy(request, Version::V2025_03_26, reached)
}

/// A batch of which no request may start: each is answered with why. The other messages hold nothing of the batch and
/// cannot be refused, so they are handled all the same.
fn refused(
    messages: Vec<(Incoming, Box<Peek>)>,
    why: impl Fn(&Request) -> EncodedResponse,
) -> Vec<(Incoming, Box<Peek>)> {
    let refuse = |(message, peek)| match message {
        Incoming::Request(request, _) => (Incoming::Answered(why(&request)), peek),
        other => (other, peek),
    };
    messages.into_iter().map(refuse).collect()
}
