use std::{
    io,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Poll},
};

use bytes::Bytes;
use h2::{RecvStream, client};
use http::{Method, Response, StatusCode};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadBuf, duplex},
    task::JoinHandle,
    time::{Instant, sleep},
};
use toolwire_server::{Progress, Server, tool};

use super::*;
use crate::server::graceful::Shutdown;

const BODY: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"TOOL","arguments":{},"_meta":{"#,
    r#""progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#,
);
/// What a response needs that no client takes at once.
const LONG: usize = 300 * 1024;

/// One process that serves connections in memory.
struct Endpoint {
    service: HttpService,
    shutdown: Shutdown,
}

impl Endpoint {
    fn new() -> Self {
        let slow = tool("slow", || async {
            sleep(Duration::from_secs(40)).await;
            "done"
        });
        let reports = tool("reports", |progress: Progress| async move {
            progress.report(1.0, 2.0);
            std::future::pending::<&str>().await
        });
        let server = Server::builder("slow", "1.0")
            .tool(slow)
            .tool(reports)
            .tool(tool("quick", || async { "done" }))
            .tool(tool("long", || async { "x".repeat(LONG) }))
            .build()
            .unwrap();
        let service = HttpService::builder(server).without_peer_addresses().build().unwrap();
        Self { service, shutdown: Shutdown::new() }
    }

    fn serve<S>(&self, stream: S) -> JoinHandle<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let connection = Connection {
            service: self.service.clone(),
            http: Arc::new(Http::new(&HttpLimits::default())),
            shutdown: self.shutdown.signal(),
            late: false,
            peer: Peer::default(),
            _permit: None,
        };
        tokio::spawn(connection.open(stream, None, None))
    }

    fn connect(&self) -> (DuplexStream, JoinHandle<()>) {
        let (peer, ours) = duplex(64 * 1024);
        (peer, self.serve(ours))
    }

    /// An HTTP/2 client that answers pings, and the task in which it does so.
    async fn http2(&self, builder: &client::Builder) -> (client::SendRequest<Bytes>, JoinHandle<()>) {
        let (peer, _) = self.connect();
        let (sender, connection) = builder.handshake(peer).await.unwrap();
        (sender, tokio::spawn(async { drop(connection.await) }))
    }
}

fn body(tool: &str) -> String {
    BODY.replace("TOOL", tool)
}

fn call(tool: &str) -> String {
    let body = body(tool);
    format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len(),
    )
}

async fn call2(sender: &mut client::SendRequest<Bytes>, tool: &str) -> Response<RecvStream> {
    let request = Request::builder()
        .method(Method::POST)
        .uri("http://localhost/")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool)
        .body(())
        .unwrap();
    let mut ready = sender.clone().ready().await.unwrap();
    let (response, mut stream) = ready.send_request(request, false).unwrap();
    stream.send_data(body(tool).into(), true).unwrap();
    response.await.unwrap()
}

/// Reads to the end, taking what comes, and gives the number of bytes.
async fn read(response: Response<RecvStream>) -> Result<usize, h2::Error> {
    let (mut body, mut count) = (response.into_body(), 0);
    while let Some(data) = body.data().await {
        let length = data?.len();
        count += length;
        body.flow_control().release_capacity(length)?;
    }
    Ok(count)
}

#[tokio::test(start_paused = true)]
async fn it_waits_for_answers_and_not_for_requests() {
    let endpoint = Endpoint::new();
    let (mut peer, serving) = endpoint.connect();
    let start = Instant::now();
    let mut said = Vec::new();
    for (round, seconds) in [(1, 40), (2, 100)] {
        // The answer takes longer than the next request may.
        peer.write_all(call("slow").as_bytes()).await.unwrap();
        while said.windows(4).filter(|word| word == b"done").count() < round {
            peer.read_buf(&mut said).await.unwrap();
        }
        assert_eq!(start.elapsed().as_secs(), seconds);
        sleep(Duration::from_secs(20)).await;
    }
    // A beginning is not a request.
    peer.write_all(b"POST / HTTP/1.1\r\nHost: loc").await.unwrap();
    let all = said.len();
    peer.read_to_end(&mut said).await.unwrap();
    assert_eq!((start.elapsed().as_secs(), said.len()), (130, all));
    serving.await.unwrap();
}

/// Counts how often somebody looks for something to read.
struct Counted(DuplexStream, Arc<AtomicUsize>);

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.0).poll_read(task, buf)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(task, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(task)
    }
}

#[tokio::test(start_paused = true)]
async fn clients_that_say_a_part_of_the_first_word_cost_nothing_but_their_time() {
    let endpoint = Endpoint::new();
    let (looks, start) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let mut peers = Vec::new();
    for number in 0..500 {
        let (mut peer, ours) = duplex(64);
        let serving = endpoint.serve(Counted(ours, Arc::clone(&looks)));
        let said: &[u8] = if number % 2 == 0 { b"PRI" } else { b"PRI * HTTP/2.0\r\n\r\nSM\r\n" };
        peer.write_all(said).await.unwrap();
        peers.push((peer, serving));
    }
    for (mut peer, serving) in peers {
        assert_eq!(peer.read(&mut [0]).await.unwrap(), 0);
        serving.await.unwrap();
    }
    assert_eq!(start.elapsed().as_secs(), 30);
    // Once before it came, once when it came, and once for more.
    let looks = looks.load(Ordering::Relaxed);
    assert!(looks <= 3 * 500, "{looks}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_http2_connection_ends_although_it_answers_pings() {
    let endpoint = Endpoint::new();
    let (mut sender, client) = endpoint.http2(&client::Builder::new()).await;
    let start = Instant::now();
    sleep(Duration::from_secs(25)).await;
    assert_eq!(call2(&mut sender, "quick").await.status(), StatusCode::OK);
    // A request that takes long is not idle, whatever else happens.
    assert!(read(call2(&mut sender, "slow").await).await.unwrap() > 0);
    assert_eq!(start.elapsed().as_secs(), 65);
    client.await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 95);
}

#[tokio::test(start_paused = true)]
async fn clients_that_open_no_window_give_everything_back_in_time() {
    let endpoint = Endpoint::new();
    let mut builder = client::Builder::new();
    builder.initial_window_size(0);
    let (mut streams, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..33 {
        let (mut sender, client) = endpoint.http2(&builder).await;
        for _ in 0..128 {
            streams.push(call2(&mut sender, "reports").await);
        }
        clients.push((sender, client));
    }
    let (mut sender, _client) = endpoint.http2(&client::Builder::new()).await;
    assert_eq!(call2(&mut sender, "quick").await.status(), StatusCode::TOO_MANY_REQUESTS);
    sleep(Duration::from_secs(61)).await;
    let (mut sender, _client) = endpoint.http2(&client::Builder::new()).await;
    assert_eq!(call2(&mut sender, "quick").await.status(), StatusCode::OK);
    for stream in streams {
        assert!(read(stream).await.is_err_and(|error| error.reason() == Some(h2::Reason::CANCEL)));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_no_window_is_opened_for_is_charged_and_given_back_in_time() {
    let endpoint = Endpoint::new();
    let mut builder = client::Builder::new();
    builder.initial_window_size(0);
    let (mut sender, _client) = endpoint.http2(&builder).await;
    let usage = || endpoint.service.shared().server.usage();
    let mut ignored = Vec::new();
    for _ in 0..10 {
        ignored.push(call2(&mut sender, "long").await);
    }
    assert!((10 * LONG..11 * LONG).contains(&usage().answer_bytes), "{:?}", usage());
    sleep(Duration::from_secs(61)).await;
    assert_eq!(usage().answer_bytes, 0);
    for ignored in ignored {
        assert!(read(ignored).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_not_taken_is_reset_and_the_others_go_on() {
    let endpoint = Endpoint::new();
    let mut builder = client::Builder::new();
    builder.initial_window_size(16 * 1024).initial_connection_window_size(1024 * 1024);
    let (mut sender, _client) = endpoint.http2(&builder).await;
    let start = Instant::now();
    let ignored = call2(&mut sender, "long").await;
    // More comes as it is taken.
    assert!(read(call2(&mut sender, "long").await).await.unwrap() > LONG);
    let steps = call2(&mut sender, "reports").await;
    let ended = async {
        let mut ignored = ignored.into_body();
        // What the window had room for is still there.
        while let Some(Ok(data)) = ignored.data().await {
            drop(data);
        }
        start.elapsed()
    };
    assert_eq!(ended.await.as_secs(), 60);
    // This one has said nothing but that it is alive, and is still there.
    let mut steps = steps.into_body();
    for _ in 0..20 {
        let data = steps.data().await.unwrap().unwrap();
        steps.flow_control().release_capacity(data.len()).unwrap();
    }
    assert!(start.elapsed().as_secs() >= 70);
    assert_eq!(call2(&mut sender, "quick").await.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn requests_that_come_together_with_the_end_of_their_client_are_answered() {
    let endpoint = Endpoint::new();
    let quick = call("quick");
    let events = quick.replace("Accept: application/json", "Accept: text/event-stream");
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let legacy = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{hello}",
        hello.len(),
    );
    let refused = quick.replace("application/json\r\nAccept", "text/plain\r\nAccept");
    let broken = quick.replace("Content-Length: ", "Content-Length: 9");
    for (said, statuses) in [
        (quick.clone(), &["200"][..]),
        (call("slow"), &["200"]),
        (events.clone(), &["200"]),
        (legacy.clone(), &["200"]),
        (refused.clone(), &["415"]),
        ([&*quick, &legacy, &events, &refused, &quick].concat(), &["200", "200", "200", "415", "200"]),
        (broken, &[]),
    ] {
        let (mut peer, ours) = duplex(64 * 1024);
        peer.write_all(said.as_bytes()).await.unwrap();
        peer.shutdown().await.unwrap();
        let start = Instant::now();
        let serving = endpoint.serve(ours);
        let mut heard = String::new();
        peer.read_to_string(&mut heard).await.unwrap();
        let answers: Vec<_> = heard.split("HTTP/1.1 ").skip(1).filter_map(|answer| answer.get(..3)).collect();
        // Half a request may be told so, and is not waited for.
        assert!(answers == statuses || (statuses.is_empty() && answers == ["400"]), "{said}\n{heard}");
        assert!(start.elapsed().as_secs() <= 41, "{said}");
        serving.await.unwrap();
    }
}
