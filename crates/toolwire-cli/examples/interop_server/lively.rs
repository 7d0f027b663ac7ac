//! What the servers of the interop tests offer on HTTP besides: tools that ask, wait, hang up and change things.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde::Deserialize;
use toolwire::{
    Answer, Args, Context, Extension, Group, Progress, Result, State, ToolError,
    http::server::LegacyStream,
    schemars::{self, JsonSchema},
    tool,
    wire::{Content, CreateMessageRequestParams, Role, SamplingMessage},
};

/// How long the work goes on after the stream was closed.
const NAP: Duration = Duration::from_millis(100);

/// What has happened since the server was started.
#[derive(Clone, Default)]
pub(crate) struct Counters {
    cancelled: Arc<AtomicUsize>,
    tally: Arc<AtomicUsize>,
}

pub(crate) fn routes() -> Group {
    Group::new()
        .tool(tool("ask", ask).description("Asks the user for a name"))
        .tool(tool("think", think).description("Asks the client's model"))
        .tool(tool("wait", wait).description("Waits until it is cancelled"))
        .tool(tool("cancelled", cancelled).description("How often a call of wait was cancelled"))
        .tool(tool("change", change).description("Says that the list of tools has changed"))
        .tool(tool("nap", nap).description("Closes the stream it was called on, and answers later"))
        .tool(tool("route", route).description("Says where a parcel goes"))
        .tool(tool("tally", tally).description("How often it has been called"))
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

async fn ask(cx: Context) -> Result<String> {
    Ok(match cx.elicit::<Name>("What is your name?").await? {
        Answer::Accept(Name { name }) => format!("Hello, {name}!"),
        Answer::Decline => "declined".to_owned(),
        Answer::Cancel => "cancelled".to_owned(),
    })
}

async fn think(cx: Context) -> Result<String> {
    let message = SamplingMessage::new(Role::User, Content::text("What is the capital of France?"));
    let answer = cx.sample(CreateMessageRequestParams::new(vec![message], 100_u64)).await?;
    Ok(answer.content.iter().filter_map(Content::as_text).collect())
}

/// Counts when it is dropped, which is what happens to a handler that is cancelled.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

async fn wait(State(counters): State<Counters>, progress: Progress) -> &'static str {
    let _dropped = Dropped(counters.cancelled);
    // This tells the caller that the work has begun.
    progress.report(1.0, 2.0);
    std::future::pending().await
}

async fn cancelled(State(counters): State<Counters>) -> String {
    counters.cancelled.load(Ordering::Relaxed).to_string()
}

async fn change(cx: Context) -> &'static str {
    cx.notify().tools_changed();
    "changed"
}

async fn nap(stream: Option<Extension<LegacyStream>>) -> Result<&'static str, ToolError> {
    let Extension(stream) = stream.ok_or_else(|| ToolError::message("there is no stream to close"))?;
    stream.close();
    tokio::time::sleep(NAP).await;
    Ok("rested")
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
    #[schemars(extend("x-mcp-header" = "Floor"))]
    floor: i32,
}

async fn route(Args(Place { region, floor }): Args<Place>) -> String {
    format!("{region}, floor {floor}")
}

async fn tally(State(counters): State<Counters>) -> String {
    (counters.tally.fetch_add(1, Ordering::Relaxed) + 1).to_string()
}
