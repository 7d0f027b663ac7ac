//! `toolwire explain`: explain an error code.

mod render;

use clap::Args;
use owo_colors::OwoColorize;
use serde_json::json;

use crate::{
    failure::{Code, Failure, Result},
    pages::{self, CHAPTERS, Page},
    terminal::{Table, Terminal},
};

/// Explain an error code: what it means, its usual causes, how to fix it
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  toolwire explain\n  toolwire explain auth-needed\n  toolwire explain -32601"
)]
pub(crate) struct Options {
    /// An error code such as auth-needed, -32601, 401 or exit-4; all of them without it
    #[arg(allow_hyphen_values = true)]
    pub(crate) code: Option<String>,
}

/// Runs the command.
pub(crate) fn run(options: &Options, terminal: Terminal) -> Result<()> {
    match &options.code {
        None => index(terminal),
        Some(code) => match pages::find(code) {
            Some(page) => explain(page, terminal),
            None => Err(unknown(code)),
        },
    }
}

fn explain(page: &Page, terminal: Terminal) -> Result<()> {
    if terminal.json {
        let page = json!({ "code": page.code, "title": page.title(), "markdown": page.markdown() });
        return terminal.print_json(&page);
    }
    terminal.print(render::page(page.markdown()))
}

fn index(terminal: Terminal) -> Result<()> {
    if terminal.json {
        let page = |page: &Page, chapter: &str| json!({ "code": page.code, "title": page.title(), "chapter": chapter });
        let all: Vec<_> = CHAPTERS
            .iter()
            .flat_map(|chapter| chapter.pages.iter().map(|one| page(one, chapter.title)))
            .collect();
        return terminal.print_json(&json!({ "pages": all }));
    }
    let mut parts = Vec::new();
    for chapter in CHAPTERS {
        let mut table = Table::default();
        for page in chapter.pages {
            table.row([format!("  {}", page.code.cyan()), page.title().to_owned()]);
        }
        parts.push(format!("{}\n{table}", chapter.title.bold()));
    }
    parts.push("One of them in full: toolwire explain CODE".to_owned());
    terminal.print(parts.join("\n\n"))
}

fn unknown(code: &str) -> Failure {
    let failure = Failure::new(Code::UnknownName, format!("there is no page for `{code}`"));
    let close = pages::close_to(code);
    if close.is_empty() {
        return failure.hint("toolwire explain lists all codes");
    }
    failure.hint(format!("did you mean {}? toolwire explain lists all codes", close.join(", ")))
}
