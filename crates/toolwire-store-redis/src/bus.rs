//! Wakes, by publishing and subscribing. A task listens on a connection of its own, makes it again when it ends, and tells
//! of a gap each time: what was published meanwhile is lost.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use redis::aio::PubSub;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use toolwire_store::{Bus, Hub, Op, StoreError, Topic, Wakes};

use crate::connection::{Connections, Work};

/// How long to wait before the next try to listen.
const AGAIN: Duration = Duration::from_millis(200);

/// How often the connection is asked whether it is still there: nothing comes on one that is not.
const ASK: Duration = Duration::from_secs(2);

/// How long it may take to answer that.
const ANSWER: Duration = Duration::from_secs(3);

/// The wakes of all nodes that use this store.
#[derive(Debug)]
pub(crate) struct RedisBus {
    connections: Arc<Connections>,
    hub: Hub,
    listening: JoinHandle<()>,
}

impl RedisBus {
    /// Listens until it is dropped.
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        let hub = Hub::new();
        let listening = tokio::spawn(listen(Arc::downgrade(&connections), hub.clone()));
        Self { connections, hub, listening }
    }
}

impl Drop for RedisBus {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Bus for RedisBus {
    fn wake<'a>(&'a self, topics: &'a [Topic]) -> Op<'a, ()> {
        Box::pin(async move {
            if topics.is_empty() {
                return Ok(());
            }
            let text = topics.iter().map(Topic::to_string).collect::<Vec<_>>().join(" ");
            let mut publish = redis::cmd("PUBLISH");
            publish.arg(channel(&self.connections)).arg(text);
            self.connections.run(Work::Command(&publish)).await.map(drop)
        })
    }

    fn listen(&self) -> Wakes {
        self.hub.listen()
    }
}

fn channel(connections: &Connections) -> String {
    format!("{}wake", connections.prefix())
}

async fn listen(connections: Weak<Connections>, hub: Hub) {
    let mut is_lost = false;
    loop {
        // A store that is gone needs nobody who listens.
        let Some(known) = connections.upgrade() else { return };
        let subscribed = known.subscribe(&channel(&known)).await;
        drop(known);
        match subscribed {
            Ok(subscribed) => {
                is_lost = false;
                // Whatever was published before is not known here.
                hub.gap();
                follow(subscribed, &hub).await;
                tracing::warn!("the connection to Redis that listens has ended; it is made again");
            }
            Err(error) => {
                // Once per outage.
                if !std::mem::replace(&mut is_lost, true) {
                    tell(&error);
                }
            }
        }
        sleep(AGAIN).await;
    }
}

fn tell(error: &StoreError) {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    tracing::warn!(cause, "Redis cannot be listened to; it is tried again until it can");
}

/// Passes on what is published until the connection ends or does not answer.
async fn follow(subscribed: PubSub, hub: &Hub) {
    let (mut sink, mut messages) = subscribed.split();
    let mut ask = interval(ASK);
    ask.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            message = messages.next() => {
                let Some(message) = message else { return };
                let text = String::from_utf8_lossy(message.get_payload_bytes());
                // What a newer node says and this one does not know, it does not wait for either.
                let topics: Vec<Topic> = text.split(' ').filter_map(|topic| topic.parse().ok()).collect();
                hub.send(&topics);
            }
            _ = ask.tick() => {
                if !matches!(timeout(ANSWER, sink.ping::<redis::Value>()).await, Ok(Ok(_))) {
                    return;
                }
            }
        }
    }
}
