//! From single messages to a conversation: questions with their answers, and what happened in between.

use std::collections::HashMap;

use serde_json::Value;

use super::{Event, Side, What};

/// The exchanges of a trace, and what belongs to what.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    exchanges: Vec<Exchange>,
    /// What belongs to no exchange, in order.
    pub(crate) items: Vec<Item>,
}

/// A request and everything that belongs to it.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) server: String,
    pub(crate) from: Side,
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) begun: u64,
    pub(crate) ended: Option<u64>,
    /// How it ended; nothing if there was no answer.
    pub(crate) outcome: Option<Outcome>,
    pub(crate) cancelled: bool,
    /// What was said while it was open, and belongs to it.
    pub(crate) during: Vec<Item>,
    /// The request that answers the questions which were its result.
    next: Option<usize>,
}

/// How a request ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Result(Value),
    Error(Value),
}

/// One thing in a conversation.
#[derive(Debug)]
pub(crate) enum Item {
    /// A request; see [`Conversation::exchange`].
    Exchange(usize),
    Notice(Notice),
    /// Something went wrong on the way.
    Failed {
        micros: u64,
        server: String,
        why: String,
    },
    /// The connection ended.
    Closed {
        micros: u64,
        server: String,
        why: String,
    },
}

/// A notification.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) micros: u64,
    pub(crate) server: String,
    pub(crate) from: Side,
    pub(crate) method: String,
    pub(crate) params: Value,
}

/// The requests that wait for their answers: by server, who asked, and the id as JSON.
type Open = HashMap<(String, Side, String), usize>;

impl Conversation {
    /// Puts the messages of a trace together.
    pub(crate) fn of(events: Vec<Event>) -> Self {
        let mut this = Self::default();
        let mut open = Open::new();
        for Event { micros, server, what } in events {
            match what {
                What::Message(from, message) => this.message(&mut open, micros, server, from, message),
                What::Failed(why) => {
                    let parent = only_one(&this.exchanges, &open, &server);
                    this.add(parent, Item::Failed { micros, server, why });
                }
                What::Closed(why) => {
                    open.retain(|(of, ..), _| *of != server);
                    this.add(None, Item::Closed { micros, server, why });
                }
            }
        }
        this
    }

    /// An exchange by its number in an [`Item`].
    pub(crate) fn exchange(&self, index: usize) -> Option<&Exchange> {
        self.exchanges.get(index)
    }

    /// An exchange and the further rounds of it, if its results were questions.
    pub(crate) fn rounds(&self, index: usize) -> impl Iterator<Item = &Exchange> {
        std::iter::successors(self.exchanges.get(index), |exchange| self.exchanges.get(exchange.next?))
    }

    /// What clients asked of their own accord, in order: further rounds and answers are not among it.
    pub(crate) fn asked(&self) -> impl Iterator<Item = usize> {
        self.items.iter().filter_map(|item| match item {
            Item::Exchange(index) => Some(*index),
            _ => None,
        })
    }

    /// All exchanges in the order in which they began.
    pub(crate) fn all(&self) -> &[Exchange] {
        &self.exchanges
    }

    fn message(&mut self, open: &mut Open, micros: u64, server: String, from: Side, mut message: Value) {
        let id = message.get("id").filter(|id| !id.is_null()).map(Value::to_string);
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        match (message.get("method").and_then(Value::as_str), id) {
            (Some(method), Some(id)) => {
                let method = method.to_owned();
                self.request(
                    open,
                    id,
                    Exchange {
                        server,
                        from,
                        method,
                        params,
                        begun: micros,
                        ended: None,
                        outcome: None,
                        cancelled: false,
                        during: Vec::new(),
                        next: None,
                    },
                );
            }
            (Some(method), None) => {
                let notice = Notice { micros, from, method: method.to_owned(), params, server };
                self.notice(open, notice);
            }
            (None, Some(id)) => {
                let asked_by = if from == Side::Client { Side::Server } else { Side::Client };
                let asked = open.remove(&(server, asked_by, id));
                if let Some(exchange) = asked.and_then(|index| self.exchanges.get_mut(index)) {
                    exchange.ended = Some(micros);
                    exchange.outcome = outcome(message);
                }
            }
            (None, None) => {}
        }
    }

    fn request(&mut self, open: &mut Open, id: String, exchange: Exchange) {
        let index = self.exchanges.len();
        let earlier = self.earlier_round(&exchange);
        let parent = match exchange.from {
            Side::Client => None,
            // A server asks on behalf of the call that it is busy with.
            Side::Server => latest(&self.exchanges, open, &exchange.server),
        };
        open.insert((exchange.server.clone(), exchange.from, id), index);
        self.exchanges.push(exchange);
        match earlier.and_then(|earlier| self.exchanges.get_mut(earlier)) {
            Some(earlier) => earlier.next = Some(index),
            None => self.add(parent, Item::Exchange(index)),
        }
    }

    fn notice(&mut self, open: &mut Open, notice: Notice) {
        let id_of =
            |value: Option<&Value>| value.map(|id| (notice.server.clone(), Side::Client, id.to_string()));
        let parent = match notice.method.as_str() {
            "notifications/progress" => {
                let token = notice.params.get("progressToken");
                let of = |index: &&usize| {
                    let exchange = self.exchanges.get(**index);
                    exchange.is_some_and(|exchange| {
                        exchange.server == notice.server
                            && token.is_some()
                            && exchange.progress_token() == token
                    })
                };
                open.values().find(of).copied()
            }
            "notifications/cancelled" => {
                let cancelled = id_of(notice.params.get("requestId")).and_then(|key| open.remove(&key));
                if let Some(exchange) = cancelled.and_then(|index| self.exchanges.get_mut(index)) {
                    exchange.cancelled = true;
                    exchange.ended = Some(notice.micros);
                }
                cancelled
            }
            _ => match notice.params.pointer("/_meta/io.modelcontextprotocol~1subscriptionId") {
                Some(id) => id_of(Some(id)).and_then(|key| open.get(&key).copied()),
                None if notice.from == Side::Server => only_one(&self.exchanges, open, &notice.server),
                None => None,
            },
        };
        self.add(parent, Item::Notice(notice));
    }

    fn add(&mut self, parent: Option<usize>, item: Item) {
        match parent.and_then(|parent| self.exchanges.get_mut(parent)) {
            Some(parent) => parent.during.push(item),
            None => self.items.push(item),
        }
    }

    /// The request whose questions are answered by this one.
    fn earlier_round(&self, exchange: &Exchange) -> Option<usize> {
        let member = |name: &str| exchange.params.get(name);
        if member("requestState").is_none() && member("inputResponses").is_none() {
            return None;
        }
        let continued = |earlier: &Exchange| {
            let result = earlier.result();
            earlier.next.is_none()
                && (&earlier.server, &earlier.method) == (&exchange.server, &exchange.method)
                && result.is_some_and(asks_for_input)
                && result.and_then(|result| result.get("requestState")) == member("requestState")
                && ["name", "uri"].iter().all(|name| earlier.params.get(*name) == member(name))
        };
        self.exchanges.iter().rposition(continued)
    }
}

impl Exchange {
    /// The result, if it was answered with one.
    pub(crate) fn result(&self) -> Option<&Value> {
        match &self.outcome {
            Some(Outcome::Result(result)) => Some(result),
            _ => None,
        }
    }

    /// How long it took.
    pub(crate) fn took(&self) -> Option<u64> {
        self.ended.map(|ended| ended.saturating_sub(self.begun))
    }

    /// The token that its progress is told with.
    pub(crate) fn progress_token(&self) -> Option<&Value> {
        self.params.get("_meta")?.get("progressToken")
    }

    /// Whether it stays open to tell of changes.
    pub(crate) fn listens(&self) -> bool {
        self.method == "subscriptions/listen"
    }
}

/// Whether a result is a question.
pub(crate) fn asks_for_input(result: &Value) -> bool {
    result.get("resultType").is_some_and(|kind| kind == "input_required")
}

fn outcome(mut message: Value) -> Option<Outcome> {
    if let Some(error) = message.get_mut("error") {
        return Some(Outcome::Error(error.take()));
    }
    message.get_mut("result").map(|result| Outcome::Result(result.take()))
}

/// The requests of a client that its server is busy with.
fn busy<'a>(exchanges: &'a [Exchange], open: &'a Open, server: &'a str) -> impl Iterator<Item = usize> {
    let matters = |index: &usize| exchanges.get(*index).is_some_and(|exchange| !exchange.listens());
    open.iter()
        .filter(move |((of, side, _), _)| of == server && *side == Side::Client)
        .map(|(_, index)| *index)
        .filter(matters)
}

fn latest(exchanges: &[Exchange], open: &Open, server: &str) -> Option<usize> {
    busy(exchanges, open, server).max()
}

/// The only request that something can belong to.
fn only_one(exchanges: &[Exchange], open: &Open, server: &str) -> Option<usize> {
    let mut busy = busy(exchanges, open, server);
    busy.next().filter(|_| busy.next().is_none())
}
