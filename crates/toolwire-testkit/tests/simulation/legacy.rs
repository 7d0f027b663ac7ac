//! Legacy clients over HTTP: a session, streams that are resumed, questions that are answered elsewhere.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::time::sleep;
use toolwire_protocol::Version;
use toolwire_testkit::simulation::Random;

use crate::{
    http::{End, PATIENCE, Peer},
    judge::Judge,
    speaker::{Saying, Speaker},
    world::lock,
};

/// How often a stream is resumed at most.
const RESUMPTIONS: usize = 4;

/// How often it is looked whether everything has ended.
const LOOK: Duration = Duration::from_millis(100);

struct Session {
    peer: Peer,
    id: Option<String>,
    judge: Mutex<Judge>,
    speaker: Mutex<Speaker>,
    /// Whether the client has ended it, or never finished its handshake.
    is_over: AtomicBool,
}

pub(crate) async fn run(peer: Peer, mut random: Random, version: Version) {
    let mut speaker = Speaker::new(version, random.fork(), peer.world.is_crowded);
    let initialize = speaker.initialize();
    let mut session = Session {
        peer,
        id: None,
        judge: Mutex::default(),
        speaker: Mutex::new(speaker),
        is_over: AtomicBool::new(false),
    };
    if !session.initialize(&mut random, &initialize).await {
        return session.peer.note("is gone");
    }
    let session = Arc::new(session);
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    if !(random.percent(95) && session.tell(&mut random, &initialized).await == Some(End::Whole(202))) {
        session.is_over.store(true, Ordering::Relaxed);
    }
    session.script(&mut random).await;
    // Whatever goes on holds the session.
    while Arc::strong_count(&session) > 1 {
        sleep(LOOK).await;
    }
    session.peer.note("is gone");
}

impl Session {
    /// Shakes hands. Says whether there is a session now.
    async fn initialize(&mut self, random: &mut Random, message: &Value) -> bool {
        let Some(connection) = self.peer.connect(random).await else { return false };
        lock(&self.judge).sends(message);
        lock(&self.judge).sends_garbage();
        self.peer.world.note_message(&self.peer.name, ">", message);
        let request = self.http(Method::POST, None, Some(message.to_string()));
        let take = |_: Option<&str>, received: Value| self.receive(&received);
        let (end, headers) = self.peer.exchange(&connection, request, random, take, PATIENCE).await;
        if end == End::GaveUp && connection.reliable {
            self.peer.fault("no answer to initialize");
        }
        let id = headers.and_then(|headers| Some(headers.get("mcp-session-id")?.to_str().ok()?.to_owned()));
        self.id = id.filter(|_| end == End::Whole(200));
        self.id.is_some()
    }

    async fn script(self: &Arc<Self>, random: &mut Random) {
        if random.percent(60) {
            self.peer.world.spawn(Arc::clone(self).listen(random.fork()));
        }
        for _ in 0..random.between(1, 7) {
            let saying = lock(&self.speaker).anything();
            self.peer.world.spawn(Arc::clone(self).speak(random.fork(), saying));
            if random.percent(60) {
                sleep(Duration::from_millis(random.below(1500))).await;
            }
            if random.percent(5) {
                self.delete(random).await;
            }
        }
        if random.percent(30) {
            sleep(Duration::from_millis(random.below(5000))).await;
            self.delete(random).await;
        }
    }

    async fn speak(self: Arc<Self>, mut random: Random, saying: Saying) {
        let message = match saying {
            Saying::Message(message) => message,
            Saying::Garbage(text) => {
                lock(&self.judge).sends_garbage();
                self.post(&mut random, text, PATIENCE, &mut None).await;
                return;
            }
            Saying::TooLong(message) => {
                lock(&self.judge).sends_too_long(&message);
                self.post(&mut random, message.to_string(), PATIENCE, &mut None).await;
                return;
            }
        };
        lock(&self.judge).sends(&message);
        if message.get("id").is_some() {
            self.request(&mut random, &message).await;
        } else {
            self.post(&mut random, message.to_string(), PATIENCE, &mut None).await;
        }
    }

    /// Sends a request, and comes back for its answer as often as it takes.
    async fn request(self: &Arc<Self>, random: &mut Random, message: &Value) {
        let (mut last, id) = (None, &message["id"]);
        let impatient = random.percent(20).then(|| Duration::from_millis(random.below(4000)));
        let text = message.to_string();
        self.peer.world.note_message(&self.peer.name, ">", message);
        let Some((mut end, mut reliable)) =
            self.post(random, text, impatient.unwrap_or(PATIENCE), &mut last).await
        else {
            return;
        };
        for _ in 0..RESUMPTIONS {
            let Some(event) = last.clone().filter(|_| !lock(&self.judge).is_answered(id)) else { break };
            sleep(Duration::from_millis(random.between(10, 1500))).await;
            match self.get(random, Some(event), PATIENCE, &mut last).await {
                Some((End::Whole(200), all)) => (end, reliable) = (End::Whole(200), reliable && all),
                // What is not kept any more cannot be had.
                _ => return,
            }
        }
        let excused =
            self.is_over.load(Ordering::Relaxed) || self.peer.world.is_shut() || impatient.is_some();
        // What is refused before it is read has no id.
        let refused = matches!(end, End::Broken | End::Whole(400..));
        if !reliable || excused || refused || lock(&self.judge).is_excused(id) {
            return;
        }
        if !lock(&self.judge).is_answered(id) {
            self.peer.fault(&format!("{end:?} and no answer to {message}"));
        }
    }

    /// Reads the stream for what belongs to no request, and comes back to it.
    async fn listen(self: Arc<Self>, mut random: Random) {
        let mut last = None;
        for _ in 0..random.between(1, 4) {
            let patience = Duration::from_millis(random.between(1, 15_000));
            if self.get(&mut random, last.clone(), patience, &mut last).await.is_none() {
                return;
            }
            sleep(Duration::from_millis(random.below(1500))).await;
        }
    }

    async fn delete(&self, random: &mut Random) {
        self.is_over.store(true, Ordering::Relaxed);
        self.peer.note("> DELETE");
        let request = self.http(Method::DELETE, None, None);
        if let Some(connection) = self.peer.connect(random).await {
            self.peer.exchange(&connection, request, random, |_, _| {}, PATIENCE).await;
        }
    }

    /// Sends a message that has no answer.
    async fn tell(&self, random: &mut Random, message: &Value) -> Option<End> {
        let connection = self.peer.connect(random).await?;
        self.peer.world.note_message(&self.peer.name, ">", message);
        let request = self.http(Method::POST, None, Some(message.to_string()));
        let (end, _) = self.peer.exchange(&connection, request, random, |_, _| {}, PATIENCE).await;
        Some(end)
    }

    async fn post(
        self: &Arc<Self>,
        random: &mut Random,
        text: String,
        patience: Duration,
        last: &mut Option<String>,
    ) -> Option<(End, bool)> {
        let request = self.http(Method::POST, None, Some(text));
        self.stream(random, request, patience, last).await
    }

    async fn get(
        self: &Arc<Self>,
        random: &mut Random,
        from: Option<String>,
        patience: Duration,
        last: &mut Option<String>,
    ) -> Option<(End, bool)> {
        self.peer.note(&format!("> GET after {from:?}"));
        let request = self.http(Method::GET, from, None);
        self.stream(random, request, patience, last).await
    }

    /// One exchange over a connection of its own. Gives its end, and whether the connection was to be relied on.
    async fn stream(
        self: &Arc<Self>,
        random: &mut Random,
        request: Request<Full<Bytes>>,
        patience: Duration,
        last: &mut Option<String>,
    ) -> Option<(End, bool)> {
        let connection = self.peer.connect(random).await?;
        // What is refused by its size, its form or its session is refused without an id.
        lock(&self.judge).sends_garbage();
        let mut forks = random.fork();
        let take = |event: Option<&str>, received: Value| {
            if let Some(event) = event {
                *last = Some(event.to_owned());
            }
            self.receive(&received);
            if received["method"] == "elicitation/create" {
                let (session, id) = (Arc::clone(self), received["id"].clone());
                self.peer.world.spawn(session.respond(forks.fork(), id));
            }
        };
        let (end, _) = self.peer.exchange(&connection, request, random, take, patience).await;
        Some((end, connection.reliable))
    }

    async fn respond(self: Arc<Self>, mut random: Random, id: Value) {
        let Some(response) = lock(&self.speaker).respond(&id) else { return };
        sleep(Duration::from_millis(random.below(1200))).await;
        self.tell(&mut random, &response).await;
    }

    fn receive(&self, message: &Value) {
        if message.is_null() {
            return;
        }
        self.peer.world.note_message(&self.peer.name, "<", message);
        if let Err(why) = lock(&self.judge).receives(message) {
            self.peer.fault(&why);
        }
    }

    fn http(&self, method: Method, last_event: Option<String>, body: Option<String>) -> Request<Full<Bytes>> {
        let mut request = Request::builder().method(method).uri("/").header("host", "localhost");
        if body.is_some() {
            request = request
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream");
        } else {
            request = request.header("accept", "text/event-stream");
        }
        if let Some(id) = &self.id {
            let version = lock(&self.speaker).version;
            request = request.header("mcp-session-id", id).header("mcp-protocol-version", version.as_str());
        }
        if let Some(event) = last_event {
            request = request.header("last-event-id", event);
        }
        request.body(Full::new(body.unwrap_or_default().into())).expect("the headers are good")
    }
}
