//! Makes what clients say, in either era.

use serde_json::{Value, json};
use toolwire_protocol::{
    Version,
    wire::meta::{CLIENT_CAPABILITIES, LOG_LEVEL, PROTOCOL_VERSION},
};
use toolwire_testkit::simulation::Random;

use crate::handlers::{CROWDED_TOOLS, TOOLS};

pub(crate) struct Speaker {
    pub(crate) version: Version,
    pub(crate) random: Random,
    /// The tools that it knows. Some know few, and use those often.
    tools: Vec<&'static str>,
    last_id: i64,
}

/// Something to say.
#[derive(Debug)]
pub(crate) enum Saying {
    Message(Value),
    /// Not a message, or one that is too long.
    Garbage(String),
    TooLong(Value),
}

impl Speaker {
    pub(crate) fn new(version: Version, mut random: Random, is_crowded: bool) -> Self {
        let tools = match random.below(2) {
            _ if is_crowded => CROWDED_TOOLS.to_vec(),
            0 => TOOLS.to_vec(),
            _ => (0..random.between(1, 4)).map(|_| *random.pick(&TOOLS)).collect(),
        };
        Self { version, random, tools, last_id: 0 }
    }

    pub(crate) fn request(&mut self, method: &str, mut params: Value) -> Value {
        self.last_id += 1;
        if self.version.is_modern() {
            params["_meta"][PROTOCOL_VERSION] = self.version.as_str().into();
            params["_meta"][CLIENT_CAPABILITIES] = json!({ "elicitation": { "form": {} } });
            if self.random.percent(30) {
                params["_meta"][LOG_LEVEL] = "debug".into();
            }
        }
        json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params })
    }

    pub(crate) fn initialize(&mut self) -> Value {
        let capabilities = json!({ "elicitation": { "form": {} } });
        let client = json!({ "name": "simulated", "version": "1" });
        let params = json!({ "protocolVersion": self.version.as_str(), "capabilities": capabilities, "clientInfo": client });
        self.request("initialize", params)
    }

    pub(crate) fn call(&mut self) -> Value {
        let tool = *self.random.pick(&self.tools);
        let ms = if self.random.percent(30) { 0 } else { self.random.between(1, 2500) };
        let tag = (self.last_id + 1).to_string();
        let arguments = json!({ "ms": ms, "steps": self.random.between(1, 6), "tag": tag });
        let mut params = json!({ "name": tool, "arguments": arguments });
        if self.random.percent(60) {
            params["_meta"]["progressToken"] = tag.into();
        }
        self.request("tools/call", params)
    }

    /// The next round of a call whose answer was a question.
    pub(crate) fn retry(&mut self, asked: &Value, result: &Value) -> Value {
        let mut params = asked["params"].clone();
        let answer = self.answer();
        let questions = result["inputRequests"].as_object().into_iter().flatten();
        let answers: Value = questions.map(|(key, _)| (key.clone(), answer.clone())).collect();
        params["inputResponses"] = answers;
        params["requestState"] = result["requestState"].clone();
        let mut next = self.request("tools/call", params);
        if next["params"]["_meta"]["progressToken"].is_string() {
            next["params"]["_meta"]["progressToken"] = next["id"].to_string().into();
        }
        next
    }

    /// What a person says to a question.
    pub(crate) fn answer(&mut self) -> Value {
        match self.random.below(10) {
            0..6 => json!({ "action": "accept", "content": { "yes": true } }),
            6 => json!({ "action": "accept", "content": { "yes": "perhaps" } }),
            7 => json!({ "action": "decline" }),
            8 => json!({ "action": "cancel" }),
            _ => json!({ "what": [] }),
        }
    }

    /// The answer to a question of a legacy server; `None` if there is none.
    pub(crate) fn respond(&mut self, id: &Value) -> Option<Value> {
        match self.random.below(10) {
            0 | 1 => None,
            2 => Some(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -1, "message": "no" } })),
            _ => Some(json!({ "jsonrpc": "2.0", "id": id, "result": self.answer() })),
        }
    }

    /// Anything a client may say, and some things that none should.
    pub(crate) fn anything(&mut self) -> Saying {
        let message = match self.random.below(100) {
            0..50 => self.call(),
            50..58 => self.cancel(),
            58..66 => {
                let uri = *self.random.pick(&["sim://a", "sim://b", "sim://c"]);
                let (method, params) = self
                    .random
                    .pick(&[
                        ("tools/list", json!({})),
                        ("resources/read", json!({ "uri": uri })),
                        ("prompts/get", json!({ "name": "hello" })),
                        ("resources/list", json!({ "cursor": "nonsense" })),
                    ])
                    .clone();
                self.request(method, params)
            }
            66..76 => self.subscribe(),
            76..81 if self.version == Version::V2025_03_26 => self.batch(),
            81..85 => return Saying::Garbage(self.garbage()),
            85..88 => return Saying::TooLong(self.too_long()),
            88..92 => self.twice(),
            92..95 => self.request("no/such", json!({})),
            95..97 => self.request("tools/call", json!({ "name": "now", "arguments": [] })),
            97..99 if !self.version.is_modern() => {
                self.request("logging/setLevel", json!({ "level": "debug" }))
            }
            _ => self.request("ping", json!({})),
        };
        Saying::Message(message)
    }

    fn earlier_id(&mut self) -> i64 {
        i64::try_from(self.random.below(4)).map_or(0, |ago| (self.last_id - ago).max(1))
    }

    fn cancel(&mut self) -> Value {
        let id = self.earlier_id();
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
    }

    fn subscribe(&mut self) -> Value {
        let uri = *self.random.pick(&["sim://a", "sim://b", "sim://"]);
        if self.version.is_modern() {
            let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": [uri] });
            return self.request("subscriptions/listen", json!({ "notifications": filter }));
        }
        let method =
            *self.random.pick(&["resources/subscribe", "resources/subscribe", "resources/unsubscribe"]);
        self.request(method, json!({ "uri": uri }))
    }

    fn batch(&mut self) -> Value {
        let count = self.random.between(1, 4);
        (0..count).map(|_| if self.random.percent(20) { self.cancel() } else { self.call() }).collect()
    }

    /// A request with an id that is or was in use.
    fn twice(&mut self) -> Value {
        let id = self.earlier_id();
        let mut message = self.call();
        message["id"] = id.into();
        if let Some(meta) = message.pointer_mut("/params/_meta").and_then(Value::as_object_mut) {
            meta.remove("progressToken");
        }
        // Nobody can tell the questions of the two apart.
        message["params"]["name"] = "wait".into();
        message
    }

    fn garbage(&mut self) -> String {
        let texts = ["", "[", "[]", "null", "{\"jsonrpc\":\"2.0\"}", "\u{0}", "{\"id\":{}}", "no JSON"];
        (*self.random.pick(&texts)).to_owned()
    }

    fn too_long(&mut self) -> Value {
        let mut message = self.call();
        message["params"]["more"] = "z".repeat(5000).into();
        message
    }
}
