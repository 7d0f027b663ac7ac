//! Calls a server of any maker with Toolwire's client, as `interop/README.md` describes.
//!
//! ```text
//! interop_client legacy|modern|auto -- COMMAND [ARGUMENTS...]
//! interop_client legacy|modern|auto http|stateless|sse URL
//! ```
//!
//! Prints one JSON line per check and nothing else on standard output; exits with 0 only when at least one check
//! was made and all of them held.

#[path = "interop_client/lively.rs"]
mod lively;
#[path = "interop_client/report.rs"]
mod report;
#[path = "interop_client/walk.rs"]
mod walk;

use std::{io::Write, process::ExitCode, time::Duration};

use anyhow::{Result, ensure};
use toolwire::{
    ChildProcess, Client, Era,
    client::{ElicitReply, EraChoice},
    http::client::Http,
    json,
    wire::{Content, CreateMessageResult, Role},
};

use lively::Lively;
use report::Report;
use walk::{Logs, Walk};

/// A server that stops answering must fail the run, not hang it.
const TOTAL: Duration = Duration::from_secs(90);
/// How long one call may take.
const CALL: Duration = Duration::from_secs(30);

const USAGE: &str = "\
usage: interop_client legacy|modern|auto -- COMMAND [ARGUMENTS...]
       interop_client legacy|modern|auto http|stateless|sse URL";

/// Where the server is.
#[derive(Clone, Copy, Debug)]
enum Target<'a> {
    /// It is to be started.
    Command { program: &'a str, arguments: &'a [String] },
    /// It is there, and speaks Streamable HTTP.
    Http(&'a str),
    /// It is there, and keeps no sessions.
    Stateless(&'a str),
    /// It is there, and speaks HTTP+SSE, which our client finds out by itself.
    Sse(&'a str),
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((choice, target)) = command_line(&arguments) else {
        let _ = writeln!(std::io::stderr(), "{USAGE}");
        return ExitCode::from(2);
    };
    let mut report = Report::default();
    match tokio::time::timeout(TOTAL, session(&mut report, choice, target)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => report.failed("connect, walk and close", &error),
        Err(_) => report.failed("connect, walk and close", &anyhow::anyhow!("not done within {TOTAL:?}")),
    }
    if report.all_held() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn command_line(arguments: &[String]) -> Option<(EraChoice, Target<'_>)> {
    let [era, how, target, arguments @ ..] = arguments else { return None };
    let choice = match era.as_str() {
        "legacy" => EraChoice::Legacy,
        "modern" => EraChoice::Modern,
        "auto" => EraChoice::Auto,
        _ => return None,
    };
    let target = match how.as_str() {
        "--" => Target::Command { program: target, arguments },
        "http" => Target::Http(target),
        "stateless" => Target::Stateless(target),
        "sse" => Target::Sse(target),
        _ => return None,
    };
    Some((choice, target))
}

async fn session(report: &mut Report, choice: EraChoice, target: Target<'_>) -> Result<()> {
    let logs = Logs::default();
    let client = connect(choice, target, logs.clone()).await?;
    let era = client.era();
    report
        .check("the era is the one asked for", async {
            let wanted = match choice {
                EraChoice::Legacy => Era::Legacy,
                EraChoice::Modern => Era::Modern,
                // The newest one that the server has: modern, if it can be had at all.
                _ => match connect(EraChoice::Modern, target, Logs::default()).await {
                    Ok(modern) => {
                        modern.close().await?;
                        Era::Modern
                    }
                    Err(_) => Era::Legacy,
                },
            };
            ensure!(era == wanted, "{} was spoken", client.version());
            Ok(())
        })
        .await;
    Walk { report, client: &client, logs: &logs }.run().await;
    match target {
        Target::Command { .. } | Target::Stateless(_) => {}
        Target::Http(_) => {
            let lively = Lively { report, client: &client };
            lively.run(|| connect(choice, target, Logs::default())).await;
        }
        Target::Sse(_) => Lively { report, client: &client }.run_on_one_stream().await,
    }
    client.close().await?;
    Ok(())
}

async fn connect(choice: EraChoice, target: Target<'_>, logs: Logs) -> Result<Client> {
    let builder = Client::builder("interop_client", env!("CARGO_PKG_VERSION"))
        .era(choice)
        .request_timeout(CALL)
        .on_notification(move |notification| logs.note(&notification))
        .on_elicit(|_| async { ElicitReply::accept(json!({ "name": "Ada" })) })
        .on_sample(|_| async {
            Ok(CreateMessageResult::new(Role::Assistant, Content::text("Paris"), "interop"))
        });
    let client = match target {
        Target::Command { program, arguments } => {
            builder.connect(ChildProcess::command(program).args(arguments)).await?
        }
        Target::Http(url) | Target::Stateless(url) | Target::Sse(url) => {
            builder.connect(Http::new(url)?).await?
        }
    };
    Ok(client)
}
