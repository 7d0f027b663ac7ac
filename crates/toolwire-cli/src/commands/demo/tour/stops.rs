//! The stops, in the order a newcomer meets the protocol.

use std::{
    io::Write,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolwire::{
    client::{CallOutcome, Change, Listener},
    wire::{LoggingLevel, PromptReference, ReadResourceResult, ResourceContents, Role},
};

use super::{Guest, Tour, ensure, thousands, unexpected};
use crate::{commands::demo::page::Answer, failure::Result, waits};

/// How many calls a crowd makes at once. A client may have 4096 under way.
const CROWD: usize = 1_000;
/// How long a notification inside one process may take, on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tools: the list, a call, a mistake, something slow.
pub(super) async fn tools<W: Write>(tour: &mut Tour<'_, W>) -> Result<()> {
    let list = async |guest: &Guest| {
        let tools = guest.client.all_tools().await?;
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        Ok(Answer::good(names.join(", ")))
    };
    tour.stop("Which tools are there?", "tools/list", list).await?;

    let sum = json!({ "a": 2, "b": 3 });
    let add = async |guest: &Guest| {
        let outcome = guest.client.call("add", &sum).await?;
        ensure(outcome.json::<Value>()? == json!({ "sum": 5 }), || {
            format!("two and three are not {}", outcome.text())
        })?;
        Ok(answer(&outcome))
    };
    tour.stop("Call one", &tool_call("add", &sum), add).await?;

    let wrong = json!({ "a": "two", "b": 3 });
    let mistake = async |guest: &Guest| {
        let outcome = guest.client.call("add", &wrong).await?;
        ensure(outcome.is_error(), || "a word was added to a number".to_owned())?;
        Ok(answer(&outcome))
    };
    tour.stop("Get it wrong: the model is told what to mend", &tool_call("add", &wrong), mistake).await?;

    let to = json!({ "to": 5 });
    let count = async |guest: &Guest| {
        let steps = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&steps);
        let note =
            move |step: f64| seen.lock().unwrap_or_else(PoisonError::into_inner).push(step.to_string());
        let outcome = guest
            .client
            .call("count", &to)
            .progress(move |step| note(step.progress.as_f64()))
            .log_level(LoggingLevel::Info)
            .await?;
        let steps = std::mem::take(&mut *steps.lock().unwrap_or_else(PoisonError::into_inner));
        ensure(steps.last().is_some_and(|last| last == "5"), || format!("progress ended at {steps:?}"))?;
        let logs = guest.take_logs();
        let first = logs.first().ok_or_else(|| unexpected("no log message came"))?;
        let mut answer = answer(&outcome);
        answer.asides = vec![format!("progress {}", steps.join(" ")), format!("log {first} …")];
        Ok(answer)
    };
    tour.stop("Wait for a slow one, and hear how it goes", &tool_call("count", &to), count).await
}

/// Resources: text, bytes, and a template.
pub(super) async fn resources<W: Write>(tour: &mut Tour<'_, W>) -> Result<()> {
    for (title, uri) in [
        ("Read a resource", "demo://greeting"),
        ("Read a picture", "demo://logo"),
        ("Read one of many, from the template demo://users/{name}", "demo://users/Ada"),
    ] {
        let read = async |guest: &Guest| contents(&guest.client.read(uri).await?);
        tour.stop(title, &format!("resources/read {uri}"), read).await?;
    }
    Ok(())
}

/// Prompts: completing an argument, then the prompt itself.
pub(super) async fn prompts<W: Write>(tour: &mut Tour<'_, W>) -> Result<()> {
    let complete = async |guest: &Guest| {
        let result = guest.client.complete(PromptReference::new("greet"), "name", "a").await?;
        Ok(Answer::good(result.completion.values.join(", ")))
    };
    let call = r#"completion/complete greet {"name":"a…"}"#;
    tour.stop("Type a letter, and be offered names", call, complete).await?;

    let arguments = json!({ "name": "Grace" });
    let greet = async |guest: &Guest| {
        let prompt = guest.client.get_prompt("greet", &arguments).await?;
        let message = prompt.messages.first().ok_or_else(|| unexpected("a prompt without messages"))?;
        ensure(message.role == Role::User, || "it is not the user who speaks".to_owned())?;
        Ok(Answer::good(message.content.as_text().ok_or_else(|| unexpected("a prompt without text"))?))
    };
    tour.stop("Fill in a prompt", &format!("prompts/get greet {arguments}"), greet).await
}

/// A note from one era to the other: both hear that the list of resources has changed.
pub(super) async fn note<W: Write>(tour: &mut Tour<'_, W>) -> Result<()> {
    let [old, new] = &tour.guests;
    let mut listeners = [old.client.listen().resources().await?, new.client.listen().resources().await?];
    let text = json!({ "text": "the kettle is on" });
    tour.page.gap()?;
    tour.page.title("Leave a note in one era, find it in the other")?;
    let listen = r#"subscriptions/listen {"resourcesListChanged":true}"#;
    tour.page.asked(listen, &format!("  ({})", new.era()))?;
    tour.page.asked(&tool_call("add_note", &text), &format!("  ({})", old.era()))?;
    let begin = Instant::now();
    let saved = old.client.call("add_note", &text).await?;
    let took = begin.elapsed();
    tour.page.answered(&answer(&saved), [Some(took), None])?;

    for listener in &mut listeners {
        hears_of_resources(listener).await?;
    }
    let heard = format!("both hear notifications/resources/list_changed, {} without asking", old.era());
    tour.page.aside(heard)?;

    let resources = new.client.all_resources().await?;
    let note = resources
        .iter()
        .find(|resource| resource.name.starts_with("note"))
        .ok_or_else(|| unexpected("there is no note"))?;
    tour.page.asked(&format!("resources/read {}", note.uri), &format!("  ({})", new.era()))?;
    let begin = Instant::now();
    let found = contents(&new.client.read(&note.uri).await?)?;
    let took = begin.elapsed();
    ensure(found.text == text["text"], || format!("the note says {:?}", found.text))?;
    tour.page.answered(&found, [None, Some(took)])?;
    Ok(())
}

async fn hears_of_resources(listener: &mut Listener) -> Result<()> {
    let change = tokio::time::timeout(waits::stretched(PATIENCE), listener.next()).await;
    match change.map_err(|_| unexpected("nobody said that the list has changed"))? {
        Some(Change::Resources) => Ok(()),
        other => Err(unexpected(format!("expected a change of the resources, heard {other:?}"))),
    }
}

/// Many calls at once, each with an answer of its own.
pub(super) async fn crowd<W: Write>(tour: &mut Tour<'_, W>) -> Result<()> {
    let everybody = async |guest: &Guest| {
        let mut calls = JoinSet::new();
        for number in 0..CROWD {
            let client = guest.client.clone();
            calls.spawn(async move {
                let text = number.to_string();
                let outcome = client.call("echo", json!({ "text": text })).await?;
                ensure(outcome.text() == text, || format!("{number} was answered with {:?}", outcome.text()))
            });
        }
        while let Some(call) = calls.join_next().await {
            call.map_err(unexpected)??;
        }
        let mut answer = Answer::good(format!("{} answers, each to its own question", thousands(CROWD)));
        if cfg!(debug_assertions) {
            answer.asides.push("this is a debug build; cargo run --release is many times as fast".to_owned());
        }
        Ok(answer)
    };
    let call = format!("{} × tools/call echo {{\"text\":…}}", thousands(CROWD));
    tour.stop("Ask a thousand things at once", &call, everybody).await
}

fn tool_call(name: &str, arguments: &Value) -> String {
    format!("tools/call {name} {arguments}")
}

/// What a tool has answered: its data, or else its text.
fn answer(outcome: &CallOutcome) -> Answer {
    let text = outcome.structured().map_or_else(|| outcome.text(), |data| data.text().to_owned());
    Answer { is_error: outcome.is_error(), ..Answer::good(text) }
}

fn contents(result: &ReadResourceResult) -> Result<Answer> {
    match result.contents.first() {
        Some(ResourceContents::Text(contents)) => Ok(Answer::good(&contents.text)),
        Some(ResourceContents::Blob(contents)) => {
            let padding = contents.blob.bytes().rev().take_while(|byte| *byte == b'=').count();
            let bytes = (contents.blob.len() / 4 * 3).saturating_sub(padding);
            let mime_type = contents.mime_type.as_deref().unwrap_or("of an unknown type");
            Ok(Answer::good(format!("{mime_type}, {bytes} bytes")))
        }
        _ => Err(unexpected("the resource is empty")),
    }
}
