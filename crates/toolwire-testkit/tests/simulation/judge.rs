//! Looks at what goes to and fro, and says what is against the rules.

use std::collections::BTreeMap;

use serde_json::Value;
use toolwire_protocol::wire::meta::SUBSCRIPTION_ID;

/// The requests of one connection or session, and what has become of them.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    asked: BTreeMap<String, Asked>,
    /// Whether the connection is so good that nobody has to wait for it.
    is_prompt: bool,
    /// How often the client was told that the tools have changed.
    changes: usize,
    /// Whether `initialize` has succeeded.
    has_session: bool,
    /// Whether the client has sent `notifications/initialized`.
    sent_initialized: bool,
    /// Whether that has arrived. Messages arrive in order, so the answer to a later one shows it.
    is_initialized: bool,
    /// How many answers without an id may come: to what could not be read.
    nameless: usize,
    /// Whether one has come.
    nameless_came: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) message: Value,
    times: usize,
    answered: usize,
    /// Whether it may stay without an answer.
    excused: bool,
    /// Whether it may have been refused without its id.
    in_batch: bool,
    /// Whether it was sent once, after `notifications/initialized`.
    after_initialized: bool,
    progress: f64,
    acknowledged: bool,
    cancelled: bool,
}

impl Judge {
    pub(crate) fn new(is_prompt: bool) -> Self {
        Self { is_prompt, ..Self::default() }
    }

    /// Notes what the client is about to send.
    pub(crate) fn sends(&mut self, message: &Value) {
        if let Value::Array(all) = message {
            // If it is refused as a whole, the answer has no id, and its requests have none of their own.
            self.nameless += 1;
            for message in all {
                self.sends(message);
                if let Some(asked) = message.get("id").and_then(|id| self.asked.get_mut(&id.to_string())) {
                    asked.in_batch = true;
                }
            }
            return;
        }
        let method = message["method"].as_str().unwrap_or_default();
        self.sent_initialized |= method == "notifications/initialized";
        if method == "notifications/cancelled" {
            self.excuse(&message["params"]["requestId"]);
        }
        if let Some(id) = message.get("id").filter(|_| !method.is_empty()) {
            let asked = self.asked.entry(id.to_string()).or_default();
            // Listeners end when they are told to, and not by themselves.
            asked.excused |= method == "subscriptions/listen";
            asked.message = message.clone();
            asked.times += 1;
            asked.after_initialized = self.sent_initialized && asked.times == 1;
        }
    }

    /// Notes that something that is no message is about to be sent.
    pub(crate) fn sends_garbage(&mut self) {
        self.nameless += 1;
    }

    /// Notes that a message over the limit is about to be sent: it may be refused with its id or without.
    pub(crate) fn sends_too_long(&mut self, message: &Value) {
        self.sends(message);
        self.excuse(&message["id"]);
        self.sends_garbage();
    }

    /// Notes that a request may stay without an answer: it is cancelled, or too large, or the way back is closed.
    pub(crate) fn excuse(&mut self, id: &Value) {
        if let Some(asked) = self.asked.get_mut(&id.to_string()) {
            asked.excused = true;
            asked.cancelled = true;
        }
    }

    /// How often the client was told that the tools have changed; `None` if it is not told of that.
    pub(crate) fn changes(&self) -> Option<usize> {
        let listens = |asked: &Asked| asked.acknowledged && asked.answered == 0 && !asked.cancelled;
        let hears = self.has_session && self.is_initialized || self.asked.values().any(listens);
        hears.then_some(self.changes)
    }

    /// What was asked by this id.
    pub(crate) fn asked(&self, id: &Value) -> Option<&Asked> {
        self.asked.get(&id.to_string())
    }

    /// The requests that have no answer and no excuse, listeners left out.
    pub(crate) fn unanswered(&self) -> Vec<String> {
        let open = |asked: &&Asked| {
            asked.answered < asked.times && !asked.excused && !(asked.in_batch && self.nameless_came)
        };
        self.asked.values().filter(open).map(|asked| asked.message.to_string()).collect()
    }

    /// Whether this request has all of its answers.
    pub(crate) fn is_answered(&self, id: &Value) -> bool {
        self.asked(id).is_some_and(|asked| asked.answered >= asked.times)
    }

    /// Whether this request may stay without an answer.
    pub(crate) fn is_excused(&self, id: &Value) -> bool {
        self.asked(id).is_none_or(|asked| asked.excused || asked.times > 1)
    }

    /// Takes a message of the server.
    pub(crate) fn receives(&mut self, message: &Value) -> Result<(), String> {
        if let Value::Array(all) = message {
            return all.iter().try_for_each(|message| self.receives(message));
        }
        let (method, params) = (message["method"].as_str(), &message["params"]);
        self.changes += usize::from(method == Some("notifications/tools/list_changed"));
        match method {
            None => self.answer(message),
            Some("notifications/progress") => self.progress(params),
            Some("elicitation/create") => match params["message"].as_str() {
                Some(tag) => self.open(tag, "a question").map(drop),
                None => Err("a question without a text".to_owned()),
            },
            Some(method) => match params["_meta"].get(SUBSCRIPTION_ID) {
                Some(id) => self.subscription(id, method),
                None => Ok(()),
            },
        }
    }

    fn answer(&mut self, message: &Value) -> Result<(), String> {
        let id = &message["id"];
        if id.is_null() {
            self.nameless_came = true;
            self.nameless = self.nameless.checked_sub(1).ok_or("an answer without an id, to nothing")?;
            return Ok(());
        }
        let asked = self.asked.get_mut(&id.to_string()).ok_or("an answer to an id that was not asked")?;
        asked.answered += 1;
        self.has_session |= asked.message["method"] == "initialize" && message.get("result").is_some();
        self.is_initialized |= asked.after_initialized;
        if asked.answered > asked.times {
            return Err(format!("answer number {} to a request", asked.answered));
        }
        // The time of a person does not count as the handler's, so this one waited for the question to leave.
        let tool = asked.message["params"]["name"].as_str().unwrap_or_default();
        let text = message["error"]["message"].as_str().unwrap_or_default();
        if self.is_prompt && tool.starts_with("ask") && text.contains("handler_timeout") {
            return Err("a question was held up until its handler was stopped".to_owned());
        }
        Ok(())
    }

    fn progress(&mut self, params: &Value) -> Result<(), String> {
        let tag = params["progressToken"].as_str().ok_or("progress without its token")?;
        let asked = self.open(tag, "progress")?;
        let value = params["progress"].as_f64().unwrap_or(f64::NAN);
        // Two requests with one id have one token.
        if asked.times == 1 && !(asked.acknowledged || value > asked.progress) && asked.progress > 0.0 {
            return Err(format!("progress {value} after {}", asked.progress));
        }
        asked.progress = value;
        Ok(())
    }

    fn subscription(&mut self, id: &Value, method: &str) -> Result<(), String> {
        let asked = self.asked.get_mut(&id.to_string()).ok_or("a change for nobody")?;
        if asked.answered >= asked.times {
            return Err(format!("{method} after the end of its subscription"));
        }
        if method == "notifications/subscriptions/acknowledged" {
            asked.acknowledged = true;
        } else if !asked.acknowledged {
            return Err(format!("{method} before the acknowledgement"));
        }
        Ok(())
    }

    /// The request of this tag, which must not have been answered.
    fn open(&mut self, tag: &str, what: &str) -> Result<&mut Asked, String> {
        let asked =
            self.asked.get_mut(tag).ok_or_else(|| format!("{what} for a request that was not made"))?;
        if asked.answered >= asked.times {
            return Err(format!("{what} after the answer"));
        }
        Ok(asked)
    }
}
