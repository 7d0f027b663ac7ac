//! The server that is watched.

use std::{
    fs,
    io::Write,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use axum::{Router, extract::ConnectInfo};
use tokio::{net::TcpListener, runtime::Handle, time};
use toolwire::{
    Result, Server, UnixSocket,
    http::server::{HttpBuilder, HttpLimits, HttpService, Tls},
    prelude::*,
};

use crate::doors::{CERTIFICATE, Doors, KEY};

/// How long sessions and their events are kept: shorter than the run, so that what is forgotten is seen to be.
const KEPT: Duration = Duration::from_secs(10);
/// How often it tells how many tasks it has.
const TOLD: Duration = Duration::from_secs(1);

#[derive(Debug, Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Amount {
    amount: u64,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Name {
    name: String,
}

async fn echo(Args(Text { text }): Args<Text>) -> String {
    text
}

/// Answers after so many milliseconds, with a word in between.
async fn sleep(Args(Amount { amount }): Args<Amount>, progress: Progress) -> &'static str {
    progress.report(1.0, 2.0);
    time::sleep(Duration::from_millis(amount)).await;
    "rested"
}

/// Answers with so many kilobytes.
async fn big(Args(Amount { amount }): Args<Amount>) -> String {
    "soak".repeat(usize::try_from(amount.min(1024)).unwrap_or_default() * 256)
}

async fn ask(cx: Context) -> Result<String> {
    Ok(match cx.elicit::<Name>("What is your name?").await? {
        Answer::Accept(Name { name }) => name,
        _ => "nobody".to_owned(),
    })
}

async fn change(cx: Context) -> &'static str {
    cx.notify().tools_changed();
    "changed"
}

#[expect(clippy::panic, reason = "a handler that panics must disturb nobody else")]
async fn fail() -> String {
    panic!("as it was asked to")
}

fn build() -> Result<Server> {
    Ok(Server::builder("soak", "0.0.0")
        .tool(tool("echo", echo))
        .tool(tool("sleep", sleep))
        .tool(tool("big", big))
        .tool(tool("ask", ask))
        .tool(tool("change", change))
        .tool(tool("fail", fail))
        .resource(resource("soak://text", || async { "hello" }).name("text"))
        .build()?)
}

pub(crate) async fn serve_stdio() -> Result<()> {
    std::panic::set_hook(Box::new(|_| ()));
    build()?.serve(stdio()?).await?;
    Ok(())
}

pub(crate) async fn serve(gauges: PathBuf) -> Result<()> {
    // Panics are asked for by the thousand.
    std::panic::set_hook(Box::new(|_| ()));
    let (server, crowded) = (build()?, build()?);
    let socket = UnixSocket::new(gauges.with_extension("sock"));
    let [plain, small, tls, mounted] = [listen().await?, listen().await?, listen().await?, listen().await?];
    let doors = Doors {
        plain: format!("http://{}", plain.local_addr()?),
        crowded: format!("http://{}", small.local_addr()?),
        tls: format!("https://{}", tls.local_addr()?),
        mounted: format!("http://{}", mounted.local_addr()?),
        unix: socket.path().display().to_string(),
    };
    let unix = socket.listen().await?;
    tokio::spawn(tell([server.clone(), crowded.clone()], gauges));
    let limits = HttpLimits { session_idle: KEPT, event_timeout: KEPT, ..HttpLimits::default() };
    let tiny = HttpLimits {
        connections_per_address: 8,
        websockets: 4,
        sessions: 4,
        body_bytes: 64 * 1024,
        ..limits.clone()
    };
    let plain = every_transport(&server).limits(limits.clone()).build()?.serve(plain);
    let small = every_transport(&crowded).limits(tiny).build()?.serve(small);
    let tls = every_transport(&server).limits(limits.clone()).build()?.serve(tls);
    let tls = tls.tls(Tls::from_pem(CERTIFICATE, KEY)?);
    let service = HttpService::builder(server.clone())
        .peer_addr(|request| request.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0))
        .limits(limits)
        .build()?;
    let app = Router::new().route_service("/mcp", service);
    let mounted = axum::serve(mounted, app.into_make_service_with_connect_info::<SocketAddr>());
    writeln!(std::io::stdout(), "{doors}")?;
    let unix = async {
        server.serve_listener(unix).await;
        Ok(())
    };
    tokio::try_join!(
        plain.into_future(),
        small.into_future(),
        tls.into_future(),
        mounted.into_future(),
        unix
    )?;
    Ok(())
}

async fn listen() -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await
}

/// Describes an endpoint with every transport that HTTP has.
fn every_transport(server: &Server) -> HttpBuilder {
    HttpService::builder(server.clone()).path("/mcp").sse2024("/sse", "/messages").websocket(true)
}

/// Writes down, again and again, how many tasks there are and what the servers hold.
async fn tell(servers: [Server; 2], gauges: PathBuf) {
    let mut ticks = time::interval(TOLD);
    loop {
        ticks.tick().await;
        let tasks = Handle::current().metrics().num_alive_tasks();
        let usages = servers.each_ref().map(Server::usage);
        let requests: usize = usages.iter().map(|usage| usage.requests).sum();
        let held: usize = usages.iter().map(|usage| usage.held_bytes).sum();
        let text = format!("tasks {tasks}\nrequests {requests}\nheld {held}\n{usages:?}\n");
        let _ = fs::write(&gauges, text);
    }
}
