//! `toolwire prompt`: fill in a prompt.

use std::collections::BTreeMap;

use clap::Args;
use owo_colors::OwoColorize;
use serde_json::{Value, json};
use toolwire::{
    Client,
    wire::{GetPromptResult, Prompt, PromptArgument},
};

use crate::{
    arguments,
    ask::{self, AnswerOptions, Asker, Field},
    commands::{call::with_server, list::prompt_signature},
    failure::{Code, Failure, Result},
    render::{self, Live},
    session::{self, Stop},
    target::{self, TargetOptions},
    terminal::{Terminal, closest, printable, printable_line},
};

const USAGE: &str = "toolwire prompt [SERVER] PROMPT [KEY=VALUE]... [OPTIONS] [-- COMMAND [ARGUMENTS]...]";

const AFTER_HELP: &str = "\
Examples:
  toolwire prompt github review pr=12
  toolwire prompt greet name=Ada -- toolwire demo --stdio";

/// Fill in a prompt
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP, override_usage = USAGE)]
pub(crate) struct Options {
    /// The server (not with -- COMMAND), the prompt, and what to fill in
    #[arg(value_name = "WORDS")]
    pub(crate) words: Vec<String>,

    #[command(flatten)]
    pub(crate) answers: AnswerOptions,

    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// Runs the command.
pub(crate) async fn run(options: &Options, terminal: Terminal) -> Result<()> {
    let words = with_server(&options.words, &options.target);
    let words = options.target.words(&words, terminal)?;
    let Some((name, assignments)) = words.rest.split_first() else {
        let hint = "toolwire prompts lists them: toolwire prompts [SERVER] [-- COMMAND]";
        return Err(Failure::new(Code::Usage, "which prompt?").hint(hint));
    };
    let given = arguments::strings(assignments)?;
    let (live, stop) = (Live::new(terminal, "connecting"), Stop::default());
    let asker = Asker::new(terminal, &words.target.name, &options.answers, &live, &stop)?;
    let builder = asker.attend(target::builder(&words.target));
    let work = async |client: &Client| {
        let prompts = client.all_prompts().await?;
        let prompt = find(prompts, name, &words.target.name)?;
        let filled = fill_in(&prompt, given, terminal, &live).await?;
        let steps = live.clone();
        Ok(client.get_prompt(&prompt.name, &filled).progress(move |step| steps.step(&step)).await?)
    };
    let outcome = session::attended(&words.target, builder, &stop, work).await;
    asker.leave();
    show(&outcome?, terminal)
}

fn find(prompts: Vec<Prompt>, name: &str, server: &str) -> Result<Prompt> {
    let close: Vec<String> = closest(name, prompts.iter().map(|prompt| prompt.name.as_str()))
        .into_iter()
        .map(|name| format!("`{}`", printable_line(name)))
        .collect();
    prompts.into_iter().find(|prompt| prompt.name == name).ok_or_else(|| {
        let failure = Failure::new(Code::UnknownName, format!("{server} has no prompt `{name}`"));
        if close.is_empty() {
            failure.hint("toolwire prompts lists those that it has")
        } else {
            failure.hint(format!("did you mean {}?", close.join(" or ")))
        }
    })
}

/// Checks what is given, and asks for the rest.
async fn fill_in(
    prompt: &Prompt,
    mut given: BTreeMap<String, String>,
    terminal: Terminal,
    live: &Live,
) -> Result<BTreeMap<String, String>> {
    let known: Vec<&PromptArgument> = prompt.arguments.iter().flatten().collect();
    let signature = || anstream::adapter::strip_str(&prompt_signature(prompt)).to_string();
    if let Some(unknown) = given.keys().find(|name| known.iter().all(|argument| argument.name != **name)) {
        let text = format!("`{}` has no argument `{unknown}`", printable_line(&prompt.name));
        return Err(Failure::new(Code::InvalidArguments, text).hint(signature()));
    }
    let missing: Vec<&PromptArgument> = known
        .into_iter()
        .filter(|argument| argument.required == Some(true) && !given.contains_key(&argument.name))
        .collect();
    if missing.is_empty() {
        return Ok(given);
    }
    if !terminal.can_ask() {
        let names: Vec<&str> = missing.iter().map(|argument| argument.name.as_str()).collect();
        let text = format!("`{}` is missing required arguments: {}", prompt.name, names.join(", "));
        let failure = Failure::new(Code::InvalidArguments, printable_line(&text));
        return Err(failure.hint(signature()).data(json!({ "missing": names })));
    }
    let _quiet = live.quiet();
    let field = |it: &&PromptArgument| Field::text(&it.name, it.title.as_deref(), it.description.as_deref());
    let asked = ask::for_fields(missing.iter().map(field).collect()).await?;
    let text = |value: Value| value.as_str().unwrap_or_default().to_owned();
    given.extend(asked.into_iter().map(|(name, value)| (name, text(value))));
    Ok(given)
}

/// Shows it as the conversation it is.
fn show(result: &GetPromptResult, terminal: Terminal) -> Result<()> {
    if terminal.json {
        return terminal.print_json(result);
    }
    if let Some(description) = &result.description {
        terminal.note(printable(description).dimmed());
    }
    let messages =
        result.messages.iter().map(|it| render::message(it.role, std::slice::from_ref(&it.content)));
    let messages: Vec<String> = messages.collect();
    if messages.is_empty() {
        terminal.note("the prompt has no messages".dimmed());
        return Ok(());
    }
    terminal.print(messages.join("\n\n"))
}
