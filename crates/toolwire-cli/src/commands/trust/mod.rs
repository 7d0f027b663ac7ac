//! `toolwire trust` and `toolwire untrust`: whether the servers of a project's file are used.

use std::path::{Path, PathBuf};

use clap::Args;
use owo_colors::OwoColorize;
use serde_json::json;

use crate::{
    config::{self, Found, Host, Places},
    failure::{Code, Failure, Result},
    private_file,
    terminal::{Terminal, printable_line},
    trust::{self, Answer, Preview, Store},
};

const TRUST_HELP: &str = "\
Files of a project, such as .mcp.json, .cursor/mcp.json or .vscode/mcp.json, can name any
program. Nothing of them is used before you have trusted them, and what was trusted is that
very content: a file that changes has to be trusted again. Your own settings need no trust.

Without FILE, all files are meant that are found from here up to the root of the repository.

Examples:
  toolwire trust
  toolwire trust .mcp.json --yes             for scripts: without asking
  toolwire tools github --trust              for this one command only";

const UNTRUST_HELP: &str = "\
Without FILE, all files are meant that are found from here up to the root of the repository.

Examples:
  toolwire untrust
  toolwire untrust .mcp.json";

/// Trust a file of the project, so that its servers are used
#[derive(Args, Debug)]
#[command(after_help = TRUST_HELP)]
pub(crate) struct TrustOptions {
    /// The file; without it, all that are found from here
    file: Option<PathBuf>,

    /// Trust it without asking
    #[arg(long, short)]
    yes: bool,
}

/// Stop trusting a file of the project
#[derive(Args, Debug)]
#[command(after_help = UNTRUST_HELP)]
pub(crate) struct UntrustOptions {
    /// The file; without it, all that are found from here
    file: Option<PathBuf>,
}

/// Trusts files.
pub(crate) fn trust(options: &TrustOptions, terminal: Terminal) -> Result<()> {
    let places = Places::here();
    let found = look(&places, options.file.as_deref());
    let real = options.file.as_deref().map(private_file::real);
    let meant = |path: &Path| real.as_deref().is_none_or(|real| path == real);
    let wanted: Vec<usize> =
        (0..found.untrusted.len()).filter(|file| meant(found.untrusted[*file].content.path())).collect();
    if wanted.is_empty() {
        return nothing(&found, options.file.as_deref(), terminal);
    }
    if !options.yes && !terminal.can_ask() {
        return Err(unasked(&found, &wanted, &places, terminal));
    }
    let store = Store::of(&places);
    let mut done = Vec::new();
    for file in wanted {
        let (preview, content) = (Preview::of(&found, file), &found.untrusted[file].content);
        let page = preview.page(&places);
        if !terminal.json {
            terminal.note(&page.text);
        }
        // Naming the file is what somebody does who has read it.
        let named = options.yes && options.file.is_some();
        if !page.whole && !named {
            let file = found.untrusted[file].file();
            let name = printable_line(&file.display().to_string());
            let text = format!("{name} was not trusted: it has more than can be shown");
            return Err(Failure::new(Code::Usage, text).hint(trust::unseen(file)));
        }
        match if options.yes { Answer::Trust } else { trust::answer()? } {
            Answer::Trust => store.trust(content)?,
            Answer::Refuse => {
                store.refuse(content)?;
                continue;
            }
            Answer::Later => continue,
        }
        let mut json = preview.to_json(&places);
        json["trusted"] = json!(true);
        done.push(json);
        if !terminal.json {
            let name = printable_line(&found.untrusted[file].file().display().to_string());
            terminal.note(format!("{} {name} is trusted until it changes", "✓".green()));
        }
    }
    match done.is_empty() {
        _ if terminal.json => terminal.print_json(&json!({ "files": done })),
        true => Err(Failure::new(Code::Other, "nothing was trusted")),
        false => Ok(()),
    }
}

/// Shows what there is to trust where nobody can be asked.
fn unasked(found: &Found, files: &[usize], places: &Places, terminal: Terminal) -> Failure {
    let previews = || files.iter().map(|file| Preview::of(found, *file));
    if !terminal.json {
        previews().for_each(|preview| terminal.note(preview.page(places).text));
    }
    let failure = Failure::new(Code::Usage, "not trusted: add --yes to confirm");
    failure.data(json!({ "files": previews().map(|preview| preview.to_json(places)).collect::<Vec<_>>() }))
}

/// Says why there is nothing to trust.
fn nothing(found: &Found, file: Option<&Path>, terminal: Terminal) -> Result<()> {
    let is_trusted = |file: &Path| {
        let real = private_file::real(file);
        found.trusted.iter().any(|trusted| private_file::real(trusted) == real)
    };
    match file {
        None if terminal.json => terminal.print_json(&json!({ "files": [] })),
        None if found.trusted.is_empty() => {
            terminal.note("no file of the project has servers here");
            Ok(())
        }
        None => {
            terminal.note("all files of the project are trusted already");
            Ok(())
        }
        Some(file) if is_trusted(file) && terminal.json => {
            terminal.print_json(&json!({ "files": [{ "file": file, "trusted": true }] }))
        }
        Some(file) if is_trusted(file) => {
            terminal.note(format!("{} is trusted already", printable_line(&file.display().to_string())));
            Ok(())
        }
        Some(file) if !file.exists() => {
            Err(Failure::new(Code::Io, format!("there is no file {}", file.display())))
        }
        Some(file) => {
            let broken =
                || found.broken.iter().find(|failure| failure.message().contains(&*file.to_string_lossy()));
            let text = format!("{} is not a file of a project with servers", file.display());
            let hint = match broken() {
                Some(failure) => failure.message().to_owned(),
                None => "files such as .mcp.json are; your own settings need no trust".to_owned(),
            };
            Err(Failure::new(Code::Usage, text).hint(hint))
        }
    }
}

/// Stops trusting files.
pub(crate) fn untrust(options: &UntrustOptions, terminal: Terminal) -> Result<()> {
    let places = Places::here();
    let store = Store::of(&places);
    let files = options.file.as_ref().map_or_else(|| all(&look(&places, None)), |file| vec![file.clone()]);
    let mut told = Vec::new();
    for file in &files {
        let forgotten = store.forget(&gone(file))?;
        // A file that is gone may have been trusted; one that never was is a misspelling.
        if forgotten == 0 && options.file.is_some() && !file.exists() {
            let name = printable_line(&file.display().to_string());
            return Err(Failure::new(
                Code::Io,
                format!("there is no file {name}, and none of that name was trusted"),
            ));
        }
        told.push(json!({ "file": file, "trusted": false, "forgotten": forgotten }));
        if !terminal.json {
            let name = printable_line(&file.display().to_string());
            let text = if forgotten > 0 { "is not trusted any more" } else { "was not trusted" };
            terminal.note(format!("{name} {text}"));
        }
    }
    if terminal.json {
        return terminal.print_json(&json!({ "files": told }));
    }
    if files.is_empty() {
        terminal.note("no file of the project has servers here");
    }
    Ok(())
}

/// The files of the project with servers, trusted or not.
fn all(found: &Found) -> Vec<PathBuf> {
    let untrusted = found.untrusted.iter().map(|file| file.file().to_owned());
    found.trusted.iter().cloned().chain(untrusted).collect()
}

/// The path of a file without links, even if the file itself is gone.
fn gone(file: &Path) -> PathBuf {
    if let Ok(real) = file.canonicalize() {
        return real;
    }
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    match (absolute.parent().and_then(|folder| folder.canonicalize().ok()), absolute.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => absolute,
    }
}

/// What is found from here, or from where the file is.
fn look(places: &Places, file: Option<&Path>) -> Found {
    let here = config::find_in(places, &Host::ALL);
    let Some(real) = file.map(private_file::real) else { return here };
    let has = |found: &Found| {
        let trusted = found.trusted.iter().any(|trusted| private_file::real(trusted) == real);
        trusted || found.untrusted.iter().any(|untrusted| untrusted.content.path() == real)
    };
    // It is in the folder of a project, or in one below that belongs to a host.
    let folders = real.ancestors().skip(1).take(2);
    let elsewhere = folders.map(|folder| config::find_in(&places.seen_from(folder.to_owned()), &Host::ALL));
    if has(&here) { here } else { elsewhere.into_iter().find(has).unwrap_or(here) }
}
