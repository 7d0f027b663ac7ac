//! `toolwire tools`, `resources`, `templates` and `prompts`: what a server offers, like a header file.

mod long;
mod signature;

use clap::Args;
use owo_colors::OwoColorize;
use serde::Serialize;
use serde_json::json;
use toolwire::{
    Client, ErrorCode,
    client::ErrorKind,
    wire::{Prompt, Resource, ResourceTemplate, Tool},
};

use crate::{
    ask,
    failure::{Code, Failure, Result},
    render::Live,
    session,
    target::{self, TargetOptions},
    terminal::{Terminal, printable_line},
    tools::{self, BadTool, Tools},
};

pub(crate) use signature::{prompt_signature, tool_signature};

/// List what a server offers
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The server (not with -- COMMAND), and a word to look for
    #[arg(value_name = "WORDS")]
    pub(crate) words: Vec<String>,

    /// Show everything there is to know
    #[arg(short, long)]
    pub(crate) long: bool,

    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// Something that can be listed.
trait Listed: Serialize {
    /// What it is called, of one and of many.
    const NAMES: (&'static str, &'static str);

    /// Asks for all of them.
    async fn all(client: &Client) -> Result<Vec<Self>, toolwire::client::Error>
    where
        Self: Sized;

    /// The same, and what cannot be understood.
    async fn all_and_bad(client: &Client) -> Result<(Vec<Self>, Vec<BadTool>), toolwire::client::Error>
    where
        Self: Sized,
    {
        Ok((Self::all(client).await?, Vec::new()))
    }

    /// What it is found by.
    fn key(&self) -> &str;

    /// What else is searched for a pattern.
    fn texts(&self) -> [Option<&str>; 3];

    /// Two lines: what it is called with, and what it is for.
    fn brief(&self) -> String;

    /// Everything there is to know.
    fn long(&self) -> String;
}

impl Listed for Tool {
    const NAMES: (&'static str, &'static str) = ("tool", "tools");

    async fn all(client: &Client) -> Result<Vec<Self>, toolwire::client::Error> {
        client.all_tools().await
    }

    async fn all_and_bad(client: &Client) -> Result<(Vec<Self>, Vec<BadTool>), toolwire::client::Error> {
        let Tools { good, bad } = tools::all(client).await?;
        Ok((good, bad))
    }

    fn key(&self) -> &str {
        &self.name
    }

    fn texts(&self) -> [Option<&str>; 3] {
        [Some(&self.name), self.title.as_deref(), self.description.as_deref()]
    }

    fn brief(&self) -> String {
        signature::with_description(
            &tool_signature(self),
            self.description.as_deref(),
            &signature::marks(self),
        )
    }

    fn long(&self) -> String {
        long::tool(self)
    }
}

impl Listed for Resource {
    const NAMES: (&'static str, &'static str) = ("resource", "resources");

    async fn all(client: &Client) -> Result<Vec<Self>, toolwire::client::Error> {
        client.all_resources().await
    }

    fn key(&self) -> &str {
        &self.uri
    }

    fn texts(&self) -> [Option<&str>; 3] {
        [Some(&self.uri), Some(&self.name), self.description.as_deref()]
    }

    fn brief(&self) -> String {
        let line = signature::place(&self.uri, &self.name, self.mime_type.as_deref(), self.size);
        signature::with_description(&line, self.description.as_deref(), &[])
    }

    fn long(&self) -> String {
        long::resource(self)
    }
}

impl Listed for ResourceTemplate {
    const NAMES: (&'static str, &'static str) = ("resource template", "resource templates");

    async fn all(client: &Client) -> Result<Vec<Self>, toolwire::client::Error> {
        match client.all_resource_templates().await {
            // There is no capability for templates alone, so a server with resources need not know the method.
            Err(error) if error.rpc().is_some_and(|rpc| rpc.code == ErrorCode::METHOD_NOT_FOUND) => {
                Ok(Vec::new())
            }
            listed => listed,
        }
    }

    fn key(&self) -> &str {
        &self.uri_template
    }

    fn texts(&self) -> [Option<&str>; 3] {
        [Some(&self.uri_template), Some(&self.name), self.description.as_deref()]
    }

    fn brief(&self) -> String {
        let line = signature::place(&self.uri_template, &self.name, self.mime_type.as_deref(), None);
        signature::with_description(&line, self.description.as_deref(), &[])
    }

    fn long(&self) -> String {
        long::template(self)
    }
}

impl Listed for Prompt {
    const NAMES: (&'static str, &'static str) = ("prompt", "prompts");

    async fn all(client: &Client) -> Result<Vec<Self>, toolwire::client::Error> {
        client.all_prompts().await
    }

    fn key(&self) -> &str {
        &self.name
    }

    fn texts(&self) -> [Option<&str>; 3] {
        [Some(&self.name), self.title.as_deref(), self.description.as_deref()]
    }

    fn brief(&self) -> String {
        signature::with_description(&prompt_signature(self), self.description.as_deref(), &[])
    }

    fn long(&self) -> String {
        long::prompt(self)
    }
}

/// Lists the tools.
pub(crate) async fn list_tools(options: &Options, terminal: Terminal) -> Result<()> {
    list::<Tool>(options, terminal).await
}

/// Lists the resources.
pub(crate) async fn resources(options: &Options, terminal: Terminal) -> Result<()> {
    list::<Resource>(options, terminal).await
}

/// Lists the templates.
pub(crate) async fn templates(options: &Options, terminal: Terminal) -> Result<()> {
    list::<ResourceTemplate>(options, terminal).await
}

/// Lists the prompts.
pub(crate) async fn prompts(options: &Options, terminal: Terminal) -> Result<()> {
    list::<Prompt>(options, terminal).await
}

async fn list<T: Listed>(options: &Options, terminal: Terminal) -> Result<()> {
    let words = options.target.words(&options.words, terminal)?;
    let pattern = match words.rest {
        [] => None,
        [pattern] => Some(pattern.to_lowercase()),
        [_, extra, ..] => {
            return Err(Failure::new(Code::Usage, format!("`{extra}` is one word too many"))
                .hint("one pattern is enough; put quotes around it if it has spaces"));
        }
    };
    let builder = ask::declare(target::builder(&words.target));
    let live = Live::new(terminal, "connecting");
    let found = session::with_client(&words.target, builder, async |client| {
        match T::all_and_bad(client).await {
            Ok(all) => Ok(all),
            // A server that never promised any simply has none.
            Err(error) if error.kind() == ErrorKind::NotAdvertised => Ok((Vec::new(), Vec::new())),
            Err(error) => Err(error.into()),
        }
    })
    .await;
    live.end();
    let (mut found, bad) = found?;
    tell_bad(&bad, terminal);
    let all = found.len();
    if let Some(pattern) = &pattern {
        retain(&mut found, pattern);
    }
    if terminal.json {
        return terminal.print_json(&found);
    }
    if found.is_empty() {
        let (one, many) = T::NAMES;
        let name = &words.target.name;
        let remark = match pattern {
            Some(pattern) if all > 0 => {
                format!("no {one} of {name} matches `{pattern}`; it has {all}")
            }
            _ => format!("{name} has no {many}"),
        };
        terminal.note(remark.dimmed());
        return Ok(());
    }
    let shown: Vec<String> =
        found.iter().map(|it| if options.long { it.long() } else { it.brief() }).collect();
    terminal.print(shown.join(if options.long { "\n\n" } else { "\n" }))
}

/// Says which tools are left out because they cannot be understood.
fn tell_bad(bad: &[BadTool], terminal: Terminal) {
    if terminal.json && !bad.is_empty() {
        let bad: Vec<_> = bad.iter().map(|tool| json!({ "name": tool.name, "why": tool.why })).collect();
        return terminal.note_json(&json!({ "leftOut": bad }));
    }
    for BadTool { name, why } in bad {
        terminal.warn(printable_line(&format!("the tool `{name}` is left out: {why}")));
    }
}

/// Keeps what the pattern is about: the one of this name, or all that mention it.
fn retain<T: Listed>(found: &mut Vec<T>, pattern: &str) {
    if found.iter().any(|it| it.key().to_lowercase() == pattern) {
        found.retain(|it| it.key().to_lowercase() == pattern);
    } else {
        found.retain(|it| it.texts().into_iter().flatten().any(|text| text.to_lowercase().contains(pattern)));
    }
}
