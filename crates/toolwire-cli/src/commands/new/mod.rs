//! `toolwire new`: make a new server project that compiles and passes its tests.

mod folder;
mod name;

use std::path::{Path, PathBuf};

use clap::Args;
use owo_colors::OwoColorize;
use serde_json::json;

use crate::{
    config::Places,
    failure::{Code, Failure, Result},
    terminal::Terminal,
    trust,
};
use name::Name;

/// Make a new server project: a tool, a tool that asks back, a prompt and their tests
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  toolwire new weather\n  cd weather && cargo test")]
pub(crate) struct Options {
    /// The name of the project and its folder
    name: String,

    /// Use the Toolwire in this folder instead of the published one
    #[arg(long, value_name = "FOLDER")]
    toolwire_path: Option<PathBuf>,
}

/// The files, with what they are made from. `{{name}}`, `{{crate}}` and `{{toolwire}}` are filled in.
const FILES: [(&str, &str); 7] = [
    ("Cargo.toml", include_str!("template/Cargo.toml.template")),
    ("src/lib.rs", include_str!("template/lib.rs")),
    ("src/main.rs", include_str!("template/main.rs")),
    ("tests/server.rs", include_str!("template/server_test.rs")),
    ("README.md", include_str!("template/README.md")),
    (".gitignore", include_str!("template/gitignore")),
    (".mcp.json", include_str!("template/mcp.json")),
];

/// Runs the command.
pub(crate) fn run(options: &Options, terminal: Terminal) -> Result<()> {
    let name = Name::check(&options.name)?;
    let toolwire = dependency(options.toolwire_path.as_deref())?;
    let filled = |template: &str| {
        template
            .replace("{{name}}", name.package())
            .replace("{{crate}}", &name.library())
            .replace("{{toolwire}}", &toolwire)
    };
    let files: Vec<_> = FILES.iter().map(|(path, template)| (*path, filled(template))).collect();
    folder::create(Path::new(name.package()), &files)?;
    trust_own(name.package(), &files, terminal);
    if terminal.json {
        let files: Vec<_> = FILES.iter().map(|(path, _)| path).collect();
        return terminal.print_json(&json!({ "created": name.package(), "files": files }));
    }
    terminal.print(format_args!("{} {}\n", "Made".green().bold(), name.package().bold()))?;
    for (what, line) in [
        ("look around", format!("cd {} && cargo test", name.package())),
        ("what can it do?", "toolwire tools -- cargo run --quiet".to_owned()),
        ("be asked something", "toolwire call card occasion=birthday -- cargo run --quiet".to_owned()),
    ] {
        terminal.print(format_args!("  {}\n    {line}", format_args!("# {what}").dimmed()))?;
    }
    terminal.print(format_args!("\nThe tools are in {}.", "src/lib.rs".bold()))
}

/// What this program has just written needs nobody to look at it.
fn trust_own(folder: &str, files: &[(&str, String)], terminal: Terminal) {
    let places = Places::here();
    for (path, text) in files.iter().filter(|(path, _)| *path == ".mcp.json") {
        if let Err(failure) = trust::follow(&places, &Path::new(folder).join(path), None, text.as_bytes()) {
            terminal.warn(failure);
        }
    }
}

/// What stands behind `toolwire =` in the manifest.
fn dependency(path: Option<&Path>) -> Result<String> {
    let Some(path) = path else { return Ok(format!("\"{}\"", env!("CARGO_PKG_VERSION"))) };
    let is_package = |folder: &Path| {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        manifest.lines().any(|line| line.trim() == "name = \"toolwire\"")
    };
    let places = [path.to_owned(), path.join("crates/toolwire")];
    let Some(folder) = places.into_iter().find(|folder| is_package(folder)) else {
        let text = format!("--toolwire-path: {} is not where Toolwire is", path.display());
        return Err(Failure::new(Code::Usage, text).hint("give the folder that was checked out"));
    };
    let folder = std::path::absolute(&folder)?;
    Ok(format!("{{ path = {} }}", toml_edit::Value::from(folder.to_string_lossy().into_owned())))
}
