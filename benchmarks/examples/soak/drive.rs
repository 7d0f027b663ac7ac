//! Those who call: clients of both eras on every transport, some of which leave in the middle of a call.

use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::timeout};
use toolwire::{
    ChildProcess, Client, Result, UnixSocket, Version,
    client::{ClientBuilder, ElicitReply, EraChoice},
    http::client::{Http, WebSocket},
    json,
};

use crate::{
    chance::Chance,
    doors::{CERTIFICATE, Doors},
    faults,
};

/// How many callers there are at any time.
const CALLERS: u64 = 24;
/// The number of clients that connect at once to the endpoint with small limits.
const CROWD: u64 = 6;
/// How long one visit may take. A server that hangs fails the run.
const VISIT: Duration = Duration::from_mins(1);
/// After how many different mistakes nothing more is told.
const TOLD: u64 = 20;

/// What has been done so far.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    visits: AtomicU64,
    calls: AtomicU64,
    left: AtomicU64,
    refused: AtomicU64,
    faults: AtomicU64,
    wrong: AtomicU64,
}

/// Calls until the time is over; fails if anything went wrong that was not meant to.
pub(crate) async fn run(doors: &Doors, seconds: u64) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(seconds);
    let counts = Arc::new(Counts::default());
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (doors, counts) = (doors.clone(), Arc::clone(&counts));
        callers.spawn(async move {
            let mut chance = Chance::new(caller + 1);
            while Instant::now() < end {
                counts.visits.fetch_add(1, Relaxed);
                let outcome = match timeout(VISIT, visit(&doors, &mut chance, &counts)).await {
                    Ok(outcome) => outcome,
                    Err(_) => Err(format!("not done within {VISIT:?}").into()),
                };
                if let Err(error) = outcome
                    && counts.wrong.fetch_add(1, Relaxed) < TOLD
                {
                    let _ = writeln!(std::io::stderr(), "caller {caller}: {error}");
                }
            }
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller?;
    }
    let Counts { visits, calls, left, refused, faults, wrong } = &*counts;
    let [visits, calls, left, refused, faults, wrong] =
        [visits, calls, left, refused, faults, wrong].map(|count| count.load(Relaxed));
    writeln!(
        std::io::stdout(),
        "{visits} visits, {calls} calls answered, {left} clients gone in the middle of a call, {refused} refused by small \
         limits, {faults} faults on the wire, {wrong} went wrong"
    )?;
    if wrong == 0 { Ok(()) } else { Err(format!("{wrong} visits went wrong").into()) }
}

async fn visit(doors: &Doors, chance: &mut Chance, counts: &Counts) -> Result<()> {
    let url = &doors.plain;
    let modern = if chance.below(2) == 0 { EraChoice::Modern } else { EraChoice::Legacy };
    let client = match chance.below(22) {
        0..4 => builder(modern).connect(Http::new(format!("{url}/mcp"))?).await?,
        4..6 => builder(EraChoice::Legacy).connect(Http::new(format!("{url}/sse"))?).await?,
        6..9 => {
            let url = url.replacen("http", "ws", 1);
            builder(modern).connect(WebSocket::new(format!("{url}/mcp"))?).await?
        }
        9 => {
            let program = std::env::current_exe()?;
            builder(modern).connect(ChildProcess::command(program).args(["stdio"])).await?
        }
        10 => builder(modern).connect(Http::new(format!("{}/mcp", doors.mounted))?).await?,
        11 => {
            let http = Http::builder(format!("{}/mcp", doors.tls)).root_certificates(CERTIFICATE).build()?;
            builder(modern).connect(http).await?
        }
        12 => {
            let url = doors.tls.replacen("http", "ws", 1);
            let websocket =
                WebSocket::builder(format!("{url}/mcp")).root_certificates(CERTIFICATE).build()?;
            builder(modern).connect(websocket).await?
        }
        13 => builder(modern).connect(UnixSocket::new(&doors.unix)).await?,
        14 => return crowd(&doors.crowded, chance, counts).await,
        _ => {
            counts.faults.fetch_add(1, Relaxed);
            return faults::commit(url, chance).await;
        }
    };
    talk(client, chance, counts).await
}

/// Connects more clients than the limits admit. Some are refused; the others get correct answers.
async fn crowd(url: &str, chance: &mut Chance, counts: &Counts) -> Result<()> {
    let mut clients = JoinSet::new();
    for _ in 0..CROWD {
        let (url, mut chance) = (url.to_owned(), Chance::new(chance.below(u64::MAX)));
        clients.spawn(async move {
            let era = if chance.below(2) == 0 { EraChoice::Modern } else { EraChoice::Legacy };
            let builder = builder(era);
            let client = match chance.below(3) {
                0 => builder.connect(WebSocket::new(format!("{}/mcp", url.replacen("http", "ws", 1)))?).await,
                _ => builder.connect(Http::new(format!("{url}/mcp"))?).await,
            };
            let Ok(client) = client else { return Ok(false) };
            let text = "much ".repeat(usize::try_from(chance.below(20_000))?);
            match client.call("echo", json!({ "text": text })).await {
                Ok(answer) => expect(&answer.text(), &text).map(|()| true),
                Err(_) => Ok(false),
            }
        });
    }
    while let Some(client) = clients.join_next().await {
        let is_answered: Result<bool> = client?;
        let count = if is_answered? { &counts.calls } else { &counts.refused };
        count.fetch_add(1, Relaxed);
    }
    Ok(())
}

fn builder(era: EraChoice) -> ClientBuilder {
    Client::builder("soak", "0.0.0")
        .era(era)
        .request_timeout(Duration::from_secs(30))
        .on_elicit(|_| async { ElicitReply::accept(json!({ "name": "Ada" })) })
}

/// Makes a few calls; leaves in the middle of one, at times, and without a word, at others.
async fn talk(client: Client, chance: &mut Chance, counts: &Counts) -> Result<()> {
    for _ in 0..=chance.below(8) {
        call(&client, chance).await?;
        counts.calls.fetch_add(1, Relaxed);
    }
    match chance.below(4) {
        0 => {
            counts.left.fetch_add(1, Relaxed);
            let slow = client.call("sleep", json!({ "amount": 20_000 }));
            // It is the leaving that is meant.
            let _ = timeout(Duration::from_millis(chance.below(200)), slow).await;
        }
        1 => drop(client),
        _ => client.close().await?,
    }
    Ok(())
}

async fn call(client: &Client, chance: &mut Chance) -> Result<()> {
    match chance.below(10) {
        0..4 => {
            let text = format!("text {}", chance.below(u64::MAX));
            let answer = client.call("echo", json!({ "text": text })).await?;
            expect(&answer.text(), &text)
        }
        4 => {
            let amount = chance.below(50);
            expect(&client.call("sleep", json!({ "amount": amount })).await?.text(), "rested")
        }
        5 => {
            let amount = 1 + chance.below(256);
            let length = client.call("big", json!({ "amount": amount })).await?.text().len();
            expect(&length.to_string(), &(amount * 1024).to_string())
        }
        6 => {
            let answer = client.call("ask", json!({})).await?;
            // Nobody could be asked for anything before this revision, and HTTP+SSE is older.
            let can_ask = client.version() >= Version::V2025_06_18;
            if can_ask {
                expect(&answer.text(), "Ada")
            } else {
                expect(&answer.is_error().to_string(), "true")
            }
        }
        7 => expect(&client.call("change", json!({})).await?.text(), "changed"),
        8 => match client.call("fail", json!({})).await {
            Ok(answer) if !answer.is_error() => Err("a handler that panics has answered".into()),
            _ => Ok(()),
        },
        _ => match client.all_tools().await?.len() {
            6 => Ok(()),
            other => Err(format!("{other} tools").into()),
        },
    }
}

fn expect(found: &str, expected: &str) -> Result<()> {
    if found == expected { Ok(()) } else { Err(format!("{found:?} instead of {expected:?}").into()) }
}
