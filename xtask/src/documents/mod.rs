//! Holds the documents to what the checks really run: no example that is not compiled, no command that is not
//! tried.
//!
//! The Rust blocks themselves are compiled as documentation tests of the crate that includes the document;
//! this module makes sure that there is such a crate and that no block opts out.

pub(crate) mod promises;

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{Request, parse};

/// Documents at the root that are read when they exist; README.md has to.
const AT_ROOT: &[&str] = &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"];

/// Commands a document may show, besides `cargo xtask`, and the step that runs the same program.
const COMMANDS: &[(&str, &str)] = &[
    ("cargo run -- demo", "demo"),
    ("cargo run -- demo --once", "demo"),
    ("cargo run -- demo --stdio", "interop"),
    ("cargo install --path crates/toolwire-cli", "install"),
];

/// Languages whose blocks show something rather than do something.
const SHOWN: &[&str] = &["text", "toml", "json"];

/// What a Rust block may ask of its test; both still compile it.
const RUST_FLAGS: &[&str] = &["no_run", "compile_fail"];

/// A fenced block of a document.
#[derive(Debug, PartialEq)]
struct Block<'a> {
    /// Line of the opening fence, counted from one.
    line: usize,
    info: &'a str,
    body: Vec<&'a str>,
}

/// Checks every document and returns all faults, one sentence each.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let included = included_files(root)?;
    let mut faults = Vec::new();
    if !root.join("README.md").exists() {
        faults.push("README.md is missing".to_owned());
    }
    for path in all(root)? {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let text = fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
        let compiled = path.canonicalize().is_ok_and(|path| included.contains(&path));
        faults.extend(document_faults(&text, compiled).into_iter().map(|fault| format!("{name}{fault}")));
    }
    faults.extend(promises::faults(root)?);
    Ok(faults)
}

/// The documents, those at the root first.
pub(crate) fn all(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found: Vec<PathBuf> =
        AT_ROOT.iter().map(|name| root.join(name)).filter(|path| path.exists()).collect();
    collect(&root.join("docs"), "md", &mut found)?;
    Ok(found)
}

/// The files that crates pull in with `include_str!`, most often to compile the examples in them.
fn included_files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut sources = Vec::new();
    collect(&root.join("crates"), "rs", &mut sources)?;
    let mut included = Vec::new();
    for source in sources {
        let text = fs::read_to_string(&source).map_err(|error| format!("{}: {error}", source.display()))?;
        let folder = source.parent().unwrap_or(root);
        for rest in text.split("include_str!(\"").skip(1) {
            let target = rest.split('"').next().unwrap_or_default();
            included.extend(folder.join(target).canonicalize());
        }
    }
    Ok(included)
}

/// Adds all files under `folder` that end in `.extension`; a folder that does not exist has none.
pub(crate) fn collect(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) -> Result<(), String> {
    if !folder.exists() {
        return Ok(());
    }
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, extension, found)?;
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    Ok(())
}

/// Faults of one document, each beginning with `:LINE: `; `compiled` says whether a crate includes it.
fn document_faults(text: &str, compiled: bool) -> Vec<String> {
    let mut faults = Vec::new();
    for block in blocks(text) {
        let mut flags = block.info.split(',').map(str::trim);
        let found = match flags.next().unwrap_or_default() {
            "rust" if !compiled => {
                vec!["no crate includes this document, so its Rust is not compiled".to_owned()]
            }
            "rust" => flags
                .filter(|flag| !RUST_FLAGS.contains(flag))
                .map(|flag| format!("a Rust block must not be marked `{flag}`"))
                .collect(),
            "sh" => commands(&block.body, "").filter_map(command_fault).collect(),
            "console" => {
                // The step `screens` runs these, and compares what they say.
                let others = commands(&block.body, "$ ").filter(|command| !is_screen(command));
                others.filter_map(command_fault).collect()
            }
            language if SHOWN.contains(&language) => vec![],
            "" => vec!["a block needs a language; plain text is `text`".to_owned()],
            language => vec![format!("no rule says how a block of `{language}` is checked")],
        };
        faults.extend(found.into_iter().map(|fault| format!(":{}: {fault}", block.line)));
    }
    faults
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, Block<'_>)> = None;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        open = match open {
            Some((fence, block)) if trimmed == fence => {
                blocks.push(block);
                None
            }
            Some((fence, mut block)) => {
                block.body.push(trimmed);
                Some((fence, block))
            }
            None => {
                fence(trimmed).map(|(fence, info)| (fence, Block { line: index + 1, info, body: vec![] }))
            }
        };
    }
    // An unclosed block runs to the end of the document, as it does for readers.
    blocks.extend(open.map(|(_, block)| block));
    blocks
}

fn fence(line: &str) -> Option<(&str, &str)> {
    let length = line.chars().take_while(|character| *character == '`').count();
    let (fence, info) = line.split_at(length);
    (length >= 3 && !info.contains('`')).then_some((fence, info.trim()))
}

/// The commands of a shell block: lines with the prompt, without it and without comments.
fn commands<'a>(body: &'a [&'a str], prompt: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = body.iter().filter_map(move |line| line.strip_prefix(prompt));
    lines.map(|line| line.split('#').next().unwrap_or_default().trim()).filter(|line| !line.is_empty())
}

fn is_screen(command: &str) -> bool {
    command == "toolwire" || command.starts_with("toolwire ")
}

fn command_fault(command: &str) -> Option<String> {
    if let Some(ours) = command.strip_prefix("cargo xtask ") {
        let words: Vec<String> = ours.split_whitespace().map(str::to_owned).collect();
        return match parse(&words) {
            Ok(Request::Test(selection)) => selection.steps().err(),
            Ok(_) => None,
            Err(error) => Some(format!("`{command}`: {error}")),
        };
    }
    let known = COMMANDS.iter().any(|(known, _)| *known == command);
    (!known).then(|| format!("no step runs `{command}`; see COMMANDS in xtask/src/documents/mod.rs"))
}

#[cfg(test)]
mod tests;
