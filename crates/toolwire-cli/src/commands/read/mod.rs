//! `toolwire read`: read a resource.

use std::{
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use owo_colors::OwoColorize;
use toolwire::{
    Client,
    client::ErrorKind,
    wire::{ReadResourceResult, ResourceContents},
};

use crate::{
    ask::{AnswerOptions, Asker},
    failure::{Code, Failure, Result},
    render::{self, Live, Saver},
    session::{self, Stop},
    target::{self, TargetOptions},
    terminal::{Terminal, closest, printable_line},
};

const USAGE: &str = "toolwire read [SERVER] URI [OPTIONS] [-- COMMAND [ARGUMENTS]...]";

const AFTER_HELP: &str = "\
Examples:
  toolwire read files file:///tmp/notes.txt
  toolwire read demo://logo -o logo.png -- toolwire demo --stdio";

/// Read a resource
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP, override_usage = USAGE)]
pub(crate) struct Options {
    /// The server (not with -- COMMAND), and the URI of the resource
    #[arg(value_name = "WORDS")]
    pub(crate) words: Vec<String>,

    /// Save it to this file, or several to this folder
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) answers: AnswerOptions,

    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// Runs the command.
pub(crate) async fn run(options: &Options, terminal: Terminal) -> Result<()> {
    let words = options.target.words(&options.words, terminal)?;
    let [uri] = words.rest else {
        let hint = "toolwire resources lists them: toolwire resources [SERVER] [-- COMMAND]";
        return Err(Failure::new(Code::Usage, "which resource? Give one URI").hint(hint));
    };
    let (live, stop) = (Live::new(terminal, "reading"), Stop::default());
    let asker = Asker::new(terminal, &words.target.name, &options.answers, &live, &stop)?;
    let builder = asker.attend(target::builder(&words.target));
    let read =
        session::attended(&words.target, builder, &stop, async |client| read(client, uri, &live).await).await;
    asker.leave();
    let result = read?;
    if terminal.json {
        return terminal.print_json(&result);
    }
    show(&result, options.output.as_deref(), terminal)
}

async fn read(client: &Client, uri: &str, live: &Live) -> Result<ReadResourceResult> {
    let steps = live.clone();
    match client.read(uri).progress(move |step| steps.step(&step)).await {
        Ok(result) => Ok(result),
        Err(error) if error.kind() == ErrorKind::Rpc => {
            // A wrong URI is the likeliest reason, so the likeliest right ones are offered.
            let known = client.all_resources().await.unwrap_or_default();
            let close = closest(uri, known.iter().map(|resource| resource.uri.as_str()));
            let failure = Failure::from(error);
            if close.is_empty() || close.contains(&uri) {
                return Err(failure);
            }
            Err(failure.hint(printable_line(&format!("did you mean {}?", close.join(" or ")))))
        }
        Err(error) => Err(error.into()),
    }
}

fn show(result: &ReadResourceResult, to: Option<&Path>, terminal: Terminal) -> Result<()> {
    let several = result.contents.len() > 1;
    let mut saver = Saver::new(to, result.contents.len());
    for contents in &result.contents {
        let (mime_type, bytes) = match contents {
            ResourceContents::Text(text) => (text.mime_type.as_deref(), text.text.as_bytes().to_vec()),
            ResourceContents::Blob(blob) => (blob.mime_type.as_deref(), render::decode(&blob.blob)?),
            _ => continue,
        };
        if let Some(path) = saver.save("resource", mime_type, &bytes)? {
            terminal.note(format!("saved as {}: {}", path.display(), render::size(bytes.len())));
            continue;
        }
        if several {
            terminal.print(format!("{} {}", "resource".cyan(), printable_line(contents.uri())))?;
        }
        match contents {
            ResourceContents::Text(text) if several || io::stdout().is_terminal() => {
                render::text(&text.text)?;
            }
            // Bytes on a terminal would do something to it.
            ResourceContents::Blob(_) if io::stdout().is_terminal() => {
                let mime_type = printable_line(mime_type.unwrap_or("of no known type"));
                terminal.print(format!("{mime_type}, {} (-o FILE saves it)", render::size(bytes.len())))?;
            }
            // Whoever reads it gets it as it is.
            _ => {
                let mut out = io::stdout().lock();
                out.write_all(&bytes)?;
                out.flush()?;
            }
        }
    }
    if result.contents.is_empty() {
        terminal.note("the resource is empty".dimmed());
    }
    Ok(())
}
