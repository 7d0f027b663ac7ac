//! The seam for other transports: a link that answers each request by itself, as HTTP does.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};
use toolwire_client::{
    Client, Connection, Connector, Delivery, EraChoice, Error, ErrorKind,
    link::{Exchange, ExchangeError, Inbox, Link, LinkError, LinkErrorKind, Outgoing, Reply},
};
use toolwire_protocol::{
    ErrorCode, Message, Notification, Params, RawJson, RequestId, RpcError, Version, probe::ProbeLink,
    wire::ClientCapabilities,
};
use toolwire_transport::BoxFuture;

use crate::script::{builder, discovery, initialization, text};

type Answers = fn(&str) -> Result<Value, LinkErrorKind>;

#[derive(Debug)]
struct Posts {
    answers: Answers,
    /// What was seen: methods, versions, abandoned requests.
    seen: Mutex<Vec<String>>,
}

impl Posts {
    fn note(&self, what: impl Into<String>) {
        self.seen.lock().unwrap().push(what.into());
    }
}

impl Link for Posts {
    fn family(&self) -> ProbeLink {
        ProbeLink::Http
    }

    fn start(&self, request: Outgoing) -> Exchange {
        self.note(request.method.as_str());
        let Ok(Message::Request(message)) = Message::parse(&request.message) else { panic!() };
        assert_eq!(message.id, request.id);
        let answer = (self.answers)(request.method.as_str());
        Exchange::driven(|feed| {
            Box::pin(async move {
                tokio::task::yield_now().await;
                if request.method.as_str() == "tools/call" {
                    let progress = json!({"progressToken": request.id, "progress": 1});
                    feed.progress(Notification::new(
                        "notifications/progress",
                        Params::of(&progress).unwrap(),
                    ));
                    tokio::task::yield_now().await;
                }
                let reply: Reply = match answer {
                    Ok(result) => Ok(Params::of(&result).unwrap()),
                    Err(kind) => Err(ExchangeError::Link(LinkError::new(kind, Delivery::Unknown, "no"))),
                };
                feed.finish(reply);
            })
        })
    }

    fn abandon(&self, id: &RequestId, tell: bool) {
        self.note(format!("abandoned {id} {tell}"));
    }

    fn notify(&self, message: Bytes) -> BoxFuture<'static, Result<(), LinkError>> {
        let Ok(Message::Notification(message)) = Message::parse(&message) else { panic!() };
        self.note(message.method.as_str());
        Box::pin(std::future::ready(Ok(())))
    }

    fn negotiated(&self, version: Version) {
        self.note(version.as_str());
    }

    fn why_closed(&self) -> BoxFuture<'static, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.note("closed");
        Box::pin(std::future::ready(()))
    }
}

/// Something that is connected to, and something else in case that does not work.
struct Url(Arc<Posts>, Option<Arc<Posts>>);

enum ByUrl {}

impl Connector<ByUrl> for Url {
    async fn connect(self, _inbox: Inbox) -> io::Result<Connection<Self>> {
        let fallback = self.1.map(|other| Self(other, None));
        Ok(Connection { link: self.0, key: None, again: None, fallback })
    }
}

/// Something whose other means cannot even be connected to.
struct Nowhere(Arc<Posts>);

impl Connector<ByUrl> for Nowhere {
    async fn connect(self, _inbox: Inbox) -> io::Result<Connection<Self>> {
        if self.0.seen.lock().unwrap().is_empty() {
            let link: Arc<dyn Link> = Arc::<Posts>::clone(&self.0);
            return Ok(Connection { link, key: None, again: None, fallback: Some(self) });
        }
        Err(io::Error::other("no such host"))
    }
}

fn posts(answers: Answers) -> Arc<Posts> {
    Arc::new(Posts { answers, seen: Mutex::default() })
}

async fn connect(answers: Answers) -> (Arc<Posts>, Result<Client, Error>) {
    let link = posts(answers);
    let client = builder().connect(Url(Arc::clone(&link), None)).await;
    (link, client)
}

fn seen(link: &Posts) -> Vec<String> {
    link.seen.lock().unwrap().clone()
}

#[tokio::test]
async fn a_link_of_another_kind_carries_calls_progress_and_cancellation() {
    let (link, client) =
        connect(|method| Ok(if method == "server/discover" { discovery() } else { text("5") })).await;
    let client = client.unwrap();
    let steps = Arc::new(Mutex::new(0));
    let count = Arc::clone(&steps);
    let outcome = client.call("add", ()).progress(move |_| *count.lock().unwrap() += 1).await.unwrap();
    assert_eq!((outcome.text().as_str(), *steps.lock().unwrap()), ("5", 1));
    tokio::select! {
        biased;
        _ = client.call("add", ()).into_future() => panic!("it takes a moment"),
        () = std::future::ready(()) => {}
    }
    client.close().await.unwrap();
    let expected =
        ["server/discover", "2026-07-28", "tools/call", "tools/call", "abandoned 3 true", "closed"];
    assert_eq!(seen(&link), expected);
}

#[tokio::test]
async fn a_status_is_evidence_or_it_is_not() {
    let legacy = |method: &str| match method {
        "initialize" => Ok(initialization("2025-06-18")),
        _ => Err(LinkErrorKind::Status(400, None)),
    };
    let (link, client) = connect(legacy).await;
    assert_eq!(client.unwrap().version(), Version::V2025_06_18);
    assert_eq!(seen(&link), ["server/discover", "initialize", "2025-06-18", "notifications/initialized"]);

    for answers in [
        (|_| Err(LinkErrorKind::Status(401, None))) as Answers,
        |_| Err(LinkErrorKind::Status(503, None)),
        |_| Err(LinkErrorKind::Unreachable),
    ] {
        let (link, client) = connect(answers).await;
        assert_eq!(client.unwrap_err().kind(), ErrorKind::Connect);
        assert_eq!(seen(&link), ["server/discover"]);
    }

    let (_, client) = connect(|_| {
        let error = RpcError::new(ErrorCode::HEADER_MISMATCH, "the header says otherwise");
        Err(LinkErrorKind::Status(400, Some(error)))
    })
    .await;
    assert_eq!(client.unwrap_err().rpc().unwrap().code, ErrorCode::HEADER_MISMATCH);
}

#[tokio::test]
async fn a_server_that_understands_nothing_is_reached_by_other_means() {
    let first = posts(|_| Err(LinkErrorKind::Status(404, None)));
    let other = posts(|_| Ok(initialization("2024-11-05")));
    let client = builder().connect(Url(Arc::clone(&first), Some(Arc::clone(&other)))).await;
    assert_eq!(client.unwrap().version(), Version::V2024_11_05);
    assert_eq!(seen(&first), ["server/discover", "initialize"]);
    assert_eq!(seen(&other), ["initialize", "2024-11-05", "notifications/initialized"]);

    let (_, client) = connect(|_| Err(LinkErrorKind::Status(404, None))).await;
    assert_eq!(client.unwrap_err().kind(), ErrorKind::Connect);
}

#[tokio::test]
async fn when_other_means_fail_too_both_errors_are_told_and_the_one_of_somebody_who_is_there_counts() {
    let first = posts(|_| Err(LinkErrorKind::Status(404, None)));
    let other = posts(|_| Err(LinkErrorKind::Busy));
    let error = builder().connect(Url(first, Some(other))).await.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Busy, Delivery::Unknown));
    assert_eq!(error.to_string().matches("initialize failed: no").count(), 2, "{error}");

    let (first, other) = [(); 2].map(|()| posts(|_| Err(LinkErrorKind::Status(404, None)))).into();
    let error = builder().connect(Url(first, Some(other))).await.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Connect, Delivery::Unknown));
    assert_eq!(error.to_string(), "initialize failed: no; and over another transport: initialize failed: no");

    let first = posts(|_| Err(LinkErrorKind::Status(404, None)));
    let error = builder().connect(Nowhere(first)).await.unwrap_err();
    let text = error.to_string();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Connect, Delivery::Unknown));
    assert!(text.starts_with("initialize failed: no; and over another transport: "), "{text}");
    assert!(text.ends_with("no such host"), "{text}");
}

#[tokio::test]
async fn what_a_link_refuses_was_not_sent() {
    let (_, client) = connect(|method| match method {
        "server/discover" => Ok(discovery()),
        _ => Err(LinkErrorKind::Refused),
    })
    .await;
    let error = client.unwrap().call("add", ()).await.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::InvalidParams, Delivery::NotSent));
    assert_eq!(error.to_string(), "tools/call cannot be sent: no");
}

/// A link that knows which request a question of the server came with, as HTTP does. Calls are never answered.
#[derive(Debug)]
struct Streams {
    inbox: Inbox,
    calls: Mutex<Vec<RequestId>>,
}

impl Link for Streams {
    fn family(&self) -> ProbeLink {
        ProbeLink::Http
    }

    fn start(&self, request: Outgoing) -> Exchange {
        if request.method.as_str() == "tools/call" {
            self.calls.lock().unwrap().push(request.id);
            return Exchange::driven(|feed| {
                Box::pin(async move {
                    let _feed = feed;
                    std::future::pending::<()>().await;
                })
            });
        }
        Exchange::driven(|feed| {
            Box::pin(async move {
                feed.finish(Ok(Params::of(&initialization("2025-11-25")).unwrap()));
            })
        })
    }

    fn abandon(&self, _: &RequestId, _: bool) {}

    fn notify(&self, _: Bytes) -> BoxFuture<'static, Result<(), LinkError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn negotiated(&self, _: Version) {}

    fn why_closed(&self) -> BoxFuture<'static, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

struct ByStreams(Arc<Mutex<Option<Arc<Streams>>>>);

impl Connector<ByUrl> for ByStreams {
    async fn connect(self, inbox: Inbox) -> io::Result<Connection<Self>> {
        let link = Arc::new(Streams { inbox, calls: Mutex::default() });
        *self.0.lock().unwrap() = Some(Arc::clone(&link));
        Ok(Connection { link, key: None, again: None, fallback: None })
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_stops_the_clock_of_the_call_that_it_came_with_and_no_other() {
    let second = Duration::from_secs(1);
    let (told, mut asked) = mpsc::unbounded_channel();
    let builder = builder().era(EraChoice::Legacy).request_timeout(10 * second).on_request(
        ClientCapabilities::new(),
        move |request| {
            told.send(request.during().cloned()).unwrap();
            async {
                sleep(100 * Duration::from_secs(1)).await;
                Ok(RawJson::from(&json!({})))
            }
        },
    );
    let slot = Arc::default();
    let client = builder.connect(ByStreams(Arc::clone(&slot))).await.unwrap();
    let link = slot.lock().unwrap().clone().unwrap();
    let started = Instant::now();
    let call = |name| {
        let call = client.call(name, ()).into_future();
        tokio::spawn(async move { (call.await.unwrap_err().kind(), Instant::now()) })
    };
    let asking = call("asks");
    tokio::task::yield_now().await;
    let other = call("does not");
    sleep(4 * second).await;
    let id = link.calls.lock().unwrap()[0].clone();
    let question = toolwire_protocol::Request::new("q", "elicitation/create", Params::NONE);
    link.inbox.request(question, Some(&id), |_| ());
    assert_eq!(asked.recv().await, Some(Some(id)));
    let (kind, at) = other.await.unwrap();
    assert_eq!((kind, at - started), (ErrorKind::Timeout, 10 * second));
    let (kind, at) = asking.await.unwrap();
    assert_eq!((kind, at - started), (ErrorKind::Timeout, 110 * second));
}
