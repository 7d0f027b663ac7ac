//! What is checked on HTTP besides the walk: questions from the server, cancellation, messages that belong to no
//! request, streams that are closed and come back, and sessions.

use std::{future::Future, sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};
use toolwire::{
    Client,
    client::{Change, Listener},
};

use crate::report::Report;

/// The time between two looks at something that will happen soon.
const SOON: Duration = Duration::from_millis(50);
/// How often is looked.
const ATTEMPTS: usize = 200;

/// The checks: where to report, whom to ask.
pub(crate) struct Lively<'a> {
    pub(crate) report: &'a mut Report,
    pub(crate) client: &'a Client,
}

impl Lively<'_> {
    /// Makes the checks for Streamable HTTP; `connect` makes another client like the one there is.
    pub(crate) async fn run<F: Future<Output = Result<Client>>>(mut self, connect: impl FnOnce() -> F) {
        self.common().await;
        let Self { report, client } = self;
        if client.version().is_modern() {
            let none = async {
                let sessions = number(client, "sessions").await?;
                ensure!(sessions == 0, "{sessions} sessions");
                Ok(())
            };
            report.check("no session in the modern era", none).await;
        } else {
            report.check("a stream that was closed is resumed", nap(client)).await;
            report.check("the stream of no request is resumed", drop_stream(client)).await;
            report.check("the session ends", session(client, connect)).await;
        }
    }

    /// Makes the checks for HTTP+SSE, where everything is on one stream.
    pub(crate) async fn run_on_one_stream(mut self) {
        self.common().await;
    }

    async fn common(&mut self) {
        let Self { report, client } = self;
        report.check("elicitation", expect(client, "ask", "Hello, Ada!")).await;
        report.check("sampling", expect(client, "think", "Paris")).await;
        report.check("arguments that are headers as well", headers(client)).await;
        report.check("a call is cancelled", cancellation(client)).await;
        report.check("a change is told", change(client)).await;
    }
}

async fn said(client: &Client, tool: &str) -> Result<String> {
    Ok(client.call(tool, json!({})).await?.into_result()?.text())
}

async fn number(client: &Client, tool: &str) -> Result<usize> {
    Ok(said(client, tool).await?.parse()?)
}

async fn expect(client: &Client, tool: &str, expected: &str) -> Result<()> {
    let text = said(client, tool).await?;
    ensure!(text == expected, "{text:?}");
    Ok(())
}

/// In the modern era a server refuses the call unless the headers are there and say the same.
async fn headers(client: &Client) -> Result<()> {
    // What a header may have is known from the list.
    client.all_tools().await?;
    for region in ["north", "Zürich ☃"] {
        let place = json!({ "region": region, "floor": -3 });
        let text = client.call("route", place).await?.into_result()?.text();
        ensure!(text == format!("{region}, floor -3"), "{text:?}");
    }
    Ok(())
}

async fn cancellation(client: &Client) -> Result<()> {
    let before = number(client, "cancelled").await?;
    let begun = Arc::new(Notify::new());
    let told = Arc::clone(&begun);
    // Progress says that the tool is at work.
    let call = client.call("wait", json!({})).progress(move |_| told.notify_one());
    tokio::select! {
        outcome = call => anyhow::bail!("it ended by itself: {:?}", outcome?.text()),
        () = begun.notified() => {}
    }
    eventually("the cancellation", async || Ok(number(client, "cancelled").await? == before + 1)).await
}

async fn change(client: &Client) -> Result<()> {
    let mut listener = client.listen().tools().await?;
    // A legacy stream for messages of this kind is opened in its own time, and what is said before is not kept.
    eventually("the notification", async || {
        said(client, "change").await?;
        Ok(tools_changed(&mut listener, SOON).await)
    })
    .await
}

/// Whether the list of tools changes in this time.
async fn tools_changed(listener: &mut Listener, time: Duration) -> bool {
    timeout(time, async { while listener.next().await.is_some_and(|change| change != Change::Tools) {} })
        .await
        .is_ok()
}

async fn nap(client: &Client) -> Result<()> {
    expect(client, "nap", "rested").await
}

/// The server closes the stream before it says something, so only a client that comes back hears of it.
async fn drop_stream(client: &Client) -> Result<()> {
    let mut listener = client.listen().tools().await?;
    // What was said before may still be under way.
    while tools_changed(&mut listener, SOON).await {}
    expect(client, "drop", "dropped").await?;
    ensure!(tools_changed(&mut listener, SOON * 200).await, "nothing came");
    Ok(())
}

async fn session<F: Future<Output = Result<Client>>>(
    client: &Client,
    connect: impl FnOnce() -> F,
) -> Result<()> {
    let before = number(client, "sessions").await?;
    let other = connect().await?;
    let between = number(client, "sessions").await?;
    ensure!(between == before + 1, "{before} sessions became {between}");
    other.close().await?;
    eventually("the end of the session", async || Ok(number(client, "sessions").await? == before)).await
}

async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    for _ in 0..ATTEMPTS {
        if holds().await? {
            return Ok(());
        }
        sleep(SOON).await;
    }
    anyhow::bail!("{what} did not happen")
}
