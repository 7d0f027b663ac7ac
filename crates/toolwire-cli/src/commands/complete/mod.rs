//! `toolwire complete`: complete an argument of a prompt or a resource template.

use clap::Args;
use owo_colors::OwoColorize;
use toolwire::{
    Client,
    wire::{CompleteResult, CompletionReference, PromptReference, ResourceTemplateReference},
};

use crate::{
    arguments, ask,
    failure::{Code, Failure, Result},
    session,
    target::{self, TargetOptions},
    terminal::{Terminal, printable},
};

const USAGE: &str = "\
toolwire complete [SERVER] prompt NAME ARGUMENT [TYPED] [KEY=VALUE]... [-- COMMAND]
       toolwire complete [SERVER] resource TEMPLATE VARIABLE [TYPED] [KEY=VALUE]... [-- COMMAND]";

const AFTER_HELP: &str = "\
Examples:
  toolwire complete prompt greet name A -- some-server
  toolwire complete resource 'demo://users/{name}' name G -- some-server
  toolwire complete prompt trip to '' from=Oslo -- some-server     what is filled in already";

/// Complete an argument of a prompt or a resource template
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP, override_usage = USAGE)]
pub(crate) struct Options {
    /// The server (not with -- COMMAND), what is completed, and what is filled in
    #[arg(value_name = "WORDS")]
    pub(crate) words: Vec<String>,

    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// Runs the command.
pub(crate) async fn run(options: &Options, terminal: Terminal) -> Result<()> {
    let words = options.target.words(&options.words, terminal)?;
    let usage = || {
        Failure::new(Code::Usage, "what is to be completed?").hint(
            "toolwire complete [SERVER] prompt NAME ARGUMENT [TYPED], or resource TEMPLATE ARGUMENT [TYPED]",
        )
    };
    let [kind, name, argument, rest @ ..] = words.rest else { return Err(usage()) };
    let reference: CompletionReference = match kind.as_str() {
        "prompt" => PromptReference::new(name).into(),
        "resource" | "template" => ResourceTemplateReference::new(name).into(),
        _ => return Err(usage()),
    };
    let (typed, context) = rest.split_first().map_or(("", rest), |(typed, rest)| (typed.as_str(), rest));
    let context = arguments::strings(context)?;
    let builder = ask::declare(target::builder(&words.target));
    let work = async |client: &Client| {
        let mut request = client.complete(reference.clone(), argument, typed);
        if !context.is_empty() {
            request = request.context(context.clone());
        }
        Ok(request.await?)
    };
    let result = session::with_client(&words.target, builder, work).await?;
    show(&result, terminal)
}

fn show(result: &CompleteResult, terminal: Terminal) -> Result<()> {
    if terminal.json {
        return terminal.print_json(result);
    }
    let completion = &result.completion;
    if completion.values.is_empty() {
        terminal.note("nothing is offered".dimmed());
        return Ok(());
    }
    let values: Vec<String> = completion.values.iter().map(|value| printable(value)).collect();
    terminal.print(values.join("\n"))?;
    let shown = u64::try_from(values.len()).unwrap_or(u64::MAX);
    match completion.total.filter(|total| *total > shown) {
        Some(total) => terminal.note(format!("{} more; type another letter", total - shown).dimmed()),
        None if completion.has_more == Some(true) => {
            terminal.note("there are more; type another letter".dimmed());
        }
        None => {}
    }
    Ok(())
}
