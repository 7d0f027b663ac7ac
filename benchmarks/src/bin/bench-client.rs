//! The client that is measured: it calls `echo` in closed loops and checks every answer.
//!
//! ```text
//! bench-client http URL SECS CONC legacy|modern
//! bench-client stdio SECS CONC legacy|modern COMMAND [ARGUMENT]...
//! ```
//!
//! It ends with a line `{"calls":N,"secs":S}`.
#![expect(clippy::print_stdout, reason = "the result is what it is run for")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use toolwire::{
    ChildProcess, Client, Result,
    client::{ClientBuilder, EraChoice},
    http::client::Http,
    serde::Serialize,
};

/// The arguments of `echo`.
#[derive(Serialize)]
#[serde(crate = "toolwire::serde")]
struct Echo<'a> {
    text: &'a str,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &words[..] {
        ["http", url, seconds, tasks, era] => {
            let client = builder(era)?.connect(Http::new(url)?).await?;
            drive(client, seconds.parse()?, tasks.parse()?).await
        }
        ["stdio", seconds, tasks, era, command, rest @ ..] => {
            let server = ChildProcess::command(command).args(rest);
            let client = builder(era)?.connect(server).await?;
            drive(client, seconds.parse()?, tasks.parse()?).await
        }
        _ => Err("usage: bench-client http URL SECS CONC legacy|modern | \
                  stdio SECS CONC legacy|modern COMMAND [ARGUMENT]..."
            .into()),
    }
}

fn builder(era: &str) -> Result<ClientBuilder> {
    let era = match era {
        "legacy" => EraChoice::Legacy,
        "modern" => EraChoice::Modern,
        _ => return Err("the era is legacy or modern".into()),
    };
    Ok(Client::builder("bench", "1.0.0").era(era))
}

/// Runs this many closed loops for that long and prints what came of it.
async fn drive(client: Client, seconds: f64, tasks: usize) -> Result<()> {
    let start = Instant::now();
    let end = start + Duration::from_secs_f64(seconds);
    let next = Arc::new(AtomicU64::new(1_000_000_000));
    let mut loops = Vec::new();
    for _ in 0..tasks {
        loops.push(tokio::spawn(calls(client.clone(), Arc::clone(&next), end)));
    }
    let mut calls = 0;
    for task in loops {
        calls += task.await??;
    }
    println!(r#"{{"calls":{calls},"secs":{}}}"#, start.elapsed().as_secs_f64());
    client.close().await?;
    Ok(())
}

async fn calls(client: Client, next: Arc<AtomicU64>, end: Instant) -> Result<u64> {
    let mut calls = 0;
    while Instant::now() < end {
        let text =
            format!("bench-{:010}-the quick brown fox jumps over the lazy dog", next.fetch_add(1, Relaxed));
        let answer = client.call("echo", Echo { text: &text }).await?;
        if answer.text() != text {
            return Err(format!("asked for {text:?}, got {:?}", answer.text()).into());
        }
        calls += 1;
    }
    Ok(calls)
}
