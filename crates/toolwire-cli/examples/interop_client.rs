//! Calls a stdio server of any maker with Toolwire's client, as `interop/README.md` describes.
//!
//! ```text
//! interop_client legacy|modern|auto -- COMMAND [ARGUMENTS...]
//! ```
//!
//! Prints one JSON line per check and nothing else on standard output; exits with 0 only when at least one check
//! was made and all of them held.

#[path = "interop_client/report.rs"]
mod report;
#[path = "interop_client/walk.rs"]
mod walk;

use std::{io::Write, process::ExitCode, time::Duration};

use anyhow::{Result, ensure};
use toolwire::{ChildProcess, Client, Era, client::EraChoice};

use report::Report;
use walk::{Logs, Walk};

/// A server that stops answering must fail the run, not hang it.
const TOTAL: Duration = Duration::from_secs(90);
/// How long one call may take.
const CALL: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (choice, command) = match arguments.as_slice() {
        [era, dashes, command @ ..] if dashes == "--" && !command.is_empty() => (choice(era), command),
        _ => (None, &[][..]),
    };
    let Some(choice) = choice else {
        let _ =
            writeln!(std::io::stderr(), "usage: interop_client legacy|modern|auto -- COMMAND [ARGUMENTS...]");
        return ExitCode::from(2);
    };
    let mut report = Report::default();
    match tokio::time::timeout(TOTAL, session(&mut report, choice, command)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => report.failed("connect, walk and close", &error),
        Err(_) => report.failed("connect, walk and close", &anyhow::anyhow!("not done within {TOTAL:?}")),
    }
    if report.all_held() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn choice(era: &str) -> Option<EraChoice> {
    match era {
        "legacy" => Some(EraChoice::Legacy),
        "modern" => Some(EraChoice::Modern),
        "auto" => Some(EraChoice::Auto),
        _ => None,
    }
}

async fn session(report: &mut Report, choice: EraChoice, command: &[String]) -> Result<()> {
    let logs = Logs::default();
    let client = connect(choice, command, logs.clone()).await?;
    let era = client.era();
    report
        .check("the era is the one asked for", async {
            let wanted = match choice {
                EraChoice::Legacy => Era::Legacy,
                EraChoice::Modern => Era::Modern,
                // The newest one that the server has: modern, if it can be had at all.
                _ => match connect(EraChoice::Modern, command, Logs::default()).await {
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
    client.close().await?;
    Ok(())
}

async fn connect(choice: EraChoice, command: &[String], logs: Logs) -> Result<Client> {
    let (program, arguments) = command.split_first().ok_or_else(|| anyhow::anyhow!("there is no command"))?;
    let client = Client::builder("interop_client", env!("CARGO_PKG_VERSION"))
        .era(choice)
        .request_timeout(CALL)
        .on_notification(move |notification| logs.note(&notification))
        .connect(ChildProcess::command(program).args(arguments))
        .await?;
    Ok(client)
}
