//! Clients that are connected for as long as they are there, in either era.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{
    sync::{
        Notify,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
    task::{AbortHandle, JoinHandle},
    time::{Instant, sleep, sleep_until, timeout},
};
use toolwire_protocol::Version;
use toolwire_testkit::simulation::{Plan, Random, Stall};
use toolwire_transport::{Duplex, Sink, Source};

use crate::{
    judge::Judge,
    speaker::{Saying, Speaker},
    world::{World, lock},
};

/// By then everything is answered that will ever be.
const PATIENCE: Duration = Duration::from_secs(150);

/// How long the server may take to end after its client has.
const GOODBYE: Duration = Duration::from_secs(60);

/// How long it may take until a client is told of a change, in milliseconds.
const CHANGE_TIME: u64 = 30_000;

/// What the reader wants to be said.
enum Todo {
    /// An answer to this question.
    Respond(Value),
    /// The next round of a request.
    Retry(Value, Value),
}

struct Client<S> {
    world: Arc<World>,
    name: String,
    speaker: Speaker,
    judge: Arc<Mutex<Judge>>,
    sink: S,
    todo: UnboundedReceiver<Todo>,
    /// Whether nothing more can be sent.
    mute: bool,
}

/// A way to the server, and what is to be expected of it.
pub(crate) struct Line<D> {
    pub(crate) end: D,
    /// What serves it.
    pub(crate) serving: AbortHandle,
    /// Whether everything arrives in the end, or soon.
    pub(crate) reliable: bool,
    pub(crate) is_prompt: bool,
}

/// What goes wrong on the way of a client. The first one of a crowded run takes nothing.
pub(crate) fn plan(world: &World, random: &mut Random, is_first: bool) -> Plan {
    let mut plan = Plan::random(random);
    if world.is_crowded && is_first {
        plan.back.stall = Some(Stall { after: random.below(4), time: None });
        plan.back.capacity = 1;
    } else if world.is_crowded && random.percent(60) {
        plan = Plan::calm();
    }
    plan
}

pub(crate) async fn run<D: Duplex>(
    world: Arc<World>,
    name: String,
    mut random: Random,
    version: Version,
    line: Line<D>,
) {
    let Line { end, serving, reliable, is_prompt } = line;
    world.note(&name, &format!("speaks {version}"));
    let (source, sink) = end.split();
    let (wants, todo) = unbounded_channel();
    let (judge, stop) = (Arc::new(Mutex::new(Judge::new(is_prompt))), Arc::new(Notify::new()));
    let reading = tokio::spawn(read(
        Arc::clone(&world),
        name.clone(),
        source,
        Arc::clone(&judge),
        wants,
        Arc::clone(&stop),
    ));
    let speaker = Speaker::new(version, random.fork(), world.is_crowded);
    let mut client = Client {
        world: Arc::clone(&world),
        name,
        speaker,
        judge: Arc::clone(&judge),
        sink,
        todo,
        mute: false,
    };
    client.script(&mut random).await;
    client.wait_for_answers(&reading).await;
    if reliable {
        client.hear_of_changes(&reading).await;
    }
    let Client { name, mut sink, .. } = client;
    if reliable && !reading.is_finished() && !world.is_shut() {
        for open in lock(&judge).unanswered() {
            world.fault(&name, &format!("no answer to {open}"));
        }
    }
    match random.below(3) {
        0 if reliable => {
            world.note(&name, "closes its side");
            let _ = sink.close().await;
            if timeout(GOODBYE, reading).await.is_err() {
                world.fault(&name, "the server does not close its side");
            }
            if timeout(GOODBYE, async {
                while !serving.is_finished() {
                    sleep(GOODBYE / 100).await;
                }
            })
            .await
            .is_err()
            {
                world.fault(&name, "the server does not end");
            }
        }
        1 => {
            stop.notify_one();
            world.note(&name, "does nothing any more");
            world.keep((reading.await.ok(), sink));
        }
        _ => {
            stop.notify_one();
            world.note(&name, "is gone");
            drop((reading.await, sink));
        }
    }
}

/// Reads what the server says, and gives the source back when it is to stop.
async fn read<S: Source>(
    world: Arc<World>,
    name: String,
    mut source: S,
    judge: Arc<Mutex<Judge>>,
    wants: UnboundedSender<Todo>,
    stop: Arc<Notify>,
) -> Option<S> {
    loop {
        let received = tokio::select! {
            biased;
            () = stop.notified() => return Some(source),
            received = source.receive() => received,
        };
        let Ok(Some(bytes)) = received else {
            world.note(&name, "the connection is closed");
            return None;
        };
        let Ok(message) = serde_json::from_slice::<Value>(&bytes) else {
            world.fault(&name, &format!("the server sent what is not JSON: {bytes:?}"));
            continue;
        };
        world.note_message(&name, "<", &message);
        let mut judge = lock(&judge);
        if let Err(why) = judge.receives(&message) {
            world.fault(&name, &why);
        }
        let todo = if message["method"] == "elicitation/create" {
            Todo::Respond(message["id"].clone())
        } else if message["result"]["requestState"].is_string() {
            let asked = judge.asked(&message["id"]).map(|asked| asked.message.clone());
            Todo::Retry(asked.unwrap_or_default(), message["result"].clone())
        } else {
            continue;
        };
        let _ = wants.send(todo);
    }
}

impl<S: Sink> Client<S> {
    async fn script(&mut self, random: &mut Random) {
        if !self.speaker.version.is_modern() {
            let initialize = self.speaker.initialize();
            self.say(initialize).await;
            self.pause(random.below(400)).await;
            if random.percent(90) {
                self.say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
            }
        }
        for _ in 0..random.between(1, 10) {
            match self.speaker.anything() {
                Saying::Message(message) => self.say(message).await,
                Saying::Garbage(text) => {
                    self.world.note(&self.name, &format!("> {text:?}"));
                    lock(&self.judge).sends_garbage();
                    self.send(text).await;
                }
                Saying::TooLong(message) => {
                    self.world.note(&self.name, "> a message that is too long");
                    lock(&self.judge).sends_too_long(&message);
                    self.send(message.to_string()).await;
                }
            }
            if random.percent(60) {
                self.pause(random.below(1500)).await;
            }
        }
    }

    async fn wait_for_answers<T>(&mut self, reading: &JoinHandle<T>) {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end && !reading.is_finished() {
            if lock(&self.judge).unanswered().is_empty() {
                // What comes now should not.
                return self.pause(5000).await;
            }
            self.pause(1000).await;
        }
    }

    /// Whoever listens is told of changes, whatever others do or do not.
    async fn hear_of_changes<T>(&mut self, reading: &JoinHandle<T>) {
        let Some(before) = lock(&self.judge).changes() else { return };
        self.world.note(&self.name, "waits for a change");
        self.world.server.notify().tools_changed();
        self.pause(CHANGE_TIME).await;
        let after = lock(&self.judge).changes();
        if after == Some(before) && !self.world.is_shut() && !reading.is_finished() {
            self.world.fault(&self.name, "was not told of a change");
        }
    }

    /// Does what there is to do until some time has passed.
    async fn pause(&mut self, ms: u64) {
        let end = Instant::now() + Duration::from_millis(ms);
        loop {
            let todo = tokio::select! {
                biased;
                Some(todo) = self.todo.recv() => todo,
                () = sleep_until(end) => return,
            };
            let thinks = Duration::from_millis(self.speaker.random.below(1200));
            match todo {
                Todo::Respond(id) => {
                    let Some(response) = self.speaker.respond(&id) else { continue };
                    sleep(thinks).await;
                    self.say(response).await;
                }
                Todo::Retry(asked, result) if self.speaker.random.percent(80) => {
                    sleep(thinks).await;
                    let retry = self.speaker.retry(&asked, &result);
                    self.say(retry).await;
                }
                Todo::Retry(..) => {}
            }
        }
    }

    async fn say(&mut self, message: Value) {
        self.world.note_message(&self.name, ">", &message);
        lock(&self.judge).sends(&message);
        self.send(message.to_string()).await;
    }

    async fn send(&mut self, text: String) {
        if self.mute {
            return;
        }
        match timeout(PATIENCE, self.sink.send(Bytes::from(text))).await {
            Ok(Ok(())) => {}
            _ => self.mute = true,
        }
    }
}
