//! The server that is watched.

use std::{fs, io::Write, net::Ipv4Addr, path::PathBuf, time::Duration};

use tokio::{net::TcpListener, runtime::Handle, time};
use toolwire::{
    Result, Server,
    http::server::{HttpLimits, HttpService},
    prelude::*,
};

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
    let server = build()?;
    tokio::spawn(tell(server.clone(), gauges));
    let limits = HttpLimits { session_idle: KEPT, event_timeout: KEPT, ..HttpLimits::default() };
    let service = HttpService::builder(server)
        .path("/mcp")
        .sse2024("/sse", "/messages")
        .websocket(true)
        .limits(limits)
        .build()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    writeln!(std::io::stdout(), "http://{}", listener.local_addr()?)?;
    service.serve(listener).await?;
    Ok(())
}

/// Writes down, again and again, how many tasks there are and what the server holds.
async fn tell(server: Server, gauges: PathBuf) {
    let mut ticks = time::interval(TOLD);
    loop {
        ticks.tick().await;
        let tasks = Handle::current().metrics().num_alive_tasks();
        // Whoever reads finds what was written before.
        let usage = server.usage();
        let (requests, held) = (usage.requests, usage.held_bytes);
        let text = format!("tasks {tasks}\nrequests {requests}\nheld {held}\n{usage:?}\n");
        let _ = fs::write(&gauges, text);
    }
}
