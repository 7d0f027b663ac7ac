//! Wakes, by `NOTIFY` on a connection of its own: it takes a lock of the whole database at its commit, so wakes are
//! gathered for a moment and never ride with the writes that they are about.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::{AsyncMessage, Client};
use toolwire_store::{Bus, Hub, Op, Topic, Wakes};

use crate::TIME_LIMIT;
use crate::connection::Server;

/// For how long wakes are gathered.
const GATHER: Duration = Duration::from_millis(5);

/// How long to wait before the next try to listen.
const AGAIN: Duration = Duration::from_millis(200);

/// How often the connection is asked whether it is still there: nothing comes on one that is not.
const ASK: Duration = Duration::from_secs(2);

/// How many bytes a notification may have; Postgres takes fewer than 8,000.
const NOTICE_BYTES: usize = 7_000;

/// How many lots of wakes may wait to be sent. When there are more, they are lost to the other nodes, who also ask.
const WAITING: usize = 1024;

/// Tells wakes here, and sends them to other nodes.
#[derive(Debug, Clone)]
pub(crate) struct Waker {
    hub: Hub,
    sender: mpsc::Sender<Vec<Topic>>,
}

impl Waker {
    /// What was written is visible now.
    pub(crate) fn wake(&self, topics: Vec<Topic>) {
        if topics.is_empty() {
            return;
        }
        self.hub.send(&topics);
        // Whoever waits at another node also asks.
        let _ = self.sender.try_send(topics);
    }
}

/// The wakes of all nodes that use this store.
#[derive(Debug)]
pub(crate) struct PostgresBus {
    waker: Waker,
    listening: JoinHandle<()>,
}

impl PostgresBus {
    /// Listens until it is dropped.
    pub(crate) fn new(server: Arc<Server>) -> (Self, Waker) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let waker = Waker { hub: Hub::new(), sender };
        let hub = waker.hub.clone();
        let listening = tokio::spawn(async move {
            if server.settings.listen {
                listen(&server, &hub, receiver).await;
            } else {
                alone(receiver).await;
            }
        });
        (Self { waker: waker.clone(), listening }, waker)
    }
}

impl Drop for PostgresBus {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Bus for PostgresBus {
    fn wake<'a>(&'a self, topics: &'a [Topic]) -> Op<'a, ()> {
        self.waker.wake(topics.to_vec());
        Box::pin(async { Ok(()) })
    }

    fn listen(&self) -> Wakes {
        self.waker.hub.listen()
    }
}

/// Nobody else is told.
async fn alone(mut receiver: mpsc::Receiver<Vec<Topic>>) {
    while receiver.recv().await.is_some() {}
}

async fn listen(server: &Server, hub: &Hub, mut receiver: mpsc::Receiver<Vec<Topic>>) {
    let mut is_lost = false;
    loop {
        match timeout(TIME_LIMIT, server.connect()).await {
            Ok(Ok((client, connection))) => {
                is_lost = false;
                follow(server, client, connection, hub, &mut receiver).await;
                tracing::warn!("the connection to Postgres that listens has ended; it is made again");
            }
            Ok(Err(error)) => {
                // Once per outage.
                if !std::mem::replace(&mut is_lost, true) {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::warn!(cause, "Postgres cannot be listened to; it is tried again until it can");
                }
            }
            Err(_) => {}
        }
        // Others will not hear of what gathers meanwhile: they also ask.
        while receiver.try_recv().is_ok() {}
        sleep(AGAIN).await;
    }
}

type Connection = crate::connection::Driver;

/// Passes wakes on in both directions until the connection ends or does not answer.
async fn follow(
    server: &Server,
    client: Client,
    mut connection: Connection,
    hub: &Hub,
    receiver: &mut mpsc::Receiver<Vec<Topic>>,
) {
    let (sender, mut noticed) = mpsc::channel(WAITING);
    let driver = tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(notice) = message
                && sender.send(notice).await.is_err()
            {
                return;
            }
        }
    });
    let channel = &server.settings.schema;
    let own = async {
        client.batch_execute(&format!("LISTEN {channel}")).await?;
        client.query_one("SELECT pg_backend_pid()", &[]).await?.try_get::<_, i32>(0)
    };
    let Ok(Ok(own)) = timeout(TIME_LIMIT, own).await else { return driver.abort() };
    // Whatever was sent before is not known here.
    hub.gap();
    let mut asked = Instant::now();
    loop {
        let sent = tokio::select! {
            notice = noticed.recv() => {
                let Some(notice) = notice else { break };
                // What a newer node says and this one does not know, it does not wait for either.
                let topics: Vec<Topic> = notice.payload().split(' ').filter_map(|topic| topic.parse().ok()).collect();
                if notice.process_id() != own {
                    hub.send(&topics);
                }
                continue;
            }
            topics = receiver.recv() => {
                let Some(topics) = topics else { break };
                send(&client, channel, topics, receiver).await
            }
            () = tokio::time::sleep_until(asked + ASK) => {
                timeout(TIME_LIMIT, client.batch_execute("")).await.is_ok_and(|asked| asked.is_ok())
            }
        };
        asked = Instant::now();
        if !sent {
            break;
        }
    }
    driver.abort();
}

/// Sends what has gathered, and says whether that went well.
async fn send(
    client: &Client,
    channel: &str,
    mut topics: Vec<Topic>,
    receiver: &mut mpsc::Receiver<Vec<Topic>>,
) -> bool {
    sleep(GATHER).await;
    while let Ok(more) = receiver.try_recv() {
        topics.extend(more);
    }
    let mut texts: Vec<String> = topics.iter().map(Topic::to_string).collect();
    texts.sort_unstable();
    texts.dedup();
    let mut notices = vec![String::new()];
    for text in texts {
        match notices.last_mut() {
            Some(notice) if notice.len() + text.len() < NOTICE_BYTES => {
                notice.push(' ');
                notice.push_str(&text);
            }
            _ => notices.push(text),
        }
    }
    let sent = async {
        for notice in &notices {
            client.execute("SELECT pg_notify($1, $2)", &[&channel, &notice.trim_start()]).await?;
        }
        Ok::<_, tokio_postgres::Error>(())
    };
    timeout(TIME_LIMIT, sent).await.is_ok_and(|sent| sent.is_ok())
}
